"""Five estimates of ε from one vector of scores, each beside what it guarantees.

| name | what it says | holds for |
|---|---|---|
| ``counting`` | (ε, δ)-DP is refuted below this ε (``one_run``) | coins of one run, or of several |
| ``counting-tight`` | the same, by the larger set of constraints (``curve.approximate``) | coins of one run, or of several |
| ``curve`` | all smaller μ-GDP curves are refuted; shown as ε at δ (``curve.gaussian``) | compositions of Gaussian releases |
| ``independent-runs`` | (ε, δ)-DP is refuted below this ε (``lower_bound``, Clopper-Pearson) | scores of separate runs only |
| ``gaussian-fit`` | what two normal laws fitted to the scores would have; **no bound** | reference |

The first three are valid for coins that were tossed in one run. The fourth is not: scores of one run are not independent, so
it is None unless the caller says that each score comes from a run of its own. Choose one estimator before looking at the
scores; taking the largest of several needs a share of α for each (``reported`` names the one that a report uses).
"""

from dataclasses import dataclass

import numpy as np

from fedgraph.audit import curve, lower_bound, one_run
from fedgraph.audit.one_run import ALPHA
from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting import gaussian


@dataclass(frozen=True)
class Estimate:
    """epsilon: at δ; None where the estimator does not apply. bound: whether it exceeds the truth with probability ≤ α only."""

    name: str
    epsilon: float | None
    bound: bool


def reported(gaussian_composition: bool) -> str:
    """The estimator of a report: ``curve`` where what is released is a composition of Gaussian releases, else ``counting``."""
    return "curve" if gaussian_composition else "counting"


def epsilon_lower(counts: list[one_run.Count], delta: float, by: str, alpha: float = ALPHA) -> float:
    """The best bound of the estimator ``by`` over several numbers of guesses, each at its share of ``alpha``."""
    found = {"counting": one_run.epsilon_lower, "counting-tight": curve.epsilon_lower, "curve": curve.of_gaussian}
    if by not in found:
        raise PrivacyError(f"unknown estimator {by!r}; allowed: {', '.join(found)}")
    return max((found[by](count, delta, alpha / len(counts)) for count in counts), default=0.0)


def all_five(
    scores: np.ndarray, coins: np.ndarray, delta: float, share: float = 0.1, alpha: float = ALPHA, independent: bool = False
) -> list[Estimate]:
    """Every estimate of one score vector. scores: float [m]. coins: bool [m], version 1 or 0. share: of coins that is guessed.

    Each bound is at ``alpha`` for itself. Raises ``PrivacyError`` for NaN scores or shapes that differ.
    """
    count = one_run.count(scores, coins, share)
    found = [
        Estimate(name, epsilon_lower([count], delta, name, alpha), True) for name in ("counting", "counting-tight", "curve")
    ]
    by_runs = _independent(scores, coins, delta, alpha) if independent else None
    return [*found, Estimate("independent-runs", by_runs, True), Estimate("gaussian-fit", _fitted(scores, coins, delta), False)]


def _independent(scores: np.ndarray, coins: np.ndarray, delta: float, alpha: float) -> float:
    """Thresholds from every second score of each version, counts on the others."""
    present, absent = scores[coins], scores[~coins]
    chosen, counted = lower_bound.Worlds(present[::2], absent[::2]), lower_bound.Worlds(present[1::2], absent[1::2])
    return lower_bound.epsilon_by_event(chosen, counted, delta, alpha)


def _fitted(scores: np.ndarray, coins: np.ndarray, delta: float) -> float | None:
    """ε at δ of the Gaussian mechanism whose two laws have the scores' means and pooled variance."""
    present, absent = scores[coins], scores[~coins]
    if min(present.size, absent.size) < 2 or not np.isfinite(scores).all():
        return None
    spread = float(np.sqrt((present.var(ddof=1) + absent.var(ddof=1)) / 2))
    if spread == 0:
        return None
    return gaussian.epsilon(abs(float(present.mean() - absent.mean())) / spread, delta)
