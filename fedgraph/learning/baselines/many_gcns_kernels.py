"""The compiled loops of ``many_gcns``: one client after another, no sum reassociated, so every machine gives the same bits.

Matrices are CSR (start, column, value). Flat small parameters: b₀ [h], W₁ᵀ [h, c], b₁ [c].
"""

import numpy as np

from fedgraph.compiled import compiled, compiled_constant
from fedgraph.compiled import compiled_types as nt

_INTS, _SINGLES, _MATRIX = compiled_constant(nt.int64), compiled_constant(nt.float32), compiled_constant(nt.float32, 2)
_FLAT, _OUT = nt.Array(nt.float32, 1, "C"), nt.Array(nt.float32, 2, "C")
_SUMS, _SUM = nt.Array(nt.float64, 3, "C"), nt.Array(nt.float64, 2, "C")
_STATE = compiled_constant(nt.float32, 3)


@compiled(nt.void(_FLAT, _FLAT, _FLAT, _FLAT, _SINGLES, _SINGLES, nt.int64, nt.boolean), reassociate=False)
def _update(w, m, v, gradient, origin, rates, step, adam):  # type: ignore[no-untyped-def]
    """One step of descent or Adam on flat arrays, in place: the step of ``fitting.take_fitting_step``."""
    rate, decay, pull = rates[0], rates[1], rates[2]
    one = np.float32(1 - 0.9**step)
    two = np.float32(1 - 0.999**step)
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
def move_without_gradient_kernel(state, origin, rates, steps):  # type: ignore[no-untyped-def]
    """The path of entries whose gradient is zero, in place; state: [1 or 3, d, h]."""
    zero = np.zeros(origin.size, np.float32)
    last = state.shape[0] - 1
    adam = steps[2] > 0
    if not adam and rates[1] == 0:  # the pull of FedProx begins at the origin, so nothing moves
        return
    w = state[0].reshape(-1)
    m = state[min(1, last)].reshape(-1)
    v = state[last].reshape(-1)
    for step in range(steps[0] + 1, steps[0] + steps[1] + 1):
        _update(w, m, v, zero, origin.reshape(-1), rates, step, adam)


@compiled(nt.void(_INTS, _INTS, _SINGLES, nt.int64, nt.int64, nt.int64, _OUT, _OUT), reassociate=False)
def _multiply(start, column, value, skipped, begin, shift, rows, out):  # type: ignore[no-untyped-def]
    """out [n, k] = M[begin : begin + n]·rows; M in CSR without its first ``skipped`` values, columns counted from ``shift``."""
    for i in range(out.shape[0]):
        line = out[i]
        line[:] = 0.0
        for at in range(start[begin + i], start[begin + i + 1]):
            weight = value[at - skipped]
            row = rows[column[at] - shift]
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


@compiled(nt.void(nt.int64, _INTS, nt.Array(nt.float32, 3, "C"), _OUT, _STATE, _SUMS, _SUM), reassociate=False)
def _add_sent(known, own, state, small, untouched, sums, rest_sums):  # type: ignore[no-untyped-def]
    """Adds what a client with ``known`` labels sends: its ``own`` columns as far as they moved otherwise, and the rest."""
    for q in range(state.shape[0]):
        for j in range(own.size):
            for k in range(state.shape[2]):
                sums[q, own[j], k] += known * (np.float64(state[q, j, k]) - untouched[q, own[j], k])
        for k in range(rest_sums.shape[1]):
            rest_sums[q, k] += known * np.float64(small[q, k])


@compiled(
    nt.void(
        nt.int64, nt.int64, _INTS, _INTS, _INTS, _INTS, _INTS, _MATRIX, _INTS, _INTS, _SINGLES, _INTS, _MATRIX,
        _STATE, _MATRIX, _STATE, _SINGLES, _INTS, nt.int64, _SUMS, _SUM,
    ),
    reassociate=False,
)  # fmt: skip
def train_many_gcns_kernel(  # type: ignore[no-untyped-def]
    begin, end, starts, column_starts, columns, x_start, local, values, hat_start, hat_column, hat_value, labels, keeps,
    first, rest, untouched, rates, steps, classes, sums, rest_sums,
):  # fmt: skip
    """Trains clients ``begin`` … ``end − 1`` one after another and adds up what they send. Arrays: as in ``many_gcns``."""
    copies, width = first.shape[0], first.shape[2]
    last = copies - 1
    second = width * (1 + classes)
    skipped = x_start[starts[begin]]
    none, adam = np.empty(0, np.float32), steps[2] > 0
    for client in range(begin, end):
        low = starts[client]
        n = starts[client + 1] - low
        own = columns[column_starts[client] : column_starts[client + 1]]
        known = 0
        for i in range(n):
            known += labels[low + i] >= 0
        if not known:
            continue
        state, small = np.empty((copies, own.size, width), np.float32), rest.copy()
        for q in range(copies):
            for j in range(own.size):
                state[q, j] = first[q, own[j]]
        origin = state[0].copy()
        gradient = np.empty((own.size, width), np.float32)
        small_gradient = np.empty_like(rest[0])
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
        _add_sent(known, own, state, small, untouched, sums, rest_sums)
