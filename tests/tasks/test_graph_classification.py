"""Graph classification: folds, dealing, leak-exposing rows, prices."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from fedgraph import data, runtime
from fedgraph.cells.store import CellStore
from fedgraph.cells.task_facts import GraphClassificationCellFacts
from fedgraph.comparison import gromov, metric_space
from fedgraph.errors import ScenarioError
from fedgraph.partition import dirichlet
from fedgraph.privacy.ledger import Ledger
from fedgraph.report.sections.base import SectionRecords, build_sections
from fedgraph.runtime.base import Runtime
from fedgraph.tasks import graph_classification as task
from fedgraph.tasks.base import Cell, CellContext, graphs
from fedgraph.types import Graph, GraphCollection


@pytest.fixture(scope="module")
def mutag() -> GraphCollection:
    """The generated stand-in: 188 graphs."""
    found = data.load("tu/mutag", stand_in=True)
    assert isinstance(found, GraphCollection)
    return found


def context(collection: Any, seeds: int = 1, engine: str = "serial") -> CellContext:
    return CellContext("t", "tu/mutag", collection, 0, seeds, runtime.start(engine))


GCN = {"method": "local_dp", "label": "gcn", "rounds": 2, "hidden": 4}
GIN = GCN | {"label": "gin", "model": "gin", "layers": 2, "embedding": "hidden"}


def params(**changes: Any) -> task.Params:
    given: dict[str, Any] = {
        "methods": [GCN, GIN],
        "epsilons": ["1/n", 4.0, np.inf],
        "encoders": ["multi-bit", "gaussian-as-coded"],
        "partition": {"partition": "dirichlet", "clients": 4},
        "max_graphs": 20,
        "folds": 3,
        "neighbours": [3],
    }
    return task.Params(**(given | changes))


def test_each_client_keeps_its_own_tenth_and_fifth(mutag: GraphCollection) -> None:
    """Jin & Chen, §4: 10 % of a client's own graphs test, 20 % choose, and nobody else's are among them."""
    rng = np.random.default_rng(0)
    shares = dirichlet.deal(mutag, dirichlet.Params(clients=4), rng)
    split = graphs.split_by_clients(shares, 10, 0.2, 0, "x", 0)
    assert np.array_equal(np.sort(np.concatenate([split.train, split.validation, split.test])), np.arange(188))
    for members in shares.members:
        assert np.isin(members, split.test).sum() == round(members.size / 10)
        assert np.isin(members, split.validation).sum() == round(0.2 * members.size)
    with pytest.raises(ScenarioError, match="fewer clients"):
        graphs.split_by_clients(replace(shares, members=tuple(m[:2] for m in shares.members)), 10, 0.2, 0, "x", 0)


def test_held_out_by_clients_runs(mutag: GraphCollection) -> None:
    asked = params(held_out="clients", baselines=[], epsilons=[np.inf], folds=10)
    given = context(mutag)
    found = task.run(asked, task.cells(asked, given)[0], given)
    facts = found.facts
    assert isinstance(facts, GraphClassificationCellFacts)
    assert facts.tested == facts.folds[2] > 0
    with pytest.raises(ValidationError, match="square"):
        params(classifier="neighbours", solver="pot", loss="kl")


def test_ten_seeds_test_every_graph_once(mutag: GraphCollection) -> None:
    splits = [graphs.split_by_folds(mutag.labels, 10, 0.2, 0, "x", seed) for seed in range(10)]
    assert np.array_equal(np.sort(np.concatenate([s.test for s in splits])), np.arange(188))
    for s in splits:
        assert np.array_equal(np.sort(np.concatenate([s.train, s.validation, s.test])), np.arange(188))
        assert s.validation.size == 38
    again = graphs.split_by_folds(mutag.labels, 10, 0.2, 0, "x", 10)
    assert not np.array_equal(again.test, splits[0].test)


def test_only_training_labels_reach_the_clients(mutag: GraphCollection) -> None:
    split = graphs.split_by_folds(mutag.labels, 10, 0.2, 0, "x", 0)
    shares = dirichlet.deal(mutag, dirichlet.Params(clients=10), np.random.default_rng(0))
    dealt = graphs.deal(mutag, shares, split.train)
    assert sorted(dealt.order.tolist()) == list(range(188))
    at = 0
    for subgraph, sizes in zip(dealt.partition.subgraphs, dealt.sizes, strict=True):
        start = 0
        for n in sizes:
            index = int(dealt.order[at])
            shown = subgraph.graph.labels[start : start + n]
            assert set(shown.tolist()) == {int(mutag.labels[index]) if index in split.train else -1}
            assert (subgraph.graph.adjacency[start : start + n][:, start : start + n] != mutag.graphs[index].adjacency).nnz == 0
            at, start = at + 1, start + n
    assert sum(s.graph.num_edges for s in dealt.partition.subgraphs) == sum(g.num_edges for g in mutag.graphs)


def test_a_client_that_sent_nothing_is_known_by_its_sizes() -> None:
    dealt = graphs.TaskCollection(None, np.array([2, 0, 1]), ((2, 1), (3,)))  # type: ignore[arg-type]
    found = task.in_order([np.arange(6.0).reshape(3, 2), None], dealt, 2)
    assert np.array_equal(found[2], [[0, 1], [2, 3]])
    assert np.array_equal(found[0], [[4, 5]])
    assert np.array_equal(found[1], np.full((3, 2), 0.5))


def test_every_table_holds_the_rows_that_only_see_sizes(mutag: GraphCollection, tmp_path: Path) -> None:
    where, given = context(mutag), params(baselines=[], methods=[GIN])
    store, cells = CellStore(tmp_path), task.cells(given, where)
    for cell in cells:
        out = task.run(given, cell, where)
        planned = task.plan(given, cell, where)
        if cell.method == "local_dp":
            assert planned is not None
            assert out.epsilon_provable == np.inf, "the model path is not protected"
            assert out.paths["embedding"] == pytest.approx(planned.provable("embedding").epsilon)
            Ledger([out.account], out.releases)
        if cell.variant.endswith("/multi-bit/epsilon"):
            assert out.paths["embedding"] == pytest.approx(4.0, rel=1e-3)
            assert out.facts.graph_epsilon == pytest.approx([4.0] * 3)
        store.save(out)
    found = [store.load(cell) for cell in cells]
    records = SectionRecords("t", "graph_classification", "t", "tu/mutag", given.model_dump(), tuple(found))
    made = build_sections(records, None)
    (table,) = made.tables
    assert {"graph size", "size and degrees"} <= {row[0].split(",")[0] for row in table.rows}
    assert "right at most, by ε and sizes" in table.header
    assert "only above the rows that see sizes alone" in " ".join(made.sentences)


def test_votes_alone_are_the_votes_beside_the_svm(mutag: GraphCollection, tmp_path: Path) -> None:
    """Same accuracies from fewer pairs, in the rows on raw data and in those on embeddings; the report says how many."""
    where, store = context(mutag), CellStore(tmp_path)
    changes = {"methods": [GCN], "epsilons": [4.0], "encoders": ["multi-bit"], "baselines": ["FGW(A, X)"]}
    full, votes = params(**changes, neighbours=[3, 5]), params(**changes, neighbours=[3, 5], classifier="neighbours")
    spared = []
    for cell in task.cells(full, where):
        other = task.run(votes, cell, where)
        store.save(other)
        assert (other.facts.solver.asked is not None) == (cell.method not in graphs.LEAKING)
        if cell.method in graphs.LEAKING:
            continue
        one = task.run(full, cell, where)
        of_votes = {"accuracy": one.metrics["knn3"], "macro_f1": other.metrics["macro_f1"]}
        assert other.metrics == {**{k: one.metrics[k] for k in other.metrics}, **of_votes}
        assert one.facts.solver.asked is None
        spared.append(1 - other.facts.solver.asked[0] / other.facts.solver.asked[1])
    assert min(spared) >= 0
    assert np.mean(spared) > 0.05
    found = tuple(store.load(cell) for cell in task.cells(votes, where))
    made = build_sections(SectionRecords("t", "graph_classification", "t", "tu/mutag", votes.model_dump(), found), None)
    assert {"accuracy", "macro-F1", "k-NN, k = 5"} <= set(made.tables[0].header)
    assert any("no vote depends on them" in s for s in made.sentences)
    with pytest.raises(ValidationError, match="needs a k"):
        params(classifier="neighbours", neighbours=[])
    with pytest.raises(ValidationError, match="tuned_on_test"):
        params(classifier="neighbours", tuned_on_test=True)


def test_constant_embeddings_release_nothing_but_size(mutag: GraphCollection) -> None:
    where, given = context(mutag), params(baselines=[])
    cell = next(c for c in task.cells(given, where) if c.method == graphs.CONSTANT)
    out = task.run(given, cell, where)
    assert out.epsilon_provable == 0.0
    assert not out.releases


def test_drop_out_before_any_retrieval_still_gives_a_table(mutag: GraphCollection) -> None:
    spec = {"method": "local_dp", "label": "m", "rounds": 3, "hidden": 4, "dropout": 0.7}
    where, given = context(mutag), params(methods=[spec], epsilons=[np.inf], baselines=[])
    cell = next(c for c in task.cells(given, where) if c.method == "local_dp")
    assert 0 <= task.run(given, cell, where).metrics["accuracy"] <= 1


def test_one_draw_of_the_constant_rows_serves_all_folds(mutag: GraphCollection) -> None:
    where, given = context(mutag, seeds=2), params(baselines=[], epsilons_of={"tu/mutag": ["1/n"]})
    cells = [c for c in task.cells(given, where) if c.variant.startswith("gin/multi-bit/")]
    assert [(c.method, c.seed) for c in cells] == [(m, s) for s in (0, 1) for m in (graphs.CONSTANT, "local_dp")]
    other = next(c for c in task.cells(given, where) if c.method == graphs.CONSTANT and c.variant.startswith("gin/gauss"))

    def distances(cell: Cell, k: int | None = None) -> np.ndarray:
        made, _, split = task._planned(given, cell, where)
        votes = given if k is None else given.model_copy(update={"classifier": "neighbours", "neighbours": [k]})
        return task._constant_distances(votes, cell, where, made, split)[0]

    first = distances(cells[0])
    assert distances(cells[2]) is first
    assert not np.array_equal(distances(other), first)
    near = distances(cells[2], 5)
    assert np.array_equal(near[np.isfinite(near)], first[np.isfinite(near)])
    split = task._planned(given, cells[2], where)[2]
    asked = np.ix_(split.test, np.concatenate([split.train, split.validation]))
    nearest = np.sort(near[asked], axis=1)[:, :5]
    assert nearest.shape == (len(split.test), 5)
    assert nearest.size
    assert np.array_equal(nearest, np.sort(first[asked], axis=1)[:, :5]), "the five nearest of every test graph are solved"


def test_repetitions_on_single_data_sets(mutag: GraphCollection) -> None:
    where = CellContext("t", "tu/mutag", mutag, 0, 3, runtime.start("serial"))
    assert {c.seed for c in task.cells(params(), where)} == {0, 1, 2}
    few = params(seeds_of={"tu/mutag": 2, "tu/proteins": 1}, max_graphs_of={"tu/mutag": 24, "tu/proteins": 25})
    where = CellContext("t", "tu/mutag", mutag, 0, 3, runtime.start("serial"))
    assert {c.seed for c in task.cells(few, where)} == {0, 1}
    assert len(task._collection(few, where).graphs) == 24


def test_tuning_on_the_test_graphs_is_never_worse_and_only_where_asked(mutag: GraphCollection) -> None:
    where = context(mutag)
    for asked in (False, True):
        given = params(tuned_on_test=asked, baselines=[])
        out = task.run(given, task.cells(given, where)[0], where)
        assert ("tuned_on_test" in out.metrics) is asked
    assert out.metrics["tuned_on_test"] >= out.metrics["accuracy"]


@pytest.mark.ray
def test_serial_equals_ray(mutag: GraphCollection, ray_engine: Runtime) -> None:
    given = params(epsilons=[4.0], encoders=["multi-bit"], baselines=[])
    numbers = []
    for engine in (runtime.start("serial"), ray_engine):
        where = CellContext("t", "tu/mutag", mutag, 0, 1, engine)
        cell = next(c for c in task.cells(given, where) if c.method == "local_dp")
        numbers.append(task.run(given, cell, where))
    assert numbers[0].metrics == numbers[1].metrics
    assert numbers[0].releases == numbers[1].releases


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilons": [0.0]},
        {"epsilons": ["1/m"]},
        {"epsilons": [-1.0]},
        {"encoders": ["none"]},
        {"folds": 1},
        {"methods": [{"method": "local_dp", "epsilons": [0]}]},
    ],
)
def test_bad_settings_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        params(**bad)


def test_one_graph_is_not_a_collection(library: Graph) -> None:
    with pytest.raises(ScenarioError, match="needs a collection"):
        task.cells(params(), context(library))


def test_more_clients_than_graphs_is_refused(mutag: GraphCollection) -> None:
    where, given = context(mutag), params(partition={"partition": "dirichlet", "clients": 50})
    with pytest.raises(Exception, match="would be empty"):
        task.plan(given, task.cells(given, where)[-1], where)


def test_weights_by_degree_where_degrees_may_be_read(mutag: GraphCollection) -> None:
    """Raw rows and rows in clear weigh nodes by degree; an encoded release must not: its degrees are private."""
    changes: dict[str, Any] = {"baselines": ["GW(A)"], "epsilons": [4.0, np.inf], "encoders": ["multi-bit"]}
    changes["methods"] = [
        {"method": "local_dp", "rounds": 2, "hidden": 4, "label": "m", "optimiser": "adam", "learning_rate": 0.1}
    ]
    where, means, topology = {}, {}, {}
    for weights in ("uniform", "degree"):
        given, where[weights] = params(**changes, weights=weights), context(mutag)
        cells = [c for c in task.cells(given, where[weights]) if c.method == "local_dp"]
        means[weights] = {c.epsilon: task.run(given, c, where[weights]).metrics["gw_mean"] for c in cells}
        split = task._dealt(given, 0, where[weights])[0]
        collection = task._collection(given, where[weights])
        wanted = (0.5, gromov.GromovOptions(), where[weights], split, None, given.weights)
        topology[weights] = graphs.of_row("GW(A)", collection, *wanted)[0]
        spaces = [metric_space.from_topology(g.adjacency, weights) for g in collection.graphs[:2]]  # type: ignore[arg-type]
        assert topology[weights][0, 1] == gromov.solve_pairs(spaces, np.array([[0, 1]])).value[0]
    assert means["uniform"][4.0] == means["degree"][4.0]
    assert means["uniform"][np.inf] != means["degree"][np.inf]
    assert not np.array_equal(topology["uniform"], topology["degree"])


def test_constant_embeddings_are_compared_as_the_others(mutag: GraphCollection) -> None:
    """Under the cosine, rows of bits have other distances than under the Euclidean one, and so have constant ones."""
    found = []
    for metric in ("euclidean", "cosine"):
        given, where = params(baselines=[], metric=metric), context(mutag)
        cell = next(c for c in task.cells(given, where) if c.method == graphs.CONSTANT)
        task.run(given, cell, where)
        found.append(where.cache["constant", *cell.path[:-1]][0])
    assert not np.allclose(*found)
