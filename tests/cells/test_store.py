"""A cell on disk is whole or absent, and reads back as it was."""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedgraph.cells import store
from fedgraph.cells.store import CellStore
from fedgraph.cells.task_facts import TaskFacts
from fedgraph.federation import world_of_trust
from fedgraph.privacy.events import Gaussian
from fedgraph.privacy.ledger import LedgerAccount, LedgerRelease
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Protection, Relation, Viewer
from fedgraph.tasks.base import Cell, Result

CELL = Cell("t", "d", "m", "v", world_of_trust(Trust.CURATOR), math.inf, "none", 0)


def outcome() -> Result:
    account = LedgerAccount(CELL.key, Protection(Relation.NODE_ZERO_OUT, Viewer.SERVER, ()), 1e-5)
    release = LedgerRelease(CELL.key, "model", 0, 0, "noise", Gaussian(2.0))
    return Result.of(
        CELL, account, (release,), metrics={"accuracy": 0.5}, facts=TaskFacts(clients=3), epsilon_provable=math.inf,  # type: ignore[arg-type]
        theorem="none", paths={"model": math.inf}, seconds=1.5, artefacts={"map": np.eye(2)},
    )  # fmt: skip


@pytest.mark.parametrize("ending", [".npz", ".json.gz"])
def test_whatever_of_a_cell_is_changed_it_is_computed_again(tmp_path: Path, ending: str) -> None:
    """A whole file in the place of another one, such as that of another run; and other JSON."""
    store, other = CellStore(tmp_path / "one"), CellStore(tmp_path / "other")
    store.save(outcome())
    other.save(replace(outcome(), metrics={"accuracy": 0.6}, artefacts={"map": np.ones((2, 2))}))
    entry = store.load(CELL)
    assert [json.loads(line)["cell"] for line in entry.ledger] == [CELL.name] * 2
    assert (entry, entry.account, entry.releases) == (outcome(), outcome().account, outcome().releases)
    (mine,), (theirs,) = (list(kept.folder.glob(f"*{ending}")) for kept in (store, other))
    for damaged in (theirs.read_bytes(), *(gzip.compress(junk.encode()) for junk in ("[1]", "null", "[" * 100_000, '"text"'))):
        assert store.has(CELL)
        sound = mine.read_bytes()
        mine.write_bytes(damaged)
        assert not store.has(CELL)
        assert "damaged or was edited" in store.damaged[-1]
        mine.write_bytes(sound)


def test_a_cell_that_failed_says_why_and_stays_missing(tmp_path: Path) -> None:
    store = CellStore(tmp_path)
    store.save(Result.of(CELL, failed="no memory", seconds=2.0))
    assert not store.has(CELL)
    failed = store.failure(CELL)
    assert failed is not None
    assert (failed.failed, failed.seconds, failed.status) == ("no memory", 2.0, "failed: no memory")
    store.save(outcome())
    assert store.failure(CELL) is None


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    store.write_atomically(path, b"old")

    def full(*args: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("fedgraph.cells.store.os.fsync", full)
    with pytest.raises(OSError, match="disk full"):
        store.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"


def test_no_two_budgets_share_a_file_or_a_stream() -> None:
    budgets = [1.0, 1.0000001, 1.00000011, 0.1, 0.1 + 1e-16 * 3, 1e-9, 1e9, math.inf]
    made = [replace(CELL, epsilon=epsilon, calibrated_by="provable") for epsilon in budgets]
    assert len({cell.key for cell in made}) == len({cell.name for cell in made}) == len(set(budgets)) == len(budgets)
