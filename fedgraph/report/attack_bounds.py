"""What attacks measured: which bounds contradict a proof or a publication, and the words, which stand in ``attacks.txt``."""

import math
from collections.abc import Sequence

from fedgraph.audit import one_run
from fedgraph.report.phrases import load_template, phrase_lower_bound, phrase_number, phrase_upper_bound
from fedgraph.report.table import Line, num_attack_bounds, refuted_among
from fedgraph.types import counted

_ALPHA = one_run.ONE_RUN_ALPHA
CONFIDENCE = f"{1 - _ALPHA:.0%}"


def _say(part: str, **told: object) -> list[str]:
    text = load_template("attacks.txt", escaped=False).render(
        part=part, alpha=_ALPHA, confidence=CONFIDENCE, count=counted,
        number=phrase_number, lower=phrase_lower_bound, upper=phrase_upper_bound, **told,
    )  # fmt: skip
    return [line for line in text.splitlines() if line.strip()]


def describe(row: Line) -> str:
    """``measured by an attack: …``, with what it rests on."""
    return _say("describe", row=row)[0]


def summarise(rows: Sequence[Line]) -> list[str]:
    """For the answer: which published ε are refuted, whether chance put a bound above its proof, and which came closest."""
    found = [f"Attacks: {said}" for said in _contradictions(rows, 0, proofs=False)]
    known = [r for r in rows if r.canaries is not None and r.epsilon_measured is not None and 0 < r.guaranteed < math.inf]
    if finite := [r for r in known if r.epsilon_measured <= r.guaranteed]:
        closest, bounds = max(finite, key=lambda r: r.epsilon_measured / r.guaranteed), num_attack_bounds(rows)
        beside, share = (
            bounds > sum(r.epsilon_measured is not None for r in rows),
            closest.epsilon_measured / closest.guaranteed,
        )
        found += _say("closest", row=closest, bounds=bounds, beside=beside, share=math.floor(100 * share))
    return found


def explain(rows: Sequence[Line], among: int = 0) -> list[str]:
    """What was attacked and what a bound means; first what contradicts a guarantee. among: as for ``contradictions``."""
    attacked = [r.canaries for r in rows if r.canaries is not None]
    guesses, bounds = sorted({c.guesses for told in attacked for c in told.counts}), max(among, num_attack_bounds(rows))
    said = _say("explain", attacked=attacked, guesses=guesses, bounds=bounds) if attacked else []
    return [*contradictions(rows, among), *said]


def contradictions(rows: Sequence[Line], among: int = 0) -> list[str]:
    """Rows whose measured ε exceeds what was proven (of the attacked path, if it is one), or what was published.

    Each bound is wrong with probability ``one_run.ONE_RUN_ALPHA``, and an exact attack on a sound row is that often just above
    the truth: what is called a contradiction holds when that probability is divided among all bounds of the report (``among``).
    """
    return _contradictions(rows, among, proofs=True)


def _contradictions(rows: Sequence[Line], among: int, proofs: bool) -> list[str]:
    """proofs: whether contradicted proofs are said, too."""
    bounds, attacked = max(among, num_attack_bounds(rows), 1), [r for r in rows if r.canaries is not None]
    broken = [r for r in attacked if refuted_among(r, bounds)]
    sound = [r for r in attacked if not any(r is one for one in broken)]
    by_chance = [r for r in sound if (r.epsilon_measured or 0.0) > r.guaranteed]
    claimed = [r for r in sound if r.epsilon_published is not None]
    refuted = [r for r in claimed if (r.canaries.epsilon(_ALPHA / bounds) or 0.0) > r.epsilon_published]
    if not proofs:
        broken, by_chance = [], [] if broken else by_chance
    return _say("contradictions", broken=broken, by_chance=by_chance, refuted=refuted, bounds=bounds)


def contradictions_by_name(rows: Sequence[Line], among: int = 0) -> list[str]:
    """As ``contradictions``, of attacks by name."""
    bounds = max(among, num_attack_bounds(rows), 1)
    told = [(row, one, one.epsilon(_ALPHA / bounds)) for row in rows for one in row.named if one.counts and one.one.comparable]
    broken = [(row, one, sure) for row, one, sure in told if sure is not None and sure > row.epsilon_provable]
    return _say("by_name", broken=broken, bounds=bounds)
