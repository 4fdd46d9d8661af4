"""How released embeddings are compared: what each comparison can see, what it costs, and what it finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedgraph import runtime
from fedgraph.cells.store import CellStore
from fedgraph.comparison import gromov
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Assumption, Unit
from fedgraph.report.sections.base import SectionRecords, build_sections
from fedgraph.tasks import graph_clustering as task
from fedgraph.tasks.base import Cell, CellContext, graphs
from fedgraph.types import Graph
from fedgraph.worlds.world import world_of_trust

ROWS: list[dict[str, Any]] = [
    {"label": "public", "training": "public", "unit": "graph", "compare": ["gw", "fgw", "mean"], "public_steps": 60},
    {"label": "noisy", "training": "dp_sgd", "unit": "graph", "projection": 8, "rounds": 2, "compare": ["mean"]},
    {"label": "largest", "training": "none", "unit": "graph", "release": "labels", "pooled_by": "response", "epsilons": [4, 8]},
    {"label": "counts", "training": "none", "unit": "node", "release": "labels", "epsilons": [8, "inf"]},
]


def params(**changes: Any) -> task.Params:
    given: dict[str, Any] = {
        "methods": [{"method": "local_dp", "hidden": 4, **row} for row in ROWS],
        "partition": {"partition": "ego", "clients": 24, "hops": 1},
        "epsilons": [8.0],
        "public_share": 0.1,
        "classify": True,
        "num_init": 1,
        "max_iterations": 3,
    }
    return task.Params(**(given | changes))


def context(graph: Graph, seeds: int = 1) -> CellContext:
    return CellContext("t", "d", graph, 0, seeds, runtime.start("serial"))


def test_every_row_is_private_for_everything_that_it_releases(library: Graph, tmp_path: Path) -> None:
    """At a finite target: finite, provable, at most the target, unit and assumptions said; and the report names each row."""
    given, where = params(), context(library)
    cells = task.cells(given, where)
    assert len({c.key for c in cells}) == len(cells)
    store = CellStore(tmp_path)
    found = {}
    for cell in cells:
        out = found[cell.variant, cell.epsilon] = task.run(given, cell, where)
        store.save(out)
        assert out.account is not None
        if cell.method == "local_dp" and np.isfinite(cell.epsilon):
            assert 0.5 * cell.epsilon < out.epsilon_provable <= cell.epsilon
            assert Assumption.GRAPH_LABELS_PUBLIC in out.account.protection.assumptions
            unit = Unit.NODE if cell.variant.startswith("counts") else Unit.GRAPH
            assert out.account.protection.unit is unit
            assert 0 <= out.metrics["accuracy"] <= 1
    noisy = found["noisy · mean", 8.0]
    assert set(noisy.paths) == {"model", "embedding"}
    assert max(noisy.paths.values()) < noisy.epsilon_provable
    loaded = [store.load(cell) for cell in cells]
    entries, artefacts = tuple(loaded), tuple(dict(f.artefacts) for f in loaded)
    made = build_sections(SectionRecords("t", "graph_clustering", "t", "d", given.model_dump(), entries, artefacts), None)
    names = [row[0] for row in made.tables[0].rows]
    assert {cell.variant for cell in cells if cell.variant not in ("default", "baseline")} <= {
        name.split(",")[0] for name in names
    }


def test_histograms_find_classes_that_gromov_wasserstein_cannot_see(library: Graph) -> None:
    given, where = params(partition={"partition": "ego", "clients": 60, "hops": 1}), context(library)
    ari = {}
    for cell in task.cells(given, where):
        if cell.variant in ("largest", "public · gw", "public") and cell.epsilon == 8.0:
            ari[cell.variant] = task.run(given, cell, where).metrics["ari"]
    assert ari["largest"] > 0.5
    assert ari["largest"] > ari["public"] + 0.2


def test_permuting_the_classes_changes_nothing_for_gw_and_everything_for_the_others() -> None:
    """Two graphs whose rows point to different classes: at distance 0 for GW only."""
    rows = np.eye(3)[[0, 0, 1]]
    received = [rows, rows[:, [1, 2, 0]]]
    how_many = task.Clustering(2, 1, 2)
    cell = Cell("t", "d", "m", "v", world_of_trust(Trust.OWN_CLIENT), 1.0, "provable", 0)
    where = CellContext("t", "d", None, 0, 1, runtime.start("serial"))
    nothing: list[Any] = [None, None]
    found = {}
    for how, alpha in (("gw", None), ("fgw", 0.5)):
        made = graphs.embedded_spaces(received, "euclidean", nothing, "embedding" if how == "fgw" else None)
        options = gromov.GromovOptions(alpha=alpha)
        found[how] = task.compare_spaces(made, options, how_many, cell, where).distances[0, 1]
    assert found["gw"] == pytest.approx(0, abs=1e-9)
    assert found["fgw"] > 0.3
    assert task.compare_vectors(received, how_many, cell, where).distances[0, 1] > 0.3


def test_accuracy_needs_labels_that_distances_explain() -> None:
    rng, truth = np.random.default_rng(0), np.repeat([0, 1, 2], 20)
    apart = (truth[:, None] != truth[None, :]) + 0.05 * rng.random((60, 60))
    apart = apart + apart.T
    np.fill_diagonal(apart, 0)
    noise = rng.random((60, 60))
    assert task.accuracy_of_folds(apart, truth, np.random.default_rng(1))["accuracy"] == 1.0
    assert task.accuracy_of_folds(noise + noise.T, truth, np.random.default_rng(1))["knn5"] < 0.6
    assert task.accuracy_of_folds(apart[:4, :4], truth[:4], rng) == {}


def test_public_nodes_are_held_by_no_client(library: Graph) -> None:
    given, where = params(), context(library)
    public, partition = (
        task.draw_public(given, 0, where),
        task.deal(given, 0, where),
    )
    assert public is not None
    assert public.num_nodes == round(0.1 * library.num_nodes)
    held = np.unique(np.concatenate([s.nodes for s in partition.subgraphs]))
    rows = {row.tobytes() for row in library.features[held].toarray()}
    assert sum(row.tobytes() in rows for row in public.features.toarray()) < 3, "public nodes should not be those of clients"
