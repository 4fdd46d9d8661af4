"""Batches of fixed size, revealed and hidden: the curves are above the exact laws of small cases."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as PLD

from fedgraph.privacy.accounting import pld
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.events import FixedSizeGaussian, Repeated


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
    said = {known: pld.curves(step, 1e-12, batch_revealed=known)[0].deltas(at) for known in (True, False)}
    xs = np.linspace(-rows - 9 * sigma, rows + 9 * sigma, 8_001)
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


@pytest.mark.parametrize(("multiplier", "rate", "rounds"), [(1.0, 0.01, 100), (2.0, 0.2, 30), (0.6, 0.05, 10)])
def test_one_replaced_row_costs_what_sampling_without_replacement_costs_elsewhere(
    multiplier: float, rate: float, rounds: int
) -> None:
    """P = (1 − q)μ₀ + qμ₁ against Q = μ₀ at 2·clip, by dp_accounting; the curve of both orders lies above, but little."""
    theirs = PLD.from_gaussian_mechanism(multiplier / 2, sampling_prob=rate, value_discretization_interval=1e-3)
    ours = price(Repeated(FixedSizeGaussian(multiplier, round(rate * 1000), 1000, 1, True), rounds), 1e-5).epsilon
    one_order = theirs.self_compose(rounds).get_epsilon_for_delta(1e-5)
    assert one_order * (1 - 1e-3) <= ours <= one_order * 1.07
