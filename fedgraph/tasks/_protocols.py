"""What the clients hold, what is public, and what is asked at the end.

* ``inductive``: nodes are split (``Split``: at random, or whole parts of a cut of the graph), edges between the
  sides are removed, clients hold the training graph, the test graph is public and predictions are asked for it
  (DPAR, WWW 2024, §6).
* ``transductive``: clients hold the whole graph and only its edges are private; features and the training labels
  are public, test labels are masked (−1). Predictions are asked for the test nodes of that same graph, so a
  method may use what it has released, and the public features, but the edges only where its guarantee says so.
* ``inductive-edges``: as inductive, but of the training graph only the edges are private: its features and labels
  are public, and so is the whole test graph (GCON, inference on a public graph).

Splits with validation nodes (``public``, ``per-class``) hide their labels from training; they choose and stop what a method
chooses and stops without privacy (``Graph.validation``). Inductive, whatever is not tested is held, labelled or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy.sparse as sp

from fedgraph.data import splits
from fedgraph.errors import DataError
from fedgraph.methods.base import Plan
from fedgraph.privacy.units import Assumption
from fedgraph.types import Graph, Masks

Protocol = Literal["inductive", "transductive", "inductive-edges"]
Split = Literal["random", "parts", "public", "per-class"]


@dataclass(frozen=True, eq=False)
class Setting:
    """held: the graph that is dealt to clients. asked: the graph that predictions are asked for, labels masked
    where they are not public. truth: int64 [asked.num_nodes], −1 where the answer does not count.
    num_train: training nodes. public_graph, public_attributes: as in ``PublicFacts``.
    """

    held: Graph
    asked: Graph
    truth: np.ndarray
    num_train: int
    public_graph: Graph | None
    public_attributes: Graph | None


@dataclass(frozen=True)
class Sizes:
    """train_per_class, validation_per_class: of ``per-class``. number: which of the published splits ``public`` takes (modulo
    how many there are).
    """

    train_per_class: int = 20
    validation_per_class: int = 30
    number: int = 0


def make(
    graph: Graph,
    protocol: Protocol,
    train_fraction: float,
    rng: np.random.Generator,
    by: Split = "random",
    sizes: Sizes = Sizes(),
) -> Setting:
    """The setting of ``protocol``; the same stream gives all protocols the same training nodes.

    by: ``random`` (``train_fraction`` of the nodes train); ``parts``, which has its own sizes; ``public``, a split that came
    with the data; ``per-class``, so many training and validation nodes of each class (Shchur et al. 2018), all others tested.
    ``DataError`` where it cannot be.
    """
    if by == "public":
        if not graph.masks:
            raise DataError(f"{graph.name} came without a split; allowed for it: split: random, parts or per-class")
        return _masked(graph, graph.masks[sizes.number % len(graph.masks)], protocol)
    if by == "per-class":
        masks = splits.per_class_split(graph, sizes.train_per_class, sizes.validation_per_class, rng)
        return _masked(graph, masks, protocol)
    if protocol != "transductive":
        in_parts = by == "parts"
        split = splits.part_split(graph, rng) if in_parts else splits.inductive_split(graph, train_fraction, rng)
        attributes = without_edges(split.train) if protocol == "inductive-edges" else None
        return Setting(split.train, split.test, split.test.labels, split.train.num_nodes, split.test, attributes)
    train, test = splits.random_split(graph.num_nodes, train_fraction, rng)
    masked, truth = graph.labels.copy(), np.full_like(graph.labels, -1)
    masked[test] = -1
    truth[test] = graph.labels[test]
    held = replace(graph, labels=masked)
    return Setting(held, held, truth, train.size, None, without_edges(held))


def _masked(graph: Graph, masks: Masks, protocol: Protocol) -> Setting:
    """The setting of a split with validation nodes; labels of nodes that it does not name are hidden."""
    train, validation, truth = (np.full_like(graph.labels, -1) for _ in range(3))
    train[masks.train], validation[masks.validation] = graph.labels[masks.train], graph.labels[masks.validation]
    truth[masks.test] = graph.labels[masks.test]
    held = replace(graph, labels=train, validation=validation if masks.validation.size else None, masks=())
    if protocol == "transductive":
        return Setting(held, held, truth, masks.train.size, None, without_edges(held))
    rest = np.setdiff1d(np.arange(graph.num_nodes), masks.test)
    inner, test = held.induced(rest), graph.induced(masks.test)
    attributes = without_edges(inner) if protocol == "inductive-edges" else None
    return Setting(inner, test, test.labels, inner.num_nodes, test, attributes)


def largest_component(graph: Graph) -> Graph:
    """The subgraph on the largest connected component (the first of equals), with the published splits on its nodes."""
    _, component = sp.csgraph.connected_components(graph.adjacency, directed=False)
    nodes = np.flatnonzero(component == np.bincount(component).argmax())
    place = np.full(graph.num_nodes, -1)
    place[nodes] = np.arange(nodes.size)

    def kept(ids: np.ndarray) -> np.ndarray:
        return place[ids][place[ids] >= 0]

    masks = tuple(Masks(kept(m.train), kept(m.validation), kept(m.test)) for m in graph.masks)
    return replace(graph.induced(nodes), masks=masks)


def without_edges(graph: Graph) -> Graph:
    """The same nodes, features and labels, and no edge."""
    return replace(graph, adjacency=sp.csr_array(graph.adjacency.shape, dtype=graph.adjacency.dtype))


def without_attributes(graph: Graph) -> Graph:
    """The same nodes and edges; no feature, no label."""
    nothing = sp.csr_array(graph.features.shape, dtype=graph.features.dtype)
    return replace(graph, features=nothing, labels=np.full_like(graph.labels, -1))


def question(setting: Setting, plan: Plan, epsilon_spent: Callable[[], float]) -> Graph:
    """The graph that ``predict`` receives.

    Its edges are shown where they are public (inductive), where the guarantee lets a node use its own
    (``own-edges-known``), or where nothing is guaranteed anyway (ε = ∞). Otherwise they are withheld, so a
    prediction can only be made from released values and public features. Where edges are public and attributes
    private (``edges-public``), it is the attributes that are withheld.
    """
    if Assumption.EDGES_PUBLIC in plan.protection.assumptions:
        return without_attributes(setting.asked)
    shown = setting.public_graph is not None or Assumption.OWN_EDGES_KNOWN in plan.protection.assumptions
    return setting.asked if shown or np.isinf(epsilon_spent()) else without_edges(setting.asked)
