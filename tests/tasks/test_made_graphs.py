"""Graphs that nobody tuned on, made here: learners run, and the ceiling is not below an MLP, the majority or a private row."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import fedgraph
from fedgraph.types import Graph, GraphProvenance

Likes = Callable[[np.ndarray, np.ndarray], np.ndarray]  # classes at both ends [m] → how likely such an edge is, [m]


def made(labels: np.ndarray, likes: Likes, degree: int, width: int, words: int = 10, seed: int = 0) -> Graph:
    """Edges by the classes at their ends; each class has its own frequent words, which overlap much."""
    rng, n = np.random.default_rng(seed), labels.size
    one, other = rng.integers(n, size=(2, 40 * n * degree))
    kept = (rng.random(one.size) < likes(labels[one], labels[other])) & (one != other)
    pairs = np.stack([one[kept], other[kept]])[:, : n * degree // 2]
    ends = np.concatenate([pairs, pairs[::-1]], axis=1)
    both = sp.coo_array((np.ones(ends.shape[1], np.float32), (ends[0], ends[1])), shape=(n, n)).tocsr()
    both.data[:] = 1
    frequent = np.sqrt(rng.random((labels.max() + 1, width)))[labels]
    rows = rng.random((n, width)) < frequent / frequent.sum(axis=1, keepdims=True) * words
    kinds = int(labels.max()) + 1
    return Graph(
        "made",
        sp.csr_array(both),
        sp.csr_array(rows.astype(np.float32)),
        labels,
        kinds,
        GraphProvenance("own", "made here"),
        features_from_edges=False,
        columns_from_rows=False,
        nodes_from_edges=False,
    )


def imbalanced() -> Graph:
    labels = (np.random.default_rng(2).random(400) < 0.05).astype(np.int64)
    return made(labels, lambda a, b: np.where(a == b, 0.9, 0.1), 8, 40)


def accuracies(folder: Path) -> list[dict[str, str]]:
    lines = (folder / "results.csv").read_text(encoding="utf-8").splitlines()
    return [row for row in csv.DictReader(line for line in lines if not line.startswith("#")) if row["metric"] == "accuracy"]


def test_where_nodes_ask_no_private_row_is_above_the_ceiling(tmp_path: Path) -> None:
    """Neighbours are of other classes: their labels tell more than a row, and one candidate alone reads them."""
    labels = np.random.default_rng(5).integers(3, size=500)
    graph = made(labels, lambda a, b: np.where(a == b, 0.02, 0.5), 12, 30, words=3)
    ceiling = {"method": "nonprivate", "model": "ceiling", "among": ["logistic"], "folds": 1, "rounds": 20, "epsilons": ["inf"]}
    fedgraph.compare(graph, ["label_hop", ceiling], [8, math.inf], ["curator"], out=tmp_path / "run", protocol="asking")
    found = {(row["method"], row["epsilon"]): float(row["value"]) for row in accuracies(tmp_path / "run")}
    top, count = found.pop(("nonprivate", "inf")), labels.size / 5
    for private in found.values():
        error = math.sqrt((top * (1 - top) + private * (1 - private)) / count)
        assert top >= private - 2 * error, (top, found)
    assert len(found) == 2


@pytest.mark.quality("methods", "learning")
@pytest.mark.parametrize("make", [imbalanced])
def test_every_learner_runs_and_the_ceiling_is_one(make: Callable[[], Graph], tmp_path: Path) -> None:
    clear = {"method": "nonprivate", "epsilons": ["inf"], "patience": 6}
    ceiling = {**clear, "model": "ceiling", "label": "ceiling", "among": ["logistic", "mlp", "gcn", "gprgnn"], "rounds": 20}
    plain = {**clear, "model": "mlp", "label": "mlp", "rounds": 20}
    graph = make()
    fedgraph.compare(
        graph,
        ["features", "label_hop", "gap_edge", "gcon", ceiling, plain],
        [8],
        ["curator"],
        out=tmp_path / "run",
        name=make.__name__,
    )
    rows = accuracies(tmp_path / "run")
    assert {row["method"] for row in rows} == {"features", "label_hop", "gap_edge", "gcon", "nonprivate"}
    assert {row["status"] for row in rows} == {"ok"}
    found = {row["variant"]: float(row["value"]) for row in rows}
    least = max(found["mlp"], np.bincount(graph.labels).max() / graph.num_nodes)
    count = graph.num_nodes / 5
    assert found["ceiling"] >= least - 2.5 * math.sqrt(0.25 / count), found
