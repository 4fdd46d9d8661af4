"""Random orders of points, named by a seed and a pair: the start of a restart, the same on every path and machine."""

from __future__ import annotations

import numpy as np

from fedgraph.compiled import compiled


@compiled(nan=False)
def scramble(state):  # type: ignore[no-untyped-def]
    """One splitmix64 output (Steele, Lea & Flood 2014) of a uint64 state."""
    z = state + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled(nan=False)
def _shuffled(order, state):  # type: ignore[no-untyped-def]
    """A random permutation of 0 … size − 1 into ``order``; returns the state that follows."""
    for i in range(order.size):
        order[i] = i
    for i in range(order.size - 1, 0, -1):
        state = scramble(state)
        j = np.int64(state % np.uint64(i + 1))
        order[i], order[j] = order[j], order[i]
    return state


@compiled(nan=False)
def random_orders(seed, attempt, first, second, rows, columns):  # type: ignore[no-untyped-def]
    """The random north-west corner of a pair: permutations into ``rows`` and ``columns``, named by (seed, attempt, names)."""
    state = scramble(np.uint64(seed) ^ scramble(np.uint64(attempt)))
    state = scramble(state ^ np.uint64(min(first, second)))
    state = scramble(state ^ np.uint64(max(first, second)))
    state = _shuffled(rows, state)
    _shuffled(columns, state)
