"""The answer of a run, made from rows alone."""

from __future__ import annotations

import functools
import html
import math
from dataclasses import replace
from typing import Any

import pytest

from fedgraph.cells.result import Result
from fedgraph.cells.task_facts import (
    CanaryAttackCellFacts,
    GraphClusteringCellFacts,
    LinkPredictionCellFacts,
    NodeClassificationCellFacts,
)
from fedgraph.federation import world_of_trust
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer
from fedgraph.report import answer, outputs, page, statement
from fedgraph.report.answer import Question
from fedgraph.report.table import Line, answering, rows_of
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


def rows(*cells: Result) -> tuple[Line, ...]:
    return answering(rows_of(list(cells)))


def ask(*cells: Result) -> tuple[Question, ...]:
    return answer.ask(rows(*cells))


def pick(question: Question, what: str = "name") -> tuple[Any, float]:
    """The name, or something else, of the row to use; and its ε. Fails where none is recommended."""
    assert question.pick is not None
    return vars(question.pick.row)[what], question.pick.budget


def test_the_finding_names_data_level_epsilon_trust_and_the_ceiling() -> None:
    (question,) = ask(
        *seeds("whole", 0.67, 0.69), *seeds("sums", 0.67, 0.69, trust=Trust.SUMS),
        *seeds("alone", 0.32, 0.34, trust=Trust.NOBODY), *seeds("clear", 0.76, 0.76, epsilon=math.inf),
    )  # fmt: skip
    assert question.finding == (
        "On d, node level: with ε ≤ 1 proven, a federation that shows the server only sums is right for 68 of 100 (67 to 69); "
        "one trusted curator would be no better at this ε; without privacy 76."
    )


@pytest.mark.parametrize(("epsilon", "most"), [(1.0, "73.2 %"), (0.1, "52.5 %"), (4.0, "98.3 %"), (12.0, "100 %")])
def test_what_an_attacker_can_believe_is_never_said_too_small(epsilon: float, most: str) -> None:
    (question,) = ask(cell("a", 0.7, epsilon=epsilon))
    assert f"can be {most} sure at most" in question.strength
    assert "except with probability δ = 0.00001" in question.strength
    assert ("the proof alone protects little" in question.strength) == (epsilon > 5)


@pytest.mark.parametrize(
    ("one", "natural", "trust"),
    [("person", False, Trust.CURATOR), ("person", True, Trust.OWN_CLIENT), ("node", False, Trust.OWN_CLIENT)],
)
def test_whoever_holds_the_whole_table_needs_no_clients(one: str, natural: bool, trust: Trust) -> None:
    facts = NodeClassificationCellFacts(one=one, natural=natural, tested=1000)
    curator = cell("a", 0.8, facts=replace(facts, natural=False))
    (question,) = ask(curator, *(cell("a", 0.79, trust=t, facts=facts) for t in (Trust.SUMS, Trust.OWN_CLIENT)))
    assert pick(question, "trust")[0] is trust
    beside = "; a federation that shows the server only sums reaches 79 (no clear difference)"
    assert (beside in question.finding) == (trust is Trust.CURATOR), "who holds all has asked for the others, too"


@pytest.mark.parametrize(
    ("curator", "sums", "star"),
    [(0.79, 0.91, Trust.SUMS), (0.80, 0.79, Trust.CURATOR), (0.91, 0.79, Trust.CURATOR), (0.30, 0.91, Trust.SUMS)],
)
def test_a_difference_that_is_no_chance_is_said_and_has_the_star(curator: float, sums: float, star: Trust) -> None:
    facts = NodeClassificationCellFacts(one="person", tested=1000)
    given = [replace(cell("a", curator, facts=facts)), cell("a", sums, trust=Trust.SUMS, facts=facts)]
    (question,) = ask(*[replace(c, metrics={**c.metrics, "majority_share": 0.4}) for c in given])
    assert pick(question, "trust")[0] is star
    assert ("no clear difference" in question.finding) == (abs(curator - sums) < 0.05)
    assert ("curator would be no better at this ε (79)." in question.finding) == ((curator, star) == (0.79, Trust.SUMS))


def test_a_row_that_works_on_one_seed_of_three_is_not_recommended() -> None:
    """Naming the largest class is right for 40: a mean of 60 that is 100 once and 40 twice learnt nothing twice."""
    facts = NodeClassificationCellFacts(tested=400)
    given = [replace(c, metrics={**c.metrics, "majority_share": 0.4}, facts=facts) for c in seeds("lucky", 1.0, 0.4, 0.4)]
    (question,) = ask(*given)
    assert question.pick is None
    assert "right for 40 of 100 in one training and 100 in another" in question.found
    steady = [replace(c, metrics={**c.metrics, "majority_share": 0.4}, facts=facts) for c in seeds("steady", 0.55, 0.56, 0.54)]
    (question,) = ask(*given, *steady)
    assert pick(question)[0] == "steady"


def test_guessing_is_told_over_the_seeds_and_each_seed_is_held_against_its_own() -> None:
    """The largest class of three tests is 41, 34, 34 of 100; the row without privacy has the first alone."""
    facts, shares = NodeClassificationCellFacts(tested=400), (0.41, 0.34, 0.34)

    def made(*accuracies: float, epsilon: float = 1.0) -> list[Result]:
        found = zip(seeds("a", *accuracies, facts=facts, epsilon=epsilon), shares, strict=False)
        return [replace(c, metrics={**c.metrics, "majority_share": share}) for c, share in found]

    (question,) = ask(*made(0.48, 0.40, 0.40), *made(0.9, epsilon=math.inf))
    assert "always is right for 36" in question.guessing
    assert question.pick is not None, "40 is above 34 by more than chance, and not above 36"
    (asked,) = ask(*made(0.43, 0.36, 0.36), *made(0.39, 0.32, 0.33, epsilon=4.0))
    ((_, (one, two)),) = page.table_lines(asked)
    assert "made with" in "\n".join(outputs.summarise([], [], [asked])), "on a screen, too"
    assert one.words == "not clearly better than guessing on every seed"
    assert (two.made, two.words) == ("made with ε = 1", "not clearly better than guessing on every seed")
    ((_, (none,)),) = page.table_lines(ask(*made(0.40, 0.34, 0.33))[0])
    assert (none.words, none.look) == ("no better than guessing on every seed", "dim")


def test_the_smallest_epsilon_that_has_most_of_the_gain_then_the_least_trust_is_picked() -> None:
    tested = NodeClassificationCellFacts(tested=4_000)
    made = functools.partial(cell, facts=tested)
    cells = [
        made("a", 0.30, epsilon=1.0), made("a", 0.69, epsilon=4.0), made("a", 0.70, epsilon=8.0),
        made("b", 0.68, epsilon=4.0, trust=Trust.SUMS), made("c", 0.50, epsilon=4.0, trust=Trust.OWN_CLIENT),
        made("clear", 0.90, epsilon=math.inf),
    ]  # fmt: skip
    (question,) = ask(*cells)
    assert pick(question) == ("b", 4.0)
    assert list(question.trusts) == [Trust.CURATOR, Trust.SUMS, Trust.OWN_CLIENT]


@pytest.mark.parametrize(
    ("facts", "delta", "words"),
    [
        ({"tested": 7}, 1e-5, "only 7 nodes were tested, at least 100 are needed"), ({"least_class": 19}, 1e-5, "19 nodes"),
        ({}, 0.002, "δ = 0.002"), ({}, 1e-5, ""),
    ],
)  # fmt: skip
def test_few_people_small_classes_and_a_large_delta_conclude_nothing(facts: dict[str, int], delta: float, words: str) -> None:
    told = NodeClassificationCellFacts(**{"tested": 1_000, "least_class": 200} | facts)
    (question,) = ask(cell("one", 1.0, facts=told, delta=delta))
    assert words in question.doubt
    assert (question.pick is None, "nothing can be concluded" in question.found) == (bool(words), bool(words))
    assert not words or "one," not in question.found, "no row is named"


@pytest.mark.parametrize(
    ("one", "title", "covered"),
    [
        ("node", "Edge level: classify the unlabelled nodes of one graph", "one of the 1,000 nodes, drawn"),
        ("person", "Tie level: classify the unlabelled people of one graph", "one of the 1,000 people, drawn"),
        ("graph", "Edge level: classify whole graphs", "one of the 1,000 graphs, drawn"),
    ],
)
def test_the_data_say_what_a_node_is_called(one: str, title: str, covered: str) -> None:
    facts = NodeClassificationCellFacts(one=one, protocol="transductive", tested=500, least_class=50, train_nodes=1_000)
    (row,) = rows(cell("a", 0.7, facts=facts, unit="edge", delta=1e-3))
    (question,) = answer.ask([row])
    said = (*statement.sentences(row), *row.assumptions)
    assert question.title == title
    assert covered in question.strength
    everything = " ".join((question.finding, question.strength, question.title, *said))
    assert ("node" in everything, "edge" in everything.casefold()) == (one == "node", one != "person")


def test_a_row_is_the_answer_only_at_an_epsilon_that_it_provably_keeps() -> None:
    claims = cell("claims", 0.9, provable=math.inf)
    (question,) = ask(claims, cell("sound", 0.5))
    assert pick(question)[0] == "sound"
    (question,) = ask(claims)
    assert question.pick is None
    assert "nothing here can be called private" in question.found
    (question,) = ask(cell("claims", 0.9, epsilon=1.0, provable=3.0), cell("sound", 0.5, epsilon=4.0))
    best = question.within(4.0, Trust.CURATOR)
    assert (question.within(1.0, Trust.CURATOR), best and best.name) == (None, "claims")


def test_a_row_that_reads_the_features_is_no_answer_where_features_are_private() -> None:
    """It releases nothing of an edge, and everything else of a node."""
    free = cell("own-edges", 0.9, provable=0.0, paths={}, unit="edge")
    node, edge = ask(free, cell("private", 0.5), cell("linked", 0.6, unit="edge"))
    assert (node.free, edge.free and edge.free.name) == (None, "own-edges")


def test_units_are_never_mixed() -> None:
    node, edge = ask(cell("edges", 0.9, unit="edge"), cell("nodes", 0.5))
    assert [(q.unit, [r.name for r in q.kept]) for q in (node, edge)] == [("node", ["nodes"]), ("edge", ["edges"])]
    assert (best := node.within(1.0, Trust.CURATOR)) is not None
    assert best.name == "nodes"


def test_less_trust_serves_everybody_and_stands_in_no_column_of_more() -> None:
    (question,) = ask(cell("lpgnn", 0.8, trust=Trust.NOBODY), cell("curated", 0.7))
    assert {best.name for trust in Trust if (best := question.within(1.0, trust))} == {"lpgnn"}
    curator, nobody = page.table_lines(question)
    assert curator[1][0].row is not None
    assert (curator[0], curator[1][0].row.name) == (Trust.CURATOR, "curated")
    assert "less trust does as well: nobody 80" in curator[1][0].words
    assert (nobody[0], nobody[1][0].number, nobody[1][0].look) == (Trust.NOBODY, "80", "best")


def attacked(method: str, right: int, accuracy: float) -> Result:
    facts = NodeClassificationCellFacts(attack=CanaryAttackCellFacts(((500, 200, right),), "guesses", "counting"))
    return cell(method, accuracy, facts=facts, epsilon_measured=0.1)


def test_a_refuted_row_is_said_first_and_never_the_answer() -> None:
    content = page.PageContent(rows_of([attacked("broken", 199, 0.9), attacked("sound", 110, 0.5)]), "t", "l")
    assert content.sentences[0].startswith("CONTRADICTION")
    assert "broken" in content.sentences[0]
    (question,) = content.questions
    assert [row.name for row in question.kept] == ["sound"]
    assert next(row for row in content.rows if row.name == "broken").status.startswith("refuted: an attack shows ε ≥")


def test_a_row_without_a_number_competes_for_nothing_and_is_named() -> None:
    found = rows(cell("lost", math.nan), cell("found", 0.5))
    assert answer.missing(found).startswith("1 of 2 rows have no result and compete for nothing: lost, curator, ε=1")
    (question,) = answer.ask(found)
    assert [row.name for row in question.kept] == ["found"]


def test_where_nothing_private_is_better_than_what_releases_nothing_this_is_said() -> None:
    """Links: a private row keeps ε = 8, and public features alone (ε = 0) are as good: that is not “nothing private”."""
    links = Protection(Relation.NODE_LINKS, Viewer.CURATOR_TRUSTED, (Assumption.FEATURES_LABELS_PUBLIC,))
    facts = LinkPredictionCellFacts(tested=200, negatives=1_000)
    made = functools.partial(cell, accuracy=0.5, epsilon=8.0, facts=facts, protection=links)
    (question,) = ask(
        made("private", metrics={"auc": 0.6}), (free := made("public features", metrics={"auc": 0.8}, provable=0.0, paths={}))
    )
    assert question.pick is None
    assert ask(free, made("private", metrics={"auc": 0.95}))[0].finding.count("0.5 is chance") == 1
    assert (
        "no private row does better than public features, which releases nothing private and reaches AUC 0.80" in question.found
    )
    held = Protection(Relation.NODE_REPLACE, Viewer.WORLD, (Assumption.EDGES_PUBLIC,))
    for good, protected in (
        (made("private", metrics={"auc": 0.9}), "All edges of one node are private; features and labels are public"),
        (
            cell("open", 0.7, protection=held, trust=Trust.NOBODY),
            "One node's features and label are private; its edges are public",
        ),
    ):
        shown = html.unescape(page.render_report_page(page.PageContent(rows_of([good]), "title", "lead")))
        assert f"Protected: {protected}; two worlds are compared" in shown
    assert "one with one node's row and label replaced" in shown


def test_a_private_row_within_chance_of_what_releases_nothing_is_not_recommended() -> None:
    """At ε = 1 the private row is above it by chance alone; at 8 by more, so that this is what the privacy buys."""
    facts = NodeClassificationCellFacts(tested=500)
    made = functools.partial(cell, unit="edge", facts=facts)
    free, low = made("own", 0.760, provable=0.0, paths={}), made("hop", 0.763)
    (question,) = ask(free, low)
    assert question.pick is None
    assert "no private row does better than own, which releases nothing private and is right for 76" in question.found
    (question,) = ask(free, low, made("hop", 0.9, epsilon=8.0))
    assert pick(question, "row")[0] == "hop, curator, ε=8"
    assert "; own, which releases nothing private, is right for 76 of 100" in question.found


def graphs(variant: str, ari: float, epsilon: float = 4.0, **rest: Any) -> Result:
    rest = {"unit": "graph", "trust": Trust.OWN_CLIENT, "metrics": {"ari": ari, "accuracy": 0.3}} | rest
    return cell("local_dp", 0.0, variant=variant, epsilon=epsilon, facts=GraphClusteringCellFacts(clients=120), **rest)


def test_graphs_are_a_question_by_each_metric_and_chance_is_said() -> None:
    by_index, by_class = ask(graphs("labels", 0.02, 1.0), graphs("labels", 0.6), graphs("labels", 0.9, math.inf))
    assert (by_index.head.metric, by_class.head.metric) == ("ari", "accuracy")
    assert by_index.found == (
        "with ε ≤ 4 proven, a federation that trusts no server reaches adjusted Rand index 0.60 (0 is chance, 1 the classes); "
        "without privacy 0.90."
    )
    (nothing, *_) = ask(graphs("labels", 0.02, 1.0))
    assert nothing.found == "nothing to use: the best row reaches adjusted Rand index 0.02 (0 is chance, 1 the classes)."


def test_a_row_that_learnt_nothing_is_not_recommended() -> None:
    """The largest class alone is right for 70 of 100; an AUC of 0.53 of 200 hidden edges may be chance, one of 0.7 is not."""
    guess = cell("a", 0.7, metrics={"accuracy": 0.71, "majority_share": 0.7}, facts=NodeClassificationCellFacts(tested=400))
    tied = [
        cell(name, 0.5, epsilon=epsilon, metrics={"auc": area}, facts=LinkPredictionCellFacts(tested=200, negatives=1_000))
        for name, epsilon, area in (("low", 1.0, 0.53), ("high", 8.0, 0.7))
    ]
    best = "nothing to use: the best row is right for 71 of 100 (66 to 75)"
    assert ask(guess)[0].found == f"{best}, and naming the largest class always is right for 70."
    assert ask(tied[0])[0].found == "nothing to use: the best row reaches AUC 0.53 (0.48 to 0.58; 0.5 is chance)."
    assert pick(ask(*tied)[0]) == ("high", 8.0)


def test_a_precision_has_an_interval_and_alerts_are_said() -> None:
    """10 of 100 are of the class: of 400 tested, 0.14 is no more than chance, and 0.5 is (Boyd, Eng & Page, 2013)."""
    facts, rare = NodeClassificationCellFacts(tested=400), {"accuracy": 0.9, "majority_share": 0.9, "precision_at_alerts": 0.6}
    for precision, use in ((0.14, False), (0.5, True)):
        (question,) = ask(cell("a", 0.9, metrics=rare | {"average_precision_positive": precision}, facts=facts))
        assert (question.pick is not None) == use
        assert ("is right in 60 of 100 alerts (average precision 0.50; 0.35 to 0.65)" in question.found) == use


def test_no_two_questions_have_one_title() -> None:
    """By two metrics, on two splits, on other data, or with other people public, where the words for the task do not say so."""
    split = functools.partial(NodeClassificationCellFacts, protocol="transductive")
    asking = functools.partial(NodeClassificationCellFacts, protocol="asking", split="random")
    found = ask(
        cell("a", 0.7, facts=split(split="random")), cell("a", 0.7, task="u", facts=split()), cell("a", 0.5, dataset="e"),
        cell("a", 0.7, task="p", facts=asking(public="nothing")), cell("a", 0.7, task="q", facts=asking(public="share 0.1")),
        cell("a", 0.7, task="r", metrics={"accuracy": 0.7, "average_precision_positive": 0.3}, facts=asking(public="nothing")),
    )  # fmt: skip
    assert len({question.title for question in found}) == len(found) == 6
    assert {question.data for question in found} == {"d", "e"}


def test_the_end_of_a_run_is_one_table_of_few_lines() -> None:
    many = [cell("a", 0.5 + e / 100, epsilon=float(e), dataset=f"d{k}", trust=trust)
            for k in range(9) for e in (1, 4) for trust in (Trust.CURATOR, Trust.SUMS)]  # fmt: skip
    lines = outputs.summarise([], [], ask(*many))
    assert len(lines) <= outputs._MOST_LINES + 2
    assert "3 more questions, " in lines[-1]
    assert max(map(len, lines[1:])) <= 100  # of a terminal
    assert any(line.split() == ["sums", "*", "51", "a", "54", "a"] for line in lines)
    few = outputs.summarise([], [], ask(cell("a", 0.5, facts=NodeClassificationCellFacts(tested=7))))
    assert "(right of 100); nothing can be concluded: only 7 nodes" in " ".join(few[1:])
    long = outputs.summarise([], [], ask(cell("a name that is too long for a column of a terminal", 0.5)))
    assert "a name that is too long for a column of a terminal" in " ".join(" ".join(long[1:]).split()), "no name is cut"
    assert max(map(len, long[1:])) <= 100


def test_a_rare_class_is_told_by_what_is_found_of_it() -> None:
    """7 of 100 are of the class. By AUROC ε = 1 has nearly all, by finds it has half: whoever looks for fraud needs ε = 4."""
    found = {"accuracy": 0.93, "majority_share": 0.93, "precision_at_alerts": 0.5}
    facts = NodeClassificationCellFacts(protocol="asking", one="person", tested=1000)
    (question,) = ask(
        *(cell("a", 0.93, epsilon=e, facts=facts, metrics=found | {"auroc": area, "recall_at_alerts": share})
          for e, area, share in ((1, 0.94, 0.35), (4, 0.97, 0.7), (math.inf, 0.99, 1.0)))
    )  # fmt: skip
    assert pick(question)[1] == 4
    assert "finds 70 of 100 of the rare class by looking at as many people as it has (AUROC 0.97; 0.9" in question.finding
    assert "without privacy 100 (AUROC 0.99)" in question.finding
    assert question.finding.count("0.5 is chance") == 1
    assert question.reader.startswith("Who sees answers: each person asks and sees its own alone")
    assert "(AUROC of the rare class)" in " ".join(outputs.summarise([], [], [question])), "what 0.97 is"
    (none,) = ask(cell("a", 0.93, metrics=found | {"auroc": 0.5, "recall_at_alerts": 0.6}, facts=facts))
    assert none.pick is None
