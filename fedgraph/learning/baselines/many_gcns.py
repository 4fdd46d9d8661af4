"""FedAvg's local training of a two-layer GCN, for all clients of a block in one compiled call.

The mathematics is that of ``fitting.trained`` on a ``networks.Network`` of the model ``gcn``, which is the oracle: full-batch
steps on the mean cross-entropy of a client's labelled nodes, dropout with the same masks, descent or Adam with persisting
moments. Results differ by the rounding of float32 sums in another order.

* A client touches only the columns (words) that its nodes have, so only those rows of W₀ are copied, trained and sent on.
* Of every other entry of W₀ the gradient is zero, so it moves in the same way at all clients (decay, FedProx's pull, Adam's
  moments): that *untouched* path is made once, times the weight of all clients, and a client adds its difference from it.

Columns of W₀ᵀ, b₀, W₁ᵀ and b₁ are kept as [d, h] and one flat rest [h + h·c + c].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from numba import types as nt
from torch.nn import functional

from fedgraph.compiled import compiled, constant
from fedgraph.learning.baselines.fitting import Progress, Steps
from fedgraph.learning.baselines.networks import Shape
from fedgraph.learning.layers.sparse import device, unit_rows
from fedgraph.learning.propagation.propagate import symmetric_with_loops
from fedgraph.types import Graph

MOST_MASKS = 100_000_000  # entries of all dropout masks of a call

_INTS, _SINGLES, _MATRIX = constant(nt.int64), constant(nt.float32), constant(nt.float32, 2)
_FLAT, _OUT = nt.Array(nt.float32, 1, "C"), nt.Array(nt.float32, 2, "C")
_SUMS, _SUM = nt.Array(nt.float64, 3, "C"), nt.Array(nt.float64, 2, "C")
_STATE = constant(nt.float32, 3)


@dataclass(frozen=True, eq=False)
class Clients:
    """Clients' graphs as one disjoint union of N nodes. starts: int64 [k + 1], the first row of each client, and N.

    x: CSR [N, d], rows of norm 1; hat: CSR [N, N], Â. columns: the words of client i are
    ``columns[column_starts[i] : column_starts[i + 1]]``, and ``local`` names the word of each non-zero by its place there.
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


def clients_of(graph: Graph, starts: np.ndarray) -> Clients:
    """``graph``: a disjoint union whose rows ``starts[i]`` … ``starts[i + 1] − 1`` are client i's."""
    x, hat = unit_rows(graph.features), symmetric_with_loops(graph.adjacency)
    owner = np.repeat(np.arange(starts.size - 1), np.diff(x.indptr[starts]))
    width = graph.num_features
    keys, place = np.unique(owner * width + x.indices, return_inverse=True)
    column_starts = np.searchsorted(keys, np.arange(starts.size) * width).astype(np.int64)
    return Clients(starts, x, hat, column_starts, (keys % width).astype(np.int64), place - column_starts[owner])


def able(shape: Shape, num_clients: int) -> bool:
    """Whether this way is taken: a federation's plain GCN on a CPU. One client is central training, which has its own bits."""
    return shape.model == "gcn" and num_clients > 1 and device().type == "cpu"


@dataclass(frozen=True)
class Parts:
    """Where the parts of a network's flat vector are: b₀ [h], W₀ [h, d], b₁ [c], W₁ [c, h]."""

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
        h, c = self.h, self.c
        w1 = rest[h : h + h * c].reshape(h, c).T
        return np.concatenate([rest[:h], first.T.ravel(), rest[h + h * c :], w1.ravel()])


def parts_of(shape: Shape) -> Parts:
    return Parts(shape.num_features, shape.hidden, shape.num_classes)


def scores(shape: Shape, vector: np.ndarray, clients: Clients) -> np.ndarray:
    """float32 [N, c], without dropout."""
    parts = parts_of(shape)
    first, rest = parts.split(vector.astype(np.float32, copy=False))
    w1 = rest[parts.h : -parts.c].reshape(parts.h, parts.c)
    hidden = np.maximum(clients.hat @ (clients.x @ first) + rest[: parts.h], 0)
    return np.asarray(clients.hat @ (hidden @ w1) + rest[-parts.c :])


def trained(
    shape: Shape, clients: Clients, labels: np.ndarray, before: Progress, how: Steps, seeds: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """(Σ weight · parameters [p], Σ weight · moments, Σ weight) over clients, float64, after ``how.count`` steps of each.

    labels: int64 [N], −1 where a node does not train; a client's weight is how many do. seeds: int64 [k, count], of the dropout
    of each client's steps. Moments are [2, p], or [2, 0] for plain descent.
    """
    parts, adam = parts_of(shape), how.adam
    given = [before.vector, *before.moments] if adam else [before.vector]
    split = [parts.split(np.asarray(v, dtype=np.float32)) for v in given]
    first, rest = np.stack([s[0] for s in split]), np.stack([s[1] for s in split])
    rates = np.array([how.rate, how.decay, how.proximal], dtype=np.float32)
    steps = np.array([how.first, how.count, adam], dtype=np.int64)
    untouched = np.array(first)
    _without_gradient(untouched, first[0], rates, steps)
    known = np.concatenate([[0], np.cumsum(labels >= 0)])
    weights = np.diff(known[clients.starts]).astype(np.float64)
    sums, rest_sums = weights.sum() * untouched.astype(np.float64), np.zeros(rest.shape)
    for some in _chunks(clients, shape, how):
        values, keep = _masks(shape, clients, some, seeds, how)
        _train(
            some.start, some.stop, clients.starts, clients.column_starts, clients.columns, _long(clients.x.indptr),
            clients.local, values, _long(clients.hat.indptr), _long(clients.hat.indices), clients.hat.data, labels, keep,
            first, rest, untouched, rates, steps, parts.c, sums, rest_sums,
        )  # fmt: skip
    found = [parts.joined(a, b) for a, b in zip(sums, rest_sums, strict=True)]
    moments = np.stack(found[1:]) if adam else np.zeros((2, 0))
    return found[0], moments, float(weights.sum())


def _long(values: np.ndarray) -> np.ndarray:
    return values.astype(np.int64, copy=False)


def _chunks(clients: Clients, shape: Shape, how: Steps) -> list[range]:
    """Clients in ranges whose dropout masks fit into ``MOST_MASKS``; one range where there is no dropout."""
    k = clients.num_clients
    if not (shape.dropout or shape.input_dropout):
        return [range(k)]
    per_node = how.count * shape.hidden * (shape.dropout > 0)
    filled = how.count * clients.x.indptr[clients.starts] * (shape.input_dropout > 0)
    entries, found, begin = per_node * clients.starts + filled, [], 0
    for i in range(1, k + 1):
        if i == k or entries[i + 1] - entries[begin] > MOST_MASKS:
            found.append(range(begin, i))
            begin = i
    return found


def _masks(shape: Shape, clients: Clients, some: range, seeds: np.ndarray, how: Steps) -> tuple[np.ndarray, np.ndarray]:
    """(non-zeros of x at every step [count or 1, nnz of these clients], masks of the hidden layer [count or 0, nodes · h]).

    Drawn as ``fitting.trained`` draws them: torch's stream from the step's seed, the input first.
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
                torch.manual_seed(int(seeds[i, step]))
                if shape.input_dropout:
                    share = shape.input_dropout
                    kept = (torch.rand(entries.stop - entries.start) >= share).numpy() / (1 - share)
                    values[step, entries] = (values[step, entries] * kept).astype(np.float32)
                if shape.dropout:
                    keep[step, own] = functional.dropout(ones, shape.dropout, True).numpy().ravel()
    return values, keep


@compiled(nt.void(_FLAT, _FLAT, _FLAT, _FLAT, _SINGLES, _SINGLES, nt.int64, nt.boolean), reassociate=False)
def _update(w, m, v, gradient, origin, rates, step, adam):  # type: ignore[no-untyped-def]
    """One step of descent or Adam on flat arrays, in place: ``fitting._update`` with decay and FedProx's pull."""
    rate, decay, pull = rates[0], rates[1], rates[2]
    one, two = np.float32(1 - 0.9**step), np.float32(1 - 0.999**step)
    for i in range(w.size):
        g = gradient[i] + decay * w[i]
        if pull > 0:
            g += pull * (w[i] - origin[i])
        if adam:
            m[i] = np.float32(0.9) * m[i] + np.float32(0.1) * g
            v[i] = np.float32(0.999) * v[i] + np.float32(0.001) * g * g
            g = (m[i] / one) / (np.sqrt(v[i] / two) + np.float32(1e-8))
        w[i] -= rate * g


@compiled(nt.void(nt.Array(nt.float32, 3, "C"), _MATRIX, _SINGLES, _INTS), reassociate=False)
def _without_gradient(state, origin, rates, steps):  # type: ignore[no-untyped-def]
    """The path of entries whose gradient is zero, in place; state: [1 or 3, d, h]."""
    zero, last = np.zeros(origin.shape[1], np.float32), state.shape[0] - 1
    for row in range(origin.shape[0]):
        for step in range(steps[0] + 1, steps[0] + steps[1] + 1):
            m, v = state[min(1, last), row], state[last, row]
            _update(state[0, row], m, v, zero, origin[row], rates, step, steps[2] > 0)


@compiled(nt.void(_INTS, _INTS, _SINGLES, nt.int64, nt.int64, nt.int64, _OUT, _OUT), reassociate=False)
def _multiply(start, column, value, skipped, begin, shift, rows, out):  # type: ignore[no-untyped-def]
    """out [n, k] = M[begin : begin + n]·rows; M in CSR without its first ``skipped`` values, columns counted from ``shift``."""
    for i in range(out.shape[0]):
        line = out[i]
        line[:] = 0.0
        for at in range(start[begin + i], start[begin + i + 1]):
            weight, row = value[at - skipped], rows[column[at] - shift]
            for k in range(row.size):
                line[k] += weight * row[k]


@compiled(nt.void(_OUT, _INTS, nt.int64, nt.int64), reassociate=False)
def _errors(rows, labels, begin, known):  # type: ignore[no-untyped-def]
    """Scores to ∂loss/∂scores of the mean cross-entropy over ``known`` labelled rows, in place."""
    for i in range(rows.shape[0]):
        line, label = rows[i], labels[begin + i]
        if label < 0:
            line[:] = 0.0
            continue
        line -= line.max()
        total = np.float32(0.0)
        for k in range(line.size):
            line[k] = np.exp(line[k])
            total += line[k]
        line /= total
        line[label] -= np.float32(1.0)
        line /= np.float32(known)


@compiled(nt.void(_INTS, _INTS, _SINGLES, nt.int64, nt.int64, _OUT, _OUT), reassociate=False)
def _add_transposed(start, column, value, skipped, begin, rows, out):  # type: ignore[no-untyped-def]
    """out = M[begin : begin + n]ᵀ·rows, as in ``_multiply``."""
    out[:] = 0.0
    for i in range(rows.shape[0]):
        row = rows[i]
        for at in range(start[begin + i], start[begin + i + 1]):
            weight, line = value[at - skipped], out[column[at]]
            for k in range(row.size):
                line[k] += weight * row[k]


@compiled(nt.void(_OUT, _SINGLES, _SINGLES, _OUT), reassociate=False)
def _hidden(pre, bias, keep, out):  # type: ignore[no-untyped-def]
    """pre += bias; out = relu(pre), times the mask where there is one."""
    width = pre.shape[1]
    for i in range(pre.shape[0]):
        for k in range(width):
            pre[i, k] += bias[k]
            out[i, k] = max(pre[i, k], np.float32(0.0))
            if keep.size:
                out[i, k] *= keep[i * width + k]


@compiled(nt.void(_OUT, _SINGLES, _OUT, _OUT, _OUT, _FLAT, _OUT), reassociate=False)
def _backwards(pre, keep, hidden, spread, w1, gradient, back):  # type: ignore[no-untyped-def]
    """Adds to the gradient of b₀ and W₁ᵀ (flat, in this order); back: the errors of the hidden layer, [n, h]."""
    width, classes = pre.shape[1], spread.shape[1]
    gradient[:] = 0.0
    for i in range(pre.shape[0]):
        for k in range(width):
            total, at = np.float32(0.0), width + k * classes
            for c in range(classes):
                gradient[at + c] += hidden[i, k] * spread[i, c]
                total += spread[i, c] * w1[k, c]
            if pre[i, k] <= 0:
                total = np.float32(0.0)
            elif keep.size:
                total *= keep[i * width + k]
            back[i, k] = total
            gradient[k] += total


@compiled(
    nt.void(
        nt.int64, nt.int64, _INTS, _INTS, _INTS, _INTS, _INTS, _MATRIX, _INTS, _INTS, _SINGLES, _INTS, _MATRIX,
        _STATE, _MATRIX, _STATE, _SINGLES, _INTS, nt.int64, _SUMS, _SUM,
    ),
    reassociate=False,
)  # fmt: skip
def _train(  # type: ignore[no-untyped-def]
    begin, end, starts, column_starts, columns, x_start, local, values, hat_start, hat_column, hat_value, labels, keeps,
    first, rest, untouched, rates, steps, classes, sums, rest_sums,
):  # fmt: skip
    """Trains clients ``begin`` … ``end − 1`` one after another, and adds what they sum to. Arrays: as in ``trained``."""
    copies, width = first.shape[0], first.shape[2]
    last, second, skipped = copies - 1, width * (1 + classes), x_start[starts[begin]]
    none, adam = np.empty(0, np.float32), steps[2] > 0
    for client in range(begin, end):
        low, n, own = (
            starts[client],
            starts[client + 1] - starts[client],
            columns[column_starts[client] : column_starts[client + 1]],
        )
        known = 0
        for i in range(n):
            known += labels[low + i] >= 0
        if not known:
            continue
        state, small = np.empty((copies, own.size, width), np.float32), rest.copy()
        for q in range(copies):
            for j in range(own.size):
                state[q, j] = first[q, own[j]]
        origin, gradient, small_gradient = state[0].copy(), np.empty((own.size, width), np.float32), np.empty_like(rest[0])
        mixed, pre = np.empty((n, width), np.float32), np.empty((n, width), np.float32)
        hidden, back = np.empty((n, width), np.float32), np.empty((n, width), np.float32)
        outputs, spread = np.empty((n, classes), np.float32), np.empty((n, classes), np.float32)
        w1 = small[0, width:second].reshape(width, classes)
        for step in range(steps[1]):
            value = values[min(step, values.shape[0] - 1)]
            keep = keeps[step, (low - starts[begin]) * width : (low - starts[begin] + n) * width] if keeps.shape[0] else none
            _multiply(x_start, local, value, skipped, low, 0, state[0], mixed)
            _multiply(hat_start, hat_column, hat_value, 0, low, low, mixed, pre)
            _hidden(pre, small[0, :width], keep, hidden)
            for i in range(n):
                spread[i] = 0.0
                for k in range(width):
                    for c in range(classes):
                        spread[i, c] += hidden[i, k] * w1[k, c]
            _multiply(hat_start, hat_column, hat_value, 0, low, low, spread, outputs)
            outputs += small[0, second:]
            _errors(outputs, labels, low, known)
            _multiply(hat_start, hat_column, hat_value, 0, low, low, outputs, spread)
            _backwards(pre, keep, hidden, spread, w1, small_gradient, back)
            for i in range(n):
                for c in range(classes):
                    small_gradient[second + c] += outputs[i, c]
            _multiply(hat_start, hat_column, hat_value, 0, low, low, back, mixed)
            _add_transposed(x_start, local, value, skipped, low, mixed, gradient)
            number = steps[0] + step + 1
            _update(
                state[0].reshape(-1), state[min(1, last)].reshape(-1), state[last].reshape(-1), gradient.reshape(-1),
                origin.reshape(-1), rates, number, adam,
            )  # fmt: skip
            _update(small[0], small[min(1, last)], small[last], small_gradient, rest[0], rates, number, adam)
        for q in range(copies):
            for j in range(own.size):
                for k in range(width):
                    sums[q, own[j], k] += known * (np.float64(state[q, j, k]) - untouched[q, own[j], k])
            for k in range(rest_sums.shape[1]):
                rest_sums[q, k] += known * np.float64(small[q, k])
