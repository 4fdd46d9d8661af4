"""Where a descent begins again: random orders of points, named by a seed and a pair, the same on every path and machine; kicks.

A descent that has ended is kicked by random pivots to another vertex nearby, and descends again. The basis stays that of the
vertex where the descent ended, so the next descent is short: about a fifth of one from a random vertex. This is iterated
local search (Lourenço, Martin & Stützle, Handbook of Metaheuristics, 2003), the usual remedy for quadratic assignment, of
which Gromov-Wasserstein is the relaxation."""

from __future__ import annotations

import numpy as np

from fedgraph.comparison.transport import PARENT, pivot_transport_tree
from fedgraph.compiled import compiled


@compiled(nan=False)
def _scramble(state):  # type: ignore[no-untyped-def]
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
        state = _scramble(state)
        j = np.int64(state % np.uint64(i + 1))
        order[i], order[j] = order[j], order[i]
    return state


@compiled(nan=False)
def draw_restart_orders(seed, attempt, first, second, rows, columns):  # type: ignore[no-untyped-def]
    """The random north-west corner of a pair: permutations into ``rows`` and ``columns``, named by (seed, attempt, names)."""
    state = _scramble(np.uint64(seed) ^ _scramble(np.uint64(attempt)))
    state = _scramble(state ^ np.uint64(min(first, second)))
    state = _scramble(state ^ np.uint64(max(first, second)))
    state = _shuffled(rows, state)
    _shuffled(columns, state)


_LONGEST = 0.6  # most pivots of a kick, in numbers of rows


@compiled(nan=False)
def seed_restart_kicks(seed, first, second):  # type: ignore[no-untyped-def]
    """The random state of a pair's kicks, named by (seed, both names in either order)."""
    state = _scramble(np.uint64(seed) ^ _scramble(np.uint64(min(first, second))))
    return _scramble(state ^ np.uint64(max(first, second)))


@compiled(nan=False)
def kick_for_restart(tree, flow, dual, n, state):  # type: ignore[no-untyped-def]
    """1 … ``_LONGEST`` · n random edges enter the tree, whatever they cost; returns the state that follows.

    The duals are wrong afterwards: ``improve_transport_tree`` sets them anew. Depths, which a pivot needs, are right.
    """
    m = flow.size - n
    state = _scramble(state)
    many = 1 + np.int64(state % np.uint64(max(1, int(_LONGEST * n))))
    for _ in range(many):
        state = _scramble(state)
        row = np.int64(state % np.uint64(n))
        state = _scramble(state)
        column = np.int64(state % np.uint64(m))
        if tree[PARENT, row] != n + column and tree[PARENT, n + column] != row:
            pivot_transport_tree(tree, flow, dual, row, n + column, n, 0.0)
    return state
