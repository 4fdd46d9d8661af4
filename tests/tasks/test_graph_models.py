"""The shared models of graph classification: what they are trained on, what they answer, and which round is picked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from pydantic import ValidationError

from fedgraph import data, runtime
from fedgraph.cells.store import CellStore
from fedgraph.comparison import classify
from fedgraph.errors import ScenarioError
from fedgraph.learning.layers import shared_gnn
from fedgraph.methods.base import State
from fedgraph.report.sections.base import SectionRecords, build_sections
from fedgraph.tasks import graph_classification as task
from fedgraph.tasks.base import CellContext, graphs
from fedgraph.types import Graph, GraphCollection


@pytest.fixture(scope="module")
def mutag() -> GraphCollection:
    """The generated stand-in: 188 graphs."""
    found = data.load("tu/mutag", stand_in=True)
    assert isinstance(found, GraphCollection)
    return found


def context(collection: GraphCollection) -> CellContext:
    return CellContext("t", "tu/mutag", collection, 0, 1, runtime.start("serial"))


def params(methods: list[dict[str, Any]], **changes: Any) -> task.Params:
    """In clear, on 30 graphs of 4 clients."""
    small = {"partition": {"partition": "dirichlet", "clients": 4}, "max_graphs": 30, "folds": 3, "neighbours": [3]}
    return task.Params(**({"methods": methods, "epsilons": [np.inf], "baselines": []} | small | changes))


def test_models_may_train_on_node_labels_and_have_budgets_of_their_own(mutag: GraphCollection) -> None:
    """Node labels of training graphs reach the clients, none of the others, and no graph label."""
    spec = {"method": "local_dp", "rounds": 2, "hidden": 4, "label": "nodes", "pooling": "none", "epsilons": ["inf"]}
    where, given = context(mutag), params(methods=[spec, spec | {"label": "graphs", "pooling": "sum"}])
    cells = [c for c in task.cells(given, where) if c.variant != "baseline"]
    assert [(c.variant, c.epsilon) for c in cells] == [("nodes/none/epsilon", np.inf), ("graphs/none/epsilon", np.inf)]
    on_nodes, on_graphs = (task.run(given, cell, where) for cell in cells)
    assert "model" not in on_nodes.metrics
    assert "model" in on_graphs.metrics
    assert 0 < on_nodes.metrics["accuracy"] <= 1
    plan = task.plan(given, cells[0], where)
    assert plan is not None
    collection = task._collection(given, where)
    kinds, count = graphs.node_kinds(collection)
    assert plan.facts.num_classes == count == 7
    split, dealt = task._dealt(given, 0, where, on_nodes=True)
    shown = np.concatenate([s.graph.labels for s in dealt.partition.subgraphs])
    expected = [kinds[i] if i in split.train else np.full(kinds[i].size, -1) for i in dealt.order]
    assert np.array_equal(shown, np.concatenate(expected))


def test_a_model_may_be_asked_for_its_own_answers_only(mutag: GraphCollection, tmp_path: Path) -> None:
    """No pair is compared; the row keeps its price, and the report shows the model's accuracy."""
    spec = {"method": "local_dp", "rounds": 2, "hidden": 4, "label": "alone", "epsilons": ["inf"], "compare": False}
    where, given = context(mutag), params(methods=[spec])
    store, cells = CellStore(tmp_path), task.cells(given, where)
    for cell in cells:
        store.save(task.run(given, cell, where))
    found = store.load(cells[-1])
    assert set(found.metrics) == {"model"}
    assert found.epsilon_provable == np.inf
    entries = tuple(store.load(c) for c in cells)
    made = build_sections(SectionRecords("t", "graph_classification", "t", "tu/mutag", given.model_dump(), entries), None)
    assert "the model itself" in made.tables[0].header
    for refused in ({"pooling": "none"}, {"epsilons": [1.0]}):
        with pytest.raises(ValidationError, match="own answers"):
            params(methods=[spec | refused])


def test_rows_in_clear_may_be_fused_with_node_features(mutag: GraphCollection) -> None:
    """At alpha = 0 features alone count: raw ones do not depend on the training, the embedding does."""
    spec = {"method": "local_dp", "rounds": 2, "hidden": 4, "label": "m", "epsilons": ["inf"]}
    means = []
    for more in (
        {},
        {"fused": "raw"},
        {"fused": "raw", "rounds": 1},
        {"fused": "embedding"},
        {"fused": "embedding", "rounds": 1},
    ):
        where, given = context(mutag), params([spec | more], alpha=0.0, max_graphs=40)
        means.append(task.run(given, task.cells(given, where)[-1], where).metrics["gw_mean"])
    assert means[1] == means[2]
    assert len(set(means)) == 4
    with pytest.raises(ValidationError, match="fused of this row is 'labels'; Input should be 'raw' or 'embedding'"):
        params([spec | {"fused": "labels"}])
    with pytest.raises(ValidationError, match="fused looks at rows in clear"):
        params([spec | {"fused": "raw", "epsilons": [1.0]}])


def test_the_round_may_be_picked_where_copies_are_kept(mutag: GraphCollection) -> None:
    """The last copy is the model itself; picking on the test graphs is never worse; without copies there is nothing to pick."""
    spec = {"method": "local_dp", "rounds": 6, "hidden": 4, "label": "m", "optimiser": "adam", "learning_rate": 0.1}
    found = {}
    for every in (None, 2, 6):
        model = spec | {"epsilons": ["inf"], "compare": False, "keep_every": every}
        where, given = context(mutag), params(methods=[model], tuned_on_test=True)
        found[every] = task.run(given, task.cells(given, where)[-1], where).metrics
    assert set(found[None]) == {"model", "model_on_training"}
    assert found[6]["model_by_validation"] == found[6]["model_tuned_on_test"] == found[6]["model"] == found[None]["model"]
    assert found[2]["model_tuned_on_test"] >= max(found[2]["model"], found[2]["model_by_validation"])


def test_picking_a_round_looks_at_the_right_graphs(mutag: GraphCollection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies that are right on chosen graphs only: the validation graphs pick the first, the test graphs the second."""
    collection = replace(mutag, labels=np.arange(188) % 2)
    split = classify.ClassifySplit(np.arange(100), np.arange(100, 150), np.arange(150, 188))
    right = {
        name: np.isin(np.arange(188), rows) for name, rows in {"a": split.validation, "b": split.test, "c": split.train}.items()
    }
    monkeypatch.setattr(task, "_answers", lambda made, name, dealt: np.where(right[name], collection.labels, 2))
    state: Any = State({"parameters": "c"}, SimpleNamespace(kept=["a", "b"]))  # type: ignore[dict-item]
    found = task.measure_model(None, state, None, collection, split, True)  # type: ignore[arg-type]
    assert found == {"model": 0.0, "model_on_training": 1.0, "model_by_validation": 0.0, "model_tuned_on_test": 1.0}


def test_answers_are_in_the_collections_order(mutag: GraphCollection) -> None:
    """What the model says of a client's graphs together is what it says of each one alone."""
    spec = {"method": "local_dp", "hidden": 4, "label": "m", "epsilons": ["inf"], "compare": False}
    where, given = context(mutag), params([spec])
    made, dealt, _ = task._planned(given, task.cells(given, where)[-1], where)
    collection, net = task._collection(given, where), made.made.network
    parameters = np.random.default_rng(0).normal(size=net.layout.num_parameters)
    scores = np.concatenate([shared_gnn.score_graphs(net, parameters, g, (g.num_nodes,)) for g in collection.graphs])
    gaps = scores[:, 1] - scores[:, 0]
    parameters[-1] -= (np.quantile(gaps, 0.4) + np.quantile(gaps, 0.6)) / 2  # the last bias: about half of either answer
    alone = np.concatenate([shared_gnn.score_graphs(net, parameters, g, (g.num_nodes,)) for g in collection.graphs]).argmax(1)
    assert not np.array_equal(dealt.order, np.arange(dealt.order.size))
    assert 0 < np.mean(alone) < 1
    assert np.array_equal(task._answers(made, parameters, dealt), alone)


def test_degrees_stand_before_the_features(mutag: GraphCollection) -> None:
    wide = graphs.prepare(mutag, None, 4, 0, degrees=True)
    rows, own = wide.graphs[3].features.toarray(), mutag.graphs[3].features.toarray()
    assert np.array_equal(rows[:, 5:], own)
    assert np.array_equal(rows[:, :5].argmax(axis=1), np.minimum(mutag.graphs[3].degrees, 4))
    assert np.array_equal(rows[:, :5].sum(axis=1), np.ones(len(rows)))
    assert all(map(np.array_equal, graphs.node_kinds(wide)[0], graphs.node_kinds(mutag)[0]))


def test_without_attributes_the_kinds_are_left(mutag: GraphCollection) -> None:
    def heavier(graph: Graph) -> Graph:
        weights = sp.csr_array(np.full((graph.num_nodes, 1), 2.5))
        return replace(graph, features=sp.csr_array(sp.hstack([weights, graph.features], format="csr")))

    given = replace(mutag, graphs=tuple(heavier(g) for g in mutag.graphs))
    left = graphs.prepare(given, None, 4, 0, attributes=False)
    pairs = zip(left.graphs, mutag.graphs, strict=True)
    assert all(np.array_equal(a.features.toarray(), b.features.toarray()) for a, b in pairs)


def test_node_labels_are_the_one_hot_end_of_the_features(mutag: GraphCollection) -> None:
    first = replace(mutag.graphs[0], features=sp.csr_array(np.hstack([np.full((mutag.graphs[0].num_nodes, 1), 2.5),
                                                                      mutag.graphs[0].features.toarray()])))  # fmt: skip
    kinds, count = graphs.node_kinds(replace(mutag, graphs=(first,), labels=mutag.labels[:1]))
    assert count == 7
    assert np.array_equal(kinds[0], mutag.graphs[0].features.toarray().argmax(axis=1))
    bare = replace(first, features=sp.csr_array(np.full((first.num_nodes, 2), 0.3)))
    with pytest.raises(ScenarioError, match="no node labels"):
        graphs.node_kinds(replace(mutag, graphs=(bare,), labels=mutag.labels[:1]))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"epsilons": [0]}, "at ε = 0 nothing may be released"),
        ({"epsilons": [np.nan]}, "allowed: ε > 0, 1/n"),
        ({"epsilons": [True]}, "true and false"),
        ({"epsilons": ["1/m"]}, "allowed: ε > 0, 1/n"),
        ({"epsilons": [1, "1.0"]}, "1.0 appears twice"),
        ({"epsilons_of": {"tu/mutag": ["0"]}}, "at ε = 0 nothing may be released"),
        ({"encoders": ["multi-bit", "multi-bit"]}, "'multi-bit' appears twice"),
        ({"baselines": ["GW(A)", "GW(A)"]}, "appears twice"),
        ({"methods": [{"method": "local_dp"}, {"method": "local_dp", "rounds": 9}]}, "the model 'gcn' appears twice"),
        ({"methods": [{"method": "local_dp", "encoder": "none"}]}, "encoder is a setting of the whole task"),
        ({"methods": [{"method": "local_dp", "epsilon_rule": "1/n"}]}, "epsilon_rule is a setting of the whole task"),
        ({"methods": [{"method": "local_dp", "epsilons": [0]}]}, "at ε = 0 nothing may be released"),
    ],
)
def test_settings_that_would_mix_rows_or_release_nothing_are_refused(changes: dict[str, Any], said: str) -> None:
    """Two models of one name gave two rows of the first."""
    with pytest.raises(ValidationError, match=said):
        params(**({"methods": [{"method": "local_dp"}]} | changes))


def test_budgets_are_numbers_or_the_rule() -> None:
    given = params([{"method": "local_dp", "epsilons": ["1e-3", "inf"]}], epsilons=["1/n", 8, "64", ".5"])
    assert given.epsilons == ["1/n", 8.0, 64.0, 0.5]
    assert given.methods[0]["epsilons"] == [0.001, "inf"]
    assert task.Params(**given.model_dump(mode="json")) == given
