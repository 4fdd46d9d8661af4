# ruff: noqa: E501  (one configuration or one edit a line)
"""What apps and jobs of Flower and FLARE, and command lines, declare: a price, found without fedgraph; ∞ where nothing is noised;
a question; or one line that refuses it.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from fedgraph import pricing
from fedgraph.errors import PricingError
from tests.pricing import truths
from tests.pricing.truths import INF

TOML = """[project]
name = "app"
dependencies = ["flwr[simulation]>=1.30"]
[tool.flwr.app.components]
serverapp = "app.server:app"
clientapp = "app.client:app"
[tool.flwr.app.config]
rounds = 4
clip = 1.0
epsilon = 2.0
noise = 1.5
[tool.flwr.federations]
default = "real"
[tool.flwr.federations.real]
options.num-supernodes = 20
[tool.flwr.federations.test]
options.num-supernodes = 500
"""
SERVER = """from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
app = ServerApp()
@app.main()
def main(grid, context):
    strategy = FedAvg(fraction_train=0.5)
    strategy.start(grid=grid, num_rounds=4)
"""
CLIENT = """from flwr.clientapp import ClientApp
from flwr.clientapp.mod import LocalDpMod
dp = LocalDpMod(1.0, 1.0, 2.0, 1e-5)
mods = [dp]
app = ClientApp(mods=mods)
@app.train()
def train(message, context):
    return message
@app.evaluate()
def evaluate(message, context):
    return message
"""
CENTRAL = """from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg, DifferentialPrivacyServerSideFixedClipping as Wrapped
app = ServerApp()
@app.main()
def main(grid, context):
    inner = FedAvg(fraction_train=1.0, min_train_nodes=2)
    strategy = Wrapped(inner, noise_multiplier=1.5, clipping_norm=1.0, num_sampled_clients=20)
    strategy.start(grid=grid, num_rounds=4)
"""
PLAIN_CLIENT = (
    "from flwr.clientapp import ClientApp\napp = ClientApp()\n@app.train()\ndef train(message, context):\n    return message\n"
)
ANSWERS = {"delta": 1e-5, "weight of the heaviest client, in equal shares": 1.0}
LOCAL = truths.local(1.0, 1.0, 2.0, 1e-5, 4)
MEAN = truths.gaussian(2 / 1.5, 1e-5)
Outcome = float | tuple[str, ...] | str  # a price; the names of what is asked, where there is none; or words of a refusal


def app(folder: Path, client: str = CLIENT, server: str = SERVER, toml: str = TOML) -> Path:
    (folder / "app").mkdir()
    for path, text in (("pyproject.toml", toml), ("app/server.py", server), ("app/client.py", client), ("app/__init__.py", "")):
        (folder / path).write_text(text, encoding="utf-8")
    return folder / "pyproject.toml"


def require(path: Path, expected: Outcome, answers: dict[str, float]) -> None:
    """What is asked is answered where ``answers`` has it."""
    if isinstance(expected, str):
        with pytest.raises(PricingError) as raised:
            pricing.price(path)
        assert expected in str(raised.value)
        assert "\n" not in str(raised.value)
        return
    asked = {one.unknown.name for one in pricing.price(path).asked}
    quote = pricing.price(path, given={name: value for name, value in answers.items() if name in asked})
    total = quote.headline.total
    found = tuple(one.unknown.name for one in quote.asked) if total is None else total.epsilon
    assert found == (expected if isinstance(expected, tuple) else pytest.approx(expected, rel=1e-6))


def of(text: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return text


def client(*edits: tuple[str, str]) -> tuple[str, str]:
    return of(CLIENT, *edits), SERVER


def central(*edits: tuple[str, str], plain: str = PLAIN_CLIENT) -> tuple[str, str]:
    return plain, of(CENTRAL, *edits)


MADE, START, TRAIN = "dp = LocalDpMod(1.0, 1.0, 2.0, 1e-5)", "    strategy.start", "@app.train()"
FUNCTION = "def m(message, context, call_next):\n    "
ONCE = [("inner = ", "strategy = "), ("Wrapped(inner", "Wrapped(strategy")]  # the name is given again
OWN = "(FedAvg):\n    def aggregate_train(self, r, replies):\n        return replies\napp = "
CLIPS = [("ServerSide", "ClientSide")]


def clipping(mods: str) -> tuple[str, str]:
    return central(*CLIPS, plain="UNUSED = [fixedclipping_mod]\n" + of(PLAIN_CLIENT, ("ClientApp()", f"ClientApp({mods})")))


# (files of client and server, outcome)
APPS: dict[str, tuple[tuple[str, str], Outcome]] = {
    "list": (client(), LOCAL),
    "decorator": (client(("ClientApp(mods=mods)", "ClientApp()"), (TRAIN, "@app.train(mods=mods)")), LOCAL),
    "renamed": (client(("import LocalDpMod", "import LocalDpMod as N"), ("dp = LocalDpMod", "dp = N")), LOCAL),
    "literal": (client(("mods=mods", f"mods=[{MADE[5:]}]"), (f"{MADE}\nmods = [dp]\n", "")), LOCAL),
    "wrapped": (client(("mods = [dp]", f"{FUNCTION}return dp(message, context, call_next)\nmods = [m]")), LOCAL),
    "both": (client(("@app.evaluate()", "@app.evaluate(mods=[dp])")), LOCAL),
    "constant": (client((MADE, "E = 2.0\ndp = LocalDpMod(1.0, 1.0, E, 1e-5)")), LOCAL),
    "run config": (client(("mods = [dp]", "mods = [m]"), (MADE, f"{FUNCTION}mod = LocalDpMod(context.run_config['clip'], 1.0, context.run_config['epsilon'], 1e-5)\n    return mod(message, context, call_next)")), LOCAL),
    # A mod that may take no part protects nothing.
    "never given": (client(("ClientApp(mods=mods)", "ClientApp()")), INF),
    "empty": (client(("mods = [dp]", "mods = []")), INF),
    "overwritten": (client(("mods = [dp]", "mods = [dp]\nmods = []")), INF),
    "undecided": (client(("mods = [dp]", "import os\nmods = [dp] if os.path.exists('dp') else []")), INF),
    "another app": (client(("app = ClientApp(mods=mods)", "other = ClientApp(mods=mods)\napp = ClientApp()")), INF),
    "query": (client(("@app.evaluate()", "@app.query('all')")), INF),
    "not passed on": (client(("mods = [dp]", f"{FUNCTION}return call_next(message, context)\nmods = [m]")), INF),
    "second function": (client((f"app = ClientApp(mods=mods)\n{TRAIN}", "app = ClientApp()\n@app.train('other')\ndef b(m, c): ...\n@app.train(mods=mods)")), INF),
    "after it": (client(("mods = [dp]", "mods = [other, dp]")), INF),
    "cleared": (client(("app = C", "mods.clear()\napp = C")), INF),
    "emptied slice": (client(("app = C", "mods[:] = []\napp = C")), INF),
    "made again": (client(("@app.train", "app = ClientApp()\n@app.train")), INF),
    "perhaps": (client(("mods = [dp]", "mods = []\nif context():\n    mods.append(dp)")), INF),
    "filtered": (client(("mods = [dp]", "mods = [m for m in [dp] if False]")), INF),
    "quieter later": (client(("mods = [dp]", "dp.epsilon = 20.0\nmods = [dp]")), INF),
    "more rounds by a loop": ((CLIENT, of(SERVER, (START, "    for _ in range(9):\n        strategy.start"))), ("rounds",)),
    # Strategies, as public apps write them.
    "strategy": (central(), MEAN),
    "the name is given again": (central(*ONCE), MEAN),
    "by get": (central(("noise_multiplier=1.5", "noise_multiplier=context.run_config.get('noise', 9.0)")), MEAN),
    "by get, not set": (central(("noise_multiplier=1.5", "noise_multiplier=context.run_config.get('z', 1.5)")), MEAN),
    "in a workflow": (central(*ONCE, ("strategy.start(grid=grid, num_rounds=4)", "context = LegacyContext(context=context, config=ServerConfig(num_rounds=4), strategy=strategy)\n    DefaultWorkflow(SecAggPlusWorkflow(3, 2))(grid, context)")), MEAN),
    "a number of clients that is computed is the worst one": (central(("min_train_nodes=2", "min_train_nodes=max(2, n)")), MEAN),
    "clients clip": (clipping("mods=[fixedclipping_mod]"), MEAN),
    "clients clip behind masks": (clipping("mods=[secaggplus_mod, fixedclipping_mod]"), MEAN),
    "clients do not clip": (clipping(""), INF),
    "clients clip by another": (clipping("mods=[adaptiveclipping_mod]"), INF),
    "clients do something before": (clipping("mods=[other, fixedclipping_mod]"), INF),
    "wrapped after the start": ((PLAIN_CLIENT, "\n".join([*(lines := of(CENTRAL, *ONCE).splitlines())[:-2], lines[-1], lines[-2]])), INF),
    "inner started": (central((START, f"    strategy = strategy.strategy\n{START}")), INF),
    "inner changed": (central((START, f"    strategy.strategy = Krum()\n{START}"), ("FedAvg, D", "FedAvg, Krum, D")), INF),
    "own aggregate": (central(("app = ", f"class Mine{OWN}"), ("inner = FedAvg", "inner = Mine")), INF),
    "noise removed later": (central((START, f"    strategy.noise_multiplier = 0.1\n{START}")), INF),
    "set by name": (central((START, f"    setattr(strategy, 'noise_' + 'multiplier', 0.1)\n{START}")), INF),
    "own start": (central(("app = ", f"class Mine{OWN}".replace("FedAvg", "Wrapped")), ("strategy = Wrapped", "strategy = Mine")), "needs one mechanism of Flower"),
    "wider clip": (central((START, f"    strategy.clipping_norm = 9.0\n{START}")), INF),
    # Numbers that are computed are asked.
    "epsilon is computed": (client(("2.0, 1e-5", "budget(), 1e-5")), ("epsilon",)),
    "delta is computed": (client(("2.0, 1e-5", "2.0, 1 / n")), ("delta",)),
    "epsilon of other options": (client(("2.0, 1e-5", "options.get('epsilon', 2.0), 1e-5")), ("epsilon",)),
    "a computed count": (central(("num_sampled_clients=20", "num_sampled_clients=int(n * q)")), ("num_sampled_clients",)),
    # Noise of another kind is refused by name.
    "two mechanisms": ((CLIENT, CENTRAL), "needs one mechanism of Flower"),
    "no noise to divide by": (client(("2.0, 1e-5", "0, 1e-5")), "needs epsilon as a number > 0"),
    "less than no noise": (client(("1.0, 2.0, 1e-5", "-1.0, 2.0, 1e-5")), "needs sensitivity as a number ≥ 0"),
    "an older strategy": (central((" as Wrapped", ""), ("Wrapped(inner", "DPFedAvgFixed(inner")), "DPFedAvgFixed"),
    "called elsewhere": (central(("Wrapped(inner, ", "partial(Wrapped)(inner, ")), "needs one mechanism of Flower"),
    "an older client": ((of(PLAIN_CLIENT, ("app = ClientApp()", "app = ClientApp(DPFedAvgNumPyClient())")), SERVER), "DPFedAvgNumPyClient"),
    "TensorFlow": ((PLAIN_CLIENT + "DPKerasSGDOptimizer(l2_norm_clip=1, noise_multiplier=1)\n", SERVER), "DPKerasSGDOptimizer (client.py:6)"),
    "Opacus": ((PLAIN_CLIENT + "engine.make_private(module=m, noise_multiplier=1.0)\n", SERVER), "record a client's run with --run"),
}  # fmt: skip


@pytest.mark.parametrize("name", APPS)
def test_an_app_has_the_price_of_what_it_declares(tmp_path: Path, name: str) -> None:
    files, expected = APPS[name]
    require(app(tmp_path, *files), expected, ANSWERS if "Wrapped" in files[1] else {})


SECTIONS = {
    "tool.flwr": [("tool.flwr.app.c", "tool.flwr.c")],
    "flower": [("tool.flwr.app.c", "flower.c"), ("tool.flwr.fed", "flower.fed")],
    "a missing federation": [('default = "real"', 'default = "nowhere"')],
}


@pytest.mark.parametrize("name", SECTIONS)
def test_sections_of_older_projects_are_read(tmp_path: Path, name: str) -> None:
    files, price = (central(), MEAN) if name.startswith("a ") else (APPS["run config"][0], LOCAL)
    require(app(tmp_path, *files, of(TOML, *SECTIONS[name])), price, ANSWERS)


COMPONENTS = "app = ServerApp(server_fn=lambda c: ServerAppComponents(strategy=FedAvg(), config=ServerConfig({})))\n"
ROUNDS = {
    SERVER.replace("num_rounds=4", "num_rounds=7"): 7, SERVER.replace("grid=grid, num_rounds=4", "grid, None, 7"): 7,
    SERVER.replace(", num_rounds=4", ""): 3, COMPONENTS.format("num_rounds=7"): 7, COMPONENTS.format("7"): 7, COMPONENTS.format(""): 1,
    SERVER.replace("num_rounds=4", "**options"): None, SERVER.replace("grid=grid, num_rounds=4", "*options"): None,
    COMPONENTS.format("**options"): None, SERVER.replace("num_rounds=4", "num_rounds=len(options)"): None,
}  # fmt: skip


@pytest.mark.parametrize("server", ROUNDS)
def test_rounds_are_those_that_are_declared_by_name_by_place_or_by_default(tmp_path: Path, server: str) -> None:
    quote = pricing.price(app(tmp_path, CLIENT, server))
    assert ([] if ROUNDS[server] else ["rounds"]) == [asked.unknown.name for asked in quote.asked]
    assert quote.headline.row.rounds == (ROUNDS[server] or quote.headline.row.rounds)


NAME = "nvflare.app_common.filters.svt_privacy.SVTPrivacy"
RUNS = {"tasks": ["train"], "executor": {"path": "x.ClientAPILauncherExecutor", "args": {}}}


def job(path: str = NAME, *before: object, runs: object = RUNS, args: object = None, **group: object) -> dict[str, object]:
    """A configuration whose filter of that path stands on the results of training."""
    one = {"tasks": ["train"], "filters": [{"path": path, "args": args or {}}], **group}
    return {"executors": [runs], "task_result_filters": [*before, one], "task_data_filters": None}


CLIENT_FILE, OWN_NOISE = "config_fed_client.json", "is not a filter of nvflare"
JOBS: dict[str, tuple[dict[str, dict[str, object] | str], Outcome]] = {
    "its filter": ({CLIENT_FILE: job()}, truths.svt(1000, 5)),
    "another task": ({CLIENT_FILE: job(runs={**RUNS, "tasks": ["train", "submit_model"]})}, INF),
    "case of a task": ({CLIENT_FILE: job(tasks=["Train"])}, INF),
    "inwards": ({CLIENT_FILE: job(direction="IN")}, INF),
    "differences only": ({CLIENT_FILE: job(args={"data_kinds": ["WEIGHT_DIFF"]})}, INF),
    "a name alike": ({CLIENT_FILE: job("x.MySVTPrivacy")}, OWN_NOISE),
    "first of two groups": ({CLIENT_FILE: job(NAME, {"tasks": ["train"], "filters": []})}, INF),
    **{name: ({CLIENT_FILE: job(name)}, OWN_NOISE) for name in ("x.GaussianNoise", "ExponentialPrivacy", "own.LaplaceDP")},
    "the server's alone": ({"config_fed_server.json": {"workflows": [{"args": {"num_rounds": 3}}], "task_result_filters": []}}, "name the configuration of the clients"),
    "apps": ({"a/config/config_fed_client.json": job(), "meta.json": {}}, truths.svt(1000, 5)),
    "an app in clear": ({"a/config/config_fed_client.json": job(), "b/config/config_fed_client.json": job(tasks=["other"])}, INF),
    "an app in HOCON": ({"a/config/config_fed_client.json": job(), "b/config/config_fed_client.conf": "x = 1"}, "client.conf: unknown file type '.conf'"),
    "HOCON": ({"config_fed_client.conf": "x = 1"}, "client.conf: unknown file type '.conf'"),
    "two formats": ({"a/config/config_fed_client.json": job(), "a/config/config_fed_client.yml": "x: 1"}, "keep one"),
    "an archive": ({"job.zip": "PK"}, "job.zip: unknown file type '.zip'"),
}  # fmt: skip


@pytest.mark.parametrize("name", JOBS)
def test_a_job_has_the_price_of_what_it_sends(tmp_path: Path, name: str) -> None:
    files, expected = JOBS[name]
    for place, held in files.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(held if isinstance(held, str) else json.dumps(held), encoding="utf-8")
    [first, *others] = files
    require(tmp_path if others or "/" in first else tmp_path / first, expected, {"parameters": 1000.0, "rounds": 5.0})


# Command lines: what is trained in clear, or without a bound, has no finite price.
FLAGS = "--noise_multiplier=1.1 --epochs=1 --batch_size=256 --microbatches=256 --delta=1e-5"
COMMANDS: dict[str, float | str] = {
    f"python mnist_dpsgd_tutorial.py {FLAGS}": truths.gaussian(1 / 1.1, 1e-5),
    f"python mnist_dpsgd_tutorial.py --dpsgd=True {FLAGS}": truths.gaussian(1 / 1.1, 1e-5),
    f"python mnist_dpsgd_tutorial.py --dpsgd=False {FLAGS}": INF,
    f"python mnist_dpsgd_tutorial.py --nodpsgd {FLAGS}": INF,
    f"python mnist_dpsgd_tutorial.py --l2_norm_clip=inf {FLAGS}": "l2_norm_clip: found inf",
    f"python mnist_dpsgd_tutorial.py {FLAGS.replace('1.1', 'inf')}": "noise_multiplier: found inf",
    "python -m tensorflow_privacy.privacy.analysis.compute_dp_sgd_privacy --N=600 --batch_size=6 --noise_multiplier=2 --epochs=3 --noused_microbatching": truths.gaussian(math.sqrt(3) / 2, 1e-6),
    "python -m flair.train --central_privacy_mechanism none": INF,
    "python -m flair.train --central_privacy_mechanism banded_matrix_factorization": "found 'banded_matrix_factorization'",
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_line_has_the_price_of_what_it_switches_on(command: str) -> None:
    truth = COMMANDS[command]
    if isinstance(truth, str):
        with pytest.raises(PricingError, match=truth):
            pricing.price_command(command)
        return
    quote = pricing.price_command(command)
    assert quote.headline.total is not None
    assert quote.headline.total.epsilon == pytest.approx(truth, rel=1e-6)
    assert not quote.reading.not_priced


def test_a_configuration_that_is_written_out_in_full_is_read(tmp_path: Path) -> None:
    """FederatedScope writes 0 for a number of users that is not known."""
    path = tmp_path / "full.yaml"
    path.write_text("nbafl: {use: false}\nsgdmf: {use: false}\nmodel: {num_user: 0}\n", encoding="utf-8")
    require(path, INF, {})
