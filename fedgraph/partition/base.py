"""What a partition can do, and what all partitions share: from lists of nodes to a partition, and checks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar, cast

import numpy as np
import scipy.sparse as sp

from fedgraph import plugins
from fedgraph.documents import Settings, SettingsSpec
from fedgraph.errors import DataError, ScenarioError
from fedgraph.types import Graph, GraphCollection, Partition, Subgraph

_P = TypeVar("_P", bound=Settings)


@dataclass(frozen=True, eq=False)
class PartitionShares:
    """Who holds which graph of a collection."""

    members: tuple[np.ndarray, ...]  # for each client the positions of its graphs, int64, sorted
    description: str  # one phrase for tables
    from_labels: bool  # who holds which graph was computed from the labels
    natural: bool = False  # as in ``Partition``


@dataclass(frozen=True, kw_only=True)
class PartitionOffers(Generic[_P]):
    """What a partition can do: ``PARTITION: PartitionOffers[Params] = PartitionOffers(…)`` at the end of its module."""

    split: Callable[[Graph, _P, np.random.Generator], Partition]  # who holds which node of one graph
    # who holds which graph of a collection; None: it deals no whole graphs
    deal: Callable[[GraphCollection, _P, np.random.Generator], PartitionShares] | None = None


class _PartitionModule(Protocol):
    """The module of a partition."""

    PARTITION: PartitionOffers[Any]
    Params: type[Settings]


def chosen(spec: SettingsSpec) -> tuple[PartitionOffers[Any], Settings]:
    """(what a partition can do, its settings).

    Args:
        spec: an entry of a scenario, checked: the name under ``partition``, and the settings.

    Raises:
        ScenarioError: there is no such partition, or its ``PARTITION`` has another type.
    """
    module = cast(_PartitionModule, plugins.load("partition", spec["partition"]))
    if not isinstance(module.PARTITION, PartitionOffers):
        raise ScenarioError(f"partition {spec['partition']!r}: PARTITION is no base.PartitionOffers(split=…)")
    return module.PARTITION, module.Params(**{key: value for key, value in spec.items() if key != "partition"})


def require_clients(clients: int, available: int, what: str = "nodes") -> None:
    """``DataError`` if there are more clients than things to deal. what: their name, for the error."""
    if clients > available:
        raise DataError(
            f"{clients} clients but only {available} {what}, so some client would be empty; allowed: 1 … {available} clients"
        )


def disjoint(
    graph: Graph, groups: Sequence[np.ndarray], description: str, *, from_edges: bool, from_labels: bool, natural: bool = False
) -> Partition:
    """A partition whose clients share no node.

    Args:
        graph: the whole graph.
        groups: node ids per client, together every node once.
        description: one phrase for tables.
        from_edges: as in ``Partition``.
        from_labels: as in ``Partition``.
        natural: as in ``Partition``.

    Raises:
        DataError: a node is in several groups, whose releases would then add up, or in none.
    """
    held_by = np.bincount(np.concatenate(groups), minlength=graph.num_nodes)
    if wrong := np.flatnonzero(held_by != 1).tolist():
        raise DataError(
            f"{graph.name}: {description}: node {wrong[0]} is given to {held_by[wrong[0]]} clients; clients that share no node "
            "hold each node once"
        )
    subgraphs = tuple(
        Subgraph(client, graph.induced(np.sort(nodes)), np.sort(nodes).astype(np.int64)) for client, nodes in enumerate(groups)
    )
    held = sum(s.graph.num_edges for s in subgraphs)
    return Partition(subgraphs, True, graph.num_edges - held, description, from_edges, from_labels, natural)


def with_cut_edges(graph: Graph, partition: Partition) -> Partition:
    """``partition`` of the nodes of ``graph``, in which each client also knows its edges to other clients (``Subgraph.cut``).

    ``DataError`` if clients share nodes.
    """
    if not partition.disjoint:
        raise DataError("edges between clients are defined for clients that share no node; this partition overlaps")
    owner = np.full(graph.num_nodes, -1, dtype=np.int64)
    for subgraph in partition.subgraphs:
        owner[subgraph.nodes] = subgraph.client
    told = []
    for subgraph in partition.subgraphs:
        rows = sp.csr_array(graph.adjacency[subgraph.nodes]).tocoo()
        away = owner[rows.coords[1]] != subgraph.client
        cut = np.column_stack([rows.coords[0][away], rows.coords[1][away]]).astype(np.int64)
        told.append(replace(subgraph, cut=cut))
    return replace(partition, subgraphs=tuple(told))


def overlapping(graph: Graph, groups: Sequence[np.ndarray], centers: Sequence[int], description: str) -> Partition:
    """A partition whose clients, found by following edges, may share nodes.

    groups: sorted node ids of each client. centers: id of each client's centre.
    """
    subgraphs = tuple(
        Subgraph(client, graph.induced(nodes), nodes.astype(np.int64), center=int(np.searchsorted(nodes, center)))
        for client, (nodes, center) in enumerate(zip(groups, centers, strict=True))
    )
    keys = [_edge_keys(s, graph.num_nodes) for s in subgraphs]
    held = np.unique(np.concatenate(keys)).size if keys else 0
    return Partition(subgraphs, False, graph.num_edges - held, description, from_edges=True, from_labels=False)


def shares(
    collection: GraphCollection, owner: np.ndarray, clients: int, description: str, *, from_labels: bool, natural: bool = False
) -> PartitionShares:
    """The shares in which ``owner`` (int [graphs]) is the client of each graph. ``DataError`` if a client holds none."""
    members = tuple(np.flatnonzero(owner == client).astype(np.int64) for client in range(clients))
    if any(m.size == 0 for m in members):
        raise DataError(f"collection {collection.name!r}: some client would hold no graph; use fewer than {clients} clients")
    return PartitionShares(members, description, from_labels, natural)


def _edge_keys(share: Subgraph, num_nodes: int) -> np.ndarray:
    """``smaller · num_nodes + larger`` (global ids) of each edge that the client holds."""
    upper = sp.triu(share.graph.adjacency, k=1, format="coo")
    one, two = share.nodes[upper.row], share.nodes[upper.col]
    keys: np.ndarray = np.minimum(one, two) * num_nodes + np.maximum(one, two)
    return keys
