"""What of a run may be handed out: nothing in it moves with a private person beside what was released."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import fedgraph
from fedgraph.commands import base as cli
from fedgraph.errors import DataError, ScenarioError
from fedgraph.privacy import budget_book, settle
from fedgraph.privacy.ledger import Ledger
from fedgraph.privacy.units import Unit
from fedgraph.report import outside, saved_run
from fedgraph.runs.run import Run

PEOPLE, TESTED = 90, range(60, 90)


def write_people(folder: Path) -> Path:
    """90 people of three classes, of whom the last 30 are tested; the split is part of the data."""
    rng = np.random.default_rng(5)
    folder.mkdir(parents=True)
    labels = rng.integers(0, 3, PEOPLE)
    ages = np.clip(rng.normal(30 + 10 * labels, 12), 0, 100).round(1)
    ends = [(a, b) for a, b in rng.integers(0, PEOPLE, (3 * PEOPLE, 2)) if a != b]
    tables = {
        "features": [
            "id,age,member",
            *(f"p{k},{ages[k]},{int(rng.random() < (0.7 if labels[k] == 1 else 0.3))}" for k in range(PEOPLE)),
        ],
        "edges": ["source,target", *(f"p{a},p{b}" for a, b in ends)],
        "labels": ["id,label", *(f"p{k},{('low', 'mid', 'high')[labels[k]]}" for k in range(PEOPLE))],
        "masks": ["id,part", *(f"p{k},{'test' if k in TESTED else 'train'}" for k in range(PEOPLE))],
    }
    for name, lines in tables.items():
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def run_on(people: Path, out: Path, beside: dict[str, object] | None = None, **more: object) -> Run:
    task = {
        "task": "node_classification", "protocol": "inductive", "public": "nothing", "split": "public",
        "partition": {"partition": "uniform", "clients": 3}, "trust": ["curator", "sums"], "epsilons": [2.0],
        "delta": 1e-4, "methods": [{"method": "features", "steps": 3}],
    }  # fmt: skip
    data = {"name": "own/csv", "path": str(people), "label": "people", "parameters": {"bounds": {"age": [0, 100]}}}
    asked = {"name": "x", "runtime": {"engine": "serial"}, "datasets": [data], "tasks": [{**task, **more}], **(beside or {})}
    return fedgraph.run(asked, out=out, quiet=True)


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_people(tmp_path_factory.mktemp("one") / "people")


@pytest.fixture(scope="module")
def run(people: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_on(people, tmp_path_factory.mktemp("runs") / "run")


def other_label(people: Path) -> None:
    """Whoever was right is wrong now, or the other way round."""
    file = people / "labels.csv"
    words = {"low": "mid", "mid": "high", "high": "low"}
    lines = file.read_text(encoding="utf-8").splitlines()
    for place in (70, 71, 75):  # several at once: an accuracy of 30 people must move
        person, _, word = lines[1 + place].partition(",")
        lines[1 + place] = f"{person},{words[word]}"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_the_mark_of_resume_is_keyed_and_knows_the_data_whatever_is_said_of_them(run: Run, tmp_path: Path) -> None:
    own = write_people(tmp_path / "people")
    again = run_on(own, tmp_path / "again")
    mark, other = ((one.folder / "cells" / "scenario.sha256").read_text(encoding="utf-8") for one in (run, again))
    assert mark.split()[1] != other.split()[1], "two runs on the same data have other marks"
    goes_on = ["run", str(again.folder / "scenario.yaml"), "--resume", str(again.folder)]
    with (own / "edges.csv").open("a", encoding="utf-8") as edges:
        edges.write("p1,p1\n")  # a remark of the reading, and another checksum; the same graph
    assert cli.main(goes_on) == 0
    other_label(own)
    assert cli.main(goes_on) == 2


def rows_outside(run: Run) -> list[dict[str, str]]:
    with (run.folder / outside.OUTSIDE / "results.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_exact_accuracies_on_private_people_are_withheld_with_the_reason(run: Run, people: Path) -> None:
    rows = rows_outside(run)
    assert len(rows) == 2
    for row in rows:
        assert (row["metric"], row["value"]) == ("", "")
        assert row["withheld"].startswith("withheld: it is exact and computed on private people")
        assert float(row["epsilon_provable"]) <= 2
        assert row["theorem"]
    exact = [repr(value) for row in run.rows for value in row.head.metrics.values() if len(repr(value)) > 8]
    assert len(exact) > 4
    for file in (run.folder / outside.OUTSIDE).rglob("*.*"):
        content = file.read_text(encoding="utf-8")
        assert not any(value in content for value in [*exact, str(people), "path: "]), file
    first_screen = (run.folder / "report.html").read_text(encoding="utf-8").partition("<nav")[0]
    assert "one person" in first_screen


def test_accuracies_on_public_people_leave_and_those_of_a_row_without_a_guarantee_do_not(tmp_path: Path) -> None:
    asked = {
        "name": "x", "runtime": {"engine": "serial"}, "datasets": [{"name": "embedded/library"}],
        "tasks": [{"task": "node_classification", "trust": ["curator"], "epsilons": [2.0, float("inf")],
                   "methods": [{"method": "features", "steps": 3}]}],
    }  # fmt: skip
    done = fedgraph.run(asked, out=tmp_path / "run", quiet=True)
    private, clear = map(outside.reduce_to_outside, (row.head for row in done.rows))
    assert private.metrics == done.rows[0].head.metrics
    assert not clear.metrics
    assert "guarantees nothing" in outside.explain_withheld(clear)


def test_the_ledger_outside_prices_what_is_stated_and_the_readme_all_of_it_together(run: Run) -> None:
    folder = run.folder / outside.OUTSIDE
    ledger = Ledger.read(folder / "ledger.jsonl")
    stated = {row.head.epsilon_provable for row in run.rows}
    assert {settle.of_account(account, ledger.of(account.cell)).epsilon for account in ledger.accounts} == stated
    declared = [json.loads(line) for line in (folder / "plans.jsonl").read_text("utf-8").splitlines()]
    assert [[release["path"] for release in plan["releases"]] for plan in declared] == [["model"], ["model"]]
    assert {plan["row"] for plan in declared} == {score.row for score in run.scores}
    text = (folder / "README.txt").read_text(encoding="utf-8")
    assert "DO NOT HAND THIS OUT IF THE PEOPLE ARE REAL" in text, "the seed is written in the scenario"
    assert "All private trainings here together cost at most ε = 4 at person level of people (2 trainings)." in text


def test_a_sheet_that_is_handed_out_is_not_chosen_by_exact_accuracies(run: Run) -> None:
    kept = saved_run.load_saved_run(run.folder)
    with pytest.raises(DataError, match=r'cannot choose by them\. Name a ROW, one of: "features, curator'):
        outside.make_outside_sheet(kept)
    page = outside.make_outside_sheet(kept, run.scores[0].row).html
    assert "withheld" in page
    assert not [word for word in ("Finished", "Command") if word in page]


BOUGHT = {"trust": ["curator"], "methods": [{"method": "features", "steps": 3, "publish_accuracy": 0.5}]}


def test_a_bought_accuracy_leaves_within_the_rows_epsilon(people: Path, tmp_path: Path) -> None:
    done = run_on(people, tmp_path / "run", **BOUGHT)
    (row,) = done.rows
    assert row.head.paths["accuracy"] == pytest.approx(0.5, rel=1e-6)
    assert max(row.head.paths.values()) < row.epsilon_provable <= 2
    assert row.epsilon_provable > 0.9 * 2
    (told,) = rows_outside(done)
    assert told["metric"] == "noisy_accuracy"
    assert float(told["value"]) == row.head.metrics["noisy_accuracy"] != row.head.metrics["accuracy"]
    assert told["withheld"] == ""
    plan = json.loads((done.folder / outside.OUTSIDE / "plans.jsonl").read_text(encoding="utf-8"))
    assert [release["path"] for release in plan["releases"]] == ["model", "accuracy"]
    assert "was released with noise" in (done.folder / outside.OUTSIDE / "statement.txt").read_text(encoding="utf-8")


def test_where_an_accuracy_cannot_be_bought_one_line_says_why(people: Path, tmp_path: Path) -> None:
    more: dict[str, object]
    for more, why in (
        ({"trust": ["sums"]}, "in a federation no one party holds all answers"),
        ({"epsilons": [0.5]}, "needs finite epsilons above it"),
        ({"protocol": "inductive", "public": "test-graph"}, "there is nothing to buy"),
        ({"protocol": "asking", "methods": [{"method": "label_hop", "publish_accuracy": 0.5}]}, "reads more than the own row"),
    ):
        with pytest.raises(ScenarioError, match=why):
            run_on(people, tmp_path / "run", **{**BOUGHT, **more})


@pytest.mark.parametrize("more", [{"publish_accuracy": 0.5}, {"select": {"over": {"steps": [2, 3]}, "among": 2}}], ids=str)
def test_a_budget_is_charged_for_all_that_a_row_pays(people: Path, tmp_path: Path, more: dict[str, object]) -> None:
    """Its accuracy and the choice of its settings, too: all that its provable ε counts."""
    book = tmp_path / "people.budget"
    budget_book.create(book, Unit.NODE, 8.0, 1e-4, [f"p{k}" for k in range(PEOPLE)])
    asked = {"trust": ["curator"], "methods": [{"method": "features", "steps": 3, **more}]}
    done = run_on(people, tmp_path / "run", {"seed": "secret", "budget": str(book)}, **asked)
    (group,) = budget_book.read(book).groups()
    assert group.epsilon == pytest.approx(done.rows[0].epsilon_provable, rel=1e-3)
    if "select" not in more:
        assert group.epsilon > done.rows[0].head.paths["model"] + 0.05, "more than the training alone"
