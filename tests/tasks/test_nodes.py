"""Classifying nodes: the price of trust has the right sign, awkward graphs run, and what is measured beside accuracy."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import metrics

import fedgraph
from fedgraph import data
from fedgraph.errors import PrivacyError, RuntimeFailure, ScenarioError
from fedgraph.privacy.units import Assumption
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.tasks import graph_clustering, node_classification
from fedgraph.tasks.base import CellContext, Result, measures
from fedgraph.types import Graph


def outcomes(
    graph: Graph, *methods: dict[str, Any], seeds: int = 1, task: Any = node_classification, **given: Any
) -> list[Result]:
    usual = {"epsilons": [1.0]} | ({"trust": ["curator"]} if task is node_classification else {})
    params = task.Params(methods=list(methods), **usual | given)
    where = CellContext("t", graph.name, graph, root=5, seeds=seeds, runtime=SerialRuntime())
    return [task.run(params, cell, where) for cell in task.cells(params, where)]


def test_a_curator_is_as_good_as_sums_and_sums_are_better_than_single_messages(library: Graph) -> None:
    """Three seeds at ε = 1, ten clients."""
    given = {"seeds": 3, "partition": {"partition": "uniform", "clients": 10}, "trust": ["curator", "sums", "own-client"]}
    found: dict[str, list[float]] = {}
    for one in outcomes(library, {"method": "features", "steps": 20}, **given):
        found.setdefault(one.world.trust.value, []).append(one.metrics["accuracy"])
    central, secure, local = (np.array(found[trust]) for trust in given["trust"])
    noise = np.hypot(central.std(), secure.std()) / np.sqrt(3)
    assert central.mean() >= secure.mean() - 2 * noise
    assert secure.mean() > local.mean() + 0.05


def test_isolated_unlabelled_and_absent_classes_run(library: Graph) -> None:
    graph = library.induced(np.arange(0, 300, 3))
    assert (graph.degrees == 0).any()
    graph = replace(graph, labels=np.where(np.arange(100) % 4, graph.labels, -1))
    rows = [{"method": "features"}, {"method": "nonprivate", "model": "gcn", "rounds": 2, "local_epochs": 2}]
    for one in outcomes(graph, *rows, trust=["own-client"], partition={"partition": "uniform", "clients": 40}):
        assert 0 <= one.metrics["accuracy"] <= 1
    bare = replace(library, adjacency=sp.csr_array((300, 300)))
    given = {"partition": {"partition": "ego", "clients": 8}, "num_init": 1}
    for one in outcomes(bare, {"method": "local_dp", "rounds": 2}, task=graph_clustering, **given):
        assert -1 <= one.metrics["ari"] <= 1


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"trust": ["own-client"], "partition": {"partition": "ego", "clients": 5}}, "needs disjoint clients"),
        ({"methods": [{"method": "features", "steps": 2, "publish_accuracy": 1 - 1e-9}]}, "leaves nothing of ε = 1"),
    ],
)
def test_what_no_price_is_for_is_refused(library: Graph, given: dict[str, Any], says: str) -> None:
    """A node at several clients, of which one price would count one; an accuracy that costs all."""
    methods = given.pop("methods", [{"method": "features"}])
    with pytest.raises((ScenarioError, PrivacyError), match=says):
        outcomes(library, *methods, protocol="inductive", public="nothing", delta=1e-4, **given)


@pytest.mark.parametrize(("split", "stated"), [("random", False), ("parts", True)])
def test_a_split_made_from_edges_is_an_assumption(library: Graph, split: str, stated: bool) -> None:
    (found,) = outcomes(library, {"method": "features", "steps": 2}, split=split)
    assert found.protection is not None
    assert (Assumption.SPLIT_FROM_EDGES in found.protection.assumptions) == stated


def test_classes_that_are_apart_have_a_high_silhouette() -> None:
    rng, labels = np.random.default_rng(0), np.repeat([0, 1, 2, -1], 20)
    apart = np.eye(4)[labels] + 0.01 * rng.standard_normal((80, 4))
    arrays, silhouette = node_classification.map_of_nodes(apart, labels, np.random.default_rng(1))
    assert arrays["map"].shape == (60, 2), "nodes without a label are left out"
    assert silhouette > 0.9
    undrawn = node_classification.map_of_nodes(apart, labels, np.random.default_rng(1), drawn=False)
    assert undrawn == ({}, silhouette), "further seeds have the number and no picture"


def test_where_nodes_ask_no_private_row_is_above_the_ceiling() -> None:
    """Neighbours are of other classes: their labels tell more than a row, and one candidate alone reads them."""
    few = {"classes": 3, "features": 30, "words": 3, "words_spread": 1, "topic_share": 0.2}
    shape = {"nodes": 500, "edges": 3000, "homophily": 0.02, "closure": 0, "degree_spread": 4}
    graph = data.load("synthetic/block_model", parameters=few | shape)
    ceiling = {"method": "nonprivate", "model": "ceiling", "among": ["logistic"], "folds": 1, "rounds": 20, "epsilons": ["inf"]}
    run = fedgraph.compare(graph, ["label_hop", ceiling], [8, math.inf], ["curator"], protocol="asking")
    found = {(one.head.method, one.head.epsilon): one.mean for one in run.scores}
    top = found.pop(("nonprivate", math.inf))
    assert len(found) == 2
    for private in found.values():
        assert top >= private - 2 * math.sqrt((top * (1 - top) + private * (1 - private)) / (500 / 5)), (top, found)


@pytest.mark.parametrize("levels", [2, 1024])
def test_measures_are_those_of_scikit_learn_with_many_ties_and_few(levels: int) -> None:
    """Averages over classes that have a member and a stranger; nodes whose class is unknown do not count."""
    rng = np.random.default_rng(levels)
    for _ in range(20):
        truth = rng.integers(4, size=60)
        chances = rng.multinomial(levels, [0.25] * 4, size=60) / levels  # of a power of two, so that ties stay ties
        hidden = np.concatenate([chances, rng.random((5, 4))]), np.concatenate([truth, np.full(5, -1)])
        found, named = measures.of_scores(*hidden), chances.argmax(axis=1)
        each = [truth == c for c in np.unique(truth)]
        columns = [chances[:, c] for c in np.unique(truth)]
        expected = {
            "accuracy": metrics.accuracy_score(truth, named),
            "macro_f1": metrics.f1_score(truth, named, average="macro", zero_division=0.0),
            "majority_share": np.bincount(truth).max() / 60,
            "auroc": np.mean([metrics.roc_auc_score(*pair) for pair in zip(each, columns, strict=True)]),
            "average_precision": np.mean([metrics.average_precision_score(*pair) for pair in zip(each, columns, strict=True)]),
        }
        assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-9)


def test_what_scores_show_by_hand() -> None:
    """Naming the majority is seen through; logits become probabilities; calibration (Guo et al. 2017) in two bins."""
    truth = np.array([0] * 90 + [1] * 10)
    found = measures.of_scores(np.tile([3.0, 0.0], (100, 1)), truth)
    assert (found["accuracy"], found["majority_share"], found["auroc"]) == pytest.approx((0.9, 0.9, 0.5))
    assert found["macro_f1"] == pytest.approx((2 * 0.9 / 1.9) / 2)
    assert "auroc" not in measures.of_scores(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0, 0])), "one class has no ranking"
    chances = np.array([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.6, 0.4]])
    error = measures.of_scores(chances, np.array([0, 1, 0, 0]))["calibration_error"]
    assert error == pytest.approx((abs(1.8 - 1) + abs(1.2 - 2)) / 4)
    assert np.allclose(measures.probabilities_of(chances), chances)
    assert np.allclose(measures.probabilities_of(np.log([[1.0, 3.0]])), [[0.25, 0.75]])
    assert np.isfinite(measures.probabilities_of(np.array([[np.nan, 1.0], [np.inf, 0.0]]))).all()
    with pytest.raises(RuntimeFailure, match="NaN or infinite"):
        measures.of_scores(np.array([[0.1, 0.9], [np.inf, 0.0]]), np.array([0, 1]))
