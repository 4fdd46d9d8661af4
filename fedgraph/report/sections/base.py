"""What the page says of one task on one data set: sentences, pictures, and columns of the table of all rows.

``build_sections`` makes these of any task; the sentences stand in ``templates/tasks.txt``. A plugin of ``report.sections`` adds
what one kind has beside: it defines ``KINDS`` and ``build(records) -> Section``. ``draw_settings`` is about several data sets.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

from fedgraph import plugins
from fedgraph.cells import NodeClassificationCellFacts, Result
from fedgraph.federation import WorldKind
from fedgraph.report import charts, phrases, table
from fedgraph.report.table import Line
from fedgraph.types import counted, in_words_of

_MOST_LIVE = 300  # points of a map that the page draws itself; larger ones are pictures, which weigh less
_ELSEWHERE = ("majority_share", "attack_", "bytes_", "seconds_")  # how metrics begin that are said elsewhere


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
    figures: tuple[charts.Figure, ...] = ()
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
    short: bool = False  # whether they come from a run with ``--quick``
    lines: Sequence[Line] = ()  # the cells' rows, where they are known

    @cached_property
    def rows(self) -> Sequence[Line]:
        """The cells as rows."""
        return self.lines or table.rows_of(self.entries)


def build_sections(records: SectionRecords) -> Section:
    """Everything that is said of a task on a data set: what any task has, and what plugins add."""
    if not records.entries:
        return Section()
    modules = [plugins.load("report.sections", name) for name in plugins.usable("report.sections")]
    own = Section(tuple(_sentences(records)), figures=(*_curves(records), *_maps(records)))
    built = [own, *(m.build(records) for m in modules if records.kind in m.KINDS)]
    return Section(*(tuple(part for section in built for part in vars(section)[f.name]) for f in fields(Section)))


def _sentences(records: SectionRecords) -> list[str]:
    """What ``templates/tasks.txt`` says of this kind: one sentence, or a few that belong together, on each line."""
    every = [e.facts for e in records.entries]
    federated = (f for f, e in zip(every, records.entries, strict=True) if e.world.kind is not WorldKind.WHOLE)
    sent = [f for f in every if isinstance(f, NodeClassificationCellFacts) and f.sent is not None and f.sent.up]
    solvers = [vars(f)["solver"] for f in every if "solver" in vars(f)]
    solved = sorted((s.solved for s in solvers if s.solved is not None), key=lambda one: one.pairs)
    text = phrases.template("tasks.txt", escaped=False).render(
        kind=records.kind, facts=next(federated, every[0]), every=every, settings=records.settings,
        seeds=len({e.seed for e in records.entries}), average=phrases.average, count=counted,
        most=max(sent, key=lambda f: (f.sent.up + f.sent.down) * f.rounds if f.sent else 0, default=None),
        apart=max((f.cut_edges or 0 for f in every), default=0), votes=[s.asked for s in solvers if s.asked is not None],
        # seeds may share a table of pairs: who asked most counts
        solved=list({one.file or str(k): one for k, one in enumerate(solved)}.values()),
        verified=[s.verified for s in solvers if s.verified is not None],
    )  # fmt: skip
    return [in_words_of(every[0].one, line) for line in text.splitlines() if line.strip()]


def measures_of(rows: Sequence[Line]) -> dict[str, Callable[[Line], str]]:
    """Title → what the table of all rows says of a row beside its result: every other metric, by its name in ``results.csv``,
    and the ε of each path where a row has several. Attacks by name have a table of their own."""
    compared = {row.metric for row in rows if row.metric}  # where it is one, it is the result
    told = (*_ELSEWHERE, *(f"{attack.one.attack}_" for row in rows for attack in row.named))
    names = dict.fromkeys(name for row in rows for e in row.cells for name in e.metrics)
    shown = [n for n in names if {n} != compared and not n.startswith(told)]
    columns: dict[str, Callable[[Line], str]] = {
        name.replace("_", " "): functools.partial(table.format_row_mean, metric=name) for name in shown
    }
    columns |= {"right at most, by ε and sizes": _at_most} if any(map(_at_most, rows)) else {}
    return columns | ({"ε of each part": _prices} if any(len(row.paths) > 1 for row in rows) else {})


def _prices(row: Line) -> str:
    return ", ".join(f"{path} {phrases.upper(row.paths[path], 2)}" for path in row.paths) if len(row.paths) > 1 else "—"


def _at_most(row: Line) -> str:
    """Bounds on any classifier of the release: of graphs of one size with balanced classes, and with sizes included."""
    bounds = [vars(row.facts).get(f"bayes_{name}") for name in ("balanced", "given_size")]
    return "" if None in bounds else f"{bounds[0]:.3f} / {bounds[1]:.3f}"


def _curves(records: SectionRecords) -> tuple[charts.Figure, ...]:
    points = []
    for row in records.rows:
        rounds: dict[int, list[float]] = {}
        for at, right in (point for e in row.cells for point in vars(e.facts).get("curve", ())):
            rounds.setdefault(at, []).append(right)
        keys = (f"ε = {phrases.rounded(row.epsilon)}", row.world)
        for at, found in rounds.items():
            error = statistics.stdev(found) if len(found) > 1 else 0.0
            mean = statistics.fmean(found)
            points.append(charts.Point(row.label, "test accuracy", ", ".join(keys), float(at), mean, error, *keys))
    caption = "Test accuracy after some of the rounds. It reads true labels: for the experimenter's eyes."
    return charts.draw_lines(caption, points, across="rounds", heads=("Budget", "Trust"), shared=True)


def _maps(records: SectionRecords) -> tuple[charts.Figure, ...]:
    """Pictures of the arrays that cells kept: one figure for each row, of the least and the largest ε."""
    found: dict[tuple[str, ...], list[charts.Panel]] = {}
    kept = [entry for entry in records.entries if "map" in entry.artefacts]
    ends = sorted({entry.epsilon for entry in kept})
    for entry in (one for one in kept if one.epsilon in (ends[0], ends[-1])):
        target = "no noise" if math.isinf(entry.epsilon) else f"ε = {phrases.rounded(entry.epsilon)}"
        found.setdefault((entry.variant, entry.method, entry.world.words), []).extend(charts.draw_map(entry.artefacts, target))
    how = "classical-MDS" if records.settings.get("map") == "mds" else "t-SNE"
    caption = f"{{}}: {how} maps. They read private data: for the eyes of the data's holder."
    live = all(len(entry.artefacts["map"]) <= _MOST_LIVE for entry in kept)
    return tuple(charts.Figure(caption.format(", ".join(key)), tuple(each), live=live) for key, each in found.items())


# ---- pictures with a setting of methods on the axis ------------------------------------------------------------------


def draw_settings(records: Sequence[SectionRecords]) -> list[tuple[str, tuple[charts.Figure, ...]]]:
    """(title, figures) of each setting that varies between the rows of a task, a panel for each data set and ε."""
    found = []
    for label in dict.fromkeys(r.label for r in records):
        parts = [r for r in records if r.label == label]
        where, rows = ", ".join(dict.fromkeys(r.dataset for r in parts)), [row for r in parts for row in r.rows if row.metric]
        for thing, places in _varied(parts[0]).items():
            placed = [(*places[name], row) for row in rows if (name := f"{row.method}/{row.variant}") in places]
            found.append((f"By {thing}: {label} — {where}", _drawn(thing, placed)))
    return [(title, figures) for title, figures in found if figures]


def _varied(record: SectionRecords) -> dict[str, dict[str, tuple[float, str]]]:
    """Setting → row → (its value, the line that it stands on): the numbers that vary between the methods of a part while all
    else stays equal, if some line has three values; of a run with ``--quick``, which keeps the outer ones, two are enough."""
    given = record.settings.get("methods")
    specs: list[Mapping[str, object]] = given if isinstance(given, list) else []
    found = {}
    for key in dict.fromkeys(k for s in specs for k in s if k not in ("label", "method")):
        series: dict[str, list[Mapping[str, object]]] = {}
        for s in specs:
            if _number(s.get(key)) is not None:
                series.setdefault(repr(sorted((k, repr(v)) for k, v in s.items() if k not in ("label", key))), []).append(s)
        lines = [own for own in series.values() if len(own) > 1 and len({_number(s[key]) for s in own}) == len(own)]
        if any(len(own) >= (2 if record.short else 3) for own in lines):
            heads = [{k: v for k, v in own[0].items() if k not in ("label", "method", key)} for own in lines]
            told = [k for k in dict.fromkeys(k for h in heads for k in h) if len({repr(h.get(k)) for h in heads}) > 1]
            places = {}
            for own, head in zip(lines, heads, strict=True):
                said = ((k, str(head.get(k, "default"))) for k in told)
                words = [str(own[0]["method"]), *(v if k == "variant" else f"{k.replace('_', ' ')} {v}" for k, v in said)]
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


def _drawn(thing: str, places: Sequence[tuple[float, str, Line]]) -> tuple[charts.Figure, ...]:
    """places: (value of the thing, its line in the picture, row)."""
    known = [(at, line, row) for at, line, row in places if math.isfinite(row.mean)]
    common = {t for t in {row.epsilon for *_, row in known} if len({at for at, _, row in known if row.epsilon == t}) > 1}
    several = len({row.dataset for *_, row in known}) > 1
    readings = len({row.calibrated_by for *_, row in known if math.isfinite(row.epsilon)}) > 1
    points = []
    for at, line, row in known:
        if common and row.epsilon not in common:
            continue
        budget = "no privacy" if math.isinf(row.epsilon) else f"asked for ε = {phrases.rounded(row.epsilon)}"
        panel = ", ".join(filter(None, (row.dataset if several else "", budget if common else "")))
        own = " — ".join([line, row.trust.value, *([row.calibrated_by] if readings else [])])
        tip, metric = f"ε proven {phrases.upper(row.epsilon_provable, 3)}", table.METRICS.get(row.metric, row.metric)
        points.append(charts.Point(panel, metric, own, at, row.mean, row.deviation or 0.0, line, row.trust.value, tip))
    axes = {one.panel: {other.x for other in points if other.panel == one.panel} for one in points}
    kept = [one for one in points if len(axes[one.panel]) > 1]
    what = phrases.begin(kept[0].up) if kept else ""
    caption = f"{what} against {thing}, one panel per budget. Bars: standard deviation over seeds."
    return charts.draw_lines(caption, kept, across=thing, heads=("Method", "Whom it trusts"), shared=True)
