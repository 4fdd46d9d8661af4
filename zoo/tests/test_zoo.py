"""What holds for the whole zoo: it stands on fedgraph's public rooms, names its pages and papers, and is found by its name."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fedgraph import plugins
from fedgraph.models import model_file
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.report import page as report_page
from fedgraph.scenario import read
from fedgraph.types import Graph
from fedgraph_zoo.methods import progap_node
from tests.methods import test_evidence as evidence
from tests.methods.test_said import plan_of
from tests.test_randomness import sources

ZOO = Path(__file__).parents[1]
OFFERED = tomllib.loads((ZOO / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
METHODS, ATTACKS = (OFFERED[f"fedgraph.{room}"] for room in ("methods", "attacks"))
ROOMS = ("data", "documents", "errors", "learning", "methods", "privacy", "seeds", "types")
ROOMS_OF_ATTACKS = (*ROOMS, "attacks", "partition")


def files() -> list[Path]:
    return sorted((ZOO / "fedgraph_zoo").rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_a_file_imports_public_rooms_and_no_other_method() -> None:
    for path, name in ((file, name) for file in files() for name in set(imported(file)) - {"__future__.annotations"}):
        rooms = ROOMS_OF_ATTACKS if path.parent.name == "attacks" else ROOMS
        if name.startswith("fedgraph."):
            assert name.removeprefix("fedgraph.").startswith(rooms), (path, name)
        beside = name.startswith("fedgraph.methods.") and name.split(".")[2] in plugins.own_names("methods")
        other = beside or name.startswith("fedgraph_zoo.methods.")
        assert not other, f"{path}: a method knows its contract and no other method"
        assert not any(part.startswith("_") for part in name.split(".")), f"{path}: {name} is private"


def test_every_file_is_an_entry_point() -> None:
    for room, offered in (("methods", METHODS), ("attacks", ATTACKS)):
        stems = {path.stem for path in (ZOO / "fedgraph_zoo" / room).glob("*.py")} - {"__init__"}
        assert set(offered) == stems
        assert set(offered) <= set(plugins.usable(room)), "installed from another place? pip install -e ./zoo"
        assert not set(offered) & set(plugins.own_names(room))


def test_every_method_has_a_page_and_a_paper_and_every_attack_is_in_the_table() -> None:
    readme = (ZOO / "README.md").read_text(encoding="utf-8")
    for name in METHODS:
        page = (ZOO / "docs" / f"{name}.md").read_text(encoding="utf-8")
        for part in ("**Idea.**", "**Guarantee.**", "**What we found.**", "**Reference.**"):
            assert part in page, name
        assert f"(docs/{name}.md)" in readme
        papers = report_page.method(name)[1].lower()
        assert papers.count("doi = {") == papers.count("@") > 0, name
    assert not [name for name in ATTACKS if f"| `{name}`" not in readme]


def test_scenarios_parse() -> None:
    for path in sorted((ZOO / "scenarios").glob("*.yaml")):
        for quick in (False, True):
            assert read.from_file(path, quick=quick).scenario.name == path.stem


SEEDED = {  # drawn from streams that the caller names, or public, or after all noise
    "methods/blink.py _learnt", "methods/dpdgc.py _learnt", "methods/progap_node.py start", "methods/progap_node.py server",
}  # fmt: skip


def test_random_numbers_come_from_streams() -> None:
    root = ZOO / "fedgraph_zoo"
    found = [source for path in files() for source in sources(path, root)]
    assert {where for where, kind, _ in found if kind == "seeded"} == SEEDED
    assert {kind for _, kind, _ in found} == {"seeded"}


def test_a_models_file_holds_records_of_an_installed_package(library: Graph) -> None:
    plan = plan_of("progap_node", library, 1.0)
    again = model_file.parse(model_file.to_bytes(plan))
    assert isinstance(again.made, progap_node.Made)  # type: ignore[attr-defined]
    assert again.fingerprint == plan.fingerprint  # type: ignore[attr-defined]


def test_progap_at_node_level_is_publicly_disputed_and_says_so(library: Graph) -> None:
    for epsilon in (1.0, np.inf):
        assert any("IEEE S&P 2024, arXiv 2311.06888" in note for note in plan_of("progap_node", library, epsilon).notes)


@pytest.mark.parametrize("trust", ["sums", "own-client"])
def test_progaps_messages_are_read(library: Graph, trust: str, monkeypatch: pytest.MonkeyPatch) -> None:
    few = evidence.CLIENTS | {"attack": {"canaries": 40, "guesses": [1.0]}}
    method = {"method": "progap_node", "steps": 20, "hops": 1}
    sound = evidence.outcome(library, method, trust, 1.0, **few)
    honest = GaussianNoise.apply
    monkeypatch.setattr(GaussianNoise, "apply", lambda self, v, rng: honest(GaussianNoise(self.std / 50), v, rng))
    broken = evidence.outcome(library, method, trust, 1.0, **few)
    assert "read in the released values" in sound.facts.attack.what
    assert sound.epsilon_measured <= sound.epsilon_provable <= 1.0
    assert broken.metrics["attack_auc"] > 0.75
