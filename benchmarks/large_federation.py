"""A federation of the size of all of Facebook100: processor seconds and peak memory of one cell per method.

    python -m benchmarks.large_federation [--share 1 | --real] [--cells features GAP-NDP …] [--trust sums curator]
        [--epsilon 4] [--json]

Eighty-nine generated campuses with 870,056 nodes and 33.3 million edges in all (the numbers of the whole collection), of very
different size; six classes; a node has five of the columns that all campuses share and of the 150 that its campus has alone.
``--real`` takes the campuses that ``FEDGRAPH_DATA`` has instead; ``--share 0.25`` makes a quarter of the campuses. On
generated ones accuracy means nothing: edges join classes at random. Each cell runs in a process of its own, with the serial
engine, and memory is the largest resident size of
that process, the data included. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from fedgraph import data
from fedgraph.privacy.trust import Trust
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.tasks import node_classification
from fedgraph.tasks.base import CellContext
from fedgraph.tasks.node_classification.settings import Params
from fedgraph.types import Graph, GraphProvenance

CAMPUSES, NODES, EDGES, CLASSES = 89, 870_056, 33_300_000, 6
SHARED, OWN, FILLED = 70, 150, 5  # columns of all campuses, of each campus, and of one node
CELLS: dict[str, tuple[str, dict[str, Any]]] = {
    "features": ("inductive", {"method": "features"}),
    "label_hop": ("asking", {"method": "label_hop"}),
    "GAP-NDP": ("inductive", {"method": "gap_node"}),
    "MLP-DP": (
        "inductive",
        {"method": "dpar", "variant": "features", "sampled": 1.0, "epochs": 20, "batch_size": 2048, "learning_rate": 0.02},
    ),
    "GAP-EDP": ("transductive", {"method": "gap_edge", "folds": 1, "epochs": 20}),
    "MLP": ("asking", {"method": "nonprivate", "model": "mlp", "alpha": 1.0, "rounds": 3, "dropout": 0.0}),
    "GCN": ("asking", {"method": "nonprivate", "model": "gcn", "hidden": 16, "rounds": 3, "dropout": 0.0}),
}


def federation(share: float) -> Graph:
    """The first ``share`` of the campuses, as one graph whose nodes know their owner."""
    rng = np.random.default_rng(0)
    count = max(2, round(share * CAMPUSES))
    weights = rng.lognormal(0.0, 0.7, CAMPUSES)
    sizes = np.maximum(np.round(weights / weights.sum() * NODES).astype(int), 500)[:count]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    n, width = int(starts[-1]), SHARED + OWN * count
    labels = rng.integers(CLASSES, size=n)
    parts = []
    for first, size in zip(starts[:-1], sizes, strict=True):
        ends = rng.integers(size, size=(round(size * EDGES / NODES), 2))
        ends = np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1)
        parts.append(np.unique(ends[:, 0] * size + ends[:, 1]))
        parts[-1] = (parts[-1] // size + first) * n + parts[-1] % size + first
    upper = np.concatenate(parts)
    rows, columns = (upper // n).astype(np.int32), (upper % n).astype(np.int32)
    pairs = (np.concatenate([rows, columns]), np.concatenate([columns, rows]))
    adjacency = sp.csr_array(sp.coo_array((np.ones(2 * upper.size), pairs), shape=(n, n)))
    owner = np.repeat(np.arange(count), sizes)
    words = np.where(
        rng.random((n, FILLED)) < 0.4,
        rng.integers(SHARED, size=(n, FILLED)),
        SHARED + OWN * owner[:, None] + rng.integers(OWN, size=(n, FILLED)),
    )
    words[:, 0] = labels * 2 + rng.integers(2, size=n)
    features = sp.csr_array((np.ones(words.size, np.float32), words.ravel(), np.arange(0, words.size + 1, FILLED)), (n, width))
    features.sum_duplicates()
    made = GraphProvenance("synthetic", f"{count} generated campuses")
    names = tuple(f"campus {k + 1}" for k in range(count))
    return Graph(
        "large",
        adjacency,
        features,
        labels,
        CLASSES,
        made,
        owner=owner,
        owner_names=names,
        features_from_edges=False,
        columns_from_rows=False,
        nodes_from_edges=False,
    )


def measured(name: str, trust: str, share: float, real: bool, epsilon: float) -> dict[str, Any]:
    """One cell in this process."""
    began = time.process_time()
    graph = data.load("facebook100/federation") if real else federation(share)
    assert isinstance(graph, Graph)
    ready, before = time.process_time() - began, _peak()
    protocol, method = CELLS[name]
    given = {"participations": ["federated", "curator"], "trust": ["sums"], "epsilons": [epsilon], "methods": [method]}
    params = Params(owners=True, **given, protocol=protocol)
    context = CellContext("large", "large", graph, root=1, seeds=1, runtime=SerialRuntime())
    began = time.process_time()
    (cell,) = (c for c in node_classification.cells(params, context) if c.world.trust is Trust(trust))
    outcome = node_classification.run(params, cell, context)
    return {
        "cell": name, "trust": trust, "campuses": len(graph.owner_names), "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "data_cpu_s": round(ready, 1), "cpu_s": round(time.process_time() - began, 1), "data_gb": round(before, 2),
        "peak_gb": round(_peak(), 2), "epsilon": outcome.epsilon_provable, "rounds": outcome.facts.rounds,
        "accuracy": round(outcome.metrics["accuracy"], 3),
    }  # fmt: skip


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=1.0, help="of the campuses, above 0 and at most 1")
    parser.add_argument("--real", action="store_true", help="the campuses that FEDGRAPH_DATA has")
    parser.add_argument("--cells", nargs="+", choices=tuple(CELLS), default=list(CELLS))
    parser.add_argument("--trust", nargs="+", choices=("sums", "curator"), default=["sums", "curator"])
    parser.add_argument("--epsilon", type=float, default=4.0, help="budget of every cell, above 0 (default 4)")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="print nothing but the last line")
    args = parser.parse_args()
    if not 0 < args.share <= 1:
        parser.error("--share: allowed: above 0 and at most 1")
    if not args.epsilon > 0:
        parser.error("--epsilon: allowed: above 0")
    if args.one:
        print(json.dumps(measured(args.cells[0], args.trust[0], args.share, args.real, args.epsilon)))
        return
    found = []
    for name in args.cells:
        for trust in args.trust:
            command = [sys.executable, "-m", "benchmarks.large_federation", "--one", "--share", str(args.share)]
            command += [
                "--cells",
                name,
                "--trust",
                trust,
                "--epsilon",
                str(args.epsilon),
                *(["--real"] if args.real else []),
            ]
            done = subprocess.run(
                command, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise SystemExit(f"{name} {trust} failed:\n{done.stderr[-2000:]}")
            found.append(json.loads(done.stdout.strip().splitlines()[-1]))
            if not args.json:
                print(f"{name:10} {trust:8} {found[-1]['cpu_s']:7.1f} CPU s {found[-1]['peak_gb']:6.2f} GB", flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
