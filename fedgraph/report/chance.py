"""What chance alone may make: intervals of a share, errors of a difference, and when nothing can be concluded.

Two standard errors are the measure everywhere. Answers of two rows are compared node by node where both were tested on the
same nodes: most of their errors are the same ones, so the difference is known better than either share.
"""

import math
import statistics
from collections.abc import Sequence

import numpy as np

from fedgraph.cells import GraphClassificationCellFacts, GraphClusteringCellFacts, LinkPredictionCellFacts, task_facts
from fedgraph.report.phrases import phrase_number
from fedgraph.report.rows import Row

CHANCE_STANDARD_ERRORS = 2.0  # standard errors that a difference must exceed
_FEWEST_TESTED, _FEWEST_OF_A_CLASS, _LARGEST_DELTA = 100, 20, 1e-3  # below, below, above: nothing can be concluded
_TESTED = {GraphClassificationCellFacts: "graph", GraphClusteringCellFacts: "graph", LinkPredictionCellFacts: "edge"}


def wilson_chance_interval(share: float, tested: int) -> tuple[float, float]:
    """(low, high): the shares from which ``share`` of ``tested`` is two standard errors away (Wilson, 1927)."""
    z = CHANCE_STANDARD_ERRORS**2 / tested
    middle = (share + z / 2) / (1 + z)
    half = math.sqrt(z * share * (1 - share) + z * z / 4) / (1 + z)
    return max(0.0, middle - half), min(1.0, middle + half)


def num_chance_samples(row: Row) -> int | None:
    """How many different nodes or graphs the row's score rests on; None where it was not counted.

    Seeds split the same nodes anew, so they add none; folds of a collection do.
    """
    counts = [e.facts.tested for e in row.results if e.facts.tested]
    if not counts:
        return None
    facts = row.head.facts
    return min(sum(counts), facts.graphs) if isinstance(facts, GraphClassificationCellFacts) else min(counts)


def describe_chance_samples(row: Row) -> str:
    """``1,000 nodes``; of whole graphs ``1,000 graphs``."""
    what = next((word for kind, word in _TESTED.items() if isinstance(row.head.facts, kind)), row.head.facts.one)
    count = num_chance_samples(row) or 0
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _error_of_difference(one: Row, other: Row, metric: str) -> float:
    """Standard error of the difference of two rows' means: from what was tested, and over seeds; the larger of the two."""
    first, second = ({e.seed: e for e in row.results if metric in e.metrics} for row in (one, other))
    both = sorted(first.keys() & second.keys())
    paired = [paired_chance_variance(first[s].facts.right, second[s].facts.right, first[s].facts.tested or 0) for s in both]
    known = [v for v in paired if v is not None]
    alike = bool(known) and len(known) == len(both) == len(first) == len(second)
    if metric != "accuracy":
        sampled = 0.0
    elif alike:
        sampled = statistics.fmean(known)
    else:
        tested = ((row.mean_of(metric), num_chance_samples(row)) for row in (one, other))
        sampled = sum(share * (1 - share) / n for share, n in tested if n)
    if alike and len(both) > 1:
        seeds = statistics.variance(first[s].metrics[metric] - second[s].metrics[metric] for s in both) / len(both)
    else:
        seeds = sum(row.deviation_of(metric) ** 2 / len(row.results) for row in (one, other))
    return math.sqrt(max(sampled, seeds))


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


def is_worse_beyond_chance(score: Row, than: Row) -> bool:
    """By more than two standard errors of the difference."""
    return than.mean - score.mean > CHANCE_STANDARD_ERRORS * _error_of_difference(than, score, than.metric)


def find_chance_floor(score: Row) -> float:
    """What somebody reaches who learnt nothing: of accuracy by naming the largest class, of an AUC a half."""
    return 0.5 if score.metric == "auc" else score.majority


def beats_chance(score: Row) -> bool:
    """Whether the score is above ``find_chance_floor`` by more than two standard errors of its own."""
    tested, least = num_chance_samples(score), find_chance_floor(score)
    if score.metric == "auc":
        return score.mean - CHANCE_STANDARD_ERRORS * _error_of_area(score, score.mean) > least
    if finds_rare_class(score):
        return True
    counted = tested is not None and score.metric == "accuracy"
    return score.mean > least and (not counted or wilson_chance_interval(score.mean, tested or 1)[0] > least)


def looks_for_rare_class(score: Row) -> bool:
    """Whether two classes are told apart and one is rare: then accuracy says little, since naming the other is always near."""
    return score.metric == "accuracy" and bool(score.values("recall_at_alerts")) and bool(score.values("auroc"))


def finds_rare_class(score: Row) -> bool:
    """Whether a rare class is ranked above the others by more than chance: AUROC above ½ by more than two standard errors."""
    tested = num_chance_samples(score)
    if not looks_for_rare_class(score) or tested is None:
        return False
    area, rare = score.mean_of("auroc"), max(1.0, tested * (1 - score.majority))
    error = max(_area_error(area, rare, max(1.0, tested - rare)), score.deviation_of("auroc") / math.sqrt(score.seeds))
    return area - CHANCE_STANDARD_ERRORS * error > 0.5


def _area_error(area: float, positives: float, negatives: float) -> float:
    """Standard error of an AUC by what was tested (Hanley & McNeil, 1982)."""
    one, two = area / (2 - area), 2 * area**2 / (1 + area)
    spread = area * (1 - area) + (positives - 1) * (one - area**2) + (negatives - 1) * (two - area**2)
    return math.sqrt(max(spread / (positives * negatives), 0.0))


def _error_of_area(row: Row, area: float) -> float:
    """Standard error of a mean AUC: by what was tested (Hanley & McNeil, 1982), and over seeds; the larger of the two."""
    over_seeds = row.deviation_of("auc") / math.sqrt(len(row.results))
    tested = [
        e.facts for e in row.results if isinstance(e.facts, LinkPredictionCellFacts) and e.facts.tested and e.facts.negatives
    ]
    if not tested:
        return over_seeds
    hidden, others = min(f.tested or 1 for f in tested), min(f.negatives for f in tested)
    return max(_area_error(area, hidden, others), over_seeds)


def warn_of_chance(scores: Sequence[Row]) -> list[str]:
    """One sentence for each data set whose rows cannot decide anything; they come before everything else."""
    found = []
    many = len({s.dataset for s in scores}) > 1
    for dataset in dict.fromkeys(s.dataset for s in scores):
        own = [s for s in scores if s.dataset == dataset]
        fewest = min((s for s in own if num_chance_samples(s)), key=lambda s: num_chance_samples(s) or 0, default=None)
        least = min((e.facts.least_class for s in own for e in s.results if e.facts.least_class is not None), default=None)
        kept = [(s.delta, s.unit_name) for s in own if s.delta and s.private and math.isfinite(s.provable)]
        delta, unit = max(kept, default=(0.0, ""))
        why = []
        if fewest is not None and (num_chance_samples(fewest) or 0) < _FEWEST_TESTED:
            why.append(f"only {describe_chance_samples(fewest)} were tested (it takes {_FEWEST_TESTED})")
        if least is not None and least < _FEWEST_OF_A_CLASS:
            what = describe_chance_samples(own[0]).split()[1].rstrip("s")
            why.append(f"the smallest class has {least} {what}{'' if least == 1 else 's'} (it takes {_FEWEST_OF_A_CLASS})")
        if delta > _LARGEST_DELTA * (1 + 1e-9):
            one = "person" if unit == "node" else unit
            fails = f"the guarantee may fail for one {one} in {1 / delta:.0f}"
            why.append(f"δ = {phrase_number(delta)} is above {_LARGEST_DELTA:g}, so {fails}")
        if why:
            found.append(f"{f'On {dataset}, nothing' if many else 'Nothing'} can be concluded: {'; '.join(why)}.")
    return found
