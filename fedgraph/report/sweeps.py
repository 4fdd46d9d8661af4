"""Pictures with something else than ε on the axis: a setting that varies between the rows of a task, or between tasks."""

import math
from collections.abc import Iterator, Mapping, Sequence

from fedgraph.report import charts, plots
from fedgraph.report.phrases import begin_phrase, phrase_number, phrase_upper_bound
from fedgraph.report.sections.base import SectionRecords
from fedgraph.report.table import METRICS, Line

_ALIKE = 0.5  # share of rows that two tasks must have in common to be one sweep


def draw(records: Sequence[SectionRecords]) -> list[tuple[str, tuple[plots.PlotFigure, ...]]]:
    """(title, figures) of each thing that varies between the rows of a task, a panel for each data set and ε; then of each that
    varies between tasks that have at least half of their rows in common."""
    found = []
    for label in dict.fromkeys(r.label for r in records):
        parts = [r for r in records if r.label == label]
        where, rows = ", ".join(dict.fromkeys(r.dataset for r in parts)), [row for r in parts for row in r.rows if row.metric]
        for thing, places in _varied_within(parts[0]).items():
            placed = [(place, row) for row in rows if (place := places.get(f"{row.method}/{row.variant}"))]
            found.append((f"By {thing}: {label} — {where}", _drawn(thing, [(at, row, line) for (at, line), row in placed])))
    groups: list[list[SectionRecords]] = []
    for record in records:
        own = next((g for g in groups if _alike(g[0], record)), None)
        groups.append([record]) if own is None else own.append(record)
    for group in (g for g in groups if len(g) > 1):
        if (varied := _thing({r.label: r for r in group})) is None:
            continue
        thing, values = varied
        points = [(values[row.task], row, row.label) for row in (row for r in group for row in r.rows if row.metric)]
        title = f"By {thing}: {group[0].label} to {group[-1].label} — {group[0].dataset}"
        found.append((title, _drawn(thing, points)))
    return [(title, figures) for title, figures in found if figures]


def _alike(one: SectionRecords, other: SectionRecords) -> bool:
    mine, theirs = ({f"{row.method}/{row.variant}" for row in record.rows if row.metric} for record in (one, other))
    asked, also = ((r.kind, r.dataset, r.entries[0].facts.protocol, r.entries[0].facts.split) for r in (one, other))
    return asked == also and bool(mine and theirs) and len(mine & theirs) / min(len(mine), len(theirs)) >= _ALIKE


def _thing(tasks: Mapping[str, SectionRecords]) -> tuple[str, dict[str, float]] | None:
    """The one setting that varies from task to task, and its value in each: a number, or how many clients a federation has.

    None where more varies, so that no difference is read as one of this setting. A curator is one client, with its own trust.
    """
    flat = {label: dict(_leaves(record.settings)) for label, record in tasks.items()}
    keys = {k for leaves in flat.values() for k in leaves}
    varied = {k for k in keys if len({repr(leaves.get(k)) for leaves in flat.values()}) > 1}
    if all(k.startswith((".trust", ".partition")) for k in varied):
        counts = {label: {e.facts.clients for e in r.entries} for label, r in tasks.items()}
        many = {label: float(n) for label, found in counts.items() for n in found if n is not None and len(found) == 1}
        return ("number of clients", many) if len(set(many.values())) == len(tasks) else None
    names = {k.rsplit(".", 1)[-1] for k in varied}
    given = {label: [_number(leaves[k]) for k in sorted(varied) if k in leaves] for label, leaves in flat.items()}
    values = {label: own[0] for label, own in given.items() if len(set(own)) == 1 and own[0] is not None}
    alone = len(names) == 1 and len(set(values.values())) == len(tasks)
    return (names.pop().replace("_", " "), values) if alone else None


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


def _drawn(thing: str, places: Sequence[tuple[float | str, Line, str]]) -> tuple[plots.PlotFigure, ...]:
    """places: (value of the thing, row, its line)."""
    known = [(at, row, line) for at, row, line in places if math.isfinite(row.mean)]
    targets = {row.epsilon for _, row, _ in known}
    common = {t for t in targets if len({at for at, row, _ in known if row.epsilon == t}) > 1}
    several = len({row.dataset for _, row, _ in known}) > 1
    readings = len({row.calibrated_by for _, row, _ in known if math.isfinite(row.epsilon)}) > 1
    points = []
    for at, row, line in known:
        if common and row.epsilon not in common:
            continue
        budget = "no privacy" if math.isinf(row.epsilon) else f"asked for ε = {phrase_number(row.epsilon)}"
        panel = ", ".join(filter(None, (row.dataset if several else "", budget if common else "")))
        own = " — ".join([line, row.trust.value, *([row.calibrated_by] if readings else [])])
        tip, metric = f"ε proven {phrase_upper_bound(row.epsilon_provable, 3)}", METRICS.get(row.metric, row.metric)
        points.append(charts.ChartPoint(panel, metric, own, at, row.mean, row.deviation or 0.0, line, row.trust.value, tip))
    axes = {one.panel: {other.x for other in points if other.panel == one.panel} for one in points}
    kept = [one for one in points if len(axes[one.panel]) > 1]
    if not kept:
        return ()
    caption = f"{begin_phrase(kept[0].up)} against {thing}, one panel per budget. Bars: standard deviation over seeds."
    return charts.draw_lines(caption, kept, across=thing, heads=("Method", "Whom it trusts"), shared=True)
