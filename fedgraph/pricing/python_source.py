"""Python files as syntax: which calls stand there, with which constants. Nothing is imported or run.

A keyword's value is a constant where it is written as one, as arithmetic on constants, as a name that the file assigns
exactly once to a constant (or that a function gets where the file calls it once), or as ``args.x`` where
``add_argument("--x", default=…)`` stands in the same file (then the default is meant). Anything else is ``Unresolved`` with its
source, for a reader to ask about. A call has the name under which its module knows it (``from m import LocalDpMod as DP``), and
``**cfg`` is written out where the file assigns ``cfg`` once to a dictionary of such values.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fedgraph.errors import PricingError


@dataclass(frozen=True)
class Unresolved:
    """A value that syntax alone does not give. text: its source. key: the option it is looked up by, where it is a
    subscript or ``.get`` with a constant key; default: that of ``.get``."""

    text: str
    key: str | None = None
    default: object = None


Value = object


@dataclass(frozen=True)
class Call:
    """``name(args, keyword=…)``; name is the last part of the called expression, dotted the whole."""

    name: str
    dotted: str
    args: tuple[Value, ...]
    keywords: Mapping[str, Value]
    line: int

    def get(self, name: str, position: int | None = None) -> Value:
        """The argument by keyword or position, None where it is not given."""
        if name in self.keywords:
            return self.keywords[name]
        return self.args[position] if position is not None and position < len(self.args) else None


def read(path: Path, text: str) -> tuple[tuple[Call, ...], frozenset[str], dict[str, Value]]:
    """Every call of the file in order, the modules it imports, and what ``config.name = …`` sets first."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise PricingError(f"{path}:{error.lineno or 1}: not Python: {error.msg}") from None
    except (ValueError, MemoryError) as error:
        raise PricingError(f"{path}:1: not Python: {error}") from None
    names, known = _names(tree), _aliases(tree)
    tables = _tables(tree, names)
    calls = [_call(node, names, known, tables) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    imports = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imports |= {f"{node.module}.{alias.name}" for alias in node.names}
    settings: dict[str, Value] = {}
    for node in tree.body if not any(isinstance(n, ast.FunctionDef) for n in tree.body) else ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Attribute):
            target = node.targets[0]
            if isinstance(target.value, ast.Name) and target.value.id == "config":
                settings.setdefault(target.attr, constant(node.value, names))
    return tuple(sorted(calls, key=lambda c: c.line)), frozenset(imports), settings


def _aliases(tree: ast.AST) -> dict[str, str]:
    """New name → imported name, for ``from module import name as new``."""
    found = (alias for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names)
    return {alias.asname: alias.name for alias in found if alias.asname}


def _tables(tree: ast.AST, names: Mapping[str, Value]) -> dict[str, dict[str, Value]]:
    """Names that are assigned once, to ``{"key": value}`` or ``dict(key=value)``."""
    seen: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                inner = target.value if isinstance(target, (ast.Subscript, ast.Attribute)) else target
                if isinstance(inner, ast.Name):  # cfg["x"] = … counts as a second assignment
                    seen.setdefault(inner.id, []).append(node.value if inner is target else target)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            changes = node.func.attr in ("update", "pop", "setdefault", "clear")
            seen.setdefault(node.func.value.id, []).extend([node] * changes)
    out = {}
    for name, values in seen.items():
        found = _mapping(values[0], names) if len(values) == 1 else None
        if found is not None:
            out[name] = found
    return out


def _mapping(node: ast.expr, names: Mapping[str, Value]) -> dict[str, Value] | None:
    if isinstance(node, ast.Dict):
        keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
        if all(isinstance(key, str) for key in keys):
            return {str(key): constant(value, names) for key, value in zip(keys, node.values, strict=True)}
    is_dict = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict"
    if is_dict and isinstance(node, ast.Call) and not node.args and all(k.arg for k in node.keywords):
        return {str(k.arg): constant(k.value, names) for k in node.keywords}
    return None


def _call(
    node: ast.Call, names: Mapping[str, Value], known: Mapping[str, str], tables: Mapping[str, Mapping[str, Value]]
) -> Call:
    dotted = ast.unparse(node.func)
    head, dot, rest = dotted.partition(".")
    dotted = f"{known.get(head, head)}{dot}{rest}"
    args = tuple(constant(a, names) for a in node.args)
    keywords = {k.arg: constant(k.value, names) for k in node.keywords if k.arg}
    for k in node.keywords:
        if k.arg is None:
            written = tables.get(k.value.id) if isinstance(k.value, ast.Name) else _mapping(k.value, names)
            keywords |= written if written is not None else {"**": Unresolved(ast.unparse(k.value))}
    return Call(dotted.rsplit(".", 1)[-1], dotted, args, keywords, node.lineno)


def _names(tree: ast.AST) -> dict[str, Value]:
    """Names assigned exactly once, and ``args.x`` for each declared option."""
    seen: dict[str, list[ast.expr | None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for part in ast.walk(target):
                    if isinstance(part, ast.Name):
                        seen.setdefault(part.id, []).append(node.value if part is target else None)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            seen.setdefault(node.target.id, []).append(node.value)
        elif isinstance(node, (ast.AugAssign, ast.For, ast.NamedExpr)):
            for part in ast.walk(node.target):
                if isinstance(part, ast.Name):
                    seen.setdefault(part.id, []).append(None)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for name, value in _parameters(node, tree):
                seen.setdefault(name, []).append(value)
        elif isinstance(node, ast.Lambda):
            for parameter in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                seen.setdefault(parameter.arg, []).append(None)
    names: dict[str, Value] = {}
    for _ in range(3):  # names of names
        for name, values in seen.items():
            if len(values) == 1 and values[0] is not None:
                found = constant(values[0], names)
                if not isinstance(found, Unresolved) or found.key is not None:
                    names[name] = found
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
            flags = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            default = next((constant(k.value, names) for k in node.keywords if k.arg == "default"), None)
            for flag in flags:
                if flag.startswith("--") and default is not None and not isinstance(default, Unresolved):
                    names["args." + flag.lstrip("-").replace("-", "_")] = default
    return names


def _parameters(made: ast.FunctionDef | ast.AsyncFunctionDef, tree: ast.AST) -> list[tuple[str, ast.expr | None]]:
    """Every parameter, with what it gets where the file calls the function exactly once; None where that is not known."""
    plain = [*made.args.posonlyargs, *made.args.args]
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == made.name]
    given: dict[str, ast.expr] = {}
    if len(calls) == 1 and not any(isinstance(a, ast.Starred) for a in calls[0].args):
        given = dict(zip((p.arg for p in plain), calls[0].args, strict=False))
        given |= {k.arg: k.value for k in calls[0].keywords if k.arg}
    same = {p.arg for p in (*plain, *made.args.kwonlyargs)}  # f(x=x) says nothing
    return [(p, v if not (isinstance(v := given.get(p), ast.Name) and v.id == p) else None) for p in sorted(same)]


_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def constant(node: ast.expr, names: Mapping[str, Value]) -> Value:
    """The value of an expression that syntax alone gives, else ``Unresolved``."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if isinstance(node, ast.Attribute) and f"args.{node.attr}" in names and isinstance(node.value, ast.Name):
        return names[f"args.{node.attr}"]
    if isinstance(node, (ast.List, ast.Tuple)):
        return [constant(e, names) for e in node.elts]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        inner = constant(node.operand, names)
        if isinstance(inner, (int, float)):
            return -inner if isinstance(node.op, ast.USub) else inner
    if isinstance(node, ast.BinOp):
        return _arithmetic(node, names)
    casts = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("float", "int", "str")
    if casts and isinstance(node, ast.Call) and len(node.args) == 1:
        inner = constant(node.args[0], names)
        return inner if not isinstance(inner, Unresolved) or inner.key else Unresolved(ast.unparse(node))
    return _looked_up(node, names)


def _arithmetic(node: ast.BinOp, names: Mapping[str, Value]) -> Value:
    left, right = constant(node.left, names), constant(node.right, names)
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        try:
            if isinstance(node.op, ast.Pow) and abs(right) <= 64 and abs(left) <= 1e6:
                return float(left) ** right
            if type(node.op) in _OPERATORS:
                found = _OPERATORS[type(node.op)](left, right)
                return found if math.isfinite(found) else Unresolved(ast.unparse(node))
        except (ArithmeticError, ValueError):
            pass
    return Unresolved(ast.unparse(node))


def _looked_up(node: ast.expr, names: Mapping[str, Value]) -> Unresolved:
    text = ast.unparse(node)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return Unresolved(text, node.slice.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
        key = constant(node.args[0], names)
        if isinstance(key, str):
            return Unresolved(text, key, constant(node.args[1], names) if len(node.args) > 1 else None)
    return Unresolved(text)
