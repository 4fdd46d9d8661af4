"""``fedgraph watch`` on a run that goes on, was interrupted, and has ended; actors by name, and rounds counted at them."""

import contextlib
import importlib.util
import re
import time
import urllib.request
from pathlib import Path

import pytest
import ray
import yaml
from ray.util import list_named_actors

from fedgraph import run, tasks
from fedgraph.commands.base import main as fedgraph
from fedgraph.runs import experiment, live
from fedgraph.runs.console import Console
from fedgraph.runtime.counts import RuntimeCount, RuntimeCountPath
from fedgraph.runtime.ray import RayRuntime
from fedgraph.scenario import read

SCENARIO = """\
name: watched
seeds: 2
runtime: {engine: serial}
datasets: [{name: embedded/library}]
tasks:
  - task: node_classification
    label: nodes
    epsilons: [1, 8]
    trust: [curator, own-client]
    partition: {partition: uniform, clients: 3}
    methods: [{method: features, steps: STEPS, projection: 16}]
"""
MAIN = Path(__file__).parents[2] / "scenarios" / "citeseer.yaml"


def watched(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert fedgraph(["watch", str(folder), "--once"]) == 0
    return capsys.readouterr().out


def test_a_run_is_watched_while_it_goes_on_after_a_kill_and_at_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, out = tmp_path / "watched.yaml", tmp_path / "out"
    scenario.write_text(SCENARIO.replace("STEPS", "5"), encoding="utf-8")
    assert fedgraph(["watch", str(out)]) == 2
    assert "no run was begun here" in capsys.readouterr().err
    monkeypatch.setattr(live, "LIVE_SECONDS", 0.0)
    monkeypatch.setenv("COLUMNS", "180")
    said: list[str] = []

    save = experiment.store.CellStore.save

    def looks(self: experiment.store.CellStore, *args: object) -> None:
        said.append(watched(out, capsys))
        save(self, *args)  # type: ignore[arg-type]
        if len(said) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(experiment.store.CellStore, "save", looks)
    assert run.main([str(scenario), "--out", str(out)]) == 1
    assert re.search(r"out: running, \d+ s, 3 of 8 cells done", said[3])
    assert "at work: features" in said[3]
    interrupted = watched(out, capsys)
    assert re.search(r"interrupted, \d+ s, 5 of 8 cells done\n--resume goes on with it", interrupted)
    monkeypatch.setattr(experiment.store.CellStore, "save", save)
    assert run.main([str(scenario), "--resume", str(out)]) == 0
    ended = watched(out, capsys)
    assert re.search(r"finished, \d+ s, 8 of 8 cells done", ended)
    row = next(line for line in ended.splitlines() if line.strip().startswith("nodes")).split()
    assert row[:2] == ["nodes", "8"]
    assert row[-2:] == ["8", "0"], "the largest ε, and no row without a guarantee"
    assert int(row[2]) > 0, "rounds since --resume"
    assert not (out / live.LIVE_FILE).exists()


@pytest.mark.slow
@pytest.mark.ray("own")
def test_actors_stand_under_their_names_and_count_the_rounds_of_every_federated_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Node level of the main job on a small graph. ``ray list actors`` reads the same table as ``list_named_actors``."""
    asked = yaml.safe_load(MAIN.read_text(encoding="utf-8"))
    asked["datasets"] = [{"name": "embedded/library"}]
    asked["runtime"]["workers"] = 2
    asked["tasks"] = [asked["tasks"][0] | {"epsilons": [8], "attack": None}]
    asked["tasks"][0]["methods"] = [
        m for m in asked["tasks"][0]["methods"] if m["label"] in ("Features", "DPAR EM1", "GAP-NDP")
    ]
    small = tmp_path / "main.yaml"
    small.write_text(yaml.safe_dump({k: v for k, v in asked.items() if k != "quick"}), encoding="utf-8")
    ready = read.from_file(small, seeds=1)
    seen: set[str] = set()
    counted: dict[RuntimeCountPath, RuntimeCount] = {}
    metrics: list[str] = []
    spent, close = RayRuntime.spent, RayRuntime.close

    def looks(self: RayRuntime, path: RuntimeCountPath, epsilon: float) -> None:
        seen.update(list_named_actors())
        spent(self, path, epsilon)

    def ends(self: RayRuntime) -> None:
        if counted:  # it is safe to close twice
            return
        counted.update(self.counted())
        until = time.monotonic() + 300  # a busy machine collects late
        while not ("fedgraph_rounds" in "".join(metrics) and "fedgraph_epsilon" in metrics[-1]) and time.monotonic() < until:
            port = ray.nodes()[0]["MetricsExportPort"]
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                metrics.append(answer.read().decode())
            time.sleep(1)
        close(self)

    metered = importlib.util.find_spec("aiohttp_cors") is not None  # without ray[default] nobody collects
    if metered:
        monkeypatch.setenv("FEDGRAPH_DASHBOARD", "1")  # as --watch does; a run without it collects nothing
    monkeypatch.setattr(RayRuntime, "spent", looks)
    monkeypatch.setattr(RayRuntime, "close", ends)
    experiment.run(ready, tmp_path / "out", None, resume=False, console=Console(quiet=True))
    assert seen == {"client-0", "client-1", "server", "curator-0", "curator-1"}
    made = live.read(tmp_path / "out").runtime
    assert set(made["actors"]) == seen  # type: ignore[call-overload]
    with experiment.runtime.start("serial") as engine:
        graphs = [experiment.load_data(d, None, 0) for d in ready.scenario.datasets]
        (stage,) = experiment.stages_of(ready, graphs, engine, Console(quiet=True))
    alone = tasks.load(stage.task.kind).TASK.alone
    assert alone is not None
    federated = [cell for cell in stage.cells if not alone(stage.task.params, cell)]
    assert len(federated) == 6
    assert len(stage.cells) == 9
    for cell in federated:
        own = [c for path, c in counted.items() if path[: len(cell.path)] == tuple(map(str, cell.path))]
        assert sum(c.rounds for c in own) > 0, cell
        assert sum(c.calls for c in own) >= 2 * sum(c.rounds for c in own), "one call for each client actor and round"
    if metered:
        assert 'task="node-level"' in next(line for line in metrics[-1].splitlines() if line.startswith("ray_fedgraph_rounds"))
        assert 'task="node-level"' in next(line for line in metrics[-1].splitlines() if line.startswith("ray_fedgraph_epsilon"))
