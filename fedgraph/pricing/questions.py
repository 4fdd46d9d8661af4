"""Facts that a configuration leaves open: what the user says of them, and what is asked.

A reader asks ``Answers`` for each number that it needs. A number that the file decides is given back as it is. Where the file
leaves it open, an answer of the user (``--given``) takes its place; otherwise it becomes a question (``Unknown``), whose values
are tried one after the other: the reader reads the file again with each.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from fedgraph.errors import PricingError
from fedgraph.pricing import python_values as values
from fedgraph.pricing.base import Unknown
from fedgraph.pricing.command_lines import Tree, scalar
from fedgraph.pricing.python_values import Call, Choice, Unresolved, Value, normal

PLAUSIBLE: Mapping[str, tuple[float, ...]] = {
    "noise_multiplier": (0.5, 1.0, 2.0, 4.0),
    "delta": (1e-4, 1e-5, 1e-6, 1e-7),
    "epochs": (100.0, 30.0, 10.0, 1.0),
    "expected_participations": (100.0, 10.0, 1.0),
    "steps": (100000.0, 10000.0, 1000.0, 100.0),
    "sampling rate": (0.1, 0.01, 0.001),
}
FILES = (".yaml", ".yml", ".json", ".toml")


class Facts(Protocol):
    """A file as data."""

    @property
    def data(self) -> dict[str, Tree]: ...


class Answers:
    """given: what the user says. tried: the value of one open fact."""

    def __init__(self, given: Mapping[str, float] | None = None, tried: Mapping[str, float] | None = None) -> None:
        self.given = {normal(k): v for k, v in (given or {}).items()}
        self.tried = {normal(k): v for k, v in (tried or {}).items()}
        self.open: dict[str, Unknown] = {}
        self.notes: dict[str, None] = {}
        self.used: set[str] = set()
        self.place: tuple[Path, int] | None = None

    def trying(self, name: str, value: float) -> Answers:
        return Answers(self.given, {**self.tried, name: value})

    def known(self, name: str) -> float | None:
        """The answer to a fact that is missing, if there is one."""
        key = normal(name)
        self.used |= {key} & set(self.given)
        return self.tried.get(key, self.given.get(key))

    def pick(self, unknown: Unknown) -> float:
        """The answer, or the worst, or the first plausible value: then it is asked."""
        found = self.known(unknown.name)
        if found is not None:
            return found
        self.open.setdefault(unknown.name, unknown)
        return unknown.worst if unknown.worst is not None else unknown.values[0]

    def whether(self, name: str, question: str, worst: bool = False) -> bool:
        """Yes or no; the price in the headline is that of ``worst``."""
        return bool(self.pick(Unknown(name, f"{question} (1 for yes, 0 for no)", (0.0, 1.0), float(worst))))

    def taken(self, call: Call) -> bool:
        """Whether a call is made at all, where branches decide about it that the file does not."""
        self.notes |= dict.fromkeys(call.notes)
        self.place = self.place or (call.path, call.line)
        for words in call.conditions:
            line = _line(words, call.line)
            asked = f"Is it so that {words.removeprefix('not ')}? {call.name} (line {call.line}) depends on it (1 yes, 0 no)."
            if bool(self.pick(Unknown(f"branch at line {line}", asked, (0.0, 1.0)))) == words.startswith("not "):
                return False
        return True

    def number(self, value: Value, name: str, line: int = 0) -> float | None:
        """A finite number, None where there is none. What is not decided is asked, with the candidates."""
        self.notes |= dict.fromkeys(values.notes(value))
        inner = values.plain(value)
        if isinstance(inner, Choice):
            found = [values.plain(v) for v in inner.values]
            numbers = sorted({float(v) for v in found if isinstance(v, (int, float)) and not isinstance(v, bool)})
            named = self._named(name, tuple(numbers), line)
            if len(numbers) == len(found):
                words = " or ".join(f"{n:g}" for n in numbers)
                return self.pick(
                    Unknown(named, f"Which value has {name} (line {line})? The file leaves {words}.", tuple(numbers))
                )
            inner = next((v for v in found if isinstance(v, (Unresolved, values.Method))), Unresolved("one of several"))
        if isinstance(inner, (int, float)) and not isinstance(inner, bool):
            return float(inner) if math.isfinite(inner) else None
        if inner is None or values.is_plain(inner):
            return None
        answer = self.known(name)
        if answer is None and normal(name) in {normal(k) for k in PLAUSIBLE}:
            plausible = next(v for k, v in PLAUSIBLE.items() if normal(k) == normal(name))
            return self.pick(
                Unknown(
                    name,
                    f"Which value has {name}? The file says {text(inner)} (line {line}), which it does not decide.",
                    plausible,
                )
            )
        return answer

    def flag(self, value: Value, name: str, default: bool, line: int, worst: bool) -> bool:
        """True or false; an undecided one is asked and taken as ``worst``."""
        self.notes |= dict.fromkeys(values.notes(value))
        inner = values.plain(value)
        if inner is None:
            return default
        decided = values.truth(inner)
        if decided is not None:
            return decided
        return self.whether(name, f"Is {name} on (line {line})? The file says {text(inner)}.", worst)

    def _named(self, name: str, candidates: tuple[float, ...], line: int) -> str:
        before = self.open.get(name)
        return name if before is None or before.values == candidates else f"{name} of line {line}"

    def unused(self) -> list[str]:
        return sorted(set(self.given) - self.used)


def _line(words: str, default: int) -> str:
    found = re.findall(r"line (\d+)", words)
    return found[-1] if found else str(default)


def text(value: Value) -> str:
    """A value as it stands in the file, short."""
    inner = values.plain(value)
    if isinstance(inner, Unresolved):
        found = inner.text
    elif isinstance(inner, values.Method):
        found = ast.unparse(inner.node)
    elif isinstance(inner, Choice):
        found = " or ".join(text(v) for v in inner.values)
    elif isinstance(inner, Call):
        found = f"{inner.dotted}(…)"
    else:
        found = repr(inner) if values.is_plain(inner) else type(inner).__name__
    short = " ".join(found.split())
    return f"`{short[:57]}…`" if len(short) > 60 else f"`{short}`"


def parsed(facts: list[str], read: Callable[[Path], Facts]) -> dict[str, float]:
    """Answers of a command line: ``name=number``, or the path of a YAML or JSON file of them. ``PricingError`` for others.

    Args:
        facts: As they were typed.
        read: Reads a file as data.
    """
    out: dict[str, float] = {}
    for fact in facts:
        name, equals, said = fact.partition("=")
        file = Path(fact)
        pairs = [(name, scalar(said))] if equals else list(read(file).data.items()) if file.suffix in FILES else []
        if not pairs:
            raise PricingError(
                f'--given {fact!r}: a fact is NAME=NUMBER, such as --given "sampling rate=0.01", or a file {FILES}'
            )
        for key, value in pairs:
            number = scalar(value) if isinstance(value, str) else value
            if not key.strip() or not isinstance(number, (bool, int, float)) or not math.isfinite(number):
                raise PricingError(f"--given {fact!r}: {key.strip()!r} is {value!r}; a number is allowed, or true and false")
            if normal(key) in out:
                raise PricingError(f"--given {fact!r}: {key.strip()!r} is said twice")
            out[normal(key)] = float(number)
    return out
