"""Facts that a configuration leaves open: what the user says of them, and what is asked.

A reader asks ``OpenFactAnswers`` for each number that it needs. A number that the file decides is given back as it is. Where
the file leaves it open, an answer of the user (``--given``) takes its place; otherwise it becomes a question (``OpenFact``),
whose values are tried one after the other: the reader reads the file again with each.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Protocol

import yaml

from fedgraph.errors import PricingError
from fedgraph.pricing import python_values as values
from fedgraph.pricing.parsers import ParsedTree, parse_fact_name, parse_scalar
from fedgraph.pricing.python_program import PythonProgram
from fedgraph.pricing.python_values import CallValue, PythonChoice, UnresolvedValue, Value, is_plain_value, python_plain


@dataclass(frozen=True)
class OpenFact:
    """A fact that the file does not hold."""

    name: str  # what it is called; ``--given`` answers it by this name
    question: str  # the question in words
    values: tuple[float, ...]  # plausible values for a table, worst first
    worst: float | None = None  # A value that bounds every other, such as a rate of 1, used for the total; None: no total


@dataclass(frozen=True)
class OpenFactQuestion:
    """An entry of ``questions.yaml``."""

    ask: str = ""  # the question, with places in braces for what it is about
    whether: str = ""  # the question, where yes or no answers it. ``no`` is then taken for granted
    values: tuple[float, ...] = ()  # plausible answers for a table, worst first
    worst: float | None = None  # an answer that bounds every other; None where there is none


OPEN_FACT_QUESTIONS: Mapping[str, OpenFactQuestion] = {
    name: OpenFactQuestion(**{**entry, "values": tuple(map(float, entry.get("values", ())))})
    for name, entry in yaml.safe_load(resources.files("fedgraph.pricing").joinpath("questions.yaml").read_text("utf-8")).items()
}
OPEN_FACT_RATES = OPEN_FACT_QUESTIONS["sampling rate"].values
_PLAUSIBLE: Mapping[str, tuple[float, ...]] = {  # of numbers that a program does not decide
    "noise multiplier": (0.5, 1.0, 2.0, 4.0), "delta": OPEN_FACT_QUESTIONS["delta"].values[::-1],
    "epochs": OPEN_FACT_QUESTIONS["epochs"].values,
    "steps": OPEN_FACT_QUESTIONS["steps"].values, "expected participations": (100.0, 10.0, 1.0),
    "sampling rate": OPEN_FACT_RATES[1:],
}  # fmt: skip
_FILES = (".yaml", ".yml", ".json", ".toml")


class OpenFacts(Protocol):
    """A file as data."""

    @property
    def data(self) -> dict[str, ParsedTree]: ...


@dataclass
class OpenFactAnswers:
    """What the user says of open facts, and what one reading of the file asked."""

    given: Mapping[str, float] = field(default_factory=dict)  # normal name of a fact → the user's answer
    tried: Mapping[str, float] = field(default_factory=dict)  # values that are tried one after the other, before ``given``
    louder: float = 1.0  # the factor on all noise of the file; 1 for the file as it is
    programs: dict[str, PythonProgram] = field(default_factory=dict, repr=False)  # followed already, by what they depend on
    open: dict[str, OpenFact] = field(default_factory=dict)  # what was asked, by name
    notes: dict[str, None] = field(default_factory=dict)  # sentences on what is taken for granted (the keys, in their order)
    used: set[str] = field(default_factory=set)  # answers that were looked up
    asked: set[str] = field(default_factory=set)  # facts that were looked up, answered or not
    place: tuple[Path, int] | None = None  # file and line of the first call that a price hangs on

    def again(self, louder: float, tried: Mapping[str, float]) -> OpenFactAnswers:
        """The same facts, for a file that is read again."""
        tried = {**self.tried, **{parse_fact_name(name): value for name, value in tried.items()}}
        return OpenFactAnswers(self.given, tried, louder, self.programs)

    def merge(self, other: OpenFactAnswers) -> None:
        """What another reading of the same file asked and took for granted."""
        self.open, self.notes, self.used = {**other.open, **self.open}, {**self.notes, **other.notes}, self.used | other.used

    def known(self, name: str) -> float | None:
        """The answer to a fact that is missing, if there is one."""
        key = parse_fact_name(name)
        self.asked.add(key)
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

    def whether(self, name: str, question: str, worst: bool = False) -> bool:
        """Yes or no; the price in the headline is that of ``worst``."""
        return bool(self.ask(name, f"{question} (1 for yes, 0 for no)", (0.0, 1.0), float(worst)))

    def taken(self, call: CallValue) -> bool:
        """Whether a call is made at all. Branches around it that the file does not decide are asked."""
        self.place = self.place or (call.path, call.line)
        for words in call.conditions:
            if mode := re.fullmatch(r"(not )?`\w+ == [\w.]*ModeKeys\.(\w+)`.*", words):  # TensorFlow's estimators
                if (mode[2] == "TRAIN") == bool(mode[1]):
                    return False
                continue
            found = re.findall(r"line (\d+)", words)
            line = found[-1] if found else str(call.line)
            asked = f"Is it so that {words.removeprefix('not ')}? {call.name} (line {call.line}) depends on it (1 yes, 0 no)."
            if bool(self.ask(f"branch at line {line}", asked, (0.0, 1.0))) == words.startswith("not "):
                return False
        return True

    def number(self, value: Value, name: str, line: int = 0) -> float | None:
        """A finite number, None where there is none. What is not decided is asked, with the candidates."""
        self.notes |= dict.fromkeys(values.python_value_notes(value))
        inner = python_plain(value)
        if isinstance(inner, PythonChoice):
            found = [python_plain(v) for v in inner.values]
            numbers = sorted({float(v) for v in found if isinstance(v, (int, float)) and not isinstance(v, bool)})
            before = self.open.get(name)
            named = name if before is None or before.values == tuple(numbers) else f"{name} of line {line}"
            if len(numbers) == len(found):
                words = " or ".join(f"{n:g}" for n in numbers)
                return self.ask(named, f"Which value has {name}{_at(line)}? The file leaves {words}.", tuple(numbers))
            undecided = (v for v in found if isinstance(v, (UnresolvedValue, values.MethodValue)))
            inner = next(undecided, UnresolvedValue("one of several"))
        if isinstance(inner, (int, float)) and not isinstance(inner, bool):
            return float(inner) if math.isfinite(inner) else None
        if inner is None or is_plain_value(inner):
            return None
        if (answer := self.known(name)) is None and (plausible := _PLAUSIBLE.get(parse_fact_name(name))):
            question = f"Which value has {name}? The file says {open_fact_text(inner)}{_at(line)}, which it does not decide."
            return self.ask(name, question, plausible)
        return answer

    def flag(self, value: Value, name: str, default: bool, line: int, worst: bool) -> bool:
        """True or false; an undecided one is asked and taken as ``worst``."""
        self.notes |= dict.fromkeys(values.python_value_notes(value))
        if (inner := python_plain(value)) is None:
            return default
        if (decided := values.value_truth(inner)) is not None:
            return decided
        return self.whether(name, f"Is {name} on{_at(line)}? The file says {open_fact_text(inner)}.", worst)


def _at(line: int) -> str:
    return f" (line {line})" if line else ""


def open_fact_text(value: Value) -> str:
    """A value as it stands in the file, in backquotes, at most 60 characters long."""
    inner = python_plain(value)
    if isinstance(inner, UnresolvedValue):
        found = inner.text
    elif isinstance(inner, values.MethodValue):
        found = ast.unparse(inner.node)
    elif isinstance(inner, PythonChoice):
        found = " or ".join(open_fact_text(v) for v in inner.values)
    elif isinstance(inner, CallValue):
        found = f"{inner.dotted}(…)"
    else:
        found = repr(inner) if is_plain_value(inner) else type(inner).__name__
    short = " ".join(found.split())
    return f"`{short[:57]}…`" if len(short) > 60 else f"`{short}`"


def parse_open_facts(facts: list[str], read: Callable[[Path], OpenFacts]) -> dict[str, float]:
    """Answers of a command line.

    Args:
        facts: As they were typed: ``name=number``, or the path of a YAML, JSON or TOML file of such pairs.
        read: Reads a file as data.

    Returns:
        Normal name of a fact → its value. True is 1 and false is 0.

    Raises:
        PricingError: Something is neither of both, is no finite number, or is said twice.
    """
    out: dict[str, float] = {}
    for fact in facts:
        name, equals, said = fact.partition("=")
        file = Path(fact)
        pairs = [(name, parse_scalar(said))] if equals else list(read(file).data.items()) if file.suffix in _FILES else []
        if not pairs:
            allowed = f'a fact is NAME=NUMBER, such as --given "sampling rate=0.01", or a file {_FILES}'
            raise PricingError(f"--given {fact!r}: {allowed}")
        for key, value in pairs:
            number = parse_scalar(value) if isinstance(value, str) else value
            if not key.strip() or not isinstance(number, (bool, int, float)) or not math.isfinite(number):
                raise PricingError(f"--given {fact!r}: {key.strip()!r} is {value!r}; a number is allowed, or true and false")
            if parse_fact_name(key) in out:
                raise PricingError(f"--given {fact!r}: {key.strip()!r} is said twice")
            out[parse_fact_name(key)] = float(number)
    return out
