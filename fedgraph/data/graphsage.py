"""Reddit posts of September 2014, joined where one person commented on both; the community is the label.

Hamilton, Ying, Leskovec, "Inductive Representation Learning on Large Graphs", NeurIPS 2017 (arXiv 1706.02216). The two files
that PyG's ``Reddit`` reads: ``reddit_data.npz`` (``feature``, ``label``, ``node_types``: 1 train, 2 validation, 3 test) and
``reddit_graph.npz`` (a sparse matrix that scipy saved). The split is the published one (``split: public``), by day.
"""

import numpy as np

from fedgraph.data.base import npz, published, splits
from fedgraph.data.base.adjacencies import feature_matrix
from fedgraph.data.base.files import RawFiles
from fedgraph.errors import DataError
from fedgraph.types import Graph

ROWS, EDGES = "reddit_data.npz", "reddit_graph.npz"

DATASETS = published.published_records("graphsage")


def read(data: published.PublishedData, raw: RawFiles) -> Graph:
    """The graph. Raises ``DataError`` naming file, what was found and what is allowed."""
    file = str(raw.folder / ROWS)
    parts = npz.read_npz_members(raw.read(ROWS), file, ("feature", "label", "node_types"))
    if lacking := [k for k in ("feature", "label", "node_types") if k not in parts]:
        held = ", ".join(parts) or "no array"
        raise DataError(f"{file}: holds {held} and no {lacking[0]}; allowed: feature, label, node_types")
    rows, labels, types = parts["feature"], parts["label"], parts["node_types"]
    sources, targets, n = npz.read_sparse_npz(raw, EDGES)
    classes = data.counts.classes
    if rows.ndim != 2 or rows.dtype.kind not in "fiu" or rows.shape[0] != n:
        raise DataError(f"{file}: feature is {rows.dtype} of shape {rows.shape}; allowed: numbers [{n}, columns]")
    for key, values, most in (("label", labels, classes - 1), ("node_types", types, 3)):
        if values.shape != (n,) or values.dtype.kind not in "iu" or (values < 0).any() or (values > most).any():
            allowed = f"[{n}], whole numbers 0 … {most}"
            raise DataError(f"{file}: {key} is {values.dtype} of shape {values.shape}; allowed: {allowed}")
    split = splits.split_of_ids(*(np.flatnonzero(types == k) for k in (1, 2, 3)))
    features = feature_matrix(rows.astype(np.float32))
    return published.published_graph(data, raw, (sources, targets), features, labels, masks=split, features_from_edges=False)


load = published.published_loader(DATASETS, read, published.PublishedData.generated)
