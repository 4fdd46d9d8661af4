"""What every method must hold in its file, and what nobody else may say of it; what it must do is in test_situations.py."""

import ast
import dataclasses
import inspect
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

import fedgraph
import fedgraph.methods
from fedgraph import plugins
from fedgraph.errors import DataError, ScenarioError
from fedgraph.federation import Federation
from fedgraph.methods.base import Budget, method_kinds
from fedgraph.privacy import settle
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Unit, Viewer
from fedgraph.tasks.base import cell_training
from fedgraph.types import Graph
from tests.public_facts import public_facts
from tests.trainings import deal, planned

KIND_OF = {"classifier": ("predict",), "embedder": ("answers", "in_clear"), "linker": ("scores",)}
PROTOCOL_OF = {
    "classifier": method_kinds.ClassifierMethod,
    "embedder": method_kinds.EmbedderMethod,
    "linker": method_kinds.LinkerMethod,
}

LIMITS = {"gap_node": "limit", "sage_node": "limit", "heter_poisson": "degree"}  # its setting


@pytest.mark.parametrize("name", plugins.names("methods"))
def test_the_file_holds_the_contract(name: str) -> None:
    module = plugins.load("methods", name)
    assert "@" in module.REFERENCE
    wanted = PROTOCOL_OF[module.OFFERS.kind]
    for function in ("plan", "start", "prepare", "client", "server", *KIND_OF[module.OFFERS.kind]):
        here = list(inspect.signature(getattr(module, function)).parameters)
        assert here == list(inspect.signature(getattr(wanted, function)).parameters)[1:], f"{name}.{function}"
    for key, field in module.Params.model_fields.items():
        assert field.description, f"{name}.Params.{key} says nothing about itself"


@pytest.mark.parametrize("name", [n for n in LIMITS if n in plugins.names("methods")])
def test_an_enforced_limit_is_stated_and_refused_where_the_data_break_it(name: str, library: Graph) -> None:
    """And where it holds, nothing is cut."""
    _, partition, facts = deal(library, "inductive", Viewer.SERVER)
    method, held = method_kinds.load(name), partition.subgraphs[0]
    for limit in (60, 2):
        plan = method.plan(method.Params(cap="limit", **{LIMITS[name]: limit}), facts, Budget(2.0, 1e-3))
        assert plan.guarantee.protection.degree_limit == limit
        if limit == 60:
            method.prepare(plan, held)
            continue
        with pytest.raises(DataError, match="have more than the stated limit of 2; allowed"):
            method.prepare(plan, held)


def test_overlapping_clients_compose_per_node(library: Graph) -> None:
    """The worst node of pure ε-LDP encoders pays for every client that holds it (or a tighter valid bound)."""
    plan, partition, _ = planned("local_dp", 0, Trust.OWN_CLIENT, library, 3.0)
    holders = np.asarray(partition.holdings(library.num_nodes).sum(axis=0)).ravel()
    worst = plan.provable("embedding").epsilon
    assert worst <= 3.0 * holders.max() + 1e-9
    assert worst > 3.0 * holders.max() * 0.7
    pure = replace(plan.guarantee, delta=0.0, holdings=partition.holdings(library.num_nodes))
    assert settle.of_events(pure, plan.declared("embedding")).price.epsilon == pytest.approx(3.0 * holders.max())
    assert plan.provable("model").epsilon == np.inf


def test_a_plan_of_a_unit_that_is_not_offered_is_refused(library: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    method = method_kinds.load("features")
    monkeypatch.setattr(method, "OFFERS", dataclasses.replace(method.OFFERS, units=(Unit.EDGE,)))
    facts = public_facts(library.num_nodes, library.num_features, 4, (library.num_nodes,), Viewer.SERVER, public_graph=library)
    with pytest.raises(ScenarioError, match=r"the plan of features protects a unit .node.; OFFERS\.units says: edge"):
        cell_training.plan(method, method.Params(), facts, Budget(1.0, 1e-3), cast(Federation, None))


# where a method is written by name for a reason: rows of a published table; the example in a docstring; a check
ROOMS_WITHOUT_NAMES = ("attacks", "audit", "federation", "library.py", "runs", "scenario", "tasks", "worlds")


def test_no_room_names_a_method() -> None:
    names, found = set(plugins.names("methods")) - {"features"}, []
    root = Path(fedgraph.__file__).parent
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root)
        if place.parts[0] not in ROOMS_WITHOUT_NAMES:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        defaults = {
            id(n) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for d in f.args.defaults for n in ast.walk(d)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and node.value in names and id(node) not in defaults:
                found.append(f"{place}:{node.lineno}: {node.value!r}")
    assert not found, found


def test_a_server_that_deviates_is_trusted_only_where_any_broadcast_is_priced() -> None:
    for name in plugins.names("methods"):
        offers = method_kinds.load(name).OFFERS
        why = method_kinds.explain_misfit(name, offers.kind, offers.situations[0].given, [Trust.ACTIVE_SERVER])
        assert (why is None) == offers.any_broadcast, name
        assert why is None or "follows the protocol" in why or "protects itself" in why, name
