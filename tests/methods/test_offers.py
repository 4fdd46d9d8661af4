"""Nothing names a method but its file: a method of the user's own is found wherever the shipped ones are."""

from __future__ import annotations

import ast
import dataclasses
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

import fedgraph
import fedgraph.methods
from fedgraph import plugins
from fedgraph.attacks import gradient_inversion
from fedgraph.commands.base import main
from fedgraph.errors import ScenarioError
from fedgraph.federation import Federation
from fedgraph.methods.base import Budget, method_kinds
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Unit, Viewer
from fedgraph.scenario import schema
from fedgraph.tasks.base import cell_training, grid
from fedgraph.types import Graph
from tests.public_facts import public_facts

NAME = "of_my_own"
METHOD = f'''
"""Mine: a method that nobody else has heard of."""
import dataclasses

import fedgraph.methods.features as model
from fedgraph.attacks.base.evidence import features as read

globals().update({{name: value for name, value in vars(model).items() if not name.startswith("__")}})
OFFERS = dataclasses.replace(model.OFFERS, observe=read.observe, ignores_budget={{"model": "mlp"}})


def plan(params, facts, budget):
    return dataclasses.replace(model.plan(params, facts, budget), method={NAME!r})
'''


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A method file in a folder of the user's own."""
    home = tmp_path_factory.mktemp("methods")
    (home / f"{NAME}.py").write_text(textwrap.dedent(METHOD))
    fedgraph.methods.__path__.append(str(home))
    plugins.forget()
    yield NAME
    fedgraph.methods.__path__.remove(str(home))
    plugins.forget()


def plan_of(name: str, graph: Graph, **settings: object):  # type: ignore[no-untyped-def]
    facts = public_facts(graph.num_nodes, graph.num_features, graph.num_classes, (graph.num_nodes,), Viewer.SERVER)
    method = method_kinds.load(name)
    return method.plan(method.Params(**settings), facts, Budget(2.0, 1e-3))


def test_a_method_of_ones_own_is_found_wherever_shipped_ones_are(
    own: str, library: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Listed, in the schema, named among those that can, read by attacks, and compared."""
    assert main(["ls", "methods"]) == 0
    assert own in capsys.readouterr().out
    assert f"'const': {own!r}" in str(schema.whole())
    assert own in (method_kinds.explain_misfit("local_dp", "classifier", "inductive") or "")
    assert own in method_kinds.list_names(lambda offers: offers.partial_rounds)
    assert grid.ignores_budget({"method": own, "model": "mlp"})
    assert not grid.ignores_budget({"method": own, "model": "logistic"})
    assert gradient_inversion.refuses(plan_of(own, library, steps=2, projection="none")) is None
    methods = [{"method": own, "steps": 2, "projection": "none", "label": "mine"}]
    run = fedgraph.compare(library, methods, [4], ["curator"], out=tmp_path / "out")
    assert [row.head.method for row in run.rows] == [own]


def test_a_plan_of_a_unit_that_is_not_offered_is_refused(library: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    method = method_kinds.load("features")
    monkeypatch.setattr(method, "OFFERS", dataclasses.replace(method.OFFERS, units=(Unit.EDGE,)))
    facts = public_facts(library.num_nodes, library.num_features, 4, (library.num_nodes,), Viewer.SERVER, public_graph=library)
    with pytest.raises(ScenarioError, match=r"the plan of features protects a unit .node.; OFFERS\.units says: edge"):
        cell_training.plan(method, method.Params(), facts, Budget(1.0, 1e-3), cast(Federation, None))


# where a method is written by name for a reason: rows of a published table; the example in a docstring; a check
ROOMS_WITHOUT_NAMES = ("attacks", "audit", "federation", "library.py", "runs", "scenario", "tasks", "worlds")


def test_no_room_names_a_method() -> None:
    names, found = set(plugins.names("methods")) - {NAME, "features"}, []
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
