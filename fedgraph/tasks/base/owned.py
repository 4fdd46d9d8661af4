"""Owners of the data as clients that stay the same for all seeds (``owners: true``), and what each of them pays."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fedgraph import plugins, seeds, worlds
from fedgraph.documents import SettingsSpec
from fedgraph.errors import DataError, ScenarioError
from fedgraph.partition import base
from fedgraph.privacy import settle
from fedgraph.tasks.base import CellContext, cell_training
from fedgraph.tasks.base.cell_training import TrainedCell
from fedgraph.types import Graph, Partition

EVERYBODY = "all"  # the name of the record that is about everybody's nodes


def find(name: str, names: Sequence[str], key: str) -> int:
    """The number of the client called ``name``; ``ScenarioError`` where there is none."""
    if name not in names:
        hint = plugins.suggest_plugin_name(name, list(names))
        raise ScenarioError(f"{key}: there is no client {name!r}{hint}; allowed: {', '.join(names)}")
    return list(names).index(name)


def deal(graph: Graph, partition: SettingsSpec, context: CellContext) -> tuple[Graph, Partition]:
    """Deal nodes to clients that stay the same for all seeds.

    Args:
        partition: The settings of the partition, its name among them.
        context: The root of the random streams. It keeps the result.

    Returns:
        (the graph, whose nodes know their owner; how they were dealt). Clients have the names that the data give to owners,
        where the partition keeps these, and are called ``client 1``, ``client 2``, … otherwise.

    Raises:
        ScenarioError: Two clients would hold the same node.
        DataError: Two clients have one name, or a client is called as tables call everybody.
    """

    def make() -> tuple[Graph, Partition]:
        offers, settings = base.chosen(partition)
        found = offers.split(graph, settings, seeds.seeded_generator(context.root, "partition", context.dataset, "owners"))
        if not found.disjoint:
            overlapping = partition["partition"]
            raise ScenarioError(f"owners asks for clients that share no node; partition {overlapping!r} overlaps")
        owner = np.zeros(graph.num_nodes, dtype=np.int64)
        for share in found.subgraphs:
            owner[share.nodes] = share.client
        names: tuple[str, ...] = ()
        if graph.owner is not None and graph.owner_names and offers.keeps_owners:
            names = tuple(graph.owner_names[int(k)] for k in np.unique(graph.owner))
        names = names or tuple(f"client {k + 1}" for k in range(found.num_clients))
        if len(set(names)) < len(names):
            raise DataError(f"{graph.name}: two clients have one name; allowed: names that differ")
        if EVERYBODY in names:
            called = f"a client is called {EVERYBODY!r}, as tables call everybody"
            raise DataError(f"{graph.name}: {called}; allowed: any other name")
        return replace(graph, owner=owner, owner_names=names), found

    return context.cached(("owned", context.dataset, cell_training.partition_key(partition)), make)


def epsilons_of(done: TrainedCell, federation: worlds.Federation) -> list[float]:
    """ε of each owner's dearest unit in a training of all of them."""
    if done.federation.world.kind is worlds.WorldKind.WHOLE:
        return [done.settled.epsilon] * len(federation.names)
    each = settle.per_client(done.guarantee, done.outcome.releases)
    return [each.get(client, 0.0) for client in range(len(federation.names))]
