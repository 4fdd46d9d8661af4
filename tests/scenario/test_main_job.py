"""The main job asks everything that it promises, and every row that claims privacy has a finite provable ε."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from fedgraph import data, plugins, runtime
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Unit, Viewer
from fedgraph.scenario import read
from fedgraph.scenario.read import ScenarioTask
from fedgraph.tasks.base import Cell, CellContext
from fedgraph.tasks.node_classification import protocols
from fedgraph.types import Graph

MAIN = Path(__file__).parents[2] / "scenarios" / "citeseer.yaml"
NODE = {"Features", "DPAR EM0", "DPAR EM1", "DPAR GM", "GAP-NDP", "SAGE-NDP", "MLP-DP", "GCN, nothing private"}
EDGE = {"GAP-EDP", "GCON", "SAGE-EDP", "LPGNN", "own edges, nothing released", "MLP, no edges"}


PUBLIC = MAIN.with_name("what_is_public.yaml")


def task(label: str, path: Path = MAIN) -> ScenarioTask:
    return next(t for t in read.from_file(path).tasks if t.label == label)


def small(settings: ScenarioTask, graph: Graph) -> tuple[ScenarioTask, list[Cell], CellContext]:
    """The task on a small graph: fewer clients, everything else as it is."""
    partition = settings.params.partition | {"clients": 20 if settings.kind == "graph_clustering" else 3}
    given = settings.params.model_copy(update={"partition": partition})
    context = CellContext(settings.label, "d", graph, 0, 1, runtime.start("serial"))
    return (
        ScenarioTask(settings.label, settings.kind, given),
        plugins.load("tasks", settings.kind).cells(given, context),
        context,
    )


def test_every_method_and_every_trust_is_there(library: Graph) -> None:
    for label, wanted in (("node-level", NODE), ("edge-level", EDGE)):
        _, cells, _ = small(task(label), library)
        assert wanted <= {c.variant for c in cells}
        assert {Trust.CURATOR, Trust.SUMS, Trust.OWN_CLIENT} <= {c.world.trust for c in cells}
        private = [c for c in cells if c.variant in wanted and c.world.trust is Trust.OWN_CLIENT]
        assert {c.epsilon for c in private} == {1.0, 4.0, 8.0, math.inf}


def test_who_trusts_nobody_stands_under_no_curator(library: Graph) -> None:
    settings, cells, context = small(task("edge-level"), library)
    own = [c for c in cells if c.method == "lpgnn"]
    assert {c.world.trust for c in own} == {Trust.NOBODY}
    assert len(own) == 4, "one row, whatever the settings"
    module = plugins.load("tasks", settings.kind)
    assert module.plan(settings.params, own[0], context).guarantee.protection.viewer is Viewer.WORLD


def test_what_is_public_is_asked_three_times() -> None:
    """The test graph, another set of nodes, nothing."""
    asked = [t.params.public for t in read.from_file(PUBLIC).tasks]
    assert [protocols.name_of(p) for p in asked] == ["test-graph", "share 0.1", "nothing"]


@pytest.mark.parametrize("label", ["node-level", "node-level, nothing public", "edge-level", "geometry"])
def test_every_row_that_claims_privacy_has_a_finite_provable_epsilon(label: str, library: Graph) -> None:
    """For everything that it releases, at most its target, and with its unit said."""
    settings, cells, context = small(task(label, PUBLIC if label.endswith("public") else MAIN), library)
    module = plugins.load("tasks", settings.kind)
    checked, in_clear = 0, set()
    for cell in cells:
        plan = module.plan(settings.params, cell, context)
        if plan is None or not math.isfinite(cell.epsilon) or cell.method == "constant embedding":
            continue
        found = plan.provable().epsilon
        if math.isinf(found):
            in_clear.add(cell.variant.split(" · ")[0])
            continue
        checked += 1
        assert found <= cell.epsilon * (1 + 1e-6), cell.key
        assert plan.guarantee.protection.unit is {"node-level": Unit.NODE, "geometry": Unit.GRAPH}.get(
            label, plan.guarantee.protection.unit
        )
    assert checked >= (4 if label.endswith("public") else 11)
    assert in_clear <= ({"FedAvg in clear"} if label == "geometry" else set()), "only the named row may be without a guarantee"


@pytest.mark.dataset
def test_no_row_rests_on_a_promise_that_the_real_graph_breaks() -> None:
    """CiteSeer has nodes with 99 neighbours: a promised degree of 10 would make a row's ε ∞ there."""
    graph = data.load("planetoid/citeseer")
    assert isinstance(graph, Graph)
    settings = task("node-level")
    context = CellContext(settings.label, "planetoid/citeseer", graph, 0, 1, runtime.start("serial"))
    module = plugins.load("tasks", settings.kind)
    for cell in module.cells(settings.params, context):
        if cell.world.trust is Trust.CURATOR and cell.epsilon == 8.0 and cell.method != "nonprivate":
            plan = module.plan(settings.params, cell, context)
            promised = plan.guarantee.protection.promised_degree
            assert promised is None or int(np.max(graph.degrees)) <= promised, cell.key
