"""HOCON as NVIDIA FLARE writes it: JSON with comments, ``=`` or ``:`` or nothing before ``{``, bare words, no commas needed.

Includes and substitutions are not followed: ``${name}`` is refused, because its value may stand in another file.
"""

import re
from pathlib import Path

from fedgraph.errors import PricingError
from fedgraph.pricing.command_lines import Tree, scalar

DEEPEST = 60
_TOKEN = re.compile(
    r'(?P<gap>[ \t\r]+|(?:\#|//)[^\n]*)|(?P<line>\n)|"""(?P<long>.*?)"""|"(?P<text>(?:[^"\\\n]|\\.)*)"'
    r"|(?P<mark>[{}\[\],:=]|\+=)|(?P<bare>(?:(?!//)[^\s{}\[\],:=\"#+])+|\+)", re.S,
)  # fmt: skip


class _Reader:
    """Reads tokens (kind, word, line) one after the other."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.at, line, place = path, 0, 1, 0
        self.tokens: list[tuple[str, str, int]] = []
        while place < len(text):
            found = _TOKEN.match(text, place)
            if found is None:
                raise PricingError(f"{path}:{line}: not HOCON: {text[place : place + 20]!r}")
            if found.lastgroup and found.lastgroup != "gap":
                self.tokens.append((found.lastgroup, found[found.lastgroup], line))
            line += found[0].count("\n")
            place = found.end()
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

    def table(self, closing: tuple[str, str], depth: int) -> dict[str, Tree]:
        out: dict[str, Tree] = {}
        if depth > DEEPEST:
            raise self.error(f"nested deeper than {DEEPEST}")
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

    def put(self, out: dict[str, Tree], names: list[str], value: Tree) -> None:
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

    def value(self, depth: int) -> Tree:
        kind, word = self.take()
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
        return scalar(word)

    def items(self, depth: int) -> list[Tree]:
        out: list[Tree] = []
        if depth > DEEPEST:
            raise self.error(f"nested deeper than {DEEPEST}")
        while self.peek() != ("mark", "]"):
            if self.peek() == ("mark", ","):
                self.at += 1
            else:
                out.append(self.value(depth + 1))
        self.at += 1
        return out


def parse(path: Path, text: str) -> dict[str, Tree]:
    """The mapping of a HOCON file. ``PricingError`` in one line for anything that is none."""
    reader = _Reader(path, text)
    if reader.peek() != ("mark", "{"):
        return reader.table(("end", "the end"), 1)
    reader.at += 1
    found = reader.table(("mark", "}"), 1)
    if reader.peek()[0] != "end":
        raise reader.error("something stands after the end")
    return found
