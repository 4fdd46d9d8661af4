"""Attacks by name, as a reader sees them: a refuted ε first, bounds rounded down, who is at risk."""

from __future__ import annotations

from typing import Any

from fedgraph.cells.result import Result
from fedgraph.cells.task_facts import (
    NamedAttackCellFacts,
    NamedAttacksCellFacts,
    NodeClassificationCellFacts,
    NodeRiskCellFacts,
)
from fedgraph.federation import world_of_trust
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer
from fedgraph.report import attack_bounds, page
from fedgraph.report.table import Line, rows_of
from tests.results import plain_result


def entry(facts: NodeClassificationCellFacts) -> Result:
    protection = Protection(Relation.NODE_ZERO_OUT, Viewer.SERVER, (Assumption.CLIENTS_DISJOINT,))
    return plain_result(
        "t", "d", "m", "v", world_of_trust(Trust.OWN_CLIENT),
        "provable", 1.0, 0, {"accuracy": 0.5}, facts, protection, 1e-5, None, 1.0, None, "theorem",
        {"model": 1.0}, (), 0.1, (),
    )  # fmt: skip


def verdict(right: int, **changes: Any) -> NamedAttackCellFacts:
    found: dict[str, Any] = {
        "attack": "lira", "reference": "somebody 2022", "needs": "the plan", "viewer": "server", "what": "one from the other",
        "auc": 0.7, "advantage": 0.3, "tpr": (0.01, 0.05), "relation": "node-zero-out",
        "epsilon": 0.5, "comparable": True, "why": "", "estimator": "counting-tight",
        "counts": ((500, 100, right),) * 2, "limit": 0.46, "answers": "viewer", "more": {},
    }  # fmt: skip
    return NamedAttackCellFacts(**{**found, **changes})


def row(*verdicts: NamedAttackCellFacts, risk: NodeRiskCellFacts | None = None) -> Line:
    named = NamedAttacksCellFacts(verdicts, {"linkteller": "it says nothing here"}, risk)
    (found,) = rows_of([entry(NodeClassificationCellFacts(protocol="inductive", public="test-graph", named=named))])
    return found


def test_a_refuted_epsilon_comes_first_with_what_repeats_it() -> None:
    found = row(verdict(99))
    (said,) = attack_bounds.contradictions([found])
    assert said.startswith("CONTRADICTION: lira")
    for part in ("provable ε is 1", "99 of 100 guesses", "seed 0", "task t", "data set d", "environment.json"):
        assert part in said
    assert page.PageContent([found], "t", "l").sentences[0] == said


def test_many_bounds_share_the_error() -> None:
    alone = attack_bounds.contradictions([row(verdict(84))])
    among = attack_bounds.contradictions([row(verdict(84), *(verdict(50, attack=f"a{k}") for k in range(200)))])
    assert alone
    assert not among


def test_what_cannot_be_held_against_the_price_is_marked_and_accuses_nobody() -> None:
    found = row(verdict(99, comparable=False, why="another relation", limit=None))
    told = attack_bounds.section([found])
    assert attack_bounds.contradictions([found]) == []
    (line,) = told.tables[0].rows
    assert line[3].endswith("*")


def test_who_is_at_risk_is_a_distribution() -> None:
    risk = NodeRiskCellFacts(
        runs=3, mean=0.66, always_found=0.4, always_by_luck=0.125,
        rank_degree=-0.2, rank_rarity=0.1, rank_unlike=0.0,
    )  # fmt: skip
    said = attack_bounds.section([row(verdict(60), risk=risk)]).sentences[-1]
    assert said.startswith("Who is at risk: ")
    assert "v, own-client, ε=1: 40.00 (12.50), mean 0.660, -0.20, +0.10, +0.00" in said
