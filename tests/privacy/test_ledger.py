"""The ledger: append-only, byte-exact round trip, merge, and errors that name the line; and its words."""

import itertools
import math

import pytest

from fedgraph.errors import PrivacyError
from fedgraph.privacy import __main__ as command
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.events import Composed, Gaussian, Repeated, Unprotected
from fedgraph.privacy.explain import explain
from fedgraph.privacy.ledger import Account, Ledger, Release
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer

PROTECTION = Protection(Relation.NODE_ZERO_OUT, Viewer.SERVER, (Assumption.COUNTS_PUBLIC,))
OPEN = Account("cora/features", PROTECTION, 1e-5)
EGO = Account("ego", PROTECTION, 1e-5, (0, 2))


def release(client=0, round_=0, cell="cora/features", path="model", multiplier=10.0):
    return Release(cell, path, client, round_, 'Gaussian noise of standard deviation 10 "quoted"', Gaussian(multiplier))


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
    again.write(tmp_path / "b.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_append_only():
    ledger = full()
    assert not [name for name in dir(ledger) if name.startswith(("remove", "pop", "clear", "__delitem__", "__setitem__"))]
    before = list(ledger)
    ledger.extend([release(0, 10)])
    assert list(ledger)[: len(before)] == before
    with pytest.raises(AttributeError):
        before[0].client = 3


def test_merge_and_spent():
    first, second = Ledger([OPEN], [release(0)]), Ledger([OPEN, EGO], [release(0, 1), release(1, 1)])
    first.merge(second)
    assert len(first) == 3
    assert first.accounts == (OPEN, EGO)
    spent = first.spent("cora/features")
    assert spent[0] == Composed((Repeated(Gaussian(10.0), 2),))
    assert first.spent("cora/features", "embedding") == {}


def test_accounts_cannot_be_replaced_or_missing():
    ledger = Ledger([OPEN])
    ledger.open(OPEN)
    with pytest.raises(PrivacyError, match="another guarantee"):
        ledger.open(Account(OPEN.cell, PROTECTION, 1e-6))
    with pytest.raises(PrivacyError, match="never opened"):
        ledger.extend([release(cell="unknown")])


@pytest.mark.parametrize(
    "damage",
    [
        "{",
        "[]",
        "{}",
        '{"kind": "other"}',
        '{"kind": "release", "cell": "x"}',
        '{"kind": "release", "cell": "cora/features", '
        '"path": "m", "client": 0, "round": 0, "mechanism": "g", "event": {"type": "Gaussian", "noise_multiplier": -1}}',
        "null",
        "",
    ],
)
def test_a_damaged_line_is_named(tmp_path, damage, capsys):
    path = tmp_path / "ledger.jsonl"
    full().write(path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:5], damage, *lines[5:]]) + "\n")
    with pytest.raises(PrivacyError, match=r"ledger\.jsonl:6"):
        Ledger.read(path)
    assert command.main(["explain", str(path)]) == 2
    out = capsys.readouterr()
    assert out.err.count("\n") == 1
    assert "ledger.jsonl:6" in out.err


def test_missing_and_binary_files(tmp_path, capsys):
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe\x00")
    for name in ("missing.jsonl", "binary.jsonl"):
        assert command.main(["explain", str(tmp_path / name)]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_explained_in_words(tmp_path, capsys):
    full().write(tmp_path / "ledger.jsonl")
    assert command.main(["explain", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "rounds 0–9, clients 0–2: Gaussian noise" in text
    assert "30 releases" in text
    assert "node-zero-out" in text
    assert "counts-public" in text
    assert "worst node is held by clients 0, 2" in text
    per_client = price(Repeated(Gaussian(10.0), 10), 1e-5)
    assert f"Total: ε = {per_client.epsilon:.6g}" in text
    assert per_client.theorem in text
    ego = price(Repeated(Gaussian(5.0), 2), 1e-5)
    assert f"Total: ε = {ego.epsilon:.6g}" in text


def test_explaining_nothing_and_no_privacy():
    assert "nothing was released" in explain(Ledger())
    clear = Release(OPEN.cell, "model", 0, 0, "sent in clear", Unprotected("gradients"))
    assert "ε = ∞" in explain(Ledger([OPEN], [clear]))
    assert "ε = 0" in explain(Ledger([OPEN]))
