"""The privacy sheet and the registry's record: complete, honest about what is not known, and never half-written."""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

import fedgraph
from fedgraph.cells.result import Result
from fedgraph.cells.task_facts import CanaryAttackCellFacts, NodeClassificationCellFacts
from fedgraph.commands import base as cli
from fedgraph.errors import DataError
from fedgraph.federation import world_of_trust
from fedgraph.privacy.events import PureDP, Unprotected
from fedgraph.privacy.ledger import Ledger, LedgerAccount, LedgerLine
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer
from fedgraph.report import privacy_sheet, saved_run, table
from tests.results import plain_result

SCHEMA = "FEDGRAPH_REGISTRY_SCHEMA"  # path of the registry's own schemas/deployments-schema.yaml
ASSUMED = (Assumption.COUNTS_PUBLIC, Assumption.UNTUNED, Assumption.CLIENTS_DISJOINT)


def cell(
    method: str,
    epsilon: float,
    accuracy: float,
    seed: int,
    provable: float | None = None,
    assumed: tuple[Assumption, ...] = ASSUMED,
) -> Result:
    price = epsilon if provable is None else provable
    held = Protection(Relation.NODE_ZERO_OUT, Viewer.SERVER, assumed)
    event = Unprotected("clear") if math.isinf(price) else PureDP(price / 2)
    lines = [LedgerLine("c", "model", ((0, 2),), ((0, 1),), 1, "Gaussian noise, σ = 3", event)]
    ledger = tuple(Ledger([LedgerAccount("c", held, 1e-5)], lines).lines())
    return plain_result(
        "t", "embedded/library", method, "v", world_of_trust(Trust.OWN_CLIENT), "provable", epsilon, seed,
        {"accuracy": accuracy},
        NodeClassificationCellFacts(clients=3, train_nodes=2000), held, 1e-5, None, price, None, "a theorem", {"model": price},
        ("a note of the plan",), 0.1, ledger,
    )  # fmt: skip


def saved(run: Path, *cells: Result) -> Path:
    """A finished run."""
    run.mkdir(exist_ok=True)
    table.write(table.tabulate(cells, {"embedded/library": "embedded"}), run)
    environment = {"seed": 7, "versions": {"torch": "2"}, "data": [{"name": "embedded/library", "source": "embedded"}]}
    (run / "environment.json").write_text(json.dumps(environment), encoding="utf-8")
    (run / "scenario.yaml").write_text("name: tiny\ntitle: A <tiny> run\n", encoding="utf-8")
    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A finished run of three rows: a private one, one that is ∞, one without privacy."""
    cells = [cell("sound", 1.2345112, 0.6 + s / 10, s) for s in range(2)]
    return saved(tmp_path / "run", *cells, cell("claims", 1.0, 0.9, 0, math.inf), cell("clear", math.inf, 0.95, 0))


def made(folder: Path, name: str | None = None) -> privacy_sheet.PrivacySheet:
    run = saved_run.load_saved_run(folder)
    return privacy_sheet.make_privacy_sheet(run, None if name is None else run.find(name))


def test_the_sheet_of_the_answer_states_everything_in_the_order_of_the_pyramid(folder: Path) -> None:
    page = made(folder).html
    assert "ε = 1.2346, δ = 1e-05, for each node, in one run" in page, "ε is rounded up"
    parts = ["ε and the unit", "Mechanisms", "Utility", "Implementation", "Side channels", "Trust", "Data"]
    places = [page.index(part) for part in parts]
    assert places == sorted(places)
    for told in ("features become zero", "the server, which sees each client", "a note of the plan", "a theorem", "0.65",
                 "0.950", "Gaussian noise, σ = 3, 6 ×", "is not counted", "floating point", "A &lt;tiny&gt; run"):  # fmt: skip
        assert told in page, told
    assert page.count('<span class="blank">') >= 6, "what a simulation cannot know is blank"
    assert not re.search(r"(src|href)=\"", page)


def test_the_sheet_prices_again_and_says_what_is_added_up_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a run as it is, with every line that a signer needs; and edited cells, of which each is refused in one line."""
    asked = {
        "task": "node_classification", "trust": ["curator", "sums"], "epsilons": [2], "partition": {"partition": "uniform"},
        "methods": [{"method": "features", "steps": 4, "clip": 0.5}],
    }  # fmt: skip
    data = [{"name": "embedded/library"}]
    given = {"name": "x", "runtime": {"engine": "serial"}, "datasets": data, "tasks": [asked]}
    done = fedgraph.run(given, out=tmp_path / "r", quiet=True)
    for one in done.rows:
        page, people = done.sheet(one.row), one.facts.train_nodes
        assert f"δ = {1 / people:.3g} of {people:,} people: a method that publishes one of them" in page
        assert "Δ₂ = 0.5: noise of standard deviation" in page, "the clip, as the noise and its multiplier say"
        assert ("the server reads only the sum" in page) == (one.trust is Trust.SUMS)
        assert ("the shares of 9 of 10 clients hide one person" in page) == (one.trust is Trust.SUMS)
    row = done.rows[0].head
    smaller = tuple(line.replace('"noise_multiplier":', '"noise_multiplier":9') for line in row.ledger)
    edits: list[dict[str, Any]] = [
        {"epsilon_provable": 0.5}, {"paths": {"model": 0.5}}, {"paths": {}}, {"ledger": ()}, {"delta": 1e-9},
        {"ledger": row.ledger[:1]}, {"ledger": smaller},
    ]  # fmt: skip
    for edit in edits:
        table.write(table.tabulate([replace(row, **edit)], {}), tmp_path / "r")
        assert cli.main(["sheet", str(tmp_path / "r"), done.rows[0].row, "--out", str(tmp_path / "o")]) == 2, edit
        (line,) = capsys.readouterr().err.splitlines()
        told = "states ε = .*its ledger costs ε = |states another guarantee|holds no ledger"
        assert re.search(told, line), edit
        assert f"{tmp_path / 'r'}: the cell of features · default, seed 0," in line, edit
    assert not (tmp_path / "o").exists()


def test_no_row_is_signed_unasked_where_none_is_better_than_what_releases_nothing(tmp_path: Path) -> None:
    free = [replace(cell("open", 1.0, 0.6 + s / 10, s), epsilon_provable=0.0, paths={}, ledger=()) for s in range(2)]
    for accuracy, signed in ((0.6, False), (0.9, True)):
        folder = saved(tmp_path / str(accuracy), *free, *(cell("sound", 1.2, accuracy + s / 10, s) for s in range(2)))
        if signed:
            assert made(folder).html
        else:
            with pytest.raises(DataError, match="no private row does better than v, which releases nothing"):
                made(folder)


def test_a_measured_epsilon_says_which_bound_it_is(tmp_path: Path) -> None:
    """The same guesses refute more where curves of Gaussian noise are taken for granted."""
    counts = ((1000, 200, 195),)
    attack = CanaryAttackCellFacts(counts, "what", "curve", None)
    entry = replace(cell("sound", 8.0, 0.5, 0), epsilon_measured=3.0, facts=NodeClassificationCellFacts(attack=attack))
    page = made(saved(tmp_path, replace(entry, ledger=cell("sound", 8.0, 0.5, 0).ledger))).html
    curve, plain = (float(x) for x in re.findall(r"ε ≥ (\d+\.\d+)", page))
    assert curve > plain > 0
    assert "refutes curves of Gaussian noise only" in page


def test_the_record_keeps_the_registrys_rules_and_a_row_without_a_guarantee_has_none(folder: Path) -> None:
    none = made(folder, "claims")
    assert ("This row protects nothing: ε = ∞" in none.html, none.record) == (True, None)
    text = made(folder).record
    assert text is not None
    read = yaml.safe_load(text)
    assert (read["status"], read["tier"]) == ("Draft", 3)
    loss = read["deployment"]["privacy_loss"]
    assert 1.2345112 <= loss["privacy_parameters"]["epsilon"] <= 1.23452, "never below the proven one"
    assert loss["privacy_parameters"]["delta"] == 1e-5
    assert read["deployment"]["deployment_model"]["model_name"] == "Federated"
    for blank in (read["deployment"]["basic"]["data_curators"][0], read["deployment"]["basic"]["intended_use"]):
        assert blank == privacy_sheet._BLANK
    assert read["url_slug"] == "sound-v-on-embedded-library-node-level--blank-to-be-filled-in-by-whoever-publishes--1900"
    styles = {getattr(token, "style", None) for token in yaml.scan(text, Loader=yaml.SafeLoader)}
    assert styles <= {None, "|", '"', "'"}, "the registry refuses folded text"
    assert not re.search(r"\\\\[^()]", json.dumps(read, ensure_ascii=False)), "nor doubled backslashes"


@pytest.mark.parametrize("own", [False, True])
def test_the_record_says_whether_each_answer_is_for_who_asks_and_keeps_letters(tmp_path: Path, own: bool) -> None:
    one = cell("sound", 1.0, 0.6, 0, assumed=(*ASSUMED, Assumption.ANSWERS_PRIVATE) if own else ASSUMED)
    text = made(saved(tmp_path, replace(one, variant="n\u00e9e \U0001f642"))).record
    assert text is not None
    record = yaml.safe_load(text)["deployment"]
    assert record["basic"]["name"].startswith("sound (n\u00e9e \U0001f642)")
    told = record["deployment_model"]["access_type_details"]
    assert ("published as it is" in told, "shown it alone" in told) == (not own, own)


@pytest.mark.skipif(not os.environ.get(SCHEMA), reason=f"{SCHEMA} names no copy of the registry's schema")
def test_the_registrys_own_schema_finds_no_error(folder: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = yaml.safe_load(Path(os.environ[SCHEMA]).read_text(encoding="utf-8"))
    check = jsonschema.Draft7Validator(schema, format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER)
    record = made(folder).record
    assert record is not None
    read = yaml.safe_load(record)
    assert [e.message for e in check.iter_errors(read)] == []
    assert list(check.iter_errors(read | {"tier": 0})), "the schema would object"


def test_the_command_writes_both_files_and_overwrites_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["sheet", str(folder)]) == 0
    page, record = (Path(line) for line in capsys.readouterr().out.split())
    assert page.name.startswith("privacy_sheet_row_v_own_client_eps_1_23")
    assert re.fullmatch(r"[a-z0-9_]+\.yaml", record.name), "the registry's rule for names"
    assert cli.main(["sheet", str(folder)]) == 0, "the same content again is no loss"
    page.write_text("signed", encoding="utf-8")
    assert cli.main(["sheet", str(folder)]) == 2
    assert "give --force" in capsys.readouterr().err
    assert page.read_text(encoding="utf-8") == "signed"
    assert cli.main(["sheet", str(folder), "--force"]) == 0
    assert not list(folder.glob("*.partial"))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (["missing"], "not the folder of a run: environment.json is missing"),
        (["damaged"], "0.json.gz: this cell is damaged"),
        (["RUN", "nothing-like-it"], "no row with a name like 'nothing-like-it'"),
        (["RUN", "own-client"], "3 rows with a name like 'own-client'"),
    ],
)
def test_bad_input_is_one_line(folder: Path, change: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    if change == ["damaged"]:  # a run without a table
        (folder / "results.parquet").unlink()
        (folder / "cells").mkdir()
        (folder / "cells" / "0.json.gz").write_bytes(b"no gzip")
    assert cli.main(["sheet", *(str(folder) if c in ("RUN", "damaged") else c for c in change)]) == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1
