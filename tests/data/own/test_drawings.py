"""Columns that Gephi and other programs add when they draw people are no facts of people, in whatever form they come."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedgraph.data.own.door import read
from fedgraph.data.own.tables import ReadingQuestion
from fedgraph.types import Graph

N = 40
SIDES = [(k, (k + d) % N) for k in range(N) for d in (1, 2, 5)]
DRAWN = {
    "x": [100.5 * np.cos(k) for k in range(N)],
    "y": [90.5 * np.sin(k) for k in range(N)],
    "size": [10 + k % 7 for k in range(N)],
    "r": [227 if k % 2 else 0 for k in range(N)],
    "g": [0 if k % 2 else 161 for k in range(N)],
    "b": [k % 3 * 20 for k in range(N)],
}
FACTS = {"party": ["red" if k % 2 else "green" for k in range(N)], "age": [20 + k * 7 % 31 for k in range(N)]}


def as_graphml(folder: Path, columns: dict[str, list[object]]) -> Path:
    keys = "".join(
        f'<key id="{name}" for="node" attr.name="{name}" attr.type="{"string" if isinstance(own[0], str) else "double"}"/>'
        for name, own in columns.items()
    )
    nodes = "".join(
        f'<node id="p{k}">{"".join(f"""<data key="{name}">{own[k]}</data>""" for name, own in columns.items())}</node>'
        for k in range(N)
    )
    edges = "".join(f'<edge source="p{a}" target="p{b}"/>' for a, b in SIDES)
    space = 'xmlns="http://graphml.graphdrawing.org/xmlns"'
    file = folder / "club.graphml"
    file.write_text(f'<graphml {space}>{keys}<graph edgedefault="undirected">{nodes}{edges}</graph></graphml>')
    return file


def as_tables(folder: Path, columns: dict[str, list[object]]) -> Path:
    pd.DataFrame({"Id": [f"p{k}" for k in range(N)], **columns}).to_csv(folder / "nodes.csv", index=False)
    pd.DataFrame([(f"p{a}", f"p{b}") for a, b in SIDES], columns=["Source", "Target"]).to_csv(folder / "edges.csv", index=False)
    return folder


@pytest.mark.parametrize("form", [as_graphml, as_tables])
@pytest.mark.parametrize("drop", [(), ("x", "b")])
def test_places_sizes_and_colours_are_left_out_and_named(form: object, drop: tuple[str, ...], tmp_path: Path) -> None:
    assert callable(form)
    reading = read(form(tmp_path, FACTS | DRAWN), label="party", columns={"drop": list(drop)})
    assert isinstance(reading.graph, Graph)
    assert reading.graph.names.columns == ("age",)
    assert not reading.graph.features_from_edges
    left_out = reading.says.split("left out" if form is as_tables else "draws people is not read")[1]
    assert all(name in left_out for name in DRAWN)


def test_a_place_alone_counts_as_computed_from_ties_and_can_be_dropped(tmp_path: Path) -> None:
    columns = FACTS | {name: DRAWN[name] for name in "xy"}
    file = as_graphml(tmp_path, columns)
    graph = read(file, label="party").graph
    assert isinstance(graph, Graph)
    assert graph.names.columns == ("age", "x", "y")
    assert graph.features_from_edges
    assert read(file, label="party", columns={"drop": ["x", "y"]}).graph.names.columns == ("age",)  # type: ignore[union-attr]


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
    assert isinstance(reading.graph, Graph)
    assert (reading.graph.names.columns == ("age",)) == drawn


def test_a_colour_is_offered_as_no_label_and_may_be_said_to_be_one(tmp_path: Path) -> None:
    folder = as_tables(tmp_path, FACTS | {"team": [k // 20 for k in range(N)]} | DRAWN)
    with pytest.raises(ReadingQuestion) as asked:
        read(folder)
    assert "'team'" in str(asked.value)
    assert "'b'" not in str(asked.value)
    assert read(folder, label="b").graph.names.classes == ("0", "20", "40")  # type: ignore[union-attr]
