"""Charts, the one table, sweeps and the library of a page, from rows alone."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import yaml

from benchmarks.page import measure
from fedgraph.cells.result import Result
from fedgraph.cells.task_facts import GraphClusteringCellFacts, NodeClassificationCellFacts
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Assumption, Protection, Relation
from fedgraph.report import charts, page, plots, references, statement, sweeps
from fedgraph.report import rows as found_rows
from fedgraph.report.phrases import read_phrase_asset
from fedgraph.report.sections import base
from fedgraph.report.sections.base import SectionRecords
from fedgraph.worlds.world import world_of_trust
from tests.report.test_answer import ask, cell


def held_by(clients: int) -> NodeClassificationCellFacts:
    return NodeClassificationCellFacts(clients=clients)


def record(label: str, entries: list[Result], dataset: str = "d", **params: Any) -> SectionRecords:
    own = [replace(e, task=label, dataset=dataset) for e in entries]
    return SectionRecords(f"{label}-{dataset}", "node_classification", label, dataset, params, tuple(own), ({},) * len(own))


def content(*cells: Result, notices: tuple[str, ...] = (), records: tuple[SectionRecords, ...] = ()) -> page.PageContent:
    rows = found_rows.group_rows(list(cells))
    return page.make_page_content(rows, "title", "lead", notices, records)


def marks(spec: Any, kind: str) -> list[dict[str, Any]]:
    """The data of every layer with a mark of this kind."""
    layers = [layer for layer in spec["layer"] if layer["mark"]["type"] == kind]
    return [point for layer in layers for point in spec["datasets"][layer.get("data", spec.get("data"))["name"]]]


def test_a_panel_has_one_line_for_each_trust_labelled_at_its_end_and_the_others_are_light() -> None:
    cells = [
        cell(name, accuracy + e / 100, epsilon=float(e), trust=trust, seed=seed)
        for name, trust, accuracy in (("a", Trust.CURATOR, 0.7), ("b", Trust.SUMS, 0.6), ("weak", Trust.SUMS, 0.3))
        for e in (1, 8) for seed in (0, 1)
    ]  # fmt: skip
    (question,) = ask(*cells, cell("clear", 0.9, epsilon=math.inf, metrics={"accuracy": 0.9, "majority_share": 0.2}))
    (spec,) = charts.PlotFigure("f", "", (charts.draw_question(question),)).specs
    said = [point["label"] for point in marks(spec, "text")]
    assert {"curator", "sums", "without privacy 90 (clear)", "largest class 20"} <= set(said)
    lines = {point["row"] for layer in spec["layer"] if layer["mark"]["type"] == "line" and "color" in layer["encoding"]
             for point in spec["datasets"][layer["data"]["name"]]}  # fmt: skip
    heights = {point["label"]: point["y"] for point in marks(spec, "text")}
    assert abs(heights["curator"] - heights["sums"]) > 0.05 * (90 - 20)
    assert all(abs(heights[trust] - heights["without privacy 90 (clear)"]) > 2 for trust in ("curator", "sums"))
    assert lines == {"a, curator, ε=1", "a, curator, ε=8", "b, sums, ε=1", "b, sums, ε=8"}
    assert {point["row"] for point in marks(spec, "point")} >= {"weak, sums, ε=1"}
    asked = spec["layer"][1]["encoding"]["tooltip"]
    assert [one["title"] for one in asked] == ["row", "method", "result", "ε provable", "ε published", "trust", "if"]


def test_a_figure_is_a_picture_twice_and_repeats() -> None:
    points = [
        charts.ChartPoint("p", "y", "a", 1.0, 0.5, 0.1),
        charts.ChartPoint("p", "y", "a", math.inf, 0.6),
        charts.ChartPoint("p", "y", "b", 1.0, math.nan),
    ]
    made = [
        charts.draw_lines("f", "caption", points, "DATA ARE GENERATED", across="x", levels={"p": [("level", 0.7)]})[0]
        for _ in range(2)
    ]
    assert made[0].png.startswith(b"\x89PNG")
    assert made[0].svg.startswith("<svg")
    assert "DATA ARE GENERATED" in made[0].svg
    assert made[0].svg == made[1].svg
    (spec,) = made[0].specs
    assert spec["width"] == "container"
    assert sorted((p["x"], p["y"], round(p["high"] - p["low"], 3)) for p in marks(spec, "point")) == [
        ("1", 0.5, 0.2),
        ("∞", 0.6, 0.0),
    ]


def test_a_matrix_of_many_clients_is_a_picture() -> None:
    """80 × 80 marks are more than altair draws unasked; the page shows the picture."""
    matrix = plots.plot_heatmap(np.abs(np.subtract.outer(np.arange(80), np.arange(80))), "t", "x", "y", [40])
    figure = plots.PlotFigure("f", "c", (matrix,), live=False)
    assert figure.png.startswith(b"\x89PNG")
    assert figure.jpeg.startswith(b"\xff\xd8")
    assert len(figure.jpeg) < 40_000


def test_a_single_point_is_no_chart() -> None:
    one = charts.ChartPoint("p", "y", "a", 1.0, 0.5)
    assert charts.draw_lines("f", "c", [one], None, across="x") == charts.draw_lines("f", "c", [], None, across="x") == ()
    two = [replace(one, panel="q", line=line, x=x) for line in "ab" for x in (1.0, 2.0)]
    (figure,) = charts.draw_lines("f", "c", [one, *two], None, across="x")
    assert len(figure.panels) == 1


def test_panels_never_mix_units() -> None:
    cells = [
        cell(name, 0.4, epsilon=epsilon, unit=unit) for name, unit in (("e", "edge"), ("n", "node")) for epsilon in (1.0, 8.0)
    ]
    cells.append(cell("clear", 0.9, epsilon=math.inf, unit="edge"))
    questions = ask(*cells)
    assert [{row.short for row in q.kept} for q in questions] == [{"n"}, {"e"}]
    assert [q.ceiling and q.ceiling.short for q in questions] == ["clear", "clear"], "a row in clear is a ceiling everywhere"


def test_a_question_without_a_private_answer_has_no_picture() -> None:
    made = content(cell("a", 0.5, provable=math.inf))
    assert made.picture is None
    assert "nothing here can be called private" in page.render_report_page(made)


def test_questions_about_whole_graphs_come_after_those_about_nodes() -> None:
    facts = GraphClusteringCellFacts(clients=200)
    graph = cell("g", 0.9, facts=facts, task="graphs", dataset="e", unit="graph", trust=Trust.OWN_CLIENT)
    assert [q.of_graphs for q in ask(graph, cell("n", 0.5))] == [False, True]


def test_the_page_says_the_finding_once_and_what_to_type() -> None:
    made = replace(content(cell("features", 0.5), cell("features", 0.6, epsilon=8.0)), folder="runs/a")
    text = page.render_report_page(made)
    title = re.search(r"<h1>(.*?)</h1>", text, re.S)
    assert title is not None
    assert "with ε ≤ 1 proven, one trusted curator is right for 50 of 100" in title[1]
    body = text[text.index("<body") : text.index('id="specs"')]
    assert body.count("proven, one trusted curator is right for") == 1
    typed = [line for line, _ in page.commands(made)]
    assert typed[0] == 'fedgraph fit runs/a "features, curator, ε=1" -o model.fedgraph'
    assert typed[1:] == ['fedgraph sheet runs/a "features, curator, ε=1"', "fedgraph explain runs/a"]


def test_commands_run_as_they_stand() -> None:
    """A row that takes a test graph as public is fit with a graph of other people; names may hold what a shell would read."""
    facts = NodeClassificationCellFacts(protocol="inductive", split="random", public="test-graph")
    made = replace(content(cell("features", 0.5, facts=facts)), folder="runs/my $HOME")
    typed = [line for line, _ in page.commands(made)]
    assert typed[0] == "fedgraph fit 'runs/my $HOME' \"features, curator, ε=1\" --public GRAPH -o model.fedgraph"


def test_after_a_shrunk_run_the_whole_one_comes_first_and_nothing_is_recommended_yet() -> None:
    short = replace(
        content(cell("features", 0.5), notices=("SHORT RUN",)),
        made=page.PageHowMade((("Command", "fedgraph run 'my card.yaml' --quick --out runs/a --seeds 2"),)),
    )
    assert page.commands(short)[0][0] == "fedgraph run 'my card.yaml' --seeds 2"
    assert 'data-say="would be recommended"' in page.render_report_page(short)


def test_what_is_signed_stands_before_the_picture() -> None:
    """Unit, relation, δ, whom one trusts, and how many conditions there are."""
    text = page.render_report_page(content(cell("features", 0.5, trust=Trust.SUMS)))
    header = text[text.index("<header>") : text.index("</header>")]
    assert "One node with its features, label and edges is private (relation: node-replace)" in header
    assert Trust.SUMS.words in header
    assert re.search(r'Row: <a href="#[^"]+">features, sums, ε=1</a>', header), "what it was reached by, as one types it"
    assert "δ = 0.00001" in header
    assert "It holds only if 2 conditions do" in header


def test_the_table_says_what_its_numbers_are() -> None:
    rare = {"accuracy": 0.93, "majority_share": 0.93, "auroc": 0.89, "recall_at_alerts": 0.6, "precision_at_alerts": 0.6}
    head = '<tr class="head"><th scope="col">Node level<small>AUROC of the rare class</small>'
    assert head in page.render_report_page(content(cell("a", 0.93, metrics=rare)))
    assert head not in page.render_report_page(content(cell("a", 0.93)))


def test_pictures_beyond_the_weight_of_a_page_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    maps = [plots.PlotFigure(f"map-{k}", "Map.", (plots.plot_heatmap(np.eye(3), "", "a", "b"),), live=False) for k in (1, 2)]
    monkeypatch.setattr(page, "_PICTURES", len(page._embed(maps[0].jpeg)))
    one = cell("features", 0.5, facts=NodeClassificationCellFacts(clients=3, protocol="inductive", split="random"))
    made = content(one, records=(record("t", [one]),))
    (chapter,) = made.chapters
    part = replace(chapter.parts[0], section=replace(chapter.parts[0].section, figures=tuple(maps)))
    text = page.render_report_page(replace(made, chapters=(replace(chapter, parts=(part,)),)))
    assert text.count('<img alt="Map."') == 1
    assert '<a href="map-2.png">' in text


def test_conditions_beyond_three_are_folded_in_place() -> None:
    assumed = (Assumption.COUNTS_PUBLIC, Assumption.SPLIT_PUBLIC, Assumption.UNTUNED, Assumption.TEST_GRAPH_PUBLIC)
    held = Protection(Relation.NODE_REPLACE, Trust.CURATOR.viewer, assumed)
    ((_, first, others),) = page.picked_conditions(content(cell("a", 0.5, protection=held)))
    assert (len(first), others) == (3, (Assumption.UNTUNED.words,))
    assert first[0] == Assumption.TEST_GRAPH_PUBLIC.words
    assert "<summary>1 more</summary>" in page.render_report_page(content(cell("a", 0.5, protection=held)))


def test_somebodys_own_data_are_told_as_they_were_read() -> None:
    rows = found_rows.group_rows([cell("a", 0.5)])
    read = {"d": page.PageDataset("d: 10 people", ("label: column group", "column id was dropped"))}
    text = page.render_report_page(page.make_page_content(rows, "t", "l", [], (), read))
    assert "<li>Label: column group" in text
    assert "<li>Column id was dropped" in text


def test_one_setting_that_varies_is_on_the_axis() -> None:
    parts = [record(f"{c}", [cell("a", 0.5 + c / 100, facts=held_by(c))], partition={"clients": c}) for c in (2, 5, 7, 10)]
    (sweep,) = sweeps.group_sweeps(parts)
    assert (sweep.thing, sweep.at) == ("clients", (2.0, 5.0, 7.0, 10.0))
    (figure,), (table,) = sweeps.draw_sweep(sweep, None)
    assert [p["x"] for p in marks(figure.specs[0], "point")] == ["2", "5", "7", "10"]
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
    facts = NodeClassificationCellFacts(protocol="inductive")
    entries = [cell("m", 0.5 + s["split"], variant=s["label"], facts=facts) for s in methods]
    part = record("t", entries, methods=methods)
    assert list(sweeps._varied_within(part)) == ["split"]
    (figure,), _ = sweeps.draw_sweep(sweeps.group_sweeps([part])[0], None)
    assert f'id="figure-{figure.name}"' in page.render_report_page(content(*part.entries, records=(part,)))
    assert {p["line"] for p in marks(figure.specs[0], "point")} == {"m — curator"}


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
    assert len(figure.specs) == 2
    points = [(p["colour"], p["x"]) for p in marks(figure.specs[0], "point")]
    assert points == [*(("m · prior default", x) for x in ("1", "5", "∞")), *(("m · prior 0", x) for x in ("1", "5"))]
    assert table.header[-1] == "steps = ∞"


def test_two_values_are_no_axis() -> None:
    methods = [{"method": "m", "hops": n, "label": f"{n}"} for n in (1, 2)]
    part = record("t", [cell("m", 0.5, variant=s["label"]) for s in methods], methods=methods)
    assert sweeps._varied_within(part) == {}
    assert list(sweeps._varied_within(replace(part, short=True))) == ["hops"], "--quick keeps the outer two"


def test_columns_of_words_are_told_from_columns_of_numbers() -> None:
    assert page._word_columns(base.SectionTable("t", ("a", "b", "c"), (("x", "1", "—"), ("“y”", "2 ± 1", "")))) == frozenset(
        {0}
    )


def test_tasks_with_other_rows_stand_alone() -> None:
    assert len(sweeps.group_sweeps([record("a", [cell("x", 0.5)]), record("b", [cell("y", 0.5)])])) == 2


def test_every_kind_of_task_says_what_its_table_has() -> None:
    from fedgraph import plugins

    assert {*plugins.names("tasks"), "participation"} == set(yaml.safe_load(read_phrase_asset("templates/tasks.yaml")))
    nothing = SectionRecords("n", "a kind of its own", "t", "d", {}, (cell("a", 0.5),), ({},))
    assert base.build_sections(nothing, None) == base.Section()


def test_every_method_names_a_paper_that_can_be_followed() -> None:
    from fedgraph import plugins

    for name in plugins.names("methods"):
        found = references.find_method_references(name)
        assert found, name
        assert references.describe_referenced_method(name)
        for reference in found:
            assert reference.doi is None or re.fullmatch(r"10\.\d{4,}/\S+", reference.doi), reference
    rows = found_rows.group_rows([cell("features", 0.5, dataset="planetoid/cora")])
    methods, datasets, papers = page._page_library(rows, {}, [])
    assert set(methods[0].references) | set(datasets[0].references) <= {r.key for r in papers}


def test_text_cannot_break_out_of_the_page() -> None:
    bad = [cell(f'"></script><i>{name}', 0.5, epsilon=epsilon) for name in "ab" for epsilon in (1.0, 8.0)]
    text = page.render_page_of_runs(found_rows.group_rows(bad), ["one"])
    assert "<i>" not in text
    assert text.count("</script>") == 3


def test_a_statement_keeps_the_notes_of_its_plan() -> None:
    row = found_rows.group_rows([cell("a", 0.5, notes=("Mind the gap.",)), cell("a", 0.6, seed=1, notes=("Mind the gap.",))])[0]
    said = statement.make_statement(row)
    assert said.notes == ("Mind the gap.",)
    assert "one run" in said.sentences[-1]


@pytest.fixture(scope="module")
def big() -> str:
    """A page of 40 rows with two seeds."""
    facts = NodeClassificationCellFacts(protocol="inductive", split="random", train_nodes=100, tested=400)
    cells = [
        cell(f"method{m}", 0.5 + m / 100 + min(epsilon, 16) / 100, epsilon=epsilon, seed=seed, protection=held,
             world=world_of_trust(trust), facts=facts)
        for m in range(5)
        for trust in (Trust.CURATOR, Trust.OWN_CLIENT)
        for held in [Protection(Relation.NODE_REPLACE, trust.viewer, (Assumption.COUNTS_PUBLIC, Assumption.UNTUNED))]
        for epsilon in (1.0, 4.0, 8.0, math.inf)
        for seed in range(2)
    ]  # fmt: skip
    return page.render_report_page(content(*cells, records=(record("t", cells),)))


def test_a_page_stays_light(big: str) -> None:
    """Goals: 2 MB for the main job, and 2,000 words before anything is unfolded; the scripts that draw are 0.9 MB of it."""
    size, words = measure(big)
    assert size - len(page._drawer().encode()) <= 200_000
    assert words <= 600
    assert measure("<p>one two<details><summary>three</summary>four<details><summary>5</summary>6</details></details>")[1] == 3


def test_every_link_of_a_page_leads_somewhere(big: str) -> None:
    body = big[: big.index('id="specs"')]
    ids = re.findall(r'\sid="([^"]+)"', body)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', body)) <= set(ids)


def test_a_column_that_tells_the_label_is_said_on_the_first_screen_and_in_no_letter() -> None:
    doubt = "column blocked alone tells the label of 60 of 60 people, and may have been written after the fact"
    read = {"d": page.PageDataset("d: 60 people", (doubt,), (doubt,))}
    made = page.make_page_content(found_rows.group_rows([cell("a", 0.7)]), "title", "lead", (), (), read)
    first, _, _ = page.render_report_page(made).partition("</header>")
    assert f"<b>Look at the data first: </b>{doubt}." in first
    assert f"Look at the data first: {doubt}." in made.sentences
    assert made.notices == ()
