"""Graphs that nobody had in mind: every attack says something or says why not, and too few people are said in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph.tasks.base import Result
from fedgraph.types import Graph, GraphProvenance, plain_graph
from tests.attacks import test_named

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
    labels, pairs = rng.integers(0, 2, 60), rng.integers(0, 60, (120, 2))
    if shape == "hub with isolated nodes":
        pairs = np.array([(0, i) for i in range(1, 40)])
    if shape == "no edge":
        pairs = pairs[:0]
    if shape == "imbalanced":
        labels = np.repeat([0, 1, 2], [57, 2, 1])
    if shape == "six labels":
        labels = np.append([0, 1, 0, 1, 0, 1], np.full(54, -1))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    ends = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)
    adjacency = sp.csr_array((np.ones(len(ends), np.float32), (ends[:, 0], ends[:, 1])), shape=(60, 60))
    features = sp.csr_array((rng.random((60, 12)) < 0.3).astype(np.float32))
    return plain_graph(shape, adjacency, features, labels, int(labels.max()) + 1, GraphProvenance("own", "drawn for a test"))


def outcome(on: Graph, method: dict[str, Any], named: list[dict[str, Any]], **changes: Any) -> Result:
    three = {"trust": ["own-client"], "epsilons": [2.0], "partition": {"partition": "uniform", "clients": 3}}
    return test_named.outcome(on, method, named, **({"attack": {"canaries": 1000, "shadows": 2}} | three | changes))


def every_attack_is_told(found: Result, named: list[dict[str, Any]]) -> None:
    told, refused = test_named.told(found), found.facts.named.refused
    assert sorted([*told, *refused]) == sorted(str(spec.get("label", spec["attack"])) for spec in named)
    assert all(0 <= verdict["auc"] <= 1 and (verdict["epsilon"] or 0) >= 0 for verdict in told.values())
    assert all(refused.values()), "a reason in words"
    assert 0 <= (found.epsilon_measured or 0) < np.inf


@pytest.mark.parametrize("shape", SHAPES)
def test_attacks_on_people_and_on_links(shape: str) -> None:
    found = outcome(graph(shape), {"method": "features", "steps": 2}, NODES)
    every_attack_is_told(found, NODES)
    assert any("test node" in note for note in found.notes), "so few people are said in words"
    central = {"trust": ["curator"], "protocol": "transductive", "epsilons": [np.inf]}
    every_attack_is_told(outcome(graph(shape), PLAIN | {"model": "gcn"}, LINKS, **central), LINKS)
