"""Is the drafted private row ever clearly below the best of rows alone, labels alone, and both in a fixed proportion?

    python -m benchmarks.best_private [--graphs polblogs made/blocks …] [--epsilons 1 2 4 8] [--seeds 10] [--sums] [--inductive]
    python -m benchmarks.best_private --ways [--pilot 0.05] [--graphs …]  # what the choice costs, and what measuring costs

Test people ask and are private (``--inductive``: they are public), one trusted curator (``--sums``: and sums of ten clients),
the usual δ. All rows are of ``label_hop``, on the same splits: ``drafted`` as ``fedgraph new`` writes it; ``rows``
(``label_epsilon: 0``); ``vote`` (``rows: false``: the majority of the neighbours' randomised labels); ``both`` (0.7 of ε as
``label_epsilon``). Graphs are those that lie as they were found (``FEDGRAPH_DATA``/as_found), published ones, and those that
are drawn here.

One line per graph, ε and trust: mean accuracies, the drafted row's least seed, and its difference from the best rival with its
standard error over paired seeds. With two classes also the area under the ROC curve of the drafted row and of the best rival.

``--ways``: the drafted row alone, as it chooses, and made to go each of its ways, all with the same noise: accuracies, and how
many seeds chose each way. What the best way has less than the best rival is what measuring costs; the rest is wrong choices.
``--pilot``: another share of the squared budget for the short training on rows.
"""

from __future__ import annotations

import argparse
import csv
import functools
import math
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import fedgraph
from fedgraph import data
from fedgraph.methods import label_hop
from fedgraph.types import Graph, GraphProvenance

FOUND = {"polblogs": "value", "email": None, "facebook_pages": "page_type", "github": "ml_target"}
PUBLISHED = ["citation_full/citeseer", "citation_full/cora_ml", "facebook100/simmons81", "facebook100/vassar85"]
RIVALS = ("rows", "vote", "both")


def drawn(
    labels: np.ndarray, ties: int, like: float, rng: np.random.Generator, rows: np.ndarray | None, hubs: int = 0
) -> Graph:
    """``ties`` ties, of which ``like`` join people of one class; people differ in how many they have, ``hubs`` have most."""
    n, classes = len(labels), int(labels.max()) + 1
    wanted = rng.gamma(1.0, 1.0, n)
    wanted[rng.choice(n, hubs, replace=False)] *= 3 * ties / n
    one, two = rng.choice(n, ties, p=wanted / wanted.sum()), np.empty(ties, dtype=np.int64)
    alike = rng.random(ties) < like
    for label in range(classes):
        for same in (True, False):
            which = (alike == same) & (labels[one] == label)
            weights = wanted * ((labels == label) == same)
            two[which] = rng.choice(n, int(which.sum()), p=weights / weights.sum())
    return _graph(labels, one, two, rows)


def groups(labels: int, size: int, degree: int, rng: np.random.Generator, columns: int) -> Graph:
    """People in forty groups of mixed classes who mostly know each other: neighbours have more in common than a class."""
    mixtures, of = rng.dirichlet(np.full(labels, 0.5), 40), rng.integers(40, size=size)
    classes = np.array([rng.choice(labels, p=mixtures[group]) for group in of])
    one, two = rng.integers(size, size=(2, size * degree // 2))
    members = [np.flatnonzero(of == group) for group in range(40)]
    inside = rng.random(one.size) < 0.7
    two[inside] = [rng.choice(members[of[person]]) for person in one[inside]]
    return _graph(classes, one, two, words(classes, columns, 0.5, rng))


def words(labels: np.ndarray, columns: int, told: float, rng: np.random.Generator) -> np.ndarray:
    """0/1 columns whose shares differ between classes, the more the larger ``told`` is."""
    shares = rng.gamma(0.5, 1.0, columns) * np.exp(told * rng.standard_normal((labels.max() + 1, columns)))
    return np.asarray(rng.poisson(25 * shares[labels] / shares.sum(axis=1)[labels][:, None]) > 0)


def _graph(labels: np.ndarray, one: np.ndarray, two: np.ndarray, rows: np.ndarray | None) -> Graph:
    n = len(labels)
    both = sp.csr_array((np.ones(2 * one.size), (np.r_[one, two], np.r_[two, one])), shape=(n, n))
    both = sp.csr_array(((both - sp.diags_array(both.diagonal())) > 0).astype(np.float32))
    matrix = sp.csr_array(np.ones((n, 1)) if rows is None else rows, dtype=np.float32)
    return Graph(
        "drawn", both, matrix, labels.astype(np.int64), int(labels.max()) + 1, GraphProvenance("own", "drawn"),
        columns_from_rows=False, features_from_edges=False, nodes_from_edges=False,
    )  # fmt: skip


def _made(
    size: int,
    classes: int,
    degree: float,
    like: float,
    columns: int = 0,
    told: float = 0.5,
    hubs: int = 0,
    rare: float = 0.0,
    empty: int = 0,
) -> Callable[[], Graph]:
    """empty: further columns, which nobody has: codes that others in a federation use."""

    def make() -> Graph:
        rng = np.random.default_rng([size, classes, int(100 * like), columns])
        shares = rng.gamma(1.0, 1.0, classes) + 0.1 if classes > 10 else np.ones(classes)
        shares = np.array([1 - rare, rare]) if rare else shares / shares.sum()
        labels = rng.choice(classes, size, p=shares)
        labels[:classes] = np.arange(classes)
        rows = np.pad(words(labels, columns, told, rng), ((0, 0), (0, empty))) if columns else None
        return drawn(labels, int(size * degree / 2), like, rng, rows, hubs)

    return make


MADE: dict[str, Callable[[], Graph]] = {
    "made/blocks": _made(2000, 4, 8, 0.8, 200),
    "made/hubs": _made(2000, 4, 8, 0.7, 200, hubs=10),
    "made/dense": _made(4000, 6, 66, 0.4, 1000, told=1.0),
    "made/groups": lambda: groups(6, 4000, 66, np.random.default_rng(5), 1000),
    "made/featureless": _made(1500, 3, 12, 0.7),
    "made/heterophilous": _made(2000, 4, 20, 0.02, 200),
    "made/42-classes": _made(1500, 42, 27, 0.6),
    "made/rare": _made(4000, 2, 8, 0.9, 100, rare=0.07),
    "made/rare-featureless": _made(20000, 2, 12, 0.97, rare=0.07),
    "made/no-likeness": _made(2000, 3, 10, 1 / 3, 100, told=0.7),
    "made/codes": _made(2400, 6, 40, 0.6, 100, told=0.3, empty=5000),
    "made/600-people": _made(600, 2, 4, 0.5, 12, told=1.2),
}


def load(name: str, root: Path | None) -> Graph:
    if name in MADE:
        return MADE[name]()
    if name in FOUND:
        graph = fedgraph.read(Path(root or ".") / "as_found" / name, label=FOUND[name]).graph
    else:
        graph = data.load(name, root=root)
    assert isinstance(graph, Graph)
    return graph


def answers(graph: Graph, epsilon: float, args: argparse.Namespace) -> dict[tuple[str, str, str], list[float]]:
    """(row, trust, metric) → the value of each seed."""
    methods: list[dict[str, object]] = [
        {"method": "label_hop", "label": "drafted"},
        {"method": "label_hop", "label": "rows", "label_epsilon": 0},
    ]
    if not args.inductive:
        methods.append({"method": "label_hop", "label": "vote", "rows": False})
        methods.append({"method": "label_hop", "label": "both", "label_epsilon": 0.7 * epsilon})
    trust = ["curator", "sums"] if args.sums else ["curator"]
    with tempfile.TemporaryDirectory() as folder:
        fedgraph.compare(
            graph, methods, [epsilon], trust, seeds=args.seeds, split="random", out=f"{folder}/run",
            protocol="inductive" if args.inductive else "asking",
        )  # fmt: skip
        lines = (Path(folder) / "run" / "results.csv").read_text(encoding="utf-8").splitlines()
    found: dict[tuple[str, str, str], list[float]] = {}
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        found.setdefault((row["variant"], row["trust"], row["metric"]), []).append(float(row["value"]))
    return found


def ways(graph: Graph, epsilon: float, seeds: int) -> str:
    """Accuracies of the drafted row as it chooses and with each way forced upon it, and how often it chose each."""
    chosen: list[int] = []
    promises, means = label_hop.promises, {}

    def choose(forced: int | None, of: Sequence[label_hop.Spending], *known: Any) -> np.ndarray:
        if forced is not None:
            return np.eye(len(of))[forced]
        found = promises(of, *known)
        chosen.append(int(found.argmax()))
        return found

    try:
        for forced in (None, 0, 1, 2, 3):
            label_hop.promises = functools.partial(choose, forced)
            run = fedgraph.compare(
                graph,
                [{"method": "label_hop"}],
                [epsilon],
                ["curator"],
                seeds=seeds,
                split="random",
                protocol="asking",
                quiet=True,
            )
            means[forced] = float(run.table()["accuracy"].mean())
    finally:
        label_hop.promises = promises
    names = ("rows", *(f"labels {part:g}" for part in (0.45, 0.72)), "labels")
    forced_ways = "  ".join(f"{name} {means[way]:.3f} ({chosen.count(way)})" for way, name in enumerate(names))
    return f"as chosen {means[None]:.3f}  {forced_ways}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=[*FOUND, *PUBLISHED, *MADE])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 2.0, 4.0, 8.0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--sums", action="store_true", help="also sums of ten clients")
    parser.add_argument("--inductive", action="store_true", help="test people are public: no label is answered")
    parser.add_argument("--data-root", type=Path, default=os.environ.get("FEDGRAPH_DATA"))
    parser.add_argument("--ways", action="store_true", help="what the choice costs")
    parser.add_argument("--pilot", type=float, help="share of the squared budget for the short training on rows")
    args = parser.parse_args()
    if args.pilot:
        label_hop._PILOT = args.pilot
    for name in args.graphs:
        graph = load(name, args.data_root)
        for epsilon in args.epsilons:
            if args.ways:
                print(f"{name:24} ε = {epsilon:<4g} {ways(graph, epsilon, args.seeds)}", flush=True)
                continue
            found = answers(graph, epsilon, args)
            for trust in dict.fromkeys(trust for _, trust, _ in found):
                of = {
                    row: np.array(found[row, trust, "accuracy"])
                    for row in ("drafted", *RIVALS)
                    if (row, trust, "accuracy") in found
                }
                best = max((row for row in of if row != "drafted"), key=lambda row: float(of[row].mean()))
                less = of["drafted"] - of[best]
                error = float(less.std(ddof=1)) / math.sqrt(less.size) if less.size > 1 else math.nan
                said = "  ".join(f"{row} {values.mean():.3f}" for row, values in of.items())
                areas = {row: np.mean(found[row, trust, "auroc"]) for row in of if (row, trust, "auroc") in found}
                if areas:
                    rival = max(value for row, value in areas.items() if row != "drafted")
                    said += f"  AUROC {areas['drafted']:.3f}, best rival {rival:.3f}"
                print(
                    f"{name:24} ε = {epsilon:<4g} {trust:8} {said}  least {of['drafted'].min():.3f}  "
                    f"{less.mean():+.3f} ± {error:.3f} of {best}", flush=True,
                )  # fmt: skip


if __name__ == "__main__":
    main()
