"""The largest probability of what was found, under a curve: what the refutation is held against."""

from fedgraph.audit.curve import InverseAuditCurve, OneRunCount, _needed_mass


def p_value(found: OneRunCount, least: InverseAuditCurve) -> float:
    """The largest P[V ≥ v] under the curve: 1 where nothing speaks against it."""
    if not found.guesses or _needed_mass(found, least, 1.0) <= 1.0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _needed_mass(found, least, middle) <= 1.0 else (low, middle)
    return high
