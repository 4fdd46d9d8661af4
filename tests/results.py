"""Results that no training made; and the numbers of a run, to be compared with those of another."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from fedgraph.cells.result import Result
from fedgraph.cells.task_facts import TaskFacts
from fedgraph.federation import World
from fedgraph.privacy.units import Protection


def plain_result(
    task: str,
    dataset: str,
    method: str,
    variant: str,
    world: World,
    calibrated_by: str,
    epsilon: float,
    seed: int,
    metrics: Mapping[str, float],
    facts: TaskFacts,
    protection: Protection | None,
    delta: float | None,
    published: float | None,
    provable: float,
    measured: float | None,
    theorem: str,
    paths: Mapping[str, float],
    notes: tuple[str, ...],
    seconds: float,
    ledger: tuple[str, ...],
) -> Result:
    """A result, field by field."""
    prices = {"epsilon_published": published, "epsilon_provable": provable, "epsilon_measured": measured}
    return Result(
        task, dataset, method, variant, world, epsilon, calibrated_by, seed,
        metrics=metrics, facts=facts, protection=protection, delta=delta, theorem=theorem, paths=paths, notes=notes,
        seconds=seconds, ledger=ledger, **prices,  # type: ignore[arg-type]
    )  # fmt: skip


def numbers(folder: Path) -> list[dict[str, str]]:
    """The rows of results.csv without their seconds, and without the notice above them."""
    with (folder / "results.csv").open(encoding="utf-8") as file:
        lines = (line for line in file if line[0] != "#")
        return [{key: value for key, value in row.items() if key != "seconds"} for row in csv.DictReader(lines)]
