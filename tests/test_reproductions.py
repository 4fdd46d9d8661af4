"""Scenarios of ``benchmarks/reproductions`` run as others do, with tasks that the package itself does not know."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import reproductions
from benchmarks.reproductions.__main__ import main
from fedgraph import plugins, tasks
from fedgraph.report import sections


@pytest.fixture(autouse=True)
def _known_here_alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is registered, and read, is forgotten behind the test."""
    for package in (tasks, sections):
        monkeypatch.setattr(
            package, "__path__", [p for p in package.__path__ if not Path(p).is_relative_to(reproductions.HERE)]
        )
    plugins.forget()
    yield
    monkeypatch.undo()
    plugins.forget()


@pytest.mark.parametrize("name", sorted(path.stem for path in reproductions.HERE.glob("ldp_gw_*.yaml")))
def test_every_scenario_is_planned(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--quick", "--dry-run"]) == 0
    assert "nothing is released" in capsys.readouterr().out


def test_the_package_alone_knows_none_of_these_tasks_and_a_wrong_name_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert not {"graph_metrics", "graph_starts", "claims"} & set(plugins.names("tasks"))
    assert main(["ldp_gw_metrisc"]) == 2
    assert "ldp_gw_metrics, ldp_gw_starts" in capsys.readouterr().err


@pytest.mark.slow
def test_a_quick_run_writes_its_section(tmp_path: Path) -> None:
    assert main(["ldp_gw_metrics", "--quick", "--out", str(tmp_path / "run")]) == 0
    assert "after one edit" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
