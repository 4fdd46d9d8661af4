"""Reads files of other systems as data. Nothing in them is ever executed.

    .yaml .yml    safe loader; no tags; aliases counted where they expand; duplicate keys refused
    .json         duplicate keys and NaN refused        .jsonl   a ledger of ours, left to its reader
    .toml         tomllib                               .py .ipynb   text, for the finder and Flower's reader
    .sh .txt …    a command line

Every refusal is one line: ``file:line: found; allowed``. Limits: one megabyte (notebooks 20), nesting of 60,
100,000 values with aliases written out.
"""

import itertools
import json
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

import yaml

from fedgraph import plugins
from fedgraph.documents import SourceLocation, YamlSource, sources
from fedgraph.errors import PricingError, ScenarioError
from fedgraph.pricing.facts import QUESTIONS, Facts, Table, Tree, WrongKeyError, read_options, scalar, table

Said = Any  # an object with the keys of a mapping, as ``catalogue.yaml`` types them
_DEEPEST = 60
_FORMATS = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".toml": "toml"}
_KINDS = (*_FORMATS, ".jsonl", ".py", ".ipynb", ".sh", ".txt", ".cmd", ".args", ".log")


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
    options: Mapping[str, object] = field(default_factory=dict)  # key → what it may be (``facts.read_options``)
    parts: Mapping[str, Mapping[str, object]] = field(default_factory=dict)  # the same of mappings inside, by name


@cache
def catalogue() -> Mapping[str, System]:
    """Every entry of ``catalogue.yaml``, by its key."""
    text = resources.files("fedgraph.pricing").joinpath("catalogue.yaml").read_text(encoding="utf-8")
    return {name: System(**entry) for name, entry in yaml.safe_load(text).items()}


@dataclass(frozen=True)
class Document:
    """One file, read as data; or the record of a run."""

    path: Path  # the file, or the folder of a job
    kind: str  # ``yaml``, ``json``, ``toml``, ``python``, ``command``, ``ledger`` or ``record``
    data: Table = field(default_factory=dict)  # of a file or a command line, by its keys
    command: tuple[str, ...] = ()  # the words of a command line
    text: str = ""  # of a Python program or a notebook
    lines: Mapping[SourceLocation, int] = field(default_factory=dict)  # of keys; empty for formats that keep no lines
    records: Sequence[Said] = ()  # of processes (``recorder.Record``)
    facts: Facts = field(default_factory=Facts)  # what the user says of facts that the file leaves open
    system: str = ""  # the key of its reader; empty until that is known

    @property
    def words(self) -> Mapping[str, str]:
        """The sentences of its system."""
        return catalogue()[self.system].words

    @property
    def louder(self) -> float:
        """What all noise of the file is multiplied by."""
        return self.facts.louder

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
            return read_options(described, {key: value for key, value in held.items() if value is not None})
        except WrongKeyError as error:
            raise self.error(str(error), *at, *error.keys) from None

    def ask(self, name: str, known: float | None = None, **about: object) -> float:
        """``known`` where the file says it; else what the user says, or a question of ``questions.yaml``."""
        if known is not None:
            return known
        said = QUESTIONS.get(f"{self.system} {name}") or QUESTIONS[name]
        if "whether" in said:
            return float(self.facts.whether(name, said["whether"].format(**about)))
        return self.facts.ask(name, said["ask"].format(**about), tuple(map(float, said["values"])), said.get("worst"))

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
        names = ("fedgraph_export.json", "pyproject.toml", "ledger.jsonl", "config_fed_client.json")
        if (inside := next((path / name for name in names if (path / name).is_file()), None)) is None:
            raise PricingError(f"{path}: a folder without pyproject.toml or ledger.jsonl; name the file to price")
        path = inside
    suffix = path.suffix.lower()
    if suffix == ".jsonl" and path.is_file():
        return Document(path, "ledger")
    if suffix and suffix not in _KINDS:
        more = " (archives are unpacked, HOCON saved as JSON first)"
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
    found: list[Path] = []
    for above in ("*/", ""):
        ends = ("json", "yml", "yaml")
        found = found or [p for end in ends for p in sorted(folder.glob(f"{above}config/config_fed_*.{end}"))]
    if not found:
        return None
    if len(found) > 100:
        raise PricingError(f"{folder}: a job of {len(found)} configurations; at most 100 are read")
    apps: dict[str, Table] = {}
    for path in found:
        app = path.parents[1]
        apps.setdefault(app.name if app != folder else "app", {})[path.stem] = read(path).data
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
