"""How trainings side by side are counted."""

from __future__ import annotations

import pytest

from fedgraph.runtime.counts import RuntimeCount, RuntimeCountTally


def test_a_tally_counts_trainings_side_by_side_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("fedgraph.runtime.counts.time.perf_counter", lambda: now[0])
    tally = RuntimeCountTally()
    with tally.training(("t", "a")):
        now[0] = 2.0
        with tally.training(("t", "b")):
            tally.add(("t", "b"), rounds=3)
            now[0] = 5.0
        now[0] = 6.0
    now[0] = 9.0
    with tally.training(("t", "a")):
        now[0] = 10.0
    assert tally.counts()["t", "a"] == RuntimeCount(trainings=2, seconds=7.0)
    assert tally.counts()["t", "b"] == RuntimeCount(trainings=1, rounds=3, seconds=3.0)
    assert tally.tasks() == {"t": RuntimeCount(trainings=3, rounds=3, seconds=7.0)}, "an hour in which two train is one hour"
