"""Walks over a graph against dense solves and published loops; what one edge moves of them, and the minimiser behind them."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.pagerank_oracle import optimality_gap, published_loop
from fedgraph.errors import DataError, PrivacyError
from fedgraph.learning import LinearObjective, ObjectiveLoss, ObjectiveLossName, aggregation, walks
from fedgraph.privacy.mechanisms import objective_perturbation as perturbing
from tests.objectives import changes_of_density


def random_graph(n: int, density: float, seed: int) -> sp.csr_array:
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < density, 1)
    return sp.csr_array((upper | upper.T).astype(float))


def dense(adjacency: sp.csr_array, sources: list[int], **settings_: float) -> np.ndarray:
    return walks.approximate_pagerank(adjacency, np.array(sources), **settings_).toarray()


@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.25, 0.8, 1.0]), st.sampled_from([1e-2, 1e-3, 1e-5]))
@settings(max_examples=8, deadline=None)
def test_same_iterates_as_the_published_loop_and_optimal(seed: int, alpha: float, rho: float) -> None:
    adjacency = random_graph(40, 0.08, seed)
    rows = dense(adjacency, list(range(40)), alpha=alpha, rho=rho, gamma=1e-4)
    for source in range(40):
        assert rows[source] == pytest.approx(published_loop(adjacency, source, alpha, rho, 1e-4), abs=1e-13)
        if adjacency.indptr[source + 1] > adjacency.indptr[source]:
            assert optimality_gap(adjacency, rows[source], source, alpha, rho) <= 1e-4 * (1 + 1e-6)


def test_weights_and_unknown_sources_raise() -> None:
    adjacency = random_graph(5, 0.9, 0)
    with pytest.raises(DataError, match="unit weights"):
        walks.approximate_pagerank(sp.csr_array(adjacency * 2.0), np.array([0]))
    with pytest.raises(DataError, match="sources must be rows"):
        walks.approximate_pagerank(adjacency, np.array([5]))


@pytest.mark.parametrize(
    ("loss", "bounds"),
    [(ObjectiveLoss("soft-margin", 4), perturbing.LossBounds.soft_margin(4)),
     (ObjectiveLoss("pseudo-huber", 3, 0.5), perturbing.LossBounds.pseudo_huber(3, 0.5)),
     (ObjectiveLoss("pseudo-huber", 3, 2.0), perturbing.LossBounds.pseudo_huber(3, 2.0))],
)  # fmt: skip
@pytest.mark.parametrize("y", [0.0, 1.0])
def test_derivatives_stay_within_what_is_charged(loss: ObjectiveLoss, bounds: perturbing.LossBounds, y: float) -> None:
    x = np.linspace(-60, 60, 120_001)
    target, h = np.full_like(x, y), 1e-4
    first = (loss.value(x + h, target) - loss.value(x - h, target)) / (2 * h)
    third = (loss.second(x + h, target) - loss.second(x - h, target)) / (2 * h)
    assert np.allclose(first, loss.first(x, target), atol=1e-6)
    assert np.allclose((loss.first(x + h, target) - loss.first(x - h, target)) / (2 * h), loss.second(x, target), atol=1e-6)
    for found, bound in ((loss.first(x, target), bounds.c1), (loss.second(x, target), bounds.c2), (third, bounds.c3)):
        assert 0.98 * bound < np.abs(found).max() <= bound * (1 + 1e-6)


@pytest.mark.parametrize("name", ["soft-margin", "pseudo-huber"])
@pytest.mark.parametrize(("regulariser", "prior"), [(1e-3, 3.0), (10.0, 0.0)])
def test_minimiser_is_certified_even_under_large_noise(name: ObjectiveLossName, regulariser: float, prior: float) -> None:
    rng, n, d, c = np.random.default_rng(1), 60, 6, 3
    rows, labels, noise = rng.standard_normal((n, d)), rng.integers(c, size=n), rng.standard_normal((d, c)) * 30
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    objective = LinearObjective(ObjectiveLoss(name, c, 0.5), labels, regulariser, 1e-9, prior)
    theta = objective.minimise(rows, noise)
    assert np.linalg.norm(objective.gradient(theta, rows, noise)) <= 1e-9
    rng = np.random.default_rng(2)
    for _ in range(5):
        other = theta + 1e-2 * rng.standard_normal(theta.shape)
        assert objective.value(other, rows, noise).sum() > objective.value(theta, rows, noise).sum()


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (sp.csr_array([[0.0, 1.0], [0.0, 0.0]]), "directed"),
        (sp.csr_array([[1.0, 1.0], [1.0, 0.0]]), "own neighbour"),
        (sp.csr_array([[0.0, 2.0], [2.0, 0.0]]), "twice"),
        (sp.csr_array((np.ones(4), (np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))), shape=(2, 2)), "twice"),
    ],
)
def test_graphs_that_the_theorem_does_not_cover_are_refused(matrix: sp.csr_array, words: str) -> None:
    with pytest.raises(DataError, match=words):
        walks.capped_matrix(matrix)


@pytest.mark.parametrize("cap", [0.5, 0.1])
@pytest.mark.parametrize(("steps", "restart"), [([1.0], 0.5), ([3.0], 0.5), ([math.inf], 0.1), ([0.0, 2.0, math.inf], 0.3)])
def test_brute_force_over_all_small_graphs_never_beats_psi(cap: float, steps: list[float], restart: float) -> None:
    """A column of x for every choice of signs; the first row's is 1."""
    bound, worst = perturbing.psi(steps, restart, cap), 0.0
    signs = {n: np.array(list(itertools.product([1.0], *[(-1.0, 1.0)] * (n - 1)))).T for n in (2, 3, 4)}
    for n in signs:
        pairs = [p for p in itertools.combinations(range(n), 2) if p != (0, 1)]
        for chosen in itertools.product((0.0, 1.0), repeat=len(pairs)):
            upper = np.zeros((n, n))
            upper[tuple(zip(*pairs, strict=True)) if pairs else ((), ())] = chosen
            graph = sp.csr_array(upper + upper.T)
            before, after = (walks.capped_matrix(found, cap) for found in (graph, joined(graph, 0, 1)))
            moved = walks.rows_after(before, signs[n], steps, restart) - walks.rows_after(after, signs[n], steps, restart)
            worst = max(worst, float(np.abs(moved).sum(axis=0).max()))
    assert worst <= bound * (1 + 1e-9)
    if steps == [1.0]:
        assert worst == pytest.approx(bound), "one step reaches the bound: it cannot be lowered"


def test_rows_never_leave_the_unit_ball_and_infinity_means_converged() -> None:
    rng = np.random.default_rng(0)
    dense = np.triu(rng.random((30, 30)) < 0.2, 1).astype(float)
    walk = walks.capped_matrix(sp.csr_array(dense + dense.T))
    x = rng.standard_normal((30, 4))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    for m in (0.0, 1.0, 5.0, math.inf):
        assert np.linalg.norm(walks.rows_after(walk, x, [m], 0.2), axis=1).max() <= 1 + 1e-12
    exact = 0.2 * np.linalg.solve(np.eye(30) - 0.8 * walk.toarray(), x)
    assert np.allclose(walks.rows_after(walk, x, [math.inf], 0.2), exact, atol=1e-11)


def joined(adjacency: sp.csr_array, u: int, v: int) -> sp.csr_array:
    found = adjacency.toarray()
    found[u, v] = found[v, u] = 1 - found[u, v]
    return sp.csr_array(found)


def halves(adjacency: sp.csr_array) -> list[tuple[np.ndarray, sp.csr_array, np.ndarray]]:
    """(nodes, inner edges, cut edges) of two clients: even and odd ids."""
    out = []
    for nodes in (np.arange(0, adjacency.shape[0], 2), np.arange(1, adjacency.shape[0], 2)):
        rows = adjacency[nodes].tocoo()
        away = ~np.isin(rows.coords[1], nodes)
        cut = np.column_stack([rows.coords[0][away], rows.coords[1][away]])
        out.append((nodes, sp.csr_array(adjacency[nodes][:, nodes]), cut))
    return out


STAR = np.zeros((12, 12))
STAR[0, 1:] = STAR[1:, 0] = 1
GRAPHS = {"empty": np.zeros((12, 12)), "star": STAR, "full": np.ones((12, 12)) - np.eye(12)}


@pytest.mark.parametrize("adjacency", [*map(sp.csr_array, GRAPHS.values()), random_graph(12, 0.25, 0)], ids=[*GRAPHS, "random"])
@pytest.mark.parametrize(
    ("steps", "restart", "cap"), [([1], 0.4, 0.5), ([2], 0.1, 0.5), ([0, 3], 0.3, 0.25), ([math.inf], 0.2, 0.5)]
)
def test_gcon_an_end_changes_the_walk_by_at_most_half(
    adjacency: sp.csr_array, steps: list[float], restart: float, cap: float
) -> None:
    psi = perturbing.psi(steps, restart, cap)
    for x in (np.ones((12, 1)) * np.where(np.arange(12) % 2, 1, -1)[:, None], np.eye(12), np.ones((12, 1))):
        for u, v in [(0, 1), (0, 2), (2, 7), (1, 5)]:
            worlds = []
            for world in (adjacency, joined(adjacency, u, v)):
                parts = []
                for nodes, inner, cut in halves(world):
                    walk, away = walks.open_matrices(
                        inner, aggregation.with_cut(sp.csr_array(inner.shape), nodes, cut, 12), cap
                    )
                    assert np.allclose(np.asarray(walk.sum(axis=1) + away.sum(axis=1)).ravel(), 1)
                    parts.append(walks.rows_after(walk, x[nodes], steps, restart, away @ x))
                worlds.append(parts)
            changes = [np.linalg.norm(a - b, axis=1).sum() for a, b in zip(*worlds, strict=True)]
            if (u - v) % 2:
                assert max(changes) <= psi / 2 * (1 + 1e-9), "an edge between the clients: half at each"
            else:
                assert max(changes) <= psi * (1 + 1e-9)
                assert min(changes) == 0, "an inner edge is nobody else's"


@pytest.mark.parametrize(("prior", "share"), [(0.0, 0.9), (3.0, 0.5)])
def test_gcon_an_end_moves_the_density_by_at_most_half_of_epsilon(prior: float, share: float) -> None:
    """As in test_gcon for a whole edge: the noise's shift and the determinants, at one client, an edge leading away."""
    n, c, epsilon, restart = 30, 3, 1.0, 0.3
    labels = np.arange(n) % 2
    x = np.vstack([np.where(labels[:, None] == 0, 1.0, -1.0) * np.array([[1.0, 0, 0]]), [[-1.0, 0, 0]]])
    given = perturbing.Situation(
        epsilon, 1e-3, share, perturbing.LossBounds.soft_margin(c), perturbing.psi([2], restart), c, c, n, prior, per_end=True
    )
    least = perturbing.least_regulariser(given)
    with pytest.raises(PrivacyError, match="must exceed"):
        perturbing.calibrated(given, least * 0.999, 1e-9)
    made = perturbing.calibrated(given, 1.01 * least, 1e-9)
    inner = sp.csr_array((n, n))
    worlds = []
    for cut in (np.zeros((0, 2), dtype=np.int64), np.array([[0, n]])):
        walk, away = walks.open_matrices(inner, aggregation.with_cut(inner, np.arange(n), cut, n + 1))
        worlds.append(walks.rows_after(walk, x[:n], [2], restart, away @ x))
    found = changes_of_density(
        made, 1e-3 / 2 * (1 - perturbing.OUTPUT_SHARE), worlds, labels, c, prior, np.random.default_rng(0)
    )
    worst = max(abs(ratio) for ratio, *_ in found)
    assert worst <= epsilon / 2
    cost = made.end_epsilon(given)
    assert 0.45 * epsilon < cost <= epsilon / 2, "as little noise as the two ends allow"
