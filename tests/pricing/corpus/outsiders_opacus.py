# ruff: noqa: E501  (one configuration or one edit a line)
"""Configurations that are wrong in one place each, as somebody who wants a low price would write them: Opacus."""

from __future__ import annotations

import json

from tests.pricing.corpus import truths
from tests.pricing.corpus.cases import OPACUS, Case, Edits, edited, shuffled
from tests.pricing.corpus.truths import INF

C: list[Case] = []
use = "sigma = args.sigma\n"
mk = "model, optimizer, loader = engine.make_private(\n    module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=sigma, max_grad_norm=1.0, poisson_sampling=False)\n"


def op(
    name: str, edits: Edits, truth: truths.Truth, given: dict[str, float] | None = None, base: str = OPACUS, exact: bool = False,
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
op("ddp right", [], truths.Sampled(2.0, 0.02, 450, 1e-5), q, DDP, True)
op("ddp not wrapped", [("DPDDP(torch.nn.Linear(2, 2))", "torch.nn.Linear(2, 2)")], truths.Sampled(1.0, 0.02, 450, 1e-5), q, DDP)
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
op("ddp sigma passed", [("build(rank)", "build(rank, 0.5)")], truths.Sampled(0.5, 0.02, 450, 1e-5), q, DDP)
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
C.append(Case("outside notebook of files", 6, {"n.ipynb": NB}, truths.Sampled(2.0, 0.02, 450, 1e-5), True, q))
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
