"""What CitationFull, Coauthor and Amazon share: one ``.npz`` per data set, attributes binarised, arcs made undirected."""

import scipy.sparse as sp

from fedgraph.data.base import npz, published
from fedgraph.data.base.files import RawFiles
from fedgraph.data.base.structure import feature_matrix
from fedgraph.types import Graph


def read(data: published.Published, raw: RawFiles) -> Graph:
    """The published graph in its one file. Raises ``DataError`` when its counts are not the published ones.

    The checksum is recorded, not demanded: copies in circulation hold equal arrays in different bytes (compressed or not,
    with or without the text fields).
    """
    (file,) = data.files
    adjacency, attributes, labels = npz.read(raw.read(file), str(raw.folder / file))
    arcs = sp.coo_array(adjacency)
    features = feature_matrix(attributes, binarise=True)
    return published.graph(data, raw, (arcs.row, arcs.col), features, labels, features_from_edges=False)
