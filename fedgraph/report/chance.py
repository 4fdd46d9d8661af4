"""What chance alone may make: intervals, and errors of a difference.

Two standard errors are the measure everywhere. Answers of two rows are compared one by one where both were tested on the
same nodes: most of their errors are the same ones, so the difference is known better than either share.
"""

import math
import statistics
from collections.abc import Mapping
from types import SimpleNamespace

import numpy as np

from fedgraph.cells import task_facts

STANDARD_ERRORS = 2.0  # standard errors that a difference must exceed


def wilson(share: float, tested: int) -> tuple[float, float]:
    """(low, high): the shares from which ``share`` of ``tested`` is two standard errors away (Wilson, 1927)."""
    z = STANDARD_ERRORS**2 / tested
    middle = (share + z / 2) / (1 + z)
    half = math.sqrt(z * share * (1 - share) + z * z / 4) / (1 + z)
    return max(0.0, middle - half), min(1.0, middle + half)


def paired_variance(one: str, other: str, tested: int) -> float | None:
    """Of the mean difference of answers to the same questions; None where they were not kept, or are of other questions."""
    if not tested or not one or len(one) != len(other):
        return None
    differences = task_facts.unpack_answers(one, tested).astype(float) - task_facts.unpack_answers(other, tested)
    return float(np.var(differences) / tested)


def corrected(choices: int) -> float:
    """Standard errors that a difference must exceed which was picked among so many: two, with Bonferroni's correction."""
    normal = statistics.NormalDist()
    return normal.inv_cdf(1 - (1 - normal.cdf(STANDARD_ERRORS)) / max(1, choices))


# ---- of the lines of ``table.rows`` ----------------------------------------------------------------------------------


def of_guessing(metric: str | None, metrics: Mapping[str, float]) -> float:
    """What somebody reaches who learnt nothing."""
    majority = metrics.get("majority_share", 0.0)
    if metric == "average_precision_positive":
        return 1 - majority if majority else 0.0
    return {"auc": 0.5, "auroc": 0.5, "ari": 0.0}.get(metric or "", majority)


def interval(value: float, line: SimpleNamespace) -> tuple[float, float]:
    """(low, high) of one seed's value, by what was tested; the value itself where that was not counted.

    An average precision by its logit interval (Boyd, Eng & Page, 2013), an area by Hanley & McNeil (1982).
    """
    tested, facts = line.tested, vars(line.facts)
    if not tested:
        return value, value
    if line.metric == "accuracy":
        return wilson(value, tested)
    if line.metric == "average_precision_positive" and line.guess:
        sought = tested * line.guess
        if not 0 < value < 1:
            return wilson(value, max(1, round(sought)))
        half = STANDARD_ERRORS / math.sqrt(max(1.0, sought) * value * (1 - value))
        low, high = (1 / (1 + math.exp(-(math.log(value / (1 - value)) + side * half))) for side in (-1, 1))
        return low, high
    positives, negatives = float(tested), float(facts.get("negatives") or 0)
    if line.metric == "auroc":
        shares = [e.metrics["majority_share"] for e in line.cells if "majority_share" in e.metrics]
        positives = max(1.0, tested * (1 - (statistics.fmean(shares) if shares else 0.5)))
        negatives = max(1.0, tested - positives)
    if line.metric not in ("auc", "auroc") or not negatives:
        return value, value
    one, two = value / (2 - value), 2 * value**2 / (1 + value)
    spread = value * (1 - value) + (positives - 1) * (one - value**2) + (negatives - 1) * (two - value**2)
    half = STANDARD_ERRORS * math.sqrt(max(spread / (positives * negatives), 0.0))
    return max(0.0, value - half), min(1.0, value + half)


def error_of_difference(one: SimpleNamespace, other: SimpleNamespace) -> float:
    """Standard error of the difference of two lines' means: from what was tested, and over seeds; the larger of the two."""
    both = sorted(one.scores.keys() & other.scores.keys())
    rights = [{e.seed: e.facts.right for e in line.cells} for line in (one, other)]
    paired = [paired_variance(rights[0].get(s, ""), rights[1].get(s, ""), one.tested) for s in both]
    known = [v for v in paired if v is not None]
    alike = bool(known) and len(known) == len(both) == len(one.scores) == len(other.scores)
    if alike and one.metric == "accuracy":
        sampled = statistics.fmean(known)
    else:
        spans = [interval(line.mean, line) for line in (one, other)]
        sampled = sum(((high - low) / 2 / STANDARD_ERRORS) ** 2 for low, high in spans)
    if alike and len(both) > 1:
        seeds = statistics.variance(one.scores[s] - other.scores[s] for s in both) / len(both)
    else:
        seeds = sum((line.deviation or 0.0) ** 2 / max(1, len(line.scores)) for line in (one, other))
    return math.sqrt(max(sampled, seeds))


def is_worse(line: SimpleNamespace, than: SimpleNamespace) -> bool:
    """By more than two standard errors of the difference."""
    return bool(than.mean - line.mean > STANDARD_ERRORS * error_of_difference(than, line))
