"""A run that is at work, or was broken off, can be read at any time; resumed, it is as if nothing had happened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fedgraph
from fedgraph.commands import base as cli
from fedgraph.runs import schedule

ASKED: dict[str, Any] = {
    "name": "cut", "seeds": 2, "runtime": {"engine": "serial"}, "datasets": [{"name": "embedded/library"}],
    "tasks": [{
        "task": "node_classification", "trust": ["curator"], "epsilons": [1, 8],
        "methods": [{"method": "features", "steps": 3}, {"method": "nonprivate", "rounds": 2, "seeds": 1}],
    }],
}  # fmt: skip


def numbers(run: fedgraph.Run) -> list[tuple[object, ...]]:
    return sorted(run.table()[["name", "epsilon", "mean"]].itertuples(index=False, name=None))


@pytest.fixture
def cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run that was interrupted after two of its five cells."""
    computed = schedule.computed_cells

    def some(*args: Any) -> Iterator[schedule.Done]:
        for count, done in enumerate(computed(*args)):
            if count == 2:
                raise KeyboardInterrupt
            yield done

    with monkeypatch.context() as patched:
        patched.setattr(schedule, "computed_cells", some)
        with pytest.raises(KeyboardInterrupt):
            fedgraph.run(ASKED, out=tmp_path / "out", quiet=True)
    return tmp_path / "out"


def test_what_is_done_has_its_page_and_its_answer(cut: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "UNFINISHED RUN: 2 of 5 cells are done" in (cut / "report.html").read_text(encoding="utf-8")
    assert cli.main(["show", str(cut)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("UNFINISHED RUN: 2 of 5 cells are done")
    assert "features" in said


def test_a_run_without_a_page_is_read_from_its_cells(cut: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As it is after SIGKILL, or while the run is at work."""
    for name in ("results.json", "report.html"):
        (cut / name).unlink()
    assert cli.main(["show", str(cut)]) == 0
    assert capsys.readouterr().out.startswith("UNFINISHED RUN: 2 of 5 cells are done")


def test_resumed_it_is_as_if_nothing_had_happened(cut: Path, tmp_path: Path) -> None:
    resumed = fedgraph.run(ASKED, out=cut, resume=True, quiet=True)
    assert resumed.notice is None
    assert "UNFINISHED" not in (cut / "report.html").read_text(encoding="utf-8")
    assert numbers(resumed) == numbers(fedgraph.run(ASKED, out=tmp_path / "whole", quiet=True))


def test_a_notebook_says_so_first(cut: Path) -> None:
    shown = fedgraph.open_run(cut)._repr_html_()
    assert shown.startswith("<p>UNFINISHED RUN: 2 of 5 cells are done")
    assert "<table" in shown


def test_the_dearest_cell_is_the_first(cut: Path) -> None:
    assert "nonprivate" in {entry.method for entry in fedgraph.open_run(cut).kept[0].entries}
