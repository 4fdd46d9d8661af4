"""Collections of small graphs from the TU Dortmund benchmark: MUTAG, PROTEINS, IMDB-BINARY.

Morris, Kriege, Bause, Kersting, Mutzel, Neumann, "TUDataset: A collection of benchmark datasets for learning with graphs", 2020
(graphlearning.io). Plain text files, one line per arc, node or graph, nodes and graphs counted from 1. Node features are the
node attributes, then the node labels one-hot (the column order of PyG's ``TUDataset`` with ``use_node_attr=True``); edge labels
are left out. IMDB-BINARY has neither: its feature matrices are [n, 0]. Labels belong to the graphs; those of nodes are -1.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fedgraph.data.base import drawn_graphs, published
from fedgraph.data.base.adjacencies import adjacency_blocks, feature_matrix, undirected_adjacency
from fedgraph.data.base.files import RawFiles
from fedgraph.errors import DataError
from fedgraph.types import GraphCollection, GraphProvenance, plain_graph


@dataclass(frozen=True)
class _Counts:
    """Published counts of a collection; edges undirected, over all graphs together."""

    graphs: int
    nodes: int
    edges: int
    features: int
    class_sizes: tuple[int, ...]


_COUNTS = {
    "tu/mutag": _Counts(188, 3371, 3721, 7, (63, 125)),
    "tu/proteins": _Counts(1113, 43471, 81044, 4, (663, 450)),
    "tu/imdb-binary": _Counts(1000, 19773, 96531, 0, (500, 500)),
}
_DRAWS = dict(zip(_COUNTS, (drawn_graphs.draw_molecule, drawn_graphs.contacts, drawn_graphs.circles), strict=True))
_KINDS = {"tu/mutag": 7, "tu/proteins": 3}  # node labels

DATASETS = published.records_of("tu")


def _stand_in(data: published.PublishedData, seed: int) -> GraphCollection:
    """Generated graphs with the published number of graphs per class and about the published mean sizes."""
    detail = (
        f"SYNTHETIC stand-in for {data.title}: generated graphs with its number of graphs per class and about its mean "
        f"nodes and edges (seed {seed}); not the published data"
    )
    draw, counts = _DRAWS[data.key], _COUNTS[data.key]
    return drawn_graphs.draw_collection(draw, counts.class_sizes, data.key, seed, GraphProvenance("synthetic", detail))


def _read(data: published.PublishedData, raw: RawFiles) -> GraphCollection:
    """The collection of the raw files, graphs and nodes in file order; classes are the sorted values of the graph labels."""
    prefix = data.key.partition("/")[2].upper()

    def numbers(what: str) -> np.ndarray:
        return published.table(raw, f"{prefix}_{what}.txt", header=None, skipinitialspace=True).to_numpy()

    owner, ends = numbers("graph_indicator")[:, 0] - 1, numbers("A") - 1
    values, labels = np.unique(numbers("graph_labels")[:, 0], return_inverse=True)
    columns = [np.zeros((owner.size, 0))]
    columns += [numbers("node_attributes")] if f"{prefix}_node_attributes.txt" in data.files else []
    columns += [np.eye(_KINDS[data.key])[numbers("node_labels")[:, 0]]] if data.key in _KINDS else []
    features = feature_matrix(sp.csr_array(np.concatenate(columns, axis=1)))
    adjacency = undirected_adjacency(ends[:, 0], ends[:, 1], owner.size).adjacency
    found = _Counts(labels.size, owner.size, adjacency.nnz // 2, features.shape[1], tuple(np.bincount(labels).tolist()))
    if found != _COUNTS[data.key]:
        raise DataError(f"{data.key!r} is not the published collection: found {found}, expected {_COUNTS[data.key]}")
    provenance, sizes = raw.provenance(data.title), np.bincount(owner, minlength=labels.size)
    rows = np.split(np.arange(owner.size), np.cumsum(sizes)[:-1])
    nobody = [np.full(own.size, -1, dtype=np.int64) for own in rows]
    blocks = adjacency_blocks(adjacency, sizes)
    graphs = tuple(
        plain_graph(f"{data.key}#{i}", blocks[i], sp.csr_array(features[own]), nobody[i], 0, provenance)
        for i, own in enumerate(rows)
    )
    return GraphCollection(data.key, graphs, labels.astype(np.int64), values.size, provenance)


load = published.loader(DATASETS, _read, _stand_in)
