"""The ledger: byte-exact round trip, merged lines, and errors that name the line; and its words."""

import itertools
import math
import re

import pytest

from fedgraph.commands import base as command
from fedgraph.errors import PrivacyError
from fedgraph.privacy import events, explain
from fedgraph.privacy.events import Gaussian
from fedgraph.privacy.ledger import Ledger, LedgerAccount, LedgerRelease
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer

PROTECTION = Protection(Relation.NODE_ZERO_OUT, Viewer.SERVER, (Assumption.COUNTS_PUBLIC,))
OPEN = LedgerAccount("cora/features", PROTECTION, 1e-5)
EGO = LedgerAccount("ego", PROTECTION, 1e-5, (0, 2))


def release(client=0, round_=0, cell="cora/features", path="model", multiplier=10.0):
    return LedgerRelease(cell, path, client, round_, 'Gaussian noise of standard deviation 10 "quoted"', Gaussian(multiplier))


def full():
    lines = [release(c, r) for r, c in itertools.product(range(10), range(3))]
    lines += [release(c, 9, "ego", "embedding", math.inf if c == 1 else 5.0) for c in range(3)]
    return Ledger([OPEN, EGO], lines)


def test_round_trip(tmp_path):
    ledger = full()
    ledger.write(tmp_path / "a.jsonl")
    again = Ledger.read(tmp_path / "a.jsonl")
    assert list(again) == list(ledger)
    assert again.accounts == ledger.accounts
    assert list(Ledger.of_lines(list(ledger.lines()))) == list(ledger)
    again.write(tmp_path / "b.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_accounts_cannot_be_replaced_or_missing():
    ledger = Ledger([OPEN])
    ledger.open(OPEN)
    with pytest.raises(PrivacyError, match="another guarantee"):
        ledger.open(LedgerAccount(OPEN.cell, PROTECTION, 1e-6))
    with pytest.raises(PrivacyError, match="never opened"):
        ledger.extend([release(cell="unknown")])


DAMAGED = [
    "{",
    "[]",
    "{}",
    "null",
    "",
    '{"kind": "release", "cell": "cora/features", "path": "m", "clients": [[0, 3]], "rounds": [[0, 0]], "times": 1, '
    '"count": 4, "mechanism": "g", "event": {"type": "Gaussian"}}',
    '{"kind": "other"}',
    '{"kind": "release", "cell": "x"}',
    '{"kind": "release", "cell": "cora/features", '
    '"path": "m", "client": 0, "round": 0, "mechanism": "g", "event": {"type": "Gaussian", "noise_multiplier": -1}}',
    '{"kind": "release", "cell": "cora/features", "path": "m", "clients": [[0, 3]], "rounds": [[0, 0]], "times": 1, '
    '"count": 3, "mechanism": "g", "event": {"type": "Gaussian", "noise_multiplier": 1}}',
    '{"kind": "release", "cell": "cora/features", "path": "m", "clients": [[3, 0]], "rounds": [[0, 0]], "times": 1, '
    '"count": 4, "mechanism": "g", "event": {"type": "Gaussian", "noise_multiplier": 1}}',
    '{"kind": "release", "cell": "cora/features", "path": "m", "clients": [[0, 3]], "rounds": [[0, 0]], "times": 1, '
    '"count": 4, "mechanism": "g", "event": []}',
    '{"kind": "account", "cell": "other"}',
]


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_line_is_named(tmp_path, damage, capsys):
    path = tmp_path / "ledger.jsonl"
    full().write(path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:3], damage, *lines[3:]]) + "\n")
    with pytest.raises(PrivacyError, match=r"ledger\.jsonl:4"):
        Ledger.read(path)
    assert command.main(["explain", str(path)]) == 1
    out = capsys.readouterr()
    assert out.err.count("\n") == 1
    assert "ledger.jsonl:4" in out.err


def test_every_event_has_words_and_none_shows_python() -> None:
    """A choice of settings (``select:``) is told, too, with its trials."""
    inner = events.Gaussian(2.0)
    chosen = events.OneOf((events.PureDP(1.0), inner))
    every = [
        inner, events.Laplace(1.0), events.RandomizedResponse(1.0, 4), events.MultiBit(0.1, 8), events.BoundedRange(1.0),
        events.PureDP(1.0), events.ApproxDP(1.0, 1e-6), events.PoissonGaussian(2.0, 0.1, 1, False),
        events.FixedSizeGaussian(2.0, 5, 50, 1, False), events.SampledOnce(inner, 0.1), events.Repeated(inner, 3),
        events.EpochGaussian(2.0, 5, 1, False), events.MentionedGaussian(2.0, 0.1, 0.01, 5, False),
        events.Composed((inner, events.PureDP(0.5))), chosen, events.PartOf(inner, chosen, 1),
        events.Selected((inner, events.Composed((inner, events.BoundedRange(1.0)))), 1.0, 0.1), events.Unprotected("sizes"),
    ]  # fmt: skip
    own = {kind for kind in events.all_types().values() if kind.__module__ == events.__name__}
    assert {type(event) for event in every} == own, "a new event needs words in privacy/explain.py, and an example here"
    for event in every:
        assert not re.search(r"[A-Z]\w+\(|noise_multiplier|None", explain.event_words(event))
    assert "trials" in explain.event_words(every[-2])
