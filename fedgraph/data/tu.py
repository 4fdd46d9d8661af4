"""Collections of small graphs from the TU Dortmund benchmark: MUTAG, PROTEINS, IMDB-BINARY.

Morris, Kriege, Bause, Kersting, Mutzel, Neumann, "TUDataset: A collection of benchmark datasets for learning with graphs", 2020
(graphlearning.io). Plain text files, one line per arc, node or graph, numbers split by commas or white space:

    A                 two numbers: the nodes that an arc joins, counted from 1 over all graphs; both of one graph
    graph_indicator   the graph of each node, counted from 1; the nodes of a graph follow one another
    graph_labels      the class of each graph
    node_labels       the kind of each node, counted from 0
    node_attributes   numbers of each node

Every error is a ``DataError`` of lines ``file:line: found; allowed``. Empty lines at the end are skipped.

Node features are the node attributes, then the node labels one-hot (the column order of
PyG's ``TUDataset`` with ``use_node_attr=True``); edge labels are left out. IMDB-BINARY has neither: its feature matrices are
[n, 0], and :func:`tu_degree_features` makes some. Labels belong to the graphs; the ``labels`` of their nodes are -1.
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fedgraph.data.base import drawn_graphs, number_files, published
from fedgraph.data.base.adjacencies import adjacency_blocks, feature_matrix, undirected_adjacency
from fedgraph.data.base.files import DataFileFaults, RawFiles
from fedgraph.errors import DataError
from fedgraph.types import GraphCollection, GraphProvenance, plain_graph


@dataclass(frozen=True)
class TuCounts:
    """Published counts of a collection.

    Attributes:
        edges: over all graphs together, undirected.
    """

    graphs: int
    nodes: int
    edges: int
    features: int
    class_sizes: tuple[int, ...]


_COUNTS = {
    "tu/mutag": TuCounts(188, 3371, 3721, 7, (63, 125)),
    "tu/proteins": TuCounts(1113, 43471, 81044, 4, (663, 450)),
    "tu/imdb-binary": TuCounts(1000, 19773, 96531, 0, (500, 500)),
}
_DRAWS = dict(zip(_COUNTS, (drawn_graphs.draw_molecule, drawn_graphs.contacts, drawn_graphs.circles), strict=True))
_KINDS = {"tu/mutag": 7, "tu/proteins": 3}  # node labels

DATASETS = published.records_of("tu")


def stand_in(data: published.PublishedData, seed: int) -> GraphCollection:
    """Generated graphs with the published number of graphs per class and about the published mean sizes."""
    detail = (
        f"SYNTHETIC stand-in for {data.title}: generated graphs with its number of graphs per class and about its mean "
        f"nodes and edges (seed {seed}); not the published data"
    )
    draw, counts = _DRAWS[data.key], _COUNTS[data.key]
    return drawn_graphs.draw_collection(draw, counts.class_sizes, data.key, seed, GraphProvenance("synthetic", detail))


def read(data: published.PublishedData, raw: RawFiles) -> GraphCollection:
    """The collection of the raw files, graphs and nodes in file order; classes are the sorted values of the graph labels."""
    name = data.key
    prefix = name.partition("/")[2].upper()
    owner = read_tu_indicator(raw, f"{prefix}_graph_indicator.txt")
    ends = read_tu_arcs(raw, f"{prefix}_A.txt", owner)
    classes = read_tu_classes(raw, f"{prefix}_graph_labels.txt", int(owner[-1]) + 1)
    values, labels = np.unique(classes, return_inverse=True)
    columns = [np.zeros((owner.size, 0))]
    if (file := f"{prefix}_node_attributes.txt") in data.files:
        columns.append(read_tu_attributes(raw, file, owner.size, 1))
    if (file := f"{prefix}_node_labels.txt") in data.files:
        columns.append(np.eye(_KINDS[name])[read_tu_node_kinds(raw, file, owner.size, _KINDS[name])])
    features = feature_matrix(sp.csr_array(np.concatenate(columns, axis=1)))
    adjacency = undirected_adjacency(ends[:, 0], ends[:, 1], owner.size).adjacency
    found = TuCounts(labels.size, owner.size, adjacency.nnz // 2, features.shape[1], tuple(np.bincount(labels).tolist()))
    if found != _COUNTS[name]:
        raise DataError(f"{name!r} is not the published collection: found {found}, expected {_COUNTS[name]}")
    provenance = raw.provenance(data.title)
    sizes = np.bincount(owner, minlength=labels.size)
    rows = np.split(np.arange(owner.size), np.cumsum(sizes)[:-1])
    graphs = tuple(
        plain_graph(f"{name}#{i}", block, sp.csr_array(features[own]), np.full(own.size, -1, dtype=np.int64), 0, provenance)
        for i, (block, own) in enumerate(zip(adjacency_blocks(adjacency, sizes), rows, strict=True))
    )
    return GraphCollection(name, graphs, labels.astype(np.int64), values.size, provenance)


load = published.loader(DATASETS, read, stand_in)


def tu_degree_features(collection: GraphCollection, max_degree: int) -> GraphCollection:
    """A collection with degrees as features, in the place of those that it has.

    Args:
        max_degree: 0 or more; larger degrees share the last column.

    Returns:
        Graphs with one-hot features, CSR float32 [n, max_degree + 1].

    Raises:
        DataError: ``max_degree`` is negative.
    """
    if max_degree < 0:
        raise DataError(f"max_degree is {max_degree}; allowed: 0 or more")
    graphs = []
    for graph in collection.graphs:
        columns = np.minimum(graph.degrees, max_degree).astype(np.int32)
        index = np.arange(graph.num_nodes + 1, dtype=np.int32)
        ones = np.ones(graph.num_nodes, dtype=np.float32)
        graphs.append(replace(graph, features=sp.csr_array((ones, columns, index), shape=(graph.num_nodes, max_degree + 1))))
    return replace(collection, graphs=tuple(graphs))


def read_tu_arcs(raw: RawFiles, file: str, owner: np.ndarray) -> np.ndarray:
    """int64 [m, 2], counted from 0. owner: of :func:`read_tu_indicator`."""
    what = "nodes of the graph indicator"
    found = number_files.read_whole_numbers(raw, file, 2, owner.size + 1, blanks=True, least=1, what=what)
    ends = found - 1
    faults = DataFileFaults()
    for line in np.flatnonzero(owner[ends[:, 0]] != owner[ends[:, 1]]):
        one, two = found[line]
        graphs = f"{owner[one - 1] + 1} and {owner[two - 1] + 1}"
        faults.note(f"{raw.folder / file}:{line + 1}", f"{one}, {two} joins graphs {graphs}; allowed: nodes of one graph")
    faults.refuse()
    return ends


def read_tu_indicator(raw: RawFiles, file: str) -> np.ndarray:
    """int64 [nodes]: each node's graph, counted from 0, never falling and without a gap."""
    found = number_files.read_whole_numbers(raw, file, 1, None, blanks=True, least=1)[:, 0]
    if not found.size:
        raise DataError(f"{raw.folder / file}: empty; allowed: one line per node")
    steps = np.diff(found, prepend=0)
    wrong = np.flatnonzero((steps < 0) | (steps > 1))
    if wrong.size:
        at = int(wrong[0])
        before = f"graph {found[at - 1]} or {found[at - 1] + 1}, as the line before is {found[at - 1]}" if at else "graph 1"
        raise DataError(f"{raw.folder / file}:{at + 1}: graph {found[at]}; allowed: {before}")
    return found - 1


def read_tu_classes(raw: RawFiles, file: str, num_graphs: int) -> np.ndarray:
    """int64 [graphs]: each graph's class, as written."""
    found = number_files.read_whole_numbers(raw, file, 1, None, blanks=True, least=None)[:, 0]
    return _as_many(raw, file, found, num_graphs, "graphs")


def read_tu_node_kinds(raw: RawFiles, file: str, num_nodes: int, num_kinds: int | None) -> np.ndarray:
    """int64 [nodes] in 0 … num_kinds − 1; any whole numbers where nobody knows how many kinds there are."""
    least = None if num_kinds is None else 0
    found = number_files.read_whole_numbers(raw, file, 1, num_kinds, blanks=True, least=least, what="kinds of nodes")
    return _as_many(raw, file, found[:, 0], num_nodes, "nodes")


def read_tu_attributes(raw: RawFiles, file: str, num_nodes: int, width: int | None) -> np.ndarray:
    """float64 [nodes, width], finite. width: None: as in the first line."""
    return _as_many(raw, file, number_files.read(raw, file, width, blanks=True), num_nodes, "nodes")


def _as_many(raw: RawFiles, file: str, found: np.ndarray, wanted: int, what: str) -> np.ndarray:
    if len(found) != wanted:
        allowed = f"{wanted}, one for each of the {what} of the indicator"
        raise DataError(f"{raw.folder / file}: {len(found)} lines; allowed: {allowed}")
    return found
