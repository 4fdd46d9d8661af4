"""The data types that all rooms share: graphs, collections of graphs, and the part of a graph that a client holds.

n nodes, d features, c classes. Arrays are numpy / scipy only and read-only (Ray maps them, the serial runtime freezes them).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import DataError

_Source = Literal["real", "synthetic", "embedded", "own"]
WRITTEN_AFTER = "and may have been written after the fact: if so, leave it out (parameters, drop)"
ROWS_OF_ONE = "is it the person? Then several rows are one person, and ε protects a row"
SOME_NO_TIES = "and all are read: leave out lines that are no tie, or choose (columns: kind, kinds)"


@dataclass(frozen=True)
class GraphProvenance:
    """Where a data set came from."""

    # ``real`` (published files, checked), ``synthetic`` (a generated stand-in), ``embedded`` (shipped with fedgraph) or ``own``
    # (the user's files, or a graph in memory)
    source: _Source
    detail: str  # one sentence for the report
    checksums: dict[str, str] = field(default_factory=dict)  # file name → SHA-256 of the bytes that were read

    @property
    def doubts(self) -> tuple[str, ...]:
        """What ``detail`` says of labels, ties and people that is to be looked at before any number is believed."""
        return tuple(said for said in self.detail.split("; ") if said.endswith((WRITTEN_AFTER, SOME_NO_TIES, ROWS_OF_ONE)))

    @property
    def outward(self) -> GraphProvenance:
        """What may leave. Of published data it is all known; of people's own nothing but that they are somebody's own.

        A digest of private files, and a count that a neighbouring input has not, would tell whoever guesses the rest.
        """
        return self if self.source != "own" else GraphProvenance("own", "")


@dataclass(frozen=True, eq=False)
class GraphMasks:
    """One split of a graph's nodes: three disjoint sets of ids."""

    train: np.ndarray  # int64, sorted; nodes that train
    validation: np.ndarray  # int64, sorted; nodes that choose and stop. It may be empty.
    test: np.ndarray  # int64, sorted; nodes that are tested

    def check(self, num_nodes: int, name: str) -> None:
        """Refuse a split that is none.

        Args:
            num_nodes: of the graph.
            name: what an error calls the data.

        Raises:
            DataError: an id is no node, training or test has none, or a node is in two of the three.
        """
        for part, ids in (("train", self.train), ("validation", self.validation), ("test", self.test)):
            if ids.size and (ids.min() < 0 or ids.max() >= num_nodes):
                bad = int(ids[(ids < 0) | (ids >= num_nodes)][0])
                raise DataError(f"{name}: its {part} nodes name node {bad}; allowed: 0 … {num_nodes - 1}")
            if not ids.size and part != "validation":
                raise DataError(f"{name}: its split has no {part} node; allowed: one or more")
        unique, counts = np.unique(np.concatenate([self.train, self.validation, self.test]), return_counts=True)
        if (counts > 1).any():
            raise DataError(f"{name}: node {unique[counts > 1][0]} is in two of train, validation and test; allowed: one")


@dataclass(frozen=True)
class GraphNames:
    """What the data call things. Each is empty where they have no names."""

    ids: tuple[str, ...] = ()  # of the nodes, n of them
    columns: tuple[str, ...] = ()  # of the features, d of them
    classes: tuple[str, ...] = ()  # c of them, in the order of their numbers
    # what one node is: ``person`` in somebody's own data, ``graph`` in a table that has a row for each graph of a collection
    one: str = "node"
    label: str = ""  # of what the classes are


@dataclass(frozen=True, eq=False)
class GraphColumns:
    """Columns of numbers whose least and largest value nobody knows without the data: no learner may read them as they are."""

    places: np.ndarray  # int64 [k], which columns of the features
    empty: np.ndarray  # int64 [k], the column that is 1 where the cell is empty; −1 where there is none
    names: tuple[str, ...]  # what they are called
    bounded: np.ndarray  # int64 [m], columns that were brought to −1 … 1 already

    @property
    def called(self) -> str:
        """Their names, the first four of many."""
        return ", ".join(self.names[:4]) + (f" and {len(self.names) - 4} more" if len(self.names) > 4 else "")


@dataclass(frozen=True, eq=False)
class Graph:
    """An attributed, undirected, unweighted graph without self-loops.

    ``features_from_edges``, ``columns_from_rows`` and ``nodes_from_edges`` have no default: a reader of data has to say them.

    Raises:
        DataError: the parts contradict each other, there is no node, or a feature is NaN or infinite.
    """

    name: str  # what results call it
    adjacency: sp.csr_array  # CSR [n, n], symmetric, entries 1.0, empty diagonal
    features: sp.csr_array  # CSR [n, d] float32, finite
    labels: np.ndarray  # int64 [n] in 0 … c − 1, ``-1`` where unknown
    num_classes: int  # c
    provenance: GraphProvenance  # where it came from
    # int64 [n], the number of the organisation that each node came from, where the data are a federation (``partition:
    # natural``); else None
    owner: np.ndarray | None = None
    owner_names: tuple[str, ...] = ()  # their names
    # a node's features were computed from its edges, so that another node's edges enter them
    features_from_edges: bool = field(kw_only=True)
    # which columns there are (a vocabulary, a list of codes), or their weights (TF-IDF), were computed from the rows of all
    # nodes
    columns_from_rows: bool = field(kw_only=True)
    nodes_from_edges: bool = field(kw_only=True)  # which nodes there are was computed from the edges (the largest component)
    masks: tuple[GraphMasks, ...] = ()  # the splits that were published (or brought) with the data
    # int64 [n], labels of nodes that choose and stop but do not train, −1 elsewhere; None where the split has none
    validation: np.ndarray | None = None
    names: GraphNames = GraphNames()  # of nodes, columns and classes
    # which of them are on a scale of their own; None where all are on one scale, as published data are
    columns: GraphColumns | None = None
    # symmetric CSR [n, n] each, 1 + the number of an owner of that edge; as many as the edge with most owners needs
    edge_owners: tuple[sp.csr_array, ...] = ()
    # whether each of them has a record of its own on that edge, which stays when the others' records go. Otherwise all owners
    # of an edge own it together.
    one_owner_a_record: bool = False

    def __post_init__(self) -> None:
        n = self.adjacency.shape[0]
        for part in self.masks:
            part.check(n, f"graph {self.name!r}")
        for what, rows in (("validation labels", self.validation), ("owners", self.owner)):
            if rows is not None and rows.shape != (n,):
                raise DataError(f"graph {self.name!r}: {what} of {rows.shape} nodes for {n} nodes")
        if self.adjacency.shape != (n, n) or self.features.shape[0] != n or self.labels.shape != (n,):
            raise DataError(
                f"graph {self.name!r}: adjacency {self.adjacency.shape}, features {self.features.shape} and "
                f"labels {self.labels.shape} do not describe the same nodes"
            )
        if n == 0:
            raise DataError(f"graph {self.name!r} has no nodes")
        if (wrong := np.flatnonzero(~np.isfinite(self.features.data))).size:
            row = int(np.searchsorted(self.features.indptr, wrong[0], "right")) - 1
            raise DataError(f"graph {self.name!r}: features of node {row} hold NaN or infinity; allowed: finite numbers")
        if self.labels.size and (self.labels.max() >= self.num_classes or self.labels.min() < -1):
            raise DataError(
                f"graph {self.name!r}: labels run from {self.labels.min()} to {self.labels.max()}; "
                f"allowed: 0 … {self.num_classes - 1}, or -1 for unknown"
            )

    @property
    def num_nodes(self) -> int:
        return int(self.adjacency.shape[0])

    @property
    def ids(self) -> tuple[str, ...]:
        """The names of the nodes; their numbers where they have none."""
        return self.names.ids or tuple(map(str, range(self.num_nodes)))

    @property
    def num_edges(self) -> int:
        """Undirected edges, each counted once."""
        return int(self.adjacency.nnz // 2)

    @property
    def num_features(self) -> int:
        return int(self.features.shape[1])

    @cached_property
    def degrees(self) -> np.ndarray:
        """int64 [n], the number of edges of each node."""
        return np.diff(self.adjacency.indptr).astype(np.int64)

    def largest_component(self) -> np.ndarray:
        """int64 node ids, sorted, of the largest connected component (ties: the one with the smallest id)."""
        _, component = sp.csgraph.connected_components(self.adjacency, directed=False)
        return np.flatnonzero(component == np.bincount(component).argmax())

    def induced(self, nodes: np.ndarray) -> Graph:
        """The subgraph on some nodes, without the splits that came with the data.

        Args:
            nodes: int [k] ids in any order; row i of the result is ``nodes[i]``.
        """
        rows = self.adjacency[nodes]
        return replace(
            self,
            adjacency=sp.csr_array(rows[:, nodes]),
            features=sp.csr_array(self.features[nodes]),
            labels=self.labels[nodes],
            provenance=self.provenance.outward,
            owner=None if self.owner is None else self.owner[nodes],
            masks=(),
            validation=None if self.validation is None else self.validation[nodes],
            names=replace(self.names, ids=tuple(self.names.ids[node] for node in nodes) if self.names.ids else ()),
            edge_owners=tuple(sp.csr_array(owners[nodes][:, nodes]) for owners in self.edge_owners),
        )


def plain_graph(
    name: str,
    adjacency: sp.csr_array,
    features: sp.csr_array,
    labels: np.ndarray,
    num_classes: int,
    provenance: GraphProvenance,
) -> Graph:
    """A graph of which no part was computed from another one: generated, or stated to be so by who reads it.

    Args:
        name: as all arguments, of the field of ``Graph`` that is called so.
        adjacency: CSR [n, n].
        features: CSR [n, d].
        labels: int64 [n].
        num_classes: c.
        provenance: where it came from.
    """
    return Graph(
        name, adjacency, features, labels, num_classes, provenance,
        features_from_edges=False, columns_from_rows=False, nodes_from_edges=False,
    )  # fmt: skip


def graph_without_edges(graph: Graph) -> Graph:
    """The same nodes, features and labels, and no edge.

    No count or digest of edges is left either. Where edges have owners, one empty matrix stays, which says that they have.
    """
    none = sp.csr_array(graph.adjacency.shape, dtype=graph.adjacency.dtype)
    return replace(
        graph,
        adjacency=none,
        edge_owners=(none,) if graph.edge_owners else (),
        provenance=GraphProvenance(graph.provenance.source, "without edges"),
    )


def graph_without_labels(graph: Graph) -> Graph:
    """The same nodes, features and edges; no label, and no count or digest of labels."""
    return replace(graph, labels=np.full_like(graph.labels, -1), provenance=graph.provenance.outward)


@dataclass(frozen=True, eq=False)
class GraphCollection:
    """Many small graphs with one label each."""

    name: str  # what results call it
    graphs: tuple[Graph, ...]  # k of them; the labels of their nodes are −1
    labels: np.ndarray  # int64 [k], the class of each graph
    num_classes: int  # how many classes there are
    provenance: GraphProvenance  # where they came from
    # int64 [k], the number of the organisation that each graph came from; None where nobody is named
    owner: np.ndarray | None = None
    owner_names: tuple[str, ...] = ()  # what these are called
    classes: tuple[str, ...] = ()  # what the classes are called

    def chosen(self, places: np.ndarray) -> GraphCollection:
        """The graphs at ``places`` (int [k]), in that order."""
        return replace(
            self,
            graphs=tuple(self.graphs[place] for place in places),
            labels=self.labels[places],
            owner=None if self.owner is None else self.owner[places],
        )


def describe_graph(graph: Graph | GraphCollection) -> str:
    """One line: name, counts, and how it was read."""
    source, detail = graph.provenance.source, graph.provenance.detail
    return f"{describe_graph_size(graph)} ({detail if detail.startswith(f'{source} ') else f'{source}: {detail}'})"


def describe_graph_size(graph: Graph | GraphCollection) -> str:
    """One line: name and counts."""
    if isinstance(graph, GraphCollection):
        return f"{graph.name}: {counted(len(graph.graphs), 'graph')}, {counted(graph.num_classes, 'class')}"
    one = graph.names.one
    nodes = counted(graph.num_nodes, one) + (" as rows" if one == "graph" else "")
    counts = f"{nodes}, {in_words_of(one, counted(graph.num_edges, 'edge'))}, {counted(graph.num_features, 'feature')}"
    classes = counted(graph.num_classes, "class") + (f" of {graph.names.label}" if graph.names.label else "")
    return f"{graph.name}: {counts}, {classes if graph.num_classes else 'no labels'}"


def counted(count: int, one: str) -> str:
    """A number and what it counts: ``1 class``, ``1,490 nodes``."""
    return f"{count:,} {one if count == 1 else _many(one)}"


def _many(one: str) -> str:
    return f"{one.removesuffix('person')}people" if one.endswith("person") else f"{one}es" if one.endswith("s") else f"{one}s"


def in_words_of(one: str, text: str) -> str:
    """A text of nodes and edges in the words of whoever brought the data.

    Args:
        one: What a node is called (``GraphNames``). Between people an edge is a tie.
        text: None that a user wrote: names stay as they are.

    >>> in_words_of("person", "Edge level: an edge of 3 nodes")
    'Tie level: a tie of 3 people'
    """
    many, tie, a_tie = _many(one), *(("tie", "a tie") if one == "person" else ("edge", "an edge"))
    owned = "people's" if one == "person" else f"{many}'"
    words = {"node": one, "nodes": many, "nodes'": owned, "edge": tie, "edges": f"{tie}s", "an edge": a_tie}

    def said(found: re.Match[str]) -> str:
        word = words[found[0].lower()]
        return word.capitalize() if found[0][0].isupper() else word

    return text if one == "node" else re.sub(r"(?i)\b(an edge|nodes'|(node|edge)s?\b)", said, text)


@dataclass(frozen=True, eq=False)
class Subgraph:
    """What one client holds."""

    client: int  # its number
    graph: Graph  # its nodes and the edges among them
    nodes: np.ndarray  # int64 [n_i], the global id of each row
    center: int | None = None  # the row of the ego-network's centre, where the partition has one
    # int64 [m, 2], the edges to nodes of other clients as (own row, global id of the other node), each once; None where they
    # are dropped
    cut: np.ndarray | None = None


def subgraph_with_rows_of(zero: Subgraph, one: Subgraph, rows: np.ndarray) -> Subgraph:
    """``zero`` with the features and labels of ``one`` in some rows; nodes and edges are the same in both.

    Args:
        zero: gives the other rows.
        one: gives the chosen rows.
        rows: bool [n], which rows are chosen.
    """
    if rows.all() or not rows.any():
        return one if rows.all() else zero
    pick = sp.diags_array(rows.astype(np.float32))
    leave = sp.diags_array((~rows).astype(np.float32))
    features = sp.csr_array(pick @ one.graph.features + leave @ zero.graph.features).astype(np.float32)
    features.eliminate_zeros()
    features.sort_indices()
    labels = np.where(rows, one.graph.labels, zero.graph.labels)
    return replace(zero, graph=replace(zero.graph, features=features, labels=labels))


@dataclass(frozen=True, eq=False)
class Partition:
    """All clients' subgraphs, and what was lost in dealing them out."""

    subgraphs: tuple[Subgraph, ...]  # one per client, in the order of their numbers
    disjoint: bool  # no node is held twice (parallel composition applies)
    num_cut_edges: int  # edges of the whole graph that no client holds inside its subgraph
    description: str  # one phrase for tables
    from_edges: bool  # who holds which node was computed from the edges, so it says something about them
    from_labels: bool  # the same of the labels
    natural: bool = False  # the clients are owners that the data name; else they are only supposed

    @property
    def num_clients(self) -> int:
        """How many clients there are."""
        return len(self.subgraphs)

    def with_graphs(self, graph_of: Callable[[Subgraph], Graph]) -> Partition:
        """The same clients and nodes, each with the graph that ``graph_of`` makes of its subgraph."""
        return replace(self, subgraphs=tuple(replace(s, graph=graph_of(s)) for s in self.subgraphs))

    def holdings(self, num_nodes: int) -> sp.csr_array:
        """CSR [clients, num_nodes] with a one where the client holds the node."""
        sizes = [s.nodes.size for s in self.subgraphs]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        indices = np.concatenate([s.nodes for s in self.subgraphs]) if sizes else np.zeros(0, np.int64)
        return sp.csr_array((np.ones(indices.size), indices, indptr), shape=(len(sizes), num_nodes))


def partition_of_one(graph: Graph, description: str) -> Partition:
    """One client that holds all of ``graph``: who holds what says nothing about edges or labels.

    Args:
        graph: the whole graph.
        description: one phrase for tables.
    """
    whole = Subgraph(0, graph, np.arange(graph.num_nodes))
    return Partition((whole,), True, 0, description, from_edges=False, from_labels=False)
