"""Tables of a federation's clients: CSV with a header, Parquet, or a PyG object; all clients' columns are read by one rule.

What a column is, and which texts it has, is decided over all clients that have it.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from fedgraph.data.base import csv_tables
from fedgraph.data.base.csv_tables import CsvFeatures
from fedgraph.data.base.files import DataFileFaults, RawFiles
from fedgraph.data.base.owner_parts import OwnerPart
from fedgraph.data.own.columns import OwnColumnRules, read_own_columns
from fedgraph.errors import DataError

if TYPE_CHECKING:
    import torch

_LONG = ("id", "feature", "value")


@dataclass(frozen=True, eq=False)
class SparseClientTable:
    """Features of a table with a line per value.

    Attributes:
        rows: node id → row.
        names: of the columns, in the order in which they occur.
        set_rows: int64 [k], the row of each value.
        columns: int64 [k], its column.
        values: float32 [k].
    """

    rows: dict[str, int]
    names: tuple[str, ...]
    set_rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray


def read_client_table(content: bytes, name: str) -> CsvFeatures | SparseClientTable:
    """A CSV with a header. Wide, ``id,<name>,…``, a line per node: texts. Sparse, exactly ``id,feature,value``: numbers.

    Raises ``DataError`` that lists all faults with file and line.
    """
    head, lines = csv_tables.read_headed_csv(content, name)
    numbers = all(np.isfinite(csv_tables.csv_number(h)) for h in head[1:])
    unnamed = numbers and head[0].casefold() not in csv_tables.CSV_ID_COLUMNS
    if len(head) < 2 or unnamed:
        raise DataError(
            f"{name}:1: found {head[:6]}; the first line names the columns, split by commas: id, then one name per feature"
        )
    sparse = tuple(h.casefold() for h in head) == _LONG
    rows: dict[str, int] = {}
    faults = DataFileFaults()
    for number, (node, *_) in lines:
        if not node:
            faults.note(f"{name}:{number}", "a node without an id; allowed: any text")
        elif node in rows and not sparse:
            faults.note(f"{name}:{number}", f"node {node!r} is there twice; allowed: each once")
        rows.setdefault(node, len(rows))
    if not rows:
        raise DataError(f"{name}: a header but no nodes; allowed: one line per node")
    if sparse:
        return _sparse_features(name, rows, lines, faults)
    faults.refuse()
    cells = [own for _, (_, *own) in lines]
    return CsvFeatures(rows, tuple(head[1:]), list(rows), cells, [number for number, _ in lines])


def _sparse_features(
    name: str, rows: dict[str, int], lines: Sequence[tuple[int, list[str]]], faults: DataFileFaults
) -> SparseClientTable:
    found: dict[tuple[int, str], float] = {}
    for number, (node, column, cell) in lines:
        where, value = f"{name}:{number}", csv_tables.csv_number(cell)
        if not column and not cell:
            continue
        if not column:
            faults.note(where, f"a feature without a name is {cell!r}; allowed: a name and a finite number")
        elif np.isnan(value):
            faults.note(where, f"{column} is {repr(cell) if cell else 'empty'}; allowed: a finite number")
        elif (rows[node], column) in found:
            faults.note(where, f"node {node!r} has feature {column!r} twice; allowed: once")
        else:
            found[rows[node], column] = value
    faults.refuse()
    names = tuple(dict.fromkeys(column for _, column in found))
    place = {column: number for number, column in enumerate(names)}
    set_rows, columns = np.array([(row, place[column]) for row, column in found], np.int64).reshape(-1, 2).T
    return SparseClientTable(rows, names, set_rows, columns, np.array(list(found.values()), np.float32))


def read_client_table_names(raw: RawFiles, name: str, count: int) -> tuple[str, ...]:
    """Names of columns, one a line, as a CSV's header would hold them: without spaces around, and with line ends of any kind.

    Raises:
        DataError: they are not that many, not different, or one is empty.
    """
    file = raw.folder / name
    text = csv_tables.decode_csv_text(raw.read(name), str(file))
    found = [line.strip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    while found and not found[-1]:
        found.pop()
    empty = next((number for number, one in enumerate(found, start=1) if not one), None)
    if empty is not None:
        raise DataError(f"{file}:{empty}: an empty line; allowed: {count} different names, one per line")
    if len(found) != count or len(set(found)) != len(found):
        lines = f"{len(found)} lines, {len(set(found))} different"
        raise DataError(f"{file}: {lines}; allowed: {count} different names, one per line")
    return tuple(found)


def read_client_parquet_table(raw: RawFiles, name: str) -> bytes:
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


def read_client_pyg_table(content: bytes, name: str) -> tuple[np.ndarray, np.ndarray, sp.csr_array, np.ndarray, dict[int, str]]:
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
        shape = f"shape {tuple(arcs.shape)} and type {arcs.dtype}"
        raise DataError(f"{name}: edge_index has {shape}; allowed: whole numbers [2, m]")
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


@dataclass(frozen=True, eq=False)
class ClientTable:
    """What one client gave.

    Attributes:
        part: its graph; without features where they are texts.
        texts: of a table with a column for each; None where all features are numbers, and stand in ``part``.
    """

    file: str
    part: OwnerPart
    texts: CsvFeatures | None


def join_client_tables(
    given: Sequence[ClientTable], rules: OwnColumnRules, folder: str
) -> tuple[list[OwnerPart], list[str], list[str]]:
    """Every client's columns. A client that has no such column has zeros there.

    Args:
        rules: what the user decided, for all clients alike.
        folder: names the federation in an error.

    Returns:
        The clients' parts, with the columns that became of their texts; bounded and remarks, as in ``OwnColumns``.

    Raises:
        DataError: one message that lists every cell that the rules do not allow; or they name a column that they cannot change.
    """
    _require_tables(given, rules, folder)
    holders: dict[str, list[int]] = {}
    for number, one in enumerate(given):
        for name in one.texts.names if one.texts is not None else ():
            holders.setdefault(name, []).append(number)
    together: dict[tuple[int, ...], list[str]] = {}  # columns that the same clients have
    for name, who in holders.items():
        together.setdefault(tuple(who), []).append(name)
    found: list[list[tuple[tuple[str, ...], sp.csr_array]]] = [[] for _ in given]
    bounded: list[str] = []
    remarks: list[str] = []
    faults = DataFileFaults()
    for holding, names in together.items():
        cells, places, nodes, ends = _stacked([given[number] for number in holding], names)
        own = {"bounds": {k: v for k, v in rules.bounds.items() if k in names}, "drop": [k for k in rules.drop if k in names]}
        with faults.gathering():
            ours = rules.model_copy(update=own)
            read = read_own_columns(names, cells, ours, folder, places.__getitem__, nodes, numbered=False)
            bounded += read.bounded
            remarks += read.remarks
            for number, begin, end in zip(holding, [0, *ends[:-1]], ends, strict=True):
                found[number].append((read.names, read.matrix[begin:end]))
    faults.refuse()
    parts = [one.part if one.texts is None else _with_columns(one.part, own) for one, own in zip(given, found, strict=True)]
    return parts, bounded, list(dict.fromkeys(remarks))


def _require_tables(given: Sequence[ClientTable], rules: OwnColumnRules, folder: str) -> None:
    for key in (*rules.bounds, *rules.drop):
        every = [one.part.column_names if one.texts is None else one.texts.names for one in given]
        if not any(key in names for names in every):
            known = ", ".join(dict.fromkeys(name for names in every for name in names))
            raise DataError(f"{folder}: no client has a column {key!r}; allowed: {known}")
        for one, names in zip(given, every, strict=True):
            if one.texts is None and key in names:
                raise DataError(
                    f"{one.file}: bounds and drop change columns of tables with a line per node (id, a column for each), and "
                    f"{key!r} is a column of this file, too; allowed: such a table, or no bounds and drop for it"
                )


def _stacked(given: Sequence[ClientTable], names: Sequence[str]) -> tuple[list[list[str]], list[str], list[str], list[int]]:
    cells: list[list[str]] = []
    places: list[str] = []
    nodes: list[str] = []
    ends: list[int] = []
    for one in given:
        if one.texts is None:
            raise ValueError("a client's table has no columns of texts to join")
        at = [one.texts.names.index(name) for name in names]
        cells += [[row[place] for place in at] for row in one.texts.cells]
        places += [f"{one.file}:{line}" for line in one.texts.lines]
        nodes += one.texts.ids
        ends.append(len(cells))
    return cells, places, nodes, ends


def _with_columns(part: OwnerPart, found: Sequence[tuple[tuple[str, ...], sp.csr_array]]) -> OwnerPart:
    names = tuple(name for own, _ in found for name in own)
    empty = sp.csr_array((part.adjacency.shape[0], 0), dtype=np.float32)
    entries = sp.coo_array(sp.hstack([empty, *(matrix for _, matrix in found)]))
    rows, columns = (place.astype(np.int64) for place in entries.coords)
    return replace(part, rows=rows, columns=columns, column_names=names, values=entries.data.astype(np.float32))
