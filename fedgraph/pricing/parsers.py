"""The formats of configurations as data: YAML, JSON, TOML (with the lines of their keys), HOCON, notebooks, command lines.

Every refusal is one line: ``file:line: found; allowed``. Tags, aliases that expand without end and keys that appear twice are
refused.
"""

import ast
import itertools
import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import NoReturn

from fedgraph.documents.sources import SourceLocation, YamlSource
from fedgraph.errors import PricingError, ScenarioError

ParsedTree = None | bool | int | float | str | list["ParsedTree"] | dict[str, "ParsedTree"]
ParsedTable = dict[str, ParsedTree]
DEEPEST = 60
_TOKEN = re.compile(
    r'(?P<gap>[ \t\r]+|(?:\#|//)[^\n]*)|(?P<line>\n)|"""(?P<long>.*?)"""|"(?P<text>(?:[^"\\\n]|\\.)*)"'
    r"|(?P<mark>[{}\[\],:=]|\+=)|(?P<bare>(?:(?!//)[^\s{}\[\],:=\"#+])+|\+)|(?P<odd>.)", re.S,
)  # fmt: skip
PARSED_SUFFIXES = (".yaml", ".yml", ".json", ".conf", ".toml")
ParsedLines = dict[SourceLocation, int]


def parse_file(path: Path, suffix: str, text: str) -> tuple[dict[str, ParsedTree], ParsedLines]:
    """The mapping of a file, and where its keys stand. ``PricingError`` in one line where it is damaged or a bomb."""
    if suffix in (".conf", ".json"):
        return (_parse_hocon if suffix == ".conf" else _json)(path, text), {}
    if suffix == ".toml":
        try:
            found = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, ValueError) as error:
            line = re.search(r"line (\d+)", str(error))
            raise PricingError(f"{path}:{line[1] if line else 1}: not TOML: {error}") from None
        lines: ParsedLines = {}
        above: SourceLocation = ()
        for number, line_text in enumerate(text.splitlines(), 1):
            head = re.match(r"\s*\[+([^\[\]]+)\]+\s*(#.*)?$", line_text)
            key = re.match(r"\s*([\w.\"'-]+)\s*=", line_text)
            if head:
                above = tuple(part.strip(" \"'") for part in head[1].split("."))
                lines.setdefault(above, number)
            elif key:
                lines[(*above, *(part.strip(" \"'") for part in key[1].split(".")))] = number
        return found, lines
    try:
        source = YamlSource(str(path), text, foreign=True)
    except ScenarioError as error:
        raise PricingError(str(error)) from None
    return _mapping(path, source.data), source.lines


def _json(path: Path, text: str) -> dict[str, ParsedTree]:
    def once(pairs: list[tuple[str, ParsedTree]]) -> dict[str, ParsedTree]:
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


def parse_notebook(path: Path, text: str) -> tuple[str, dict[Path, str]]:
    """The code cells of a notebook, one below the other, and the Python files that it writes beside it. Lines for the shell,
    magic words and cells that are not Python are left out."""
    cells = _json(path, text).get("cells")
    rows: list[str] = []
    written: dict[Path, str] = {}
    for cell in cells if isinstance(cells, list) else ():
        source = parsed_mapping(cell).get("source") if parsed_mapping(cell).get("cell_type") == "code" else ""
        code = "".join(str(part) for part in source) if isinstance(source, list) else str(source or "")
        magic = re.match(r"%%(?:writefile (-a )?(\S+\.py))?", code)
        kept = [] if magic and not magic[2] else code.splitlines()
        kept = ["pass" if re.match(r"\s*[%!?]", row) else row for row in kept]
        try:
            ast.parse("\n".join(kept))
        except (SyntaxError, ValueError, MemoryError):
            continue  # a cell that is not Python stops where it stands
        if magic and magic[2]:
            file = path.parent / magic[2]
            written[file] = "\n".join([*([written[file]] if magic[1] and file in written else []), *kept])
        else:
            rows += kept
    return "\n".join(rows) + "\n", written


def parsed_mapping(value: ParsedTree, *keys: str) -> ParsedTable:
    """The mapping at ``keys`` of ``value``, else an empty one: what is missing is then said by name."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _mapping(path: Path, found: object) -> dict[str, ParsedTree]:
    if not isinstance(found, dict):
        raise PricingError(f"{path}:1: a configuration is a mapping of keys, found {type(found).__name__}")
    return {str(key): value for key, value in found.items()}


class _Hocon:
    """HOCON as NVIDIA FLARE writes it: JSON with comments, ``=`` or ``:`` or nothing before ``{``, bare words, no commas.

    Reads tokens (kind, word, line) one after the other. Includes and substitutions are not followed: ``${name}`` is refused,
    because its value may stand in another file.
    """

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.at, line = path, 0, 1
        self.tokens: list[tuple[str, str, int]] = []
        for found in _TOKEN.finditer(text):
            kind = found.lastgroup or "odd"
            if kind == "odd":
                raise PricingError(f"{path}:{line}: not HOCON: {text[found.start() :][:20]!r}")
            self.tokens += [(kind, found[kind], line)] if kind != "gap" else []
            line += found[0].count("\n")
        self.tokens.append(("end", "the end", line))

    def error(self, message: str) -> PricingError:
        return PricingError(f"{self.path}:{self.tokens[self.at][2]}: not HOCON: {message}")

    def peek(self, skip: bool = True) -> tuple[str, str]:
        while skip and self.tokens[self.at][0] == "line":
            self.at += 1
        return self.tokens[self.at][:2]

    def take(self) -> tuple[str, str]:
        token = self.peek()
        self.at += token[0] != "end"
        return token

    def table(self, closing: tuple[str, str], depth: int) -> dict[str, ParsedTree]:
        out: dict[str, ParsedTree] = {}
        while (token := self.take()) != closing:
            if token == ("mark", ",") and out:
                continue
            if token[0] not in ("bare", "text"):
                raise self.error(f"a key is expected, found {token[1]!r}")
            if token == ("bare", "include"):
                raise self.error("include is not followed; write the values out")
            names = token[1].split(".") if token[0] == "bare" else [token[1]]
            if self.peek()[1] not in ("=", ":", "{"):
                raise self.error(f"= or : is expected after {token[1]!r}")
            self.at += self.peek()[1] != "{"
            self.put(out, names, self.value(depth + 1))
        return out

    def put(self, out: dict[str, ParsedTree], names: list[str], value: ParsedTree) -> None:
        for name in names[:-1]:
            inner = out.setdefault(name, {})
            if not isinstance(inner, dict):
                raise self.error(f"{name!r} is a value and a table")
            out = inner
        before = out.get(names[-1])
        if isinstance(before, dict) and isinstance(value, dict):
            value = {**before, **value}
        elif names[-1] in out:
            raise self.error(f"key {names[-1]!r} appears twice")
        out[names[-1]] = value

    def value(self, depth: int) -> ParsedTree:
        kind, word = self.take()
        if depth > DEEPEST and word in ("{", "["):
            raise self.error(f"nested deeper than {DEEPEST}")
        if (kind, word) == ("mark", "{"):
            return self.table(("mark", "}"), depth)
        if (kind, word) == ("mark", "["):
            return self.items(depth)
        if kind in ("text", "long"):
            return word
        if kind != "bare":
            raise self.error(f"a value is expected, found {word!r}")
        while self.peek(skip=False)[0] == "bare":
            word += f" {self.take()[1]}"
        if "$" in word:
            raise self.error(f"{word!r} stands for a value of elsewhere; write it out")
        return parse_scalar(word)

    def items(self, depth: int) -> list[ParsedTree]:
        out: list[ParsedTree] = []
        while self.peek() != ("mark", "]"):
            if self.peek() == ("mark", ","):
                self.at += 1
            else:
                out.append(self.value(depth + 1))
        self.at += 1
        return out


def _parse_hocon(path: Path, text: str) -> dict[str, ParsedTree]:
    """The mapping of a HOCON file. ``PricingError`` in one line for anything that is none."""
    reader = _Hocon(path, text)
    if reader.peek() != ("mark", "{"):
        return reader.table(("end", "the end"), 1)
    reader.at += 1
    found = reader.table(("mark", "}"), 1)
    if reader.peek()[0] != "end":
        raise reader.error("something stands after the end")
    return found


def parse_namespace(path: Path, body: str) -> dict[str, ParsedTree]:
    """The values of ``Namespace(…)`` as argparse prints it."""
    try:
        call = ast.parse(body, mode="eval").body
    except (SyntaxError, ValueError, MemoryError) as error:
        raise PricingError(f"{path}:{getattr(error, 'lineno', 1)}: not a namespace: {error}") from None
    if not isinstance(call, ast.Call) or call.args:
        raise PricingError(f"{path}:1: not one Namespace(key=value, …)")
    out: dict[str, ParsedTree] = {}
    for keyword in call.keywords:
        try:
            value = ast.literal_eval(keyword.value)
        except (ValueError, TypeError, MemoryError):
            value = None if isinstance(keyword.value, ast.Constant) else ast.unparse(keyword.value)
        plain = value is None or isinstance(value, (bool, int, float, str))
        out[keyword.arg or "**"] = value if plain else ast.unparse(keyword.value)
    return out


def parse_python_line(path: Path, body: str) -> list[str]:
    """The words of the one line that runs Python."""
    joined = re.sub(r"\\\s*\n", " ", body)
    python = r"(^|\s|/)(python[\d.]*|torchrun|\S+\.py|compute_dp_sgd_privacy\w*)\s"
    runs = [row for row in joined.splitlines() if re.search(python, f"{row} ")]
    if len(runs) != 1:
        raise PricingError(f"{path}:1: {len(runs)} command lines that run Python; one file prices one")
    if re.search(r"[`$;|&<>]", runs[0]):
        raise PricingError(f"{path}:1: a command line with shell code ({runs[0].strip()[:60]}…); write its values out")
    try:
        return shlex.split(runs[0])
    except ValueError as error:
        raise PricingError(f"{path}:1: not a command line: {error}") from None


def parse_priced_command(words: list[str]) -> dict[str, ParsedTree]:
    """``--key value``, ``--key=value`` and bare ``--flag`` (True) of a command line; - in names becomes _."""
    out: dict[str, ParsedTree] = {}
    for word, after in itertools.zip_longest(words, words[1:], fillvalue="--end"):
        if re.match("--?[A-Za-z]", word):
            name, equals, value = word.lstrip("-").partition("=")
            if not equals and not re.match("--?[A-Za-z]", after):
                value, equals = after, "="
            out[name.replace("-", "_")] = parse_scalar(value) if equals else True
    return out


def parse_scalar(text: str) -> ParsedTree:
    """A word as a number, True, False, None or itself.

    >>> parse_scalar("1e-5"), parse_scalar("7"), parse_scalar("True"), parse_scalar("gap")
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


def parse_fact_name(name: str) -> str:
    """A name as it is compared: small letters, one kind of gap, no dashes in front."""
    return re.sub(r"[\s_-]+", " ", name.strip().lower().lstrip("-"))
