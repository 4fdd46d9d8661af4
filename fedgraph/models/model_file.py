"""A model in one file, in the layout of safetensors: a length, a JSON header, and the bytes of the arrays.

Every reader of safetensors sees the weights. All else is in the header's metadata under ``fedgraph``, with a SHA-256 of
everything. The digest finds damage and careless edits. Whoever edits the file can compute it again, so a stranger's file may
give wrong answers; it can do nothing else, because nothing in it is run.

The file holds frozen records with the names of their classes. A class must be a dataclass, a settings model or an enumeration
of the rooms below, or of an installed package that offers methods. A record is built by its constructor, with its own checks,
and each field must have its type. Nothing is unpickled.
"""

import dataclasses
import hashlib
import importlib
import inspect
import json
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TypeAlias, cast

import numpy as np
import scipy.sparse as sp

from fedgraph import plugins
from fedgraph.documents import Settings
from fedgraph.errors import DataError
from fedgraph.types import GraphProvenance

_FORMAT = 6  # 1 held digests of the training data; records of 2 to 5 have other names or fields
_MOST_HEADER = 100_000_000  # bytes
_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1", "U64": "<u8",
    "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
_NAMES = {np.dtype(code): name for name, code in _DTYPES.items()}


def to_bytes(value: object) -> bytes:
    """The file of a tree of frozen records. ``TypeError`` for what no model may hold."""
    writer = _Writer()
    text = json.dumps(writer.tree(value), ensure_ascii=False, separators=(",", ":"))
    header: dict[str, object] = {}
    parts, at = [], 0
    for number, array in enumerate(writer.arrays):
        content = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
        header[str(number)] = {
            "dtype": _NAMES[array.dtype.newbyteorder("<")], "shape": list(array.shape), "data_offsets": [at, at + len(content)]
        }  # fmt: skip
        parts.append(content)
        at += len(content)
    metadata = {"format": str(_FORMAT), "fedgraph": text, "sha256": _digest(text, header, parts)}
    head = json.dumps({"__metadata__": metadata, **header}, ensure_ascii=False, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    return len(head).to_bytes(8, "little") + head + b"".join(parts)


def read(path: Path) -> object:
    """Inverse of ``to_bytes``. ``DataError`` for any other file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from error
    try:
        return parse(content)
    except Exception as error:
        why = f"{' '.join(str(error).split())[:200]}" if isinstance(error, DataError) else type(error).__name__
        raise DataError(f"{path}: no model that 'fedgraph fit' wrote, or damaged, or edited ({why})") from error


def parse(content: bytes) -> object:
    """Inverse of ``to_bytes``. Other bytes raise ``DataError`` for foreseen faults, and any other error."""
    size = int.from_bytes(content[:8], "little")
    if not 2 <= size <= min(_MOST_HEADER, len(content) - 8):
        raise DataError("its header is not there")
    header = json.loads(content[8 : 8 + size])
    data = memoryview(content)[8 + size :]
    metadata = header.pop("__metadata__")
    if metadata["format"] != str(_FORMAT):
        raise DataError(f"format {str(metadata['format'])[:10]!r}; allowed: {_FORMAT}")
    arrays, at = [], 0
    for number in range(len(header)):
        said = header[str(number)]
        dtype = np.dtype(_DTYPES[said["dtype"]])
        shape = said["shape"]
        first, last = said["data_offsets"]
        whole = all(isinstance(n, int) and n >= 0 for n in shape)
        if first != at or not whole or last - first != math.prod(shape) * dtype.itemsize or last > len(data):
            raise DataError(f"array {number} is not where it was")
        arrays.append(np.frombuffer(data[first:last], dtype=dtype).reshape(shape))
        at = last
    if at != len(data) or metadata["sha256"] != _digest(metadata["fedgraph"], header, [bytes(data)]):
        raise DataError("its checksum is another")
    return _value_of(cast(_Tree, json.loads(metadata["fedgraph"])), arrays)


def _digest(text: str, header: dict[str, object], parts: list[bytes]) -> str:
    found = hashlib.sha256(json.dumps([text, header], sort_keys=True).encode())
    for part in parts:
        found.update(part)
    return found.hexdigest()


_Tree: TypeAlias = "bool | int | float | str | list[_Tree] | dict[str, _Tree] | None"
_ROOMS = (
    "fedgraph.methods.", "fedgraph.privacy.", "fedgraph.learning.", "fedgraph.types", "fedgraph.models.", "fedgraph.export.",
)  # and plugins'  # fmt: skip
_KINDS = "fiub"  # of arrays: numbers, true and false
_DEEPEST = 60  # records inside records


@dataclass
class _Writer:
    """Turns values into trees."""

    # the arrays, which trees name by their places; each is there once
    arrays: list[np.ndarray] = field(default_factory=list)
    _known: dict[int, int] = field(default_factory=dict)

    def tree(self, value: object) -> _Tree:
        """``value`` as JSON can hold it. ``TypeError`` for what no model may hold."""
        if isinstance(value, Enum):  # before texts: many of ours are both
            return {"enum": _called(type(value)), "name": value.name}
        if value is None or isinstance(value, (bool, str)) or type(value) in (int, float):
            return typing.cast(_Tree, value)
        if isinstance(value, np.generic):
            return self.tree(value.item())
        if isinstance(value, np.ndarray):
            return {"array": self._place(value)}
        if isinstance(value, sp.csr_array):
            parts: list[_Tree] = [self._place(part) for part in (value.data, value.indices, value.indptr)]
            return {"csr": parts, "shape": [int(n) for n in value.shape]}
        if isinstance(value, range):
            return {"range": [value.start, value.stop, value.step]}
        if isinstance(value, (tuple, list)):
            return {"tuple" if isinstance(value, tuple) else "list": [self.tree(one) for one in value]}
        if isinstance(value, Mapping):
            return {"map": [[self.tree(key), self.tree(one)] for key, one in value.items()]}
        if isinstance(value, Settings):
            return {"settings": _called(type(value)), "fields": {name: self.tree(one) for name, one in dict(value).items()}}
        if isinstance(value, GraphProvenance):  # a file may leave: no digest and no count of what was read
            value = GraphProvenance(value.source, "")
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {f.name: self.tree(vars(value)[f.name]) for f in dataclasses.fields(value) if f.init}
            return {"record": _called(type(value)), "fields": fields}
        raise TypeError(f"a model cannot hold a {type(value).__name__}")

    def _place(self, array: np.ndarray) -> int:
        if array.dtype.kind not in _KINDS:
            raise TypeError(f"a model cannot hold an array of {array.dtype}")
        if id(array) not in self._known:
            self._known[id(array)] = len(self.arrays)
            self.arrays.append(array)
        return self._known[id(array)]


def _value_of(tree: _Tree, arrays: list[np.ndarray], depth: int = 0) -> object:
    """Inverse of ``_Writer.tree``. ``DataError`` for anything else."""
    if depth > _DEEPEST:
        raise DataError("records lie too deep in one another")
    if not isinstance(tree, dict):
        if isinstance(tree, list):
            raise DataError("found a list where a value was expected")
        return tree
    kind, given = next(iter(tree.items()), ("", None))

    def inner(part: _Tree) -> object:
        return _value_of(part, arrays, depth + 1)

    def fields() -> dict[str, object]:
        given = tree.get("fields")
        return {name: inner(part) for name, part in (given if isinstance(given, dict) else {}).items()}

    if kind == "array":
        return _array(given, arrays)
    if kind == "csr":
        return _matrix([_array(place, arrays) for place in _list(given)], [_whole(n) for n in _list(tree.get("shape"))])
    if kind == "range":
        return range(*map(_whole, _list(given)))
    if kind in ("tuple", "list"):
        items = [inner(one) for one in _list(given)]
        return tuple(items) if kind == "tuple" else items
    if kind == "map":
        return {inner(_list(pair)[0]): inner(_list(pair)[1]) for pair in _list(given)}
    named = _class(given)
    if kind == "enum" and issubclass(named, Enum):
        return named[str(tree.get("name"))]
    if kind == "settings" and issubclass(named, Settings):
        return named(**fields())
    if kind == "record" and dataclasses.is_dataclass(named) and not issubclass(named, Enum):
        return _record(named, fields())
    raise DataError(f"found {kind!r}; allowed: what a model's file holds")


def _called(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _class(name: _Tree) -> type:
    """The class that a file names; ``DataError`` if it is none of the allowed rooms."""
    module, _, qualified = str(name).partition(":")
    rooms = (*_ROOMS, *(f"{package}." for package in plugins.packages()))
    if not module.startswith(rooms) or "__main__" in module:
        raise DataError(
            f"found a record {str(name)[:80]!r}; allowed: records of fedgraph's own, and of installed packages with methods"
        )
    try:
        named = vars(importlib.import_module(module)).get(qualified)
    except ImportError:
        named = None
    if not inspect.isclass(named) or named.__module__ != module:
        raise DataError(f"found a record {str(name)[:80]!r}, which this version of fedgraph does not have")
    return named


def _record(kind: type, given: Mapping[str, object]) -> object:
    names = {f.name for f in dataclasses.fields(kind) if f.init}
    if set(given) != names:
        raise DataError(f"{kind.__name__} has the fields {sorted(given)}; allowed: {sorted(names)}")
    for name, hint in typing.get_type_hints(kind).items():
        if name in given and not _fits(given[name], hint):
            raise DataError(f"{kind.__name__}.{name} is a {type(given[name]).__name__}; allowed: {hint}")
    return kind(**given)


def _fits(value: object, hint: object) -> bool:
    """Whether ``value`` has the type ``hint`` of a field, as far as this can be checked at run time."""
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _fits(value, inside[0])
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in inside)
    if origin is typing.Literal:
        return value in inside
    if hint is type(None) or hint is None:
        return value is None
    if origin is tuple:
        alike = inside[-1:] == (Ellipsis,)
        return isinstance(value, tuple) and all(_fits(one, inside[0]) for one in value) if alike else isinstance(value, tuple)
    named = origin if origin is not None else hint
    if not inspect.isclass(named) or bool(vars(named).get("_is_protocol", False)):
        return True  # a type variable or a protocol: whatever is built here is one of our records
    if named is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, named) and not (named is int and isinstance(value, bool))


def _list(tree: _Tree) -> list[_Tree]:
    if not isinstance(tree, list):
        raise DataError(f"found a {type(tree).__name__} where a list was expected")
    return tree


def _whole(tree: _Tree) -> int:
    if not isinstance(tree, int):
        raise DataError(f"found {str(tree)[:40]!r} where a whole number was expected")
    return tree


def _array(place: _Tree, arrays: list[np.ndarray]) -> np.ndarray:
    number = _whole(place)
    if not 0 <= number < len(arrays):
        raise DataError(f"array {number} is named; allowed: 0 … {len(arrays) - 1}")
    return arrays[number]


def _matrix(parts: list[np.ndarray], shape: list[int]) -> sp.csr_array:
    """The sparse matrix. Its indices are checked here, since compiled code follows them unchecked."""
    if (
        len(parts) != 3
        or len(shape) != 2
        or any(part.ndim != 1 for part in parts)
        or any(p.dtype.kind != "i" for p in parts[1:])
    ):
        raise DataError("a sparse matrix is not as it was written")
    matrix = sp.csr_array(tuple(parts), shape=tuple(shape))
    matrix.check_format(full_check=True)
    return matrix
