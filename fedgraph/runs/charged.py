"""A run that is charged to a budget: all of its cells before the first of them, and each of them once.

``cells/charged`` in the run's folder holds a random name of the run, and the key of every cell from before it is saved. A run
that goes on has fresh noise. A cell that was not saved has left nothing behind, so its charge stands for the new attempt. A
cell that was saved and is not there any more was released: it is charged again. Killed at any moment, a run has paid too much
or exactly enough, never too little.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fedgraph import privacy
from fedgraph.cells import Cell
from fedgraph.errors import PrivacyError, ScenarioError
from fedgraph.privacy import budget_book
from fedgraph.runs.schedule import ScheduledStage
from fedgraph.tasks import base as tasks
from fedgraph.types import Graph, GraphCollection


@dataclass
class ChargedRun:
    """The budget of one run."""

    book: str  # Where the book of ``fedgraph budget`` is
    notes: Path  # The run's ``cells/charged``
    ids: tuple[str, ...]  # Of the people
    _run: str = ""
    _saved: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, book: str, folder: Path, data: Graph | GraphCollection) -> "ChargedRun":
        """For the run in ``folder`` on ``data``. ``ScenarioError`` where these are no people."""
        if not isinstance(data, Graph):
            raise ScenarioError(f"{data.name} is a collection of graphs; a budget is for the people of one graph")
        made = cls(book, folder / "cells" / "charged", data.ids)
        made._read()
        return made

    def charge(self, stages: Sequence[ScheduledStage], todo: Sequence[tuple[ScheduledStage, Cell]]) -> None:
        """Charge what is not paid yet. ``PrivacyError`` where it exceeds the cap: it says what is left and which row fits."""
        paid = sum(charge.mark.startswith(self._mark) for charge in budget_book.read(self.book).charges) if self._run else 0
        if paid:
            due = [(stage, cell) for stage, cell in todo if cell.key in self._saved]
        else:
            due = [(stage, cell) for stage in stages for cell in stage.cells]
            self._run = secrets.token_hex(16)
        if not due:
            return
        rows = []
        for stage, cell in due:
            models, label = tasks.load(stage.task.kind).TASK.models, stage.task.label
            if models is None:
                raise ScenarioError(
                    f"a budget is charged for rows that classify nodes or score links; {label} is {stage.task.kind}"
                )
            made, guarantee = models.spends(stage.task.params, cell, stage.context)
            rows.append(privacy.Candidate.planned(cell.words, guarantee, made.schedule.releases))
        owners = any(row.protection.unit is privacy.Unit.ENTITY for row in rows)
        ids = None if owners else self.ids  # the data do not say which owners of edges they are of: all of the book pay
        what = f"run {self.notes.parent.parent.name}, {len(due):,} cells"
        try:
            budget_book.charge(self.book, what, rows, ids, f"{self._mark}:{paid}")
        except PrivacyError as error:
            hint = budget_book.fits(budget_book.read(self.book), rows, ids)
            raise PrivacyError(f"{error}. {hint}") from error
        self._saved -= {cell.key for _, cell in due}
        lines = [json.dumps({"run": self._run}), *(json.dumps({"saved": key}) for key in sorted(self._saved))]
        _write(self.notes, lines, "w")

    def note(self, cell: Cell) -> None:
        """Before the cell is saved: from then on it counts as released."""
        self._saved.add(cell.key)
        _write(self.notes, [json.dumps({"saved": cell.key})], "a")

    @property
    def _mark(self) -> str:
        """Of this run in this folder: a copy of the folder pays for itself."""
        return hashlib.sha256(f"{self._run} {self.notes.resolve()}".encode()).hexdigest()[:32]

    def _read(self) -> None:
        if not self.notes.exists():
            return
        try:
            first, *others = (json.loads(line) for line in self.notes.read_text(encoding="utf-8").splitlines())
            self._run, self._saved = str(first["run"]), {str(one["saved"]) for one in others}
        except (ValueError, KeyError, TypeError):
            self._run = ""  # torn or edited: everything is charged again


def _write(path: Path, lines: Sequence[str], mode: str) -> None:
    with path.open(mode, encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in lines))
        file.flush()
        os.fsync(file.fileno())
