"""Prices what a file says: its ε, tables over missing facts, and the noise that a wanted ε needs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import ModuleType

import numpy as np

from fedgraph.errors import PricingError, PrivacyError
from fedgraph.pricing.base import Asked, Fix, Priced, Quote, Reading, Row, Setting, Unknown
from fedgraph.pricing.documents import Document

MOST_ROUNDS = 10**12
_STEPS = 60


def of(document: Document, reader: ModuleType, target: float | None) -> Quote:
    """The whole quote. ``PricingError`` in one line for numbers that mean nothing."""
    try:
        with np.errstate(all="ignore"):
            return _of(document, reader, target)
    except PrivacyError as error:
        raise PricingError(f"{document.path}: {' '.join(str(error).split())}") from None
    except (ArithmeticError, ValueError) as error:
        raise PricingError(f"{document.path}: a number in it is outside what can be priced ({error})") from None


def _of(document: Document, reader: ModuleType, target: float | None) -> Quote:
    reading: Reading = reader.read(document)
    facts = _facts(reading)
    rows = tuple(_priced(row, reading) for row in reading.rows(facts, 1.0))
    asked = tuple(_asked(reading, unknown, facts) for unknown in reading.unknowns)
    fix = None if target is None else _fix(reading, facts, target)
    return Quote(str(document.path), reader.SYSTEM, reader.VERSION, reader.SOURCE, reader.SAID, reading, rows, asked, fix)


def _facts(reading: Reading) -> dict[str, float]:
    """The missing facts at their worst, or at the first plausible value where there is no worst."""
    return {u.name: u.worst if u.worst is not None else u.values[0] for u in reading.unknowns}


def _bounded(reading: Reading) -> bool:
    return all(u.worst is not None for u in reading.unknowns)


def _priced(row: Row, reading: Reading) -> Priced:
    if row.rounds > MOST_ROUNDS:
        raise PricingError(f"{row.rounds:,} rounds; at most {MOST_ROUNDS:,} are priced")
    once = row.cost(1, row.delta)
    free = {"rounds", "delta"} & {u.name for u in reading.unknowns if u.worst is None}
    known = _bounded(reading) or math.isinf(once.epsilon) or (not free and not reading.unknowns)
    return Priced(row, once, row.cost(row.rounds, row.delta) if known else None)


def _asked(reading: Reading, unknown: Unknown, facts: Mapping[str, float]) -> Asked:
    answers = []
    for value in unknown.values:
        row = reading.rows({**facts, unknown.name: value}, 1.0)[0]
        answers.append((value, row.cost(row.rounds, row.delta).epsilon))
    return Asked(unknown, tuple(answers))


def _fix(reading: Reading, facts: Mapping[str, float], target: float) -> Fix:
    """The smallest factor on all noise (to 10⁻⁴) whose total is at most ``target``; settings are priced as they are written."""
    if reading.settings is None:
        return Fix(target, None, None, reading.no_fix or "no setting of this system changes this price")

    def cost(factor: float) -> float:
        row = reading.rows(facts, factor)[0]
        return row.cost(row.rounds, row.delta).epsilon

    low, high = 1.0, 1.0
    for _ in range(_STEPS):
        if cost(high) <= target:
            break
        low, high = high, high * 4
    else:
        return Fix(target, None, None, reading.no_fix or "more noise does not bring the price down to it")
    while cost(low) <= target and low > 1e-9:
        high, low = low, low / 4
    for _ in range(_STEPS):
        if high / low <= 1 + 1e-5:
            break
        middle = math.sqrt(low * high)
        low, high = (low, middle) if cost(middle) <= target else (middle, high)
    assumed = [f"{u.name} = {facts[u.name]:g}" for u in reading.unknowns]
    why = "the same system with these settings" + (f", if {', '.join(assumed)}" if assumed else "")
    return Fix(target, _written(reading.settings(high), reading.settings(high * 2)), cost(high), why)


def _written(settings: Mapping[str, Setting], noisier: Mapping[str, Setting]) -> dict[str, Setting]:
    """Six digits, towards more noise: up where more noise is a larger number, down where it is a smaller one."""
    out: dict[str, Setting] = {}
    for name, value in settings.items():
        other = noisier[name]
        if isinstance(value, float) and isinstance(other, (int, float)) and value > 0 and math.isfinite(value):
            scale = 10.0 ** (5 - math.floor(math.log10(value)))
            step = math.ceil(value * scale) if other >= value else math.floor(value * scale)
            out[name] = float(f"{step / scale:.6g}")
        else:
            out[name] = value
    return out
