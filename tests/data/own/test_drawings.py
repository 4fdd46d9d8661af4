"""Columns that Gephi and other programs add when they draw people are no facts of people, in whatever form they come."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from fedgraph.data.own.door import read
from fedgraph.data.own.tables import ReadingQuestion
from tests.data.own.clubs import graph_of, lines

N = 40
SIDES = [(f"p{k}", f"p{(k + d) % N}") for k in range(N) for d in (1, 2, 5)]
DRAWN = {
    "x": [100.5 * np.cos(k) for k in range(N)],
    "y": [90.5 * np.sin(k) for k in range(N)],
    "size": [10 + k % 7 for k in range(N)],
    "r": [227 if k % 2 else 0 for k in range(N)],
    "g": [0 if k % 2 else 161 for k in range(N)],
    "b": [k % 3 * 20 for k in range(N)],
}
FACTS = {"party": ["red" if k % 2 else "green" for k in range(N)], "age": [20 + k * 7 % 31 for k in range(N)]}


def as_graphml(folder: Path, columns: dict[str, list[Any]]) -> Path:
    graph = nx.Graph(SIDES)
    graph.add_nodes_from((f"p{k}", {name: own[k] for name, own in columns.items()}) for k in range(N))
    nx.write_graphml(graph, folder / "club.graphml")
    return folder / "club.graphml"


def as_tables(folder: Path, columns: dict[str, list[Any]]) -> Path:
    pd.DataFrame({"Id": [f"p{k}" for k in range(N)], **columns}).to_csv(folder / "nodes.csv", index=False)
    (folder / "edges.csv").write_text(lines(SIDES, "Source,Target"))
    return folder


Form = Callable[[Path, dict[str, list[Any]]], Path]


@pytest.mark.parametrize("form", [as_graphml, as_tables])
@pytest.mark.parametrize("drop", [[], ["x", "b"]])
def test_places_sizes_and_colours_are_left_out_and_named(form: Form, drop: list[str], tmp_path: Path) -> None:
    reading = read(form(tmp_path, FACTS | DRAWN), label="party", columns={"drop": drop})
    assert graph_of(reading).names.columns == ("age",)
    assert not graph_of(reading).features_from_edges
    left_out = reading.says.split("left out" if form is as_tables else "draws people is not read")[1]
    assert all(name in left_out for name in DRAWN)


@pytest.mark.parametrize("form", [as_graphml, as_tables])
def test_a_place_alone_counts_as_computed_from_ties_and_can_be_dropped(form: Form, tmp_path: Path) -> None:
    folder = form(tmp_path, FACTS | {name: DRAWN[name] for name in "xy"})
    reading = read(folder, label="party")
    assert graph_of(reading).names.columns == ("age", "x", "y")
    assert graph_of(reading).features_from_edges
    assert "x (a place in a drawing), y (a place in a drawing), taken as computed from them" in reading.says
    dropped = graph_of(read(folder, label="party", columns={"drop": ["y"]}))
    assert (dropped.names.columns, dropped.features_from_edges) == (("age", "x"), False)


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
    reading = read(as_tables(tmp_path, FACTS | {name: [cells[k // 3 % 2] for k in range(N)]}), label="party")
    assert (f"{name}: a program draws people so" in reading.says) == drawn
    assert (graph_of(reading).names.columns == ("age",)) == drawn


def test_a_colour_is_offered_as_no_label_and_may_be_said_to_be_one(tmp_path: Path) -> None:
    folder = as_tables(tmp_path, FACTS | {"team": [k // 20 for k in range(N)]} | DRAWN)
    with pytest.raises(ReadingQuestion, match="'team'") as asked:
        read(folder)
    assert "'b'" not in str(asked.value)
    assert graph_of(read(folder, label="b")).names.classes == ("0", "20", "40")
