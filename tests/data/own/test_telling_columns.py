"""Columns that tell of ties, of a drawing of them, or of the label are noticed, whatever transformation they went through."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from fedgraph import data
from fedgraph.data.own import reading
from fedgraph.data.own.door import read
from fedgraph.data.own.tables import ReadingQuestion
from fedgraph.types import Graph
from tests.data.own.clubs import given, graph_of, lines, put, ring

GRAPH = nx.barabasi_albert_graph(300, 3, seed=1)
ADJACENCY = sp.csr_array(nx.to_scipy_sparse_array(GRAPH, dtype=float))
DEGREE = np.array([d for _, d in GRAPH.degree()], float)
RNG = np.random.default_rng(0)
LABELS = np.arange(300) % 2
PEOPLE = [RNG.normal(size=300), RNG.lognormal(size=300), RNG.random(300) < 0.3, DEGREE + 6 * RNG.normal(size=300)]
COLUMNS = [
    ("degree", [PEOPLE[0], DEGREE]),
    ("degree", [PEOPLE[0], np.log1p(DEGREE) * 3 - 7]),
    ("degree", [PEOPLE[0], 1 / DEGREE]),
    ("PageRank", [PEOPLE[0], np.array(list(nx.pagerank(GRAPH).values()))]),
    ("clustering coefficient", [PEOPLE[0], np.array(list(nx.clustering(GRAPH).values()))]),
    ("eigenvector centrality", [PEOPLE[0], np.array(list(nx.eigenvector_centrality_numpy(GRAPH).values()))]),
    ("", PEOPLE),  # ages, incomes, yes/no facts, and a column that merely goes along with the degree
]


@pytest.mark.parametrize(("what", "columns"), COLUMNS)
def test_a_column_from_edges_is_named_and_people_are_not_taken_for_centralities(what: str, columns: list[np.ndarray]) -> None:
    graph = graph_of(read((ADJACENCY, np.column_stack(columns), LABELS), name="g"))
    assert graph.features_from_edges == bool(what)
    assert not what or all(part in graph.provenance.detail for part in ("column 1", what))
    assert "column 0 (" not in graph.provenance.detail


def test_a_person_may_contradict_and_on_a_ring_nobody_differs_in_degree(tmp_path: Path) -> None:
    table = np.column_stack([PEOPLE[0], DEGREE])
    assert not graph_of(read((ADJACENCY, table, LABELS), columns={"from_edges": False})).features_from_edges
    assert graph_of(read((ADJACENCY, table[:, :1], LABELS), columns={"from_edges": True})).features_from_edges
    ring = sp.csr_array(nx.to_scipy_sparse_array(nx.cycle_graph(50), dtype=float))
    assert not graph_of(read((ring, np.ones((50, 1)) * 2, LABELS[:50]))).features_from_edges
    put(tmp_path, {
        "features.csv": lines(((k, 20 + k % 40, int(d)) for k, d in enumerate(DEGREE)), "id,age,links"),
        "labels.csv": lines(enumerate(LABELS), "id,label"), "edges.csv": lines(GRAPH.edges, "source,target"),
    })  # fmt: skip
    for parameters, found in (({}, True), ({"from_edges": False}, False)):
        graph = data.load("own/csv", path=tmp_path, parameters=parameters)
        assert isinstance(graph, Graph)
        assert graph.features_from_edges == found


LINES = np.random.default_rng(4).integers(0, 60, (600, 2))  # some twice, and some in both directions
LINES = np.concatenate([LINES, LINES[:150]])
KIND = np.array(["follow", "like", "block"])[np.random.default_rng(5).integers(0, 3, len(LINES))]
FOLLOWS = LINES[KIND == "follow"]
RULES: dict[str, object] = {"kind": "kind", "kinds": ["follow"]}


@pytest.mark.parametrize(
    ("column", "rules", "what"),
    [
        (np.bincount(LINES[:, 1], minlength=60), {}, "end there"),
        (np.bincount(LINES[:, 0], minlength=60), {}, "begin there"),
        (np.bincount(LINES.ravel(), minlength=60), {}, "in all"),
        (np.bincount(FOLLOWS[:, 1], minlength=60), {}, "lines of the kind follow that end there"),
        (np.bincount(FOLLOWS[:, 1], minlength=60), RULES, "end there"),
        (np.bincount(LINES[:, 1], minlength=60), RULES, "all lines that end there"),
        (np.random.default_rng(6).permutation(np.bincount(LINES[:, 1], minlength=60)), {}, ""),
    ],
)
def test_counts_of_lines_at_either_end_are_computed_from_ties(
    column: np.ndarray, rules: dict[str, object], what: str, tmp_path: Path
) -> None:
    people = lines(((k, column[k], "ab"[k % 2]) for k in range(60)), "id,followers,team")
    ties = lines(((a, b, kind) for (a, b), kind in zip(LINES, KIND, strict=True)), "source,target,kind")
    reading = given(tmp_path, {"people.csv": people, "ties.csv": ties}, label="team", columns=rules)
    assert graph_of(reading).features_from_edges == bool(what)
    assert not what or f"{what}), taken as computed from them" in reading.says


def test_lines_that_hardly_anybody_has_go_along_with_nothing(tmp_path: Path) -> None:
    """One line of a kind is a count of 1 for one person, and so is an income of a million beside others of some thousands."""
    income = [1_000_000 if k == 7 else 1_000 + 37 * k % 400 for k in range(60)]
    people = lines(((k, income[k], "ab"[k % 2]) for k in range(60)), "id,income,team")
    ties = lines(((k, (k + 1) % 60, "loan" if k == 7 else "mail") for k in range(60)), "source,target,kind")
    assert not graph_of(given(tmp_path, {"people.csv": people, "ties.csv": ties}, label="team")).features_from_edges


# Columns that Gephi and other programs add when they draw people are no facts of people, in whatever form they come


COUNT = 40
SIDES = [(f"p{k}", f"p{(k + d) % COUNT}") for k in range(COUNT) for d in (1, 2, 5)]
DRAWN = {
    "x": [100.5 * np.cos(k) for k in range(COUNT)],
    "y": [90.5 * np.sin(k) for k in range(COUNT)],
    "size": [10 + k % 7 for k in range(COUNT)],
    "r": [227 if k % 2 else 0 for k in range(COUNT)],
    "g": [0 if k % 2 else 161 for k in range(COUNT)],
    "b": [k % 3 * 20 for k in range(COUNT)],
}
OWN = {"party": ["red" if k % 2 else "green" for k in range(COUNT)], "age": [20 + k * 7 % 31 for k in range(COUNT)]}


def as_graphml(folder: Path, columns: dict[str, list[Any]]) -> Path:
    graph = nx.Graph(SIDES)
    graph.add_nodes_from((f"p{k}", {name: own[k] for name, own in columns.items()}) for k in range(COUNT))
    nx.write_graphml(graph, folder / "club.graphml")
    return folder / "club.graphml"


def as_tables(folder: Path, columns: dict[str, list[Any]]) -> Path:
    pd.DataFrame({"Id": [f"p{k}" for k in range(COUNT)], **columns}).to_csv(folder / "nodes.csv", index=False)
    (folder / "edges.csv").write_text(lines(SIDES, "Source,Target"))
    return folder


Form = Callable[[Path, dict[str, list[Any]]], Path]


@pytest.mark.parametrize("form", [as_graphml, as_tables])
@pytest.mark.parametrize("drop", [[], ["x", "b"]])
def test_places_sizes_and_colours_are_left_out_and_named(form: Form, drop: list[str], tmp_path: Path) -> None:
    reading = read(form(tmp_path, OWN | DRAWN), label="party", columns={"drop": drop})
    assert graph_of(reading).names.columns == ("age",)
    assert not graph_of(reading).features_from_edges
    left_out = reading.says.split("left out" if form is as_tables else "draws people is not read")[1]
    assert all(name in left_out for name in DRAWN)


@pytest.mark.parametrize("form", [as_graphml, as_tables])
def test_a_place_alone_counts_as_computed_from_ties_and_can_be_dropped(form: Form, tmp_path: Path) -> None:
    folder = form(tmp_path, OWN | {name: DRAWN[name] for name in "xy"})
    reading = read(folder, label="party")
    assert graph_of(reading).names.columns == ("age", "x", "y")
    assert graph_of(reading).features_from_edges
    assert "x (a place in a drawing), y (a place in a drawing), taken as computed from them" in reading.says
    dropped = graph_of(read(folder, label="party", columns={"drop": ["y"]}))
    assert (dropped.names.columns, dropped.features_from_edges) == (("age", "x"), False)


@pytest.mark.parametrize(
    ("more", "kept", "says"),
    [
        (DRAWN, (), "draws people is not read (attributes."),
        ({"color": ["#aa00ff", "#00ff00"] * 20}, (), "(attributes.color)"),
        ({one: DRAWN[one] for one in "xy"}, ("x", "y"), "attributes.y (a place in a drawing)"),
        ({"Modularity Class": [k // 20 for k in range(COUNT)]}, ("Modularity Class",), "(groups that a program makes of ties)"),
    ],
)
def test_what_stands_within_a_node_is_judged_by_its_own_name(
    more: dict[str, list[Any]], kept: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    nodes = [{"key": f"p{k}", "attributes": {name: own[k] for name, own in (OWN | more).items()}} for k in range(COUNT)]
    told = {"nodes": nodes, "edges": [{"source": one, "target": two} for one, two in SIDES]}
    reading = given(tmp_path, {"club.json": json.dumps(told)})
    assert graph_of(reading).names.label == "attributes.party"
    assert sorted(graph_of(reading).names.columns) == sorted(f"attributes.{one}" for one in ("age", *kept))
    assert says in reading.says


@pytest.mark.parametrize(
    ("name", "cells", "drawn"),
    [
        ("viz:size", ["3.5", "4"], True),
        ("color", ["#aa00ff", "#00ff00"], True),
        ("Colour", ["153,0,12", "0, 255, 0"], True),
        ("colour", ["red", "blue"], False),
        ("position", ["goal", "wing"], False),
    ],
)
def test_what_a_table_says_of_colours(name: str, cells: list[str], drawn: bool, tmp_path: Path) -> None:
    reading = read(as_tables(tmp_path, OWN | {name: [cells[k // 3 % 2] for k in range(COUNT)]}), label="party")
    assert (f"{name}: a program draws people so" in reading.says) == drawn
    assert (graph_of(reading).names.columns == ("age",)) == drawn


def test_a_colour_is_offered_as_no_label_and_may_be_said_to_be_one(tmp_path: Path) -> None:
    folder = as_tables(tmp_path, OWN | {"team": [k // 20 for k in range(COUNT)]} | DRAWN)
    with pytest.raises(ReadingQuestion, match="'team'") as asked:
        read(folder)
    assert "'b'" not in str(asked.value)
    assert graph_of(read(folder, label="b")).names.classes == ("0", "20", "40")


# Numbers that tell the label when they are cut at one or two of them


PATIENTS = 200
DRAW = np.random.default_rng(8)
SICK = DRAW.random(PATIENTS) < 0.4
SCORE = SICK * 0.5 + DRAW.random(PATIENTS) / 2
MIDDLE = np.where(
    SICK,
    40 + 20 * DRAW.random(PATIENTS),
    np.where(DRAW.random(PATIENTS) < 0.5, 39 * DRAW.random(PATIENTS), 61 + 39 * DRAW.random(PATIENTS)),
)
ERRING = np.where(DRAW.random(PATIENTS) < 0.02, 1 - SCORE, SCORE)
YES = ["yes" if one else "no" for one in SICK]
KINDS = [f"k{k % 3}" for k in range(PATIENTS)]


@pytest.mark.parametrize(
    ("cells", "label", "right"),
    [
        ([f"{one:.4f}" for one in SCORE], YES, f"{PATIENTS} of {PATIENTS}"),
        ([f"{one:.4f}" for one in MIDDLE], YES, f"{PATIENTS} of {PATIENTS}"),
        ([f"{one:.4f}" for one in ERRING], YES, " of 200"),
        ([f'"{one * 1000:.2f}"'.replace(".", ",") for one in SCORE], YES, f"{PATIENTS} of {PATIENTS}"),
        ([f"{one:.4f}" if k % 10 or SICK[k] else "" for k, one in enumerate(SCORE)], YES, f"{PATIENTS} of {PATIENTS}"),
        ([f"{one:.3f}" for one in np.arange(PATIENTS) % 3 + DRAW.random(PATIENTS) * 0.9], KINDS, f"{PATIENTS} of {PATIENTS}"),
        ([f"{one:.4f}" for one in SICK * 0.1 + DRAW.random(PATIENTS)], YES, ""),
        ([f"{one:.4f}" for one in DRAW.random(PATIENTS)], YES, ""),
    ],
    ids=["a score", "the middle", "some err", "commas", "empty cells", "three classes", "in part", "chance"],
)
def test_a_score_that_parts_the_classes_is_pointed_out(cells: list[str], label: list[str], right: str, tmp_path: Path) -> None:
    people = lines(((f"p{k}", cell, one) for k, (cell, one) in enumerate(zip(cells, label, strict=True))), "id,score,sick")
    found = given(tmp_path, {"people.csv": people, "ties.csv": ring(PATIENTS)}, label="sick")
    begins = "column score, cut at one or two numbers, tells"
    told = [note for note in graph_of(found).provenance.doubts if note.startswith(begins)]
    assert all(note in found.says for note in told)
    assert right in " ".join(told)
    assert bool(right) == bool(told)


def test_of_few_people_a_random_column_seldom_parts_classes_and_is_not_pointed_out() -> None:
    """A fifth of such columns part two of twelve people from the others by two cuts."""
    label = ["yes"] * 2 + ["no"] * 10
    assert not any(reading._told_by_size([f"{one:.5f}" for one in DRAW.random(12)], label) for _ in range(200))


@pytest.mark.parametrize(("head", "first"), [("Nr", 1), ("lfd. Nr.", 0), ("row", 0), ("MitgliedsNr", 4001), ("Member No", 70)])
def test_a_column_that_counts_rows_or_numbers_people_is_no_feature_beside_names(tmp_path: Path, head: str, first: int) -> None:
    people = lines(
        ((first + k, f"Kim N{k}", 20 + k, 1 + k * 7 % 30, "ab"[k % 2]) for k in range(30)), f"{head},Name,Age,Rank,Dept"
    )
    files = {"people.csv": people, "ties.csv": ring(30, "Kim N{}", "Mentor,Mentee")}
    reading = given(tmp_path, files, label="Dept")
    assert graph_of(reading).names.columns == ("Age", "Rank")
    assert f"{head}: it names or numbers people" in str(reading)
    kept = read(tmp_path, label="Dept", columns={"bounds": {head: [0, 5000]}})
    assert graph_of(kept).names.columns == (head, "Age", "Rank")
