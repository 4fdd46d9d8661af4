"""APPR of 70 sources on Physics against a per-node implementation of the published loop, in one run.

    FEDGRAPH_DATA=... python -m benchmarks.pagerank [--sources 70] [--oracle 70]

Without the data set it uses a generated graph of Physics' size, and says so.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks.pagerank_oracle import published_loop
from fedgraph import data
from fedgraph.learning.propagation.walks import walk_by_approximate_pagerank
from fedgraph.types import Graph


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=int, default=70, help="sources solved by the compiled code")
    parser.add_argument("--oracle", type=int, default=70, help="how many of them the published loop solves")
    parser.add_argument("--repeats", type=int, default=5, help="runs of the compiled code; the median counts")
    args = parser.parse_args()
    graph = data.load("coauthor/physics", when_unavailable="synthetic", seed=0)
    assert isinstance(graph, Graph)
    print(f"{graph.name}: {graph.num_nodes} nodes, {graph.num_edges} edges ({graph.provenance.source})")
    sources = np.random.default_rng(0).choice(graph.num_nodes, args.sources, replace=False)
    seconds = []
    for _ in range(args.repeats):
        began = time.process_time()
        rows = walk_by_approximate_pagerank(graph.adjacency, sources)
        seconds.append(time.process_time() - began)
    fast = float(np.median(seconds)) / args.sources
    checked = sources[: args.oracle]
    began = time.process_time()
    oracle = [published_loop(graph.adjacency, int(s)) for s in checked]
    slow = (time.process_time() - began) / len(checked)
    apart = max(float(np.abs(rows[[i]].toarray().ravel() - row).max()) for i, row in enumerate(oracle))
    print(f"compiled, all sources together: {1e3 * fast:.3f} CPU ms per source, {rows.nnz / args.sources:.0f} entries per row")
    print(f"published loop, per node:       {1e3 * slow:.3f} CPU ms per source")
    print(f"ratio {slow / fast:.0f} (goal: at least 50); largest difference of an entry {apart:.1e}")


if __name__ == "__main__":
    main()
