"""Which differences may be chance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedgraph.cells import task_facts
from fedgraph.cells.result import Result
from fedgraph.cells.task_facts import NodeClassificationCellFacts
from fedgraph.privacy.trust import Trust
from fedgraph.report import chance
from fedgraph.report.chance import error_of_difference, is_worse
from tests.report.test_answer import ask, cell, rows


def graded(method: str, right: np.ndarray, **rest: object) -> Result:
    """A cell whose answers are right where ``right`` says so."""
    facts = NodeClassificationCellFacts(tested=right.size, least_class=200, right=task_facts.pack_answers(right))
    return cell(method, float(right.mean()), facts=facts, **rest)


@pytest.mark.parametrize(("share", "number"), [(0.5, 100), (1.0, 7), (0.0, 12), (0.93, 640)])
def test_the_interval_is_where_the_share_is_two_standard_errors_away(share: float, number: int) -> None:
    low, high = chance.wilson(share, number)
    assert 0 <= low <= share <= high <= 1
    for end in {low, high} - {share}:
        assert abs(share - end) == pytest.approx(2 * math.sqrt(end * (1 - end) / number), abs=1e-9)


def test_paired_answers_tell_apart_what_unpaired_ones_cannot() -> None:
    first = np.arange(1000) % 3 > 0
    second = first.copy()
    second[np.flatnonzero(first)[:20]] = False
    one, two, alone = rows(
        graded("one", first), graded("two", second),
        cell("alone", float(second.mean()), facts=NodeClassificationCellFacts(tested=1000)),
    )  # fmt: skip
    assert error_of_difference(one, two) < 0.005
    assert error_of_difference(one, alone) > 0.02
    assert is_worse(two, one)
    assert not is_worse(alone, one)


def test_no_better_stands_only_for_a_difference_within_chance() -> None:
    """A curator's row that is better on three nodes of 1,000, and one that is better on more than chance explains."""
    first = np.arange(1000) % 3 > 0
    for fewer, said in ((3, True), (40, False)):
        near = first.copy()
        near[np.flatnonzero(first)[:fewer]] = False
        (question,) = ask(graded("whole", first), graded("sums", near, trust=Trust.SUMS))
        assert ("one trusted curator would be no better" in question.found) == said
