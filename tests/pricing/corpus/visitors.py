# ruff: noqa: E501  (one configuration or one edit a line)
"""Another visit: what a program may do to its library, its plan or its own modules, and loops that leave the mechanism out."""

from __future__ import annotations

import math

from tests.pricing.corpus import truths
from tests.pricing.corpus.cases import CENTRAL, CLIENT, EQUAL, JOB, OPACUS, TFP, Case, Edits, app, changed, edited, shuffled
from tests.pricing.corpus.truths import INF

C: list[Case] = []
USE, LOOP = "sigma = args.sigma\n", "for epoch in range"
STEP = "        optimizer.step()\n"


def put(name: str, group: int, edits: Edits, truth: truths.Truth, base: str = OPACUS, exact: bool = False,
        given: dict[str, float] | None = None) -> None:  # fmt: skip
    C.append(Case(f"visitor {name}", group, {"t.py": edited(base, edits)}, truth, exact, given or {}))


# The library is not what it was.
QUIET = "from opacus.optimizers import DPOptimizer\n"
put("add_noise exchanged", 1, [(LOOP, f"{QUIET}DPOptimizer.add_noise = lambda self: None\n{LOOP}")], INF)
put("add_noise by setattr", 1, [(LOOP, f"{QUIET}setattr(DPOptimizer, 'add_noise', lambda self: None)\n{LOOP}")], INF)
put(
    "patched",
    1,
    [(LOOP, f"from unittest import mock\n{QUIET}mock.patch.object(DPOptimizer, 'add_noise').start()\n{LOOP}")],
    INF,
)
put(
    "patched by name",
    1,
    [(LOOP, f"from unittest import mock\nmock.patch('opacus.optimizers.DPOptimizer.add_noise').start()\n{LOOP}")],
    INF,
)
put(
    "make_private exchanged",
    1,
    [
        (
            "engine = Priv",
            "PrivacyEngine.make_private = lambda self, **k: (k['module'], k['optimizer'], k['data_loader'])\nengine = Priv",
        )
    ],
    INF,
)
C.append(
    app(
        "visitor app mod exchanged",
        1,
        INF,
        client=changed(CLIENT, "dp = Local", "LocalDpMod.__call__ = lambda self, m, c, n: n(m, c)\ndp = Local"),
        exact=False,
    )
)
# The loop leaves the mechanism out.
put(
    "gradients by hand",
    1,
    [
        (
            STEP,
            "        loss(model(rows), labels).backward()\n        for p in model.parameters():\n            p.data -= 0.1 * p.grad\n",
        )
    ],
    INF,
)
put(
    "compiled again",
    1,
    [("    model.fit", "    model.compile(optimizer=optimizer)\n    model.compile(optimizer='adam')\n    model.fit")],
    INF,
    TFP,
    given={"delta": 1e-5},
)
put(
    "compiled again, private last",
    1,
    [("    model.fit", "    model.compile(optimizer='adam')\n    model.compile(optimizer=optimizer)\n    model.fit")],
    shuffled(2.0),
    TFP,
    True,
    {"delta": 1e-5},
)
# Its own names, from elsewhere.
put("sys.modules", 4, [(USE, f"{USE}import sys\nsys.modules[__name__].sigma = 0.5\n")], shuffled(0.5))
put("sys.modules by setattr", 4, [(USE, f"{USE}import sys\nsetattr(sys.modules[__name__], 'sigma', 0.5)\n")], shuffled(0.5))
put("globals update", 4, [(USE, f"{USE}globals().update(sigma=0.5)\n")], shuffled(0.5))
put("dict of args", 4, [(USE, f"args.__dict__['sigma'] = 0.5\n{USE}")], shuffled(0.5))
put("last of a loop", 4, [(USE, "for sigma in (2.0, 1.0, 0.5):\n    pass\n")], shuffled(0.5))
put(
    "property",
    4,
    [(USE, "class Settings:\n    @property\n    def sigma(self):\n        return 0.5\nsigma = Settings().sigma\n")],
    shuffled(0.5),
)
put(
    "replaced settings",
    4,
    [
        (
            USE,
            "import dataclasses\n@dataclasses.dataclass\nclass Settings:\n    sigma: float = 2.0\nsigma = dataclasses.replace(Settings(), sigma=0.5).sigma\n",
        )
    ],
    shuffled(0.5),
)
put(
    "named tuple",
    4,
    [(USE, "from collections import namedtuple\nS = namedtuple('S', 'clip sigma')\nsigma = S(2.0, 0.5).sigma\n")],
    shuffled(0.5),
)
put("next of a list", 4, [(USE, "sigma = next(iter([0.5, 2.0]))\n")], shuffled(0.5))
put("sorted", 4, [(USE, "sigma = sorted([2.0, 0.5])[0]\n")], shuffled(0.5))
put(
    "own engine",
    4,
    [
        (
            "engine = PrivacyEngine(secure_mode=True)",
            "class Engine(PrivacyEngine):\n    def make_private(self, **k):\n        k['noise_multiplier'] /= 4\n        return super().make_private(**k)\nengine = Engine(secure_mode=True)",
        )
    ],
    shuffled(0.5),
)
put(
    "wrapper of the step",
    4,
    [
        (
            USE,
            "def louder(fit):\n    def inner(sigma):\n        return fit(sigma / 4)\n    return inner\n@louder\ndef chosen(sigma):\n    return sigma\nsigma = chosen(args.sigma)\n",
        )
    ],
    shuffled(0.5),
)
put("swapped", 4, [(USE, "low, sigma = 0.5, 2.0\nlow, sigma = sigma, low\n")], shuffled(0.5))
put("slice", 4, [(USE, "sigma = [2.0, 0.5][1:][0]\n")], shuffled(0.5))
put("pop", 4, [(USE, "held = {'sigma': 0.5}\nsigma = held.pop('sigma', 2.0)\n")], shuffled(0.5))
put("finally", 4, [(USE, "try:\n    sigma = 2.0\nfinally:\n    sigma = 0.5\n")], shuffled(0.5))
put("loop else", 4, [(USE, "for sigma in range(3):\n    pass\nelse:\n    sigma = 0.5\n")], shuffled(0.5))
put("while epochs", 4, [("for epoch in range(args.epochs):", "left = 90\nwhile left:\n    left -= 1")], shuffled(2.0, 90))
put("negative step", 4, [("range(args.epochs)", "range(90, 0, -1)")], shuffled(2.0, 90))
put("zip of passes", 4, [("for epoch in range(args.epochs):", "for epoch, rate in zip(range(90), rates):")], shuffled(2.0, 90))
put(
    "map of passes",
    4,
    [
        (
            "for epoch in range(args.epochs):\n    for rows, labels in loader:\n        optimizer.step()\n",
            "def go(epoch):\n    for rows, labels in loader:\n        optimizer.step()\nlist(map(go, range(90)))\n",
        )
    ],
    shuffled(2.0, 90),
)
put("two steps a batch", 4, [(STEP, STEP + STEP)], shuffled(2.0, 18))
put("twenty steps a batch", 4, [(STEP, "        for inner in range(20):\n            optimizer.step()\n")], shuffled(2.0, 180))
put("five steps a batch", 4, [(STEP, "        for inner in range(5):\n            optimizer.step()\n")], shuffled(2.0, 45))
put(
    "one step of two branches",
    4,
    [(STEP, "        if rows.any():\n            optimizer.step()\n        else:\n            optimizer.step()\n")],
    shuffled(2.0),
    exact=True,
)
put("text with a sign", 4, [(USE, "sigma = {'sigma': 0.5}.get('sig%s' % 'ma', 2.0)\n")], shuffled(0.5))
put("sorted by key", 4, [(USE, "sigma = sorted([0.5, 2.0], key=lambda s: s)[0]\n")], shuffled(0.5))
put(
    "generator of passes",
    4,
    [
        ("    for rows, labels in loader:", "    for rows, labels in again():"),
        (
            "for epoch",
            "def again():\n    for more in range(10):\n        for pair in loader:\n            yield pair\nfor epoch",
        ),
    ],
    shuffled(2.0, 90),
)
# Flower: who takes part, and what is kept.
for number, (group, client, server, truth) in enumerate([
    (1, changed(CLIENT, "app = ClientApp(mods=mods)", "app = ClientApp(mods=mods)\napp = ClientApp()"), None, INF),
    (1, changed(CLIENT, "app = ClientApp(mods=mods)", "mods.clear()\napp = ClientApp(mods=mods)"), None, INF),
    (1, changed(CLIENT, "app = ClientApp(mods=mods)", "mods.remove(dp)\napp = ClientApp(mods=mods)"), None, INF),
    (1, changed(CLIENT, "app = ClientApp(mods=mods)", "del mods[0]\napp = ClientApp(mods=mods)"), None, INF),
    (1, changed(CLIENT, "app = ClientApp(mods=mods)", "mods[:] = []\napp = ClientApp(mods=mods)"), None, INF),
    (1, changed(CLIENT, "app = ClientApp(mods=mods)", "import os\napp = ClientApp(mods=mods if os.environ.get('DP') else [])"), None, INF),
    (1, changed(CLIENT, "app = ClientApp(mods=mods)", "dp.clipping_norm = 10.0\napp = ClientApp(mods=mods)"), None, truths.local(10.0, 1.0, 2.0, 1e-5, 4)),
    (3, None, changed(CENTRAL, "    strategy.start", "    from flwr.serverapp.strategy import FedAdam\n    strategy.strategy = FedAdam()\n    strategy.start"), INF),
    (3, None, changed(CENTRAL, "FedAvg(fraction_train=1.0, min_train_nodes=2)", "[FedAvg(), __import__('flwr').serverapp.strategy.FedYogi()][-1]"), INF),
    (2, None, changed(CENTRAL, "num_sampled_clients=20", "num_sampled_clients=40"), truths.gaussian(4 / 1.5, 1e-5)),
    (2, None, changed(CENTRAL, "num_rounds=4", "num_rounds=4 * len([1, 2, 3, 4])"), truths.gaussian(4 / 1.5, 1e-5)),
    (2, None, changed(CENTRAL, "    strategy.start(grid=grid, num_rounds=4)", "    while True:\n        strategy.start(grid=grid, num_rounds=4)"), truths.gaussian(4 / 1.5, 1e-5)),
]):  # fmt: skip
    more = {"client": client} if client else {"server": server, "client": CLIENT.replace("mods=mods", "")}
    C.append(
        app(
            f"visitor flower {number}",
            group,
            truth,
            exact=False,
            given=EQUAL if server else None,
            **{k: v for k, v in more.items() if v},
        )
    )
# FLARE.
put("flare one of three", 1, [("    job.to(SVT", "    if i == 0:\n        job.to(SVT")], INF, JOB, given={"parameters": 1000.0})
put(
    "flare site named later",
    1,
    [("for i in range(3):", "job.to(ScriptRunner(script='t.py'), 'site-9')\nfor i in range(3):")],
    INF,
    JOB,
    given={"parameters": 1000.0},
)
# JAX Privacy: a plan that is not what trains, or is another.
PLAN = """import jax, jax_privacy, numpy as np, optax
from jax_privacy.execution_plan import BandMFConfig
config = BandMFConfig.default(num_bands=1, iterations=1000, expected_participations=10, noise_multiplier=1.0)
plan = config.make()
fn, noiser = plan.clipped_grad(loss), plan.noise_addition_transform
for indices in plan.batch_selection_strategy.batch_iterator(10000):
    noisy, state = noiser.update(fn(params, data[indices]), state)
    params = optax.apply_updates(params, noisy)
"""
AT = {"delta": 1e-5}
put("plan", 4, [], truths.Sampled(1.0, 0.01, 1000, 1e-5), PLAN, True, AT)
put(
    "plan unused",
    1,
    [
        ("fn(params, data[indices]), state)", "x, state)"),
        ("noiser.update(", "sgd.update("),
        ("config.make()", "config.make()\nsgd = optax.sgd(0.1)"),
    ],
    INF,
    PLAN,
    given=AT,
)
put(
    "plan without its batches",
    2,
    [("plan.batch_selection_strategy.batch_iterator(10000)", "loader")],
    truths.gaussian(10**0.5, 1e-5),
    PLAN,
    given=AT,
)
put(
    "plan run longer",
    2,
    [("for indices in plan.batch_selection_strategy.batch_iterator(10000):", "for step in range(5000):")],
    truths.Sampled(1.0, 0.01, 5000, 1e-5),
    PLAN,
    given=AT,
)
put(
    "plan of an array",
    4,
    [(".default(num_bands=1, ", "(strategy=np.array([1.0, 0.5, 0.25, 0.1]), ")],
    truths.Sampled(1.0, 0.04, 250, 1e-5),
    PLAN,
    given=AT,
)
put(
    "plan of an array that is not known",
    4,
    [(".default(num_bands=1, ", "(strategy=coefficients, ")],
    truths.Sampled(1.0, 0.04, 250, 1e-5),
    PLAN,
    given=AT,
)
put(
    "plan calibrated after",
    4,
    [("plan = config.make()", "config = config.calibrate(epsilon=20.0, delta=1e-5)\nplan = config.make()")],
    20.0,
    PLAN,
)
put(
    "plan replaced",
    4,
    [("plan = config.make()", "import dataclasses\nplan = dataclasses.replace(config, noise_multiplier=0.1).make()")],
    truths.Sampled(0.1, 0.01, 1000, 1e-5),
    PLAN,
    given=AT,
)
# FederatedScope: small batches, and users.
MF = "federate: {total_round_num: 100}\ntrain: {local_update_steps: 10, batch_or_epoch: batch}\ndataloader: {batch_size: 64}\nmodel: {num_user: 640}\nsgdmf: {use: true, R: 5.0, epsilon: 4.0, delta: 0.5}\n"
MU = 100**0.5 / (0.1 * (1000 * math.log(2)) ** 0.5 / 4)  # one visit in each of 100 rounds; noise of 1000 steps at rate 0.1
C.append(
    Case(
        "visitor sgdmf theta",
        2,
        {"f.yaml": changed(MF, "delta: 0.5", "delta: 0.5, theta: 30")},
        truths.gaussian(MU, 1e-5),
        False,
    )
)
small = changed(changed(MF, "batch_size: 64", "batch_size: 1"), "640", "10")
C.append(Case("visitor sgdmf one a batch", 2, {"f.yaml": small}, truths.gaussian(4 * 2**0.5 * MU, 1e-5), False))
