"""What the page says of one task on one data set: sentences, pictures, and columns of the table of all rows.

``build_sections`` makes these of any task. Which metrics are columns, and which of them is drawn against ε, is said for each
kind of task in ``templates/tasks.yaml``; the sentences stand in ``templates/tasks.txt``. A plugin of ``report.sections`` adds
what one kind has beside: it defines ``KINDS`` and ``build(records) -> Section``.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import yaml

from fedgraph import plugins
from fedgraph.cells import (
    GraphClassificationCellFacts,
    GraphClusteringCellFacts,
    NodeClassificationCellFacts,
    Result,
    SolverFacts,
)
from fedgraph.federation import WorldKind
from fedgraph.report import attack_bounds, charts, plots
from fedgraph.report.phrases import (
    load_template,
    phrase_average,
    phrase_number,
    phrase_upper_bound,
    read_phrase_asset,
)
from fedgraph.report.plots import PlotFigure
from fedgraph.report.table import Line, deviation_of, format_row_mean, mean_of, rows_of, values
from fedgraph.types import counted, in_words_of

_MOST_LIVE = 300  # points of a map that the page draws itself; larger ones are pictures, which weigh less


@dataclass(frozen=True)
class SectionTable:
    """A table of text."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    @classmethod
    def of(cls, title: str, lines: Sequence[Mapping[str, str]], note: str = "") -> SectionTable:
        """A table of ``lines``, each with the title of every column and what it says there."""
        return cls(title, tuple(lines[0]), tuple(tuple(line.values()) for line in lines), note)

    def in_words_of(self, one: str) -> SectionTable:
        """The same, with ``types.in_words_of`` around it; its lines may hold names."""
        title, note, *header = (in_words_of(one, text) for text in (self.title, self.note, *self.header))
        return SectionTable(title, tuple(header), self.rows, note)


@dataclass(frozen=True)
class SectionLetter:
    """A page for the owner of one client."""

    client: str  # whose owner reads it
    title: str
    answer: str  # one sentence; empty where nothing can be advised
    sentences: tuple[str, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    last: tuple[str, ...]  # what the numbers rest on


@dataclass(frozen=True)
class Section:
    """What a report says of one task on one data set."""

    sentences: tuple[str, ...] = ()
    tables: tuple[SectionTable, ...] = ()
    figures: tuple[PlotFigure, ...] = ()
    letters: tuple[SectionLetter, ...] = ()  # pages for the owners of its clients
    first: tuple[str, ...] = ()  # what stands before the report's answer


@dataclass(frozen=True, eq=False)
class SectionRecords:
    """Finished cells of one task on one data set."""

    kind: str  # of task, as ``KINDS`` of a section names it
    label: str
    dataset: str
    settings: Mapping[str, object]
    entries: tuple[Result, ...]
    artefacts: tuple[dict[str, np.ndarray], ...] = ()  # named arrays of each cell, in the order of ``entries``
    among: int = 0  # how many lower bounds on ε the whole report shows; 0: those of these cells
    short: bool = False  # whether they come from a run with ``--quick``

    lines: Sequence[Line] = ()  # the cells' rows, where they are known

    @cached_property
    def rows(self) -> Sequence[Line]:
        """The cells as rows."""
        return self.lines or rows_of(self.entries)


@functools.cache
def _told() -> dict[str, dict[str, Any]]:
    """Kind of task → ``metrics`` of its table (metric → title), and ``drawn``: the one that is drawn against ε, if any."""
    return dict(yaml.safe_load(read_phrase_asset("templates/tasks.yaml")))


def build_sections(records: SectionRecords) -> Section:
    """Everything that is said of a task on a data set: what any task has, and what plugins add."""
    if not records.entries:
        return Section()
    modules = [plugins.load("report.sections", name) for name in plugins.usable("report.sections")]
    built = [_of_task(records), *(m.build(records) for m in modules if records.kind in m.KINDS)]
    return Section(*(tuple(part for section in built for part in vars(section)[f.name]) for f in fields(Section)))


def _of_task(records: SectionRecords) -> Section:
    told = _told().get(records.kind)
    if told is None:
        return Section()
    figures = [*_against_epsilon(records, told.get("drawn", "")), *_curves(records), *_maps(records)]
    said = [*_sentences(records), *attack_bounds.explain(records.rows, records.among)]
    return Section(tuple(said), figures=tuple(figures))


def _sentences(records: SectionRecords) -> list[str]:
    """What ``templates/tasks.txt`` says of this kind: one sentence, or a few that belong together, on each line."""
    every = [e.facts for e in records.entries]
    federated = (f for f, e in zip(every, records.entries, strict=True) if e.world.kind is not WorldKind.WHOLE)
    solved = [f.solver for f in every if isinstance(f, (GraphClassificationCellFacts, GraphClusteringCellFacts))]
    sent = [f for f in every if isinstance(f, NodeClassificationCellFacts) and f.sent is not None and f.sent.up]
    shares = {e.seed: e.metrics["majority_share"] for e in records.entries if "majority_share" in e.metrics}
    text = load_template("tasks.txt", escaped=False).render(
        kind=records.kind, facts=next(federated, every[0]), every=every, rows=records.rows,
        settings=dict.fromkeys(("solver", "loss", "held_out")) | dict(records.settings),
        seeds=len({e.seed for e in records.entries}), average=phrase_average, count=counted, time=_time, mean=mean_of,
        majority=sum(shares.values()) / len(shares) if shares else None,
        most=max(sent, key=lambda f: (f.sent.up + f.sent.down) * f.rounds if f.sent else 0, default=None),
        apart=max((f.cut_edges or 0 for f in every), default=0), **_solver(solved),
    )  # fmt: skip
    return [in_words_of(every[0].one, line) for line in text.splitlines() if line.strip()]


def _solver(facts: Sequence[SolverFacts]) -> dict[str, object]:
    """How sure the discrepancies are: sums over their tables. Seeds may share one: who asked most counts."""
    solved = sorted((f.solved for f in facts if f.solved is not None and f.solved.pairs), key=lambda one: one.pairs)
    found = pd.DataFrame([vars(f) for f in {f.file or str(k): f for k, f in enumerate(solved)}.values()])
    minima = [f.minima for f in facts if f.minima is not None]
    verified = pd.DataFrame([vars(f.verified) for f in facts if f.verified is not None])
    asked = [f.asked for f in facts if f.asked is not None]
    centres = [f.barycentres for f in facts if f.barycentres is not None]
    made = sum(b.count for b in centres)
    return {
        "kept": len(found) and found["file"].notna().all(),
        "pairs": int(found["pairs"].sum()) if len(found) else 0,
        "converged": int(found["converged"].sum()) if len(found) else 0,
        "minima": minima and {
            "count": (many := sum(m.pairs for m in minima)), "most": max(m.descents for m in minima),
            "lower": 100 * sum(m.lower * m.pairs for m in minima) / many,
            "drop": 100 * sum(m.drop * m.pairs for m in minima) / many,
        },
        "verified": None if verified.empty else verified.sum(numeric_only=True).to_dict() | {
            name: verified[name].max() for name in ("most_lower", "most_higher")},
        "centres": centres and {
            "count": made, "ours": sum(b.ours * b.count for b in centres) / made,
            "pot": sum(b.pot * b.count for b in centres) / made,
        },
        "votes": (sum(one[0] for one in asked), sum(one[1] for one in asked)) if asked else None,
    }  # fmt: skip


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 120 else f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"


def measures_of(kind: str, rows: Sequence[Line]) -> dict[str, Callable[[Line], str]]:
    """Title → what the table of all rows says of a row beside its result: the ε of each path where a row has several, and every
    metric of ``tasks.yaml`` that some row has; a name that ends in ``*`` stands for every metric that begins so."""
    compared = {row.metric for row in rows if row.metric}  # where it is one, it is the result
    has = {name: None for row in rows for e in row.cells for name in e.metrics if {name} != compared}
    known = _told().get(kind, {"metrics": {}})["metrics"]
    named = {name: title.format(name.removeprefix(key[:-1])) for key, title in known.items()
             for name in (has if key.endswith("*") else [key]) if name in has and name.startswith(key.rstrip("*"))}  # fmt: skip
    columns: dict[str, Callable[[Line], str]] = {}
    if any(_at_most(row) for row in rows):
        columns |= {"ε of a graph: least / median / largest": _graph_epsilons, "right at most, by ε and sizes": _at_most}
    columns |= {title: functools.partial(format_row_mean, metric=name) for name, title in named.items()}
    return columns | ({"ε of each part": _prices} if any(len(row.paths) > 1 for row in rows) else {})


def _prices(row: Line) -> str:
    return ", ".join(f"{path} {phrase_upper_bound(row.paths[path], 2)}" for path in row.paths) if len(row.paths) > 1 else "—"


def _graph_epsilons(row: Line) -> str:
    facts = row.facts
    known = facts.graph_epsilon if isinstance(facts, GraphClassificationCellFacts) else None
    return " / ".join(f"{e:.3g}" for e in known or ()) or "—"


def _at_most(row: Line) -> str:
    """Bounds on any classifier of the release: of graphs of one size with balanced classes, and with sizes included."""
    facts = row.facts
    if not isinstance(facts, GraphClassificationCellFacts) or facts.bayes_balanced is None:
        return ""
    return f"{facts.bayes_balanced:.3f} / {facts.bayes_given_size:.3f}"


def _against_epsilon(records: SectionRecords, metric: str) -> tuple[PlotFigure, ...]:
    """A metric of rows with an ε against it, a panel for each row, since measures of whole graphs differ by orders."""
    rows = [row for row in records.rows if values(row, metric)]
    title = _told()[records.kind]["metrics"].get(metric, metric)
    points = [
        charts.ChartPoint(row.name, title, row.world, row.epsilon, mean_of(row, metric), deviation_of(row, metric))
        for row in sorted(rows, key=lambda row: row.epsilon)
        if row.paths and math.isfinite(row.epsilon)
    ]
    clear = {row.name: [("no noise", mean_of(row, metric))] for row in rows if row.paths and math.isinf(row.epsilon)}
    free = [(row.method, mean_of(row, metric)) for row in rows if not row.paths][:2]
    caption = (
        f"{title[:1].upper()}{title[1:]} against the ε that was asked for. Dashed: without noise, or nothing private released."
    )
    levels = {point.panel: [*clear.get(point.panel, ()), *free] for point in points}
    return charts.draw_lines(caption, points, across="ε", levels=levels)


def _curves(records: SectionRecords) -> tuple[PlotFigure, ...]:
    points = []
    for row in records.rows:
        rounds: dict[int, list[float]] = {}
        for facts in (e.facts for e in row.cells):
            for at, right in facts.curve if isinstance(facts, NodeClassificationCellFacts) else ():
                rounds.setdefault(at, []).append(right)
        keys = (f"ε = {phrase_number(row.epsilon)}", row.world)
        for at, found in rounds.items():
            error = statistics.stdev(found) if len(found) > 1 else 0.0
            mean, line = statistics.fmean(found), ", ".join(keys)
            points.append(charts.ChartPoint(row.label, "test accuracy", line, float(at), mean, error, *keys))
    caption = "Test accuracy after some of the rounds. It reads true labels: for the experimenter's eyes."
    heads = ("Budget", "Trust")
    return charts.draw_lines(caption, points, across="rounds", heads=heads, shared=True)


def _maps(records: SectionRecords) -> tuple[PlotFigure, ...]:
    """Pictures of the arrays that cells kept: one figure for each row, of the least and the largest ε."""
    found: dict[tuple[str, ...], list[plots.Panel]] = {}
    kept = [(e, arrays) for e, arrays in zip(records.entries, records.artefacts, strict=False) if "map" in arrays]
    ends = sorted({e.epsilon for e, _ in kept})
    for entry, arrays in (one for one in kept if one[0].epsilon in (ends[0], ends[-1])):
        target = "no noise" if math.isinf(entry.epsilon) else f"ε = {phrase_number(entry.epsilon)}"
        found.setdefault((entry.variant, entry.method, entry.world.words), []).extend(plots.draw_map(arrays, target))
    how = {"tsne": "t-SNE", "mds": "classical-MDS"}.get(str(records.settings.get("map")), "t-SNE")
    caption = "{}: {} maps. They read private data: for the eyes of the data's holder."
    live = all(len(arrays["map"]) <= _MOST_LIVE for _, arrays in kept)
    return tuple(PlotFigure(caption.format(", ".join(key), how), tuple(each), live=live) for key, each in found.items())
