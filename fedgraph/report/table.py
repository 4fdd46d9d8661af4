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
from pathlib import Path

import pandas as pd

from fedgraph import plugins
from fedgraph.cells import Cell, GraphClassificationCellFacts, GraphClusteringCellFacts, Result, result, store
from fedgraph.errors import DataError
from fedgraph.report.rows import Row, group_rows, metric_of_rows, name_rows, question_of, short_of

RESULTS_TEXT, CLIENTS_TEXT = "results.csv", "clients.csv"
COLUMNS = (
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
    rows = {row.head.row: row for row in group_rows(results, names)}
    compared = dict(zip(rows, _metrics(tuple(rows.values())), strict=True))
    titles, lines = {method: title_of(method) for method in {one.method for one in results}}, []
    for one in results:
        row, metric = rows.get(one.row), compared.get(one.row)
        asked = (one.task, *question_of(one, metric), "" if one.protection is None else one.protection.unit.value)
        told = {
            "row": names[one.row],
            "source": sources.get(one.dataset, "none"),
            "question": " · ".join(filter(None, asked)) if metric else None,
            "name": short_of(one.method, one.variant),
            "title": titles[one.method],
            "trust": (one.world.trust if row is None else row.trust).value,
            "epsilon_measured": None if row is None or one.epsilon_measured is None else row.measured,
            "metric": metric,
            "value": one.metrics.get(metric or "", math.nan),
            "tested": None if row is None else _tested(one, row),
            "chance": _chance(metric, one.metrics.get("majority_share", 0.0)),
        }
        lines.append(result.to_line(one) | told)
    return _typed(pd.DataFrame(lines, columns=None if lines else list(COLUMNS)))


def of_rows(rows: Sequence[Row]) -> pd.DataFrame:
    """The lines of the cells of some rows, which keep their names. Where their data came from is not said."""
    return tabulate([one for row in rows for one in row.results], {}, {row.head.row: row.row for row in rows})


def _typed(table: pd.DataFrame) -> pd.DataFrame:
    """Columns in their order, numbers as floats, counts that every cell has as integers, and None where a text is missing."""
    metrics = sorted(metrics_in(table))
    table = table[[*COLUMNS[: COLUMNS.index("clients")], *metrics, *COLUMNS[COLUMNS.index("clients") :]]]
    table = table.astype(dict.fromkeys((*_NUMBERS, *metrics), "float64") | dict.fromkeys(_COUNTS, "int64"))
    texts = {name: table[name].astype(object) for name in COLUMNS if name not in (*_NUMBERS, *_COUNTS, *_LISTS, *_WHETHER)}
    return table.assign(**{name: column.where(column.notna(), None) for name, column in texts.items()})


def _metrics(rows: Sequence[Row]) -> list[str | None]:
    """By which metric each row is compared; of graphs that are clustered by how well their classes are found."""
    own = [{name for one in row.results for name in one.metrics} for row in rows]
    first = metric_of_rows([((row.task, row.dataset), metrics) for row, metrics in zip(rows, own, strict=True)])
    found: list[str | None] = []
    for row, metrics, picked in zip(rows, own, first, strict=True):
        clustered = isinstance(row.head.facts, GraphClusteringCellFacts) and "ari" in metrics
        found.append("ari" if clustered else picked)
    return found


def _tested(one: Result, row: Row) -> int | None:
    """How many different people, graphs or pairs the row's score rests on: folds are of different graphs, seeds split anew."""
    facts = one.facts
    if isinstance(facts, GraphClassificationCellFacts) and facts.tested:
        return min(sum(other.facts.tested or 0 for other in row.results), facts.graphs)
    return facts.clients if isinstance(facts, GraphClusteringCellFacts) else facts.tested


def _chance(metric: str | None, majority: float) -> float:
    """What somebody reaches who learnt nothing."""
    if metric == "average_precision_positive":
        return 1 - majority if majority else 0.0
    return {"auc": 0.5, "ari": 0.0}.get(metric or "", majority)


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

    Args:
        table: One line for each cell.

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
        table: Of the run.
        folder: Of the run.
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
        raise DataError(f"{file}: no table of results: the column {missing[0]} is missing")
    return _typed(table)


def metrics_in(table: pd.DataFrame) -> list[str]:
    """The columns that are metrics."""
    return [name for name in table.columns if name not in COLUMNS]


def group(table: pd.DataFrame) -> pd.DataFrame:
    """One line for each row, in order of first appearance; cells that failed are in none.

    Args:
        table: One line for each cell.

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
