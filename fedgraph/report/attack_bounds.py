"""What attacks measured, in words and in tables: lower bounds on ε, printed rounded down."""

import math
from collections.abc import Sequence

from fedgraph.audit import one_run
from fedgraph.report.phrases import fill_phrase, phrase_number, phrase_upper_bound
from fedgraph.report.rows import AttackBoundVerdict, Row, judge_attack_bounds, num_attack_bounds

ATTACK_BOUND_CONFIDENCE = f"{1 - one_run.ONE_RUN_ALPHA:.0%}"
ATTACK_BOUND_ABOVE_PUBLISHED = "More than the published formula"  # how a sentence about a refuted publication begins
ATTACK_BOUND_BY_CHANCE = "Canaries contradict no proven ε"  # how one about a bound that chance put above its proof begins


def format_attack_bound(row: Row, digits: int = 2) -> str:
    """The bound of a row, never above the computed one; — where it was not attacked."""
    if row.measured is None:
        return "—"
    return phrase_number(math.floor(row.measured * 10**digits * (1 + 1e-12)) / 10**digits, digits)


def describe_attack_bound(row: Row) -> str:
    """``measured by an attack: …``, with what it rests on."""
    if row.measured is None:
        return "measured by an attack: —"
    found = row.attacked[0]
    where = "" if row.attack.path is None else f" on the path “{row.attack.path}” alone"
    return (
        f"measured by an attack{where}: ε ≥ {format_attack_bound(row)} ({ATTACK_BOUND_CONFIDENCE} confidence, δ = "
        f"{row.head.delta:.3g}; "
        f"{found.right} of {found.guesses} guesses about {found.coins} canaries were right)"
    )


def summarise_attack_bounds(rows: Sequence[Row]) -> list[str]:
    """For the answer: which published ε are refuted, whether chance put a bound above its proof, how many bounds there are, and
    which came closest to its proof.
    """
    finite = [r for r in rows if r.measured is not None and 0 < r.guaranteed < math.inf and r.measured <= r.guaranteed]
    told = find_contradicting_attack_bounds(rows)
    begins = (ATTACK_BOUND_ABOVE_PUBLISHED, ATTACK_BOUND_BY_CHANCE)
    found = [f"Attacks: {s}" for begin in begins for s in told if s.startswith(begin)]
    if finite:
        closest = max(finite, key=lambda r: (r.measured or 0.0) / r.guaranteed)
        share = (closest.measured or 0.0) / closest.guaranteed
        count = num_attack_bounds(rows)
        by_name = count > sum(r.measured is not None for r in rows)
        which = "Of those with canaries, the closest" if by_name else "The closest"
        several = f"{count} lower bounds on ε were measured. {which} to its proof is"
        row = {"opening": several if count > 1 else "one lower bound on ε,", "name": _name(closest), "task": closest.head.task}
        shown = {"shown": format_attack_bound(closest), "share": math.floor(100 * share)}
        shown["proven"] = phrase_upper_bound(closest.guaranteed)
        found.append(fill_phrase("attacks", "closest", **row, **shown))
    return found


def explain_attack_bounds(rows: Sequence[Row], among: int = 0) -> list[str]:
    """What was attacked and what a bound means; first whatever contradicts a guarantee. among: as in
    ``judge_attack_bounds``.
    """
    attacked = [r for r in rows if r.measured is not None]
    if not attacked:
        return []
    how = sorted({r.attack.what for r in attacked})
    guesses = sorted({c.guesses for r in attacked for c in r.attacked})
    shown = [str(n) for n in guesses] if len(guesses) <= 4 else [f"{guesses[0]} to {guesses[-1]}"]
    told = {"rows": f"{len(attacked)} {'rows were' if len(attacked) > 1 else 'row was'}", "how": "; ".join(how)}
    told |= {"guesses": " or ".join(shown), "most": phrase_number(max(r.ceiling for r in attacked), 2)}
    bounds, counted = max(among, num_attack_bounds(rows)), "It is the only bound of this report."
    if bounds != 1:
        alpha = one_run.ONE_RUN_ALPHA
        counted = fill_phrase("attacks", "counted", bounds=bounds, wrong=alpha * bounds, alpha=alpha)
    return [
        *find_contradicting_attack_bounds(attacked, among),
        fill_phrase("attacks", "measured", **told, confidence=ATTACK_BOUND_CONFIDENCE, counted=counted),
        *([fill_phrase("attacks", "curves")] if any(r.attack.estimator == "curve" for r in attacked) else []),
    ]


def find_contradicting_attack_bounds(rows: Sequence[Row], among: int = 0) -> list[str]:
    """Rows whose measured ε exceeds what was proven (of the attacked path, if it is one), or what was published.

    Each bound is wrong with probability ``one_run.ONE_RUN_ALPHA``, and an exact attack on a sound row is that often just above
    the truth: what is called a contradiction holds when that probability is divided among all bounds of the report (``among``).
    """
    attacked = [r for r in rows if r.measured is not None]
    shared = max(among, num_attack_bounds(rows), 1)
    judged = list(zip(attacked, judge_attack_bounds(attacked, shared), strict=True))
    broken = [r for r, verdict in judged if verdict is AttackBoundVerdict.BROKEN]
    by_chance = [r for r, verdict in judged if verdict is AttackBoundVerdict.CHANCE]
    claimed = [(r, r.published) for r in attacked if r not in broken and r.published is not None]
    refuted = [r for r, published in claimed if r.bound(r.attacked, one_run.ONE_RUN_ALPHA / shared) > published]
    found = []
    if broken:
        against = _against(broken)
        repeated = "; ".join(
            f"{locate_attack_bound(r)} (δ = {r.head.delta:.3g}; "
            f"{'; '.join(f'{c.right} of {c.guesses} guesses about {c.coins} coins right' for c in r.attacked)})"
            for r in broken
        )
        bound = {"against": against, "alpha": one_run.ONE_RUN_ALPHA, "bounds": shared}
        found.append(fill_phrase("attacks", "broken", **bound, repeated=repeated))
    if by_chance:
        opening = "Besides, more" if broken else f"{ATTACK_BOUND_BY_CHANCE}. More"
        bound = {"against": _against(by_chance), "one_in": 1 / one_run.ONE_RUN_ALPHA, "bounds": shared}
        found.append(fill_phrase("attacks", "by_chance", opening=opening, **bound))
    if refuted:
        which = "; ".join(f"{_measured(r)}, published ε = {phrase_number(r.published)}" for r in refuted)
        found.append(f"{ATTACK_BOUND_ABOVE_PUBLISHED} allows was measured: {which}.")
    return found


def locate_attack_bound(row: Row) -> str:
    """What names a row's cells in its scenario."""
    seeds = ", ".join(str(e.seed) for e in row.results)
    where = f"task {row.head.task}, data set {row.head.dataset}, trust {row.head.world.words}"
    return f"{where}, noise chosen for the {row.head.calibrated_by} ε, seed {seeds}"


def _against(rows: Sequence[Row]) -> str:
    return "; ".join(f"{_measured(r)}, provable ε = {phrase_upper_bound(r.guaranteed, 3)}" for r in rows)


def _measured(row: Row) -> str:
    return f"{_name(row)}: measured ε ≥ {format_attack_bound(row, 3)}"


def _name(row: Row) -> str:
    return f"{row.who} · {row.head.world.words} · ε = {phrase_number(row.head.epsilon)}"
