"""Which network answers for the ceiling: chosen on one tenth of the training nodes, or on several in turn and not alone.

    python -m benchmarks.ceiling_choice [--datasets twitch/ptbr …] [--protocol inductive] [--folds 3] [--seeds 5]

Every candidate of ``nonprivate`` (but GAT) is trained once for each fold, 400 steps at most, and judged every ten steps. Both
ways to choose then read the same trainings: the best of one fold alone, and up to three within a standard error of the best by
all folds (``methods.nonprivate``). The chosen ones are trained on all training nodes. Beside them a plain GCN and
one without decay, each for as many steps as its own validation found best, and the larger class. Test labels are read at the
end. A line for each seed, then means with standard errors. About a minute and a half of one core for a seed of Twitch PTBR.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from fedgraph import data, seeds
from fedgraph.federation import Federation
from fedgraph.learning import fitting, walks
from fedgraph.methods import nonprivate
from fedgraph.methods.nonprivate import CEILING_GRID, BestCandidate, Candidate, TriedCandidate
from fedgraph.tasks.node_classification import protocols
from fedgraph.types import Graph

CANDIDATES = tuple(c for c in CEILING_GRID if c.model != "gat")
EVERY, MOST, PATIENCE, SHARE = 10, 400, 8, 0.1
NONE = np.zeros(0, np.float32)


class Course:
    """One candidate, trained step by step; ``asked`` and ``judged`` graphs answer after every ten steps."""

    def __init__(self, candidate: Candidate, held: Graph, inputs: fitting.FittingInputs, seed: tuple[int, int, int]) -> None:
        self.candidate, self.held, self.inputs, self.seed = candidate, held, inputs, seed
        shape = candidate.shape(held.num_features, held.num_classes, {})
        self.network, self.at, self.steps = (
            fitting.build_network_for_fitting(shape, 0),
            fitting.start_fitting(shape, nonprivate.seed_of_step(*seed)),
            0,
        )

    def scores(self, graph: Graph, inputs: fitting.FittingInputs, rows: np.ndarray) -> np.ndarray:
        found, alpha = fitting.score_after_fitting(self.network, self.at.vector, inputs), self.candidate.alpha
        spread = walks.personalised_pagerank(graph.adjacency, found, alpha, 10) if alpha < 1 else found
        return np.asarray(spread[rows].astype(np.float16), dtype=np.float64)

    def on(self, labels: np.ndarray) -> None:
        """Ten more steps."""
        how = fitting.FittingSteps(EVERY, self.steps, self.candidate.rate, self.candidate.decay)
        self.at = fitting.continue_fitting(
            self.network, self.inputs, labels, self.at, how, lambda step: nonprivate.seed_of_step(*self.seed, step)
        )
        self.steps += EVERY


def validated(course: Course, labels: np.ndarray, on: tuple[Graph, fitting.FittingInputs, np.ndarray]) -> np.ndarray:
    """float64 [rounds, 3]: right answers, summed loss, validation nodes; until nothing gets better for eight rounds."""
    curve: list[np.ndarray] = []
    highest, lowest, waited = -1.0, np.inf, 0
    while course.steps < MOST:
        row = nonprivate.count_validation(course.scores(*on), course.held.labels[on[2]])
        curve.append(row)
        waited = 0 if row[0] > highest or row[1] < lowest else waited + 1
        highest, lowest = max(highest, row[0]), min(lowest, row[1])
        if waited >= PATIENCE:
            break
        course.on(labels)
    return np.array(curve)


def like_asked(held: Graph, share: float, drawn: np.ndarray, validation: np.ndarray) -> Graph:
    """``held`` with as few edges as a test graph has (``nonprivate``)."""
    kept = sp.diags_array(((drawn < share) | validation).astype(held.adjacency.dtype))
    thin = sp.csr_array(kept @ held.adjacency @ kept)
    thin.eliminate_zeros()
    return replace(held, adjacency=thin)


def one_seed(name: str, graph: Graph, protocol: protocols.Protocol, num_folds: int, seed: int) -> dict[str, float]:
    """Row → accuracy on the test nodes."""
    made = protocols.divide(graph, protocol, 0.8, seeds.seeded_generator(20281, "split", name, seed))
    held, inputs = made.held, fitting.prepare_fitting_inputs(made.held)
    share = made.asked.num_nodes / held.num_nodes if protocol == "inductive" else 1.0
    rng = np.random.default_rng([seed, 7])
    drawn, other = rng.random(held.num_nodes), rng.random(held.num_nodes)
    first: dict[int, TriedCandidate] = {}
    tried: dict[int, TriedCandidate] = {}
    for fold in range(num_folds):
        training, validation = nonprivate.divide_labels(held, SHARE, drawn, fold)
        judged = held if share == 1 else like_asked(held, share, other, validation >= 0)
        on = (judged, inputs if share == 1 else fitting.prepare_fitting_inputs(judged), np.flatnonzero(validation >= 0))
        for i, candidate in enumerate(CANDIDATES):
            curve = validated(Course(candidate, held, inputs, (seed, fold + 1, i)), training, on)
            at = max(range(len(curve)), key=lambda t: (curve[t][0], -curve[t][1]))
            right, loss, count = curve[at]
            own = TriedCandidate(curve, 1, BestCandidate(i, right / count, loss / count, at, NONE))
            first |= {i: own} if fold == 0 else {}
            tried[i] = own if fold == 0 else tried[i].after(curve)
    return answered(made, {"one fold, one network": first, "folds, members": tried}, seed)


def answered(made: Federation, shown: dict[str, dict[int, TriedCandidate]], seed: int) -> dict[str, float]:
    """Fits what is needed on all training nodes, and asks it."""
    tested = np.flatnonzero(made.truth >= 0)
    inputs = fitting.prepare_fitting_inputs(made.held)
    asked = inputs if made.asked is made.held else fitting.prepare_fitting_inputs(made.asked)
    known: dict[tuple[int, int], np.ndarray] = {}

    def right(members: Sequence[tuple[int, int]]) -> float:
        for i, rounds in members:
            course = Course(CANDIDATES[i], made.held, inputs, (seed, 0, i))
            while (i, rounds) not in known and course.steps < rounds * EVERY:
                course.on(made.held.labels)
            known.setdefault((i, rounds), course.scores(made.asked, asked, tested))
        scores = nonprivate.candidates_together([known[m] for m in members])
        return float((scores.argmax(axis=1) == made.truth[tested]).mean())

    alone, tried = shown["one fold, one network"], shown["folds, members"]
    best = nonprivate.candidates_within(alone, 0.0)[0]
    near = nonprivate.candidates_within(tried, nonprivate.NEAR_CANDIDATES)[:3]
    gcns = [i for i, c in enumerate(CANDIDATES) if c.model == "gcn"]
    rows = {"one fold, one network": right([(best, alone[best].best.updates)])}
    rows["folds, one network"] = right([(near[0], tried[near[0]].best.updates)])
    rows["folds, members"] = right([(i, tried[i].best.updates) for i in near])
    rows |= dict(zip(("GCN", "GCN without decay"), (right([(i, tried[i].best.updates)]) for i in gcns), strict=True))
    return rows | {"larger class": float(np.bincount(made.truth[tested]).max() / tested.size)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--datasets", nargs="+", default=["twitch/ptbr"])
    parser.add_argument("--protocol", choices=["inductive", "transductive"], default="inductive")
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--data-root", default=os.environ.get("FEDGRAPH_DATA"))
    args = parser.parse_args()
    for name in args.datasets:
        graph = data.load(name, root=Path(args.data_root) if args.data_root else None)
        if not isinstance(graph, Graph):
            raise SystemExit(f"{name} is a collection of graphs; this needs one graph")
        found = []
        for seed in range(args.seeds):
            found.append(one_seed(name, graph, args.protocol, args.folds, seed))
            print(name, seed, *(f"{row} {value:.3f}" for row, value in found[-1].items()), sep=", ", flush=True)
        for row in found[0]:
            values = np.array([f[row] for f in found])
            error = f" ± {values.std(ddof=1) / np.sqrt(values.size):.3f}" if values.size > 1 else ""
            print(f"{name}, {args.protocol}: {row}: {values.mean():.3f}{error}", flush=True)


if __name__ == "__main__":
    main()
