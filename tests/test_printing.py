"""Whoever waits for a lock says for which, and who has it; nothing is given up and nothing is lost."""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fedgraph import printing
from fedgraph.cells.store import CellPairStore
from fedgraph.privacy import Unit, budget_book


def pairs(folder: Path) -> tuple[Path, Callable[[], object], Callable[[], bool]]:
    store = CellPairStore(folder)
    (folder / "pairs").mkdir()
    columns = {"pairs": np.array([[0, 1]]), "value": np.array([2.0])}
    return folder / "pairs", lambda: store.add("a", columns), lambda: store.load("a")[0]["value"].tolist() == [2.0]


def book(folder: Path) -> tuple[Path, Callable[[], object], Callable[[], bool]]:
    place = folder / "people.budget"
    budget_book.create(place, Unit.NODE, 2.0, 1e-6, ["a", "b"])
    found: list[int] = []
    return place, lambda: found.append(budget_book.read(place).num_people), lambda: found == [2]


@pytest.mark.parametrize("made", [pairs, book])
def test_a_lock_that_is_waited_for_is_named_and_its_work_is_done(
    made: Callable[[Path], tuple[Path, Callable[[], object], Callable[[], bool]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place, act, is_done = made(tmp_path)
    said, told = list[str](), threading.Event()

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())
            told.set()

    monkeypatch.setattr(printing, "_PATIENCE", 0.01)
    listener, held = Listener(), os.open(place, os.O_RDONLY)
    logging.getLogger("fedgraph").addHandler(listener)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        working = threading.Thread(target=act)
        working.start()
        assert told.wait(60)
        assert f"{place}: locked by process {os.getpid()}; waiting" in said[0]
    finally:
        os.close(held)
        logging.getLogger("fedgraph").removeHandler(listener)
    working.join()
    assert is_done()
