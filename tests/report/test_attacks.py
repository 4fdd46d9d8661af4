"""What attacks measured, as a reader sees it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from fedgraph.audit import one_run
from fedgraph.cells.entry import Entry
from fedgraph.cells.facts import CanaryAttack, NodeClassificationFacts
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer
from fedgraph.report import answer, attacks, columns, report_rows, result_files, statement
from fedgraph.worlds.world import trusting


def entry(right: int | None, seed: int = 0, **changes: Any) -> Entry:
    attack = None if right is None else CanaryAttack(((500, 100, right),), "canaries, seen somewhere", "counting")
    measured = None if right is None else one_run.epsilon_lower(one_run.Count(500, 100, right), 1e-5)
    protection = Protection(Relation.NODE_ZERO_OUT, Viewer.SERVER, (Assumption.CLIENTS_DISJOINT,))
    made = Entry(
        "t", "d", "m", "v", trusting(Trust.OWN_CLIENT),
        "provable", 1.0, seed, {"accuracy": 0.5}, NodeClassificationFacts(attack=attack),
        protection, 1e-5, None, 1.0, measured, "theorem", {"model": 1.0}, (), 0.1, (),
    )  # fmt: skip
    return replace(made, **changes)


def row(*entries: Entry) -> report_rows.Row:
    (found,) = report_rows.group_rows(entries)
    return found


def test_seeds_are_added_up_and_those_without_attack_left_out() -> None:
    found = row(entry(60, 0), entry(70, 1), entry(None, 2))
    assert found.attacked == [one_run.Count(1000, 200, 130)]
    assert found.measured == one_run.epsilon_lower(one_run.Count(1000, 200, 130), 1e-5) > 0
    assert found.ceiling == one_run.epsilon_lower(one_run.Count(1000, 200, 200), 1e-5)
    assert row(entry(None)).measured is None


def test_a_bound_is_printed_rounded_down_with_what_it_rests_on() -> None:
    found = row(entry(65))
    assert found.measured is not None
    assert found.measured - 0.01 < float(attacks.printed_bound(found)) <= found.measured
    said = " ".join(statement.describe_row(found).sentences)
    for part in (f"ε ≥ {attacks.printed_bound(found)}", "95% confidence", "65 of 100 guesses", "500 canaries"):
        assert part in said
    (about,) = attacks.describe_attacks([found])
    assert "a low value proves nothing" in about
    assert "canaries, seen somewhere" in about


def test_rows_that_were_not_attacked_show_a_dash_and_say_nothing() -> None:
    found = row(entry(None))
    assert attacks.printed_bound(found) == "—"
    assert attacks.describe_attacks([found]) == []
    assert "measured by an attack: —" in " ".join(statement.describe_row(found).sentences)


def test_more_than_was_proven_is_shouted_first() -> None:
    assert attacks.contradictions([row(entry(65))]) == []
    said = attacks.describe_attacks([row(entry(95))])
    assert said[0].startswith("CONTRADICTION")
    assert "provable ε = 1" in said[0]


def test_a_bound_above_the_proof_among_many_rows_is_not_called_a_contradiction() -> None:
    """Alone it would be one; among forty attacked rows a bound like this is to be expected."""
    above = entry(83, variant="above")
    assert attacks.contradictions([row(above)])[0].startswith("CONTRADICTION")
    others = [row(entry(50, variant=f"{i}")) for i in range(39)]
    (said,) = attacks.contradictions([row(above), *others])
    assert said.startswith("Canaries contradict no proven ε. More was measured than proven, but chance explains it")
    assert attacks.summary([row(above), *others])[0] == f"Attacks: {said}"
    answered = answer.find_answer([row(above), *others])
    assert not any("measured" in sentence for sentence in answered.sentences[: answered.warnings]), "no warning"
    (still,) = attacks.contradictions([row(entry(95)), *others])
    assert still.startswith("CONTRADICTION")


def test_more_than_was_published_is_said() -> None:
    found = row(entry(95, epsilon_published=0.5, epsilon_provable=math.inf))
    (said,) = attacks.contradictions([found])
    assert "published ε = 0.5" in said


def test_every_row_of_the_table_has_the_measured_value() -> None:
    numbers = columns.numbers_of_cells("s", "real", [entry(80), entry(None, 1)])
    rows = result_files.read_columns(numbers)
    assert [r["epsilon_measured"] for r in rows] == [pytest.approx(entry(80).epsilon_measured), None]
