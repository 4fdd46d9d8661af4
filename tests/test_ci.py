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


def test_what_changed_since_main_or_a_base_that_is_given(tmp_path: Path) -> None:
    clone = Clone(tmp_path)
    first = clone.commit("fedgraph/data/tu.py", hours_ago=8)
    clone.commit("fedgraph/learning/whole_graph.py", hours_ago=7)
    clone.commit("docs/index.md")
    assert clone.changed() == ""
    assert clone.changed(FEDGRAPH_BASE=first) == "learning"
    assert clone.changed(FEDGRAPH_BASE="0" * 40) == "", "a base that is not there is none"
    clone.git("checkout", "-qb", "other")
    clone.commit("fedgraph/learning/whole_graph.py")
    clone.commit("README.md")
    assert clone.changed() == "learning"
    clone.commit("zoo/fedgraph_zoo/attacks/rmia.py", "zoo/README.md", "scenarios/card.yaml")
    clone.write("fedgraph/methods/gap.py")  # not committed yet
    assert clone.changed() == "attacks,attacks/rmia,learning,methods,methods/gap,scenarios/card"


def test_a_history_of_this_hour_asks_for_everything(tmp_path: Path) -> None:
    new = Clone(tmp_path)
    new.git("commit", "--amend", "-qm", "just now")
    assert new.changed() == "all"


def test_a_release_and_its_version_ask_for_nothing_that_did_not_change(tmp_path: Path) -> None:
    clone, project = Clone(tmp_path), tmp_path / "pyproject.toml"
    project.write_text('version = "1.0.dev0"\ndependencies = ["torch>=2.4"]\n', encoding="utf-8")
    clone.commit(hours_ago=7)
    project.write_text('version = "1.0"\ndependencies = ["torch>=2.4"]\n', encoding="utf-8")
    assert clone.changed() == ""
    clone.commit("fedgraph/learning/whole_graph.py")
    assert clone.changed() == "learning"
    clone.git("tag", "v1.0")
    assert clone.changed() == "", "a clone of the release"
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


def dealt(pytestconfig: pytest.Config, items: list[Item], asked: str) -> int:
    """How many are left out; the others are put in order."""
    left_out: list[Item] = []
    config = SimpleNamespace(
        hook=SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items)), option=SimpleNamespace(markexpr=asked)
    )
    conftest = pytestconfig.pluginmanager.get_plugin(str(Path(__file__).parent / "conftest.py"))
    conftest.pytest_collection_modifyitems(config, items)  # type: ignore[union-attr]
    return len(left_out)


@pytest.mark.parametrize(("rooms", "left_out"), [("learning,data", 0), ("data", 1), ("", 1), ("all", 0)])
def test_rooms_choose_tests_of_quality_rays_come_first_and_who_shares_a_run_stays_together(
    rooms: str, left_out: int, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    """Then files with slow tests, where these are asked for, and long rooms."""
    monkeypatch.setenv("FEDGRAPH_QUALITY", rooms)
    slow = {
        "z.py::quality": [pytest.mark.quality("methods", "learning")], "tests/privacy/a.py::x": [], "tests/tasks/b.py::x": [],
        "b.py::own": [pytest.mark.ray("own"), pytest.mark.slow], "b.py::quick": [], "c.py::shared": [pytest.mark.ray],
        "tests/models/c.py::x": [], "tests/models/d.py::x": [],
    }  # fmt: skip
    for asked, first in (("not gpu", ["b.py::quick"]), ("not slow", [])):
        items = [Item(name, tuple(marks)) for name, marks in slow.items()]
        assert dealt(pytestconfig, items, asked) == left_out
        last = [name for name in ("z.py::quality", "tests/privacy/a.py::x", "b.py::quick") if name not in first]
        order = [
            "c.py::shared",
            "b.py::own",
            *first,
            "tests/models/c.py::x",
            "tests/models/d.py::x",
            "tests/tasks/b.py::x",
            *last,
        ]
        assert [item.nodeid for item in items] == [name for name in order if not left_out or name != "z.py::quality"]
        groups = {item.nodeid: item.groups for item in items}
        assert groups["c.py::shared"] == groups["b.py::own"] == ["ray"]
        assert groups["tests/models/c.py::x"] == groups["tests/models/d.py::x"] == ["tests/models"]
        assert groups["b.py::quick"] == ["b.py"]


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
