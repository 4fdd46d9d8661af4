"""Objective perturbation: the law of the noise columns, and the certificate without which nothing leaves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fedgraph.errors import PrivacyError
from fedgraph.learning.optimisers.objective import LinearObjective, ObjectiveLoss
from fedgraph.privacy.mechanisms import objective_perturbation as perturbing


@pytest.mark.parametrize("factor", [1.0, 2 / 3, 3 / 2])
def test_noise_columns_have_gamma_norms_and_uniform_directions(factor: float) -> None:
    d, rate = 6, 2.5
    noise = perturbing._columns(d, 20_000, rate, np.random.default_rng(0))
    norms = np.linalg.norm(noise, axis=0)
    found = stats.kstest(norms, stats.gamma(d, scale=1 / (rate * factor)).cdf).pvalue
    assert (found > 0.01) if factor == 1.0 else (found < 1e-10)
    assert np.abs((noise / norms).mean(axis=1)).max() < 4 / math.sqrt(20_000 * d)


def test_a_solution_that_is_not_the_minimiser_never_leaves() -> None:
    class Lazy(LinearObjective):
        def minimise(self, rows: np.ndarray, noise: np.ndarray) -> np.ndarray:
            return np.zeros((3, 3))

    lazy = Lazy(ObjectiveLoss("soft-margin", 3), np.array([0, 1, 2]), 1.0, 1e-9)
    mechanism = perturbing.ObjectivePerturbation(3, 1.0, 1e-9, 1e-8, lazy)
    with pytest.raises(PrivacyError, match="minimiser was not reached"):
        mechanism.apply(np.eye(3), np.random.default_rng(0))
