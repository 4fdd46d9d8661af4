"""A run as one DataFrame, one line for each finished cell: what the page, the terminal and the answer read.

Columns, where a cell has no such thing None or NaN:

    row                 its name, which a person types: ``label_hop, sums, ε=4``; cells of one row differ in the seed alone
    task dataset one    the label of the task, of the data set, and what one node is called
    question            equal where rows answer one question: task, data set, metric, protocol, unit
    name title          what the row is called, and what its method calls itself
    trust world viewer unit relation assumptions
    epsilon delta calibrated_by epsilon_published epsilon_provable epsilon_measured theorem
    seed metric value tested chance, and every metric in a column of its own
    clients public protocol split rounds train_nodes status private raw notes seconds
    facts               JSON: the facts of the cell's task
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from fedgraph.cells import CellEntry, GraphClassificationCellFacts, GraphClusteringCellFacts, portable
from fedgraph.report.references import describe_referenced_method
from fedgraph.report.report_rows import ReportRow
from fedgraph.report.scores import find_score_trust, score_rows

if TYPE_CHECKING:
    import pandas

_CHANCE = {"auc": 0.5, "auroc": 0.5, "ari": 0.0}


def of_rows(rows: Sequence[ReportRow]) -> "pandas.DataFrame":
    """One line for each cell of these rows.

    Args:
        rows: Of one run, or of several.

    Returns:
        The DataFrame, in the order of the rows and of their seeds.
    """
    import pandas

    metrics = {id(s.row): (s.metric, s.asked) for s in score_rows(rows)}
    lines = []
    for row, name in zip(rows, names(rows), strict=True):
        metric, asked = metrics.get(id(row), (None, ()))
        if isinstance(row.head.facts, GraphClusteringCellFacts) and "ari" in row.head.metrics:
            metric = "ari"
        lines += [_line(row, entry, name, metric, asked) for entry in row.entries]
    return pandas.DataFrame(lines)


def names(rows: Sequence[ReportRow]) -> list[str]:
    """What a person types for each row: no two of a run are the same."""
    heads = [row.head for row in rows]
    labels = [_label(e) for e in heads]
    found = [f"{label}, {e.world.words}, ε={_budget(e.epsilon)}" for e, label in zip(heads, labels, strict=True)]
    tellers: tuple[Callable[[CellEntry], str], ...] = (
        lambda e: " as published" if e.calibrated_by == "published" else "",
        lambda e: "" if e.variant in ("default", "baseline", e.method) else f" · {e.method}",
        lambda e: f" · {e.task}",
        lambda e: f" · {e.dataset}",
    )
    for more in tellers:
        told: dict[str, set[str]] = {}
        for name, e in zip(found, heads, strict=True):
            told.setdefault(name, set()).add(more(e))
        found = [name + (more(e) if len(told[name]) > 1 else "") for name, e in zip(found, heads, strict=True)]
    return found


def _label(entry: CellEntry) -> str:
    return entry.method if entry.variant in ("default", "baseline") else entry.variant


def _budget(epsilon: float) -> str:
    return "∞" if math.isinf(epsilon) else f"{epsilon:g}"


def _line(row: ReportRow, e: CellEntry, name: str, metric: str | None, asked: Sequence[str]) -> dict[str, object]:
    facts, held = e.facts, e.protection
    unit = None if held is None else held.unit.value
    tested = facts.tested
    if tested and isinstance(facts, GraphClassificationCellFacts):  # folds are of different graphs
        tested = min(sum(one.facts.tested or 0 for one in row.entries), facts.graphs)
    if isinstance(facts, GraphClusteringCellFacts):  # each client holds one graph, and every graph is asked
        tested = facts.clients
    return {
        "row": name,
        "task": e.task,
        "dataset": e.dataset,
        "one": facts.one,
        "question": " · ".join((e.task, *map(str, asked), unit or "")) if metric else None,
        "method": e.method,
        "variant": e.variant,
        "name": _label(e),
        "title": describe_referenced_method(e.method),
        "trust": find_score_trust(row).value,
        "world": e.world.words,
        "viewer": None if held is None else held.viewer.value,
        "unit": unit,
        "relation": None if held is None else held.relation.value,
        "assumptions": [] if held is None else [held.sentence(a) for a in held.assumptions],
        "epsilon": e.epsilon,
        "delta": math.nan if e.delta is None else e.delta,
        "calibrated_by": e.calibrated_by,
        "epsilon_published": math.nan if e.epsilon_published is None else e.epsilon_published,
        "epsilon_provable": e.epsilon_provable,
        "epsilon_measured": math.nan if row.measured is None else row.measured,
        "theorem": e.theorem,
        "seed": e.seed,
        "metric": metric,
        "value": e.metrics.get(metric, math.nan) if metric else math.nan,
        "tested": tested or math.nan,
        "chance": _chance(metric, e.metrics.get("majority_share", 0.0)),
        **e.metrics,
        "clients": math.nan if facts.clients is None else facts.clients,
        "public": facts.public,
        "protocol": facts.protocol,
        "split": facts.split,
        "rounds": facts.rounds,
        "train_nodes": facts.train_nodes,
        "status": e.status,
        "private": bool(e.paths) or math.isinf(e.epsilon_provable),
        "raw": math.isinf(e.epsilon) and math.isinf(e.epsilon_provable),
        "notes": list(e.notes),
        "seconds": e.seconds,
        "facts": json.dumps(portable(asdict(facts)), ensure_ascii=False),
    }


def _chance(metric: str | None, majority: float) -> float:
    """What somebody reaches who learnt nothing."""
    if metric == "average_precision_positive":
        return 1 - majority if majority else 0.0
    return _CHANCE.get(metric or "", majority)
