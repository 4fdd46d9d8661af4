"""Figures that a copy of this process draws are those that this process would draw."""

from __future__ import annotations

import os
import sys

import pytest
from matplotlib.axes import Axes

from fedgraph.report import beside, plots

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every figure is drawn in one process")


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


def test_a_copy_makes_one_and_this_process_the_next() -> None:
    with beside.on_all_cores():
        first, second = beside.made_beside(os.getpid), beside.made_beside(os.getpid)
        assert second() == os.getpid()
        assert first() != os.getpid()
    assert first() != os.getpid(), "what a copy made is kept"
    assert beside.made_beside(os.getpid)() == os.getpid(), "a copy beside other work"


def test_what_a_copy_cannot_make_is_made_here() -> None:
    own = os.getpid()

    def dies() -> int:
        if os.getpid() != own:
            os._exit(3)
        return own

    def fails() -> int:
        raise ValueError("no picture")

    with beside.on_all_cores():
        asked = beside.made_beside(dies)
        assert asked() == own
        asked = beside.made_beside(fails)
        with pytest.raises(ValueError, match="no picture"):
            asked()


def test_figures_are_equal() -> None:
    def paint(axes: list[Axes]) -> None:
        axes[0].plot([1, 2, 3], [2, 1, 3])

    here = plots.draw("a", "A line.", 1, paint, None)
    with beside.on_all_cores():
        there = plots.draw("a", "A line.", 1, paint, None)
    assert (there.png, there.svg) == (here.png, here.svg)
