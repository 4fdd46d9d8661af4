"""Prices what a file says: its ε, tables over missing facts, and the noise that a wanted ε needs."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import ModuleType

import numpy as np

from fedgraph.errors import PricingError, PrivacyError
from fedgraph.plugins import suggest
from fedgraph.pricing import catalogue
from fedgraph.pricing.base import Asked, Fix, Priced, Quote, Reading, Row, Setting, Unknown
from fedgraph.pricing.documents import Document
from fedgraph.pricing.python_joins import normal
from fedgraph.pricing.questions import Answers

MOST_ROUNDS = 10**12
_STEPS = 60


def ask_accountants(
    document: Document, reader: ModuleType, target: float | None, given: Mapping[str, float] | None = None
) -> Quote:
    """The whole quote. given: answers to its questions. ``PricingError`` in one line for numbers that mean nothing."""
    given = {normal(name): value for name, value in (given or {}).items()}
    try:
        with np.errstate(all="ignore"):
            return _quoted(replace(document, answers=Answers(given, programs=document.answers.programs)), reader, target)
    except PrivacyError as error:
        raise PricingError(f"{document.path}: {' '.join(str(error).split())}") from None
    except PricingError as error:
        raise PricingError(f"{document.path}: {error}" if str(error).startswith("--given") else str(error)) from None
    except (ArithmeticError, ValueError) as error:
        raise PricingError(f"{document.path}: a number in it is outside what can be priced ({error})") from None


def _quoted(document: Document, reader: ModuleType, target: float | None) -> Quote:
    answers, system = document.answers, catalogue.entries()[reader.__name__.rsplit(".", 1)[-1]]
    reading: Reading = reader.read(document)
    if unused := sorted(set(answers.given) - answers.used):
        asked = sorted(answers.open)
        allowed = f"asked here: {', '.join(asked)}" if asked else "nothing is asked here"
        raise PricingError(f"{document.path}: --given {unused[0]!r} answers no question{suggest(unused[0], asked)}; {allowed}")
    folder = document.path if document.path.is_dir() else document.path.parent
    newer = tuple(system.newer(folder)) if document.path.exists() and system.checked else ()
    above = [row.delta for row in reading.rows if reading.people and row.delta > 1 / reading.people]
    said = f"δ = {above[0]:g} is above 1/{reading.people:,.0f}, one over the number of those protected: " if above else ""
    more = (f"{said}it allows giving one of them away.",) if above else ()
    reading = replace(reading, order=(*reading.order, *more), assumed=(*reading.assumed, *newer, *answers.notes))
    bounded = all(u.worst is not None for u in answers.open.values())
    rows = tuple(_priced(row, bounded) for row in reading.rows)
    tables = tuple(_asked(document, reader, unknown) for unknown in answers.open.values())
    fix = None if target is None else _fix(document, reader, reading, target)
    return Quote(str(document.path), system, reading, rows, tables, fix, answers.place)


def _priced(row: Row, bounded: bool) -> Priced:
    if row.rounds > MOST_ROUNDS:
        raise PricingError(f"{row.rounds:,} rounds; at most {MOST_ROUNDS:,} are priced")
    once = row.cost(1, row.delta)
    return Priced(row, once, row.cost(row.rounds, row.delta) if bounded or math.isinf(once.epsilon) else None)


def _again(
    document: Document, reader: ModuleType, louder: float = 1.0, tried: Mapping[str, float] | None = None
) -> tuple[Reading, Callable[[], float]]:
    """The file read with another factor or answer, and what its headline costs then."""
    reading: Reading = reader.read(replace(document, answers=document.answers.again(louder, tried or {})))
    row = reading.rows[0]
    return reading, lambda: row.cost(row.rounds, row.delta).epsilon


def _asked(document: Document, reader: ModuleType, unknown: Unknown) -> Asked:
    """The headline for each plausible answer."""
    return Asked(unknown, tuple((v, _again(document, reader, tried={unknown.name: v})[1]()) for v in unknown.values))


def _fix(document: Document, reader: ModuleType, reading: Reading, target: float) -> Fix:
    """The smallest factor on all noise (to 10⁻⁴) whose total is at most ``target``; settings are priced as they are written."""
    if reading.settings is None:
        return Fix(target, None, None, reading.no_fix or "no setting of this system changes this price")

    def cost(factor: float) -> float:
        return _again(document, reader, factor)[1]()

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
    assumed = [f"{u.name} = {u.worst if u.worst is not None else u.values[0]:g}" for u in document.answers.open.values()]
    why = "the same system with these settings" + (f", if {', '.join(assumed)}" if assumed else "")
    settings, noisier = (_again(document, reader, factor)[0].settings or {} for factor in (high, high * 2))
    return Fix(target, _written(settings, noisier), cost(high), why)


def _written(settings: Mapping[str, Setting], noisier: Mapping[str, Setting]) -> dict[str, float | int | str]:
    """Six digits, towards more noise: up where more noise is a larger number, down where it is a smaller one."""
    out: dict[str, float | int | str] = {}
    for name, setting in settings.items():
        later = noisier[name]
        value, other = (v() if callable(v) else v for v in (setting, later))
        if isinstance(value, float) and isinstance(other, (int, float)) and value > 0 and math.isfinite(value):
            scale = 10.0 ** (5 - math.floor(math.log10(value)))
            step = math.ceil(value * scale) if other >= value else math.floor(value * scale)
            out[name] = float(f"{step / scale:.6g}")
        else:
            out[name] = value
    return out
