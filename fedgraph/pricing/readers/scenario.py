"""Our own scenarios: the budgets that a scenario asks for. Noise is calibrated at or below them before any data is read.

A scenario states targets; what a run really released stands in its ledger (``fedgraph price runs/…/ledger.jsonl``), and
``python -m fedgraph.run SCENARIO --dry-run`` prints every planned release with its ε. This reader says what the targets
promise.
"""

from __future__ import annotations

import math

from fedgraph.errors import PricingError
from fedgraph.pricing import costs
from fedgraph.pricing.base import MODELS, SERVER, SUMS, Facts, Published, Reading, Row
from fedgraph.pricing.command_lines import Tree, scalar
from fedgraph.pricing.documents import Document
from fedgraph.privacy.trust import EARLIER, Trust

SYSTEM = "fedgraph scenario"
VERSION = "fedgraph 0.1–0.3"
SOURCE = "fedgraph/scenario/read.py and fedgraph/privacy/accounting/calibrate.py"
SAID = ""
VIEWERS = {"curator": MODELS, "sums": SUMS, "own-client": SERVER, "active-server": SERVER}


def recognises(document: Document) -> bool:
    tasks = document.data.get("tasks")
    return document.kind == "yaml" and isinstance(tasks, list) and all(isinstance(t, dict) and "task" in t for t in tasks)


def read(document: Document) -> Reading:
    """One row per task, level of trust and budget, the dearest first."""
    listed = document.data.get("tasks")
    tasks = [t for t in listed if isinstance(t, dict)] if isinstance(listed, list) else []
    found: list[tuple[float, float, str, str]] = []
    for task in tasks:
        delta = task.get("delta")
        at = float(delta) if isinstance(delta, (int, float)) and not isinstance(delta, bool) else 0.0
        named = task.get("trust", task.get("settings"))
        trusted = named if isinstance(named, list) else [Trust.CURATOR.value]
        for budget in _budgets(task):
            found += [(budget, at, str(task.get("label", task.get("task"))), EARLIER.get(str(t), str(t))) for t in trusted]
    if not found:
        raise PricingError(f"{document.path}:1: no task of this scenario has epsilons")
    found.sort(key=lambda each: -each[0])

    def rows(facts: Facts, factor: float) -> tuple[Row, ...]:
        out = []
        for budget, at, label, trust in found:
            cost = costs.unprotected("epsilons: inf asks for no noise") if math.isinf(budget) else costs.pure(budget)
            why = f"task {label}, {trust}: noise is calibrated to cost at most this; see the method for unit and relation"
            out.append(Row("as the method", "as the method", VIEWERS.get(trust, trust), cost, 1, at, why))
        return tuple(out)

    claim = (Published(None, None, "none", "targets; the ledger of a run says what was spent"),)
    return Reading(rows, claim, no_fix="write the ε you want into epsilons")


def _budgets(task: dict[str, Tree]) -> list[float]:
    listed = task.get("epsilons")
    values = [scalar(v) if isinstance(v, str) else v for v in listed] if isinstance(listed, list) else []
    return [float(v) for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
