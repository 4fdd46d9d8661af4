"""Charts of lines: one description, drawn twice. As a picture for print and for pages without scripts, and as data that the
page's library draws again, with names and values under the pointer.
"""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from fedgraph.report import plots

SYMBOLS = ("circle", "square", "triangle", "diamond", "star", "wye", "cross", "times")  # names of the page's library
MARKERS = ("o", "s", "^", "D", "*", "v", "P", "X")  # matplotlib's for the same
DASHES = ("--", ":", "-.")
FEW = 8  # ticks of a logarithmic axis
TITLE_WIDTH = 40  # characters in a line above a panel


@dataclass(frozen=True)
class Series:
    """Points of one configuration, with error bars. x may hold ∞, drawn at the right edge.

    x: numbers, or names (then every line draws on the same names). error: half the length of each bar; 0 draws none.
    keys: what the line belongs to, one name per group of the legend, the first giving its colour and the second its
    symbol; its label alone where empty. tips: what to say of each point; made from the values where empty.
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
class Panel:
    """One pair of axes. levels: dashed horizontals (label, value). axis: evenly spaced values, or a logarithmic scale."""

    title: str
    ylabel: str
    lines: tuple[Series, ...]
    levels: tuple[tuple[str, float], ...] = ()
    xlabel: str = "privacy budget ε"
    axis: Literal["even", "log"] = "even"
    heads: tuple[str, ...] = field(default=())  # titles of the legend's groups
    symbols: tuple[str, ...] = field(default=())  # names of the second group whose symbols are the same in every figure

    def positions(self) -> dict[float | str, float]:
        """Where each x stands."""
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
        """(position, label), at most ``FEW`` on a logarithmic axis."""
        places = self.positions()
        if self.axis == "even":
            return [(at, x if isinstance(x, str) else _tick(x)) for x, at in places.items()]
        marked = [(at, _tick(float(x))) for x, at in places.items() if float(x) in (0.0, math.inf)]
        finite = sorted({float(f"{float(x):.3g}") for x in places if 0 < float(x) < math.inf})
        if len(finite) > FEW - 2:
            finite = _decades(finite[0], finite[-1])
        return sorted([*((math.log10(x), _tick(x)) for x in finite), *marked])


def _tick(x: float) -> str:
    return "∞" if math.isinf(x) else f"{x:,.4g}"


def _decades(low: float, high: float) -> list[float]:
    """Round numbers on a logarithmic axis: 1, 2, 5 in each decade, or fewer where these are too many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for parts in ((1, 2, 5), (1, 3), (1,)):
        found = [c * 10.0**p for p in powers for c in parts if low * 0.99 <= c * 10.0**p <= high * 1.01]
        if len(found) <= FEW:
            return found
    return found[:: -(-len(found) // FEW)]


def draw(
    name: str, caption: str, panels: Sequence[Panel], notice: str | None, height: float = 4.2, shared: bool = False
) -> plots.Figure:
    """The figure with all panels. shared: one scale of y, so that panels can be compared."""
    groups = legend(panels)
    first = next((p.symbols for p in panels if p.symbols), ())
    groups[1:2] = [sorted(group, key=lambda key: (*first, *group).index(key)) for group in groups[1:2]]
    styles = _styles(groups, first)

    def paint(axes: list[Axes]) -> None:
        for ax, panel in zip(axes, panels, strict=True):
            _paint(ax, panel, styles)
        if shared:
            low, high = min(ax.get_ylim()[0] for ax in axes), max(ax.get_ylim()[1] for ax in axes)
            for ax in axes:
                ax.set_ylim(low, high)
        entries = [key for group in groups for key in group]
        if len(groups) > 1 or len(panels) > 1 or len(entries) > 4:
            handles = [_legend_entry(key, styles[i][key], i, len(groups)) for i, g in enumerate(groups) for key in g]
            columns = max(1, min(len(entries), 2 * len(panels)))
            axes[0].figure.legend(handles=handles, loc="outside lower center", ncols=columns, fontsize=8, frameon=False)
        else:
            for ax in axes:
                ax.legend(fontsize=8, frameon=False)

    figure = plots.draw(name, caption, len(panels), paint, notice, height)
    spec = {"panels": [_spec(p, styles) for p in panels], "legend": _legend_spec(panels, groups, styles), "shared": shared}
    return plots.Figure(figure.name, figure.png, figure.svg, caption, spec)


def legend(panels: Sequence[Panel]) -> list[list[str]]:
    """The names in each group of the legend, in order of first appearance."""
    depth = max((len(line.belongs) for p in panels for line in p.lines), default=1)
    return [
        list(dict.fromkeys(line.belongs[i] for p in panels for line in p.lines if i < len(line.belongs))) for i in range(depth)
    ]


def _styles(groups: Sequence[Sequence[str]], symbols: Sequence[str]) -> list[dict[str, int]]:
    """Of each group, the number of the colour or symbol of each name. symbols: names of the second group that come first."""
    ordered = [list(dict.fromkeys((*symbols, *group) if i == 1 else group)) for i, group in enumerate(groups)]
    return [{key: i for i, key in enumerate(group)} for group in ordered]


def _legend_entry(label: str, index: int, group: int, groups: int) -> Line2D:
    """How matplotlib draws one entry of the legend."""
    colour, marker = plots.COLOURS[index % len(plots.COLOURS)], MARKERS[index % len(MARKERS)]
    if groups == 1:
        return Line2D([], [], label=label, color=colour, marker=marker)
    if group == 0:
        return Line2D([], [], label=label, color=colour, lw=3)
    return Line2D([], [], label=label, color="#4c566a", marker=marker, ls="")


def _look(line: Series, styles: Sequence[dict[str, int]]) -> tuple[int, int]:
    """Numbers of colour and symbol."""
    colour = styles[0][line.belongs[0]]
    return colour, (styles[1][line.belongs[1]] if len(line.belongs) > 1 else colour)


def _paint(ax: Axes, panel: Panel, styles: Sequence[dict[str, int]]) -> None:
    places = panel.positions()
    for line in panel.lines:
        colour, symbol = _look(line, styles)
        bars = list(line.error) if any(line.error) else None
        ax.errorbar(
            [places[x] for x in line.x],
            list(line.y),
            yerr=bars,
            label=line.label,
            color=plots.COLOURS[colour % len(plots.COLOURS)],
            marker=MARKERS[symbol % len(MARKERS)],
            ls="-" if line.joined else "",
            lw=1.6,
            ms=5,
            capsize=3,
        )
    for index, (label, value) in enumerate(sorted(panel.levels, key=lambda level: -level[1])):
        ax.axhline(value, ls=DASHES[index % 3], color="#4c566a", lw=1.2)
        side = "bottom" if index % 2 == 0 else "top"  # two near levels: one label above its line, the other below
        clear = [patheffects.withStroke(linewidth=2.5, foreground="white")]  # lines that pass below a label do not cross it
        at = ("axes fraction", "data")
        ax.annotate(label, (0.01, value), xycoords=at, va=side, fontsize=7, color="#4c566a", path_effects=clear, zorder=9)
    ticks = panel.ticks()
    ax.set_xticks([at for at, _ in ticks], [text for _, text in ticks])
    title = textwrap.fill(panel.title, TITLE_WIDTH)  # as long as it is, it stays above its own panel
    ax.set(xlabel=panel.xlabel, ylabel=panel.ylabel, title=title)
    ax.margins(x=0.08, y=0.12)
    ax.grid(alpha=0.25)


def _spec(panel: Panel, styles: Sequence[dict[str, int]]) -> dict[str, object]:
    places = panel.positions()
    lines = []
    for line in panel.lines:
        colour, symbol = _look(line, styles)
        tips = line.tips or tuple(_tip(panel, line, i) for i in range(len(line.y)))
        points = [
            [round(places[line.x[i]], 4), round(y, 5), round(line.error[i], 5), tips[i]]
            for i, y in enumerate(line.y)
            if math.isfinite(y)
        ]
        lines.append({"keys": list(line.belongs), "colour": colour, "symbol": symbol, "joined": line.joined, "points": points})
    levels = [{"label": label, "y": round(value, 5)} for label, value in panel.levels if math.isfinite(value)]
    head = {"title": panel.title, "xlabel": panel.xlabel, "ylabel": panel.ylabel}
    return {**head, "ticks": panel.ticks(), "lines": lines, "levels": levels}


def _tip(panel: Panel, line: Series, i: int) -> str:
    x, error = line.x[i], line.error[i]
    spread = f" ± {error:.3f}" if error else ""
    where = x if isinstance(x, str) else _tick(x)
    return f"{line.label}\n{panel.xlabel}: {where}\n{panel.ylabel}: {line.y[i]:.3f}{spread}"


def _legend_spec(
    panels: Sequence[Panel], groups: Sequence[Sequence[str]], styles: Sequence[dict[str, int]]
) -> list[dict[str, object]]:
    heads = next((p.heads for p in panels if p.heads), ())
    found: list[dict[str, object]] = []
    for i, group in enumerate(groups):
        entries = []
        for key in group:
            look: dict[str, object] = {"label": key}
            if i == 0:
                look["colour"] = styles[0][key]
            if i == 1 or len(groups) == 1:
                look["symbol"] = styles[i][key]
            entries.append(look)
        found.append({"title": heads[i] if i < len(heads) else "", "entries": entries})
    return found
