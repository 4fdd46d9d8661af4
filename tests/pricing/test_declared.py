# ruff: noqa: E501  (one configuration or one edit a line)
"""What apps and jobs of Flower and FLARE declare: right ones have their price, misleading ones are never cheaper than they are.

Truths are found without fedgraph; ∞ where nothing is noised.
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
HEAVIEST = "weight of the heaviest client, in equal shares"
EQUAL = {"delta": 1e-5, HEAVIEST: 1.0}
LOCAL = truths.local(1.0, 1.0, 2.0, 1e-5, 4)
MEAN = truths.gaussian(2 / 1.5, 1e-5)


def app(folder: Path, client: str = CLIENT, server: str = SERVER, toml: str = TOML) -> Path:
    (folder / "app").mkdir()
    for path, text in (("pyproject.toml", toml), ("app/server.py", server), ("app/client.py", client), ("app/__init__.py", "")):
        (folder / path).write_text(text, encoding="utf-8")
    return folder / "pyproject.toml"


def total(path: Path, given: dict[str, float] | None = None) -> float | None:
    priced = pricing.price(path, given=given or {}).headline.total
    return None if priced is None else priced.epsilon


RIGHT = {
    "list": CLIENT,
    "decorator": CLIENT.replace("ClientApp(mods=mods)", "ClientApp()").replace("@app.train()", "@app.train(mods=mods)"),
    "renamed": CLIENT.replace("import LocalDpMod", "import LocalDpMod as N").replace("dp = LocalDpMod", "dp = N"),
    "literal": CLIENT.replace("mods=mods", "mods=[LocalDpMod(1.0, 1.0, 2.0, 1e-5)]").replace(
        "dp = LocalDpMod(1.0, 1.0, 2.0, 1e-5)\nmods = [dp]\n", ""
    ),
    "wrapped": CLIENT.replace(
        "mods = [dp]", "def m(message, context, call_next):\n    return dp(message, context, call_next)\nmods = [m]"
    ),
    "both": CLIENT.replace("@app.evaluate()", "@app.evaluate(mods=[dp])"),
    "constant": CLIENT.replace("dp = LocalDpMod(1.0, 1.0, 2.0, 1e-5)", "E = 2.0\ndp = LocalDpMod(1.0, 1.0, E, 1e-5)"),
    "run config": CLIENT.replace("mods = [dp]", "mods = [m]").replace(
        "dp = LocalDpMod(1.0, 1.0, 2.0, 1e-5)",
        "def m(message, context, call_next):\n    mod = LocalDpMod(context.run_config['clip'], 1.0, context.run_config['epsilon'], 1e-5)\n    return mod(message, context, call_next)",
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_declared_mod_has_its_price(tmp_path: Path, name: str) -> None:
    assert total(app(tmp_path, RIGHT[name])) == pytest.approx(LOCAL, rel=1e-6)


WRONG = {
    "never given": ("ClientApp(mods=mods)", "ClientApp()"),
    "empty": ("mods = [dp]", "mods = []"),
    "overwritten": ("mods = [dp]", "mods = [dp]\nmods = []"),
    "undecided": ("mods = [dp]", "import os\nmods = [dp] if os.path.exists('dp') else []"),
    "another app": ("app = ClientApp(mods=mods)", "other = ClientApp(mods=mods)\napp = ClientApp()"),
    "query": ("@app.evaluate()", "@app.query('all')"),
    "not passed on": ("mods = [dp]", "def m(message, context, call_next):\n    return call_next(message, context)\nmods = [m]"),
    "second function": (
        "app = ClientApp(mods=mods)\n@app.train()",
        "app = ClientApp()\n@app.train('other')\ndef b(m, c): ...\n@app.train(mods=mods)",
    ),
    "after it": ("mods = [dp]", "mods = [other, dp]"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mod_that_may_take_no_part_protects_nothing(tmp_path: Path, name: str) -> None:
    old, new = WRONG[name]
    assert old in CLIENT
    assert total(app(tmp_path, CLIENT.replace(old, new))) == INF


def test_a_declared_strategy_has_its_price(tmp_path: Path) -> None:
    assert total(app(tmp_path, PLAIN_CLIENT, CENTRAL), EQUAL) == pytest.approx(MEAN, rel=1e-6)


NAMED_ONCE = CENTRAL.replace("inner = ", "strategy = ").replace("Wrapped(inner", "Wrapped(strategy")
STRATEGIES = {
    "the name is given again": NAMED_ONCE,
    "by get": CENTRAL.replace("noise_multiplier=1.5", "noise_multiplier=context.run_config.get('noise', 9.0)"),
    "by get, not set": CENTRAL.replace("noise_multiplier=1.5", "noise_multiplier=context.run_config.get('z', 1.5)"),
    "in a workflow": NAMED_ONCE.replace(
        "strategy.start(grid=grid, num_rounds=4)",
        "context = LegacyContext(context=context, config=ServerConfig(num_rounds=4), strategy=strategy)\n    DefaultWorkflow(SecAggPlusWorkflow(3, 2))(grid, context)",
    ),
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_strategy_is_read_as_public_apps_write_it(tmp_path: Path, name: str) -> None:
    assert total(app(tmp_path, PLAIN_CLIENT, STRATEGIES[name]), EQUAL) == pytest.approx(MEAN, rel=1e-6)


CLIPPING = {
    "mods=[fixedclipping_mod]": MEAN, "mods=[secaggplus_mod, fixedclipping_mod]": MEAN, "": INF, "mods=[adaptiveclipping_mod]": INF,
    "mods=[other, fixedclipping_mod]": INF,
}  # fmt: skip


@pytest.mark.parametrize("mods", CLIPPING)
def test_clients_that_are_not_shown_to_clip_protect_nothing(tmp_path: Path, mods: str) -> None:
    client = "UNUSED = [fixedclipping_mod]\n" + PLAIN_CLIENT.replace("ClientApp()", f"ClientApp({mods})")
    path = app(tmp_path, client, CENTRAL.replace("ServerSide", "ClientSide"))
    assert total(path, EQUAL if CLIPPING[mods] == MEAN else {}) == pytest.approx(CLIPPING[mods], rel=1e-6)


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


def test_a_number_of_clients_that_is_computed_is_the_worst_one(tmp_path: Path) -> None:
    quote = pricing.price(
        app(tmp_path, PLAIN_CLIENT, CENTRAL.replace("min_train_nodes=2", "min_train_nodes=max(2, n)")), given=EQUAL
    )
    assert [asked.unknown.name for asked in quote.asked] == ["share of clients in a round"]
    assert quote.headline.total is not None
    assert quote.headline.total.epsilon == pytest.approx(MEAN, rel=1e-6)


def test_a_strategy_that_is_wrapped_after_it_was_started_protects_nothing(tmp_path: Path) -> None:
    lines = NAMED_ONCE.splitlines()
    lines[-1], lines[-2] = lines[-2], lines[-1]
    assert total(app(tmp_path, PLAIN_CLIENT, "\n".join(lines))) == INF


@pytest.mark.parametrize(
    ("kind", "old", "new", "name"),
    [("client", "2.0, 1e-5", "budget(), 1e-5", "epsilon"), ("client", "2.0, 1e-5", "2.0, 1 / n", "delta"),
     ("client", "2.0, 1e-5", "options.get('epsilon', 2.0), 1e-5", "epsilon"),
     ("server", "num_sampled_clients=20", "num_sampled_clients=int(n * q)", "num_sampled_clients")],
)  # fmt: skip
def test_numbers_that_are_computed_are_asked(tmp_path: Path, kind: str, old: str, new: str, name: str) -> None:
    client, server = (CLIENT.replace(old, new), SERVER) if kind == "client" else (PLAIN_CLIENT, CENTRAL.replace(old, new))
    quote = pricing.price(app(tmp_path, client, server), given={} if kind == "client" else EQUAL)
    assert quote.headline.total is None
    assert [asked.unknown.name for asked in quote.asked] == [name]


REFUSED = {
    "no noise to divide by": (CLIENT.replace("2.0, 1e-5", "0, 1e-5"), SERVER, "needs epsilon as a number > 0"),
    "an older strategy": (PLAIN_CLIENT, CENTRAL.replace(" as Wrapped", "").replace("Wrapped(inner", "DPFedAvgFixed(inner"), "DPFedAvgFixed"),
    "called elsewhere": (PLAIN_CLIENT, CENTRAL.replace("Wrapped(inner, ", "partial(Wrapped)(inner, "), "named and not called"),
    "less than no noise": (CLIENT.replace("1.0, 2.0, 1e-5", "-1.0, 2.0, 1e-5"), SERVER, "needs sensitivity as a number ≥ 0"),
    "an older client": (PLAIN_CLIENT.replace("app = ClientApp()", "app = ClientApp(DPFedAvgNumPyClient())"), SERVER, "DPFedAvgNumPyClient"),
    "TensorFlow": (PLAIN_CLIENT + "DPKerasSGDOptimizer(l2_norm_clip=1, noise_multiplier=1)\n", SERVER, "DPKerasSGDOptimizer of TensorFlow Privacy is called here"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_noise_of_another_kind_is_refused_by_name(tmp_path: Path, name: str) -> None:
    client, server, words = REFUSED[name]
    with pytest.raises(PricingError, match=words):
        pricing.price(app(tmp_path, client, server))


@pytest.mark.parametrize("head", ["tool.flwr", "flower"])
def test_older_sections_of_a_project_are_read(tmp_path: Path, head: str) -> None:
    toml = TOML.replace("tool.flwr.app.c", f"{head}.c").replace("tool.flwr.fed", f"{head}.fed")
    assert total(app(tmp_path, RIGHT["run config"], toml=toml)) == pytest.approx(LOCAL, rel=1e-6)


def test_opacus_inside_clients_is_to_be_recorded(tmp_path: Path) -> None:
    client = PLAIN_CLIENT + "engine.make_private(module=m, noise_multiplier=1.0)\n"
    with pytest.raises(PricingError, match="record a client's run with --run"):
        pricing.price(app(tmp_path, client))


# name → (pyproject.toml, server, client, answers, truth)
APPS: dict[str, tuple[str, str, str, dict[str, float], float]] = {
    "cleared": (TOML, SERVER, CLIENT.replace("app = C", "mods.clear()\napp = C"), {}, INF),
    "emptied slice": (TOML, SERVER, CLIENT.replace("app = C", "mods[:] = []\napp = C"), {}, INF),
    "made again": (TOML, SERVER, CLIENT.replace("@app.train", "app = ClientApp()\n@app.train"), {}, INF),
    "perhaps": (TOML, SERVER, CLIENT.replace("mods = [dp]", "mods = []\nif context():\n    mods.append(dp)"), {}, INF),
    "filtered": (TOML, SERVER, CLIENT.replace("mods = [dp]", "mods = [m for m in [dp] if False]"), {}, INF),
    "quieter later": (TOML, SERVER, CLIENT.replace("mods = [dp]", "dp.epsilon = 20.0\nmods = [dp]"), {}, truths.local(1.0, 1.0, 20.0, 1e-5, 4)),
    "more rounds by a loop": (TOML, SERVER.replace("    strategy.start", "    for _ in range(9):\n        strategy.start"), CLIENT, {}, truths.local(1.0, 1.0, 2.0, 1e-5, 36)),
    "wider clip": (TOML, CENTRAL.replace("    strategy.start", "    strategy.clipping_norm = 9.0\n    strategy.start"), CLIENT.replace("mods=mods", ""), EQUAL, MEAN),
    "inner started": (TOML, CENTRAL.replace("    strategy.start", "    strategy = strategy.strategy\n    strategy.start"), PLAIN_CLIENT, EQUAL, INF),
    "inner changed": (TOML, CENTRAL.replace("    strategy.start", "    strategy.strategy = Krum()\n    strategy.start").replace("FedAvg, D", "FedAvg, Krum, D"), PLAIN_CLIENT, EQUAL, INF),
    "own aggregate": (TOML, CENTRAL.replace("app = ", "class Mine(FedAvg):\n    def aggregate_train(self, r, replies):\n        return replies\napp = ").replace("inner = FedAvg", "inner = Mine"), PLAIN_CLIENT, EQUAL, INF),
    "noise removed later": (TOML, CENTRAL.replace("    strategy.start", "    strategy.noise_multiplier = 0.1\n    strategy.start"), PLAIN_CLIENT, EQUAL, truths.gaussian(2 / 0.1, 1e-5)),
    "a missing federation": (TOML.replace('default = "real"', 'default = "nowhere"'), CENTRAL, PLAIN_CLIENT, EQUAL, MEAN),
    "set by name": (TOML, CENTRAL.replace("    strategy.start", "    setattr(strategy, 'noise_' + 'multiplier', 0.1)\n    strategy.start"), PLAIN_CLIENT, {}, INF),
    "own start": (TOML, CENTRAL.replace("app = ", "class Mine(Wrapped):\n    def aggregate_train(self, r, replies):\n        return replies\napp = ").replace("strategy = Wrapped", "strategy = Mine"), PLAIN_CLIENT, EQUAL, INF),
}  # fmt: skip


def never_cheaper(path: Path, given: dict[str, float], truth: float) -> None:
    """A price is at least the truth; or the file is refused, or asked about."""
    try:
        quote = pricing.price(path, given=given)
    except PricingError:
        return
    priced = quote.headline.total
    assert priced is None or priced.epsilon >= truth * (1 - 6e-3), (priced.epsilon, truth)


@pytest.mark.parametrize("name", APPS)
def test_an_app_is_never_cheaper_than_what_it_sends(tmp_path: Path, name: str) -> None:
    toml, server, client, given, truth = APPS[name]
    never_cheaper(app(tmp_path, client, server, toml), given, truth)


SVT = {"path": "nvflare.app_common.filters.svt_privacy.SVTPrivacy", "args": {}}
GROUP = {"tasks": ["train"], "filters": [SVT]}
EXECUTOR = {"tasks": ["train"], "executor": {"path": "x.ClientAPILauncherExecutor", "args": {}}}
SAID = {"parameters": 1000.0, "rounds": 5.0}
JOBS: dict[str, tuple[dict[str, object], float]] = {
    "another task": ({"executors": [{**EXECUTOR, "tasks": ["train", "submit_model"]}], "task_result_filters": [GROUP]}, INF),
    "case of a task": ({"executors": [EXECUTOR], "task_result_filters": [{**GROUP, "tasks": ["Train"]}]}, INF),
    "inwards": ({"executors": [EXECUTOR], "task_result_filters": [{**GROUP, "direction": "IN"}]}, INF),
    "differences only": (
        {"executors": [EXECUTOR], "task_result_filters": [{"tasks": ["train"], "filters": [{**SVT, "args": {"data_kinds": ["WEIGHT_DIFF"]}}]}]},
        INF,
    ),
    "a name alike": ({"executors": [EXECUTOR], "task_result_filters": [{"tasks": ["train"], "filters": [{"path": "x.MySVTPrivacy"}]}]}, INF),
    "first of two groups": (
        {"executors": [EXECUTOR], "task_result_filters": [{"tasks": ["train"], "filters": []}, GROUP]}, truths.svt(1000, 5),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", JOBS)
def test_a_job_is_never_cheaper_than_what_it_sends(tmp_path: Path, name: str) -> None:
    data, truth = JOBS[name]
    (tmp_path / "config_fed_client.json").write_text(json.dumps(data), encoding="utf-8")
    never_cheaper(tmp_path / "config_fed_client.json", SAID, truth)


def test_a_job_has_the_price_of_its_filter(tmp_path: Path) -> None:
    path = tmp_path / "config_fed_client.json"
    path.write_text(json.dumps({"executors": [EXECUTOR], "task_result_filters": [GROUP]}), encoding="utf-8")
    assert total(path, SAID) == pytest.approx(truths.svt(1000, 5))


def test_a_servers_configuration_alone_says_nothing_of_the_clients(tmp_path: Path) -> None:
    path = tmp_path / "config_fed_server.json"
    path.write_text(json.dumps({"workflows": [{"args": {"num_rounds": 3}}], "task_result_filters": []}), encoding="utf-8")
    with pytest.raises(PricingError, match="name the configuration of the clients, or the folder of the job"):
        pricing.price(path)


@pytest.mark.parametrize("name", ["x.GaussianNoise", "ExponentialPrivacy", "own.LaplaceDP"])
def test_a_filter_that_is_not_known_may_add_noise_and_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "config_fed_client.json"
    groups = [{"tasks": ["train"], "filters": [{"path": name}]}]
    path.write_text(
        json.dumps({"executors": [EXECUTOR], "task_result_filters": groups, "task_data_filters": None}), encoding="utf-8"
    )
    with pytest.raises(PricingError, match="is not a filter of nvflare"):
        pricing.price(path)


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
    assert total(path) == INF
