"""The report of a run, at its end, now and then before, and where it is broken off."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fedgraph.cells import store
from fedgraph.cells.entry import portable
from fedgraph.cells.environment import Environment
from fedgraph.runs import environment
from fedgraph.runs.console import Console
from fedgraph.runs.schedule import Stage
from fedgraph.scenario.read import Ready, file_name
from fedgraph.types import Graph, GraphCollection

if TYPE_CHECKING:
    from fedgraph.report.sections.base import Records

SECONDS_BETWEEN_PAGES = 300.0  # while cells run; a page takes a few seconds


@dataclass(eq=False)
class Reporting:
    """What a report is made of. text: the scenario as it was read. where: of the engine, in words. began: ``time.time()``."""

    ready: Ready
    graphs: Sequence[Graph | GraphCollection]
    out: Path
    text: str
    stages: Sequence[Stage]
    kept: store.CellStore
    where: Mapping[str, object]
    began: float
    latest: float = field(default_factory=time.monotonic)

    def environment(self) -> Environment:
        """As it is now: how long the run has taken, and how many cells it asks for."""
        cells = sum(len(stage.cells) for stage in self.stages)
        seed = self.ready.scenario.seed
        found = environment.describe(seed, self.graphs, self.where, self.began, cells)
        specs = (spec for stage in self.stages for spec in stage.task.params.model_dump().get("methods", ()))
        if isinstance(seed, str) and any("select" in spec for spec in specs):  # how long it took would tell of the trials
            return replace(found, made=replace(found.made, seconds=None))
        return found

    def write_environment(self) -> None:
        """Before the first cell, so that the folder can be read at any time."""
        text = json.dumps(portable(asdict(self.environment())), indent=1, ensure_ascii=False) + "\n"
        store.write_atomically(self.out / "environment.json", text.encode())

    def report(self, console: Console) -> list[store.FailedCell]:
        """Write the report of every cell that is there; the cells that failed."""
        from fedgraph import report  # what draws and writes is not needed before the last cell

        failed = [why for stage in self.stages for cell in stage.cells if (why := self.kept.failure(cell)) is not None]
        found = counted([replace(records_of(stage, self.kept), short=self.ready.quick) for stage in self.stages])
        whole = [records for records in found if records.entries]
        report.write(self.out, self.ready.scenario, self.text, whole, self.graphs, self.environment(), console, failed)
        return failed

    def report_now_and_then(self) -> None:
        """A page of what is done, where the latest one is old."""
        if time.monotonic() - self.latest > SECONDS_BETWEEN_PAGES:
            self.report_so_far()

    def report_so_far(self) -> None:
        """A page of what is done, without a word; where it cannot be made, the run goes on (or ends) as it would without."""
        if any(self.kept.written(cell) for stage in self.stages for cell in stage.cells):
            with contextlib.suppress(Exception):
                self.report(Console(quiet=True))
        self.latest = time.monotonic()


def records_of(stage: Stage, kept: store.CellStore) -> Records:
    """A stage's finished schedule, for the report."""
    from fedgraph.report.sections.base import Records

    found = [kept.load(cell) for cell in stage.cells if kept.written(cell)]
    name = file_name(f"{stage.task.label}-{stage.context.dataset}")
    return Records(
        name,
        stage.task.kind,
        stage.task.label,
        stage.context.dataset,
        stage.task.params.model_dump(),
        tuple(f.entry for f in found),
        tuple(f.artefacts for f in found),
    )


def counted(records: list[Records]) -> list[Records]:
    """The same, each told how many lower bounds on ε the whole report shows: they share one error probability."""
    from fedgraph.report import attacks, report_rows

    among = attacks.num_bounds(report_rows.group_rows([entry for r in records for entry in r.entries]))
    return [replace(r, among=among) for r in records]
