"""Flower apps as people write them: aliases, dictionaries of options, mods in a module of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedgraph import pricing
from fedgraph.errors import PricingError

PROJECT = """
[project]
name = "own"
[tool.flwr.app.components]
serverapp = "own.server:app"
clientapp = "own.client:app"
[tool.flwr.app.config]
num-server-rounds = 3
clip = 1.0
"""
SERVER = (
    "from flwr.serverapp import ServerApp\nfrom flwr.serverapp.strategy import FedAvg\napp = ServerApp()\n"
    "@app.main()\ndef main(grid, context):\n    FedAvg().start(grid=grid, num_rounds=context.run_config['num-server-rounds'])\n"
)
MOD = "LocalDpMod(clipping_norm=1.0, sensitivity=1.0, epsilon=1.0, delta=1e-5)"
CLIENTS = {
    "plain": f"from flwr.clientapp.mod import LocalDpMod\napp = ClientApp(mods=[{MOD}])\n",
    "renamed": "from flwr.clientapp.mod import LocalDpMod as DP\napp = ClientApp(mods=[DP(1.0, 1.0, 1.0, 1e-5)])\n",
    "module": f"import flwr.clientapp.mod as mods\napp = ClientApp(mods=[mods.{MOD}])\n",
    "dictionary": (
        "import flwr\ncfg = {'clipping_norm': 1.0, 'sensitivity': 1.0, 'epsilon': 1.0, 'delta': 1e-5}\n"
        "app = ClientApp(mods=[LocalDpMod(**cfg)])\n"
    ),
    "dict call": (
        "import flwr\ncfg = dict(clipping_norm=1.0, sensitivity=1.0, epsilon=1.0, delta=1e-5)\n"
        "app = ClientApp(mods=[LocalDpMod(**cfg)])\n"
    ),
    "decorator": f"import flwr\ndp = {MOD}\napp = ClientApp()\n@app.train(mods=[dp])\ndef train(message, context): ...\n",
    "constants": "import flwr\nCLIP, E = 1.0, 1.0\nC = 1.0\napp = ClientApp(mods=[LocalDpMod(C, C, 2 / 2, 1e-5)])\n",
    "run config": (
        "import flwr\ndef noised(message, context, call_next):\n    c = context.run_config['clip']\n"
        "    mod = LocalDpMod(context.run_config['clip'], c, 1.0, 1e-5)\n    return mod(message, context, call_next)\n"
        "app = ClientApp(mods=[noised])\n"
    ),
    "own module": "from .privacy import dp\nimport flwr\napp = ClientApp(mods=[dp])\n",
}


def app(tmp_path: Path, client: str) -> Path:
    folder = tmp_path / "own"
    folder.mkdir()
    (tmp_path / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (folder / "server.py").write_text(SERVER, encoding="utf-8")
    (folder / "client.py").write_text(client, encoding="utf-8")
    (folder / "privacy.py").write_text(f"from flwr.clientapp.mod import LocalDpMod\ndp = {MOD}\n", encoding="utf-8")
    return tmp_path / "pyproject.toml"


@pytest.mark.parametrize("name", CLIENTS)
def test_every_spelling_has_the_same_price(tmp_path: Path, name: str) -> None:
    total = pricing.price(app(tmp_path, CLIENTS[name])).headline.total
    assert total is not None
    assert total.epsilon == pytest.approx(1.3737, abs=1e-3)


@pytest.mark.parametrize(
    ("client", "message"),
    [
        ("import flwr\ncfg = dict(epsilon=1.0)\ncfg['epsilon'] = 9.0\napp = ClientApp(mods=[LocalDpMod(**cfg)])\n", "needs"),
        ("import flwr\ncfg = {'epsilon': 1.0}\ncfg.update(epsilon=9)\napp = ClientApp(mods=[LocalDpMod(**cfg)])\n", "needs"),
        (f"import flwr\napp = ClientApp(mods=[{MOD}, {MOD}])\n", "several mechanisms"),
    ],
)
def test_what_is_not_clear_is_refused(tmp_path: Path, client: str, message: str) -> None:
    with pytest.raises(PricingError, match=message) as raised:
        pricing.price(app(tmp_path, client))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "client",
    [
        f"import flwr\ndp = {MOD}\napp = ClientApp()\n",
        f"import flwr\ndp = {MOD}\napp = ClientApp()\n@app.train()\ndef a(m, c): ...\n"
        "@app.evaluate(mods=[dp])\ndef b(m, c): ...\n",
        f"import flwr\nother = ClientApp(mods=[{MOD}])\napp = ClientApp()\n",
        f"import flwr\nmods = [{MOD}]\nmods = []\napp = ClientApp(mods=mods)\n",
        f"import flwr\napp = ClientApp()\n@app.train(mods=[{MOD}])\ndef a(m, c): ...\n@app.train('other')\ndef b(m, c): ...\n",
    ],
)
def test_what_does_not_take_part_protects_nothing(tmp_path: Path, client: str) -> None:
    total = pricing.price(app(tmp_path, client)).headline.total
    assert total is not None
    assert total.epsilon == float("inf")
