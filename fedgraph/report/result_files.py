"""``results.csv`` and ``results.json``: every number, as ``COLUMNS`` reads it. ``curves.csv``: accuracy over rounds."""

import csv
import io
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fedgraph.cells.entry import Entry, portable
from fedgraph.cells.facts import Facts, NodeClassificationFacts
from fedgraph.cells.store import FailedCell
from fedgraph.report.columns import COLUMNS, Number, Value
from fedgraph.report.report_rows import Row

LEFT_OUT = "left-out"  # the participation of a client that the others trained without
NAMING = ("task", "dataset", "method", "variant", "trust", "world", "calibrated_by", "epsilon", "seed")  # of a cell
WRITTEN = tuple(column for column in COLUMNS if column.csv)


def read_columns(numbers: Sequence[Number]) -> list[dict[str, Value]]:
    """One mapping per number, with every column of results.csv, in their order."""
    return [{column.key: column.value(number) for column in WRITTEN} for number in numbers]


def numbers_of_failures(scenario: str, source: Mapping[str, str], failed: Sequence[FailedCell]) -> list[Number]:
    """One for each cell that failed: who it was, no metric, and in ``status`` why. source: data set → where it came from."""
    found = []
    for f in failed:
        c = f.cell
        named = (c.task, c.dataset, c.method, c.variant, c.world, c.calibrated_by, c.epsilon, c.seed)
        nothing = Entry(*named, {}, Facts(), None, None, None, math.nan, None, "", {}, (), f.seconds, ())
        where = source.get(c.dataset, "none")
        one = Number(Row((nothing,)), None, None, None, f"failed: {f.why}", scenario=scenario, source=where)
        if c.world.without is not None:
            one = replace(one, participation=LEFT_OUT, client=c.world.without.name)
        found.append(one)
    return found


def nest_metrics(rows: Sequence[Mapping[str, Value]]) -> list[dict[str, object]]:
    """The rows for JSON: those that differ in ``metric`` and ``value`` only are one, with ``metrics`` by name."""
    found: list[dict[str, object]] = []
    for same, own in itertools.groupby(rows, lambda row: {k: v for k, v in row.items() if k not in ("metric", "value")}):
        found.append({**same, "metrics": {str(row["metric"]): row["value"] for row in own if row["metric"] is not None}})
    return found


def notes_of_rows(entries: Sequence[Entry]) -> list[dict[str, object]]:
    """Every sentence that a plan says of its numbers, once for each row: what ``results.json`` and the console show of them."""
    found = dict.fromkeys((e.row_key, note) for e in entries for note in e.notes)
    return [{**key._asdict(), "note": note} for key, note in found]


def _naming_of(entry: Entry) -> tuple[Value, ...]:
    """What the columns ``NAMING`` say of a cell, in their order."""
    by_key = {column.key: column for column in WRITTEN}
    number = Number(Row((entry,)), None, None, None)
    return tuple(by_key[key].value(number) for key in NAMING)


def identity_of(entry: Entry) -> tuple[str, ...]:
    """What its rows in ``results.json`` say of an entry's cell, and of no other: see ``identity_in``."""
    without = entry.world.without
    left = ("", "") if without is None else (LEFT_OUT, without.name)
    return (*map(str, _naming_of(entry)), *left)


def identity_in(row: Mapping[str, object]) -> tuple[str, ...]:
    """``identity_of`` the cell that a row of ``results.json`` is about."""
    left = (LEFT_OUT, str(row["client"])) if row["participation"] == LEFT_OUT else ("", "")
    return (*(str(row[key]) for key in NAMING), *left)


def as_csv(rows: Sequence[Mapping[str, Value]]) -> str:
    """CSV text that begins with its header; generated data show in the column ``source``. No value is empty, ∞ is ``inf``."""
    out = io.StringIO()
    writer = csv.DictWriter(out, [column.key for column in WRITTEN], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def as_json(head: Mapping[str, object], tables: Mapping[str, Sequence[object]]) -> str:
    """One JSON object: ``head``, then each table with one entry per line, so that many rows stay small and can be compared.

    >>> print(as_json({"scenario": "x"}, {"rows": [{"epsilon": 1.0}]}), end="")
    {
     "scenario": "x",
     "rows": [
      {"epsilon":1.0}
     ]
    }
    """

    def line(value: object) -> str:
        return json.dumps(portable(value), ensure_ascii=False, separators=(",", ":"))

    parts = [f' "{key}": {line(value)}' for key, value in head.items()]
    for key, entries in tables.items():
        inside = ",\n".join(f"  {line(entry)}" for entry in entries)
        parts.append(f' "{key}": [\n{inside}\n ]' if entries else f' "{key}": []')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def write_curves(entries: Sequence[Entry]) -> str | None:
    """CSV text of all curves, one line for each kept round of each cell; None where no cell kept one."""
    rows = [[*_naming_of(e), *point] for e in entries for point in curve_of(e)]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([(*NAMING, "round", "accuracy"), *rows])
    return out.getvalue() if rows else None


def curve_of(entry: Entry) -> tuple[tuple[int, float], ...]:
    """(round, test accuracy) of the rounds that the cell kept."""
    return entry.facts.curve if isinstance(entry.facts, NodeClassificationFacts) else ()
