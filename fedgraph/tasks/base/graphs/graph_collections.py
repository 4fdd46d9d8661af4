"""A collection of labelled graphs, split and dealt to clients: what graph classification trains and tests on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fedgraph import seeds
from fedgraph.comparison.classify import Split
from fedgraph.data import tu
from fedgraph.errors import ScenarioError
from fedgraph.methods.base.column_ranks import fixed
from fedgraph.partition.base import Shares
from fedgraph.types import Graph, GraphCollection, Partition, Subgraph, plain_graph


def prepared(
    collection: GraphCollection,
    max_graphs: int | None,
    max_degree: int,
    root: int,
    degrees: bool = False,
    attributes: bool = True,
) -> GraphCollection:
    """A collection ready to be learnt from.

    Columns of numbers become their logarithm over a range that is the same for all data (``column_ranks.fixed``).

    Args:
        collection: The data.
        max_graphs: About how many graphs are kept, each class in its share and with one graph at least. None: all.
        max_degree: The largest one-hot degree. Nodes get one-hot degrees where they have no features.
        root: The root of the random streams; a stream named after the collection draws the sample.
        degrees: Whether one-hot degrees stand before the features where there are some, too. They stand before and not after,
            because the end names the kind of a node.
        attributes: False keeps, of nodes with numeric attributes, the one-hot kinds only (``node_kinds``).

    Raises:
        ScenarioError: ``attributes`` is false, and nodes have no kinds.
    """
    if max_graphs is not None and max_graphs < len(collection.graphs):
        rng = seeds.generator(root, "subset", collection.name)
        kept: list[int] = []
        for label in range(collection.num_classes):
            own = rng.permutation(np.flatnonzero(collection.labels == label))
            kept += own[: max(1, round(max_graphs * own.size / len(collection.graphs)))].tolist()
        collection = collection.chosen(np.sort(kept))
    if (columns := collection.graphs[0].columns) is not None:  # nobody can estimate ranks where a graph is the unit
        scale = fixed(columns)
        collection = replace(collection, graphs=tuple(scale.scaled(graph) for graph in collection.graphs))
    if collection.graphs[0].num_features == 0:
        return tu.degree_features(collection, max_degree)
    if not attributes:
        kinds = node_kinds(collection)[1]
        narrow = [replace(g, features=sp.csr_array(g.features.tocsc()[:, -kinds:].tocsr())) for g in collection.graphs]
        collection = replace(collection, graphs=tuple(narrow))
    if degrees:
        counted = tu.degree_features(collection, max_degree)
        pairs = zip(counted.graphs, collection.graphs, strict=True)
        joined = [replace(g, features=sp.csr_array(sp.hstack([d.features, g.features], format="csr"))) for d, g in pairs]
        collection = replace(collection, graphs=tuple(joined))
    return collection


def require_classes(collection: GraphCollection, num_folds: int) -> None:
    """Refuse a collection that cannot be split.

    Args:
        collection: The graphs and their classes.
        num_folds: The number of folds.

    Raises:
        ScenarioError: There is one class only, a class has one graph only, or no class has as many graphs as there are folds.
    """
    counts = np.bincount(collection.labels, minlength=collection.num_classes)
    names = collection.classes or tuple(map(str, range(collection.num_classes)))
    if counts.size < 2 or int(counts.min()) < 2:
        few = int(counts.argmin())
        raise ScenarioError(
            f"{collection.name}: {counts.size} class(es), of which {names[few]!r} has {counts[few]} graph(s); allowed: two "
            "classes or more of two graphs or more, since some train and others test"
        )
    if int(counts.max()) < num_folds:
        raise ScenarioError(
            f"{collection.name}: folds is {num_folds}; allowed: at most {counts.max()}, the graphs of the largest class"
        )


def fold(labels: np.ndarray, num_folds: int, validation: float, root: int, name: str, seed: int) -> Split:
    """One split of a stratified cross-validation.

    Fold ``seed mod num_folds`` is the test set, so that ``num_folds`` seeds in turn test every graph once.

    Args:
        labels: int64 [graphs], their classes.
        num_folds: The number of folds, ≥ 2.
        validation: The share of all graphs that is drawn from the others to choose settings. The rest trains.
        root: The root of the random streams.
        name: The name of the data set; it names the streams.
        seed: The number of the split, ≥ 0.

    Returns:
        Sorted positions of the graphs.
    """
    from sklearn.model_selection import StratifiedKFold  # its import takes longer than many a cell

    turn, which = divmod(seed, num_folds)
    rng = seeds.generator(root, "folds", name, turn)
    model = StratifiedKFold(num_folds, shuffle=True, random_state=int(rng.integers(2**31)))
    rest, test = list(model.split(np.zeros(labels.size), labels))[which]
    order = seeds.generator(root, "validation", name, seed).permutation(rest)
    held = round(validation * labels.size)
    return Split(np.sort(order[held:]), np.sort(order[:held]), np.sort(test))


def own_parts(shares: Shares, num_folds: int, validation: float, root: int, name: str, seed: int) -> Split:
    """A split in which every client keeps some of its own graphs to test, and some to choose settings, at random.

    Jin & Chen, §4, keep 10 % and 20 %.

    Args:
        shares: Who holds which graph.
        num_folds: A client tests about 1/``num_folds`` of its graphs.
        validation: The share of its graphs that chooses settings.
        root: The root of the random streams.
        name: The name of the data set; it names the streams.
        seed: The number of the split, ≥ 0.

    Returns:
        Sorted positions of the graphs of all clients.

    Raises:
        ScenarioError: Clients hold so few graphs that nobody tests, or nobody trains.
    """
    test, held, rest = [], [], []
    for client, members in enumerate(shares.members):
        order = seeds.generator(root, "own parts", name, seed, client).permutation(members)
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
    return Split(train, validated, tested)


@dataclass(frozen=True, eq=False)
class Dealt:
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
    """The kinds of all nodes: the categorical part of their features.

    That is the longest run of columns at the end in which every row has exactly one 1 and zeros otherwise. Examples are the
    atoms of MUTAG, the secondary structures of PROTEINS, and one-hot degrees where a collection has no features.

    Returns:
        (for each graph, int64 [n], the kind of each node; the number of kinds, ≥ 2).

    Raises:
        ScenarioError: There is no such run of two columns or more.
    """
    rows = sp.vstack([g.features for g in collection.graphs], format="csr").toarray()
    for first in range(rows.shape[1] - 1):
        part = rows[:, first:]
        if ((part == 0) | (part == 1)).all() and (part.sum(axis=1) == 1).all():
            sizes = [g.num_nodes for g in collection.graphs]
            return tuple(np.split(part.argmax(axis=1).astype(np.int64), np.cumsum(sizes)[:-1])), part.shape[1]
    raise ScenarioError(f"{collection.name} has no node labels to train on; write 'pooling: mean' to train on graph labels")


def deal(collection: GraphCollection, shares: Shares, train: np.ndarray, kinds: tuple[np.ndarray, ...] | None = None) -> Dealt:
    """Deal a collection to clients, with the labels of training graphs only.

    Args:
        collection: The graphs and their classes.
        shares: Who holds which graph.
        train: int64, positions of the graphs that train. Labels of all others are hidden (−1).
        kinds: For each graph, int64 [n], the kinds of its nodes, where these are the labels that train. None: every node
            carries the class of its graph.
    """
    shown = np.full(collection.labels.size, -1, dtype=np.int64)
    shown[train] = collection.labels[train]
    seen = set(train.tolist())
    classes = collection.num_classes if kinds is None else 1 + max(int(k.max()) for k in kinds)
    first, subgraphs, sizes = 0, [], []
    for client, members in enumerate(shares.members):
        graphs = [collection.graphs[i] for i in members]
        own = tuple(g.num_nodes for g in graphs)
        labels = np.repeat(shown[members], own)
        if kinds is not None:
            given = [kinds[i] if i in seen else np.full(kinds[i].size, -1, dtype=np.int64) for i in members.tolist()]
            labels = np.concatenate(given)
        nodes = np.arange(first, first + sum(own), dtype=np.int64)
        subgraphs.append(Subgraph(client, united(collection.name, graphs, labels, classes), nodes))
        sizes.append(own)
        first += sum(own)
    partition = Partition(tuple(subgraphs), True, 0, shares.description, from_edges=False, from_labels=shares.from_labels)
    return Dealt(partition, np.concatenate(shares.members), tuple(sizes))


def united(name: str, graphs: Sequence[Graph], labels: np.ndarray, num_classes: int) -> Graph:
    """Graphs beside each other as one, without an edge between them.

    Args:
        name: What the whole is called.
        graphs: At least one; all have the same features.
        labels: int64, one for each node of all graphs, in their order.
        num_classes: How many classes the labels have.
    """
    adjacency = sp.csr_array(sp.block_diag([g.adjacency for g in graphs], format="csr"))
    features = sp.csr_array(sp.vstack([g.features for g in graphs], format="csr"))
    return plain_graph(name, adjacency, features, labels, num_classes, graphs[0].provenance)
