"""Which small graphs are clustered: ego-networks cut out of one graph, or the graphs of a collection, one for each client."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedgraph import seeds
from fedgraph.errors import ScenarioError
from fedgraph.methods import column_ranks
from fedgraph.partition import base
from fedgraph.tasks.base import CellContext
from fedgraph.tasks.base.graphs import graph_collections as collections
from fedgraph.tasks.graph_clustering.settings import Params
from fedgraph.types import Graph, GraphCollection, Partition, Subgraph

_MOST_DEGREE = 64  # largest one-hot degree, where the nodes of a collection have no features


def find_collection(params: Params, context: CellContext) -> GraphCollection | None:
    """The collection that is clustered, ready to be read; None where the data are one graph."""
    given = context.data
    if not isinstance(given, GraphCollection):
        return None
    if params.public_share:
        raise ScenarioError(f"public_share needs one graph; {context.dataset} is a collection, whose graphs are all private")
    trained = [str(m.get("training", "fedavg")) for m in params.methods if m.get("training", "fedavg") != "none"]
    if trained:
        without = f"{context.dataset} is a collection, whose nodes have no labels"
        raise ScenarioError(f"training is {trained[0]}; {without}: allowed: training: none")
    key = ("collection", context.label, context.dataset)
    return context.cached(key, lambda: collections.prepare(given, params.max_graphs, _MOST_DEGREE, context.root))


def require_enough_clients(params: Params, context: CellContext) -> None:
    """``ScenarioError`` where more clusters are asked for than there are clients: a cluster holds one of them at least."""
    collection = find_collection(params, context)
    clients = params.dealt_clients if collection is None else len(collection.graphs)
    k = params.clusters or find_one(params, context).num_classes
    if clients is not None and k > clients:
        found = f"clusters is {k}" + ("" if params.clusters else " (the number of classes)")
        raise ScenarioError(f"{found}; allowed: at most {clients}, as many as there are clients")


def find_one(params: Params, context: CellContext) -> Graph:
    """The one graph, on one scale; of a collection, all graphs beside each other, without labels of nodes."""
    collection = find_collection(params, context)
    if collection is not None:
        held = collection

        def together() -> Graph:
            nothing = np.full(sum(g.num_nodes for g in held.graphs), -1, dtype=np.int64)
            return collections.unite(held.name, held.graphs, nothing, held.num_classes)

        return context.cached(("together", context.label, context.dataset), together)
    graph = context.data
    if not isinstance(graph, Graph):
        raise ScenarioError(f"graph_clustering needs a graph or a collection of graphs; {context.dataset} gives none")
    columns = graph.columns  # nobody can estimate ranks where a person is a whole client
    if columns is None:
        return graph
    return context.cached(("one scale", context.dataset), lambda: column_ranks.fixed(columns).scaled(graph))


def deal(params: Params, seed: int, context: CellContext) -> Partition:
    """The clients of a seed."""
    collection = find_collection(params, context)

    def make() -> Partition:
        if collection is not None:
            return _one_each(collection)
        offers, settings = base.chosen(params.partition)
        rng = seeds.seeded_generator(context.root, "partition", context.label, context.dataset, seed)
        found = offers.split(find_one(params, context), settings, rng)
        if any(s.center is None for s in found.subgraphs):
            raise ScenarioError(f"graph_clustering needs centres; partition {params.partition['partition']!r} has none")
        return found if params.labels == "all" else _without_labels_of(found, _centres_of(found))

    return context.cached(("ego", context.label, context.dataset, seed), make)


def _one_each(collection: GraphCollection) -> Partition:
    first, clients = 0, []
    for client, graph in enumerate(collection.graphs):
        blank = replace(graph, num_classes=collection.num_classes)
        clients.append(Subgraph(client, blank, np.arange(first, first + graph.num_nodes, dtype=np.int64)))
        first += graph.num_nodes
    words = f"{len(clients)} clients, each a graph of the collection"
    return Partition(tuple(clients), True, 0, words, from_edges=False, from_labels=False)


def find_classes(params: Params, seed: int, context: CellContext) -> np.ndarray:
    """int64 [clients]: the class of each small graph; of an ego-network, that of its centre."""
    collection = find_collection(params, context)
    if collection is not None:
        return collection.labels
    return np.asarray(find_one(params, context).labels[_centres_of(deal(params, seed, context))])


def _centres_of(partition: Partition) -> np.ndarray:
    return np.array([s.nodes[s.center] for s in partition.subgraphs], dtype=np.int64)


def _without_labels_of(partition: Partition, nodes: np.ndarray) -> Partition:
    """The same clients, with the labels of ``nodes`` hidden from each of them: a centre is in its neighbours' networks, too."""
    return partition.with_graphs(lambda s: replace(s.graph, labels=np.where(np.isin(s.nodes, nodes), -1, s.graph.labels)))


def draw_public(params: Params, seed: int, context: CellContext) -> Graph | None:
    """The public nodes, drawn from those that no client holds, with the edges among them; None where none are public."""
    if not params.public_share:
        return None
    graph = find_one(params, context)

    def make() -> Graph:
        held = np.asarray(deal(params, seed, context).holdings(graph.num_nodes).sum(axis=0)).ravel()
        free = np.flatnonzero(held == 0)
        count = max(1, round(params.public_share * graph.num_nodes))
        if count > free.size:
            raise ScenarioError(f"public_share {params.public_share:g} is {count} nodes; {free.size} are held by no client")
        rng = seeds.seeded_generator(context.root, "public", context.label, context.dataset, seed)
        order = rng.permutation(graph.num_nodes)  # over all nodes: who is held by nobody follows from edges
        return graph.induced(np.sort(order[held[order] == 0][:count]))

    return context.cached(("public", context.label, context.dataset, seed), make)
