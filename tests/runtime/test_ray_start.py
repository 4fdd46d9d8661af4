"""What a person reads while Ray starts beside a run."""

from __future__ import annotations

import importlib.util
import os
import sys

import pytest

from fedgraph.runtime.ray import cluster


def test_while_ray_starts_its_own_lines_are_dropped_and_those_of_the_run_are_shown(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(2, "w", 1, encoding="utf-8", closefd=False) as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setattr(sys, "__stderr__", terminal)
        with cluster._silence():
            print("55 cells to run, one for each method, trust, ε and seed", file=sys.stderr)
            os.write(2, b"no network\n")
        assert sys.stderr is terminal
        print("done", file=sys.stderr, flush=True)
    assert capfd.readouterr().err == "55 cells to run, one for each method, trust, ε and seed\ndone\n"


def test_a_watched_run_after_an_unwatched_one_writes_its_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a Ray without a dashboard leaves off must not stay in the environment of this process."""
    told: list[str | None] = []
    statistics = "RAY_enable_metrics_collection"
    for name in ("RAY_ADDRESS", "FEDGRAPH_DASHBOARD", statistics):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(cluster, "_init", lambda address, cpus: told.append(os.environ.get(statistics)))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    cluster.connect(1)
    monkeypatch.setenv("FEDGRAPH_DASHBOARD", "1")
    cluster.connect(1)
    assert told == ["0", None]
