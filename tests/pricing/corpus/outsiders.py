# ruff: noqa: E501  (one configuration or one edit a line)
"""Configurations that are wrong in one place each, as somebody who wants a low price would write them, with their truths."""

from __future__ import annotations

import json

from tests.pricing.corpus import truths
from tests.pricing.corpus.cases import (
    CENTRAL,
    CLIENT,
    EQUAL,
    FLARE,
    JOB,
    MEAN,
    OPACUS,
    PLAIN_CLIENT,
    SERVER,
    TFP,
    Case,
    app,
    changed,
    shuffled,
)  # fmt: skip
from tests.pricing.corpus.truths import INF

C: list[Case] = []
Edits = list[tuple[str, str]]


def edited(text: str, edits: Edits) -> str:
    for old, new in edits:
        text = changed(text, old, new)
    return text


use = "sigma = args.sigma\n"
mk = "model, optimizer, loader = engine.make_private(\n    module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=sigma, max_grad_norm=1.0, poisson_sampling=False)\n"


def op(
    name: str, edits: Edits, truth: float, given: dict[str, float] | None = None, base: str = OPACUS, exact: bool = False,
    extra: dict[str, str] | None = None,
) -> None:  # fmt: skip
    C.append(Case(f"outside opacus {name}", 4, {"train.py": edited(base, edits), **(extra or {})}, truth, exact, given or {}))


op(
    "partial",
    [(use, "from functools import partial\ndef pick(sigma=2.0):\n    return sigma\nsigma = partial(pick, sigma=0.5)()\n")],
    shuffled(0.5),
)
fn = "def fit(sigma=2.0):\n    global model, optimizer, loader\n    " + mk.replace("\n    ", "\n        ")
op("partial train", [(mk, fn + "from functools import partial\nrun = partial(fit, sigma=0.5)\nrun()\n")], shuffled(0.5))
op("parse list", [("parser.parse_args()", "parser.parse_args(['--sigma', '0.5'])")], shuffled(0.5))
op("parse namespace", [("parser.parse_args()", "parser.parse_args(namespace=argparse.Namespace(sigma=0.5))")], shuffled(0.5))
op("argv", [("args = parser", "import sys\nsys.argv += ['--sigma', '0.5']\nargs = parser")], shuffled(0.5))
op("globals", [(use, "sigma = 2.0\nglobals()['sigma'] = 0.5\n")], shuffled(0.5))
op("exec", [(use, "sigma = 2.0\nexec('sigma = 0.5')\n")], shuffled(0.5))
op(
    "two loops",
    [("print(engine", "for more in range(50):\n    for rows, labels in loader:\n        optimizer.step()\nprint(engine")],
    shuffled(2.0, 59),
)
op(
    "nested loops",
    [
        (
            "for epoch in range(args.epochs):\n    for rows, labels in loader:\n        optimizer.step()\n",
            "for run in range(40):\n    for epoch in range(args.epochs):\n        for rows, labels in loader:\n            optimizer.step()\n",
        )
    ],
    shuffled(2.0, 360),
)
op(
    "inner twice",
    [
        (
            "    for rows, labels in loader:\n        optimizer.step()\n",
            "    for rows, labels in loader:\n        optimizer.step()\n    for rows, labels in loader:\n        optimizer.step()\n",
        )
    ],
    shuffled(2.0, 18),
)
op("new optimizer", [("for epoch in", "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nfor epoch in")], INF)
op(
    "second optimizer",
    [
        ("        optimizer.step()", "        optimizer.step()\n        second.step()"),
        ("engine = Priv", "second = torch.optim.Adam(model.parameters())\nengine = Priv"),
    ],
    INF,
)
op(
    "tqdm raw",
    [
        (", poisson_sampling=False", ""),
        ("loader = DataLoader", "raw = DataLoader"),
        ("data_loader=loader", "data_loader=raw"),
        ("in loader:", "in enumerate(tqdm(raw)):"),
        ("import torch\n", "import torch\nfrom tqdm import tqdm\n"),
    ],
    shuffled(2.0),
    {"sampling rate": 0.001},
)
op(
    "weighted sampler",
    [("batch_size=32)", "batch_size=32, sampler=torch.utils.data.WeightedRandomSampler(w, 10000))")],
    shuffled(2.0, 900),
)
op(
    "replacement sampler",
    [("batch_size=32)", "batch_size=32, sampler=torch.utils.data.RandomSampler(data, replacement=True))")],
    shuffled(2.0, 900),
)
op("repeated dataset", [("DataLoader(data,", "DataLoader(torch.utils.data.ConcatDataset([data] * 4),")], shuffled(2.0, 36))
op("subclass", [(use, "class A:\n    sigma = 2.0\nclass B(A):\n    sigma = 0.5\nsigma = B().sigma\n")], shuffled(0.5))
op("setattr loop", [(use, "for k, v in {'sigma': 0.5}.items():\n    setattr(args, k, v)\nsigma = args.sigma\n")], shuffled(0.5))
op("aug attribute", [(use, "args.sigma /= 4\nsigma = args.sigma\n")], shuffled(0.5))
op("helper mutates", [(use, "def weaker(a):\n    a.sigma = 0.5\nweaker(args)\nsigma = args.sigma\n")], shuffled(0.5))
op("property", [(use, "class S:\n    @property\n    def sigma(self):\n        return 0.5\nsigma = S().sigma\n")], shuffled(0.5))
op(
    "importlib",
    [(use, "import importlib\nsigma = importlib.import_module('own').sigma\n")],
    shuffled(0.5),
    extra={"own.py": "sigma = 0.5\n"},
)
op("star", [(use, "sigma = 2.0\nfrom own import *\n")], shuffled(0.5), extra={"own.py": "sigma = 0.5\n"})
op("try", [(use, "try:\n    sigma = 0.5\nexcept ValueError:\n    sigma = 2.0\n")], shuffled(0.5))
op(
    "decorated",
    [(mk, "def weaker(f):\n    def g(sigma=2.0):\n        return f(0.5)\n    return g\n@weaker\n" + fn + "fit()\n")],
    shuffled(0.5),
)
op("generator", [(use, "def gen():\n    yield 0.5\nsigma = next(gen())\n")], shuffled(0.5))
op("index", [(use, "grid = [2.0, 0.5]\nsigma = grid[-1]\n")], shuffled(0.5))
op(
    "nonlocal",
    [
        (
            use,
            "def outer():\n    s = 2.0\n    def inner():\n        nonlocal s\n        s = 0.5\n    inner()\n    return s\nsigma = outer()\n",
        )
    ],
    shuffled(0.5),
)
op(
    "json",
    [(use, "import json\nsigma = json.load(open('c.json'))['sigma']\n")],
    shuffled(0.5),
    extra={"c.json": '{"sigma": 0.5}'},
)
op(
    "spawn",
    [
        ("engine = Privacy", "def work(rank, sigma=2.0):\n  global model, optimizer, loader\n  engine = Privacy"),
        (
            mk,
            "  "
            + mk.replace("\n    ", "\n      ")
            + "  for epoch in range(9):\n    for rows in loader:\n      optimizer.step()\nimport torch.multiprocessing as mp\nmp.spawn(work, args=(0.5,), nprocs=1)\n",
        ),
        (
            "for epoch in range(args.epochs):\n    for rows, labels in loader:\n        optimizer.step()\nprint(engine.get_epsilon(delta=1e-5))\n",
            "print(PrivacyEngine().get_epsilon(delta=1e-5))\n",
        ),
    ],
    shuffled(0.5),
)
op("epochs later", [("for epoch in", "args.epochs = 90\nfor epoch in")], shuffled(2.0, 90))
op(
    "while",
    [("for epoch in range(args.epochs):", "while not done():"), ("import torch\n", "import torch\nfrom lab import done\n")],
    shuffled(2.0, 90),
)
op("match", [(use, "match args.epochs:\n    case 9:\n        sigma = 0.5\n    case _:\n        sigma = 2.0\n")], shuffled(0.5))
op("secure", [("secure_mode=True", "secure_mode=False")], shuffled(2.0))
DDP = """import torch, torch.distributed as dist, torch.multiprocessing as mp
from torch.utils.data import DataLoader
from torch.nn.parallel import DistributedDataParallel as DDP
from opacus import PrivacyEngine
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel as DPDDP
WORLD, EPOCHS = 4, 9
def build(rank, sigma=2.0):
    model = DPDDP(torch.nn.Linear(2, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(data, batch_size=32)
    engine = PrivacyEngine(secure_mode=True)
    model, optimizer, loader = engine.make_private(module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=sigma, max_grad_norm=1.0)
    return model, optimizer, loader, engine
def work(rank, world, epochs):
    dist.init_process_group("gloo", rank=rank, world_size=world)
    model, optimizer, loader, engine = build(rank)
    for epoch in range(epochs):
        for rows, labels in loader:
            optimizer.step()
    print(engine.get_epsilon(delta=1e-5))
if __name__ == "__main__":
    mp.spawn(work, args=(WORLD, EPOCHS), nprocs=WORLD)
"""
q = {"sampling rate": 0.02}
op("ddp right", [], truths.poisson(2.0, 0.02, 450, 1e-5), q, DDP, True)
op("ddp not wrapped", [("DPDDP(torch.nn.Linear(2, 2))", "torch.nn.Linear(2, 2)")], truths.poisson(1.0, 0.02, 450, 1e-5), q, DDP)
op(
    "ddp shuffled no sampler",
    [("max_grad_norm=1.0)", "max_grad_norm=1.0, poisson_sampling=False)")],
    truths.gaussian(4 * 3 / 2.0, 1e-5),
    {},
    DDP,
)
op(
    "ddp shuffled sampler",
    [
        ("max_grad_norm=1.0)", "max_grad_norm=1.0, poisson_sampling=False)"),
        ("batch_size=32)", "batch_size=8, sampler=DistributedSampler(data))"),
        ("import DataLoader", "import DataLoader, DistributedSampler"),
    ],
    shuffled(2.0),
    {},
    DDP,
    True,
)
op("ddp sigma passed", [("build(rank)", "build(rank, 0.5)")], truths.poisson(0.5, 0.02, 450, 1e-5), q, DDP)
op(
    "ddp raw loop",
    [
        ("for rows, labels in loader:", "for rows, labels in DataLoader(data):"),
    ],
    truths.gaussian(4 * 3 / 2.0, 1e-5),
    q,
    DDP,
)
NB = json.dumps(
    {
        "cells": [
            {"cell_type": "code", "source": ["%%writefile one.py\n", DDP]},
            {
                "cell_type": "code",
                "source": [
                    "%%writefile two.py\n",
                    "from one import build\nimport torch.multiprocessing as mp\ndef build(rank):\n    return None\ndef work(rank):\n    print(build(rank))\nmp.spawn(work, nprocs=2)\n",
                ],
            },
            {"cell_type": "code", "source": ["!python one.py"]},
        ]
    }
)
C.append(Case("outside notebook of files", 6, {"n.ipynb": NB}, truths.poisson(2.0, 0.02, 450, 1e-5), True, q))
# flower


def ap(name: str, truth: float, given: dict[str, float] | None = None, client: str = CLIENT, server: str = SERVER) -> None:
    C.append(app(f"outside flower {name}", 1, truth, client, server, exact=False, given=given))


leak = "def leak(message, context, call_next):\n    reply = call_next(message, context)\n    reply.content['raw'] = context.state['raw']\n    return reply\n"
ap("mod outside noise", INF, client=changed(CLIENT, "mods = [dp]", leak + "mods = [leak, dp]"))
clipc = (
    CLIENT.replace("LocalDpMod", "fixedclipping_mod")
    .replace("dp = fixedclipping_mod(1.0, 1.0, 2.0, 1e-5)\n", "")
    .replace("[dp]", "[fixedclipping_mod]")
)
scale = leak.replace("reply.content['raw'] = context.state['raw']", "reply.content['arrays'] = grow(reply)")
ap(
    "mod outside clip",
    INF,
    given=EQUAL,
    client=changed(clipc, "mods = [", scale + "mods = [leak, "),
    server=CENTRAL.replace("ServerSideFixed", "ClientSideFixed"),
)
ap(
    "rounds twice",
    truths.local(1.0, 1.0, 2.0, 1e-5, 8),
    server=changed(
        SERVER,
        "    strategy.start(grid=grid, num_rounds=4)\n",
        "    strategy.start(grid=grid, num_rounds=4)\n    strategy.start(grid=grid, num_rounds=4)\n",
    ),
)
ap(
    "rounds loop",
    truths.local(1.0, 1.0, 2.0, 1e-5, 20),
    server=changed(
        SERVER,
        "    strategy.start(grid=grid, num_rounds=4)\n",
        "    for i in range(5):\n        strategy.start(grid=grid, num_rounds=4)\n",
    ),
)
ap(
    "own grid loop",
    truths.local(1.0, 1.0, 2.0, 1e-5, 400),
    server=changed(
        SERVER,
        "    strategy.start(grid=grid, num_rounds=4)\n",
        "    for i in range(400):\n        grid.send_and_receive(messages)\n",
    ),
)
ap(
    "grid beside",
    truths.local(1.0, 1.0, 2.0, 1e-5, 404),
    server=changed(
        SERVER,
        "    strategy.start(grid=grid, num_rounds=4)\n",
        "    strategy.start(grid=grid, num_rounds=4)\n    for i in range(400):\n        grid.send_and_receive(messages)\n",
    ),
)
ap(
    "noise by subclass",
    INF,
    client=changed(
        CLIENT,
        "dp = LocalDpMod(",
        "class Quiet(LocalDpMod):\n    def __call__(self, message, context, call_next):\n        return call_next(message, context)\ndp = Quiet(",
    ),
)
ap("sensitivity", truths.local(1.0, 0.1, 2.0, 1e-5, 4), client=changed(CLIENT, "LocalDpMod(1.0, 1.0,", "LocalDpMod(1.0, 0.1,"))
ap(
    "clip raised",
    truths.local(10.0, 1.0, 2.0, 1e-5, 4),
    client=changed(CLIENT, "LocalDpMod(1.0, 1.0,", "LocalDpMod(10.0, 1.0,"),
)
ap(
    "train replaced",
    INF,
    client=changed(
        CLIENT, "@app.evaluate()", "@app.train('more')\ndef more(message, context):\n    return message\n@app.evaluate()"
    )
    .replace("ClientApp(mods=mods)", "ClientApp()")
    .replace("@app.train()", "@app.train(mods=mods)"),
)
ap(
    "fraction",
    truths.gaussian(4 / 1.5, 1e-5),
    given={"delta": 1e-5},
    client=PLAIN_CLIENT,
    server=changed(CENTRAL, "fraction_train=1.0", "fraction_train=0.1"),
)
ap(
    "accepts failures",
    truths.gaussian(2 * 20 / 1.5, 1e-5),
    given={"delta": 1e-5},
    client=PLAIN_CLIENT,
    server=changed(CENTRAL, "min_train_nodes=2", "min_train_nodes=2, weighted_by_key='w'"),
)
ap(
    "sampled fewer",
    truths.gaussian(2 * 2 / 1.5, 1e-5),
    given={"delta": 1e-5},
    client=PLAIN_CLIENT,
    server=changed(CENTRAL, "num_sampled_clients=20", "num_sampled_clients=40"),
)
ap(
    "patched",
    INF,
    given=EQUAL,
    client=PLAIN_CLIENT,
    server=changed(CENTRAL, "    strategy.start", "    strategy.aggregate_train = inner.aggregate_train\n    strategy.start"),
)
ap(
    "own wrapped",
    INF,
    given=EQUAL,
    client=PLAIN_CLIENT,
    server=changed(
        CENTRAL,
        "app = ServerApp()",
        "class Loud(Wrapped):\n    def aggregate_train(self, r, replies):\n        return self.strategy.aggregate_train(r, replies)\napp = ServerApp()",
    ).replace("strategy = Wrapped(", "strategy = Loud("),
)
OLD = """import flwr as fl
from flwr.server.strategy import FedAvg, DifferentialPrivacyServerSideFixedClipping
class C(fl.client.NumPyClient):
    def fit(self, parameters, config):
        return parameters, 1, {}
strategy = FedAvg(fraction_fit=1.0, min_fit_clients=20)
private = DifferentialPrivacyServerSideFixedClipping(strategy, 1.5, 1.0, 20)
fl.simulation.start_simulation(client_fn=lambda c: C(), num_clients=20, config=fl.server.ServerConfig(num_rounds=4), strategy=private)
"""


def old(
    name: str, edits: Edits, truth: float, given: dict[str, float] | None = None, exact: bool = False, base: str = OLD
) -> None:
    C.append(
        Case(f"outside old flower {name}", 2, {"sim.py": edited(base, edits)}, truth, exact, EQUAL if given is None else given)
    )


old("right", [], MEAN, exact=True)
old("raw strategy", [("strategy=private", "strategy=strategy")], INF)
old("rounds", [("num_rounds=4", "num_rounds=16")], truths.gaussian(4 / 1.5, 1e-5))
old(
    "server keyword twice",
    [
        (
            "fl.simulation.start",
            "fl.server.start_server(config=fl.server.ServerConfig(num_rounds=12), strategy=private)\nfl.simulation.start",
        )
    ],
    truths.gaussian(4 / 1.5, 1e-5),
)
old(
    "config later",
    [("fl.simulation.start", "private.noise_multiplier = 0.5\nfl.simulation.start")],
    truths.gaussian(2 / 0.5, 1e-5),
)
old(
    "shared noise",
    [
        (
            "private = Diff",
            "class S(FedAvg):\n    def aggregate_fit(self, r, results, failures):\n        self.last = results\n        return super().aggregate_fit(r, results, failures)\nstrategy = S()\nprivate = Diff",
        )
    ],
    INF,
)
# FLARE


def fl(
    name: str, edits: Edits, truth: float, given: dict[str, float] | None = None, exact: bool = False, base: str = JOB
) -> None:
    C.append(
        Case(
            f"outside flare {name}",
            1,
            {"job.py": edited(base, edits)},
            truth,
            exact,
            {"parameters": 1000.0} if given is None else given,
        )
    )


svt5, svt10 = truths.svt(1000, 5), truths.svt(1000, 10)
fl("two workflows", [("for i in", "job.to_server(FedAvg(num_clients=3, num_rounds=5))\nfor i in")], svt10)
fl(
    "epsilon later",
    [("    job.to(SVTPrivacy(), site,", "    f = SVTPrivacy()\n    f.noise_var = 1.0\n    job.to(f, site,")],
    truths.svt(1000, 5, noise_var=1.0),
)
fl("if", [("    job.to(SVTPrivacy(), site,", "    if i != 2:\n        job.to(SVTPrivacy(), site,")], INF)
fl("other script", [("for i in", "job.to(ScriptRunner(script='u.py'), 'site-9')\nfor i in")], INF)
fl(
    "full",
    [
        ('params_transfer_type="DIFF"', 'params_transfer_type="FULL"'),
        ("SVTPrivacy()", "SVTPrivacy(data_kinds=['WEIGHT_DIFF'])"),
    ],
    INF,
)
fl("rounds", [("num_rounds=5", "num_rounds=50")], truths.svt(1000, 50))
job = json.loads(json.dumps(FLARE))
job["task_result_filters"][0]["filters"][0]["args"] = {"fraction": 1.0, "noise_var": 5.0}
C.append(
    Case(
        "outside flare loud",
        1,
        {"config_fed_client.json": json.dumps(job)},
        truths.svt(1000, 5, 1.0, 0.1, 5.0),
        False,
        {"parameters": 1000.0, "rounds": 5.0},
    )
)
ser = {"format_version": 2, "workflows": [{"args": {"num_rounds": 5}}, {"args": {"num_rounds": 7}}]}
C.append(
    Case(
        "outside flare folder flows",
        6,
        {
            "meta.json": "{}",
            "app/config/config_fed_server.json": json.dumps(ser),
            "app/config/config_fed_client.json": json.dumps(FLARE),
        },
        truths.svt(1000, 12),
        False,
        {"parameters": 1000.0},
        ".",
    )
)
# TFP


def tf(
    name: str, edits: Edits, truth: float, given: dict[str, float] | None = None, exact: bool = False, base: str = TFP
) -> None:
    C.append(
        Case(f"outside tfp {name}", 6, {"t.py": edited(base, edits)}, truth, exact, {"delta": 1e-5} if given is None else given)
    )


fit = "    model.fit(x, y, epochs=FLAGS.epochs, batch_size=100)\n"
tf("fit twice", [(fit, fit + fit)], shuffled(2.0, 18))
tf("fit loop", [(fit, "    for i in range(5):\n    " + fit)], shuffled(2.0, 45))
tf("fit unknown loop", [(fit, "    while more():\n    " + fit)], shuffled(2.0, 90))
tf("repeat", [("model.fit(x, y, epochs", "model.fit(data.repeat(10).batch(100), epochs")], shuffled(2.0, 90))
tf("microbatches", [("learning_rate=0.1", "num_microbatches=10, learning_rate=0.1")], truths.gaussian(2 * 3 / 2.0, 1e-5))
tf("compiled other", [("    model.fit", "    model.compile(optimizer='adam')\n    model.fit")], INF)
tf("compiled right", [("    model.fit", "    model.compile(optimizer=optimizer)\n    model.fit")], shuffled(2.0), None, True)
tf("noise later", [("    model.fit", "    optimizer._noise_multiplier = 0.5\n    model.fit")], shuffled(0.5))
tf(
    "second model",
    [
        (
            "    model.fit",
            "    second = DPKerasSGDOptimizer(l2_norm_clip=1.0, noise_multiplier=0.5, learning_rate=0.1)\n    other.compile(second)\n    other.fit(x, y, epochs=9)\n    model.compile(optimizer)\n    model.fit",
        )
    ],
    shuffled(0.5),
)
tf("clip", [("l2_norm_clip=1.0", "l2_norm_clip=0.0")], INF)
tf(
    "override",
    [("flags.DEFINE_integer", "flags.FLAGS.set_default('noise_multiplier', 0.5)\nflags.DEFINE_integer")],
    shuffled(0.5),
)
tf("override attribute", [("    optimizer = ", "    FLAGS.noise_multiplier = 0.5\n    optimizer = ")], shuffled(0.5))
tf(
    "eager loop",
    [(fit, "    for e in range(30):\n        for x in ds:\n            optimizer.apply_gradients(g)\n")],
    shuffled(2.0, 30),
)
# JAX
J = """import jax_privacy, dp_accounting
from jax_privacy import accounting, noise_addition
epochs, batch, size = 10, 100, 1000
steps = epochs * size // batch
make = lambda s: accounting.dpsgd_event(s, steps, sampling_prob=batch / size)
z = dp_accounting.calibrate_dp_mechanism(dp_accounting.pld.PLDAccountant, make, target_epsilon=1.0, target_delta=1e-5)
grad = jax_privacy.clipped_grad(loss, l2_clip_norm=1.0)
privatizer = noise_addition.gaussian_privatizer(stddev=z * grad.sensitivity(), prng_key=key)
sampler = jax_privacy.batch_selection.CyclicPoissonSampling(sampling_prob=batch / size, iterations=steps)
for step in range(steps):
    g = grad(params, next(data))
    noisy, state = privatizer.update(g, state)
"""


def jx(
    name: str, edits: Edits, truth: float, given: dict[str, float] | None = None, exact: bool = False, base: str = J
) -> None:
    C.append(Case(f"outside jax {name}", 5, {"t.py": edited(base, edits)}, truth, exact, {} if given is None else given))


jx("right", [], 1.0, exact=True)
jx("more steps", [("range(steps)", "range(5 * steps)")], 2.5)
jx("less noise", [("stddev=z * grad", "stddev=0.1 * z * grad")], 20.0)
jx("no update", [("    noisy, state = privatizer.update(g, state)\n", "    noisy = g\n")], INF)
jx("divided", [("stddev=z * grad.sensitivity()", "stddev=z / 7")], 10.0)
F = (
    J.replace(
        "make = lambda s: accounting.dpsgd_event(s, steps, sampling_prob=batch / size)",
        "event = accounting.fixed_dpsgd_event(2.0, steps, dataset_size=size, batch_size=batch)",
    )
    .replace(
        "z = dp_accounting.calibrate_dp_mechanism(dp_accounting.pld.PLDAccountant, make, target_epsilon=1.0, target_delta=1e-5)",
        "z = 2.0\nprint(dp_accounting.rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE).compose(event).get_epsilon(1e-5))",
    )
    .replace(
        "sampler = jax_privacy.batch_selection.CyclicPoissonSampling(sampling_prob=batch / size, iterations=steps)",
        "sampler = jax_privacy.batch_selection.FixedBatchSampling(batch_size=batch, iterations=steps)",
    )
)
jx("fixed", [], 2.0, {"delta": 1e-5}, base=F)
jx("fixed replace", [("batch_size=batch)\nz", "batch_size=batch, replace=True)\nz")], 6.0, {"delta": 1e-5}, base=F)
jx("fixed clear", [("stddev=z *", "stddev=0 *")], INF, {"delta": 1e-5}, base=F)
# FederatedScope
FS = "federate: {total_round_num: 1}\nvertical: {use: true, algo: xgb, protect_object: feature_order, protect_method: dp, protect_args: [{bucket_num: 10, epsilon: 1.0}]}\n"


def fs(
    name: str, edits: Edits, truth: float, given: dict[str, float] | None = None, exact: bool = False, base: str = FS
) -> None:
    C.append(
        Case(
            f"outside federatedscope {name}",
            6,
            {"f.yaml": edited(base, edits)},
            truth,
            exact,
            {"features": 3.0} if given is None else given,
        )
    )


fs("dp", [], 30.0)
fs("unused", [("use: true", "use: false")], INF)
fs("object", [("feature_order", "grad_and_hess")], INF)
fs("no object", [("protect_object: feature_order, ", "")], INF)
fs("linear", [("algo: xgb", "algo: lr")], INF)
fs("no epsilon", [(", epsilon: 1.0", "")], INF)
fs("flag off", [("vertical: {use: true", "nbafl: {use: false}\nvertical: {use: false")], INF)
# sgdmf: steps 1 a round, batch visits; the rating may be in every round's batch with rate q
C.append(
    Case(
        "outside sgdmf",
        6,
        {
            "f.yaml": "federate: {total_round_num: 100}\ntrain: {local_update_steps: 10, batch_or_epoch: batch}\ndataloader: {batch_size: 10}\nsgdmf: {use: true, R: 5.0, epsilon: 4.0, delta: 0.5}\n"
        },
        1000.0,
        False,
        {"batch share": 0.01},
    )
)
# pfl
P = """from pfl.privacy import CentrallyAppliedPrivacyMechanism, GaussianMechanism, PLDPrivacyAccountant
from pfl.aggregate.simulate import SimulatedBackend
accountant = PLDPrivacyAccountant(num_compositions=100, sampling_probability=0.1, mechanism='gaussian', epsilon=2.0, delta=1e-5)
mechanism = CentrallyAppliedPrivacyMechanism(GaussianMechanism.from_privacy_accountant(1.0, accountant))
backend = SimulatedBackend(training_data=t, val_data=v, postprocessors=[mechanism])
algorithm = FederatedAveraging()
algorithm.run(algorithm_params=NNAlgorithmParams(central_num_iterations=100, train_cohort_size=100), backend=backend)
"""


def pf(
    name: str, edits: Edits, truth: float, given: dict[str, float] | None = None, exact: bool = False, base: str = P
) -> None:
    C.append(Case(f"outside pfl {name}", 5, {"t.py": edited(base, edits)}, truth, exact, {} if given is None else given))


pf("right", [], 2.0, exact=True)
pf("more rounds", [("central_num_iterations=100", "central_num_iterations=400")], 4.0)
pf("not given", [("postprocessors=[mechanism]", "postprocessors=[]")], INF)
pf("noise scale", [("delta=1e-5)", "delta=1e-5, noise_scale=0.1)")], 2.0)
pf("epsilon", [("epsilon=2.0", "epsilon=20.0")], 20.0)
pf("no backend", [("postprocessors=[mechanism]", "postprocessors=None")], INF)

# A second visit.
op("list passes", [("    for rows, labels in loader:", "    for rows, labels in list(loader) * 5:")], shuffled(2.0, 45))
op(
    "chain passes",
    [
        ("    for rows, labels in loader:", "    for rows, labels in itertools.chain(loader, loader):"),
        ("import torch\n", "import torch\nimport itertools\n"),
    ],
    shuffled(2.0, 18),
)
op(
    "recursive fit",
    [
        (
            "for epoch in range(args.epochs):\n    for rows, labels in loader:\n        optimizer.step()\n",
            "def go(n):\n    for rows in loader:\n        optimizer.step()\n    if n:\n        go(n - 1)\ngo(20)\n",
        )
    ],
    shuffled(2.0, 21),
)
op("set environment", [(use, "import os\nos.environ['S'] = '0.5'\nsigma = float(os.environ.get('S', '2.0'))\n")], shuffled(0.5))
tf("fit by place", [("epochs=FLAGS.epochs, batch_size=100", "100, 90")], shuffled(2.0, 90))
jx(
    "two runs",
    [
        ("for step in range(steps):", "for run in range(3):\n  for step in range(steps):"),
        ("    g = grad", "      g = grad"),
        ("    noisy, state", "      noisy, state"),
    ],
    1.6,
)
pf(
    "two runs",
    [
        (
            "algorithm.run(",
            "FederatedAveraging().run(algorithm_params=NNAlgorithmParams(central_num_iterations=100, train_cohort_size=100), backend=backend)\nalgorithm.run(",
        )
    ],
    2.7,
)
