"""What a fit may not do: train people who were given as public, or train beside a run's budget without paying."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import fedgraph
from fedgraph import models
from fedgraph.errors import PrivacyError, ScenarioError
from fedgraph.privacy import budget_book
from fedgraph.privacy.units import Unit
from fedgraph.runs.run import Run
from tests.models.conftest import write_people


def test_people_who_train_are_not_public_known_by_their_names_or_by_their_rows(run: Run, place: Path) -> None:
    row = run.score(next(s.row for s in run.scores if s.method == "features" and s.variant != "alone"))
    people = str(place / "people")
    with pytest.raises(PrivacyError, match=r"150 of 150 people .* train, too: .* not public"):
        row.fit(people, public=people)
    named, _ = models.model.read_people(people, row.fit(people, public=str(place / "volunteers")).reading)
    with pytest.raises(PrivacyError, match=r"20 of 20 people"):
        row.fit(named, public=named.induced(np.arange(100, 120)))
    graph = dataclasses.replace(named, names=dataclasses.replace(named.names, ids=()))
    for public in (graph, graph.induced(np.arange(7, 90)), named):
        with pytest.raises(PrivacyError, match="as those who train"):
            row.fit(graph, public=public)


TEXT = """name: small
seed: secret
budget: people.budget
runtime: {engine: serial}
datasets: [{name: embedded/library}]
tasks:
  - {task: node_classification, label: t, epsilons: [1], trust: [curator], delta: 1e-5, protocol: asking,
     methods: [{method: features, steps: 4}]}
"""


@pytest.fixture
def paid(tmp_path: Path) -> Run:
    budget_book.create(tmp_path / "people.budget", Unit.NODE, 3.0, 1e-5, [str(k) for k in range(300)])
    (tmp_path / "s.yaml").write_text(TEXT, encoding="utf-8")
    return fedgraph.run(str(tmp_path / "s.yaml"), out=tmp_path / "out", quiet=True)


@pytest.mark.parametrize("select", [None, {"over": {"steps": [2, 4]}, "among": 2}])
def test_a_model_of_a_run_with_a_budget_is_charged_to_it(paid: Run, tmp_path: Path, select: dict[str, object] | None) -> None:
    book, row = tmp_path / "people.budget", paid.score(paid.scores[0].row)
    before = budget_book.read(book).groups()[0].epsilon
    model = row.fit(select=select)
    assert budget_book.read(book).charges[1].what.startswith("model ")
    after = budget_book.read(book).groups()[0].epsilon
    assert before < after <= before + model.epsilon + 1e-3, "all of the choice is paid, and composed with the run"
    with pytest.raises(PrivacyError, match="of 3"):
        row.fit(select=select, epsilon=2.9)


def test_a_budget_that_is_not_there_any_more_refuses_the_model(paid: Run, tmp_path: Path) -> None:
    for end in ("", ".last"):
        (tmp_path / f"people.budget{end}").rename(tmp_path / f"elsewhere{end}")
    row = paid.score(paid.scores[0].row)
    with pytest.raises((PrivacyError, ScenarioError), match=r"people\.budget"):
        row.fit()
    assert row.fit(budget=tmp_path / "elsewhere").epsilon <= 1
    assert len(budget_book.read(tmp_path / "elsewhere").charges) == 2


def test_a_named_budget_is_charged_what_the_model_costs_and_refuses_what_exceeds_it(
    run: Run, place: Path, tmp_path: Path
) -> None:
    book, people = tmp_path / "book", str(place / "people")
    budget_book.create(book, Unit.NODE, 6.0, 1e-4, [f"p{k}" for k in range(150)])
    row = run.score(next(s.row for s in run.scores if s.variant == "alone"))
    model = row.fit(people, budget=book)
    (group,), before = budget_book.read(book).groups(), book.read_bytes()
    assert group.epsilon == pytest.approx(model.epsilon, rel=1e-3)
    with pytest.raises(PrivacyError, match=r"would have paid ε = .* of 6 .*Nothing was released"):
        row.fit(people, budget=book)
    with pytest.raises(PrivacyError, match="40 people of these data are not in the budget"):
        row.fit(str(write_people(tmp_path / "more", 40, 5000, 7)), budget=book)
    assert book.read_bytes() == before
