"""Drawing primitives: every figure of a report, as PNG bytes, with one look."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

COLOURS = ("#1b6ca8", "#d1495b", "#2e933c", "#8e5ea2", "#e08e0b", "#4c566a", "#17a2a2", "#a0522d")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


@dataclass(frozen=True)
class Figure:
    """name: file name without ending. png: the picture. caption: one sentence."""

    name: str
    png: bytes
    caption: str


@dataclass(frozen=True)
class Line:
    """One line with error bars. x may hold ∞, drawn at the right edge."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    error: Sequence[float]


PER_ROW = 4  # panels side by side; more would be too small to read


def draw(
    name: str, caption: str, panels: int, paint: Callable[[list[Axes]], None], notice: str | None, height: float = 3.6
) -> Figure:
    """``panels`` axes, at most ``PER_ROW`` side by side, painted and saved. height: inches of one row."""
    columns = min(panels, PER_ROW)
    lines = -(-panels // columns)
    size = (max(5.2, 4.4 * columns), height * lines)
    figure, axes = plt.subplots(lines, columns, figsize=size, squeeze=False, layout="constrained")
    for unused in axes.flat[panels:]:
        unused.set_axis_off()
    try:
        paint(list(axes.flat[:panels]))
        if notice:
            figure.suptitle(notice, fontsize=8, color="#b00020")
        buffer = io.BytesIO()
        figure.savefig(buffer, dpi=130, format="png")
    finally:
        plt.close(figure)
    return Figure(name, buffer.getvalue(), caption)


def against_epsilon(axes: Axes, title: str, lines: Sequence[Line], levels: Sequence[tuple[str, float]], ylabel: str) -> None:
    """Values against ε on evenly spaced ticks (∞ included); ``levels`` are dashed horizontals."""
    ticks = sorted({x for line in lines for x in line.x})
    place = {x: i for i, x in enumerate(ticks)}
    for index, line in enumerate(lines):
        style = {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)]}
        axes.errorbar([place[x] for x in line.x], line.y, yerr=line.error, label=line.label, capsize=3, lw=1.6, ms=5, **style)
    for index, (label, value) in enumerate(levels):
        axes.axhline(value, ls=("--", ":", "-.")[index % 3], color="#4c566a", lw=1.2, label=label)
    axes.set_xticks(range(len(ticks)), ["∞" if np.isinf(t) else f"{t:g}" for t in ticks])
    axes.set(xlabel="privacy budget ε", ylabel=ylabel, title=title)
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8, frameon=False)


def heatmap(axes: Axes, matrix: np.ndarray, title: str, boundaries: Sequence[int]) -> None:
    """A distance matrix, with lines between its groups."""
    image = axes.imshow(matrix, cmap="viridis", interpolation="nearest")
    for at in boundaries:
        axes.axhline(at - 0.5, color="white", lw=0.7)
        axes.axvline(at - 0.5, color="white", lw=0.7)
    axes.set(title=title, xlabel="client graphs, by cluster", ylabel="")
    axes.figure.colorbar(image, ax=axes, shrink=0.85)  # the title says of what: a label runs into the next panel


def scatter(axes: Axes, points: np.ndarray, groups: np.ndarray, title: str, legend: str) -> None:
    """A 2-D map [N, 2] coloured by group."""
    for index, group in enumerate(np.unique(groups)):
        chosen = groups == group
        colour, marker = COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]
        axes.scatter(
            points[chosen, 0], points[chosen, 1], s=16, alpha=0.75, color=colour, marker=marker, label=f"{legend} {group}"
        )
    axes.set(title=title, xticks=[], yticks=[])
    axes.legend(fontsize=7, frameon=False, ncols=2)
