"""How many were tested, which differences may be chance, and when nothing can be concluded."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fedgraph.cells import task_facts
from fedgraph.cells.result import Result
from fedgraph.cells.task_facts import NodeClassificationCellFacts
from fedgraph.report import answer, cards, chance
from fedgraph.report.rows import group_rows
from tests.report.test_answer import cell


def graded(method: str, right: np.ndarray, *, least: int = 200, **rest: Any) -> Result:
    """A cell whose answers are right where ``right`` says so."""
    facts = NodeClassificationCellFacts(tested=right.size, least_class=least, right=task_facts.pack_answers(right))
    return cell(method, float(right.mean()), facts=facts, **rest)


def said(*cells: Result) -> tuple[str, ...]:
    return answer.find_answer(group_rows(list(cells))).sentences


@pytest.mark.parametrize(("share", "number"), [(0.5, 100), (1.0, 7), (0.0, 12), (0.93, 640)])
def test_the_interval_is_where_the_share_is_two_standard_errors_away(share: float, number: int) -> None:
    low, high = chance.wilson_chance_interval(share, number)
    assert 0 <= low <= share <= high <= 1
    for end in {low, high} - {share}:
        assert abs(share - end) == pytest.approx(2 * math.sqrt(end * (1 - end) / number), abs=1e-9)


def test_seven_tested_people_conclude_nothing_and_this_comes_first() -> None:
    first = said(graded("one", np.ones(7, bool)))[0]
    assert first.startswith("Nothing can be concluded: only 7 nodes were tested")


@pytest.mark.parametrize(("change", "words"), [({"least": 19}, "19 nodes"), ({"delta": 0.002}, "δ = 0.002")])
def test_small_classes_and_a_large_delta_conclude_nothing(change: dict[str, Any], words: str) -> None:
    right = np.arange(1000) % 3 > 0
    first = said(graded("one", right, **change))[0]
    assert first.startswith("Nothing can be concluded")
    assert words in first
    assert not said(graded("one", right))[0].startswith("Nothing")


def test_where_nothing_can_be_concluded_no_row_is_named() -> None:
    rows = [graded("one", np.ones(7, bool)), graded("two", np.arange(7) % 2 > 0)]
    answered = answer.find_answer(group_rows(rows))
    text = " ".join(answered.sentences)
    low, high = chance.wilson_chance_interval(3 / 7, 7)[0], chance.wilson_chance_interval(1.0, 7)[1]
    assert f"what keeps it has 0.43 to 1.00, and by chance alone anything from {low:.2f} to {high:.2f}" in text
    assert not any(word in text for word in ("reaches", "one has", "two has", "Within two standard errors"))
    (card,) = cards.make_cards(answered)
    assert (card.use, card.prices) == ((), ())
    assert card.right.startswith("Nothing can be concluded.")


def test_the_answer_says_how_many_were_tested_and_the_interval() -> None:
    sentence = said(graded("one", np.arange(1000) % 3 > 0))[0]
    assert "one reaches 0.67 (0.64 to 0.70, tested on 1,000 nodes)" in sentence


def test_reaches_never_stands_for_a_difference_within_chance() -> None:
    """Two rows that differ on five nodes of 1,000 in one direction, then on one node more than chance would."""
    first = np.arange(1000) % 3 > 0
    near, far = first.copy(), first.copy()
    near[np.flatnonzero(first)[:3]] = False
    far[np.flatnonzero(first)[:40]] = False
    alike, apart = said(graded("one", first), graded("two", near))[0], said(graded("one", first), graded("two", far))[0]
    assert "one has 0.67" in alike
    assert "reaches" not in alike
    assert "Within two standard errors of the best: two" in alike
    assert "one reaches 0.67" in apart
    assert "Within two" not in apart


def test_paired_answers_tell_apart_what_unpaired_ones_cannot() -> None:
    first = np.arange(1000) % 3 > 0
    second = first.copy()
    second[np.flatnonzero(first)[:20]] = False
    rows = group_rows([graded("one", first), graded("two", second)])
    assert chance._error_of_difference(rows[0], rows[1], "accuracy") < 0.005
    alone = group_rows([cell("two", float(second.mean()), facts=NodeClassificationCellFacts(tested=1000))])[0]
    assert chance._error_of_difference(rows[0], alone, "accuracy") > 0.02


def test_no_more_than_the_largest_class_is_not_reached() -> None:
    right = np.arange(200) % 10 > 0
    made = graded("one", right)
    made.metrics["majority_share"] = 0.88  # type: ignore[index]
    assert "one has 0.90" in said(made)[0]
