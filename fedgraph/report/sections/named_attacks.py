"""Attacks by name: what each found on each row, one picture with the limit that ε sets, and who is at risk."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fedgraph.audit import one_run, operating_points
from fedgraph.cells import NamedAttackCellFacts, NodeRiskCellFacts
from fedgraph.report import charts, plots
from fedgraph.report.attack_bounds import ATTACK_BOUND_CONFIDENCE, locate_attack_bound
from fedgraph.report.phrases import fill_phrase, phrase_number, phrase_upper_bound
from fedgraph.report.rows import Row, bound_of_guesses, group_rows, num_attack_bounds
from fedgraph.report.sections.base import Section, SectionRecords, SectionTable, tabulate_section

_PART = "named_attacks"
KINDS = ("node_classification", "link_prediction")  # the tasks that this section speaks of


@dataclass(frozen=True)
class _AttackedRow:
    """One attack on one row. every: the verdict of each seed, as stored; at least one."""

    row: Row
    every: tuple[NamedAttackCellFacts, ...]

    @property
    def one(self) -> NamedAttackCellFacts:
        """Of the first seed: what describes the attack holds for all."""
        return self.every[0]

    @property
    def advantage(self) -> float:
        return float(np.mean([v.advantage for v in self.every]))

    @property
    def tpr(self) -> list[float]:
        return [float(x) for x in np.mean([v.tpr for v in self.every], axis=0)]

    @cached_property
    def counts(self) -> tuple[one_run.OneRunCount, ...]:
        """Guesses of all seeds together; their coins are independent."""
        found = [v.counts for v in self.every if v.counts]
        return tuple(one_run.OneRunCount(*map(sum, zip(*same, strict=True))) for same in zip(*found, strict=True))

    def epsilon(self, alpha: float = one_run.ONE_RUN_ALPHA) -> float | None:
        """The lower bound at this error probability; None where no theorem gives one."""
        return bound_of_guesses(self.counts, self.row.head.delta or 0.0, self.one.estimator, alpha) if self.counts else None


def build(records: SectionRecords, notice: str | None) -> Section:
    """Nothing where no attack was asked for by name."""
    rows = [r for r in group_rows(records.entries) if any(e.facts.named is not None for e in r.results)]
    told = [t for row in rows for t in _of(row)]
    if not told and not rows:
        return Section((), (), ())
    among = max(records.among, num_attack_bounds(rows))
    bounded = sum(bool(t.counts) for t in told)
    means = fill_phrase(_PART, "meaning", many=len(told), bounded=bounded, confidence=ATTACK_BOUND_CONFIDENCE, among=among)
    sentences = [*_refuted(told, among), means, *_refused(rows)]
    tables = [_table(told), _descriptions(told)] if told else []
    figures = [_advantage(records, told, notice)] if any(t.one.comparable for t in told) else []
    risks = [(r, r.head.facts.named.risk) for r in rows if r.head.facts.named and r.head.facts.named.risk]
    if risks:
        tables.append(_risk_table(risks))
        figures.append(_risk_figure(records, risks, notice))
        sentences.append(fill_phrase(_PART, "risk", runs=risks[0][1].runs))
    return Section(tuple(sentences), tuple(tables), tuple(figures))


def _of(row: Row) -> list[_AttackedRow]:
    found: dict[str, list[NamedAttackCellFacts]] = {}
    for entry in row.results:
        for one in entry.facts.named.found if entry.facts.named else ():
            found.setdefault(one.attack, []).append(one)
    return [_AttackedRow(row, tuple(every)) for every in found.values()]


def contradict_named_attacks(rows: Sequence[Row]) -> list[str]:
    """What ``_refuted`` says of all rows of a report."""
    return _refuted([t for row in rows for t in _of(row)], num_attack_bounds(rows))


def _refuted(told: Sequence[_AttackedRow], among: int) -> list[str]:
    found = []
    for t in (t for t in told if t.counts and t.one.comparable):
        sure = t.epsilon(one_run.ONE_RUN_ALPHA / among)
        if sure is not None and sure > t.row.provable:
            tried = "; ".join(f"{c.right} of {c.guesses} guesses about {c.coins} coins right" for c in t.counts)
            shown = {"sure": phrase_number(sure, 3), "name": _name(t.row), "tried": tried}
            shown["provable"] = phrase_upper_bound(t.row.provable, 3)
            about = {"attack": t.one.attack, "head": t.row.head, "alpha": one_run.ONE_RUN_ALPHA, "among": among}
            found.append(fill_phrase(_PART, "refuted", **shown, **about, cell=locate_attack_bound(t.row)))
    return found


def _refused(rows: Sequence[Row]) -> list[str]:
    found: dict[str, set[str]] = {}
    for row in rows:
        for name, why in (row.head.facts.named.refused if row.head.facts.named else {}).items():
            found.setdefault(why, set()).add(f"{name} on {row.head.method}")
    if not found:
        return []
    return ["Not tried: " + "; ".join(f"{', '.join(sorted(who))} ({why})" for why, who in found.items()) + "."]


def _table(told: Sequence[_AttackedRow]) -> SectionTable:
    rates = {
        f"TPR at {rate:.1%} FPR": lambda t, place=place: f"{t.tpr[place]:.1%}"
        for place, rate in enumerate(operating_points.LOW_OPERATING_RATES)
    }
    columns: dict[str, Callable[[_AttackedRow], str]] = {
        "attack": lambda t: t.one.attack,
        "row": lambda t: _name(t.row),
        "trust": lambda t: t.row.head.world.words,
        "ε published": lambda t: phrase_number(t.row.published, 2),
        "ε provable": lambda t: phrase_upper_bound(t.row.provable, 2),
        "ε at least": lambda t: (
            "—"
            if (e := t.epsilon()) is None
            else phrase_number(math.floor(100 * e) / 100, 2) + ("" if t.one.comparable else "*")
        ),
        "AUC": lambda t: f"{np.mean([v.auc for v in t.every]):.3f}",
        **rates,
        "advantage": lambda t: f"{t.advantage:.3f}",
        "limit": lambda t: _mean([v.limit for v in t.every]),
        "as published": lambda t: (
            f"cosine {_mean([v.more['cosine'] for v in t.every])}"
            if t.one.more.get("cosine") is not None
            else _mean([v.more.get("auc_published") for v in t.every])
        ),
    }
    ordered = sorted(told, key=lambda t: (t.one.attack, t.row.head.epsilon))
    return tabulate_section("Attacks by name", ordered, columns, fill_phrase(_PART, "table"))


def _mean(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{np.mean(known):.3f}" if known else "—"


def _descriptions(told: Sequence[_AttackedRow]) -> SectionTable:
    """Once for each attack: who can do it, what is told from what, what the attacker must know, who described it."""
    columns: dict[str, Callable[[NamedAttackCellFacts], str]] = {
        "attack": lambda one: one.attack,
        "viewer": lambda one: one.viewer if one.answers == "viewer" else "others, who see answers",
        "told": lambda one: one.what,
        "needs": lambda one: one.needs,
        "reference": lambda one: one.reference,
    }
    found = tabulate_section("What each attack is", [t.one for t in sorted(told, key=lambda t: t.one.attack)], columns)
    return replace(found, rows=tuple(dict.fromkeys(found.rows)))


def _advantage(records: SectionRecords, told: Sequence[_AttackedRow], notice: str | None) -> plots.PlotFigure:
    shown = [t for t in told if t.one.comparable]
    finite = [t.row.provable for t in shown if math.isfinite(t.row.provable)]
    most = 2.5 * max(finite, default=8.0)
    delta = max(t.row.head.delta or 0.0 for t in shown)

    grid = [float(e) for e in np.geomspace(min([0.05, *finite]), most, 60)]
    of_noise = [operating_points.of_gaussian(mu, delta) for mu in np.geomspace(0.05, 4.0, 60)]
    inside = [(float(e), float(gain)) for e, gain in of_noise if grid[0] <= e <= most]
    allowed = [float(operating_points.most_audited_advantage(e, delta)) for e in grid]
    gained = [gain for _, gain in inside]
    curves = (("most that ε allows", grid, allowed), ("most with Gaussian noise", [e for e, _ in inside], gained))
    points = [(t.one.attack, min(t.row.provable, most), t.advantage, _name(t.row)) for t in shown]
    panel = charts.draw_limits(
        "What an attacker gains, and the most that ε allows", curves, points, ("ε provable", "advantage, TPR − FPR")
    )
    return plots.PlotFigure(f"{records.name}-advantage", fill_phrase(_PART, "advantage"), (panel,), notice)


def _risk_table(risks: Sequence[tuple[Row, NodeRiskCellFacts]]) -> SectionTable:
    columns: dict[str, Callable[[tuple[Row, NodeRiskCellFacts]], str]] = {
        "row": lambda one: _name(one[0]),
        "trust": lambda one: one[0].head.world.words,
        "ε provable": lambda one: phrase_upper_bound(one[0].provable, 2),
        "mean": lambda one: f"{one[1].mean:.3f}",
        "always found": lambda one: f"{one[1].always_found:.2%}",
        "by luck": lambda one: f"{one[1].always_by_luck:.2%}",
        "by degree": lambda one: _groups(one[1].by_degree),
        "by rarity of the label": lambda one: _groups(one[1].by_rarity),
        "by share of unlike neighbours": lambda one: _groups(one[1].by_unlike),
        "rank: degree": lambda one: f"{one[1].rank_degree:+.2f}",
        "rank: rarity": lambda one: f"{one[1].rank_rarity:+.2f}",
        "rank: unlike": lambda one: f"{one[1].rank_unlike:+.2f}",
    }
    return tabulate_section("Who is at risk", risks, columns, fill_phrase(_PART, "risk_table"))


def _groups(groups: Sequence[Sequence[float]]) -> str:
    """Groups that print the same range are one."""
    merged: dict[str, tuple[float, float]] = {}
    for low, high, count, mean in groups:
        name = f"{low:.3g}–{high:.3g}" if f"{low:.3g}" != f"{high:.3g}" else f"{low:.3g}"
        size, total = merged.get(name, (0.0, 0.0))
        merged[name] = (size + count, total + count * mean)
    return ", ".join(f"{name} → {total / max(size, 1.0):.2f}" for name, (size, total) in merged.items())


def _risk_figure(
    records: SectionRecords, risks: Sequence[tuple[Row, NodeRiskCellFacts]], notice: str | None
) -> plots.PlotFigure:
    shown = risks[:8]

    across = "share of runs in which the attacker was right"
    panels = tuple(
        charts.draw_bars(_name(row), np.arange(risk.runs + 1) / risk.runs, risk.histogram, risk.luck, across)
        for row, risk in shown
    )
    caption = fill_phrase(_PART, "risk_figure")
    if len(risks) > len(shown):
        caption += f" The first {len(shown)} of {len(risks)} rows; the table has all."
    return plots.PlotFigure(f"{records.name}-risk", caption, panels, notice)


def _name(row: Row) -> str:
    return f"{row.who} · ε = {phrase_number(row.head.epsilon)}"
