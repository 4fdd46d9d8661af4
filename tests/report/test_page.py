"""Charts, the one table, sweeps and the library of a page, from rows alone."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.page import measure
from fedgraph.cells.result import Result
from fedgraph.cells.task_facts import GraphClassificationCellFacts, LinkPredictionCellFacts, NodeClassificationCellFacts
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer
from fedgraph.report import answer, cards, charts, page, references, statement, sweeps, table_columns
from fedgraph.report.rows import group_rows
from fedgraph.report.sections import base
from fedgraph.report.sections.base import SectionRecords
from fedgraph.worlds.world import world_of_trust
from tests.results import plain_result


def cell(method: str, accuracy: float, epsilon: float = 1.0, **changes: Any) -> Result:
    unit = changes.pop("unit", "node")
    relation = Relation.NODE_REPLACE if unit == "node" else Relation.EDGE_UNDIRECTED
    assumed = () if unit == "node" else (Assumption.FEATURES_LABELS_PUBLIC,)
    price = changes.pop("provable", epsilon)
    held = Protection(relation, Viewer.CURATOR_TRUSTED, assumed)
    made = plain_result(
        "t", "d", method, "default", world_of_trust(Trust.CURATOR),
        "provable", epsilon, 0, {"accuracy": accuracy}, NodeClassificationCellFacts(), held,
        1e-5, None, price, None, "theorem", {"model": price}, (), 0.1, (),
    )  # fmt: skip
    return replace(made, **changes)


def held_by(clients: int) -> NodeClassificationCellFacts:
    return NodeClassificationCellFacts(clients=clients)


def record(label: str, entries: list[Result], dataset: str = "d", **params: Any) -> SectionRecords:
    own = [replace(e, task=label, dataset=dataset) for e in entries]
    return SectionRecords(f"{label}-{dataset}", "node_classification", label, dataset, params, tuple(own), ({},) * len(own))


def test_a_logarithmic_axis_has_few_round_ticks_and_infinity_at_its_edge() -> None:
    line = charts.ChartSeries("a", [0.0007, 0.5, 1, 2, 3, 4, 5, 60, 700, math.inf], [0.0] * 10, [0.0] * 10)
    panel = charts.ChartPanel("", "", (line,), axis="log")
    ticks = panel.ticks()
    assert len(ticks) <= charts._FEW + 1
    near = charts.ChartSeries("a", [0.994, 1.0, 7.9, 8.0, math.inf], [0.0] * 5, [0.0] * 5)
    said = [text for _, text in charts.ChartPanel("", "", (near,), axis="log").ticks()]
    assert said == ["1", "8", "∞"], "7.9 would be written over 8"
    assert ticks[-1][1] == "∞"
    assert [at for at, _ in ticks] == sorted(at for at, _ in ticks)
    assert panel.positions()[math.inf] > panel.positions()[700]


def test_a_figure_is_a_picture_twice_and_data_once() -> None:
    lines = (
        charts.ChartSeries("a", [1.0, math.inf], [0.5, 0.6], [0.1, 0.0]),
        charts.ChartSeries("b", [1.0], [math.nan], [0.0]),
    )
    (figure,) = charts.draw_chart("f", "caption", [charts.ChartPanel("p", "y", lines, (("level", 0.7),))], None)
    assert figure.png.startswith(b"\x89PNG")
    assert "<svg" in figure.svg
    (again,) = charts.draw_chart("f", "caption", [charts.ChartPanel("p", "y", lines, (("level", 0.7),))], None)
    assert figure.svg == again.svg, "repeatable"
    assert figure.spec is not None
    (panel,) = figure.spec["panels"]
    first, second = panel["lines"]
    (x1, y1, low, high, tip), (x2, y2, *bar, _) = first["points"]
    assert x1 < x2
    assert y1 > y2, "upwards is less on a page"
    assert low - y1 == pytest.approx(y1 - high) != 0
    assert bar == [y2, y2], "no bar without a deviation"
    assert (panel["told"], tip) == ("privacy budget ε\ny", "1\n0.500 ± 0.100")
    assert second["points"] == [], "NaN is no point"
    assert all(charts._TOP <= y <= panel["bottom"] for _, y, _ in panel["levels"])


def test_a_single_line_of_three_points_is_no_chart_and_the_best_alone_has_a_colour() -> None:
    three = charts.ChartSeries("a", [1.0, 2.0, 3.0], [0.5, 0.6, 0.7], [0.0] * 3)
    assert charts.draw_chart("f", "c", [charts.ChartPanel("p", "y", (three,))], None) == ()
    other = charts.ChartSeries("b", [1.0, 2.0], [0.4, 0.5], [0.0] * 2)
    (figure,) = charts.draw_chart("f", "c", [charts.ChartPanel("p", "y", (other, three), best=("a",))], None)
    assert figure.spec is not None
    assert [(line["names"], line["colour"]) for line in figure.spec["panels"][0]["lines"]] == [(("b",), "grey"), (("a",), "c0")]


def test_panels_never_mix_units() -> None:
    cells = [cell(name, 0.4, epsilon, unit=unit) for name, unit in (("e", "edge"), ("n", "node")) for epsilon in (1.0, 8.0)]
    cells.append(cell("clear", 0.9, math.inf, unit="edge"))
    (figure,), _ = cards.draw_card_figures(answer.find_answer(group_rows(cells)), None)
    assert figure.spec is not None
    shown = {p["title"]: {line["names"][0] for line in p["lines"]} for p in figure.spec["panels"]}
    assert shown == {"edge level": {"e", "clear"}, "node level": {"n", "clear"}}, "a row in clear is a ceiling everywhere"


def test_a_question_without_a_private_answer_has_no_chart_on_the_first_screen() -> None:
    answered = answer.find_answer(group_rows([cell("a", 0.5, provable=math.inf)]))
    assert cards.draw_card_figures(answered, None) == ((), ())
    (card,) = cards.make_cards(answered)
    assert (card.use, card.prices) == ((), ())
    assert "nothing here can be called private" in card.right


def test_a_card_takes_the_smallest_epsilon_and_the_least_trust_that_chance_cannot_tell_from_the_best() -> None:
    tested = NodeClassificationCellFacts(tested=400)
    sums = Protection(
        Relation.NODE_REPLACE,
        Viewer.SERVER_SECURE_AGGREGATION,
        (Assumption.IDEAL_SECURE_AGGREGATION, Assumption.ONE_COLLUDER, Assumption.TEST_GRAPH_PUBLIC),
    )
    cells = [
        cell("a", 0.50, 1.0, facts=tested),
        cell("a", 0.69, 4.0, facts=tested),
        cell("a", 0.70, 8.0, facts=tested),
        cell("a", 0.68, 4.0, facts=tested, protection=sums, world=world_of_trust(Trust.SUMS)),
        cell("clear", 0.90, math.inf, facts=tested),
    ]
    (card,) = cards.make_cards(answer.find_answer(group_rows(cells)))
    assert card.use == ("a", Trust.SUMS.title, "ε ≤ 4")
    assert card.right == "Right for 68 of 100 (63 to 72, tested on 400 nodes)."
    assert card.without == "Without privacy: right for 90 of 100 (clear)."
    assert card.costs.startswith("privacy: 22 of 100 right answers; ε ≤ 1: ")
    assert card.costs.endswith("; a larger ε or more trust gains nothing beyond chance")
    assert "test nodes and the edges among them are public" in card.rests or "secure aggregation" in card.rests
    assert [budget for budget, _ in card.prices] == ["1", "4", "8"]


def test_a_row_that_learnt_nothing_is_not_recommended() -> None:
    """The largest class alone is right for 70 of 100; an AUC of 0.53 of 200 hidden edges may be chance, one of 0.7 is not."""
    guess = cell("a", 0.7, metrics={"accuracy": 0.71, "majority_share": 0.7}, facts=NodeClassificationCellFacts(tested=400))
    tied = [
        cell(name, 0.5, epsilon, metrics={"auc": area}, facts=LinkPredictionCellFacts(tested=200, negatives=1_000))
        for name, epsilon, area in (("low", 1.0, 0.53), ("high", 8.0, 0.7))
    ]
    for entries, use, right in (
        ([guess], (), "Nothing to use: right for 71 of 100 at most, and naming the largest class always would be for 70"),
        (tied[:1], (), "Nothing to use: area under the ROC curve of hidden edges 0.53 at most, and 0.5 is chance"),
        (tied, ("high", Trust.CURATOR.title, "ε ≤ 8"), "Area under the ROC curve of hidden edges 0.70"),
    ):
        (card,) = cards.make_cards(answer.find_answer(group_rows(entries)))
        assert card.use == use
        assert card.right.startswith(right)
    said = " ".join(answer.find_answer(group_rows(tied[:1])).sentences)
    assert "low has 0.53" in said
    assert "none of these differs from it by more than chance" in said


def test_what_an_epsilon_lets_others_guess_is_never_said_too_small() -> None:
    entries = [cell("a", 0.7, epsilon, facts=NodeClassificationCellFacts(tested=400)) for epsilon in (1.0, 8.0)]
    note = cards.explain_card_prices(cards.make_cards(answer.find_answer(group_rows(entries))))
    assert "at most (but for δ): 2.8 times at ε = 1, 2,981 at 8." in note
    two = [cards.Card("", "", "", "", (), False, prices=tuple((e, ()) for e in own)) for own in (("1", "16"), ("0.5",))]
    assert cards.explain_card_prices(two).endswith("at most (but for δ): 2.8 times at ε = 1, 1.7 times at ε = 0.5.")


def test_questions_about_whole_graphs_stand_aside_where_others_are_about_nodes() -> None:
    graphs = [cell("g", 0.9, facts=GraphClassificationCellFacts(), task="graphs", dataset="e")]
    alone = cards.make_cards(answer.find_answer(group_rows(graphs)))
    both = cards.make_cards(answer.find_answer(group_rows([*graphs, cell("n", 0.5)])))
    assert [card.aside for card in alone] == [False]
    assert [card.aside for card in both] == [False, True]


def test_the_table_shows_infinity_and_no_plus_minus_for_one_seed() -> None:
    scores = answer.find_answer(group_rows([cell("a", 0.5, provable=math.inf)])).scores
    ((_, cells),) = table_columns.fill_page_columns(scores)
    told = dict(zip((c.key for c in table_columns.list_page_columns(scores)), cells, strict=True))
    assert told["epsilon_provable"].text == "∞"
    assert "Nothing is guaranteed" in told["epsilon_provable"].tip
    assert told["mean"].text == "0.500"
    assert "dataset" not in told, "one data set needs no column"


def test_one_setting_that_varies_is_on_the_axis() -> None:
    parts = [record(f"{c}", [cell("a", 0.5 + c / 100, facts=held_by(c))], partition={"clients": c}) for c in (2, 5, 7, 10)]
    (sweep,) = sweeps.group_sweeps(parts)
    assert (sweep.thing, sweep.at) == ("clients", (2.0, 5.0, 7.0, 10.0))
    (figure,), (table,) = sweeps.draw_sweep(sweep, None)
    assert figure.spec is not None
    assert [label for _, label in figure.spec["panels"][0]["ticks"]] == [["2"], ["5"], ["7"], ["10"]]
    assert table.rows[0][-4:] == ("0.520", "0.550", "0.570", "0.600")


def test_clients_are_the_axis_where_several_settings_follow_them() -> None:
    parts = [
        record("one", [cell("a", 0.5, facts=held_by(1))], trust=["curator"]),
        record("many", [cell("a", 0.4, facts=held_by(10))], trust=["own-client"], partition={"clients": 10}),
    ]
    assert sweeps.group_sweeps(parts)[0].thing == "number of clients"


def test_data_sets_are_the_axis_of_one_task() -> None:
    parts = [record("t", [cell("a", 0.5)], "one"), record("t", [cell("a", 0.6)], "two")]
    (sweep,) = sweeps.group_sweeps(parts)
    assert (sweep.thing, sweep.at) == ("data set", ("one", "two"))
    assert sweeps.draw_sweep(sweep, None)[1][0].header[-2:] == ("one", "two")


def test_a_share_that_varies_between_the_methods_of_one_task_is_on_the_axis() -> None:
    methods = [{"method": "m", "split": s, "label": f"split {s}"} for s in (0.1, 0.2, 0.3, 0.5)]
    entries = [cell("m", 0.5 + s["split"], variant=s["label"]) for s in methods]
    part = record("t", entries, methods=methods)
    assert list(sweeps._varied_within(part)) == ["split"]
    (figure,), _ = sweeps.draw_sweep(sweeps.group_sweeps([part])[0], None)
    assert figure.spec is not None
    assert figure.spec["panels"][0]["xlabel"] == "split"
    assert len(figure.spec["panels"][0]["lines"]) == 1


def test_what_varies_between_methods_is_the_axis_on_every_data_set() -> None:
    """Steps as lists of one number, ∞ among them; a row without them stands on no line; a second setting has its own line."""
    methods = [
        *({"method": "m", "steps": [n], "label": f"{n}"} for n in (1, 5, "inf")),
        *({"method": "m", "steps": [n], "prior": 0, "label": f"{n}, no prior"} for n in (1, 5)),
        {"method": "m", "label": "none"},
        {"method": "m", "steps": [1, 2], "label": "both"},
    ]
    entries = [cell("m", 0.5 + i / 100, variant=s["label"]) for i, s in enumerate(methods)]
    parts = [record("t", entries, name, methods=methods) for name in ("one", "two")]
    (sweep,) = sweeps.group_sweeps(parts)
    assert (sweep.thing, sweep.at) == ("steps", ("one", "two"))
    (figure,), (table,) = sweeps.draw_sweep(sweep, None)
    assert figure.spec is not None
    assert len(figure.spec["panels"]) == 2
    first = figure.spec["panels"][0]
    assert [label for _, label in first["ticks"]] == [["1"], ["5"], ["∞"]]
    assert [len(line["points"]) for line in first["lines"]] == [3, 2]
    assert {line["names"][0] for line in first["lines"]} == {"m · prior default", "m · prior 0"}
    assert table.header[-1] == "steps = ∞"


def test_two_values_are_no_axis() -> None:
    methods = [{"method": "m", "hops": n, "label": f"{n}"} for n in (1, 2)]
    assert sweeps._varied_within(record("t", [cell("m", 0.5, variant=s["label"]) for s in methods], methods=methods)) == {}


def test_a_table_of_short_columns_stays_a_table_and_a_wide_one_becomes_cards() -> None:
    short = base.SectionTable("t", tuple("abcdefgh"), (tuple(f"{x}.123" for x in range(8)),))
    wide = base.SectionTable("t", tuple("abcdefgh"), (tuple("a sentence of some words" for _ in range(8)),))
    assert (page._is_wide(short), page._is_wide(wide)) == (False, True)
    assert page._word_columns(base.SectionTable("t", ("a", "b", "c"), (("x", "1", "—"), ("“y”", "2 ± 1", "")))) == frozenset(
        {0}
    )


def test_trust_has_one_symbol_in_every_figure() -> None:
    """The order in which rows are met does not decide which symbol means whom."""
    seen = []
    for viewers in ((Viewer.SERVER, Viewer.CURATOR_TRUSTED), (Viewer.CURATOR_TRUSTED, Viewer.SERVER)):
        entries = [
            cell(name, 0.5, epsilon, protection=Protection(Relation.NODE_REPLACE, viewer, ()))
            for name, viewer in zip("ab", viewers, strict=True)
            for epsilon in (1.0, 8.0)
        ]
        (figure,), _ = cards.draw_card_figures(answer.find_answer(group_rows(entries)), None)
        assert figure.spec is not None
        (group,) = [g for g in figure.spec["legend"] if g["title"] == "Whom it trusts"]
        seen.append([(e["label"], e["symbol"]) for e in group["entries"]])
    assert seen[0] == seen[1]
    assert [label for label, _ in seen[0]] == ["curator", "own-client"]


def test_tasks_with_other_rows_stand_alone() -> None:
    assert len(sweeps.group_sweeps([record("a", [cell("x", 0.5)]), record("b", [cell("y", 0.5)])])) == 2


def test_every_kind_of_task_has_a_section() -> None:
    from fedgraph import plugins

    told = {kind for name in plugins.names("report.sections") for kind in plugins.load("report.sections", name).KINDS}
    assert set(plugins.names("tasks")) <= told
    nothing = SectionRecords("n", "a kind of its own", "t", "d", {}, (cell("a", 0.5),), ({},))
    assert base.build_sections(nothing, None) == base.Section((), (), ())


def test_every_method_names_a_paper_that_can_be_followed() -> None:
    from fedgraph import plugins

    for name in plugins.names("methods"):
        found = references.find_method_references(name)
        assert found, name
        assert references.describe_referenced_method(name)
        for reference in found:
            assert reference.doi is None or re.fullmatch(r"10\.\d{4,}/\S+", reference.doi), reference
    methods, datasets, papers = page._page_library(group_rows([cell("features", 0.5, dataset="planetoid/cora")]), {}, [])
    assert set(methods[0].references) | set(datasets[0].references) <= {r.key for r in papers}
    assert list(methods[0].rows.values()) == list(datasets[0].rows.values())


def test_text_cannot_break_out_of_the_page() -> None:
    spec = page._embed_json({"label": "</script><script>alert(1)</script>"})
    assert "<" not in spec
    bad = [cell(f'"><i>{name}', 0.5, epsilon) for name in "ab" for epsilon in (1.0, 8.0)]
    text = page.render_page_of_runs(group_rows(bad), ["one"])
    assert "svg role=img" in text or 'svg role="img"' in text
    assert "<i>" not in text


def test_a_statement_keeps_the_notes_of_its_plan() -> None:
    row = group_rows([cell("a", 0.5, notes=("Mind the gap.",)), cell("a", 0.6, seed=1, notes=("Mind the gap.",))])[0]
    said = statement.make_statement(row)
    assert said.notes == ("Mind the gap.",)
    assert "one run" in said.sentences[-1]


def test_a_page_stays_light() -> None:
    """Goals: 600 kB and 8,000 words for the main job with about 180 rows; here 2.5 kB a row beside 45 kB for each page."""
    facts = NodeClassificationCellFacts(protocol="inductive", split="random", train_nodes=100, tested=400)
    rows = [
        cell(
            f"method{m}",
            0.5 + m / 100 + min(epsilon, 16) / 100,
            epsilon,
            seed=seed,
            protection=held,
            world=world_of_trust(trust),
            facts=facts,
        )
        for m in range(5)
        for trust in (Trust.CURATOR, Trust.OWN_CLIENT)
        for held in [Protection(Relation.NODE_REPLACE, trust.viewer, (Assumption.COUNTS_PUBLIC, Assumption.UNTUNED))]
        for epsilon in (1.0, 4.0, 8.0, math.inf)
        for seed in range(2)
    ]
    parts = [record("t", rows)]
    grouped = group_rows(parts[0].entries)
    assert len(grouped) == 40
    text = page.render_report_page(page.make_page_content(grouped, "title", "lead", None, parts))
    size, words = measure(text)
    assert size <= 45_000 + 2_500 * 40
    assert words <= 2_500
    assert measure("<p>one two<details><summary>three</summary>four<details><summary>5</summary>6</details></details>")[1] == 3


def test_a_rare_class_is_told_by_what_is_found_of_it() -> None:
    """7 of 100 are of the class: a row that ranks them with AUROC 0.89 is something to use, one with 0.5 is not."""
    found = {"accuracy": 0.93, "majority_share": 0.93, "auroc": 0.89, "recall_at_alerts": 0.6, "precision_at_alerts": 0.6}
    facts = NodeClassificationCellFacts(tested=1_000)
    for area, use in ((0.89, True), (0.5, False)):
        entry = cell("a", 0.93, metrics={**found, "auroc": area}, facts=facts)
        (card,) = cards.make_cards(answer.find_answer(group_rows([entry])))
        assert bool(card.use) == use
        assert card.right.startswith("Of as many as are of the rare class, finds 60 of 100 of it") == use
        assert card.right.startswith("Nothing to use") != use


def test_where_nothing_private_is_better_than_what_releases_nothing_the_card_says_so() -> None:
    """Links: a private row keeps ε = 8, and public features alone (ε = 0) are as good: that is not “nothing private”."""
    links = Protection(Relation.NODE_LINKS, Viewer.CURATOR_TRUSTED, (Assumption.FEATURES_LABELS_PUBLIC,))
    facts = LinkPredictionCellFacts(tested=200, negatives=1_000)
    cells = [
        cell("private", 0.5, 8.0, metrics={"auc": 0.6}, facts=facts, protection=links),
        cell("public features", 0.5, 8.0, metrics={"auc": 0.8}, facts=facts, protection=links, provable=0.0, paths={}),
    ]
    (card,) = cards.make_cards(answer.find_answer(group_rows(cells)))
    assert card.right.startswith("No private row does better than public features, which releases nothing private (ε = 0)")
    assert card.unit == "Node level: all edges of one node are private; features and labels are public"
