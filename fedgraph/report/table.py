"""The table of a run: a line for each cell, as ``results.parquet`` and ``results.csv`` keep it; and a line for each row.

tabulate(results, sources)   from results to the table; write and read: its files; results_of: the results again
group(table)                 one line for each row: means over seeds, the largest ε
rows(table)                  the same lines with the cells behind them: what answer, page, sheets and letters read
"""

from __future__ import annotations

import ast
import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pandas as pd

from fedgraph import plugins
from fedgraph.audit import one_run
from fedgraph.cells import (
    CanaryAttackCellFacts,
    Cell,
    GraphClassificationCellFacts,
    NamedAttackCellFacts,
    Result,
    result,
    store,
)
from fedgraph.errors import DataError
from fedgraph.privacy import Trust
from fedgraph.report import chance, phrases
from fedgraph.types import in_words_of

COLUMNS = (  # those before epsilon_published are equal in all cells of a row; a number is also in ``_NUMBERS``
    "row", "task", "dataset", "source", "one", "question", "method", "variant", "name", "title", "trust", "world",
    "viewer", "unit", "relation", "assumptions", "epsilon", "delta", "calibrated_by", "epsilon_published",
    "epsilon_provable", "epsilon_measured", "theorem", "paths", "seed", "metric", "value", "tested", "chance",
    "clients", "cut_edges", "public", "protocol", "split", "partition", "rounds", "train_nodes", "status", "private",
    "raw", "notes", "seconds", "chosen", "epsilon_trial", "facts", "ledger", "record",
)  # fmt: skip
_NUMBERS = (
    "epsilon", "delta", "epsilon_published", "epsilon_provable", "epsilon_measured", "value", "chance",
    "seconds", "epsilon_trial", "tested", "clients", "cut_edges",
)  # fmt: skip
_TYPED = {**dict.fromkeys(_NUMBERS, "float64"), **dict.fromkeys(("rounds", "train_nodes", "seed"), "int64")}
_LISTS = ("assumptions", "notes")
_SAME = COLUMNS[: COLUMNS.index("epsilon_published")]  # of all cells of a row
METRICS = {  # what rows are compared by; the first that a row has
    "average_precision_positive": "average precision of the class that is looked for",
    "accuracy": "test accuracy",
    "auc": "area under the ROC curve of hidden edges",
    "ari": "adjusted Rand index of the clusters",
}
_RARE = ("auroc", "recall_at_alerts")  # where one of two classes is rare, accuracy says little: naming the other is always near
_USUAL = ("test-graph", "attributes")  # what is public where a scenario says nothing: of an inductive, of a transductive task
_PLAIN = ("default", "baseline")  # labels that say nothing
_LEAST_INDEX = 0.1  # an adjusted Rand index below it is called nothing: 0 is what chance gives
_EPSILON = re.compile(r"(?:\b(?:epsilon|eps|e)|ε)\s*[=≤<:]*\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?|∞|inf\b|none\b)")
_WORD = re.compile(r"e=[\w.+-]+|[^\W_]+(?:\.[^\W_]+)*")

# ---- the table of cells ----------------------------------------------------------------------------------------------


def tabulate(results: Sequence[Result], sources: Mapping[str, str], names: Mapping[Cell, str] | None = None) -> pd.DataFrame:
    """A line for each finished or failed cell, with ``COLUMNS`` and one for each metric; None or NaN where it is no question.

    Args:
        sources: Data set → where it came from: ``real``, ``synthetic``, ``embedded`` or ``own``.
        names: ``Cell.row`` → its name; None: as these cells alone are told apart.
    """
    names = name_rows(results) if names is None else names
    rows: dict[Cell, list[Result]] = {}
    for one in results:
        if not one.failed:
            rows.setdefault(one.row, []).append(one)
    compared = _metrics(rows)
    measured = {row: attack.epsilon() for row, cells in rows.items() if (attack := _canaries(cells)) is not None}
    lines = []
    for one in results:
        cells, metric, held = rows.get(one.row), compared.get(one.row), one.protection
        asked = (one.task, *_asked(cells[0], metric), held.unit.value if held else "") if cells and metric else ()
        of_graphs, source = one.facts.kind.startswith("graph"), sources.get(one.dataset, "none")
        lines.append(result.to_line(one) | {
            "row": names[one.row], "source": source, "question": " · ".join(filter(None, asked)) or None,
            "name": _short_of(one), "title": title_of(one.method), "trust": (_trust(one) if cells else one.world.trust).value,
            "epsilon_measured": None if one.epsilon_measured is None else measured.get(one.row),
            "metric": metric, "value": one.metrics.get(metric or "", math.nan),
            "chance": chance.of_guessing(metric, one.metrics),
            "tested": None if not cells else (_tested(cells) or None) if of_graphs else one.facts.tested,
        })  # fmt: skip
    return _typed(pd.DataFrame(lines, columns=None if lines else list(COLUMNS)))


def _typed(table: pd.DataFrame) -> pd.DataFrame:
    """Columns in their order, numbers as floats, counts that every cell has as integers, and None where a text is missing."""
    metrics, at = sorted(name for name in table if name not in COLUMNS), COLUMNS.index("clients")
    table = table[[*COLUMNS[:at], *metrics, *COLUMNS[at:]]].astype(_TYPED | dict.fromkeys(metrics, "float64"))
    texts = {name: table[name].astype(object) for name in COLUMNS if name not in (*_TYPED, *_LISTS, "private", "raw")}
    return table.assign(**{name: column.where(column.notna(), None) for name, column in texts.items()})


@cache
def title_of(method: str) -> str:
    """What a method is called in words: how its file begins; its name where it is no method but a row to compare with."""
    source = plugins.source("methods", method) if method in plugins.names("methods") else None
    said = None if source is None else ast.get_docstring(ast.parse(source.read_bytes()))  # read, since a list loads no torch
    return method if not said else said.partition(":")[0].partition("\n")[0]


def results_of(table: pd.DataFrame) -> list[Result]:
    """The results of the lines, in their order, without artefacts; ``ValueError`` for what is no table of results."""
    return [result.from_line(line) for line in table.to_dict("records")]


def finished(table: pd.DataFrame) -> pd.DataFrame:
    """The lines of cells that did not fail."""
    return table[~table["status"].str.startswith(result.FAILED)]


def per_client(table: pd.DataFrame) -> pd.DataFrame:
    """What single clients, and ``all``, reach where owners are compared: a line for each cell, way of taking part, client and
    metric. ``epsilon_provable`` is of the client's dearest unit, and ``tested`` counts that client's own."""
    naming = ["row", "task", "dataset", "method", "variant", "world", "epsilon", "calibrated_by", "seed"]
    lines = []
    for line, one in zip(table[naming].to_dict("records"), results_of(table), strict=True):
        for told in one.facts.results:
            own = {"trust": one.world.trust.value, "epsilon_provable": told.epsilon}
            own |= {name: vars(told)[name] for name in ("participation", "client", "toward", "nodes", "tested")}
            lines += [line | own | {"metric": metric, "value": value} for metric, value in told.metrics.items()]
    columns = (*naming, "trust", "participation", "client", "epsilon_provable", "toward", "nodes", "tested", "metric", "value")
    return pd.DataFrame(lines, columns=columns)


def write(table: pd.DataFrame, folder: Path, ended: bool = True) -> None:
    """Write ``results.csv``, ``clients.csv`` where owners are compared, and, where no cell is missing, ``results.parquet``."""
    counts = table.astype(dict.fromkeys(("tested", "clients", "cut_edges"), "Int64"))
    text = to_text(counts.drop(columns=["facts", "ledger", "record"]))  # JSON that programs read
    store.write_atomically(folder / "results.csv", text.encode())
    if len(clients := per_client(table)):
        store.write_atomically(folder / "clients.csv", to_text(clients).encode())
    if ended:
        whole = table.to_parquet(index=False, compression="zstd", write_page_checksum=True)
        store.write_atomically(folder / store.RESULTS_FILE, whole)


def to_text(table: pd.DataFrame) -> str:
    """A table as CSV: of cells, of rows or of clients. Several sentences in one cell stand with semicolons between them."""
    joined = {name: table[name].map("; ".join) for name in _LISTS if name in table}
    return str(table.assign(**joined).to_csv(index=False, lineterminator="\n"))


def read(file: Path) -> pd.DataFrame:
    """The table that ``write`` wrote; ``DataError`` where the file is damaged, or is no table of results."""
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(file, page_checksum_verification=True).to_pandas()
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise DataError(f"{file}: damaged, so nothing of its run is shown ({' '.join(str(error).split())[:200]})") from error
    if missing := [name for name in COLUMNS if name not in table]:
        raise DataError(f"{file}: no table of results of this version: the column {missing[0]} is missing; run it anew")
    return _typed(table)


def group(table: pd.DataFrame) -> pd.DataFrame:
    """One line for each row, in order of first appearance; cells that failed are in none.

    It has what names a row and what it promises; ``mean`` and ``deviation`` of ``metric`` over ``seeds`` repetitions (NaN where
    a value is missing; no deviation of one seed), every metric's mean, the largest ε of every kind, ``tested`` of the seed that
    tested fewest, mean ``seconds``, and ``status``: of the first seed that is not ``ok``.
    """
    whole = finished(table).assign(status=lambda done: done["status"].where(done["status"] != "ok"))
    groups, metrics = whole.groupby("row", sort=False), [name for name in table if name not in COLUMNS]

    def of(how: str, *names: str) -> dict[str, tuple[str, str]]:
        return {name: (name, how) for name in names}

    promised = ("clients", "cut_edges", "public", "protocol", "split", "partition", "rounds", "train_nodes", "private", "raw")
    found = groups.agg(
        **of("first", *_SAME[1:]), mean=("value", "mean"), deviation=("value", "std"), seeds=("value", "size"),
        **of("max", "epsilon_published", "epsilon_provable", "epsilon_measured"),
        **of("first", "metric", "theorem", "paths", "chosen", "epsilon_trial"), **of("mean", "chance", "seconds", *metrics),
        **of("min", "tested"), **of("first", *promised, "status"),
    )  # fmt: skip
    found["mean"] = found["mean"].where(groups["value"].count() == found["seeds"])
    return found.fillna({"status": "ok"}).reset_index()


# ---- names of rows ---------------------------------------------------------------------------------------------------
def _short_of(row: Cell) -> str:
    """What a sentence calls a row: the label that its scenario gives it, or its method."""
    return row.method if row.variant in _PLAIN else row.variant


def name_rows(cells: Iterable[Cell]) -> dict[Cell, str]:
    """``Cell.row`` → what a person types to name it among these cells, such as ``label_hop, sums, ε=4``.

    No two rows have one name, whatever letters are capital and wherever spaces stand: method, task and data set follow
    where another row would be called the same.
    """
    names = {}
    for row in dict.fromkeys(cell.row for cell in cells):
        epsilon = "∞" if math.isinf(row.epsilon) else f"{row.epsilon:.12g}"
        reading = " as published" if row.calibrated_by == "published" else ""
        names[row] = f"{_short_of(row)}, {row.world.words}, ε={epsilon}{reading}"
    reads = ["method", "task", "dataset"]
    while len(set(map(plain_name, names.values()))) < len(names):
        read = reads.pop(0) if reads else None
        groups: dict[tuple[str, ...], list[Cell]] = {}
        for row, name in names.items():
            groups.setdefault(plain_name(name), []).append(row)
        for same in groups.values():
            more = range(1, len(same) + 1) if read is None else [vars(row)[read] for row in same]
            if len(set(more)) > 1:
                names |= {row: f"{names[row]} · {told}" for row, told in zip(same, more, strict=True)}
    return names


def plain_name(name: str) -> tuple[str, ...]:
    """The words of a name, without what people type in several ways: capitals, signs between words, and how ε is written."""

    def number(found: re.Match[str]) -> str:
        said = found[1]
        return f" e={math.inf if said in ('∞', 'inf', 'none') else float(said):.12g} "

    return tuple(_WORD.findall(_EPSILON.sub(number, name.casefold())))


def find_row_name(names: Mapping[str, str], asked: str, where: object) -> str:
    """The one row that is meant by a name, or by words of it (or parts of words) that only one has; ``eps=4`` is ``ε=4``.

    names: Of all rows, each with further words that may be said of it: its method, task and data set. ``DataError``, which
    begins with ``where`` and lists those that may be meant, where no row, or more than one, is so called.
    """
    wanted, plain = plain_name(asked), {name: plain_name(name) for name in names}
    words = {name: own + plain_name(names[name]) for name, own in plain.items()}

    def holds(own: tuple[str, ...], word: str) -> bool:
        return word in own if word.startswith("e=") else any(word in one for one in own)

    found = (
        [name for name in names if wanted and plain[name] == wanted]
        or [name for name in names if wanted and set(wanted) <= set(plain[name])]
        or [name for name in names if wanted and set(wanted) <= set(words[name])]
        or [name for name in names if wanted and all(holds(words[name], word) for word in wanted)]
    )
    if len(found) == 1:
        return found[0]
    many = f"{len(found)} rows" if found else "no row"
    allowed = phrases.first([f'"{name}"' for name in found or names], 8, "; ")
    raise DataError(f"{where}: {many} with a name like {asked!r}; allowed: {allowed}")


# ---- one line for each row -------------------------------------------------------------------------------------------


class Line(SimpleNamespace):
    """A line of the table of rows, its columns as attributes: those of ``group``, and what ``rows`` and ``scored`` add."""

    def __repr__(self) -> str:
        numbers = f"metric={self.metric!r}, mean={self.mean!r}, deviation={self.deviation!r}, seeds={self.seeds}"
        prices = ", ".join(f"{name}={vars(self)[f'epsilon_{name}']!r}" for name in ("provable", "published", "measured"))
        return f"{type(self).__name__}({self.row!r}, {numbers}, {prices}, trust={self.trust.value!r}, unit={self.unit!r})"


class Attack(SimpleNamespace):
    """An attack on a row. ``every``, ``one``: facts of each attacked seed, and of the first; ``counts``: guesses of all seeds
    together, since their coins are independent, one entry for each number of guesses."""

    @classmethod
    def of(cls, every: Sequence[CanaryAttackCellFacts | NamedAttackCellFacts], delta: float) -> Attack:
        kept = [one.counts for one in every if one.counts]
        counts = tuple(one_run.OneRunCount(*map(sum, zip(*same, strict=True))) for same in zip(*kept, strict=True))
        return cls(every=tuple(every), one=every[0], delta=delta, counts=counts)

    def epsilon(self, alpha: float = one_run.ONE_RUN_ALPHA, estimator: str = "") -> float | None:
        """The ε that the guesses refute at the row's δ, with the probability ``alpha`` of being wrong; None where no theorem
        gives one. estimator: Which bound of ``audit.one_run`` reads them, in the place of the attack's own."""
        return _bound(self.counts, self.delta, estimator or self.one.estimator, alpha) if self.counts else None

    @property
    def ceiling(self) -> float:
        """What ``epsilon`` would be with every guess right."""
        right = tuple(one_run.OneRunCount(c.coins, c.guesses, c.guesses) for c in self.counts)
        return _bound(right, self.delta, self.one.estimator, one_run.ONE_RUN_ALPHA)


@cache
def _bound(counts: tuple[one_run.OneRunCount, ...], delta: float, by: str, alpha: float) -> float:
    return one_run.best_bound(list(counts), delta, by, alpha)


def rows(table: pd.DataFrame, results: Sequence[Result] | None = None) -> list[Line]:
    """The lines of ``group``, with ``cells`` (the row's results, one a seed), what the first of them says, and what ``scored``
    says of ``metric`` (empty where there is nothing to compare the row by). results: Of the finished cells; None: the table's.
    """
    done, cells = finished(table), dict[str, list[Result]]()
    for name, one in zip(done["row"], results_of(done) if results is None else results, strict=True):
        cells.setdefault(name, []).append(one)
    found = [Line(**line) for line in group(table).to_dict("records")] if cells else []
    for line in found:
        vars(line).update(_told(line, tuple(cells[line.row])))
    bounds = max(num_attack_bounds(found), 1)
    return [scored(line, line.metric, refuted=refuted_among(line, bounds)) for line in found]


def rows_of(results: Sequence[Result]) -> list[Line]:
    """The rows of results alone, named as they are told apart."""
    return rows(tabulate(results, {}), [one for one in results if not one.failed])


def _told(line: Line, cells: tuple[Result, ...]) -> dict[str, object]:
    """What a line has beside the columns of ``group``."""
    head, held, one = cells[0], cells[0].protection, cells[0].facts.one
    paths: dict[str, float] = {}  # of all seeds: what a private choice finds may send one seed along other paths than the next
    for path, price in ((path, price) for e in cells for path, price in e.paths.items()):
        paths[path] = max(price, paths.get(path, price))
    canaries, provable, who = _canaries(cells), line.epsilon_provable, f"{head.method} · {head.variant}"
    named: dict[str, list[NamedAttackCellFacts]] = {}
    for attack in (attack for e in cells if e.facts.named for attack in e.facts.named.found):
        named.setdefault(attack.attack, []).append(attack)
    words = ("-".join(plain_name(line.row))).replace("e=", "eps-").replace(".", "_").replace("+", "")
    place = "".join(c if c.isascii() else f"u{ord(c):x}" for c in words)
    known = {name: None if pd.isna(value := vars(line)[name]) else value for name in ("epsilon_published", "epsilon_measured")}
    return known | {
        "cells": cells, "head": head, "facts": head.facts, "kind": head.facts.kind, "held": held, "trust": _trust(head),
        "unit": line.unit or "", "relation": line.relation or "", "delta": head.delta or 0.0, "paths": paths,
        "assumptions": () if held is None else tuple(in_words_of(one, text) for text in line.assumptions),
        "notes": tuple(dict.fromkeys(in_words_of(one, note) for e in cells for note in e.notes)),
        "private": bool(head.paths) or math.isinf(provable),  # whether anything computed from private data is released
        "raw": math.isinf(head.epsilon) and math.isinf(provable),  # asked for no privacy, and gives none: a ceiling
        "canaries": canaries, "named": [Attack.of(every, head.delta or 0.0) for every in named.values()],
        # what ``epsilon_measured`` must not exceed: ε of the attacked path, or of the whole row
        "guaranteed": provable if canaries is None or canaries.one.path is None else paths[canaries.one.path],
        "tested": _tested(cells), "stated": line.status, "metric": line.metric or "", "of_sizes": 0.0,
        "who": who,  # method and variant; ``label``: one of them where they are one word
        "label": line.name if head.variant in _PLAIN or head.variant.lower() == head.method else who,
        "anchor": f"row-{place}", "slug": f"all-{place}",  # its places in a page: in words, and in the table of all rows
    }  # fmt: skip


def scored(line: Line, metric: str, *, refuted: bool | None = None, of_sizes: float = 0.0) -> Line:
    """The line, compared by a metric: ``scores`` and ``guesses`` (seed → the metric, and what somebody reaches there who learnt
    nothing), ``mean`` (NaN where a seed has no number), ``deviation`` (None of one seed), ``guess``, the interval ``low`` to
    ``high``, ``beats`` (better than guessing on every seed), ``status``, and ``usable``: whether it may be an answer.

    refuted: Whether an attack contradicts its ε; None: as it was. of_sizes: What rows reach that see public sizes alone.
    """
    scores = {e.seed: v for e in line.cells if math.isfinite(v := e.metrics.get(metric, math.nan))}
    whole, chances = len(scores) == len(line.cells), {e.seed: chance.of_guessing(metric, e.metrics) for e in line.cells}
    told = Line(**vars(line) | {
        "metric": metric, "scores": scores, "refuted": vars(line).get("refuted", False) if refuted is None else refuted,
        "of_sizes": of_sizes, "asked": _asked(line.head, metric),
        "mean": statistics.fmean(scores.values()) if whole else math.nan,
        "deviation": statistics.stdev(scores.values()) if len(scores) > 1 else None,
        "guesses": {seed: max(value, of_sizes) for seed, value in chances.items()},
        "guess": max(statistics.fmean(chances.values()), of_sizes),
    })  # fmt: skip
    spans = [chance.interval(value, told) for value in scores.values()] or [(math.nan, math.nan)]
    told.low, told.high = min(low for low, _ in spans), max(high for _, high in spans)
    told.beats = told.low >= _LEAST_INDEX  # one training of the row above that seed's own guess, on every seed
    if metric != "ari":
        told.beats = bool(scores) and all(chance.interval(value, told)[0] > told.guesses[s] for s, value in scores.items())
    told.status = line.stated if whole or line.stated != "ok" else "no number: a value is missing or not finite"
    if told.refuted:
        told.status = f"refuted: an attack shows ε ≥ {phrases.lower(line.epsilon_measured)}"
    told.usable = math.isfinite(told.mean) and told.status == "ok"
    return told


def answering(lines: Sequence[Line]) -> tuple[Line, ...]:
    """Lines as questions ask of them: what is rare is compared by its AUROC, and clustered graphs by their classes, too."""
    found, beside, sizes = [], [], dict[tuple[str, ...], float]()
    for line in (line for line in lines if line.metric):
        rare = line.metric == "accuracy" and all(name in e.metrics for e in line.cells for name in _RARE)
        found.append(scored(line, "auroc") if rare else line)
        beside += [scored(line, "accuracy")] if line.metric == "ari" and values(line, "accuracy") else []
    for line in (every := (*found, *beside)):  # of whole graphs, guessing is what rows reach that see public sizes alone
        if line.kind.startswith("graph") and line.metric == "accuracy" and not line.private and math.isfinite(line.mean):
            sizes[line.asked] = max(line.mean, sizes.get(line.asked, 0.0))
    return tuple(scored(line, line.metric, of_sizes=sizes[line.asked]) if line.asked in sizes else line for line in every)


def _metrics(rows: Mapping[Cell, Sequence[Result]]) -> dict[Cell, str | None]:
    """By which metric each row is compared; None where it has none: all rows of one task on one data set by the first of
    ``METRICS`` that each has; of graphs that are clustered by how well their classes are found."""
    own = {row: {name for e in cells for name in e.metrics} & METRICS.keys() for row, cells in rows.items()}
    shared: dict[tuple[str, str], set[str]] = {}
    for row, has in own.items():
        if has:
            shared[row.task, row.dataset] = has & shared.get((row.task, row.dataset), has)
    found = {}
    for row, has in own.items():
        able = (has and shared[row.task, row.dataset]) or has
        by_classes = "ari" in has and rows[row][0].facts.kind == "graph_clustering"
        found[row] = "ari" if by_classes else next((name for name in METRICS if name in able), None)
    return found


def _asked(head: Result, metric: str | None) -> tuple[str, ...]:
    """Rows can be compared only where this is equal: data set, metric, protocol, split, what is public unless usual."""
    public = head.facts.public or _USUAL[0]
    return (head.dataset, metric or "", head.facts.protocol, head.facts.split, "" if public in _USUAL else public)


def _trust(head: Result) -> Trust:
    """Whom its guarantee needs to be trusted; everybody, without a stated viewer."""
    return Trust.CURATOR if head.protection is None else Trust.against(head.protection.viewer)


def _tested(cells: Sequence[Result]) -> int:
    """How many different people, graphs or pairs a score rests on; 0: not counted. Folds are of different graphs."""
    facts, counts = cells[0].facts, [e.facts.tested for e in cells if e.facts.tested is not None]
    if isinstance(facts, GraphClassificationCellFacts) and counts:
        return min(sum(counts), facts.graphs)
    return (facts.clients or 0) if facts.kind == "graph_clustering" else min(counts, default=0)


def _canaries(cells: Sequence[Result]) -> Attack | None:
    """Guesses about canaries in the attacked seeds; None where there were none."""
    every = [e.facts.attack for e in cells if e.epsilon_measured is not None and e.facts.attack]
    return Attack.of(every, cells[0].delta or 0.0) if every else None


def num_attack_bounds(lines: Iterable[Line]) -> int:
    """How many lower bounds on ε are shown that are held against a provable one: of canaries, and of attacks by name."""
    return sum(
        (line.epsilon_measured is not None) + sum(bool(told.counts) and told.one.comparable for told in line.named)
        for line in lines
    )


def refuted_among(line: Line, bounds: int) -> bool:
    """Whether what was measured contradicts ``guaranteed``, with the error divided among so many bounds of the report."""
    if line.canaries is None or (line.epsilon_measured or 0.0) <= line.guaranteed:  # a smaller error refutes less
        return False
    return (line.canaries.epsilon(one_run.ONE_RUN_ALPHA / bounds) or 0.0) > line.guaranteed


def keeps(line: Line, epsilon: float) -> bool:
    """Whether everything that a row releases is provably within ``epsilon``; ∞ is kept by no guarantee."""
    return math.isfinite(line.epsilon_provable) and line.epsilon_provable <= epsilon * (1 + 1e-9)


def best_without_privacy(lines: Iterable[Line]) -> Line | None:
    """The best row that was asked for no privacy."""
    return max((s for s in lines if s.raw and math.isfinite(s.mean)), key=lambda s: s.mean, default=None)


def values(line: Line, metric: str) -> list[float]:
    """Of each seed that has it."""
    return [e.metrics[metric] for e in line.cells if metric in e.metrics]


def mean_of(line: Line, metric: str) -> float:
    """Over seeds; NaN where none has it."""
    found = values(line, metric)
    return statistics.fmean(found) if found else math.nan


def format_row_mean(line: Line, metric: str) -> str:
    """``mean ± standard deviation`` over seeds; ± with a fourth digit where it would be 0.000, as if nothing varied."""
    found = values(line, metric)
    deviation = statistics.stdev(found) if len(found) > 1 else 0.0
    digits = 4 if 0 < deviation < 0.0005 else 3
    spread = f" ± {deviation:.{digits}f}" if len(found) > 1 else ""
    return f"{round(mean_of(line, metric), digits) + 0.0:.{digits}f}{spread}" if found else "—"
