"""Owners with tables of their own: site files, a deployment that is carried out here, its model, its sheet and its answers."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

import fedgraph
from fedgraph.commands import base as cli
from fedgraph.errors import DataError, PrivacyError
from fedgraph.export import deployment, project
from fedgraph.export import wire as wire_room
from fedgraph.export.site import charge_site, open_site
from fedgraph.pricing import price
from fedgraph.privacy import Unit, budget_book
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
    """Some rounds of the project's own code, without a framework; every message is recorded at both ends."""
    home = place / "app" / "fedgraph_app"
    sums, planned, module, wire = (imported(home / f"{name}.py") for name in ("private_sums", "planned", "rounds", "wire"))
    server, secrets, capture = module.Rounds(out), [sums.new_key() for _ in graphs], wire.Capture(out)
    board = {k: sums.public_key(secret) for k, secret in enumerate(secrets)}

    def tell(graph: Path, parts: dict[str, object], **more: object) -> None:
        wire.note(graph.with_name(f"{graph.name}.released") / "wire.jsonl", parts, **more)
        capture.keep(parts, ["frame"])

    def answer(round_: int, k: int, graph: Path) -> tuple[int, int, dict[str, np.ndarray]]:
        here, drawn = open_site(home / "plan.json", planned.PLAN_SHA256, graph), {}

        def charge(name: str) -> None:
            charge_site(here, graph, planned.PLAN_SHA256, name, planned.COHORTS)

        def once(draw: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
            released = sums.Released(planned, graph, server.deployment, charge)
            drawn.update(released.once(round_, sums.digest(server.model), draw))
            return drawn

        exact = {f"{n}@{p}": v for n, (p, v) in here.bounded(server.model, round_).items()}
        sent = sums.protect(planned, exact, k, round_, secrets[k], board, once)
        own = {key: wire.entry(value)["sha256"] for key, value in drawn.items()}
        parts = {f"sums/{key}": value for key, value in sent.items()}
        tell(graph, {**parts, "told/client": k, "told/weight": 1, "told/round": round_}, round=round_, before_masks=own)
        return k, 1, sent

    for k, graph in enumerate(graphs):
        tell(graph, {"told/client": k, "told/key": board[k]}, introduces=True)
    for _ in range(rounds):
        round_ = server.next
        server.merge(round_, [answer(round_, k, graph) for k, graph in enumerate(graphs)])
    server.save(False)


@pytest.fixture
def graphs(place: Path, tmp_path: Path) -> list[Path]:
    """Site files of the owners' own tables: the second owner has lost ten people since the plan was made."""
    write_people(tmp_path / "bank_1", 40, 1000, 7)
    for k in (0, 2):
        shutil.copytree(place / "banks" / f"bank_{k}", tmp_path / f"bank_{k}")
    for k, folder in enumerate(tmp_path / f"bank_{k}" for k in range(3)):
        words = ["site", str(folder), "--for", str(place / "app"), "--client", str(k), "-o", str(tmp_path / f"{k}.json")]
        assert cli.main(words) == 0
    return [tmp_path / f"{k}.json" for k in range(3)]


def test_from_tables_to_a_model_that_answers_by_name(
    place: Path,
    graphs: list[Path],
    imported: Imported,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    capsys.readouterr()
    carried_out(place, tmp_path / "answer", graphs, imported, 8)
    assert cli.main(["model", str(tmp_path / "answer"), "-o", str(tmp_path / "people.model")]) == 0
    said = capsys.readouterr().out
    model = fedgraph.load(tmp_path / "people.model")
    total = price(place / "app").headline.total
    assert total is not None
    assert model.epsilon == pytest.approx(total.epsilon, abs=1e-4)
    assert f"ε = {np.ceil(model.epsilon * 1e4) / 1e4:g} at δ = 0.0001 for each person" in said
    assert "8 of 8 rounds were merged" in said
    assert "Accuracy withheld: it is exact" in said
    assert "simulated" not in said, "sums are behind masks"
    write_people(tmp_path / "newcomers", 40, 5000, 3, header="id,city,member,age", known=False)
    ask = ["predict", str(tmp_path / "people.model"), str(tmp_path / "newcomers"), "--people", "own", "-o"]
    assert cli.main([*ask, str(tmp_path / "answers.csv")]) == 0
    answers = pd.read_csv(tmp_path / "answers.csv")
    assert list(answers["id"]) == [f"p{5000 + k}" for k in range(40)]
    assert set(answers["class"]) <= {"low", "mid", "high"}
    spent = budget_book.read(tmp_path / "bank_0.budget")
    assert spent.groups()[0].epsilon == pytest.approx(model.epsilon, abs=1e-4)
    assert spent.num_people == 60
    words = ["site", str(tmp_path / "bank_0"), "--for", str(place / "app"), "--client", "0", "-o", str(tmp_path / "again.json")]
    assert cli.main(words) == 0, "a second file of the same tables"
    assert re.search(r"would be refused: one person would have paid ε = [0-9.]+ of 8 ", capsys.readouterr().out)
    (tmp_path / "bank_0.budget").rename(tmp_path / "elsewhere")
    assert cli.main([*words[:-1], str(tmp_path / "third.json")]) == 0
    assert "bank_0.budget, which was deleted" in (said := capsys.readouterr().out)
    assert "it would be refused" in said
    (tmp_path / "elsewhere").rename(tmp_path / "bank_0.budget")
    budget_book.create(tmp_path / "more.budget", Unit.NODE, 20, 1e-4, [f"p{k}" for k in range(60)])
    monkeypatch.setenv("FEDGRAPH_BUDGET", str(tmp_path / "more.budget"))
    assert deployment.write_site(tmp_path / "bank_0", place / "app", 0, tmp_path / "more.json").endswith("more.budget")
    monkeypatch.delenv("FEDGRAPH_BUDGET")
    digest = json.loads((place / "app" / "fedgraph_export.json").read_text(encoding="utf-8"))["plan_sha256"]
    here = open_site(place / "app" / "fedgraph_app" / "plan.json", digest, tmp_path / "again.json")
    with pytest.raises(PrivacyError, match=r"bank_0\.budget: with deployment 0123 of"):
        charge_site(here, tmp_path / "again.json", digest, "0123")


@pytest.mark.parametrize("how", ["lost", "a copy"])
def test_a_round_is_released_with_other_noise_for_its_price_only(
    place: Path, graphs: list[Path], imported: Imported, tmp_path: Path, how: str
) -> None:
    """Without its records an owner does not know what it released: the book has to pay for a second noise, or refuses it."""
    carried_out(place, tmp_path / "answer", graphs, imported, 2)
    state = tmp_path / "answer" / "state.json"
    first = json.loads(state.read_text(encoding="utf-8"))
    if how == "lost":
        shutil.rmtree(f"{graphs[1]}.released")
    else:
        graphs[1] = Path(shutil.copy(graphs[1], tmp_path / "copy.json"))
    with pytest.raises(PrivacyError, match="would have paid"):
        carried_out(place, tmp_path / "answer", graphs, imported, 1)
    assert json.loads(state.read_text(encoding="utf-8")) == first, "the deployment goes on no further"
    assert not list(Path(f"{graphs[1]}.released").rglob("*.npz"))


def test_a_deployment_that_stopped_costs_what_was_released_and_each_sheet_says_so(
    place: Path, graphs: list[Path], imported: Imported, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    carried_out(place, tmp_path / "answer", graphs, imported, 3)
    early = deployment.open_model(tmp_path / "answer")
    early.save(tmp_path / "early.model")
    assert "The deployment is not at its end: round 3 is counted as released." in early.statement
    files = {file: file.read_bytes() for file in tmp_path.rglob("*.npz")}
    carried_out(place, tmp_path / "answer", graphs, imported, 5)
    deployment.open_model(tmp_path / "answer").save(tmp_path / "people.model")
    assert all(file.read_bytes() == content for file, content in files.items()), "what was released is released no second time"
    assert len(budget_book.read(tmp_path / "bank_0.budget").charges) == 1, "one deployment is charged once"
    found = {}
    for what in (("early.model",), ("people.model",), ("answer",), (str(place / "run"), ROW)):
        assert cli.main(["sheet", str(tmp_path / what[0]), *what[1:], "--out", str(tmp_path / "s")]) == 0
        file = next(line for line in capsys.readouterr().out.splitlines() if line.endswith(".html"))
        text = Path(file).read_text(encoding="utf-8")
        [shown], [digest] = (
            re.findall(r"ε = ([0-9.]+), δ", text)[:1],
            re.findall(r"SHA-256 (?:of its ledger )?([0-9a-f]{64})", text)[:1],
        )
        found[what[0]] = (float(shown), digest)
    stopped, whole, answer, row = found.values()
    assert stopped[0] < whole[0] == answer[0] == row[0]
    assert len({digest for _, digest in found.values()}) == 4
    assert json.loads((place / "app" / "fedgraph_export.json").read_text(encoding="utf-8"))["ledger_sha256"] == row[1]
    assert cli.main(["sheet", str(tmp_path / "people.model"), "row"]) == 2


def test_an_owner_is_told_what_does_not_fit(place: Path, tmp_path: Path) -> None:
    write_people(tmp_path / "many", 70, 0, 1)
    with pytest.raises(DataError, match="70 people; planned for client 0: at most 60"):
        deployment.write_site(tmp_path / "many", place / "app", 0, tmp_path / "x.json")
    few = write_people(tmp_path / "few", 30, 0, 1)
    labels = (few / "labels.csv").read_text(encoding="utf-8")
    (few / "labels.csv").write_text(labels.replace("low", "rare"), encoding="utf-8")
    with pytest.raises(DataError, match="the class 'rare' is not planned; allowed: high, low, mid"):
        deployment.write_site(few, place / "app", 0, tmp_path / "x.json")
    with pytest.raises(DataError, match=r"client 3; allowed: 0 … 2"):
        deployment.write_site(few, place / "app", 3, tmp_path / "x.json")
    with pytest.raises(DataError, match="no project of fedgraph export"):
        deployment.write_site(few, tmp_path, 0, tmp_path / "x.json")


def forged(out: Path, number: int, **parts: np.ndarray) -> None:
    """One recorded message with other parts, and its line with their hashes: a server that says that this is what came."""
    file = out / "wire" / f"{number}.npz"
    with np.load(file) as held:
        made = {name: held[name] for name in held} | {name.replace("__", "/"): value for name, value in parts.items()}
    np.savez(file, **made)  # type: ignore[arg-type]
    lines = (out / "wire" / "messages.jsonl").read_text(encoding="utf-8").splitlines()
    line = json.loads(lines[number])
    line["parts"] = {  # the value's type, its shape, and its bytes
        name: {"sha256": hashlib.sha256(f"{value.dtype.str} {value.shape} ".encode() + value.tobytes()).hexdigest()}
        for name, value in made.items()
    }
    lines[number] = json.dumps(line)
    (out / "wire" / "messages.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_the_wire_is_the_ledger(
    place: Path, graphs: list[Path], imported: Imported, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each vector that came is one line of the ledger, and what left costs what the project states, also after a resume."""
    out, words = tmp_path / "answer", ["audit", "wire", str(tmp_path / "answer" / "wire"), str(place / "app"), "--owners"]
    words += [str(graph) for graph in graphs]
    carried_out(place, out, graphs, imported, 3)
    assert cli.main(words) == 0, "less left than is paid"
    said = capsys.readouterr().out
    assert "9 released vectors; 0 faults" in said
    assert "it differs: rounds 3, 4, 5, 6, 7 did not leave" in said
    state = (out / "state.json").read_bytes()
    carried_out(place, out, graphs, imported, 5)
    assert cli.main(words) == 0
    assert "the project states ε = 8, which is equal" in capsys.readouterr().out
    (out / "state.json").write_bytes(state)  # a server that forgot: it asks rounds 3 to 7 once more, with other masks
    carried_out(place, out, graphs, imported, 5)
    assert cli.main(words) == 0, "the same numbers behind other masks are one release, as the owners' records say"
    assert cli.main(words[: words.index("--owners")]) == 1, "without them, the server cannot know it, and both are priced"
    assert "with other numbers once more: model of client 0 in round 3" in capsys.readouterr().out


FORGERIES = {
    "rows beside": ({"told__row": np.arange(5.0)}, "told/row left, 40 bytes that nobody planned"),
    "another round": ({"told__round": np.array(99)}, "in round 99, which does not ask it"),
    "another client": ({"told__client": np.array(7)}, "client 7 sent values"),
    "exact numbers": ({"sums__gradient@model": np.ones(40)}, "gradient@model is float64; planned: whole numbers"),
    "another path": ({"sums__rows@rows": np.ones(3, np.int64)}, "lines of the ledger: ['model']"),
    "no mask": ({"sums__gradient@model": np.full(40, 2**61)}, "do not cancel, so it is no sum"),
    "heavy": ({"told__weight": np.array(2)}, "with the weight 1"),
}


def test_what_is_no_line_of_the_ledger_is_named(place: Path, graphs: list[Path], imported: Imported, tmp_path: Path) -> None:
    carried_out(place, tmp_path / "answer", graphs, imported, 1)
    wire = tmp_path / "answer" / "wire"
    with np.load(wire / "3.npz") as held:
        size = held["sums/gradient@model"].size
    before = {file: file.read_bytes() for file in (wire / "3.npz", wire / "messages.jsonl")}
    for forgery, (parts, why) in FORGERIES.items():
        forged(tmp_path / "answer", 3, **{name: np.resize(v, size) if "gradient" in name else v for name, v in parts.items()})
        faults = wire_room.audit_wire(wire, place / "app", graphs).faults
        assert any(why in fault for fault in faults), (forgery, faults)
        assert any("no owner has written down that it left" in fault for fault in faults), forgery
        for file, content in before.items():
            file.write_bytes(content)
    assert not wire_room.audit_wire(wire, place / "app", graphs).faults
