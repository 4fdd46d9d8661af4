"""Results that no training made; and the numbers of a run, to be compared with those of another."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from fedgraph.cells.result import Result

FIELDS = (
    "task", "dataset", "method", "variant", "world", "calibrated_by", "epsilon", "seed", "metrics", "facts", "protection",
    "delta", "epsilon_published", "epsilon_provable", "epsilon_measured", "theorem", "paths", "notes", "seconds", "ledger",
)  # fmt: skip


def plain_result(*values: Any) -> Result:
    """A result of these fields, in their order."""
    return Result(**dict(zip(FIELDS, values, strict=True)))


def numbers(folder: Path) -> list[dict[str, str]]:
    """The rows of results.csv without their seconds, and without the notice above them."""
    with (folder / "results.csv").open(encoding="utf-8") as file:
        lines = (line for line in file if line[0] != "#")
        return [{key: value for key, value in row.items() if key != "seconds"} for row in csv.DictReader(lines)]
