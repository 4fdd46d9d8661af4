"""Graphs that nobody had in mind: every attack says something or says why not, and too few people are said in words."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph.runtime.serial import SerialRuntime
from fedgraph.tasks import node_classification
from fedgraph.tasks.base import CellContext, Result
from fedgraph.types import Graph, GraphProvenance, plain_graph

NODES: list[dict[str, Any]] = [{"attack": "lira"}, {"attack": "gradient_inversion"}]
LINKS: list[dict[str, Any]] = [
    *({"attack": "link_stealing", "number": k, "label": f"links {k}"} for k in (0, 3)),
    *({"attack": "linkteller", "pairs": p, "label": f"teller {p}", "most": 8} for p in ("uniform", "two-hops")),
]
PLAIN = {"method": "nonprivate", "rounds": 2, "validation": 0.0, "refit": False}
SHAPES = ("hub with isolated nodes", "imbalanced", "no edge", "six labels")


def graph(shape: str) -> Graph:
    """60 nodes of the shape that is named."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 60)
    pairs = {
        "hub with isolated nodes": np.array([(0, i) for i in range(1, 40)]),
        "no edge": np.zeros((0, 2), dtype=np.int64),
    }.get(shape, rng.integers(0, 60, (120, 2)))
    if shape == "imbalanced":
        labels = np.concatenate([np.zeros(57), [1, 1, 2]]).astype(np.int64)
    if shape == "six labels":
        labels = np.concatenate([[0, 1, 0, 1, 0, 1], np.full(54, -1)]).astype(np.int64)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    ends = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)
    adjacency = sp.csr_array((np.ones(len(ends), np.float32), (ends[:, 0], ends[:, 1])), shape=(60, 60))
    features = sp.csr_array((rng.random((60, 12)) < 0.3).astype(np.float32))
    return plain_graph(shape, adjacency, features, labels, int(labels.max()) + 1, GraphProvenance("own", "drawn for a test"))


def outcome(on: Graph, method: dict[str, Any], named: list[dict[str, Any]], **changes: Any) -> Result:
    given: dict[str, Any] = {
        "methods": [method],
        "trust": ["own-client"],
        "epsilons": [2.0],
        "delta": 1e-3,
        "partition": {"partition": "uniform", "clients": 3},
        "attack": {"canaries": 1000, "named": named, "shadows": 2},
    }
    params = node_classification.Params(**(given | changes))
    where = CellContext("t", on.name, on, root=5, seeds=1, runtime=SerialRuntime())
    (cell,) = node_classification.cells(params, where)
    return node_classification.run(params, cell, where)


def every_attack_is_told(found: Result, named: list[dict[str, Any]]) -> None:
    told = {v.attack: asdict(v) for v in found.facts.named.found}
    names = {str(spec.get("label", spec["attack"])) for spec in named}
    assert set(told) | set(found.facts.named.refused) == names
    assert not set(told) & set(found.facts.named.refused)
    for verdict in told.values():
        assert 0 <= verdict["auc"] <= 1
        assert verdict["epsilon"] is None or verdict["epsilon"] >= 0
    assert all(found.facts.named.refused.values()), "a reason in words"
    assert found.epsilon_measured is None or 0 <= found.epsilon_measured < np.inf


@pytest.mark.parametrize("shape", SHAPES)
def test_attacks_on_people(shape: str) -> None:
    found = outcome(graph(shape), {"method": "features", "steps": 2}, NODES)
    every_attack_is_told(found, NODES)
    assert any("test node" in note for note in found.notes), "so few people are said in words"


@pytest.mark.parametrize("shape", SHAPES)
def test_attacks_on_links(shape: str) -> None:
    central = {"trust": ["curator"], "protocol": "transductive", "epsilons": [np.inf]}
    every_attack_is_told(outcome(graph(shape), PLAIN | {"model": "gcn"}, LINKS, **central), LINKS)
