"""The log cap's bound, against every graph of five and six nodes, and limits that a platform enforces."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph.errors import DataError
from fedgraph.learning import neighbour_limits
from fedgraph.privacy import neighbour_sums
from fedgraph.privacy.neighbour_sums import PricedDegreeCap, priced_limited_cap, priced_log_cap


@pytest.mark.parametrize(("n", "knee", "silent"), [(5, 1, 2), (6, 1, 2), (6, 1, 3), (6, 2, 4), (6, 1, 5)])
def test_every_graph_of_six_nodes(n: int, knee: int, silent: int) -> None:
    """All 32,768 graphs, node 0 taken out: never above the bound, and somewhere at it (so a smaller one would be false)."""
    cap = PricedDegreeCap(n, knee, silent)
    pairs = list(itertools.combinations(range(n), 2))
    chosen = (np.arange(2 ** len(pairs))[:, None] >> np.arange(len(pairs))) & 1
    graphs = np.zeros((len(chosen), n, n), dtype=np.int8)
    for k, (u, v) in enumerate(pairs):
        graphs[:, u, v] = graphs[:, v, u] = chosen[:, k]

    def weights(which: np.ndarray) -> np.ndarray:
        d = which.sum(axis=2)
        return which * cap.factors[np.maximum(d[:, :, None], d[:, None, :])]

    left = graphs.copy()
    left[:, 0, :] = left[:, :, 0] = 0
    rows = np.abs(weights(graphs) - weights(left)).sum(axis=2)[:, 1:]
    squares, lengths = (bound[graphs[:, 0].sum(axis=1)] for bound in cap.changes())
    assert (np.square(rows).sum(axis=1) <= squares + 1e-12).all()
    assert (rows.sum(axis=1) <= lengths + 1e-12).all()
    some = squares > 0
    assert (np.square(rows).sum(axis=1)[some] / squares[some]).max() == pytest.approx(1.0)


def test_a_limit_that_is_enforced_counts_removals_up_to_it_only() -> None:
    """K_{50, 50} is as bad for plain sums as it gets; the log cap of a limit wins from 4.1 typical degrees on."""
    left = np.zeros((50, 50))
    graph = sp.csr_array(np.block([[left, 1 - left], [1 - left, left]]))
    plain = priced_limited_cap(2000, 50, typical=40)
    assert plain.silent is None
    assert plain.sensitivity_l2() == pytest.approx(math.sqrt(50), rel=1e-6)
    factors, keep = PricedDegreeCap(100).factors, sp.diags_array(1.0 * (np.arange(100) != 0))
    gone = sp.csr_array(keep @ graph @ keep)
    gone.eliminate_zeros()
    moved = abs(neighbour_limits.log_weights(graph, factors) - neighbour_limits.log_weights(gone, factors)).sum(axis=1)
    assert np.linalg.norm(np.asarray(moved).ravel()[1:]) == pytest.approx(math.sqrt(50)), "rows of all others"
    capped = priced_limited_cap(18_000, 5000, typical=77)
    assert capped.silent == 5000
    assert capped.sensitivity_l2() < priced_log_cap(18_000).sensitivity_l2() < math.sqrt(5000)
    neighbour_limits.require(graph, 50, np.arange(100))
    with pytest.raises(DataError, match="node 7000 has 50 neighbours, and 100 nodes have more than the stated limit of 49"):
        neighbour_limits.require(graph, 49, np.arange(7000, 7100))
    with pytest.raises(DataError, match="a node has 50 neighbours in a graph said to have 50 nodes"):
        neighbour_limits.log_weights(graph, priced_log_cap(50).factors)


@pytest.mark.parametrize("cap", [priced_log_cap(500), priced_log_cap(7), PricedDegreeCap(50)])
def test_a_node_that_is_replaced_goes_once_and_comes_once(cap: PricedDegreeCap) -> None:
    for once, twice in (
        (cap.sensitivity_l2(), cap.sensitivity_l2(replaces=True)),
        (cap.sensitivity_l1(), cap.sensitivity_l1(replaces=True)),
        *(
            [neighbour_sums.gradient_sensitivity(cap, 0.5, 2.0, scale, replaces) for replaces in (False, True)]
            for scale in (0.01, 1.0, neighbour_sums.gradient_scale(cap, 0.5, 2.0), 1e9)
        ),
    ):
        assert twice == pytest.approx(2 * once, rel=1e-12)
