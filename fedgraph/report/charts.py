"""Charts of lines: one description, drawn twice. As a picture in a file, and as shapes of the page itself (``shapes.html``),
which take its colours, follow its width and need no script to be seen.
"""

import functools
import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from fedgraph.report import plots
from fedgraph.report.phrases import phrase_upper_bound
from fedgraph.report.rows import Row, format_row

_MARKERS = ("o", "s", "^", "D", "*", "v", "P", "X")  # matplotlib's; the page's own shapes stand in this order in shapes.html
_DASHES = ("--", ":", "-.")
_GREY = "#aab3bd"  # of lines beside the best ones
_FEW = 8  # ticks of a logarithmic axis
_NEAREST = 0.09  # of its width: two labels of four letters side by side
_TITLE_WIDTH = 40  # characters in a line above a panel
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP = 420, 290, 46, 12, 10  # of a panel on the page, and of its margins, in its own units
_LETTER, _LINE = 6.6, 14  # width and height of a letter below its axis, in these units
_FEWEST = 4  # points that a single line needs to be drawn


_Styles = list[dict[str, int | None]]  # of each group of a legend: name → number of its colour or symbol; None: grey


@dataclass(frozen=True)
class ChartSeries:
    """Points of one configuration, with error bars.

    Attributes:
        label: What the legend calls it.
        x: Numbers, or names; then every line of the panel draws on the same names. ∞ is drawn at the right edge.
        error: Half the length of each bar; 0 draws none.
        keys: What the line belongs to, one name for each group of the legend. The first gives its colour and the second its
            symbol. Empty: its label alone.
        tips: What to say of each point; empty: made from the values.
        joined: Whether a line joins the points.
    """

    label: str
    x: Sequence[float] | Sequence[str]
    y: Sequence[float]
    error: Sequence[float]
    keys: tuple[str, ...] = ()
    tips: tuple[str, ...] = ()
    joined: bool = True

    @property
    def belongs(self) -> tuple[str, ...]:
        return self.keys or (self.label,)


@dataclass(frozen=True)
class ChartPanel:
    """One pair of axes.

    Attributes:
        levels: Dashed horizontals, as (label, value).
        axis: Evenly spaced values, or a logarithmic scale.
        heads: Titles of the legend's groups.
        symbols: Names of the second group whose symbols are the same in every figure.
        best: Names of the first group that have a colour; the others are grey. Empty: all have one.
    """

    title: str
    ylabel: str
    lines: tuple[ChartSeries, ...]
    levels: tuple[tuple[str, float], ...] = ()
    xlabel: str = "privacy budget ε"
    axis: Literal["even", "log"] = "even"
    heads: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    best: tuple[str, ...] = ()

    def positions(self) -> dict[float | str, float]:
        """Where each x stands, in units of the axis: its place among all x, or its logarithm to base 10."""
        every = list(dict.fromkeys(x for line in self.lines for x in line.x))
        if self.axis == "even":
            ordered = every if any(isinstance(x, str) for x in every) else sorted(every, key=float)
            return {x: float(i) for i, x in enumerate(ordered)}
        finite = [float(x) for x in every if 0 < float(x) < math.inf]
        low, high = (math.log10(min(finite)), math.log10(max(finite))) if finite else (0.0, 0.0)
        room = max(0.35, 0.12 * (high - low))
        edges = {math.inf: high + 2 * room, 0.0: low - 2 * room}
        return {x: edges[float(x)] if float(x) in edges else math.log10(float(x)) for x in every}

    def ticks(self) -> list[tuple[float, str]]:
        """(position, label), on a logarithmic axis at most ``_FEW``, and none that would cover another one."""
        places = self.positions()
        if self.axis == "even":
            return [(at, x if isinstance(x, str) else _tick(x)) for x, at in places.items()]
        marked = [(at, _tick(float(x))) for x, at in places.items() if float(x) in (0.0, math.inf)]
        finite = sorted({float(f"{float(x):.3g}") for x in places if 0 < float(x) < math.inf})
        if len(finite) > _FEW - 2:
            finite = _decades(finite[0], finite[-1])
        finite = _apart(finite, _NEAREST * (max(places.values()) - min(places.values())))
        return sorted([*((math.log10(x), _tick(x)) for x in finite), *marked])


def _tick(x: float) -> str:
    return "∞" if math.isinf(x) else f"{x:,.4g}"


def _apart(values: Sequence[float], least: float) -> list[float]:
    """Of values whose logarithms differ by less than ``least``, the one that is written shortest."""
    kept: list[float] = []
    for x in sorted(values, key=lambda x: (len(_tick(x)), x)):
        if all(abs(math.log10(x / other)) >= least for other in kept):
            kept.append(x)
    return kept


def _decades(low: float, high: float) -> list[float]:
    """Round numbers on a logarithmic axis: 1, 2, 5 in each decade, or fewer where these are too many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for parts in ((1, 2, 5), (1, 3), (1,)):
        found = [c * 10.0**p for p in powers for c in parts if low * 0.99 <= c * 10.0**p <= high * 1.01]
        if len(found) <= _FEW:
            return found
    return found[:: -(-len(found) // _FEW)]


def draw_chart(
    name: str, caption: str, panels: Sequence[ChartPanel], notice: str | None, height: float = 4.2, shared: bool = False
) -> tuple[plots.PlotFigure, ...]:
    """One figure with all panels that show more than a table would: two lines, or one of ``_FEWEST`` points; none without them.

    shared: one scale of y, so that panels can be compared.
    """
    panels = [p for p in panels if len(p.lines) > 1 or any(len(line.x) >= _FEWEST for line in p.lines)]
    if not panels:
        return ()
    groups, styles = _looks(panels)
    paint = functools.partial(_paint_all, panels=panels, groups=groups, styles=styles, shared=shared)
    figure = plots.draw_plot(name, caption, len(panels), paint, notice, height)
    drawn = [_shape(p, styles, groups, panels if shared else [p]) for p in panels]
    alike = len(panels) > 1 and bool(panels[0].levels) and all(p["levels"] == drawn[0]["levels"] for p in drawn)
    spec = {"panels": drawn, "legend": _legend_spec(panels, groups, styles), "alike": alike}
    return (replace(figure, spec=spec),)


def draw_chart_for_notebook(panels: Sequence[ChartPanel]) -> Figure:
    """A figure of matplotlib with every panel, side by side; at least one."""
    figure = Figure(figsize=(5.5 * len(panels), 4.2), layout="constrained")
    _paint_all(list(figure.subplots(1, len(panels), squeeze=False).flat), panels, *_looks(panels), shared=False)
    return figure


def _paint_all(
    axes: Sequence[Axes], panels: Sequence[ChartPanel], groups: Sequence[Sequence[str]], styles: _Styles, shared: bool
) -> None:
    for ax, panel in zip(axes, panels, strict=True):
        _paint(ax, panel, styles)
    if shared:
        low, high = min(ax.get_ylim()[0] for ax in axes), max(ax.get_ylim()[1] for ax in axes)
        for ax in axes:
            ax.set_ylim(low, high)
    entries = [key for group in groups for key in group]
    if len(groups) > 1 or len(panels) > 1 or len(entries) > 4:
        handles = []
        for i, key in ((i, key) for i, group in enumerate(groups) for key in group):
            marker = _MARKERS[(styles[i][key] or 0) % len(_MARKERS)] if i or len(groups) == 1 else None
            entry = Line2D([], [], lw=1.5 if marker else 3, ls="" if i else "-", marker=marker, label=key)
            entry.set_color("#4c566a" if i else _colour(styles[i][key]))
            handles.append(entry)
        columns = max(1, min(len(entries), 2 * len(panels)))
        axes[0].figure.legend(handles=handles, loc="outside lower center", ncols=columns, fontsize=8, frameon=False)
    else:
        for ax in axes:
            ax.legend(fontsize=8, frameon=False)


def chart_over_budgets(label: str, rows: Sequence[Row], metric: str) -> ChartSeries:
    """The mean of each row against the ε that it was asked for, with one standard deviation."""
    means, spread = [r.mean_of(metric) for r in rows], [r.deviation_of(metric) for r in rows]
    return ChartSeries(label, [r.head.epsilon for r in rows], means, spread)


def _looks(panels: Sequence[ChartPanel]) -> tuple[list[list[str]], _Styles]:
    """The names in each group of the legend, and the number of the colour or symbol of each; None: grey.

    Names whose symbols are the same in every figure come first; where some are best, only these have a colour.
    """
    depth = max((len(line.belongs) for p in panels for line in p.lines), default=1)
    drawn = [line.belongs for p in panels for line in p.lines]
    groups = [list(dict.fromkeys(names[i] for names in drawn if i < len(names))) for i in range(depth)]
    symbols = next((p.symbols for p in panels if p.symbols), ())
    groups[1:2] = [sorted(group, key=lambda key: (*symbols, *group).index(key)) for group in groups[1:2]]
    best = list(dict.fromkeys(name for p in panels for name in p.best))
    groups[0].sort(key=lambda key: best.index(key) if key in best else len(best))
    ordered = [list(dict.fromkeys((*symbols, *group) if i == 1 else group)) for i, group in enumerate(groups)]
    grey = [{key for key in group if best and not i and key not in best} for i, group in enumerate(ordered)]
    styles = [{key: None if key in out else n for n, key in enumerate(g)} for g, out in zip(ordered, grey, strict=True)]
    return groups, styles


def _colour(number: int | None) -> str:
    return _GREY if number is None else plots.PLOT_COLOURS[number % len(plots.PLOT_COLOURS)]


def _look(line: ChartSeries, styles: _Styles) -> tuple[int | None, int]:
    colour = styles[0][line.belongs[0]]
    return colour, (styles[1][line.belongs[1]] if len(line.belongs) > 1 else colour) or 0


def _paint(ax: Axes, panel: ChartPanel, styles: _Styles) -> None:
    places = panel.positions()
    for line in panel.lines:
        colour, symbol = _look(line, styles)
        bars = list(line.error) if any(line.error) else None
        ax.errorbar(
            [places[x] for x in line.x], list(line.y), yerr=bars, label=line.label, color=_colour(colour), lw=1.6, ms=5,
            capsize=3, zorder=2 if colour is None else 3, marker=_MARKERS[symbol % len(_MARKERS)],
            ls="-" if line.joined else "",
        )  # fmt: skip
    for index, (label, value) in enumerate(sorted(panel.levels, key=lambda level: -level[1])):
        ax.axhline(value, ls=_DASHES[index % 3], color="#4c566a", lw=1.2)
        side = "bottom" if index % 2 == 0 else "top"  # two near levels: one label above its line, the other below
        clear = [patheffects.withStroke(linewidth=2.5, foreground="white")]  # lines that pass below a label do not cross it
        at = ("axes fraction", "data")
        ax.annotate(label, (0.01, value), xycoords=at, va=side, fontsize=7, color="#4c566a", path_effects=clear, zorder=9)
    ticks = panel.ticks()
    ax.set_xticks([at for at, _ in ticks], [text for _, text in ticks])
    title = textwrap.fill(panel.title, _TITLE_WIDTH)  # as long as it is, it stays above its own panel
    ax.set(xlabel=panel.xlabel, ylabel=panel.ylabel, title=title)
    ax.margins(x=0.08, y=0.12)
    ax.grid(alpha=0.25)


def _shape(
    panel: ChartPanel, styles: _Styles, groups: Sequence[Sequence[str]], alike: Sequence[ChartPanel]
) -> dict[str, object]:
    """Where everything of a panel stands on the page. alike: the panels that have the same scale of y."""
    places, ticks = panel.positions(), panel.ticks()
    names = [textwrap.wrap(text, max(7, int((_WIDTH - 60) / len(ticks) / _LETTER))) or [""] for _, text in ticks]
    bottom = _HEIGHT - 22 - _LINE * max(map(len, names))
    at = [place for place, _ in ticks]
    room = max(0.25, 0.06 * (max(at) - min(at)))
    ends = [y + s * e for p in alike for line in p.lines for y, e in zip(line.y, line.error, strict=True) for s in (-1, 1)]
    values = [y for y in (*ends, *(level for p in alike for _, level in p.levels)) if math.isfinite(y)] or [0.0]
    gap = (max(values) - min(values) or abs(values[0]) or 1.0) * 0.06
    across = _scale(min(at) - room, max(at) + room, _LEFT, _WIDTH - _RIGHT)
    up = _scale(min(values) - gap, max(values) + gap, bottom, _TOP)
    candidates = MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(min(values), max(values))
    rules = [y for y in candidates if _TOP - 1 <= up(y) <= bottom + 1]
    lines = []
    for line in panel.lines:
        colour, symbol = _look(line, styles)
        where = [x if isinstance(x, str) else _tick(x) for x in line.x]
        tips = line.tips or [
            f"{line.label}\n{x}\n{y:.3f}{f' ± {error:.3f}' if error else ''}"
            for x, y, error in zip(where, line.y, line.error, strict=True)
        ]  # the first line is the same for every point; the page puts the names of the axes, ``told``, before the rest
        told = [tip.split("\n", 1) for tip in tips]
        finite = [(i, y, line.error[i]) for i, y in enumerate(line.y) if math.isfinite(y)]
        points = [(across(places[line.x[i]]), up(y), up(y - e), up(y + e), told[i][-1]) for i, y, e in finite]
        keys = [f"{i}-{groups[i].index(key)}" for i, key in enumerate(line.belongs)]
        joined = line.joined and len({x for x, *_ in points}) > 1
        about = {"names": line.belongs, "belongs": " ".join(keys), "tip": told[0][0] if told else ""}
        look = {"colour": "grey" if colour is None else f"c{colour % 10}", "symbol": symbol % len(_MARKERS)}
        lines.append({**about, **look, "joined": joined, "points": points})
    lines.sort(key=lambda line: line["colour"] != "grey")
    levels = [(label, up(value), f"{value:.2f}") for label, value in panel.levels if math.isfinite(value)]
    own_tips = any(line.tips for line in panel.lines)
    return {
        "told": "" if own_tips else f"{panel.xlabel}\n{panel.ylabel}",
        "title": panel.title, "xlabel": panel.xlabel, "ylabel": panel.ylabel, "lines": lines, "levels": levels,
        "bottom": bottom, "ticks": [(across(x), name) for x, name in zip(at, names, strict=True)],
        "rules": [(up(y), f"{y:.5g}") for y in rules],
    }  # fmt: skip


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """Positions to a tenth, and without it where it is 0."""

    def place(value: float) -> float:
        at = round(start + (value - low) / (high - low) * (end - start), 1)
        return int(at) if at == int(at) else at

    return place


def _legend_spec(panels: Sequence[ChartPanel], groups: Sequence[Sequence[str]], styles: _Styles) -> list[dict[str, object]]:
    heads = next((p.heads for p in panels if p.heads), ())
    found: list[dict[str, object]] = []
    for i, group in enumerate(groups):
        entries = []
        for n, key in enumerate(group):
            number = styles[i][key]
            colour = "ink" if i else "grey" if number is None else f"c{number % 10}"
            symbol = (number or 0) % len(_MARKERS) if i == 1 or len(groups) == 1 else 1
            entries.append({"label": key, "key": f"{i}-{n}", "colour": colour, "symbol": symbol})
        found.append({"title": heads[i] if i < len(heads) else "", "entries": entries})
    return found


def describe_score(score: Row) -> str:
    """What a chart says of one row, line by line."""
    measured = "" if score.measured is None else f"\nmeasured by an attack: ε ≥ {math.floor(100 * score.measured) / 100:g}"
    return (
        f"{score.name}, trust {score.trust.value}\n{format_row(score, 3)} at provable ε = "
        f"{phrase_upper_bound(score.provable, 4)} ({score.unit_name}){measured}"
    )
