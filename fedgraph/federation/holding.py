"""A federation: one record of who holds what, who sees what, what is asked and what is public.

A task makes one for each seed, held by one curator, and derives all worlds of the same people from it (each client alone, all
together, one curator, or without one client), so that worlds differ in nothing that is sampled.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import DataError
from fedgraph.federation.world import JOINED_WORLD, World, WorldKind, world_of_trust
from fedgraph.methods import ClearFacts, ColumnRanks, Plan, PublicCutEdgeFacts, PublicFacts, column_ranks
from fedgraph.partition import base
from fedgraph.privacy import Assumption, Trust, Viewer
from fedgraph.types import Graph, Partition, Subgraph, graph_without_edges, graph_without_labels, partition_of_one

Split = Literal["random", "parts", "public", "per-class"]

_AMONG_PUBLIC = "Numbers of {names} became their ranks among the {rows:,} public rows, which costs no privacy."
_WITHOUT_RANGE = (
    "Nobody gave bounds for {names}, and every person protects an own row, so that nobody may estimate a range: logarithms "
    "over the same wide range for all data stand in, and say little. Give bounds."
)
_CURATED = world_of_trust(Trust.CURATOR)
_NOBODY = Partition((), True, 0, "", from_edges=False, from_labels=False)


@dataclass(frozen=True, eq=False)
class Federation:
    """Who holds what in one world of one seed, who sees what, what is asked and what is public."""

    held: Graph  # the graph that is dealt to clients
    asked: Graph  # the graph that predictions are asked for, labels masked where they are not public
    truth: np.ndarray  # int64 [asked.num_nodes], −1 where the answer does not count
    num_train: int  # number of training nodes
    public_graph: Graph | None  # as in ``PublicFacts``
    public_attributes: Graph | None  # as in ``PublicFacts``
    public: str = "test-graph"  # what is public, in one word for tables
    # int64, rows of ``held`` that never train and only ask
    asking: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    asks: bool = field(default=False, kw_only=True)  # whether ``asking`` is the protocol, as in ``PublicFacts``
    drawn: str = field(default="", kw_only=True)  # as in ``PublicFacts``
    asked_is_public: bool = False  # whether ``asked`` is a part of ``public_graph``
    split: Split = field(kw_only=True)  # how training and test nodes were chosen
    ranks: ColumnRanks | None = None  # the ranks that brought numeric columns to one scale
    said: tuple[str, ...] = ()  # sentences about these ranks for the report
    world: World = _CURATED  # who trains together, and who is trusted
    partition: Partition = _NOBODY  # who holds which node of ``held``; default: one curator holds all
    cut_edges: PublicCutEdgeFacts = "dropped"  # what clients know of the edges between them (``PublicFacts.cut_edges``)
    colluders: int = 1  # number of participants who may tell the server their noise
    names: tuple[str, ...] = ()  # names of the clients, in the order of their numbers; empty: they have none

    def __post_init__(self) -> None:
        if self.partition is _NOBODY:
            object.__setattr__(self, "partition", partition_of_one(self.held, "one curator"))

    @property
    def split_from_edges(self) -> bool:
        """Whether the split was computed from the edges."""
        return self.split == "parts"

    @property
    def split_from_labels(self) -> bool:
        """Whether the split may have been computed from labels: so many nodes of each class, or a published split."""
        return self.split in ("per-class", "public")

    @property
    def test_graph_public(self) -> bool:
        """Whether ``asked`` is the public graph, or (``asked_is_public``) a part of it."""
        return self.asked_is_public or (self.public_graph is not None and self.public_graph is self.asked)

    @property
    def same(self) -> bool:
        """Whether ``asked`` is ``held``: test nodes are held by clients."""
        return self.asked is self.held

    @property
    def facts(self) -> PublicFacts:
        """Everything that a plan with a guarantee may read: counts, client sizes, the public test graph or attributes."""
        shares, held = self.partition.subgraphs, self.held
        return PublicFacts(
            num_nodes=sum(s.graph.num_nodes for s in shares),
            num_features=held.num_features,
            num_classes=held.num_classes,
            clients=tuple(s.graph.num_nodes for s in shares),
            viewer=self.world.viewer,
            members=tuple(s.nodes for s in shares),
            membership_from_edges=self.partition.from_edges,
            membership_from_labels=self.partition.from_labels,
            holdings=None,
            cut_edges=self.cut_edges,
            public=self.public,
            public_graph=self.public_graph,
            public_attributes=self.public_attributes,
            asking=self.asking,
            asks=self.asks,
            drawn=self.drawn,
            split_from_edges=self.split_from_edges,
            split_from_labels=self.split_from_labels,
            component_from_edges=held.nodes_from_edges,
            # whoever reads public rows may know what was made of them; of own data ties decide, too, which columns are left out
            columns_from_rows=held.columns_from_rows and (self.public_attributes is None or held.provenance.source == "own"),
            features_from_edges=held.features_from_edges,
            colluders=self.colluders if self.world.viewer is Viewer.SERVER_SECURE_AGGREGATION else 1,
            columns=held.columns if held.columns is not None and held.columns.places.size else None,
        )

    @property
    def clear_facts(self) -> ClearFacts:
        """``facts`` and what was counted in private rows, for methods without a guarantee."""
        held, known = self.held, self.facts
        filled = held.features.nnz / max(1, held.num_nodes * held.num_features)
        filled = 1.0 if self.ranks is not None or held.columns is not None else filled
        return ClearFacts(**vars(known), filled=filled)

    def scaled(self, ranks: ColumnRanks) -> "Federation":
        """The same federation with columns on the scale of ``ranks``; fields that share a graph still share one."""
        given = {id(g): g for g in (self.held, self.asked, self.public_graph, self.public_attributes) if g is not None}
        made = {key: ranks.scaled(replace(graph, columns=ranks.columns)) for key, graph in given.items()}
        public, attributes = (None if g is None else made[id(g)] for g in (self.public_graph, self.public_attributes))
        partition = self.partition.with_graphs(lambda share: made.get(id(share.graph)) or ranks.scaled(share.graph))
        held, asked = made[id(self.held)], made[id(self.asked)]
        moved = replace(self, held=held, asked=asked, public_graph=public, public_attributes=attributes)
        return replace(moved, partition=partition, ranks=ranks)

    def on_one_scale(self, *, rows_private: bool) -> "Federation":
        """The federation with columns of unknown range as ranks among public rows, if there are any (``column_ranks``).

        Args:
            rows_private: whether every node protects its own row, so that no rows are public whatever the protocol says.
                Numbers without bounds are then scaled by the same range for all data, so that columns lie in [0, 1].
        """
        columns = self.held.columns
        if columns is None:
            return self
        if rows_private:
            said = (_WITHOUT_RANGE.format(names=columns.called),) if columns.names else ()
            return replace(self.scaled(column_ranks.fixed(columns)), said=said)
        public = self.public_attributes if self.public_attributes is not None else self.public_graph
        if public is None or not columns.names:
            return self
        ranks = column_ranks.of_public(public, columns)
        return replace(self.scaled(ranks), said=(_AMONG_PUBLIC.format(names=columns.called, rows=public.num_nodes),))

    def dealt(self, partition: Partition, cut: PublicCutEdgeFacts, names: tuple[str, ...] = ()) -> "Federation":
        """The same people, dealt to clients that train together.

        Args:
            partition: who holds which node.
            cut: what clients know of the edges between them.
            names: names of the clients.
        """
        found = partition if cut == "dropped" else base.with_cut_edges(self.held, partition)
        return replace(self, world=JOINED_WORLD, partition=found, cut_edges=cut, names=names)

    def dealt_to_owners(self, names: tuple[str, ...], source: Partition, cut: PublicCutEdgeFacts) -> "Federation":
        """As ``dealt``; each owner of nodes in ``held`` is a client.

        Args:
            names: names of the owners.
            source: the partition that dealt nodes to owners.
            cut: as for ``dealt``.

        Raises:
            DataError: the graph has no owners, or an owner has no training node.
        """
        owner = self.held.owner
        if owner is None:
            raise DataError(f"{self.held.name}: its nodes have no owners")
        empty = np.flatnonzero(np.bincount(owner, minlength=len(names)) == 0)
        if empty.size:
            raise DataError(
                f"{self.held.name}: {names[int(empty[0])]} has no node on the training side: the split tests all that it has; "
                "allowed: at least one per client (a larger train_fraction, own masks, or protocol: asking, where a client "
                "holds all of its nodes)"
            )
        order = np.argsort(owner, kind="stable")
        groups = np.split(order, np.searchsorted(owner[order], np.arange(1, len(names))))
        how = {"from_edges": source.from_edges, "from_labels": source.from_labels, "natural": source.natural}
        return self.dealt(base.disjoint(self.held, groups, source.description, **how), cut, names)

    def within(self, world: World, client: int = 0) -> "Federation":
        """The same people in ``world``. Worlds of the same ``holding`` differ only in their viewer.

        Args:
            world: who trains together.
            client: number of the client, in a world where each client trains alone.

        Raises:
            DataError: the only client is left out.
        """
        found = self
        if world.kind is WorldKind.WHOLE:
            found = replace(self, partition=partition_of_one(self.held, "one curator"))
        elif world.kind is WorldKind.ALONE:
            found = self._alone(client)
        elif world.without is not None:
            found = self._without(world.without.client)
        return replace(found, world=world, cut_edges=self.cut_edges if world.joined else "dropped")

    def question(self, plan: Plan, epsilon_spent: Callable[[], float]) -> Graph:
        """The graph that ``predict`` receives.

        It has edges if they are public (inductive), if the guarantee lets a node use its own (``own-edges-known``,
        ``answers-private``), or if nothing is guaranteed anyway (ε = ∞). Otherwise edges are removed, so that predictions can
        only use released values and public features. If edges are public and attributes private (``edges-public``), features
        and labels are removed instead.

        Args:
            plan: its guarantee has the assumptions.
            epsilon_spent: returns the ε of the training; called only if the answer depends on it.
        """
        stated = set(plan.guarantee.protection.assumptions)
        if Assumption.EDGES_PUBLIC in stated:  # the same nodes and edges; no feature, no label
            nothing = sp.csr_array(self.asked.features.shape, dtype=self.asked.features.dtype)
            return replace(graph_without_labels(self.asked), features=nothing)
        own = {Assumption.OWN_EDGES_KNOWN, Assumption.ANSWERS_PRIVATE} & stated
        shown = self.test_graph_public or own
        return self.asked if shown or np.isinf(epsilon_spent()) else graph_without_edges(self.asked)

    def asked_of(self, client: int) -> np.ndarray:
        """int64, the rows of ``asked`` that belong to ``client``."""
        owner = self.asked.owner
        return np.flatnonzero(owner == client) if owner is not None else np.zeros(0, dtype=np.int64)

    def at_home(self, answers: Callable[[Graph], np.ndarray], asked: Graph) -> np.ndarray:
        """Scores of all asked nodes, where each client asks about its own nodes.

        If the asked nodes are held by clients, all are asked at once, because a method may know them by their number.

        Args:
            answers: scores [k, c] of the nodes of a graph.
            asked: the graph of all asked nodes.

        Returns:
            float [n, c]; rows of nodes that nobody asks about are zero.
        """
        if self.same:
            return answers(asked)
        found: np.ndarray | None = None
        for client in range(len(self.names)):
            rows = self.asked_of(client)
            if rows.size:
                own = answers(asked.induced(rows))
                found = np.zeros((asked.num_nodes, own.shape[1])) if found is None else found
                found[rows] = own
        if found is None:
            raise ValueError("no client is asked for any node")
        return found

    def _alone(self, client: int) -> "Federation":
        """One client alone, with its own nodes, public nodes and test nodes."""
        own = self.partition.subgraphs[client]
        held = own.graph
        asked, truth = (held, self.truth[self.asked_of(client)]) if self.same else self._asks(client)
        asking = np.flatnonzero(np.isin(own.nodes, self.asking))
        return replace(
            self,
            held=held,
            asked=asked,
            truth=truth,
            num_train=held.num_nodes - (asking.size if self.asks or not self.same else int((truth >= 0).sum())),
            public_graph=asked if self.test_graph_public else self.public_graph,
            public_attributes=None if self.public_attributes is None else graph_without_edges(held),
            asking=asking,
            partition=partition_of_one(held, f"{self.names[client]} alone"),
        )

    def _without(self, client: int) -> "Federation":
        """All clients but ``client``, whose nodes are asked. ``DataError`` if there is no other client.

        Public data of the client that is left out stay public.
        """
        name = self.names[client]
        others = [s for s in self.partition.subgraphs if s.client != client]
        if not others:
            raise DataError(f"{name} is the only client: there is nobody to train without it")
        kept = np.sort(np.concatenate([s.nodes for s in others]))
        shares = tuple(Subgraph(i, s.graph, np.searchsorted(kept, s.nodes)) for i, s in enumerate(others))
        words = f"{self.partition.description}, without {name}"
        asking = np.flatnonzero(np.isin(kept, self.asking))
        newcomer = (self._newcomers(client), self.truth[self.asked_of(client)])
        asked, truth = newcomer if self.same else self._asks(client)
        attributes = self.public_attributes
        return replace(
            self,
            asked=asked,
            asked_is_public=self.test_graph_public,
            truth=truth,
            num_train=kept.size - asking.size,
            public_attributes=None if attributes is None else attributes.induced(kept),
            asking=asking,
            partition=replace(self.partition, subgraphs=shares, disjoint=True, num_cut_edges=0, description=words),
        )

    def _asks(self, client: int) -> tuple[Graph, np.ndarray]:
        """The client's own part of the test graph, and its labels.

        A client without test nodes gets the whole test graph if that is public, else its own nodes; no label then counts.
        """
        rows = self.asked_of(client)
        if rows.size:
            return self.asked.induced(rows), self.truth[rows]
        asked = self.asked if self.test_graph_public else self._newcomers(client)
        return asked, np.full(asked.num_nodes, -1, dtype=np.int64)

    def _newcomers(self, client: int) -> Graph:
        """The graph that a client outside the federation asks about: its own, without labels."""
        return graph_without_labels(self.partition.subgraphs[client].graph)
