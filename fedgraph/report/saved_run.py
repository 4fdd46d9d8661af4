"""A finished run, read back from its folder: what ``sheet`` and other commands work on."""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml
from pydantic import TypeAdapter

from fedgraph.cells import CellEntry, Environment, ParticipationCellFacts, from_json, portable, read_file
from fedgraph.errors import DataError
from fedgraph.report.phrases import phrase_first
from fedgraph.report.report_rows import ReportRow, group_report_rows
from fedgraph.report.result_files import RESULT_NAMING, identify_result_cell, identify_result_row
from fedgraph.report.scores import Score, name_score_anchor, score_rows

SHORT_SAVED_RUN = (
    "SHORT RUN (--quick): the scenario was shrunk so that it ends soon. This shows what a report looks like; do not decide by "
    "its numbers."
)
UNFINISHED_SAVED_RUN = (
    "UNFINISHED RUN: {} of {} cells are done, and this is what they say. “fedgraph run … --resume DIR” computes the others."
)
_UNREPORTED = "UNFINISHED RUN: all {} cells are done, but no report was written. “fedgraph run … --resume DIR” writes it."


@dataclass(frozen=True)
class SavedRun:
    """A run as its folder holds it.

    Attributes:
        entries: Finished cells as stored, in the order of results.json.
        title: Of its scenario, or its name.
        notice: Says which data were generated, whether the run was shrunk, and how many cells are done where it is not at its
            end; None where nothing is to say.
        files: The file of each of ``entries``.
    """

    folder: Path
    entries: tuple[CellEntry, ...]
    environment: Environment
    title: str
    notice: str | None
    files: tuple[Path, ...]

    def file_of(self, entry: CellEntry) -> Path:
        """Where this very entry is stored."""
        return next(file for file, kept in zip(self.files, self.entries, strict=True) if kept is entry)

    @cached_property
    def rows(self) -> tuple[ReportRow, ...]:
        """Every configuration, its seeds together."""
        return tuple(group_report_rows(self.entries))

    @cached_property
    def scores(self) -> tuple[Score, ...]:
        """The rows that can be compared."""
        return score_rows(self.rows)

    def find(self, name: str) -> ReportRow:
        """One row by its name.

        Args:
            name: Its anchor; or a name, or a part of an anchor or a name, that only one row has.

        Raises:
            DataError: No row, or more than one, has this name; the line lists anchors.
        """
        anchors = {name_score_anchor(row): row for row in self.rows}
        if name in anchors:
            return anchors[name]
        near = [s.anchor for s in self.scores if s.name == name] or [a for a in anchors if name in a]
        near = near or [s.anchor for s in self.scores if name in s.name]
        if len(near) == 1:
            return anchors[near[0]]
        allowed = phrase_first(near or list(anchors), 6)
        many = f"{len(near)} rows" if near else "no row"
        raise DataError(f"{self.folder}: {many} with a name like {name!r}; allowed: {allowed}")


def load_saved_run(folder: Path) -> SavedRun:
    """Read a run, also one that is at work or was broken off.

    Raises:
        DataError: There is no run, a file is damaged, or a cell and results.json say different things.
    """
    results, environment, scenario = (folder / name for name in ("results.json", "environment.json", "scenario.yaml"))
    for file in (environment, scenario):
        if not file.is_file():
            raise DataError(f"{folder}: not the folder of a run: {file.name} is missing")
    try:
        listed = json.loads(results.read_text(encoding="utf-8")) if results.is_file() else {"rows": []}
        order: dict[tuple[str, ...], int] = {}
        for i, row in enumerate(listed["rows"]):
            order.setdefault(identify_result_row(row), i)
        told = TypeAdapter(Environment).validate_json(environment.read_text(encoding="utf-8"))
        asked = yaml.safe_load(scenario.read_text(encoding="utf-8"))
        title = str(asked.get("title") or asked["name"])
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, yaml.YAMLError) as error:
        raise DataError(f"{folder}: not the folder of a run: {' '.join(str(error).split())}") from error
    cells = {file: _read_cell(file) for file in sorted((folder / "cells").glob("*.json.gz"))}
    if not cells:
        raise DataError(f"{folder}: no finished cell of this run is in {folder / 'cells'}")
    unreported = not results.is_file() or UNFINISHED_SAVED_RUN[:10] in str(listed.get("short"))
    if not unreported and len(cells) >= told.cells:
        _require_rows(cells, listed["rows"], order)
    files = sorted(cells, key=lambda f: (order.get(identify_result_cell(cells[f]), len(order)), identify_result_cell(cells[f])))
    done = _UNREPORTED.format(told.cells) if unreported else None
    if len(files) < told.cells:
        done = UNFINISHED_SAVED_RUN.format(len(files), told.cells)
    short = SHORT_SAVED_RUN if told.quick else None
    notice = " ".join(filter(None, (listed.get("notice") or told.notice, short, done))) or None
    return SavedRun(folder, tuple(cells[f] for f in files), told, title, notice, tuple(files))


def _read_cell(file: Path) -> CellEntry:
    try:
        return from_json(read_file(file))
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
        why = " ".join(str(error).split())[:200]
        raise DataError(f"{file}: this cell is damaged, so nothing of its run is shown ({why})") from error


def _require_rows(
    cells: Mapping[Path, CellEntry], rows: Sequence[Mapping[str, object]], order: Mapping[tuple[str, ...], int]
) -> None:
    names = (*RESULT_NAMING, "participation", "client", "epsilon_provable")
    free = set(order) - set(map(identify_result_cell, cells.values()))
    for file, entry in cells.items():
        own = identify_result_cell(entry)
        near = own if own in order else min(free, key=lambda row: sum(map(str.__ne__, own, row)), default=None)
        there = None if near is None else rows[order[near]]["epsilon_provable"]
        per_client = isinstance(entry.facts, ParticipationCellFacts)
        stated = (*own, str(there if per_client else portable(entry.epsilon_provable)))
        both = zip(names, stated, (*(near or own), str(there)), strict=True)
        differ = [f"{name} is {a}, in results.json {b}" for name, a, b in both if a != b]
        if entry.metrics and (near is None or differ):
            raise DataError(f"{file}: {'; '.join(differ) or 'results.json has no row of this cell'}; one of the two was edited")
