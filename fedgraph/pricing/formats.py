"""The formats of configurations: YAML, JSON, TOML and notebooks as data, with the lines of their keys.

Every refusal is one line: ``file:line: found; allowed``. Tags, aliases that expand without end, keys that appear twice and NaN
are refused.
"""

import ast
import json
import re
import tomllib
from pathlib import Path
from typing import NoReturn

import yaml

from fedgraph.errors import PricingError
from fedgraph.pricing import hocon
from fedgraph.pricing.command_lines import Tree

DEEPEST, MOST_VALUES = 60, 100_000
SUFFIXES = (".yaml", ".yml", ".json", ".conf", ".toml")
Lines = dict[tuple[str, ...], int]


def parsed(path: Path, suffix: str, text: str) -> tuple[dict[str, Tree], Lines]:
    """The mapping of a file, and where its keys stand. ``PricingError`` in one line where it is damaged or a bomb."""
    if suffix == ".conf":
        return _mapping(path, hocon.parse(path, text)), {}
    if suffix == ".toml":
        return _toml(path, text)
    return (_json(path, text), {}) if suffix == ".json" else _yaml(path, text)


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


def _yaml(path: Path, text: str) -> tuple[dict[str, Tree], Lines]:
    _shallow(path, text)
    lines: Lines = {}
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
    return _mapping(path, found), lines


def _json(path: Path, text: str) -> dict[str, Tree]:
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
    return _mapping(path, found)


def notebook(path: Path, text: str) -> tuple[str, dict[Path, str]]:
    """The code cells of a notebook, one below the other, and the Python files that it writes beside it. Lines for the shell,
    magic words and cells that are not Python are left out."""
    cells = _json(path, text).get("cells")
    rows: list[str] = []
    written: dict[Path, str] = {}
    for cell in cells if isinstance(cells, list) else ():
        source = table(cell).get("source") if table(cell).get("cell_type") == "code" else ""
        code = "".join(str(part) for part in source) if isinstance(source, list) else str(source or "")
        magic = re.match(r"%%(?:writefile (-a )?(\S+\.py))?", code)
        kept = [] if magic and not magic[2] else code.splitlines()
        kept = ["pass" if re.match(r"\s*[%!?]", row) else row for row in kept]
        if not _runs("\n".join(kept)):
            continue
        if magic and magic[2]:
            file = path.parent / magic[2]
            written[file] = "\n".join([*([written[file]] if magic[1] and file in written else []), *kept])
        else:
            rows += kept
    return "\n".join(rows) + "\n", written


def _runs(code: str) -> bool:
    """Whether a cell is Python; one that is not stops where it stands."""
    try:
        return bool(ast.parse(code))
    except (SyntaxError, ValueError, MemoryError):
        return False


def _toml(path: Path, text: str) -> tuple[dict[str, Tree], Lines]:
    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, ValueError) as error:
        line = re.search(r"line (\d+)", str(error))
        raise PricingError(f"{path}:{line[1] if line else 1}: not TOML: {error}") from None
    lines: Lines = {}
    above: tuple[str, ...] = ()
    for number, line_text in enumerate(text.splitlines(), 1):
        head = re.match(r"\s*\[+([^\[\]]+)\]+\s*(#.*)?$", line_text)
        key = re.match(r"\s*([\w.\"'-]+)\s*=", line_text)
        if head:
            above = tuple(part.strip(" \"'") for part in head[1].split("."))
            lines.setdefault(above, number)
        elif key:
            lines[(*above, *(part.strip(" \"'") for part in key[1].split(".")))] = number
    return found, lines


def table(value: Tree) -> dict[str, Tree]:
    """``value`` where it is a mapping, else an empty one: what is missing is then said by name."""
    return value if isinstance(value, dict) else {}


def _mapping(path: Path, found: object) -> dict[str, Tree]:
    if not isinstance(found, dict):
        raise PricingError(f"{path}:1: a configuration is a mapping of keys, found {type(found).__name__}")
    return {str(key): value for key, value in found.items()}
