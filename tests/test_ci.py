"""Which tests of quality a change asks for, and to how many processes the suite is dealt."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "changed.py"
AUTHOR = {f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


class Clone:
    """A repository with one commit on ``main``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "FEDGRAPH_"))} | AUTHOR
        self.git("init", "-q", "-b", "main")
        self.commit("fedgraph/methods/gap.py", hours_ago=9)

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.folder, env=self.env, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def write(self, *names: str) -> None:
        for name in names:
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            with (self.folder / name).open("a", encoding="utf-8") as file:
                file.write("more\n")

    def commit(self, *names: str, hours_ago: float = 0.0) -> str:
        self.write(*names)
        self.git("add", "-A")
        when = {"GIT_COMMITTER_DATE": f"@{int(time.time() - 3600 * hours_ago)} +0000"}
        subprocess.run(["git", "commit", "-qm", "a change"], cwd=self.folder, env=self.env | when, check=True)
        return self.git("rev-parse", "HEAD")

    def changed(self, **env: str) -> str:
        command = [sys.executable, str(SCRIPT)]
        done = subprocess.run(command, cwd=self.folder, env=self.env | env, check=True, capture_output=True, text=True)
        return done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_a_history_of_this_hour_asks_for_everything(tmp_path: Path) -> None:
    new = Clone(tmp_path)
    new.git("commit", "--amend", "-qm", "just now")
    assert new.changed() == "all"


def test_the_zoos_methods_and_attacks_are_of_their_rooms_and_a_scenario_is_its_own(clone: Clone) -> None:
    clone.git("checkout", "-qb", "other")
    clone.commit("zoo/fedgraph_zoo/attacks/rmia.py", "zoo/README.md", "scenarios/card.yaml")
    assert clone.changed() == "attacks,attacks/rmia,scenarios/card"


def test_on_a_branch_everything_since_main_counts(clone: Clone) -> None:
    clone.git("checkout", "-qb", "other")
    clone.commit("fedgraph/learning/whole_graph.py")
    clone.commit("README.md")
    assert clone.changed() == "learning"
    clone.write("fedgraph/methods/gap.py")  # not committed yet
    assert clone.changed() == "learning,methods,methods/gap"


def test_a_base_that_is_given_goes_first(clone: Clone) -> None:
    first = clone.commit("fedgraph/data/tu.py", hours_ago=8)
    clone.commit("fedgraph/learning/whole_graph.py", hours_ago=7)
    clone.commit("docs/index.md")
    assert clone.changed() == ""
    assert clone.changed(FEDGRAPH_BASE=first) == "learning"
    assert clone.changed(FEDGRAPH_BASE="0" * 40) == "", "a base that is not there is none"


def test_a_release_and_its_version_ask_for_nothing_that_did_not_change(clone: Clone) -> None:
    project = clone.folder / "pyproject.toml"
    project.write_text('version = "1.0.dev0"\ndependencies = ["torch>=2.4"]\n', encoding="utf-8")
    clone.commit(hours_ago=7)
    project.write_text('version = "1.0"\ndependencies = ["torch>=2.4"]\n', encoding="utf-8")
    assert clone.changed() == ""
    clone.commit("fedgraph/learning/whole_graph.py")
    assert clone.changed() == "learning"
    clone.git("tag", "v1.0")
    assert clone.changed() == "", "a clone of the release"
    clone.write("fedgraph/methods/gap.py")
    assert clone.changed() == "methods,methods/gap"
    project.write_text('version = "1.0"\ndependencies = ["torch>=2.5"]\n', encoding="utf-8")
    assert clone.changed() == "all"


@dataclass
class Item:
    """What the suite's conftest asks of an item of pytest."""

    nodeid: str
    marks: tuple[pytest.MarkDecorator, ...] = ()
    groups: list[str] = field(default_factory=list)

    @property
    def path(self) -> str:
        return self.nodeid.partition("::")[0]

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return next((m.mark for m in self.marks if m.name == name), None)

    def add_marker(self, marker: pytest.MarkDecorator) -> None:
        self.groups.append(marker.args[0])


class Config:
    """Its own hook, which is told of items that are left out; the tests that are asked for stand in its option."""

    def __init__(self, asked: str) -> None:
        self.hook, self.left_out, self.option = self, 0, SimpleNamespace(markexpr=asked)

    def pytest_deselected(self, items: list[Item]) -> None:
        self.left_out += len(items)


@pytest.mark.parametrize(("rooms", "left_out"), [("learning,data", 0), ("data", 1), ("", 1), ("all", 0), (None, 0)], ids=str)
def test_rooms_choose_tests_of_quality_and_rays_come_first_in_one_group(
    rooms: str | None, left_out: int, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    if rooms is None:
        monkeypatch.delenv("FEDGRAPH_QUALITY", raising=False)
    else:
        monkeypatch.setenv("FEDGRAPH_QUALITY", rooms)
    conftest = pytestconfig.pluginmanager.get_plugin(str(Path(__file__).parent / "conftest.py"))
    config = Config("not gpu")
    items = [
        Item("a.py::quick"),
        Item("a.py::quality", (pytest.mark.quality("methods", "learning"),)),
        Item("b.py::own", (pytest.mark.ray("own"), pytest.mark.slow)),
        Item("b.py::quick"),
        Item("c.py::shared", (pytest.mark.ray,)),
    ]
    conftest.pytest_collection_modifyitems(config, items)  # type: ignore[union-attr]
    assert config.left_out == left_out
    expected = ["c.py::shared", "b.py::own", "b.py::quick", "a.py::quick", *(["a.py::quality"] if not left_out else [])]
    assert [item.nodeid for item in items] == expected
    assert [item.groups for item in items[:4]] == [["ray"], ["ray"], ["b.py"], ["a.py"]]


def test_files_that_share_a_run_stay_together_and_long_rooms_begin(pytestconfig: pytest.Config) -> None:
    """Where slow tests are left out, a file is not put first because of them."""
    conftest = pytestconfig.pluginmanager.get_plugin(str(Path(__file__).parent / "conftest.py"))
    names = ("tests/privacy/a.py::x", "tests/tasks/b.py::x", "tests/models/c.py::x", "tests/models/d.py::x")
    items = [Item(name, (pytest.mark.slow,) if "/b.py" in name else ()) for name in names]
    conftest.pytest_collection_modifyitems(Config("not slow"), items)  # type: ignore[union-attr]
    assert [item.nodeid for item in items] == [names[k] for k in (2, 3, 1, 0)]
    assert [item.groups for item in items] == [["tests/models"], ["tests/models"], ["tests/tasks/b.py"], ["tests/privacy/a.py"]]


@pytest.mark.parametrize(
    ("tag", "heading", "words"),
    [
        ("v1.0.0", "1.1.0 (2026-01-02)", "allowed: v1.1.0"),
        ("v1.1.0", "1.1.0 (unreleased)", "no line '## 1.1.0"),
        ("v1.1.0", "1.0.0 (2026-01-02)", "no line '## 1.1.0"),
    ],
)
def test_a_tag_that_does_not_fit_is_one_line(tag: str, heading: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.1.0"\n', encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n## {heading}\n\n- More.\n", encoding="utf-8")
    with pytest.raises(SystemExit, match=words):
        runpy.run_path(str(SCRIPT.parent / "notes.py"))["notes"](tag, tmp_path)


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="the suite runs in one process")
def test_a_file_is_dealt_to_one_process(request: pytest.FixtureRequest) -> None:
    """pytest-xdist 3.8 with pytest 9.2 deals every test by itself, in silence, and each process makes every fixture again."""
    assert request.node.nodeid.endswith("@tests/test_ci.py")
