"""What chance alone may make: intervals, and errors of a difference.

Two standard errors are the measure everywhere. Answers of two rows are compared one by one where both were tested on the
same nodes: most of their errors are the same ones, so the difference is known better than either share.
"""

import math
import statistics

import numpy as np

from fedgraph.cells import task_facts

CHANCE_STANDARD_ERRORS = 2.0  # standard errors that a difference must exceed


def wilson_chance_interval(share: float, tested: int) -> tuple[float, float]:
    """(low, high): the shares from which ``share`` of ``tested`` is two standard errors away (Wilson, 1927)."""
    z = CHANCE_STANDARD_ERRORS**2 / tested
    middle = (share + z / 2) / (1 + z)
    half = math.sqrt(z * share * (1 - share) + z * z / 4) / (1 + z)
    return max(0.0, middle - half), min(1.0, middle + half)


def area_error(area: float, positives: float, negatives: float) -> float:
    """Standard error of an AUC by what was tested (Hanley & McNeil, 1982)."""
    one, two = area / (2 - area), 2 * area**2 / (1 + area)
    spread = area * (1 - area) + (positives - 1) * (one - area**2) + (negatives - 1) * (two - area**2)
    return math.sqrt(max(spread / (positives * negatives), 0.0))


def precision_interval(average: float, positives: float) -> tuple[float, float]:
    """(low, high) of an average precision by how many of the class were tested: its logit interval (Boyd, Eng & Page, 2013)."""
    if not 0 < average < 1:
        return wilson_chance_interval(average, max(1, round(positives)))
    middle = math.log(average / (1 - average))
    half = CHANCE_STANDARD_ERRORS / math.sqrt(max(1.0, positives) * average * (1 - average))
    low, high = (1 / (1 + math.exp(-(middle + side * half))) for side in (-1, 1))
    return low, high


def paired_chance_variance(one: str, other: str, tested: int) -> float | None:
    """Of the mean difference of answers to the same questions; None where they were not kept, or are of other questions."""
    if not tested or not one or len(one) != len(other):
        return None
    differences = task_facts.unpack_answers(one, tested).astype(float) - task_facts.unpack_answers(other, tested)
    return float(np.var(differences) / tested)


def correct_chance_errors(choices: int) -> float:
    """Standard errors that a difference must exceed which was picked among so many: two, with Bonferroni's correction."""
    normal = statistics.NormalDist()
    return normal.inv_cdf(1 - (1 - normal.cdf(CHANCE_STANDARD_ERRORS)) / max(1, choices))
