"""Reddit posts of September 2014, joined where one person commented on both; the community is the label.

Hamilton, Ying, Leskovec, "Inductive Representation Learning on Large Graphs", NeurIPS 2017 (arXiv 1706.02216). The two files
that PyG's ``Reddit`` reads: ``reddit_data.npz`` (``feature``, ``label``, ``node_types``: 1 train, 2 validation, 3 test) and
``reddit_graph.npz`` (a sparse matrix that scipy saved). The split is the published one (``split: public``), by day.
"""

from __future__ import annotations

import numpy as np

from fedgraph.data import base
from fedgraph.data.base import arrays, npz
from fedgraph.data.base.block_model import BlockModel, stand_in
from fedgraph.data.base.files import RawFiles
from fedgraph.data.base.structure import Counts, feature_matrix
from fedgraph.errors import DataError
from fedgraph.types import Graph

ROWS, EDGES = "reddit_data.npz", "reddit_graph.npz"
_COUNTS = {"reddit": Counts(232_965, 57_307_946, 602, 41)}

DATASETS = {
    "reddit": base.Published(
        key="graphsage/reddit", title="Reddit", folder="graphsage/Reddit/raw", files=(ROWS, EDGES), columns_from_rows=True
    )
}


def load(dataset: str, request: base.Request) -> Graph:
    """``reddit``; see :func:`fedgraph.data.load`."""
    return base.load_published(DATASETS[dataset], request, read=read, stand_in=generated, pyg=("Reddit", {}))


def read(raw: RawFiles) -> Graph:
    """The graph. Raises ``DataError`` naming file, what was found and what is allowed."""
    return arrays.require(unchecked(raw), _COUNTS["reddit"])


def unchecked(raw: RawFiles) -> Graph:
    """The graph, whatever its size."""
    file = str(raw.folder / ROWS)
    parts = npz.members(raw.read(ROWS), file, ("feature", "label", "node_types"))
    if lacking := [k for k in ("feature", "label", "node_types") if k not in parts]:
        raise DataError(
            f"{file}: holds {', '.join(parts) or 'no array'} and no {lacking[0]}; allowed: feature, label, node_types"
        )
    rows, labels, types = parts["feature"], parts["label"], parts["node_types"]
    sources, targets, n = arrays.ends(raw, EDGES)
    classes = _COUNTS["reddit"].classes
    if rows.ndim != 2 or rows.dtype.kind not in "fiu" or rows.shape[0] != n:
        raise DataError(f"{file}: feature is {rows.dtype} of shape {rows.shape}; allowed: numbers [{n}, columns]")
    for key, values, most in (("label", labels, classes - 1), ("node_types", types, 3)):
        if values.shape != (n,) or values.dtype.kind not in "iu" or (values < 0).any() or (values > most).any():
            raise DataError(
                f"{file}: {key} is {values.dtype} of shape {values.shape}; allowed: [{n}], whole numbers 0 … {most}"
            )
    return Graph(
        name="graphsage/reddit",
        adjacency=arrays.adjacency(sources, targets, n),
        features=feature_matrix(rows.astype(np.float32)),
        labels=labels.astype(np.int64),
        num_classes=classes,
        provenance=raw.provenance("Reddit (GraphSAGE)"),
        masks=arrays.masks(*(np.flatnonzero(types == k) for k in (1, 2, 3))),
        features_from_edges=False,
        columns_from_rows=False,
        nodes_from_edges=False,
    )


def generated(seed: int) -> Graph:
    """A stand-in of a fiftieth of the nodes and edges."""
    model = BlockModel(
        (113,) * 41, 1_146_158 // 4, 602, 0.75, words=40.0, words_spread=10.0, degree_spread=80.0, topic_share=0.5
    )
    return stand_in(model, "graphsage/reddit", "Reddit (1/50 of its size)", seed)
