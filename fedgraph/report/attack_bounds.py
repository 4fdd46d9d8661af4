"""What attacks measured, in words and in tables: lower bounds on ε, printed rounded down."""

import math
from collections.abc import Sequence

from fedgraph.audit import one_run
from fedgraph.report.phrases import fill_phrase, phrase_lower_bound, phrase_number, phrase_upper_bound
from fedgraph.report.table import Line, num_attack_bounds, refuted_among
from fedgraph.types import counted

CONFIDENCE = f"{1 - one_run.ONE_RUN_ALPHA:.0%}"
_ABOVE_PUBLISHED = "More than the published formula"  # how a sentence about a refuted publication begins
_BY_CHANCE = "Canaries contradict no proven ε"  # how one about a bound that chance put above its proof begins


def describe(row: Line) -> str:
    """``measured by an attack: …``, with what it rests on."""
    if row.canaries is None:
        return "measured by an attack: —"
    found, path = row.canaries.counts[0], row.canaries.one.path
    where = "" if path is None else f" on the path “{path}” alone"
    sure = f"{CONFIDENCE} confidence, δ = {row.delta:.3g}"
    right = f"{found.right} of {found.guesses} guesses about {found.coins} canaries were right"
    return f"measured by an attack{where}: ε ≥ {phrase_lower_bound(row.epsilon_measured)} ({sure}; {right})"


def summarise(rows: Sequence[Line]) -> list[str]:
    """For the answer: which published ε are refuted, whether chance put a bound above its proof, and which came closest."""
    finite = [
        r for r in rows if r.epsilon_measured is not None and 0 < r.guaranteed < math.inf and r.epsilon_measured <= r.guaranteed
    ]
    told = contradictions(rows)
    found = [f"Attacks: {s}" for begin in (_ABOVE_PUBLISHED, _BY_CHANCE) for s in told if s.startswith(begin)]
    if finite:
        closest = max(finite, key=lambda r: (r.epsilon_measured or 0.0) / r.guaranteed)
        count, canaries = num_attack_bounds(rows), sum(r.epsilon_measured is not None for r in rows)
        which = "Of those with canaries, the closest" if count > canaries else "The closest"
        opening = f"{count} lower bounds on ε were measured. {which} to its proof is" if count > 1 else "one lower bound on ε,"
        found.append(
            fill_phrase("attacks", "closest", opening=opening, name=_name(closest), task=closest.task,
                        shown=phrase_lower_bound(closest.epsilon_measured), proven=phrase_upper_bound(closest.guaranteed),
                        share=math.floor(100 * (closest.epsilon_measured or 0.0) / closest.guaranteed))
        )  # fmt: skip
    return found


def explain(rows: Sequence[Line], among: int = 0) -> list[str]:
    """What was attacked and what a bound means; first what contradicts a guarantee. among: as for ``contradictions``."""
    attacked = [r.canaries for r in rows if r.canaries is not None]
    if not attacked:
        return []
    guesses = sorted({c.guesses for told in attacked for c in told.counts})
    bounds, alpha = max(among, num_attack_bounds(rows)), one_run.ONE_RUN_ALPHA
    shared = "It is the only bound of this report."
    if bounds != 1:
        shared = fill_phrase("attacks", "counted", bounds=bounds, wrong=alpha * bounds, alpha=alpha)
    said = fill_phrase(
        "attacks", "measured", rows=f"{counted(len(attacked), 'row')} {'were' if len(attacked) > 1 else 'was'}",
        how="; ".join(sorted({told.one.what for told in attacked})), confidence=CONFIDENCE, counted=shared,
        guesses=" or ".join(map(str, guesses)) if len(guesses) <= 4 else f"{guesses[0]} to {guesses[-1]}",
        most=phrase_number(max(told.ceiling for told in attacked), 2),
    )  # fmt: skip
    curves = [fill_phrase("attacks", "curves")] if any(told.one.estimator == "curve" for told in attacked) else []
    return [*contradictions([r for r in rows if r.canaries is not None], among), said, *curves]


def contradictions(rows: Sequence[Line], among: int = 0) -> list[str]:
    """Rows whose measured ε exceeds what was proven (of the attacked path, if it is one), or what was published.

    Each bound is wrong with probability ``one_run.ONE_RUN_ALPHA``, and an exact attack on a sound row is that often just above
    the truth: what is called a contradiction holds when that probability is divided among all bounds of the report (``among``).
    """
    shared, alpha = max(among, num_attack_bounds(rows), 1), one_run.ONE_RUN_ALPHA
    told = [(r, r.canaries, refuted_among(r, shared)) for r in rows if r.canaries is not None]
    broken = [r for r, _, wrong in told if wrong]
    by_chance = [r for r, _, wrong in told if not wrong and (r.epsilon_measured or 0.0) > r.guaranteed]
    claimed = [(r, one) for r, one, wrong in told if not wrong and r.epsilon_published is not None]
    refuted = [r for r, one in claimed if (one.epsilon(alpha / shared) or 0.0) > (r.epsilon_published or 0.0)]
    found = []
    if broken:
        repeated = "; ".join(f"{_locate(r)} (δ = {r.delta:.3g}; {_tried(one.counts)})" for r, one, wrong in told if wrong)
        found.append(fill_phrase("attacks", "broken", against=_against(broken), alpha=alpha, bounds=shared, repeated=repeated))
    if by_chance:
        opening = "Besides, more" if broken else f"{_BY_CHANCE}. More"
        found.append(
            fill_phrase("attacks", "by_chance", opening=opening, against=_against(by_chance), one_in=1 / alpha, bounds=shared)
        )
    if refuted:
        which = "; ".join(f"{_measured(r)}, published ε = {phrase_number(r.epsilon_published)}" for r in refuted)
        found.append(f"{_ABOVE_PUBLISHED} allows was measured: {which}.")
    return found


def contradictions_by_name(rows: Sequence[Line], among: int = 0) -> list[str]:
    """As ``contradictions``, of attacks by name."""
    shared, alpha = max(among, num_attack_bounds(rows), 1), one_run.ONE_RUN_ALPHA
    found = []
    for row, told in ((r, t) for r in rows for t in r.named if t.counts and t.one.comparable):
        sure = told.epsilon(alpha / shared)
        if sure is not None and sure > row.epsilon_provable:
            named, price = f"{row.who} · ε = {phrase_number(row.epsilon)}", phrase_upper_bound(row.epsilon_provable, 3)
            shown = {"name": named, "provable": price, "tried": _tried(told.counts), "head": row.head, "cell": _locate(row)}
            about = {"attack": told.one.attack, "sure": phrase_number(sure, 3), "alpha": alpha, "among": shared}
            found.append(fill_phrase("attacks", "refuted", **shown, **about))
    return found


def _tried(counts: Sequence[one_run.OneRunCount]) -> str:
    return "; ".join(f"{c.right} of {c.guesses} guesses about {c.coins} coins right" for c in counts)


def _locate(row: Line) -> str:
    """What names a row's cells in its scenario."""
    seeds = ", ".join(str(e.seed) for e in row.cells)
    where = f"task {row.task}, data set {row.dataset}, trust {row.world}"
    return f"{where}, noise chosen for the {row.calibrated_by} ε, seed {seeds}"


def _against(rows: Sequence[Line]) -> str:
    return "; ".join(f"{_measured(r)}, provable ε = {phrase_upper_bound(r.guaranteed, 3)}" for r in rows)


def _measured(row: Line) -> str:
    return f"{_name(row)}: measured ε ≥ {phrase_lower_bound(row.epsilon_measured, 3)}"


def _name(row: Line) -> str:
    return f"{row.who} · {row.world} · ε = {phrase_number(row.epsilon)}"
