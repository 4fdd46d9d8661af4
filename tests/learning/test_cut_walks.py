"""What one edge truly changes at each of two clients, on adversarial graphs: GAP's sums, GCON's walk, and its density."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph.errors import PrivacyError
from fedgraph.learning import aggregation, walks
from fedgraph.privacy.mechanisms import objective_perturbation as perturbing
from tests.objectives import changes_of_density


def joined(adjacency: sp.csr_array, u: int, v: int) -> sp.csr_array:
    dense = adjacency.toarray()
    dense[u, v] = dense[v, u] = 1 - dense[u, v]
    return sp.csr_array(dense)


def halves(adjacency: sp.csr_array) -> list[tuple[np.ndarray, sp.csr_array, np.ndarray]]:
    """(nodes, inner edges, cut edges) of two clients: even and odd ids."""
    out = []
    for nodes in (np.arange(0, adjacency.shape[0], 2), np.arange(1, adjacency.shape[0], 2)):
        rows = adjacency[nodes].tocoo()
        away = ~np.isin(rows.coords[1], nodes)
        cut = np.column_stack([rows.coords[0][away], rows.coords[1][away]])
        out.append((nodes, sp.csr_array(adjacency[nodes][:, nodes]), cut))
    return out


def star(n: int, hub: int) -> sp.csr_array:
    dense = np.zeros((n, n))
    dense[hub, :] = dense[:, hub] = 1
    dense[hub, hub] = 0
    return sp.csr_array(dense)


def graphs() -> list[sp.csr_array]:
    rng = np.random.default_rng(0)
    found = [sp.csr_array((12, 12)), star(12, 0), sp.csr_array(np.ones((12, 12)) - np.eye(12))]
    for degree in (1, 3):
        upper = np.triu(rng.random((12, 12)) < degree / 12, k=1).astype(float)
        found.append(sp.csr_array(upper + upper.T))
    return found


@pytest.mark.parametrize("adjacency", graphs())
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


@pytest.mark.parametrize("prior", [0.0, 3.0])
@pytest.mark.parametrize("share", [0.5, 0.9])
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
