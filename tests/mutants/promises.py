"""What is promised of no one method: counts, rosters, and settings that are chosen privately.

A release is counted as often as it is made, by one client as by all: every kind of event, planned, spent and read again. Two
models of the same people cannot be compared person by person without trying ids. Each trial of a choice has noise of its own,
the choice's coins are secret, and a model pays for it.
"""

from __future__ import annotations

import itertools
import math
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import fedgraph
from fedgraph import data, seeds
from fedgraph.errors import PrivacyError
from fedgraph.methods.base import PlanStreams
from fedgraph.methods.base.contract import PLAN_PUBLIC_COINS
from fedgraph.models import fit, model
from fedgraph.models.model import AnswerRoster
from fedgraph.privacy import budget_book, desk, ledger, settle
from fedgraph.privacy.accounting import selection
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.desk import Desk, PlannedRelease
from fedgraph.privacy.events import Composed, Event, Gaussian, PartOf, Repeated
from fedgraph.privacy.ledger import Ledger, LedgerAccount, LedgerLine, LedgerRelease
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.sensitivity import L2Ball
from fedgraph.privacy.units import Protection, Relation, Unit, Viewer
from fedgraph.runtime.serial import SerialRuntime
from fedgraph.tasks import node_classification
from fedgraph.tasks.base import CellContext
from fedgraph.tasks.node_classification import paid_scores
from tests.mutants.code import Breaks, CodeMutant
from tests.privacy.test_accountant import EVERY

# ------------------------------------------------------------------------------------------------------------------- counts

_DELTA, _ROUNDS, _OWN = 1e-5, 5, 2  # the client that releases something alone
_PROTECTION = Protection(Relation.NODE_ZERO_OUT, Viewer.SERVER, ())
_GUARANTEE = settle.Guarantee(_PROTECTION, _DELTA, None, per_end=False)
_COUNTED = [event for event in EVERY if not isinstance(event, PartOf)]  # a part is counted with its choice


def _require_counted(found: float, event: Event, when: str) -> None:
    paid = price(Composed((Repeated(event, _ROUNDS), Repeated(Gaussian(9.0), _ROUNDS))), _DELTA).epsilon
    assert math.isclose(found, paid, rel_tol=1e-9), f"{event}, {when}"


def _planned_is_counted() -> None:
    for event, client in itertools.product(_COUNTED, (None, _OWN)):
        alone = PlannedRelease("own", L2Ball(1.0), GaussianNoise(1.0), event, range(_ROUNDS), client=client)
        others = PlannedRelease("all", L2Ball(1.0), GaussianNoise(1.0), Gaussian(9.0), range(_ROUNDS))
        _require_counted(settle.of_plan(_GUARANTEE, (alone, others)).epsilon, event, f"planned by client {client}")


def _spent_is_counted() -> None:
    account = LedgerAccount("cell", _PROTECTION, _DELTA)
    for event in _COUNTED:
        made = [LedgerRelease("cell", "own", _OWN, round_, "noise", event) for round_ in range(_ROUNDS)]
        made += [LedgerRelease("cell", "all", c, r, "noise", Gaussian(9.0)) for r in range(_ROUNDS) for c in range(4)]
        book = Ledger([account], made)
        for lines in (book.of("cell"), Ledger.of_lines(book.lines()).of("cell")):
            _require_counted(settle.of_releases(_GUARANTEE, lines).epsilon, event, "spent by one client")
            _require_counted(settle.of_account(account, lines).epsilon, event, "as explained")


def _planned_once() -> Breaks:
    honest = desk.declared

    def dropped(releases: Any, *given: Any) -> Event:
        return honest([r if r.client is None else replace(r, rounds=tuple(r.rounds)[:1]) for r in releases], *given)

    return [(desk, "declared", dropped)]


def _spent_once() -> Breaks:
    honest = ledger.spent_by_client

    def once(line: LedgerLine) -> LedgerLine:
        alone = ledger.count_spans(line.clients) == 1
        return replace(line, rounds=((line.rounds[0][0],) * 2,), times=1) if alone else line

    return [(ledger, "spent_by_client", lambda lines, path=None: honest([once(line) for line in lines], path))]


# ------------------------------------------------------------------------------------------------------------------- roster


def _every_roster_has_its_key() -> None:
    ids = [f"person {number}" for number in range(50)]
    rosters = [AnswerRoster.of(ids) for _ in range(8)]
    assert len({one.salt for one in rosters}) == len(rosters), "two models have one key"
    digests = [int(digest) for one in rosters for digest in one.digests]
    assert len(set(digests)) == len(digests), "one person has one digest in two models"
    assert all((one.places(ids[::-1]) == range(len(ids) - 1, -1, -1)).all() for one in rosters)


# ------------------------------------------------------------------------------------------------------------------ choices

_ROWS = {  # small trainings that release sums of rows, of nodes that are drawn and of neighbours: trials are one piece of code
    "asking": {"method": "features", "steps": 2},
    "inductive": {"method": "gap_node", "steps": 2},
    "transductive": {"method": "gap_edge", "hops": 1, "epochs": 1},
}
_TRIALS = 3


def _task(protocol: str) -> dict[str, Any]:
    """Of one row, which chooses among one combination of settings."""
    row = _ROWS[protocol]
    varied = next(key for key in row if key in ("steps", "epochs"))
    chooses = {k: v for k, v in row.items() if k != varied} | {"select": {"over": {varied: [row[varied]]}, "among": 2}}
    return {"protocol": protocol, "trust": ["curator"], "epsilons": [4], "delta": 1e-3, "methods": [chooses]}


def _choose(protocol: str, root: int, trials: int) -> None:
    library, params = data.load("embedded/library"), node_classification.Params(**_task(protocol))
    where = CellContext("t", "library", library, root, 1, SerialRuntime())
    (cell,) = node_classification.cells(params, where)
    with mock.patch.object(selection, "draw_trials", return_value=trials):
        node_classification.run(params, cell, where)


def _trials_have_their_own_noise() -> None:
    choose, generator = Desk.choose, PlanStreams.generator
    for protocol in _ROWS:
        found: list[set[str]] = []  # of each trial, the first state of every private stream that it draws from

        def watched(desk: Desk, path: str, trial: Any, found: list[set[str]] = found) -> Any:
            return choose(desk, path, lambda number: (found.append(set()), trial(number))[1])

        def noted(streams: PlanStreams, name: str, found: list[set[str]] = found) -> Any:
            made = generator(streams, name)
            if name != PLAN_PUBLIC_COINS and found:
                found[-1].add(f"{name}: {made.bit_generator.state}")
            return made

        with mock.patch.object(Desk, "choose", watched), mock.patch.object(PlanStreams, "generator", noted):
            _choose(protocol, 0, _TRIALS)
        assert len(found) == _TRIALS
        assert all(found), f"{protocol}: a trial draws no noise"
        assert not any(one & other for one, other in itertools.combinations(found, 2)), f"{protocol}: trials share a stream"


def _one_noise_for_all_trials() -> Breaks:
    def shared(record: Any, **changes: Any) -> Any:
        if isinstance(changes.get("task"), str):
            changes["task"] = re.sub(r"trial \d+", "trial 0", changes["task"])
        return replace(record, **changes)

    return [(paid_scores, "replace", shared)]


def _the_choice_is_secret() -> None:
    """Under two secret seeds the coins of K and of the score differ; public coins would be those of seed 0 in both."""
    choose, drawn = Desk.choose, []

    def noted(desk: Desk, *given: Any) -> Any:
        drawn.append(desk.rng.standard_normal(4).tolist())
        return choose(desk, *given)

    for key in (bytes(32), bytes(31) + b"1"):
        with mock.patch.object(Desk, "choose", noted):
            _choose("asking", seeds.SecretSeed(key), 1)
    assert len(drawn) == 2
    assert drawn[0] != drawn[1], "anybody can draw the choice's coins again"


def _public_choice() -> Breaks:
    def public(root: int, *path: str | int | float) -> Any:
        return (seeds.seeded_generator if path[0] == "choice" else seeds.secret_seeded_generator)(root, *path)

    return [(paid_scores, "seeds", SimpleNamespace(**{**vars(seeds), "secret_seeded_generator": public}))]


def _a_choice_is_charged() -> None:
    task = {"task": "node_classification", **_task("asking")}
    scenario = {"name": "choice", "runtime": {"engine": "serial"}, "datasets": [{"name": "embedded/library"}], "tasks": [task]}
    with tempfile.TemporaryDirectory() as place, mock.patch.object(selection, "draw_trials", return_value=1):
        run, book = fedgraph.run(scenario, out=Path(place) / "run", quiet=True), Path(place) / "budget.json"
        budget_book.create(book, Unit.NODE, 6.0, 1e-3, [str(number) for number in range(300)])
        row, wanted = run.score(run.scores[0].row), {"over": {"steps": [2]}, "among": 2}
        worth = row.fit(budget=book, select=wanted).epsilon
        paid = max((group.epsilon for group in budget_book.read(book).groups()), default=0.0)
        assert math.isclose(paid, worth, rel_tol=1e-3), f"the choice is worth {worth}, and {paid} was charged"
        try:
            row.fit(budget=book, select=wanted)
        except PrivacyError:
            return
    raise AssertionError("a second choice exceeds the budget, and was made")


MUTANTS = [
    CodeMutant("the count dropped for what one client plans alone", _planned_once, _planned_is_counted),
    CodeMutant("the count dropped for what one client spent alone", _spent_once, _spent_is_counted),
    CodeMutant(
        "a constant key of the roster",
        lambda: [(model.secrets, "token_hex", lambda size: "0" * (2 * size))],
        _every_roster_has_its_key,
    ),
    CodeMutant("all trials of a choice share their noise", _one_noise_for_all_trials, _trials_have_their_own_noise),
    CodeMutant("the choice's own stream is public", _public_choice, _the_choice_is_secret),
    CodeMutant(
        "a model that chooses its settings is not charged",
        lambda: [(fit, "_charge_training", lambda *given: None)],
        _a_choice_is_charged,
    ),
]
