"""Owners with tables of their own: site files, a deployment that is carried out here, its model, its sheet and its answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

import fedgraph
from fedgraph.commands import base as cli
from fedgraph.errors import DataError
from fedgraph.export import deployment, owner, project
from fedgraph.export.site import charge_site, open_site
from fedgraph.pricing import price
from fedgraph.privacy import budget_book
from tests.models.conftest import BOUNDS, write_people

Imported = Callable[[Path], ModuleType]
ROW = "features-features-sums"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A federation of three banks that planned together, its run, and the exported project."""
    home = tmp_path_factory.mktemp("owners")
    for k, count in enumerate((60, 50, 40)):
        write_people(home / "banks" / f"bank_{k}", count, 1000 * k, k)
    task = {
        "task": "node_classification", "protocol": "asking", "trust": ["sums"], "epsilons": [8], "delta": 1e-4,
        "partition": {"partition": "natural"}, "methods": [{"method": "features", "label": "Features", "steps": 8}],
    }  # fmt: skip
    data = [{"name": "own/read", "path": str(home / "banks"), "parameters": BOUNDS}]
    asked = {"name": "banks", "runtime": {"engine": "serial"}, "datasets": data, "tasks": [task]}
    fedgraph.run(asked, out=home / "run", quiet=True)
    project.write(project.open_row(home / "run", ROW), "flower", home / "app")
    return home


def carried_out(place: Path, out: Path, graphs: list[Path], imported: Imported, rounds: int) -> None:
    """Some rounds of the project's own code, without a framework."""
    home = place / "app" / "fedgraph_app"
    sums, planned, module = (imported(home / f"{name}.py") for name in ("private_sums", "planned", "rounds"))
    server, secrets = module.Rounds(out), [sums.new_key() for _ in graphs]
    board = {k: sums.public_key(secret) for k, secret in enumerate(secrets)}
    for _ in range(rounds):
        round_, answers = server.next, []
        for k, graph in enumerate(graphs):
            here = open_site(home / "plan.json", planned.PLAN_SHA256, graph)

            def charge(name: str, here: object = here, graph: Path = graph) -> None:
                charge_site(here, graph, planned.PLAN_SHA256, name, planned.COHORTS)  # type: ignore[arg-type]

            kept = sums.Released(planned, graph, server.deployment, charge)
            exact = {f"{n}@{p}": v for n, (p, v) in here.bounded(server.model, round_).items()}
            asked = sums.digest(server.model)
            sent = sums.protect(
                planned,
                exact,
                k,
                round_,
                secrets[k],
                board,
                lambda draw, kept=kept, asked=asked: kept.once(round_, asked, draw),
            )
            answers.append((k, 1, sent))
        server.merge(round_, answers)
    server.save(False)


@pytest.fixture
def graphs(place: Path, tmp_path: Path) -> list[Path]:
    """Site files of the owners' own tables: the second owner has lost ten people since the plan was made."""
    write_people(tmp_path / "bank_1", 40, 1000, 7)
    tables = [place / "banks" / "bank_0", tmp_path / "bank_1", place / "banks" / "bank_2"]
    for k, folder in enumerate(tables):
        words = ["site", str(folder), "--for", str(place / "app"), "--client", str(k), "-o", str(tmp_path / f"{k}.json")]
        assert cli.main(words) == 0
    return [tmp_path / f"{k}.json" for k in range(3)]


def test_from_tables_to_a_model_that_answers_by_name(
    place: Path, graphs: list[Path], imported: Imported, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    carried_out(place, tmp_path / "answer", graphs, imported, 8)
    assert cli.main(["model", str(tmp_path / "answer"), "-o", str(tmp_path / "people.model")]) == 0
    said = capsys.readouterr().out
    model = fedgraph.load(tmp_path / "people.model")
    total = price(place / "app").headline.total
    assert total is not None
    assert model.epsilon == pytest.approx(total.epsilon, abs=1e-4)
    assert f"ε = {np.ceil(model.epsilon * 1e4) / 1e4:g} at δ = 0.0001 for each node" in said
    assert "8 of 8 rounds were merged" in said
    assert "No accuracy is stated" in said
    write_people(tmp_path / "newcomers", 40, 5000, 3, header="id,city,member,age", known=False)
    ask = ["predict", str(tmp_path / "people.model"), str(tmp_path / "newcomers"), "--people", "own", "-o"]
    assert cli.main([*ask, str(tmp_path / "answers.csv")]) == 0
    answers = pd.read_csv(tmp_path / "answers.csv")
    assert list(answers["id"]) == [f"p{5000 + k}" for k in range(40)]
    assert set(answers["class"]) <= {"low", "mid", "high"}
    spent = budget_book.read(f"{graphs[0]}.budget")
    assert spent.groups()[0].epsilon == pytest.approx(model.epsilon, abs=1e-4)
    assert spent.num_people == 60


def test_a_deployment_that_stopped_costs_what_was_released(
    place: Path, graphs: list[Path], imported: Imported, tmp_path: Path
) -> None:
    carried_out(place, tmp_path / "answer", graphs, imported, 3)
    early = deployment.open_model(tmp_path / "answer")
    assert "The deployment is not at its end: round 3 is counted as released." in early.statement
    files = {file: file.read_bytes() for file in tmp_path.rglob("*.npz")}
    carried_out(place, tmp_path / "answer", graphs, imported, 5)
    whole = deployment.open_model(tmp_path / "answer")
    assert early.epsilon < whole.epsilon
    assert all(file.read_bytes() == content for file, content in files.items()), "what was released is released no second time"
    assert len(budget_book.read(f"{graphs[0]}.budget").charges) == 1, "one deployment is charged once"


def test_each_sheet_names_its_object_and_prints_its_price(
    place: Path, graphs: list[Path], imported: Imported, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    carried_out(place, tmp_path / "answer", graphs, imported, 3)
    deployment.open_model(tmp_path / "answer").save(tmp_path / "early.model")
    carried_out(place, tmp_path / "answer", graphs, imported, 5)
    deployment.open_model(tmp_path / "answer").save(tmp_path / "people.model")
    found = {}
    for what in (("early.model",), ("people.model",), ("answer",), (str(place / "run"), ROW)):
        words = [str(tmp_path / what[0]), *what[1:]]
        assert cli.main(["sheet", *words, "--out", str(tmp_path / "s")]) == 0
        file = next(line for line in capsys.readouterr().out.splitlines() if line.endswith(".html"))
        text = Path(file).read_text(encoding="utf-8")
        shown = re.search(r"ε = ([0-9.]+), δ", text)
        digest = re.search(r"SHA-256 (?:of its ledger )?([0-9a-f]{64})", text)
        assert shown is not None
        assert digest is not None
        found[what[0]] = (float(shown[1]), digest[1])
    early, whole, answer, row = found.values()
    assert early[0] < whole[0] == answer[0] == row[0]
    assert len({digest for _, digest in found.values()}) == 4
    assert json.loads((place / "app" / "fedgraph_export.json").read_text(encoding="utf-8"))["ledger_sha256"] == row[1]
    assert cli.main(["sheet", str(tmp_path / "people.model"), "row"]) == 2


def test_an_owner_is_told_what_does_not_fit(place: Path, tmp_path: Path) -> None:
    write_people(tmp_path / "many", 70, 0, 1)
    with pytest.raises(DataError, match="70 people; planned for client 0: at most 60"):
        owner.write_site(tmp_path / "many", place / "app", 0, tmp_path / "x.json")
    few = write_people(tmp_path / "few", 30, 0, 1)
    labels = (few / "labels.csv").read_text(encoding="utf-8")
    (few / "labels.csv").write_text(labels.replace("low", "rare"), encoding="utf-8")
    with pytest.raises(DataError, match="the class 'rare' is not planned; allowed: high, low, mid"):
        owner.write_site(few, place / "app", 0, tmp_path / "x.json")
    with pytest.raises(DataError, match=r"client 3; allowed: 0 … 2"):
        owner.write_site(few, place / "app", 3, tmp_path / "x.json")
    with pytest.raises(DataError, match="no project of fedgraph export"):
        owner.write_site(few, tmp_path, 0, tmp_path / "x.json")
