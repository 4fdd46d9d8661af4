"""A cell on disk is whole or absent, and reads back as it was."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from fedgraph.cells.entry import entry_of, portable, read_file
from fedgraph.cells.facts import Facts
from fedgraph.cells.store import CellStore, write_atomically
from fedgraph.privacy.events import Gaussian
from fedgraph.privacy.ledger import Account, Release
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Protection, Relation, Viewer
from fedgraph.tasks.base import Cell, Outcome
from fedgraph.worlds.world import trusting

CELL = Cell("t", "d", "m", "v", trusting(Trust.CURATOR), math.inf, "none", 0)


def outcome() -> Outcome:
    account = Account(CELL.key, Protection(Relation.NODE_ZERO_OUT, Viewer.SERVER, ()), 1e-5)
    release = Release(CELL.key, "model", 0, 0, "noise", Gaussian(2.0))
    return Outcome(
        metrics={"accuracy": 0.5},
        facts=Facts(clients=3),
        account=account,
        releases=(release,),
        epsilon_published=None,
        epsilon_provable=math.inf,
        theorem="none",
        paths={"model": math.inf},
        artefacts={"map": np.eye(2)},
    )


def test_round_trip(tmp_path: Path) -> None:
    store = CellStore(tmp_path)
    assert not store.has(CELL)
    store.save(CELL, outcome(), 1.5)
    assert store.has(CELL)
    record = store.load(CELL)
    assert record.entry.epsilon_provable == math.inf
    assert record.entry.epsilon_published is None
    assert record.entry.paths == {"model": math.inf}
    assert len(record.entry.ledger) == 2
    assert np.array_equal(record.artefacts["map"], np.eye(2))


def test_a_cell_says_everything_once(tmp_path: Path) -> None:
    store = CellStore(tmp_path)
    store.save(CELL, outcome(), 1.5)
    file = next(store.folder.glob("*.json.gz"))
    stored = read_file(file)
    assert json.dumps(stored).count(CELL.name) == 1
    entry = store.load(CELL).entry
    assert [json.loads(line)["cell"] for line in entry.ledger] == [CELL.name] * 2
    assert entry.ledger == entry_of(CELL, outcome(), 1.5).ledger


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    write_atomically(path, b"old")

    def full(*args: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("fedgraph.cells.store.os.fsync", full)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"


def test_portable_numbers() -> None:
    assert portable({"a": [math.inf, -math.inf, math.nan, np.float32(1.5), (1,)]}) == {"a": ["inf", "-inf", "nan", 1.5, [1]]}
