"""Gromov-Wasserstein: the compiled solver against POT's conditional gradient, on the same pairs in one run.

    python benchmarks/gromov.py [--data-root DIR] [--only mutag …] [--pairs 20000] [--oracle 1000] [--all-pairs]
                                [--batched] [--neighbours 5 20]

Spaces are shortest paths with uniform weights: 500 one-hop ego-networks of CiteSeer, and the graphs of
MUTAG, IMDB-BINARY and PROTEINS. Without --data-root, FEDGRAPH_DATA is read; where files are missing,
generated graphs of the published sizes take their place and the first column says so. Times are CPU time
of one thread; ours is over --pairs random pairs (or all, with --all-pairs), POT's over --oracle of them.
``lower`` and ``higher`` are the shares of pairs where our objective is below or above POT's by more than
1e-9: the problem is not convex, and the two may stop at different local minima. The lines below are searches:
``quality: careful``, and as many restarts with five kicks each as fit into the time that POT takes for one descent.
With --batched POT's batched solver runs too (``solver: batched``), on the GPU where there is one: on the compiled path's pairs
there, on POT's else; its time is wall time on a GPU, ``ratio`` the compiled path's over it.
With --neighbours, how many pairs of a tenth of the spaces with the others are solved to know each one's k nearest, and how long
it takes, bounds included. The last line is JSON: each set's ratio.
"""

from __future__ import annotations

import argparse
import json
import resource
import time

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from fedgraph import data
from fedgraph.comparison import gromov, gromov_bounds, metric_space
from fedgraph.comparison.metric_space import MetricSpace
from fedgraph.types import GraphCollection

SETS = {"citeseer": "planetoid/citeseer", "mutag": "tu/mutag", "imdb": "tu/imdb-binary", "proteins": "tu/proteins"}


def spaces_of(key: str, root: str | None) -> tuple[list[MetricSpace], str]:
    loaded = data.load(SETS[key], root=root, when_unavailable="synthetic", download=False)
    if isinstance(loaded, GraphCollection):
        return [metric_space.from_topology(graph.adjacency) for graph in loaded.graphs], loaded.provenance.source
    adjacency = loaded.adjacency
    centres = np.random.default_rng(0).choice(np.flatnonzero(loaded.degrees > 0), 500, replace=False)
    spaces = []
    for centre in centres:
        nodes = np.append(centre, adjacency.indices[adjacency.indptr[centre] : adjacency.indptr[centre + 1]])
        spaces.append(metric_space.from_topology(adjacency[nodes][:, nodes]))
    return spaces, loaded.provenance.source


def timed(spaces: list[MetricSpace], which: np.ndarray, options: gromov.GromovOptions) -> tuple[np.ndarray, float]:
    began = time.process_time()
    values = gromov.solve_pairs(spaces, which, options).value
    return values, time.process_time() - began


def print_searched(spaces: list[MetricSpace], sample: np.ndarray, theirs: np.ndarray, slow: float) -> None:
    """``quality: careful``, and as many descents as fit into ``slow``, POT's seconds for one descent of each pair."""
    first, few = sample[: max(1, len(sample) // 10)], gromov.GromovOptions(restarts=2, kicks=10)
    _, seconds = timed(spaces, first, few)
    fits = max(1, int(2 * slow / len(sample) * len(first) / seconds))
    for restarts in (8, fits):
        values, seconds = timed(spaces, sample, gromov.GromovOptions(restarts=restarts, kicks=5 * restarts))
        apart = values - theirs
        print(f"  {1 + 6 * restarts} descents in {seconds / slow:.2f} of POT's time: mean {values.mean():.4f}", end=" ")
        print(f"(POT {theirs.mean():.4f}); lower {np.mean(apart < -1e-9):.3f}", end=" ")
        print(f"equal {np.mean(abs(apart) <= 1e-9):.3f} higher {np.mean(apart > 1e-9):.3f}")


def batched(spaces: list[MetricSpace], which: np.ndarray, device: str) -> tuple[np.ndarray, float]:
    def solve(pairs: np.ndarray) -> np.ndarray:
        return gromov.solve_pairs(spaces, pairs, gromov.GromovOptions(solver="batched")).value

    solve(which[:100])  # the device's own start
    clock = time.perf_counter if device == "cuda" else time.process_time
    began = clock()
    return solve(which), clock() - began


def print_nearest(spaces: list[MetricSpace], k: int) -> None:
    rows, columns = np.split(np.random.default_rng(2).permutation(len(spaces)), [len(spaces) // 10])
    began = time.process_time()
    _, asked = gromov_bounds.solve_within(spaces, rows, columns, k, None, lambda which: gromov.solve_pairs(spaces, which).value)
    seconds, all_of_them = time.process_time() - began, rows.size * columns.size
    print(f"  {k} nearest of {rows.size} spaces: {asked:,} of {all_of_them:,} pairs", end=" ")
    print(f"({asked / all_of_them:.0%}) solved, {seconds:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-root", help="a folder in the layout of PyG; default: FEDGRAPH_DATA and the user's cache")
    parser.add_argument("--only", nargs="*", choices=SETS, default=list(SETS))
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--oracle", type=int, default=1_000)
    parser.add_argument("--all-pairs", action="store_true", help="solve every pair with the compiled solver")
    parser.add_argument("--batched", action="store_true", help="also run POT's batched solver, on a GPU where there is one")
    parser.add_argument("--neighbours", nargs="*", type=int, default=[], help="also find this many nearest spaces")
    args = parser.parse_args()
    began = time.perf_counter()
    for options in (gromov.GromovOptions(), gromov.GromovOptions(solver="pot")):  # which imports POT, outside the timed part
        gromov.solve_pairs([metric_space.from_topology(np.zeros((1, 1)))] * 2, gromov.all_pairs(2), options)
    print(f"first calls (compilation, or reading it from disk, and imports): {time.perf_counter() - began:.1f} s")
    print("set       source     spaces  nodes   µs/pair  POT µs/pair   ratio    median POT median  median diff", end=" ")
    print(" lower higher  s, all pairs")
    ratios: dict[str, float] = {}
    for key in args.only:
        spaces, source = spaces_of(key, args.data_root)
        which = gromov.all_pairs(len(spaces))
        order = np.random.default_rng(1).permutation(len(which))
        sample = which[order[: args.oracle]]
        with threadpool_limits(1):
            chosen = which if args.all_pairs else which[order[: args.pairs]]
            every, seconds = timed(spaces, chosen, gromov.GromovOptions())
            theirs, slow = timed(spaces, sample, gromov.GromovOptions(solver="pot"))
        ours = gromov.solve_pairs(spaces, sample).value
        fast = seconds / len(chosen)
        nodes = np.mean([space.num_points for space in spaces])
        apart = ours - theirs
        ratios[key] = slow / len(sample) / fast
        print(
            f"{key:9s} {source:9s} {len(spaces):7d} {nodes:6.1f} {1e6 * fast:9.1f} {1e6 * slow / len(sample):12.1f} "
            f"{slow / len(sample) / fast:7.1f} {np.median(ours):9.5f} {np.median(theirs):10.5f} {np.median(apart):12.1e} "
            f"{np.mean(apart < -1e-9):6.2f} {np.mean(apart > 1e-9):6.2f} {fast * len(which):9.1f}"
        )
        print_searched(spaces, sample, theirs, slow)
        for k in args.neighbours:
            print_nearest(spaces, k)
        if args.batched:
            device = "cuda" if torch.cuda.is_available() else "cpu"
            few, same = (chosen, every) if device == "cuda" else (sample, ours)
            found, wall = batched(spaces, few, device)
            apart, each = found - same, wall / len(few)
            print(f"  batched on {device}: {1e6 * each:.1f} µs/pair, ratio {fast / each:.2f},", end=" ")
            print(f"{each * len(which):.1f} s for all pairs;")
            print(f"  median {np.median(found):.5f}, mean {found.mean():.5f}; the compiled path has", end=" ")
            print(f"{np.median(same):.5f}, {same.mean():.5f}; lower {np.mean(apart < -1e-9):.2f}", end=" ")
            print(f"higher {np.mean(apart > 1e-9):.2f}")
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")
    print(json.dumps({"ratios": ratios}))


if __name__ == "__main__":
    main()
