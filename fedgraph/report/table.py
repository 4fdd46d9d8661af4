"""The table of a run: one line for each cell, as ``results.parquet`` keeps it, ``results.csv`` shows it and readers read it.

tabulate(results, sources)   from results to the table
write(table, folder)         its files; read(file) gives the table again
results_of(table)            the results again, without artefacts
group(table)                 one line for each row: means over seeds, the largest ε
per_client(table)            what single clients reach, where owners are compared
"""

from __future__ import annotations

import ast
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pandas as pd

from fedgraph import plugins
from fedgraph.cells import Cell, Result, result, store
from fedgraph.errors import DataError
from fedgraph.report.rows import chance_of, group_rows, metrics_of, name_rows, short_of

RESULTS_TEXT, CLIENTS_TEXT = "results.csv", "clients.csv"
COLUMNS = (  # those before epsilon_published are equal in all cells of a row; a number is also in ``_NUMBERS``
    "row", "task", "dataset", "source", "one", "question", "method", "variant", "name", "title", "trust", "world",
    "viewer", "unit", "relation", "assumptions", "epsilon", "delta", "calibrated_by", "epsilon_published",
    "epsilon_provable", "epsilon_measured", "theorem", "paths", "seed", "metric", "value", "tested", "chance",
    "clients", "cut_edges", "public", "protocol", "split", "partition", "rounds", "train_nodes", "status", "private",
    "raw", "notes", "seconds", "chosen", "epsilon_trial", "facts", "ledger", "record",
)  # fmt: skip
_INSIDE = ("facts", "ledger", "record")  # JSON that programs read
_NUMBERS = (
    "epsilon", "delta", "epsilon_published", "epsilon_provable", "epsilon_measured", "value", "chance",
    "seconds", "epsilon_trial", "tested", "clients", "cut_edges",
)  # fmt: skip
_COUNTS, _LISTS, _WHETHER = ("rounds", "train_nodes", "seed"), ("assumptions", "notes"), ("private", "raw")
_SAME = COLUMNS[: COLUMNS.index("epsilon_published")]  # of all cells of a row


def tabulate(results: Sequence[Result], sources: Mapping[str, str], names: Mapping[Cell, str] | None = None) -> pd.DataFrame:
    """The table of finished and failed cells.

    Args:
        results: In the order of the table.
        sources: Data set → where it came from: ``real``, ``synthetic``, ``embedded`` or ``own``.
        names: ``Cell.row`` → its name; None: as these cells alone are told apart.

    Returns:
        A line for each, with ``COLUMNS`` and one for each metric; None or NaN where something is no question.
    """
    names = name_rows(results) if names is None else names
    rows = group_rows(results, names)
    of_row = {row.head.row: replace(row, metric=metric or "") for row, metric in zip(rows, metrics_of(rows), strict=True)}
    titles, lines = {method: title_of(method) for method in {one.method for one in results}}, []
    for one in results:
        row = of_row.get(one.row)
        metric = None if row is None else row.metric or None
        told = {
            "row": names[one.row],
            "source": sources.get(one.dataset, "none"),
            "question": " · ".join(filter(None, (one.task, *row.asked, row.unit))) if row is not None and metric else None,
            "name": short_of(one.method, one.variant),
            "title": titles[one.method],
            "trust": (one.world.trust if row is None else row.trust).value,
            "epsilon_measured": None if row is None or one.epsilon_measured is None else row.measured,
            "metric": metric,
            "value": one.metrics.get(metric or "", math.nan),
            "tested": None if row is None else (row.tested or None) if row.kind.startswith("graph") else one.facts.tested,
            "chance": chance_of(metric, one.metrics),
        }
        lines.append(result.to_line(one) | told)
    return _typed(pd.DataFrame(lines, columns=None if lines else list(COLUMNS)))


def _typed(table: pd.DataFrame) -> pd.DataFrame:
    """Columns in their order, numbers as floats, counts that every cell has as integers, and None where a text is missing."""
    metrics = sorted(metrics_in(table))
    table = table[[*COLUMNS[: COLUMNS.index("clients")], *metrics, *COLUMNS[COLUMNS.index("clients") :]]]
    table = table.astype(dict.fromkeys((*_NUMBERS, *metrics), "float64") | dict.fromkeys(_COUNTS, "int64"))
    texts = {name: table[name].astype(object) for name in COLUMNS if name not in (*_NUMBERS, *_COUNTS, *_LISTS, *_WHETHER)}
    return table.assign(**{name: column.where(column.notna(), None) for name, column in texts.items()})


@cache
def title_of(method: str) -> str:
    """What a method is called in words: how its file begins; its name where it is no method but a row to compare with."""
    source = plugins.source("methods", method) if method in plugins.names("methods") else None
    said = None if source is None else ast.get_docstring(ast.parse(source.read_bytes()))  # read, since a list loads no torch
    return method if not said else said.partition(":")[0].partition("\n")[0]


def results_of(table: pd.DataFrame) -> list[Result]:
    """The results of the lines, in their order, without artefacts.

    Raises:
        ValueError: It is no table of results.
    """
    return [result.from_line(line) for line in table.to_dict("records")]


def finished(table: pd.DataFrame) -> pd.DataFrame:
    """The lines of cells that did not fail."""
    return table[~table["status"].str.startswith(result.FAILED)]


def per_client(table: pd.DataFrame) -> pd.DataFrame:
    """What single clients reach, where owners are compared; ``all`` is everybody.

    Returns:
        One line for each cell, way of taking part, client and metric. ``epsilon_provable`` is of the client's dearest unit, and
        ``tested`` counts that client's own.
    """
    naming = ["row", "task", "dataset", "method", "variant", "world", "epsilon", "calibrated_by", "seed"]
    lines = []
    for line, one in zip(table[naming].to_dict("records"), results_of(table), strict=True):
        for told in one.facts.results:
            own = {
                "trust": one.world.trust.value,
                "participation": told.participation,
                "client": told.client,
                "epsilon_provable": told.epsilon,
            }
            own |= {"toward": told.toward, "nodes": told.nodes, "tested": told.tested}
            lines += [line | own | {"metric": metric, "value": value} for metric, value in told.metrics.items()]
    columns = (*naming, "trust", "participation", "client", "epsilon_provable", "toward", "nodes", "tested", "metric", "value")
    return pd.DataFrame(lines, columns=columns)


def write(table: pd.DataFrame, folder: Path, ended: bool = True) -> None:
    """Write ``results.csv``, ``clients.csv`` where owners are compared, and ``results.parquet`` where the run is at its end.

    Each is written whole or not at all.

    Args:
        ended: Whether no cell is missing.
    """
    text = table.drop(columns=list(_INSIDE)).astype(dict.fromkeys(("tested", "clients", "cut_edges"), "Int64"))
    store.write_atomically(folder / RESULTS_TEXT, to_text(text).encode())
    if len(clients := per_client(table)):
        store.write_atomically(folder / CLIENTS_TEXT, to_text(clients).encode())
    if ended:
        store.write_atomically(folder / store.RESULTS_FILE, to_parquet(table))


def to_text(table: pd.DataFrame) -> str:
    """A table as CSV: of cells, of rows or of clients. Several sentences in one cell stand with semicolons between them."""
    joined = {name: table[name].map("; ".join) for name in _LISTS if name in table}
    return str(table.assign(**joined).to_csv(index=False, lineterminator="\n"))


def to_parquet(table: pd.DataFrame) -> bytes:
    """The table as a file whose pages have checksums."""
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False, compression="zstd", write_page_checksum=True)
    return buffer.getvalue()


def read(file: Path) -> pd.DataFrame:
    """The table that ``write`` wrote.

    Raises:
        DataError: The file is damaged, or is no table of results.
    """
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(file, page_checksum_verification=True).to_pandas()
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise DataError(f"{file}: damaged, so nothing of its run is shown ({' '.join(str(error).split())[:200]})") from error
    if missing := [name for name in COLUMNS if name not in table]:
        raise DataError(f"{file}: no table of results of this version: the column {missing[0]} is missing; run it anew")
    return _typed(table)


def metrics_in(table: pd.DataFrame) -> list[str]:
    """The columns that are metrics."""
    return [name for name in table.columns if name not in COLUMNS]


def group(table: pd.DataFrame) -> pd.DataFrame:
    """One line for each row, in order of first appearance; cells that failed are in none.

    Returns:
        The columns that name a row and say what it promises; ``mean`` and ``deviation`` of ``metric`` over ``seeds``
        repetitions (NaN where a value is missing; no deviation of one seed), every metric's mean, the largest ε of every kind,
        ``tested`` of the seed that tested fewest, mean ``seconds``, and ``status``: of the first seed that is not ``ok``.
    """
    whole = finished(table)
    groups, metrics = whole.groupby("row", sort=False), metrics_in(table)
    found = groups[list(_SAME[1:])].first()
    value = groups["value"]
    found["mean"] = value.mean().where(value.count() == groups.size())
    found["deviation"] = value.std(ddof=1)
    found["seeds"] = groups.size()
    largest = ["epsilon_published", "epsilon_provable", "epsilon_measured"]
    found[largest] = groups[largest].max()
    first = ["metric", "theorem", "paths", "chosen", "epsilon_trial"]
    found[first] = groups[first].first()
    found[["chance", "seconds", *metrics]] = groups[["chance", "seconds", *metrics]].mean()
    found["tested"] = groups["tested"].min()
    kept = ["clients", "cut_edges", "public", "protocol", "split", "partition", "rounds", "train_nodes", "private", "raw"]
    found[kept] = groups[kept].first()
    found["status"] = whole["status"].where(whole["status"] != "ok").groupby(whole["row"], sort=False).first()
    found["status"] = found["status"].fillna("ok")
    return found.reset_index()
