"""One name for both shared models of small graphs: a two-layer GCN and GIN, on one graph or the union of a client's graphs.

``make(name, …)`` knows the layout; ``prepare`` prepares a client's graphs;
``gradient``, ``embed`` and ``score_graphs`` are the same calls for both. Labels belong to
nodes, or to whole graphs (mean or sum pooling) where a client holds several.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy.sparse as sp

from fedgraph.learning.late import torch
from fedgraph.learning.layers import gcn, gin, layouts
from fedgraph.learning.layers.layouts import Layout
from fedgraph.learning.layers.torch_matrices import (
    DenseMatrix,
    MatrixRowPool,
    first_matrix_rows,
    to_torch_matrix,
    torch_device,
    unit_matrix_rows,
)
from fedgraph.learning.propagation import walks
from fedgraph.types import Graph

SharedGnnModel = Literal["gcn", "gin"]
SharedGnnSource = Literal["softmax", "hidden"]
SharedGnnPooling = Literal["mean", "sum", "none"]
SharedGnnInputs = gcn.GcnInputs | gin.GinInputs


@dataclass(frozen=True)
class SharedGnn:
    """A shared model of small graphs."""

    model: SharedGnnModel  # which one
    layout: Layout  # widths of its linear maps
    hops: int  # how far a row reaches, in rounds of messages
    pooling: SharedGnnPooling = "mean"  # of several graphs at a client; ``none`` where labels belong to nodes
    norm: gin.GinNorm = "rows"  # of GIN's layers


def make(
    model: SharedGnnModel,
    num_features: int,
    hidden: int,
    layers: int,
    num_classes: int,
    pooling: SharedGnnPooling = "mean",
    norm: gin.GinNorm = "rows",
) -> SharedGnn:
    """The layout of a shared model.
    model: ``gcn``, which always has two layers, or ``gin``. pooling: of several graphs at a client.
    """
    if model == "gcn":
        return SharedGnn(model, Layout((num_features, hidden, num_classes)), 2, pooling)
    return SharedGnn(model, gin.gin_layout(num_features, hidden, layers, num_classes, norm), layers, pooling, norm)


def prepare(net: SharedGnn, graph: Graph, sizes: tuple[int, ...] | None) -> SharedGnnInputs:
    """A client's arrays.
    graph: one graph, or the union of several. sizes: nodes of each graph of the union, else None. Unless pooling is ``none``,
    each node is labelled as its graph is.
    """
    pool = MatrixRowPool(sizes, net.pooling == "sum") if sizes and net.pooling != "none" else None
    labels = graph.labels if pool is None or sizes is None else graph.labels[first_matrix_rows(sizes)]
    if net.model == "gcn" and sizes is None:
        return gcn.compact_gcn_inputs(graph)
    rows = sp.csr_array(unit_matrix_rows(graph.features))
    if net.model == "gin":
        return gin.compact_gin_inputs(graph, pool, labels, rows, net.norm)
    columns = np.unique(rows.indices)
    hat = to_torch_matrix(walks.symmetric_matrix(graph.adjacency))
    return gcn.GcnInputs(
        DenseMatrix(rows[:, columns].toarray()), hat, torch.tensor(labels, device=torch_device()), columns, pool
    )


@dataclass(frozen=True, eq=False)
class SharedGnnBatches:
    """A client's graphs as batches."""

    adjacency: sp.csr_array  # CSR of their union
    sizes: tuple[int, ...]  # nodes of each

    def inputs(self, whole: gin.GinInputs, size: int, epoch: int) -> list[gin.GinInputs]:
        """Batches in an order that is drawn for ``epoch``; a last one of a single graph joins the one before."""
        order = np.random.default_rng([epoch, len(self.sizes)]).permutation(len(self.sizes))
        cuts = [at for at in range(size, order.size, size) if order.size - at > 1]
        return [self._part(whole, chosen) for chosen in np.split(order, cuts)]

    def _part(self, whole: gin.GinInputs, chosen: np.ndarray) -> gin.GinInputs:
        starts = first_matrix_rows(self.sizes)
        rows = np.concatenate([np.arange(starts[g], starts[g] + self.sizes[g]) for g in chosen])
        inner = self.adjacency[rows][:, rows]
        reach = to_torch_matrix(sp.csr_array(inner + sp.eye_array(rows.size, format="csr")).astype(np.float32))
        pool = None if whole.pool is None else MatrixRowPool(tuple(self.sizes[g] for g in chosen), whole.pool.total)
        labels = whole.labels[torch.tensor(rows if pool is None else chosen, device=torch_device())]
        return gin.GinInputs(whole.x[torch.tensor(rows, device=torch_device())], reach, labels, whole.columns, pool, whole.norm)


def select_inputs(net: SharedGnn, given: SharedGnnInputs) -> tuple[SharedGnn, np.ndarray]:
    """The network over the features in use: (the smaller network, where its parameters sit in the full vector).
    given: a client's arrays, which say what columns they hold.
    """
    if given.columns is None:
        raise ValueError("a client's arrays do not say which columns they hold")
    layout, where = layouts.select_columns(net.layout, given.columns)
    return replace(net, layout=layout), where


def _gin(net: SharedGnn) -> gin.GinLayout:
    if not isinstance(net.layout, gin.GinLayout):
        raise TypeError(f"the network's layout is a {type(net.layout).__name__}; allowed here: a GinLayout")
    return net.layout


def gradient(net: SharedGnn, vector: torch.Tensor, given: SharedGnnInputs) -> torch.Tensor:
    """Gradient of the mean cross-entropy over nodes (or graphs) with a known label; zero where none is known.
    net: the network over the columns of ``given``. vector: [num_parameters]. Returns flat [num_parameters].
    """
    if isinstance(given, gin.GinInputs):
        return gin.gin_gradient(_gin(net), vector, given)
    return gcn.gcn_gradient(net.layout, vector, given)


def _shared_gnn_scores(net: SharedGnn, vector: torch.Tensor, given: SharedGnnInputs) -> torch.Tensor:
    """Z, [n, c]."""
    if isinstance(given, gin.GinInputs):
        return gin.gin_scores(_gin(net), vector, given)
    return gcn.gcn_scores(net.layout, vector, given)


def embed(net: SharedGnn, vector: torch.Tensor, given: SharedGnnInputs, source: SharedGnnSource) -> np.ndarray:
    """Rows of all nodes, between 0 and 1: float64 [n, c] or [n, hidden].
    net: the network over the columns of ``given``. vector: [num_parameters]. source: ``softmax`` of the scores, or ``hidden``:
    x/(1 + x) of the last hidden layer x ≥ 0.
    """
    if source == "softmax":
        return torch.softmax(_shared_gnn_scores(net, vector, given), dim=1).cpu().numpy().astype(np.float64)
    if isinstance(given, gin.GinInputs):
        last = gin.gin_hidden_layer(_gin(net), vector, given)
    else:
        w0, b0 = net.layout.layers(vector)[0]
        last = given.hat @ torch.relu(given.hat @ (given.x @ w0) + b0)
    return (last / (1.0 + last)).cpu().numpy().astype(np.float64)


def embedding_width(net: SharedGnn, source: SharedGnnSource) -> int:
    """Columns of the embedding.
    source: as in ``embed``.
    """
    return net.layout.widths[-1] if source == "softmax" else net.layout.widths[1]


def score_graphs(net: SharedGnn, vector: np.ndarray, graph: Graph, sizes: tuple[int, ...]) -> np.ndarray:
    """The model itself as a classifier of graphs: the mean (or sum) of their nodes' scores.
    vector: [num_parameters]. Returns float32 [graphs, c].
    """
    given = prepare(net, graph, sizes)
    own, where = select_inputs(net, given)
    if given.pool is None:
        raise ValueError("the network answers for nodes; whole graphs need one that pools")
    return given.pool.forward(_shared_gnn_scores(own, layouts.to_device(vector[where]), given)).cpu().numpy()
