"""Attacks by name: what each found on each row, beside the limit that ε sets, and who is at risk."""

from collections.abc import Sequence
from statistics import fmean

from fedgraph.audit import operating_points
from fedgraph.report import attack_bounds
from fedgraph.report.phrases import fill_phrase, phrase_lower_bound, phrase_upper_bound
from fedgraph.report.sections.base import Section, SectionRecords, SectionTable
from fedgraph.report.table import Attack, Line, num_attack_bounds

KINDS = ("node_classification", "link_prediction")  # the tasks that this section speaks of
_PART = "named_attacks"


def build(records: SectionRecords) -> Section:
    """Nothing where no attack was asked for by name."""
    rows = [r for r in records.rows if any(e.facts.named is not None for e in r.cells)]
    if not rows:
        return Section()
    told = sorted(((row, one) for row in rows for one in row.named), key=lambda t: (t[1].one.attack, t[0].epsilon))
    among, bounded = max(records.among, num_attack_bounds(rows)), sum(bool(t.counts) for _, t in told)
    means = fill_phrase(_PART, "meaning", many=len(told), bounded=bounded, confidence=attack_bounds.CONFIDENCE, among=among)
    risks = [row for row in rows if row.facts.named and row.facts.named.risk]
    sentences = [*attack_bounds.contradictions_by_name(rows, among), means, *_refused(rows)]
    sentences += [fill_phrase(_PART, "risk", runs=risks[0].facts.named.risk.runs)] if risks else []
    tables = [SectionTable.of("Attacks by name", [_found(*one) for one in told], fill_phrase(_PART, "table"))] if told else []
    tables += [SectionTable.of("Who is at risk", list(map(_risk, risks)), fill_phrase(_PART, "risk_table"))] if risks else []
    return Section(tuple(sentences), tuple(tables))


def _refused(rows: Sequence[Line]) -> list[str]:
    found: dict[str, set[str]] = {}
    for row in rows:
        for name, why in (row.facts.named.refused if row.facts.named else {}).items():
            found.setdefault(why, set()).add(f"{name} on {row.method}")
    said = "; ".join(f"{', '.join(sorted(who))} ({why})" for why, who in found.items())
    return [f"Not tried: {said}."] if found else []


def _found(row: Line, told: Attack) -> dict[str, str]:
    def mean(values: Sequence[float | None]) -> str:
        known = [value for value in values if value is not None]
        return f"{fmean(known):.3f}" if known else "—"

    one, every, cosine = told.one, told.every, told.one.more.get("cosine")
    published = mean([v.more.get("auc_published" if cosine is None else "cosine") for v in every])
    return {
        "attack": one.attack, "row": row.row, "ε provable": phrase_upper_bound(row.epsilon_provable, 2),
        "ε at least": phrase_lower_bound(told.epsilon()) + ("" if one.comparable or not told.counts else "*"),
        "AUC": mean([v.auc for v in every]),
        **{f"TPR at {rate:.1%} FPR": f"{fmean(v.tpr[place] for v in every):.1%}"
           for place, rate in enumerate(operating_points.LOW_OPERATING_RATES)},
        "advantage": mean([v.advantage for v in every]), "limit": mean([v.limit for v in every]),
        "as published": published if cosine is None else f"cosine {published}",
        "told": one.what, "by": one.viewer if one.answers == "viewer" else "others, who see answers",
        "must know": one.needs, "reference": one.reference,
    }  # fmt: skip


def _risk(row: Line) -> dict[str, str]:
    risk = row.facts.named.risk
    found = {"row": row.row, "mean": f"{risk.mean:.3f}", "always found": f"{risk.always_found:.2%}"}
    found["by luck"] = f"{risk.always_by_luck:.2%}"
    for name in ("degree", "rarity", "unlike"):
        found |= {f"by {name}": _groups(vars(risk)[f"by_{name}"]), f"rank: {name}": f"{vars(risk)[f'rank_{name}']:+.2f}"}
    return found


def _groups(groups: Sequence[Sequence[float]]) -> str:
    """Groups that print the same range are one."""
    merged: dict[str, tuple[float, float]] = {}
    for low, high, count, mean in groups:
        name = f"{low:.3g}–{high:.3g}" if f"{low:.3g}" != f"{high:.3g}" else f"{low:.3g}"
        size, total = merged.get(name, (0.0, 0.0))
        merged[name] = (size + count, total + count * mean)
    return ", ".join(f"{name} → {total / max(size, 1.0):.2f}" for name, (size, total) in merged.items())
