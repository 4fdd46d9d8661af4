"""A finished run for other people's dashboards: one entry for each row in TensorBoard's HPARAMS tab or in MLflow.

Both are extras (``pip install fedgraph-privacy[tensorboard]``, ``[mlflow]``). An entry holds what tells the row from others,
its mean and deviation over seeds, and its ε: asked for, provable, measured. A dashboard has no ∞ among its numbers: an ε
that is not finite is the text ``inf`` among the parameters and is left out of the metrics, so that nobody plots it.
"""

import importlib
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from fedgraph.errors import ScenarioError
from fedgraph.report.scores import Score
from fedgraph.report.table_columns import TABLE_COLUMNS, ColumnValue, column_number_of_score

_Param = str | float | int


@dataclass(frozen=True)
class _TrackedRow:
    """One row, as a dashboard wants it; metrics are finite."""

    name: str
    params: dict[str, _Param]
    metrics: dict[str, float]


def _lines(scores: Sequence[Score]) -> Iterator[_TrackedRow]:
    for score in scores:
        if score.status != "ok":
            continue
        read = {c: c.value(column_number_of_score(score)) for c in TABLE_COLUMNS if c.tracked}
        params = {c.key: _text(v) for c, v in read.items() if c.tracked != "metric"}
        metrics = {score.metric if c.key == "mean" else c.key: v for c, v in read.items() if c.tracked != "parameter"}
        finite = {name: float(v) for name, v in metrics.items() if isinstance(v, float) and math.isfinite(v)}
        yield _TrackedRow(re.sub(r"[^\w.=-]+", "-", score.anchor).strip("-"), params, finite)


def track_in_tensorboard(scores: Sequence[Score], folder: Path) -> int:
    """Write one HPARAMS entry for each row with a result.

    Args:
        folder: Where TensorBoard looks.

    Returns:
        How many entries were written.

    Raises:
        ScenarioError: The package ``track_in_tensorboard`` is missing.
    """
    _needs("tensorboard", "tensorboard")
    writer_of = importlib.import_module("torch.utils.tensorboard").SummaryWriter
    written = 0
    with writer_of(str(folder)) as writer:
        for line in _lines(scores):
            writer.add_hparams(line.params, line.metrics, run_name=line.name)
            written += 1
    return written


def track_in_mlflow(scores: Sequence[Score], experiment: str, run_name: str, uri: str | None) -> int:
    """Log one parent run with a nested run for each row with a result.

    Args:
        uri: Of the server or folder; None: as MLflow is set up.

    Returns:
        How many nested runs were logged.

    Raises:
        ScenarioError: The package ``track_in_mlflow`` is missing.
    """
    client = _needs("mlflow", "mlflow")
    if uri is not None:
        client.set_tracking_uri(uri)
    client.set_experiment(experiment)
    written = 0
    with client.start_run(run_name=run_name):
        for line in _lines(scores):
            with client.start_run(run_name=line.name, nested=True):
                client.log_params(line.params)
                client.log_metrics(line.metrics)
            written += 1
    return written


def _needs(package: str, extra: str) -> ModuleType:
    try:
        return importlib.import_module(package)
    except ImportError:
        raise ScenarioError(f"{package} is not installed; install it: pip install 'fedgraph-privacy[{extra}]'") from None


def _text(value: ColumnValue) -> _Param:
    return "" if value is None else str(value) if isinstance(value, float) and not math.isfinite(value) else value
