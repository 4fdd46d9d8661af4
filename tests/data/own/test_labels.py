"""Missing labels are missing however they are written, and classes are told from numbers to predict."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given as sampled
from hypothesis import strategies as st

from fedgraph.data import read_federation
from fedgraph.data.own.columns import OwnLabels, own_label_text, read_own_labels
from fedgraph.data.own.door import read
from fedgraph.data.own.tables import ReadingQuestion, cell_text
from fedgraph.errors import DataError, ScenarioError
from fedgraph.types import Graph
from tests.data.own.clubs import given, lines, put, ring


def labels(values: list[object], where: str) -> OwnLabels:
    """Labels as they stand in anybody's table."""
    return read_own_labels(map(cell_text, values), where)


MISSING = [None, math.nan, np.float32("nan"), "", "  ", -1, -1.0, "-1", "NaN", "nan", pd.NA, pd.NaT, np.int64(-1), b"", "<NA>"]


@pytest.mark.parametrize("known", [["red", "blue"], [0, 1], [3.0, 7.0], ["2", "10"], [True, False]], ids=str)
def test_missing_is_missing_beside_every_kind_of_label(known: list[object]) -> None:
    for missing in MISSING:
        read = labels([*known, missing, known[0]], "here")
        assert (read.numbers < 0).tolist() == [False, False, True, False], repr(missing)
        assert len(read.classes) == 2, repr(missing)
        assert "1 of 4 people have no label" in read.remarks[0], repr(missing)


@sampled(st.lists(st.one_of(st.text(max_size=5), st.integers(), st.none(), st.floats()), min_size=1, max_size=20))
def test_numbers_and_classes_say_what_the_labels_say(values: list[object]) -> None:
    texts = [own_label_text(cell_text(value)) for value in values]
    try:
        read = labels(values, "here")
    except DataError:
        fractions = {t for t in texts if t is not None}
        assert not fractions or len(fractions) > 1
        return
    for text, number in zip(texts, read.numbers, strict=True):
        assert (number == -1) if text is None else read.classes[number].casefold() == text.casefold()


def test_whole_numbers_come_in_the_order_of_their_values() -> None:
    assert labels(["10", "2", "a", "-3"], "here").classes == ("-3", "2", "10", "a")
    assert labels([10.0, 2.0, math.nan], "here").classes == ("2", "10")
    assert labels([f"{'9' * 5000}", "2"], "here").classes == ("2", "9" * 5000)


@pytest.mark.parametrize("word", ["unknown", "N/A", "?", "not tested"])
def test_a_word_that_may_mean_missing_gets_one_line_of_advice(word: str) -> None:
    remarks = " ".join(labels(["red", word, word], "here").remarks)
    assert f"the label '{word}' of 2 people counts as a class" in remarks
    assert "leave it empty" in remarks


def test_numbers_to_predict_and_no_label_at_all_are_refused() -> None:
    with pytest.raises(DataError, match=r"1,404 different labels.*cut it into classes"):
        labels((np.arange(1404) * 1.37 + 0.01).tolist(), "labels.csv")
    with pytest.raises(DataError, match="no person has a label"):
        labels([None, "", -1], "here")


@pytest.mark.parametrize(
    ("column", "said"),
    [("is-fraud", "is_fraud"), ("is.fraud", "IsFraud"), ("Größe", "gro\u0308ße"), ("Geschlecht ", "geschlecht")],
)
def test_the_label_may_be_spelled_otherwise_and_that_is_said(column: str, said: str, tmp_path: Path) -> None:
    people = lines(((f"p{k}", k, "ab"[k % 2]) for k in range(20)), f"id,age,{column}")
    reading = given(tmp_path, {"people.csv": people, "ties.csv": ring(20)}, label=said)
    assert reading.parameters["label"] == column.strip()
    assert f"the label {said!r} was taken for the column {column.strip()!r}" in reading.says


def test_of_two_columns_that_are_spelled_alike_one_is_asked_for(tmp_path: Path) -> None:
    people = lines(((f"p{k}", "ab"[k % 2], "cd"[k < 5]) for k in range(20)), "id,is-fraud,is.fraud")
    with pytest.raises(ReadingQuestion, match=r"no column is spelled 'is_fraud'.*'is-fraud' \(a: 10, b: 10\) or 'is.fraud'"):
        given(tmp_path, {"people.csv": people, "ties.csv": ring(20)}, label="is_fraud")
    assert read(tmp_path, label="is.fraud").parameters["label"] == "is.fraud"


def test_a_label_that_is_called_as_an_address_is_read_or_refused_as_a_label(tmp_path: Path) -> None:
    for roads in (2, 20):
        for place, bank in enumerate(("north", "south")):
            people = lines(((f"p{k}", k, f"Road {(k + 10 * place) % roads}") for k in range(10)), "id,age,Street")
            put(tmp_path, {f"{bank}/people.csv": people, f"{bank}/ties.csv": ring(10)})
        if roads == 2:
            graph = read_federation(tmp_path, {"label": "street"}).graph
            assert isinstance(graph, Graph)
            assert graph.names.classes == ("Road 0", "Road 1")
    with pytest.raises(ScenarioError, match="20 different values for 20 people"):
        read_federation(tmp_path, {"label": "street"})


def test_a_label_of_ties_is_refused_with_what_to_do(tmp_path: Path) -> None:
    ties = lines(((f"p{i}", f"p{(i + 1) % 40}", i % 3 == 0) for i in range(40)), "payer,payee,is_fraud")
    people = lines(((f"p{i}", "ab"[i % 2]) for i in range(40)), "id,team")
    says = r"transfers\.csv: 'is_fraud' is a column of ties; allowed: a label of people .* be it: team"
    with pytest.raises(DataError, match=says):
        given(tmp_path, {"people.csv": people, "transfers.csv": ties}, label="is_fraud")


@pytest.mark.parametrize(
    ("head", "row", "first"),
    [("id,survived,pclass", lambda k: (k % 2, 1 + k % 3), "survived"),
     ("id,state,churned,plan", lambda k: ("ac"[k % 2], "ny"[k % 2], "xyz"[k % 3]), "churned")],
)  # fmt: skip
def test_what_people_want_to_know_is_asked_first(
    head: str, row: Callable[[int], tuple[object]], first: str, tmp_path: Path
) -> None:
    """Beside a column that is called as a class, and where another column says the same."""
    with pytest.raises(ReadingQuestion) as asked:
        given(tmp_path, {"people.csv": lines(((f"p{k}", *row(k)) for k in range(60)), head), "ties.csv": ring(60)})
    assert asked.value.choices[0] == first
