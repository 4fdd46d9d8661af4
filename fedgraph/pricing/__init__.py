"""What does the privacy that is already deployed buy? Existing configurations, read as data and priced.

    price(path, system=None, fix=None) -> Quote       one file
    price_document(document, system, fix) -> Quote    the same, where the file is read already

A reader is a function of a file of ``readers``, named by its entry of ``catalogue.yaml`` (``readings`` states the contract).
The file is parsed, never run (``documents``, ``python_program``); the reader says what stands in it; here the accountants are
asked; ``quotes`` shows it. This room knows privacy and no learning: nothing here needs torch or Ray.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from fedgraph import plugins
from fedgraph.errors import PricingError, PrivacyError
from fedgraph.pricing import documents
from fedgraph.pricing.catalogue import catalogue_entries
from fedgraph.pricing.catalogue import systems as systems
from fedgraph.pricing.documents import PricedDocument, priced_document_reader
from fedgraph.pricing.open_facts import OpenFact, OpenFactAnswers
from fedgraph.pricing.parsers import parse_fact_name
from fedgraph.pricing.quotes import Quote, QuotedFix, QuotedQuestion, QuotedRow
from fedgraph.pricing.readings import Reading, ReadingRow, reading_in_clear

_MOST_ROUNDS = 10**12
_LOUDEST = 4.0**59  # times the noise of the file


def price(
    path: str | Path, system: str | None = None, fix: float | None = None, given: Mapping[str, float] | None = None
) -> Quote:
    """Price what an existing configuration buys. The file is read as data; nothing in it is run.

    Args:
        path: The configuration: a script, YAML, TOML or JSON of another system, or a neutral YAML.
        system: A key of ``systems()``, where the file does not tell whose it is.
        fix: An ε > 0; the quote then holds the settings of the same system that honestly buy it.
        given: Answers to its questions, by their names, such as ``{"sampling rate": 0.01, "steps": 2000}``.

    Returns:
        The quote: what the file claims, the ε (at its δ) that its noise provably buys, what is not protected, and questions
        where a fact is missing.

    Raises:
        PricingError: The file cannot be read, holds an option that is not known, or belongs to no system known here.

    Example:
        >>> import fedgraph
        >>> fedgraph.price("pyproject.toml", fix=8.0).headline
    """
    document = documents.read_priced_document(Path(path))
    return price_document(document, priced_document_reader(document, system), fix, given)


def price_document(
    document: PricedDocument, system: str, fix: float | None = None, given: Mapping[str, float] | None = None
) -> Quote:
    """Price a document that is read already.

    Args:
        document: The parsed file.
        system: A key of ``systems()``.
        fix: An ε > 0 to be bought honestly, or None.
        given: Answers to its questions, by their names.

    Returns:
        The quote of the document.

    Raises:
        PricingError: ``fix`` is not above 0, the document holds an option that the reader does not know, or its numbers mean
            nothing.
    """
    if fix is not None and not fix > 0:
        raise PricingError(f"--fix {fix:g}: an ε to buy is a number > 0")
    named = {parse_fact_name(name): value for name, value in (given or {}).items()}
    answers = OpenFactAnswers(named, programs=document.answers.programs)
    try:
        with np.errstate(all="ignore"):
            return _quoted(replace(document, answers=answers, system=system), fix)
    except PrivacyError as error:
        raise PricingError(f"{document.path}: {' '.join(str(error).split())}") from None
    except PricingError as error:
        raise PricingError(f"{document.path}: {error}" if str(error).startswith("--given") else str(error)) from None
    except (ArithmeticError, ValueError) as error:
        raise PricingError(f"{document.path}: a number in it is outside what can be priced ({error})") from None


def _read(document: PricedDocument) -> Reading:
    """What the system's reader finds in a document."""
    module, _, function = (catalogue_entries()[document.system].reader or f"{document.system}.read").partition(".")
    found: Reading = vars(plugins.load("pricing.readers", module))[function](document)
    if not (why := document.exchanged()):
        return found
    row = found.rows[0]
    return reading_in_clear(row.unit, row.viewer, why, "leave the library as it is", row.rounds, row.relation)


def _quoted(document: PricedDocument, target: float | None) -> Quote:
    answers, system, reading = document.answers, catalogue_entries()[document.system], _read(document)
    if unused := sorted(set(answers.given) - answers.used):
        asked = sorted(answers.open)
        allowed = f"asked here: {', '.join(asked)}" if asked else "nothing is asked here"
        suggested = plugins.suggest_plugin_name(unused[0], asked)
        raise PricingError(f"{document.path}: --given {unused[0]!r} answers no question{suggested}; {allowed}")
    folder = document.path if document.path.is_dir() else document.path.parent
    newer = tuple(system.newer(folder)) if document.path.exists() and system.checked else ()
    above = [row.delta for row in reading.rows if reading.people and row.delta > 1 / reading.people]
    said = f"δ = {above[0]:g} is above 1/{reading.people:,.0f}, one over the number of those protected: " if above else ""
    more = (f"{said}it allows giving one of them away.",) if above else ()
    reading = replace(reading, order=(*reading.order, *more), assumed=(*reading.assumed, *newer, *answers.notes))
    rows = tuple(_priced(row, all(u.worst is not None for u in answers.open.values())) for row in reading.rows)
    tables = tuple(_asked(document, unknown) for unknown in answers.open.values())
    fix = None if target is None else _fix(document, reading, target)
    return Quote(str(document.path), system, reading, rows, tables, fix, answers.place)


def _priced(row: ReadingRow, bounded: bool) -> QuotedRow:
    if row.rounds > _MOST_ROUNDS:
        raise PricingError(f"{row.rounds:,} rounds; at most {_MOST_ROUNDS:,} are priced")
    once = row.cost(1, row.delta)
    return QuotedRow(row, once, row.cost(row.rounds, row.delta) if bounded or math.isinf(once.epsilon) else None)


def _again(document: PricedDocument, louder: float = 1.0, **tried: float) -> tuple[Reading, Callable[[], float]]:
    """The file read with another factor or answer, and what its headline costs then."""
    reading = _read(replace(document, answers=document.answers.again(louder, tried)))
    row = reading.rows[0]
    return reading, lambda: row.cost(row.rounds, row.delta).epsilon


def _asked(document: PricedDocument, unknown: OpenFact) -> QuotedQuestion:
    """The headline for each plausible answer."""
    return QuotedQuestion(unknown, tuple((v, _again(document, **{unknown.name: v})[1]()) for v in unknown.values))


def _fix(document: PricedDocument, reading: Reading, target: float) -> QuotedFix:
    """The smallest factor on all noise (to 10⁻⁴) whose total is at most ``target``; settings are priced as they are written."""
    if reading.settings is None:
        return QuotedFix(target, None, None, reading.no_fix or "no setting of this system changes this price")

    def cost(factor: float) -> float:
        return _again(document, factor)[1]()

    low, high = 1.0, 1.0
    while cost(high) > target:
        if high >= _LOUDEST:
            return QuotedFix(target, None, None, reading.no_fix or "more noise does not bring the price down to it")
        low, high = high, high * 4
    while cost(low) <= target and low > 1e-9:
        high, low = low, low / 4
    while high / low > 1 + 1e-5:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if cost(middle) <= target else (middle, high)
    assumed = [f"{u.name} = {u.worst if u.worst is not None else u.values[0]:g}" for u in document.answers.open.values()]
    why = "the same system with these settings" + (f", if {', '.join(assumed)}" if assumed else "")
    settings, noisier = (_again(document, factor)[0].settings or {} for factor in (high, high * 2))
    # Six digits, towards more noise: up where more noise is a larger number, down where it is a smaller one.
    out: dict[str, float | int | str] = {}
    for name, setting in settings.items():
        value, other = (v() if callable(v) else v for v in (setting, noisier[name]))
        if isinstance(value, float) and isinstance(other, (int, float)) and value > 0 and math.isfinite(value):
            scale = 10.0 ** (5 - math.floor(math.log10(value)))
            step = math.ceil(value * scale) if other >= value else math.floor(value * scale)
            out[name] = float(f"{step / scale:.6g}")
        else:
            out[name] = value
    return QuotedFix(target, out, cost(high), why)
