"""A release is counted as often as it is made, by one client as by all: every kind of event, planned, spent and read again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from fedgraph.privacy import desk, ledger, settle
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.desk import PlannedRelease
from fedgraph.privacy.events import Composed, Event, Gaussian, PartOf, Repeated
from fedgraph.privacy.ledger import Ledger, LedgerAccount, LedgerLine, LedgerRelease
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.sensitivity import L2Ball
from fedgraph.privacy.units import Protection, Relation, Viewer
from tests.mutants.code import CodeMutant
from tests.privacy.test_accountant import EVERY

_DELTA, _ROUNDS, _OWN = 1e-5, 5, 2  # the client that releases something alone
_PROTECTION = Protection(Relation.NODE_ZERO_OUT, Viewer.SERVER, ())
_GUARANTEE = settle.Guarantee(_PROTECTION, _DELTA, None, per_end=False)
_COUNTED = [event for event in EVERY if not isinstance(event, PartOf)]  # a part is counted with its choice


def _paid(event: Event) -> float:
    return price(Composed((Repeated(event, _ROUNDS), Repeated(Gaussian(9.0), _ROUNDS))), _DELTA).epsilon


def _same(found: float, event: Event) -> bool:
    return math.isclose(found, _paid(event), rel_tol=1e-9)


def _planned_is_counted() -> None:
    for event in _COUNTED:
        for client in (None, _OWN):
            alone = PlannedRelease("own", L2Ball(1.0), GaussianNoise(1.0), event, range(_ROUNDS), client=client)
            others = PlannedRelease("all", L2Ball(1.0), GaussianNoise(1.0), Gaussian(9.0), range(_ROUNDS))
            assert _same(settle.of_plan(_GUARANTEE, (alone, others)).epsilon, event), f"{event}, planned by client {client}"


def _spent_is_counted() -> None:
    account = LedgerAccount("cell", _PROTECTION, _DELTA)
    for event in _COUNTED:
        made = [LedgerRelease("cell", "own", _OWN, round_, "noise", event) for round_ in range(_ROUNDS)]
        made += [LedgerRelease("cell", "all", c, r, "noise", Gaussian(9.0)) for r in range(_ROUNDS) for c in range(4)]
        book = Ledger([account], made)
        read = Ledger.of_lines(book.lines())
        for lines in (book.of("cell"), read.of("cell")):
            assert _same(settle.of_releases(_GUARANTEE, lines).epsilon, event), f"{event}, spent by one client"
            assert _same(settle.of_account(account, lines).epsilon, event), f"{event}, as explained"


def _planned_once() -> list[tuple[object, str, object]]:
    honest = desk.declared

    def dropped(releases: Sequence[PlannedRelease], client: int, path: str | None = None) -> Event:
        return honest([r if r.client is None else replace(r, rounds=tuple(r.rounds)[:1]) for r in releases], client, path)

    return [(desk, "declared", dropped)]


def _spent_once() -> list[tuple[object, str, object]]:
    honest = ledger.spent_by_client

    def dropped(lines: Iterable[LedgerLine], path: str | None = None) -> dict[int, Event]:
        def once(line: LedgerLine) -> LedgerLine:
            alone = ledger.count_spans(line.clients) == 1
            return replace(line, rounds=((line.rounds[0][0],) * 2,), times=1) if alone else line

        return honest([once(line) for line in lines], path)

    return [(ledger, "spent_by_client", dropped)]


MUTANTS = [
    CodeMutant("the count dropped for what one client plans alone", _planned_once, _planned_is_counted),
    CodeMutant("the count dropped for what one client spent alone", _spent_once, _spent_is_counted),
]
