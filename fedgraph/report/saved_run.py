"""A finished run, read back from its folder: what every command and the library work on."""

import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd
import yaml
from pydantic import TypeAdapter

from fedgraph.cells import Environment, Result, result, store
from fedgraph.errors import DataError
from fedgraph.report import table
from fedgraph.report.table import Line, find_row_name

SHORT_SAVED_RUN = (
    "SHORT RUN (--quick): the scenario was shrunk so that it ends soon. This shows what a report looks like; do not decide by "
    "its numbers."
)
UNFINISHED_SAVED_RUN = (
    "UNFINISHED RUN: {} of {} cells are done, and this is what they say. “fedgraph run … --resume DIR” computes the others."
)
_UNREPORTED = "UNFINISHED RUN: all {} cells are done, but no report was written. “fedgraph run … --resume DIR” writes it."


@dataclass(frozen=True, eq=False)
class SavedRun:
    """A run as its folder holds it."""

    folder: Path
    table: pd.DataFrame  # one line for each cell (``report.table``)
    environment: Environment
    title: str  # of its scenario, or its name
    notice: str | None  # which data were generated, whether the run was shrunk, and how many cells are done before its end

    @cached_property
    def _done(self) -> pd.DataFrame:
        return table.finished(self.table)

    @cached_property
    def results(self) -> tuple[Result, ...]:
        """Every finished cell, in the order of the table."""
        return tuple(table.results_of(self._done))

    @cached_property
    def rows(self) -> list[Line]:
        """Every configuration, its seeds together."""
        return table.rows(self.table, self.results)

    def find(self, name: str) -> Line:
        """One row by its name, as a person types it (``table.find_row_name``); nothing else of the run is read."""
        said = self._done.drop_duplicates("row").set_index("row")[["method", "task", "dataset"]].agg(" ".join, axis=1)
        meant = find_row_name(said.to_dict(), name, self.folder)
        return table.rows(self._done[self._done["row"] == meant])[0]


def load_saved_run(folder: Path) -> SavedRun:
    """Read a run, also one that is at work or was broken off; ``DataError`` where there is none, or a file is damaged."""
    try:
        told = TypeAdapter(Environment).validate_json((folder / "environment.json").read_bytes())
        asked = yaml.safe_load((folder / "scenario.yaml").read_text(encoding="utf-8"))
        title = str(asked.get("title") or asked["name"])
    except FileNotFoundError as error:
        raise DataError(f"{folder}: not the folder of a run: {Path(error.filename).name} is missing") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError) as error:
        raise DataError(f"{folder}: not the folder of a run: {' '.join(str(error).split())}") from error
    reported = (folder / store.RESULTS_FILE).is_file()
    if reported:
        lines = table.read(folder / store.RESULTS_FILE)
    else:
        found = []
        for file in sorted((folder / "cells").glob(f"*{store.STORED_CELL_ENDING}")):
            try:
                found.append(result.from_line(result.read_file(file)))
            except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
                why = " ".join(str(error).split())[:200]
                raise DataError(f"{file}: this cell is damaged, so nothing of its run is shown ({why})") from error
        labels = [str(one.get("label") or one["name"]) for one in asked.get("datasets") or ()]
        sources = dict(zip(labels, (source.source for source in told.data), strict=False))
        found.sort(key=lambda one: (*one.kind[:4], one.world.words, one.epsilon, one.calibrated_by, one.seed))
        lines = table.tabulate(found, sources)
    cells = len(table.finished(lines)) if len(lines) else 0
    if not cells:
        raise DataError(f"{folder}: no finished cell of this run is in {folder / 'cells'}")
    done = None if reported else _UNREPORTED.format(told.cells)
    if cells < told.cells:
        done = UNFINISHED_SAVED_RUN.format(cells, told.cells)
    short = SHORT_SAVED_RUN if told.quick else None
    return SavedRun(folder, lines, told, title, " ".join(filter(None, (told.notice, short, done))) or None)
