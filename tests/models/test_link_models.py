"""Rows of links as models: scores of pairs, alike after the file was read back; what must be refused gets one line."""

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fedgraph
from fedgraph.commands.base import main
from fedgraph.errors import DataError, PrivacyError, ScenarioError
from fedgraph.models import model_file
from fedgraph.models.model import Model
from fedgraph.privacy import budget_book
from fedgraph.privacy.units import Unit
from fedgraph.runs.run import Run

ROWS = [
    {"method": "link_hops", "width": 8, "label": "tie"},
    {"method": "link_owners", "width": 2, "label": "person"},
    {"method": "link_owners", "width": 2, "unit": "entity", "label": "owner"},
    {"method": "link_clear", "trust": ["curator"]},
    {"method": "link_clear", "model": "gcn", "trust": ["curator"]},
    {"method": "link_hops", "decoder": "steps", "hops": 0, "steps": 5, "label": "pair"},
]
PEOPLE = 90
READING = {"label": "", "owner": "payer"}


def write_accounts(home: Path) -> Path:
    """Accounts of three groups, which pay inside their group; the folder. Who pays stands beside, in owners.csv."""
    rng = np.random.default_rng(0)
    folder, groups = home / "people", rng.integers(0, 3, PEOPLE)
    folder.mkdir()
    names = [f"account-{k}" for k in range(PEOPLE)]
    columns = {"id": names, "x": groups == 0, "y": groups == 1, "z": rng.random(PEOPLE) < 0.5}
    pd.DataFrame({k: v if k == "id" else np.asarray(v).astype(int) for k, v in columns.items()}).to_csv(
        folder / "features.csv", index=False
    )
    ends = rng.integers(0, PEOPLE, (2500, 2))
    ends = ends[(groups[ends[:, 0]] == groups[ends[:, 1]]) & (ends[:, 0] != ends[:, 1])]
    lines = [f"{names[a]},{names[b]},owner-{a // 2}" for a, b in ends.tolist()]
    (folder / "edges.csv").write_text("source,target,payer\n" + "\n".join(lines) + "\n", encoding="utf-8")
    (home / "owners.csv").write_text("id\n" + "\n".join(f"owner-{k}" for k in range(PEOPLE)), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_accounts(tmp_path_factory.mktemp("links")).parent


@pytest.fixture(scope="module")
def run(place: Path) -> Run:
    """Of every row."""
    task = {"task": "link_prediction", "trust": ["curator", "sums"], "epsilons": [4], "delta": 1e-4, "methods": ROWS,
            "partition": {"partition": "uniform", "clients": 3}}  # fmt: skip
    data = [{"name": "own/csv", "path": str(place / "people"), "parameters": READING}]
    asked = {"name": "use", "runtime": {"engine": "serial"}, "datasets": data, "tasks": [task]}
    return fedgraph.run(asked, out=place / "run", quiet=True)


def anchor(run: Run, variant: str, trust: str = "curator") -> str:
    return next(s.row for s in run.scores if s.variant == variant and s.head.world.trust.value == trust)


@pytest.fixture(scope="module")
def models(run: Run) -> dict[str, Model]:
    every = [("tie", "sums"), *((label, "curator") for label in ("tie", "pair", "person", "owner"))]
    return {f"{label} {trust}": run.score(anchor(run, label, trust)).fit() for label, trust in every}


def pairs() -> list[tuple[str, str]]:
    return [(f"account-{a}", f"account-{b}") for a in range(PEOPLE) for b in range(a % 7, a, 11)]


def test_scores_are_the_same_after_the_file_was_read_back(models: dict[str, Model], tmp_path: Path) -> None:
    for name, model in models.items():
        before = model.score_pairs(pairs())
        model.save(tmp_path / name)
        again = fedgraph.load(tmp_path / name)
        assert np.array_equal(before, again.score_pairs([(two, one) for one, two in pairs()])), name
        assert 0 < again.epsilon <= 4
        units = {"tie": Unit.EDGE, "pair": Unit.EDGE, "person": Unit.NODE, "owner": Unit.ENTITY}
        assert again.plan.guarantee.protection.unit is units[name.split()[0]]


def test_the_file_of_a_neighbour_differs_in_what_was_released_alone(
    models: dict[str, Model], run: Run, place: Path, tmp_path: Path
) -> None:
    """A digest of the edges, or how many there are, would tell for certain whether a tie is there."""
    folder = tmp_path / "people"
    shutil.copytree(place / "people", folder)
    head, *lines = (folder / "edges.csv").read_text(encoding="utf-8").splitlines()
    tie = set(lines[4].split(",")[:2])
    kept = [line for line in lines if set(line.split(",")[:2]) != tie]
    (folder / "edges.csv").write_text("\n".join([head, *kept]) + "\n", encoding="utf-8")
    for label in ("tie", "pair", "person", "owner"):
        both = models[f"{label} curator"], run.score(anchor(run, label)).fit(str(folder))
        one, other = (dataclasses.replace(model, people=None, state=None) for model in both)  # type: ignore[arg-type]
        assert model_file.to_bytes(one) == model_file.to_bytes(other), label


def test_what_cannot_be_asked_gets_one_line(models: dict[str, Model], run: Run, place: Path) -> None:
    model = models["tie curator"]
    with pytest.raises(DataError, match=r"1 people of these pairs were not in the training graph, the first is 'eve'"):
        model.score_pairs([("account-1", "eve")])
    with pytest.raises(DataError, match="'account-1' is asked with itself"):
        model.score_pairs([("account-1", "account-1")])
    with pytest.raises(DataError, match="is no pair; allowed: two ids"):
        model.score_pairs([("account-1",)])  # type: ignore[list-item]
    with pytest.raises(DataError, match="scores pairs, and names no class"):
        model.predict(str(place / "people"))
    with pytest.raises(ScenarioError, match="leave --public away"):
        run.score(anchor(run, "tie")).fit(public=str(place / "people"))
    with pytest.raises(ScenarioError, match="link_prediction choose no settings"):
        run.score(anchor(run, "tie")).fit(select={"over": {"hops": [1, 2]}})
    with pytest.raises(PrivacyError, match="ε is ∞"):
        run.score(anchor(run, "tie")).fit(epsilon=np.inf)
    for label in ("default", "gcn"):
        with pytest.raises(ScenarioError, match="link_clear reads the private edges of the training graph themselves"):
            run.score(anchor(run, label)).fit(nothing_protected=True)


def test_every_owner_of_a_budget_pays_for_a_model_of_owners(place: Path, run: Run, tmp_path: Path) -> None:
    """The data do not say which owners they are of, so all of the book are charged; nodes of the graph are no owners."""
    book = str(tmp_path / "book")
    asked = ["budget", "init", book, "--unit", "entity", "--epsilon", "4.5", "--delta", "1e-3", "--people"]
    assert main([*asked, str(place / "owners.csv")]) == 0
    row = run.score(anchor(run, "owner"))
    row.fit(budget=book)
    with pytest.raises(PrivacyError, match="one person would have paid"):
        row.fit(budget=book)
    task = {"task": "link_prediction", "trust": ["curator"], "epsilons": [0.2], "delta": 1e-4, "methods": [ROWS[2]]}
    data = [{"name": "own/csv", "path": str(place / "people"), "parameters": READING}]
    asked_run = {"name": "charged", "seed": "secret", "budget": book, "runtime": {"engine": "serial"}, "datasets": data}
    fedgraph.run({**asked_run, "tasks": [task]}, out=tmp_path / "charged", quiet=True)
    assert [charge.people.all() for charge in budget_book.read(Path(book)).charges] == [True, True]
