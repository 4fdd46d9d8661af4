"""Files of other systems, read as data: what they hold, and what they leave open. Nothing in them is ever executed.

    .yaml .yml    safe loader; no tags; aliases counted where they expand; duplicate keys refused
    .json         as Python reads it                    .jsonl   a ledger of ours, left to its reader
    .toml         tomllib                               .py .ipynb   text, for the finder and Flower's reader
    .sh .txt      a command line

Every refusal is one line: ``file:line: found; allowed``. Limits: one megabyte (notebooks 20), nesting of 60, 50,000 values with
aliases written out.

A reader asks ``Document.ask`` for each number that a price needs. Where the file leaves it open, an answer of the user
(``--given``) takes its place; otherwise it becomes a question (``OpenFact``) whose values are tried one after the other: the
reader reads again. ``Document.options`` reads the keys of a mapping as ``catalogue.yaml`` describes them.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import pydantic
import yaml
from pydantic import BaseModel, BeforeValidator, Field

from fedgraph import plugins
from fedgraph.documents import SourceLocation, YamlSource, sources
from fedgraph.errors import PricingError, ScenarioError

Tree = None | bool | int | float | str | list["Tree"] | dict[str, "Tree"]
Table = dict[str, Tree]
Said = Any  # an object with the keys of a mapping, as ``catalogue.yaml`` types them
_DEEPEST, _LARGEST = 60, 1e60
_FORMATS = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".toml": "toml"}
_KINDS = (*_FORMATS, ".jsonl", ".py", ".ipynb", ".sh", ".txt")


@dataclass(frozen=True)
class System:
    """An entry of ``catalogue.yaml``: what is known of one system."""

    name: str  # what people call it
    version: str  # the versions that the reader was checked with
    source: str  # where its facts were read, with commit and date
    reader: str  # file of ``readers`` and function, such as ``settings.pfl``
    said: str = ""  # what its authors say of the option, in our words
    recognised: tuple[Mapping[str, list[str]], ...] = ()  # a document belongs to it where all tests of one line hold
    words: Mapping[str, str] = field(default_factory=dict)  # key → sentence of its quotes
    options: Mapping[str, object] = field(default_factory=dict)  # key → what it may be (``_typed``)
    parts: Mapping[str, Mapping[str, object]] = field(default_factory=dict)  # the same of mappings inside, by name


@dataclass(frozen=True)
class OpenFact:
    """A fact that the file does not hold."""

    name: str  # what it is called; ``--given`` answers it by this name
    question: str  # the question in words
    values: tuple[float, ...]  # plausible values for a table, worst first
    worst: float | None = None  # a value that bounds every other, used for the total; None: no total


@cache
def catalogue() -> Mapping[str, System]:
    """Every entry of ``catalogue.yaml``, by its key."""
    return {name: System(**entry) for name, entry in _held("catalogue.yaml").items()}


def _held(name: str) -> Said:
    return yaml.safe_load(resources.files("fedgraph.pricing").joinpath(name).read_text(encoding="utf-8"))


QUESTIONS: Mapping[str, Mapping[str, Said]] = _held("questions.yaml")


@dataclass
class Document:
    """One file, read as data, or the record of a run; with what the user says of it, and what one reading of it asked."""

    path: Path  # the file
    kind: str  # ``yaml``, ``json``, ``toml``, ``python``, ``command``, ``ledger`` or ``record``
    data: Table = field(default_factory=dict)  # of a file or a command line, by its keys
    command: tuple[str, ...] = ()  # the words of a command line
    text: str = ""  # of a Python program or a notebook
    lines: Mapping[SourceLocation, int] = field(default_factory=dict)  # of keys; empty for formats that keep no lines
    records: Sequence[Said] = ()  # of processes (``recorder.Record``)
    system: str = ""  # the key of its reader; empty until that is known
    given: Mapping[str, float] = field(default_factory=dict)  # normal name of a fact → the user's answer
    tried: Mapping[str, float] = field(default_factory=dict)  # values that are tried one after the other, before ``given``
    louder: float = 1.0  # what all noise of the file is multiplied by; 1 for the file as it is
    open: dict[str, OpenFact] = field(default_factory=dict)  # what was asked, by name
    notes: dict[str, None] = field(default_factory=dict)  # sentences on what is taken for granted (the keys, in their order)
    used: set[str] = field(default_factory=set)  # answers that were looked up

    @property
    def words(self) -> Mapping[str, str]:
        """The sentences of its system."""
        return catalogue()[self.system].words

    def options(self, data: Said = None, *at: str, part: str = "") -> Said:
        """The keys that a price needs, and in ``rest`` the names of others. A key of null is one that is left out.

        Args:
            data: The mapping that holds them, and stands at the keys ``at``; None for the document.
            part: The entry of ``parts`` that describes it, where it is not the whole.
        """
        described: Said = _described(self.system, part)
        try:
            found = _model_of(self.system, part).model_validate(_without_nulls(self.data if data is None else data))
        except pydantic.ValidationError as error:  # a misspelt key is also a missing one
            first = min(error.errors(include_url=False), key=lambda e: e["type"] != "extra_forbidden")
            *above, name = keys = tuple(map(str, first["loc"])) or ("the mapping",)
            words = f"{'.'.join(keys)}: found {first['input']!r}; {first['msg'].removeprefix('Value error, ')}"
            if first["type"] == "missing":
                words = f"missing option {name!r}; it is needed to price this file"
            elif first["type"] == "extra_forbidden":
                for key in above:
                    described = described[0] if isinstance(described, list) else described[key]
                allowed = sorted(key.partition("|")[0] for key in described if key != "only")
                words = f"unknown option {name!r}{plugins.suggest_plugin_name(name, allowed)}; allowed: {', '.join(allowed)}"
            raise self.error(words, *at, *keys) from None
        return SimpleNamespace(**vars(found), rest=(", ".join(found.model_extra),) if found.model_extra else ())

    def known(self, name: str) -> float | None:
        """The answer to a fact that is missing, if there is one."""
        key = fact_name(name)
        self.used |= {key} & set(self.given)
        return self.tried.get(key, self.given.get(key))

    def ask(
        self, name: str, known: float | None = None, question: str = "", values: Sequence[float] = (), **about: object
    ) -> float:
        """A fact that the file may leave open.

        Args:
            name: What it is called.
            known: What the file says; None where it says nothing.
            question: The question; empty for that of ``questions.yaml``, which words ``about`` complete.
            values: Plausible answers, worst first; empty for those of ``questions.yaml``.
            about: What the words of the question name; ``worst``: an answer that bounds every other, where there is one.

        Returns:
            ``known``, else the user's answer; or the worst, or the first plausible one: then it is asked.
        """
        if known is not None:
            return known
        entry = QUESTIONS.get(f"{self.system} {name}") or QUESTIONS.get(name, {})
        values = tuple(map(float, values or entry["values"]))
        worst: Said = about.pop("worst", None if question else entry.get("worst"))
        if (answer := self.known(name)) is None:
            self.open.setdefault(name, OpenFact(name, question or entry["ask"].format(**about), values, worst))
            return values[0] if worst is None else float(worst)
        share = ("share" in name or "rate" in name) and max(values) <= 1
        if answer < 0 or (share and answer > 1) or (name == "delta" and not 0 < answer < 1):
            allowed = "in (0, 1)" if name == "delta" else "in [0, 1]" if share else "≥ 0"
            raise PricingError(f"--given {name}={answer:g}: allowed is a number {allowed}")
        return answer

    def whether(self, name: str, question: str) -> bool:
        """Yes or no; the price in the headline is that of no."""
        return bool(self.ask(name, None, f"{question} (1 for yes, 0 for no)", (0.0, 1.0), worst=0.0))

    def error(self, message: str, *keys: str, line: int | None = None, path: Path | None = None) -> PricingError:
        """An error at a key, or at the nearest one above it."""
        while keys and keys not in self.lines:
            keys = keys[:-1]
        return PricingError(f"{path or self.path}:{line or self.lines.get(keys, 1)}: {' '.join(message.split())}")


def read(path: Path) -> Document:
    """A file as data, without answers and system; or the folder of an app, of a run or of an export.

    Raises:
        PricingError: One line, where it is missing, larger than a megabyte, of another type, damaged, or expands without end.
    """
    if path.is_dir():
        names = ("fedgraph_export.json", "pyproject.toml", "ledger.jsonl", "config_fed_client.json")
        if (inside := next((path / name for name in names if (path / name).is_file()), None)) is None:
            raise PricingError(f"{path}: a folder without pyproject.toml or ledger.jsonl; name the file to price")
        path = inside
    suffix = path.suffix.lower()
    if suffix == ".jsonl" and path.is_file():
        return Document(path, "ledger")
    if suffix and suffix not in _KINDS:
        more = "; hand HOCON over as JSON (pyhocon -f json), and unpack an archive"
        raise PricingError(f"{path}: unknown file type {suffix!r}; allowed: {', '.join(_KINDS)}{more}")
    body = text(path)
    try:
        if suffix in _FORMATS:
            return _parsed(path, suffix, body)
        if suffix in (".py", ".ipynb"):
            return Document(path, "python", _json(path, body) if suffix == ".ipynb" else {}, text=body)
        return from_text(path, body)
    except RecursionError:
        raise PricingError(f"{path}:1: nested too deeply; at most {_DEEPEST} levels are read") from None


def text(path: Path) -> str:
    """The text of an ordinary file of at most one megabyte (a notebook: 20). ``PricingError`` in one line for anything else."""
    try:
        largest = 20_000_000 if path.suffix.lower() == ".ipynb" else 1_000_000  # a notebook holds its pictures
        return sources.read_text(path, f"a configuration ({', '.join(_KINDS)})", largest)
    except ScenarioError as error:
        raise PricingError(str(error)) from None


def from_text(path: Path, body: str) -> Document:
    """The document of a command line. path: what messages call it. ``PricingError`` where the text is no one command line."""
    body = re.sub(r"(python[\d.]*\s+)-m\s", r"\1", body)
    python = r"(^|\s|/)(python[\d.]*|torchrun|accelerate|\S+\.py|compute_dp_sgd_privacy\w*)\s"
    body = "\n".join(row for row in body.splitlines() if not row.lstrip().startswith("#"))
    runs = [row for row in re.sub(r"\\\s*\n", " ", body).splitlines() if re.search(python, f"{row} ")]
    if not runs:
        raise PricingError(f"{path}:1: not a command line that runs Python")
    if len(runs) > 1:
        raise PricingError(f"{path}:1: {len(runs)} command lines that run Python; one file prices one")
    if re.search(r"[`$;|&<>]", runs[0]):
        raise PricingError(f"{path}:1: a command line with shell code ({runs[0].strip()[:60]}…); write its values out")
    try:
        words = shlex.split(runs[0])
    except ValueError as error:
        raise PricingError(f"{path}:1: not a command line: {error}") from None
    flags: Table = {}  # --key value, --key=value and bare --flag (True); - in names becomes _
    for word, after in itertools.zip_longest(words, words[1:], fillvalue="--end"):
        if re.match("--?[A-Za-z]", word):
            name, equals, value = word.lstrip("-").partition("=")
            if not equals and not re.match("--?[A-Za-z]", after):
                value, equals = after, "="
            flags[name.replace("-", "_")] = scalar(value) if equals else True
    return Document(path, "command", flags, tuple(words))


def system_of(document: Document, named: str | None = None) -> str:
    """The key of the system that a document belongs to. named: the one that the user named; None where the document is to tell.

    Raises:
        PricingError: There is no system of that name, no system recognises the document, or several do.
    """
    names = sorted(catalogue())
    if named is not None and named not in names:
        raise PricingError(f"--as {named}: unknown{plugins.suggest_plugin_name(named, names)}; allowed: {', '.join(names)}")
    if named and (named == "python") is not (document.kind == "python"):
        raise PricingError(
            f"{document.path}: --as {named}: a Python file is only searched; run it with --run, or price its settings"
        )
    found = [named] if named else [
        name for name in names
        if any(all(_LOOKS[what](document, set(said)) for what, said in line.items()) for line in catalogue()[name].recognised)
    ]  # fmt: skip
    if len(found) == 1:
        return found[0]
    if found:
        raise PricingError(f"{document.path}: could be {' or '.join(found)}; say which with --as")
    as_or = f"say which with --as ({', '.join(names)}), or describe it in a neutral YAML (mechanism, unit, clip, noise_std, …)"
    raise PricingError(f"{document.path}: no system known here writes this; {as_or}")


# What a line of ``recognised`` may ask of a document; a line holds where all of it does.
_LOOKS: Mapping[str, Callable[[Document, set[str]], bool]] = {
    "kinds": lambda document, kinds: document.kind in kinds,
    "keys": lambda document, keys: keys <= {*document.data, *table(document.data, "tool")},
    "any_key": lambda document, keys: bool(keys & set(document.data)),
    "command": lambda document, words: any(word in said.lower() for said in document.command for word in words),
}


def _parsed(path: Path, suffix: str, body: str) -> Document:
    if suffix == ".json":
        return Document(path, "json", _json(path, body))
    if suffix in (".yaml", ".yml"):
        try:
            source = YamlSource(str(path), body, foreign=True)
        except ScenarioError as error:
            raise PricingError(str(error)) from None
        return Document(path, "yaml", _mapping(path, source.data), lines=source.lines)
    try:
        found = tomllib.loads(body)
    except (tomllib.TOMLDecodeError, ValueError) as error:
        line = re.search(r"line (\d+)", str(error))
        raise PricingError(f"{path}:{line[1] if line else 1}: not TOML: {error}") from None
    heads = ((number, re.match(r"\s*\[([^\[\]]+)\]", row)) for number, row in enumerate(body.splitlines(), 1))
    return Document(path, "toml", found, lines={tuple(head[1].split(".")): number for number, head in heads if head})


def _json(path: Path, body: str) -> Table:
    try:
        return _mapping(path, json.loads(body))
    except ValueError as error:
        raise PricingError(f"{path}:{getattr(error, 'lineno', 1)}: not JSON: {getattr(error, 'msg', error)}") from None


def _mapping(path: Path, found: object) -> Table:
    if not isinstance(found, dict):
        raise PricingError(f"{path}:1: a configuration is a mapping of keys, found {type(found).__name__}")
    return {str(key): value for key, value in found.items()}


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


# Mappings of other systems, by pydantic. Their numbers are plain ones: no truth values, no NaN, of a size that is meant.


def _plain(value: object) -> object:
    """A number, also one that is quoted."""
    found = scalar(value) if isinstance(value, str) else value
    if isinstance(found, bool) or not isinstance(found, (int, float)) or math.isnan(found):
        raise ValueError("a number is allowed")
    if found and not 1 / _LARGEST <= abs(found) <= _LARGEST:
        raise ValueError(f"numbers of size {1 / _LARGEST:g} to {_LARGEST:g} (or 0) are priced")
    return found


_NUMBER = Annotated[float, BeforeValidator(_plain)]
_WHOLE = Annotated[int, BeforeValidator(_plain), Field(le=10**12)]
_WORDS = Annotated[list[str], BeforeValidator(lambda said: [said] if isinstance(said, str) else said)]
_KINDS_OF_VALUES: Mapping[str, Said] = {
    "amount": Annotated[_NUMBER, Field(ge=0)], "positive": Annotated[_NUMBER, Field(gt=0)],
    "share": Annotated[_NUMBER, Field(ge=0, le=1)], "delta": Annotated[_NUMBER, Field(ge=0, lt=1)],
    "times": Annotated[_WHOLE, Field(ge=0)], "count": Annotated[_WHOLE, Field(ge=1)],
    "truth": pydantic.StrictBool, "words": _WORDS, "mapping": dict[str, Any], "any": Any,
}  # fmt: skip


def _model(described: Mapping[str, Said]) -> type[BaseModel]:
    """The model of a mapping of key (and, after |, its other names) → what it may be (``_typed``); ``only``: no others."""
    fields: dict[str, Said] = {}
    for key, kind in described.items():
        if key != "only":
            held, default = _typed(kind)
            fields[key.partition("|")[0]] = held, Field(default, validation_alias=pydantic.AliasChoices(*key.split("|")))
    extra: Literal["allow", "forbid"] = "forbid" if "only" in described else "allow"
    return pydantic.create_model(
        "mapping", __config__=pydantic.ConfigDict(extra=extra, validate_default=True, protected_namespaces=()), **fields
    )


def _typed(kind: Said) -> tuple[Said, Said]:
    """(type, default): of a kind, or words between | of which one is allowed, with the default after =; of a mapping of such
    keys (None where it is left out and a key of it has no default); of a list of one such mapping.
    """
    if isinstance(kind, list):
        return list[_typed(kind[0])[0]], []  # type: ignore[misc]
    if isinstance(kind, Mapping):
        needed = any(isinstance(held, str) and " = " not in held for held in kind.values())
        return (_model(kind) | None, None) if needed else (_model(kind), {})
    kind, equals, default = kind.partition(" = ")
    held, start = _KINDS_OF_VALUES.get(kind) or Literal[tuple(kind.split("|"))], scalar(default)
    return (held | None if equals and start is None else held), (start if equals else ...)


def _described(system: str, part: str) -> Mapping[str, Said]:
    return catalogue()[system].parts[part] if part else catalogue()[system].options


@cache
def _model_of(system: str, part: str) -> type[BaseModel]:
    return _model(_described(system, part))


def _without_nulls(held: Tree) -> Tree:
    if isinstance(held, list):
        return [_without_nulls(each) for each in held]
    return {key: _without_nulls(value) for key, value in held.items() if value is not None} if isinstance(held, dict) else held
