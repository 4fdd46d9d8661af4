"""GAP and SAGE-NDP on a graph of the size of GAP's Amazon: processor seconds and peak memory of one central cell each.

    python -m benchmarks.amazon_size [--share 1] [--cells GAP-EDP GAP-NDP SAGE-NDP] [--json]

A generated graph of 1,790,731 nodes and 80,966,832 edges of which one end is drawn evenly and the other with preference (the
largest degree is about 60,000), ten classes, and rows of 100 numbers of which ten are not zero. ``--share 0.5`` has half of
the nodes and of the edges. Edges join classes at random, so accuracy means nothing. Default settings, but ten steps or
epochs: memory does not depend on their number. Each cell runs in a process of its own with the serial engine; memory is the
largest resident size of that process, the graph and its halves included. The last line is JSON.
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

from fedgraph import runtime
from fedgraph.tasks import node_classification
from fedgraph.tasks.base import CellContext
from fedgraph.tasks.base.node_settings import Params
from fedgraph.types import Graph, GraphProvenance

NODES, EDGES, CLASSES, WIDTH, FILLED = 1_790_731, 80_966_832, 10, 100, 10
CELLS: dict[str, tuple[str, dict[str, Any]]] = {
    "GAP-EDP": ("transductive", {"method": "gap_edge", "epochs": 10}),
    "GAP-NDP": ("inductive", {"method": "gap_node", "steps": 10}),
    "SAGE-NDP": ("inductive", {"method": "sage_node", "steps": 10}),
}


def generated(share: float) -> Graph:
    """The graph; its entries are made in parts, so that making it takes less memory than training on it."""
    rng = np.random.default_rng(0)
    nodes, edges = round(share * NODES), round(share * EDGES)
    drawn = round(1.02 * edges)  # a few pairs come twice or join a node with itself
    one = (nodes * rng.random(drawn) ** 2).astype(np.int64)
    two = rng.integers(nodes, size=drawn)
    keys = np.minimum(one, two) * nodes + np.maximum(one, two)
    keys = keys[one != two]
    del one, two
    keys.sort()
    keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
    if keys.size < edges:
        raise SystemExit(f"only {keys.size:,} different edges of {edges:,} were drawn")
    keys = np.delete(keys, rng.choice(keys.size, keys.size - edges, replace=False))
    rows, columns = (keys // nodes).astype(np.int32), (keys % nodes).astype(np.int32)
    del keys
    pairs = (np.concatenate([rows, columns]), np.concatenate([columns, rows]))
    del rows, columns
    adjacency = sp.csr_array(sp.coo_array((np.ones(pairs[0].size), pairs), shape=(nodes, nodes)))
    words = rng.integers(WIDTH, size=(nodes, FILLED), dtype=np.int32).ravel()
    features = sp.csr_array(
        (np.ones(words.size, np.float32), words, np.arange(0, words.size + 1, FILLED, dtype=np.int32)), (nodes, WIDTH)
    )
    features.sum_duplicates()
    labels = rng.integers(CLASSES, size=nodes)
    return Graph(
        "amazon-size",
        adjacency,
        features,
        labels,
        CLASSES,
        GraphProvenance("synthetic", "a generated graph"),
        features_from_edges=False,
        columns_from_rows=False,
        nodes_from_edges=False,
    )


def measured(name: str, share: float) -> dict[str, Any]:
    """One cell in this process."""
    began = time.process_time()
    graph = generated(share)
    ready, before = time.process_time() - began, _peak()
    protocol, method = CELLS[name]
    given = {"trust": ["curator"], "epsilons": [8.0], "methods": [method], "protocol": protocol}
    params = Params(**given)
    context = CellContext("amazon-size", graph.name, graph, root=1, seeds=1, runtime=runtime.start("serial"))
    began = time.process_time()
    (cell,) = node_classification.cells(params, context)
    outcome = node_classification.run(params, cell, context)
    return {
        "cell": name, "nodes": graph.num_nodes, "edges": graph.num_edges, "data_cpu_s": round(ready, 1),
        "cpu_s": round(time.process_time() - began, 1), "data_gb": round(before, 2), "peak_gb": round(_peak(), 2),
        "epsilon": outcome.epsilon_provable, "rounds": outcome.facts.rounds,
    }  # fmt: skip


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=1.0, help="of nodes and edges, above 0 and at most 1")
    parser.add_argument("--cells", nargs="+", choices=tuple(CELLS), default=list(CELLS))
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="print nothing but the last line")
    args = parser.parse_args()
    if not 0 < args.share <= 1:
        parser.error("--share: allowed: above 0 and at most 1")
    if args.one:
        print(json.dumps(measured(args.cells[0], args.share)))
        return
    found = []
    for name in args.cells:
        command = [sys.executable, "-m", "benchmarks.amazon_size", "--one", "--share", str(args.share), "--cells", name]
        done = subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{name} failed:\n{done.stderr[-2000:]}")
        found.append(json.loads(done.stdout.strip().splitlines()[-1]))
        if not args.json:
            print(f"{name:10} {found[-1]['cpu_s']:7.1f} CPU s {found[-1]['peak_gb']:6.2f} GB", flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
