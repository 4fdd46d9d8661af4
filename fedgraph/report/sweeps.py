"""Which parts of a run belong together because one thing varies between them: clients, data sets, one setting of a method.

Such parts become one section with that thing on the axis; what each value found alone stays below, folded.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fedgraph.report import charts, plots
from fedgraph.report.phrases import phrase_number, phrase_upper_bound
from fedgraph.report.rows import METRICS, Row, compare_rows, format_row, group_rows
from fedgraph.report.sections.base import SectionRecords, SectionTable

_ALIKE = 0.5  # share of rows that two tasks must have in common to be one sweep


@dataclass(frozen=True)
class Sweep:
    """Parts of a run between which one thing varies.

    Attributes:
        thing: What varies; None for a part that stands alone.
        at: The value of each of ``parts``; empty for a part that stands alone.
    """

    parts: tuple[SectionRecords, ...]
    thing: str | None = None
    at: tuple[float | str, ...] = ()


def group_sweeps(records: Sequence[SectionRecords]) -> list[Sweep]:
    """Every part once, in order of first appearance."""
    groups: list[list[SectionRecords]] = []
    for record in records:
        own = next((g for g in groups if _alike(g[0], record)), None)
        if own is None:
            groups.append([record])
        else:
            own.append(record)
    return [_sweep(group) for group in groups]


def _alike(one: SectionRecords, other: SectionRecords) -> bool:
    mine, theirs = _names(one), _names(other)
    if one.kind != other.kind or not (mine and theirs):
        return False
    if not compare_rows(group_rows(one.entries)) or not compare_rows(group_rows(other.entries)):
        return False
    if one.label == other.label:
        return True
    asked, also = one.entries[0].facts, other.entries[0].facts
    if one.dataset != other.dataset or (asked.protocol, asked.split) != (also.protocol, also.split):
        return False
    return len(mine & theirs) / min(len(mine), len(theirs)) >= _ALIKE


def _names(record: SectionRecords) -> set[str]:
    return {f"{e.method}/{e.variant}" for e in record.entries}


def _sweep(group: list[SectionRecords]) -> Sweep:
    labels = list(dict.fromkeys(r.label for r in group))
    if len(group) == 1:
        return Sweep(tuple(group))
    if len(labels) == 1:
        inside = _varied_within(group[0])
        return Sweep(tuple(group), next(iter(inside), "data set"), tuple(r.dataset for r in group))
    thing, values = _thing({r.label: r for r in group})
    return Sweep(tuple(group), thing, tuple(values[r.label] for r in group))


def _thing(tasks: Mapping[str, SectionRecords]) -> tuple[str, dict[str, float | str]]:
    """What varies from task to task, and its value in each: one setting, the number of clients, or else their labels."""
    flat = {label: dict(_leaves(record.settings)) for label, record in tasks.items()}
    keys = {k for leaves in flat.values() for k in leaves}
    varied = {k for k in keys if len({repr(leaves.get(k)) for leaves in flat.values()}) > 1}
    names = {k.rsplit(".", 1)[-1] for k in varied}
    if len(names) == 1 and all(len({repr(leaves.get(k)) for k in varied if k in leaves}) == 1 for leaves in flat.values()):
        (name,) = names
        values = {label: next(leaves[k] for k in sorted(varied) if k in leaves) for label, leaves in flat.items()}
        numbers: dict[str, float | str] = {label: float(v) for label, v in values.items() if isinstance(v, int | float)}
        if len(set(numbers.values())) == len(values):
            return name.replace("_", " "), numbers
    clients = {label: {e.facts.clients for e in r.entries} for label, r in tasks.items()}
    counts = {label: number for label, c in clients.items() if len(c) == 1 and (number := next(iter(c))) is not None}
    if len(counts) == len(tasks) == len(set(counts.values())):
        return "number of clients", {label: float(c) for label, c in counts.items()}
    return "task", {label: label for label in tasks}


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key not in ("label", "datasets", "delta"):
                yield from _leaves(inner, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{path}.{index}")
    else:
        yield path, value


_Places = dict[str, tuple[float, str]]  # row → (its value of a setting, the line that it stands on)


def _varied_within(record: SectionRecords) -> dict[str, _Places]:
    """The numbers that vary between the methods of a part while all else stays equal, if some line has three values.

    Of a run with ``--quick``, which keeps the outer ones, two are enough.
    """
    given = record.settings.get("methods")
    specs: list[Mapping[str, object]] = given if isinstance(given, list) else []
    found: dict[str, _Places] = {}
    for key in dict.fromkeys(k for s in specs for k in s if k not in ("label", "method")):
        series: dict[str, list[Mapping[str, object]]] = {}
        for s in specs:
            if _number(s.get(key)) is not None:
                series.setdefault(repr(sorted((k, repr(v)) for k, v in s.items() if k not in ("label", key))), []).append(s)
        lines = [own for own in series.values() if len(own) > 1 and len({_number(s[key]) for s in own}) == len(own)]
        if any(len(own) >= (2 if record.short else 3) for own in lines):
            heads = [{k: v for k, v in own[0].items() if k not in ("label", key)} for own in lines]
            told = [k for k in dict.fromkeys(k for h in heads for k in h) if len({repr(h.get(k)) for h in heads}) > 1]
            places = {}
            for own, head in zip(lines, heads, strict=True):
                words = [str(head["method"]), *(_said(k, head) for k in told if k != "method")]
                for s in own:
                    variant = s.get("label") or s.get("model") or s.get("variant") or "default"  # as a task names the row
                    places[f"{s['method']}/{variant}"] = (float(_number(s[key]) or 0.0), " · ".join(words))
            found[key.replace("_", " ")] = places
    return found


def _number(value: object) -> float | None:
    """A setting as a number; None where it is none. A list of one number counts as that number, ``inf`` as ∞."""
    if isinstance(value, list) and len(value) == 1:
        return _number(value[0])
    if isinstance(value, str):
        return math.inf if value in ("inf", ".inf") else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _said(key: str, settings: Mapping[str, object]) -> str:
    value = settings.get(key, "default")
    return str(value) if key == "variant" else f"{key.replace('_', ' ')} {value}"


def draw_sweep(sweep: Sweep, notice: str | None) -> tuple[tuple[plots.PlotFigure, ...], tuple[SectionTable, ...]]:
    """One figure with the varied thing on the axis, one panel per data set and ε; and the same as a table."""
    inside = _varied_within(sweep.parts[0])
    if sweep.thing is None or (inside and sweep.thing == next(iter(inside)) and len({r.label for r in sweep.parts}) == 1):
        # One figure and one table for each setting that varies between the methods, with a panel per data set and ε.
        figures: list[plots.PlotFigure] = []
        tables: list[SectionTable] = []
        scores = [s for record in sweep.parts for s in compare_rows(group_rows(record.entries))]
        for thing, rows_of in inside.items():
            known = [(place, s) for s in scores if (place := rows_of.get(f"{s.method}/{s.variant}"))]
            drawn = _drawn(sweep.parts[0].name, thing, [_Point(at, s, line) for (at, line), s in known], True, notice)
            figures += drawn[0]
            tables += drawn[1]
        return tuple(figures), tuple(tables)
    places = {(r.label, r.dataset): at for r, at in zip(sweep.parts, sweep.at, strict=True)}
    rows = [row for r in sweep.parts for row in group_rows(r.entries)]
    points = [_Point(places[s.task, s.dataset], s, s.name) for s in compare_rows(rows) if (s.task, s.dataset) in places]
    return _drawn(sweep.parts[0].name, sweep.thing, points, sweep.thing != "data set", notice)


class _Point(NamedTuple):
    at: float | str
    score: Row
    line: str


def _drawn(
    name: str, thing: str, points: Sequence[_Point], by_data: bool, notice: str | None
) -> tuple[tuple[plots.PlotFigure, ...], tuple[SectionTable, ...]]:
    common = {t for t in {s.target for _, s, _ in points} if len({at for at, s, _ in points if s.target == t}) > 1}
    targets: list[float | None] = [*sorted(common)] or [None]
    panels, body = [], []
    datasets = dict.fromkeys(s.dataset for _, s, _ in points)
    several = by_data and len(datasets) > 1
    for dataset in datasets if by_data else [None]:
        for target in targets:
            own = [p for p in points if dataset in (None, p.score.dataset) and target in (None, p.score.target)]
            own = [p for p in own if math.isfinite(p.score.mean)]
            lines = _lines(own)
            if not lines or len({at for at, _, _ in own}) < 2:
                continue
            budget = "" if target is None else "no privacy" if math.isinf(target) else f"asked for ε = {phrase_number(target)}"
            title = ", ".join(filter(None, (dataset if several else "", budget)))
            heads = ("Method", "Whom it trusts")
            panels.append(charts.ChartPanel(title, METRICS[own[0].score.metric], lines, (), thing, "even", heads))
            body += [
                (title, " ".join(filter(None, (line, reading))), trust, {at: format_row(s, 3) for at, s, _ in drawn})
                for (line, trust, reading), drawn in _groups(own).items()
            ]
    if not panels:
        return (), ()
    caption = f"{panels[0].ylabel.capitalize()} against {thing}, one panel per budget. Bars: standard deviation over seeds."
    figures = charts.draw_chart(f"{name}-by-{thing.replace(' ', '-')}", caption, panels, notice, shared=True)
    ordered = list(dict.fromkeys(at for at, _, _ in points))
    ordered = ordered if any(isinstance(at, str) for at in ordered) else sorted(ordered)
    values = (at if isinstance(at, str) else f"{thing} = {phrase_number(at)}" for at in ordered)
    header = ("panel", "row", "whom it trusts", *values)
    rows = tuple((title, line, trust, *(cells.get(at, "—") for at in ordered)) for title, line, trust, cells in body)
    return figures, (SectionTable(f"By {thing}", header, rows, "Over several seeds: mean ± standard deviation."),)


def _groups(own: Sequence[_Point]) -> dict[tuple[str, str, str], list[_Point]]:
    found: dict[tuple[str, str, str], list[_Point]] = {}
    readings = {s.calibrated_by for _, s, _ in own if math.isfinite(s.target)}
    for point in own:
        reading = point.score.calibrated_by if len(readings) > 1 else ""
        found.setdefault((point.line, point.score.trust.value, reading), []).append(point)
    return found


def _lines(own: Sequence[_Point]) -> tuple[charts.ChartSeries, ...]:
    lines = []
    for key, points in _groups(own).items():
        ordered = points if any(isinstance(at, str) for at, _, _ in points) else sorted(points, key=lambda p: float(p.at))
        tips = tuple(f"ε proven {phrase_upper_bound(s.provable, 3)}" for _, s, _ in ordered)
        means = [s.mean for _, s, _ in ordered]
        spread = [s.deviation or 0.0 for _, s, _ in ordered]
        at, joined = [at for at, _, _ in ordered], not any(isinstance(at, str) for at, _, _ in ordered)
        lines.append(charts.ChartSeries(" — ".join(filter(None, key)), at, means, spread, key[:2], tips, joined))  # type: ignore[arg-type]
    return tuple(lines)
