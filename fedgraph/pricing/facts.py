"""Facts that a file leaves open, and options that it holds.

A reader asks ``Facts`` for each number that it needs. Where the file leaves it open, an answer of the user (``--given``) takes
its place; otherwise it becomes a question (``OpenFact``) whose values are tried one after the other: the reader reads again.
``Options`` reads a mapping key by key: what has no meaning for the price is named, and what nobody read is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

import yaml

from fedgraph.errors import PricingError
from fedgraph.plugins import suggest_plugin_name

Tree = None | bool | int | float | str | list["Tree"] | dict[str, "Tree"]
Table = dict[str, Tree]
_MOST_WHOLE, _LARGEST = 10**12, 1e60


@dataclass(frozen=True)
class OpenFact:
    """A fact that the file does not hold."""

    name: str  # what it is called; ``--given`` answers it by this name
    question: str  # the question in words
    values: tuple[float, ...]  # plausible values for a table, worst first
    worst: float | None = None  # a value that bounds every other, used for the total; None: no total


@dataclass(frozen=True)
class _Question:
    """An entry of ``questions.yaml``."""

    ask: str = ""  # the question, with places in braces for what it is about
    whether: str = ""  # the question, where yes or no answers it; ``no`` is then taken for granted
    values: tuple[float, ...] = ()  # plausible answers for a table, worst first
    worst: float | None = None  # an answer that bounds every other; None where there is none


QUESTIONS: Mapping[str, _Question] = {
    name: _Question(**{**entry, "values": tuple(map(float, entry.get("values", ())))})
    for name, entry in yaml.safe_load(resources.files("fedgraph.pricing").joinpath("questions.yaml").read_text("utf-8")).items()
}


@dataclass
class Facts:
    """What the user says of open facts, and what one reading of the file asked."""

    given: Mapping[str, float] = field(default_factory=dict)  # normal name of a fact → the user's answer
    tried: Mapping[str, float] = field(default_factory=dict)  # values that are tried one after the other, before ``given``
    louder: float = 1.0  # the factor on all noise of the file; 1 for the file as it is
    open: dict[str, OpenFact] = field(default_factory=dict)  # what was asked, by name
    notes: dict[str, None] = field(default_factory=dict)  # sentences on what is taken for granted (the keys, in their order)
    used: set[str] = field(default_factory=set)  # answers that were looked up
    place: tuple[Path, int] | None = None  # file and line of the first call that a price hangs on

    def again(self, louder: float, tried: Mapping[str, float]) -> Facts:
        """The same facts, for a file that is read again."""
        return Facts(self.given, {**self.tried, **{fact_name(name): value for name, value in tried.items()}}, louder)

    def known(self, name: str) -> float | None:
        """The answer to a fact that is missing, if there is one."""
        key = fact_name(name)
        self.used |= {key} & set(self.given)
        return self.tried.get(key, self.given.get(key))

    def ask(self, name: str, question: str, values: tuple[float, ...], worst: float | None = None) -> float:
        """The answer; or the worst, or the first plausible value: then it is asked."""
        if (answer := self.known(name)) is None:
            self.open.setdefault(name, OpenFact(name, question, values, worst))
            return worst if worst is not None else values[0]
        share = ("share" in name or "rate" in name) and max(values) <= 1
        if answer < 0 or (share and answer > 1) or (name == "delta" and not 0 < answer < 1):
            allowed = "in (0, 1)" if name == "delta" else "in [0, 1]" if share else "≥ 0"
            raise PricingError(f"--given {name}={answer:g}: allowed is a number {allowed}")
        return answer

    def whether(self, name: str, question: str) -> bool:
        """Yes or no; the price in the headline is that of no."""
        return bool(self.ask(name, f"{question} (1 for yes, 0 for no)", (0.0, 1.0), 0.0))


def fact_name(name: str) -> str:
    """A name as it is compared: small letters, one kind of gap, no dashes in front."""
    return re.sub(r"[\s_-]+", " ", name.strip().lower().lstrip("-"))


def scalar(text: str) -> Tree:
    """A word as a number, True, False, None or itself.

    >>> scalar("1e-5"), scalar("7"), scalar("True"), scalar("gap")
    (1e-05, 7, True, 'gap')
    """
    text = text.strip().strip("\"'")
    if not text.isascii():
        return text
    if re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        return int(text)
    if text.lower() in ("true", "false", "none", "null"):
        return {"true": True, "false": False}.get(text.lower())
    try:
        return float(text)
    except ValueError:
        return text


def table(value: object, *keys: str) -> Table:
    """The mapping at ``keys`` of ``value``, else an empty one: what is missing is then said by name."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def answers(pairs: Iterable[tuple[str, str, Tree]]) -> dict[str, float]:
    """Answers that a user gave.

    Args:
        pairs: As it was typed, the name of a fact, and its value.

    Returns:
        Normal name of a fact → its value. True is 1 and false is 0.

    Raises:
        PricingError: A value is no finite number, or a fact is answered twice.
    """
    out: dict[str, float] = {}
    for typed, name, value in pairs:
        number = scalar(value) if isinstance(value, str) else value
        if not name.strip() or not isinstance(number, (bool, int, float)) or not math.isfinite(number):
            raise PricingError(f"--given {typed!r}: {name.strip()!r} is {value!r}; a number is allowed, or true and false")
        if fact_name(name) in out:
            raise PricingError(f"--given {typed!r}: {name.strip()!r} is said twice")
        out[fact_name(name)] = float(number)
    return out


class Options:
    """The options of a file, or of a mapping inside it.

    Args:
        error: Makes an error of a message and the keys that it is about.
        data: The mapping.
        ignored: Options that are known and change no price.
        at: The keys under which the mapping stands, for messages.
    """

    def __init__(
        self, error: Callable[..., PricingError], data: Table, ignored: Iterable[str] = (), at: tuple[str, ...] = ()
    ) -> None:
        self._error, self._data, self._read, self._at = error, dict(data), set(ignored), at

    def error(self, name: str, message: str) -> PricingError:
        return self._error(message, *self._at, name)

    def has(self, *names: str) -> bool:
        return any(self._data.get(name) is not None for name in names)

    def raw(self, name: str) -> Tree:
        self._read.add(name)
        return self._data.get(name)

    def number(self, name: str, default: float | None = None, least: float = 0.0, above: bool = False) -> float | None:
        """A finite or infinite number ≥ ``least`` (> with ``above``); ``default`` where it is not given."""
        value = self.raw(name)
        if isinstance(value, str):
            value = scalar(value)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
            raise self.error(name, f"{name}: found {value!r}; a number is allowed")
        if math.isfinite(value) and value != 0 and not 1 / _LARGEST <= abs(value) <= _LARGEST:
            raise self.error(
                name, f"{name}: found {value:g}; numbers of size {1 / _LARGEST:g} to {_LARGEST:g} (or 0) are priced"
            )
        if value < least or (above and value == least):
            raise self.error(name, f"{name}: found {value}; allowed: {'>' if above else '≥'} {least:g}")
        return float(value)

    def need(self, name: str, least: float = 0.0, above: bool = False) -> float:
        """As ``number``; a missing key is an error."""
        if (found := self.number(name, None, least, above)) is None:
            raise self.error(name, f"missing option {name!r}; it is needed to price this file")
        return found

    def positive(self, name: str, default: float) -> float:
        """A number > 0; ``default`` where it is not given."""
        return self.number(name, default, above=True) or default

    def count(self, name: str, default: int, least: int = 1) -> int:
        """As ``whole``, with a default."""
        found = self.whole(name, default, least)
        return default if found is None else found

    def whole(self, name: str, default: int | None = None, least: int = 0) -> int | None:
        if (found := self.number(name, None, least)) is None:
            return default
        if not math.isfinite(found) or found > _MOST_WHOLE or found != int(found):
            raise self.error(name, f"{name}: found {found:g}; a whole number up to {_MOST_WHOLE:,} is allowed")
        return int(found)

    def delta(self, name: str = "delta", default: float | None = None) -> float | None:
        found = self.number(name, default)
        if found is not None and not found < 1:
            raise self.error(name, f"{name}: found {found:g}; a δ lies in [0, 1)")
        return found

    def choice(self, name: str, allowed: Iterable[str], default: str | None = None) -> str:
        value, allowed = self.raw(name), list(allowed)
        if value is None and default is not None:
            return default
        if value is None:
            raise self.error(name, f"missing option {name!r}; allowed: {', '.join(allowed)}")
        if str(value) not in allowed:
            hint = suggest_plugin_name(str(value), allowed)
            raise self.error(name, f"{name}: found {value!r}{hint}; allowed: {', '.join(allowed)}")
        return str(value)

    def flag(self, name: str, default: bool = False) -> bool:
        if (value := self.raw(name)) is None:
            return default
        if not isinstance(value, bool):
            raise self.error(name, f"{name}: found {value!r}; true or false is allowed")
        return value

    def table(self, name: str) -> Options:
        value = self.raw(name)
        if value is not None and not isinstance(value, dict):
            raise self.error(name, f"{name}: found {value!r}; a mapping of keys is expected")
        return Options(self._error, value or {}, (), (*self._at, name))

    def without_price(self, *names: str) -> None:
        """Options that are known and change no price (model, data, device, logging …)."""
        self._read |= set(names)

    @property
    def rest(self) -> tuple[str, ...]:
        """Options that nobody read."""
        return tuple(name for name in self._data if name not in self._read)

    def finish(self, *also: str) -> None:
        """``PricingError`` naming the first option that is not known. also: others that a file of another kind has."""
        for name in self.rest:
            allowed = sorted(self._read | set(also))
            hint = suggest_plugin_name(name, allowed)
            raise self.error(name, f"unknown option {name!r}{hint}; allowed: {', '.join(allowed)}")
