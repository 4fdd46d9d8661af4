"""Inferring links from predictions of links: found where nothing is private, and not where ε says so."""

import pytest

import fedgraph
from fedgraph.errors import ScenarioError
from fedgraph.library import Run

ATTACK = {"canaries": 0, "named": [{"attack": "link_inference", "references": 1}], "units": 300}
METHODS = [
    {"method": "link_clear", "label": "clear"},
    {"method": "link_hops", "label": "edge", "width": 16},
    {"method": "link_owners", "label": "node"},
    {"method": "link_owners", "label": "public", "learns": False},
]


def scenario(**attack: object) -> dict[str, object]:
    task = {
        "task": "link_prediction", "trust": ["curator"], "epsilons": [1.0], "methods": METHODS, "attack": {**ATTACK, **attack},
    }  # fmt: skip
    data = {"name": "synthetic/accounts", "parameters": {"people": 120}}
    return {"name": "x", "runtime": {"engine": "serial"}, "datasets": [data], "tasks": [task]}


@pytest.fixture(scope="module")
def run() -> Run:
    return fedgraph.run(scenario(), quiet=True)


def test_what_is_in_clear_is_found_and_what_is_private_is_not(run: Run) -> None:
    found = {r.head.variant: r.head.facts.named.found[0] for r in run.rows if r.head.facts.named is not None}
    assert found["clear"].auc > 0.8
    assert found["clear"].epsilon is not None
    assert found["clear"].epsilon > 1
    assert abs(found["edge"].auc - 0.5) < 0.15
    assert found["edge"].comparable
    assert found["edge"].epsilon is not None
    assert found["edge"].epsilon <= 1.0
    assert abs(found["node"].auc - 0.5) < 0.12
    assert not found["node"].comparable
    assert "prices node-links" in found["node"].why
    assert "public" not in found, "a row that releases nothing is not attacked"


def test_the_row_without_a_release_costs_nothing(run: Run) -> None:
    (row,) = (r for r in run.rows if r.head.variant == "public")
    assert row.epsilon_provable == 0
    assert row.auc > 0.5


def test_canaries_and_classifiers_are_refused() -> None:
    with pytest.raises(ScenarioError, match="links are attacked by name"):
        fedgraph.run(scenario(canaries=10))
    from fedgraph.attacks import link_inference
    from fedgraph.methods.base import method_kinds

    assert method_kinds.load("gap_edge").OFFERS.kind == "classifier"
    assert "scores of pairs" in str(link_inference.NEEDS)
