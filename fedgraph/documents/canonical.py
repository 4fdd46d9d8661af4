"""One text for one value, the same in every process, version and machine: what digests and names of streams are made of.

``repr`` is none: it shortens an array of many numbers, and another version of numpy writes a float in another way.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import PurePath

import numpy as np
import scipy.sparse as sp
from pydantic import BaseModel


def text(value: object) -> str:
    """Equal for equal values and different for different ones; arrays enter by their shape and SHA-256.

    A value is None, a truth value, number, text, path, member of an enumeration, array, sparse array, or sequences, sets,
    mappings, records and settings of such. A record has its class's name in it; settings have not, but hold the constants of
    their class. ``TypeError`` for anything else, of which nobody has said what makes two of it equal.
    """
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return ["enum", _plain(value.value)]
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, PurePath):
        return ["path", value.as_posix()]
    if isinstance(value, (np.bool_, np.integer, np.floating)):
        return _plain(value.item())
    if isinstance(value, int):
        return ["int", str(int(value))]
    if isinstance(value, float):
        return ["float", value.hex()]
    if isinstance(value, np.ndarray):
        return ["array", _digest(value)]
    if sp.issparse(value):
        rows = sp.csr_array(value, copy=True)
        rows.sum_duplicates()
        parts = (rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data)
        return ["sparse", list(map(str, rows.shape)), *map(_digest, parts)]
    if isinstance(value, BaseModel):
        return ["settings", {str(name): _plain(inner) for name, inner in value.__repr_args__()}]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return ["record", type(value).__name__, fields]
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return ["mapping", {key: _plain(inner) for key, inner in value.items()}]
        return ["pairs", sorted(([text(key), _plain(inner)] for key, inner in value.items()), key=lambda pair: str(pair[0]))]
    if isinstance(value, (set, frozenset)):
        return ["set", sorted(text(inner) for inner in value)]
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return ["sequence", [_plain(inner) for inner in value]]
    raise TypeError(f"{type(value).__name__} has no canonical text; allowed: numbers, texts, arrays, and records of these")


def _digest(array: np.ndarray) -> str:
    """Type, shape and SHA-256 of the numbers, the lowest byte first."""
    if array.dtype.kind not in "biuf":
        raise TypeError(f"an array of {array.dtype} has no canonical text; allowed: numbers")
    ordered = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return f"{ordered.dtype.str}{ordered.shape}:{hashlib.sha256(ordered.tobytes()).hexdigest()}"
