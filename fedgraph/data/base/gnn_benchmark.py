"""What CitationFull, Coauthor and Amazon share: one ``.npz`` per data set, attributes binarised, arcs made undirected."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fedgraph.data.base import npz
from fedgraph.data.base.files import RawFiles
from fedgraph.data.base.structure import Counts, feature_matrix, undirected
from fedgraph.types import Graph


def read(raw: RawFiles, file: str, key: str, title: str, counts: Counts) -> Graph:
    """The published graph in ``file``. Raises ``DataError`` when its counts are not the published ones.

    The checksum is recorded, not demanded: copies in circulation hold equal arrays in different bytes (compressed or not,
    with or without the text fields).
    """
    adjacency, attributes, labels = npz.read(raw.read(file), str(raw.folder / file))
    arcs = sp.coo_array(adjacency)
    graph = Graph(
        name=key,
        adjacency=undirected(arcs.row, arcs.col, arcs.shape[0]).adjacency,
        features=feature_matrix(attributes, binarise=True),
        labels=labels.astype(np.int64),
        num_classes=counts.classes,
        provenance=raw.provenance(title),
        features_from_edges=False,
        columns_from_rows=False,
        nodes_from_edges=False,
    )
    return counts.check(graph)
