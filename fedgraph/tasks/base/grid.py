"""The grid of a node classification: methods × settings × budgets × seeds; what an entry of ``methods`` says of its row.

Beside the settings of its method an entry may hold the keys of ``Row``: ``label`` (names the row), ``settings`` (where the
row runs; default: all of the task's, and ``nobody`` for a method in which every node protects itself) and ``epsilons`` (its
budgets; default the task's).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, Field

from fedgraph.documents.settings import Infinite
from fedgraph.methods.base import kinds
from fedgraph.privacy.units import Viewer
from fedgraph.tasks.base import Cell, Context, require_distinct
from fedgraph.tasks.base.row_keys import RowKeys, checker

Setting = Literal["central", "secure", "local", "active", "nobody"]

VIEWERS = {
    "central": Viewer.CURATOR_TRUSTED,
    "secure": Viewer.SERVER_SECURE_AGGREGATION,
    "local": Viewer.SERVER,
    "active": Viewer.ACTIVE_SERVER,
    "nobody": Viewer.WORLD,
}
WHOLE = ("central", "nobody")  # one holder of the whole graph; under ``nobody`` each node has made its data safe before


class Row(RowKeys):
    """The keys of an entry of ``methods`` that are the task's."""

    settings: Annotated[list[Literal["central", "secure", "local", "active"]] | None, Field(min_length=1)] = Field(
        None, description="settings of this row; default the task's"
    )
    epsilons: Annotated[list[Annotated[float, Field(gt=0)]] | None, Field(min_length=1), Infinite] = Field(
        None, description="budgets of this row; default the task's"
    )


Entry = Annotated[dict[str, Any], AfterValidator(checker(Row))]


def cells(methods: Sequence[dict[str, Any]], settings: Sequence[str], epsilons: Sequence[float], readings: Sequence[str],
          context: Context) -> list[Cell]:  # fmt: skip
    """Every cell, seed by seed. A method that ignores the budget runs once, at ε = ∞; one that trusts nobody, once."""
    found: list[Cell] = []
    for seed in range(context.seeds):
        for setting in (*settings, *(["nobody"] if "nobody" not in settings else [])):
            for entry, spec in enumerate(methods):
                if setting not in settings_of(spec, settings):
                    continue
                name, row = spec["method"], variant(spec)
                budgets = [np.inf] if unprotected(spec) else [float(e) for e in spec.get("epsilons", epsilons)]
                for epsilon in budgets:
                    for reading in readings if np.isfinite(epsilon) else ["none"]:
                        found.append(Cell(context.label, context.dataset, name, row, setting, epsilon, reading, seed, entry))
    return found


def settings_of(spec: dict[str, Any], settings: Sequence[str]) -> list[str]:
    """Where a row runs: its own settings, else the task's (a method that trusts nobody: under ``nobody`` alone)."""
    if kinds.method(spec["method"]).OFFERS.trusts_nobody:
        return ["nobody"]
    return list(spec.get("settings", [s for s in settings if s != "nobody"]))


def checked(methods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Themselves; ``ValueError`` for rows of one name."""
    require_distinct("the row", [f"{spec.get('method')} · {variant(spec)}" for spec in methods])
    return methods


def unprotected(spec: dict[str, Any]) -> bool:
    """Whether the row ignores the budget (``Offers.ignores_budget``)."""
    return not kinds.method(spec["method"]).OFFERS.is_private(spec)


def variant(spec: dict[str, Any]) -> str:
    """The label of a method's row: ``label`` if given, else its model or the like."""
    return str(spec.get("label") or spec.get("model") or spec.get("variant") or "default")
