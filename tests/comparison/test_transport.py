"""The compiled transport simplex against POT's network simplex."""

import numpy as np
import ot
import pytest

from fedgraph.comparison import transport
from fedgraph.comparison.transport import PARENT


def solve(cost, supply, demand, row_order=None, column_order=None):
    n, m = cost.shape
    tree, flow, dual = np.zeros((6, n + m), np.int64), np.zeros(n + m), np.zeros(n + m)
    rows = np.arange(n) if row_order is None else row_order
    transport.plant_tree(supply, demand, rows, np.arange(m) if column_order is None else column_order, tree, flow)
    pivots = transport.improve_tree(cost, tree, flow, dual, 1e-14 * max(1e-300, np.abs(cost).max()))
    plan = np.zeros((n, m))
    for v in range(n + m):
        if tree[PARENT, v] >= 0:
            plan[(v, tree[PARENT, v] - n) if v < n else (tree[PARENT, v], v - n)] += flow[v]
    return plan, pivots


@pytest.mark.parametrize("kind", ["real", "ties", "rank_one"])
def test_same_optimum_as_pot(kind):
    rng = np.random.default_rng(3)
    for _ in range(150):
        n, m = rng.integers(1, 25, size=2)
        cost = rng.normal(size=(n, m))
        if kind == "ties":
            cost = rng.integers(0, 3, size=(n, m)).astype(float)
        elif kind == "rank_one":
            cost = -np.outer(rng.random(n), rng.random(m))
        if rng.random() < 0.5:
            supply, demand = np.full(n, float(m)), np.full(m, float(n))
        else:
            supply, demand = (transport.round_weights(w / w.sum()) for w in (rng.random(n) + 0.01, rng.random(m) + 0.01))
        plan, pivots = solve(cost, supply, demand, rng.permutation(n), rng.permutation(m))
        assert pivots >= 0
        assert (plan.sum(axis=1) == supply).all()
        assert (plan.sum(axis=0) == demand).all()
        assert (plan >= 0).all()
        total = supply.sum()
        best = ot.emd2(supply / total, demand / total, cost)
        assert np.isclose((plan * cost).sum() / total, best, rtol=1e-10, atol=1e-12)
