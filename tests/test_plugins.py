"""A file is a plugin, so is what an installed package offers, and a misspelt one is suggested."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fedgraph.partition
from fedgraph import plugins
from fedgraph.errors import FedgraphError, ScenarioError
from fedgraph.methods.base import method_kinds
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.scenario import schema
from fedgraph.tasks import node_classification
from fedgraph.tasks.base import CellContext
from fedgraph.types import Graph

Offer = Callable[..., None]
SOUND = "from fedgraph.methods.features import *\n"


@pytest.mark.parametrize("package", plugins.PLUGIN_CONTRACTS)
def test_every_file_holds_the_contract_of_its_room_and_furniture_is_none(package: str) -> None:
    names = plugins.names(package)
    assert {"methods": {"features", "local_dp", "nonprivate"}}.get(package, set()) <= set(names)
    assert not any(name == "base" or name.startswith("_") for name in names)
    for name in names:
        plugins.load(package, name)


def test_a_file_that_lacks_a_part_is_named_before_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fedgraph.partition, "__path__", [*fedgraph.partition.__path__, str(tmp_path)])
    try:
        for name, text, says in (
            ("stripes", "class Params: ...\n", r"stripes lacks PARTITION; the docstring of fedgraph\.partition says"),
            ("broken", "import math\nimport nowhere_at_all\n", r"n/broken cannot be imported: .*broken\.py, line 2\)"),
        ):
            (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
            plugins.forget()
            with pytest.raises(ScenarioError, match=says):
                plugins.load("partition", name)
    finally:
        monkeypatch.undo()
        plugins.forget()


@pytest.fixture
def offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Offer]:
    """Installs a distribution that offers one plugin, with the text of its module."""
    monkeypatch.syspath_prepend(str(tmp_path))
    modules: list[str] = []

    def install(distribution: str, name: str, text: str, room: str = "methods", value: str = "") -> None:
        module = distribution.replace("-", "_")
        modules.append(module)
        (tmp_path / f"{module}.py").write_text(text, encoding="utf-8")
        meta = tmp_path / f"{module}-1.2.dist-info"
        meta.mkdir()
        (meta / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n", encoding="utf-8")
        (meta / "entry_points.txt").write_text(f"[fedgraph.{room}]\n{name} = {value or module}\n", encoding="utf-8")
        plugins.forget()

    yield install
    monkeypatch.undo()
    for module in modules:
        sys.modules.pop(module, None)
    plugins.forget()


@pytest.mark.parametrize("room", plugins.PLUGIN_CONTRACTS)
def test_an_installed_package_offers_one_to_every_room_and_is_imported_only_when_asked(offer: Offer, room: str) -> None:
    parts = plugins.PLUGIN_CONTRACTS[room]
    text = "".join("class Params(Settings): ...\n" if part == "Params" else f"{part} = {{}}\n" for part in parts)
    offer("acme-dp", "acme", SOUND if room == "methods" else f"from fedgraph.documents import Settings\n{text}", room)
    assert "acme" in plugins.names(room)
    assert plugins.source(room, "acme").name == "acme_dp.py"  # type: ignore[union-attr]
    assert "acme_dp" not in sys.modules
    assert ("acme-dp", "1.2") in plugins.distributions()
    assert ("acme_dp" in plugins.packages()) is (room == "methods")
    assert plugins.load(room, "acme").__name__ == "acme_dp"


def test_a_name_that_two_distributions_offer_is_an_error_that_names_both(
    offer: Offer, capsys: pytest.CaptureFixture[str]
) -> None:
    offer("acme-dp", "tree_votes", SOUND)
    offer("other-dp", "tree_votes", SOUND)
    offer("third-dp", "features", SOUND)
    both = r"'tree_votes' is offered by (acme-dp|other-dp) 1\.2 \(\w+\) and by (acme-dp|other-dp) 1\.2 \(\w+\)"
    with pytest.raises(ScenarioError, match=both):
        plugins.load("methods", "tree_votes")
    with pytest.raises(ScenarioError, match=r"'features' is offered by fedgraph itself and by third-dp 1\.2 \(third_dp\)"):
        plugins.load("methods", "features")
    assert "gcon" in method_kinds.list_names(lambda offers: offers.units), "others are as they were"
    assert capsys.readouterr().err.count("Left out: ") == 2


@pytest.mark.parametrize(
    ("text", "value", "says"),
    [
        ("raise ValueError('two\\nlines')\n", "", "cannot be imported: ValueError: two lines"),
        ("class It: ...\n", "acme_dp:It", "names no module; allowed: a module, such as 'acme_dp'"),
        (f"{SOUND}OFFERS = {{}}\n", "", r"OFFERS is a dict; allowed: base\.Offers"),
        (f"{SOUND}del predict\n", "", r"lacks predict; the docstring of fedgraph\.methods\.base says"),
    ],
)
def test_a_broken_package_gives_one_line_and_stops_nobody_else(
    offer: Offer, text: str, value: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    offer("acme-dp", "tree_votes", text, value=value)
    with pytest.raises(ScenarioError, match=says) as failure:
        plugins.load("methods", "tree_votes")
    assert "\n" not in str(failure.value)
    assert "acme-dp 1.2" in str(failure.value)
    assert "gcon" in method_kinds.list_names(lambda offers: offers.units)
    assert "tree_votes" not in str(schema.whole())
    assert capsys.readouterr().err.splitlines() == [f"Left out: {failure.value}"]


def test_an_error_names_the_line_of_an_installed_plugin_that_it_passed_last(offer: Offer) -> None:
    offer("acme-dp", "tree_votes", f"{SOUND}\ndef start(plan, rng):\n    return plan.nothing\n")
    found = {}
    for name in ("tree_votes", "features"):
        with pytest.raises(AttributeError) as failure:
            method_kinds.load(name).start(None, None)  # type: ignore[arg-type]
        found[name] = plugins.place_of(failure.value)
    assert found == {"tree_votes": " (acme_dp.py, line 4)", "features": ""}


def test_a_plan_that_has_the_name_of_another_method_is_refused(offer: Offer, library: Graph) -> None:
    offer("acme-dp", "tree_votes", SOUND)
    where = CellContext("t", library.name, library, root=5, seeds=1, runtime=SerialRuntime())
    for method, says in (("features", None), ("tree_votes", "the plan is named 'features': base.Plan's first argument")):
        params = node_classification.Params(methods=[{"method": method}], trust=["curator"], epsilons=[1.0], delta=1e-3)
        (cell,) = node_classification.cells(params, where)
        with pytest.raises(ScenarioError, match=says) if says else contextlib.nullcontext():
            node_classification.plan(params, cell, where)


RENAMED = f"""{SOUND}
from dataclasses import replace
from fedgraph.methods import features
plan = lambda *given: replace(features.plan(*given), method="tree_votes")
"""
RESTED = """
from fedgraph.privacy import Assumption
def plan(*given):
    made = features.plan(*given)
    protection = replace(made.guarantee.protection, assumptions=(KEPT))
    return replace(made, method="tree_votes", guarantee=replace(made.guarantee, protection=protection))
OFFERS = replace(features.OFFERS, reads=None)
"""


@pytest.mark.parametrize(
    ("text", "trust", "says"),
    [
        ("", "sums", None),
        ("plan = lambda *given: None", "curator", "plan of acme_dp gave a NoneType; allowed: a base.Plan"),
        ("start = lambda *given: None", "curator", r"start of tree_votes gave a NoneType; allowed: base\.State"),
        ("server = lambda *given: {}", "curator", r"server of tree_votes gave a dict; allowed: base\.State"),
        ("client = lambda *given: [1]", "curator", "client 0 gave a list; allowed: a dict of names and values"),
        ("server = lambda plan, state, inbox: inbox.each['votes']", "sums", r"sees sums only; allowed: inbox\.sums\['votes'\]"),
        (RESTED.replace("KEPT", ""), "curator", "does not state 'untuned'; allowed"),
        (RESTED.replace("KEPT", "Assumption.UNTUNED,"), "curator", "'public-nodes' or 'test-graph-public', and may read"),
    ],
)
def test_a_method_that_gives_something_else_is_told_what_is_allowed(
    offer: Offer, library: Graph, text: str, trust: str, says: str | None
) -> None:
    offer("acme-dp", "tree_votes", f"{RENAMED}{text}\n")
    where = CellContext("t", library.name, library, root=5, seeds=1, runtime=SerialRuntime())
    asked = {"methods": [{"method": "tree_votes"}], "trust": [trust], "protocol": "inductive", "epsilons": [1.0], "delta": 1e-3}
    params = node_classification.Params.model_validate(asked)
    (cell,) = node_classification.cells(params, where)
    with pytest.raises(FedgraphError, match=says) if says else contextlib.nullcontext():
        node_classification.run(params, cell, where)


@pytest.mark.skipif("blink" in plugins.names("methods"), reason="the zoo is installed")
def test_what_stands_in_the_zoo_is_said_where_it_is_not_installed() -> None:
    with pytest.raises(ScenarioError, match=r"method 'blink' stands in fedgraph-zoo: pip install \./zoo"):
        plugins.load("methods", "blink")
