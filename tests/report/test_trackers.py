"""A run in TensorBoard and in MLflow: one entry per row, ∞ never a number."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fedgraph
from fedgraph.errors import ScenarioError
from fedgraph.report import trackers
from fedgraph.runs.run import Run

TINY = {
    "name": "tracked",
    "datasets": [{"name": "embedded/library"}],
    "runtime": {"engine": "serial"},
    "tasks": [
        {
            "task": "node_classification",
            "label": "t",
            "trust": ["curator"],
            "epsilons": [1.0, "inf"],
            "methods": [{"method": "features", "model": "logistic"}],
        }
    ],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return fedgraph.run(TINY, out=tmp_path_factory.mktemp("runs") / "one", quiet=True)


def test_every_row_has_a_line_and_infinity_is_no_metric(run: Run) -> None:
    found = list(trackers._lines(run.answered.scores))
    assert len(found) == 2
    assert len({line.name for line in found}) == 2
    open_row = next(line for line in found if line.params["epsilon"] == "inf")
    assert open_row.params["epsilon_provable"] == "inf"
    assert "epsilon_provable" not in open_row.metrics
    assert all(math.isfinite(v) for line in found for v in line.metrics.values())
    private = next(line for line in found if line.params["epsilon"] == 1.0)
    assert private.metrics["epsilon_provable"] <= 1.0
    assert private.metrics[run.answered.scores[0].metric] == pytest.approx(
        float(run.table().set_index("epsilon").loc[1.0, "mean"])
    )
    failed = [dataclasses.replace(s, status="failed") for s in run.answered.scores]
    assert not list(trackers._lines(failed))


def test_tensorboard_reads_every_row_back(run: Run, tmp_path: Path) -> None:
    """Written with torch's writer, read with TensorBoard's own reader: parameters, numbers, and no ∞ among the numbers."""
    reason = "the extra 'tensorboard' is not installed"
    readers: Any = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator", reason=reason)
    hparams: Any = pytest.importorskip("tensorboard.plugins.hparams.plugin_data_pb2", reason=reason)
    assert run.to_tensorboard(tmp_path / "logs") == 2
    folders = {path.parent.name: path.parent for path in (tmp_path / "logs").rglob("events.out.*")}
    for line in trackers._lines(run.answered.scores):
        found = readers.EventAccumulator(str(folders[line.name])).Reload()
        metrics = {tag: found.Scalars(tag)[-1].value for tag in found.Tags()["scalars"]}
        assert metrics == pytest.approx(line.metrics, rel=1e-6)
        assert all(math.isfinite(value) for value in metrics.values())
        stored = found.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
        told = hparams.HParamsPluginData.FromString(stored).session_start_info.hparams
        params = {name: getattr(value, value.WhichOneof("kind")) for name, value in told.items()}
        assert params == line.params


def test_mlflow_gets_a_nested_run_per_row(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a stand-in with MLflow's five calls: what is logged, in which order, inside which run."""
    logged: list[tuple[Any, ...]] = []
    fake: Any = types.ModuleType("mlflow")

    @contextlib.contextmanager
    def start_run(run_name: str, nested: bool = False) -> Iterator[None]:
        logged.append(("start", run_name, nested))
        yield
        logged.append(("end", run_name))

    fake.start_run = start_run
    fake.set_tracking_uri = lambda uri: logged.append(("uri", uri))
    fake.set_experiment = lambda name: logged.append(("experiment", name))
    fake.log_params = lambda params: logged.append(("params", params))
    fake.log_metrics = lambda metrics: logged.append(("metrics", metrics))
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    assert run.to_mlflow("mine", uri="file:here") == 2
    assert logged[:3] == [("uri", "file:here"), ("experiment", "mine"), ("start", "one", False)]
    assert [entry[2] for entry in logged if entry[0] == "start"] == [False, True, True]
    assert logged[-1] == ("end", "one")


def test_mlflow_itself_takes_it(run: Run, tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="pip install mlflow-skinny")
    uri = f"file:{tmp_path / 'store'}"
    try:
        assert run.to_mlflow("mine", uri=uri) == 2
    except Exception as error:
        if "maintenance mode" in str(error):  # MLflow 3 wants a database, which the small package does not bring
            pytest.skip("this MLflow does not write to a folder")
        raise
    assert len(mlflow.search_runs(experiment_names=["mine"], output_format="list")) == 3


def test_a_missing_package_is_one_line(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tensorboard", "mlflow"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ScenarioError, match=r"fedgraph-privacy\[tensorboard\]"):
        run.to_tensorboard(tmp_path)
    with pytest.raises(ScenarioError, match=r"fedgraph-privacy\[mlflow\]"):
        run.to_mlflow()
