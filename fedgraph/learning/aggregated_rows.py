"""Rows that aggregate the logits of several nodes: the matrix Π that names the nodes, and sums of clipped gradients.

**Π** (``matrix_of``) has column limits, fallbacks, and rows without a choice. It reads released indices and values, public ids
and public coins, so it is post-processing. A *choice* is [S, K] indices with [S, K] weights, one row per source; −1 marks an
entry that was cut.

**Gradients**, without one per row in memory. Row i of Π names K nodes. With a two-layer perceptron H = relu(XW₁ + b₁)W₂ + b₂
its loss is the cross-entropy of softmax(Σ_k Π_ik H_k) (DPAR, WWW 2024, Equation 1). Write δ = ∂loss/∂logits [c],
ā = Σ_k Π_ik relu_k [h], s = Σ_k Π_ik and ε_k = Π_ik·(W₂δ ⊙ relu'_k) [h]. The row's gradient is

    W₂: ā ⊗ δ,   b₂: s·δ,   W₁: Σ_k x_k ⊗ ε_k,   b₁: Σ_k ε_k,

so its squared norm is (‖ā‖² + s²)‖δ‖² + Σ_{k,l} (⟨x_k, x_l⟩ + 1)⟨ε_k, ε_l⟩: a K×K Gram matrix per row
of feature products, which never change and are made once. Scaling δ by min(1, C/norm) and adding up gives
the clipped sum; features stay sparse, and a node that several rows of a batch name is passed once.

**Formal guarantee.** The sum changes by at most C in L2 norm when one row is removed and at most 2C when
it is replaced, for every input, rounding included (``per_sample``: its products, κ = 64): a row without a label, or whose
norm is not finite, counts as zero. Rows are those of distinct nodes: at most as many as Π has columns.

| row gradient norm | its share of the sum |
|---|---|
| 0, an empty row | 0 (an empty row's logits are 0 whatever the parameters) |
| ≤ C | unchanged |
| > C | scaled to norm C |
| NaN, ∞ | 0 |

Of the compiled loops: parameters are one flat vector W₁ [d, h], b₁ [h], W₂ [h, c], b₂ [c]; start, node, weight are Π's CSR
arrays; x_start, x_column, x_value those of the features; ``slot`` says where a node of the batch is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from fedgraph.compiled import compiled, compiled_constant
from fedgraph.compiled import compiled_types as nt
from fedgraph.errors import DataError
from fedgraph.learning import per_sample
from fedgraph.learning.layouts import Layout
from fedgraph.learning.per_sample import NORM_ROUNDING, SPREAD


def choose_largest(values: np.ndarray, k: int) -> np.ndarray:
    """The places of the k largest entries of each row, largest first; equal ones go by their place.
    values: float [rows, columns]. k: 1 … columns. Returns int64 [rows, k].
    """
    count = values.shape[1]
    if k == count or values.shape[0] == 0:
        return np.argsort(-values, axis=1, kind="stable")[:, :k].astype(np.int64)
    edge = -np.partition(-values, k - 1, axis=1)[:, k - 1 : k]
    out = np.empty((values.shape[0], k), np.int64)
    for row, line in enumerate(values):
        candidates = np.flatnonzero(line >= edge[row])
        out[row] = candidates[np.argsort(-line[candidates], kind="stable")[:k]]
    return out


def limit_mentions(sources: np.ndarray, chosen: np.ndarray, most: int, priority: np.ndarray) -> np.ndarray:
    """Choices in which a node is named by few rows.

    It is a function of Π and coins alone, so which entries survive tells nothing that Π does not.
    sources: int [S], the node of each row. chosen: int [S, K], best first. most: how many *other* rows may name a node. A row
    may always name its own node. priority: public coins [S]. First choices go before second ones, and among equals the smaller
    coin wins. Returns ``chosen`` with −1 where a node was named too often.
    """
    kept = chosen.copy()
    rows, ranks = np.nonzero((chosen >= 0) & (chosen != sources[:, None]))
    columns = chosen[rows, ranks]
    order = np.lexsort((priority[rows], ranks, columns))
    sorted_columns = columns[order]
    first = np.searchsorted(sorted_columns, sorted_columns, side="left")
    beyond = order[np.arange(order.size) - first >= most]
    kept[rows[beyond], ranks[beyond]] = -1
    return kept


def matrix_of(
    num_nodes: int,
    sources: np.ndarray,
    chosen: np.ndarray,
    weights: np.ndarray,
    tail: np.ndarray,
    tau: float,
    columns: Literal["clip", "normalise", "none"],
) -> sp.csr_array:
    """The matrix Π of chosen rows: CSR [n, n]; rows of neither a source nor the tail are empty.

    A source whose choices were all cut, or weigh nothing, falls back on its own node.
    sources: int [S], the nodes that chose. chosen: int [S, K], the nodes that they chose; −1 for an entry that was cut.
    weights: float [S, K]. tail: int [t], nodes with a one-hot row. tau: the limit of a column's L1 norm. columns: of the chosen
    rows:

        * ``clip``: entries off the diagonal are scaled to L1 norm at most tau (DPAR, Algorithm 2, line 3);
        * ``normalise``: all of a column is scaled to exactly tau, as the released code does;
        * ``none``: they stay.
    """
    rows, ranks = np.nonzero(chosen >= 0)
    entries = (weights[rows, ranks], (sources[rows], chosen[rows, ranks]))
    pi = sp.csr_array(sp.coo_array(entries, shape=(num_nodes, num_nodes)))
    pi = _scale_columns(pi, tau, columns)
    pi.eliminate_zeros()
    empty = sources[np.diff(pi.indptr)[sources] == 0]
    alone = np.concatenate([tail, empty])
    return sp.csr_array(pi + sp.csr_array((np.ones(alone.size), (alone, alone)), shape=pi.shape))


def _scale_columns(pi: sp.csr_array, tau: float, columns: Literal["clip", "normalise", "none"]) -> sp.csr_array:
    """Columns of ``pi`` with their L1 norm limited; see ``matrix_of``."""
    if columns == "none":
        return pi
    coo = pi.tocoo()
    row, column = coo.coords
    counted = (row != column) | (columns == "normalise")
    mass = np.bincount(column, np.abs(coo.data) * counted, minlength=pi.shape[1])
    scale = np.where(mass > 0, tau / np.maximum(mass, 1e-300), 1.0)
    scale = np.where(counted, np.minimum(scale, 1.0 if columns == "clip" else np.inf)[column], 1.0)
    return sp.csr_array(sp.coo_array((coo.data * scale, (row, column)), shape=pi.shape))


_INTS, _SINGLES = compiled_constant(nt.int64), compiled_constant(nt.float32)
_DOUBLES, _DOUBLE = compiled_constant(nt.float64), nt.Array(nt.float64, 1, "C")
_VECTOR, _MATRIX, _SLOTS = nt.Array(nt.float32, 1, "C"), nt.Array(nt.float32, 2, "C"), nt.Array(nt.int64, 1, "C")
_FEATURES, _PI = (_INTS, _INTS, _SINGLES), (_INTS, _INTS, _SINGLES)


@compiled(nt.void(*_FEATURES, _INTS, _INTS, _INTS, _DOUBLE))
def _gram_matrices(x_start, x_column, x_value, start, node, gram_start, gram):  # type: ignore[no-untyped-def]
    """gram[gram_start[i] + k·K + l] = ⟨x_k, x_l⟩ + 1 for the K nodes of each row i, by merging sorted columns."""
    for row in range(start.size - 1):
        first = start[row]
        count = start[row + 1] - start[row]
        for k in range(count):
            for other in range(k, count):
                a = x_start[node[first + k]]
                b = x_start[node[first + other]]
                a_end = x_start[node[first + k] + 1]
                b_end = x_start[node[first + other] + 1]
                total = 1.0
                while a < a_end and b < b_end:
                    if x_column[a] == x_column[b]:
                        total += np.float64(x_value[a]) * x_value[b]
                        a += 1
                        b += 1
                    elif x_column[a] < x_column[b]:
                        a += 1
                    else:
                        b += 1
                gram[gram_start[row] + k * count + other] = total
                gram[gram_start[row] + other * count + k] = total


@compiled(nt.Tuple((_SLOTS, _SLOTS))(nt.int64, _INTS, _INTS, _INTS))
def _named(num_nodes, start, node, batch):  # type: ignore[no-untyped-def]
    """(slot of each node or −1, the nodes that the batch names, each once)."""
    entries = 0
    for row in batch:
        entries += start[row + 1] - start[row]
    slot, named, count = np.full(num_nodes, -1, np.int64), np.empty(min(num_nodes, entries), np.int64), 0
    for row in batch:
        for at in range(start[row], start[row + 1]):
            if slot[node[at]] < 0:
                slot[node[at]] = count
                named[count] = node[at]
                count += 1
    return slot, named[:count].copy()


@compiled(_MATRIX(*_FEATURES, _SLOTS, _SINGLES, nt.int64, nt.int64))
def _first_layer(x_start, x_column, x_value, named, vector, b1, hidden):  # type: ignore[no-untyped-def]
    """x·W₁ + b₁ of every named node, [named, h]."""
    pre = np.empty((named.size, hidden), np.float32)
    for u in range(named.size):
        line = pre[u]
        for h in range(hidden):
            line[h] = vector[b1 + h]
        for at in range(x_start[named[u]], x_start[named[u] + 1]):
            value = x_value[at]
            weights = vector[x_column[at] * hidden : (x_column[at] + 1) * hidden]
            for h in range(hidden):
                line[h] += value * weights[h]
    return pre


@compiled(nt.float32(*_PI, nt.int64, nt.int64, _SLOTS, _MATRIX, _SINGLES, nt.int64, _VECTOR, _VECTOR, _VECTOR))
def _row_errors(start, node, weight, row, label, slot, pre, vector, w2, mean, delta, back):  # type: ignore[no-untyped-def]
    """Fill ā (mean), δ (delta) and W₂δ (back) of one row; returns s."""
    hidden, classes = mean.size, delta.size
    mass = np.float32(0.0)
    mean[:] = 0.0
    for at in range(start[row], start[row + 1]):
        mass += weight[at]
        line = pre[slot[node[at]]]
        for h in range(hidden):
            mean[h] += weight[at] * max(line[h], np.float32(0.0))
    b2 = w2 + hidden * classes
    for c in range(classes):
        delta[c] = mass * vector[b2 + c]
    for h in range(hidden):
        for c in range(classes):
            delta[c] += mean[h] * vector[w2 + h * classes + c]
    top = delta.max()
    total = np.float32(0.0)
    for c in range(classes):
        delta[c] = np.exp(delta[c] - top)
        total += delta[c]
    for c in range(classes):
        delta[c] /= total
    delta[label] -= np.float32(1.0)
    for h in range(hidden):
        back[h] = 0.0
        for c in range(classes):
            back[h] += vector[w2 + h * classes + c] * delta[c]
    return mass


@compiled(nt.float64(*_PI, nt.int64, _SLOTS, _MATRIX, _INTS, _DOUBLES, nt.float32, _VECTOR, _VECTOR, _VECTOR))
def _row_norm(start, node, weight, row, slot, pre, gram_start, gram, mass, mean, delta, back):  # type: ignore[no-untyped-def]
    """An upper bound on the L2 norm of one row's gradient, from its Gram matrix: ``per_sample`` says why it is one."""
    outer = np.float64(mass) * mass
    for h in range(mean.size):
        outer += np.float64(mean[h]) * mean[h]
    squared = 0.0
    for c in range(delta.size):
        squared += np.float64(delta[c]) * delta[c]
    total = outer * squared
    length = np.sqrt(total)
    first = start[row]
    count = start[row + 1] - start[row]
    for k in range(count):
        one = pre[slot[node[first + k]]]
        for other in range(k, count):
            two = pre[slot[node[first + other]]]
            inner = 0.0
            for h in range(back.size):
                inner += np.float64(back[h]) * back[h] if one[h] > 0 and two[h] > 0 else 0.0
            share = np.float64(weight[first + k]) * weight[first + other] * inner * gram[gram_start[row] + k * count + other]
            total += share if k == other else 2 * share
            length += np.sqrt(share) if k == other else 0.0
    return max(np.sqrt(max(total, 0.0) + NORM_ROUNDING * length * length), length / SPREAD) if total == total else np.inf


@compiled(nt.void(*_FEATURES, *_PI, _INTS, _INTS, _DOUBLES, _INTS, _SINGLES, nt.int64, nt.int64, nt.float64, _DOUBLE))
def _gradient_sum(  # type: ignore[no-untyped-def]
    x_start, x_column, x_value, start, node, weight, labels, gram_start, gram, batch, vector, hidden, classes, clip, out
):
    """Add the clipped gradients of the rows in ``batch`` to ``out`` (zeros on entry)."""
    b1 = vector.size - classes - hidden * classes - hidden
    w2, b2 = b1 + hidden, b1 + hidden + hidden * classes
    slot, named = _named(x_start.size - 1, start, node, batch)
    pre = _first_layer(x_start, x_column, x_value, named, vector, b1, hidden)
    error = np.zeros((named.size, hidden))
    mean, delta, back = np.empty(hidden, np.float32), np.empty(classes, np.float32), np.empty(hidden, np.float32)
    for row in batch:
        if labels[row] < 0 or start[row] == start[row + 1]:
            continue
        scale = 1.0
        mass = _row_errors(start, node, weight, row, labels[row], slot, pre, vector, w2, mean, delta, back)
        if clip < np.inf:
            norm = _row_norm(start, node, weight, row, slot, pre, gram_start, gram, mass, mean, delta, back)
            if not norm < np.inf:
                continue
            scale = min(1.0, clip / max(norm, 1e-30))
        for c in range(classes):
            out[b2 + c] += scale * mass * delta[c]
        for h in range(hidden):
            for c in range(classes):
                out[w2 + h * classes + c] += scale * mean[h] * delta[c]
        for at in range(start[row], start[row + 1]):
            u = slot[node[at]]
            share = scale * weight[at]
            for h in range(hidden):
                error[u, h] += share * back[h] if pre[u, h] > 0 else 0.0
    for u in range(named.size):
        line = error[u]
        for h in range(hidden):
            out[b1 + h] += line[h]
        for at in range(x_start[named[u]], x_start[named[u] + 1]):
            value = x_value[at]
            into = out[x_column[at] * hidden : (x_column[at] + 1) * hidden]
            for h in range(hidden):
                into[h] += value * line[h]


class _Csr(NamedTuple):
    """The three arrays of a CSR matrix, int64 / int64 / float32, columns sorted (scipy would shrink the integers)."""

    start: np.ndarray
    column: np.ndarray
    value: np.ndarray

    @classmethod
    def of(cls, matrix: sp.csr_array) -> _Csr:
        tidy = sp.csr_array(matrix, copy=True)
        tidy.sum_duplicates()
        return cls(tidy.indptr.astype(np.int64), tidy.indices.astype(np.int64), tidy.data.astype(np.float32))


@dataclass(frozen=True, eq=False)
class AggregatedRows:
    """R rows of Π over n nodes with d features, ready for the learner."""

    features: _Csr  # CSR [n, d]
    num_features: int  # d
    rows: _Csr  # Π, CSR [R, n]
    labels: np.ndarray  # int64 [R], −1 where a row is masked
    gram_start: np.ndarray  # int64 [R + 1], where each row's part of ``gram`` begins
    # float64 [Σ_i K_i²], ⟨x_k, x_l⟩ + 1 of the nodes of each row; None where gradients are never clipped
    gram: np.ndarray | None

    @property
    def num_rows(self) -> int:
        return int(self.labels.size)


def prepare(features: sp.csr_array, rows: sp.csr_array, labels: np.ndarray, clipped: bool = True) -> AggregatedRows:
    """Π over nodes with features and one label per row, ready for training.
    features: CSR [n, d]. rows: Π, CSR [R, n]. labels: integer [R], −1 where a row is masked. clipped: whether gradients will be
    clipped. Only then Gram matrices are made, K_i² numbers for row i. Raises ``DataError``: the shapes do not fit together.
    """
    if rows.shape[1] != features.shape[0] or labels.shape != (rows.shape[0],):
        raise DataError(f"rows {rows.shape}, features {features.shape} and labels {labels.shape} do not fit together")
    x, pi = _Csr.of(features), _Csr.of(rows)
    start = np.concatenate([[0], np.cumsum(np.square(np.diff(pi.start)))]).astype(np.int64)
    gram = None
    if clipped:
        gram = np.zeros(start[-1])
        _gram_matrices(*x, pi.start, pi.column, start, gram)
    return AggregatedRows(x, features.shape[1], pi, labels.astype(np.int64), start, gram)


def clipped_sum(layout: Layout, vector: np.ndarray, rows: AggregatedRows, batch: np.ndarray, clip: float | None) -> np.ndarray:
    """Σ over the rows in ``batch`` of clip(∇ cross-entropy, C).
    vector: float32 [num_parameters]. batch: int [b], row numbers. clip: C; None: no clipping, which is not private. Returns
    flat [num_parameters], float32 or float64 as ``room_for`` says. Raises ``DataError``: the layout does not fit, the rows were
    prepared for no clipping, or there are more of them than ``room_for`` allows.
    """
    if len(layout.widths) != 3 or layout.widths[0] != rows.num_features:
        raise DataError(f"aggregated rows need an MLP {rows.num_features} → hidden → classes, found widths {layout.widths}")
    if clip is not None and rows.gram is None:
        raise DataError("these rows were prepared with clipped=False, so their gradients cannot be clipped")
    _, hidden, classes = layout.widths
    gram = np.zeros(0) if rows.gram is None else rows.gram
    out = np.zeros(layout.num_parameters)
    dtype, share = per_sample.room_for(max(rows.num_rows, rows.features.start.size - 1), SPREAD)
    limit = np.inf if clip is None else float(clip) * share
    _gradient_sum(
        *rows.features,
        *rows.rows,
        *(rows.labels, rows.gram_start, gram, np.ascontiguousarray(batch, np.int64)),
        *(np.ascontiguousarray(vector, np.float32), hidden, classes, limit, out),
    )
    return out.astype(np.float32 if clip is None else dtype, copy=False)
