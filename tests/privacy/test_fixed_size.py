"""Batches of fixed size: which distances the two worlds can have, and what a vanishing row saves."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as PLD

from fedgraph.privacy.accounting import pld
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.events import FixedSizeGaussian, Gaussian, Repeated


@pytest.mark.parametrize("replaced", [True, False])
@pytest.mark.parametrize(("batch", "rows", "touched"), [(2, 5, 3), (4, 6, 2), (3, 3, 3), (1, 4, 1), (5, 6, 6)])
def test_distances_are_those_of_every_batch(batch: int, rows: int, touched: int, replaced: bool) -> None:
    counted: Counter[float] = Counter()
    drawn = list(itertools.combinations(range(rows), batch))
    for chosen in drawn:  # rows 0 … touched − 1 are touched, row 0 is the node's own
        others = sum(row in chosen for row in range(touched))
        counted[2.0 * others - (0 in chosen and not replaced)] += 1
    found, weights = pld.batch_distances(batch, rows, touched, replaced)
    said: Counter[float] = Counter()
    for distance, weight in zip(found, weights, strict=True):
        said[float(distance)] += weight
    assert {d: w for d, w in said.items() if w > 1e-12} == pytest.approx({d: c / len(drawn) for d, c in counted.items()})


def test_a_whole_batch_costs_2k_minus_1_or_2k() -> None:
    assert price(FixedSizeGaussian(50.0, 100, 100, 11, False), 1e-5) == price(Gaussian(50.0 / 21), 1e-5)
    assert price(FixedSizeGaussian(50.0, 100, 100, 11, True), 1e-5) == price(Gaussian(50.0 / 22), 1e-5)


@pytest.mark.parametrize("batch", [10, 99])
def test_a_vanishing_row_is_never_dearer_than_a_replaced_one(batch: int) -> None:
    vanishes, replaced = (price(Repeated(FixedSizeGaussian(40.0, batch, 100, 5, r), 20), 1e-5).epsilon for r in (False, True))
    assert vanishes <= replaced
    assert vanishes > price(Repeated(FixedSizeGaussian(40.0, batch, 100, 4, True), 20), 1e-5).epsilon


def law(rows: np.ndarray, batch: int) -> tuple[np.ndarray, np.ndarray]:
    """The sums of every batch, and how likely each is."""
    sums = Counter(float(rows[list(chosen)].sum()) for chosen in itertools.combinations(range(rows.size), batch))
    return np.array(list(sums)), np.array(list(sums.values())) / sum(sums.values())


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0])
@pytest.mark.parametrize(("batch", "rows", "touched"), [(1, 4, 1), (2, 6, 1), (3, 6, 2), (2, 5, 3), (4, 6, 2)])
@pytest.mark.parametrize("replaced", [True, False])
def test_a_hidden_batch_hides_no_less_than_is_said(batch: int, rows: int, touched: int, replaced: bool, sigma: float) -> None:
    """The exact laws of the noisy sum over all batches, for every choice of other rows at the clip; in both orders."""
    step = FixedSizeGaussian(sigma, batch, rows, touched, replaced)
    at = np.concatenate([np.linspace(-2.0, 4.0, 41), [1e-13, -1e-13]])
    said = {known: pld.from_fixed_size(step, 1e-12, revealed=known).deltas(at) for known in (True, False)}
    xs = np.linspace(-rows - 9 * sigma, rows + 9 * sigma, 16_001)
    for others in itertools.product((-1.0, 1.0), repeat=rows - touched):
        for turned in ((1.0,) * touched, (1.0, *(-1.0,) * (touched - 1))):
            one = np.array([*turned, *others])
            two = np.array([*(-v for v in turned), *others])
            if not replaced:
                two[0] = 0.0
            densities = [
                (np.exp(-((xs[:, None] - sums) ** 2) / (2 * sigma**2)) @ weights) / (sigma * np.sqrt(2 * np.pi))
                for sums, weights in (law(one, batch), law(two, batch))
            ]
            for p, q in (densities, densities[::-1]):
                real = np.maximum(p[None] - np.exp(at)[:, None] * q[None], 0.0).sum(axis=1) * (xs[1] - xs[0])
                for known, curve in said.items():
                    assert (real <= curve + 1e-6).all(), (known, others, turned)


def test_a_hidden_batch_amplifies() -> None:
    """The case that cost 13.0 with the batch revealed: the curve for one row is that of sampling without replacement."""
    step = Repeated(FixedSizeGaussian(1.0, 10, 1000, 1, True), 100)
    hidden, revealed = price(step, 1e-5).epsilon, price(Repeated(Gaussian(0.5), 100), 1e-5).epsilon
    assert hidden < revealed / 10
    for rows in (1, 3):
        at = np.linspace(-1.0, 3.0, 801)
        curve = pld.from_fixed_size(FixedSizeGaussian(1.5, 10, 100, rows, True), 1e-12, revealed=False).deltas(at)
        assert (np.diff(curve) <= 1e-15).all()
        slopes = np.diff(curve) / np.diff(np.exp(at))
        assert (np.diff(slopes) >= -1e-9).all(), "convex in e^ε, also where ε changes its sign"


@pytest.mark.parametrize(("multiplier", "rate", "rounds"), [(1.0, 0.01, 100), (2.0, 0.2, 30), (0.6, 0.05, 10)])
def test_one_replaced_row_costs_what_sampling_without_replacement_costs_elsewhere(
    multiplier: float, rate: float, rounds: int
) -> None:
    """P = (1 − q)μ₀ + qμ₁ against Q = μ₀ at 2·clip, by dp_accounting; the curve of both orders lies above, but little."""
    theirs = PLD.from_gaussian_mechanism(multiplier / 2, sampling_prob=rate, value_discretization_interval=1e-3)
    ours = price(Repeated(FixedSizeGaussian(multiplier, round(rate * 1000), 1000, 1, True), rounds), 1e-5).epsilon
    one_order = theirs.self_compose(rounds).get_epsilon_for_delta(1e-5)
    assert one_order * (1 - 1e-3) <= ours <= one_order * 1.07
