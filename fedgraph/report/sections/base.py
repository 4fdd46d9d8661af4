"""What a task contributes to a report: sentences, tables, figures. One file per task kind, found by its name.

A section module defines ``build(records, notice) -> Section``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fedgraph.report.plots import Figure


@dataclass(frozen=True)
class Table:
    """header and rows of text; ``note`` below it."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Section:
    """One task on one data set."""

    sentences: tuple[str, ...]
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]


@dataclass(frozen=True, eq=False)
class Records:
    """Finished cells of one task on one data set. name: unique, usable in file names."""

    name: str
    kind: str
    label: str
    dataset: str
    params: Any
    entries: tuple[dict[str, Any], ...]
    artefacts: tuple[dict[str, Any], ...] = field(default_factory=tuple)
