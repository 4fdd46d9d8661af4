"""A finished cell as one JSON mapping: what is kept of it, and how its file says everything once.

entry_of(cell, outcome, seconds)   the mapping in memory; ``ledger`` holds the cell's ledger lines as text
shortened(entry)                   for its file: plain numbers only, ledger lines as objects without what the entry says
completed(stored)                  the mapping again
"""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from fedgraph.cells.cell import Cell, Outcome
from fedgraph.privacy.ledger import Ledger
from fedgraph.worlds.world import World

SPECIAL = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
ONCE = ("cell", "protection", "delta")  # of a ledger line: where it says the same as the entry, the file leaves it out


def entry_of(cell: Cell, outcome: Outcome, seconds: float) -> dict[str, Any]:
    """What is kept of a finished cell, beside its artefacts."""
    account = outcome.account
    ledger = Ledger([] if account is None else [account], outcome.releases)
    return {
        "task": cell.task,
        "dataset": cell.dataset,
        "method": cell.method,
        "variant": cell.variant,
        "world": cell.world,
        "calibrated_by": cell.calibrated_by,
        "epsilon": cell.epsilon,
        "seed": cell.seed,
        "metrics": outcome.metrics,
        "facts": outcome.facts,
        "protection": None if account is None else account.protection.to_dict(),
        "delta": None if account is None else account.delta,
        "epsilon_published": outcome.epsilon_published,
        "epsilon_provable": outcome.epsilon_provable,
        "epsilon_measured": outcome.epsilon_measured,
        "theorem": outcome.theorem,
        "paths": outcome.paths,
        "notes": list(outcome.notes),
        "seconds": seconds,
        "ledger": list(ledger.lines()),
    }


def shortened(entry: dict[str, Any]) -> dict[str, Any]:
    """What the cell's file holds. Ledger lines keep their fields and their order; a field that is None stands in the entry."""
    plain: dict[str, Any] = portable(entry)
    lines = [json.loads(line) for line in plain.get("ledger", ())]
    known = {"cell": next((line["cell"] for line in lines if "cell" in line), None)}
    known |= {name: plain.get(name) for name in ("protection", "delta")}
    said = [{k: None if k in ONCE and v is not None and v == known[k] else v for k, v in line.items()} for line in lines]
    return {**plain, "cell": known["cell"], "ledger": said}


def completed(stored: dict[str, Any]) -> dict[str, Any]:
    """Inverse of ``shortened``: floats are floats again (∞ included), ledger lines are text again."""
    plain = {k: v for k, v in stored.items() if k not in ("ledger", "cell")}
    lines = []
    for line in stored.get("ledger", ()):
        line = {k: stored.get(k) if k in ONCE and v is None else v for k, v in line.items()}
        lines.append(json.dumps(line, separators=(",", ":")))
    return {**restored(plain), "world": World.from_dict(stored["world"]), "ledger": lines}


def content_of(file: Path) -> dict[str, Any]:
    """The JSON object in a cell's file. ``ValueError`` for anything else."""
    found = json.loads(gzip.decompress(file.read_bytes()))
    if not isinstance(found, dict):
        raise ValueError("no JSON object")
    return found


def portable(value: Any) -> Any:
    """JSON without non-standard numbers: ∞ and NaN become strings; numpy scalars and worlds become plain."""
    if isinstance(value, dict):
        return {str(k): portable(v) for k, v in value.items()}
    if isinstance(value, World):
        return portable(value.to_dict())
    if isinstance(value, (list, tuple)):
        return [portable(v) for v in value]
    if isinstance(value, np.generic):
        return portable(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return "inf" if value > 0 else "-inf" if value < 0 else "nan"
    return value


def restored(value: Any) -> Any:
    """Inverse of ``portable``."""
    if isinstance(value, dict):
        return {k: restored(v) for k, v in value.items()}
    if isinstance(value, list):
        return [restored(v) for v in value]
    return SPECIAL.get(value, value) if isinstance(value, str) else value
