"""A run that is at work, or was broken off, can be read at any time; resumed, it is as if nothing had happened."""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import fedgraph
from fedgraph.cells.result import Result
from fedgraph.commands import base as cli
from fedgraph.runs import schedule

ASKED: dict[str, Any] = {
    "name": "cut", "seeds": 2, "runtime": {"engine": "serial"}, "datasets": [{"name": "embedded/library"}],
    "tasks": [{
        "task": "node_classification", "trust": ["curator"], "epsilons": [1, 8],
        "methods": [{"method": "features", "steps": 3}, {"method": "nonprivate", "rounds": 2, "seeds": 1}],
    }],
}  # fmt: skip


@pytest.fixture
def cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run that was interrupted after two of its five cells."""
    computed = schedule.compute_cells

    def some(*args: Any) -> Iterator[Result]:
        for count, done in enumerate(computed(*args)):
            if count == 2:
                raise KeyboardInterrupt
            yield done

    with monkeypatch.context() as patched:
        patched.setattr(schedule, "compute_cells", some)
        with pytest.raises(KeyboardInterrupt):
            fedgraph.run(ASKED, out=tmp_path / "out", quiet=True)
    return tmp_path / "out"


def test_a_run_without_a_page_is_read_from_its_cells(cut: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As it is after SIGKILL, or while the run is at work."""
    for name in ("results.csv", "report.html"):
        (cut / name).unlink()
    assert cli.main(["show", str(cut)]) == 0
    assert capsys.readouterr().out.startswith("UNFINISHED RUN: 2 of 5 cells are done")


def test_a_run_that_is_killed_at_once_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After SIGKILL nobody writes any more; whoever opens the page must not find nothing."""
    out = tmp_path / "<out> & more"

    def killed(*args: Any) -> Iterator[Result]:
        page = (out / "report.html").read_text(encoding="utf-8")
        assert "UNFINISHED RUN" in page
        assert f"“fedgraph show {html.escape(str(out))}”" in page
        assert f"“--resume {html.escape(str(out))}”" in page
        raise SystemExit(9)
        yield

    with monkeypatch.context() as patched:
        patched.setattr(schedule, "compute_cells", killed)
        with pytest.raises(SystemExit):
            fedgraph.run(ASKED, out=out, quiet=True)
    assert cli.main(["watch", str(out)]) == 0
    assert "interrupted, 0 s, 0 of 5 cells done" in capsys.readouterr().out.replace("\n", " ")
    fedgraph.run(ASKED, out=out, resume=True, quiet=True)
    assert "UNFINISHED" not in (out / "report.html").read_text(encoding="utf-8")


def test_a_run_that_ended_between_its_last_cell_and_its_page_is_read_and_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario, out = tmp_path / "cut.yaml", tmp_path / "out"
    scenario.write_text(yaml.safe_dump(ASKED), encoding="utf-8")

    def interrupted(*args: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("fedgraph.report.write_report", interrupted)
        assert cli.main(["run", str(scenario), "--out", str(out)]) == 1
    said = f"interrupted; 5 of 5 cells are done; the same command with --resume {out} (without --out) goes on"
    assert capsys.readouterr().err.splitlines()[-1] == said
    assert cli.main(["show", str(out)]) == 0
    assert capsys.readouterr().out.startswith("UNFINISHED RUN: all 5 cells are done, but no report was written.")
    assert fedgraph.run(ASKED, out=out, resume=True, quiet=True).notice is None
    assert "UNFINISHED" not in (out / "report.html").read_text(encoding="utf-8")
