"""The two-sided Gaussian-mixture pair: quadrature, the library, and a real mechanism in two dimensions."""

import math

import mpmath as mp
import numpy as np
import pytest
from dp_accounting import NeighboringRelation
from dp_accounting.pld import privacy_loss_distribution as library
from scipy.stats import binom

from fedgraph.privacy.accounting import pld
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.events import PoissonGaussian, Repeated

PAIRS = [(1.5, 0.05, 1, False), (1.0, 0.3, 5, False), (2.0, 0.28, 2, False), (1.5, 0.05, 2, True), (0.8, 0.5, 3, True)]


def oracle(sigma, q, rows, replaced, epsilon, forward):
    """δ(ε) by 20-digit quadrature of (p − e^ε q)₊ over the whole line."""
    mp.mp.dps = 20
    other = rows if replaced else rows - 1
    present = [(mp.mpf(float(binom.pmf(j, rows, q))), j) for j in range(rows + 1)]
    absent = [(mp.mpf(float(binom.pmf(j, other, q))), -j) for j in range(other + 1)]
    above, below = (present, absent) if forward else (absent, present)

    def density(parts, x):
        return mp.fsum(w * mp.npdf(x, c, sigma) for w, c in parts)

    def gap(x):
        return density(above, x) - mp.exp(epsilon) * density(below, x)

    low, high = -other - 14 * sigma, rows + 14 * sigma
    try:
        root = mp.findroot(gap, (low / 2, high / 2), solver="anderson", tol=1e-25, maxsteps=200, verify=False)
    except (ValueError, ZeroDivisionError):
        root = mp.mpf(0)
    cuts = sorted({mp.mpf(low), mp.mpf(high), *(c for c in (root, root + sigma, root - sigma) if low < c < high)})
    return mp.quad(lambda x: max(gap(x), mp.mpf(0)), cuts)


@pytest.mark.parametrize("case", PAIRS)
@pytest.mark.parametrize("epsilon", [0.0, 0.7, 2.5])
def test_curves_equal_quadrature(case, epsilon):
    there, back = pld.MixturePair.of_rows(*case).curves(1e-15)
    at = np.array([epsilon])
    assert there.deltas(at)[0] == pytest.approx(float(oracle(*case, epsilon, True)), rel=1e-6, abs=1e-12)
    if back is not None:
        assert back.deltas(at)[0] == pytest.approx(float(oracle(*case, epsilon, False)), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(
    ("sigma", "q", "steps", "delta"), [(1.5, 0.05, 800, 1e-4), (1.0, 0.01, 300, 1e-5), (5.0, 0.3, 50, 1e-6)]
)
@pytest.mark.parametrize("replaced", [False, True])
def test_one_row_is_the_librarys_sampled_gaussian(sigma, q, steps, delta, replaced):
    relation = NeighboringRelation.REPLACE_ONE if replaced else NeighboringRelation.ADD_OR_REMOVE_ONE
    theirs = library.from_gaussian_mechanism(sigma, sampling_prob=q, neighboring_relation=relation)
    expected = theirs.self_compose(steps).get_epsilon_for_delta(delta)
    found = price(Repeated(PoissonGaussian(sigma, q, 1, replaced), steps), delta).epsilon
    assert expected * (1 - 1e-4) <= found <= expected * (1 + 2e-3)


@pytest.mark.parametrize(("q", "rows"), [(0.1, 300), (0.003, 300), (0.5, 900)])
@pytest.mark.parametrize("replaced", [False, True])
def test_of_many_rows_the_bound_is_a_little_above_the_pair(q, rows, replaced, monkeypatch):
    """Numbers of rows are rounded up beyond ``_MANY_ROWS``; here the pair without rounding is its oracle."""
    sigma, at = 2.0 + q * rows, np.array([0.0, 0.3, 1.0, 2.5])
    rounded = pld.MixturePair.of_rows(sigma, q, rows, replaced).curves(1e-15)
    monkeypatch.setattr(pld, "_MANY_ROWS", rows)
    whole = pld.MixturePair.of_rows(sigma, q, rows, replaced).curves(1e-15)
    for bound, exact in zip(rounded, whole, strict=True):
        assert (bound is None) == (exact is None)
        if exact is not None:
            found, true = bound.deltas(at), exact.deltas(at)
            assert (found >= true * (1 - 1e-9)).all()
            assert (found <= true * 1.1 + 1e-12).all()


def test_one_row_more_than_are_counted_one_by_one_costs_a_little_more():
    costs = [price(Repeated(PoissonGaussian(20.0, 0.02, rows, False), 50), 1e-5).epsilon for rows in (127, 128, 129, 130, 160)]
    assert costs == sorted(costs)
    assert costs[2] < 1.02 * costs[1]


def _two_dimensional(weights, centres, grid, sigma):
    x, y = grid
    total = np.zeros_like(x)
    for weight, (a, b) in zip(weights, centres, strict=True):
        total += weight * np.exp(-((x - a) ** 2 + (y - b) ** 2) / (2 * sigma**2)) / (2 * math.pi * sigma**2)
    return total


@pytest.mark.parametrize("seed", range(12))
def test_real_mechanism_in_two_dimensions_stays_below(seed):
    """Adversarial rows in the unit disc: all coin patterns of touched rows, exact hockey-stick on a fine grid."""
    rng = np.random.default_rng(seed)
    sigma, q, rows = float(rng.uniform(0.8, 2.5)), float(rng.uniform(0.05, 0.7)), int(rng.integers(1, 5))
    replaced = bool(seed % 2)
    directions = rng.normal(size=(2, rows, 2))
    if seed >= 6:  # nearly the worst case: the two worlds point opposite ways
        directions = np.stack([np.tile([1.0, 0.1], (rows, 1)), np.tile([-1.0, 0.1], (rows, 1))]) + 0.05 * directions
    unit = directions / np.linalg.norm(directions, axis=2, keepdims=True)
    if not replaced:
        unit[1, 0] = 0.0  # the own row vanishes
    patterns = (np.arange(2**rows)[:, None] >> np.arange(rows)) & 1
    weights = q ** patterns.sum(1) * (1 - q) ** (rows - patterns.sum(1))
    axis = np.arange(-rows - 6 * sigma, rows + 6 * sigma, 0.06 * sigma)
    grid = np.meshgrid(axis, axis)
    cell = (axis[1] - axis[0]) ** 2
    p, r = (_two_dimensional(weights, patterns @ unit[world], grid, sigma) for world in (0, 1))
    there, back = pld.MixturePair.of_rows(sigma, q, rows, replaced).curves(1e-15)
    for epsilon in (0.0, 0.4, 1.0, 2.0):
        at = np.array([epsilon])
        assert np.maximum(p - math.exp(epsilon) * r, 0).sum() * cell <= there.deltas(at)[0] + 2e-5
        assert np.maximum(r - math.exp(epsilon) * p, 0).sum() * cell <= (back or there).deltas(at)[0] + 2e-5
