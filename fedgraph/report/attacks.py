"""What attacks measured, in words and in tables: lower bounds on ε, printed rounded down."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum

from fedgraph.audit import one_run
from fedgraph.report.results import Row, bound, largest, number

CONFIDENCE = f"{1 - one_run.ALPHA:.0%}"
ABOUT_PUBLISHED = "More than the published formula"  # how a sentence about a refuted publication begins


class Verdict(Enum):
    """What an attack says of a row's provable ε. BROKEN: more was measured than was proven. CHANCE: so it seems, but with
    the error divided among all rows that were attacked it is not sure."""

    UNTRIED = "not attacked"
    SOUND = "not contradicted"
    CHANCE = "above, explained by chance"
    BROKEN = "contradicted"


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """One per row. Each bound is wrong with probability ``one_run.ALPHA``; BROKEN holds for all attacked rows together."""
    attacked = sum(r.measured is not None for r in rows)
    return [_verdict(r, one_run.ALPHA / attacked) if attacked else Verdict.UNTRIED for r in rows]


def _verdict(row: Row, alpha: float) -> Verdict:
    if row.measured is None:
        return Verdict.UNTRIED
    if row.measured <= row.guaranteed:
        return Verdict.SOUND
    sure = largest(tuple(row.attacked), float(row["delta"]), row.estimator, alpha)
    return Verdict.BROKEN if sure > row.guaranteed else Verdict.CHANCE


def measured(row: Row, digits: int = 2) -> str:
    """The bound of a row, never above the computed one; — where it was not attacked."""
    if row.measured is None:
        return "—"
    return number(math.floor(row.measured * 10**digits * (1 + 1e-12)) / 10**digits, digits)


def words(row: Row) -> str:
    """``measured by an attack: …``, with what it rests on."""
    if row.measured is None:
        return "measured by an attack: —"
    found = row.attacked[0]
    path = row["facts"]["attack"].get("path")
    where = "" if path is None else f" on the path “{path}” alone"
    return (
        f"measured by an attack{where}: ε ≥ {measured(row)} ({CONFIDENCE} confidence, δ = {row['delta']:.3g}; {found.right} of "
        f"{found.guesses} guesses about {found.coins} canaries were right)"
    )


def sentences(rows: Sequence[Row]) -> list[str]:
    """What was attacked and what a bound means; first, and loudly, whatever contradicts a guarantee."""
    attacked = [r for r in rows if r.measured is not None]
    if not attacked:
        return []
    how = sorted({r["facts"]["attack"]["what"] for r in attacked})
    guesses = sorted({c.guesses for r in attacked for c in r.attacked})
    most = max(r.ceiling for r in attacked)
    shown = [str(n) for n in guesses] if len(guesses) <= 4 else [f"{guesses[0]} to {guesses[-1]}"]
    return [
        *contradictions(attacked),
        f"ε measured: {len(attacked)} rows were run once more with canaries, each in one of two neighbouring versions by a "
        f"fair coin, and an attacker who knows all but the coins guessed them ({'; '.join(how)}). With {CONFIDENCE} "
        f"confidence, for each row alone, its ε is no smaller than the value shown. With {' or '.join(shown)} guesses no "
        f"attack can show more than {number(most, 2)}, and a low value proves nothing: another attack may do better.",
        *_curves(attacked),
    ]


def _curves(attacked: Sequence[Row]) -> list[str]:
    """What a value means where a whole curve was refuted."""
    if not any(r.estimator == "curve" for r in attacked):
        return []
    return [
        "Rows in which everything released carries Gaussian noise are read by a stronger test. It refutes every smaller "
        "Gaussian curve δ(ε), and the value is the ε of the largest refuted curve at the row's δ. Other rows are read by "
        "counting right guesses."
    ]


def contradictions(rows: Sequence[Row]) -> list[str]:
    """Rows whose measured ε exceeds what was proven (of the attacked path, if it is one), or what was published.

    Each bound is wrong with probability ``one_run.ALPHA``, and an exact attack on a sound row is that often just above the
    truth: what is called a contradiction holds when that probability is divided among all rows that were attacked.
    """
    attacked = [r for r in rows if r.measured is not None]
    judged = list(zip(attacked, verdicts(attacked), strict=True))
    broken = [r for r, verdict in judged if verdict is Verdict.BROKEN]
    by_chance = [r for r, verdict in judged if verdict is Verdict.CHANCE]
    refuted = [
        r
        for r in attacked
        if r not in broken
        and r.published is not None
        and largest(tuple(r.attacked), float(r["delta"]), r.estimator, one_run.ALPHA / len(attacked)) > r.published
    ]
    found = []
    if broken:
        found.append(
            f"CONTRADICTION: an attack measured more than was proven, so a proof or its code is wrong ({_against(broken)}). "
            f"Sound rows are accused like this with probability at most {one_run.ALPHA:g}, all {len(attacked)} attacked rows "
            "together."
        )
    if by_chance:
        found.append(
            f"More was measured than proven, but chance explains it: {_against(by_chance)}. One bound in "
            f"{1 / one_run.ALPHA:.0f} is too high where an attack is exact; {len(attacked)} rows were attacked, and with the "
            "error divided among them nothing is contradicted."
        )
    if refuted:
        which = "; ".join(f"{_name(r)}: measured ε ≥ {measured(r, 3)}, published ε = {number(r.published)}" for r in refuted)
        found.append(f"{ABOUT_PUBLISHED} allows was measured: {which}.")
    return found


def _against(rows: Sequence[Row]) -> str:
    return "; ".join(f"{_name(r)}: measured ε ≥ {measured(r, 3)}, provable ε = {bound(r.guaranteed, 3)}" for r in rows)


def _name(row: Row) -> str:
    return f"{row['method']} · {row['variant']} · {row['setting']} · ε = {number(row['epsilon'])}"
