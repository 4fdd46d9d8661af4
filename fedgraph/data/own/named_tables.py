"""Files of one's own federation beyond ``base.tables``: features with names, Parquet, PyG objects without pickle.

Edges between clients join nodes that are known to others by hashes (``ids.csv``, ``cross.csv``).
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from fedgraph.data.base import tables
from fedgraph.data.base.files import Faults, RawFiles
from fedgraph.data.base.structure import from_edges
from fedgraph.errors import DataError
from fedgraph.types import Graph

if TYPE_CHECKING:
    import torch

Named = tuple[dict[str, int], np.ndarray, np.ndarray, tuple[str, ...], np.ndarray]
LONG = ("id", "feature", "value")


def named_features(content: bytes, name: str) -> tables.FeatureTable | Named:
    """A CSV with a header. Wide, ``id,<name>,…``, a line per node: texts. Sparse, exactly ``id,feature,value``: numbers.

    Raises ``DataError`` that lists all faults with file and line.
    """
    head, lines = tables.headed(content, name)
    unnamed = all(np.isfinite(tables.number_in(h)) for h in head[1:]) and head[0].casefold() not in tables.COLUMN_NAMES
    if len(head) < 2 or unnamed:
        raise DataError(
            f"{name}:1: found {head[:6]}; the first line names the columns, split by commas: id, then one name per feature"
        )
    sparse = tuple(h.casefold() for h in head) == LONG
    rows: dict[str, int] = {}
    faults = Faults()
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
    return tables.FeatureTable(rows, tuple(head[1:]), list(rows), cells, [number for number, _ in lines])


def _sparse_features(name: str, rows: dict[str, int], lines: Sequence[tuple[int, list[str]]], faults: Faults) -> Named:
    """(node id → row, rows [k], columns [k], column names, float32 values [k]) of a line per value.

    Where feature and value are empty, the line names a node without any feature.
    """
    found: dict[tuple[int, str], float] = {}
    for number, (node, column, cell) in lines:
        where, value = f"{name}:{number}", tables.number_in(cell)
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
    return rows, set_rows, columns, names, np.array(list(found.values()), np.float32)


def names(raw: RawFiles, name: str, count: int) -> tuple[str, ...]:
    """``count`` column names, one a line, as a CSV's header would hold them: without spaces around and line ends of any kind.

    ``DataError`` where they are not that many, not different, or one is empty.
    """
    file = raw.folder / name
    text = tables.decoded_text(raw.read(name), str(file))
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


@dataclass(frozen=True, eq=False)
class Own:
    """One client's side. folder: where its files lie. hashes: hash → (row, line of ids.csv).

    cross: (row, hash, line of cross.csv) of the edges that leave it.
    """

    folder: Path
    hashes: dict[str, tuple[int, int]] = field(default_factory=dict)
    cross: tuple[tuple[int, str, int], ...] = ()


NOTHING = Own(Path())


def read_between(raw: RawFiles, rows: dict[str, int]) -> Own:
    """Both files of one client, where they are there. rows: node id → row. ``DataError`` names file and line."""
    hashes: dict[str, tuple[int, int]] = {}
    named: set[int] = set()
    for number, row, text in _pairs(raw, "ids.csv", rows):
        if text in hashes or row in named:
            raise DataError(f"{raw.folder / 'ids.csv'}:{number}: hash {text!r} or its node stands twice; allowed: each once")
        hashes[text] = row, number
        named.add(row)
    return Own(raw.folder, hashes, tuple((row, text, number) for number, row, text in _pairs(raw, "cross.csv", rows)))


def _pairs(raw: RawFiles, name: str, rows: dict[str, int]) -> list[tuple[int, int, str]]:
    """(line, row, text) of a two-column CSV whose first column is an own node; a header is left out."""
    file = raw.folder / name
    if not file.is_file():
        return []
    found, faults = [], Faults()
    for number, cells in tables.without_header(tables.read_lines(raw.read(name), str(file), least=1), rows, columns=1):
        if len(cells) != 2 or not cells[1]:
            faults.note(f"{file}:{number}", f"found {cells}; allowed: two columns, a node and a text")
        elif cells[0] not in rows:
            faults.note(f"{file}:{number}", tables.unknown_id_sentence(cells[0], rows, number))
        else:
            found.append((number, rows[cells[0]], cells[1]))
    faults.refuse()
    return found


def add_cross_edges(graph: Graph, given: Sequence[Own], starts: np.ndarray, names: Sequence[str]) -> tuple[Graph, str]:
    """The graph with the edges between clients, and a phrase that counts them. starts: each client's first node, and n."""
    where: dict[str, tuple[int, int]] = {}  # hash → (client, node)
    for client, own in enumerate(given):
        for text, (row, line) in own.hashes.items():
            if text in where:
                raise DataError(
                    f"{own.folder / 'ids.csv'}:{line}: hash {text!r} belongs to nodes of {names[where[text][0]]!r} and of "
                    f"{names[client]!r}; allowed: one node"
                )
            where[text] = client, int(starts[client]) + row
    listed: dict[tuple[int, int], set[int]] = {}  # edge → the clients that list it
    for client, own in enumerate(given):
        for row, text, line in own.cross:
            if text not in where:
                raise DataError(
                    f"{own.folder / 'cross.csv'}:{line}: hash {text!r} is in no client's ids.csv; allowed: a hash of another "
                    "client's node"
                )
            other, node = where[text]
            if other == client:
                raise DataError(
                    f"{own.folder / 'cross.csv'}:{line}: hash {text!r} is a node of this very client; allowed: a hash of "
                    "another client's node (own edges stand in edges)"
                )
            one, two = sorted((int(starts[client]) + row, node))
            listed.setdefault((one, two), set()).add(client)
    if not listed:
        return graph, "none between clients"
    upper = sp.triu(graph.adjacency, k=1, format="coo")
    inner = upper.coords[0].astype(np.int64) * graph.num_nodes + upper.coords[1]
    cross = np.array([one * graph.num_nodes + two for one, two in listed], dtype=np.int64)
    adjacency = from_edges(np.union1d(inner, cross), graph.num_nodes)
    alone = sum(len(ends) == 1 for ends in listed.values())
    return replace(graph, adjacency=adjacency), f"{len(listed)} of them between clients ({alone} listed at one end only)"
