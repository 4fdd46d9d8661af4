"""What could a generator of lost neighbours gain at most? Cora dealt at random to ten clients, who lose nine edges of ten.

    python -m benchmarks.lost_neighbours [--epsilons 4 inf] [--seeds 1]

GAP-EDP with the edges between clients *dropped*; *protected*, that is, with the true neighbours, which no generator can beat;
*generated*, with look-alikes of the client's own; and without any edge. A trained generator (FedSage+, Zhang et al., NeurIPS
2021) lies between the first two, before its own training has cost anything. Cora where ``FEDGRAPH_DATA`` has it, else a
generated graph.
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

from fedgraph import data
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.tasks import participation
from fedgraph.tasks.base import CellContext
from fedgraph.types import Graph


def rows(graph: Graph, cut: str, hops: int, epsilons: list[float], seeds: int) -> dict[float, list[float]]:
    """ε → accuracy of each seed, the server seeing each client's message."""
    given: dict[str, Any] = {"partition": {"partition": "uniform", "clients": 10}, "participations": ["federated"]}
    given |= {"trust": ["own-client"], "protocol": "transductive", "epsilons": epsilons, "cut_edges": cut}
    params = participation.Params(**given, methods=[{"method": "gap_edge", "hops": hops}])
    context = CellContext(f"{cut} {hops}", "cora", graph, root=3, seeds=seeds, runtime=SerialRuntime())
    found: dict[float, list[float]] = {}
    for cell in participation.cells(params, context):
        found.setdefault(cell.epsilon, []).append(participation.run(params, cell, context).metrics["accuracy"])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[4.0, float("inf")])
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()
    graph = data.load("planetoid/cora", when_unavailable="synthetic")
    assert isinstance(graph, Graph)
    print(f"{graph.name}: {graph.num_nodes} nodes, {graph.provenance.source}")
    for title, cut, hops in (("no edge", "dropped", 0), *((c, c, 2) for c in ("dropped", "protected", "generated"))):
        found = rows(graph, cut, hops, args.epsilons, args.seeds)
        print(f"{title:10}", *(f"ε = {e:g}: {statistics.fmean(v):.3f}" for e, v in found.items()), sep="  ", flush=True)


if __name__ == "__main__":
    main()
