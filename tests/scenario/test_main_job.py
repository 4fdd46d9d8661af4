"""The main job asks everything that it promises, and every row that claims privacy has a finite provable ε."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from fedgraph import plugins, runtime
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Unit, Viewer
from fedgraph.scenario import read
from fedgraph.scenario.read import ScenarioTask
from fedgraph.tasks.base import Cell, CellContext
from fedgraph.tasks.node_classification import protocols
from fedgraph.types import Graph

MAIN = Path(__file__).parents[2] / "scenarios" / "citeseer.yaml"
PUBLIC = MAIN.with_name("what_is_public.yaml")
WANTED = {
    "node-level": {"Features", "DPAR EM0", "DPAR EM1", "DPAR GM", "GAP-NDP", "SAGE-NDP", "MLP-DP", "GCN, nothing private"},
    "edge-level": {"GAP-EDP", "GCON", "SAGE-EDP", "LPGNN", "own edges, nothing released", "MLP, no edges"},
}
UNITS = {"node-level": Unit.NODE, "geometry": Unit.GRAPH}


def small(label: str, graph: Graph) -> tuple[ScenarioTask, list[Cell], CellContext]:
    """The task on a small graph: fewer clients, everything else as it is."""
    settings = next(t for t in read.from_file(PUBLIC if label.endswith("public") else MAIN).tasks if t.label == label)
    partition = settings.params.partition | {"clients": 20 if settings.kind == "graph_clustering" else 3}
    given = settings.params.model_copy(update={"partition": partition})
    context = CellContext(settings.label, "d", graph, 0, 1, runtime.start("serial"))
    cells = plugins.load("tasks", settings.kind).cells(given, context)
    return ScenarioTask(settings.label, settings.kind, given), cells, context


def test_what_is_public_is_asked_three_times() -> None:
    """The test graph, another set of nodes, nothing."""
    asked = [t.params.public for t in read.from_file(PUBLIC).tasks]
    assert [protocols.name_of(p) for p in asked] == ["test-graph", "share 0.1", "nothing"]


@pytest.mark.parametrize("label", ["node-level", "node-level, nothing public", "edge-level", "geometry"])
def test_every_row_is_there_and_has_a_finite_provable_epsilon_where_it_claims_privacy(label: str, library: Graph) -> None:
    """For everything that it releases, at most its target, and with its unit said."""
    settings, cells, context = small(label, library)
    if label in WANTED:
        private = [c for c in cells if c.variant in WANTED[label]]
        assert {c.variant for c in private} == WANTED[label]
        assert {Trust.CURATOR, Trust.SUMS, Trust.OWN_CLIENT} <= {c.world.trust for c in cells}
        assert {c.epsilon for c in private if c.world.trust is Trust.OWN_CLIENT} == {1.0, 4.0, 8.0, math.inf}
    nobody = [c for c in cells if c.method == "lpgnn"]
    assert {c.world.trust for c in nobody} == ({Trust.NOBODY} if label == "edge-level" else set())
    assert len(nobody) == (4 if label == "edge-level" else 0), "one row, whatever the settings"
    module = plugins.load("tasks", settings.kind)
    checked, in_clear = 0, set()
    for cell in cells:
        plan = module.plan(settings.params, cell, context)
        if plan is None or not math.isfinite(cell.epsilon) or cell.method == "constant embedding":
            continue
        found, protection = plan.provable().epsilon, plan.guarantee.protection
        if math.isinf(found):
            in_clear.add(cell.variant.split(" · ")[0])
            continue
        checked += 1
        assert found <= cell.epsilon * (1 + 1e-6), cell.key
        assert protection.unit is UNITS.get(label, protection.unit)
        # CiteSeer has nodes with 99 neighbours: with a promised degree of 10 a row's ε would be ∞ there
        assert protection.promised_degree is None or not label.startswith("node-level"), cell.key
        assert (protection.viewer is Viewer.WORLD) or cell.method != "lpgnn"
    assert checked >= (4 if label.endswith("public") else 11)
    assert in_clear <= ({"FedAvg in clear"} if label == "geometry" else set()), "only the named row may be without a guarantee"
