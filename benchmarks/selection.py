"""What choosing settings privately costs and brings: a row as it is, every setting alone, and the choice among them.

    FEDGRAPH_DATA=… python -m benchmarks.selection [--graphs planetoid/cora …] [--epsilon 4] [--among 5] [--seeds 1]

Per method four combinations of two settings. *default*: the row as it is. *worst*, *best*: of the four, each trained with the
whole ε; the best was looked up on test nodes, which no ε counts. *chosen*: the best of a secret number of trainings, `--among`
on average, its search counted in the same ε. *ε of a trial*: what is left for one training. One trusted curator; ``features``
and ``dpar`` with a public test graph, ``label_hop`` asks, ``gap_edge`` protects edges. ``dpar`` trains on everybody
(``sampled: 1``), since the price of a secret sample is not known for choices.
"""

import argparse
import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import fedgraph

GRAPHS = ("planetoid/cora", "planetoid/citeseer", "twitch/ptbr")
METHODS: dict[str, tuple[str, dict[str, object], dict[str, list[object]]]] = {
    "features": ("inductive", {}, {"steps": [5, 30], "rarity": [0, 1]}),
    "label_hop": ("asking", {}, {"steps": [5, 30], "correlation": [0.03, 0.3]}),
    "gap_edge": ("transductive", {}, {"hops": [1, 2], "encoder": ["classes", "none"]}),
    "dpar": ("inductive", {"sampled": 1.0, "epochs": 10}, {"epochs": [5, 20], "learning_rate": [0.005, 0.02]}),
}


def tasks(epsilon: float, among: float) -> Iterator[dict[str, object]]:
    """One task per method."""
    for method, (protocol, given, over) in METHODS.items():
        combinations = [dict(zip(over, values, strict=True)) for values in itertools.product(*over.values())]
        rows: list[dict[str, object]] = [{"method": method, "label": "default", **given}]
        rows += [{"method": method, "label": f"alone {k}", **given, **one} for k, one in enumerate(combinations)]
        rows += [{"method": method, "label": "chosen", **given, "select": {"over": over, "among": among}}]
        yield {
            "task": "node_classification", "label": method, "protocol": protocol, "trust": ["curator"],
            "epsilons": [epsilon], "methods": rows,
        }  # fmt: skip


def measured(graph: str, args: argparse.Namespace) -> Iterator[str]:
    """The lines of the table for one graph."""
    with tempfile.TemporaryDirectory() as place:
        asked = {"name": "selection", "seeds": args.seeds, "runtime": {"engine": "serial"}, "datasets": [{"name": graph}]}
        made = fedgraph.run({**asked, "tasks": list(tasks(args.epsilon, args.among))}, out=Path(place) / "run", quiet=True)
        scores = made.scores
        for method in METHODS:
            of = {s.variant: s for s in scores if s.method == method}
            alone = [s.mean for name, s in of.items() if name.startswith("alone")]
            chosen, choices = of["chosen"], [cell.facts.choice for cell in of["chosen"].cells]
            yield (
                f"| {graph} | `{method}` | {of['default'].mean:.3f} | {min(alone):.3f} | {max(alone):.3f} | {chosen.mean:.3f} "
                f"| {chosen.epsilon_provable:.2f} | {max(c.epsilon for c in choices):.2f} "
                f"| {'; '.join(c.words for c in choices)} |"
            )


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=GRAPHS)
    parser.add_argument("--epsilon", type=float, default=4.0)
    parser.add_argument("--among", type=float, default=5.0)
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()
    print("| graph | method | default | worst | best | chosen | ε | ε of a trial | settings |")
    print("|---|---|---|---|---|---|---|---|---|")
    for graph in args.graphs:
        for line in measured(graph, args):
            print(line, flush=True)


if __name__ == "__main__":
    main()
