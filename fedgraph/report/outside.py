"""``RUN/outside``: what of a run may be handed out, and what has to be withheld. This module alone decides it.

All that it writes is a function of what the desk released, of what is declared public (each row's assumptions say what), and of
both together. On two inputs that are neighbours, with the same released values, it writes the same bytes: no date, duration,
host or digest, no count of private people, no accuracy on private people that nobody paid for.

    outside/README.txt       what lies here, and how to check it
    outside/scenario.yaml    what was asked, defaults included; no path of data or budget
    outside/results.csv      one line for each row, seed and metric: who is trusted, ε and δ, theorem, assumptions
    outside/statement.txt    the privacy of each row in words
    outside/ledger.jsonl     every release
    outside/plans.jsonl      what each row declared before it read private data
    outside/sheets/          the privacy sheet of each row with a finite ε, and its draft for the registry

A row of the run is first reduced to what may leave (``reduce_to_outside``); statement, sheet and table are then made of that by
the same code that makes those of the data's holder.
"""

import json
import math
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from fedgraph.cells import (
    Cell,
    Environment,
    EnvironmentMaking,
    NodeClassificationCellFacts,
    Result,
    TaskFacts,
    result,
    store,
)
from fedgraph.errors import DataError
from fedgraph.privacy import Assumption
from fedgraph.report import phrases, privacy_sheet, statement, table
from fedgraph.report.saved_run import SHORT_SAVED_RUN, SavedRun

OUTSIDE = "outside"
_COLUMNS = (
    "row", "dataset", "task", "method", "variant", "trust", "world", "viewer", "unit", "relation", "assumptions",
    "calibrated_by", "chosen", "epsilon_trial", "epsilon", "delta", "epsilon_published", "epsilon_provable", "paths",
    "clients", "public", "seed", "metric", "value", "status", "theorem", "withheld",
)  # fmt: skip


def reduce_to_outside(entry: Result) -> Result:
    """A cell with nothing but what may leave: its name, its guarantee, its ledger, and metrics that follow from public people.

    A row that guarantees nothing (ε = ∞) keeps no metric, for nothing bounds what that would tell.
    """
    facts, held = entry.facts, entry.protection
    counted = held is not None and Assumption.COUNTS_PUBLIC in held.assumptions
    same = ("one", "clients", "cut_edges_shared", "rounds", "public", "protocol", "split", "public_notes")
    kept: dict[str, Any] = {name: vars(facts)[name] for name in same} | {
        "train_nodes": facts.train_nodes if counted else 0,
        "broken_promise": None if facts.broken_promise is None else "the data break a promise that it rests on.",
        "public_metrics": facts.public_metrics if math.isfinite(entry.epsilon_provable) else (),
    }
    choice = facts.choice if isinstance(facts, NodeClassificationCellFacts) else None
    told = TaskFacts(**kept) if choice is None else NodeClassificationCellFacts(**kept, choice=choice)
    metrics = {name: value for name, value in entry.metrics.items() if name in told.public_metrics}
    reduced = replace(entry, metrics=metrics, facts=told, notes=facts.public_notes, artefacts={})
    return replace(reduced, epsilon_measured=None, seconds=0.0)


def see_from_outside(run: SavedRun) -> SavedRun:
    """The run as somebody may see it who must not learn of any one person: what the sheet of a row is made of."""
    known = run.environment
    versions = {name: known.versions[name] for name in ("fedgraph-privacy", "torch") if name in known.versions}
    seed, data = known.seed, tuple(replace(source, sha256={}) for source in known.data)
    environment = Environment(versions=versions, seed=seed, data=data, made=EnvironmentMaking(known.made.version))
    notice = " ".join(filter(None, (known.notice, SHORT_SAVED_RUN if known.quick else None))) or None
    lines = table.tabulate([reduce_to_outside(found) for found in run.results], {})
    return replace(run, table=lines, environment=environment, notice=notice)


def explain_withheld(entry: Result) -> str:
    """Why a cell that was reduced has no metric; empty where it has one."""
    if entry.metrics or entry.facts.kind == "claims":
        return ""
    return statement.withheld(entry.facts.one, entry.epsilon_provable)


def make_outside_sheet(run: SavedRun, name: str | None = None) -> privacy_sheet.PrivacySheet:
    """The privacy sheet of one row, which may be handed out; None: the only private row, or the answer.

    Raises:
        DataError: No row has the name, or none was named and which is the best is known from exact accuracies only; or the row
            states another price than its ledger.
    """
    seen = see_from_outside(run)
    if name is not None:
        return privacy_sheet.make_privacy_sheet(seen, seen.find(run.find(name).row))
    able = _signed(seen)
    if len(able) != 1 and able and not any(row.head.metrics for row in able):
        names = phrases.first([f'"{row.row}"' for row in able], 6, "; ")
        why = "which row is the best is known from accuracies on private people, which no ε counts"
        raise DataError(
            f"{run.folder}: {why}, so a sheet that is handed out cannot choose by them. Name a ROW, one of: {names}"
        )
    return privacy_sheet.make_privacy_sheet(seen, able[0] if len(able) == 1 else None)


def _signed(seen: SavedRun) -> list[table.Line]:
    """Rows that can be signed: those with a finite ε."""
    return [row for row in seen.rows if row.held is not None and row.paths and math.isfinite(row.epsilon_provable)]


def write_outside(run: SavedRun, resolved: str, plans: Mapping[Cell, Mapping[str, object]]) -> Path:
    """Write ``outside`` anew into the run's folder: the folder.

    resolved: The scenario with its defaults, YAML. plans: Row → its plan, JSON-ready.
    """
    seen, out = see_from_outside(run), run.folder / OUTSIDE
    if out.exists():
        shutil.rmtree(out)
    (out / "sheets").mkdir(parents=True)
    named = {row.head.row: row.row for row in seen.rows}
    declared = [json.dumps({"row": named[key], **plan}, ensure_ascii=False) for key, plan in plans.items() if key in named]
    files = {
        "scenario.yaml": _scenario(resolved),
        "results.csv": _results(seen),
        "statement.txt": _text(seen, "statement"),
        "ledger.jsonl": "".join(f"{line}\n" for entry in seen.results for line in entry.ledger),
        "plans.jsonl": "".join(f"{line}\n" for line in declared),
        "README.txt": _text(seen, "readme"),
    }
    for name, text in files.items():
        store.write_atomically(out / name, text.encode())
    for row in _signed(seen):
        privacy_sheet.write_privacy_sheet(privacy_sheet.make_privacy_sheet(seen, row), out / "sheets", force=True)
    return out


def _scenario(resolved: str) -> str:
    """Without what says something of the machine: where data and budget lie, and how the cells are computed."""
    asked = yaml.safe_load(resolved)
    asked.pop("runtime", None)
    for dataset in asked.get("datasets") or ():
        dataset.pop("root", None)
        dataset.pop("path", None)
    asked.pop("budget", None)
    return str(yaml.safe_dump(asked, sort_keys=False, allow_unicode=True))


def _results(seen: SavedRun) -> str:
    """One line for each metric that may leave, or one for a cell without any."""
    lines = []
    for entry, row in zip(seen.results, seen.table["row"], strict=True):
        told = result.to_line(entry) | {
            "row": row, "trust": entry.world.trust.value, "world": entry.world.kind.value, "withheld": explain_withheld(entry),
            "assumptions": "" if entry.protection is None else " ".join(a.value for a in entry.protection.assumptions),
            "paths": " ".join(f"{path}={price:.6g}" for path, price in entry.paths.items()), "calibrated_by": entry.noise_for,
        }  # fmt: skip
        found: Mapping[Any, float | None] = entry.metrics or {None: None}
        lines += [told | {"metric": name, "value": value} for name, value in found.items()]
    counts = dict.fromkeys(("clients", "seed"), "Int64")
    return pd.DataFrame(lines, columns=_COLUMNS).astype(counts).to_csv(index=False, lineterminator="\n")


def _text(seen: SavedRun, part: str) -> str:
    """``README.txt`` or ``statement.txt``. The price of all together is the sum of the prices, which bounds it."""
    secret = str(seen.environment.seed) == "secret"
    text = phrases.template("outside.txt", escaped=False).render(
        part=part, seen=seen, secret=secret, together=statement.add_up(seen.results), caveats=statement.caveats(secret),
        sentences=statement.sentences, number=phrases.rounded, inf=math.inf,
    )  # fmt: skip
    return text.strip() + "\n"
