"""What attacks measured, in words and in tables: lower bounds on ε, printed rounded down."""

import math
from collections.abc import Sequence
from enum import Enum

from fedgraph.audit import one_run
from fedgraph.report.phrases import phrase, rounded, rounded_up
from fedgraph.report.report_rows import Row

CONFIDENCE = f"{1 - one_run.ALPHA:.0%}"
ABOUT_PUBLISHED = "More than the published formula"  # how a sentence about a refuted publication begins
BY_CHANCE = "Canaries contradict no proven ε"  # how a sentence about a bound that chance put above its proof begins


class Verdict(Enum):
    """What an attack says of a row's provable ε.

    Attributes:
        UNTRIED: The row was not attacked.
        SOUND: No more was measured than was proven.
        CHANCE: More was measured, but with the error divided among all rows that were attacked it is not sure.
        BROKEN: More was measured than was proven.
    """

    UNTRIED = "not attacked"
    SOUND = "not contradicted"
    CHANCE = "above, explained by chance"
    BROKEN = "contradicted"


def num_bounds(rows: Sequence[Row]) -> int:
    """How many lower bounds on ε the rows show that are held against a provable one: of canaries, and of attacks by name."""
    by_name = {
        (place, told.attack)
        for place, row in enumerate(rows)
        for entry in row.entries
        for told in (entry.facts.named.found if entry.facts.named else ())
        if told.counts and told.comparable
    }
    return sum(r.measured is not None for r in rows) + len(by_name)


def verdicts(rows: Sequence[Row], among: int = 0) -> list[Verdict]:
    """One per row. Each bound is wrong with probability ``one_run.ALPHA``; BROKEN holds for all bounds together, of which there
    are ``among`` in the report (default: those of ``rows``)."""
    shared = max(among, num_bounds(rows), 1)
    found = []
    for row in rows:
        if row.measured is None or row.measured <= row.guaranteed:
            found.append(Verdict.UNTRIED if row.measured is None else Verdict.SOUND)
        else:
            sure = row.bound(row.attacked, one_run.ALPHA / shared) > row.guaranteed
            found.append(Verdict.BROKEN if sure else Verdict.CHANCE)
    return found


def printed_bound(row: Row, digits: int = 2) -> str:
    """The bound of a row, never above the computed one; — where it was not attacked."""
    if row.measured is None:
        return "—"
    return rounded(math.floor(row.measured * 10**digits * (1 + 1e-12)) / 10**digits, digits)


def describe_bound(row: Row) -> str:
    """``measured by an attack: …``, with what it rests on."""
    if row.measured is None:
        return "measured by an attack: —"
    found = row.attacked[0]
    where = "" if row.attack.path is None else f" on the path “{row.attack.path}” alone"
    return (
        f"measured by an attack{where}: ε ≥ {printed_bound(row)} ({CONFIDENCE} confidence, δ = {row.head.delta:.3g}; "
        f"{found.right} of {found.guesses} guesses about {found.coins} canaries were right)"
    )


def asked_for(rows: Sequence[Row]) -> bool:
    """Whether more than half of the rows were attacked, so that what attacks found is what a reader asks first."""
    tried = [r for r in rows if r.measured is not None or any(e.facts.named and e.facts.named.found for e in r.entries)]
    return 2 * len(tried) > len(rows)


def summary(rows: Sequence[Row]) -> list[str]:
    """For the answer: which published ε are refuted, whether chance put a bound above its proof, how many bounds there are, and
    which came closest to its proof.
    """
    finite = [r for r in rows if r.measured is not None and 0 < r.guaranteed < math.inf and r.measured <= r.guaranteed]
    told = contradictions(rows)
    found = [f"Attacks: {s}" for start in (ABOUT_PUBLISHED, BY_CHANCE) for s in told if s.startswith(start)]
    if finite:
        closest = max(finite, key=lambda r: (r.measured or 0.0) / r.guaranteed)
        share = (closest.measured or 0.0) / closest.guaranteed
        count = num_bounds(rows)
        several = f"{count} lower bounds on ε were measured. The closest to its proof is"
        row = {"opening": several if count > 1 else "one lower bound on ε,", "name": _name(closest), "task": closest.head.task}
        shown = {"shown": printed_bound(closest), "proven": rounded_up(closest.guaranteed), "share": math.floor(100 * share)}
        found.append(phrase("attacks", "closest", **row, **shown))
    return found


def describe_attacks(rows: Sequence[Row], among: int = 0) -> list[str]:
    """What was attacked and what a bound means; first whatever contradicts a guarantee. among: as in ``verdicts``."""
    attacked = [r for r in rows if r.measured is not None]
    if not attacked:
        return []
    how = sorted({r.attack.what for r in attacked})
    guesses = sorted({c.guesses for r in attacked for c in r.attacked})
    shown = [str(n) for n in guesses] if len(guesses) <= 4 else [f"{guesses[0]} to {guesses[-1]}"]
    told = {"rows": f"{len(attacked)} {'rows were' if len(attacked) > 1 else 'row was'}", "how": "; ".join(how)}
    told |= {"guesses": " or ".join(shown), "most": rounded(max(r.ceiling for r in attacked), 2)}
    bounds, counted = max(among, num_bounds(rows)), "It is the only bound of this report."
    if bounds != 1:
        counted = phrase("attacks", "counted", bounds=bounds, wrong=one_run.ALPHA * bounds, alpha=one_run.ALPHA)
    return [
        *contradictions(attacked, among),
        phrase("attacks", "measured", **told, confidence=CONFIDENCE, counted=counted),
        *([phrase("attacks", "curves")] if any(r.attack.estimator == "curve" for r in attacked) else []),
    ]


def contradictions(rows: Sequence[Row], among: int = 0) -> list[str]:
    """Rows whose measured ε exceeds what was proven (of the attacked path, if it is one), or what was published.

    Each bound is wrong with probability ``one_run.ALPHA``, and an exact attack on a sound row is that often just above the
    truth: what is called a contradiction holds when that probability is divided among all bounds of the report (``among``).
    """
    attacked = [r for r in rows if r.measured is not None]
    shared = max(among, num_bounds(rows), 1)
    judged = list(zip(attacked, verdicts(attacked, shared), strict=True))
    broken = [r for r, verdict in judged if verdict is Verdict.BROKEN]
    by_chance = [r for r, verdict in judged if verdict is Verdict.CHANCE]
    claimed = [(r, r.published) for r in attacked if r not in broken and r.published is not None]
    refuted = [r for r, published in claimed if r.bound(r.attacked, one_run.ALPHA / shared) > published]
    found = []
    if broken:
        against = _against(broken)
        repeated = "; ".join(
            f"{describe_cell(r)} (δ = {r.head.delta:.3g}; "
            f"{'; '.join(f'{c.right} of {c.guesses} guesses about {c.coins} coins right' for c in r.attacked)})"
            for r in broken
        )
        found.append(phrase("attacks", "broken", against=against, alpha=one_run.ALPHA, bounds=shared, repeated=repeated))
    if by_chance:
        opening = "Besides, more" if broken else f"{BY_CHANCE}. More"
        against = _against(by_chance)
        found.append(phrase("attacks", "by_chance", opening=opening, against=against, one_in=1 / one_run.ALPHA, bounds=shared))
    if refuted:
        which = "; ".join(
            f"{_name(r)}: measured ε ≥ {printed_bound(r, 3)}, published ε = {rounded(r.published)}" for r in refuted
        )
        found.append(f"{ABOUT_PUBLISHED} allows was measured: {which}.")
    return found


def describe_cell(row: Row) -> str:
    """What names a row's cells in its scenario."""
    seeds = ", ".join(str(e.seed) for e in row.entries)
    where = f"task {row.head.task}, data set {row.head.dataset}, trust {row.head.world.words}"
    return f"{where}, noise chosen for the {row.head.calibrated_by} ε, seed {seeds}"


def _against(rows: Sequence[Row]) -> str:
    return "; ".join(
        f"{_name(r)}: measured ε ≥ {printed_bound(r, 3)}, provable ε = {rounded_up(r.guaranteed, 3)}" for r in rows
    )


def _name(row: Row) -> str:
    return f"{row.name} · {row.head.world.words} · ε = {rounded(row.head.epsilon)}"
