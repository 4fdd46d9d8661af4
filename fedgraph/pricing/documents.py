"""Reads files of other systems as data. Nothing in them is ever executed.

    .yaml .yml    safe loader; no tags; aliases counted where they expand; duplicate keys refused
    .json         duplicate keys and NaN refused        .jsonl   a ledger of ours, left to its reader
    .toml         tomllib                               .py .ipynb   followed as a program (``python_program``)
    .conf         HOCON, or JSON (``hocon``)
    .sh .txt …    a command line, ``Namespace(…)`` as argparse prints it, or ``key: value`` / ``key=value`` lines

Every refusal is one line: ``file:line: found; allowed``. Limits: one megabyte, nesting of 60, 100,000 values with
aliases written out.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NoReturn

import yaml

from fedgraph.errors import PricingError
from fedgraph.pricing import command_lines, hocon, python_program
from fedgraph.pricing.command_lines import Tree
from fedgraph.pricing.python_program import Program
from fedgraph.pricing.python_values import Call
from fedgraph.pricing.questions import Answers

MOST_BYTES, DEEPEST, MOST_VALUES = 1_000_000, 60, 100_000
KINDS = (".yaml", ".yml", ".json", ".jsonl", ".toml", ".py", ".ipynb", ".conf", ".sh", ".txt", ".cmd", ".args", ".log")


@dataclass(frozen=True)
class Document:
    """One file. kind: yaml, json, toml, python, command, namespace or ledger. data: its mapping (options of a command, the
    namespace). command: the words of a command line. text: a Python program. lines: where keys stand. answers: what the user
    says of facts that the file leaves open. followed: the program of an app of several files."""

    path: Path
    kind: str
    data: dict[str, Tree] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    text: str = ""
    lines: dict[tuple[str, ...], int] = field(default_factory=dict)
    answers: Answers = field(default_factory=Answers)
    followed: Program | None = None

    @property
    def program(self) -> Program:
        """The file, and those of its folder that it imports, followed as a program."""
        if self.followed is not None:
            return self.followed
        found = _followed(self.path, self.text, tuple(sorted(self.answers.given.items())))
        self.answers.used |= found.used
        self.answers.notes |= dict.fromkeys(found.skipped)
        return found

    @property
    def imports(self) -> frozenset[str]:
        return self.program.imports if self.kind == "python" or self.followed else frozenset()

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls of what is not part of the program, in order."""
        return tuple(call for call in self.program.calls if call.own is None)

    def made(self, *names: str) -> list[Call]:
        """The calls of these names that are reached. Where all of them stand in functions that nothing calls: none in a program
        that does something, all in a file that only defines."""
        found = [call for call in self.calls if call.name in names]
        live = [call for call in found if call.reached]
        if found and not live and not self.program.standalone:
            self.answers.notes[f"{found[0].function}() is called elsewhere; nothing in this file calls it"] = None
            return found
        return live

    def dead(self, *names: str) -> Call | None:
        """A call of these names that nothing reaches, where no other one is reached."""
        found = [call for call in self.calls if call.name in names and not call.reached]
        return found[0] if found and not self.made(*names) else None

    def number(self, call: Call, name: str, position: int | None = None, asked: str = "") -> float | None:
        """The number of an argument, None where it is not given; asked: the fact's name where it is not the argument's."""
        return self.answers.number(call.get(name, position), asked or name, call.line)

    def line(self, *keys: str) -> int:
        """The line of a key, or of the nearest one above it."""
        while keys and keys not in self.lines:
            keys = keys[:-1]
        return self.lines.get(keys, 1)

    def error(self, message: str, *keys: str, line: int | None = None) -> PricingError:
        return PricingError(f"{self.path}:{line or self.line(*keys)}: {' '.join(message.split())}")


def read(path: Path) -> Document:
    """The file as data. ``PricingError`` in one line where it is missing, too large, of another type, damaged or a bomb."""
    if path.is_dir():
        if (job := _job(path)) is not None:
            return job
        path = _inside(path)
    suffix = path.suffix.lower()
    if suffix == ".jsonl" and path.is_file():
        return Document(path, "ledger")
    text = text_of(path)
    try:
        return _parsed(path, suffix, text)
    except RecursionError:
        raise PricingError(f"{path}:1: nested too deeply; at most {DEEPEST} levels are read") from None


def text_of(path: Path) -> str:
    """The text of an ordinary file of at most one megabyte. ``PricingError`` in one line for anything else."""
    try:
        if path.exists() and not path.is_file():
            raise PricingError(f"{path}: not an ordinary file; a configuration is one")
        with path.open("rb") as file:
            held = file.read(MOST_BYTES + 1)
        if len(held) > MOST_BYTES:
            raise PricingError(f"{path}:1: a configuration of {path.stat().st_size:,} bytes; at most {MOST_BYTES:,} are read")
        return held.decode("utf-8-sig")
    except OSError as error:
        raise PricingError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise PricingError(f"{path}:1: not UTF-8 text; allowed: {', '.join(KINDS)}") from error


@lru_cache(maxsize=16)
def _followed(path: Path, text: str, given: tuple[tuple[str, float], ...]) -> Program:
    return python_program.follow(path, text, text_of, dict(given))


def _job(folder: Path) -> Document | None:
    """The folder of a FLARE job: its ``meta.json`` and the configurations of its apps; None where it is none."""
    found = [p for end in ("json", "conf", "yml", "yaml") for p in sorted(folder.glob(f"*/config/config_fed_*.{end}"))]
    found = found or [p for end in ("json", "conf", "yml", "yaml") for p in sorted(folder.glob(f"config/config_fed_*.{end}"))]
    if not found:
        return None
    if len(found) > 100:
        raise PricingError(f"{folder}: a job of {len(found)} configurations; at most 100 are read")
    apps: dict[str, Tree] = {}
    for path in found:
        held = table(apps.setdefault(path.parents[1].name if path.parents[1] != folder else "app", {}))
        held[path.stem] = dict(read(path).data)
        apps[path.parents[1].name if path.parents[1] != folder else "app"] = held
    meta = next((read(folder / name).data for name in ("meta.json", "meta.conf") if (folder / name).is_file()), {})
    return Document(folder, "json", {"meta": dict(meta), "apps": apps})


def _inside(folder: Path) -> Path:
    for name in ("pyproject.toml", "ledger.jsonl", "config_fed_client.json"):
        if (folder / name).is_file():
            return folder / name
    raise PricingError(f"{folder}: a folder without pyproject.toml or ledger.jsonl; name the file to price")


def _parsed(path: Path, suffix: str, text: str) -> Document:
    if suffix in (".yaml", ".yml"):
        return _yaml(path, text)
    if suffix == ".json":
        return _json(path, text)
    if suffix == ".toml":
        return _toml(path, text)
    if suffix == ".py":
        return Document(path, "python", text=text)
    if suffix == ".ipynb":
        return Document(path, "python", text=_notebook(path, text))
    if suffix == ".conf":
        return Document(path, "json", _mapping(path, hocon.parse(path, text)))
    if suffix in (".sh", ".txt", ".cmd", ".args", ".log", ""):
        return from_text(path, text)
    raise PricingError(f"{path}: unknown file type {suffix!r}; allowed: {', '.join(KINDS)}")


def _shallow(path: Path, text: str) -> None:
    """Refuse brackets nested deeper than any configuration, before a parser spends its time on them."""
    depth = 0
    for character in text:
        if character in "[{":
            depth += 1
            if depth > 4 * DEEPEST:
                raise PricingError(f"{path}:1: nested too deeply; at most {DEEPEST} levels are read")
        elif character in "]}":
            depth = max(0, depth - 1)


def _yaml(path: Path, text: str) -> Document:
    _shallow(path, text)
    lines: dict[tuple[str, ...], int] = {}
    count = 0

    def refuse(node: yaml.Node, message: str) -> NoReturn:
        raise PricingError(f"{path}:{node.start_mark.line + 1}: {message}")

    def walk(node: yaml.Node, at: tuple[str, ...]) -> None:
        nonlocal count
        count += 1
        if count > MOST_VALUES or len(at) > DEEPEST:
            refuse(node, f"a YAML bomb: more than {MOST_VALUES:,} values or {DEEPEST} levels once aliases are written out")
        if not node.tag.startswith("tag:yaml.org,2002:") or "python" in node.tag:
            refuse(node, f"the tag {node.tag!r} would run code or build objects; only plain values are read")
        lines.setdefault(at, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                name = str(key.value) if isinstance(key, yaml.ScalarNode) else refuse(key, "a key must be a single word")
                if name in seen:
                    refuse(key, f"key {name!r} appears twice")
                seen.add(name)
                lines[(*at, name)] = key.start_mark.line + 1
                walk(value, (*at, name))
        elif isinstance(node, yaml.SequenceNode):
            for index, value in enumerate(node.value):
                walk(value, (*at, str(index)))

    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is not None:
            walk(node, ())
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        raise PricingError(f"{path}:{mark.line + 1 if mark else 1}: not YAML: {getattr(error, 'problem', error)}") from None
    return Document(path, "yaml", _mapping(path, found), lines=lines)


def _json(path: Path, text: str) -> Document:
    def once(pairs: list[tuple[str, Tree]]) -> dict[str, Tree]:
        names = [name for name, _ in pairs]
        twice = [n for n in names if names.count(n) > 1] if len(names) < 2000 else []
        if twice:
            raise ValueError(f"key {twice[0]!r} appears twice")
        return dict(pairs)

    def constant(name: str) -> NoReturn:
        raise ValueError(f"{name} is not a number of JSON")

    try:
        found = json.loads(text, object_pairs_hook=once, parse_constant=constant)
    except ValueError as error:
        raise PricingError(f"{path}:{getattr(error, 'lineno', 1)}: not JSON: {getattr(error, 'msg', error)}") from None
    return Document(path, "json", _mapping(path, found))


def _notebook(path: Path, text: str) -> str:
    """The code cells of a notebook, one below the other; lines for the shell and magic words are left out."""
    cells = _json(path, text).data.get("cells")
    rows: list[str] = []
    for cell in cells if isinstance(cells, list) else ():
        source = table(cell).get("source") if table(cell).get("cell_type") == "code" else None
        joined = (
            "".join(str(part) for part in source) if isinstance(source, list) else source if isinstance(source, str) else ""
        )
        rows += (
            ["pass" if re.match(r"\s*[%!?]", row) else row for row in joined.splitlines()]
            if not joined.startswith("%%")
            else []
        )
    return "\n".join(rows) + "\n"


def _toml(path: Path, text: str) -> Document:
    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, ValueError) as error:
        line = re.search(r"line (\d+)", str(error))
        raise PricingError(f"{path}:{line[1] if line else 1}: not TOML: {error}") from None
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line_text in enumerate(text.splitlines(), 1):
        head = re.match(r"\s*\[+([^\[\]]+)\]+\s*(#.*)?$", line_text)
        key = re.match(r"\s*([\w.\"'-]+)\s*=", line_text)
        if head:
            table = tuple(part.strip(" \"'") for part in head[1].split("."))
            lines.setdefault(table, number)
        elif key:
            lines[(*table, *(part.strip(" \"'") for part in key[1].split(".")))] = number
    return Document(path, "toml", found, lines=lines)


def from_text(path: Path, text: str) -> Document:
    """A command line, a printed namespace, or ``key: value`` lines."""
    body = "\n".join(row for row in text.splitlines() if not row.lstrip().startswith("#")).strip()
    if re.match(r"^(argparse\.)?Namespace\(", body):
        return Document(path, "namespace", command_lines.namespace(path, body))
    if re.search(r"(^|\s)(python3?|torchrun|accelerate|\S+\.py|\S*compute_dp_sgd_privacy\w*)\s", body + " "):
        words = command_lines.words(path, body)
        return Document(path, "command", command_lines.options(words), tuple(words))
    pairs = [re.match(r"^\s*(?:--)?([\w.-]+)\s*[:=]\s*(.*?)\s*$", row) for row in body.splitlines() if row.strip()]
    if pairs and all(pairs):
        return Document(path, "namespace", {m[1].replace("-", "_"): command_lines.scalar(m[2]) for m in pairs if m})
    raise PricingError(f"{path}:1: not a command line, not Namespace(…) and not key: value lines")


def table(value: Tree) -> dict[str, Tree]:
    """``value`` where it is a mapping, else an empty one: what is missing is then said by name."""
    return value if isinstance(value, dict) else {}


def _mapping(path: Path, found: object) -> dict[str, Tree]:
    if not isinstance(found, dict):
        raise PricingError(f"{path}:1: a configuration is a mapping of keys, found {type(found).__name__}")
    return {str(key): value for key, value in found.items()}
