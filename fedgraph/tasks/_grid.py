"""The grid of a node classification: methods × settings × budgets × seeds; what an entry of ``methods`` says of its row.

Beside the settings of its method an entry may hold ``label`` (names the row), ``settings`` (where the row runs; default: all of
the task's, and ``nobody`` for a method in which every node protects itself) and ``epsilons`` (its budgets; default the task's).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from fedgraph import plugins
from fedgraph.privacy.units import Viewer
from fedgraph.tasks.base import Cell, Context, require_distinct

Setting = Literal["central", "secure", "local", "nobody"]

VIEWERS = {
    "central": Viewer.CURATOR_TRUSTED,
    "secure": Viewer.SERVER_SECURE_AGGREGATION,
    "local": Viewer.SERVER,
    "nobody": Viewer.WORLD,
}
OWN = ("label", "settings", "epsilons")  # keys of an entry that are the task's, not the method's
METHOD_KEYS = {  # their JSON schema, for editors
    "settings": {"type": "array", "items": {"type": "string"}, "description": "settings of this row; default the task's"},
    "epsilons": {"type": "array", "description": "budgets of this row; default the task's"},
}
WHOLE = ("central", "nobody")  # one holder of the whole graph; under ``nobody`` each node has made its data safe before


def cells(methods: Sequence[dict[str, Any]], settings: Sequence[str], epsilons: Sequence[float], readings: Sequence[str],
          context: Context) -> list[Cell]:  # fmt: skip
    """Every cell, seed by seed. A method that ignores the budget runs once, at ε = ∞; one that trusts nobody, once."""
    found: list[Cell] = []
    for seed in range(context.seeds):
        for setting in (*settings, *(["nobody"] if "nobody" not in settings else [])):
            for spec in methods:
                if setting not in settings_of(spec, settings):
                    continue
                name, row = spec["method"], variant(spec)
                budgets = [np.inf] if unprotected(spec) else [float(e) for e in spec.get("epsilons", epsilons)]
                for epsilon in budgets:
                    for reading in readings if np.isfinite(epsilon) else ["none"]:
                        found.append(Cell(context.label, context.dataset, name, row, setting, epsilon, reading, seed))
    return found


def settings_of(spec: dict[str, Any], settings: Sequence[str]) -> list[str]:
    """Where a row runs: its own settings, else the task's (a method that trusts nobody: under ``nobody`` alone)."""
    if getattr(plugins.load("methods", spec["method"]), "TRUSTS_NOBODY", False):
        return ["nobody"]
    return list(spec.get("settings", [s for s in settings if s != "nobody"]))


def checked(methods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Themselves; ``ValueError`` for rows of one name, and for settings or budgets that are none."""
    require_distinct("the row", [f"{spec.get('method')} · {variant(spec)}" for spec in methods])
    for spec in methods:
        for setting in spec.get("settings", []):
            if setting not in ("central", "secure", "local"):
                raise ValueError(f"settings of {variant(spec)!r}: found {setting!r}; allowed: central, secure, local")
        for epsilon in spec.get("epsilons", []):
            if isinstance(epsilon, bool) or not isinstance(epsilon, (int, float)) or not epsilon > 0:
                raise ValueError(f"epsilons of {variant(spec)!r}: found {epsilon!r}; allowed: numbers > 0, or .inf")
    return methods


def own_settings(spec: dict[str, Any]) -> dict[str, Any]:
    """The keys of an entry that are its method's."""
    return {k: v for k, v in spec.items() if k != "method" and k not in OWN}


def unprotected(spec: dict[str, Any]) -> bool:
    """Whether the method ignores the budget: ``nonprivate``, and the ``variant: none`` of a private method."""
    return spec["method"] == "nonprivate" or spec.get("variant") == "none"


def variant(spec: dict[str, Any]) -> str:
    """The label of a method's row: ``label`` if given, else its model or the like."""
    return str(spec.get("label") or spec.get("model") or spec.get("variant") or "default")
