"""Why coins of one run may not be treated as runs of their own: a mechanism that is (ε, δ)-DP and leaks many coins at once.

With probability p the mechanism names a random subset of k = δm/p coins, and otherwise says nothing. Each coin is named with
probability p·k/m = δ, so it is (0, δ)-DP in every coin, whatever the others are. Right guesses come in crowds. A bound that
counts them as if each coin were a run of its own accuses this sound mechanism far too often; the bounds of this package do not.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import binom

from fedgraph.audit import curve, one_run
from fedgraph.audit.one_run import OneRunCount
from tests.audit_p_values import p_value as curve_p_value

COINS, DELTA, CROWD, ALPHA = 2000, 0.02, 0.2, 0.05
GUESSES, RUNS = 400, 400


def counts(rng: np.random.Generator) -> list[OneRunCount]:
    """Right guesses of the best attacker in independent runs: what was named is right, the rest is guessed."""
    named = min(round(DELTA * COINS / CROWD), GUESSES)
    told = np.where(rng.random(RUNS) < CROWD, named, 0)
    return [OneRunCount(COINS, GUESSES, int(t + rng.binomial(GUESSES - t, 0.5))) for t in told]


def as_if_independent(found: OneRunCount) -> float:
    """P[V ≥ v] if every coin were named by a coin of its own, with probability δ: no theorem for coins of one run."""
    most = np.arange(GUESSES + 1)
    named = binom.pmf(most, COINS, DELTA)
    named[-1] += binom.sf(GUESSES, COINS, DELTA)
    return float((named * binom.sf(found.right - most - 1, GUESSES - most, 0.5)).sum())


def test_bounds_of_one_run_hold_for_a_mechanism_that_leaks_in_crowds() -> None:
    found = counts(np.random.default_rng(0))
    for p_value in (
        lambda c: one_run.p_value(c, 0.0, DELTA),
        lambda c: curve_p_value(c, curve._inverse_approximate_curve(0.0, DELTA)),
    ):
        known = {c: p_value(c) for c in set(found)}
        accused = sum(known[c] <= ALPHA for c in found)
        assert binom.sf(accused - 1, RUNS, ALPHA) > 1e-4, accused


def test_counting_coins_as_runs_of_their_own_accuses_it() -> None:
    """The test above can fail: this estimator does."""
    accused = sum(as_if_independent(c) <= ALPHA for c in counts(np.random.default_rng(0)))
    assert binom.sf(accused - 1, RUNS, ALPHA) < 1e-6, accused
