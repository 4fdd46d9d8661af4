"""What attacks measured, as a reader sees it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from fedgraph.audit import one_run
from fedgraph.cells.result import Result
from fedgraph.cells.task_facts import (
    CanaryAttackCellFacts,
    NodeClassificationCellFacts,
)
from fedgraph.federation import world_of_trust
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer
from fedgraph.report import attack_bounds, phrases, statement, table
from fedgraph.report.table import Line, rows_of
from tests.results import plain_result


def entry(right: int | None, seed: int = 0, **changes: Any) -> Result:
    attack = None if right is None else CanaryAttackCellFacts(((500, 100, right),), "canaries, seen somewhere", "counting")
    measured = None if right is None else one_run.epsilon_lower(one_run.OneRunCount(500, 100, right), 1e-5)
    protection = Protection(Relation.NODE_ZERO_OUT, Viewer.SERVER, (Assumption.CLIENTS_DISJOINT,))
    made = plain_result(
        "t", "d", "m", "v", world_of_trust(Trust.OWN_CLIENT),
        "provable", 1.0, seed, {"accuracy": 0.5}, NodeClassificationCellFacts(attack=attack),
        protection, 1e-5, None, 1.0, measured, "theorem", {"model": 1.0}, (), 0.1, (),
    )  # fmt: skip
    return replace(made, **changes)


def row(*entries: Result) -> Line:
    (found,) = rows_of(entries)
    return found


def test_seeds_are_added_up_and_those_without_attack_left_out() -> None:
    found = row(entry(60, 0), entry(70, 1), entry(None, 2))
    assert found.canaries is not None
    assert found.canaries.counts == (one_run.OneRunCount(1000, 200, 130),)
    assert found.epsilon_measured == one_run.epsilon_lower(one_run.OneRunCount(1000, 200, 130), 1e-5) > 0
    assert found.canaries.ceiling == one_run.epsilon_lower(one_run.OneRunCount(1000, 200, 200), 1e-5)
    assert row(entry(None)).epsilon_measured is None


def test_a_bound_is_printed_rounded_down_with_what_it_rests_on() -> None:
    found = row(entry(65))
    assert found.epsilon_measured is not None
    assert found.epsilon_measured - 0.01 < float(phrases.lower(found.epsilon_measured)) <= found.epsilon_measured
    said = " ".join(statement.sentences(found))
    for part in (f"ε ≥ {phrases.lower(found.epsilon_measured)}", "95% confidence", "65 of 100 guesses", "500 canaries"):
        assert part in said
    (about,) = attack_bounds.section([found]).sentences
    assert "a low value proves nothing" in about
    assert "canaries, seen somewhere" in about


def test_a_bound_above_the_proof_among_many_rows_is_not_called_a_contradiction() -> None:
    """Alone it would be one; among forty attacked rows a bound like this is to be expected."""
    above = entry(83, variant="above")
    assert attack_bounds.contradictions([row(above)])[0].startswith("CONTRADICTION")
    others = [row(entry(50, variant=f"{i}")) for i in range(39)]
    (said,) = attack_bounds.contradictions([row(above), *others])
    assert said.startswith("Canaries contradict no proven ε. More was measured than proven, but chance explains it")
    together = rows_of([above, *(entry(50, variant=f"{i}") for i in range(39))])
    assert [found.status for found in together] == ["ok"] * 40
    assert row(above).status.startswith("refuted: an attack shows ε ≥"), "alone it is one"
    (still,) = attack_bounds.contradictions([row(entry(95)), *others])
    assert still.startswith("CONTRADICTION")


def test_more_than_was_published_is_said() -> None:
    found = row(entry(95, epsilon_published=0.5, epsilon_provable=math.inf))
    (said,) = attack_bounds.contradictions([found])
    assert "published ε = 0.5" in said


def test_every_row_of_the_table_has_the_measured_value() -> None:
    cells = [entry(80), entry(None, 1), entry(90, 2)]
    lines = table.tabulate(cells, {})
    assert lines["epsilon_measured"].isna().to_list() == [False, True, False]
    assert [one.epsilon_measured for one in table.results_of(lines)] == [one.epsilon_measured for one in cells]
    (together,) = table.group(lines)["epsilon_measured"]
    assert together == row(*cells).epsilon_measured, "by all their guesses"
