"""Tables of one's own federation beyond ``base.tables``: features with names, Parquet files, and PyG objects without pickle."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from fedgraph.data.base import tables
from fedgraph.data.base.files import RawFiles
from fedgraph.errors import DataError

if TYPE_CHECKING:
    import torch

Named = tuple[dict[str, int], np.ndarray, np.ndarray, tuple[str, ...], np.ndarray]
LONG = ("id", "feature", "value")
_LARGEST = float(np.finfo(np.float32).max)


def named_features(content: bytes, name: str) -> Named:
    """(node id → row, rows [k], columns [k], column names, float32 values [k]) of a CSV with a header.

    Wide: ``id,<name>,…``, a line per node. Sparse: exactly ``id,feature,value``, a line per value; where feature and value are
    empty, the line names a node without any feature. Raises ``DataError`` with file and line.
    """
    lines = _lines(content, name)
    header = [cell.strip() for cell in lines[0]]
    if len(header) < 2 or not all(header):
        raise DataError(
            f"{name}:1: found {header}; the first line names the columns, split by commas: id, then one name per feature"
        )
    if len(set(header)) != len(header):
        twice = next(h for h in header if header.count(h) > 1)
        raise DataError(f"{name}:1: column {twice!r} is named twice; allowed: each once")
    if all(_number(h) is not None for h in header[1:]) and header[0].casefold() not in tables.COLUMN_NAMES:
        raise DataError(f"{name}:1: found {header[:6]}; the first line names the columns: id, then one name per feature")
    sparse = tuple(h.casefold() for h in header) == LONG
    return _long(lines, name) if sparse else _wide(lines, header, name)


def _wide(lines: list[list[str]], header: list[str], name: str) -> Named:
    rows: dict[str, int] = {}
    where, columns, values = [], [], []
    for number, cells in enumerate(lines[1:], start=2):
        if not any(c.strip() for c in cells):
            continue
        if len(cells) != len(header):
            raise DataError(f"{name}:{number}: {len(cells)} columns; allowed: {len(header)}, as the first line names")
        node = cells[0].strip()
        if not node or node in rows:
            raise DataError(f"{name}:{number}: node {node!r} is {'empty' if not node else 'there twice'}; allowed: each once")
        rows[node] = len(rows)
        for column, cell in enumerate(cells[1:]):
            value = _number(cell)
            if value is None:
                raise DataError(f"{name}:{number}: {header[column + 1]} is {cell.strip()!r}; allowed: a finite number")
            if value:
                where.append(rows[node])
                columns.append(column)
                values.append(value)
    return _named(rows, where, columns, tuple(header[1:]), values, name)


def _long(lines: list[list[str]], name: str) -> Named:
    rows: dict[str, int] = {}
    position: dict[str, int] = {}
    where, columns, values = [], [], []
    seen: set[tuple[int, int]] = set()
    for number, cells in enumerate(lines[1:], start=2):
        cells = [c.strip() for c in cells]
        if not any(cells):
            continue
        if len(cells) != 3 or not cells[0]:
            raise DataError(f"{name}:{number}: found {cells}; allowed: id, feature, value")
        row = rows.setdefault(cells[0], len(rows))
        if not cells[1] and not cells[2]:
            continue
        value = _number(cells[2])
        if value is None or not cells[1]:
            raise DataError(f"{name}:{number}: feature {cells[1]!r} is {cells[2]!r}; allowed: a name and a finite number")
        column = position.setdefault(cells[1], len(position))
        if (row, column) in seen:
            raise DataError(f"{name}:{number}: node {cells[0]!r} has feature {cells[1]!r} twice; allowed: once")
        seen.add((row, column))
        where.append(row)
        columns.append(column)
        values.append(value)
    return _named(rows, where, columns, tuple(position), values, name)


def _named(
    rows: dict[str, int], where: list[int], columns: list[int], names: tuple[str, ...], values: list[float], name: str
) -> Named:
    if not rows:
        raise DataError(f"{name}: a header but no nodes; allowed: one line per node")
    return rows, np.array(where, np.int64), np.array(columns, np.int64), names, np.array(values, np.float32)


def _lines(content: bytes, name: str) -> list[list[str]]:
    try:
        lines = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: byte {error.start} is not UTF-8; a pickle is refused") from error
    except csv.Error as error:
        raise DataError(f"{name}: {error}; allowed: comma-separated text") from error
    if not lines:
        raise DataError(f"{name}: empty; allowed: a header and one line per node")
    return lines


def _number(cell: str) -> float | None:
    """The finite float32 in ``cell``, or None."""
    if "_" in cell:  # Python reads 1_0 as 10; nobody else does
        return None
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) and abs(value) <= _LARGEST else None


def names(raw: RawFiles, name: str, count: int) -> tuple[str, ...]:
    """``count`` column names, one a line, as a CSV's header would hold them: without spaces around and line ends of any kind.

    ``DataError`` where they are not that many, not different, or one is empty.
    """
    file = raw.folder / name
    try:
        text = raw.read(name).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: byte {error.start} is not UTF-8; allowed: {count} names in UTF-8, one per line") from error
    found = [line.strip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    while found and not found[-1]:
        found.pop()
    empty = next((number for number, one in enumerate(found, start=1) if not one), None)
    if empty is not None:
        raise DataError(f"{file}:{empty}: an empty line; allowed: {count} different names, one per line")
    if len(found) != count or len(set(found)) != len(found):
        raise DataError(
            f"{file}: {len(found)} lines, {len(set(found))} different; allowed: {count} different names, one per line"
        )
    return tuple(found)


def parquet(raw: RawFiles, name: str) -> bytes:
    """A Parquet file as the CSV that has the same table; one set of rules serves both. Needs pyarrow.

    The columns of features have names that count, and true and false count as 1 and 0. Those of other tables may be called
    anything: their names are left out, so they cannot be taken for nodes.
    """
    file = raw.folder / name
    content = raw.read(name)
    try:
        import pyarrow as pa
        from pyarrow import csv as pa_csv
        from pyarrow import parquet as pa_parquet
    except ImportError as error:
        raise DataError(
            f"{file}: Parquet needs the package pyarrow; install fedgraph-privacy[parquet], or write CSV"
        ) from error
    try:
        table = pa_parquet.read_table(pa.BufferReader(content))
        named = name.startswith("features.")
        for place, column in enumerate(table.schema if named else ()):
            if pa.types.is_boolean(column.type):
                table = table.set_column(place, column.name, table.column(place).cast(pa.int8()))
        if not named and not table.num_rows:
            return b"source,target\n" if table.num_columns > 1 else b"source\n"
        out = io.BytesIO()
        pa_csv.write_csv(table, out, pa_csv.WriteOptions(include_header=named, quoting_style="needed"))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{file}: not a Parquet table of plain columns: {str(error).splitlines()[0]}") from error
    return out.getvalue()


def data_object(content: bytes, name: str) -> tuple[np.ndarray, np.ndarray, sp.csr_array, np.ndarray, dict[int, str]]:
    """(sources, targets, features, labels, row → part) of ``torch.save(data.to_dict(), file)``; nothing is unpickled.

    Reads ``x`` [n, d], ``edge_index`` [2, m], ``y`` [n] (−1 where unknown) and, where they are there, ``train_mask``,
    ``val_mask``, ``test_mask``. Raises ``DataError`` naming the file and the key.
    """
    import pickle
    import warnings

    import torch

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of a pickle that is refused in the next line
            found = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, OSError, AttributeError) as error:
        hint = "write torch.save(data.to_dict(), file)"
        raise DataError(f"{name}: refused, it is not a plain dictionary of tensors; {hint}") from error
    if not isinstance(found, dict):
        raise DataError(f"{name}: holds {type(found).__name__}; allowed: data.to_dict() of a PyG Data")
    missing = [key for key in ("x", "edge_index", "y") if not isinstance(found.get(key), torch.Tensor)]
    if missing:
        raise DataError(f"{name}: no tensor {', '.join(missing)}; found: {', '.join(map(str, found)) or 'nothing'}")
    x, arcs, y = (_plain(found[key], f"{name}: {key}", dense=key != "x") for key in ("x", "edge_index", "y"))
    if y.ndim > 2 or (y.ndim == 2 and 1 not in y.shape):
        raise DataError(f"{name}: y has shape {tuple(y.shape)}; allowed: one whole number per node, [n]")
    y = y.reshape(-1)
    n = y.numel()
    if x.ndim != 2 or x.shape[0] != n or n == 0:
        raise DataError(f"{name}: x has shape {tuple(x.shape)} for {n} labels; allowed: [{n}, features]")
    if arcs.ndim != 2 or arcs.shape[0] != 2 or arcs.is_floating_point():
        raise DataError(
            f"{name}: edge_index has shape {tuple(arcs.shape)} and type {arcs.dtype}; allowed: whole numbers [2, m]"
        )
    if arcs.numel() and (int(arcs.min()) < 0 or int(arcs.max()) >= n):
        wrong = int(arcs.min()) if int(arcs.min()) < 0 else int(arcs.max())
        raise DataError(f"{name}: edge_index names node {wrong}; allowed: 0 … {n - 1}")
    if y.is_floating_point() or int(y.min()) < -1:
        raise DataError(f"{name}: y has type {y.dtype}, the least is {y.min():g}; allowed: whole numbers, -1 where unknown")
    split: dict[int, str] = {}
    for key, part in (("train_mask", "train"), ("val_mask", "validation"), ("test_mask", "test")):
        mask = found.get(key)
        if mask is None:
            continue
        if not isinstance(mask, torch.Tensor) or mask.shape != (n,) or mask.dtype != torch.bool:
            shape = f"{tuple(mask.shape)} of {mask.dtype}" if isinstance(mask, torch.Tensor) else type(mask).__name__
            raise DataError(f"{name}: {key} is {shape}; allowed: true or false for each of the {n} nodes, one split")
        for row in mask.nonzero().reshape(-1).tolist():
            if row in split:
                raise DataError(f"{name}: node {row} is in {split[row]} and in {part}; allowed: one part")
            split[row] = part
    pair = arcs.numpy().astype(np.int64)
    dense = x.to_dense() if x.layout is not torch.strided else x
    features = sp.csr_array(dense.to(torch.float32).numpy())
    return pair[0], pair[1], features, y.numpy().astype(np.int64), split


def _plain(given: torch.Tensor, name: str, dense: bool) -> torch.Tensor:
    """Without its gradient. ``DataError`` for complex numbers, and where ``dense``, for a sparse tensor."""
    import torch

    if given.is_complex() or (dense and given.layout is not torch.strided):
        raise DataError(f"{name} is {given.dtype}, {given.layout}; allowed: a dense tensor of real numbers")
    return given.detach()
