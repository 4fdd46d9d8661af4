"""``results.csv`` and ``results.json``: every number, as ``TABLE_COLUMNS`` reads it. ``curves.csv``: accuracy over rounds."""

import csv
import io
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fedgraph import cells
from fedgraph.cells import CellEntry, NodeClassificationCellFacts, StoredFailure, TaskFacts
from fedgraph.report.report_rows import ReportRow
from fedgraph.report.table_columns import TABLE_COLUMNS, ColumnNumber, ColumnValue

_LEFT_OUT = "left-out"  # the participation of a client that the others trained without
RESULT_NAMING = ("task", "dataset", "method", "variant", "trust", "world", "calibrated_by", "epsilon", "seed")  # of a cell
_WRITTEN = tuple(column for column in TABLE_COLUMNS if column.csv)


def read_result_columns(numbers: Sequence[ColumnNumber]) -> list[dict[str, ColumnValue]]:
    """One mapping per number, with every column of results.csv, in their order."""
    return [{column.key: column.value(number) for column in _WRITTEN} for number in numbers]


def read_failed_results(scenario: str, source: Mapping[str, str], failed: Sequence[StoredFailure]) -> list[ColumnNumber]:
    """One for each cell that failed: who it was, no metric, and in ``status`` why. source: data set → where it came from."""
    found = []
    for f in failed:
        c = f.cell
        named = (c.task, c.dataset, c.method, c.variant, c.world, c.calibrated_by, c.epsilon, c.seed)
        nothing = CellEntry(*named, {}, TaskFacts(), None, None, None, math.nan, None, "", {}, (), f.seconds, ())
        where = source.get(c.dataset, "none")
        one = ColumnNumber(ReportRow((nothing,)), None, None, None, f"failed: {f.why}", scenario=scenario, source=where)
        if c.world.without is not None:
            one = replace(one, participation=_LEFT_OUT, client=c.world.without.name)
        found.append(one)
    return found


def nest_result_metrics(rows: Sequence[Mapping[str, ColumnValue]]) -> list[dict[str, object]]:
    """The rows for JSON: those that differ in ``metric`` and ``value`` only are one, with ``metrics`` by name."""
    found: list[dict[str, object]] = []
    for same, own in itertools.groupby(rows, lambda row: {k: v for k, v in row.items() if k not in ("metric", "value")}):
        found.append({**same, "metrics": {str(row["metric"]): row["value"] for row in own if row["metric"] is not None}})
    return found


def collect_result_notes(entries: Sequence[CellEntry]) -> list[dict[str, object]]:
    """Every sentence that a plan says of its numbers, once for each row: what ``results.json`` and the console show of them."""
    found = dict.fromkeys((e.row_key, note) for e in entries for note in e.notes)
    return [{**key._asdict(), "note": note} for key, note in found]


def _naming_of(entry: CellEntry) -> tuple[ColumnValue, ...]:
    by_key = {column.key: column for column in _WRITTEN}
    number = ColumnNumber(ReportRow((entry,)), None, None, None)
    return tuple(by_key[key].value(number) for key in RESULT_NAMING)


def identify_result_cell(entry: CellEntry) -> tuple[str, ...]:
    """What its rows in ``results.json`` say of an entry's cell, and of no other: see ``identify_result_row``."""
    without = entry.world.without
    left = ("", "") if without is None else (_LEFT_OUT, without.name)
    return (*map(str, _naming_of(entry)), *left)


def identify_result_row(row: Mapping[str, object]) -> tuple[str, ...]:
    """``identify_result_cell`` the cell that a row of ``results.json`` is about."""
    left = (_LEFT_OUT, str(row["client"])) if row["participation"] == _LEFT_OUT else ("", "")
    return (*(str(row[key]) for key in RESULT_NAMING), *left)


def format_result_csv(rows: Sequence[Mapping[str, ColumnValue]]) -> str:
    """CSV text that begins with its header; generated data show in the column ``source``. No value is empty, ∞ is ``inf``."""
    out = io.StringIO()
    writer = csv.DictWriter(out, [column.key for column in _WRITTEN], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def format_result_json(head: Mapping[str, object], tables: Mapping[str, Sequence[object]]) -> str:
    """One JSON object: ``head``, then each table with one entry per line, so that many rows stay small and can be compared.

    >>> print(format_result_json({"scenario": "x"}, {"rows": [{"epsilon": 1.0}]}), end="")
    {
     "scenario": "x",
     "rows": [
      {"epsilon":1.0}
     ]
    }
    """

    def line(value: object) -> str:
        return json.dumps(cells.entry.portable(value), ensure_ascii=False, separators=(",", ":"))

    parts = [f' "{key}": {line(value)}' for key, value in head.items()]
    for key, entries in tables.items():
        inside = ",\n".join(f"  {line(entry)}" for entry in entries)
        parts.append(f' "{key}": [\n{inside}\n ]' if entries else f' "{key}": []')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def format_result_curves(entries: Sequence[CellEntry]) -> str | None:
    """CSV text of all curves, one line for each kept round of each cell; None where no cell kept one."""
    rows = [[*_naming_of(e), *point] for e in entries for point in read_result_curve(e)]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([(*RESULT_NAMING, "round", "accuracy"), *rows])
    return out.getvalue() if rows else None


def read_result_curve(entry: CellEntry) -> tuple[tuple[int, float], ...]:
    """(round, test accuracy) of the rounds that the cell kept."""
    return entry.facts.curve if isinstance(entry.facts, NodeClassificationCellFacts) else ()
