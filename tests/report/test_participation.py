"""The section, the letters to owners, and the rows of results.csv, for a federation."""

from __future__ import annotations

import math
from typing import Any

import pytest

from fedgraph.report import choices, letters, results
from fedgraph.report.sections import participation
from fedgraph.report.sections.base import Records


def record(kind: str, client: str, value: float, epsilon: float) -> dict[str, Any]:
    return {
        "participation": kind, "client": client, "nodes": 100, "tested": 25, "metrics": {"accuracy": value}, "epsilon": epsilon,
        "toward": "the server",
    }  # fmt: skip


def entry(setting: str, epsilon: float, records: list[dict[str, Any]], method: str = "features") -> dict[str, Any]:
    return {
        "task": "t", "dataset": "d", "method": method, "variant": "default", "setting": setting, "epsilon": epsilon,
        "calibrated_by": "provable", "seed": 0, "delta": 1e-4, "metrics": {}, "seconds": 1.0, "paths": {},
        "epsilon_published": None, "epsilon_provable": epsilon, "protection": None,
        "facts": {"participations": records, "protocol": "inductive", "public": "test-graph", "clients": 2, "cut_edges": 0},
    }  # fmt: skip


def entries() -> list[dict[str, Any]]:
    return [
        entry("alone", math.inf, [record("alone", c, v, math.inf) for c, v in (("all", 0.55), ("a", 0.5), ("b", 0.6))]),
        entry("alone", 4.0, [record("alone", c, v, 4.0) for c, v in (("all", 0.35), ("a", 0.3), ("b", 0.4))]),
        entry("secure", 4.0, [record("federated", c, v, 3.9) for c, v in (("all", 0.65), ("a", 0.7), ("b", 0.55))]
              + [record("personalised", c, v, 3.9) for c, v in (("all", 0.7), ("a", 0.72), ("b", 0.61))]),
        entry("secure without a", 4.0, [record("left-out", "a", 0.45, 0.0)]),
        entry("secure", 4.0, [record("federated", c, 0.99, math.inf) for c in ("all", "a", "b")], method="leaky"),
    ]  # fmt: skip


def test_the_letter_says_what_the_owner_asked() -> None:
    letter = letters.of(choices.of(entries()), "d")[0]
    text = " ".join(letter.sentences)
    assert letter.client == "a"
    assert "a, which brings 100 people of d" in text
    assert "never leaves you and so needs no privacy: 0.50" in text
    assert "Joining at ε = 4 with secure sums: 0.70 (0.20 better than alone)" in text
    assert "keep that to yourself: 0.72" in text
    assert "98.1 of 100 times" in text
    assert "use the model of the others (ε = 4): 0.45" in text
    assert "If nothing were protected" not in text, "no joined row was run without protection"
    assert letter.rows[0][-1] == "joining helps"


def test_a_model_that_is_kept_may_be_of_any_budget_and_limits_are_told() -> None:
    given = entries()
    given[1]["facts"]["participations"] = [record("alone", c, v, 4.0) for c, v in (("all", 0.6), ("a", 0.65), ("b", 0.55))]
    given[2]["protection"] = {
        "viewer": "server", "unit": "node", "relation": "node-zero-out", "assumptions": ["features-from-edges"],
    }  # fmt: skip
    found = choices.of(given)
    assert found.inside() == ("features", 4.0)
    letter = letters.of(found, "d")[0]
    assert "needs no privacy: 0.65" in " ".join(letter.sentences)
    assert any("What the rows of other people say" in s for s in letter.last)


@pytest.mark.parametrize(("most", "says"), [(0.83, "costs you 0.13"), (0.7, "costs you nothing"), (0.6, "costs you nothing")])
def test_the_letter_says_what_protection_costs(most: float, says: str) -> None:
    free = entry("secure", math.inf, [record("federated", c, most, math.inf) for c in ("all", "a", "b")], method="nonprivate")
    letter = letters.of(choices.of([*entries(), free]), "d")[0]
    assert f"If nothing were protected, joining would give {most:.2f}, so at ε = 4 protection {says}" in " ".join(
        letter.sentences
    )


def test_who_loses_is_named_and_what_is_not_private_wins_nothing() -> None:
    section = participation.build(Records("n", "participation", "t", "d", None, tuple(entries())), None)
    (joined,) = (s for s in section.sentences if "joined, sums only (" in s)
    assert "1 of 2 clients" in joined
    assert "Who loses: b" in joined
    assert "leaky" not in joined, "its ε is infinite although 4 was asked"
    assert len(section.letters) == 2


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 4.0])
def test_what_an_attacker_reaches_is_randomised_response(epsilon: float) -> None:
    """Randomised response is ε-DP, and the best guess from it is right with probability e^ε / (1 + e^ε): the bound is tight."""
    right = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert choices.right_at_most(epsilon, 0.0) == pytest.approx(right)
    assert choices.right_at_most(epsilon, 0.01) > right
    assert choices.right_at_most(math.inf, 0.0) == 1.0


def test_every_client_has_its_rows_in_the_table() -> None:
    rows = results.flat("s", "real", entries())
    assert {(r["participation"], r["client"]) for r in rows if r["setting"] == "secure"} >= {
        ("federated", "all"), ("federated", "a"), ("personalised", "b"),
    }  # fmt: skip
    (left,) = (r for r in rows if r["participation"] == "left-out")
    assert (left["client"], left["epsilon_provable"], left["value"]) == ("a", 0.0, 0.45)
    assert all(r["participation"] and r["client"] for r in rows)
