"""Recording, reading and asking: a reader's facts become a ``Quote``, an open fact a question with prices for answers."""

import math
import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from fedgraph import plugins, privacy
from fedgraph.errors import PricingError, PrivacyError
from fedgraph.pricing import documents
from fedgraph.pricing.documents import Document, OpenFact, Table, catalogue, fact_name, scalar
from fedgraph.pricing.quotes import Fix, PricedRow, Question, Quote
from fedgraph.pricing.readers.record import replayed
from fedgraph.pricing.readings import Reading, Row
from fedgraph.pricing.recorder import Record, Recording
from fedgraph.privacy import Epsilon, Repeated

_MOST_ROUNDS = 10**12
_LOUDEST = 4.0**59  # times the noise of the file
_LONGEST_END = 5.0  # seconds that processes of a command may run on after it
_ANSWERS = (".yaml", ".yml", ".json", ".toml")


class Recorded(Recording):
    """A recording that is priced."""

    def price(self, delta: float, given: Mapping[str, float] | None = None, fix: float | None = None) -> Quote:
        """What the recorded training costs.

        Args:
            delta: The δ of the total, in (0, 1).
            given: Answers to its questions, by their names.
            fix: An ε > 0 that the quote then says how to buy, or None.

        Returns:
            The quote. Its total is None where a question has no answer yet, and ∞ where something is in clear.

        Raises:
            PricingError: Nothing private was seen, or an answer means nothing.
        """
        return _price_records([self.record()], {"delta": delta, **(given or {})}, fix, "the recorded run")


def recorded() -> Recorded:
    """What private training does inside ``with``, counted while it runs.

    Returns:
        A recording. Opacus, Flower's and FLARE's filters tell it what they do; a loop of one's own calls ``batch``, ``noised``
        and ``clear`` of it.

    Example:
        >>> import fedgraph
        >>> with fedgraph.recorded() as r:
        ...     for _ in range(1000):
        ...         r.batch(range(60_000), rate=0.01)
        ...         r.noised(noise_multiplier=1.1)
        >>> r.price(delta=1e-5).headline.total.epsilon < 1.6
        True
    """
    return Recorded()


def run(command: str | Sequence[str], given: Mapping[str, float] | None = None, fix: float | None = None) -> Quote:
    """Run a command, and price what its Python processes did.

    Args:
        command: Such as ``"python train.py --epochs 3"``. It runs as it stands, without a shell, and writes to this terminal.
        given: Answers to questions, by their names; ``delta`` among them.
        fix: An ε > 0 to be bought, or None.

    Raises:
        PricingError: The command cannot be started, fails, or does nothing private that is seen.
    """
    words = shlex.split(command) if isinstance(command, str) else list(command)
    with tempfile.TemporaryDirectory(prefix="fedgraph-") as folder:
        home = Path(__file__).parent / "launch"
        paths = [str(home), *filter(None, [os.environ.get("PYTHONPATH")])]
        held = {**os.environ, "FEDGRAPH_RECORD": folder, "PYTHONPATH": os.pathsep.join(paths)}
        try:
            status = subprocess.run(words, env=held, stdout=2, check=False).returncode
        except (OSError, IndexError) as error:
            raise PricingError(f"--run {shlex.join(words)}: cannot be started: {error}") from None
        if status != 0:
            raise PricingError(f"--run {shlex.join(words)}: ended with status {status}; what a broken run did is not priced")
        until = time.monotonic() + _LONGEST_END
        records = [replayed(path, until) for path in sorted(Path(folder).glob("*.jsonl"))]
    return _price_records(records, given, fix, shlex.join(words))


def _price_records(records: Sequence[Record], given: Mapping[str, float] | None, fix: float | None, name: str) -> Quote:
    return _price_document(Document(Path(name), "record", records=records), "record", fix, given)


def price(
    path: str | Path, system: str | None = None, fix: float | None = None, given: Mapping[str, float] | None = None
) -> Quote:
    """Price what an existing configuration buys. The file is read as data; nothing in it is run.

    Args:
        path: The configuration: YAML, TOML or JSON of another system, a command line, or a neutral YAML. A Python file or a
            notebook is searched for its DP calls, and asks: what a program does only a recorded run tells (``run``).
        system: A key of ``catalogue.yaml`` (``fedgraph list systems``), where the file does not tell whose it is.
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
    document = documents.read(Path(path))
    return _price_document(document, documents.system_of(document, system), fix, given)


def price_command(
    text: str, system: str | None = None, fix: float | None = None, given: Mapping[str, float] | None = None
) -> Quote:
    """Price a command line as data; nothing is run. Arguments and errors as ``price``."""
    document = documents.from_text(Path("command line"), text)
    return _price_document(document, documents.system_of(document, system), fix, given)


def given_facts(facts: Sequence[str]) -> dict[str, float]:
    """Normal name of a fact → its value, from a command line: ``name=number``, or a path of a YAML, JSON or TOML file of them.

    Raises:
        PricingError: Something is neither of both, is no finite number, or is said twice.
    """
    out: dict[str, float] = {}
    for fact in facts:
        name, equals, said = fact.partition("=")
        if not equals and Path(fact).suffix not in _ANSWERS:
            allowed = f'a fact is NAME=NUMBER, such as --given "sampling rate=0.01", or a file {_ANSWERS}'
            raise PricingError(f"--given {fact!r}: {allowed}")
        held: Table = {name: scalar(said)} if equals else documents.read(Path(fact)).data
        for key, value in held.items():  # true is 1, and false is 0
            number = scalar(value) if isinstance(value, str) else value
            if not key.strip() or not isinstance(number, (bool, int, float)) or not math.isfinite(number):
                raise PricingError(f"--given {fact!r}: {key.strip()!r} is {value!r}; a number is allowed, or true and false")
            if fact_name(key) in out:
                raise PricingError(f"--given {fact!r}: {key.strip()!r} is said twice")
            out[fact_name(key)] = float(number)
    return out


def _price_document(document: Document, system: str, fix: float | None, given: Mapping[str, float] | None) -> Quote:
    if fix is not None and not fix > 0:
        raise PricingError(f"--fix {fix:g}: an ε to buy is a number > 0")
    said = {fact_name(name): float(value) for name, value in (given or {}).items()}
    try:
        with np.errstate(all="ignore"):
            return _quoted(replace(document, given=said, system=system), fix)
    except PrivacyError as error:
        raise PricingError(f"{document.path}: {' '.join(str(error).split())}") from None
    except PricingError as error:
        raise PricingError(f"{document.path}: {error}" if str(error).startswith("--given") else str(error)) from None
    except (ArithmeticError, ValueError) as error:
        raise PricingError(f"{document.path}: a number in it is outside what can be priced ({error})") from None


def _read(document: Document, louder: float = 1.0, **tried: float) -> Reading:
    """What the system's reader finds in a document, with another factor on its noise, or another answer."""
    if louder != 1.0 or tried:  # what is asked then is not told
        answers = {fact_name(name): value for name, value in tried.items()}
        document = replace(document, tried=answers, louder=louder, open={}, notes={}, used=set())
    module, _, function = catalogue()[document.system].reader.partition(".")
    found: Reading = vars(plugins.load("pricing.readers", module))[function](document)
    return found


def _quoted(document: Document, target: float | None) -> Quote:
    system, reading = catalogue()[document.system], _read(document)
    if unused := sorted(set(document.given) - document.used):
        asked = sorted(document.open)
        allowed = f"asked here: {', '.join(asked)}" if asked else "nothing is asked here"
        suggested = plugins.suggest_plugin_name(unused[0], asked)
        raise PricingError(f"{document.path}: --given {unused[0]!r} answers no question{suggested}; {allowed}")
    above = [row.delta for row in reading.rows if reading.people and row.delta > 1 / reading.people]
    said = f"δ = {above[0]:g} is above 1/{reading.people:,.0f}, one over the number of those protected: " if above else ""
    more = (f"{said}it allows giving one of them away.",) if above else ()
    reading = replace(reading, order=(*reading.order, *more), assumed=tuple(document.notes))
    closed = reading.closed and all(fact.worst is not None for fact in document.open.values())
    rows = tuple(_priced(row, closed) for row in reading.rows)
    tables = tuple(_asked(document, fact) for fact in document.open.values())
    fix = None if target is None else _fix(document, reading, target)
    return Quote(str(document.path), system, reading, rows, tables, fix)


def _priced(row: Row, closed: bool) -> PricedRow:
    if row.rounds > _MOST_ROUNDS:
        raise PricingError(f"{row.rounds:,} rounds; at most {_MOST_ROUNDS:,} are priced")
    once = privacy.price(row.event, row.delta)
    return PricedRow(row, once, _total(row) if closed or math.isinf(once.epsilon) else None)


def _total(row: Row) -> Epsilon:
    return replace(privacy.price(Repeated(row.event, row.rounds), row.delta), delta=row.delta)


def _asked(document: Document, fact: OpenFact) -> Question:
    """The headline for each plausible answer."""
    return Question(fact, tuple((v, _total(_read(document, **{fact.name: v}).rows[0]).epsilon) for v in fact.values))


def _fix(document: Document, reading: Reading, target: float) -> Fix:
    """The smallest factor on all noise (to 10⁻⁴) whose total is at most ``target``; settings are priced as they are written."""
    if reading.settings is None:
        return Fix(target, None, None, "no single setting of this file adds noise to all of it")

    def cost(factor: float) -> float:
        return _total(_read(document, factor).rows[0]).epsilon

    low, high = 1.0, 1.0
    while cost(high) > target:
        if high >= _LOUDEST:
            return Fix(target, None, None, "more noise alone does not bring the price down to it")
        low, high = high, high * 4
    while cost(low) <= target and low > 1e-9:
        high, low = low, low / 4
    while high / low > 1 + 1e-5:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if cost(middle) <= target else (middle, high)
    assumed = [f"{u.name} = {u.worst if u.worst is not None else u.values[0]:g}" for u in document.open.values()]
    why = "the same system with these settings" + (f", if {', '.join(assumed)}" if assumed else "")
    settings, noisier = (_read(document, factor).settings or {} for factor in (high, high * 2))
    out: dict[str, float] = {}
    for name, value in settings.items():  # six digits, towards more noise: up where more noise is a larger number
        if value > 0 and math.isfinite(value):
            scale = 10.0 ** (5 - math.floor(math.log10(value)))
            step = math.ceil(value * scale) if noisier[name] >= value else math.floor(value * scale)
            out[name] = float(f"{step / scale:.6g}")
        else:
            out[name] = value
    return Fix(target, out, cost(high), why)
