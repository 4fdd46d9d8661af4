"""Prices what a file says: its ε, tables over missing facts, and the noise that a wanted ε needs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType

import numpy as np

from fedgraph.errors import PricingError, PrivacyError
from fedgraph.plugins import suggest
from fedgraph.pricing.base import Asked, Fix, Priced, Quote, Reading, Row, Setting, Unknown
from fedgraph.pricing.documents import Document
from fedgraph.pricing.questions import Answers

MOST_ROUNDS = 10**12
_STEPS = 60


def of(document: Document, reader: ModuleType, target: float | None, given: Mapping[str, float] | None = None) -> Quote:
    """The whole quote. given: answers to its questions. ``PricingError`` in one line for numbers that mean nothing."""
    try:
        with np.errstate(all="ignore"):
            return _of(document, reader, target, given or {})
    except PrivacyError as error:
        raise PricingError(f"{document.path}: {' '.join(str(error).split())}") from None
    except (ArithmeticError, ValueError) as error:
        raise PricingError(f"{document.path}: a number in it is outside what can be priced ({error})") from None


def _of(document: Document, reader: ModuleType, target: float | None, given: Mapping[str, float]) -> Quote:
    answers = Answers(given)
    document = replace(document, answers=answers)
    reading: Reading = reader.read(document)
    missing = reading.unknowns
    said = {u.name: _within(answers.known(u.name), u, document) for u in missing}
    facts = {u.name: _worst(u) if (answer := said[u.name]) is None else answer for u in missing}
    if unused := answers.unused():
        asked = sorted({u.name for u in (*answers.open.values(), *missing)})
        allowed = f"asked here: {', '.join(asked)}" if asked else "nothing is asked here"
        raise PricingError(f"{document.path}: --given {unused[0]!r} answers no question{suggest(unused[0], asked)}; {allowed}")
    reading = replace(reading, unknowns=(*answers.open.values(), *(u for u in missing if said[u.name] is None)))
    if answers.notes:
        reading = replace(reading, assumed=(*reading.assumed, *answers.notes))
    rows = tuple(_priced(row, reading) for row in reading.rows(facts, 1.0))
    tables = [_reread(document, reader, answers, unknown, facts) for unknown in answers.open.values()]
    tables += [_asked(reading, u, facts) for u in missing if said[u.name] is None]
    fix = None if target is None else _fix(reading, facts, target)
    said_of = (reader.SYSTEM, reader.VERSION, reader.SOURCE, reader.SAID)
    return Quote(str(document.path), *said_of, reading, rows, tuple(tables), fix, answers.place)


def _worst(unknown: Unknown) -> float:
    """A missing fact at its worst, or at the first plausible value where there is no worst."""
    return unknown.worst if unknown.worst is not None else unknown.values[0]


def _within(answer: float | None, unknown: Unknown, document: Document) -> float | None:
    """An answer that can be one: a share or a δ in [0, 1], a count ≥ 0."""
    share = max(unknown.values) <= 1 and min(unknown.values) > 0
    if answer is not None and (answer < 0 or (share and answer > 1) or (unknown.name == "delta" and not 0 < answer < 1)):
        allowed = "in (0, 1)" if unknown.name == "delta" else "in [0, 1]" if share else "≥ 0"
        raise PricingError(f"{document.path}: --given {unknown.name}={answer:g}: allowed is a number {allowed}")
    return answer


def _reread(document: Document, reader: ModuleType, answers: Answers, unknown: Unknown, facts: Mapping[str, float]) -> Asked:
    """The headline for each value of a fact that decides how the file is read."""
    found = []
    for value in unknown.values:
        other: Reading = reader.read(replace(document, answers=answers.trying(unknown.name, value)))
        row = other.rows({u.name: facts.get(u.name, _worst(u)) for u in other.unknowns}, 1.0)[0]
        found.append((value, row.cost(row.rounds, row.delta).epsilon))
    return Asked(unknown, tuple(found))


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
