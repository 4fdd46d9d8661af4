"""The bulk normals are normal: cell by cell, in the tail, at the seams of the strips, and against numpy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fedgraph.privacy import normal
from fedgraph.privacy.mechanisms import GaussianNoise

DRAWS = 4_000_000


@pytest.fixture(scope="module")
def drawn() -> np.ndarray:
    return normal.single_normals(np.random.default_rng(11), DRAWS).astype(np.float64)


def test_strips_have_equal_areas() -> None:
    x, f = normal.EDGES, np.exp(-0.5 * normal.EDGES**2)
    assert x[1:-2] * (f[2:-1] - f[1:-2]) == pytest.approx(normal.AREA, rel=1e-9)
    assert x[255] * (1 - f[255]) == pytest.approx(normal.AREA, rel=1e-6), "the last strip closes at f(0) = 1"
    tail = normal.EDGE * f[1] + np.sqrt(2 * np.pi) * stats.norm.sf(normal.EDGE)
    assert tail == pytest.approx(normal.AREA, rel=1e-9)


def test_every_cell_has_its_share(drawn: np.ndarray) -> None:
    """χ² over 2,000 equally likely cells: any error of a strip, a wedge or a sign would show."""
    counts = np.bincount((stats.norm.cdf(drawn) * 2000).astype(int).clip(0, 1999), minlength=2000)
    assert stats.chisquare(counts).pvalue > 1e-3


def test_wedges_and_tail_have_their_share(drawn: np.ndarray) -> None:
    edges = np.concatenate([-normal.EDGES[1:], normal.EDGES[1:][::-1][1:]])
    counts = np.histogram(drawn, np.concatenate([[-np.inf], edges, [np.inf]]))[0]
    shares = np.diff(stats.norm.cdf(np.concatenate([[-np.inf], edges, [np.inf]])))
    assert stats.chisquare(counts, shares / shares.sum() * DRAWS).pvalue > 1e-3
    far = np.abs(drawn)[np.abs(drawn) > normal.EDGE]
    assert stats.kstest(far, lambda v: 1 - stats.norm.sf(v) / stats.norm.sf(normal.EDGE)).pvalue > 1e-3
    assert abs((far > 4).mean() - stats.norm.sf(4) / stats.norm.sf(normal.EDGE)) < 0.05


def test_moments_and_independence(drawn: np.ndarray) -> None:
    for power, mean, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((drawn**power).mean() - mean) < 5 * np.sqrt(variance / DRAWS)
    assert abs((drawn[1:] * drawn[:-1]).mean()) < 5 / np.sqrt(DRAWS)


def test_repeatable_and_any_size() -> None:
    assert normal.single_normals(np.random.default_rng(0), 0).shape == (0,)
    first, again = (normal.single_normals(np.random.default_rng(5), 1000) for _ in range(2))
    assert np.array_equal(first, again)
    assert first.dtype == np.float32


def test_large_single_precision_releases_use_it_at_the_right_scale() -> None:
    value = np.full((300, 100), 2.0, np.float32)
    noised = GaussianNoise(3.0).apply(value, np.random.default_rng(1))
    assert noised.dtype == np.float32
    assert stats.kstest((noised.ravel() - 2) / 3, "norm").pvalue > 0.01
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest((noised.ravel() - 2) / (3 * wrong), "norm").pvalue < 1e-6
    assert (value == 2.0).all()
