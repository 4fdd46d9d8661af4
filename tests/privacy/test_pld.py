"""Curves and their composition: against quadrature, the library, exact laws of small cases, and 60-digit arithmetic."""

import itertools
import math
from collections import Counter

import mpmath as mp
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution, privacy_loss_mechanism
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting import calibrate, gaussian, pld
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.events import (
    ApproxDP,
    BoundedRange,
    Composed,
    FixedSizeGaussian,
    Gaussian,
    Laplace,
    OneOf,
    PoissonGaussian,
    PureDP,
    RandomizedResponse,
    Repeated,
    SampledOnce,
)

# --------------------------------------------------------------------------------------------------- the Gaussian, calibration


@pytest.mark.parametrize(("epsilon", "mu"), [(0.5, 0.3), (1.0, 1.0), (20.0, 4.0)])
def test_log_delta_equals_quadrature(epsilon, mu):
    """∫ (p − e^ε q)₊ for N(μ, 1) against N(0, 1), independent of the closed form."""
    mp.mp.dps = 60
    start = mp.mpf(epsilon) / mu + mp.mpf(mu) / 2
    points = [start, start + 1, start + 3, start + 8, start + 40]
    exact = mp.quad(lambda x: mp.npdf(x - mu) - mp.exp(epsilon) * mp.npdf(x), points)
    assert gaussian.log_delta(epsilon, mu) == pytest.approx(float(mp.log(exact)), rel=1e-10)


def test_the_gaussian_is_stable_from_tiny_to_huge_epsilon_and_its_edges():
    mp.mp.dps = 60
    for epsilon, delta in itertools.product((1e-6, 1e-4, 1e-2, 1.0, 10.0, 1e2, 1e4), (1e-3, 1e-5, 1e-12)):
        sigma = calibrate.gaussian_multiplier(1, epsilon, delta)
        found, mu = gaussian.epsilon(1 / sigma, delta), 1 / mp.mpf(sigma)
        assert epsilon * (1 - 1e-6) <= found <= epsilon
        closed = mp.ncdf(mu / 2 - found / mu) - mp.exp(found) * mp.ncdf(-mu / 2 - found / mu)
        assert delta * (1 - 1e-3) <= closed <= delta * (1 + 1e-7)
    for mu, delta, expected in (
        (0.0, 1e-5, 0.0), (math.inf, 1e-5, math.inf), (1.0, 0.0, math.inf), (0.1, 0.5, 0.0), (1.0, 1.0, 0.0),
    ):  # fmt: skip
        assert gaussian.epsilon(mu, delta) == expected
    for mu, delta in ((math.nan, 0.1), (-1.0, 0.1), (1.0, math.nan), (1.0, -0.1), (1.0, 1.1)):
        with pytest.raises(PrivacyError):
            gaussian.epsilon(mu, delta)


MAKERS = {
    "gaussian": lambda m: Repeated(Gaussian(m), 100),
    "laplace": lambda m: Repeated(Laplace(m), 50),
    "poisson": lambda m: Repeated(PoissonGaussian(m, 0.05, 1, False), 800),
    "replace": lambda m: Repeated(PoissonGaussian(m, 0.1, 2, True), 100),
    "fixed size": lambda m: Repeated(FixedSizeGaussian(m, 10, 100, 2, True), 20),
    "sampled once": lambda m: SampledOnce(
        Composed((Repeated(Gaussian(m), 70), Repeated(PoissonGaussian(1.5, 0.05, 1, False), 100))), 0.09
    ),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("target", [0.7, 60.0])
def test_calibrated_noise_is_never_above_the_target_and_just_below(name, target):
    make = MAKERS[name]
    found = calibrate.noise_multiplier_of(make, target, 1e-5)
    assert price(make(found), 1e-5).epsilon <= target
    assert price(make(found / 1.001), 1e-5).epsilon > target * 0.9999


@settings(max_examples=60)
@given(count=st.integers(1, 10**6), log_epsilon=st.floats(-6, 4), log_delta=st.floats(-12, -1))
def test_gaussian_multiplier(count, log_epsilon, log_delta):
    epsilon, delta = 10**log_epsilon, 10**log_delta
    found = price(Repeated(Gaussian(calibrate.gaussian_multiplier(count, epsilon, delta)), count), delta).epsilon
    assert found <= epsilon
    assert found == pytest.approx(epsilon, rel=1e-5)


def test_targets_that_mean_nothing_or_cannot_be_reached():
    for target in (math.nan, 0.0, -1.0, math.inf):
        for calibrated in (
            lambda t: calibrate.noise_multiplier_of(Gaussian, t, 1e-5),
            lambda t: calibrate.gaussian_multiplier(1, t, 1e-5),
        ):
            with pytest.raises(PrivacyError, match="target epsilon"):
                calibrated(target)
    with pytest.raises(PrivacyError, match=r"cannot be reached.*leaves ε = 2"):
        calibrate.noise_multiplier_of(lambda m: Composed((Gaussian(m), PureDP(2.0))), 1.0, 1e-5)
    for count, delta in ((0, 1e-5), (1, math.nan), (1, 0.0), (1, 1.0), (1, -1.0)):
        with pytest.raises(PrivacyError, match=r"count|delta"):
            calibrate.gaussian_multiplier(count, 1.0, delta)


# ---------------------------------------------------------------------------------------------------------------- composition


@pytest.mark.parametrize(("mu", "count"), [(0.02, 1000), (0.3, 40), (2.0, 3), (1e-3, 100_000)])
def test_composition_against_the_exact_gaussian(mu, count):
    alone = OneOf((Gaussian(1 / mu),))  # Gaussian releases themselves are merged before they meet the grid
    for delta in (1e-2, 1e-5, 1e-8):
        exact = gaussian.epsilon(mu * math.sqrt(count), delta)
        assert exact <= pld.epsilon([(alone, count)], delta) <= exact * 1.003 + 1e-9


@pytest.mark.parametrize("event", [PureDP(0.7), RandomizedResponse(0.7, 5), BoundedRange(0.7), Laplace(1 / 0.7)])
def test_closed_forms_are_hockey_sticks(event):
    curve, at = pld.curves(event, 1e-13)[0], np.linspace(-3, 3, 601)
    deltas, grid = curve.deltas(at), np.exp(at)
    assert (np.diff(deltas) <= 1e-15).all()
    assert deltas[-1] == 0.0
    assert deltas == pytest.approx(1 - grid + grid * curve.deltas(-at), abs=1e-12)  # the swap rule
    assert (np.diff(np.diff(deltas) / np.diff(grid)) >= -1e-9).all(), "convex in e^ε"


def test_a_gaussian_curve_is_the_librarys_bit_for_bit():
    for mu in np.geomspace(1e-5, 200, 25):
        curve = pld.curves(Gaussian(1 / mu), 1e-12)[0]
        at = np.linspace(curve.low - 1, curve.high + 1, 101)
        assert (
            curve.deltas(at) == privacy_loss_mechanism.GaussianPrivacyLoss(1 / (1 / (1 / mu))).get_delta_for_epsilon(at)
        ).all()


def test_bounded_range_envelope_covers_every_two_point_pair():
    epsilon, at = 1.3, np.linspace(-1.3, 1.3, 53)
    envelope = pld.curves(BoundedRange(epsilon), 1e-13)[0].deltas(at)
    for t in np.linspace(1e-6, epsilon - 1e-6, 200):
        mass = -math.expm1(t - epsilon) / -math.expm1(-epsilon)
        real = mass * np.maximum(0, -np.expm1(at - t)) + (1 - mass) * np.maximum(0, -np.expm1(at - t + epsilon))
        assert (real <= envelope + 1e-12).all()


def test_vector_laplace_is_no_worse_than_one_coordinate():
    """The Prékopa argument of ``pld``, by brute force in two dimensions."""
    x, y = np.meshgrid(axis := np.arange(-14, 15, 0.04), axis)
    p = np.exp(-np.abs(x) - np.abs(y)) / 4
    for share, epsilon in itertools.product((0.1, 0.3, 0.5), (0.0, 0.3, 0.7)):
        q = np.exp(-np.abs(x - share) - np.abs(y - (1 - share))) / 4
        real = np.maximum(p - math.exp(epsilon) * q, 0).sum() * 0.04**2
        assert real <= pld.curves(Laplace(1.0), 1e-13)[0].deltas(np.array([epsilon]))[0] + 4e-4


def test_edge_cases():
    two = [(PureDP(1.0), 2)]
    assert pld.epsilon([], 1e-5) == 0.0
    assert pld.epsilon(two, 0.0) == math.inf
    assert 2.0 < pld.epsilon(two, 1e-10) < 2.1
    assert pld.epsilon([(ApproxDP(1.0, 1e-3), 1)], 1e-5) == math.inf


# ------------------------------------------------------------------------------------------------------------ Poisson batches


@pytest.mark.parametrize(("sigma", "rate"), [(0.03, 0.3), (0.3, 0.01), (1.1, 0.02), (50.0, 0.01)])
def test_our_pair_of_one_poisson_row_is_the_librarys(sigma, rate):
    kinds = privacy_loss_mechanism.AdjacencyType
    forward, backward = pld.curves(PoissonGaussian(sigma, rate, 1, replaced=False), 1e-13)
    for curve, way in ((forward, kinds.REMOVE), (backward, kinds.ADD)):
        at = np.linspace(curve.low, curve.high, 2_001)
        loss = privacy_loss_mechanism.GaussianPrivacyLoss(sigma, sampling_prob=rate, adjacency_type=way)
        assert curve.deltas(at) == pytest.approx(np.asarray(loss.get_delta_for_epsilon(at)), abs=2e-12)


def oracle(sigma, q, rows, replaced, epsilon, forward):
    """δ(ε) by 20-digit quadrature of (p − e^ε q)₊ over the whole line."""
    mp.mp.dps = 20
    other = rows if replaced else rows - 1
    present = [(mp.mpf(float(binom.pmf(j, rows, q))), j) for j in range(rows + 1)]
    absent = [(mp.mpf(float(binom.pmf(j, other, q))), -j) for j in range(other + 1)]
    above, below = (present, absent) if forward else (absent, present)

    def gap(x):
        p, r = (mp.fsum(w * mp.npdf(x, c, sigma) for w, c in parts) for parts in (above, below))
        return p - mp.exp(epsilon) * r

    low, high = -other - 14 * sigma, rows + 14 * sigma
    try:
        root = mp.findroot(gap, (low / 2, high / 2), solver="anderson", tol=1e-25, maxsteps=200, verify=False)
    except (ValueError, ZeroDivisionError):
        root = mp.mpf(0)
    cuts = sorted({mp.mpf(low), mp.mpf(high), *(c for c in (root, root + sigma, root - sigma) if low < c < high)})
    return mp.quad(lambda x: max(gap(x), mp.mpf(0)), cuts)


@pytest.mark.parametrize("case", [(1.5, 0.05, 1, False), (2.0, 0.28, 2, False), (1.5, 0.05, 2, True), (0.8, 0.5, 3, True)])
@pytest.mark.parametrize("epsilon", [0.0, 1.5])
def test_curves_of_rows_equal_quadrature(case, epsilon):
    there, back = pld.MixturePair.of_rows(*case).curves(1e-15)
    at = np.array([epsilon])
    assert there.deltas(at)[0] == pytest.approx(float(oracle(*case, epsilon, True)), rel=1e-6, abs=1e-12)
    if back is not None:
        assert back.deltas(at)[0] == pytest.approx(float(oracle(*case, epsilon, False)), rel=1e-6, abs=1e-12)


def test_one_row_more_than_are_counted_one_by_one_costs_a_little_more():
    """Numbers of rows are rounded up beyond 128 (that they are never rounded down is a check of ``tests.mutants``)."""
    costs = [price(Repeated(PoissonGaussian(20.0, 0.02, rows, False), 50), 1e-5).epsilon for rows in (127, 128, 129, 130, 160)]
    assert costs == sorted(costs)
    assert costs[2] < 1.02 * costs[1]


@pytest.mark.parametrize("seed", range(8))
def test_a_real_mechanism_in_two_dimensions_stays_below(seed):
    """Adversarial rows in the unit disc: all coin patterns of touched rows, exact hockey-stick on a fine grid."""
    rng, replaced = np.random.default_rng(seed), bool(seed % 2)
    sigma, q, rows = float(rng.uniform(0.8, 2.5)), float(rng.uniform(0.05, 0.7)), int(rng.integers(1, 5))
    directions = rng.normal(size=(2, rows, 2))
    if seed >= 4:  # nearly the worst case: the two worlds point opposite ways
        directions = np.stack([np.tile([1.0, 0.1], (rows, 1)), np.tile([-1.0, 0.1], (rows, 1))]) + 0.05 * directions
    unit = directions / np.linalg.norm(directions, axis=2, keepdims=True)
    if not replaced:
        unit[1, 0] = 0.0  # the own row vanishes
    patterns = (np.arange(2**rows)[:, None] >> np.arange(rows)) & 1
    weights = q ** patterns.sum(1) * (1 - q) ** (rows - patterns.sum(1))
    axis = np.arange(-rows - 6 * sigma, rows + 6 * sigma, 0.1 * sigma)
    cell = (axis[1] - axis[0]) ** 2 / (2 * math.pi * sigma**2)
    bells = [np.exp(-((axis[:, None, None] - patterns @ unit[w]) ** 2) / (2 * sigma**2)) for w in (0, 1)]  # [x, pattern, axis]
    p, r = (cell * (one[:, :, 0] * weights) @ one[:, :, 1].T for one in bells)
    there, back = pld.MixturePair.of_rows(sigma, q, rows, replaced).curves(1e-15)
    for epsilon in (0.0, 0.4, 1.0, 2.0):
        at = np.array([epsilon])
        assert np.maximum(p - math.exp(epsilon) * r, 0).sum() <= there.deltas(at)[0] + 2e-5
        assert np.maximum(r - math.exp(epsilon) * p, 0).sum() <= (back or there).deltas(at)[0] + 2e-5


# -------------------------------------------------------------------------------------------------------- batches of fixed size


def law(rows, batch):
    """The sums of every batch, and how likely each is."""
    sums = Counter(float(rows[list(chosen)].sum()) for chosen in itertools.combinations(range(rows.size), batch))
    return np.array(list(sums)), np.array(list(sums.values())) / sum(sums.values())


@pytest.mark.parametrize("sigma", [0.5, 3.0])
@pytest.mark.parametrize(("batch", "rows", "touched"), [(1, 4, 1), (2, 6, 1), (3, 6, 2), (2, 5, 3)])
@pytest.mark.parametrize("replaced", [True, False])
def test_a_hidden_batch_hides_no_less_than_is_said(batch, rows, touched, replaced, sigma):
    """The exact laws of the noisy sum over all batches, for every choice of other rows at the clip; in both orders."""
    step = FixedSizeGaussian(sigma, batch, rows, touched, replaced)
    at = np.concatenate([np.linspace(-2.0, 4.0, 41), [1e-13, -1e-13]])
    said = [pld.curves(step, 1e-12, batch_revealed=known)[0].deltas(at) for known in (True, False)]
    xs = np.linspace(-rows - 9 * sigma, rows + 9 * sigma, 8_001)
    for others in itertools.product((-1.0, 1.0), repeat=rows - touched):
        for turned in ((1.0,) * touched, (1.0, *(-1.0,) * (touched - 1))):
            one, two = np.array([*turned, *others]), np.array([*(-v for v in turned), *others])
            two[0] *= replaced
            densities = [
                (np.exp(-((xs[:, None] - sums) ** 2) / (2 * sigma**2)) @ weights) / (sigma * np.sqrt(2 * np.pi))
                for sums, weights in (law(one, batch), law(two, batch))
            ]
            for p, q in (densities, densities[::-1]):
                real = np.maximum(p[None] - np.exp(at)[:, None] * q[None], 0.0).sum(axis=1) * (xs[1] - xs[0])
                assert all((real <= curve + 1e-6).all() for curve in said), (others, turned)


@pytest.mark.parametrize(("multiplier", "rate", "rounds"), [(1.0, 0.01, 100), (2.0, 0.2, 30)])
def test_one_replaced_row_costs_what_sampling_without_replacement_costs_elsewhere(multiplier, rate, rounds):
    """P = (1 − q)μ₀ + qμ₁ against Q = μ₀ at 2·clip, by dp_accounting; the curve of both orders lies above, but little."""
    theirs = privacy_loss_distribution.from_gaussian_mechanism(
        multiplier / 2, sampling_prob=rate, value_discretization_interval=1e-3
    )
    ours = price(Repeated(FixedSizeGaussian(multiplier, round(rate * 1000), 1000, 1, True), rounds), 1e-5).epsilon
    one_order = theirs.self_compose(rounds).get_epsilon_for_delta(1e-5)
    assert one_order * (1 - 1e-3) <= ours <= one_order * 1.07
