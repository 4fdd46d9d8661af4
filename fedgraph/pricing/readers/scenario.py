"""Our own scenarios: the budgets that a scenario asks for. Noise is calibrated at or below them before any data is read.

A scenario states targets; what a run really released stands in its ledger (``fedgraph price runs/…/ledger.jsonl``), and
``python -m fedgraph.run SCENARIO --dry-run`` prints every planned release with its ε. This reader says what they promise.
"""

import math

from fedgraph.errors import PricingError
from fedgraph.pricing import costs
from fedgraph.pricing.base import MODELS, SERVER, SUMS, Reading, Row, no_claim
from fedgraph.pricing.command_lines import Tree, scalar
from fedgraph.pricing.documents import Document
from fedgraph.privacy.trust import EARLIER, Trust

VIEWERS = {"curator": MODELS, "sums": SUMS, "own-client": SERVER, "active-server": SERVER}


def recognises(document: Document) -> bool:
    tasks = document.data.get("tasks")
    return document.kind == "yaml" and isinstance(tasks, list) and all(isinstance(t, dict) and "task" in t for t in tasks)


def read(document: Document) -> Reading:
    """One row per task, level of trust and budget, the dearest first."""
    listed, found = document.data.get("tasks"), []
    for task in (t for t in listed if isinstance(t, dict)) if isinstance(listed, list) else ():
        delta, named = task.get("delta"), task.get("trust", task.get("settings"))
        at = float(delta) if isinstance(delta, (int, float)) and not isinstance(delta, bool) else 0.0
        for budget in _budgets(task):
            for level in named if isinstance(named, list) else [Trust.CURATOR.value]:
                trust = EARLIER.get(str(level), str(level))
                cost = costs.unprotected("epsilons: inf asks for no noise") if math.isinf(budget) else costs.pure(budget)
                why = f"task {task.get('label', task.get('task'))}, {trust}: noise is calibrated to cost at most this; see the "
                why += "method for unit and relation"
                row = Row("as the method", "as the method", VIEWERS.get(trust, trust), cost, 1, at, why)
                found.append((budget, row))
    if not found:
        raise PricingError(f"{document.path}:1: no task of this scenario has epsilons")
    rows = tuple(row for _, row in sorted(found, key=lambda each: -each[0]))
    return Reading(
        rows, no_claim("targets; the ledger of a run says what was spent"), no_fix="write the ε you want into epsilons"
    )


def _budgets(task: dict[str, Tree]) -> list[float]:
    listed = task.get("epsilons")
    values = [scalar(v) if isinstance(v, str) else v for v in listed] if isinstance(listed, list) else []
    return [float(v) for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
