"""Files of other systems, read as data: what they hold, and what they leave open. Nothing in them is ever executed.

    .yaml .yml    safe loader; no tags; aliases counted where they expand; duplicate keys refused
    .json         duplicate keys and NaN refused        .jsonl   a ledger of ours, left to its reader
    .toml         tomllib                               .py .ipynb   text, for the finder and Flower's reader
    .sh .txt      a command line

Every refusal is one line: ``file:line: found; allowed``. Limits: one megabyte (notebooks 20), nesting of 60, 50,000 values with
aliases written out.

A reader asks ``Document.ask`` for each number that a price needs. Where the file leaves it open, an answer of the user
(``--given``) takes its place; otherwise it becomes a question (``OpenFact``) whose values are tried one after the other: the
reader reads again. ``_read_options`` reads the keys of a mapping as ``catalogue.yaml`` describes them.
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
from typing import Any, NoReturn

import yaml

from fedgraph import plugins
from fedgraph.documents import SourceLocation, YamlSource, sources
from fedgraph.errors import PricingError, ScenarioError

Tree = None | bool | int | float | str | list["Tree"] | dict[str, "Tree"]
Table = dict[str, Tree]
Said = Any  # an object with the keys of a mapping, as ``catalogue.yaml`` types them
_DEEPEST, _MOST_WHOLE, _LARGEST = 60, 10**12, 1e60
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
    options: Mapping[str, object] = field(default_factory=dict)  # key → what it may be (``_read_options``)
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

    path: Path  # the file, or the folder of a job
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

    def options(self, data: object = None, *at: str, part: str = "") -> Said:
        """The keys that a price needs, and in ``rest`` the names of others. A key of null is one that is left out.

        Args:
            data: The mapping that holds them, and stands at the keys ``at``; None for the document.
            part: The entry of ``parts`` that describes it, where it is not the whole.
        """
        held = self.data if data is None else data
        if not isinstance(held, dict):
            raise self.error(f"{at[-1]}: found {held!r}; a mapping of keys is expected", *at)
        system = catalogue()[self.system]
        described = system.parts[part] if part else system.options
        try:
            return _read_options(described, {key: value for key, value in held.items() if value is not None})
        except _WrongKeyError as error:
            raise self.error(str(error), *at, *error.keys) from None

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
        entry = {} if question else QUESTIONS.get(f"{self.system} {name}") or QUESTIONS[name]
        values = tuple(map(float, values or entry["values"]))
        worst: Said = about.pop("worst", entry.get("worst"))
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
    """A file as data, without answers and system; or the folder of an app, of a FLARE job, of a run or of an export.

    Raises:
        PricingError: One line, where it is missing, larger than a megabyte, of another type, damaged, or expands without end.
    """
    if path.is_dir():
        if (job := _job(path)) is not None:
            return job
        names = ("fedgraph_export.json", "pyproject.toml", "ledger.jsonl", "config_fed_client.json", "config_fed_client.conf")
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


def _job(folder: Path) -> Document | None:
    """The folder of a FLARE job: its ``meta.json`` and the configurations of its apps; None where it is none."""
    found = sorted(folder.glob("*/config/config_fed_*")) or sorted(folder.glob("config/config_fed_*"))
    if not found:
        return None
    if len(found) > 100:
        raise PricingError(f"{folder}: a job of {len(found)} configurations; at most 100 are read")
    apps: dict[str, Table] = {}
    for path in found:
        app = apps.setdefault("app" if path.parents[1] == folder else path.parents[1].name, {})
        if path.stem in app:
            raise PricingError(f"{path}: stands there in two formats; keep one")
        app[path.stem] = read(path).data
    meta = folder / "meta.json"
    return Document(folder, "json", {"meta": read(meta).data if meta.is_file() else {}, "apps": {**apps}})


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
    def once(pairs: list[tuple[str, Tree]]) -> Table:
        out: Table = {}
        for key, value in pairs:
            if key in out:
                raise ValueError(f"key {key!r} appears twice")
            out[key] = value
        return out

    def constant(name: str) -> NoReturn:
        raise ValueError(f"{name} is not a number of JSON")

    try:
        found = json.loads(body, object_pairs_hook=once, parse_constant=constant)
    except ValueError as error:
        raise PricingError(f"{path}:{getattr(error, 'lineno', 1)}: not JSON: {getattr(error, 'msg', error)}") from None
    return _mapping(path, found)


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


# Mappings of other systems. Their numbers are plain ones: no truth values, no NaN, of a size that is meant.


class _WrongKeyError(ValueError):
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


def _read_options(described: Mapping[str, Said], held: Mapping[str, object], *at: str) -> Said:
    """The keys of a mapping as attributes; the names of others in ``rest``, in one line: they are told as not priced.

    Args:
        described: Key (and, after |, its other names) → what it may be: a kind, or words between | of which one is allowed,
            with the default after =; a mapping of such keys (None where it is left out and a key of it has no default); a list
            of one such mapping for a list of them. ``only``: other keys are refused.
        held: The mapping.
        at: The keys on the way to it.

    Raises:
        _WrongKeyError: A key is missing or unknown, or its value is none that is allowed.
    """
    left, found = dict(held), dict[str, object]()
    for key, kind in described.items():
        names = key.split("|")
        name = next((name for name in names if name in left), names[0])
        if key != "only":
            found[names[0]] = _option(kind, name in left, left.pop(name, None), *at, name)
    if left and described.get("only"):
        name, allowed = next(iter(left)), sorted(key.partition("|")[0] for key in described if key != "only")
        words = f"unknown option {name!r}{plugins.suggest_plugin_name(name, allowed)}; allowed: {', '.join(allowed)}"
        raise _WrongKeyError(words, *at, name)
    return SimpleNamespace(**found, rest=(", ".join(left),) if left else ())


def _option(described: Said, there: bool, value: Said, *at: str) -> object:
    if isinstance(described, list):
        if not isinstance(value if there else [], list):
            raise _WrongKeyError(f"{at[-1]}: found {value!r}; a list is expected", *at)
        return [_option(described[0], True, each, *at, str(number)) for number, each in enumerate(value or ())]
    if isinstance(described, Mapping):
        optional = any(isinstance(kind, str) and " = " not in kind for kind in described.values())
        if optional and value is None:
            return None
        if not isinstance(value if there else {}, dict):
            raise _WrongKeyError(f"{at[-1]}: found {value!r}; a mapping of keys is expected", *at)
        return _read_options(described, value or {}, *at)
    kind, equals, default = described.partition(" = ")
    start = scalar(default)
    if not there and not equals:
        raise _WrongKeyError(f"missing option {at[-1]!r}; it is needed to price this file", *at)
    value = value if there else start
    if value is None and equals and start is None:
        return None
    if kind in _NUMBERS:
        return _number(kind, value, *at)
    if kind not in _OTHERS:
        if value not in (allowed := kind.split("|")):
            words = f"{plugins.suggest_plugin_name(str(value), allowed)}; allowed: {', '.join(allowed)}"
            raise _WrongKeyError(f"{at[-1]}: found {value!r}{words}", *at)
        return value
    wanted, words = _OTHERS[kind]
    mixed = kind == "words" and isinstance(value, list) and not all(isinstance(word, str) for word in value)
    if mixed or not isinstance(value, wanted):
        raise _WrongKeyError(f"{at[-1]}: found {value!r}; {words}", *at)
    return value


def _number(kind: str, value: object, *at: str) -> float:
    """A number, also one that is quoted."""
    least, most, whole, allowed = _NUMBERS[kind]
    found = scalar(value) if isinstance(value, str) else value
    if isinstance(found, bool) or not isinstance(found, (int, float)) or math.isnan(found):
        raise _WrongKeyError(f"{at[-1]}: found {found!r}; a number is allowed", *at)
    if found != 0 and not 1 / _LARGEST <= abs(found) <= _LARGEST:
        allowed = f"numbers of size {1 / _LARGEST:g} to {_LARGEST:g} (or 0) are priced"
    elif least <= found <= most:
        if not whole:
            return float(found)
        if found <= _MOST_WHOLE and found == int(found):
            return int(found)
        allowed = f"a whole number up to {_MOST_WHOLE:,} is allowed"
    raise _WrongKeyError(f"{at[-1]}: found {found:g}; {allowed}", *at)
