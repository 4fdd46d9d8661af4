"""What attacks measured: which bounds contradict a proof or a publication, and the words, which stand in ``attacks.txt``."""

import math
from collections.abc import Sequence
from statistics import fmean

from fedgraph.audit import one_run
from fedgraph.report import phrases, table
from fedgraph.report.sections.base import Section, SectionTable
from fedgraph.report.table import Line
from fedgraph.types import counted

_ALPHA = one_run.ONE_RUN_ALPHA


def _say(part: str, **told: object) -> list[str]:
    text = phrases.template("attacks.txt", escaped=False).render(
        part=part, alpha=_ALPHA, confidence=f"{1 - _ALPHA:.0%}", count=counted,
        number=phrases.rounded, lower=phrases.lower, upper=phrases.upper, **told,
    )  # fmt: skip
    return [line for line in text.splitlines() if line.strip()]


def describe(row: Line) -> str:
    """``measured by an attack: …``, with what it rests on."""
    return _say("describe", row=row)[0]


def closest(rows: Sequence[Line]) -> list[str]:
    """Which bound by canaries came closest to its proof."""
    known = [r for r in rows if r.canaries is not None and 0 < r.guaranteed < math.inf and r.epsilon_measured <= r.guaranteed]
    if not known:
        return []
    first, bounds = max(known, key=lambda r: r.epsilon_measured / r.guaranteed), table.num_attack_bounds(rows)
    beside = bounds > sum(r.epsilon_measured is not None for r in rows)
    return _say("closest", row=first, bounds=bounds, beside=beside)


def contradictions(rows: Sequence[Line]) -> list[str]:
    """Rows whose measured ε exceeds what was proven (of the attacked path, if it is one), or what was published.

    Each bound is wrong with probability ``one_run.ONE_RUN_ALPHA``, and an exact attack on a sound row is that often just above
    the truth: what is called a contradiction holds when that probability is divided among the bounds of all rows.
    """
    bounds, attacked = max(table.num_attack_bounds(rows), 1), [r for r in rows if r.canaries is not None]
    broken, sound = ([r for r in attacked if table.refuted_among(r, bounds) is is_broken] for is_broken in (True, False))
    by_chance = [r for r in sound if (r.epsilon_measured or 0.0) > r.guaranteed]
    claimed = [r for r in sound if r.epsilon_published is not None]
    refuted = [r for r in claimed if (r.canaries.epsilon(_ALPHA / bounds) or 0.0) > r.epsilon_published]
    named = [(row, one, one.epsilon(_ALPHA / bounds)) for row in rows for one in row.named if one.counts and one.one.comparable]
    named = [(row, one, sure) for row, one, sure in named if sure is not None and sure > row.epsilon_provable]
    return _say("contradictions", broken=broken, by_chance=by_chance, refuted=refuted, named=named, bounds=bounds)


def section(rows: Sequence[Line]) -> Section:
    """What attacks found on the rows of a run, what a bound means, and who is at risk; empty where nothing was attacked."""
    attacked = [r.canaries for r in rows if r.canaries is not None]
    named = sorted(((row, one) for row in rows for one in row.named), key=lambda t: (t[1].one.attack, t[0].epsilon))
    refused: dict[str, set[str]] = {}
    for row in rows:
        for name, why in (row.facts.named.refused if row.facts.named else {}).items():
            refused.setdefault(why, set()).add(f"{name} on {row.method}")
    said = _say(
        "explain", attacked=attacked, guesses=sorted({c.guesses for told in attacked for c in told.counts}),
        bounds=table.num_attack_bounds(rows), named=[one for _, one in named], refused=refused,
        risks=[(row, row.facts.named.risk) for row in rows if row.facts.named and row.facts.named.risk],
    )  # fmt: skip
    lines = [{
        "attack": told.one.attack, "row": row.row, "ε proven": phrases.upper(row.epsilon_provable, 2),
        "ε at least": phrases.lower(told.epsilon()) + ("" if told.one.comparable or not told.counts else "*"),
        "AUC": f"{fmean(v.auc for v in told.every):.3f}", "advantage": f"{fmean(v.advantage for v in told.every):.3f}",
        "at most": f"{fmean(limits):.3f}" if (limits := [v.limit for v in told.every if v.limit is not None]) else "—",
        "what is told": told.one.what, "by": told.one.viewer if told.one.answers == "viewer" else "others, who see answers",
        "who knows": told.one.needs,
    } for row, told in named]  # fmt: skip
    # all their numbers are columns of results.csv
    return Section(tuple(said), (SectionTable.of("Attacks by name", lines, *_say("note")),) if lines else ())
