"""What a person reads while Ray starts beside a run."""

from __future__ import annotations

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
