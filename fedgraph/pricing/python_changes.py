"""The abstract interpreter's changes: what a program sets on its objects, and the options of its command line."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from fedgraph.pricing import python_values as values
from fedgraph.pricing.python_values import (
    Assumed,
    Call,
    Class,
    Function,
    Items,
    Name,
    Parser,
    Part,
    Scope,
    Stack,
    Table,
    Unresolved,
    Value,
    either,
    lift,
    line_of,
    plain,
)

Plain: TypeAlias = Callable[..., Value]
_ROOTS: Mapping[str, Plain] = {"sqrt": math.sqrt, "log": math.log, "exp": math.exp, "ceil": math.ceil, "floor": math.floor}
PURE: Mapping[str, Plain] = {
    "float": float, "int": int, "str": str, "bool": bool, "abs": abs, "round": round, "max": max, "min": min,
    **{f"math.{n}": f for n, f in (*_ROOTS.items(), ("log2", math.log2), ("log10", math.log10), ("pow", math.pow))},
    **{f"numpy.{n}": f for n, f in _ROOTS.items()},
}  # fmt: skip


class Changes:
    """given: answers to options of a command line. config: the run configuration of a Flower app, None where there is none."""

    def __init__(self, given: Mapping[str, Value], config: Mapping[str, Value] | None) -> None:
        self.given, self.config = given, config
        self.calls: list[Call] = []
        self.stack: Stack = ()
        self.reached, self.again, self.steps = True, False, 0
        self.flags = Table()
        self.waiting: list[Function] = []
        self.used: set[str] = set()
        self.options: dict[str, Value] = {}
        self.lengths: list[int] = []

    def weak(self, before: Value, value: Value, missing: bool, born: Stack, node: str | ast.AST) -> Value:
        """What a place holds after an assignment that may not be made, or is made again and again."""
        if self.stack[: len(born)] == born and len(self.stack) == len(born):
            return value
        if missing or values.same(before, value):
            return value
        if self.again and any(kind == "loop" for kind, _ in self.stack[len(born) :]) and not isinstance(value, (Call, Part)):
            return Unresolved(f"{node if isinstance(node, str) else ast.unparse(node)}, which changes in a loop")
        return either(before, value)

    def set_item(self, owner: Table, key: str, value: Value) -> None:
        owner[key] = self.weak(owner.get(key), value, key not in owner, owner.born, key)

    def set_attribute(self, owner: Value, name: str, value: Value, node: ast.AST) -> None:
        for each in values.candidates(plain(owner)):
            if isinstance(each, Table):
                self.set_item(each, name, value)
            elif isinstance(each, Parser):
                self.set_item(each.options, name, value)
            elif isinstance(each, (Call, Part)):
                missing = name not in each.attributes
                before = Unresolved(f"{name} before line {line_of(node)}") if missing else each.attributes[name]
                each.attributes[name] = self.weak(before, value, False, each.born, name)
                each.set_at[name] = line_of(node)
            elif isinstance(each, Scope):
                each.local[name] = self.weak(each.local.get(name), value, name not in each.local, each.born, name)
            elif isinstance(each, Class):
                held = each.scope.local
                held[name] = self.weak(held.get(name), value, name not in held, each.scope.born, name)

    def assumed(self, name: str, default: Value, said: str, node: ast.AST) -> Value:
        """A default that somebody may change from outside, or what the user says it is."""
        if (key := values.normal(name)) in self.given:
            self.used.add(key)
            return self.given[key]
        if isinstance(plain(default), Unresolved):
            return default
        return Assumed(default, (f"{said} = {plain(default)!r}, its default (line {line_of(node)})",))

    def parser(self, parser: Parser, name: str, args: tuple[Value, ...], keywords: dict[str, Value], node: ast.expr) -> Value:
        if name in ("add_argument_group", "add_mutually_exclusive_group", "add_subparsers", "add_parser"):
            return parser
        if name == "set_defaults":
            for key, value in keywords.items():
                self.options[key] = self.assumed(key, value, f"--{key}", node)
                self.set_item(parser.options, key, self.options[key])
            return None
        if name == "add_argument":
            flags = [plain(a) for a in args if isinstance(plain(a), str)]
            long = [f for f in flags if isinstance(f, str) and f.startswith("--")] or [f for f in flags if isinstance(f, str)]
            named = plain(keywords.get("dest")) or (long[0].lstrip("-").replace("-", "_") if long else None)
            if not isinstance(named, str) or "**" in keywords:
                return None
            action = plain(keywords.get("action"))
            default = keywords.get("default", {"store_true": False, "store_false": True}.get(str(action)))
            needed = truthy(keywords.get("required")) or (bool(long) and not long[0].startswith("-"))
            kind = keywords.get("type")
            if isinstance(kind, Name) and kind.dotted in PURE and isinstance(plain(default), str):
                default = lift(node, PURE[kind.dotted], default)
            default = Unresolved(f"--{named}, which has no default") if needed and default is None else default
            self.options[named] = self.assumed(named, default, f"--{named.replace('_', '-')}", node)
            self.set_item(parser.options, named, self.options[named])
            return None
        if name in ("parse_args", "parse_known_args"):
            parsed = Table(parser.options)
            parsed.born = self.stack
            return parsed if name == "parse_args" else Items((parsed, Items()))
        return Unresolved(node)


def truthy(value: Value) -> bool:
    return values.truth(value) is True
