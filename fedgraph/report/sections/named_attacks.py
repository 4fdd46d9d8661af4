"""Attacks by name: what each found on each row, one picture with the limit that ε sets, and who is at risk."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from matplotlib.axes import Axes

from fedgraph.audit import one_run, operating_points
from fedgraph.cells.facts import NamedAttack, NodesAtRisk
from fedgraph.report import plots
from fedgraph.report.attacks import CONFIDENCE, num_bounds
from fedgraph.report.report_rows import Row, group_rows, lower_bound, rounded, rounded_up
from fedgraph.report.sections.base import Records, Section, Table

KINDS = ("node_classification",)  # the tasks that this section speaks of


@dataclass(frozen=True)
class AttackedRow:
    """One attack on one row, over its seeds. every: the verdict of each seed, as stored."""

    row: Row
    every: tuple[NamedAttack, ...]

    @property
    def one(self) -> NamedAttack:
        """Of the first seed: what describes the attack holds for all."""
        return self.every[0]

    @property
    def advantage(self) -> float:
        return float(np.mean([v.advantage for v in self.every]))

    @property
    def tpr(self) -> list[float]:
        return [float(x) for x in np.mean([v.tpr for v in self.every], axis=0)]

    @cached_property
    def counts(self) -> tuple[one_run.Count, ...]:
        """Guesses of all seeds together; their coins are independent."""
        found = [v.counts for v in self.every if v.counts]
        return tuple(one_run.Count(*map(sum, zip(*same, strict=True))) for same in zip(*found, strict=True))

    def epsilon(self, alpha: float = one_run.ALPHA) -> float | None:
        """The lower bound at this error probability; None where no theorem gives one."""
        return lower_bound(self.counts, self.row.head.delta or 0.0, self.one.estimator, alpha) if self.counts else None


def build(records: Records, notice: str | None) -> Section:
    """Nothing where no attack was asked for by name."""
    rows = [r for r in group_rows(records.entries) if any(e.facts.named is not None for e in r.entries)]
    told = [t for row in rows for t in _of(row)]
    if not told and not rows:
        return Section((), (), ())
    among = max(records.among, num_bounds(rows))
    sentences = [*refuted(told, among), *_what_they_mean(told, among), *_refused(rows)]
    tables = [_table(told), _descriptions(told)] if told else []
    figures = [_advantage(records, told, notice)] if any(t.one.comparable for t in told) else []
    risks = [(r, r.head.facts.named.risk) for r in rows if r.head.facts.named and r.head.facts.named.risk]
    if risks:
        tables.append(_risk_table(risks))
        figures.append(_risk_figure(records, risks, notice))
        sentences.append(_risk_words(risks))
    return Section(tuple(sentences), tuple(tables), tuple(figures))


def _of(row: Row) -> list[AttackedRow]:
    found: dict[str, list[NamedAttack]] = {}
    for entry in row.entries:
        for one in entry.facts.named.found if entry.facts.named else ():
            found.setdefault(one.attack, []).append(one)
    return [AttackedRow(row, tuple(every)) for every in found.values()]


def contradictions(rows: Sequence[Row]) -> list[str]:
    """What ``refuted`` says of all rows of a report."""
    return refuted([t for row in rows for t in _of(row)], num_bounds(rows))


def refuted(told: Sequence[AttackedRow], among: int) -> list[str]:
    """Provable ε that an attack contradicts, the error divided among all ``among`` bounds of the report."""
    found = []
    for t in (t for t in told if t.counts and t.one.comparable):
        sure = t.epsilon(one_run.ALPHA / among)
        if sure is not None and sure > t.row.provable:
            seeds = ", ".join(str(e.seed) for e in t.row.entries)
            tried = "; ".join(f"{c.right} of {c.guesses} guesses about {c.coins} coins right" for c in t.counts)
            where = f"task {t.row.head.task}, data set {t.row.head.dataset}, trust {t.row.head.world.words}"
            found.append(
                f"CONTRADICTION: {t.one.attack} shows ε ≥ {rounded(sure, 3)} for {_name(t.row)}, whose provable ε is "
                f"{rounded_up(t.row.provable, 3)} ({tried}; δ = {t.row.head.delta:.3g}; the error of {one_run.ALPHA:g} is "
                f"divided among {among} bounds). A proof or its code is wrong. To repeat it, run the scenario that stands "
                f"beside this report again: {where}, noise chosen for the {t.row.head.calibrated_by} ε, seed {seeds}; versions "
                "and machine are in environment.json."
            )
    return found


def _what_they_mean(told: Sequence[AttackedRow], among: int) -> list[str]:
    bounded = sum(bool(t.counts) for t in told)
    return [
        f"{len(told)} attacks by name were run. Each was run on a model that was trained for it: half of the units in "
        "question, by fair coins, took part. The attacker's shadow models are the same plan with other coins. "
        f"{bounded} of them give a lower bound on ε at {CONFIDENCE} confidence, each for itself; a contradiction is claimed "
        f"only where it holds with the error divided among all {among} bounds of this report that are held against a price. "
        "AUC and TPR bound nothing. A low value proves nothing: another attack may do better."
    ]


def _refused(rows: Sequence[Row]) -> list[str]:
    """Attacks that say nothing about a row, and why, each reason once."""
    found: dict[str, set[str]] = {}
    for row in rows:
        for name, why in (row.head.facts.named.refused if row.head.facts.named else {}).items():
            found.setdefault(why, set()).add(f"{name} on {row.head.method}")
    if not found:
        return []
    return ["Not tried: " + "; ".join(f"{', '.join(sorted(who))} ({why})" for why, who in found.items()) + "."]


def _table(told: Sequence[AttackedRow]) -> Table:
    body = []
    for t in sorted(told, key=lambda t: (t.one.attack, t.row.head.epsilon)):
        lower, published = t.epsilon(), [v.more.get("auc_published") for v in t.every]
        rates = tuple(f"{rate:.1%}" for rate in t.tpr)
        theirs = "—" if published[0] is None else f"{np.mean([p for p in published if p is not None]):.3f}"
        cosine = t.one.more.get("cosine")
        shown = theirs if cosine is None else f"cosine {np.mean([v.more['cosine'] for v in t.every]):.3f}"
        values = (f"{np.mean([v.auc for v in t.every]):.3f}", *rates, f"{t.advantage:.3f}", _limit(t), shown)
        told_of = "—" if lower is None else rounded(math.floor(100 * lower) / 100, 2)
        told_of += "" if t.one.comparable or lower is None else "*"
        prices = (rounded(t.row.published, 2), rounded_up(t.row.provable, 2), told_of)
        body.append((t.one.attack, _name(t.row), t.row.head.world.words, *prices, *values))
    low = [f"TPR at {rate:.1%} FPR" for rate in operating_points.LOW_RATES]
    header = (
        "attack", "row", "trust", "ε published", "ε provable", "ε at least", "AUC", *low, "advantage", "limit",
        "as published",
    )  # fmt: skip
    note = (
        "limit: the largest expected advantage (TPR − FPR) at the provable ε and δ. as published: AUC of the paper's own "
        "game, edges against pairs that never had one, where no coin decides; or the cosine of told and true shares. "
        "*: the bound is under another relation, or of answers that the guarantee does not cover, and is not held against "
        "the provable ε. —: no theorem turns it into an ε."
    )
    return Table("Attacks by name", header, tuple(body), note)


def _descriptions(told: Sequence[AttackedRow]) -> Table:
    """Once for each attack: who can do it, what is told from what, what the attacker must know, who described it."""
    body: dict[tuple[str, ...], None] = {}
    for t in sorted(told, key=lambda t: str(t.one.attack)):
        sees = t.one.viewer if t.one.answers == "viewer" else "others, who see answers"
        body[str(t.one.attack), str(sees), str(t.one.what), str(t.one.needs), str(t.one.reference)] = None
    return Table("What each attack is", ("attack", "viewer", "told", "needs", "reference"), tuple(body))


def _limit(told: AttackedRow) -> str:
    found = [v.limit for v in told.every if v.limit is not None]
    return f"{np.mean(found):.3f}" if found else "—"


def _advantage(records: Records, told: Sequence[AttackedRow], notice: str | None) -> plots.Figure:
    """Advantage against provable ε; the line that no attack passes on average."""
    shown = [t for t in told if t.one.comparable]
    finite = [t.row.provable for t in shown if math.isfinite(t.row.provable)]
    most = 2.5 * max(finite, default=8.0)
    names = list(dict.fromkeys(t.one.attack for t in shown))
    delta = max(t.row.head.delta or 0.0 for t in shown)

    def paint(axes: list[Axes]) -> None:
        grid = np.geomspace(min([0.05, *finite]), most, 200)
        axes[0].plot(
            grid, [operating_points.most_advantage(e, delta) for e in grid], color="#4c566a", lw=1.4, label="most that ε allows"
        )
        for place, name in enumerate(names):
            own = [t for t in shown if t.one.attack == name]
            x = [min(t.row.provable, most) * 1.03 ** (place - len(names) / 2) for t in own]
            colour, marker = plots.COLOURS[place % len(plots.COLOURS)], plots.MARKERS[place % len(plots.MARKERS)]
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

    caption = (
        "Each point is one attack on one row; the line is the largest expected advantage at that ε and the largest δ here, for "
        "any mechanism, and dashed where all that is released carries Gaussian noise. "
        "The advantage is the best over all thresholds, so chance puts it a little above zero, and now and then above the line."
    )
    return plots.draw(f"{records.name}-advantage", caption, 1, paint, notice, 4.6)


def _risk_words(risks: Sequence[tuple[Row, NodesAtRisk]]) -> str:
    return (
        "Who is at risk: for each real node, in how many runs LiRA named its coin right, when each run is attacked with all "
        f"the others as shadows ({risks[0][1].runs} runs). Nodes that are always named right are at risk, whatever the "
        "average is; the column “by luck” is what the same attack finds with coins drawn anew. It describes people, and "
        "bounds no ε."
    )


def _risk_table(risks: Sequence[tuple[Row, NodesAtRisk]]) -> Table:
    body = []
    for row, risk in risks:
        shares = (f"{risk.mean:.3f}", f"{risk.always_found:.2%}", f"{risk.always_by_luck:.2%}")
        groups = (_groups(risk.by_degree), _groups(risk.by_rarity), _groups(risk.by_unlike))
        ranks = tuple(f"{rank:+.2f}" for rank in (risk.rank_degree, risk.rank_rarity, risk.rank_unlike))
        body.append((_name(row), row.head.world.words, rounded_up(row.provable, 2), *shares, *groups, *ranks))
    header = (
        "row", "trust", "ε provable", "mean", "always found", "by luck", "by degree", "by rarity of the label",
        "by share of unlike neighbours", "rank: degree", "rank: rarity", "rank: unlike",
    )  # fmt: skip
    note = (
        "mean: share of runs in which the attacker said rightly whether a node took part; ½ is guessing. Groups "
        "of about equal size: range → that share. Rarity: − log of the label's share. rank: Spearman's correlation."
    )
    return Table("Who is at risk", header, tuple(body), note)


def _groups(groups: Sequence[Sequence[float]]) -> str:
    """Groups that print the same range are one."""
    merged: dict[str, tuple[float, float]] = {}
    for low, high, count, mean in groups:
        name = f"{low:.3g}–{high:.3g}" if f"{low:.3g}" != f"{high:.3g}" else f"{low:.3g}"
        size, total = merged.get(name, (0.0, 0.0))
        merged[name] = (size + count, total + count * mean)
    return ", ".join(f"{name} → {total / max(size, 1.0):.2f}" for name, (size, total) in merged.items())


def _risk_figure(records: Records, risks: Sequence[tuple[Row, NodesAtRisk]], notice: str | None) -> plots.Figure:
    shown = risks[:8]

    def paint(axes: list[Axes]) -> None:
        for ax, (row, risk) in zip(axes, shown, strict=True):
            x = np.arange(risk.runs + 1) / risk.runs
            ax.bar(x, risk.histogram, width=0.8 / risk.runs, color=plots.COLOURS[0], label="nodes")
            ax.plot(x, risk.luck, color="#4c566a", marker="o", ms=3, lw=1, label="by luck alone")
            ax.set(title=f"{_name(row)}", xlabel="share of runs in which the attacker was right", ylabel="nodes")
            ax.title.set_fontsize(8)
            ax.legend(frameon=False, fontsize=7)

    caption = (
        "Who is at risk: how many real nodes there are for each share of runs in which the attacker said rightly whether the "
        "node took part; the line is what the same attack gets by luck, with coins drawn anew."
    )
    if len(risks) > len(shown):
        caption += f" The first {len(shown)} of {len(risks)} rows; the table has all."
    return plots.draw(f"{records.name}-risk", caption, len(shown), paint, notice, 3.2)


def _name(row: Row) -> str:
    return f"{row.head.method} · {row.head.variant} · ε = {rounded(row.head.epsilon)}"
