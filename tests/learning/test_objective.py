"""The exact minimiser, its certificate, the loss bounds that are charged for, and the sensitivity of the capped walk."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph.errors import DataError
from fedgraph.learning import LinearObjective, ObjectiveLoss, ObjectiveLossName, walks
from fedgraph.privacy.mechanisms import objective_perturbation as gcon

Edges = list[tuple[int, int]]


def graph_of(n: int, edges: Edges) -> sp.csr_array:
    dense = np.zeros((n, n))
    for u, v in edges:
        dense[u, v] = dense[v, u] = 1
    return sp.csr_array(dense)


def losses() -> list[tuple[ObjectiveLoss, gcon.LossBounds]]:
    return [
        (ObjectiveLoss("soft-margin", 4), gcon.LossBounds.soft_margin(4)),
        (ObjectiveLoss("pseudo-huber", 3, 0.5), gcon.LossBounds.pseudo_huber(3, 0.5)),
        (ObjectiveLoss("pseudo-huber", 3, 2.0), gcon.LossBounds.pseudo_huber(3, 2.0)),
    ]


@pytest.mark.parametrize(("loss", "bounds"), losses())
@pytest.mark.parametrize("y", [0.0, 1.0])
def test_derivatives_stay_within_what_is_charged_and_reach_it(loss: ObjectiveLoss, bounds: gcon.LossBounds, y: float) -> None:
    x = np.linspace(-60, 60, 120_001)
    target, h = np.full_like(x, y), 1e-4
    first = (loss.value(x + h, target) - loss.value(x - h, target)) / (2 * h)
    third = (loss.second(x + h, target) - loss.second(x - h, target)) / (2 * h)
    assert np.allclose(first, loss.first(x, target), atol=1e-6)
    assert np.allclose((loss.first(x + h, target) - loss.first(x - h, target)) / (2 * h), loss.second(x, target), atol=1e-6)
    for found, bound in ((loss.first(x, target), bounds.c1), (loss.second(x, target), bounds.c2), (third, bounds.c3)):
        assert 0.98 * bound < np.abs(found).max() <= bound * (1 + 1e-6)


def problem(name: ObjectiveLossName, regulariser: float, prior: float = 0.0, n: int = 60, d: int = 6, c: int = 3) -> tuple:
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((n, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    labels = rng.integers(c, size=n)
    noise = rng.standard_normal((d, c)) * 30
    return LinearObjective(ObjectiveLoss(name, c, 0.5), labels, regulariser, 1e-9, prior), rows, noise


@pytest.mark.parametrize("name", ["soft-margin", "pseudo-huber"])
@pytest.mark.parametrize("regulariser", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("prior", [0.0, 3.0])
def test_minimiser_is_certified_even_under_large_noise(name: ObjectiveLossName, regulariser: float, prior: float) -> None:
    objective, rows, noise = problem(name, regulariser, prior)
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
    bound, worst = gcon.psi(steps, restart, cap), 0.0
    signs = {n: np.array(list(itertools.product([1.0], *[(-1.0, 1.0)] * (n - 1)))).T for n in (2, 3, 4)}
    for n in signs:
        pairs = [p for p in itertools.combinations(range(n), 2) if p != (0, 1)]
        for chosen in itertools.product((False, True), repeat=len(pairs)):
            edges = [p for p, keep in zip(pairs, chosen, strict=True) if keep]
            before, after = (walks.capped_matrix(graph_of(n, found), cap) for found in (edges, [*edges, (0, 1)]))
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
