"""Does the hop of ``label_hop`` cost more than it brings? The row against its own ablation without the hop, on many graphs.

    python -m benchmarks.never_worse [--graphs facebook100/vassar85 …] [--epsilons 1 2 4 8] [--seeds 1] [--ceiling]

Test nodes stay private and ask, one trusted curator, δ = 1/n_train. The ablation (``label_epsilon: 0``) has the whole budget
for rows and reads no edge. ``--ceiling`` adds a regression without privacy on rows and neighbours' labels.

One line per graph and ε as soon as it is done: both accuracies, their difference, and that in standard errors (of two shares of
the tested nodes, or of the seeds where there are three or more). Last, the worst line.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
from pathlib import Path

import numpy as np

import fedgraph
import fedgraph.data

MADE: dict[str, dict[str, object]] = {  # generated graphs: name → settings of synthetic/block_model
    "made/alike": {"nodes": 2000, "edges": 8000, "homophily": 0.8},
    "made/heterophilous": {"nodes": 2000, "edges": 20000, "homophily": 0.02},
    "made/no-likeness": {"nodes": 2000, "edges": 20000, "homophily": 0.25},
    "made/regular": {"nodes": 2000, "edges": 10000, "degree_spread": 0.1, "closure": 0.0},
    "made/star-like": {"nodes": 2000, "edges": 6000, "degree_spread": 60.0, "closure": 0.0},
    "made/no-edges": {"nodes": 2000, "edges": 0},
}
GRAPHS = [
    *(f"facebook100/{name}" for name in ("simmons81", "usfca72", "mich67", "smith60", "vassar85", "brandeis99", "colgate88")),
    *("planetoid/cora", "planetoid/citeseer", "citation_full/citeseer", "citation_full/cora_ml", "planetoid/pubmed"),
    *("amazon/photo", "amazon/computers", "geom_gcn/chameleon", "geom_gcn/squirrel", "geom_gcn/actor"),
    *("twitch/ptbr", "twitch/ru", "twitch/es", "amlsim/20k", *MADE),
]


def answers(graph: str, args: argparse.Namespace) -> dict[tuple[str, float], list[float]]:
    """(row, ε) → accuracy of each seed."""
    data = {"name": "synthetic/block_model", "parameters": MADE[graph]} if graph in MADE else {"name": graph}
    methods: list[dict[str, object]] = [
        {"method": "label_hop", "label": "hop"},
        {"method": "label_hop", "label": "rows", "label_epsilon": 0},
    ]
    if args.ceiling:
        methods.append(
            {"method": "nonprivate", "label": "ceiling", "model": "ceiling", "among": ["logistic"], "epsilons": ["inf"]}
        )
    where = {"task": "node_classification", "protocol": "asking", "trust": ["curator"]}
    tasks = [{**where, "epsilons": args.epsilons, "methods": methods}]
    engine = {"engine": "serial"}
    asked = {"name": "never_worse", "seed": 30, "seeds": args.seeds, "runtime": engine, "datasets": [data], "tasks": tasks}
    with tempfile.TemporaryDirectory() as folder:
        lines = fedgraph.run(asked, out=folder, data_root=args.data_root, quiet=True).table()
    return {(str(of[0]), float(of[1])): own.to_list() for of, own in lines.groupby(["variant", "epsilon"])["accuracy"]}


def error(one: list[float], two: list[float], tested: int) -> float:
    """Standard error of the mean difference."""
    if len(one) >= 3:
        return max(float(np.std(np.subtract(one, two), ddof=1)), 1e-9) / math.sqrt(len(one))
    shares = (float(np.mean(one)), float(np.mean(two)))
    return math.sqrt(sum(p * (1 - p) for p in shares) / (tested * len(one)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=GRAPHS, help=f"family/dataset, or of {', '.join(MADE)}")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 2.0, 4.0, 8.0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--ceiling", action="store_true", help="with a regression that hears its neighbours, in clear")
    parser.add_argument("--data-root", type=Path, default=os.environ.get("FEDGRAPH_DATA"))
    args = parser.parse_args()
    worst: tuple[float, str] = (math.inf, "nothing was run")
    for graph in args.graphs:
        found = answers(graph, args)
        name = "synthetic/block_model" if graph in MADE else graph
        labels = fedgraph.data.load(name, root=args.data_root, parameters=MADE.get(graph)).labels
        for epsilon in args.epsilons:
            hop, rows = found["hop", epsilon], found["rows", epsilon]
            gain = float(np.mean(hop) - np.mean(rows))
            away = gain / error(hop, rows, max(1, round(0.2 * float((labels >= 0).sum()))))
            both = f"hop {np.mean(hop):.3f}  rows {np.mean(rows):.3f}"
            line = f"{graph:24} ε = {epsilon:<4g} {both}  {gain:+.3f}  {away:+.1f} errors"
            line += f"  ceiling {np.mean(found['ceiling', math.inf]):.3f}" if args.ceiling else ""
            print(line, flush=True)
            worst = min(worst, (away, line))
    print(f"worst: {worst[1]}")


if __name__ == "__main__":
    main()
