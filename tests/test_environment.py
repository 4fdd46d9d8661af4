"""What the README promises of an environment: which Pythons install it, and that a run leaves its caller's process alone."""

from __future__ import annotations

import importlib.metadata
import os
import re
import signal
import subprocess
import sys
import threading
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import fedgraph
from fedgraph import commands, library
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
    code = f"""
import signal, locale
mine = lambda *_: None
signal.signal(signal.SIGTERM, mine)
locale.setlocale(locale.LC_ALL, "C")
import fedgraph
fedgraph.run({TINY!r}, quiet=True, out={str(tmp_path / "r")!r})
assert signal.getsignal(signal.SIGTERM) is mine
print(locale.setlocale(locale.LC_ALL))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["C"], done.stderr


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


def test_a_long_tmpdir_gives_ray_a_short_folder_or_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    from fedgraph.runtime.ray import cluster

    monkeypatch.delenv("RAY_TMPDIR", raising=False)
    monkeypatch.setenv("TMPDIR", "/tmp")
    assert cluster.folder_of_sockets() is None
    monkeypatch.setenv("TMPDIR", f"/{'x' * 100}")
    monkeypatch.setattr(cluster, "_SHORT_FOLDER", str(tmp_path / "short"))
    assert cluster.folder_of_sockets() == str(tmp_path / "short")
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(cluster, "_SHORT_FOLDER", str(tmp_path / "file" / "short"))
    with pytest.raises(RuntimeFailure, match=r"TMPDIR has 101 characters.*set RAY_TMPDIR to a short folder"):
        cluster.folder_of_sockets()
    monkeypatch.setenv("RAY_TMPDIR", f"/{'y' * 60}")
    with pytest.raises(RuntimeFailure, match="RAY_TMPDIR has 61 characters"):
        cluster.folder_of_sockets()


def test_changes_arrive_whole(tmp_path: Path) -> None:
    import yaml

    title = "A title that is one whole long sentence and goes on\nand on beyond the eighty columns of a line: END"
    budgets = [float(number) for number in range(1, 40)]
    changes = {"title": title, "tasks.0.epsilons": budgets, "tasks.0.epsilons.0": 0.5}
    ready = library._ready(TINY, library._as_changes(changes), False, None)
    assert ready.scenario.title == title
    assert ready.tasks[0].params.epsilons == [0.5, *budgets[1:]]
    assert yaml.safe_load(yaml.safe_dump(ready.resolved))["title"] == title


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([("seeds", 2)], "changes is [('seeds', 2)]; allowed: a mapping"),
        ({3: 1}, "changes: key 3; allowed: a dotted key"),
        ({"title": object()}, "changes: title is a object or holds what YAML cannot"),
        ({"tasks.7.epsilons": [1]}, "tasks"),
        ({"tasks.0.epsilons": {1: 2}}, "tasks.0.epsilons"),
        ({"seeds": None}, "seeds"),
        ({"tasks": []}, "tasks"),
    ],
)
def test_wrong_changes_are_refused_in_a_line(changes: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        fedgraph.run(TINY, changes=changes, quiet=True, out=tmp_path / "r")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("given", [None, 3, [], "", "no such folder", os.devnull])
def test_what_is_no_run_and_no_model_is_refused_in_a_line(given: Any, tmp_path: Path) -> None:
    for opens in (fedgraph.open_run, fedgraph.load):
        with pytest.raises(FedgraphError) as caught:
            opens(given)
        assert "\n" not in str(caught.value)
    with pytest.raises(FedgraphError):
        fedgraph.run(given, quiet=True, out=tmp_path / "r")


def test_arrays_are_stored_alone_and_without_pickle() -> None:
    """NumPy before 2.1 stores an option of ``savez`` as one array more, which no reader expects."""
    import io

    import numpy as np

    from fedgraph.cells import store

    with np.load(io.BytesIO(store._compressed({"a": np.arange(3)})), allow_pickle=False) as found:
        assert found.files == ["a"]
    with pytest.raises(TypeError, match="b holds Python objects"):
        store._compressed({"b": np.array([object()])})
