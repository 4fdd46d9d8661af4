"""The privacy notes: what a row promises in words, and what attacks measured."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from fedgraph.audit import one_run
from fedgraph.cells import environment, task_facts
from fedgraph.cells.result import Result
from fedgraph.cells.task_facts import CanaryAttackCellFacts, NamedAttackCellFacts, NodeClassificationCellFacts
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer
from fedgraph.report import attack_bounds, page, phrases, statement, table
from fedgraph.report.table import Line, rows_of
from fedgraph.types import Graph, GraphProvenance
from tests.report.test_answer import cell


def entry(right: int | None = None, **changes: Any) -> Result:
    """A cell; ``right`` of 100 guesses about 500 canaries were right."""
    held = Protection(Relation.NODE_ZERO_OUT, Viewer.SERVER, (Assumption.CLIENTS_DISJOINT,))
    made = cell("m", 0.5, trust=Trust.OWN_CLIENT, protection=held, variant="v", theorem="theorem")
    if right is not None:
        attack = CanaryAttackCellFacts(((500, 100, right),), "canaries, seen somewhere", "counting")
        measured = one_run.epsilon_lower(one_run.OneRunCount(500, 100, right), 1e-5)
        made = replace(made, facts=NodeClassificationCellFacts(attack=attack), epsilon_measured=measured)
    return replace(made, **changes)


def row(*entries: Result) -> Line:
    (found,) = rows_of(entries)
    return found


def said(*entries: Result) -> str:
    return " ".join(statement.sentences(row(*entries)))


OPEN = {"epsilon_provable": math.inf, "paths": {"model": math.inf, "embedding": 3.0}}


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        (
            {},
            ("each node", "the server, which sees each client", "features become zero", "ε = 1", "δ = 1e-05", "makes no claim"),
        ),
        (OPEN, ("protects nothing", "“model” is sent in clear", "“embedding” alone")),
        ({"paths": {}, "epsilon_provable": math.inf, "epsilon": math.inf}, ("raw data", "ε = ∞")),
        ({"paths": {}, "epsilon_provable": 0.0, "epsilon": math.inf}, ("only public sizes",)),
    ],
    ids=["kept", "open path", "raw", "sizes"],
)
def test_a_statement_says_what_is_protected_from_whom_and_what_is_not(changes: dict[str, Any], parts: tuple[str, ...]) -> None:
    assert [part for part in parts if part not in said(entry(**changes))] == []


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_every_price_of_a_row_is_that_of_its_dearest_seed(order: tuple[int, ...]) -> None:
    paid = (0.5, 2.0, 1.0)
    made = [entry(seed=s, epsilon_provable=paid[s], epsilon_published=2 * paid[s], paths={"model": paid[s] / 2}) for s in order]
    assert (row(*made).epsilon_provable, row(*made).epsilon_published, row(*made).paths["model"]) == (2.0, 4.0, 1.0)
    assert "ε = 2 with δ" in said(*made)
    other = [entry(paths={"meetings": 0.2, "rows": 0.9}), entry(seed=1, paths={"meetings": 0.2, "labels": 0.7})]
    assert row(*other).paths == {"meetings": 0.2, "rows": 0.9, "labels": 0.7}, "seeds that chose otherwise: all their paths"


def test_a_row_that_cannot_be_private_says_what_it_is() -> None:
    """FedAvg in clear: its embeddings have noise for ε = 64, its model leaves as it is."""
    clear = entry(epsilon=64.0, epsilon_provable=math.inf, paths={"model": math.inf, "embedding": 128.0})
    told = NodeClassificationCellFacts(broken_promise="degree 9 > 5")
    broken = entry(epsilon=8.0, epsilon_provable=math.inf, paths={"model": math.inf}, facts=told)
    free = entry(epsilon=math.inf, calibrated_by="none", epsilon_provable=math.inf, paths={"model": math.inf})
    assert [(one.noise_for, one.status) for one in (clear, broken, free, entry())] == [
        ("provable (embedding alone)", "not private: ε = ∞ (model)"),
        ("provable", "not private: the promise is broken: degree 9 > 5"), ("none", "ok"), ("provable", "ok"),
    ]  # fmt: skip


def test_a_stand_in_is_no_asked_for_graph(library: Graph) -> None:
    stand_in, asked = (
        replace(library, name=name, provenance=GraphProvenance("synthetic", "made"))
        for name in ("planetoid/cora", "synthetic/block_model")
    )
    assert environment.notice([library]) is None
    both = str(environment.notice([stand_in, asked]))
    assert both.startswith("SYNTHETIC DATA: planetoid/cora was not available")
    assert "synthetic/block_model is generated, as the scenario asks" in both
    assert "not available" not in str(environment.notice([asked]))


# ---- attacks ---------------------------------------------------------------------------------------------------------


def test_guesses_of_all_attacked_seeds_are_one_bound_in_row_and_table() -> None:
    cells = [entry(60), entry(None, seed=1), entry(70, seed=2)]
    found, lines = row(*cells), table.tabulate(cells, {})
    assert found.canaries.counts == (one_run.OneRunCount(1000, 200, 130),)
    assert found.epsilon_measured == one_run.epsilon_lower(one_run.OneRunCount(1000, 200, 130), 1e-5) > 0
    assert found.canaries.ceiling == one_run.epsilon_lower(one_run.OneRunCount(1000, 200, 200), 1e-5)
    assert table.group(lines)["epsilon_measured"].item() == found.epsilon_measured
    assert lines["epsilon_measured"].isna().to_list() == [False, True, False]
    assert [one.epsilon_measured for one in table.results_of(lines)] == [one.epsilon_measured for one in cells]


def test_a_bound_is_printed_rounded_down_with_what_it_rests_on() -> None:
    found = row(entry(65))
    assert found.epsilon_measured - 0.01 < float(phrases.lower(found.epsilon_measured)) <= found.epsilon_measured
    for part in (f"ε ≥ {phrases.lower(found.epsilon_measured)}", "95% confidence", "65 of 100 guesses", "500 canaries"):
        assert part in said(entry(65))
    (about,) = attack_bounds.section([found]).sentences
    assert "a low value proves nothing" in about


def test_a_bound_above_the_proof_among_many_rows_is_not_called_a_contradiction() -> None:
    """Alone it would be one; among forty attacked rows a bound like this is to be expected."""
    above, others = entry(83, variant="above"), [entry(50, variant=f"{i}") for i in range(39)]
    assert attack_bounds.contradictions([row(above)])[0].startswith("CONTRADICTION")
    assert row(above).status.startswith("refuted: an attack shows ε ≥")
    together = rows_of([above, *others])
    (explained,) = attack_bounds.contradictions(together)
    assert explained.startswith("Canaries contradict no proven ε. More was measured than proven, but chance explains it")
    assert {found.status for found in together} == {"ok"}
    (still,) = attack_bounds.contradictions(rows_of([entry(95, variant="above"), *others]))
    assert still.startswith("CONTRADICTION")
    (published,) = attack_bounds.contradictions([row(entry(95, epsilon_published=0.5, epsilon_provable=math.inf))])
    assert "published ε = 0.5" in published


def named(*found: dict[str, Any], risk: task_facts.NodeRiskCellFacts | None = None) -> Line:
    """A row that was attacked by name."""
    usual: dict[str, Any] = {
        "attack": "lira", "reference": "somebody 2022", "needs": "the plan", "viewer": "server", "what": "one from the other",
        "auc": 0.7, "advantage": 0.3, "tpr": (0.01, 0.05), "epsilon": 0.5, "comparable": True, "why": "",
        "estimator": "counting-tight", "limit": 0.46, "answers": "viewer", "more": {},
    }  # fmt: skip
    verdicts = tuple(
        NamedAttackCellFacts(**usual | {key: value for key, value in one.items() if key != "right"},
                             counts=((500, 100, one["right"]),) * 2)
        for one in found
    )  # fmt: skip
    told = task_facts.NamedAttacksCellFacts(verdicts, {"linkteller": "it says nothing here"}, risk)
    return row(entry(facts=NodeClassificationCellFacts(protocol="inductive", public="test-graph", named=told)))


def test_an_attack_by_name_that_refutes_is_said_first_and_many_share_the_error() -> None:
    found = named({"right": 99})
    (first,) = attack_bounds.contradictions([found])
    assert first.startswith("CONTRADICTION: lira")
    for part in ("provable ε is 1", "99 of 100 guesses", "seed 0", "task t", "data set d", "environment.json"):
        assert part in first
    assert page.PageContent([found], "t", "l").sentences[0] == first
    many = [{"right": 50, "attack": f"a{k}"} for k in range(200)]
    assert [bool(attack_bounds.contradictions([named({"right": 84}, *more)])) for more in ([], many)] == [True, False]


def test_what_cannot_be_held_against_the_price_is_marked_and_accuses_nobody() -> None:
    found = named({"right": 99, "comparable": False, "why": "another relation", "limit": None})
    assert attack_bounds.contradictions([found]) == []
    ((_, _, _, bound, *_),) = attack_bounds.section([found]).tables[0].rows
    assert bound.endswith("*")


def test_who_is_at_risk_is_a_distribution() -> None:
    risk = task_facts.NodeRiskCellFacts(3, 0.66, 0.4, 0.125, -0.2, 0.1, 0.0)
    told = attack_bounds.section([named({"right": 60}, risk=risk)]).sentences[-1]
    assert "v, own-client, ε=1: 40.00 (12.50), mean 0.660, -0.20, +0.10, +0.00" in told
