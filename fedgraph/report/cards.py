"""The first screen: a card for each question, what each level of trust costs, and accuracy against provable ε."""

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from fedgraph.cells import GraphClassificationCellFacts, GraphClusteringCellFacts
from fedgraph.errors import ScenarioError
from fedgraph.privacy import Assumption, Trust
from fedgraph.report import answer, attack_bounds, chance, charts, plots, question_words
from fedgraph.report.answer import Answer
from fedgraph.report.phrases import begin_phrase, fill_phrase, phrase_number, phrase_upper_bound
from fedgraph.report.question_words import QUESTION_LEAST_INDEX, BestScore
from fedgraph.report.rows import METRICS, Row, best_without_privacy, format_row

_MOST_CARDS, _MOST_CONDITIONS = 6, 2
_LARGEST_SHARE = 0.1  # of one person that δ may be without a word: with δ = 1/people, publishing one of them is allowed
_USUAL = {
    Assumption.COUNTS_PUBLIC, Assumption.HYPERPARAMETERS_PUBLIC, Assumption.SPLIT_PUBLIC, Assumption.SIZES_PUBLIC,
    Assumption.UNTUNED, Assumption.COLUMNS_PUBLIC,
}  # fmt: skip
_PriceCell = tuple[str, str, str]  # value, the row's name with what it loses, the row's anchor


@dataclass(frozen=True)
class Card:
    """One question, and what to do.

    Attributes:
        unit: What is private, in words.
        right: How good the row is, or why there is none.
        without: The same without privacy.
        trusts: The levels of trust, from the most.
        aside: Whether it stands below the first ones, folded.
        use: Row, trust and ε; empty where nothing can be recommended.
        costs: Half sentences: what privacy takes away.
        rests: Half sentences: what the guarantee rests on.
        prices: ε, then a cell for each of ``trusts``.
    """

    title: str
    unit: str
    right: str
    without: str
    trusts: tuple[Trust, ...]
    aside: bool
    use: tuple[str, ...] = ()
    costs: str = ""
    rests: str = ""
    anchor: str = ""
    prices: tuple[tuple[str, tuple[_PriceCell, ...]], ...] = ()


def make_cards(answered: Answer) -> tuple[Card, ...]:
    """One card for each question and unit. Questions about whole graphs stand aside where others are about nodes."""
    every = (*answered.scores, *answered.also)
    asked_for: dict[tuple[tuple[str, ...], str], list[BestScore]] = {}
    for b in answered.best:
        asked_for.setdefault((b.asked, b.unit), []).append(b)
    clear = {s.asked for s in every} - {asked for asked, _ in asked_for}
    asked_for |= {(asked, ""): [] for asked in dict.fromkeys(s.asked for s in every) if asked in clear}
    cards, nodes = [], any(not _of_graphs(s) for s in every)
    for (asked, unit), own in asked_for.items():
        here = [s for s in every if s.asked == asked]
        cards.append(_card(every, here, unit, own, nodes and _of_graphs(here[0])))
    cards.sort(key=lambda card: (card.aside, not card.use))
    return tuple(replace(card, aside=card.aside or place >= _MOST_CARDS) for place, card in enumerate(cards))


def _recommend(own: Sequence[BestScore]) -> BestScore | None:
    """Of one question and unit: the smallest ε, then the least trust, whose best row is not worse than the best of all by two
    standard errors; None where no row keeps its ε, or none is better than somebody who learnt nothing.
    """
    able = [(b, b.score) for b in own if b.score is not None]
    if not any(score.private for _, score in able):
        return None
    top = max((score for _, score in able), key=lambda s: s.mean)
    learnt = [b for b, s in able if chance.beats_chance(s) and not chance.is_worse_beyond_chance(s, top)]
    return min(learnt, key=lambda b: (b.budget, b.trust.rank), default=None)


def _of_graphs(score: Row) -> bool:
    return isinstance(score.head.facts, GraphClassificationCellFacts | GraphClusteringCellFacts)


def _card(every: Sequence[Row], here: Sequence[Row], unit: str, own: Sequence[BestScore], aside: bool) -> Card:
    picked = _recommend(own)
    top = best_without_privacy(here)
    title = question_words.word_question_title(every, here)
    what = question_words.word_question_level(unit, here)
    trusts = tuple(dict.fromkeys(b.trust for b in own))
    without = f"Without privacy: {_good(top)}{answer.name_answer_ceiling(top, own, here)}." if top is not None else ""
    if picked is None or picked.score is None or (picked.score.metric == "ari" and picked.score.mean < QUESTION_LEAST_INDEX):
        why = "No row keeps a provable ε within what was asked: nothing here can be called private." if unit else ""
        if picked is not None and picked.score is not None:
            why = f"Nothing finds the classes: adjusted Rand index {picked.score.mean:.2f} at most, where 0 is chance."
        elif nothing := _nothing_learnt(own) or _nothing_gained(own, here):
            why = nothing
        return Card(title, what, why or "No private row was asked for.", without, trusts, aside)
    what = question_words.QUESTION_OPEN_EDGES if question_words.has_question_public_edges(picked.score) else what
    if chance.warn_of_chance([s for s in every if s.dataset == picked.score.dataset]):
        said = answer.describe_undecided_answer([b for b in own if b.budget == max(b.budget for b in own)], here)
        why = f"Nothing can be concluded. At ε ≤ {phrase_number(max(b.budget for b in own))}, {said}."
        beside = f"Without privacy: {_good(top)}." if top is not None else ""
        return Card(title, what, why, beside, trusts, aside)
    best = picked.score
    at = f"ε ≤ {phrase_number(picked.budget)}" if best.private else "ε = 0, since it releases nothing private"
    budgets = dict.fromkeys(b.budget for b in own if len(own) > 1)
    tested, low = chance.num_chance_samples(best), ""
    if tested is not None and best.metric == "accuracy":
        least, most = chance.wilson_chance_interval(best.mean, tested)
        low = f" ({100 * least:.0f} to {100 * most:.0f}, tested on {chance.describe_chance_samples(best)})"
    return Card(
        title, what, f"{begin_phrase(_good(best))}{low}.", without or "No row without privacy was run.", trusts, aside,
        use=(question_words.word_question_row(best, here), picked.trust.title, at),
        costs=_costs(picked, best, top, own), rests=_rests(best), anchor=best.anchor,
        prices=tuple((phrase_number(e), tuple(_cell(b, own, here) for b in own if b.budget == e)) for e in budgets),
    )  # fmt: skip


def _good(score: Row) -> str:
    if chance.looks_for_rare_class(score):
        row = score
        first = f"of as many as are of the rare class, finds {100 * row.mean_of('recall_at_alerts'):.0f} of 100 of it"
        found = f"{first}, and {100 * row.mean_of('precision_at_alerts'):.0f} of 100 that it names are of it"
        return f"{found}; AUROC {row.mean_of('auroc'):.2f}, where 0.5 is chance; right for {100 * score.mean:.0f} of 100"
    if score.metric == "accuracy":
        return f"right for {100 * score.mean:.0f} of 100"
    scale = {"ari": ", where 0 is chance and 1 the classes", "auc": ", where 0.5 is chance"}.get(score.metric, "")
    return f"{METRICS[score.metric]} {format_row(score)}{scale}"


def _nothing_gained(own: Sequence[BestScore], here: Sequence[Row]) -> str:
    """Said where private rows keep their ε, and none is better than a row that releases nothing private; else nothing."""
    free = max((b.score for b in own if b.score is not None), key=lambda score: score.mean, default=None)
    most = max((b.budget for b in own), default=0.0)
    if free is None or not any(s.usable and s.private and s.unit == own[0].unit and s.keeps(most) for s in here):
        return ""
    name = question_words.word_question_row(free, here)
    return f"No private row does better than {name}, which releases nothing private (ε = 0): {_good(free)}."


def _nothing_learnt(own: Sequence[BestScore]) -> str:
    """Said where private rows keep their ε, and none is better than somebody who learnt nothing; else nothing."""
    kept = [b.score for b in own if b.score is not None and b.score.private]
    if not kept:
        return ""
    top = max(kept, key=lambda score: score.mean)
    if top.metric == "auc":
        return f"Nothing to use: {METRICS['auc']} {format_row(top)} at most, and 0.5 is chance."
    always = f"naming the largest class always would be for {100 * chance.find_chance_floor(top):.0f}"
    return f"Nothing to use: {_good(top)} at most, and {always}; more than that may be chance."


def _costs(picked: BestScore, best: Row, top: Row | None, own: Sequence[BestScore]) -> str:
    """What privacy takes away, what less trust and a smaller ε would take away besides, and what more of them would give."""

    def lost(than: Row, score: Row, more: str) -> str:
        if not chance.is_worse_beyond_chance(score, than):
            return "nothing beyond chance"
        loss = than.mean - score.mean
        if best.metric != "accuracy":
            return f"{loss:.2f}{more}"
        return f"{100 * loss:.0f}{more}" if more else f"{100 * loss:.0f} of 100 right answers"

    said = [f"privacy: {lost(top, best, '')}"] if top is not None else []
    less_trust = [b for b in own if b.budget == picked.budget and b.trust.rank < picked.trust.rank]
    for b in [*less_trust, *(b for b in own if b.trust is picked.trust and b.budget < picked.budget)]:
        name = f"trusting only {b.trust.value}" if b in less_trust else f"ε ≤ {phrase_number(b.budget)}"
        useless = "no row keeps it" if b.score is None else "learns nothing" if not chance.beats_chance(b.score) else ""
        said.append(f"{name}: {useless or lost(best, b.score or best, ' more')}")
    if any(b.budget > picked.budget or b.trust.rank > picked.trust.rank for b in own):
        said.append("a larger ε or more trust gains nothing beyond chance")
    return "; ".join(said)


def _rests(best: Row) -> str:
    """The proof, the first conditions that not every row has, and what an attack showed."""
    protection = best.head.protection
    if not best.private or protection is None:
        return "nothing computed from private data is released"
    named = [a.words.split(";")[0].split(", though")[0].split(" (")[0] for a in protection.assumptions if a not in _USUAL]
    proof = f"a proof of ε ≤ {phrase_upper_bound(best.provable)}" + (f" at δ = {_plain(best.delta)}" if best.delta else "")
    people = best.head.facts.train_nodes
    if (best.delta or 0.0) * people > _LARGEST_SHARE:
        proof += f", which is large: one in {1 / (best.delta or 1.0):,.0f}, and {people:,} {best.head.facts.one}s trained"
    conditions = named[:_MOST_CONDITIONS]
    if more := len(protection.assumptions) - len(conditions):
        conditions.append(f"{more} {'more ' if named else ''}condition{'' if more == 1 else 's'}")
    attack = "" if best.measured is None else f". An attack showed ε ≥ {attack_bounds.format_attack_bound(best)}"
    return f"{proof}, if: {'; '.join(conditions)}{attack}" if conditions else f"{proof}{attack}"


def _plain(delta: float) -> str:
    return np.format_float_positional(float(f"{delta:.2g}"), trim="-")


def explain_card_prices(cards: Sequence[Card]) -> str:
    """What stands above the tables of prices: what their numbers are, and what an ε lets others conclude."""
    budgets = dict.fromkeys(e for card in cards for e, _ in card.prices if e != "∞" and float(e) < 12)
    odds = [math.exp(float(e)) for e in budgets]
    grown = ", ".join(
        f"{math.ceil(10 * o) / 10:.1f} times at ε = {e}" if o < 10 else f"{math.ceil(o):,} at {e}"
        for o, e in zip(odds, budgets, strict=True)
    )
    bound = f" What is published makes a guess about one of them more likely by at most (but for δ): {grown}." if grown else ""
    return fill_phrase("page", "prices") + bound


def _cell(this: BestScore, own: Sequence[BestScore], here: Sequence[Row]) -> _PriceCell:
    """A cell of the price of trust: loss is counted from the level that trusts most at the same ε."""
    if this.score is None:
        return ("—", "no row keeps it", "")
    first = next(b.score for b in own if b.score is not None and b.budget == this.budget)
    cost = f" ({this.score.mean - first.mean:+.3f})".replace("-", "−") if this.score is not first else ""
    return (format_row(this.score, 3), f"{question_words.word_question_row(this.score, here)}{cost}", this.score.anchor)


def draw_card_figures(
    answered: Answer, notice: str | None
) -> tuple[tuple[plots.PlotFigure, ...], tuple[plots.PlotFigure, ...]]:
    """One figure per question, one panel per unit and for what is public: units are never mixed in a panel.

    A panel needs two different ε. Returns: the figures of the first screen, and those of questions about whole graphs beside.
    """
    found: tuple[list[plots.PlotFigure], list[plots.PlotFigure]] = ([], [])
    answerable = [b for b in answered.best if b.score is not None and b.score.private]
    every = (*answered.scores, *answered.also)
    nodes = any(not _of_graphs(s) for s in every)
    for question in dict.fromkeys(b.asked[:4] for b in answerable):
        aside = nodes and any(_of_graphs(s) for s in every if s.asked[:4] == question)
        panels = []
        for asked, unit in dict.fromkeys((b.asked, b.unit) for b in answerable if b.asked[:4] == question):
            best = [b.score.name for b in answerable if (b.asked, b.unit) == (asked, unit) and b.score is not None]
            public = question_words.word_question_public(asked[4]) if asked[4] else ""
            panels.append(_panel([s for s in every if s.asked == asked], unit, public, best))
        panels = [p for p in panels if len({x for line in p.lines for x in line.x if math.isfinite(float(x))}) > 1]
        tag = "-".join(re.sub(r"[^a-z0-9]+", "-", part.lower()) for part in question if part)
        caption = fill_phrase("page", "answer", what=begin_phrase(METRICS[question[1]]), data=question[0])
        found[aside].extend(charts.draw_chart(f"answer-{tag}", caption, panels, notice, height=5.0, shared=True))
    return tuple(found[0]), tuple(found[1])


def draw_cards_for_notebook(answered: Answer, unit: str | None = None) -> Figure:
    """A figure of matplotlib with means against provable ε, one panel for each question and unit.

    Args:
        unit: Only rows that protect this unit; None: all.

    Raises:
        ScenarioError: No row has a finite provable ε at that unit.
    """
    private = [s for s in answered.scores if s.private and math.isfinite(s.provable) and unit in (None, s.unit)]
    if not private:
        raise ScenarioError("no row with a finite provable ε" + (f" at unit {unit!r}" if unit else "") + ": nothing to draw")
    asked = dict.fromkeys((s.asked, s.unit) for s in private)
    panels = [_panel([s for s in answered.scores if s.asked == a], own, f", {a[0]}", ()) for a, own in asked]
    return charts.draw_chart_for_notebook(panels)


def _panel(here: Sequence[Row], unit: str, public: str, best: Collection[str]) -> charts.ChartPanel:
    private = {s.name for s in here if s.private and not s.raw}
    shown = [s for s in here if s.private and math.isfinite(s.mean) and (s.unit == unit if s.name in private else s.raw)]
    groups: dict[tuple[str, str, str, str], list[Row]] = {}
    for s in sorted(shown, key=lambda s: s.provable):
        readings = {o.calibrated_by for o in shown if (o.name, o.trust) == (s.name, s.trust) and math.isfinite(o.target)}
        reading = s.calibrated_by if len(readings) > 1 and math.isfinite(s.target) else ""
        groups.setdefault((s.name, s.trust.value, reading, s.task), []).append(s)
    lines = []
    for key, own in groups.items():
        means = [s.mean for s in own]
        spread = [s.deviation or 0.0 for s in own]
        tips = tuple(map(charts.describe_score, own))
        label, at = " — ".join(filter(None, key[:3])), [s.provable for s in own]
        lines.append(charts.ChartSeries(label, at, means, spread, key[:2], tips))
    levels = []
    top = best_without_privacy(here)
    free = [s for s in here if question_words.question_reads_nothing(s, unit) and s.usable]
    if top is not None:
        levels.append((f"without privacy: {question_words.word_question_row(top, here)}", top.mean))
    if free:
        most = max(free, key=lambda s: s.mean)
        levels.append((f"releases nothing: {question_words.word_question_row(most, here)}", most.mean))
    title, ylabel = f"{question_words.word_question_unit(unit, here)} level{public}", METRICS[here[0].metric]
    heads, symbols = ("Method", "Whom it trusts"), tuple(t.value for t in Trust)
    best = tuple(dict.fromkeys(best))
    return charts.ChartPanel(title, ylabel, tuple(lines), tuple(levels), "provable ε", "log", heads, symbols, best)
