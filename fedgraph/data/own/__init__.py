"""Your own graph: one ``.npz`` file, a folder of three CSV files, or a folder per client. Never a pickle.

``own/federation``: see ``_own_federation``.

``own/npz``: the gnn-benchmark layout (``adj_data, adj_indices, adj_indptr, adj_shape``, the same with ``attr_``, and
``labels``; PPNP's ``adj_matrix.data`` … are understood too), and where the task says ``split: public`` the masks
``train_mask``, ``val_mask`` and ``test_mask`` (0/1, [n], or [n, k] for k splits). ``own/csv``: ``edges.csv`` (two columns of
node ids), ``features.csv`` (id, then numbers), ``labels.csv`` (id, label) and, where one is there, ``masks.csv`` (id, train |
validation | test: the split of ``split: public``); see ``_tables.py`` for the rules.

Treatment, counted in the provenance: arcs become undirected edges, weights are dropped, repeated edges are coalesced,
self-loops are dropped, isolated nodes are kept. Classes are the distinct labels in order, numbered from 0; an unknown label is
-1 in an ``.npz`` and a missing row in a CSV.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from pydantic import BaseModel, Field

from fedgraph.data import base
from fedgraph.data.base import masks as _masks
from fedgraph.data.base import npz, tables
from fedgraph.data.base.files import RawFiles
from fedgraph.data.base.structure import Cleaned, feature_matrix, undirected
from fedgraph.data.own import federation
from fedgraph.documents.settings import Settings
from fedgraph.errors import DataError, ScenarioError
from fedgraph.types import Graph, Provenance


class NpzParams(Settings):
    """Nothing beside the path."""


class CsvParams(Settings):
    """Names of the files inside the folder ``path``."""

    edges: str = Field("edges.csv", description="file of edges: two node ids per line")
    features: str = Field("features.csv", description="file of features: node id, then one number per feature")
    labels: str = Field("labels.csv", description="file of labels: node id, label")
    masks: str = Field("", description="file of the split: node id, train | validation | test (empty: masks.csv, if any)")


class FederationParams(Settings):
    """Nothing beside the path: the folder says everything."""


class ObjectParams(Settings):
    """Nothing: the graph is in memory."""


DATASETS: dict[str, type[BaseModel]] = {
    "npz": NpzParams,
    "csv": CsvParams,
    "federation": FederationParams,
    "object": ObjectParams,
}


def load(dataset: str, request: base.Request) -> Graph:
    """The graph at ``request.path``. Raises ``DataError`` naming file, line, what was found and what is allowed."""
    params = base.validated(DATASETS[dataset], request.parameters, f"own/{dataset}")
    if isinstance(params, ObjectParams):
        raise ScenarioError("data set 'own/object' is a graph in memory (fedgraph.compare); for a file use own/npz or own/csv")
    if request.path is None:
        what = {"npz": "the .npz file", "csv": "the folder with edges.csv, features.csv and labels.csv"}.get(
            dataset, "the folder with one folder per client"
        )
        raise ScenarioError(f"data set 'own/{dataset}' needs a path: {what}")
    if isinstance(params, FederationParams):
        return federation.load(request.path)
    return _from_csv(request.path, params) if isinstance(params, CsvParams) else _from_npz(request.path)


def _from_npz(path: Path) -> Graph:
    raw = RawFiles(path.parent)
    adjacency, attributes, values = npz.read(raw.read(path.name), str(path))
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
    unknown = values == -1 if values.dtype.kind != "U" else np.zeros(values.shape, dtype=bool)
    classes, positions = np.unique(values[~unknown], return_inverse=True)
    labels = np.full(values.size, -1, dtype=np.int64)
    labels[~unknown] = positions
    arcs = sp.coo_array(adjacency)
    kept = arcs.data != 0
    cleaned = undirected(arcs.row[kept], arcs.col[kept], values.size)
    graph = _graph(path, cleaned, feature_matrix(attributes), labels, classes.tolist(), raw)
    return replace(graph, masks=_masks.read(raw.read(path.name), str(path), values.size))


def _from_csv(path: Path, params: CsvParams) -> Graph:
    if not path.is_dir():
        raise DataError(f"{path}: not a folder; own/csv needs one with {params.edges}, {params.features} and {params.labels}")
    files = (params.edges, params.features, params.labels)
    missing = [name for name in files if not (path / name).exists()]
    if missing:
        raise DataError(f"{path}: {' and '.join(missing)} missing; a folder of tables needs {', '.join(files)}")
    raw = RawFiles(path)
    rows, features = tables.features(raw.read(params.features), str(path / params.features))
    sources, targets = tables.edges(raw.read(params.edges), str(path / params.edges), rows)
    labels, classes = tables.labels(raw.read(params.labels), str(path / params.labels), rows)
    masks = params.masks or ("masks.csv" if (path / "masks.csv").exists() else "")
    parts = tables.parts(raw.read(masks), str(path / masks), rows) if masks else {}
    graph = _graph(path, undirected(sources, targets, len(rows)), feature_matrix(features), labels, classes, raw)
    return replace(graph, masks=_masks.of_parts(parts, len(rows), str(path / masks))) if masks else graph


def _graph(
    path: Path, cleaned: Cleaned, features: sp.csr_array, labels: np.ndarray, classes: list[str], raw: RawFiles
) -> Graph:
    """Put the parts together, and say in the provenance what was changed."""
    if labels.size == 0:
        raise DataError(f"{path}: no nodes; allowed: one or more")
    if features.shape[1] == 0:
        raise DataError(f"{path}: nodes have no feature; allowed: one column or more (a constant 1 says nothing, and is one)")
    if not classes:
        raise DataError(f"{path}: no node has a label; allowed: at least one labelled node")
    detail = (
        f"own graph {path.name}: {labels.size} nodes, {cleaned.adjacency.nnz // 2} edges, {len(classes)} classes, "
        f"{int((labels == -1).sum())} nodes without a label; weights dropped, {cleaned.one_way} one-way arcs made undirected, "
        f"{cleaned.repeated} repeated edges coalesced, {cleaned.loops} self-loops dropped"
    )
    provenance = Provenance("own", detail, dict(raw.checksums))
    return Graph(f"own/{path.stem}", cleaned.adjacency, features, labels, len(classes), provenance)
