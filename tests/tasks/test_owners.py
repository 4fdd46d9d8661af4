"""Who joins: every world holds the same people, every client is priced by itself, and nobody pays for staying out."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from fedgraph.errors import DataError, ScenarioError
from fedgraph.federation import ALONE_WORLD
from fedgraph.privacy import settle
from fedgraph.privacy.ledger import Ledger
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.tasks import node_classification as task
from fedgraph.tasks.base import CellContext, Result
from fedgraph.tasks.node_classification import protocols
from fedgraph.types import Graph, GraphMasks, Partition

FOUR = {"partition": "uniform", "clients": 4}
EVERY = ["alone", "federated", "curator", "left-out", "personalised"]


def context(graph: Graph) -> CellContext:
    return CellContext("t", graph.name, graph, root=5, seeds=1, runtime=SerialRuntime())


def params(**given: Any) -> task.Params:
    known: dict[str, Any] = {"partition": FOUR, "epsilons": [1.0], "methods": [{"method": "features", "steps": 4}]}
    return task.Params(owners=True, **(known | {"trust": ["sums"]} | given))


def outcomes(graph: Graph, **given: Any) -> dict[str, Result]:
    """Setting → outcome, of one method at one budget."""
    made, where = params(**given), context(graph)
    return {cell.world.words: task.run(made, cell, where) for cell in task.cells(made, where)}


def prices(outcome: Result, kind: str) -> dict[str, float]:
    return {r.client: r.epsilon for r in outcome.facts.results if r.participation == kind}


def test_every_choice_is_there_and_every_client_is_counted(library: Graph) -> None:
    found = outcomes(library, participations=EVERY, left_out="all")
    assert set(found) == {"alone", "curator", "sums", *(f"sums without client {k}" for k in (1, 2, 3, 4))}
    for setting, kind in (("alone", "alone"), ("curator", "curator"), ("sums", "federated"), ("sums", "personalised")):
        records = [r for r in found[setting].facts.results if r.participation == kind]
        assert [r.client for r in records] == ["all", "client 1", "client 2", "client 3", "client 4"]
        assert sum(r.nodes for r in records[1:]) == records[0].nodes == 240
        assert sum(r.tested for r in records[1:]) == records[0].tested == 60
        assert all(0.9 < r.epsilon <= 1.0 for r in records)
    kept = [r for r in found["alone"].facts.results if r.participation == "personalised"]
    assert [r.client for r in kept] == ["all", "client 1", "client 2", "client 3", "client 4"], "the same head as who joins"
    assert all(math.isinf(r.epsilon) and r.toward.startswith("nobody") for r in kept), "it stays with the client"
    for k in (1, 2, 3, 4):
        (left,) = found[f"sums without client {k}"].facts.results
        assert (left.client, left.participation, left.epsilon) == (f"client {k}", "left-out", 0.0)
        assert found[f"sums without client {k}"].metrics == {}, "a newcomer's accuracy is not ranked with everybody's"


def test_declared_is_spent_and_the_ledger_prices_the_same(library: Graph) -> None:
    for setting, outcome in outcomes(library, participations=EVERY, left_out=1).items():
        assert outcome.account is not None
        ledger = Ledger([outcome.account], outcome.releases)
        assert settle.of_account(outcome.account, ledger.of(outcome.account.cell)).epsilon == outcome.epsilon_provable, setting
        clients = {c for line in outcome.releases for span in line.clients for c in range(span[0], span[1] + 1)}
        assert clients == ({0} if setting == "curator" else set(range(3 if "without" in setting else 4)))


def test_without_one_client_nothing_of_it_is_used(library: Graph) -> None:
    """Its labels may be anything: the model that the others train is the same, bit for bit."""
    owner = np.arange(library.num_nodes) % 4
    graph = replace(library, owner=owner, owner_names=("a", "b", "c", "d"))
    changed = replace(graph, labels=np.where(owner == 1, 0, graph.labels))
    given = {"partition": {"partition": "natural"}, "participations": ["left-out"], "left_out": ["b"]}
    trained = []
    for data in (graph, changed):
        made, where = params(**given), context(data)
        (cell,) = task.cells(made, where)
        trained.append(task.train(made, cell, where))
    one, two = (done.outcome.state.model for done in trained)
    assert all(np.array_equal(one[name], two[name]) for name in one)
    assert trained[0].federation.num_train == int((trained[0].federation.held.owner != 1).sum())


@pytest.mark.parametrize("protocol", ["inductive", "asking"])
def test_the_worlds_hold_the_same_people(library: Graph, protocol: protocols.Protocol) -> None:
    graph = replace(library, owner=np.arange(library.num_nodes) % 3, owner_names=("a", "b", "c"))
    setting = protocols.divide(graph, protocol, 0.8, np.random.default_rng(0))
    source = Partition((), True, 0, "three", from_edges=False, from_labels=True, natural=True)
    federation = setting.dealt_to_owners(("a", "b", "c"), source, "dropped")
    dealt = federation.partition
    assert (dealt.description, dealt.num_clients, dealt.from_edges, dealt.from_labels, dealt.natural) == (
        "three", 3, False, True, True,
    ), "as the owners came to be"  # fmt: skip
    worlds = [federation.within(ALONE_WORLD, client) for client in range(3)]
    for world, own in zip(worlds, dealt.subgraphs, strict=True):
        assert world.held.labels.tolist() == own.graph.labels.tolist()
        assert (world.asked is world.held) == federation.same
        assert protocol == "asking" or world.public_graph is world.asked
    assert sum((world.truth >= 0).sum() for world in worlds) == (setting.truth >= 0).sum()
    assert sum(world.num_train for world in worlds) == setting.num_train


def test_a_broken_promise_makes_everybody_infinite(library: Graph) -> None:
    method = {"method": "gap_node", "projection": 16, "steps": 4, "cap": "promised", "degree": 1}
    found = outcomes(library, methods=[method], participations=["alone", "federated"])
    assert found["sums"].epsilon_provable == math.inf
    assert set(prices(found["sums"], "federated").values()) == {math.inf}
    assert found["alone"].epsilon_provable == math.inf


def test_one_client_that_breaks_a_promise_makes_the_cell_infinite(library: Graph) -> None:
    method = {"method": "gap_node", "projection": 16, "steps": 4, "cap": "promised", "degree": 6}
    found = outcomes(library, methods=[method], participations=["alone"])["alone"]
    paid = [prices(found, "alone")[f"client {number}"] for number in (1, 2, 3, 4)]
    assert [price == math.inf for price in paid] == [False, True, False, False], "and it is not the one that trained last"
    assert found.epsilon_provable == math.inf
    assert "2 of 240 nodes" in str(found.facts.broken_promise)


@pytest.mark.parametrize(
    ("protocol", "row"),
    [
        ("inductive", {"method": "features", "steps": 4}),
        ("asking", {"method": "label_hop", "steps": 4}),
        ("inductive", {"method": "gap_node", "steps": 4, "projection": 16}),
    ],
)
def test_own_weights_cost_nothing_toward_others_and_are_each_clients_own(
    protocol: str, row: dict[str, Any], library: Graph
) -> None:
    given: dict[str, Any] = {"methods": [row], "protocol": protocol, "participations": ["personalised"]}
    plain = outcomes(library, **given, personalised="none")["sums"]
    both = outcomes(library, **given, personalised="both")["sums"]
    assert {r.participation for r in both.facts.results} == {"personalised", "own weights"}
    assert not plain.facts.results
    assert both.epsilon_provable == plain.epsilon_provable, "nothing more is released"
    assert both.releases == plain.releases
    assert prices(both, "own weights") == prices(both, "personalised")
    records = [r for r in both.facts.results if r.participation == "own weights"]
    assert [r.client for r in records] == ["all", "client 1", "client 2", "client 3", "client 4"]


def test_clients_without_labels_and_with_a_single_node_take_part(library: Graph) -> None:
    """Nobody knows the answers of the first: it has no number, and is left out as others are: that labels are known is private.
    The second is one node, asked or not.
    """
    owner = np.repeat([0, 1, 2, 3], [60, 1, 100, 139])
    labels = np.where(owner == 0, -1, library.labels)
    graph = replace(library, labels=labels, owner=owner, owner_names=("silent", "single", "c", "d"))
    given = {"partition": {"partition": "natural"}, "protocol": "asking", "participations": EVERY, "left_out": "all"}
    methods = [{"method": "features", "steps": 4}, {"method": "label_hop", "steps": 4}]
    found = outcomes(graph, **given, methods=methods)
    assert "sums without silent" in found
    for setting, outcome in found.items():
        records = outcome.facts.results
        assert all(bool(r.metrics) == bool(r.tested) for r in records), "NaN is no accuracy"
        assert not any(r.tested for r in records if r.client == "silent")
        assert {r.client for r in found["sums"].facts.results} == {"all", "silent", "single", "c", "d"}
        assert all(math.isfinite(v) for r in records for v in r.metrics.values()), setting
    (record,) = outcomes(graph, **{**given, "participations": ["left-out"], "left_out": ["silent"]})[
        "sums without silent"
    ].facts.results
    assert record.metrics == {}


def test_what_no_owner_can_have_is_refused(library: Graph) -> None:
    for wrong, words in (
        ({"trust": ["curator"]}, "one curator is"),
        ({"protocol": "transductive", "participations": ["left-out"]}, "nobody trained with"),
        ({"left_out": 0}, "1 client or more"),
        ({"federation": {"share": 0.5}}, "do not go with owners"),
    ):
        with pytest.raises(ValidationError, match=words):
            params(**wrong)
    with pytest.raises(ValidationError, match="left_out is of owners; write owners: true"):
        task.Params(epsilons=[1.0], methods=[{"method": "features"}], trust=["sums"], left_out=2)
    two = replace(library, owner=np.arange(library.num_nodes) % 2, owner_names=("all", "b"))
    half = np.arange(library.num_nodes) < library.num_nodes // 2
    masks = GraphMasks(np.flatnonzero(half), np.zeros(0, int), np.flatnonzero(~half))
    tested = replace(library, owner=(~half).astype(int), owner_names=("a", "b"), masks=(masks,))
    edges = {"methods": [{"method": "gap_edge", "epochs": 5, "folds": 1}], "protocol": "transductive"}
    for graph, given, says in (
        (library, {"participations": ["left-out"], "left_out": ["client 9"]}, "there is no client 'client 9'"),
        (two, {"partition": {"partition": "natural"}}, "a client is called 'all'"),
        (library, {"partition": {"partition": "natural"}}, "nodes know their owner"),
        (library, {**edges, "personalised": "weights"}, "gap_edge has no weights .* features, gap_node"),
        (tested, {"partition": {"partition": "natural"}, "split": "public"}, "b has no node on the training side"),
    ):
        with pytest.raises((ScenarioError, DataError), match=says):
            outcomes(graph, **given)
