"""The ledger: byte-exact round trip, merged lines, and errors that name the line; and its words."""

import itertools
import json
import math
import re

import pytest

from fedgraph.commands import base as command
from fedgraph.errors import PrivacyError
from fedgraph.privacy import events, explain
from fedgraph.privacy.events import Gaussian
from fedgraph.privacy.ledger import Ledger, LedgerAccount, LedgerRelease
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer
from tests.privacy.test_accountant import EVERY

PROTECTION = Protection(Relation.NODE_ZERO_OUT, Viewer.SERVER, (Assumption.COUNTS_PUBLIC,))
OPEN = LedgerAccount("cora/features", PROTECTION, 1e-5)
EGO = LedgerAccount("ego", PROTECTION, 1e-5, (0, 2))


def release(client=0, round_=0, cell="cora/features", path="model", multiplier=10.0):
    return LedgerRelease(cell, path, client, round_, 'Gaussian noise of standard deviation 10 "quoted"', Gaussian(multiplier))


def full():
    lines = [release(c, r) for r, c in itertools.product(range(10), range(3))]
    lines += [release(c, 9, "ego", "embedding", math.inf if c == 1 else 5.0) for c in range(3)]
    return Ledger([OPEN, EGO], lines)


def test_round_trip_and_accounts_that_cannot_be_replaced_or_missing(tmp_path):
    ledger = full()
    ledger.write(tmp_path / "a.jsonl")
    again = Ledger.read(tmp_path / "a.jsonl")
    assert list(again) == list(ledger)
    assert again.accounts == ledger.accounts
    assert list(Ledger.of_lines(list(ledger.lines()))) == list(ledger)
    again.write(tmp_path / "b.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    ledger.open(OPEN)
    with pytest.raises(PrivacyError, match="another guarantee"):
        ledger.open(LedgerAccount(OPEN.cell, PROTECTION, 1e-6))
    with pytest.raises(PrivacyError, match="never opened"):
        ledger.extend([release(cell="unknown")])
    with pytest.raises(PrivacyError, match="unit"):
        Protection.from_dict(PROTECTION.to_dict() | {"unit": "edge"})


SOUND = {
    "kind": "release", "cell": "cora/features", "path": "m", "clients": [[0, 3]], "rounds": [[0, 0]], "times": 1, "count": 4,
    "mechanism": "g", "event": {"type": "Gaussian", "noise_multiplier": 1},
}  # fmt: skip
DAMAGED = {
    "half a line": "{", "a list": "[]", "nothing": "{}", "null": "null", "an empty line": "",
    "another kind": '{"kind": "other"}', "a release of nothing": '{"kind": "release", "cell": "x"}',
    "an account of nothing": '{"kind": "account", "cell": "other"}',
    "no noise": json.dumps(SOUND | {"event": {"type": "Gaussian"}}),
    "negative noise": json.dumps(SOUND | {"event": {"type": "Gaussian", "noise_multiplier": -1}}),
    "no event": json.dumps(SOUND | {"event": []}),
    "a wrong count": json.dumps(SOUND | {"count": 3}),
    "clients backwards": json.dumps(SOUND | {"clients": [[3, 0]]}),
}  # fmt: skip


def test_a_damaged_line_is_named(tmp_path, capsys):
    path = tmp_path / "ledger.jsonl"
    full().write(path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:3], json.dumps(SOUND), *lines[3:]]) + "\n")
    Ledger.read(path)
    for what, damage in DAMAGED.items():
        path.write_text("\n".join([*lines[:3], damage, *lines[3:]]) + "\n")
        with pytest.raises(PrivacyError, match=r"ledger\.jsonl:4"):
            Ledger.read(path)
        assert command.main(["explain", str(path)]) == 1, what
        told = capsys.readouterr().err
        assert (told.count("\n"), "ledger.jsonl:4" in told) == (1, True), what


def test_every_event_has_words_and_none_shows_python():
    """A choice of settings (``select:``) is told, too, with its trials."""
    every = [*EVERY, events.Repeated(EVERY[0], 3), events.Composed(tuple(EVERY[:2])), events.Unprotected("sizes")]
    own = {kind for kind in events.all_types().values() if kind.__module__ == events.__name__}
    assert {type(event) for event in every} == own, "a new event needs words in privacy/explain.py, and an example"
    for event in every:
        assert not re.search(r"[A-Z]\w+\(|noise_multiplier|None", explain.event_words(event))
    assert "trials" in explain.event_words(next(event for event in EVERY if isinstance(event, events.Selected)))
