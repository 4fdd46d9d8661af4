"""A model in one file, in the layout of safetensors: a length, a JSON header, and the bytes of the arrays.

Every reader of safetensors sees the weights. All else stands in the header's metadata under ``fedgraph``, with a SHA-256 of
everything. The digest finds damage and careless edits. Whoever edits the file can compute it anew, so a file from a stranger is
only as honest as the stranger: what it can do is give wrong answers, for nothing in it is ever run.
"""

import hashlib
import json
import math
from pathlib import Path
from typing import cast

import numpy as np

from fedgraph.errors import DataError
from fedgraph.models.trees import KINDS, Tree, Writer, value_of

FORMAT = 1
MOST_HEADER = 100_000_000  # bytes
DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1", "U64": "<u8",
    "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
_NAMES = {np.dtype(code): name for name, code in DTYPES.items()}


def to_bytes(value: object) -> bytes:
    """The file of ``value``, a tree of frozen records (``trees``)."""
    writer = Writer()
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
    metadata = {"format": str(FORMAT), "fedgraph": text, "sha256": _digest(text, header, parts)}
    head = json.dumps({"__metadata__": metadata, **header}, ensure_ascii=False, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    return len(head).to_bytes(8, "little") + head + b"".join(parts)


def read(path: Path) -> object:
    """Inverse of ``to_bytes``. ``DataError`` in one line for any other file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from error
    try:
        return from_bytes(content)
    except Exception as error:
        why = f"{' '.join(str(error).split())[:200]}" if isinstance(error, DataError) else type(error).__name__
        raise DataError(f"{path}: no model that 'fedgraph fit' wrote, or damaged, or edited ({why})") from error


def from_bytes(content: bytes) -> object:
    """Inverse of ``to_bytes``. Raises for anything else."""
    size = int.from_bytes(content[:8], "little")
    if not 2 <= size <= min(MOST_HEADER, len(content) - 8):
        raise DataError("its header is not there")
    header, data = json.loads(content[8 : 8 + size]), memoryview(content)[8 + size :]
    metadata = header.pop("__metadata__")
    if metadata["format"] != str(FORMAT):
        raise DataError(f"format {str(metadata['format'])[:10]!r}; allowed: {FORMAT}")
    arrays, at = [], 0
    for number in range(len(header)):
        said = header[str(number)]
        dtype, shape, (first, last) = np.dtype(DTYPES[said["dtype"]]), said["shape"], said["data_offsets"]
        whole = all(isinstance(n, int) and n >= 0 for n in shape)
        if first != at or not whole or last - first != math.prod(shape) * dtype.itemsize or last > len(data):
            raise DataError(f"array {number} is not where it was")
        assert dtype.kind in KINDS
        arrays.append(np.frombuffer(data[first:last], dtype=dtype).reshape(shape))
        at = last
    if at != len(data) or metadata["sha256"] != _digest(metadata["fedgraph"], header, [bytes(data)]):
        raise DataError("its checksum is another")
    return value_of(cast(Tree, json.loads(metadata["fedgraph"])), arrays)


def _digest(text: str, header: dict[str, object], parts: list[bytes]) -> str:
    found = hashlib.sha256(json.dumps([text, header], sort_keys=True).encode())
    for part in parts:
        found.update(part)
    return found.hexdigest()
