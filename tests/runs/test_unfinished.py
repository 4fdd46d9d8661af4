"""A run that is at work, or was broken off, can be read at any time; resumed, it is as if nothing had happened."""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import fedgraph
from fedgraph.commands import base as cli
from fedgraph.runs import schedule

ASKED: dict[str, Any] = {
    "name": "cut", "runtime": {"engine": "serial"}, "datasets": [{"name": "embedded/library"}],
    "tasks": [{"task": "node_classification", "trust": ["curator"], "epsilons": [1, 8],
               "methods": [{"method": "features", "steps": 3}]}],
}  # fmt: skip


def test_a_run_that_is_killed_says_how_to_go_on_and_is_read_from_its_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After SIGKILL nobody writes any more; whoever opens the page must not find nothing."""
    out, computed = tmp_path / "<out> & more", schedule.compute_cells

    def killed(*args: Any) -> Iterator[Any]:
        page = (out / "report.html").read_text(encoding="utf-8")
        assert "UNFINISHED RUN" in page
        assert f"“fedgraph show {html.escape(str(out))}”" in page
        assert f"“--resume {html.escape(str(out))}”" in page
        yield next(computed(*args))
        raise SystemExit(9)

    with monkeypatch.context() as patched:
        patched.setattr(schedule, "compute_cells", killed)
        with pytest.raises(SystemExit):
            fedgraph.run(ASKED, out=out, quiet=True)
    assert cli.main(["watch", str(out)]) == 0
    assert "interrupted, 0 s, 1 of 2 cells done" in capsys.readouterr().out.replace("\n", " ")
    (out / "report.html").unlink()
    assert cli.main(["show", str(out)]) == 0
    assert capsys.readouterr().out.startswith("UNFINISHED RUN: 1 of 2 cells are done")


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
    said = f"interrupted; 2 of 2 cells are done; the same command with --resume {out} (without --out) goes on"
    assert capsys.readouterr().err.splitlines()[-1] == said
    assert cli.main(["show", str(out)]) == 0
    assert capsys.readouterr().out.startswith("UNFINISHED RUN: all 2 cells are done, but no report was written.")
    assert fedgraph.run(ASKED, out=out, resume=True, quiet=True).notice is None
    assert "UNFINISHED" not in (out / "report.html").read_text(encoding="utf-8")
