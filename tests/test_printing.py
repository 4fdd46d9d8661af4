"""Whoever waits for a lock says for which, and who has it; nothing is given up and nothing is lost."""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fedgraph import printing
from fedgraph.privacy import Unit, budget_book


def test_a_lock_that_is_waited_for_is_named_and_its_work_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, said, told = tmp_path / "people.budget", list[str](), threading.Event()
    budget_book.create(place, Unit.NODE, 2.0, 1e-6, ["a", "b"])

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())
            told.set()

    monkeypatch.setattr(printing, "_PATIENCE", 0.01)
    listener, held = Listener(), os.open(place, os.O_RDONLY)
    logging.getLogger("fedgraph").addHandler(listener)
    with ThreadPoolExecutor(1) as beside:
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            working = beside.submit(budget_book.read, place)
            assert told.wait(60)
            assert f"{place}: locked by process {os.getpid()}; waiting" in said[0]
        finally:
            os.close(held)
            logging.getLogger("fedgraph").removeHandler(listener)
        assert working.result(60).num_people == 2
