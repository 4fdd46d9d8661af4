"""The first screen: accuracy against provable ε, one panel per unit, and what each level of trust costs."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from fedgraph.privacy.trust import Trust
from fedgraph.report import answer, charts, plots, questions
from fedgraph.report.answer import Answer, Best
from fedgraph.report.report_rows import rounded, rounded_up
from fedgraph.report.scores import METRICS, Score, begin


@dataclass(frozen=True)
class TrustTable:
    """The best row at each ε and level of trust, as a table. rows: ε, then one cell per level of trust."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...]  # ε, then (value, row's name and loss, anchor)


def figures(answered: Answer, notice: str | None) -> tuple[plots.Figure, ...]:
    """One figure per question, one panel per unit and for what is public: units are never mixed in a panel."""
    found = []
    answerable = [b for b in answered.best if b.score is not None and b.score.private]
    every = (*answered.scores, *answered.also)
    for question in dict.fromkeys(b.asked[:4] for b in answerable):
        panels = [
            _panel([s for s in every if s.asked == asked], unit, questions.describe_public(asked[4]) if asked[4] else "")
            for asked, unit in dict.fromkeys((b.asked, b.unit) for b in answerable if b.asked[:4] == question)
        ]
        panels = [p for p in panels if p.lines]
        if panels:
            tag = "-".join(re.sub(r"[^a-z0-9]+", "-", part.lower()) for part in question if part)
            caption = (
                f"{begin(METRICS[question[1]])} on {question[0]} against provable ε, every method; one panel per unit, "
                "colour: method, symbol: whom it trusts. ∞: nothing is guaranteed. Bars: standard deviation over seeds."
            )
            found.append(charts.draw(f"answer-{tag}", caption, panels, notice, height=5.0, shared=True))
    return tuple(found)


def _panel(here: Sequence[Score], unit: str, public: str) -> charts.Panel:
    private = {s.name for s in here if s.private and not s.raw}
    shown = [s for s in here if s.private and math.isfinite(s.mean) and (s.unit == unit if s.name in private else s.raw)]
    groups: dict[tuple[str, str, str, str], list[Score]] = {}
    for s in sorted(shown, key=lambda s: s.provable):
        readings = {o.calibrated_by for o in shown if (o.name, o.trust) == (s.name, s.trust) and math.isfinite(o.target)}
        reading = s.calibrated_by if len(readings) > 1 and math.isfinite(s.target) else ""
        groups.setdefault((s.name, s.trust.value, reading, s.task), []).append(s)
    lines = tuple(
        charts.Series(
            label=" — ".join(filter(None, key[:3])),
            x=[s.provable for s in own],
            y=[s.mean for s in own],
            error=[s.deviation or 0.0 for s in own],
            keys=key[:2],
            tips=tuple(map(describe_point, own)),
        )
        for key, own in sorted(groups.items(), key=lambda item: list(groups).index(item[0]))
    )
    levels = []
    top, free = answer.ceiling(here), [s for s in here if questions.reads_nothing(s, unit) and s.usable]
    if top is not None:
        levels.append((f"without privacy: {questions.short_name(top, here)}", top.mean))
    if free:
        most = max(free, key=lambda s: s.mean)
        levels.append((f"releases nothing: {questions.short_name(most, here)}", most.mean))
    ylabel = METRICS[here[0].metric]
    heads, symbols = ("Method", "Whom it trusts"), tuple(t.value for t in Trust)
    return charts.Panel(f"{unit} level{public}", ylabel, lines, tuple(levels), "provable ε", "log", heads, symbols)


def describe_point(score: Score) -> str:
    """What a chart says of one row, line by line."""
    measured = "" if score.measured is None else f"\nmeasured by an attack: ε ≥ {math.floor(100 * score.measured) / 100:g}"
    target = (
        "no noise asked for" if math.isinf(score.target) else f"asked for ε = {rounded(score.target)} ({score.calibrated_by})"
    )
    return (
        f"{score.name}\n{METRICS[score.metric]}: {answer.format_mean(score, 3)}\n"
        f"provable ε: {rounded_up(score.provable, 4)} ({score.unit})\n{target}\n"
        f"trusts: {score.trust.value}\ntask: {score.task}{measured}"
    )


def tabulate_trust(answered: Answer) -> list[TrustTable]:
    """One table per question and unit in which some row keeps its ε."""
    found = []
    for asked, unit in dict.fromkeys((b.asked, b.unit) for b in answered.best):
        own = [b for b in answered.best if (b.asked, b.unit) == (asked, unit)]
        if not any(b.score is not None and b.score.private for b in own):
            continue
        trusts = list(dict.fromkeys(b.trust for b in own))
        every = (*answered.scores, *answered.also)
        lead = questions.open_sentence(every, [s for s in every if s.asked == asked])
        title = f"{lead} at {unit} level" if lead else f"Best {METRICS[asked[1]]} at {unit} level"
        header = ("provable ε at most", *(t.clause for t in trusts))
        rows = []
        for budget in dict.fromkeys(b.budget for b in own):
            line = [b for b in own if b.budget == budget]
            rows.append((rounded(budget), tuple(_cell(b, line) for b in line)))
        found.append(TrustTable(title, header, tuple(rows)))
    return found


def _cell(this: Best, line: Sequence[Best]) -> tuple[str, str, str]:
    """(value, what it is and what it costs beside the most trusting level, anchor of its row)."""
    if this.score is None:
        return ("—", "no row keeps it", "")
    first = next(b.score for b in line if b.score is not None)
    lost = first.mean - this.score.mean
    cost = f" ({-lost:+.3f})".replace("-", "−") if this.score is not first else ""
    return (answer.format_mean(this.score, 3), f"{this.score.name}{cost}", this.score.anchor)
