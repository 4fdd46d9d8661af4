"""Protocols: what the clients hold, what is public, and which nodes are asked at the end.

* ``inductive``: nodes are split (``Split``: at random, or whole parts of a cut of the graph), edges between the
  sides are removed, clients hold the training graph, the test graph is public and predictions are asked for it
  (DPAR, WWW 2024, §6).
* ``transductive``: clients hold the whole graph and only its edges are private; features and the training labels
  are public, test labels are masked (−1). Predictions are asked for the test nodes of that same graph, so a
  method may use what it has released, and the public features, but the edges only where its guarantee says so.
* ``inductive-edges``: as inductive, but of the training graph only the edges are private: its features and labels
  are public, and so is the whole test graph (GCON, inference on a public graph).
* ``asking``: clients hold the whole graph, and all of it is private: features, edges and labels. Nobody holds the labels of
  test nodes. Each test node asks with its own row and its own edges, and only it is shown its answer.

Splits with validation nodes (``public``, ``per-class``) hide their labels from training; methods without privacy choose and
stop by them (``Graph.validation``). Every node that is not tested is held, with or without a label.

With protocols ``inductive`` and ``asking`` a scenario says by ``public`` what else is public:

* ``test-graph``: the test nodes, with their features and the edges among them (DPAR, WWW 2024, §6). Predictions spread over it.
* ``{share: 0.1}``: a random share of all nodes is set apart from the training nodes, and their features and the edges among
  them are public; the test nodes are private.
* ``{mask: file}``: the same, for the node ids listed in a file (text, one id a line, or ``.npy``).
* ``{dataset: name}``: another data set with the same feature columns, whole.
* ``nothing``.

Labels of public nodes are never used. A test node that is not public is answered from its own row alone. Its edges are used
only by a method that says so (``answers-private``), and its answer is shown to nobody else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from fedgraph import data
from fedgraph.data import splits
from fedgraph.documents import Settings, canonical
from fedgraph.errors import DataError, ScenarioError
from fedgraph.federation import Federation, Split
from fedgraph.types import Graph, GraphMasks, graph_without_edges, graph_without_labels


class PublicSet(Settings):
    """Another set of nodes that is public: exactly one of ``share``, ``mask`` and ``dataset``."""

    share: float | None = Field(None, gt=0, lt=1, description="share of all nodes, taken at random from those that would train")
    mask: Path | None = Field(None, description="file of node ids: text, one a line, or .npy (ids, or one boolean per node)")
    dataset: str | None = Field(None, description="family/dataset with the same feature columns")

    @model_validator(mode="after")
    def _one(self) -> PublicSet:
        given = [key for key, value in dict(self).items() if value is not None]
        if len(given) != 1:
            raise ValueError(f"a public set is one of share, mask and dataset, found {' and '.join(given) or 'none of them'}")
        return self


PublicSetChoice = Literal["test-graph", "nothing"] | PublicSet


def name_of(public: PublicSetChoice) -> str:
    """What the column ``public`` of the results says: of a mask its file, without the folder."""
    if not isinstance(public, PublicSet):
        return public
    if public.share is not None:
        return f"share {public.share:g}"
    return str(public.dataset) if public.mask is None else public.mask.name


Protocol = Literal["inductive", "transductive", "inductive-edges", "asking"]


@dataclass(frozen=True)
class Sizes:
    """Sizes of a split, and which of several published splits is taken."""

    train_per_class: int = 20  # training nodes of each class, of ``per-class``
    validation_per_class: int = 30  # validation nodes of each class, of ``per-class``
    number: int = 0  # which of the published splits ``public`` takes, modulo how many there are


_PITFALLS = Sizes()
_USUAL_FRACTION = 0.8  # of the nodes that train


def divide(
    graph: Graph, protocol: Protocol, train_fraction: float, rng: np.random.Generator, by: Split = "random",
    public: PublicSetChoice = "test-graph", sizes: Sizes = _PITFALLS,
) -> Federation:  # fmt: skip
    """The federation of a protocol, held by one curator; the same stream gives all protocols the same training nodes.

    train_fraction: share of the nodes that train, if ``by`` is ``random``; strictly between 0 and 1. rng: draws the split, and
    a public share. by: ``random``; ``parts``, which has its own sizes; ``public``, a split that came with the data; or
    ``per-class``, so many training and validation nodes of each class (Shchur et al. 2018), all other labelled ones tested.
    public: read for ``inductive`` and ``asking`` only (``asking`` keeps the test graph private, so ``test-graph`` means nothing
    there). sizes: of ``per-class`` and ``public``.

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
    """(the graph, nodes that are held, nodes that are tested). Splits with validation nodes hide their labels in the graph."""
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
    public: PublicSetChoice, *, by: Split,
) -> Federation:  # fmt: skip
    """The federation of ``asking``, or of ``inductive`` with another public set or none. No public node trains or is tested."""
    train, test = sides
    known = None
    if isinstance(public, PublicSet):
        apart = _ids(public, graph.num_nodes, train, rng)
        known = graph_without_labels(graph.induced(apart)) if apart.size else _graph_of(public, graph)
        train, test = np.setdiff1d(train, apart), np.setdiff1d(test, apart)
        if not (train.size and test.size):
            raise DataError(f"{graph.name}: public nodes leave {train.size} to train and {test.size} to test; both need one")
    name = name_of("nothing" if known is None else public)
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


def _ids(public: PublicSet, num_nodes: int, train: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Node ids of a set inside the graph itself, int64, sorted; empty for another data set.

    train: ids that would train, among which a share (of all nodes) is drawn.
    ``ScenarioError`` if the share is too large, or if the file is missing or names other nodes.
    """
    if public.share is not None:
        count = max(1, round(public.share * num_nodes))
        if count >= train.size:
            raise ScenarioError(f"public share {public.share:g} is {count} nodes, of only {train.size} on the training side")
        order = rng.permutation(num_nodes)  # over everybody: who trains may follow from labels
        return np.sort(order[np.isin(order, train)][:count]).astype(np.int64)
    if public.mask is None:
        return np.zeros(0, dtype=np.int64)
    try:
        found = np.load(public.mask) if public.mask.suffix == ".npy" else np.loadtxt(public.mask, dtype=np.int64, ndmin=1)
    except (OSError, ValueError) as error:
        raise ScenarioError(f"{public.mask}: not a list of node ids ({error}); allowed: text, one id a line, or .npy") from None
    if found.dtype == bool:
        if found.shape != (num_nodes,):
            raise ScenarioError(f"{public.mask}: {found.shape} booleans for a graph of {num_nodes} nodes; allowed: one a node")
        found = np.flatnonzero(found)
    if found.ndim != 1 or not np.issubdtype(found.dtype, np.integer) or not found.size:
        raise ScenarioError(f"{public.mask}: found {found.dtype} of shape {found.shape}; allowed: a list of node ids")
    if found.min() < 0 or found.max() >= num_nodes:
        raise ScenarioError(f"{public.mask}: ids run from {found.min()} to {found.max()}; allowed: 0 to {num_nodes - 1}")
    return np.unique(found).astype(np.int64)


def _graph_of(public: PublicSet, like: Graph) -> Graph:
    """The public data set, without labels. ``DataError`` if its number of feature columns is not that of ``like``."""
    stand_in = like.provenance.source == "synthetic"
    found = data.load(str(public.dataset), stand_in=stand_in)
    if not isinstance(found, Graph):
        raise DataError(f"{public.dataset} is a collection of graphs; a public set of nodes needs one graph")
    if found.num_features != like.num_features:
        raise DataError(
            f"{public.dataset} has {found.num_features} feature columns and {like.name} has {like.num_features}; a public data "
            "set needs the same columns"
        )
    return graph_without_labels(found)
