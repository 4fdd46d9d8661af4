"""Connecting the dots and convolving: equal to the library's formula, and on the private side."""

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_mechanism as library

from fedgraph.privacy.accounting import gaussian, pld
from fedgraph.privacy.events import (
    ApproxDP,
    BoundedRange,
    Gaussian,
    Laplace,
    OneOf,
    PoissonGaussian,
    PureDP,
    RandomizedResponse,
)


@pytest.mark.parametrize(("mu", "count"), [(0.02, 1000), (0.3, 40), (2.0, 3), (1e-3, 100_000)])
@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-8])
def test_composition_against_the_exact_gaussian(mu, count, delta):
    exact = gaussian.epsilon(mu * math.sqrt(count), delta)
    alone = OneOf((Gaussian(1 / mu),))  # Gaussian releases themselves are merged before they meet the grid
    found = pld.epsilon([(alone, count)], delta)
    assert exact <= found <= exact * 1.003 + 1e-9


@pytest.mark.parametrize("event", [PureDP(0.7), RandomizedResponse(0.7, 5), BoundedRange(0.7), Laplace(1 / 0.7)])
def test_closed_forms_are_hockey_sticks(event):
    curve, at = pld.curves(event, 1e-13)[0], np.linspace(-3, 3, 601)
    deltas = curve.deltas(at)
    assert (np.diff(deltas) <= 1e-15).all()
    assert deltas[-1] == 0.0
    assert deltas == pytest.approx(1 - np.exp(at) + np.exp(at) * curve.deltas(-at), abs=1e-12)  # the swap rule
    grid = np.exp(at)
    slopes = np.diff(deltas) / np.diff(grid)
    assert (np.diff(slopes) >= -1e-9).all()  # convex in e^ε


@pytest.mark.parametrize(("sigma", "rate"), [(0.03, 0.3), (0.3, 0.01), (1.0, 0.001), (1.1, 0.02), (5.0, 0.9), (50.0, 0.01)])
def test_our_pair_of_one_poisson_row_is_the_librarys(sigma: float, rate: float) -> None:
    forward, backward = pld.curves(PoissonGaussian(sigma, rate, 1, replaced=False), 1e-13)
    assert backward is not None
    for curve, way in ((forward, library.AdjacencyType.REMOVE), (backward, library.AdjacencyType.ADD)):
        at = np.linspace(curve.low, curve.high, 5_001)
        theirs = np.asarray(
            library.GaussianPrivacyLoss(sigma, sampling_prob=rate, adjacency_type=way).get_delta_for_epsilon(at)
        )
        assert curve.deltas(at) == pytest.approx(theirs, abs=2e-12)


def test_a_gaussian_curve_is_the_librarys_bit_for_bit():
    for mu in np.geomspace(1e-5, 200, 25):
        curve = pld.curves(Gaussian(1 / mu), 1e-12)[0]
        at = np.linspace(curve.low - 1, curve.high + 1, 101)
        assert (curve.deltas(at) == library.GaussianPrivacyLoss(1 / (1 / (1 / mu))).get_delta_for_epsilon(at)).all()


def test_bounded_range_envelope_covers_every_two_point_pair():
    epsilon, at = 1.3, np.linspace(-1.3, 1.3, 53)
    envelope = pld.curves(BoundedRange(epsilon), 1e-13)[0].deltas(at)
    for t in np.linspace(1e-6, epsilon - 1e-6, 200):
        mass = -math.expm1(t - epsilon) / -math.expm1(-epsilon)
        real = mass * np.maximum(0, -np.expm1(at - t)) + (1 - mass) * np.maximum(0, -np.expm1(at - t + epsilon))
        assert (real <= envelope + 1e-12).all()


def test_vector_laplace_is_no_worse_than_one_coordinate():
    """The Prékopa argument of ``pld``, by brute force in two dimensions."""
    axis = np.arange(-14, 15, 0.02)
    x, y = np.meshgrid(axis, axis)
    p = np.exp(-np.abs(x) - np.abs(y)) / 4
    for share in (0.1, 0.3, 0.5):
        q = np.exp(-np.abs(x - share) - np.abs(y - (1 - share))) / 4
        for epsilon in (0.0, 0.3, 0.7):
            real = np.maximum(p - math.exp(epsilon) * q, 0).sum() * 0.02**2
            assert real <= pld.curves(Laplace(1.0), 1e-13)[0].deltas(np.array([epsilon]))[0] + 1e-4


def test_edge_cases():
    two = [(PureDP(1.0), 2)]
    assert pld.epsilon([], 1e-5) == 0.0
    assert pld.epsilon(two, 0.0) == math.inf
    assert 2.0 < pld.epsilon(two, 1e-10) < 2.1
    assert pld.epsilon([(ApproxDP(1.0, 1e-3), 1)], 1e-5) == math.inf
