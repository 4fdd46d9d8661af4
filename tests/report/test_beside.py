"""Figures that a copy of this process draws are those that this process would draw."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time

import pytest
from matplotlib.axes import Axes

from fedgraph.report import plots

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every figure is drawn in one process")


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})


def test_a_copy_makes_one_and_this_process_the_next() -> None:
    with plots.plot_on_all_cores():
        first, second = plots._draw_in_copy(os.getpid), plots._draw_in_copy(os.getpid)
        assert second() == os.getpid()
        assert first() != os.getpid()
    assert first() != os.getpid(), "what a copy made is kept"
    assert plots._draw_in_copy(os.getpid)() == os.getpid(), "a copy beside other work"


def test_what_a_copy_cannot_make_is_made_here() -> None:
    own = os.getpid()

    def dies() -> int:
        if os.getpid() != own:
            os._exit(3)
        return own

    def fails() -> int:
        raise ValueError("no picture")

    with plots.plot_on_all_cores():
        asked = plots._draw_in_copy(dies)
        assert asked() == own
        asked = plots._draw_in_copy(fails)
        with pytest.raises(ValueError, match="no picture"):
            asked()


def test_a_copy_that_never_ends_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread of this process may have held a lock when it was copied."""
    monkeypatch.setattr(plots, "_SECONDS_TO_DRAW", 0.3)
    own = os.getpid()

    def waits() -> int:
        while os.getpid() != own:
            time.sleep(1)
        return own

    with plots.plot_on_all_cores():
        asked = plots._draw_in_copy(waits)
        assert asked() == own
        forgotten = plots._draw_in_copy(waits)
    assert forgotten() == own


def test_where_endings_of_processes_are_ignored() -> None:
    """As after ``trap '' CHLD`` in a shell: nobody hears how a copy ended."""
    own = os.getpid()

    def half() -> str:
        if os.getpid() != own:
            os._exit(1)
        return "whole"

    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with plots.plot_on_all_cores():
            first = plots._draw_in_copy(os.getpid)
            assert first() != own
            second = plots._draw_in_copy(half)
            assert second() == "whole"
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_no_room_for_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: object, **more: object) -> int:
        raise BlockingIOError("no more processes")

    for module, name in ((os, "fork"), (tempfile, "TemporaryFile")):
        with monkeypatch.context() as patched, plots.plot_on_all_cores():
            patched.setattr(module, name, refused)
            asked = plots._draw_in_copy(os.getpid)
            assert asked() == os.getpid()


def test_a_copy_makes_no_copies() -> None:
    with plots.plot_on_all_cores():
        asked = plots._draw_in_copy(lambda: (os.getpid(), plots._draw_in_copy(os.getpid)()))
        assert len(set(asked())) == 1


def test_figures_are_equal() -> None:
    def paint(axes: list[Axes]) -> None:
        axes[0].plot([1, 2, 3], [2, 1, 3])

    here = plots.draw_plot("a", "A line.", 1, paint, None)
    with plots.plot_on_all_cores():
        there = plots.draw_plot("a", "A line.", 1, paint, None)
    assert (there.png, there.svg) == (here.png, here.svg)
