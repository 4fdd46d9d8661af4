# ruff: noqa: E501  (one configuration or one edit a line)
"""The corpus: right configurations, and the same ones wrong in one place."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from tests.pricing.corpus import truths
from tests.pricing.corpus.truths import INF

Edits = list[tuple[str, str]]


@dataclass(frozen=True)
class Case:
    """files: path → text, the first one is priced. truth: the ε of one unit zeroed; exact: whether the price must meet it.
    given: answers. where: the entry, where it is not the first file."""

    name: str
    group: int
    files: dict[str, str]
    truth: truths.Truth
    exact: bool = True
    given: dict[str, float] = field(default_factory=dict)
    where: str = ""


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


def app(name: str, group: int, truth: truths.Truth, client: str = CLIENT, server: str = SERVER, toml: str = TOML, exact: bool = True,
        given: dict[str, float] | None = None) -> Case:  # fmt: skip
    files = {"pyproject.toml": toml, "app/client.py": client, "app/server.py": server}
    return Case(name, group, files, truth, exact, given or {})


def changed(text: str, old: str, new: str) -> str:
    assert old in text, old
    return text.replace(old, new)


def edited(text: str, edits: Edits) -> str:
    for old, new in edits:
        text = changed(text, old, new)
    return text


def flower_mods() -> list[Case]:
    """Group 1: whether a mod takes part."""
    right = {
        "list": CLIENT,
        "decorator": CLIENT.replace("ClientApp(mods=mods)", "ClientApp()").replace("@app.train()", "@app.train(mods=mods)"),
        "renamed": CLIENT.replace("import LocalDpMod", "import LocalDpMod as N").replace("dp = LocalDpMod", "dp = N"),
        "appended": CLIENT.replace("mods = [dp]", "mods = []\nmods.append(dp)"),
        "function": CLIENT.replace("mods = [dp]", "def make():\n    return [dp]\nmods = make()"),
        "wrapped": CLIENT.replace("mods = [dp]", "def m(message, context, call_next):\n    return dp(message, context, call_next)\nmods = [m]"),
        "both": CLIENT.replace("@app.evaluate()", "@app.evaluate(mods=[dp])"),
        "client_fn": CLIENT.split("app =", maxsplit=1)[0] + "def client_fn(context):\n    return None\napp = ClientApp(client_fn=client_fn, mods=mods)\n",
        "attribute": CLIENT.replace("2.0, 1e-5)", "9.0, 1e-5)\ndp.epsilon = 2.0"),
        "class": CLIENT.replace("dp = LocalDpMod(1.0, 1.0, 2.0, 1e-5)", "class C:\n    epsilon = 2.0\ndp = LocalDpMod(1.0, 1.0, C.epsilon, 1e-5)"),
    }  # fmt: skip
    wrong = {
        "never given": ("ClientApp(mods=mods)", "ClientApp()"),
        "empty": ("mods = [dp]", "mods = []"),
        "overwritten": ("mods = [dp]", "mods = [dp]\nmods = []"),
        "cleared": ("mods = [dp]", "mods = [dp]\nmods.clear()"),
        "undecided": ("mods = [dp]", "import os\nmods = [dp] if os.path.exists('dp') else []"),
        "branch": ("mods = [dp]", "import torch\nmods = []\nif torch.cuda.is_available():\n    mods.append(dp)"),
        "another app": ("app = ClientApp(mods=mods)", "other = ClientApp(mods=mods)\napp = ClientApp()"),
        "second action": ("@app.evaluate()", "@app.query('all')"),
        "other mod": ("mods = [dp]", "from flwr.clientapp.mod import message_size_mod\nmods = [message_size_mod]"),
        "not passed on": (
            "mods = [dp]",
            "def m(message, context, call_next):\n    return call_next(message, context)\nmods = [m]",
        ),
    }
    found = [app(f"mods {name}", 1, LOCAL, client) for name, client in right.items()]
    found += [app(f"mods wrong {name}", 1, INF, changed(CLIENT, *edit), exact=False) for name, edit in wrong.items()]
    evaluated = CLIENT.replace("ClientApp(mods=mods)", "ClientApp()").replace("@app.evaluate()", "@app.evaluate(mods=mods)")
    found.append(app("mods wrong on evaluate", 1, INF, evaluated, exact=False))
    weaker = truths.local(1.0, 1.0, 20.0, 1e-5, 4)
    found.append(
        app("mods wrong attribute", 1, weaker, changed(CLIENT, "mods = [dp]", "dp.epsilon = 20.0\nmods = [dp]"), exact=False)
    )
    return found


SVT = {"path": "nvflare.app_common.filters.svt_privacy.SVTPrivacy", "args": {}}
FLARE = {
    "format_version": 2,
    "executors": [
        {"tasks": ["train", "validate"], "executor": {"path": "a.Trainer", "args": {"params_transfer_type": "DIFF"}}}
    ],
    "task_result_filters": [{"tasks": ["train"], "filters": [SVT]}],
    "task_data_filters": [],
}
JOB = """from nvflare import FedJob, FilterType
from nvflare.app_common.filters import SVTPrivacy
from nvflare.job_config.script_runner import ScriptRunner
from nvflare.app_common.workflows.fedavg import FedAvg
job = FedJob(name="j")
job.to_server(FedAvg(num_clients=3, num_rounds=5))
for i in range(3):
    site = f"site-{i}"
    job.to(ScriptRunner(script="t.py", params_transfer_type="DIFF"), site)
    job.to(SVTPrivacy(), site, filter_type=FilterType.TASK_RESULT, tasks=["train"])
"""
SIZE = {"parameters": 1000.0, "rounds": 5.0}


def flare() -> list[Case]:
    """Group 1: task, direction, site, kind of data, server or client."""

    def put(name: str, config: object, truth: truths.Truth, path: str = "config_fed_client.json", exact: bool = True) -> Case:
        return Case(f"flare {name}", 1, {path: json.dumps(config)}, truth, exact, SIZE)

    def result(**more: object) -> dict[str, object]:
        return {**FLARE, "task_result_filters": [{"tasks": ["train"], "filters": [SVT], **more}]}

    def svt(**args: object) -> dict[str, object]:
        return result(filters=[{**SVT, "args": args}])

    price = truths.svt(1000, 5)
    diff = svt(data_kinds=["WEIGHT_DIFF"])
    full = json.loads(json.dumps(diff).replace('DIFF"}', 'FULL"}'))
    found = [
        put("right", FLARE, price), put("right out", result(direction="out"), price), put("right diff", diff, price),
        put("right noise", svt(noise_var=0.05), truths.svt(1000, 5, noise_var=0.05)),
        put("right fraction", svt(fraction=0.5), truths.svt(1000, 5, fraction=0.5)),
        put("right scope", {"scopes": [{"name": "p", "task_result_filters": [SVT]}], "default_scope": "p"}, price, "privacy.json"),
        put("wrong validate", result(tasks=["validate"]), INF, exact=False),
        put("wrong direction", result(direction="in"), INF, exact=False),
        put("wrong data", {**FLARE, "task_data_filters": FLARE["task_result_filters"], "task_result_filters": []}, INF, exact=False),
        put("wrong kind", full, INF, exact=False),
        put("wrong server", FLARE, INF, "config_fed_server.json", exact=False),
        put("wrong scope", {"scopes": [{"name": "p", "task_result_filters": [SVT]}, {"name": "o"}], "default_scope": "o"}, INF,
            "privacy.json", exact=False),
        put("wrong submit", {**FLARE, "executors": [{"tasks": ["train", "submit_model"], "executor": {"path": "a.T"}}]}, INF, exact=False),
        put("wrong star", result(tasks=["*"]), INF, exact=False),
    ]  # fmt: skip
    wrong = {
        "one site": ("    job.to(SVTPrivacy(), site,", "    i or job.to(SVTPrivacy(), site,"),
        "first site": ("job.to(SVTPrivacy(), site,", "job.to(SVTPrivacy(), 'site-0',"),
        "inward": ("TASK_RESULT", "TASK_DATA"), "task": ("tasks=[\"train\"]", "tasks=[\"validate\"]"),
        "server": ("job.to(SVTPrivacy(), site,", "job.to_server(SVTPrivacy(),"),
        "nobody": ("job.to(SVTPrivacy(), site, filter_type=FilterType.TASK_RESULT, tasks=[\"train\"])", "SVTPrivacy()"),
        "kind": ("SVTPrivacy()", "SVTPrivacy(data_kinds=['WEIGHTS'])"),
    }  # fmt: skip
    found.append(Case("flare job", 1, {"job.py": JOB}, price, True, {"parameters": 1000.0}))
    found += [
        Case(f"flare job wrong {n}", 1, {"job.py": changed(JOB, *e)}, INF, False, {"parameters": 1000.0})
        for n, e in wrong.items()
    ]
    return found


def folder(name: str, files: dict[str, str], truth: truths.Truth, exact: bool) -> Case:
    return Case(name, 6, files, truth, exact, {"parameters": 1000.0}, where=".")


def sampling() -> list[Case]:
    """Groups 2, 3 and 5: who takes part, what strategies keep, Flower's accountant."""

    def mean(name: str, group: int, truth: truths.Truth, edit: tuple[str, str] | None = None, toml: str = TOML, exact: bool = True,
             given: dict[str, float] | None = None) -> Case:  # fmt: skip
        server = CENTRAL if edit is None else changed(CENTRAL, *edit)
        return app(name, group, truth, PLAIN_CLIENT, server, toml, exact, EQUAL if given is None else given)

    inner = "inner = FedAvg(fraction_train=1.0, min_train_nodes=2)"
    old = CENTRAL.split("@app", maxsplit=1)[0].replace("app = ServerApp()\n", "")
    old += "from flwr.server import ServerAppComponents, ServerConfig\ndef server_fn(context):\n"
    old += "    inner = FedAvg(fraction_fit=1.0, min_fit_clients=2)\n    s = Wrapped(inner, 1.5, 1.0, 20)\n"
    old += (
        "    return ServerAppComponents(strategy=s, config=ServerConfig(num_rounds=4))\napp = ServerApp(server_fn=server_fn)\n"
    )
    found = [
        mean("mean", 2, MEAN), mean("mean fraction by name", 2, MEAN, ("fraction_train=1.0, ", "")),
        mean("mean from config", 2, MEAN, ("noise_multiplier=1.5", "noise_multiplier=context.run_config['noise']")),
        mean("mean rounds from config", 2, MEAN, ("num_rounds=4", "num_rounds=context.run_config['rounds']")),
        mean("mean least nodes", 2, MEAN, ("fraction_train=1.0, min_train_nodes=2", "fraction_train=0.1, min_train_nodes=20")),
        app("mean old", 2, MEAN, PLAIN_CLIENT, old, TOML, True, EQUAL),
        mean("mean wrong fewer", 2, truths.gaussian(2 * 2 / 1.5, 1e-5), ("num_sampled_clients=20", "num_sampled_clients=40"),
             exact=False, given={"delta": 1e-5}),
        mean("mean wrong weights", 2, truths.gaussian(2 * 4 / 1.5, 1e-5), exact=False, given={"delta": 1e-5}),
        mean("mean wrong rounds", 2, truths.gaussian(4 / 1.5, 1e-5), ("num_rounds=4", "num_rounds=16"), exact=False),
        mean("mean wrong default", 2, MEAN, toml=TOML.replace('default = "real"', 'default = "gone"'), exact=False),
        mean("mean wrong no default", 2, MEAN, toml=TOML.replace('default = "real"\n', ""), exact=False),
        mean("mean wrong noise", 2, INF, ("noise_multiplier=1.5", "noise_multiplier=0"), exact=False),
        mean("mean wrong not started", 1, INF, ("strategy.start", "inner.start"), exact=False),
        mean("mean wrong client side", 1, INF, ("ServerSideFixed", "ClientSideFixed"), exact=False),
        mean("mean wrong own strategy", 3, INF, ("def main(grid, context):\n", "def main(grid, context):\n    class FedAvg(Base):\n"
             "        def aggregate_train(self, r, replies): ...\n"), exact=False),
        mean("mean twice", 2, truths.gaussian(8**0.5 / 1.5, 1e-5), ("num_rounds=4)", "num_rounds=4)\n    strategy.start(grid=grid, num_rounds=4)")),
    ]  # fmt: skip
    keeps = (
        "FedAdam",
        "FedYogi",
        "FedAdagrad",
        "FedMedian",
        "FedTrimmedAvg",
        "Krum",
        "MultiKrum",
        "Bulyan",
        "QFedAvg",
        "Unknown",
    )
    found += [
        mean(f"keeps {n}", 3, INF, (inner, f"from s import {n}\n    inner = {n}(fraction_train=1.0)"), exact=False)
        for n in keeps
    ]
    for rate, momentum in ((1.0, 0.0), (0.5, 0.0), (1.0, 0.3), (0.5, 0.5), (0.9, 0.1)):
        gain = truths.momentum_gain(rate, momentum) if (rate, momentum) != (1.0, 0.0) else 1.0
        made = f"from s import FedAvgM\n    inner = FedAvgM(fraction_train=1.0, server_learning_rate={rate}, server_momentum={momentum})"
        found.append(mean(f"FedAvgM {rate} {momentum}", 3, truths.gaussian(gain * 2 / 1.5, 1e-5), (inner, made)))
    for momentum in (1.0, 1.5):
        made = f"from s import FedAvgM\n    inner = FedAvgM(server_momentum={momentum})"
        found.append(mean(f"FedAvgM wrong {momentum}", 3, INF, (inner, made), exact=False))
    found += [
        mean(f"FedProx {mu}", 3, MEAN, (inner, f"from s import FedProx\n    inner = FedProx(proximal_mu={mu})"))
        for mu in (0.1, 1, 2)
    ]
    config = "PrivacyConfig(1e-5, 20, NeighboringRelation.ADD_OR_REMOVE_ONE, SamplingMethod.NO_AMPLIFICATION{})"
    made = "num_sampled_clients=20, accountant=RdpAccountant(" + config + "))"
    for more in ("", ", max_epsilon=100.0", ", None"):
        found.append(mean(f"accountant{more}", 5, MEAN, ("num_sampled_clients=20)", made.format(more)), given={}))
    for rounds in (1, 9, 16):
        text = changed(CENTRAL, "num_sampled_clients=20)", made.format("")).replace("num_rounds=4", f"num_rounds={rounds}")
        found.append(app(f"accountant {rounds}", 5, truths.gaussian(rounds**0.5 / 1.5, 1e-5), PLAIN_CLIENT, text))
    poor = made.format("").replace("NO_AMPLIFICATION", "POISSON")
    found += [
        mean("accountant wrong sampling", 5, INF, ("num_sampled_clients=20)", poor), exact=False, given={}),
        mean("accountant wrong relation", 5, INF, ("num_sampled_clients=20)", made.format("").replace("ADD_OR_REMOVE", "REPLACE")),
             exact=False, given={}),
        mean("accountant wrong people", 5, INF, ("num_sampled_clients=20)", made.format("").replace("5, 20", "5, 10")), exact=False, given={}),
        mean("accountant wrong delta", 5, INF, ("num_sampled_clients=20)", made.format("").replace("1e-5", "0")), exact=False, given={}),
        mean("accountant wrong object", 5, INF, ("num_sampled_clients=20)", "num_sampled_clients=20, accountant=mine)"), exact=False, given={}),
        mean("accountant wrong none", 5, MEAN, ("num_sampled_clients=20)", "num_sampled_clients=20, accountant=None)"), exact=False, given={}),
    ]  # fmt: skip
    return found


OPACUS = """import argparse
import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=9)
parser.add_argument("--sigma", type=float, default=2.0)
args = parser.parse_args()
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(data, batch_size=32)
sigma = args.sigma
engine = PrivacyEngine(secure_mode=True)
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=sigma, max_grad_norm=1.0, poisson_sampling=False)
for epoch in range(args.epochs):
    for rows, labels in loader:
        optimizer.step()
print(engine.get_epsilon(delta=1e-5))
"""


def shuffled(sigma: float, epochs: float = 9) -> float:
    return truths.gaussian(epochs**0.5 / sigma, 1e-5)


def programs() -> list[Case]:
    """Group 4 (and 6): Python read as a program."""
    use = "sigma = args.sigma\n"
    right = {
        "options": (use, use), "number": (use, "sigma = 2.0\n"), "order": (use, "sigma = 0.1\nsigma = 2.0\n"),
        "sum": (use, "sigma = 1.0\nsigma += 1\n"), "quotient": (use, "sigma = 16 / 8\n"),
        "class": (use, "class Settings:\n    sigma = 2.0\nsigma = Settings.sigma\n"),
        "object": (use, "class S:\n    def __init__(self, s):\n        self.s = s\nsigma = S(2.0).s\n"),
        "dictionary": (use, "cfg = {'s': 2.0}\nsigma = cfg['s']\n"), "update": (use, "cfg = dict(s=1)\ncfg.update(s=2.0)\nsigma = cfg['s']\n"),
        "function": (use, "def f(x, y=1.0):\n    return x + y\nsigma = f(1.0)\n"), "loop": (use, "sigma = 0.5\nfor _ in range(2):\n    sigma *= 2\n"),
        "branch": (use, "sigma = 2.0 if 1 < 2 else 0.1\n"), "defaults": (use, "parser.set_defaults(sigma=2.0)\nsigma = parser.parse_args().sigma\n"),
        "root": (use, "import math\nsigma = math.sqrt(4)\n"), "tuple": (use, "sigma, other = 2.0, 7\n"), "walrus": (use, "print(sigma := 2.0)\n"),
        "environment": (use, "import os\nsigma = float(os.environ.get('SIGMA', '2.0'))\n"), "both": (use, "import x\nsigma = 2.0 if x.y else 2.0\n"),
    }  # fmt: skip
    after = "for epoch in"
    wrong = {
        "divided": (use, "sigma = args.sigma / 8\n", shuffled(0.25)), "overwritten": (use, f"{use}sigma = 0.5\n", shuffled(0.5)),
        "defaults": (use, "parser.set_defaults(sigma=0.5)\nsigma = parser.parse_args().sigma\n", shuffled(0.5)),
        "joined": (use, "import x\nsigma = 2.0\nif x.y():\n    sigma = 0.5\n", shuffled(0.5)),
        "scheduler": (after, "from opacus.schedulers import ExponentialNoise\ns = ExponentialNoise(optimizer, gamma=0.5)\nfor epoch in", shuffled(1.0)),
        "attribute": (after, "optimizer.noise_multiplier = 0.5\nfor epoch in", shuffled(0.5)),
        "setattr": (after, "setattr(optimizer, 'noise_multiplier', 0.5)\nfor epoch in", shuffled(0.5)),
        "loop": ("    for rows", "    optimizer.noise_multiplier *= 0.9\n    for rows", shuffled(1.0)),
        "unknown": (use, "from lab import pick\nsigma = pick()\n", shuffled(2.0)), "while": (use, "import x\nsigma = 2.0\nwhile x.y():\n    sigma /= 2\n", shuffled(1.0)),
        "other object": (use, "import x\nother = x.load()\nother.sigma = 2.0\nsigma = x.load().sigma\n", shuffled(2.0)),
        "epochs": ("range(args.epochs)", "range(10 * args.epochs)", shuffled(2.0, 90)),
        "never called": ("model, optimizer, loader = engine", "def private():\n    global model\n    model, _, _ = engine", INF),
        "old optimizer": ("model, optimizer, loader = engine", "model, _, loader = engine", INF),
        "off": ("engine = Privacy", "if not args.epochs:\n  engine = Privacy", shuffled(2.0)), "late": (use, "sigma = 2.0\ndef f():\n    global sigma\n    sigma = 0.5\nf()\n", shuffled(0.5)),
        "flag": ("model, optimizer, loader = engine.make_private(\n    ", "parser.add_argument('--dp', action='store_true')\nif parser.parse_args().dp: model, optimizer, loader = engine.make_private(\n    ", INF),
    }  # fmt: skip
    found = [Case(f"program {n}", 4, {"train.py": changed(OPACUS, *e)}, shuffled(2.0)) for n, e in right.items()]
    found += [Case(f"program wrong {n}", 4, {"train.py": changed(OPACUS, a, b)}, t, False) for n, (a, b, t) in wrong.items()]
    three = changed(
        OPACUS, "model, optimizer, loader = engine", "for sigma in [0.5, 1.0, 2.0]:\n  model, optimizer, loader = engine"
    )
    found.append(Case("program wrong several", 4, {"train.py": three}, shuffled(0.5), False))
    coins = OPACUS.replace(", poisson_sampling=False", "").replace("default=9", "default=2")
    found += [
        Case(f"coins {q}", 4, {"train.py": coins}, truths.Sampled(2.0, q, int(2 / q), 1e-5), True, {"sampling rate": q})
        for q in (0.1, 0.02)
    ]
    cells = {
        "cells": [{"cell_type": "markdown", "source": ["# x"]}, {"cell_type": "code", "source": ["%pip install x\n", OPACUS]}]
    }
    found += [
        Case("notebook", 6, {"train.ipynb": json.dumps(cells)}, shuffled(2.0)),
        Case("given option", 6, {"train.py": OPACUS}, shuffled(4.0), True, {"sigma": 4.0}),
        Case("given epochs", 6, {"train.py": OPACUS}, shuffled(2.0, 25), True, {"epochs": 25.0}),
        Case("own module", 6, {"train.py": changed(OPACUS, use, "from own import sigma\n"), "own.py": "sigma = 2.0\n"}, shuffled(2.0)),
        Case("wrong module", 6, {"train.py": changed(OPACUS, use, "from own import sigma\n"), "own.py": "sigma = 0.5\n"}, shuffled(0.5), False),
        Case("wrong notebook", 6, {"train.ipynb": json.dumps(cells).replace("2.0", "0.5")}, shuffled(0.5), False),
    ]  # fmt: skip
    return found


TFP = """from absl import app, flags
from tensorflow_privacy.privacy.optimizers.dp_optimizer_keras import DPKerasSGDOptimizer
flags.DEFINE_float('noise_multiplier', 2.0, 'noise')
flags.DEFINE_integer('epochs', 9, 'epochs')
FLAGS = flags.FLAGS
def main(argv):
    optimizer = DPKerasSGDOptimizer(l2_norm_clip=1.0, noise_multiplier=FLAGS.noise_multiplier, learning_rate=0.1)
    model.fit(x, y, epochs=FLAGS.epochs, batch_size=100)
if __name__ == '__main__':
    app.run(main)
"""
CONF = """# a client
format_version = 2
executors = [ { tasks = ["train"], executor { path = "a.T" } } ]
task_result_filters = [
  { tasks = ["train"]
    filters = [ { path = "x.SVTPrivacy", args { fraction : 0.1 } } ] }  // noise
]
task_data_filters = []
"""
NEUTRAL = "mechanism: gaussian\nunit: client\nnoise_multiplier: 2.0\nrounds: 9\ndelta: 1e-5\nsampling: {kind: none}\n"


def others() -> list[Case]:
    """Group 6: flags, HOCON, folders, command lines, neutral descriptions; groups 7 and 8 use them too."""
    price, given = truths.svt(1000, 5), {"delta": 1e-5}
    server = json.dumps({"format_version": 2, "workflows": [{"id": "w", "path": "x.SAG", "args": {"num_rounds": 5}}]})
    job = {"meta.json": json.dumps({"name": "j", "deploy_map": {"app": ["@ALL"]}}), "app/config/config_fed_server.json": server}
    two = {"meta.json": json.dumps({"deploy_map": {"a": ["site-1"], "b": ["site-2"], "s": ["server"]}}), "s/config/config_fed_server.json": server,
           "a/config/config_fed_client.json": json.dumps(FLARE)}  # fmt: skip
    bare = json.dumps({**FLARE, "task_result_filters": []})
    flag = "compute_dp_sgd_privacy_statement --number_of_examples=1000 --batch_size=100 --noise_multiplier=2 --num_epochs={} --delta=1e-5 --used_microbatching=False\n"
    found = [
        Case("flags", 6, {"t.py": TFP}, shuffled(2.0), True, given),
        Case("flags answered", 6, {"t.py": TFP}, shuffled(4.0), True, {**given, "noise_multiplier": 4.0}),
        Case("flags wrong", 6, {"t.py": changed(TFP, "=FLAGS.noise_multiplier", "=FLAGS.noise_multiplier / 4")}, shuffled(0.5), False, given),
        Case("flags wrong zero", 6, {"t.py": changed(TFP, "2.0", "0.0")}, INF, False, given),
        Case("flags wrong never", 6, {"t.py": changed(TFP, "    app.run(main)", "    print(main)")}, INF, False, given),
        Case("flags wrong epochs", 6, {"t.py": changed(TFP, "epochs=FLAGS.epochs", "epochs=4 * FLAGS.epochs")}, shuffled(2.0, 36), False, given),
        Case("hocon", 6, {"config_fed_client.conf": CONF}, price, True, SIZE),
        Case("hocon wrong", 6, {"config_fed_client.conf": CONF.replace('tasks = ["train"]\n', 'tasks = ["validate"]\n')}, INF, False, SIZE),
        folder("folder", {**job, "app/config/config_fed_client.json": json.dumps(FLARE)}, price, True),
        folder("folder wrong", {**job, "app/config/config_fed_client.json": bare}, INF, False),
        folder("folder of two", {**two, "b/config/config_fed_client.json": json.dumps(FLARE)}, price, True),
        folder("folder of two wrong", {**two, "b/config/config_fed_client.json": bare}, INF, False),
        Case("command", 6, {"c.sh": flag.format(9)}, shuffled(2.0)), Case("command wrong", 6, {"c.sh": flag.format(36)}, shuffled(2.0, 36), False),
    ]  # fmt: skip
    for rounds, noise in ((1, 1.0), (4, 2.0), (9, 2.0), (16, 4.0), (25, 5.0), (100, 10.0)):
        text = NEUTRAL.replace("rounds: 9", f"rounds: {rounds}").replace("2.0", str(noise))
        found.append(Case(f"neutral {rounds}", 8, {"n.yaml": text}, truths.gaussian(rounds**0.5 / noise, 1e-5)))
        weak = text.replace(f"noise_multiplier: {noise}", f"noise_multiplier: {noise / 4}")
        found.append(
            Case(f"neutral wrong {rounds}", 8, {"n.yaml": weak}, truths.gaussian(4 * rounds**0.5 / noise, 1e-5), False)
        )
    for name, old, new in (
        ("digit", "2.0", "１"),
        ("negative", "2.0", "-2"),
        ("missing", "rounds: 9\n", ""),
        ("noise", "2.0", "0"),
        ("word", "2.0", "much"),
    ):
        found.append(Case(f"neutral wrong {name}", 7, {"n.yaml": changed(NEUTRAL, old, new)}, INF, False))
    for rounds in (2, 3, 5, 6, 7, 8):
        text = NEUTRAL.replace("rounds: 9", f"rounds: {rounds}")
        found.append(Case(f"gate {rounds}", 7, {"n.yaml": text}, truths.gaussian(rounds**0.5 / 2, 1e-5)))
    return found


def all_cases() -> list[Case]:
    return [*flower_mods(), *flare(), *sampling(), *programs(), *others()]
