"""A kept model reads columns of numbers as its training did: ranks travel in its file."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fedgraph
from fedgraph import data
from fedgraph.errors import DataError
from fedgraph.models import match_columns
from fedgraph.types import Graph

COUNT = 300


def table(seed: int, first: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(people, edges): two classes by age, beside an income in cents that says nothing."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=COUNT)
    ids = [f"p{first + k}" for k in range(COUNT)]
    age, income = np.round(30 + 30 * labels + 6 * rng.standard_normal(COUNT)), np.round(1e6 * rng.lognormal(size=COUNT))
    people = pd.DataFrame({"id": ids, "age": age, "income": income, "y": np.where(labels, "old", "young")})
    ends = rng.integers(COUNT, size=(2, COUNT))
    return people, pd.DataFrame({"source": [ids[a] for a in ends[0]], "target": [ids[b] for b in ends[1]]})


def test_newcomers_are_read_on_the_scale_of_the_training(tmp_path: Path) -> None:
    people, edges = table(0, 0)
    run = fedgraph.compare((people, edges), ["features"], [8], ["curator"], protocol="asking")
    found = run.best(epsilon=8.01)
    assert found is not None
    fitted = found.fit((people, edges))
    assert fitted.epsilon <= 8
    assert any('"columns"' in line for line in fitted.ledger), "ranks are paid for"
    fitted.save(tmp_path / "people.model")
    model, (people, edges) = fedgraph.load(tmp_path / "people.model"), table(1, 1000)
    told = model.predict((people.drop(columns="y"), edges), people="own")
    assert (told == people["y"].to_numpy()).mean() > 0.85


def test_texts_and_empty_cells_that_the_training_had_not_are_named_by_who_has_them(tmp_path: Path) -> None:
    (tmp_path / "features.csv").write_text("id,age,city\nada,30,Rome\nbob,,Oslo\ncy,,\n", encoding="utf-8")
    (tmp_path / "edges.csv").write_text("source,target\n", encoding="utf-8")
    rules = {"text": "one-hot", "empty": "missing", "label": ""}
    graph = data.load("own/csv", path=tmp_path, parameters=rules)
    assert isinstance(graph, Graph)
    with pytest.raises(DataError) as caught:
        match_columns(graph, ("age", "city is Rome"), 2)
    age, empty, oslo = str(caught.value).splitlines()
    assert "age of 'bob' (and of 1 further people) is empty, as of nobody that the model learned from; allowed: a number" in age
    assert "city of 'cy' is empty, as of nobody that the model learned from; allowed: 'Rome'; or leave" in empty
    assert "city of 'bob' is 'Oslo'" in oslo
