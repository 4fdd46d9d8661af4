"""Every claim: as a list, as text (the DPAR table with both columns, then one line per claim), or as JSON."""

import json
import math
from collections.abc import Iterable
from functools import lru_cache

from fedgraph.privacy.claims import dpar, gap, gcon, local, sage
from fedgraph.privacy.claims.claim import Claim


@lru_cache(maxsize=1)
def rows() -> tuple[Claim, ...]:
    """Every claim, in the order of PRIVACY §4-§8, from our own accountants."""
    return (*dpar.rows(), *gap.rows(), *sage.rows(), *gcon.rows(), *local.rows())


def claimed_prices_as_json(claims: Iterable[Claim]) -> str:
    """A JSON list, one object per claim."""
    return json.dumps([c.to_dict() for c in claims], ensure_ascii=False, indent=1, allow_nan=False)


def claimed_prices_as_text(claims: Iterable[Claim] | None = None) -> str:
    """Everything ``rows()`` has, as text of at most 150 columns."""
    found = list(claims) if claims is not None else rows()
    ours = [c for c in found if c.paper == dpar.PAPER]
    rest = [c for c in found if c.paper != dpar.PAPER]
    lines = _dpar(ours) if ours else []
    paper = ""
    for claim in rest:
        if claim.paper != paper:
            paper = claim.paper
            lines += ["", paper, f"  {'':<50} {'claimed':>9} {'published':>10} {'provable':>10} {'lower':>8} {'delta':>8}"]
        lines.append(
            f"  {claim.mechanism:<50} {_as_number(claim.epsilon_claimed):>9} {_as_number(claim.epsilon_published):>10} "
            f"{_as_number(claim.epsilon_provable):>10} {_as_number(claim.epsilon_lower_bound):>8} {claim.delta:>8.3g}"
        )
        lines.append(f"      {claim.explanation}")
        lines.append(f"      with {_inputs(claim)}")
    return "\n".join(lines)


def _as_number(value: float | None) -> str:
    """Four digits; a dash for none, ∞ for infinity."""
    if value is None:
        return "–"
    return "∞" if math.isinf(value) else f"{value:.4g}"


def _dpar(claims: list[Claim]) -> list[str]:
    budgets = sorted({c.epsilon_claimed for c in claims})
    lines = [f"{dpar.PAPER}, Cora-ML, δ = {claims[0].delta:g}: what its noise is worth", ""]
    lines.append(f"  {'':<52} {'kind':<12}" + "".join(f"{'claimed ' + _as_number(b):>12}" for b in budgets))
    for mechanism in dict.fromkeys(c.mechanism for c in claims):
        same = {c.epsilon_claimed: c for c in claims if c.mechanism == mechanism}
        kind, _ = _shown(same[budgets[0]])
        lines.append(f"  {mechanism:<52} {kind:<12}" + "".join(f"{_as_number(_shown(same[b])[1]):>12}" for b in budgets))
        lines.append(f"      {same[budgets[0]].explanation}")
    lines += ["", "  inputs (one calibration for both columns)"]
    first = {b: next(c for c in claims if c.epsilon_claimed == b).inputs for b in budgets}
    for name in first[budgets[0]]:
        values = [first[b][name] for b in budgets]
        shown = [v if isinstance(v, str) else f"{v:.6g}" for v in dict.fromkeys(values)]
        lines.append(f"    {name:<26} {' | '.join(shown)}")
    lines.append(
        "  lower bounds: worst-case data, a viewer of every step; for a final model alone they bound the accounting only"
    )
    return lines


def _shown(claim: Claim) -> tuple[str, float | None]:
    if claim.epsilon_lower_bound is not None:
        return "lower bound", claim.epsilon_lower_bound
    if claim.epsilon_provable is not None:
        return "provable", claim.epsilon_provable
    return "published", claim.epsilon_published


def _inputs(claim: Claim) -> str:
    return ", ".join(f"{k} = {v if isinstance(v, str) else format(v, '.6g')}" for k, v in claim.inputs.items())
