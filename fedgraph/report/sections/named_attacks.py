"""Attacks by name: what each found on each row, beside the limit that ε sets, and who is at risk."""

from collections.abc import Callable, Sequence
from statistics import fmean

from fedgraph.audit import operating_points
from fedgraph.cells import NodeRiskCellFacts
from fedgraph.report import attack_bounds
from fedgraph.report.phrases import fill_phrase, phrase_lower_bound, phrase_upper_bound
from fedgraph.report.sections.base import Section, SectionRecords, SectionTable, tabulate_section
from fedgraph.report.table import Attack, Line, num_attack_bounds

KINDS = ("node_classification", "link_prediction")  # the tasks that this section speaks of
_PART = "named_attacks"
_Told = tuple[Line, Attack]


def build(records: SectionRecords) -> Section:
    """Nothing where no attack was asked for by name."""
    rows = [r for r in records.rows if any(e.facts.named is not None for e in r.cells)]
    if not rows:
        return Section()
    told = sorted(((row, one) for row in rows for one in row.named), key=lambda t: (t[1].one.attack, t[0].epsilon))
    among, bounded = max(records.among, num_attack_bounds(rows)), sum(bool(t.counts) for _, t in told)
    means = fill_phrase(_PART, "meaning", many=len(told), bounded=bounded, confidence=attack_bounds.CONFIDENCE, among=among)
    risks = [(r, r.facts.named.risk) for r in rows if r.facts.named and r.facts.named.risk]
    sentences = [*attack_bounds.contradictions_by_name(rows, among), means, *_refused(rows)]
    sentences += [fill_phrase(_PART, "risk", runs=risks[0][1].runs)] if risks else []
    tables = [*([_table(told)] if told else []), *([_risk_table(risks)] if risks else [])]
    return Section(tuple(sentences), tuple(tables))


def _refused(rows: Sequence[Line]) -> list[str]:
    found: dict[str, set[str]] = {}
    for row in rows:
        for name, why in (row.facts.named.refused if row.facts.named else {}).items():
            found.setdefault(why, set()).add(f"{name} on {row.method}")
    said = "; ".join(f"{', '.join(sorted(who))} ({why})" for why, who in found.items())
    return [f"Not tried: {said}."] if found else []


def _table(told: Sequence[_Told]) -> SectionTable:
    rates = {
        f"TPR at {rate:.1%} FPR": lambda t, place=place: f"{fmean(v.tpr[place] for v in t[1].every):.1%}"
        for place, rate in enumerate(operating_points.LOW_OPERATING_RATES)
    }
    columns: dict[str, Callable[[_Told], str]] = {
        "attack": lambda t: t[1].one.attack,
        "row": lambda t: t[0].row,
        "ε provable": lambda t: phrase_upper_bound(t[0].epsilon_provable, 2),
        "ε at least": lambda t: phrase_lower_bound(t[1].epsilon()) + ("" if t[1].one.comparable or not t[1].counts else "*"),
        "AUC": lambda t: f"{fmean(v.auc for v in t[1].every):.3f}",
        **rates,
        "advantage": lambda t: f"{fmean(v.advantage for v in t[1].every):.3f}",
        "limit": lambda t: _mean([v.limit for v in t[1].every]),
        "as published": lambda t: (
            f"cosine {_mean([v.more.get('cosine') for v in t[1].every])}"
            if t[1].one.more.get("cosine") is not None
            else _mean([v.more.get("auc_published") for v in t[1].every])
        ),
        "told": lambda t: t[1].one.what,
        "by": lambda t: t[1].one.viewer if t[1].one.answers == "viewer" else "others, who see answers",
        "must know": lambda t: t[1].one.needs,
        "reference": lambda t: t[1].one.reference,
    }
    return tabulate_section("Attacks by name", told, columns, fill_phrase(_PART, "table"))


def _mean(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{fmean(known):.3f}" if known else "—"


def _risk_table(risks: Sequence[tuple[Line, NodeRiskCellFacts]]) -> SectionTable:
    columns: dict[str, Callable[[tuple[Line, NodeRiskCellFacts]], str]] = {
        "row": lambda one: one[0].row,
        "mean": lambda one: f"{one[1].mean:.3f}",
        "always found": lambda one: f"{one[1].always_found:.2%}",
        "by luck": lambda one: f"{one[1].always_by_luck:.2%}",
    }
    for name in ("degree", "rarity", "unlike"):
        columns[f"by {name}"] = lambda one, name=name: _groups(vars(one[1])[f"by_{name}"])  # type: ignore[misc]
        columns[f"rank: {name}"] = lambda one, name=name: f"{vars(one[1])[f'rank_{name}']:+.2f}"  # type: ignore[misc]
    return tabulate_section("Who is at risk", risks, columns, fill_phrase(_PART, "risk_table"))


def _groups(groups: Sequence[Sequence[float]]) -> str:
    """Groups that print the same range are one."""
    merged: dict[str, tuple[float, float]] = {}
    for low, high, count, mean in groups:
        name = f"{low:.3g}–{high:.3g}" if f"{low:.3g}" != f"{high:.3g}" else f"{low:.3g}"
        size, total = merged.get(name, (0.0, 0.0))
        merged[name] = (size + count, total + count * mean)
    return ", ".join(f"{name} → {total / max(size, 1.0):.2f}" for name, (size, total) in merged.items())
