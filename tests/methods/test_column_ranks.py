"""Columns of numbers become ranks: who pays for them, what one person changes, and that no learner reads a raw column."""

import logging
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import fedgraph
from fedgraph.data.own.columns import own_column_scales
from fedgraph.errors import PrivacyError
from fedgraph.methods import features, label_hop
from fedgraph.methods.base import Budget, Plan, PlanStreams, PublicFacts, column_ranks
from fedgraph.privacy.desk import Desk
from fedgraph.privacy.units import Viewer
from fedgraph.types import Graph, GraphProvenance, Subgraph
from tests.public_facts import public_facts

NAMES = ("age", "income", "income is missing", "member", "score")
DELTA = 1e-3


def people(n: int = 400, seed: int = 0) -> Graph:
    """Two classes: one is older and poorer; one income in ten is empty, one age in a hundred absurd."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=n)
    age = np.where(rng.random(n) < 0.01, 1e9, np.round(40 + 15 * labels + 10 * rng.standard_normal(n)))
    income, empty = np.exp(10 - labels + 0.5 * rng.standard_normal(n)), rng.random(n) < 0.1
    rows = np.column_stack([age, np.where(empty, 0, income), empty, rng.random(n) < 0.5, 2 * rng.random(n) - 1])
    one, two = rng.integers(n, size=(2, 2 * n))
    adjacency = sp.csr_array((np.ones(2 * n), (one, two)), shape=(n, n))
    adjacency = sp.csr_array(((adjacency + adjacency.T - sp.diags_array(2 * adjacency.diagonal())) > 0).astype(float))
    matrix = sp.csr_array(rows, dtype=np.float32)
    return Graph(
        "people", adjacency, matrix, labels, 2, GraphProvenance("own", "made"), columns_from_rows=True,
        features_from_edges=False,
        nodes_from_edges=False, columns=own_column_scales(matrix, NAMES, ("score",)),
    )  # fmt: skip


def facts_of(graph: Graph, clients: int, viewer: Viewer) -> PublicFacts:
    parts = np.array_split(np.arange(graph.num_nodes), clients)
    sizes = tuple(part.size for part in parts)
    known = public_facts(graph.num_nodes, 5, 2, sizes, viewer, public_name="nothing", members=tuple(parts))
    return replace(known, columns=graph.columns)


def planned(method: str, facts: PublicFacts, epsilon: float, relation: str = "node-zero-out") -> Plan:
    module = {"features": features, "label_hop": label_hop}[method]
    settings = module.Params(relation=relation)
    return column_ranks.plan_with(lambda budget: module.plan(settings, facts, budget), facts, Budget(epsilon, DELTA))


@pytest.mark.parametrize(
    ("method", "relation", "viewer", "clients"),
    [
        ("features", "node-replace", Viewer.CURATOR_TRUSTED, 1),
        ("label_hop", "node-zero-out", Viewer.SERVER_SECURE_AGGREGATION, 4),
    ],
)
def test_counts_and_training_cost_the_budget_together(method: str, relation: str, viewer: Viewer, clients: int) -> None:
    made = planned(method, facts_of(people(), clients, viewer), 2.0, relation)
    assert 1.8 <= made.provable().epsilon <= 2.0
    assert 0 < made.provable("columns").epsilon < 0.6 < made.provable("model").epsilon < 2.0
    assert made.epsilon_published is None
    assert any("age, income" in note for note in made.notes)
    clear = planned(method, facts_of(people(), clients, viewer), np.inf, relation)
    assert clear.provable("columns").epsilon == clear.provable().epsilon == np.inf


def test_ranks_among_public_rows_lie_on_one_scale_and_empty_cells_in_the_middle() -> None:
    graph = people()
    assert graph.columns is not None
    found = column_ranks.of_public(graph, graph.columns).scaled(graph)
    rows = found.features.toarray()
    assert found.columns is None
    assert np.abs(rows).max() <= 1
    empty = graph.features.toarray()[:, 2] > 0
    assert (rows[empty, 1] == 0).all()
    assert rows[:, 2].tolist() == empty.astype(float).tolist()
    assert rows[:, 4] == pytest.approx(graph.features.toarray()[:, 4]), "bounded columns stay"
    order = np.argsort(graph.features.toarray()[:, 0])
    assert (np.diff(rows[order, 0]) >= -1e-6).all()
    assert rows[:, 0].std() > 0.4
    assert column_ranks.fixed(graph.columns).scaled(graph).features.min() >= 0


def test_ranks_are_paid_for_where_no_row_is_public_and_free_where_some_are(caplog: pytest.LogCaptureFixture) -> None:
    """Of a table with money and absurd ages; income alone names .60 of the classes."""
    caplog.set_level(logging.ERROR)
    both = [{"method": name, "steps": 15} for name in ("features", "label_hop")]
    for protocol, methods, paid in (("asking", both, True), ("inductive", both[:1], False)):
        table = fedgraph.compare(people(300), methods, epsilons=[8], trust=["curator"], protocol=protocol).table()  # type: ignore[arg-type]
        for row in table.to_dict("records"):
            assert ('"columns":' in row["paths"]) is paid
            assert row["epsilon_provable"] <= 8
            assert row["value"] > 0.75, row["method"]


U = float(np.log2(1 + 40.0))  # where somebody of age 40 lies on the line of counts


@pytest.mark.parametrize("sent", [[U, U], [np.nan, U], [U, np.inf], [U, np.nextafter(U, 41)], [-1e308, 1.7e308]])
def test_whether_a_client_refuses_brackets_is_no_matter_of_its_people(sent: list[float]) -> None:
    """A server may send any brackets: somebody at their very edge, and nobody there, give the same refusal, or counts."""
    graph = people()
    plan = planned("features", facts_of(graph, 2, Viewer.ACTIVE_SERVER), 4.0)
    counting = column_ranks.plan_before(plan)
    assert counting is not None
    assert graph.columns is not None
    age = int(graph.columns.places[0])
    said, counts = set(), []
    for ages in (np.full(200, 40.0), np.full(200, 0.0), np.full(200, 33.0), graph.features[:200, [age]].toarray().ravel()):
        rows = graph.features[:200].tolil()
        rows[:, age] = ages[:, None]
        own = replace(graph.induced(np.arange(200)), features=sp.csr_array(rows.tocsr(), dtype=np.float32))
        work = column_ranks.prepare(counting, Subgraph(0, own, np.arange(200)))
        brackets = np.tile(np.array(sent), (graph.columns.places.size, 1))
        desk = Desk("c", 0, 0, counting.schedule.releases, np.random.default_rng(0))
        try:
            value = column_ranks.client(counting, work, {"brackets": brackets}, 0, PlanStreams(0, ("c",)), desk)
            said.add("counts")
            counts.append(value["counts"].value)
        except PrivacyError as error:
            said.add(str(error))
    assert len(said) == 1
    assert all(np.isfinite(value).all() for value in counts)
    assert ("counts" in said) == bool(np.isfinite(sent).all() and sent[0] < sent[1])
