"""The page about deployment, command by command, with Flower itself: skipped where it is not installed.

Flower's commands are looked for on the path, or in the folder that FEDGRAPH_FLOWER names (an environment of its own, in which
fedgraph can be imported, too).
"""

import contextlib
import csv
import importlib.util
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from fedgraph.export import packing, project
from fedgraph.export.site import open_site
from fedgraph.methods.base import State, kinds

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
BIN = os.environ.get("FEDGRAPH_FLOWER", "")
FLWR = shutil.which("flwr", path=BIN or None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(FLWR is None, reason="Flower is not installed: flwr is not on the path, nor in FEDGRAPH_FLOWER"),
]


def blocks(language: str, heading: str) -> list[str]:
    """The blocks of code under a heading of the page."""
    part = next(p for p in PAGE.split("\n## ") if p.startswith(heading))
    return re.findall(rf"```{language}\n(.*?)```", part, re.S)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder in which the commands of the page were run."""
    here = tmp_path_factory.mktemp("flower")
    (here / "bin").mkdir()
    (here / "bin" / "fedgraph").write_text(f'#!/bin/sh\nexec {sys.executable} -m fedgraph "$@"\n', encoding="utf-8")
    (here / "bin" / "fedgraph").chmod(0o755)
    (here / "three.yaml").write_text(blocks("yaml", "A run")[0], encoding="utf-8")
    own = {
        "PATH": os.pathsep.join(filter(None, (str(here / "bin"), BIN, os.environ["PATH"]))),
        "PYTHONPATH": str(ROOT),
        "FLWR_HOME": str(here / "flwr"),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_LOCAL_SUPERLINK_HTTP_API_PORT": str(free_port()),
        "FLWR_LOCAL_CONTROL_API_PORT": str(free_port()),
        "OMP_NUM_THREADS": "1",
    }
    commands = "\n".join([*blocks("bash", "A run"), *blocks("bash", "Flower")])
    commands = commands.replace("answer'\"", "answer' keep-rounds=true\"")
    try:
        done = subprocess.run(
            ["bash", "-e", "-c", commands], cwd=here, env={**os.environ, **own}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        assert "Error" not in done.stderr, done.stderr[-3000:]
        yield here
    finally:
        for entry in Path("/proc").glob("[0-9]*/cmdline"):  # the local SuperLink that flwr has started
            with contextlib.suppress(OSError):
                if str(here / "flwr").encode() in entry.read_bytes():
                    os.kill(int(entry.parent.name), signal.SIGTERM)


def test_every_round_ran_with_the_noise_of_the_plan(place: Path) -> None:
    """The sums that the server opened, less the exact sums at the same models, are normal with the planned deviation."""
    home = place / "app" / "fedgraph_app"
    spec = importlib.util.spec_from_file_location("planned_of_flower", home / "planned.py")
    assert spec is not None
    assert spec.loader is not None
    planned = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(planned)
    sites = [open_site(home / project.PLAN, planned.PLAN_SHA256, place / "clients" / f"client-{k}.json") for k in range(3)]
    rounds, beyond = np.load(place / "answer" / "rounds.npz"), []
    for r in range(planned.ROUNDS):
        model = {"parameters": rounds[f"{r}/model/parameters"]}
        exact = np.sum([np.asarray(site.bounded(model, r)["gradient"][1], dtype=float) for site in sites], axis=0)
        beyond.append(rounds[f"{r}/sums/gradient@model"] - exact)
    drawn = np.concatenate(beyond) / (planned.RELEASES["model"]["share"] * math.sqrt(3))
    assert len(drawn) == planned.ROUNDS * planned.RELEASES["model"]["dimension"]
    assert stats.kstest(drawn, "norm").pvalue > 1e-4
    assert stats.kstest(drawn * 1.5, "norm").pvalue < 1e-9


def test_the_accuracy_is_the_rows(place: Path) -> None:
    """Within three binomial deviations of the row, on the nodes that the row was tested on."""
    found = project.open_row(place / "run", "features-features-sums")
    graph = found.plan.facts.public.graph
    assert graph is not None
    with (place / "answer" / "predictions.csv").open(encoding="utf-8") as file:
        classes = np.array([int(row["class"]) for row in csv.DictReader(file)])
    accuracy, said = float((classes == graph.labels).mean()), found.row.mean("accuracy")
    assert abs(accuracy - said) < 3 * math.sqrt(2 * said * (1 - said) / graph.num_nodes)
    state = packing.read(place / "answer" / "state.json", State)
    scores = kinds.classifier(found.plan.method).predict(found.plan, state, graph)
    assert (scores.argmax(axis=1) == classes).all()


def test_each_client_wrote_down_what_it_spent(place: Path) -> None:
    records = sorted(f.name for f in (place / "clients").glob("*.spent.*.json"))
    assert len(records) == 3
    assert all(len((place / "clients" / r).read_text(encoding="utf-8").splitlines()) == 20 for r in records)
