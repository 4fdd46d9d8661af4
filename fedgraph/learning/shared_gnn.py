"""The shared models of small graphs: a two-layer GCN and GIN, on one graph or the union of a client's graphs.

    GCN   Z = Â relu(Â X W₀ + b₀) W₁ + b₁,   Â = D̃^(−1/2)(A + I)D̃^(−1/2)     (Kipf & Welling 2017, Equation 9)
    GIN   h⁽ᵏ⁾ = N( relu( relu( ((A + I) h⁽ᵏ⁻¹⁾) W + b ) W' + b' ) ),   k = 1 … L;     Z = relu(h⁽ᴸ⁾ V + c) V' + c'

GIN (Xu, Hu, Leskovec & Jegelka, ICLR 2019, Equation 4.1, as Jin & Chen use it): L layers of a perceptron with one hidden layer
(the learnt ε of the paper is 0, its GIN-0), then two linear layers at every node. N is one of

* ``batch``: batch normalisation before either ReLU, as in the paper: of the batch while training, by running statistics
  afterwards, so that a trained model reads one graph at a time. The statistics are part of the parameters; clients' are
  averaged as the rest;
* ``rows``: each node's row after the last ReLU divided by its own root mean square: nothing is shared between nodes, graphs or
  clients, and it learns much less;
* ``none``.

Labels belong to nodes, or to whole graphs, whose score is the mean (or the sum) of their nodes' scores. Parameters are one flat
vector in a ``Layout``, of which a client holds those that read a feature that one of its nodes has; gradients are autograd's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp

from fedgraph.learning import layouts, walks
from fedgraph.learning.layouts import Layout
from fedgraph.learning.tensors import multiply, to_torch_matrix, torch, torch_device, unit_matrix_rows
from fedgraph.types import Graph

SharedGnnModel = Literal["gcn", "gin"]
SharedGnnSource = Literal["softmax", "hidden"]
SharedGnnPooling = Literal["mean", "sum", "none"]
GinNorm = Literal["batch", "rows", "none"]
_MOMENTUM = 0.1  # of the running statistics, as torch's
_VARIANCE = 1e-5  # added to a variance


@dataclass(frozen=True)
class GinLayout(Layout):
    """Linear maps, then for each of ``norms`` batch norms: scale, shift, running mean, running variance, [hidden] each."""

    norms: int = 0  # how many batch norms there are

    @property
    def num_linear(self) -> int:
        return super().num_parameters

    @property
    def num_parameters(self) -> int:
        return self.num_linear + 4 * self.norms * self.widths[1]

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """As ``Layout``; scale 1, shift 0, mean 0, variance 1."""
        vector = np.zeros(self.num_parameters, dtype=np.float32)
        vector[: self.num_linear] = Layout(self.widths).start(rng)
        if self.norms:
            vector[self.num_linear :].reshape(self.norms, 4, -1)[:, (0, 3)] = 1.0
        return vector

    def statistics(self, vector: torch.Tensor) -> torch.Tensor:
        """[norms, 4, hidden], a view."""
        return vector[self.num_linear :].view(self.norms, 4, self.widths[1])


@dataclass(frozen=True)
class SharedGnn:
    """A shared model of small graphs."""

    model: SharedGnnModel  # which one
    layout: Layout  # widths of its linear maps
    hops: int  # how far a row reaches, in rounds of messages
    pooling: SharedGnnPooling = "mean"  # of several graphs at a client; ``none`` where labels belong to nodes
    norm: GinNorm = "rows"  # of GIN's layers


def make(
    model: SharedGnnModel,
    num_features: int,
    hidden: int,
    layers: int,
    num_classes: int,
    pooling: SharedGnnPooling = "mean",
    norm: GinNorm = "rows",
) -> SharedGnn:
    """A model over all features. layers: of a GIN; a GCN always has two."""
    if model == "gcn":
        return SharedGnn(model, Layout((num_features, hidden, num_classes)), 2, pooling, "none")
    widths = (num_features, *([hidden] * (2 * layers)), hidden, num_classes)  # two for each layer, two for the head
    return SharedGnn(model, GinLayout(widths, norms=2 * layers if norm == "batch" else 0), layers, pooling, norm)


class _RowPool:
    """The mean (or ``total``: the sum) of each graph's rows; graphs of these sizes follow one another. A sum sees sizes."""

    def __init__(self, sizes: Sequence[int], total: bool = False) -> None:
        self.sizes, self.total = tuple(sizes), total
        counts = torch.tensor(self.sizes, device=torch_device())
        self.owner = torch.repeat_interleave(torch.arange(len(self.sizes), device=torch_device()), counts)
        self.share = (torch.ones_like(counts, dtype=torch.float32) if total else 1.0 / counts.to(torch.float32))[:, None]

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        total = torch.zeros((len(self.sizes), rows.shape[1]), dtype=rows.dtype, device=rows.device)
        return total.index_add(0, self.owner, rows) * self.share


@dataclass(frozen=True, eq=False)
class SharedGnnInputs:
    """One graph, or the union of several, over the features that some node has."""

    x: torch.Tensor  # float32 [n, columns], unit rows
    around: torch.Tensor  # [n, n], symmetric: Â of a GCN, A + I of a GIN; sparse, or dense where it is one small graph
    labels: torch.Tensor  # int64 of nodes or of pooled graphs, −1 where unknown
    columns: np.ndarray  # which features ``x`` holds
    pool: _RowPool | None = None  # None where labels belong to nodes


_one_graph: WeakKeyDictionary[Graph, SharedGnnInputs] = WeakKeyDictionary()  # every training of a client asks for the same


def _first_rows(sizes: Sequence[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)


def prepare(net: SharedGnn, graph: Graph, sizes: tuple[int, ...] | None) -> SharedGnnInputs:
    """A client's arrays.
    graph: one graph, or the union of several. sizes: nodes of each graph of the union, else None. Unless pooling is ``none``,
    each node is labelled as its graph is.
    """
    alone = net.model == "gcn" and sizes is None
    known = _one_graph.get(graph) if alone else None
    if known is not None and known.x.device.type == torch_device().type:
        return known
    pool = _RowPool(sizes, net.pooling == "sum") if sizes and net.pooling != "none" else None
    labels = graph.labels if pool is None or sizes is None else graph.labels[_first_rows(sizes)]
    rows = unit_matrix_rows(graph.features)
    columns = np.unique(rows.indices)
    x = torch.tensor(rows[:, columns].toarray(), dtype=torch.float32, device=torch_device())
    if net.model == "gin":
        around = _with_loops(graph.adjacency)
    else:
        hat = walks.symmetric_matrix(graph.adjacency)
        around = torch.tensor(hat.toarray(), device=torch_device()) if alone else to_torch_matrix(hat)
    found = SharedGnnInputs(x, around, torch.tensor(labels, device=torch_device()), columns, pool)
    if alone:
        _one_graph[graph] = found
    return found


def _with_loops(adjacency: sp.csr_array) -> torch.Tensor:
    return to_torch_matrix(sp.csr_array(adjacency + sp.eye_array(adjacency.shape[0], format="csr")).astype(np.float32))


@dataclass(frozen=True, eq=False)
class SharedGnnBatches:
    """The graphs of a client of a GIN as batches."""

    adjacency: sp.csr_array  # CSR of their union
    sizes: tuple[int, ...]  # nodes of each

    def inputs(self, whole: SharedGnnInputs, size: int, epoch: int) -> list[SharedGnnInputs]:
        """Batches in an order that is drawn for ``epoch``; a last one of a single graph joins the one before."""
        order = np.random.default_rng([epoch, len(self.sizes)]).permutation(len(self.sizes))
        cuts = [at for at in range(size, order.size, size) if order.size - at > 1]
        return [self._part(whole, chosen) for chosen in np.split(order, cuts)]

    def _part(self, whole: SharedGnnInputs, chosen: np.ndarray) -> SharedGnnInputs:
        starts = _first_rows(self.sizes)
        rows = np.concatenate([np.arange(starts[g], starts[g] + self.sizes[g]) for g in chosen])
        pool = None if whole.pool is None else _RowPool(tuple(self.sizes[g] for g in chosen), whole.pool.total)
        labels = whole.labels[torch.tensor(rows if pool is None else chosen, device=torch_device())]
        x = whole.x[torch.tensor(rows, device=torch_device())]
        return SharedGnnInputs(x, _with_loops(self.adjacency[rows][:, rows]), labels, whole.columns, pool)


def select_inputs(net: SharedGnn, given: SharedGnnInputs) -> tuple[SharedGnn, np.ndarray]:
    """The network over the features in use: (the smaller network, where its parameters sit in the full vector)."""
    inputs, width = net.layout.widths[:2]
    first = (given.columns[:, None] * width + np.arange(width)).reshape(-1)
    rest = np.arange(inputs * width, net.layout.num_parameters)
    layout = replace(net.layout, widths=(given.columns.size, *net.layout.widths[1:]))
    return replace(net, layout=layout), np.concatenate([first, rest])


_Seen: TypeAlias = "list[torch.Tensor]"  # while training: mean and variance [2, hidden] of every batch norm, as it is met


def _around(given: SharedGnnInputs, rows: torch.Tensor) -> torch.Tensor:
    """around · rows."""
    if given.around.layout == torch.strided:
        return given.around @ rows
    return multiply(given.around, given.around, rows)


def _last_rows(net: SharedGnn, vector: torch.Tensor, given: SharedGnnInputs, seen: _Seen | None = None) -> torch.Tensor:
    """h⁽ᴸ⁾ of a GIN, or relu(Â X W₀ + b₀) of a GCN: [n, hidden] ≥ 0."""
    layers, rows = net.layout.layers(vector), given.x
    norms = iter(net.layout.statistics(vector)) if isinstance(net.layout, GinLayout) and net.layout.norms else None
    if net.model == "gcn":
        return torch.relu(_around(given, rows @ layers[0][0]) + layers[0][1])
    for (w, b), (w2, b2) in zip(layers[:-2:2], layers[1:-2:2], strict=True):
        # A(hW) = (Ah)W, over the narrower of the two; A + I is its own transpose
        summed = _around(given, rows @ w) + b
        rows = torch.relu(_normed(summed, norms, seen)) @ w2 + b2
        rows = torch.relu(_normed(rows, norms, seen))
        if net.norm == "rows":
            rows = rows * torch.rsqrt(rows.square().mean(dim=1, keepdim=True) + 1e-6)
    return rows


def _normed(rows: torch.Tensor, norms: Iterator[torch.Tensor] | None, seen: _Seen | None) -> torch.Tensor:
    """Batch normalisation (Ioffe & Szegedy 2015), where there is one."""
    if norms is None:
        return rows
    scale, shift, mean, variance = next(norms)
    if seen is not None and len(rows) > 1:
        mean, variance = rows.mean(dim=0), rows.var(dim=0, unbiased=False)
        seen.append(torch.stack([mean, variance * len(rows) / (len(rows) - 1)]).detach())
    found: torch.Tensor = (rows - mean) * torch.rsqrt(variance + _VARIANCE) * scale + shift
    return found


def _scores(net: SharedGnn, vector: torch.Tensor, given: SharedGnnInputs, seen: _Seen | None = None) -> torch.Tensor:
    """Z, [n, c], or [graphs, c] where labels belong to graphs."""
    layers, rows = net.layout.layers(vector), _last_rows(net, vector, given, seen)
    (v, c), (v2, c2) = layers[-2:]
    found = _around(given, rows @ v2) + c2 if net.model == "gcn" else torch.relu(rows @ v + c) @ v2 + c2
    return found if given.pool is None else given.pool(found)


def gradient(net: SharedGnn, vector: torch.Tensor, given: SharedGnnInputs, seen: _Seen | None = None) -> torch.Tensor:
    """Gradient of the mean cross-entropy over nodes (or graphs) with a known label, flat [num_parameters]; zero where none is
    known, and of running statistics.
    net: over the columns of ``given``. seen: takes what batch norms met, for ``moved_statistics``.
    """
    known = given.labels >= 0
    if not bool(known.any()):
        return torch.zeros_like(vector)
    leaf = vector.detach().requires_grad_(True)
    scores = _scores(net, leaf, given, seen)
    total = torch.nn.functional.cross_entropy(scores, given.labels, ignore_index=-1, reduction="sum")
    (found,) = torch.autograd.grad(total / known.sum(), leaf)
    if isinstance(net.layout, GinLayout) and net.layout.norms:
        net.layout.statistics(found)[:, 2:] = 0.0
    return found


def moved_statistics(net: SharedGnn, vector: torch.Tensor, seen: _Seen) -> torch.Tensor:
    """``vector`` with its running statistics moved towards those of a batch, by ``_MOMENTUM``; where none was met, itself."""
    if not seen or not isinstance(net.layout, GinLayout):
        return vector
    found = vector.clone()
    running = net.layout.statistics(found)[:, 2:]
    running.mul_(1 - _MOMENTUM).add_(torch.stack(seen), alpha=_MOMENTUM)
    return found


def embed(net: SharedGnn, vector: torch.Tensor, given: SharedGnnInputs, source: SharedGnnSource) -> np.ndarray:
    """Rows of all nodes, between 0 and 1: float64 [n, c] or [n, hidden].
    source: ``softmax`` of the scores, or ``hidden``: x/(1 + x) of the last hidden layer x ≥ 0 (Â x of a GCN).
    """
    if source == "softmax":
        return torch.softmax(_scores(net, vector, replace(given, pool=None)), dim=1).cpu().numpy().astype(np.float64)
    last = _last_rows(net, vector, given)
    last = given.around @ last if net.model == "gcn" else last
    return (last / (1.0 + last)).cpu().numpy().astype(np.float64)


def embedding_width(net: SharedGnn, source: SharedGnnSource) -> int:
    """Columns of the embedding."""
    return net.layout.widths[-1] if source == "softmax" else net.layout.widths[1]


def score_graphs(net: SharedGnn, vector: np.ndarray, graph: Graph, sizes: tuple[int, ...]) -> np.ndarray:
    """The model itself as a classifier of graphs: float32 [graphs, c]. net: over all features, which pools. graph: the union of
    several graphs of these sizes.
    """
    given = prepare(net, graph, sizes)
    own, where = select_inputs(net, given)
    return _scores(own, layouts.to_device(vector[where]), given).cpu().numpy()
