"""How time and memory of a cell grow with nodes, edges, clients and rounds, for every classifier: slopes on log-log lines.

    python -m benchmarks.growth [--methods features gap_node …] [--nodes 2000 4000 8000] [--axes neighbours …] [--json]
    python -m benchmarks.growth --methods features gap_node --nodes 1000000

Generated graphs (eight classes, ten words a node of 1,000, four edges a node; ε = 8), the serial engine, default settings, one
process a method. A slope of 1 is linear, 2 quadratic. Edges double twice at the middle size, clients go from 4 to 64, rounds
are halved and doubled where the method has ``steps`` or ``epochs``, and K of DPAR goes from 2 to 32. Processor seconds are of
the cell alone, memory is the process's largest, the graph included. With one size of ``--nodes`` only that cell is measured.
The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time

import numpy as np

from fedgraph import runtime
from fedgraph.data.base import block_model
from fedgraph.data.base.block_model import BlockModel
from fedgraph.methods.base import method_kinds
from fedgraph.tasks import node_classification
from fedgraph.tasks.base import CellContext
from fedgraph.tasks.node_classification.settings import Params
from fedgraph.types import GraphProvenance

CLASSES, DEGREE, CLIENTS, NEIGHBOURS = 8, 4, (4, 16, 64), (2, 8, 32)
AXES = ["edges", "clients", "rounds", "neighbours"]


def measured(method: str, nodes: int, edges: int, clients: int = 1, settings: dict[str, int] | None = None) -> dict[str, float]:
    """Processor seconds, peak memory in GB, accuracy and rounds of one cell."""
    situation = next(
        s for s in method_kinds.load(method).OFFERS.situations if s.given in ("inductive", "transductive", "asking")
    )
    trust = next(t for t in situation.trusted if (t.value == "curator") == (clients == 1))
    model = BlockModel((nodes // CLASSES,) * CLASSES, edges, 1000, 0.6, 10, 3, 2 * edges / nodes, topic_share=0.25)
    graph = block_model.draw(model, "grown", 0, GraphProvenance("synthetic", "grown"))
    params = Params(
        trust=[trust.value],
        epsilons=[8.0],
        methods=[{"method": method, **(settings or {})}],
        protocol=situation.given,
        partition={"partition": "uniform", "clients": clients},
    )
    context = CellContext("grown", graph.name, graph, root=1, seeds=1, runtime=runtime.start("serial"))
    began = time.process_time()
    cell = node_classification.cells(params, context)[0]
    outcome = node_classification.run(params, cell, context)
    return {
        "cpu_s": round(time.process_time() - began, 2),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 2),
        "accuracy": round(outcome.metrics["accuracy"], 4),
    }


def grown(method: str, sizes: list[int], axes: list[str]) -> dict[str, list[list[float]]]:
    """axis → [size, what was measured] of each point; nodes, always measured, come first, so that their peaks are their own."""
    offers = method_kinds.load(method)
    measured(method, 800, 800 * DEGREE)  # what only the first cell does (imports, compilation) is no growth
    found: dict[str, list[list[float]]] = {}

    def point(axis: str, size: float, nodes: int, edges: int, clients: int = 1, settings: dict[str, int] | None = None) -> None:
        if axis in ("nodes", *axes):
            found.setdefault(axis, []).append([size, *measured(method, nodes, edges, clients, settings).values()])

    for nodes in sizes:
        point("nodes", nodes, nodes, DEGREE * nodes)
    if len(sizes) == 1:
        return found
    middle = sizes[len(sizes) // 2]
    for edges in (DEGREE * middle * factor for factor in (1, 2, 4)):
        point("edges", edges, middle, edges)
    if any(t.value != "curator" for s in offers.OFFERS.situations for t in s.trusted):
        for clients in CLIENTS:
            point("clients", clients, middle, DEGREE * middle, clients)
    name = next((name for name in ("steps", "epochs") if name in offers.Params.model_fields), None)
    if name is not None:
        for rounds in (30, 60, 120):
            point("rounds", rounds, middle, DEGREE * middle, settings={name: rounds})
    if "top" in offers.Params.model_fields:
        for top in NEIGHBOURS:
            point("neighbours", top, middle, DEGREE * middle, settings={"top": top})
    return found


def slope(points: list[list[float]], column: int) -> float:
    """Of log(column) over log(size), by least squares."""
    sizes, values = (np.log([max(p[c], 1e-3) for p in points]) for c in (0, column))
    return float(np.polyfit(sizes, values, 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = method_kinds.list_names(lambda offers: offers.kind == "classifier")
    parser.add_argument("--methods", nargs="+", choices=names, default=names)
    parser.add_argument("--nodes", nargs="+", type=int, default=[2000, 4000, 8000])
    parser.add_argument("--axes", nargs="+", choices=AXES, default=AXES, help="what grows beside the nodes")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="print nothing but the last line")
    args = parser.parse_args()
    if args.one:
        print(json.dumps(grown(args.methods[0], sorted(args.nodes), args.axes)))
        return
    every: dict[str, dict[str, list[list[float]]]] = {}
    for method in args.methods:
        command = [sys.executable, "-m", "benchmarks.growth", "--one", "--methods", method, "--nodes", *map(str, args.nodes)]
        command += ["--axes", *args.axes]
        done = subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{method:14} failed: {done.stderr.strip().splitlines()[-1]}", flush=True)
            continue
        every[method] = json.loads(done.stdout.strip().splitlines()[-1])
        largest = every[method]["nodes"][-1]
        slopes = [f"{axis} {slope(points, 1):+.2f}" for axis, points in every[method].items() if len(points) > 1]
        if not args.json:
            print(
                f"{method:14} {largest[0]:9,.0f} nodes: {largest[1]:7.1f} CPU s {largest[2]:5.2f} GB, accuracy {largest[3]:.3f}"
                f"{'; slopes of CPU s: ' + ', '.join(slopes) if slopes else ''}",
                flush=True,
            )
    print(json.dumps(every))


if __name__ == "__main__":
    main()
