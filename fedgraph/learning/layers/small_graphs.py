"""One name for both shared models of small graphs: a two-layer GCN and GIN, on one graph or the union of a client's graphs.

``network(name, …)`` knows the layout; ``inputs`` prepares a client's graphs; ``gradient``, ``embedding`` and ``graph_scores``
are the same calls for both. Labels belong to nodes, or to whole graphs (mean or sum pooling) where a client holds several.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy.sparse as sp

from fedgraph.learning.late import torch
from fedgraph.learning.layers import gcn, gin
from fedgraph.learning.layers.matrices import DenseMatrix, Pool, device, first_rows, to_torch, unit_rows
from fedgraph.learning.layers.models import Layout, on_device, select
from fedgraph.learning.propagation.walks import symmetric_with_loops
from fedgraph.types import Graph

Model = Literal["gcn", "gin"]
Source = Literal["softmax", "hidden"]
Pooling = Literal["mean", "sum", "none"]
Inputs = gcn.GraphInputs | gin.GraphInputs


@dataclass(frozen=True)
class Network:
    """A shared model of small graphs.

    Attributes:
        model: Which one.
        layout: Widths of its linear maps.
        hops: How far a row reaches, in rounds of messages.
        pooling: Of several graphs at a client; ``none`` where labels belong to nodes.
        norm: Of GIN's layers.
    """

    model: Model
    layout: Layout
    hops: int
    pooling: Pooling = "mean"
    norm: gin.Norm = "rows"

    @property
    def affected_hops(self) -> int:
        """How far from a replaced node (its edges included) a row of the embedding can change.

        The GCN divides by degrees: a lost edge changes the weight of its ends in their neighbours' rows, one hop more.
        """
        return self.hops + 1 if self.model == "gcn" else self.hops


def network(
    model: Model,
    num_features: int,
    hidden: int,
    layers: int,
    num_classes: int,
    pooling: Pooling = "mean",
    norm: gin.Norm = "rows",
) -> Network:
    """The layout of a shared model.

    Args:
        model: ``gcn``, which always has two layers, or ``gin``.
        num_features: d.
        hidden: Units of every hidden map.
        layers: Of a GIN.
        num_classes: c.
        pooling: Of several graphs at a client.
        norm: Of a GIN.
    """
    if model == "gcn":
        return Network(model, Layout((num_features, hidden, num_classes)), 2, pooling)
    return Network(model, gin.layout(num_features, hidden, layers, num_classes, norm), layers, pooling, norm)


def inputs(net: Network, graph: Graph, sizes: tuple[int, ...] | None) -> Inputs:
    """A client's arrays.

    Args:
        net: The network.
        graph: One graph, or the union of several.
        sizes: Nodes of each graph of the union, else None. Unless pooling is ``none``, each node is labelled as its graph is.
    """
    pool = Pool(sizes, net.pooling == "sum") if sizes and net.pooling != "none" else None
    labels = graph.labels if pool is None or sizes is None else graph.labels[first_rows(sizes)]
    if net.model == "gcn" and sizes is None:
        return gcn.compact_inputs(graph)
    rows = sp.csr_array(unit_rows(graph.features))
    if net.model == "gin":
        return gin.compact(graph, pool, labels, rows, net.norm)
    columns = np.unique(rows.indices)
    hat = to_torch(symmetric_with_loops(graph.adjacency))
    return gcn.GraphInputs(DenseMatrix(rows[:, columns].toarray()), hat, torch.tensor(labels, device=device()), columns, pool)


@dataclass(frozen=True, eq=False)
class Batches:
    """A client's graphs as batches.

    Attributes:
        adjacency: CSR of their union.
        sizes: Nodes of each.
    """

    adjacency: sp.csr_array
    sizes: tuple[int, ...]

    def inputs(self, whole: gin.GraphInputs, size: int, epoch: int) -> list[gin.GraphInputs]:
        """Batches in an order that is drawn for ``epoch``; a last one of a single graph joins the one before.

        Args:
            whole: All graphs of the client.
            size: Graphs of a batch.
            epoch: Names the order.
        """
        order = np.random.default_rng([epoch, len(self.sizes)]).permutation(len(self.sizes))
        cuts = [at for at in range(size, order.size, size) if order.size - at > 1]
        return [self._part(whole, chosen) for chosen in np.split(order, cuts)]

    def _part(self, whole: gin.GraphInputs, chosen: np.ndarray) -> gin.GraphInputs:
        starts = first_rows(self.sizes)
        rows = np.concatenate([np.arange(starts[g], starts[g] + self.sizes[g]) for g in chosen])
        inner = self.adjacency[rows][:, rows]
        reach = to_torch(sp.csr_array(inner + sp.eye_array(rows.size, format="csr")).astype(np.float32))
        pool = None if whole.pool is None else Pool(tuple(self.sizes[g] for g in chosen), whole.pool.total)
        labels = whole.labels[torch.tensor(rows if pool is None else chosen, device=device())]
        return gin.GraphInputs(whole.x[torch.tensor(rows, device=device())], reach, labels, whole.columns, pool, whole.norm)


def selected(net: Network, given: Inputs) -> tuple[Network, np.ndarray]:
    """The network over the features in use.

    Args:
        net: Over all features.
        given: A client's arrays, which say what columns they hold.

    Returns:
        (the smaller network, where its parameters sit in the full vector).
    """
    assert given.columns is not None
    layout, where = select(net.layout, given.columns)
    return replace(net, layout=layout), where


def _gin(net: Network) -> gin.GinLayout:
    assert isinstance(net.layout, gin.GinLayout)
    return net.layout


def gradient(net: Network, vector: torch.Tensor, given: Inputs) -> torch.Tensor:
    """Gradient of the mean cross-entropy over nodes (or graphs) with a known label; zero where none is known.

    Args:
        net: The network over the columns of ``given``.
        vector: [num_parameters].
        given: A client's arrays.

    Returns:
        Flat [num_parameters].
    """
    if isinstance(given, gin.GraphInputs):
        return gin.gradient(_gin(net), vector, given)
    return gcn.gradient(net.layout, vector, given)


def scores(net: Network, vector: torch.Tensor, given: Inputs) -> torch.Tensor:
    """Z, [n, c]."""
    if isinstance(given, gin.GraphInputs):
        return gin.scores(_gin(net), vector, given)
    return gcn.scores(net.layout, vector, given)


def embedding(net: Network, vector: torch.Tensor, given: Inputs, source: Source) -> np.ndarray:
    """Rows of all nodes, between 0 and 1.

    Args:
        net: The network over the columns of ``given``.
        vector: [num_parameters].
        given: A client's arrays.
        source: ``softmax`` of the scores, or ``hidden``: x/(1 + x) of the last hidden layer x ≥ 0.

    Returns:
        float64 [n, c] or [n, hidden].
    """
    if source == "softmax":
        return torch.softmax(scores(net, vector, given), dim=1).cpu().numpy().astype(np.float64)
    if isinstance(given, gin.GraphInputs):
        last = gin.hidden_layer(_gin(net), vector, given)
    else:
        w0, b0 = net.layout.layers(vector)[0]
        last = given.hat @ torch.relu(given.hat @ (given.x @ w0) + b0)
    return (last / (1.0 + last)).cpu().numpy().astype(np.float64)


def embedding_width(net: Network, source: Source) -> int:
    """Columns of the embedding.

    Args:
        net: The network.
        source: As in ``embedding``.
    """
    return net.layout.widths[-1] if source == "softmax" else net.layout.widths[1]


def graph_scores(net: Network, vector: np.ndarray, graph: Graph, sizes: tuple[int, ...]) -> np.ndarray:
    """The model itself as a classifier of graphs: the mean (or sum) of their nodes' scores.

    Args:
        net: Over all features.
        vector: [num_parameters].
        graph: The union of several graphs.
        sizes: Nodes of each.

    Returns:
        float32 [graphs, c].
    """
    given = inputs(net, graph, sizes)
    own, where = selected(net, given)
    assert given.pool is not None
    return given.pool.forward(scores(own, on_device(vector[where]), given)).cpu().numpy()
