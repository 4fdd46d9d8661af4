"""What a network holds and reaches beside its weights: what its layers keep, and what the code of its classes asks for.

``contents`` follows a network's own code (its classes, closures, defaults, and the globals that it names) as far as it is not
that of an installed package. Every copy of a network shares what is found there. So a table among it is asked about as weights
are; what is another thing after the network was run is a memory of examples, which no copy takes away; and a class that was
edited since is looked at again. What code does beside it (files, clocks, other processes) is not seen.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
import types
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np

from fedgraph.learning.late import torch

_FEW = 16  # numbers with a point that a list may hold before it is taken as data
_DEEP = 3  # packages within packages that are looked into for what code names there
_LONG = 1000  # things of a list that are looked at one by one
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
TORCHS = ("_parameters", "_buffers", "_modules")  # where torch keeps what it finds
_NOT_RUN = ("__init__", "reset_parameters")  # code that has come to its end before there are examples


@dataclass(frozen=True, eq=False)
class _This:
    """A thing that is the same as itself alone."""

    thing: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _This) and self.thing is other.thing

    __hash__ = None  # type: ignore[assignment]


def contents(module: torch.nn.Module) -> dict[str, object]:
    """What is found, by its place; parameters and buffers are left out. Two that are equal hold the same things."""
    return {place: _mark(value) for place, value in _found(module)}


def changed(before: Mapping[str, object], after: Mapping[str, object]) -> str:
    """The first place that holds another thing; empty: none does."""
    return next((place for place in {**before, **after} if before.get(place, _This) != after.get(place, _This)), "")


def tables(module: torch.nn.Module) -> list[str]:
    """Places of tensors, arrays, tables, graphs and long lists of numbers, which no layer draws and which forward may read."""
    known = {id(part) for part in module.modules()}
    return [
        place for place, value in _found(module) if is_table(value)
        or (isinstance(value, torch.nn.Module) and id(value) not in known and _has_weights(value))
    ]  # fmt: skip


def is_table(value: object) -> bool:
    """Whether it is data that no layer draws."""
    if isinstance(value, (list, tuple)):
        return len(value) > _FEW and all(isinstance(one, float) for one in value)
    if isinstance(value, (type, types.FunctionType, torch.nn.Module)):
        return False
    return any(hasattr(value, name) for name in ("dtype", "dtypes", "edge_index", "adjacency", "adj"))


def _has_weights(module: torch.nn.Module) -> bool:
    return next(iter([*module.parameters(), *module.buffers()]), None) is not None


def _mark(value: object) -> object:
    """What can be compared with what is found there later."""
    if isinstance(value, (torch.Tensor, np.ndarray, np.generic)):
        numbers = np.asarray(value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value)
        return numbers.shape, hashlib.sha256(np.ascontiguousarray(numbers).data).hexdigest()
    if isinstance(value, (list, tuple)):
        return tuple(one if isinstance(one, _PLAIN) else _kind(one) for one in value)
    if isinstance(value, functools._lru_cache_wrapper):
        return value.cache_info().currsize
    return value if isinstance(value, (*_PLAIN, types.CodeType)) else _kind(value)


def _kind(value: object) -> _This:
    return _This(value if callable(value) and not isinstance(value, torch.nn.Module) else type(value))


def _found(module: torch.nn.Module) -> Iterator[tuple[str, object]]:
    seen: dict[int, object] = {}  # kept, so that no other thing gets the number of one that went
    own = {_package(type(part).__module__) for part in module.modules()} - {"torch", "torch_geometric"}
    parts = {id(part) for part in module.modules()}

    def written_here(place: str | None) -> bool:
        """Whether code is followed: not that of Python and of installed packages, but for the network's own."""
        name = _package(place or "builtins")
        origin = str(vars(sys.modules.get(name, types)).get("__file__"))
        return name in own or not (
            name in sys.stdlib_module_names or "site-packages" in origin or name in ("torch", "fedgraph")
        )

    def attributes(place: str, held: Mapping[str, object]) -> Iterator[tuple[str, object]]:
        for name, value in list(held.items()):
            if not name.startswith("__") or callable(value):
                yield from walk(_within(place, f".{name}") if place else name, value)

    def names_of(code: types.CodeType) -> Iterator[str]:
        yield from code.co_names
        for inner in code.co_consts:
            if isinstance(inner, types.CodeType):
                yield from names_of(inner)

    def code(place: str, function: types.FunctionType) -> Iterator[tuple[str, object]]:
        yield f"{place} (code)", function.__code__
        if function.__name__ in _NOT_RUN:
            return
        names = list(names_of(function.__code__))
        asked = {name: function.__globals__[name] for name in names if name in function.__globals__}
        files = {id(value): (name, value) for name, value in asked.items() if isinstance(value, types.ModuleType)}
        for _ in range(_DEEP):  # attributes of modules are asked for by their names
            inside = {f"{name}.{one}": vars(file)[one] for name, file in files.values() for one in names if one in vars(file)}
            asked |= inside
            files = {id(value): (name, value) for name, value in inside.items() if isinstance(value, types.ModuleType)}
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            asked[name] = _inside(cell)
        asked |= {f"default {number}": value for number, value in enumerate(function.__defaults__ or ())}
        asked |= function.__kwdefaults__ or {}
        for name, value in asked.items():
            yield from walk(f"{name} of {place}", value)
        yield from attributes(place, vars(function))

    def walk(place: str, value: object) -> Iterator[tuple[str, object]]:
        if isinstance(value, _PLAIN):
            yield place, value
        if isinstance(value, (*_PLAIN, types.ModuleType)) or id(value) in seen:
            return
        seen[id(value)] = value
        if isinstance(value, torch.nn.Module):
            yield place, value
            if id(value) in parts:
                usual = {"training", "_is_full_backward_hook", *TORCHS}
                yield from attributes(place, {k: v for k, v in vars(value).items() if k not in usual})
            yield from walk(type(value).__qualname__.rpartition(".")[2], type(value))
        elif isinstance(value, type):
            yield place, value
            if not (issubclass(value, torch.nn.Module) or written_here(value.__module__)):
                return
            for made in value.__mro__:
                if written_here(made.__module__):
                    yield from attributes(made.__qualname__.rpartition(".")[2], vars(made))
                elif made not in torch.nn.Module.__mro__:
                    yield f"{made.__qualname__} (code)", tuple(vars(made).values())
        elif isinstance(value, types.FunctionType):
            if written_here(value.__module__):
                yield from code(place, value)
            else:
                yield place, value
        elif isinstance(value, (staticmethod, classmethod)):
            yield from walk(place, value.__func__)
        elif isinstance(value, types.MethodType):
            yield from walk(place, [value.__func__, value.__self__])
        elif isinstance(value, property):
            yield from walk(place, value.fget)
        elif isinstance(value, functools.cached_property):
            yield from walk(place, value.func)
        elif isinstance(value, functools.partial):
            yield from walk(place, [value.func, value.args, value.keywords])
        elif isinstance(value, functools._lru_cache_wrapper):
            yield f"{place} (its cache)", value
            yield from walk(place, value.__wrapped__)
        elif isinstance(value, types.GeneratorType):
            yield from walk(place, inspect.getgeneratorlocals(value))
        elif isinstance(value, (list, tuple, set, frozenset, deque, Mapping)):
            yield place, list(value)
            for key, one in islice(list(value.items()) if isinstance(value, Mapping) else enumerate(value), _LONG):
                yield from walk(_within(place, f"[{key!s:.40}]"), one)
        else:
            yield place, value
            if written_here(type(value).__module__) and not is_table(value):
                yield from attributes(place, _held_by(value))
                yield from walk(type(value).__qualname__, type(value))

    for name, part in module.named_modules():
        yield from walk(name, part)


def _within(place: str, part: str) -> str:
    """``part`` of what stands at ``place``: kept[3] of Net.forward."""
    what, of, holder = place.partition(" of ")
    return f"{what}{part}{of}{holder}"


def _package(module: str) -> str:
    return module.partition(".")[0]


def _held_by(value: object) -> Mapping[str, object]:
    try:
        return vars(value)
    except TypeError:  # it has slots, or nothing
        return {}


def _inside(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty yet
        return None
