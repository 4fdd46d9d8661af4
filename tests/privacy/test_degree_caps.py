"""The log cap's bound, against every small graph, hubs, searched pairs, and real graphs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph import data
from fedgraph.errors import DataError, PrivacyError
from fedgraph.learning import neighbour_limits
from fedgraph.privacy import neighbour_sums
from fedgraph.privacy.neighbour_sums import PricedDegreeCap, priced_limited_cap, priced_log_cap


def without(adjacency: sp.csr_array, node: int) -> sp.csr_array:
    keep = np.ones(adjacency.shape[0])
    keep[node] = 0
    left = sp.csr_array(sp.diags_array(keep) @ adjacency @ sp.diags_array(keep))
    left.eliminate_zeros()
    return left


def changes(adjacency: sp.csr_array, node: int, factors: np.ndarray) -> np.ndarray:
    """Σ_v |W_uv − W'_uv| of every row u but the node's own: as far as unit vectors can move it."""
    found = abs(
        neighbour_limits.log_weights(adjacency, factors) - neighbour_limits.log_weights(without(adjacency, node), factors)
    ).sum(axis=1)
    found = np.asarray(found).ravel()
    found[node] = 0
    return found


def ring(n: int, degree: int) -> sp.csr_array:
    own = np.arange(n)
    ends = np.concatenate([np.column_stack([own, (own + step) % n]) for step in range(1, degree // 2 + 1)])
    both = np.concatenate([ends, ends[:, ::-1]])
    return sp.csr_array((np.ones(len(both)), (both[:, 0], both[:, 1])), shape=(n, n))


def with_hub(adjacency: sp.csr_array) -> sp.csr_array:
    n = adjacency.shape[0]
    ones = sp.csr_array(np.ones((n, 1)))
    return sp.csr_array(sp.block_array([[adjacency, ones], [ones.T, None]]))


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


@pytest.mark.parametrize(("n", "knee", "degree"), [(2001, 1, 10), (2001, 10, 10), (401, 10, 20), (101, 1, 4)])
def test_a_hub_on_a_regular_graph_attains_it(n: int, knee: int, degree: int) -> None:
    cap = priced_log_cap(n, knee)
    change = np.linalg.norm(changes(with_hub(ring(n - 1, degree)), n - 1, cap.factors))
    assert 0.99 * cap.sensitivity_l2() < change <= cap.sensitivity_l2()
    assert cap.sensitivity_l2() < math.sqrt(n - 1) / 1.5


@pytest.mark.parametrize("seed", range(5))
def test_a_search_for_worse_pairs_stays_below(seed: int) -> None:
    """Single edges are flipped as long as the change grows."""
    rng = np.random.default_rng(seed)
    n, knee = int(rng.integers(12, 24)), int(rng.integers(1, 4))
    cap = priced_log_cap(n, knee)
    upper = np.triu(rng.random((n, n)) < rng.uniform(0.1, 0.6), 1)
    dense = (upper + upper.T).astype(float)
    best = np.linalg.norm(changes(sp.csr_array(dense), 0, cap.factors))
    for u, v in rng.integers(n, size=(250, 2)):
        if u == v:
            continue
        dense[u, v] = dense[v, u] = 1 - dense[u, v]
        found = np.linalg.norm(changes(sp.csr_array(dense), 0, cap.factors))
        if found < best:
            dense[u, v] = dense[v, u] = 1 - dense[u, v]
        best = max(best, found)
    assert 0.5 * cap.sensitivity_l2() < best <= cap.sensitivity_l2()


@pytest.mark.dataset
@pytest.mark.parametrize("name", ["citation_full/cora_ml", "planetoid/citeseer", "coauthor/cs", "facebook100/MIT8"])
def test_removals_in_real_graphs(name: str) -> None:
    """The nodes of highest degree, and some others, one at a time."""
    graph = data.load(name)
    cap = priced_log_cap(graph.num_nodes)
    order = np.argsort(graph.degrees)
    for node in [*order[-12:], *np.random.default_rng(0).choice(order, 8, replace=False)]:
        found = changes(graph.adjacency, int(node), cap.factors)
        squares, lengths = cap.changes()
        degree = graph.degrees[node]
        assert np.square(found).sum() <= squares[degree] <= cap.sensitivity_l2() ** 2
        assert found.sum() <= lengths[degree] <= cap.sensitivity_l1()


def test_a_limit_that_is_enforced_counts_removals_up_to_it_only() -> None:
    """K_{50, 50} is as bad for plain sums as it gets; the log cap of a limit wins from 4.1 typical degrees on."""
    left = np.zeros((50, 50))
    graph = sp.csr_array(np.block([[left, 1 - left], [1 - left, left]]))
    plain = priced_limited_cap(2000, 50, typical=40)
    assert plain.silent is None
    assert plain.sensitivity_l2() == pytest.approx(math.sqrt(50), rel=1e-6)
    assert np.linalg.norm(changes(graph, 0, PricedDegreeCap(100).factors)) == pytest.approx(math.sqrt(50))
    capped = priced_limited_cap(18_000, 5000, typical=77)
    assert capped.silent == 5000
    assert capped.sensitivity_l2() < priced_log_cap(18_000).sensitivity_l2() < math.sqrt(5000)
    neighbour_limits.require(graph, 50, np.arange(100))
    with pytest.raises(DataError, match="node 7000 has 50 neighbours, and 100 nodes have more than the stated limit of 49"):
        neighbour_limits.require(graph, 49, np.arange(7000, 7100))


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


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 24])
def test_tiny_graphs_have_a_bound(n: int) -> None:
    cap = priced_log_cap(n)
    assert 1.0 <= cap.sensitivity_l2() <= math.sqrt(max(1, n - 1)) + 1e-9
    complete = sp.csr_array(np.ones((n, n)) - np.eye(n))
    assert np.linalg.norm(changes(complete, 0, cap.factors)) <= cap.sensitivity_l2()


@pytest.mark.parametrize("bad", [{"num_nodes": 0}, {"num_nodes": 5, "knee": 0}, {"num_nodes": 9, "knee": 4, "silent": 4}])
def test_nonsense_is_refused(bad: dict[str, int]) -> None:
    with pytest.raises(PrivacyError):
        PricedDegreeCap(**bad)


def test_more_neighbours_than_nodes_is_refused() -> None:
    with pytest.raises(DataError, match="said to have 5 nodes"):
        neighbour_limits.log_weights(sp.csr_array(np.ones((8, 8)) - np.eye(8)), priced_log_cap(5).factors)
