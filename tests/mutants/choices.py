"""Settings chosen privately: each trial has noise of its own, the choice's coins are secret, and a model pays for it."""

from __future__ import annotations

import itertools
import math
import re
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

import fedgraph
from fedgraph import seeds
from fedgraph.errors import PrivacyError
from fedgraph.methods.base import PlanStreams
from fedgraph.methods.base.contract import PLAN_PUBLIC_COINS
from fedgraph.models import fit
from fedgraph.privacy import budget_book
from fedgraph.privacy.accounting import selection
from fedgraph.privacy.desk import Desk
from fedgraph.privacy.units import Unit
from fedgraph.tasks.node_classification import paid_scores
from tests.mutants.code import CodeMutant

_ROWS = {  # small trainings that release sums of rows, of nodes that are drawn and of neighbours: trials are one piece of code
    "asking": [{"method": "features", "steps": 2}],
    "inductive": [{"method": "gap_node", "steps": 2}],
    "transductive": [{"method": "gap_edge", "hops": 1, "epochs": 1}],
}
_TRIALS = 3


def _run(place: str, protocol: str, row: dict[str, Any], seed: int | str = 0, trials: int = 1) -> fedgraph.Run:
    """A run of one row that chooses among one combination of settings."""
    varied = next(key for key in row if key in ("steps", "epochs"))
    chooses = {k: v for k, v in row.items() if k != varied} | {"select": {"over": {varied: [row[varied]]}, "among": 2}}
    task = {"task": "node_classification", "protocol": protocol, "trust": ["curator"], "epsilons": [4], "delta": 1e-3}
    scenario = {
        "name": "choice", "seed": seed, "runtime": {"engine": "serial"}, "datasets": [{"name": "embedded/library"}],
        "tasks": [{**task, "methods": [chooses]}],
    }  # fmt: skip
    with mock.patch.object(selection, "draw_trials", return_value=trials):
        return fedgraph.run(scenario, out=Path(place) / "run", quiet=True)


def _streams_of_trials(protocol: str, row: dict[str, Any]) -> list[set[str]]:
    """Of each trial, the first state of every private stream that it draws from."""
    found: list[set[str]] = []
    choose, generator = Desk.choose, PlanStreams.generator

    def watched(desk: Desk, path: str, trial: Callable[[int], Any]) -> Any:
        def one(number: int) -> Any:
            found.append(set())
            return trial(number)

        return choose(desk, path, one)

    def noted(streams: PlanStreams, name: str) -> np.random.Generator:
        made = generator(streams, name)
        if name != PLAN_PUBLIC_COINS and found:
            found[-1].add(f"{name}: {made.bit_generator.state}")
        return made

    watching = mock.patch.object(Desk, "choose", watched), mock.patch.object(PlanStreams, "generator", noted)
    with tempfile.TemporaryDirectory() as place, watching[0], watching[1]:
        _run(place, protocol, row, trials=_TRIALS)
    return found


def _trials_have_their_own_noise() -> None:
    for protocol, rows in _ROWS.items():
        for row in rows:
            streams = _streams_of_trials(protocol, row)
            assert len(streams) == _TRIALS
            assert all(streams), f"{row}: a trial draws no noise"
            for one, other in itertools.combinations(streams, 2):
                assert not one & other, f"{row}: two trials draw from one stream"


def _one_noise_for_all_trials() -> list[tuple[object, str, object]]:
    def shared(record: Any, **changes: Any) -> Any:
        if isinstance(changes.get("task"), str):
            changes["task"] = re.sub(r"trial \d+", "trial 0", changes["task"])
        return replace(record, **changes)

    return [(paid_scores, "replace", shared)]


def _the_choice_is_secret() -> None:
    """Under two secret seeds the coins of K and of the score differ; public coins would be those of seed 0 in both."""
    drawn = []

    def noted(desk: Desk, path: str, trial: Callable[[int], Any]) -> Any:
        drawn.append(desk.rng.standard_normal(4).tolist())
        return choose(desk, path, trial)

    choose = Desk.choose
    for _ in range(2):
        with tempfile.TemporaryDirectory() as place, mock.patch.object(Desk, "choose", noted):
            _run(place, "asking", _ROWS["asking"][0], seed="secret")
    assert len(drawn) == 2
    assert drawn[0] != drawn[1], "anybody can draw the choice's coins again"


def _public_choice() -> list[tuple[object, str, object]]:
    def public(root: int, *path: str | int | float) -> np.random.Generator:
        return (seeds.seeded_generator if path[0] == "choice" else seeds.secret_seeded_generator)(root, *path)

    return [(paid_scores, "seeds", SimpleNamespace(**{**vars(seeds), "secret_seeded_generator": public}))]


def _a_choice_is_charged() -> None:
    with tempfile.TemporaryDirectory() as place:
        run, book = _run(place, "asking", _ROWS["asking"][0]), Path(place) / "budget.json"
        budget_book.create(book, Unit.NODE, 6.0, 1e-3, [str(number) for number in range(300)])
        row, wanted = run.score(run.scores[0].row), {"over": {"steps": [2]}, "among": 2}
        model = row.fit(budget=book, select=wanted)
        paid = max((group.epsilon for group in budget_book.read(book).groups()), default=0.0)
        assert math.isclose(paid, model.epsilon, rel_tol=1e-3), f"the choice is worth {model.epsilon}, and {paid} was charged"
        refused = False
        try:
            row.fit(budget=book, select=wanted)
        except PrivacyError:
            refused = True
        assert refused, "a second choice exceeds the budget, and was made"


MUTANTS = [
    CodeMutant("all trials of a choice share their noise", _one_noise_for_all_trials, _trials_have_their_own_noise),
    CodeMutant("the choice's own stream is public", _public_choice, _the_choice_is_secret),
    CodeMutant(
        "a model that chooses its settings is not charged",
        lambda: [(fit, "_charge_training", lambda *given: None)],
        _a_choice_is_charged,
    ),
]
