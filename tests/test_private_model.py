"""``fedgraph.private``: a torch module, a graph and an ε become a trained private module, once."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import fedgraph
from fedgraph.errors import DataError, PrivacyError, ScenarioError
from fedgraph.types import Graph

torch = pytest.importorskip("torch")
pyg = pytest.importorskip("torch_geometric.nn")

FEW = {"steps": 8, "sampling_rate": 0.5, "projection": 8}


@pytest.fixture(scope="module")
def people(library: Graph) -> tuple[Graph, Graph]:
    """(who trains, who is public)."""
    order = np.random.default_rng(0).permutation(library.num_nodes)
    cut = library.num_nodes * 3 // 4
    return library.induced(np.sort(order[:cut])), library.induced(np.sort(order[cut:]))


@pytest.fixture(scope="module")
def fitted(people: tuple[Graph, Graph]) -> Any:
    train, public = people
    asked = fedgraph.private(pyg.GCN(-1, 8, 2, out_channels=train.num_classes), train, epsilon=4, public=public, **FEW)
    with pytest.raises(ScenarioError, match=r"call fit\(\) first"):
        _ = asked.model
    return asked.fit(quiet=True)


def test_what_comes_out_is_a_trained_module_and_what_it_cost(fitted: Any, people: tuple[Graph, Graph]) -> None:
    train, public = people
    assert isinstance(fitted.model, pyg.GCN)
    assert not fitted.model.training
    assert fitted.predict_proba(public).shape == (public.num_nodes, public.num_classes)
    assert set(fitted.predict(public)) <= set(fitted.trained.classes_)
    assert 0.95 * 4 < fitted.trained.epsilon <= 4
    said = " ".join(fitted.statement)
    assert "for each node" in said
    assert "in its own example alone, in every graph" in said
    account, *lines = (json.loads(line) for line in fitted.ledger)
    assert account["kind"] == "account"
    assert lines
    with pytest.raises(ScenarioError, match="a second training is a second release"):
        fitted.fit()
    with pytest.raises(PrivacyError):
        fitted.predict(train)


def test_attacks_prove_less_than_the_proof_allows(fitted: Any) -> None:
    for found in (fitted.attack(canaries=60, guesses=0.5), fitted.attack("lira", shadows=2)):
        assert 0 <= found.epsilon <= found.proven <= 4
        assert 0 <= found.area < 0.9
    with pytest.raises(ScenarioError, match="lirra"):
        fitted.attack("lirra")


def test_nobody_needs_to_be_public(people: tuple[Graph, Graph]) -> None:
    train, _ = people
    module = pyg.MLP([train.num_features, 8, train.num_classes], norm=None)
    asked = fedgraph.private(module, train, epsilon=4, steps=2, sampling_rate=0.5).fit(quiet=True)
    assert asked.settings["projection"] == 0
    assert asked.model.lins[0].weight.shape == (8, train.num_features)


def of_edges(graph: Graph, **more: Any) -> Any:
    shape = {"hidden_channels": 8, "num_layers": 2, "norm": None}
    asked = fedgraph.private("torch_geometric.nn.MLP", graph, unit="edge", epsilon=4, arguments=shape, **more)
    return asked.fit(quiet=True)


def test_edges_alone_are_protected_where_rows_are_public(people: tuple[Graph, Graph]) -> None:
    train, public = people
    asked = of_edges(train, public=public)
    assert 0.95 * 4 < asked.trained.epsilon <= 4
    assert "for each edge" in " ".join(asked.statement)
    assert (asked.predict_proba(public).argmax(axis=1) == public.labels).mean() > 0.5
    assert asked.model.lins[0].weight.shape[1] > 3 * train.num_classes
    found = asked.attack(canaries=60, guesses=0.5)
    assert 0 < found.area < 1
    assert found.proven <= 4


def test_how_many_private_edges_there_are_is_not_in_what_is_stated(people: tuple[Graph, Graph]) -> None:
    train, _ = people
    ends = np.argwhere(np.triu(np.ones((train.num_nodes, train.num_nodes)), 1))
    said = []
    for edges in (1000, 1001):
        half = sp.coo_array((np.ones(edges, np.float32), tuple(ends[:edges].T)), shape=train.adjacency.shape)
        said.append(of_edges(replace(train, adjacency=sp.csr_array(half + half.T)), hops=1, steps=1).statement)
    assert said[0] == said[1]


def test_without_noise_it_is_trained_where_somebody_says_that_nothing_is_protected(people: tuple[Graph, Graph]) -> None:
    train, public = people
    asked = fedgraph.private(pyg.MLP([-1, 8, 4], norm=None), train, epsilon=np.inf, public=public, **FEW)
    with pytest.raises(PrivacyError, match="its ε is ∞"):
        asked.fit(quiet=True)
    assert asked.fit(quiet=True, nothing_protected=True).predict(public).shape == (public.num_nodes,)


def test_answers_of_who_trained_are_not_given_to_others_without_ids(people: tuple[Graph, Graph]) -> None:
    train, others = people
    asked = of_edges(train, steps=2)
    assert len(asked.predict(train)) == len(asked.predict(train, "own")) == train.num_nodes
    with pytest.raises(DataError, match=f"{others.num_nodes} people are asked about, {train.num_nodes} trained"):
        asked.predict(others)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"unit": "graph"}, "unit is 'graph'; allowed: node, edge"),
        ({"epsilon": 0}, "epsilon is 0; allowed: a number above 0"),
        ({"model": lambda n, c: pyg.MLP([n, 8, c])}, r"\(BatchNorm\) takes means over a batch"),
        ({"model": lambda n, c: torch.nn.Linear(n, c + 1)}, "one score for each of"),
    ],
)
def test_what_has_no_proof_is_refused_before_training(people: tuple[Graph, Graph], given: dict[str, Any], words: str) -> None:
    train, _ = people
    made = given.pop("model", lambda n, c: torch.nn.Linear(n, c))
    with pytest.raises((ScenarioError, DataError), match=words):
        fedgraph.private(made(train.num_features, train.num_classes), train, **given)
