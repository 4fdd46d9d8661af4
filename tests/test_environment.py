"""What the README promises of an environment: which Pythons install it, and that a run leaves its caller's process alone."""

from __future__ import annotations

import importlib.metadata
import json
import locale
import re
import signal
import sys
import threading
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import fedgraph
from fedgraph import commands
from fedgraph.errors import FedgraphError, RuntimeFailure, ScenarioError

HOME = Path(__file__).parents[1]
PROJECT = tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINS = {
    name.lower(): version
    for name, version in re.findall(r"^([\w.-]+)==(\S+)$", (HOME / "constraints.txt").read_text(encoding="utf-8"), re.M)
}
TINY = {
    "name": "tiny",
    "datasets": [{"name": "embedded/library"}],
    "runtime": {"engine": "serial"},
    "tasks": [
        {
            "task": "node_classification",
            "label": "t",
            "trust": ["curator"],
            "epsilons": [8.0],
            "methods": [{"method": "features", "model": "logistic", "steps": 2, "projection": 8}],
        }
    ],
}


def promised() -> list[str]:
    """The Pythons of the README's range, such as 3.11."""
    found = re.search(r"Python 3\.(\d+) to 3\.(\d+)", (HOME / "README.md").read_text(encoding="utf-8"))
    assert found is not None
    return [f"3.{minor}" for minor in range(int(found[1]), int(found[2]) + 1)]


def test_readme_and_classifiers_name_the_same_pythons() -> None:
    assert [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if "Python :: 3." in c] == promised()
    assert all(SpecifierSet(PROJECT["requires-python"]).contains(f"{python}.0") for python in promised())


def test_no_pin_excludes_a_python_that_the_readme_promises() -> None:
    """Of what is installed here in the version that is pinned; of others nothing is known."""
    known = 0
    for installed in importlib.metadata.distributions():
        name = installed.metadata["Name"].lower()
        if PINS.get(name) == installed.version.partition("+")[0]:
            known += 1
            allowed = SpecifierSet(installed.metadata["Requires-Python"] or "")
            assert [python for python in promised() if not allowed.contains(f"{python}.9")] == [], name
    if not known:
        pytest.skip("nothing is installed here in the version that is pinned")


def test_every_dependency_is_pinned_within_its_bounds() -> None:
    for needed in map(Requirement, [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["test"]]):
        assert needed.specifier.contains(PINS[needed.name.lower()]), needed


def test_a_run_leaves_locale_and_signals_of_its_caller_alone(tmp_path: Path) -> None:
    def mine(*_: object) -> None: ...

    before, word = signal.signal(signal.SIGTERM, mine), locale.setlocale(locale.LC_ALL)
    try:
        locale.setlocale(locale.LC_ALL, "C")
        fedgraph.run(TINY, quiet=True, out=tmp_path / "r")
        assert signal.getsignal(signal.SIGTERM) is mine
        assert locale.setlocale(locale.LC_ALL) == "C"
    finally:
        signal.signal(signal.SIGTERM, before)
        locale.setlocale(locale.LC_ALL, word)


def test_a_command_gives_its_callers_signals_back(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert commands.main(["ls", "methods"]) == 0
    assert signal.getsignal(signal.SIGTERM) == before


def test_runs_begun_in_one_second_have_a_folder_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fedgraph.cells import store

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(store.time, "strftime", lambda *_: "20260101-000000")
    found: list[Path] = []

    def begin() -> None:
        with store.folder_for(None, "tiny") as folder:
            (folder / "scenario.yaml").write_text("")
            found.append(folder)

    threads = [threading.Thread(target=begin) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 4
    with store.folder_for(None, "refused") as folder:
        assert folder.is_dir()
    assert not folder.exists(), "of a run that was refused nothing stays"
    with store.folder_for(tmp_path / "given", "tiny") as folder:
        assert folder == tmp_path / "given"


def test_a_long_tmpdir_gives_ray_a_short_folder_or_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    from fedgraph.runtime.ray import cluster

    monkeypatch.delenv("RAY_TMPDIR", raising=False)
    monkeypatch.setenv("TMPDIR", "/tmp")
    assert cluster.folder_of_sockets() is None
    monkeypatch.setenv("TMPDIR", f"/{'x' * 100}")
    found = cluster.folder_of_sockets()
    assert found is not None
    assert len(found) < 60
    monkeypatch.setenv("RAY_TMPDIR", f"/{'y' * 60}")
    with pytest.raises(RuntimeFailure, match="RAY_TMPDIR has 61 characters"):
        cluster.folder_of_sockets()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([("seeds", 2)], "changes is [('seeds', 2)]; allowed: a mapping"),
        ({"title": object()}, "changes: title is a object or holds what YAML cannot"),
        ({"tasks.7.epsilons": [1]}, "tasks"),
    ],
)
def test_wrong_changes_are_refused_in_a_line(changes: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        fedgraph.run(TINY, changes=changes, quiet=True, out=tmp_path / "r")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("given", [None, [], "no such folder"])
def test_what_is_no_run_and_no_model_is_refused_in_a_line(given: Any, tmp_path: Path) -> None:
    for opens in (fedgraph.open_run, fedgraph.load):
        with pytest.raises(FedgraphError) as caught:
            opens(given)
        assert "\n" not in str(caught.value)
    with pytest.raises(FedgraphError):
        fedgraph.run(given, quiet=True, out=tmp_path / "r")


@pytest.mark.parametrize(("typed", "command"), [("-c", ""), ("/bin/fedgraph", "fedgraph run tiny.yaml --quick")])
def test_a_run_names_its_command_where_somebody_can_type_it(
    typed: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a short run the page offers it without --quick; what stood behind ``python -c`` is not known."""
    monkeypatch.setattr(sys, "argv", [typed, *("run", "tiny.yaml", "--quick")])
    fedgraph.run(TINY, quiet=True, out=tmp_path / "run")
    assert json.loads((tmp_path / "run" / "environment.json").read_text(encoding="utf-8"))["made"]["command"] == command
