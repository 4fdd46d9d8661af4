"""The figure of the first screen as a matplotlib figure, for notebooks."""

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedgraph.errors import ScenarioError
from fedgraph.report import plots
from fedgraph.report.answer import Answer, ceiling
from fedgraph.report.scores import METRICS, Score


def draw(answered: Answer, unit: str | None = None) -> Figure:
    """One panel per question and unit: mean against provable ε, rows without a finite ε as levels.

    Raises ``ScenarioError`` where no row releases anything at that unit.
    """
    panels = {
        (s.asked, s.unit): [o for o in answered.scores if o.asked == s.asked]
        for s in answered.scores
        if s.private and math.isfinite(s.provable) and unit in (None, s.unit)
    }
    if not panels:
        raise ScenarioError("no row with a finite provable ε" + (f" at unit {unit!r}" if unit else "") + ": nothing to draw")
    figure = Figure(figsize=(5.5 * len(panels), 4.2), layout="constrained")
    for index, ((asked, own), scores) in enumerate(panels.items()):
        axes = figure.add_subplot(1, len(panels), index + 1)
        _panel(axes, [s for s in scores if s.unit == own and s.private and math.isfinite(s.provable)])
        top = ceiling(scores)
        if top is not None:
            axes.axhline(top.mean, color="#6b7280", lw=1, ls="--", label=f"without privacy: {top.name}")
        axes.set(title=f"{asked[0]}, {own} level", xlabel="provable ε", ylabel=METRICS[asked[1]], xscale="log")
        axes.legend(fontsize=7)
    return figure


def _panel(axes: Axes, scores: list[Score]) -> None:
    lines: dict[tuple[str, str], list[Score]] = {}
    for s in scores:
        lines.setdefault((s.name, s.trust.value), []).append(s)
    for index, ((name, trust), own) in enumerate(lines.items()):
        own.sort(key=lambda s: s.provable)
        axes.errorbar(
            [s.provable for s in own],
            [s.mean for s in own],
            [s.deviation or 0.0 for s in own],
            color=plots.COLOURS[index % len(plots.COLOURS)],
            marker=plots.MARKERS[index % len(plots.MARKERS)],
            capsize=2,
            label=f"{name} (trusts: {trust})",
        )
