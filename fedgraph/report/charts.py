"""Charts of lines: accuracy against provable ε for each question, and whatever else a section draws against something."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fedgraph.report import answer, rows
from fedgraph.report.answer import Question
from fedgraph.report.compared import Row
from fedgraph.report.phrases import phrase_number, phrase_upper_bound, read_phrases
from fedgraph.report.plots import FADED, GREY, HEIGHT, INK, PLOT_COLOURS, PLOT_SHAPES, WIDTH, Panel, PlotFigure, Spec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FEWEST = 2  # points that a single line needs to be drawn
_DODGE = 1.035  # factor on ε between levels of trust, so that equal numbers are seen
_ROOM = 0.34  # of the axis, for labels at the ends of lines
_LONGEST = 250  # pixels of a horizontal's label
_LINE = 0.03  # of the height, half a line of text
_APART = 0.075  # of the height, between two labels
_AXES = {
    "accuracy": "right for … of 100",
    "auc": "AUC of hidden edges",
    "auroc": "AUROC of the rare class",
    "ari": "adjusted Rand index",
}
TRUST_LOOKS = {  # colour and symbol, the same in every figure
    "curator": ("#1f6fb2", "circle"), "sums": ("#d9690b", "square"), "own-client": ("#2b8a3e", "triangle-up"),
    "active-server": ("#8e5bb5", "diamond"), "nobody": ("#d1477f", "cross"),
}  # fmt: skip


@dataclass(frozen=True)
class ChartSeries:
    """Points of one configuration, with error bars.

    Attributes:
        label: What the legend calls it.
        x: Numbers, or names; then every line of the panel draws on the same names.
        error: Half the length of each bar; 0 draws none.
        keys: What the line belongs to: the first gives its colour and the second its symbol. Empty: its label alone.
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


@dataclass(frozen=True)
class ChartPanel:
    """One pair of axes.

    Attributes:
        levels: Dashed horizontals, as (label, value).
        axis: Evenly spaced values, or a logarithmic scale.
        heads: Titles of the legends of colours and of symbols.
    """

    title: str
    ylabel: str
    lines: tuple[ChartSeries, ...]
    levels: tuple[tuple[str, float], ...] = ()
    xlabel: str = "privacy budget ε"
    axis: Literal["even", "log"] = "even"
    heads: tuple[str, ...] = ()


def draw_chart(
    name: str, caption: str, panels: Sequence[ChartPanel], notice: str | None, shared: bool = False
) -> tuple[PlotFigure, ...]:
    """One figure with all panels that have two lines, or one of ``_FEWEST`` points; none without them.

    shared: one scale of y, so that panels can be compared.
    """
    panels = [p for p in panels if len(p.lines) > 1 or any(len(line.x) >= _FEWEST for line in p.lines)]
    if not panels:
        return ()
    values = [v for p in panels for v in _heights(p)]
    looks = _looks(panels)
    drawn = tuple(_panel(p, looks, _domain(values if shared else _heights(p))) for p in panels)
    return (PlotFigure(name, caption, drawn, notice),)


def chart_over_budgets(label: str, found: Sequence[rows.Row], metric: str) -> ChartSeries:
    """The mean of each row against the ε that it was asked for, with one standard deviation."""
    means, spread = [r.mean_of(metric) for r in found], [r.deviation_of(metric) for r in found]
    return ChartSeries(label, [r.head.epsilon for r in found], means, spread)


def _heights(panel: ChartPanel) -> list[float]:
    ends = [y + s * e for line in panel.lines for y, e in zip(line.y, line.error, strict=True) for s in (-1, 1)]
    return [y for y in (*ends, *(level for _, level in panel.levels)) if math.isfinite(y)]


def _domain(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values, default=0.0), max(values, default=1.0)
    gap = 0.06 * (high - low or abs(high) or 1.0)
    return low - gap, high + gap


def _looks(panels: Sequence[ChartPanel]) -> tuple[list[str], list[str]]:
    """The names that have a colour, and those that have a symbol, in order of first appearance."""
    keys = [line.keys or (line.label,) for p in panels for line in p.lines]
    return list(dict.fromkeys(k[0] for k in keys)), list(dict.fromkeys(k[1] for k in keys if len(k) > 1))


def _panel(panel: ChartPanel, looks: tuple[list[str], list[str]], domain: tuple[float, float]) -> Panel:
    import altair as alt
    import pandas

    even = panel.axis == "even"
    points = []
    for line in panel.lines:
        keys = line.keys or (line.label,)
        tips = line.tips or [""] * len(line.x)
        for at, value, error, tip in zip(line.x, line.y, line.error, tips, strict=True):
            if math.isfinite(value):
                told = {"line": line.label, "colour": keys[0], "symbol": keys[1] if len(keys) > 1 else keys[0]}
                bars = {"low": value - error, "high": value + error, "joined": line.joined}
                points.append({"x": _tick(at) if even else at, "y": value, **bars, **told, "tip": tip})
    every: list[float | str] = list(dict.fromkeys(x for line in panel.lines for x in line.x))
    ordered: list[float | str] = every if any(isinstance(x, str) for x in every) else sorted(every, key=float)
    x = (
        alt.X(
            "x:N",
            title=panel.xlabel,
            sort=[_tick(x) for x in ordered],
            axis=alt.Axis(labelAngle=0, labelOverlap=True, grid=True),
        )
        if even
        else alt.X("x:Q", title=panel.xlabel, scale=alt.Scale(type="log"))
    )
    y = alt.Y("y:Q", title=panel.ylabel, scale=alt.Scale(domain=list(domain), nice=False, zero=False))
    heads = [*panel.heads, "", ""]
    colour = alt.Color("colour:N", title=heads[0] or None, scale=_scale(looks[0], PLOT_COLOURS))
    asked: list[Panel] = [
        alt.Tooltip("line:N", title=" "),
        alt.Tooltip("x", title=panel.xlabel),
        alt.Tooltip("y:Q", title=panel.ylabel, format=".3f"),
    ]
    asked += [alt.Tooltip("tip:N", title="  ")] if any(line.tips for line in panel.lines) else []
    base = alt.Chart(pandas.DataFrame(points)).encode(x, colour)
    layers: list[Panel] = [
        base.transform_filter("datum.high > datum.low").mark_rule(opacity=0.7).encode(alt.Y("low:Q"), alt.Y2("high"))
    ]
    layers.append(base.transform_filter("datum.joined").mark_line(strokeWidth=1.7).encode(y, alt.Detail("line:N")))
    shapes = [TRUST_LOOKS.get(name, ("", PLOT_SHAPES[k % len(PLOT_SHAPES)]))[1] for k, name in enumerate(looks[1])]
    shape = [alt.Shape("symbol:N", title=heads[1] or None, scale=_scale(looks[1], shapes))] if looks[1] else []
    layers.append(base.mark_point(filled=True, size=46, opacity=1).encode(y, *shape, tooltip=asked))
    for place, (label, value) in enumerate(panel.levels):
        level = alt.Chart(pandas.DataFrame({"y": [value], "label": [label]}))
        layers.append(level.mark_rule(strokeDash=[5, 4], color=INK).encode(y))
        above = level.mark_text(align="left", dx=4, dy=-6 if place % 2 == 0 else 10, color=INK, fontSize=11)
        layers.append(above.encode(y, alt.Text("label:N"), x=alt.value(0)))
    return alt.layer(*layers, title=alt.TitleParams(panel.title, limit=WIDTH), width=WIDTH, height=HEIGHT)


def _scale(names: Sequence[str], looks: Sequence[str]) -> Panel:
    import altair as alt

    return alt.Scale(domain=list(names), range=[looks[k % len(looks)] for k in range(len(names))])


def _tick(x: object) -> str:
    return f"{x:,.4g}".replace("inf", "∞") if isinstance(x, int | float) else str(x)


def draw_limits(
    title: str,
    curves: Sequence[tuple[str, Sequence[float], Sequence[float]]],
    points: Sequence[tuple[str, float, float, str]],
    axes: tuple[str, str],
) -> Panel:
    """Curves that no point may exceed, and points below them.

    Args:
        curves: (name, x, y); the second and later ones are dashed.
        points: (name, x, y, what to say of it).
        axes: Titles of x, which is logarithmic, and of y.
    """
    import altair as alt
    import pandas

    lines = [{"x": x, "y": y, "curve": name} for name, xs, ys in curves for x, y in zip(xs, ys, strict=True)]
    x = alt.X("x:Q", title=axes[0], scale=alt.Scale(type="log"))
    names = [name for name, *_ in curves]
    dash = alt.StrokeDash("curve:N", title=None, scale=alt.Scale(domain=names, range=[[1, 0], [5, 4]][: len(names)]))
    limit = (
        alt.Chart(pandas.DataFrame(lines)).mark_line(color=INK, strokeWidth=1.4).encode(x, alt.Y("y:Q", title=axes[1]), dash)
    )
    told = pandas.DataFrame([{"x": x, "y": y, "name": name, "of": said} for name, x, y, said in points])
    found = list(dict.fromkeys(told["name"]))
    marks = (
        alt.Chart(told)
        .mark_point(filled=True, size=46, opacity=0.9)
        .encode(
            x,
            alt.Y("y:Q"),
            alt.Color("name:N", title=None, scale=_scale(found, PLOT_COLOURS)),
            tooltip=["name:N", "of:N", alt.Tooltip("y:Q", format=".3f")],
        )
    )
    return alt.layer(limit, marks, title=title, width=1.4 * WIDTH, height=1.2 * HEIGHT)


def draw_bars(title: str, x: Iterable[float], heights: Sequence[float], line: Sequence[float], across: str) -> Panel:
    """How many nodes there are at each x, and a line of what luck alone gives."""
    import altair as alt
    import pandas

    table = pandas.DataFrame({"x": list(x), "nodes": list(heights), "luck": list(line)})
    base = alt.Chart(table, title=alt.TitleParams(title, limit=WIDTH), width=WIDTH, height=HEIGHT)
    base = base.encode(alt.X("x:Q", title=across), tooltip=["x:Q", "nodes:Q", "luck:Q"])
    bars = base.mark_bar(color=PLOT_COLOURS[0], width=12).encode(alt.Y("nodes:Q", title="nodes (line: by luck alone)"))
    return bars + base.mark_line(color=INK, point=True, strokeWidth=1).encode(alt.Y("luck:Q"))


# ---- accuracy against provable ε, a panel for each question -------------------------------------------------------------


def draw_questions(name: str, questions: Sequence[Question]) -> PlotFigure | None:
    """One panel for each question: the best row of each level of trust at each ε, the others as light lines.

    None where no private row of any has a number.
    """
    panels = tuple(draw_question(question) for question in questions if question.kept)
    return PlotFigure(name, "", panels, columns=3) if panels else None


def draw_question(question: Question) -> Panel:
    """The panel of a question of which at least one row is ``kept``."""
    import altair as alt
    import pandas

    scale = 100 if question.head.metric == "accuracy" else 1
    best = [
        {**_told(row, scale), "x": budget * _DODGE ** (place - (len(question.trusts) - 1) / 2), "budget": budget}
        for place, trust in enumerate(question.trusts) for budget in question.budgets
        if (row := question.at(budget, trust)) is not None
    ]  # fmt: skip
    seeds = [{**point, "y": value} for point in best for value in point["seeds"]]
    others = [{**_told(row, scale), "x": row.provable} for row in question.kept]
    for point in (*best, *seeds, *others):
        point.pop("seeds")
    every = pandas.DataFrame([*best, *others])
    low, high = float(every["x"].min()), float(every["x"].max())
    decades = max(math.log10(high / low), 0.5)
    ends = [10 ** (math.log10(low) - 0.1 * decades), 10 ** (math.log10(high) + _ROOM * decades)]
    span, rules, below = _rules(question, scale, [*every["y"], *every["low"], *every["high"]])
    marked = sorted({*question.budgets} if question.budgets else {low, high})
    if decades > 2.2:
        marked = [10.0**k for k in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
    axis = alt.Axis(values=marked, labelExpr="format(datum.value, '~g')", labelOverlap="greedy")
    x = alt.X("x:Q", title="ε, proven at most", scale=alt.Scale(type="log", domain=ends, nice=False), axis=axis)
    metric = question.head.metric
    name = _AXES.get(metric) or read_phrases()["short_metrics"].get(metric, "score")
    scaled = alt.Scale(domain=list(span), nice=False, zero=False)
    y = alt.Y("y:Q", title=name, scale=scaled, axis=alt.Axis(tickCount=6))
    trusts = [t.value for t in question.trusts]
    colours, shapes = (_scale(trusts, [TRUST_LOOKS[t][k] for t in trusts]) for k in (0, 1))
    colour = alt.Color("trust:N", scale=colours, legend=None)
    layers: list[Panel] = []
    texts: list[Panel] = []  # above lines, below points
    if others:
        light = alt.Chart(pandas.DataFrame(others)).encode(x, y)
        layers.append(light.mark_line(color=FADED, strokeWidth=1.1, opacity=0.6).encode(alt.Detail("line:N")))
        layers.append(
            light.mark_point(filled=True, color=FADED, size=22, opacity=0.75).encode(
                alt.Shape("trust:N", scale=shapes, legend=None), tooltip=_tips()
            )
        )
    for value, label, up in rules:
        level = alt.Chart(pandas.DataFrame({"y": [value], "label": [label], "x": [ends[0]]}))
        layers.append(level.mark_rule(strokeDash=[5, 4], color=GREY).encode(alt.Y("y:Q")))
        named = level.mark_text(align="left", dx=3, dy=-7 if up else 9, color=INK, fontSize=11, limit=_LONGEST)
        texts.append(named.encode(x, y, alt.Text("label:N")))
    if below:
        level = alt.Chart(pandas.DataFrame({"y": [span[0]], "label": [below], "x": [ends[0]]}))
        texts.append(level.mark_text(align="left", dx=3, dy=-8, color=INK, fontSize=11).encode(x, y, alt.Text("label:N")))
    if best:
        base = alt.Chart(pandas.DataFrame(best)).encode(x, colour)
        layers.append(base.mark_line(strokeWidth=2.4).encode(y))
        layers.append(base.mark_rule(strokeWidth=1.2, opacity=0.55).encode(alt.Y("low:Q"), alt.Y2("high")))
        if len(seeds) > len(best):
            layers.append(alt.Chart(pandas.DataFrame(seeds)).mark_point(filled=True, size=14, opacity=0.8).encode(x, y, colour))
        layers += texts
        layers.append(
            base.mark_point(filled=True, size=78, opacity=1).encode(
                y, alt.Shape("trust:N", scale=shapes, legend=None), tooltip=_tips()
            )
        )
        layers.append(
            alt.Chart(pandas.DataFrame(_labels(best, span, rules))).mark_text(align="left", dx=9, fontSize=12, fontWeight=600)
            .encode(x, y, colour, alt.Text("label:N"))
        )  # fmt: skip
    layers += [] if best else texts
    return alt.layer(*layers, title=alt.TitleParams(question.title, limit=WIDTH + 60), width=WIDTH + 40, height=HEIGHT + 30)


def _rules(
    question: Question, scale: int, heights: Sequence[float]
) -> tuple[tuple[float, float], list[tuple[float, str, bool]], str]:
    """(ends of the axis, horizontals as (value, label, whether the label stands above), what is said of guessing far below)."""
    top, free, rules = question.ceiling, question.free, list[tuple[float, str, bool]]()
    if top is not None:
        rules.append((scale * top.mean, f"without privacy {answer.format_mean(top)} ({top.label})", True))
    if free is not None:
        rules.append((scale * free.mean, f"nothing private released {answer.format_mean(free)} ({free.label})", False))
    values = [*heights, *(value for value, *_ in rules)]
    if question.head.metric == "ari":  # small numbers around chance are not drawn large
        values += [-0.05, 0.3]
    low, high, guess = min(values), max(values), scale * question.guess
    if not question.guess and question.head.metric != "ari":
        return _domain(values), rules, ""
    if low - guess > 1.5 * (high - low):
        return _domain(values), rules, f"↓ {_guess(question)}"
    span = _domain([*values, guess])
    if all(abs(value - guess) > 0.04 * (span[1] - span[0]) for value, *_ in rules):
        rules.append((guess, _guess(question), True))
    return span, rules, ""


def _guess(question: Question) -> str:
    if question.head.metric in ("auc", "auroc", "ari"):
        return "chance"
    if question.head.metric != "accuracy":
        return f"guessing {question.guess:.2f}"
    return f"{'public sizes' if question.of_graphs else 'largest class'} {100 * question.guess:.0f}"


def _told(row: Row, scale: int) -> Spec:
    """A row as a point says it."""
    low, high = row.interval
    first = [words.split(";")[0].split(" (")[0] for words in row.assumptions[:3]]
    more = len(row.assumptions) - len(first)
    return {
        "y": scale * row.mean, "low": scale * low, "high": scale * high, "trust": row.trust.value, "slug": row.slug,
        "line": f"{row.label}, {row.world}, {row.calibrated_by}, {row.task}", "row": row.name,
        "method": row.title.split(". ")[0].rstrip("."),
        "interval": f"{answer.format_mean(row)} ({answer.span(row)})",
        "provable": phrase_upper_bound(row.provable, 3), "published": phrase_number(row.published, 3),
        "assumed": "; ".join(first) + (f"; {more} more" if more else ""), "seeds": [scale * v for v in row.values.values()],
    }  # fmt: skip


def _tips() -> list[Panel]:
    import altair as alt

    named = {"row": "row", "method": "method", "interval": "result", "provable": "ε provable", "published": "ε published",
             "trust": "trust", "assumed": "if"}  # fmt: skip
    return [alt.Tooltip(f"{key}:N", title=title) for key, title in named.items()]


def _labels(best: Sequence[Spec], span: tuple[float, float], rules: Sequence[tuple[float, str, bool]]) -> list[Spec]:
    """A label at the last point of each line, moved apart where they would cover each other, and off the labels of rules."""
    last = {point["trust"]: point for point in best}  # budgets come in order
    right = max(point["x"] for point in last.values())
    placed: list[Spec] = []
    for point in sorted(last.values(), key=lambda point: point["y"]):
        near = [one["y"] for one in placed if abs(math.log(one["x"] / point["x"])) < 1]
        at = max([point["y"], *(y + _APART * (span[1] - span[0]) for y in near)])
        placed.append(
            {"x": right if point["x"] > right / 1.3 else point["x"], "y": at, "trust": point["trust"], "label": point["trust"]}
        )
    low, high = (end / (span[1] - span[0]) for end in span)
    heights = [one["y"] / (span[1] - span[0]) for one in placed]
    taken = [value / (span[1] - span[0]) + (_LINE if up else -_LINE) for value, _, up in rules]

    def fit(by: float) -> tuple[int, float]:
        out = sum(not low + _LINE / 2 < y + by < high - _LINE / 2 for y in heights)
        return out + sum(abs(y + by - other) < 1.5 * _LINE for y in heights for other in taken), abs(by)

    moved = min((k * _LINE / 2 for k in range(-8, 9)), key=fit) * (span[1] - span[0])
    return [one | {"y": one["y"] + moved} for one in placed]


def draw_for_notebook(questions: Sequence[Question]) -> Figure:
    """A figure of matplotlib with means against provable ε, a panel for each question of which a row is ``kept``; at least one.

    Raises:
        ImportError: matplotlib is not installed; the line says how.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("a Figure needs matplotlib: pip install 'fedgraph-privacy[figure]'") from error
    figure = Figure(figsize=(5.5 * len(questions), 4.2), layout="constrained")
    for axes, question in zip(figure.subplots(1, len(questions), squeeze=False).flat, questions, strict=True):
        for label, trust in dict.fromkeys((row.label, row.trust) for row in question.kept):
            own = sorted((r for r in question.kept if (r.label, r.trust) == (label, trust)), key=lambda r: r.provable)
            bars = [r.deviation for r in own]
            axes.errorbar([r.provable for r in own], [r.mean for r in own], yerr=bars if any(bars) else None, marker="o",
                          label=f"{label}, {trust.value}")  # fmt: skip
        if question.ceiling is not None:
            axes.axhline(question.ceiling.mean, ls="--", color="0.4", label=f"without privacy: {question.ceiling.label}")
        axes.set(xscale="log", xlabel="provable ε", ylabel=question.head.metric, title=question.title)
        axes.legend(fontsize=7, frameon=False)
    return figure
