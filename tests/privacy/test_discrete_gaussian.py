"""Discrete Gaussian shares: the law of the noise, rounding against its stated sensitivity, and the price of the sum."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chisquare

from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.accounting.discrete_gaussian import _discrete_gaussian_rho, discrete_gaussian_event, discrete_rounded_norm
from fedgraph.privacy.events import ZCDP, Composed, Event, Gaussian, Repeated
from fedgraph.privacy.mechanisms import integer_shares as sampler
from fedgraph.privacy.mechanisms.integer_shares import DiscreteGaussianShare, PlainShare, integer_share_bits


def law(std: float, reach: int) -> np.ndarray:
    weights = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * std**2))
    return np.asarray(weights / weights.sum())


def fits(drawn: np.ndarray, std: float) -> float:
    """p-value of the hypothesis that ``drawn`` has the law with ``std``; cells with fewer than five expected are joined."""
    reach = int(12 * std) + 2
    expected = law(std, reach) * drawn.size
    found = np.bincount(drawn + reach, minlength=2 * reach + 1).astype(float)
    enough = expected >= 5
    cells = np.append(expected[enough], expected[~enough].sum()), np.append(found[enough], found[~enough].sum())
    return float(chisquare(cells[1], cells[0] * cells[1].sum() / cells[0].sum()).pvalue)


@pytest.mark.parametrize("std", [0.5, 1.7, 20.25, 300.0])
def test_noise_has_its_law_and_no_other(std: float) -> None:
    drawn = sampler._draw_shares(std, 200_000, np.random.default_rng(3))
    assert fits(drawn, std) > 1e-3
    assert fits(drawn, std * 2 / 3) < 1e-9
    assert fits(drawn, std * 3 / 2) < 1e-9


def test_a_share_carries_the_noise_that_it_is_priced_for() -> None:
    """The mechanism itself, with its rounding: at ⅔ of its noise this fails."""
    share = DiscreteGaussianShare(step=0.01, bits=24, std=40.0, dimension=50_000)
    value = np.full(50_000, 1.2345)
    noise = share.opened(share.apply(value, np.random.default_rng(0))) - value
    expected = math.hypot(0.4, 0.01 * 0.5)
    assert abs(noise.std() / expected - 1) < 0.02
    assert abs(noise.mean()) < 4 * expected / math.sqrt(value.size)
    weaker = DiscreteGaussianShare(step=0.01, bits=24, std=40.0 * 2 / 3, dimension=50_000)
    assert (weaker.opened(weaker.apply(value, np.random.default_rng(0))) - value).std() < 0.7 * expected


def test_bits_that_do_not_decide_are_followed_by_more() -> None:
    """From four bits on: nearly every draw needs more of them, and the law stays."""
    rng = np.random.default_rng(1)
    sizes = [sampler._decided_magnitude(int(rng.integers(16)), 4, 3.3, rng) for _ in range(30_000)]
    drawn = np.array(sizes) * np.where(rng.random(len(sizes)) < 0.5, 1, -1)
    assert fits(drawn, 3.3) > 1e-3


def test_the_distribution_function_is_exact() -> None:
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workprec(400):
        weights = [mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * mpmath.mpf(5.3) ** 2)) * (1 if k == 0 else 2) for k in range(150)]
        total = sum(weights)
        for bits in (31, 63, 95):
            found = sampler._share_distribution(5.3, bits)
            expected = [int(mpmath.floor(sum(weights[: k + 1]) / total * 2**bits)) for k in range(len(found))]
            assert list(found) == expected


@pytest.mark.parametrize(("norm", "dimension"), [(1.0, 10), (30.0, 1_000), (500.0, 60_000)])
def test_rounded_neighbours_stay_within_the_stated_sensitivity(norm: float, dimension: int) -> None:
    """Two values that are ``norm`` apart, rounded with the same coins. Directions: one entry, all alike, random."""
    share = DiscreteGaussianShare(step=0.25, bits=40, std=1.0, dimension=dimension)
    stated = discrete_rounded_norm(norm, dimension, 1e-6)
    rng = np.random.default_rng(5)
    alone = np.zeros(dimension)
    alone[0] = 1.0
    largest = 0.0
    for direction in (alone, np.ones(dimension), np.where(np.arange(dimension) % 2, -1.0, 1.0), rng.standard_normal(dimension)):
        moved = direction / np.linalg.norm(direction) * norm * share.step
        for turn in range(20):
            value = rng.standard_normal(dimension)
            one, two = (share.rounded(v, np.random.default_rng(turn)) for v in (value, value + moved))
            largest = max(largest, float(np.linalg.norm(one - two)))
    assert largest <= stated
    assert largest > 0.9 * norm


def test_rounding_costs_what_is_stated() -> None:
    """A bound that forgets the rounding is broken by some pair."""
    share = DiscreteGaussianShare(step=1.0, bits=40, std=1.0, dimension=10_000)
    value = np.random.default_rng(0).random(10_000)
    moved = value + 0.5  # norm 50; rounded, half of the entries move by one: norm 70
    distances = [
        np.linalg.norm(share.rounded(moved, np.random.default_rng(t)) - share.rounded(value, np.random.default_rng(t)))
        for t in range(5)
    ]
    assert min(distances) > 60
    assert max(distances) <= discrete_rounded_norm(50.0, 10_000, 1e-6)


@pytest.mark.parametrize(("std", "shares"), [(0.5, 2), (0.6, 3), (0.8, 8), (2.0, 5)])
@pytest.mark.parametrize("distance", [1, 3])
@pytest.mark.parametrize("order", [1.5, 2.0, 8.0])
def test_the_stated_loss_covers_the_exact_one(std: float, shares: int, distance: int, order: float) -> None:
    """Rényi divergence of the exact sum of discrete Gaussians from itself moved; for small σ the sum is far from one."""
    one = law(std, 60)
    total = one
    for _ in range(shares - 1):
        total = np.convolve(total, one)
    total = total[total.size // 2 - 70 : total.size // 2 + 71] if total.size > 141 else total
    p, q = total[distance:], total[:-distance]
    kept = (p > 1e-200) & (q > 1e-200)
    exact = float(logsumexp(order * np.log(p[kept]) + (1 - order) * np.log(q[kept]))) / (order - 1)
    assert exact <= _discrete_gaussian_rho(distance, std, shares, 1) * order * (1 + 1e-9)


def test_many_fine_shares_cost_as_one_gaussian_of_concentrated_privacy() -> None:
    """σ of 4 steps in 100 shares: the sum costs what ρ = 1/(2m²) says, to nine digits."""
    event = discrete_gaussian_event(100.0, 40.0, 100, 1_000, 1e-12)
    assert isinstance(event, Composed)
    rho = next(e.rho for e in event.events if isinstance(e, ZCDP))
    norm = discrete_rounded_norm(100.0, 1_000, 1e-12)
    assert rho == pytest.approx(0.5 * (norm / 400.0) ** 2, rel=1e-9)
    assert price(Repeated(event, 50), 1e-5).epsilon > price(Repeated(Gaussian(4.0), 50), 1e-5).epsilon


def test_failures_of_rounding_are_charged_to_delta() -> None:
    event = discrete_gaussian_event(100.0, 40.0, 100, 1_000, 1e-3)
    assert math.isinf(price(Repeated(event, 2), 1.9e-3).epsilon)
    assert math.isfinite(price(Repeated(event, 2), 2.1e-3).epsilon)


def test_sums_are_read_at_both_ends_of_the_modulus() -> None:
    share = PlainShare(step=0.5, bits=10, largest=300.0, reason="a test")
    values = [np.array([-150.0, 150.0, 0.5]), np.array([-100.0, 100.0, -0.5])]
    total = sum((share.apply(v, np.random.default_rng(0)) for v in values), np.zeros(3, np.uint16))
    assert np.array_equal(share.opened(total), [-250.0, 250.0, 0.0])


def test_the_modulus_holds_what_it_is_chosen_for() -> None:
    assert integer_share_bits(largest_sum=1000.0, std=0.0, shares=10, draws=1.0) == 11
    bits = integer_share_bits(largest_sum=1000.0, std=50.0, shares=100, draws=1e6)
    assert 2 ** (bits - 1) > 1000 + 100 + 500 * math.sqrt(2 * math.log(2e6 * 2**40))


def test_what_cannot_be_is_refused() -> None:
    share = DiscreteGaussianShare(step=0.25, bits=20, std=1.0, dimension=2)
    rng = np.random.default_rng(0)
    for value in (np.array([np.nan, 0.0]), np.array([np.inf, 0.0]), np.array([1e30, 0.0]), np.zeros(3)):
        with pytest.raises(UnboundedValueError):
            share.apply(value, rng)
    for wrong in ({"std": 0.4}, {"std": 1e6}, {"bits": 1}, {"bits": 65}, {"step": 0.0}):
        with pytest.raises(PrivacyError):
            DiscreteGaussianShare(**{"step": 0.25, "bits": 20, "std": 1.0, "dimension": 2} | wrong)
    with pytest.raises(PrivacyError):
        discrete_rounded_norm(1.0, 10, 0.0)
    assert math.isinf(_discrete_gaussian_rho(1.0, 0.49, 10, 1))


@pytest.mark.parametrize(("epsilon", "more"), [(1.0, 0.10), (4.0, 0.09), (8.0, 0.07)])
def test_how_much_dearer_whole_numbers_are(epsilon: float, more: float) -> None:
    """The figures of docs/federation.md: noise of whole numbers over that of ideal sums, at 60 rounds and δ = 1e-4."""
    rounds, delta, steps, honest = 60, 1e-4, 2048.0, 18

    def whole(factor: float) -> Event:
        std, failure = factor * steps / math.sqrt(honest), 1e-4 * delta / rounds
        return Composed((Repeated(discrete_gaussian_event(steps, std, honest, 22_000, failure), rounds),))

    found = calibrate.calibrate_noise(whole, epsilon, delta)
    ideal = calibrate.calibrate_noise(lambda multiplier: Repeated(Gaussian(multiplier), rounds), epsilon, delta)
    assert found / ideal - 1 == pytest.approx(more, abs=0.006)
