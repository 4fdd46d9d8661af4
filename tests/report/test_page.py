"""Charts, the one table, sweeps and the library of a page, from rows alone."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vl_convert

from benchmarks.page import measure
from fedgraph.cells.result import Result
from fedgraph.cells.task_facts import NodeClassificationCellFacts
from fedgraph.federation import world_of_trust
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Assumption, Protection, Relation
from fedgraph.report import charts, page
from fedgraph.report.sections.base import SectionRecords, draw_settings
from fedgraph.report.table import rows_of
from fedgraph.types import WRITTEN_AFTER, Graph, GraphProvenance
from tests.report.test_answer import ask, cell


def record(label: str, entries: list[Result], dataset: str = "d", **params: Any) -> SectionRecords:
    own = [replace(e, task=label, dataset=dataset) for e in entries]
    return SectionRecords("node_classification", label, dataset, params, tuple(own))


def content(*cells: Result, notices: tuple[str, ...] = (), records: tuple[SectionRecords, ...] = ()) -> page.PageContent:
    return page.PageContent(rows_of(list(cells)), "title", "lead", notices, records)


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
    (spec,) = charts.Figure("", (charts.draw_question(question),)).specs
    said = [point["label"] for point in marks(spec, "text")]
    assert {"curator", "sums", "without privacy 90 (clear)", "largest class 20"} <= set(said)
    lines = {point["row"] for layer in spec["layer"] if layer["mark"]["type"] == "line" and "color" in layer["encoding"]
             for point in spec["datasets"][layer["data"]["name"]]}  # fmt: skip
    heights = {point["label"]: point["y"] for point in marks(spec, "text")}
    assert abs(heights["curator"] - heights["sums"]) > 0.05 * (90 - 20)
    assert all(abs(heights[trust] - heights["without privacy 90 (clear)"]) > 2 for trust in ("curator", "sums"))
    assert lines == {"a, curator, ε=1", "a, curator, ε=8", "b, sums, ε=1", "b, sums, ε=8"}
    assert {point.get("row") for point in marks(spec, "point")} >= {"weak, sums, ε=1"}
    asked = spec["layer"][1]["encoding"]["tooltip"]
    assert [one["title"] for one in asked] == ["row", "method", "result", "ε provable", "ε published", "trust", "if"]


def test_of_one_epsilon_each_trust_is_a_column_and_no_mark_stands_at_another_epsilon() -> None:
    cells = [cell("a", 0.6, trust=trust) for trust in (Trust.CURATOR, Trust.SUMS)] + [cell("weak", 0.3, trust=Trust.SUMS)]
    (question,) = ask(*cells)
    (spec,) = charts.Figure("", (charts.draw_question(question),)).specs
    assert {(point["row"].partition(",")[0], point["x"]) for point in marks(spec, "point")} == {
        ("a", "curator"), ("a", "sums"), ("weak", "sums"),
    }  # fmt: skip
    across = [layer["encoding"]["x"] for layer in spec["layer"] if "field" in layer["encoding"].get("x", {})]
    assert {x["type"] for x in across} == {"nominal"}
    assert question.star == "the row to use"
    assert "smallest" not in page.render_report_page(content(*cells))


def test_of_one_epsilon_that_no_row_keeps_each_trust_is_shown_at_what_it_proves() -> None:
    """Noise as published: ε = 8 was asked for, and 80 is what its noise provably buys."""
    made = cell("a", 0.6, epsilon=8.0, provable=80.0)
    (question,) = ask(made)
    (spec,) = charts.Figure("", (charts.draw_question(question),)).specs
    assert [(point["row"], point["x"]) for point in marks(spec, "point")] == [("a, curator, ε=8", 80.0)]
    axes = [layer["encoding"]["x"]["axis"] for layer in spec["layer"] if "axis" in layer["encoding"].get("x", {})]
    assert {tuple(axis["values"]) for axis in axes} == {(80.0,)}
    assert "the least proven is 80" in page.render_report_page(content(made))


def test_a_cost_is_what_a_reader_subtracts_and_one_belief_stands_beside_one_epsilon() -> None:
    """96.5 and 84.4 are shown as 97 and 84, and ε = 3.95 was spent of 4."""
    tested = NodeClassificationCellFacts(tested=4_000)
    cells = cell("a", 0.844, epsilon=4.0, provable=3.95, facts=tested), cell("clear", 0.9651, epsilon=math.inf, facts=tested)
    (question,) = ask(*cells)
    ((_, (one,)),) = page.table_lines(question)
    assert one.words == "costs 13"
    text = page.render_report_page(content(*cells))
    assert "98.3 % sure" in text
    assert "98.1 % sure" not in text


def test_a_figure_is_a_picture_twice_and_repeats() -> None:
    points = [
        charts.Point("p", "y", "a", 1.0, 0.5, 0.1),
        charts.Point("p", "y", "a", math.inf, 0.6),
        charts.Point("p", "y", "b", 1.0, math.nan),
    ]
    made = [charts.draw_lines("caption", points, across="x")[0] for _ in range(2)]
    assert made[0].picture().startswith(b"\x89PNG")
    assert made[0].picture(small=True).startswith(b"\xff\xd8")
    assert made[0].svg == made[1].svg
    (spec,) = made[0].specs
    found = [(p["x"], p["y"], round(p["high"] - p["low"], 3)) for p in marks(spec, "point")]
    assert (spec["width"], found) == ("container", [("1", 0.5, 0.2), ("∞", 0.6, 0.0)])


def test_a_map_of_many_nodes_is_a_picture_and_nodes_that_meet_have_lines() -> None:
    """6,000 marks are more than altair draws unasked; the page shows the picture."""
    places = np.random.default_rng(0).normal(size=(6_000, 2))
    arrays = {"map": places, "classes": np.arange(6_000) % 3, "matched": np.array([0, 4]), "coupling": np.eye(3)}
    many, meeting = charts.draw_map(arrays | {"places_one": places[:3], "places_two": places[3:6]}, "t")
    assert len(charts.Figure("c", (many,), live=False).picture(small=True)) < 40_000
    (spec,) = charts.Figure("c", (meeting,)).specs
    assert (len(marks(spec, "rule")), len(marks(spec, "point"))) == (3, 6)


def test_the_page_says_the_finding_once_and_what_to_type_as_a_shell_reads_it() -> None:
    """After a shrunk run the whole one comes first; a row that takes a test graph as public is fit with other people."""
    facts = NodeClassificationCellFacts(protocol="inductive", split="random", public="test-graph")
    made = replace(
        content(cell("features", 0.5, facts=facts), cell("features", 0.6, epsilon=8.0, facts=facts), notices=("SHORT RUN",)),
        folder="runs/my $HOME", made={"Command": "fedgraph run 'my card.yaml' --quick --out runs/a --seeds 2"},
    )  # fmt: skip
    text = page.render_report_page(made)
    body = text[text.index("<body") : text.index('id="specs"')]
    assert body.count("with ε ≤ 1 proven, one trusted curator is right for 50 of 100") == 1
    assert 'data-say="the smallest useful ε, but read the warning above"' in body
    assert [line for line, _ in page.commands(made)] == [
        "fedgraph run 'my card.yaml' --seeds 2", "fedgraph sheet 'runs/my $HOME' \"features, curator, ε=1\"",
        "fedgraph fit 'runs/my $HOME' \"features, curator, ε=1\" --public GRAPH -o model.fedgraph",
        "fedgraph predict model.fedgraph GRAPH -o answers.csv --people public", "fedgraph explain 'runs/my $HOME'",
    ]  # fmt: skip
    words, folded = body.partition('<details class="inline">')[::2]
    assert ("node-replace" in words, "(<code>node-replace</code>)" in folded) == (False, True)


def test_a_page_about_people_speaks_of_people_and_of_the_one_seed_without_privacy() -> None:
    facts = NodeClassificationCellFacts(protocol="asking", split="random", one="person")
    private = [cell("features", 0.5, seed=seed, trust=Trust.OWN_CLIENT, facts=facts) for seed in range(2)]
    text = page.render_report_page(content(*private, cell("clear", 0.9, epsilon=math.inf, facts=facts)))
    body = re.sub(
        "<code>.*?</code>|<[^>]*>", "", text[text.index("<body") : text.index('id="specs"')].partition('id="methods"')[0]
    )
    assert "trusted with the people that it holds" in body
    assert "(one seed)" in body
    assert re.findall(r"[^.]*\b(?:nodes?|edges?)\b[^.]*", body) == []


def test_conditions_beyond_three_are_folded_in_place() -> None:
    assumed = (Assumption.COUNTS_PUBLIC, Assumption.SPLIT_PUBLIC, Assumption.UNTUNED, Assumption.TEST_GRAPH_PUBLIC)
    held = Protection(Relation.NODE_REPLACE, Trust.CURATOR.viewer, assumed)
    made = content(cell("a", 0.5, protection=held))
    first = page.conditions(made, made.questions[0])
    assert first[0].startswith("nobody knows the seed"), "content was made with a written one"
    assert first[1] == Assumption.TEST_GRAPH_PUBLIC.words
    assert first[-2:] == (Assumption.UNTUNED.words, "nobody attacks how floating-point noise is drawn (Mironov 2012)")
    assert f"<summary>{len(first) - 3} more</summary>" in page.render_report_page(made)


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
    ((title, (figure,)),) = draw_settings(parts)
    assert title == "By steps: t — one, two"
    assert len(figure.specs) == 2
    points = [(p["colour"], p["x"]) for p in marks(figure.specs[0], "point")]
    assert points == [*(("m · prior default", x) for x in ("1", "5", "∞")), *(("m · prior 0", x) for x in ("1", "5"))]


def test_every_method_names_a_paper_that_can_be_followed() -> None:
    from fedgraph import plugins

    used = [page.method(name)[1] for name in plugins.names("methods")]
    assert all(papers.startswith("@") for papers in used)
    assert page.method("graph size")[1] == ""
    for doi in (doi for papers in used for doi in re.findall(r"doi\s*=\s*\{(.*?)\}", papers)):
        assert re.fullmatch(r"10\.\d{4,}/\S+", doi), doi
    assert any("Deep Learning with Differential Privacy" in papers for papers in used)


def test_text_cannot_break_out_of_the_page() -> None:
    bad = [cell(f'"></script><i>{name}', 0.5, epsilon=epsilon) for name in "ab" for epsilon in (1.0, 8.0)]
    text = page.render_report_page(content(*bad))
    assert "<i>" not in text
    assert text.count("</script>") == 3


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
    assert size - len(charts.scripts().encode()) <= 200_000
    assert words <= 670
    assert measure("<p>one two<details><summary>three</summary>four<details><summary>5</summary>6</details></details>")[1] == 3


@pytest.mark.parametrize("found", [None, b"", b"\xff\xfe", b"0\nalert(1)", b"alert(1)"])
def test_scripts_are_kept_and_only_read_as_they_were_written(
    found: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = iter(["draw(é)"])  # no second time
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda: next(made))
    file = tmp_path / "fedgraph" / f"vega-{vl_convert.__version__}.js"  # type: ignore[attr-defined]
    if found is not None:
        file.parent.mkdir()
        file.write_bytes(found)
    assert [charts.scripts.__wrapped__() for _ in range(2)] == ["draw(é)"] * 2
    assert [one.name for one in file.parent.iterdir()] == [file.name]


def test_every_link_of_a_page_leads_somewhere_and_owners_have_a_page_each(big: str) -> None:
    taken: set[str] = set()
    for title in ("t-d-a b", "t-d-a-b", "t-d-A B", "t-d-" + "銀" * 80, "t-d-" + "銀" * 79 + "行"):  # names that are alike
        name = page._file(title, taken)
        assert name.casefold() not in taken
        assert len(name.encode()) < 240
        taken.add(name.casefold())
    body = big[: big.index('id="specs"')]
    ids = re.findall(r'\sid="([^"]+)"', body)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', body)) <= set(ids)


def test_a_column_that_tells_the_label_is_said_on_the_first_screen_and_in_no_letter(library: Graph) -> None:
    doubt = f"column blocked alone tells the label of 60 of 60 people, {WRITTEN_AFTER}"
    read = {"d": replace(library, name="d", provenance=GraphProvenance("own", doubt))}
    made = page.PageContent(rows_of([cell("a", 0.7)]), "title", "lead", graphs=read)
    first, _, _ = page.render_report_page(made).partition("</header>")
    assert f"<b>Look at the data first: </b>{doubt}." in first
    assert f"Look at the data first: {doubt}." in made.sentences
    assert made.notices == ()
    assert "<li>Column blocked alone tells" in page.render_report_page(made), "what was read, line by line"
