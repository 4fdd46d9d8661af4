"""A collection of labelled graphs, split and dealt to clients: what graph classification trains and tests on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fedgraph import seeds
from fedgraph.comparison import ClassifySplit
from fedgraph.errors import DataError, ScenarioError
from fedgraph.methods import (
    column_ranks,
)
from fedgraph.partition import PartitionShares
from fedgraph.types import Graph, GraphCollection, Partition, Subgraph, plain_graph


def prepare(
    collection: GraphCollection,
    max_graphs: int | None,
    max_degree: int,
    root: int,
    degrees: bool = False,
    attributes: bool = True,
) -> GraphCollection:
    """At most ``max_graphs`` graphs (stratified, by a named stream); one-hot degrees where nodes have no features.

    degrees: they stand before the features also where there are some (not after: the end names the kind of a node).
    Columns of numbers become their logarithm over a range that is the same for all data (``column_ranks.fixed``).
    attributes: False keeps, of nodes with numeric attributes, the one-hot kinds only (``node_kinds``).
    """
    if max_graphs is not None and max_graphs < len(collection.graphs):
        rng = seeds.seeded_generator(root, "subset", collection.name)
        order, kept = rng.permutation(len(collection.graphs)), list[int]()
        for label in range(collection.num_classes):
            own = order[collection.labels[order] == label]
            kept += own[: max(1, round(max_graphs * own.size / len(collection.graphs)))].tolist()
        collection = collection.chosen(np.sort(kept))
    if (columns := collection.graphs[0].columns) is not None:  # nobody can estimate ranks where a graph is the unit
        scale = column_ranks.fixed(columns)
        collection = replace(collection, graphs=tuple(scale.scaled(graph) for graph in collection.graphs))
    if collection.graphs[0].num_features == 0:
        return _degree_features(collection, max_degree)
    if not attributes:
        kinds = node_kinds(collection)[1]
        narrow = [replace(g, features=sp.csr_array(g.features.tocsc()[:, -kinds:].tocsr())) for g in collection.graphs]
        collection = replace(collection, graphs=tuple(narrow))
    if degrees:
        counted = _degree_features(collection, max_degree)
        pairs = zip(counted.graphs, collection.graphs, strict=True)
        joined = [replace(g, features=sp.csr_array(sp.hstack([d.features, g.features], format="csr"))) for d, g in pairs]
        collection = replace(collection, graphs=tuple(joined))
    return collection


def require_classes(collection: GraphCollection, num_folds: int) -> None:
    """``ScenarioError`` where some class cannot both train and test, or there are fewer graphs than folds."""
    counts = np.bincount(collection.labels, minlength=collection.num_classes)
    names = collection.classes or tuple(map(str, range(collection.num_classes)))
    if counts.size < 2 or int(counts.min()) < 2:
        few = int(counts.argmin())
        raise ScenarioError(
            f"{collection.name}: {counts.size} class(es), of which {names[few]!r} has {counts[few]} graph(s); allowed: two "
            "classes or more of two graphs or more, since some train and others test"
        )
    if int(counts.max()) < num_folds:
        allowed = f"at most {counts.max()}, the graphs of the largest class"
        raise ScenarioError(f"{collection.name}: folds is {num_folds}; allowed: {allowed}")


def split_by_folds(labels: np.ndarray, num_folds: int, validation: float, root: int, name: str, seed: int) -> ClassifySplit:
    """Split ``seed``: fold ``seed mod num_folds`` of a stratified cross-validation is the test set, so that ``num_folds`` seeds
    test every graph once; ``validation`` (share of all graphs, at random) of the others choose, the rest train.
    """
    from sklearn.model_selection import StratifiedKFold  # its import takes longer than many a cell

    turn, which = divmod(seed, num_folds)
    rng = seeds.seeded_generator(root, "folds", name, turn)
    model = StratifiedKFold(num_folds, shuffle=True, random_state=int(rng.integers(2**31)))
    rest, test = list(model.split(np.zeros(labels.size), labels))[which]
    order = seeds.seeded_generator(root, "validation", name, seed).permutation(rest)
    held = round(validation * labels.size)
    return ClassifySplit(np.sort(order[held:]), np.sort(order[:held]), np.sort(test))


def split_by_clients(
    shares: PartitionShares, num_folds: int, validation: float, root: int, name: str, seed: int
) -> ClassifySplit:
    """Every client keeps about 1/``num_folds`` of its own graphs to test and a share ``validation`` to choose, at random (Jin &
    Chen, §4: 10 % and 20 %). ``ScenarioError`` where clients hold so few graphs that nobody tests or nobody trains.
    """
    test, held, rest = [], [], []
    for client, members in enumerate(shares.members):
        order = seeds.seeded_generator(root, "own parts", name, seed, client).permutation(members)
        asked, choosing = round(order.size / num_folds), round(validation * order.size)
        test.append(order[:asked])
        held.append(order[asked : asked + choosing])
        rest.append(order[asked + choosing :])
    train, validated, tested = (np.sort(np.concatenate(parts)) for parts in (rest, held, test))
    if not train.size or not tested.size:
        raise ScenarioError(
            f"{name}: of {len(shares.members)} clients none holds graphs enough to keep 1/{num_folds} of them for a test; "
            "allowed: fewer clients, fewer folds, or held_out: folds"
        )
    return ClassifySplit(train, validated, tested)


@dataclass(frozen=True, eq=False)
class TaskCollection:
    """A collection that was dealt to clients.

    Attributes:
        partition: Each client's graphs as one block-diagonal graph.
        order: int64 [graphs], positions in the collection, client by client.
        sizes: For each client, the number of nodes of each of its graphs.
    """

    partition: Partition
    order: np.ndarray
    sizes: tuple[tuple[int, ...], ...]


def node_kinds(collection: GraphCollection) -> tuple[tuple[np.ndarray, ...], int]:
    """(per graph, int64 [n] the kind of each node; how many kinds there are): the categorical part of the features.

    That is the longest run of columns at the end of which every row has exactly one 1 and zeros otherwise: atoms of MUTAG,
    secondary structures of PROTEINS, the one-hot degrees where a collection has no features. ``ScenarioError`` where none is.
    """
    rows = sp.vstack([g.features for g in collection.graphs], format="csr").toarray()
    for first in range(rows.shape[1] - 1):
        part = rows[:, first:]
        if ((part == 0) | (part == 1)).all() and (part.sum(axis=1) == 1).all():
            sizes = [g.num_nodes for g in collection.graphs]
            return tuple(np.split(part.argmax(axis=1).astype(np.int64), np.cumsum(sizes)[:-1])), part.shape[1]
    raise ScenarioError(f"{collection.name} has no node labels to train on; write 'pooling: mean' to train on graph labels")


def deal(
    collection: GraphCollection,
    shares: PartitionShares,
    train: np.ndarray,
    kinds: tuple[tuple[np.ndarray, ...], int] | None = None,
) -> TaskCollection:
    """Labels of graphs outside ``train`` are hidden (−1).

    Every node carries its graph's label, or its own kind where ``kinds`` are given, as ``node_kinds`` returns them: how
    many kinds there are follows from the columns, and not from which kinds the nodes have.
    """
    shown = np.full(collection.labels.size, -1, dtype=np.int64)
    shown[train] = collection.labels[train]
    seen = set(train.tolist())
    classes = collection.num_classes if kinds is None else kinds[1]
    first, subgraphs, sizes = 0, [], []
    for client, members in enumerate(shares.members):
        graphs = [collection.graphs[i] for i in members]
        own = tuple(g.num_nodes for g in graphs)
        labels = np.repeat(shown[members], own)
        if kinds is not None:
            own_kinds = (kinds[0][i] for i in members.tolist())
            given = [k if i in seen else np.full(k.size, -1) for i, k in zip(members.tolist(), own_kinds, strict=True)]
            labels = np.concatenate(given)
        nodes = np.arange(first, first + sum(own), dtype=np.int64)
        subgraphs.append(Subgraph(client, unite(collection.name, graphs, labels, classes), nodes))
        sizes.append(own)
        first += sum(own)
    partition = Partition(tuple(subgraphs), True, 0, shares.description, from_edges=False, from_labels=shares.from_labels)
    return TaskCollection(partition, np.concatenate(shares.members), tuple(sizes))


def unite(name: str, graphs: Sequence[Graph], labels: np.ndarray, num_classes: int) -> Graph:
    """The graphs beside each other as one, without an edge between them. labels: int64, of all nodes."""
    adjacency = sp.csr_array(sp.block_diag([g.adjacency for g in graphs], format="csr"))
    features = sp.csr_array(sp.vstack([g.features for g in graphs], format="csr"))
    return plain_graph(name, adjacency, features, labels, num_classes, graphs[0].provenance)


def _degree_features(collection: GraphCollection, max_degree: int) -> GraphCollection:
    """A collection with degrees as one-hot features, CSR float32 [n, max_degree + 1], in the place of those that it has.

    Larger degrees share the last column. ``DataError`` where ``max_degree`` is negative.
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
