"""Your own graph: one ``.npz`` file, a folder of three CSV files, a folder per client, or many graphs. Never a pickle.

``own/federation``: see ``federation``. ``own/graphs``: see ``graph_folders``.

``own/npz``: the gnn-benchmark layout (``adj_data, adj_indices, adj_indptr, adj_shape``, the same with ``attr_``, and
``labels``; PPNP's ``adj_matrix.data`` … are understood too), and where the task says ``split: public`` the masks
``train_mask``, ``val_mask`` and ``test_mask`` (0/1, [n], or [n, k] for k splits). ``own/csv``: ``edges.csv`` (two columns of
node ids), ``features.csv`` (id, then a value per column; ``columns`` says what becomes of them), ``labels.csv`` (id, label)
and, where one is there, ``masks.csv`` (id, train | validation | test: the split of ``split: public``); see ``base.csv_tables``.

Treatment, counted in the provenance: arcs become undirected edges, weights are dropped, repeated edges are coalesced,
self-loops are dropped, isolated nodes are kept. Classes are the distinct labels in order, numbered from 0;
``labels`` says which labels count as missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from fedgraph.data import base
from fedgraph.data.base import adjacencies, csv_tables, npz, splits
from fedgraph.data.base.files import DataFileFaults, RawFiles
from fedgraph.data.own import collection, columns, federation, graph_folders
from fedgraph.data.own import objects as objects
from fedgraph.data.own.columns import EdgeColumnRules, OwnTableRules
from fedgraph.data.own.one_graph import OneGraph, check_one_graph
from fedgraph.errors import DataError, ScenarioError
from fedgraph.types import Graph, GraphCollection


class _CsvParams(OwnTableRules):
    """Names of the files inside the folder ``path``, and what shall be done with its columns."""

    edges: str = Field("edges.csv", description="file of edges: two node ids per line")
    features: str = Field("features.csv", description="file of features: node id, then one number per feature")
    labels: str = Field("labels.csv", description="file of labels: node id, label (empty: nobody's is known)")
    label: str = Field(
        "", description="which column is predicted: of the labels (empty: the first), or of features without labels"
    )
    masks: str = Field("", description="file of the split: node id, train | validation | test (empty: masks.csv, if any)")
    owner: str = Field("", description="column of edges that names who owns the record, for entity level (empty: nobody)")
    kind: str = Field("", description="column of edges that names their kind (empty: all edges are alike)")
    kinds: list[str] = Field([], description="kinds of edges that are kept (empty: all of them, and kinds are dropped)")


class _FederationParams(OwnTableRules):
    """The folder says everything else."""

    labels: bool = Field(True, description="whether clients bring labels; false: nobody's is known, as links need none")


class _GraphsParams(OwnTableRules):
    """What shall be done with the columns of nodes, and which column of the labels is predicted."""

    label: str = Field("", description="which column of labels.csv is predicted (empty: the first)")
    rows: bool = Field(
        False, description="each graph becomes one node without edges: its size, its degrees, the means of its columns"
    )


class _ObjectParams(OwnTableRules):
    """What ``fedgraph.compare`` was told of a graph in memory, so that a row can be fitted on others like it."""

    label: str = Field("", description="which column, or attribute, is predicted (empty: y or label)")


DATASETS: dict[str, type[EdgeColumnRules]] = {
    "npz": EdgeColumnRules,
    "csv": _CsvParams,
    "federation": _FederationParams,
    "graphs": _GraphsParams,
    "object": _ObjectParams,
}


def load(dataset: str, request: base.PublishedRequest) -> Graph | GraphCollection:
    """The graph, or the collection of graphs, at ``request.path``.

    Args:
        dataset: ``npz``, ``csv``, ``federation`` or ``graphs``; ``object`` is refused, since it lies in no file.
        request: its path and parameters; the rest is not read.

    Raises:
        ScenarioError: there is no path, or a parameter is wrong.
        DataError: the line names file, line, what was found and what is allowed.
    """
    params = base.validate_data_parameters(DATASETS[dataset], request.parameters, f"own/{dataset}")
    if isinstance(params, _ObjectParams):
        raise ScenarioError("data set 'own/object' is a graph in memory (fedgraph.compare); for a file use own/npz or own/csv")
    if request.path is None:
        what = {
            "npz": "the .npz file",
            "csv": "the folder with edges.csv, features.csv and labels.csv",
            "graphs": "the folder with the graphs",
        }.get(dataset, "the folder with one folder per client")
        raise ScenarioError(f"data set 'own/{dataset}' needs a path: {what}")
    if isinstance(params, _FederationParams):
        return federation.load(request.path, params, labelled=params.labels)
    if isinstance(params, _GraphsParams):
        found = graph_folders.load(request.path, params, params.label)
        return collection.own_collection_as_rows(found) if params.rows else found
    if isinstance(params, _CsvParams):
        return _from_csv(request.path, params)
    return _from_npz(request.path, params)


def _from_npz(path: Path, rules: EdgeColumnRules) -> Graph:
    raw = RawFiles(path.parent)
    adjacency, attributes, values = npz.read_npz(raw.read(path.name), str(path))
    for part, matrix in (("edge weight", adjacency), ("feature", attributes)):
        if matrix.data.dtype.kind not in "fiub":
            raise DataError(f"{path}: {part}s are of type {matrix.data.dtype}; allowed: numbers")
        bad = np.flatnonzero(~np.isfinite(matrix.data))
        if bad.size:
            row = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
            raise DataError(f"{path}: {part} of node {row} is {matrix.data[bad[0]]}; allowed: finite numbers")
    if values.dtype.kind not in "iuU":
        raise DataError(f"{path}: labels are of type {values.dtype}; allowed: integers (-1 for unknown) or text")
    if values.dtype.kind != "U" and values.size and int(values.min()) < -1:
        node = int(values.argmin())
        raise DataError(f"{path}: label of node {node} is {values[node]}; allowed: 0 or more, or -1 for unknown")
    arcs = sp.coo_array(adjacency)
    kept = arcs.data != 0
    unused = (f"edge weights ({kept.sum():,} edges)",) if (arcs.data[kept] != 1).any() else ()
    masks = splits.read_masks(raw.read(path.name), str(path), values.size)
    given = (arcs.row[kept], arcs.col[kept], attributes, values.tolist(), str(path), unused)
    told = OneGraph(f"own/{path.stem}", f"own graph {path.name}", *given, checksums=raw.checksums, masks=masks)
    return check_one_graph(told, rules)


def _typed(
    raw: RawFiles, path: Path, params: _CsvParams, rows: Mapping[str, int], ends: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[str, ...]]:
    """(ends of the edges of kinds that are kept, twice; the number of each one's owner, or nothing; remarks)."""
    file = str(path / params.edges)
    kept = np.ones(ends[0].size, dtype=bool)
    remarks: list[str] = []
    if params.kinds and not params.kind:
        raise ScenarioError("own/csv: kinds says which kinds of edges are kept, and kind, which column names them, is missing")
    if params.kind:
        kinds = np.array(csv_tables.read_csv_edge_column(raw.read(params.edges), file, rows, params.kind), dtype=object)
        every = sorted(set(kinds.tolist()))
        if unknown := sorted(set(params.kinds) - set(every)):
            raise ScenarioError(f"{file}: no edge is of the kind {unknown[0]!r}; allowed: {', '.join(every)}")
        kept = np.isin(kinds, params.kinds or every)
        said = [f"{kind}: {int((kinds == kind).sum())}" for kind in every]
        remarks.append(
            f"kinds of edges ({', '.join(said)}) are dropped: {int(kept.sum())} edges of {params.kinds or 'all'} are alike"
        )
    owners = np.zeros(0, dtype=np.int64)
    if params.owner:
        words = csv_tables.read_csv_edge_column(raw.read(params.edges), file, rows, params.owner)
        names, numbers = np.unique(words, return_inverse=True)
        owners = numbers.astype(np.int64)[kept]
        remarks.append(f"{names.size} owners of edges")
    return ends[0][kept], ends[1][kept], owners, tuple(remarks)


def _from_csv(path: Path, params: _CsvParams) -> Graph:
    if not path.is_dir():
        raise DataError(f"{path}: not a folder; own/csv needs one with {params.edges}, {params.features} and {params.labels}")
    given = bool(params.labels) and (path / params.labels).exists()
    inside = bool(params.label) and not given  # the label is a column of the features
    files = (params.edges, params.features, *((params.labels,) if params.labels and not inside else ()))
    missing = [name for name in files if not (path / name).exists()]
    if missing:
        inner = "; or say which column of features.csv is the label (label: NAME, --label NAME)"
        way = inner if missing == ["labels.csv"] else ""
        raise DataError(f"{path}: {' and '.join(missing)} missing; a folder of tables needs {', '.join(files)}{way}")
    raw = RawFiles(path)
    file, faults = str(path / params.features), DataFileFaults()
    table = csv_tables.read_csv_features(raw.read(params.features), file, faults)
    rows, words = table.rows, list[str | None]()
    if inside:
        table, words = csv_tables.take_csv_column(table, params.label, file)
    others: list[str] = []
    with faults.gathering():
        sources, targets, more = csv_tables.read_csv_edges(raw.read(params.edges), str(path / params.edges), rows)
    if given:
        content, labels = raw.read(params.labels), str(path / params.labels)
        with faults.gathering():
            words = csv_tables.read_csv_labels(content, labels, rows, params.label)
            named = csv_tables.csv_label_columns(content, labels, rows)
            others = [f"column {one!r} of {params.labels}" for one in named if one != (params.label or named[0])]
    names = table.names or tuple(columns.own_column_name(place) for place in range(len((table.cells or [[]])[0])))
    places = [f"{file}:{line}" for line in table.lines]
    read = columns.read_own_columns(names, table.cells, params, file, places.__getitem__, table.ids, faults)
    sources, targets, owners, remarks = _typed(raw, path, params, rows, (sources, targets))
    more -= len({params.owner, params.kind} - {""})
    masks = params.masks or ("masks.csv" if (path / "masks.csv").exists() else "")
    parts = csv_tables.read_csv_split(raw.read(masks), str(path / masks), rows) if masks else {}
    weights = (f"{more} further column{'s' if more > 1 else ''} of {params.edges} (weights, times)",) if more else ()
    where = str(path / (params.features if inside else params.labels)) if words else str(path)
    known = (sources, targets, read.matrix, words or [None] * len(rows), where, (*weights, *others), remarks)
    split = splits.of_parts(parts, len(rows), str(path / masks)) if masks else ()
    told = OneGraph(f"own/{path.stem}", f"own graph {path.name}", *known, ids=tuple(rows), checksums=raw.checksums, masks=split)
    graph = check_one_graph(told.with_table(read), params, labelled=bool(words))
    if owners.size:
        apart = sources != targets
        ends = np.column_stack([sources, targets])[apart]
        layers = adjacencies.adjacency_of_owners(ends, owners[apart], graph.num_nodes)
        graph = replace(graph, edge_owners=layers, one_owner_a_record=True)
    return graph if table.names else replace(graph, names=replace(graph.names, columns=()))
