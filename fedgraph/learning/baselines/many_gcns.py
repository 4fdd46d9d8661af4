"""FedAvg's local training of a two-layer GCN, for all clients of a block in one compiled call.

The mathematics is that of ``fitting.continue_fitting`` on a ``networks.Network`` of the model ``gcn``, which is the oracle:
full-batch steps on the mean cross-entropy of a client's labelled nodes, dropout with the same masks, descent or Adam with
persisting moments. Results differ by the rounding of float32 sums in another order.

* A client touches only the columns (words) that its nodes have, so only those rows of W₀ are copied, trained and sent on.
* Of every other entry of W₀ the gradient is zero, so it moves in the same way at all clients (decay, FedProx's pull, Adam's
  moments): that *untouched* path is made once, times the weight of all clients, and a client adds its difference from it.

Columns of W₀ᵀ, b₀, W₁ᵀ and b₁ are kept as [d, h] and one flat rest [h + h·c + c].

**Dense features** (most entries are not zero, and no dropout): two dense products a layer, one client after another. Â X does
not change from step to step, so it is made once per client (Wu et al., ICML 2019, do so for each layer), and a step is
Z₁ = (ÂX) W₀ᵀ + b₀, H = max(Z₁, 0), S = Â (H W₁ᵀ) + b₁, with the gradients written out. What needs no neighbour is done for
``_BLOCK`` rows at a time, which stay in the processor's cache: a step takes half the time.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from fedgraph.learning.baselines.fitting import FittingProgress, FittingSteps, take_fitting_step
from fedgraph.learning.baselines.many_gcns_kernels import move_without_gradient_kernel, train_many_gcns_kernel
from fedgraph.learning.baselines.network_shapes import NetworkShape
from fedgraph.learning.late import torch
from fedgraph.learning.layers.torch_matrices import seed_learner, to_torch_matrix, torch_device, unit_matrix_rows
from fedgraph.learning.propagation.walks import symmetric_walk_matrix
from fedgraph.types import Graph

_MOST_MASKS = 100_000_000  # entries of all dropout masks of a call
_FILLED = 0.25  # share of entries that are not zero, from which rows are kept densely
_BLOCK = 512  # dense rows that are multiplied, cut off and summed before the next ones


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
    def dense(self) -> list[tuple[slice, torch.Tensor, torch.Tensor]]:
        """(a client's rows of the union, ÂX float32 [n, d], Â CSR [n, n]) each, for features that are mostly not zero."""
        found = []
        for rows in itertools.starmap(slice, itertools.pairwise(self.starts.tolist())):
            hat = sp.csr_array(self.hat[rows, rows])
            smooth = torch.tensor(np.asarray(hat @ self.x[rows].toarray(), dtype=np.float32))
            found.append((rows, smooth, to_torch_matrix(hat)))
        return found


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


def _split(shape: NetworkShape, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(W₀ᵀ [d, h], rest = b₀ | W₁ᵀ | b₁) of a network's flat vector b₀ [h], W₀ [h, d], b₁ [c], W₁ [c, h]; both contiguous."""
    d, h, c = shape.num_features, shape.hidden, shape.num_classes
    b1 = h + h * d
    w1 = vector[b1 + c :].reshape(c, h).T
    first = np.ascontiguousarray(vector[h:b1].reshape(h, d).T)
    return first, np.concatenate([vector[:h], w1.ravel(), vector[b1 : b1 + c]])


def _joined(first: np.ndarray, rest: np.ndarray, h: int) -> np.ndarray:
    """The inverse of ``_split``, for h units."""
    c = rest.size // (h + 1)
    return np.concatenate([rest[:h], first.T.ravel(), rest[h + h * c :], rest[h : h + h * c].reshape(h, c).T.ravel()])


def score_many_gcns(shape: NetworkShape, vector: np.ndarray, clients: ManyGcnsClients) -> np.ndarray:
    """Scores without dropout: float32 [N, c].

    Args:
        shape: Of the network.
        vector: [p].
        clients: All clients.
    """
    h, c = shape.hidden, shape.num_classes
    first, rest = _split(shape, vector.astype(np.float32, copy=False))
    hidden = np.maximum(clients.hat @ (clients.x @ first) + rest[:h], 0)
    return np.asarray(clients.hat @ (hidden @ rest[h:-c].reshape(h, c)) + rest[-c:])


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
    x = clients.x
    if not (shape.dropout or shape.input_dropout) and x.nnz > _FILLED * x.shape[0] * x.shape[1]:
        return _train_dense(shape, clients, labels, before, how)
    rates = np.array([how.rate, how.decay, 0.0], dtype=np.float32)
    steps = np.array([how.first, how.count, how.adam], dtype=np.int64)
    first, rest, untouched = _begun(shape, before, how, rates, steps)
    known = np.concatenate([[0], np.cumsum(labels >= 0)])
    weights = np.diff(known[clients.starts]).astype(np.float64)
    sums, rest_sums = np.multiply(untouched, weights.sum(), dtype=np.float64), np.zeros(rest.shape)
    for some in _chunks(clients, shape, how):
        values, keep = _masks(shape, clients, some, seeds, how)
        train_many_gcns_kernel(
            some.start, some.stop, clients.starts, clients.column_starts, clients.columns, _long(x.indptr),
            clients.local, values, _long(clients.hat.indptr), _long(clients.hat.indices), clients.hat.data, labels, keep,
            first, rest, untouched, rates, steps, shape.num_classes, sums, rest_sums,
        )  # fmt: skip
    found = [_joined(a, b, shape.hidden) for a, b in zip(sums, rest_sums, strict=True)]
    moments = np.stack(found[1:]) if how.adam else np.zeros((2, 0))
    return found[0], moments, float(weights.sum())


_Begun = tuple[np.ndarray, np.ndarray, np.ndarray]
_latest: list[tuple[FittingProgress, FittingSteps, _Begun]] = []  # at most one: of the round that runs


def _begun(shape: NetworkShape, before: FittingProgress, how: FittingSteps, rates: np.ndarray, steps: np.ndarray) -> _Begun:
    """(W₀ᵀ and its moments [1 or 3, d, h], the rest [1 or 3, r], the untouched path's end [1 or 3, d, h]), once per round."""
    for known, steps_known, found in _latest:
        if known.vector is before.vector and known.moments is before.moments and steps_known == how:
            return found
    given = [before.vector, *before.moments] if how.adam else [before.vector]
    first, rest = map(np.stack, zip(*(_split(shape, np.asarray(v, dtype=np.float32)) for v in given), strict=True))
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
                seed_learner(int(seeds[i, step]))
                if shape.input_dropout:
                    share = shape.input_dropout
                    kept = (torch.rand(entries.stop - entries.start) >= share).numpy() / (1 - share)
                    values[step, entries] = (values[step, entries] * kept).astype(np.float32)
                if shape.dropout:
                    keep[step, own] = torch.nn.functional.dropout(ones, shape.dropout, True).numpy().ravel()
    return values, keep


def _train_dense(
    shape: NetworkShape, clients: ManyGcnsClients, labels: np.ndarray, before: FittingProgress, how: FittingSteps
) -> tuple[np.ndarray, np.ndarray, float]:
    """As ``train_many_gcns``."""
    d, h, c = shape.num_features, shape.hidden, shape.num_classes
    sizes = [(h,), (h, d), (c,), (c, h)]
    p = before.vector.size
    total, moments, weights = np.zeros(p), np.zeros((2, p if how.adam else 0)), 0.0
    scratch = torch.empty(int(np.diff(clients.starts).max()), h)
    for rows, smooth, hat in clients.dense:
        known = torch.tensor(np.flatnonzero(labels[rows] >= 0))
        if not len(known):
            continue
        target = torch.tensor(labels[rows])[known]
        now = _cut(before.vector, sizes)
        firsts, seconds = (_cut(m, sizes) for m in before.moments) if how.adam else (now, now)
        for step in range(how.first + 1, how.first + how.count + 1):
            found = _dense_gradients(smooth, hat, now, known, target, scratch[: len(smooth)])
            take_fitting_step(now, found, firsts, seconds, step, how)
        total += len(known) * _flat(now)
        if how.adam:
            moments += len(known) * np.stack([_flat(firsts), _flat(seconds)])
        weights += len(known)
    return total, moments, weights


def _cut(vector: np.ndarray, sizes: Sequence[tuple[int, ...]]) -> list[torch.Tensor]:
    """Copies of the parts of a flat vector, float32."""
    parts = np.split(np.asarray(vector, dtype=np.float32), np.cumsum([int(np.prod(size)) for size in sizes])[:-1])
    return [torch.tensor(part).reshape(size) for part, size in zip(parts, sizes, strict=True)]


def _flat(parts: Sequence[torch.Tensor]) -> np.ndarray:
    return torch.cat([part.reshape(-1) for part in parts]).numpy().astype(np.float64)


def _dense_gradients(
    smooth: torch.Tensor,
    hat: torch.Tensor,
    weights: Sequence[torch.Tensor],
    known: torch.Tensor,
    target: torch.Tensor,
    hidden: torch.Tensor,
) -> tuple[torch.Tensor, ...]:
    """Of the mean cross-entropy of the known nodes, by b₀, W₀, b₁ and W₁. hidden: [n, h], overwritten."""
    b0, w0, b1, w1 = weights
    projected = torch.empty(len(smooth), len(b1))
    first, last = w0.T.contiguous(), w1.T.contiguous()
    for given, units, out in zip(*(torch.split(rows, _BLOCK) for rows in (smooth, hidden, projected)), strict=True):
        torch.addmm(b0, given, first, out=units).relu_()
        torch.mm(units, last, out=out)
    scores = hat @ projected + b1
    error = torch.zeros_like(scores)
    chances = torch.softmax(scores[known], dim=1)
    chances[torch.arange(len(target)), target] -= 1.0
    error[known] = chances / len(target)
    back = hat @ error  # Â is symmetric
    by_b0, by_w0, by_w1 = torch.zeros_like(b0), torch.zeros_like(w0), torch.zeros_like(w1)
    inner = torch.empty(min(_BLOCK, len(smooth)), len(b0))
    for given, units, off in zip(*(torch.split(rows, _BLOCK) for rows in (smooth, hidden, back)), strict=True):
        own = torch.mm(off, w1, out=inner[: len(given)])
        torch.ops.aten.threshold_backward.grad_input(own, units, 0, grad_input=own)  # zero where H is
        by_b0 += own.sum(dim=0)
        by_w0.addmm_(own.T, given)
        by_w1.addmm_(off.T, units)
    return by_b0, by_w0, error.sum(dim=0), by_w1
