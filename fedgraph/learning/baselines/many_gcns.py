"""FedAvg's local training of a two-layer GCN, for all clients of a block in one compiled call.

The mathematics is that of ``fitting.continue_fitting`` on a ``networks.Network`` of the model ``gcn``, which is the oracle:
full-batch steps on the mean cross-entropy of a client's labelled nodes, dropout with the same masks, descent or Adam with
persisting moments. Results differ by the rounding of float32 sums in another order.

* A client touches only the columns (words) that its nodes have, so only those rows of W₀ are copied, trained and sent on.
* Where most features are not zero, ``many_gcns_dense`` trains one client after another.
* Of every other entry of W₀ the gradient is zero, so it moves in the same way at all clients (decay, FedProx's pull, Adam's
  moments): that *untouched* path is made once, times the weight of all clients, and a client adds its difference from it.

Columns of W₀ᵀ, b₀, W₁ᵀ and b₁ are kept as [d, h] and one flat rest [h + h·c + c].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from fedgraph.learning.baselines import many_gcns_dense
from fedgraph.learning.baselines.fitting import FittingProgress, FittingSteps
from fedgraph.learning.baselines.many_gcns_kernels import move_without_gradient_kernel, train_many_gcns_kernel
from fedgraph.learning.baselines.network_shapes import NetworkShape
from fedgraph.learning.late import torch
from fedgraph.learning.layers.torch_matrices import seed_torch, torch_device, unit_matrix_rows
from fedgraph.learning.propagation.walks import symmetric_walk_matrix
from fedgraph.types import Graph

_MOST_MASKS = 100_000_000  # entries of all dropout masks of a call


@dataclass(frozen=True, eq=False)
class ManyGcnsClients:
    """Clients' graphs as one disjoint union of N nodes.

    Attributes:
        starts: int64 [k + 1], the first row of each client, and N.
        x: CSR [N, d], rows of norm 1.
        hat: Â, CSR [N, N].
        column_starts: int64 [k + 1]. The words of client i are ``columns[column_starts[i] : column_starts[i + 1]]``.
        columns: int64, the words of each client.
        local: int64 [nnz], names the word of each non-zero of ``x`` by its place among the words of its client.
    """

    starts: np.ndarray
    x: sp.csr_array
    hat: sp.csr_array
    column_starts: np.ndarray
    columns: np.ndarray
    local: np.ndarray

    @property
    def num_clients(self) -> int:
        return int(self.starts.size - 1)

    @cached_property
    def dense(self) -> list[many_gcns_dense.ManyGcnsDenseClient]:
        """For features that are mostly not zero."""
        return many_gcns_dense.prepare_many_gcns_dense(self.x, self.hat, self.starts)


def prepare_many_gcns(graph: Graph, starts: np.ndarray) -> ManyGcnsClients:
    """The clients of a union, ready.

    Args:
        graph: A disjoint union.
        starts: int64 [k + 1]; its rows ``starts[i]`` … ``starts[i + 1] − 1`` are client i's.
    """
    x, hat = unit_matrix_rows(graph.features), symmetric_walk_matrix(graph.adjacency)
    owner = np.repeat(np.arange(starts.size - 1), np.diff(x.indptr[starts]))
    width = graph.num_features
    keys, place = np.unique(owner * width + x.indices, return_inverse=True)
    column_starts = np.searchsorted(keys, np.arange(starts.size) * width).astype(np.int64)
    return ManyGcnsClients(starts, x, hat, column_starts, (keys % width).astype(np.int64), place - column_starts[owner])


def can_train_many_gcns(shape: NetworkShape, num_clients: int) -> bool:
    """Whether this way is taken: a federation's plain GCN on a CPU. One client is central training, which has its own bits.

    Args:
        shape: Of the network.
        num_clients: Of the federation.
    """
    return shape.model == "gcn" and num_clients > 1 and torch_device().type == "cpu"


@dataclass(frozen=True)
class _Parts:
    """Where the parts of a network's flat vector are: b₀ [h], W₀ [h, d], b₁ [c], W₁ [c, h].

    Attributes:
        d: Features.
        h: Units.
        c: Classes.
    """

    d: int
    h: int
    c: int

    def split(self, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(W₀ᵀ [d, h], rest = b₀ | W₁ᵀ | b₁), both contiguous and of the vector's precision."""
        d, h, c = self.d, self.h, self.c
        b1 = h + h * d
        w1 = vector[b1 + c :].reshape(c, h).T
        first = np.ascontiguousarray(vector[h:b1].reshape(h, d).T)
        return first, np.concatenate([vector[:h], w1.ravel(), vector[b1 : b1 + c]])

    def joined(self, first: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """The inverse of ``split``."""
        d, h, c = self.d, self.h, self.c
        b1 = h + h * d
        vector = np.empty(h + h * d + c + c * h, dtype=first.dtype)
        vector[:h], vector[b1 : b1 + c] = rest[:h], rest[h + h * c :]
        vector[h:b1].reshape(h, d)[:] = first.T
        vector[b1 + c :].reshape(c, h)[:] = rest[h : h + h * c].reshape(h, c).T
        return vector


def _parts_of(shape: NetworkShape) -> _Parts:
    return _Parts(shape.num_features, shape.hidden, shape.num_classes)


def score_many_gcns(shape: NetworkShape, vector: np.ndarray, clients: ManyGcnsClients) -> np.ndarray:
    """Scores without dropout.

    Args:
        shape: Of the network.
        vector: [p].
        clients: All clients.

    Returns:
        float32 [N, c].
    """
    parts = _parts_of(shape)
    first, rest = parts.split(vector.astype(np.float32, copy=False))
    w1 = rest[parts.h : -parts.c].reshape(parts.h, parts.c)
    hidden = np.maximum(clients.hat @ (clients.x @ first) + rest[: parts.h], 0)
    return np.asarray(clients.hat @ (hidden @ w1) + rest[-parts.c :])


def train_many_gcns(
    shape: NetworkShape,
    clients: ManyGcnsClients,
    labels: np.ndarray,
    before: FittingProgress,
    how: FittingSteps,
    seeds: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, float]:
    """The weighted sums of what clients send after ``how.count`` steps of each.

    Args:
        shape: Of the network.
        clients: All clients.
        labels: int64 [N], −1 where a node does not train; a client's weight is how many do.
        before: Where all of them begin.
        how: How many steps of which kind.
        seeds: int64 [k, count], of the dropout of each client's steps.

    Returns:
        (Σ weight · parameters [p], Σ weight · moments, Σ weight) over clients, float64. Moments are [2, p], or [2, 0] for plain
        descent.
    """
    if many_gcns_dense.can_train_many_dense(clients.x, shape):
        return many_gcns_dense.train_many_gcns_dense(shape, clients.dense, labels, before, how)
    parts = _parts_of(shape)
    rates = np.array([how.rate, how.decay, how.proximal], dtype=np.float32)
    steps = np.array([how.first, how.count, how.adam], dtype=np.int64)
    first, rest, untouched = _begun(parts, before, how, rates, steps)
    known = np.concatenate([[0], np.cumsum(labels >= 0)])
    weights = np.diff(known[clients.starts]).astype(np.float64)
    sums, rest_sums = np.multiply(untouched, weights.sum(), dtype=np.float64), np.zeros(rest.shape)
    for some in _chunks(clients, shape, how):
        values, keep = _masks(shape, clients, some, seeds, how)
        train_many_gcns_kernel(
            some.start, some.stop, clients.starts, clients.column_starts, clients.columns, _long(clients.x.indptr),
            clients.local, values, _long(clients.hat.indptr), _long(clients.hat.indices), clients.hat.data, labels, keep,
            first, rest, untouched, rates, steps, parts.c, sums, rest_sums,
        )  # fmt: skip
    found = [parts.joined(a, b) for a, b in zip(sums, rest_sums, strict=True)]
    moments = np.stack(found[1:]) if how.adam else np.zeros((2, 0))
    return found[0], moments, float(weights.sum())


_latest: list[
    tuple[FittingProgress, FittingSteps, tuple[np.ndarray, np.ndarray, np.ndarray]]
] = []  # at most one: of the round that runs


def _begun(
    parts: _Parts, before: FittingProgress, how: FittingSteps, rates: np.ndarray, steps: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(W₀ᵀ and its moments [1 or 3, d, h], the rest [1 or 3, r], the untouched path's end [1 or 3, d, h]), once per round."""
    for known, steps_known, found in _latest:
        if known.vector is before.vector and known.moments is before.moments and steps_known == how:
            return found
    given = [before.vector, *before.moments] if how.adam else [before.vector]
    split = [parts.split(np.asarray(v, dtype=np.float32)) for v in given]
    first = np.stack([s[0] for s in split])
    rest = np.stack([s[1] for s in split])
    untouched = np.array(first)
    move_without_gradient_kernel(untouched, first[0], rates, steps)
    _latest[:] = [(before, how, (first, rest, untouched))]
    return first, rest, untouched


def _long(values: np.ndarray) -> np.ndarray:
    return values.astype(np.int64, copy=False)


def _chunks(clients: ManyGcnsClients, shape: NetworkShape, how: FittingSteps) -> list[range]:
    """Clients in ranges whose dropout masks fit into ``_MOST_MASKS``; one range where there is no dropout."""
    k = clients.num_clients
    if not (shape.dropout or shape.input_dropout):
        return [range(k)]
    per_node = how.count * shape.hidden * (shape.dropout > 0)
    filled = how.count * clients.x.indptr[clients.starts] * (shape.input_dropout > 0)
    entries, found, begin = per_node * clients.starts + filled, [], 0
    for i in range(1, k + 1):
        if i == k or entries[i + 1] - entries[begin] > _MOST_MASKS:
            found.append(range(begin, i))
            begin = i
    return found


def _masks(
    shape: NetworkShape, clients: ManyGcnsClients, some: range, seeds: np.ndarray, how: FittingSteps
) -> tuple[np.ndarray, np.ndarray]:
    """(non-zeros of x at every step [count or 1, nnz of these clients], masks of the hidden layer [count or 0, nodes · h]).

    Drawn as ``fitting.continue_fitting`` draws them: torch's stream from the step's seed, the input first.
    """
    starts, filled = clients.starts, clients.x.indptr[clients.starts]
    data = clients.x.data[filled[some.start] : filled[some.stop]]
    values = np.tile(data, (how.count if shape.input_dropout else 1, 1))
    nodes = int(starts[some.stop] - starts[some.start])
    keep = np.empty((how.count if shape.dropout else 0, nodes * shape.hidden), dtype=np.float32)
    if not (shape.dropout or shape.input_dropout):
        return values, keep
    with torch.random.fork_rng():
        for i in some:
            entries = slice(filled[i] - filled[some.start], filled[i + 1] - filled[some.start])
            own = slice((starts[i] - starts[some.start]) * shape.hidden, (starts[i + 1] - starts[some.start]) * shape.hidden)
            ones = torch.ones(int(starts[i + 1] - starts[i]), shape.hidden)
            for step in range(how.count):
                seed_torch(int(seeds[i, step]))
                if shape.input_dropout:
                    share = shape.input_dropout
                    kept = (torch.rand(entries.stop - entries.start) >= share).numpy() / (1 - share)
                    values[step, entries] = (values[step, entries] * kept).astype(np.float32)
                if shape.dropout:
                    keep[step, own] = torch.nn.functional.dropout(ones, shape.dropout, True).numpy().ravel()
    return values, keep
