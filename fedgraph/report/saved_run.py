"""A finished run, read back from its folder: what ``sheet`` and other commands work on."""

import json
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml
from pydantic import TypeAdapter

from fedgraph.cells.entry import Entry, from_json, read_file
from fedgraph.cells.environment import Environment
from fedgraph.errors import DataError
from fedgraph.report.report_rows import Row, group_rows
from fedgraph.report.result_files import identity_in, identity_of
from fedgraph.report.scores import Score, row_anchor, score_rows

UNFINISHED = (
    "UNFINISHED RUN: {} of {} cells are done, and this is what they say. “fedgraph run … --resume DIR” computes the others."
)


@dataclass(frozen=True)
class SavedRun:
    """entries: finished cells as stored, in the order of results.json. title: of its scenario, or its name.

    notice: says which data were generated, and how many cells are done where some are missing; None where nothing is to say.
    """

    folder: Path
    entries: tuple[Entry, ...]
    environment: Environment
    title: str
    notice: str | None

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        return tuple(group_rows(self.entries))

    @cached_property
    def scores(self) -> tuple[Score, ...]:
        return score_rows(self.rows)

    def find(self, name: str) -> Row:
        """The row whose anchor this is, or the only one called so or whose anchor contains it; ``DataError`` otherwise."""
        anchors = {row_anchor(row): row for row in self.rows}
        if name in anchors:
            return anchors[name]
        near = [s.anchor for s in self.scores if s.name == name] or [a for a in anchors if name in a]
        if len(near) == 1:
            return anchors[near[0]]
        shown = ", ".join((near or list(anchors))[:6])
        more = f" and {len(near or anchors) - 6} more" if len(near or anchors) > 6 else ""
        many = f"{len(near)} rows" if near else "no row"
        raise DataError(f"{self.folder}: {many} with a name like {name!r}; allowed: {shown}{more}")


def load_run(folder: Path) -> SavedRun:
    """Read a run, also one that is at work or was broken off; ``DataError`` where there is none, or a file is damaged."""
    results, environment, scenario = (folder / name for name in ("results.json", "environment.json", "scenario.yaml"))
    for file in (environment, scenario):
        if not file.is_file():
            raise DataError(f"{folder}: not the folder of a run: {file.name} is missing")
    try:
        listed = json.loads(results.read_text(encoding="utf-8")) if results.is_file() else {"rows": []}
        order: dict[tuple[str, ...], int] = {}
        for i, row in enumerate(listed["rows"]):
            order.setdefault(identity_in(row), i)
        entries = [from_json(read_file(f)) for f in sorted((folder / "cells").glob("*.json.gz"))]
        told = TypeAdapter(Environment).validate_json(environment.read_text(encoding="utf-8"))
        asked = yaml.safe_load(scenario.read_text(encoding="utf-8"))
        unfinished = len(entries) < told.cells
        entries = [e for e in entries if unfinished or identity_of(e) in order]
        title = str(asked.get("title") or asked["name"])
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, yaml.YAMLError) as error:
        raise DataError(f"{folder}: not the folder of a run: {' '.join(str(error).split())}") from error
    if not entries:
        raise DataError(f"{folder}: no finished cell of this run is in {folder / 'cells'}")
    entries.sort(key=lambda e: (order.get(identity_of(e), len(order)), identity_of(e)))
    done = UNFINISHED.format(len(entries), told.cells) if unfinished else None
    notice = listed.get("notice") or told.notice
    return SavedRun(folder, tuple(entries), told, title, " ".join(filter(None, (notice, done))) or None)
