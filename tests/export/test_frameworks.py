"""The page about deployment, command by command, with the frameworks themselves: skipped where they are not installed.

Their commands are looked for on the path, or in the folders that FEDGRAPH_FLWR and FEDGRAPH_NVFLARE name (environments of
their own, in which fedgraph can be imported, too).
"""

import contextlib
import csv
import json
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy import stats

from fedgraph.export import project, site, wire
from fedgraph.export.deployment import open_model
from fedgraph.export.site import open_site
from fedgraph.methods.base import State, method_kinds
from tests.models.conftest import write_people

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
COMMANDS = {"Flower": "flwr", "NVIDIA FLARE": "nvflare"}  # the heading of the page → the command
FOLDERS = {"Flower": os.environ.get("FEDGRAPH_FLWR", ""), "NVIDIA FLARE": os.environ.get("FEDGRAPH_NVFLARE", "")}
ANSWERS = {"Flower": "answer", "NVIDIA FLARE": "workspace/server/simulate_job/answer"}
HOMES = {"Flower": "app/fedgraph_app", "NVIDIA FLARE": "flare/job/app/custom/fedgraph_app"}
pytestmark = pytest.mark.slow


def blocks(language: str, heading: str) -> list[str]:
    """The blocks of code under a heading of the page."""
    part = next(p for p in PAGE.split("\n## ") if p.startswith(heading))
    return re.findall(rf"```{language}\n(.*?)```", part, re.S)


def free_port() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def require(name: str) -> None:
    """Skips where the framework is missing."""
    if shutil.which(COMMANDS[name], path=FOLDERS[name] or None) is None:
        pytest.skip(f"{name} is not installed: {COMMANDS[name]} is not on the path, nor in FEDGRAPH_{COMMANDS[name].upper()}")


def environment(name: str, here: Path) -> dict[str, str]:
    own = {
        "PATH": os.pathsep.join(filter(None, (str(here / "bin"), FOLDERS[name], os.environ["PATH"]))),
        "PYTHONPATH": str(ROOT),
        "FLWR_HOME": str(here / "flwr"),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_LOCAL_SUPERLINK_HTTP_API_PORT": free_port(),
        "FLWR_LOCAL_CONTROL_API_PORT": free_port(),
        "OMP_NUM_THREADS": "1",
    }
    return {**os.environ, **own}


@pytest.fixture(scope="module", params=sorted(COMMANDS))
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """(framework, the folder in which the commands of the page were run)."""
    name = str(request.param)
    require(name)
    here = tmp_path_factory.mktemp("deploy")
    (here / "bin").mkdir()
    (here / "bin" / "fedgraph").write_text(f'#!/bin/sh\nexec {sys.executable} -m fedgraph "$@"\n', encoding="utf-8")
    (here / "bin" / "fedgraph").chmod(0o755)
    (here / "three.yaml").write_text(blocks("yaml", "A run")[0], encoding="utf-8")
    commands = "\n".join([*blocks("bash", "A run"), *blocks("bash", name)]).replace("answer'\"", "answer' keep-rounds=true\"")
    try:
        done = subprocess.run(
            ["bash", "-e", "-c", commands], cwd=here, env=environment(name, here), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        assert (here / ANSWERS[name] / "predictions.csv").is_file(), done.stdout[-3000:] + done.stderr[-3000:]
        yield name, here
    finally:
        for entry in Path("/proc").glob("[0-9]*/cmdline"):  # the local SuperLink that flwr has started
            with contextlib.suppress(OSError):
                if str(here / "flwr").encode() in entry.read_bytes():
                    os.kill(int(entry.parent.name), signal.SIGTERM)


def test_every_round_ran_with_the_noise_of_the_plan(ran: tuple[str, Path], imported: Callable[[Path], ModuleType]) -> None:
    """The sums that the server opened, less the exact sums at the same models, are normal with the planned deviation."""
    name, place = ran
    file = place / HOMES[name] / "planned.py"
    planned, digest = imported(file), file.with_name("plan.json")
    graphs = place / ("clients" if name == "Flower" else "sites")
    sites = [open_site(digest, planned.PLAN_SHA256, graphs / f"client-{k}.json") for k in range(3)]
    rounds, beyond = np.load(place / ANSWERS[name] / "rounds.npz"), []
    for r in range(planned.ROUNDS):
        model = {"parameters": rounds[f"{r}/model/parameters"]}
        exact = np.sum([np.asarray(site.bounded(model, r)["gradient"][1], dtype=float) for site in sites], axis=0)
        beyond.append(rounds[f"{r}/sums/gradient@model"] - exact)
    drawn = np.concatenate(beyond) / (planned.RELEASES["model"]["share"] * math.sqrt(3))
    assert len(drawn) == planned.ROUNDS * planned.RELEASES["model"]["dimension"]
    assert stats.kstest(drawn, "norm").pvalue > 1e-12, "the noise is secret, so chance fails this once in 10¹² runs"
    assert stats.kstest(drawn * 1.5, "norm").pvalue < 1e-15
    assert all(len(list((graphs / f"client-{k}.json.released").rglob("*.npz"))) == planned.ROUNDS for k in range(3))


def test_the_accuracy_is_the_rows(ran: tuple[str, Path]) -> None:
    """Within three binomial deviations of the row, on the nodes that the row was tested on."""
    name, place = ran
    found = project.open_row(place / "run", "features, sums")
    graph = found.plan.facts.public_graph
    assert graph is not None
    with (place / ANSWERS[name] / "predictions.csv").open(encoding="utf-8") as file:
        classes = np.array([int(row["class"]) for row in csv.DictReader(file)])
    accuracy, said = float((classes == graph.labels).mean()), found.row.accuracy
    assert abs(accuracy - said) < 7.2 * math.sqrt(2 * said * (1 - said) / graph.num_nodes), "secret noise: once in 10¹² runs"
    state = site.read_site_file(place / ANSWERS[name] / "state.json", State)
    audited = wire.audit_wire(
        place / ANSWERS[name] / "wire", place / ("app" if name == "Flower" else "flare"), sites_of(name, place)
    )
    assert (audited.faults, audited.difference) == ((), "")
    scores = method_kinds.load_classifier(found.plan.method).predict(found.plan, state, graph)
    assert (scores.argmax(axis=1) == classes).all()


def sites_of(name: str, place: Path) -> list[Path]:
    return [place / ("clients" if name == "Flower" else "sites") / f"client-{k}.json" for k in range(3)]


def script(name: str, place: Path, opened: Callable[[str], project.ProjectSource], code: str) -> str:
    """What a program prints that the framework's own Python runs beside the project's package."""
    require(name)
    framework = {"Flower": "flower", "NVIDIA FLARE": "nvflare"}[name]
    project.write(opened("features, sums"), framework, place / "app")
    project.write_clients(opened("features, sums"), place / "clients")
    home = next((place / "app").rglob("planned.py")).parents[1]
    python = Path(shutil.which(COMMANDS[name], path=FOLDERS[name] or None) or "").with_name("python")
    env = environment(name, place) | {"PYTHONPATH": f"{ROOT}{os.pathsep}{home}", "FEDGRAPH_GRAPHS": str(place / "clients")}
    done = subprocess.run([str(python), "-c", code], cwd=place, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


STRATEGY = """
import types
import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from flwr.common.constant import ErrorCode
from fedgraph_app import planned, server_app
from fedgraph_app.rounds import Aborted, Rounds
from fedgraph_app.wire import Capture

size = planned.RELEASES["model"]["dimension"]

def message(content, message_type, dst_node_id):  # Flower's own asks for the task that it runs in
    return types.SimpleNamespace(content=content)

server_app.Message = message

class Metadata:
    def __init__(self, node):
        self.src_node_id = node

def reply(client, weight=1, error=0, key=b"k" * 32):
    told = MetricRecord({"client": client, "weight": weight, "round": 0})
    content = RecordDict({"sums": ArrayRecord({"gradient@model": Array(np.ones(size, np.int64))}), "told": told})
    why = types.SimpleNamespace(code=error, reason="Refused")
    return types.SimpleNamespace(has_error=lambda: bool(error), error=why, content=content, metadata=Metadata(client))

def introduction(client):
    content = RecordDict({"told": ConfigRecord({"client": client, "key": b"k" * 32})})
    return types.SimpleNamespace(has_error=lambda: False, content=content, metadata=Metadata(client))

class Grid:
    def __init__(self, *rounds):
        self.rounds = list(rounds)
    def get_node_ids(self):
        return [0, 1, 2]
    def send_and_receive(self, asked, timeout):
        query = "model" not in asked[0].content
        return [introduction(k) for k in range(3)] if query else self.rounds.pop(0)

whole, gone, refusal = [reply(0), reply(1), reply(2)], ErrorCode.NODE_UNAVAILABLE, ErrorCode.CLIENT_APP_RAISED_EXCEPTION
for number, grid in enumerate((
    Grid(whole), Grid([reply(0), reply(1, error=gone), reply(2)], whole), Grid([reply(0), reply(1)]),
    Grid([reply(0), reply(1), reply(2, error=refusal)]), Grid([reply(0), reply(1), reply(1)]),
    Grid([reply(0), reply(1), reply(2, weight=2)]),
)):
    rounds = Rounds(f"out{number}")
    try:
        server_app.Sums(rounds, 1e-9 if number == 2 else 60, Capture(f"out{number}")).step(grid, 0)
        print("stepped", sorted(rounds.model), rounds.done)
    except Aborted as error:
        print("aborted:", error)
"""


def test_flowers_server_steps_on_whole_rounds_of_equal_weights_only(
    opened: Callable[[str], project.ProjectSource], tmp_path: Path
) -> None:
    said = [line for line in script("Flower", tmp_path, opened, STRATEGY).splitlines() if not line.startswith("round ")]
    assert said[:2] == ["stepped ['parameters'] [0]"] * 2, "a client that is away is waited for"
    assert [line.partition(": ")[0] for line in said[2:]] == ["aborted"] * 4
    assert "clients [2] are away; run it again" in said[2]
    assert "node 2 refuses: Refused" in said[3]
    assert "another weight than 1" in said[5]


FILTER = """
import types
import numpy as np
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import Shareable, make_reply
from fedgraph.errors import PrivacyError
from fedgraph_app import filters, planned
from fedgraph_app.private_sums import Refused, new_key, public_key

context = types.SimpleNamespace(get_identity_name=lambda: "client-0", get_job_id=lambda: "job", get_engine=lambda: None)
filter_ = filters.PlannedNoise(pinned=True)
filter_.log_debug = lambda *_: None
size = planned.RELEASES["model"]["dimension"]
board = [public_key(filter_.secret), public_key(new_key()), public_key(new_key())]
meta = {"client": 0, "round": 0, "clients": [0, 1, 2], "keys": [k.hex() for k in board], "introduces": False,
        "deployment": "0" * 32, "asked": "model"}
values = {"gradient@model": np.zeros(size)}
bare = Shareable(); bare["rows"] = values
failed = make_reply(ReturnCode.EXECUTION_EXCEPTION); failed["rows"] = values
for what, result in (
    ("other kind", DXO(DataKind.WEIGHTS, dict(values), dict(meta)).to_shareable()),
    ("collection", DXO(DataKind.COLLECTION, {"a": DXO(DataKind.WEIGHT_DIFF, dict(values), dict(meta))}, {}).to_shareable()),
    ("no DXO", bare),
    ("more than planned", DXO(DataKind.WEIGHT_DIFF, {**values, "rows@model": np.ones(3)}, dict(meta)).to_shareable()),
    ("failed", failed),
    ("introduces", DXO(DataKind.WEIGHT_DIFF, dict(values), {**meta, "introduces": True, "row": [1.0]}).to_shareable()),
    ("planned", DXO(DataKind.WEIGHT_DIFF, dict(values), {**meta, "round": 1, "row": [1.0]}).to_shareable()),
    ("again", DXO(DataKind.WEIGHT_DIFF, dict(values), {**meta, "round": 1}).to_shareable()),
    ("other model", DXO(DataKind.WEIGHT_DIFF, dict(values), {**meta, "round": 1, "asked": "other"}).to_shareable()),
    ("other start", DXO(DataKind.WEIGHT_DIFF, dict(values), {**meta, "deployment": "1" * 32}).to_shareable()),
):
    try:
        sent = filter_.process(result, context)
        dxo = sent.get("DXO") or {}
        meta_sent = sorted(k for k in dxo.get("meta", {}) if "filter" not in k)
        print(what, "sent", sorted(dxo.get("data", {})), meta_sent, "rows" in sent)
        if what == "planned":
            print("noised", dxo["data"]["gradient@model"].dtype, bool(np.abs(dxo["data"]["gradient@model"]).min() > 2**30))
            print("twice", filters.PlannedNoise().process(sent, context) is sent)
    except (Refused, PrivacyError) as error:
        print(what, "refused")
"""


def test_flares_filter_rejects_every_result_but_the_planned_one(
    opened: Callable[[str], project.ProjectSource], tmp_path: Path
) -> None:
    said = script("NVIDIA FLARE", tmp_path, opened, FILTER).splitlines()
    assert said[:4] == [f"{w} refused" for w in ("other kind", "collection", "no DXO", "more than planned")]
    assert said[4:7] == [
        "failed sent [] [] False",
        "introduces sent ['key'] ['client'] False",
        "planned sent ['gradient@model'] ['client', 'round', 'weight'] False",
    ]
    again = said[6].replace("planned", "again")
    assert said[7:] == ["noised int64 True", "twice True", again, "other model refused", "other start refused"]


def test_flares_simulator_with_opacus_is_priced_and_its_ties_are_compared(tmp_path: Path) -> None:
    """The team of ``docs/from_tables_to_graphs.md``: FLARE kills its clients, and what they did is the price."""
    require("NVIDIA FLARE")
    python = Path(shutil.which("nvflare", path=FOLDERS["NVIDIA FLARE"] or None) or "").with_name("python")
    if subprocess.run([python, "-c", "import opacus"], capture_output=True, check=False).returncode:
        pytest.skip(f"Opacus is not installed beside FLARE ({python})")
    page = (ROOT / "docs" / "from_tables_to_graphs.md").read_text(encoding="utf-8")
    for file in (ROOT / "docs" / "tables").glob("*.py"):
        shutil.copy(file, tmp_path)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "people.py"], cwd=tmp_path, check=True)
    given = ["--given", "delta=1e-5", "--given", "data sets hold different people=1"]
    command = [sys.executable, "-m", "fedgraph", "price", "--run", f"{python} job.py", *given, "--edges", "people"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "2.977" in done.stdout, "20 steps at each site"
    shown = next(block for block in page.split("```text\n") if block.startswith("published")).partition("```")[0]
    for line in shown.strip().splitlines():  # accuracies may differ in their last digits on another machine
        assert re.sub(r"0\.\d+", "#", line) in re.sub(r"0\.\d+", "#", done.stdout)


SCRIPTS = {"Flower": "three_owners_flower.sh", "NVIDIA FLARE": "three_owners_flare.sh"}


def deployed(name: str, here: Path, scenario: str, **settings: str) -> str:
    """What a script of the page prints, from the tables of three owners to the answers for newcomers."""
    require(name)
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    for k, count in enumerate((60, 50, 40)):
        write_people(here / "banks" / f"bank_{k}", count, 1000 * k, k)
    write_people(here / "newcomers", 12, 5000, 3, known=False)
    (here / "banks.yaml").write_text(scenario, encoding="utf-8")
    (here / "bin").mkdir()
    (here / "bin" / "fedgraph").write_text(f'#!/bin/sh\nexec {sys.executable} -m fedgraph "$@"\n', encoding="utf-8")
    (here / "bin" / "fedgraph").chmod(0o755)
    tools = FOLDERS[name] or str(Path(shutil.which(COMMANDS[name]) or "").parent)
    own = {"PATH": f"{here / 'bin'}{os.pathsep}{os.environ['PATH']}", "FLOWER": tools, "FLARE": tools, "PORT": free_port()}
    script = ROOT / "docs" / "deploy" / SCRIPTS[name]
    words = f"fedgraph run banks.yaml --out run && bash {script} run 'Features, sums' banks place"
    words += " && fedgraph predict place/people.model newcomers --people own -o answers.csv"
    env = environment(name, here) | own | settings
    done = subprocess.run(["bash", "-c", words], cwd=here, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    with (here / "answers.csv").open(encoding="utf-8") as file:
        assert [row["id"] for row in csv.DictReader(file)] == [f"p{5000 + k}" for k in range(12)]
    return done.stdout


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_three_owners_over_tls_from_tables_to_a_model(name: str, tmp_path: Path) -> None:
    """The script of the page: one owner is killed and comes back, and every vector that left is one line of the ledger."""
    said = deployed(name, tmp_path, blocks("yaml", "Three owners")[0])
    assert "0 faults" in said
    assert "the project states ε = 8, which is equal" in said


def test_a_sample_of_owners_goes_on_without_the_one_that_died(tmp_path: Path) -> None:
    """Rounds that ask the dead owner are left out and paid; the others are merged, also after them."""
    scenario = blocks("yaml", "Three owners")[0].replace("seed: secret", "seed: 4").replace("steps: 3", "steps: 4")
    sampled = scenario.replace(
        "partition: {partition: natural}", "partition: {partition: natural}\n    federation: {share: 0.67}"
    )
    said = deployed("Flower", tmp_path, sampled, BACK="no", PATIENCE="45")
    planned = json.loads((tmp_path / "place" / "app" / "fedgraph_export.json").read_text(encoding="utf-8"))
    cohorts = planned["cohorts"]
    assert cohorts == [[0, 2], [1, 2], [1, 2], [0, 2]]
    state = site.read_site_progress(tmp_path / "place" / "answer", planned["plan_sha256"])
    assert state is not None
    _, _, done, left_out = state
    assert {0, 3} <= set(done)
    assert 2 in left_out
    assert {*done, *left_out} == {0, 1, 2, 3}
    assert "0 faults" in said
    assert f"{len(done)} of 4 rounds were merged" in said
    model = open_model(tmp_path / "place" / "answer")
    assert abs(model.epsilon - planned["epsilon"]) < 1e-4, "the rounds that were left out are paid"
