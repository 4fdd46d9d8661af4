"""Clustering ego-networks: rows, prices over overlapping clients, what the server may use, and the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from fedgraph import data, runtime
from fedgraph.cells.store import CellStore
from fedgraph.comparison import gromov
from fedgraph.errors import ScenarioError
from fedgraph.privacy.ledger import Ledger
from fedgraph.privacy.units import Relation
from fedgraph.report.sections.base import SectionRecords, build_sections
from fedgraph.runtime.base import Runtime
from fedgraph.tasks import graph_clustering as task
from fedgraph.tasks.base import CellContext, graphs
from fedgraph.types import Graph


def params(**changes: Any) -> task.Params:
    given: dict[str, Any] = {
        "method": {"method": "local_dp", "rounds": 2, "hidden": 4},
        "partition": {"partition": "ego", "clients": 10, "hops": 1},
        "epsilons": ["1/n", 4.0, np.inf],
        "encoders": ["multi-bit", "gaussian-as-coded"],
        "num_init": 1,
        "max_iterations": 2,
    }
    return task.Params(**{key: value for key, value in (given | changes).items() if value is not None})


def context(graph: Any, seeds: int = 1, engine: str = "serial") -> CellContext:
    return CellContext("t", "d", graph, 0, seeds, runtime.start(engine))


def test_every_seed_has_the_rows_that_expose_size(library: Graph) -> None:
    cells = task.cells(params(), context(library, seeds=2))
    for seed in (0, 1):
        own = [c for c in cells if c.seed == seed]
        assert [c.method for c in own[:3]] == [graphs.SIZE, graphs.DEGREES, graphs.CONSTANT]
        assert [(c.variant, c.epsilon) for c in own[4:]] == [
            ("gaussian-as-coded/1/n", own[3].epsilon),
            ("encoded", 4.0),
            ("gaussian-as-coded/epsilon", 4.0),
            ("encoded", np.inf),
        ]
    assert len({c.key for c in cells}) == len(cells)
    readings = {(c.variant.split("/")[0], c.calibrated_by) for c in cells if c.method == "local_dp" and np.isfinite(c.epsilon)}
    assert readings == {("multi-bit", "provable"), ("encoded", "provable"), ("gaussian-as-coded", "published")}
    assert {c.seed for c in task.cells(params(seeds=1), context(library, seeds=2))} == {0}


def test_prices_add_up_over_the_clients_that_hold_a_node(library: Graph, tmp_path: Path) -> None:
    where, given = context(library), params()
    store, cells = CellStore(tmp_path), task.cells(given, where)
    held = task.deal(given, 0, where).holdings(library.num_nodes).sum(axis=0).max()
    assert held > 1, "the sampled ego-networks should overlap"
    for cell in cells:
        out = task.run(given, cell, where)
        store.save(out)
        if cell.method == "local_dp":
            assert out.facts.solver.minima is not None
            assert out.facts.solver.minima.careful, "few small graphs: the careful search is the default"
        assert {"ari", "nmi", "purity"} <= set(out.metrics)
        if cell.method == "local_dp":
            assert out.epsilon_provable == np.inf, "the model path is not protected"
            Ledger([out.account], out.releases)  # type: ignore[list-item]
        if cell.method == "local_dp" and cell.variant == "encoded" and cell.epsilon == 4.0:
            assert 4.0 < out.paths["embedding"] <= 4.0 * held * (1 + 1e-9), "more than one client's price, at most their sum"
            assert out.facts.worst_node_clients == held
            assert out.epsilon_published == 4.0
        if cell.method in (graphs.SIZE, graphs.CONSTANT):
            assert out.epsilon_provable == 0.0
            assert not out.releases
        if cell.method == graphs.DEGREES:
            assert out.epsilon_provable == np.inf
    found = [store.load(cell) for cell in cells]
    entries, artefacts = tuple(found), tuple(dict(f.artefacts) for f in found)
    made = build_sections(SectionRecords("t", "graph_clustering", "t", "d", given.model_dump(), entries, artefacts), None)
    assert [row[0].split(",")[0] for row in made.tables[0].rows][:2] == [graphs.SIZE, graphs.DEGREES]
    assert len(made.figures) >= 2


def test_constant_embeddings_are_the_same_whatever_the_graph_holds(library: Graph) -> None:
    """The leak-exposing row must see sizes only: other features and labels change nothing, other sizes do."""
    given = params(epsilons=[4.0, np.inf])
    blank = Graph(
        library.name,
        library.adjacency,
        library.features * 0,
        (library.labels + 1) % 4,
        library.num_classes,
        library.provenance,
        features_from_edges=False,
        columns_from_rows=False,
        nodes_from_edges=False,
    )
    found = []
    for graph in (library, blank):
        where = context(graph)
        cell = next(c for c in task.cells(given, where) if c.method == graphs.CONSTANT)
        found.append(task.run(given, cell, where).metrics["silhouette"])
    assert found[0] == found[1]


def test_without_encoding_the_geometry_is_that_of_the_embeddings(library: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """The distances kept for the report are those of a reference solver on what the server received."""
    where, given = context(library), params(epsilons=[np.inf])
    seen: list[Any] = []
    real = graphs.solve_all
    monkeypatch.setattr(graphs, "solve_all", lambda spaces, options, c: seen.append(spaces) or real(spaces, options, c))
    cell = task.cells(given, where)[-1]
    out = task.run(given, cell, where)
    which = gromov.all_pairs(10)
    reference = gromov.solve_pairs(seen[0], which, gromov.GromovOptions(solver="pot")).value
    kept = out.artefacts["distances"][which[:, 0], which[:, 1]]
    assert np.median(np.abs(kept - reference)) < 1e-6
    truth = [s.graph.labels[s.center] for s in task.deal(given, 0, where).subgraphs]
    assert np.array_equal(out.artefacts["truth"], truth)


@pytest.mark.ray
def test_serial_equals_ray(library: Graph, ray_engine: Runtime) -> None:
    given = params(epsilons=[4.0], encoders=["multi-bit"])
    numbers = []
    for engine in (runtime.start("serial"), ray_engine):
        where = CellContext("t", "d", library, 0, 1, engine)
        cell = next(c for c in task.cells(given, where) if c.method == "local_dp")
        numbers.append(task.run(given, cell, where))
    assert numbers[0].metrics == numbers[1].metrics
    assert numbers[0].releases == numbers[1].releases


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilons": [0]},
        {"epsilons": [-1]},
        {"epsilons": ["1/m"]},
        {"epsilons": [1, 1]},
        {"clusters": 1},
        {"methods": [{"method": "local_dp"}]},
        {"method": {"method": "local_dp", "compare": ["histogram"]}},
        {"method": {"method": "local_dp", "release": "labels", "compare": ["gw"]}},
        {"solver": "pot", "quality": "careful"},
        {"solver": "pot", "restarts": 1},
        {"method": {"method": "local_dp", "encoder": "none"}},
    ],
)
def test_bad_settings_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises((ValidationError, ValueError)):
        params(**bad)


def test_the_graphs_of_a_collection_are_clients_and_their_labels_are_unseen() -> None:
    where = context(data.load("tu/mutag", stand_in=True))
    spec = {"method": "local_dp", "training": "none", "hidden": 4, "compare": ["mean"]}
    given = params(methods=[spec], method=None, epsilons=[4.0, np.inf], encoders=["multi-bit"], max_graphs=40)
    held = task.deal(given, 0, where)
    assert held.disjoint
    assert all((s.graph.labels == -1).all() for s in held.subgraphs)
    for cell in task.cells(given, where):
        out = task.run(given, cell, where)
        assert {"ari", "purity"} <= set(out.metrics)
        if cell.method == "local_dp":
            own = out.epsilon_provable
            least = cell.epsilon if np.isinf(cell.epsilon) else 0.9 * cell.epsilon
            assert least <= own <= cell.epsilon, "each graph pays its own release and nothing else"
            assert out.account.protection.relation is Relation.GRAPH_REPLACE  # type: ignore[union-attr]


def test_what_cannot_be_clustered_is_refused(library: Graph) -> None:
    collection = data.load("tu/mutag", stand_in=True)
    for changes, says in ((({}), "training is fedavg"), ({"public_share": 0.1}, "public_share needs one graph")):
        with pytest.raises(ScenarioError, match=says):
            task.cells(params(**changes), context(collection))
    given = params(partition={"partition": "uniform", "clients": 4})
    with pytest.raises(ScenarioError, match="needs centres"):
        task.cells(given, context(library))


def test_metric_weights_and_map_are_settings(library: Graph, tmp_path: Path) -> None:
    """Weights by degree change rows in clear alone: the degrees of an encoded graph are private."""
    kept: dict[tuple[Any, ...], Any] = {}
    for changes in ({}, {"metric": "cosine"}, {"weights": "degree"}, {"map": "tsne"}):
        where, given = context(library), params(epsilons=[4.0, np.inf], encoders=["multi-bit"], **changes)
        for cell in task.cells(given, where)[-2:]:
            kept[(*changes.values(), cell.epsilon)] = task.run(given, cell, where).artefacts
    plain, clear = kept[(4.0,)]["distances"], kept[(np.inf,)]["distances"]
    assert not np.array_equal(kept["cosine", 4.0]["distances"], plain)
    assert np.array_equal(kept["degree", 4.0]["distances"], plain)
    assert not np.array_equal(kept["degree", np.inf]["distances"], clear)
    assert np.array_equal(kept["tsne", np.inf]["distances"], clear)
    assert not np.array_equal(kept["tsne", np.inf]["map"], kept[(np.inf,)]["map"])
    assert kept["tsne", np.inf]["map"].shape == (10, 2)
    store, cells = CellStore(tmp_path), task.cells(given, where)
    store.save(task.run(given, cells[-1], where))
    found = store.load(cells[-1])
    made = build_sections(
        SectionRecords("t", "graph_clustering", "t", "d", given.model_dump(), (found,), (dict(found.artefacts),)), None
    )
    assert any("t-SNE maps" in figure.caption for figure in made.figures)
