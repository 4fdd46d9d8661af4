"""Our bounds of one run beside those of jax_privacy (2.0.0): the same counts, the same numbers.

An optional oracle, which the project does not depend on. ``pip install jax-privacy``, then
``pytest tests/audit/test_oracle_jax_privacy.py``; without it the tests are skipped.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedgraph.audit import curve, one_run
from fedgraph.audit.one_run import OneRunCount

auditing: Any = pytest.importorskip("jax_privacy.auditing", reason="the oracle is optional: pip install jax-privacy")

CASES = [  # coins, distance of the two normal laws, share of the coins that is guessed as 1, δ
    (300, 1.0, 0.2, 1e-3),
    (1000, 2.0, 0.1, 1e-5),
    (1500, 0.5, 0.3, 3.8e-4),
    (200, 6.0, 0.4, 1e-5),
    (400, 0.0, 0.2, 1e-3),
]


def counted(coins: int, distance: float, share: float) -> tuple[OneRunCount, float, np.ndarray, np.ndarray]:
    """(our count of the highest scores, the threshold that gives it, scores of version 1, scores of version 0)."""
    rng = np.random.default_rng(coins)
    tossed = rng.random(coins) < 0.5
    scores = rng.standard_normal(coins) + distance * tossed
    threshold = float(np.sort(scores)[-round(share * coins)])
    above = scores >= threshold
    found = OneRunCount(coins, int(above.sum()), int((above & tossed).sum()))
    return found, threshold, scores[tossed], scores[~tossed]


@pytest.mark.parametrize(("coins", "distance", "share", "delta"), CASES)
@pytest.mark.parametrize("alpha", [0.05, 0.001])
def test_the_curve_bound_is_theirs(coins: int, distance: float, share: float, delta: float, alpha: float) -> None:
    found, threshold, present, absent = counted(coins, distance, share)
    theirs = auditing.CanaryScoreAuditor(present, absent).epsilon_one_run_fdp(
        alpha, delta, threshold_strategy=auditing.Explicit(threshold)
    )
    assert curve.gaussian_epsilon_lower(found, delta, alpha) == pytest.approx(theirs, rel=1e-3, abs=2e-4)


@pytest.mark.parametrize(("coins", "distance", "share", "delta"), CASES)
def test_counting_is_never_below_theirs(coins: int, distance: float, share: float, delta: float) -> None:
    """Their δ term is that of Theorem 5.2, ours is smaller (``one_run``, (*)). At δ = 0 both are Theorem 5.1."""
    found, threshold, present, absent = counted(coins, distance, share)
    oracle, how = auditing.CanaryScoreAuditor(present, absent), auditing.Explicit(threshold)
    theirs = oracle.epsilon_one_run(0.05, delta, threshold_strategy=how)
    assert one_run.epsilon_lower(found, delta) >= theirs - 1e-4
    without = oracle.epsilon_one_run(0.05, 1e-14, threshold_strategy=how)
    assert one_run.epsilon_lower(found, 0.0) == pytest.approx(without, rel=1e-4, abs=1e-4)
