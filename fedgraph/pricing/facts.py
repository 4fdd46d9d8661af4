"""Facts that a file leaves open, and the keys that it may hold.

A reader asks ``Facts`` for each number that it needs. Where the file leaves it open, an answer of the user (``--given``) takes
its place; otherwise it becomes a question (``OpenFact``) whose values are tried one after the other: the reader reads again.
``read_options`` reads the keys of a mapping as ``catalogue.yaml`` describes them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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


QUESTIONS: Mapping[str, Mapping[str, Any]] = yaml.safe_load(
    resources.files("fedgraph.pricing").joinpath("questions.yaml").read_text("utf-8")
)


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


# Mappings of other systems. Their numbers are plain ones: no truth values, no NaN, of a size that is meant.


class WrongKeyError(ValueError):
    """What is wrong with a mapping of another system, and the keys on the way there."""

    def __init__(self, words: str, *keys: str) -> None:
        super().__init__(words)
        self.keys = keys


# The kinds of ``catalogue.yaml``: of numbers the least, the largest, whether they are whole, and what is allowed in words.
_NUMBERS: Mapping[str, tuple[float, float, bool, str]] = {
    "amount": (0.0, math.inf, False, "allowed: ≥ 0"),
    "positive": (5e-324, math.inf, False, "allowed: > 0"),
    "number": (-1.0, math.inf, False, "allowed: ≥ -1"),
    "times": (0.0, math.inf, True, "allowed: ≥ 0"),
    "count": (1.0, math.inf, True, "allowed: ≥ 1"),
    "share": (0.0, 1.0, False, "a rate or a probability lies in [0, 1]"),
    "delta": (0.0, math.nextafter(1, 0), False, "a δ lies in [0, 1)"),
}
_OTHERS: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "truth": (bool, "true or false is allowed"), "word": (str, "a word is expected"),
    "words": ((str, list), "a word or a list of words is expected"), "mapping": (dict, "a mapping of keys is expected"),
    "any": (object, ""),
}  # fmt: skip


def read_options(described: Mapping[str, Any], held: Mapping[str, Any], *at: str) -> Any:
    """The keys of a mapping as attributes; the names of others in ``rest``, in one line: they are told as not priced.

    Args:
        described: Key (and, after |, its other names) → what it may be: a kind, or words between | of which one is allowed, with
            the default after =; a mapping of such keys (None where it is left out and a key of it has no default); a list of one
            such mapping for a list of them. ``only``: other keys are refused.
        held: The mapping.
        at: The keys on the way to it.

    Raises:
        WrongKeyError: A key is missing or unknown, or its value is none that is allowed.
    """
    left, found = dict(held), dict[str, Any]()
    for key, kind in described.items():
        names = key.split("|")
        name = next((name for name in names if name in left), names[0])
        if key != "only":
            found[names[0]] = _option(kind, name in left, left.pop(name, None), *at, name)
    if left and described.get("only"):
        name, allowed = next(iter(left)), sorted(key.partition("|")[0] for key in described if key != "only")
        words = f"unknown option {name!r}{suggest_plugin_name(name, allowed)}; allowed: {', '.join(allowed)}"
        raise WrongKeyError(words, *at, name)
    return SimpleNamespace(**found, rest=(", ".join(left),) if left else ())


def _option(described: Any, there: bool, value: Any, *at: str) -> Any:
    if isinstance(described, list):
        if not isinstance(value if there else [], list):
            raise WrongKeyError(f"{at[-1]}: found {value!r}; a list is expected", *at)
        return [_option(described[0], True, each, *at, str(number)) for number, each in enumerate(value or ())]
    if isinstance(described, Mapping):
        optional = any(isinstance(kind, str) and " = " not in kind for kind in described.values())
        if optional and value is None:
            return None
        if not isinstance(value if there else {}, dict):
            raise WrongKeyError(f"{at[-1]}: found {value!r}; a mapping of keys is expected", *at)
        return read_options(described, value or {}, *at)
    kind, equals, default = described.partition(" = ")
    start = scalar(default)
    if not there and not equals:
        raise WrongKeyError(f"missing option {at[-1]!r}; it is needed to price this file", *at)
    value = value if there else start
    if value is None and equals and start is None:
        return None
    if kind in _NUMBERS:
        return _number(kind, value, *at)
    if kind not in _OTHERS:
        if value not in (allowed := kind.split("|")):
            words = f"{at[-1]}: found {value!r}{suggest_plugin_name(str(value), allowed)}; allowed: {', '.join(allowed)}"
            raise WrongKeyError(words, *at)
        return value
    wanted, words = _OTHERS[kind]
    if not isinstance(value, wanted) or (kind == "words" and not all(isinstance(word, str) for word in value)):
        raise WrongKeyError(f"{at[-1]}: found {value!r}; {words}", *at)
    return value


def _number(kind: str, value: object, *at: str) -> float:
    """A number, also one that is quoted."""
    least, most, whole, allowed = _NUMBERS[kind]
    found = scalar(value) if isinstance(value, str) else value
    if isinstance(found, bool) or not isinstance(found, (int, float)) or math.isnan(found):
        raise WrongKeyError(f"{at[-1]}: found {found!r}; a number is allowed", *at)
    if found != 0 and not 1 / _LARGEST <= abs(found) <= _LARGEST:
        allowed = f"numbers of size {1 / _LARGEST:g} to {_LARGEST:g} (or 0) are priced"
    elif least <= found <= most:
        if not whole:
            return float(found)
        if found <= _MOST_WHOLE and found == int(found):
            return int(found)
        allowed = f"a whole number up to {_MOST_WHOLE:,} is allowed"
    raise WrongKeyError(f"{at[-1]}: found {found:g}; {allowed}", *at)
