"""Tables of people: kinds of columns, bounds, texts and empty cells, and all faults of a file at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedgraph import data
from fedgraph.data.own.columns import OwnColumnRules, OwnColumns, kind_of, numbers_in, read_own_columns, scaled_to_bounds
from fedgraph.errors import DataError, ScenarioError
from fedgraph.types import Graph
from tests.data.own.clubs import lines, put

PEOPLE = "id,age,income,member,city\nada,30,50000,yes,Rome\nbob,61,1200000,no,Oslo\ncy,,20000,yes,Rome\ndan,18,0,no,\n"
TIES = "source,target,since\nada,bob,2001\nbob,cy,2002\n"
LABELS = "id,label\nada,a\nbob,b\ncy,\ndan,b\n"


def load(folder: Path, features: str = PEOPLE, edges: str = TIES, labels: str = LABELS, **rules: object) -> Graph:
    put(folder, {"features.csv": features, "edges.csv": edges, "labels.csv": labels})
    graph = data.load("own/csv", path=folder, parameters=rules)
    assert isinstance(graph, Graph)
    return graph


def read(rows: list[list[str]], names: tuple[str, ...], **rules: object) -> OwnColumns:
    nodes = [f"n{i}" for i in range(len(rows))]
    return read_own_columns(names, rows, OwnColumnRules(**rules), "features.csv", lambda row: f"features.csv:{row + 2}", nodes)


@pytest.mark.parametrize(
    ("kind", "cells"),
    [("number", ("30", "61", "")), ("yes/no", ("yes", "no", "0")), ("text", ("Rome", "", "Oslo")), ("date", ("31.12.2024", "")),
     ("text", ("2024-02-30", "31.02.2024"))],
)  # fmt: skip
def test_kinds_are_found_by_the_cells(kind: str, cells: tuple[str, ...]) -> None:
    assert kind_of(cells) == kind


@pytest.mark.parametrize(("cells", "numbers"), [
    ("1 000,50|-20|2 345 678", [1000.5, -20, 2345678]), ("1\u202f000|950", [1000, 950]), ("1'000.50|7", [1000.5, 7]),
    ("1.000,00 €|-3,50 €", [1000, -3.5]), ("$1,000|-$20|($3)", [1000, -20, -3]), ("1.000 €|950 €", [1000, 950]),
    ("CHF 1’000.50|CHF 7", [1000.5, 7]), ("12 345,00 zł|0,10 zł", [12345, 0.1]), ("10.5%|3 %", [10.5, 3]),
    ("1.074,74-|12,00", [-1074.74, 12]), ("(1074.74)|12.5|\u22127", [-1074.74, 12.5, -7]), ("1.234.567|950", [1234567, 950]),
    ("12 €|$5", None), ("10%|20%|0.5", None), ("654 688 580|732 829 320", None), ("9.345.678|12.345.678", None),
    ("2-|3+|1-", None), ("(123)|(45.5)", None),
    ("12 kg|3 kg", None), ("2,038|1,500", None), ("2.038%|1,500%", None),
])  # fmt: skip
def test_numbers_are_read_as_offices_write_them(cells: str, numbers: list[float] | None) -> None:
    assert kind_of(cells.split("|")) == ("text" if numbers is None else "number")
    assert numbers is None or numbers_in(cells.split("|")).tolist() == numbers


@pytest.mark.parametrize(
    "cell",
    ["16.03.1993 07:05:09", "16-MAR-1993", "16. März 1993", "1993/03/16", "16/03/1993 07:05", "Mar 16, 1993", "16 mars 1993"],
)
def test_dates_are_what_names_nobody(cell: str) -> None:
    assert numbers_in([cell, ""])[0] == 8475
    assert kind_of(["10:00", "11:30"]) == kind_of(["12/03/1993 07:05", "1/2/1990"]) == "text"


def test_words_for_nothing_among_numbers_are_empty_cells(tmp_path: Path) -> None:
    """As R, pandas, databases and spreadsheets write them. Among texts they are texts: NA may be a country."""
    table = "id,age,born,country\nada,30,NA,NA\nbob,n/a,1990-01-01,CH\ncy,40,2000-01-01,none\ndan,50,1980-01-01,CH\n"
    with pytest.raises(DataError) as caught:
        load(tmp_path, table, text="one-hot", empty="refuse")
    assert str(caught.value).splitlines() == [
        f"{tmp_path}/features.csv:2: column 'born' of node 'ada' is 'NA'; allowed: dates, or empty: missing",
        f"{tmp_path}/features.csv:3: column 'age' of node 'bob' is 'n/a'; allowed: finite numbers, or empty: missing",
    ]
    graph = load(tmp_path, table, text="one-hot", empty="missing")
    countries = ("country is CH", "country is NA", "country is none")
    assert graph.names.columns == ("age", "age is missing", "born", "born is missing", *countries)
    assert graph.features.toarray()[:, :2].tolist() == [[30, 0], [0, 1], [40, 0], [50, 0]]


def test_a_table_of_people_becomes_columns_on_one_scale(tmp_path: Path) -> None:
    bounds = {"age": [0, 100], "income": [0, 100000]}
    graph = load(tmp_path, bounds=bounds, text="one-hot", empty="missing")
    table = graph.features.toarray()
    assert table[:, 0] == pytest.approx([-0.4, 0.22, 0.0, -0.64], abs=1e-6), "age; empty is the middle"
    assert table[:, 1].tolist() == [0, 0, 1, 0], "age is missing"
    assert table[:, 2] == pytest.approx([0.0, 1.0, -0.6, -1.0], abs=1e-6), "income, cut to its bounds"
    assert table[:, 3].tolist() == [1, 0, 1, 0], "member"
    assert table[:, 4:].tolist() == [[0, 0, 1], [0, 1, 0], [0, 0, 1], [1, 0, 0]], "city: missing, Oslo, Rome"
    assert graph.columns_from_rows, "which texts there are was read from the rows"
    for phrase in ("1 of 4 people have no label", "not used: column 'since' of edges.csv", "a column for each text of city"):
        assert phrase in graph.provenance.detail


def test_a_column_of_texts_hides_no_other_fault() -> None:
    with pytest.raises(DataError) as caught:
        read([["Rome", "1.5"] for _ in range(98)] + [["Oslo", "x"]], ("city", "age"))
    city, age = str(caught.value).splitlines()
    assert "(and 98 further cells of this column)" in city
    assert "column 'age'" in age


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"bounds": {"aeg": [0, 1]}}, "there is no column 'aeg'; allowed: age, income, member, city"),
        ({"bounds": {"age": [1, 1]}, "text": "drop", "empty": "missing"}, "hold nothing"),
        ({"drop": ["x"]}, "there is no column 'x'"),
    ],
)
def test_rules_that_fit_no_column_are_named(tmp_path: Path, rules: dict[str, object], message: str) -> None:
    with pytest.raises((DataError, ScenarioError), match=message):
        load(tmp_path, **rules)


def test_names_of_people_are_no_categories() -> None:
    with pytest.raises(DataError, match=r"1,200 different texts.*drop: \[name\]"):
        read([[f"person {i}"] for i in range(1200)], ("name",), text="one-hot")


def test_columns_without_bounds_are_named_and_dropped_ones_are_gone() -> None:
    rows, names = [["1", "5000", "yes", "x"], ["2", "7", "no", "y"]], ("age", "income", "member", "free text")
    found = read(rows, names, bounds={"age": [0, 100]}, drop=["free text"])
    assert (found.names, found.bounded, found.from_rows) == (("age", "income", "member"), ("age",), True)
    assert found.remarks == ("columns left out: free text",)
    assert not read(rows, names, bounds={"age": [0, 1]}, drop=["income", "member", "free text"]).from_rows


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=9), st.floats(-100, 0), st.floats(1, 100))
def test_scaled_values_lie_between_minus_one_and_one(values: list[float], least: float, largest: float) -> None:
    """One person's value moves by at most 2, whatever it is: the bound of every learner holds for any row."""
    found = scaled_to_bounds(np.array(values), [least, largest], "here")
    assert (np.abs(found) <= 1 + 1e-12).all()
    assert scaled_to_bounds(np.array([least, largest]), [least, largest], "here") == pytest.approx([-1, 1])


@pytest.mark.parametrize("last", ["1", "2"])
def test_that_kinds_of_columns_were_read_from_cells_is_known_whatever_one_cell_says(tmp_path: Path, last: str) -> None:
    """A table with only yes/no facts did not say that it rests on that; bounds for every column need no such promise."""
    people = lines(((k, 20 + k, k % 2 if k < 7 else last) for k in range(8)), "id,age,flag")
    files = {"features": people, "edges": "source,target\n0,1\n", "labels": "id,label\n0,a\n1,b\n"}
    graph = load(tmp_path, **files, drop=["age"])
    assert graph.columns_from_rows
    assert (graph.columns is None) == (last == "1")
    graph = load(tmp_path, **files, bounds={"age": [0, 100], "flag": [0, 5]}, empty="refuse")
    assert not graph.columns_from_rows
    assert graph.columns is not None
    assert graph.columns.bounded.tolist() == [0, 1]
