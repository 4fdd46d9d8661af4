"""Random pivots: a descent that has ended is kicked to another vertex nearby, and descends again.

The basis stays that of the vertex where the descent ended, so the next descent is short: about a fifth of one from a random
vertex. This is iterated local search (Lourenço, Martin & Stützle, Handbook of Metaheuristics, 2003), the usual remedy for
quadratic assignment, of which Gromov-Wasserstein is the relaxation.
"""

from __future__ import annotations

import numpy as np

from fedgraph.comparison.orders import scramble
from fedgraph.comparison.transport import PARENT, pivot
from fedgraph.compiled import compiled

LONGEST = 0.6  # most pivots of a kick, in numbers of rows


@compiled(nan=False)
def kick_state(seed, first, second):  # type: ignore[no-untyped-def]
    """The random state of a pair's kicks, named by (seed, both names in either order)."""
    state = scramble(np.uint64(seed) ^ scramble(np.uint64(min(first, second))))
    return scramble(state ^ np.uint64(max(first, second)))


@compiled(nan=False)
def kick(tree, flow, dual, n, state):  # type: ignore[no-untyped-def]
    """1 … ``LONGEST`` · n random edges enter the tree, whatever they cost; returns the state that follows.

    The duals are wrong afterwards: ``improve`` sets them anew. Depths, which a pivot needs, are right.
    """
    m = flow.size - n
    state = scramble(state)
    many = 1 + np.int64(state % np.uint64(max(1, int(LONGEST * n))))
    for _ in range(many):
        state = scramble(state)
        row = np.int64(state % np.uint64(n))
        state = scramble(state)
        column = np.int64(state % np.uint64(m))
        if tree[PARENT, row] != n + column and tree[PARENT, n + column] != row:
            pivot(tree, flow, dual, row, n + column, n, 0.0)
    return state
