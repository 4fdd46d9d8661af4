"""Facts that a file leaves open, and the keys that it may hold.

A reader asks ``Facts`` for each number that it needs. Where the file leaves it open, an answer of the user (``--given``) takes
its place; otherwise it becomes a question (``OpenFact``) whose values are tried one after the other: the reader reads again.
``model_of`` makes a model of the keys of a mapping that ``catalogue.yaml`` describes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model

from fedgraph.documents import nearest_model
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


def _number(least: float = 0.0, above: bool = False, most: float = math.inf, whole: bool = False, words: str = "") -> Any:
    """Reads a number, also one that is quoted. None passes: where a key may be left out, its type says so."""
    allowed = words or f"allowed: {'>' if above else '≥'} {least:g}"

    def read(value: object) -> object:
        found = scalar(value) if isinstance(value, str) else value
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, (int, float)) or math.isnan(found):
            raise ValueError(f"found {found!r}; a number is allowed")
        if found != 0 and not 1 / _LARGEST <= abs(found) <= _LARGEST:
            raise ValueError(f"found {found:g}; numbers of size {1 / _LARGEST:g} to {_LARGEST:g} (or 0) are priced")
        if found < least or (above and found == least) or found > most:
            raise ValueError(f"found {found:g}; {allowed}")
        if whole and not (found <= _MOST_WHOLE and found == int(found)):
            raise ValueError(f"found {found:g}; a whole number up to {_MOST_WHOLE:,} is allowed")
        return int(found) if whole else float(found)

    return int if whole else float, BeforeValidator(read)


# The kinds of ``catalogue.yaml``: a type, and what reads it.
_KINDS: Mapping[str, tuple[Any, Any]] = {
    "amount": _number(), "positive": _number(above=True), "number": _number(-1.0), "times": _number(whole=True),
    "count": _number(1, whole=True), "share": _number(most=1.0, words="a rate or a probability lies in [0, 1]"),
    "delta": _number(most=math.nextafter(1, 0), words="a δ lies in [0, 1)"),
    "truth": (bool, None), "word": (str, None), "words": (list[str] | str, None),
    "mapping": (dict[str, object], None), "any": (object, None),
}  # fmt: skip


class _SomeKeys(BaseModel):
    """The keys of a mapping that a price needs."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, populate_by_name=True)

    @property
    def rest(self) -> tuple[str, ...]:
        """Others, in one line: they are told as not priced."""
        return (", ".join(self.__pydantic_extra__),) if self.__pydantic_extra__ else ()


class Keys(_SomeKeys):
    """The keys of a mapping. Others are refused."""

    model_config = ConfigDict(extra="forbid")


def model_of(options: Mapping[str, object], name: str = "options") -> type[BaseModel]:
    """The model of a mapping: key → kind, or a mapping of such keys, or a list of one such mapping for a list of them.

    A kind is a name of ``_KINDS``, or words between | of which one is allowed. A mapping that has a key without a default is
    None where it is left out.
    """
    fields: dict[str, Any] = {}
    for key, said in options.items():
        first, *others = key.split("|")
        if isinstance(said, list):
            fields[key] = (list[model_of(said[0], key)], Field(default_factory=list))  # type: ignore[misc]
        elif isinstance(said, Mapping):
            inner = model_of(said, key)
            fields[key] = (
                (inner | None, None) if any(f.is_required() for f in inner.model_fields.values()) else (inner, inner())
            )
        elif key != "only":
            kind, equals, default = str(said).partition(" = ")
            held, check = _KINDS.get(kind) or (Literal[tuple(kind.split("|"))], None)
            start = scalar(default) if equals else ...
            set_ = Field(start, validate_default=True, validation_alias=AliasChoices(first, *others))
            fields[first] = (Annotated[held if start is not None else held | None, check], set_)
    return create_model(name, __base__=Keys if options.get("only") else _SomeKeys, **fields)


def fault(model: type[BaseModel], error: ValidationError) -> tuple[tuple[str, ...], str]:
    """(keys, words) of the first fault of a mapping."""
    found = error.errors(include_url=False)[0]
    at = tuple(str(key) for key in found["loc"])
    name, value = at[-1] if at else "", found["input"]
    kind, context = found["type"], found.get("ctx", {})
    if kind == "value_error":
        return at, f"{name}: {context['error']}"
    if kind == "missing":
        return at, f"missing option {name!r}; it is needed to price this file"
    if kind == "extra_forbidden":
        allowed = sorted(nearest_model(model, at[:-1]).model_fields)
        return at, f"unknown option {name!r}{suggest_plugin_name(name, allowed)}; allowed: {', '.join(allowed)}"
    if kind == "literal_error":
        allowed = re.findall(r"'([^']*)'", str(context["expected"]))
        return at, f"{name}: found {value!r}{suggest_plugin_name(str(value), allowed)}; allowed: {', '.join(allowed)}"
    wanted = {"bool_type": "true or false is allowed", "list_type": "a list is expected", "string_type": "a word is expected",
              "model_type": "a mapping of keys is expected"}  # fmt: skip
    return at, f"{name}: found {value!r}; {wanted.get(kind, found['msg'])}"
