"""A federation: who holds what, who sees what, what is asked and what is public, in one record.

A task makes one for each seed. Each of its worlds (the same people alone, together, with one curator, or without one client)
holds the same graphs: nothing is sampled again.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fedgraph.errors import DataError
from fedgraph.methods import (
    ClearFacts,
    ColumnRanks,
    PublicCutEdgeFacts,
    PublicFacts,
)
from fedgraph.partition import base
from fedgraph.privacy import Viewer
from fedgraph.types import Graph, Partition, Subgraph, graph_without_edges, graph_without_labels, partition_of_one
from fedgraph.worlds import protocols
from fedgraph.worlds.world import JOINED_WORLD, World, WorldKind


@dataclass(frozen=True, eq=False)
class Federation:
    """Who holds what in one world of one seed, and who may see what.

    Attributes:
        world: who trains together, and who is trusted.
        setting: what is held, asked and public.
        partition: who holds which node of ``setting.held``.
        cut_edges: what clients know of the edges between them (``PublicFacts.cut_edges``).
        colluders: participants who may pool their noise with the server.
        names: of the clients, in the order of their numbers; empty where they have none.
    """

    world: World
    setting: protocols.ProtocolSetting
    partition: Partition
    cut_edges: PublicCutEdgeFacts
    colluders: int
    names: tuple[str, ...] = ()

    @property
    def facts(self) -> PublicFacts:
        """All that a plan with a guarantee may be made from: counts, client sizes, the public test graph or attributes."""
        setting, shares, held = self.setting, self.partition.subgraphs, self.setting.held
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
            public=setting.public,
            public_graph=setting.public_graph,
            public_attributes=setting.public_attributes,
            asking=setting.asking,
            asks=setting.asks,
            drawn=setting.drawn,
            split_from_edges=setting.split_from_edges,
            split_from_labels=setting.split_from_labels,
            component_from_edges=held.nodes_from_edges,
            columns_from_rows=held.columns_from_rows and setting.public_attributes is None,
            features_from_edges=held.features_from_edges,
            colluders=self.colluders if self.world.viewer is Viewer.SERVER_SECURE_AGGREGATION else 1,
            columns=held.columns if held.columns is not None and held.columns.places.size else None,
        )

    @property
    def clear_facts(self) -> ClearFacts:
        """The same, and what was counted in private rows: for a method that guarantees nothing."""
        held, known = self.setting.held, self.facts
        filled = held.features.nnz / max(1, held.num_nodes * held.num_features)
        filled = 1.0 if self.setting.ranks is not None or held.columns is not None else filled
        return ClearFacts(**vars(known), filled=filled)

    def scaled(self, ranks: ColumnRanks) -> "Federation":
        """The same people, with columns on one scale. ranks: what brings them there."""
        partition = self.partition.with_graphs(lambda share: ranks.scaled(share.graph))
        return replace(self, setting=self.setting.scaled(ranks), partition=partition)

    def within(self, world: World, client: int = 0) -> "Federation":
        """The same people, dealt as ``world`` says. Two worlds of the same ``holding`` differ in their viewer alone.

        Args:
            world: who trains together.
            client: which one, where every client is alone.

        Raises:
            DataError: the client that is left out is the only one.
        """
        setting, partition = self.setting, self.partition
        if world.kind is WorldKind.WHOLE:
            partition = partition_of_one(setting.held, "one curator")
        elif world.kind is WorldKind.ALONE:
            setting, partition = _alone(self, client)
        elif world.without is not None:
            setting, partition = _without(self, world.without.client)
        cut = self.cut_edges if world.joined else "dropped"
        return replace(self, world=world, setting=setting, partition=partition, cut_edges=cut)

    def asked_of(self, client: int) -> np.ndarray:
        """int64, the rows of ``setting.asked`` that belong to ``client``."""
        owner = self.setting.asked.owner
        return np.flatnonzero(owner == client) if owner is not None else np.zeros(0, dtype=np.int64)

    def at_home(self, answers: Callable[[Graph], np.ndarray], asked: Graph) -> np.ndarray:
        """Scores of every asked node: each client asks about its own part.

        Where the nodes that are asked are held, all are asked at once: a method may know them by their number.

        Args:
            answers: scores [k, c] of the nodes of a graph.
            asked: the graph of all asked nodes.

        Returns:
            float [n, c], zeros where nobody asks.
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

    @property
    def same(self) -> bool:
        """Whether the nodes that are asked are held."""
        return self.setting.asked is self.setting.held


def deal(
    setting: protocols.ProtocolSetting,
    names: tuple[str, ...],
    source: Partition,
    cut: PublicCutEdgeFacts,
    colluders: int = 1,
) -> Federation:
    """Each owner's part of the training side as a client; all of them train together.

    Args:
        setting: its held graph knows its owners.
        names: of the owners.
        source: how owners came to their nodes.
        cut: what each client is told of its edges to other clients.
        colluders: participants who may pool their noise with the server.

    Raises:
        DataError: the graph has no owners, or an owner has no node on the training side.
    """
    owner = setting.held.owner
    if owner is None:
        raise DataError(f"{setting.held.name}: its nodes know no owner")
    empty = np.flatnonzero(np.bincount(owner, minlength=len(names)) == 0)
    if empty.size:
        raise DataError(
            f"{setting.held.name}: {names[int(empty[0])]} has no node on the training side: the split tests all that it has; "
            "allowed: at least one per client (a larger train_fraction, own masks, or protocol: asking, where a client holds "
            "all of its nodes)"
        )
    order = np.argsort(owner, kind="stable")
    groups = np.split(order, np.searchsorted(owner[order], np.arange(1, len(names))))
    found = base.disjoint(
        setting.held, groups, source.description, from_edges=source.from_edges, from_labels=source.from_labels
    )
    if cut != "dropped":
        found = base.with_cut_edges(setting.held, found)
    return Federation(JOINED_WORLD, setting, found, cut, colluders, names)


def _alone(federation: Federation, client: int) -> tuple[protocols.ProtocolSetting, Partition]:
    """One client with its own nodes, its own public ones, and its own questions."""
    setting, own = federation.setting, federation.partition.subgraphs[client]
    held = own.graph
    asked, truth = (held, setting.truth[federation.asked_of(client)]) if federation.same else _asks(federation, client)
    asking = np.flatnonzero(np.isin(own.nodes, setting.asking))
    narrow = replace(
        setting,
        held=held,
        asked=asked,
        truth=truth,
        num_train=held.num_nodes - (asking.size if setting.asks or not federation.same else int((truth >= 0).sum())),
        public_graph=asked if setting.test_graph_public else setting.public_graph,
        public_attributes=None if setting.public_attributes is None else graph_without_edges(held),
        asking=asking,
    )
    return narrow, partition_of_one(held, f"{federation.names[client]} alone")


def _without(federation: Federation, client: int) -> tuple[protocols.ProtocolSetting, Partition]:
    """Everybody but ``client``, whose nodes are asked. ``DataError`` where nobody else is there, or held nodes are asked.

    What is public stays public, of the client that is left out, too.
    """
    setting, name = federation.setting, federation.names[client]
    others = [s for s in federation.partition.subgraphs if s.client != client]
    if not others:
        raise DataError(f"{name} is the only client: there is nobody to train without it")
    kept = np.sort(np.concatenate([s.nodes for s in others]))
    shares = tuple(Subgraph(i, s.graph, np.searchsorted(kept, s.nodes)) for i, s in enumerate(others))
    words = f"{federation.partition.description}, without {name}"
    partition = replace(federation.partition, subgraphs=shares, disjoint=True, num_cut_edges=0, description=words)
    asking = np.flatnonzero(np.isin(kept, setting.asking))
    if federation.same:
        asked = _newcomers(federation, client)
        truth = setting.truth[federation.asked_of(client)]
    else:
        asked, truth = _asks(federation, client)
    attributes = setting.public_attributes
    left = replace(
        setting,
        asked=asked,
        asked_is_public=setting.test_graph_public,
        truth=truth,
        num_train=kept.size - asking.size,
        public_attributes=None if attributes is None else attributes.induced(kept),
        asking=asking,
    )
    return left, partition


def _asks(federation: Federation, client: int) -> tuple[Graph, np.ndarray]:
    """The client's own part of a test graph, and its answers.

    A client without a test node asks for nothing that counts: it gets the whole test graph where that is public, and otherwise
    its own nodes.
    """
    setting, rows = federation.setting, federation.asked_of(client)
    if rows.size:
        return setting.asked.induced(rows), setting.truth[rows]
    asked = setting.asked if setting.test_graph_public else _newcomers(federation, client)
    return asked, np.full(asked.num_nodes, -1, dtype=np.int64)


def _newcomers(federation: Federation, client: int) -> Graph:
    """A client that has not joined, as it asks: its own graph, and no label."""
    return graph_without_labels(federation.partition.subgraphs[client].graph)
