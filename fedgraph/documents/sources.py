"""A YAML file as plain data, with the line of every key. A hostile file is refused before it costs anything.

A scenario needs mappings with text keys, lists, texts, numbers, ``true``, ``false`` and ``null``; anchors and ``<<`` may repeat
a part of it. It needs no tags, no deep nesting and no megabytes, so these are refused, each in one line ``file:line: …``.

A place in a document is a ``SourceLocation``: the keys and list positions on the way to it, such as ``("tasks", 0,
"epsilons")``.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from fedgraph.errors import ScenarioError

SourceLocation = tuple[str | int, ...]

_MOST_BYTES = 1_000_000
_MOST_SOURCE_DEPTH = 30  # lists and mappings inside each other
_MOST_VALUES = 50_000  # after every alias is written out
SHOWN = 120  # characters of a text that a message repeats

_TEXT, _MERGE, _WHOLE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge", "tag:yaml.org,2002:int"


class YamlSource:
    """A text of YAML, read.

    Args:
        name: What messages begin with. A file is followed by its line, an option of the command line is not.
        text: The text.
        lined: Whether the line follows the name.
        foreign: Whether it is a file of another system. Its keys may look like numbers, and its numbers may be to base 60.

    Attributes:
        data: The content as plain data; None for an empty text.
        lines: The line of every key and entry, from 1.
        changes: Where a value was given that is not in the file, and by which option.

    Raises:
        ScenarioError: The text is not YAML, or more than a configuration needs.
    """

    def __init__(self, name: str, text: str, lined: bool = True, foreign: bool = False) -> None:
        self.name, self.lined, self._foreign = name, lined, foreign
        self.lines: dict[SourceLocation, int] = {}
        self.changes: dict[SourceLocation, str] = {}
        self._values = 0
        self._scalars = yaml.SafeLoader("")
        try:
            node = self._nodes(text)
        except yaml.YAMLError as error:
            marked = error if isinstance(error, yaml.MarkedYAMLError) else yaml.MarkedYAMLError()
            line = marked.problem_mark.line + 1 if marked.problem_mark else 1
            raise self._at(line, f"not YAML: {marked.problem or error}") from error
        self.data = None if node is None else self._plain(node, (), ())

    @classmethod
    def read(cls, path: Path) -> YamlSource:
        """A file of at most a megabyte of UTF-8. ``ScenarioError`` where it is none, or is not YAML."""
        return cls(str(path), read_text(path, "a scenario in YAML"))

    def line(self, at: SourceLocation) -> int:
        """The line of ``at``, or of the nearest key above it."""
        while at and at not in self.lines:
            at = at[:-1]
        return self.lines.get(at, 1)

    def place(self, at: SourceLocation) -> str:
        """``file:line``, or the option that gave the value."""
        given = next((self.changes[at[:n]] for n in range(len(at), 0, -1) if at[:n] in self.changes), None)
        return given or (f"{self.name}:{self.line(at)}" if self.lined else self.name)

    def error(self, at: SourceLocation, message: str) -> ScenarioError:
        """The error, in one line, of a place; message: what is wrong there, and what is allowed. The caller raises it."""
        return ScenarioError(f"{self.place(at)}: {message}")

    def _at(self, line: int, message: str) -> ScenarioError:
        message = " ".join(message.split())
        return ScenarioError(f"{self.name}:{line}: {message}" if self.lined else f"{self.name}: {message}")

    def _nodes(self, text: str) -> yaml.Node | None:
        """By libyaml where it is there, ten times as fast; what it refuses or reads otherwise (tabs) by Python's own reader."""
        if yaml.__with_libyaml__ and "\t" not in text:
            with contextlib.suppress(yaml.YAMLError, UnicodeError):  # half a letter, as a terminal may hand it over
                return self._composed(text, yaml.CSafeLoader)
        return self._composed(text, yaml.SafeLoader)

    def _composed(self, text: str, loader: Any) -> yaml.Node | None:
        """Its nodes. Before anything is built: no tag, and no deep nesting (which would exhaust the stack)."""
        depth = 0
        for event in yaml.parse(text, Loader=loader):
            line = event.start_mark.line + 1 if event.start_mark else 1
            if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and event.tag is not None:
                tag = shorten(event.tag)
                raise self._at(line, f"tag {tag}: tags would run code or build objects; allowed: plain values")
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > _MOST_SOURCE_DEPTH:
                    raise self._at(line, f"more than {_MOST_SOURCE_DEPTH} lists and mappings inside each other")
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
        return yaml.compose(text, Loader=loader)

    def _plain(self, node: yaml.Node, at: SourceLocation, above: tuple[yaml.Node, ...]) -> object:
        """The value of ``node``, aliases written out; notes the line of everything."""
        line = node.start_mark.line + 1
        self.lines.setdefault(at, line)
        self._values += 1
        if self._values > _MOST_VALUES:
            raise self._at(line, f"more than {_MOST_VALUES:,} values once every alias is written out")
        if any(node is other for other in above):
            raise self._at(line, "an alias that contains itself")
        if len(above) > _MOST_SOURCE_DEPTH:
            raise self._at(line, f"more than {_MOST_SOURCE_DEPTH} lists and mappings inside each other")
        inside = (*above, node)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, at, inside)
        if isinstance(node, yaml.SequenceNode):
            return [self._plain(value, (*at, index), inside) for index, value in enumerate(node.value)]
        shown = shorten(node.value)
        if node.tag == _WHOLE and ":" in node.value and not self._foreign:
            raise self._at(line, f"{shown} is a number to base 60 in YAML; write it in quotes to mean text")
        try:
            return self._scalars.construct_object(node)
        except (ValueError, OverflowError, yaml.YAMLError) as error:
            raise self._at(line, f"{shown} cannot be read as the value it looks like: {shorten(error)}") from error

    def _mapping(self, node: yaml.MappingNode, at: SourceLocation, inside: tuple[yaml.Node, ...]) -> dict[str, object]:
        own: dict[str, object] = {}
        merged: dict[str, object] = {}
        seen: dict[str, int] = {}
        merges = [(key, value) for key, value in node.value if key.tag == _MERGE]
        for key, value in [(k, v) for k, v in node.value if k.tag != _MERGE]:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode) or (key.tag != _TEXT and not self._foreign):
                found = shorten(key.value) if isinstance(key, yaml.ScalarNode) else "a list or mapping"
                raise self._at(line, f"key {found} is not text; write it in quotes if it is meant as text")
            if key.value in seen:
                raise self._at(line, f"key {shorten(key.value)} appears twice; first on line {seen[key.value]}")
            seen[key.value] = self.lines[(*at, key.value)] = line
            own[key.value] = self._plain(value, (*at, key.value), inside)
        for key, value in merges:
            for part in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                if not isinstance(part, yaml.MappingNode):
                    allowed = "'<<' merges mappings; allowed: an alias of a mapping, or a list of them"
                    raise self._at(key.start_mark.line + 1, allowed)
                if isinstance(given := self._plain(part, at, inside), dict):
                    merged = {**given, **merged}
        return {**merged, **own}


def read_text(path: Path, allowed: str, largest: int = _MOST_BYTES) -> str:
    """The text of an ordinary file, without a byte order mark. allowed: what it should be, in words, for messages.

    Raises:
        ScenarioError: One line, where it is no ordinary file, cannot be read, has more than ``largest`` bytes, or is not UTF-8.
    """
    try:
        if path.exists() and not path.is_file():
            raise ScenarioError(f"{path}: not an ordinary file; allowed: {allowed}")
        with path.open("rb") as file:
            content = file.read(largest + 1)
    except (OSError, ValueError) as error:  # ValueError: a name with a null byte
        said = error.strerror if isinstance(error, OSError) else None
        raise ScenarioError(f"{path}: cannot be read: {said or error}") from error
    if len(content) > largest:
        most = f"{largest:,}"
        raise ScenarioError(f"{path}:1: larger than {most} bytes; allowed: {allowed}, at most {most} are read")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ScenarioError(f"{path}:{line}: not UTF-8 text ({error.reason}); allowed: {allowed}, saved as UTF-8") from error


def shorten(value: object) -> str:
    """A value as a message repeats it: on one line, of at most ``SHOWN`` characters. Texts stand in quotes."""
    text = repr(value) if isinstance(value, str) else " ".join(str(value).split())
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def assign_key(data: object, key: str, value: object, error: Callable[[str], ScenarioError]) -> SourceLocation:
    """Sets a key in nested data, in place, and says where the value stands now. Mappings that are missing on the way are made.

    key: dotted, such as ``tasks.0.epsilons``; numbers are positions in lists. error: makes the error of a message, which is
    raised where it is no dotted key, or the data have no such place.
    """
    *path, last = key.split(".")
    if not all((*path, last)) or len(path) > _MOST_SOURCE_DEPTH:
        raise error(f"{shorten(key)} is not a dotted key such as tasks.0.epsilons")
    at, where = data, list[str | int]()
    for place, part in enumerate((*path, last)):
        if isinstance(at, dict):
            where.append(part)
            at[part] = held = value if place == len(path) else at.get(part, {})
        elif isinstance(at, list) and re.fullmatch("[0-9]{1,6}", part) and int(part) < len(at):
            where.append(int(part))
            at[int(part)] = held = value if place == len(path) else at[int(part)]
        elif place < len(path):
            raise error(f"there is no {part!r} in {key!r}")
        elif isinstance(at, list):
            raise error(f"{last!r} is not a position in {'.'.join(path)!r}, which has {len(at)} entries")
        else:
            raise error(f"{'.'.join(path)!r} is a single value and has no key {last!r}")
        at = held
    return tuple(where)
