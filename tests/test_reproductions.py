"""Scenarios of ``benchmarks/reproductions`` run as others do, with tasks that the package itself does not know."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import reproductions
from fedgraph import plugins

ROOT = Path(__file__).parents[1]


def command(*words: str) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, "PYTHONPATH": str(ROOT)}
    call = [sys.executable, "-m", "benchmarks.reproductions", *words]
    return subprocess.run(call, cwd=ROOT, env=given, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", sorted(path.stem for path in reproductions.HERE.glob("ldp_gw_*.yaml")))
def test_every_scenario_is_planned(name: str) -> None:
    done = command(name, "--quick", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "nothing is released" in done.stdout


def test_the_package_alone_knows_none_of_these_tasks_and_a_wrong_name_is_an_error() -> None:
    assert not {"graph_metrics", "graph_starts", "claims"} & set(plugins.names("tasks"))
    done = command("ldp_gw_metrisc")
    assert done.returncode == 2
    assert "ldp_gw_metrics, ldp_gw_starts" in done.stderr


@pytest.mark.slow
def test_a_quick_run_writes_its_section(tmp_path: Path) -> None:
    done = command("ldp_gw_metrics", "--quick", "--out", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    assert "after one edit" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
