"""Collections of small graphs from the TU Dortmund benchmark: MUTAG, PROTEINS, IMDB-BINARY.

Morris, Kriege, Bause, Kersting, Mutzel, Neumann, "TUDataset: A collection of benchmark datasets for learning with graphs", 2020
(graphlearning.io). Plain text files. Node features are the node attributes, then the node labels one-hot (the column order of
PyG's ``TUDataset`` with ``use_node_attr=True``); edge labels are left out. IMDB-BINARY has neither: its feature matrices are
[n, 0], and :func:`degree_features` makes some. Labels belong to the graphs; the ``labels`` of their nodes are -1.
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fedgraph.data.base import published, small_graphs, tu_files
from fedgraph.data.base.files import RawFiles
from fedgraph.data.base.structure import diagonal_blocks, feature_matrix, undirected
from fedgraph.errors import DataError
from fedgraph.types import Graph, GraphCollection, Provenance, plain_graph


@dataclass(frozen=True)
class Counts:
    """Published counts; nodes and edges over all graphs together, class_sizes in graphs."""

    graphs: int
    nodes: int
    edges: int
    features: int
    class_sizes: tuple[int, ...]


_COUNTS = {
    "mutag": Counts(188, 3371, 3721, 7, (63, 125)),
    "proteins": Counts(1113, 43471, 81044, 4, (663, 450)),
    "imdb-binary": Counts(1000, 19773, 96531, 0, (500, 500)),
}
_DRAWS = {"mutag": small_graphs.molecule, "proteins": small_graphs.contact_map, "imdb-binary": small_graphs.circles}
_KINDS = {"mutag": 7, "proteins": 3}  # node labels

DATASETS = published.records("tu")


def stand_in(data: published.Published, seed: int) -> GraphCollection:
    """Generated graphs with the published number of graphs per class and about the published mean sizes."""
    detail = (
        f"SYNTHETIC stand-in for {data.title}: generated graphs with its number of graphs per class and about its mean "
        f"nodes and edges (seed {seed}); not the published data"
    )
    dataset = data.key.partition("/")[2]
    sizes = _COUNTS[dataset].class_sizes
    return small_graphs.collect(_DRAWS[dataset], sizes, data.key, seed, Provenance("synthetic", detail))


def read(data: published.Published, raw: RawFiles) -> GraphCollection:
    """The collection of the raw files, graphs and nodes in file order; classes are the sorted values of the graph labels."""
    dataset = data.key.partition("/")[2]
    prefix = dataset.upper()
    owner = tu_files.indicator(raw, f"{prefix}_graph_indicator.txt")
    num_graphs = int(owner[-1]) + 1
    arcs = tu_files.arcs(raw, f"{prefix}_A.txt", owner)
    values, labels = np.unique(tu_files.classes(raw, f"{prefix}_graph_labels.txt", num_graphs), return_inverse=True)
    columns = [np.zeros((owner.size, 0))]
    if (attributes := f"{prefix}_node_attributes.txt") in data.files:
        columns.append(tu_files.attributes(raw, attributes, owner.size, 1))
    if (kinds := f"{prefix}_node_labels.txt") in data.files:
        columns.append(np.eye(_KINDS[dataset])[tu_files.kinds(raw, kinds, owner.size, _KINDS[dataset])])
    features = feature_matrix(sp.csr_array(np.concatenate(columns, axis=1)))
    adjacency = undirected(arcs[:, 0], arcs[:, 1], owner.size).adjacency
    found = Counts(labels.size, owner.size, adjacency.nnz // 2, features.shape[1], tuple(np.bincount(labels).tolist()))
    if found != _COUNTS[dataset]:
        raise DataError(f"{data.key!r} is not the published collection: found {found}, expected {_COUNTS[dataset]}")
    provenance = raw.provenance(data.title)
    graphs = _cut(adjacency, features, np.bincount(owner, minlength=labels.size), data.key, provenance)
    return GraphCollection(data.key, graphs, labels.astype(np.int64), values.size, provenance)


load = published.loader(DATASETS, read, stand_in)


def degree_features(collection: GraphCollection, max_degree: int) -> GraphCollection:
    """The collection with one-hot degrees as features, CSR [n, max_degree + 1]; larger degrees share the last column."""
    if max_degree < 0:
        raise DataError(f"max_degree is {max_degree}; allowed: 0 or more")
    graphs = []
    for graph in collection.graphs:
        columns = np.minimum(graph.degrees, max_degree).astype(np.int32)
        index = np.arange(graph.num_nodes + 1, dtype=np.int32)
        ones = np.ones(graph.num_nodes, dtype=np.float32)
        graphs.append(replace(graph, features=sp.csr_array((ones, columns, index), shape=(graph.num_nodes, max_degree + 1))))
    return replace(collection, graphs=tuple(graphs))


def _cut(
    adjacency: sp.csr_array, features: sp.csr_array, sizes: np.ndarray, name: str, provenance: Provenance
) -> tuple[Graph, ...]:
    """Blocks of the given sizes along the diagonal, one graph each."""
    rows = np.split(np.arange(adjacency.shape[0]), np.cumsum(sizes)[:-1])
    return tuple(
        plain_graph(f"{name}#{i}", block, sp.csr_array(features[own]), np.full(own.size, -1, dtype=np.int64), 0, provenance)
        for i, (block, own) in enumerate(zip(diagonal_blocks(adjacency, sizes), rows, strict=True))
    )
