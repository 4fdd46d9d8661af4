"""Attacks by name: what each found on each row, one picture with the limit that ε sets, and who is at risk."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from matplotlib.axes import Axes

from fedgraph.audit import one_run, operating_points
from fedgraph.cells import NamedAttackCellFacts, NodeRiskCellFacts
from fedgraph.report import plots
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
    names = list(dict.fromkeys(t.one.attack for t in shown))
    delta = max(t.row.head.delta or 0.0 for t in shown)

    def paint(axes: list[Axes]) -> None:
        grid = np.geomspace(min([0.05, *finite]), most, 200)
        limits = [operating_points.most_audited_advantage(e, delta) for e in grid]
        axes[0].plot(grid, limits, color="#4c566a", lw=1.4, label="most that ε allows")
        for place, name in enumerate(names):
            own = [t for t in shown if t.one.attack == name]
            x = [min(t.row.provable, most) * 1.03 ** (place - len(names) / 2) for t in own]
            colour = plots.PLOT_COLOURS[place % len(plots.PLOT_COLOURS)]
            marker = plots.PLOT_MARKERS[place % len(plots.PLOT_MARKERS)]
            axes[0].scatter(x, [t.advantage for t in own], s=26, label=name, color=colour, marker=marker)
        of_noise = [operating_points.of_gaussian(mu, delta) for mu in np.geomspace(0.05, 4.0, 60)]
        inside = [(e, gain) for e, gain in of_noise if grid[0] <= e <= most * 0.8]
        axes[0].plot(*zip(*inside, strict=True), color="#4c566a", lw=1.2, ls="--", label="most with Gaussian noise")
        axes[0].axvline(most * 0.8, ls=":", lw=1, color="#9aa0a6")
        axes[0].set(xscale="log", ylim=(-0.03, 1.05), xlabel="ε provable", ylabel="advantage, TPR − FPR")
        ticks = sorted({0.1, 1.0, *(float(f"{e:.3g}") for e in finite)})
        axes[0].set_xticks([*ticks, most], [*(f"{e:g}" for e in ticks), "∞"])
        axes[0].minorticks_off()
        axes[0].set_title("What an attacker gains, and the most that ε allows")
        axes[0].legend(frameon=False, fontsize=7, loc="upper left")
        axes[0].grid(alpha=0.25)

    return plots.draw_plot(f"{records.name}-advantage", fill_phrase(_PART, "advantage"), 1, paint, notice, 4.6)


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

    def paint(axes: list[Axes]) -> None:
        for ax, (row, risk) in zip(axes, shown, strict=True):
            x = np.arange(risk.runs + 1) / risk.runs
            ax.bar(x, risk.histogram, width=0.8 / risk.runs, color=plots.PLOT_COLOURS[0], label="nodes")
            ax.plot(x, risk.luck, color="#4c566a", marker="o", ms=3, lw=1, label="by luck alone")
            ax.set(title=f"{_name(row)}", xlabel="share of runs in which the attacker was right", ylabel="nodes")
            ax.title.set_fontsize(8)
            ax.legend(frameon=False, fontsize=7)

    caption = fill_phrase(_PART, "risk_figure")
    if len(risks) > len(shown):
        caption += f" The first {len(shown)} of {len(risks)} rows; the table has all."
    return plots.draw_plot(f"{records.name}-risk", caption, len(shown), paint, notice, 3.2)


def _name(row: Row) -> str:
    return f"{row.who} · ε = {phrase_number(row.head.epsilon)}"
