"""What is public of a node-classification task: ``public:`` in a scenario.

* ``test-graph``: the test nodes, with their features and the edges among them (DPAR, WWW 2024, §6). Predictions spread over it.
* ``{share: 0.1}``: a random share of all nodes is set apart from the training nodes, and their features and the edges among
  them are public; the test nodes are private.
* ``{mask: file}``: the same, for the node ids listed in a file (text, one id a line, or ``.npy``).
* ``{dataset: name}``: another data set with the same feature columns, whole.
* ``nothing``.

Labels of public nodes are never used. Where the test nodes are not public, each is answered from its own row alone; its
edges are used only by a method that says so (``answers-private``), and its answer is shown to nobody else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from fedgraph import data
from fedgraph.documents import Settings
from fedgraph.errors import DataError, ScenarioError
from fedgraph.types import Graph, graph_without_labels


class PublicSet(Settings):
    """Another set of nodes that is public: exactly one of ``share``, ``mask`` and ``dataset``."""

    share: float | None = Field(None, gt=0, lt=1, description="share of all nodes, taken at random from those that would train")
    mask: Path | None = Field(None, description="file of node ids: text, one a line, or .npy (ids, or one boolean per node)")
    dataset: str | None = Field(None, description="family/dataset with the same feature columns")
    root: Path | None = Field(None, description="folder of that data set; default as for every data set")
    name: str = Field("", description="its name in tables; default what was given")

    @model_validator(mode="after")
    def _one(self) -> PublicSet:
        given = [key for key, value in dict(self).items() if key in ("share", "mask", "dataset") and value is not None]
        if len(given) != 1:
            raise ValueError(f"a public set is one of share, mask and dataset, found {' and '.join(given) or 'none of them'}")
        return self

    @property
    def called(self) -> str:
        """Its name in tables and in ``results.csv``."""
        return self.name or (f"share {self.share:g}" if self.share is not None else str(self.mask or self.dataset))


PublicSetChoice = Literal["test-graph", "nothing"] | PublicSet


def name_of(public: PublicSetChoice) -> str:
    """What the column ``public`` of the results says."""
    return public.called if isinstance(public, PublicSet) else public


def ids(public: PublicSet, num_nodes: int, train: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Node ids of a set inside the graph itself, int64, sorted; empty for another data set.

    train: ids that would train, among which a share (of all nodes) is drawn.
    Raises ``ScenarioError`` for a file that is missing or names no such nodes.
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


def graph_of(public: PublicSet, like: Graph) -> Graph:
    """The public data set, without labels. Raises ``DataError`` where its feature columns are not those of ``like``."""
    stand_in = like.provenance.source == "synthetic"
    found = data.load(str(public.dataset), root=public.root, stand_in=stand_in)
    if not isinstance(found, Graph):
        raise DataError(f"{public.dataset} is a collection of graphs; a public set of nodes needs one graph")
    if found.num_features != like.num_features:
        raise DataError(
            f"{public.dataset} has {found.num_features} feature columns and {like.name} has {like.num_features}; a public data "
            "set needs the same columns"
        )
    return graph_without_labels(found)
