"""What can be said of values without knowing them: whether two are the same, one of several, what a function makes of them."""

import ast
import functools
import itertools
import math
import re
from collections.abc import Callable

from fedgraph.pricing.python_values import (
    Assumed,
    Call,
    Choice,
    Class,
    Function,
    Items,
    Name,
    Parser,
    Stack,
    Table,
    Unresolved,
    Value,
)  # fmt: skip

_MOST_CANDIDATES = 8


def normal(name: str) -> str:
    """A name as it is compared: small letters, one kind of gap, no dashes in front."""
    return re.sub(r"[\s_-]+", " ", name.strip().lower().lstrip("-"))


def line_of(node: ast.AST) -> int:
    return node.lineno if isinstance(node, (ast.expr, ast.stmt)) else 0


def same(a: Value, b: Value) -> bool:
    """Whether two values are certainly the same."""
    match a, b:
        case Unresolved(), Unresolved():
            return a.source is b.source
        case Assumed(), Assumed():
            return a.notes == b.notes and same(a.value, b.value)
        case Name(), Name():
            return a == b
        case Choice(), Choice():
            return same(a.values, b.values)
        case ((list() | tuple()), (list() | tuple())):
            return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return a is b or (is_plain(a) and type(a) is type(b) and a == b)


def either(a: Value, b: Value) -> Value:
    """One of both."""
    found: list[Value] = []
    for value in (*candidates(a), *candidates(b)):
        if not any(same(value, seen) for seen in found):
            found.append(value)
    if len(found) > _MOST_CANDIDATES:
        return Unresolved(f"one of more than {_MOST_CANDIDATES} values")
    return found[0] if len(found) == 1 else Choice(tuple(found))


def candidates(value: Value) -> tuple[Value, ...]:
    return value.values if isinstance(value, Choice) else (value,)


def holds(value: Value, wanted: Value) -> bool:
    """Whether a value is an object, may be it, has it in a list, or is made of it."""
    todo, seen = [value], set[int]()
    while todo:
        inner = plain(todo.pop())
        if inner is wanted:
            return True
        if id(inner) not in seen:
            seen.add(id(inner))
            several = inner.values if isinstance(inner, Choice) else inner if isinstance(inner, (Items, tuple)) else ()
            todo += (*inner.args, *inner.keywords.values()) if isinstance(inner, Call) else several
    return False


def is_plain(value: Value) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def plain(value: Value) -> Value:
    """The value without the assumption that it rests on; an assumption on a choice stays a choice."""
    return plain(value.value) if isinstance(value, Assumed) else value


def notes(value: Value) -> tuple[str, ...]:
    if isinstance(value, Assumed):
        return tuple(dict.fromkeys((*value.notes, *notes(value.value))))
    if isinstance(value, Choice):
        return tuple(dict.fromkeys(n for v in value.values for n in notes(v)))
    return ()


def lift(node: str | ast.AST, function: Callable[..., Value], *values: Value) -> Value:
    """``function`` of plain values, for every combination of candidates; else unresolved."""
    said = tuple(dict.fromkeys(n for v in values for n in notes(v)))
    combinations = list(itertools.islice(itertools.product(*(candidates(plain(v)) for v in values)), 65))
    results = [_lifted(node, function, [plain(v) for v in each]) for each in combinations]
    if len(combinations) > 64:
        return Unresolved(node)
    found = functools.reduce(either, results)
    return Assumed(found, said) if said and not isinstance(found, Unresolved) else found


def _lifted(node: str | ast.AST, function: Callable[..., Value], inner: list[Value]) -> Value:
    """``function`` of one combination; infinite only where something in it is."""
    try:
        one = function(*inner) if all(is_plain(v) for v in inner) else Unresolved(node)
    except (ArithmeticError, ValueError, TypeError, KeyError, IndexError, AttributeError, MemoryError):
        return Unresolved(node)
    infinite = any(v in ("inf", "-inf", "Infinity", math.inf, -math.inf) for v in inner if is_plain(v))
    return Unresolved(node) if isinstance(one, float) and not math.isfinite(one) and not infinite else one


def truth(value: Value) -> bool | None:
    """True, False, or None where it is not decided."""
    match plain(value):
        case Choice(values=several):
            found = {truth(v) for v in several}
            return found.pop() if len(found) == 1 else None
        case Items() | Table() as held:
            return bool(held) if held.whole or held else None
        case Function() | Class() | Parser():
            return True
        case Call(own=own):
            return True if own else None
        case inner:
            return bool(inner) if is_plain(inner) or isinstance(inner, tuple) else None


def elements(value: Value) -> list[Value] | None:
    """The elements of what is looped over, where all of them are known."""
    inner = plain(value)
    known = isinstance(inner, tuple) or (isinstance(inner, (Items, Table)) and inner.whole)
    return list(inner) if known and isinstance(inner, (tuple, Items, Table)) else None


def plain_data_as_held(data: object, born: Stack) -> Value:
    """Plain data (of a YAML or JSON file) as a program holds it."""
    if isinstance(data, dict):
        out = Table({str(key): plain_data_as_held(value, born) for key, value in data.items()})
        out.born = born
        return out
    if isinstance(data, list):
        items = Items(plain_data_as_held(value, born) for value in data)
        items.born = born
        return items
    return data
