"""The answer of a run, made from rows alone."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import replace
from typing import Any

import pytest

from fedgraph.cells.result import Result
from fedgraph.cells.task_facts import CanaryAttackCellFacts, GraphClusteringCellFacts, NodeClassificationCellFacts
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer
from fedgraph.report import answer, cards, statement
from fedgraph.report.attack_bounds import AttackBoundVerdict
from fedgraph.report.rows import compare_rows, group_rows
from fedgraph.worlds.world import world_of_trust
from tests.results import plain_result

RELATIONS = {"node": Relation.NODE_REPLACE, "edge": Relation.EDGE_UNDIRECTED, "graph": Relation.GRAPH_REPLACE}
PUBLIC = (Assumption.FEATURES_LABELS_PUBLIC,)
SUMS = (Assumption.IDEAL_SECURE_AGGREGATION, Assumption.ONE_COLLUDER)


def cell(
    method: str,
    accuracy: float,
    *,
    epsilon: float = 1.0,
    provable: float | None = None,
    trust: Trust = Trust.CURATOR,
    **changes: Any,
) -> Result:
    """A finished cell; ``unit``, ``dataset``, ``seed`` and the like by name."""
    unit, viewer = changes.pop("unit", "node"), changes.pop("viewer", trust.viewer)
    price = epsilon if provable is None else provable
    assumed = (*(SUMS if viewer is Viewer.SERVER_SECURE_AGGREGATION else ()), *(PUBLIC if unit == "edge" else ()))
    made = plain_result(
        "t", "d", method, "default", world_of_trust(trust), "provable", epsilon, 0, {"accuracy": accuracy},
        NodeClassificationCellFacts(),
        Protection(RELATIONS[unit], viewer, assumed), 1e-5, None, price, None, "", {"model": price}, (), 0.1, (),
    )  # fmt: skip
    return replace(made, **changes)


def seeds(method: str, *accuracies: float, **rest: Any) -> list[Result]:
    return [cell(method, a, seed=s, **rest) for s, a in enumerate(accuracies)]


def test_the_answer_names_epsilon_unit_trust_and_the_ceiling() -> None:
    cells = [
        *seeds("sums", 0.67, 0.69, trust=Trust.SUMS),
        *seeds("alone", 0.62, 0.64, trust=Trust.NOBODY),
        *seeds("clear", 0.76, 0.76, epsilon=math.inf),
    ]
    said = answer.find_answer(group_rows(cells)).sentences[0]
    assert said == (
        "At node level with ε ≤ 1: sums reaches 0.68 ± 0.01 if the server may see sums; alone reaches 0.63 ± 0.01 if nobody "
        "is trusted. Without privacy: 0.76 ± 0.00 (clear)."
    )


def test_a_table_with_a_row_for_each_graph_is_answered_about_graphs() -> None:
    """A node of such a table is a whole graph, and nothing that is said of it calls it a node or a person."""
    facts = NodeClassificationCellFacts(one="graph", protocol="asking", tested=50, least_class=10, train_nodes=100)
    cells = [*seeds("sums", 0.67, 0.69, facts=facts, delta=0.01), *seeds("clear", 0.76, 0.76, epsilon=math.inf, facts=facts)]
    answered = answer.find_answer(group_rows(cells))
    text = " ".join(answered.sentences)
    assert "only 50 graphs were tested" in text
    assert "the smallest class has 10 graphs" in text
    assert "may fail for one graph in 100" in text
    assert "At graph level with ε ≤ 1" in text
    assert "node" not in text
    assert "person" not in text
    (card,) = cards.make_cards(answered)
    assert card.title == "Classify whole graphs, each as one row"
    assert card.right.startswith("Nothing can be concluded.")
    facts = replace(facts, tested=500, least_class=50, train_nodes=1_000)
    (card,) = cards.make_cards(answer.find_answer(group_rows(seeds("sums", 0.67, 0.69, facts=facts, delta=1e-3))))
    assert "δ = 0.001, which is large: one in 1,000, and 1,000 graphs trained" in card.rests
    assert statement.make_statement(answered.scores[0]).sentences[0] == "Here each node is one whole graph."


def test_a_row_that_takes_edges_as_public_is_never_said_to_protect_them() -> None:
    held = Protection(Relation.NODE_REPLACE, Viewer.WORLD, (Assumption.EDGES_PUBLIC,))
    answered = answer.find_answer(group_rows(seeds("open", 0.7, 0.72, protection=held, trust=Trust.NOBODY)))
    (card,) = cards.make_cards(answered)
    assert card.unit == "Node level: a node's features and label are private, its edges are public"
    assert "With open, edges are public: only features and label are protected." in answered.sentences[-2]


@pytest.mark.parametrize(("accuracy", "told"), [(0.88, True), (0.9, False)])
def test_a_best_row_that_names_the_largest_class_only_is_told(accuracy: float, told: bool) -> None:
    given = cell("one", accuracy, metrics={"accuracy": accuracy, "majority_share": 0.88})
    said = answer.find_answer(group_rows([given])).sentences[0]
    assert ("Naming the largest class always would be right for 0.88: these rows may have learnt nothing else." in said) == told


@pytest.mark.parametrize(("private", "above"), [(0.86, True), (0.80, False), (0.70, False)])
@pytest.mark.parametrize("protocol", ["asking", "inductive"])
def test_a_private_row_above_the_one_without_privacy_is_told(private: float, above: bool, protocol: str) -> None:
    facts = NodeClassificationCellFacts(protocol=protocol)
    cells = [
        *seeds("hop", private - 0.01, private, private + 0.01, facts=facts),
        *seeds("clear", 0.78, 0.79, 0.80, epsilon=math.inf, facts=facts),
    ]
    said = answer.find_answer(group_rows(cells)).sentences[0]
    assert "Without privacy: 0.79 ± 0.01 (clear" in said
    assert ("no upper line: a private row is above it" in said) == above
    assert ("may read its neighbours' labels" in said) == (above and protocol == "asking")


def test_plus_minus_needs_two_seeds() -> None:
    answered = answer.find_answer(group_rows([cell("one", 0.5)]))
    assert "±" not in answered.sentences[0]
    assert "one seed" in answered.sentences[-1]
    assert answered.scores[0].deviation is None


def test_an_infinite_provable_epsilon_is_never_the_answer() -> None:
    cells = [cell("claims", 0.9, provable=math.inf), cell("sound", 0.5)]
    answered = answer.find_answer(group_rows(cells))
    assert {b.score.method for b in answered.best if b.score} == {"sound"}
    only = answer.find_answer(group_rows(cells[:1]))
    assert all(b.score is None for b in only.best)
    assert "nothing here may be called private" in only.sentences[0]


def test_calibrated_to_a_claim_it_counts_at_its_provable_epsilon() -> None:
    scores = compare_rows(group_rows([cell("claims", 0.9, epsilon=1.0, provable=3.0), cell("sound", 0.5, epsilon=4.0)]))
    assert answer.find_best_answer(scores, unit="node", trust=Trust.CURATOR, epsilon=1.0) is None
    found = answer.find_best_answer(scores, unit="node", trust=Trust.CURATOR, epsilon=4.0)
    assert found is not None
    assert found.method == "claims"


def test_units_are_never_mixed() -> None:
    scores = compare_rows(group_rows([cell("edges", 0.9, unit="edge"), cell("nodes", 0.5)]))
    found = answer.find_best_answer(scores, unit="node", trust=Trust.CURATOR, epsilon=1.0)
    assert found is not None
    assert found.method == "nodes"
    openings = [s.split(" with")[0] for s in answer.find_answer(group_rows([s.head for s in scores])).sentences]
    assert openings[:2] == ["At edge level", "At node level"]


def test_trust_is_what_the_method_needs_and_less_trust_serves_everybody() -> None:
    lpgnn = cell("lpgnn", 0.8, trust=Trust.NOBODY)
    assert group_rows([lpgnn])[0].trust is Trust.NOBODY
    scores = compare_rows(group_rows([lpgnn, cell("curated", 0.7)]))
    for trust in Trust:
        found = answer.find_best_answer(scores, unit="node", trust=trust, epsilon=1.0)
        assert found is not None
        assert found.method == "lpgnn"
    said = answer.find_answer(list(scores)).sentences[0]
    assert said.count("0.80") == 1
    assert "if nobody is trusted" in said
    assert "curator" not in said


def attacked(method: str, right: int, accuracy: float) -> Result:
    facts = NodeClassificationCellFacts(attack=CanaryAttackCellFacts(((500, 200, right),), "guesses", "counting"))
    return cell(method, accuracy, facts=facts, epsilon_measured=0.1)


def test_a_refuted_row_is_the_first_sentence_and_never_the_answer() -> None:
    answered = answer.find_answer(group_rows([attacked("broken", 199, 0.9), attacked("sound", 110, 0.5)]))
    assert [s.verdict for s in answered.scores] == [AttackBoundVerdict.BROKEN, AttackBoundVerdict.SOUND]
    assert answered.sentences[0].startswith("CONTRADICTION")
    assert "broken" in answered.sentences[0]
    assert answered.warnings == 1
    assert {b.score.method for b in answered.best if b.score} == {"sound"}


def test_a_row_without_a_number_competes_for_nothing_and_is_named() -> None:
    answered = answer.find_answer(group_rows([cell("lost", math.nan), cell("found", 0.5)]))
    assert "1 of 2 rows have no result" in answered.sentences[0]
    assert "lost" in answered.sentences[0]
    assert {b.score.method for b in answered.best if b.score} == {"found"}


def test_a_row_that_reads_nothing_private_shows_what_privacy_bought() -> None:
    free = cell("sizes", 0.6, provable=0.0, paths={}, epsilon=math.inf)
    answered = answer.find_answer(group_rows([free, cell("private", 0.5)]))
    assert "sizes reaches 0.60" in answered.sentences[0]
    assert "it releases nothing private" in answered.sentences[0]


def test_a_row_that_reads_the_features_is_no_answer_where_features_are_private() -> None:
    """It releases nothing of an edge, and everything else of a node."""
    free = cell("own-edges", 0.9, provable=0.0, paths={}, unit="edge")
    answered = answer.find_answer(group_rows([free, cell("private", 0.5), cell("linked", 0.6, unit="edge")]))
    said = {s.split(" level")[0]: s for s in answered.sentences}
    assert "own-edges reaches 0.90" in said["At edge"]
    assert "own-edges" not in said["At node"]
    assert "private reaches 0.50" in said["At node"]


def graphs(variant: str, ari: float, how: str, epsilon: float = 4.0, **rest: Any) -> Result:
    rest = {"unit": "graph", "trust": Trust.OWN_CLIENT, "metrics": {"ari": ari, "accuracy": 0.3}} | rest
    return cell("local_dp", 0.0, variant=variant, epsilon=epsilon, facts=GraphClusteringCellFacts(how=how), **rest)


def test_what_finds_classes_is_named_and_what_never_does_is_said_plainly() -> None:
    cells = [
        graphs("labels", 0.02, "histogram", 1.0), graphs("labels", 0.6, "histogram"), graphs("shapes", 0.03, "gw"),
        graphs("shapes", 0.01, "gw", math.inf), graphs("labels", 0.9, "histogram", math.inf),
        cell(
            "size", 0.0, unit="graph", trust=Trust.OWN_CLIENT, metrics={"ari": -0.01}, provable=0.0, paths={}, epsilon=math.inf,
        ),
    ]  # fmt: skip
    answered = answer.find_answer(group_rows(cells))
    assert {s.metric for s in answered.scores} == {"ari"}
    assert {s.metric for s in answered.also} == {"accuracy"}
    said = answered.sentences[0]
    assert "with ε ≤ 1 nothing finds them (at most 0.02), with ε ≤ 4 labels reaches 0.60" in said
    assert "Without privacy: labels reaches 0.90." in said
    assert "By Gromov-Wasserstein distances no row finds them, not even without noise (at most 0.03)." in said
    assert not any("size" in s or "-0.01" in s for s in answered.sentences)


def test_what_is_public_is_a_question_of_its_own() -> None:
    told = functools.partial(NodeClassificationCellFacts, protocol="inductive")
    cells = [
        cell("a", 0.7, facts=told(public="test-graph")), cell("a", 0.6, task="n", facts=told(public="nothing")),
        cell("a", 0.65, task="s", facts=told(public="share 0.1")),
    ]  # fmt: skip
    sentences = answer.find_answer(group_rows(cells)).sentences
    assert sentences[0].startswith("To classify nodes of a public test graph, at node level with ε ≤ 1: a reaches 0.70")
    assert sentences[1].startswith("To classify nodes when nothing is public, at node level with ε ≤ 1: a reaches 0.60")
    assert "10 % of the nodes are public" in sentences[2]


def test_ties_are_named() -> None:
    cells = [*seeds("best", 0.70, 0.72, 0.68), *seeds("near", 0.69, 0.71, 0.67), *seeds("far", 0.40, 0.41, 0.39)]
    answered = answer.find_answer(group_rows(cells))
    assert [s.method for s in answered.best[0].ties] == ["near"]
    assert "Within two standard errors of the best: near." in answered.sentences[0]


def test_several_questions_are_told_apart() -> None:
    rows = group_rows(
        [
            cell("a", 0.5),
            cell("a", 0.6, dataset="e"),
            cell("a", 0.7, task="u", facts=NodeClassificationCellFacts(protocol="transductive")),
        ]
    )
    sentences = answer.find_answer(rows).sentences
    assert sentences[0].startswith("On d")
    assert sentences[1].startswith("On e")
    assert sentences[2].startswith("On d, to classify the unlabelled nodes of one graph")
    with pytest.raises(ValueError, match="several questions"):
        answer.find_best_answer(compare_rows(rows), unit="node", trust=Trust.CURATOR, epsilon=1.0)


def test_rows_without_a_metric_to_compare_have_no_answer() -> None:
    answered = answer.find_answer(group_rows([cell("claim", 0.5, metrics={"epsilon_lower_bound": 2.0})]))
    assert answered.scores == ()
    assert answered.sentences == ()


def test_names_and_anchors_are_unique_and_stay_the_same() -> None:
    scores = compare_rows(group_rows([cell("a", 0.5), cell("a", 0.5, epsilon=8.0), cell("a", 0.5, task="u")]))
    names = [s.row for s in scores]
    assert names == ["a, curator, ε=1 · t", "a, curator, ε=8", "a, curator, ε=1 · u"]
    assert len({s.anchor for s in scores}) == 3
    assert all(re.fullmatch(r"row-[a-z0-9_-]+", s.anchor) for s in scores)
