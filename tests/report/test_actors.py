"""Who computed what, in the words of the page."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from fedgraph.report.outputs import _count_actors
from fedgraph.runtime.counts import RuntimeCount, RuntimeCountTally


def test_rounds_and_idle_shares_in_words() -> None:
    count = RuntimeCount(2, 40, 400, 3_000_000, 1_500_000, 80, 10.0, 12.0, 1.0)
    names = ["client-0", "client-1", "server", "curator-0", "run-2/curator-1"]
    runtime = {"federations": "rounds run there", "actors": dict.fromkeys(names, "cpu"), "federation": {"t": asdict(count)}}
    assert _count_actors(runtime) == {
        "Federations": "rounds run there; actors: 2 clients, 1 server, 2 curators",
        "Rounds of t": "40 rounds of 2 trainings, in 80 calls (8 a second); 400 messages, 3.0 MB up, 1.5 MB down; "
        "idle: clients 40%, server 90%",
    }
    assert _count_actors({}) == {}


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
