"""HOCON as NVIDIA FLARE writes it: JSON with comments, ``=`` or ``:`` or nothing before ``{``, bare words, no commas needed.

Includes and substitutions are not followed: ``${name}`` is refused, because its value may stand in another file.
"""

from __future__ import annotations

import re
from pathlib import Path

from fedgraph.errors import PricingError
from fedgraph.pricing.command_lines import Tree

DEEPEST = 60
_TOKEN = re.compile(
    r'(?P<gap>[ \t\r]+|(?:\#|//)[^\n]*)|(?P<line>\n)|"""(?P<long>.*?)"""|"(?P<text>(?:[^"\\\n]|\\.)*)"'
    r"|(?P<mark>[{}\[\],:=]|\+=)|(?P<bare>(?:(?!//)[^\s{}\[\],:=\"#+])+|\+)", re.S,
)  # fmt: skip


class _Reader:
    def __init__(self, path: Path, text: str) -> None:
        self.path, self.at = path, 0
        self.tokens: list[tuple[str, str, int]] = []
        line, place = 1, 0
        while place < len(text):
            found = _TOKEN.match(text, place)
            if found is None:
                raise PricingError(f"{path}:{line}: not HOCON: {text[place : place + 20]!r}")
            kind = found.lastgroup or ""
            if kind != "gap":
                self.tokens.append((kind, found[kind], line))
            line += found[0].count("\n")
            place = found.end()
        self.last = line

    def error(self, message: str) -> PricingError:
        line = self.tokens[self.at][2] if self.at < len(self.tokens) else self.last
        return PricingError(f"{self.path}:{line}: not HOCON: {message}")

    def peek(self, skip: bool = True) -> tuple[str, str]:
        while skip and self.at < len(self.tokens) and self.tokens[self.at][0] == "line":
            self.at += 1
        return self.tokens[self.at][:2] if self.at < len(self.tokens) else ("end", "")

    def table(self, closing: str, depth: int) -> dict[str, Tree]:
        out: dict[str, Tree] = {}
        if depth > DEEPEST:
            raise self.error(f"nested deeper than {DEEPEST}")
        while True:
            kind, word = self.peek()
            if (kind, word) == ("mark", ",") and out:
                self.at += 1
                continue
            if ((kind, word) == ("mark", "}") and closing) or (kind == "end" and not closing):
                self.at += 1
                return out
            if kind not in ("bare", "text"):
                raise self.error(f"a key is expected, found {word or 'the end'!r}")
            if kind == "bare" and word == "include":
                raise self.error("include is not followed; write the values out")
            self.at += 1
            names = word.split(".") if kind == "bare" else [word]
            if self.peek()[1] not in ("=", ":", "{"):
                raise self.error(f"= or : is expected after {word!r}")
            self.at += self.peek()[1] != "{"
            self.put(out, names, self.value(depth + 1))

    def put(self, out: dict[str, Tree], names: list[str], value: Tree) -> None:
        for name in names[:-1]:
            inner = out.setdefault(name, {})
            if not isinstance(inner, dict):
                raise self.error(f"{name!r} is a value and a table")
            out = inner
        before = out.get(names[-1])
        if names[-1] in out and not (isinstance(before, dict) and isinstance(value, dict)):
            raise self.error(f"key {names[-1]!r} appears twice")
        out[names[-1]] = {**before, **value} if isinstance(before, dict) and isinstance(value, dict) else value

    def value(self, depth: int) -> Tree:
        kind, word = self.peek()
        self.at += 1
        if (kind, word) == ("mark", "{"):
            return self.table("}", depth)
        if (kind, word) == ("mark", "["):
            return self.items(depth)
        if kind in ("text", "long"):
            return word
        if kind != "bare":
            raise self.error(f"a value is expected, found {word or 'the end'!r}")
        words = [word]
        while self.peek(skip=False)[0] == "bare":
            words.append(self.peek(skip=False)[1])
            self.at += 1
        return self.plain(" ".join(words))

    def items(self, depth: int) -> list[Tree]:
        out: list[Tree] = []
        if depth > DEEPEST:
            raise self.error(f"nested deeper than {DEEPEST}")
        while (token := self.peek()) != ("mark", "]"):
            if token == ("mark", ","):
                self.at += 1
                continue
            out.append(self.value(depth + 1))
        self.at += 1
        return out

    def plain(self, word: str) -> Tree:
        if "$" in word:
            raise self.error(f"{word!r} stands for a value of elsewhere; write it out")
        if word in ("true", "false", "null"):
            return {"true": True, "false": False, "null": None}[word]
        if re.fullmatch(r"[+-]?[0-9]{1,18}", word):
            return int(word)
        try:
            return float(word) if word.isascii() else word
        except ValueError:
            return word


def parse(path: Path, text: str) -> dict[str, Tree]:
    """The mapping of a HOCON file. ``PricingError`` in one line for anything that is none."""
    reader = _Reader(path, text)
    if reader.peek() == ("mark", "{"):
        reader.at += 1
        found = reader.table("}", 1)
        if reader.peek()[0] != "end":
            raise reader.error("something stands after the end")
        return found
    return reader.table("", 1)
