"""Flickr: pictures joined where they share a property such as the gallery; words of the description as features.

Zeng et al., "GraphSAINT: Graph Sampling Based Inductive Learning Method", ICLR 2020 (arXiv 1907.04931). The files that PyG's
``Flickr`` reads: ``adj_full.npz`` (a sparse matrix that scipy saved), ``feats.npy``, ``class_map.json`` (node → class) and
``role.json`` (``tr``, ``va``, ``te``: lists of nodes). The split is the published one (``split: public``).
"""

import numpy as np

from fedgraph.data.base import npz, number_files, published, splits
from fedgraph.data.base.adjacencies import feature_matrix
from fedgraph.data.base.files import RawFiles
from fedgraph.errors import DataError
from fedgraph.types import Graph

EDGES, ROWS, CLASSES, _ROLES = "adj_full.npz", "feats.npy", "class_map.json", "role.json"

DATASETS = published.published_records("graphsaint")


def read(data: published.PublishedData, raw: RawFiles) -> Graph:
    """The graph. Raises ``DataError`` naming file, what was found and what is allowed."""
    sources, targets, n = npz.read_sparse_npz(raw, EDGES)
    rows, classes = npz.read_npy(raw, ROWS), data.counts.classes
    if rows.ndim != 2 or rows.shape[0] != n:
        raise DataError(f"{raw.folder / ROWS}: shape {rows.shape}; allowed: [{n}, columns]")
    labels = np.full(n, -1, dtype=np.int64)
    for node, label in number_files.read_number_json(raw, CLASSES).items():
        if not node.isdecimal() or len(node) > 12 or int(node) >= n or type(label) is not int or not 0 <= label < classes:
            raise DataError(
                f"{raw.folder / CLASSES}: node {node[:20]!r} has class {str(label)[:20]!r}; allowed: nodes 0 … {n - 1}, "
                f"classes 0 … {classes - 1}"
            )
        labels[int(node)] = label
    if (labels < 0).any():
        first = int(np.argmin(labels))
        raise DataError(f"{raw.folder / CLASSES}: node {first} has no class; allowed: one for each of {n} nodes")
    split, features = splits.split_of_ids(*(_role(raw, key, n) for key in ("tr", "va", "te"))), feature_matrix(rows)
    return published.published_graph(data, raw, (sources, targets), features, labels, masks=split, features_from_edges=False)


def _role(raw: RawFiles, key: str, num_nodes: int) -> np.ndarray:
    given = number_files.read_number_json(raw, _ROLES).get(key)
    if not isinstance(given, list) or not all(type(v) is int and 0 <= v < num_nodes for v in given):
        raise DataError(f"{raw.folder / _ROLES}: {key!r} must be a list of nodes 0 … {num_nodes - 1}")
    return np.array(given, dtype=np.int64)


load = published.published_loader(DATASETS, read, published.PublishedData.generated)
