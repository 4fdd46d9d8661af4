# ruff: noqa: E501  (one configuration a line)
"""Configurations written to mislead a reader, each in one place. Truths are found without fedgraph; ∞ where nothing is noised."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedgraph import pricing
from fedgraph.errors import PricingError
from fedgraph.pricing import documents
from tests.pricing.corpus import cases, truths
from tests.pricing.corpus.truths import INF

GIVEN = {"sampling rate": 1.0, "steps": 4.0}
TRAIN = """import opacus, torch, os, argparse, dataclasses
model, raw = torch.nn.Linear(2, 2), torch.optim.SGD()
loader = torch.utils.data.DataLoader(data)
engine = opacus.PrivacyEngine()
{before}
model, optimizer, loader = engine.make_private(module=model, optimizer=raw, data_loader=loader, {made}, max_grad_norm=1.0)
{after}
engine.get_epsilon(delta=1e-5)
"""
# name → (before make_private, its noise, after it, the noise that the worst step really has)
PROGRAMS = {
    "swapped": ("a, b = 0.2, 2.0\na, b = b, a", "noise_multiplier=b", "optimizer.step()", 0.2),
    "global": ("s = 2.0\ndef f():\n    global s\n    s = 0.2\nf()", "noise_multiplier=s", "optimizer.step()", 0.2),
    "merged": ("k = dict(noise_multiplier=2.0)\nk |= {'noise_multiplier': 0.2}", "**k", "optimizer.step()", 0.2),
    "popped": ("k = {'s': 0.2}\ns = k.pop('s', 2.0)", "noise_multiplier=s", "optimizer.step()", 0.2),
    "default kept": ("k = {'s': 0.2}\ns = k.setdefault('s', 2.0)", "noise_multiplier=s", "optimizer.step()", 0.2),
    "loop halves": ("s = 1.6\nfor _ in range(3):\n    s /= 2", "noise_multiplier=s", "optimizer.step()", 0.2),
    "exception": ("try:\n    s = float(os.environ['S'])\nexcept KeyError:\n    s = 0.2", "noise_multiplier=s", "optimizer.step()", 0.2),
    "replaced record": (
        "@dataclasses.dataclass\nclass C:\n    s: float = 2.0\nc = dataclasses.replace(C(), s=0.2)",
        "noise_multiplier=c.s", "optimizer.step()", 0.2,
    ),
    "record by name": ("@dataclasses.dataclass\nclass C:\n    s: float = 2.0\nc = C(s=0.2)", "noise_multiplier=c.s", "optimizer.step()", 0.2),
    "property": (
        "class C:\n    @property\n    def s(self):\n        return 0.2", "noise_multiplier=C().s", "optimizer.step()", 0.2,
    ),
    "clamped": ("s = max(0.2, min(2.0, 0.1))", "noise_multiplier=s", "optimizer.step()", 0.2),
    "text": ("s = float('2e-1')", "noise_multiplier=s", "optimizer.step()", 0.2),
    "closure": ("def f():\n    s = 2.0\n    def g():\n        nonlocal s\n        s = 0.2\n    g()\n    return s\ns = f()", "noise_multiplier=s", "optimizer.step()", 0.2),
    "set attribute": ("", "noise_multiplier=2.0", "setattr(optimizer, 'noise_multiplier', 0.2)\noptimizer.step()", 0.2),
    "halved each epoch": ("", "noise_multiplier=2.0", "for e in range(4):\n    optimizer.noise_multiplier *= 0.1\n    optimizer.step()", 0.0002),
    "dictionary": ("", "noise_multiplier=2.0", "optimizer.__dict__['noise_multiplier'] = 0.2\noptimizer.step()", 0.2),
    "variables": ("", "noise_multiplier=2.0", "vars(optimizer)['noise_multiplier'] = 0.2\noptimizer.step()", 0.2),
    "update of variables": ("", "noise_multiplier=2.0", "vars(optimizer).update(noise_multiplier=0.2)\noptimizer.step()", 0.2),
    "wrapped optimizer": ("", "noise_multiplier=2.0", "optimizer.original_optimizer.step()", 0.0),
    "raw in a function": ("", "noise_multiplier=2.0", "def train(o):\n    for e in range(4):\n        o.step()\ntrain(raw)", 0.0),
    "by a helper": ("", "noise_multiplier=2.0", "def quiet(o):\n    o.noise_multiplier = 0.2\nquiet(optimizer)\noptimizer.step()", 0.2),
    "conditional": ("", "noise_multiplier=2.0", "if len(data) > 10:\n    optimizer.noise_multiplier = 0.2\noptimizer.step()", 0.2),
    "no noise in a method": ("", "noise_multiplier=2.0", "optimizer.add_noise = lambda: None\noptimizer.step()", 0.0),
    "no clipping": ("", "noise_multiplier=2.0", "optimizer.max_grad_norm = 1e9\noptimizer.step()", 2.0),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_never_cheaper_than_its_worst_step(tmp_path: Path, name: str) -> None:
    before, made, after, noise = PROGRAMS[name]
    (tmp_path / "t.py").write_text(TRAIN.format(before=before, made=made, after=after), encoding="utf-8")
    check(tmp_path / "t.py", GIVEN, truths.gaussian(2.0 / noise, 1e-5) if noise else INF)


def test_batches_of_the_raw_loader_are_not_drawn_by_coins(tmp_path: Path) -> None:
    """Amplified over the loader that make_private returns, and not over the one it gets."""
    text = TRAIN.replace("model, optimizer, loader = ", "model, optimizer, private = ").format(
        before="", made="noise_multiplier=2.0", after="for epoch in range(4):\n    for batch in {}:\n        optimizer.step()"
    )
    found = []
    for name in ("private", "loader"):
        (tmp_path / "t.py").write_text(text.replace("{}", name), encoding="utf-8")
        total = pricing.price(tmp_path / "t.py", given={"sampling rate": 0.1} if name == "private" else {})
        found.append(total.headline.total)
    assert [t.epsilon for t in found if t] == pytest.approx(
        [truths.poisson(2.0, 0.1, 40, 1e-5), truths.gaussian(1.0, 1e-5)], rel=6e-3
    )


IDLE = {
    "tf": ("from tensorflow_privacy import DPKerasSGDOptimizer\no = DPKerasSGDOptimizer(1.0, 2.0)\nother = SGD()\nm.compile(optimizer={})\nm.fit(x, epochs=4)\n", "o", "other"),
    "tf loop": ("from tensorflow_privacy import DPKerasSGDOptimizer\no = DPKerasSGDOptimizer(1.0, 2.0)\nother = SGD()\nfor e in range(4):\n    {}.apply_gradients(g)\n", "o", "other"),
    "tff": ("import tensorflow_federated as tff\no = tff.learning.dp_aggregator(2.0, 50)\np = tff.learning.algorithms.build_unweighted_fed_avg(f{})\ntrain(num_rounds=4)\n", ", model_aggregator=o", ""),
    "pfl": ("import pfl\na = PLDPrivacyAccountant(4, 0.5, 'gaussian', noise_parameter=2.0, delta=1e-5)\no = CentrallyAppliedPrivacyMechanism(GaussianMechanism.construct_from_privacy_accountant(a, 1.0))\nb = SimulatedBackend(postprocessors=[{}])\n", "o", "Other()"),
}  # fmt: skip


@pytest.mark.parametrize("name", IDLE)
def test_a_mechanism_that_is_given_to_nobody_protects_nothing(tmp_path: Path, name: str) -> None:
    text, used, other = IDLE[name]
    given = {"delta": 1e-5, "epochs": 4.0, "sampling rate": 0.5} if name != "pfl" else {}
    totals = []
    for word in (used, other):
        (tmp_path / "t.py").write_text(text.format(word), encoding="utf-8")
        document = documents.read_priced_document(tmp_path / "t.py")
        facts = {k: v for k, v in given.items() if k in asked_of(document)}
        total = pricing.price(tmp_path / "t.py", given=facts).headline.total
        assert total is not None
        totals.append(total.epsilon)
    assert totals[0] < totals[1] == INF


def asked_of(document: documents.PricedDocument) -> set[str]:
    return {a.unknown.name for a in pricing.price_document(document, documents.priced_document_reader(document)).asked}


def check(path: Path, given: dict[str, float], truth: float) -> None:
    """A price is at least the truth; or the file is refused, or asked about."""
    try:
        quote = pricing.price(path, given=given)
    except PricingError:
        return
    total = quote.headline.total
    assert total is None or quote.asked or total.epsilon >= truth * (1 - 6e-3), (total.epsilon, truth)


CLIENT, SERVER, TOML = cases.CLIENT, cases.CENTRAL, cases.TOML
# name → (pyproject.toml, server, client, answers, truth)
LOCAL, MEAN = truths.local(1.0, 1.0, 2.0, 1e-5, 4), truths.gaussian(2 / 1.5, 1e-5)
APPS = {
    "cleared": (TOML, cases.SERVER, CLIENT.replace("app = C", "mods.clear()\napp = C"), {}, INF),
    "emptied slice": (TOML, cases.SERVER, CLIENT.replace("app = C", "mods[:] = []\napp = C"), {}, INF),
    "made again": (TOML, cases.SERVER, CLIENT.replace("@app.train", "app = ClientApp()\n@app.train"), {}, INF),
    "perhaps": (TOML, cases.SERVER, CLIENT.replace("mods = [dp]", "mods = []\nif context():\n    mods.append(dp)"), {}, INF),
    "filtered": (TOML, cases.SERVER, CLIENT.replace("mods = [dp]", "mods = [m for m in [dp] if False]"), {}, INF),
    "quieter later": (TOML, cases.SERVER, CLIENT.replace("mods = [dp]", "dp.epsilon = 20.0\nmods = [dp]"), {}, truths.local(1.0, 1.0, 20.0, 1e-5, 4)),
    "more rounds by a loop": (TOML, cases.SERVER.replace("    strategy.start", "    for _ in range(9):\n        strategy.start"), CLIENT, {}, truths.local(1.0, 1.0, 2.0, 1e-5, 36)),
    "wider clip": (TOML, SERVER.replace("    strategy.start", "    strategy.clipping_norm = 9.0\n    strategy.start"), CLIENT.replace("mods=mods", ""), cases.EQUAL, MEAN),
    "inner started": (TOML, SERVER.replace("    strategy.start", "    strategy = strategy.strategy\n    strategy.start"), cases.PLAIN_CLIENT, cases.EQUAL, INF),
    "inner changed": (TOML, SERVER.replace("    strategy.start", "    strategy.strategy = Krum()\n    strategy.start").replace("FedAvg, D", "FedAvg, Krum, D"), cases.PLAIN_CLIENT, cases.EQUAL, INF),
    "own aggregate": (TOML, SERVER.replace("app = ", "class Mine(FedAvg):\n    def aggregate_train(self, r, replies):\n        return replies\napp = ").replace("inner = FedAvg", "inner = Mine"), cases.PLAIN_CLIENT, cases.EQUAL, INF),
    "noise removed later": (TOML, SERVER.replace("    strategy.start", "    strategy.noise_multiplier = 0.1\n    strategy.start"), cases.PLAIN_CLIENT, cases.EQUAL, truths.gaussian(2 / 0.1, 1e-5)),
    "a missing federation": (TOML.replace('default = "real"', 'default = "nowhere"'), SERVER, cases.PLAIN_CLIENT, cases.EQUAL, MEAN),
    "own start": (TOML, SERVER.replace("app = ", "class Mine(Wrapped):\n    def aggregate_train(self, r, replies):\n        return replies\napp = ").replace("strategy = Wrapped", "strategy = Mine"), cases.PLAIN_CLIENT, cases.EQUAL, INF),
}  # fmt: skip


@pytest.mark.parametrize("name", APPS)
def test_an_app_is_never_cheaper_than_what_it_sends(tmp_path: Path, name: str) -> None:
    toml, server, client, given, truth = APPS[name]
    (tmp_path / "app").mkdir()
    for path, text in (("pyproject.toml", toml), ("app/server.py", server), ("app/client.py", client), ("app/__init__.py", "")):
        (tmp_path / path).write_text(text, encoding="utf-8")
    check(tmp_path / "pyproject.toml", given, truth)


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
    check(tmp_path / "config_fed_client.json", SAID, truth)
