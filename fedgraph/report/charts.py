"""Charts of lines: accuracy against provable ε for each question, and whatever else a section draws against something."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedgraph.report import answer
from fedgraph.report.answer import Question
from fedgraph.report.phrases import phrase_number, phrase_upper_bound, read_phrases
from fedgraph.report.plots import FADED, GREY, HEIGHT, INK, WIDTH, Panel, PlotFigure, Spec
from fedgraph.report.table import Line, keeps
from fedgraph.types import in_words_of

if TYPE_CHECKING:
    import pandas

_DODGE = 1.035  # factor on ε between levels of trust, so that equal numbers are seen
_ROOM = 0.34  # of the axis, for labels at the ends of lines
_LONGEST = 250  # pixels of a horizontal's label
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
class ChartPoint:
    """A point of a line, in a panel."""

    panel: str
    up: str  # what y is
    line: str
    x: float | str  # A number, or a name; then no line joins the points
    y: float
    error: float = 0.0  # half the length of its bar
    colour: str = ""  # what gives its colour; empty: the line
    symbol: str = ""  # what gives its symbol; empty: all have one
    tip: str = ""  # what else to say of it


def name_scale(row: Line) -> str:
    """What the numbers of a picture or of a table are, of rows like this."""
    return in_words_of(row.one, _AXES.get(row.metric) or read_phrases()["short_metrics"].get(row.metric, "score"))


def draw_lines(
    caption: str,
    points: Sequence[ChartPoint],
    *,
    across: str,
    levels: Mapping[str, Sequence[tuple[str, float]]] | None = None,
    heads: tuple[str, ...] = (),
    shared: bool = False,
) -> tuple[PlotFigure, ...]:
    """One figure with every panel that has two points or more; none without such a panel.

    Args:
        across: What x is.
        levels: Panel → dashed horizontals, as (label, value).
        heads: Titles of the legends of colours and of symbols.
        shared: One scale of y, so that panels can be compared.
    """
    import pandas

    every = list(dict.fromkeys(one.x for one in points))
    named = any(isinstance(x, str) for x in every)
    order = [_tick(x) for x in (every if named else sorted(every, key=float))]
    frame = pandas.DataFrame(
        {**vars(one), "x": _tick(one.x), "joined": not named, "low": one.y - one.error, "high": one.y + one.error,
         "colour": one.colour or one.line}
        for one in points if math.isfinite(one.y)
    )  # fmt: skip
    kept = frame[frame.groupby("panel")["panel"].transform("size") > 1] if len(frame) else frame
    if kept.empty:
        return ()
    known = levels or {}
    ends = [*kept["low"], *kept["high"], *(value for panel in known for _, value in known[panel])]
    domain = list(_domain(ends)) if shared else None
    looks = [list(filter(None, kept[key].unique())) for key in ("colour", "symbol")]
    panels = (
        _lines(panel, part, order, across, looks, heads or ("", ""), known.get(panel, ()), domain)
        for panel, part in kept.groupby("panel", sort=False)
    )
    return (PlotFigure(caption, tuple(panels)),)


def _lines(
    panel: str, part: pandas.DataFrame, order: list[str], across: str, looks: Sequence[list[str]], heads: tuple[str, ...],
    levels: Sequence[tuple[str, float]], domain: list[float] | None,
) -> Panel:  # fmt: skip
    import altair as alt
    import pandas

    up = part["up"].iloc[0]
    x = alt.X("x:N", title=across, sort=[x for x in order if x in set(part["x"])],
              axis=alt.Axis(labelAngle=0, labelOverlap=True, grid=True))  # fmt: skip
    y = alt.Y("y:Q", title=up, scale=alt.Scale(zero=False, nice=domain is None, domain=domain or alt.Undefined))
    colour = alt.Color("colour:N", title=heads[0] or None, scale=alt.Scale(domain=looks[0]))
    shape = [alt.Shape("symbol:N", title=heads[1] or None, scale=alt.Scale(domain=looks[1]))] if looks[1] else []
    asked = [alt.Tooltip("line:N", title=" "), alt.Tooltip("x", title=across), alt.Tooltip("y:Q", title=up, format=".3f")]
    asked += [alt.Tooltip("tip:N", title="  ")] if part["tip"].any() else []
    base = alt.Chart(part.drop(columns=["panel", "up", "error"])).encode(x, colour)
    barred = (part["high"] > part["low"]).any()
    layers: list[Panel] = [base.mark_rule(opacity=0.7).encode(alt.Y("low:Q"), alt.Y2("high"))] if barred else []
    if part["joined"].all():
        layers.append(base.mark_line(strokeWidth=1.7).encode(y, alt.Detail("line:N")))
    layers.append(base.mark_point(filled=True, size=46, opacity=1).encode(y, *shape, tooltip=asked))
    for place, (label, value) in enumerate(levels):
        level = alt.Chart(pandas.DataFrame({"y": [value], "label": [label]}))
        layers.append(level.mark_rule(strokeDash=[5, 4], color=INK).encode(y))
        above = level.mark_text(align="left", dx=4, dy=-6 if place % 2 == 0 else 10, color=INK, fontSize=11)
        layers.append(above.encode(y, alt.Text("label:N"), x=alt.value(0)))
    return alt.layer(*layers, title=alt.TitleParams(panel, limit=WIDTH), width=WIDTH, height=HEIGHT)


def _domain(values: Sequence[float]) -> tuple[float, float]:
    known = [value for value in values if math.isfinite(value)]
    low, high = min(known, default=0.0), max(known, default=1.0)
    gap = 0.06 * (high - low or abs(high) or 1.0)
    return low - gap, high + gap


def _tick(x: object) -> str:
    return f"{x:,.4g}".replace("inf", "∞") if isinstance(x, int | float) else str(x)


# ---- accuracy against provable ε, a panel for each question -------------------------------------------------------------


def draw_questions(questions: Sequence[Question]) -> PlotFigure | None:
    """One panel for each question: the best row of each level of trust at each ε, the others as light lines.

    None where no private row of any has a number.
    """
    panels = tuple(draw_question(question) for question in questions if question.kept)
    return PlotFigure("Accuracy against provable ε", panels, columns=3) if panels else None


def draw_question(question: Question) -> Panel:
    """The panel of a question of which at least one row is ``kept``.

    Of several ε each level of trust is a line, and their marks stand a little beside each other. Of one ε that a row keeps
    each level of trust is a column, so that nobody reads a place for another ε.
    """
    import altair as alt
    import pandas

    scale = 100 if question.head.metric == "accuracy" else 1
    single = len(question.budgets) == 1 and any(keeps(row, question.budgets[0]) for row in question.kept)
    middle = (len(question.trusts) - 1) / 2
    best = [
        {**_told(row, scale), "x": trust.value if single else budget * _DODGE ** (place - middle)}
        for place, trust in enumerate(question.trusts) for budget in question.budgets
        if (row := question.at(budget, trust)) is not None
    ]  # fmt: skip
    others = [{**_told(row, scale), "x": row.trust.value if single else row.epsilon_provable} for row in question.kept]
    if single:
        others = [point for point, row in zip(others, question.kept, strict=True) if keeps(row, question.budgets[0])]
    seeds = [{"x": one["x"], "trust": one["trust"], "y": value} for one in best for value in one["seeds"]]
    for point in (*best, *others):
        point.pop("seeds")
    heights = [point[name] for point in (*best, *others) for name in ("y", "low", "high")]
    span, rules, below = _rules(question, scale, heights)
    y = alt.Y("y:Q", title=name_scale(question.head), scale=alt.Scale(domain=list(span), nice=False, zero=False),
              axis=alt.Axis(tickCount=6))  # fmt: skip
    x = _trust_axis(question) if single else _epsilon_axis(question, [point["x"] for point in (*best, *others)])
    trusts = [t.value for t in question.trusts]
    colours, shapes = (alt.Scale(domain=trusts, range=[TRUST_LOOKS[t][k] for t in trusts]) for k in (0, 1))
    colour, shape = alt.Color("trust:N", scale=colours, legend=None), alt.Shape("trust:N", scale=shapes, legend=None)
    layers: list[Panel] = []
    if others:
        light = alt.Chart(pandas.DataFrame(others)).encode(x, y)
        layers += [] if single else [light.mark_line(color=FADED, strokeWidth=1.1, opacity=0.6).encode(alt.Detail("line:N"))]
        layers.append(light.mark_point(filled=True, color=FADED, size=22, opacity=0.75).encode(shape, tooltip=_tips()))
    horizontals = [*rules, *([(span[0], below, True)] if below else [])]
    texts: list[Panel] = []  # above lines, below points
    for value, label, up in horizontals:
        level = alt.Chart(pandas.DataFrame({"y": [value], "label": [label]}))
        layers += [] if label == below else [level.mark_rule(strokeDash=[5, 4], color=GREY).encode(y)]
        named = level.mark_text(align="left", dx=3, dy=-7 if up else 9, color=INK, fontSize=11, limit=_LONGEST)
        texts.append(named.encode(y, alt.Text("label:N"), x=alt.value(0)))
    if best:
        base = alt.Chart(pandas.DataFrame(best)).encode(x, colour)
        layers += [] if single else [base.mark_line(strokeWidth=2.4).encode(y)]
        layers.append(base.mark_rule(strokeWidth=1.2, opacity=0.55).encode(alt.Y("low:Q"), alt.Y2("high")))
        if len(seeds) > len(best):
            layers.append(alt.Chart(pandas.DataFrame(seeds)).mark_point(filled=True, size=14, opacity=0.8).encode(x, y, colour))
        layers += texts
        layers.append(base.mark_point(filled=True, size=78, opacity=1).encode(y, shape, tooltip=_tips()))
        if not single:
            ends = alt.Chart(pandas.DataFrame(_labels(best, span)))
            named = ends.mark_text(align="left", dx=9, fontSize=12, fontWeight=600)
            layers.append(named.encode(x, y, colour, alt.Text("label:N")))
    layers += [] if best else texts
    return alt.layer(*layers, title=alt.TitleParams(question.title, limit=WIDTH + 60), width=WIDTH + 40, height=HEIGHT + 30)


def _trust_axis(question: Question) -> Panel:
    import altair as alt

    title = f"who is trusted, all with ε ≤ {phrase_number(question.budgets[0])} proven"
    return alt.X("x:N", title=title, sort=[trust.value for trust in question.trusts], axis=alt.Axis(labelAngle=0))


def _epsilon_axis(question: Question, values: Sequence[float]) -> Panel:
    import altair as alt

    low, high = min(values), max(values)
    decades = max(math.log10(high / low), 0.5)
    ends = [10 ** (math.log10(low) - 0.1 * decades), 10 ** (math.log10(high) + _ROOM * decades)]
    marked = [budget for budget in question.budgets if ends[0] <= budget <= ends[1]] or sorted({low, high})
    if decades > 2.2:
        marked = [10.0**k for k in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
    axis = alt.Axis(values=marked, labelExpr="format(datum.value, '~g')", labelOverlap="greedy")
    return alt.X("x:Q", title="ε, proven at most", scale=alt.Scale(type="log", domain=ends, nice=False), axis=axis)


def _rules(
    question: Question, scale: int, heights: Sequence[float]
) -> tuple[tuple[float, float], list[tuple[float, str, bool]], str]:
    """(ends of the axis, horizontals as (value, label, whether the label stands above), what is said of guessing far below)."""
    top, free, rules = question.ceiling, question.free, list[tuple[float, str, bool]]()
    if top is not None:
        rules.append((scale * top.mean, f"without privacy {answer.format_mean(top)} ({top.name})", True))
    if free is not None:
        rules.append((scale * free.mean, f"nothing private released {answer.format_mean(free)} ({free.name})", False))
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


def _told(row: Line, scale: int) -> Spec:
    """A row as a point says it."""
    low, high = row.low, row.high
    first = [words.split(";")[0].split(" (")[0] for words in row.assumptions[:3]]
    more = len(row.assumptions) - len(first)
    return {
        "y": scale * row.mean, "low": scale * low, "high": scale * high, "trust": row.trust.value, "slug": row.slug,
        "line": f"{row.name}, {row.world}, {row.calibrated_by}, {row.task}", "row": row.row,
        "method": row.title.split(". ")[0].rstrip("."),
        "interval": f"{answer.format_mean(row)} ({answer.span(row)})",
        "provable": phrase_upper_bound(row.epsilon_provable, 3), "published": phrase_number(row.epsilon_published, 3),
        "assumed": "; ".join(first) + (f"; {more} more" if more else ""), "seeds": [scale * v for v in row.scores.values()],
    }  # fmt: skip


def _tips() -> list[Panel]:
    import altair as alt

    named = {"row": "row", "method": "method", "interval": "result", "provable": "ε provable", "published": "ε published",
             "trust": "trust", "assumed": "if"}  # fmt: skip
    return [alt.Tooltip(f"{key}:N", title=title) for key, title in named.items()]


def _labels(best: Sequence[Spec], span: tuple[float, float]) -> list[Spec]:
    """A label at the last point of each line, moved apart where they would cover each other."""
    last = {point["trust"]: point for point in best}  # budgets come in order
    right = max(point["x"] for point in last.values())
    placed: list[Spec] = []
    for point in sorted(last.values(), key=lambda point: point["y"]):
        x = right if point["x"] > right / 1.3 else point["x"]
        near = [one["y"] for one in placed if abs(math.log(one["x"] / point["x"])) < 1]
        y = max([point["y"], *(y + _APART * (span[1] - span[0]) for y in near)])
        placed.append({"x": x, "y": y, "trust": point["trust"], "label": point["trust"]})
    over = max(0.0, max(one["y"] for one in placed) - span[1])
    return [one | {"y": one["y"] - over} for one in placed]
