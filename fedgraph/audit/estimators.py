"""Estimates of ε from guesses about coins, each beside what it guarantees.

| name | what it says | holds for |
|---|---|---|
| ``counting`` | (ε, δ)-DP is refuted below this ε (``one_run``) | coins of one run, or of several |
| ``counting-tight`` | the same, by the larger set of constraints (``curve.approximate``) | coins of one run, or of several |
| ``curve`` | all smaller μ-GDP curves are refuted; shown as ε at δ (``curve.gaussian``) | compositions of Gaussian releases |

Choose one estimator before looking at the scores; taking the largest of several needs a share of α for each (``reported`` names
the one that a report uses).
"""

from fedgraph.audit import curve, one_run
from fedgraph.audit.one_run import ALPHA
from fedgraph.errors import PrivacyError


def reported(gaussian_composition: bool) -> str:
    """The estimator of a report: ``curve`` where what is released is a composition of Gaussian releases, else ``counting``."""
    return "curve" if gaussian_composition else "counting"


def epsilon_lower(counts: list[one_run.Count], delta: float, by: str, alpha: float = ALPHA) -> float:
    """The best bound of the estimator ``by`` over several numbers of guesses, each at its share of ``alpha``."""
    found = {"counting": one_run.epsilon_lower, "counting-tight": curve.epsilon_lower, "curve": curve.of_gaussian}
    if by not in found:
        raise PrivacyError(f"unknown estimator {by!r}; allowed: {', '.join(found)}")
    return max((found[by](count, delta, alpha / len(counts)) for count in counts), default=0.0)
