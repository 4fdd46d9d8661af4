"""What the clients hold, what is public, and what is asked at the end.

* ``inductive``: nodes are split (``Split``: at random, or whole parts of a cut of the graph), edges between the
  sides are removed, clients hold the training graph, the test graph is public and predictions are asked for it
  (DPAR, WWW 2024, §6).
* ``transductive``: clients hold the whole graph and only its edges are private; features and the training labels
  are public, test labels are masked (−1). Predictions are asked for the test nodes of that same graph, so a
  method may use what it has released, and the public features, but the edges only where its guarantee says so.
* ``inductive-edges``: as inductive, but of the training graph only the edges are private: its features and labels
  are public, and so is the whole test graph (GCON, inference on a public graph).
* ``asking``: clients hold the whole graph, and all of it is private: features, edges and labels, of the test nodes too,
  whose labels nobody holds. Each test node asks with its own row and its own edges, and is shown its own answer only.

Splits with validation nodes (``public``, ``per-class``) hide their labels from training; they choose and stop what a method
chooses and stops without privacy (``Graph.validation``). Whatever is not tested is held, labelled or not.

What is public beside that is ``public`` (``public_set``): the test graph, another set of nodes, or nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy.sparse as sp

from fedgraph.data import splits
from fedgraph.documents import canonical
from fedgraph.errors import DataError
from fedgraph.methods import Plan
from fedgraph.privacy import Assumption
from fedgraph.types import Graph, GraphMasks
from fedgraph.types import graph_without_edges as graph_without_edges
from fedgraph.types import graph_without_labels as graph_without_labels
from fedgraph.worlds import public_set
from fedgraph.worlds.federation import Federation
from fedgraph.worlds.federation import Split as Split

Protocol = Literal["inductive", "transductive", "inductive-edges", "asking"]


@dataclass(frozen=True)
class Sizes:
    """How large the sides of a split are."""

    train_per_class: int = 20  # training nodes of each class, of ``per-class``
    validation_per_class: int = 30  # validation nodes of each class, of ``per-class``
    number: int = 0  # which of the published splits ``public`` takes, modulo how many there are


_PITFALLS = Sizes()
_USUAL_FRACTION = 0.8  # of the nodes that train


def divide(
    graph: Graph, protocol: Protocol, train_fraction: float, rng: np.random.Generator, by: Split = "random",
    public: public_set.PublicSetChoice = "test-graph", sizes: Sizes = _PITFALLS,
) -> Federation:  # fmt: skip
    """The federation of a protocol, held by one curator; the same stream gives all protocols the same training nodes.

    Args:
        graph: everything.
        protocol: what is private, and who asks; see the module.
        train_fraction: of the nodes that train, where ``by`` is ``random``; strictly between 0 and 1.
        rng: draws the split, and a public share.
        by: ``random``; ``parts``, which has its own sizes; ``public``, a split that came with the data; or ``per-class``, so
            many training and validation nodes of each class (Shchur et al. 2018), all other labelled ones tested.
        public: read for ``inductive`` and ``asking`` only (``asking`` keeps the test graph private, so ``test-graph`` means
            nothing there).
        sizes: of ``per-class`` and ``public``.

    Raises:
        DataError: the graph cannot be split so, or a public set leaves nobody to train or to test.
        ScenarioError: a public set cannot be read.
    """
    graph, train, test = _divided(graph, train_fraction, rng, by, sizes)
    if protocol in ("inductive", "asking") and not (protocol == "inductive" and public == "test-graph"):
        found = _with_private_test_nodes(graph, protocol, (train, test), rng, public, by=by)
        usual = protocol == "inductive" or (by, train_fraction) == ("random", _USUAL_FRACTION)
        return found if usual else replace(found, drawn=canonical.text((by, train_fraction, sizes)))
    if protocol != "transductive":
        held, asked = graph.induced(train), graph.induced(test)
        attributes = graph_without_edges(held) if protocol == "inductive-edges" else None
        return Federation(held, asked, asked.labels, train.size, asked, attributes, split=by)
    masked, truth = graph.labels.copy(), np.full_like(graph.labels, -1)
    masked[test] = -1
    truth[test] = graph.labels[test]
    held = replace(graph, labels=masked)
    counted = train.size if by in ("random", "parts") else int((masked >= 0).sum())
    return Federation(held, held, truth, counted, None, graph_without_edges(held), "attributes", split=by)


def _divided(
    graph: Graph, train_fraction: float, rng: np.random.Generator, by: Split, sizes: Sizes
) -> tuple[Graph, np.ndarray, np.ndarray]:
    """(the graph with labels of training and test nodes only, nodes that may be held, nodes that are tested)."""
    if by == "random":
        return graph, *splits.random_split(graph.num_nodes, train_fraction, rng)
    if by == "parts":
        return graph, *splits.by_parts(graph, rng)
    if by == "public":
        if not graph.masks:
            raise DataError(f"{graph.name} came without a split; allowed for it: split: random, parts or per-class")
        masks = graph.masks[sizes.number % len(graph.masks)]
    else:
        masks = splits.per_class(graph, sizes.train_per_class, sizes.validation_per_class, rng)
    named = np.concatenate([masks.train, masks.test])
    labels = np.full_like(graph.labels, -1)
    labels[named] = graph.labels[named]
    validation = np.full_like(graph.labels, -1)
    validation[masks.validation] = graph.labels[masks.validation]
    known = replace(graph, labels=labels, validation=validation if masks.validation.size else None, masks=())
    return known, np.setdiff1d(np.arange(graph.num_nodes), masks.test), masks.test


def largest_component(graph: Graph) -> Graph:
    """The subgraph on the largest connected component (the first of equals), with the published splits on its nodes."""
    nodes = graph.largest_component()
    place = np.full(graph.num_nodes, -1)
    place[nodes] = np.arange(nodes.size)

    def kept(ids: np.ndarray) -> np.ndarray:
        return place[ids][place[ids] >= 0]

    masks = tuple(GraphMasks(kept(m.train), kept(m.validation), kept(m.test)) for m in graph.masks)
    return replace(graph.induced(nodes), masks=masks, nodes_from_edges=True)


def _with_private_test_nodes(
    graph: Graph, protocol: Protocol, sides: tuple[np.ndarray, np.ndarray], rng: np.random.Generator,
    public: public_set.PublicSetChoice, *, by: Split,
) -> Federation:  # fmt: skip
    """``inductive`` with another public set or none, and ``asking``. A public node neither trains nor is tested."""
    train, test = sides
    known = None
    if isinstance(public, public_set.PublicSet):
        apart = public_set.ids(public, graph.num_nodes, train, rng)
        known = graph_without_labels(graph.induced(apart)) if apart.size else public_set.graph_of(public, graph)
        train, test = np.setdiff1d(train, apart), np.setdiff1d(test, apart)
        if not (train.size and test.size):
            raise DataError(f"{graph.name}: public nodes leave {train.size} to train and {test.size} to test; both need one")
    name = public_set.name_of("nothing" if known is None else public)
    if protocol == "inductive":
        asked = graph.induced(test)
        return Federation(graph.induced(train), asked, asked.labels, train.size, known, None, name, split=by)
    held = np.union1d(train, test)
    asking = np.searchsorted(held, test)
    whole = graph.induced(held)
    labels = whole.labels.copy()
    labels[asking] = -1
    truth = np.full_like(whole.labels, -1)
    truth[asking] = whole.labels[asking]
    masked = replace(whole, labels=labels)
    return Federation(masked, masked, truth, train.size, known, None, name, asking, asks=True, split=by)


def question(federation: Federation, plan: Plan, epsilon_spent: Callable[[], float]) -> Graph:
    """The graph that ``predict`` receives.

    Its edges are shown where they are public (inductive), where the guarantee lets a node use its own
    (``own-edges-known``, ``answers-private``), or where nothing is guaranteed anyway (ε = ∞). Otherwise they are withheld, so a
    prediction can only be made from released values and public features. Where edges are public and attributes
    private (``edges-public``), it is the attributes that are withheld.

    Args:
        federation: what is asked, and what is public.
        plan: its guarantee says which assumptions hold.
        epsilon_spent: the ε that the training cost; called only where it decides.
    """
    if Assumption.EDGES_PUBLIC in plan.guarantee.protection.assumptions:
        # The same nodes and edges; no feature, no label.
        nothing = sp.csr_array(federation.asked.features.shape, dtype=federation.asked.features.dtype)
        return replace(graph_without_labels(federation.asked), features=nothing)
    own = {Assumption.OWN_EDGES_KNOWN, Assumption.ANSWERS_PRIVATE} & set(plan.guarantee.protection.assumptions)
    shown = federation.test_graph_public or own
    return federation.asked if shown or np.isinf(epsilon_spent()) else graph_without_edges(federation.asked)
