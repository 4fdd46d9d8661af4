"""From finished cells to rows: ``results.csv`` and ``results.json``, and averages over seeds."""

from __future__ import annotations

import csv
import io
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from fedgraph.audit import estimators, one_run
from fedgraph.cells.entry import portable
from fedgraph.worlds.world import Kind, World

COLUMNS = (
    "scenario", "dataset", "source", "task", "method", "variant", "trust", "world", "viewer", "unit", "relation", "assumptions",
    "calibrated_by", "epsilon", "delta", "epsilon_published", "epsilon_provable", "epsilon_measured", "paths", "clients",
    "cut_edges", "public", "seed", "participation", "client", "metric", "value", "seconds",
    "status",
)  # fmt: skip


@lru_cache(maxsize=4096)
def lower_bound(counts: tuple[one_run.Count, ...], delta: float, by: str = "counting", alpha: float = one_run.ALPHA) -> float:
    """``estimators.epsilon_lower``, computed once: every table asks for the same bounds."""
    return estimators.epsilon_lower(list(counts), delta, by, alpha)


@dataclass(frozen=True)
class Row:
    """One line of every table: a configuration, averaged over seeds.

    entries: the cells it stands for (as stored). Attributes of the first cell hold for all of them.
    """

    entries: tuple[dict[str, Any], ...]

    def __getitem__(self, name: str) -> Any:
        return self.entries[0][name]

    @property
    def provable(self) -> float:
        """The largest provable ε over seeds."""
        return float(max(e["epsilon_provable"] for e in self.entries))

    @property
    def published(self) -> float | None:
        found = [e["epsilon_published"] for e in self.entries if e["epsilon_published"] is not None]
        return float(max(found)) if found else None

    @cached_property
    def attacked(self) -> list[one_run.Count]:
        """Guesses about canaries, of the attacked seeds together (independent coins); one entry per number of guesses."""
        found = [e["facts"]["attack"]["counts"] for e in self.entries if e.get("epsilon_measured") is not None]
        return [one_run.Count(*map(sum, zip(*same, strict=True))) for same in zip(*found, strict=True)]

    @cached_property
    def measured(self) -> float | None:
        """The ε that an attack on the attacked seeds together refutes; None where there was none."""
        return lower_bound(tuple(self.attacked), float(self["delta"]), self.estimator) if self.attacked else None

    @property
    def estimator(self) -> str:
        """Which bound the attack is read by (``audit.estimators``)."""
        return str(self["facts"]["attack"].get("estimator", "counting"))

    @cached_property
    def ceiling(self) -> float:
        """What ``measured`` would be with every guess right."""
        right = tuple(one_run.Count(c.coins, c.guesses, c.guesses) for c in self.attacked)
        return lower_bound(right, float(self["delta"]), self.estimator)

    @property
    def guaranteed(self) -> float:
        """The provable ε that ``measured`` must not exceed: of the attacked path, or of the whole row."""
        path = self["facts"]["attack"].get("path")
        return self.provable if path is None else self.path(path)

    def path(self, name: str) -> float:
        """The largest provable ε of one path over seeds."""
        return float(max(e["paths"][name] for e in self.entries))

    def values(self, metric: str) -> list[float]:
        return [float(e["metrics"][metric]) for e in self.entries if metric in e["metrics"]]

    def mean(self, metric: str) -> float:
        found = self.values(metric)
        return statistics.fmean(found) if found else math.nan

    def deviation(self, metric: str) -> float:
        """Sample standard deviation over seeds; 0 for one."""
        found = self.values(metric)
        return statistics.stdev(found) if len(found) > 1 else 0.0


LEFT_OUT = "left-out"  # the participation of a client that the others trained without
NAMED = ("task", "dataset", "method", "variant", "epsilon", "calibrated_by", "seed")
IDENTITY = ("task", "dataset", "method", "variant", "world", "epsilon", "calibrated_by")


def group_rows(entries: Sequence[dict[str, Any]]) -> list[Row]:
    """Rows in order of first appearance."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for entry in entries:
        groups.setdefault(tuple(entry[name] for name in IDENTITY), []).append(entry)
    return [Row(tuple(group)) for group in groups.values()]


def flat(scenario: str, source: str, entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One mapping per cell, seed and metric, with all of ``COLUMNS``; where clients were counted one by one, per client, too.

    Such rows say in ``epsilon_provable`` what the dearest unit of that client pays, and ``client`` is ``all`` for everybody.
    """
    rows: list[dict[str, Any]] = []
    for e in entries:
        protection = e["protection"] or {"viewer": None, "unit": None, "relation": None, "assumptions": ()}
        head = {
            "scenario": scenario,
            "source": source,
            **{name: e[name] for name in ("dataset", "task", "method", "variant", "calibrated_by", "epsilon", "delta")},
            **world_columns(e["world"]),
            "viewer": protection["viewer"],
            "unit": protection["unit"],
            "relation": protection["relation"],
            "assumptions": " ".join(protection["assumptions"]),
            "epsilon_published": e["epsilon_published"],
            "epsilon_provable": e["epsilon_provable"],
            "epsilon_measured": e.get("epsilon_measured"),
            "paths": " ".join(f"{path}={price:.6g}" for path, price in e["paths"].items()),
            "clients": e["facts"].get("clients"),
            "cut_edges": e["facts"].get("cut_edges"),
            "public": e["facts"].get("public"),
            "seed": e["seed"],
            "seconds": round(e["seconds"], 3),
            "status": "ok",
        }
        counted = e["facts"].get("participations") or [
            {"participation": "all", "client": "all", "metrics": e["metrics"], "epsilon": e["epsilon_provable"]}
        ]
        for c in counted:
            own = {**head, "participation": c["participation"], "client": c["client"], "epsilon_provable": c["epsilon"]}
            rows += [{name: {**own, "metric": m, "value": v}[name] for name in COLUMNS} for m, v in c["metrics"].items()]
    return rows


def nested(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of ``flat`` for JSON: those that differ in ``metric`` and ``value`` only are one, with ``metrics`` by name."""
    found: list[dict[str, Any]] = []
    last: tuple[Any, ...] | None = None
    for row in rows:
        same = {k: v for k, v in row.items() if k not in ("metric", "value")}
        key = tuple(same.values())
        if key != last:
            found.append({**same, "metrics": {}})
            last = key
        if row["metric"] is not None:
            found[-1]["metrics"][row["metric"]] = row["value"]
    return found


def failures(scenario: str, source: Mapping[str, str], failed: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each cell that failed: who it was, no metric, and in ``status`` why."""
    rows = []
    for f in failed:
        world: World = f["world"]
        left = {} if world.without is None else {"participation": LEFT_OUT, "client": world.without.name}
        known = {
            **f,
            **left,
            **world_columns(world),
            "scenario": scenario,
            "source": source.get(f["dataset"], "none"),
            "status": f"failed: {f['why']}",
        }
        rows.append({name: known.get(name) for name in COLUMNS})
    return rows


def notes(entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every sentence that a plan says of its numbers, once for each row: what ``results.json`` and the console show of them."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for e in entries:
        for note in e.get("notes", ()):
            row = {name: e[name] for name in IDENTITY}
            found.setdefault((*row.values(), note), {**row, "note": note})
    return list(found.values())


def world_columns(world: World) -> dict[str, str]:
    """Whom a row trusts (nothing for a paper's claim, where no data are held), and who trains together."""
    return {"trust": "" if world.kind is Kind.PAPER else world.trust.value, "world": world.kind.value}


def identity_of(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """What its rows in ``results.json`` say of an entry's cell, and of no other: see ``identity_in``."""
    world: World = entry["world"]
    left = ("", "") if world.without is None else (LEFT_OUT, world.without.name)
    return (*(str(entry[name]) for name in NAMED), *world_columns(world).values(), *left)


def identity_in(row: Mapping[str, Any]) -> tuple[str, ...]:
    """``identity_of`` the cell that a row of ``results.json`` is about."""
    left = (LEFT_OUT, str(row["client"])) if row["participation"] == LEFT_OUT else ("", "")
    return (*(str(row[name]) for name in NAMED), str(row["trust"]), str(row["world"]), *left)


def as_csv(rows: Sequence[dict[str, Any]]) -> str:
    """CSV text that begins with its header; generated data show in the column ``source``. No value is empty, ∞ is ``inf``."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def as_json(head: Mapping[str, Any], tables: Mapping[str, Sequence[Any]]) -> str:
    """One JSON object: ``head``, then each table with one entry per line, so that many rows stay small and can be compared.

    >>> print(as_json({"scenario": "x"}, {"rows": [{"epsilon": 1.0}]}), end="")
    {
     "scenario": "x",
     "rows": [
      {"epsilon":1.0}
     ]
    }
    """

    def line(value: Any) -> str:
        return json.dumps(portable(value), ensure_ascii=False, separators=(",", ":"))

    parts = [f' "{key}": {line(value)}' for key, value in head.items()]
    for key, entries in tables.items():
        inside = ",\n".join(f"  {line(entry)}" for entry in entries)
        parts.append(f' "{key}": [\n{inside}\n ]' if entries else f' "{key}": []')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def rounded(value: float | None, digits: int = 3) -> str:
    """For tables: ``—`` for none, ``∞``, at most ``digits`` significant digits beyond the point."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "—"
    if math.isinf(value):
        return "∞"
    return f"{value:.{digits}g}" if value and abs(value) < 0.01 else f"{value:.{digits}f}".rstrip("0").rstrip(".")


def rounded_up(value: float | None, digits: int = 2) -> str:
    """As ``number``, rounded up: a printed upper bound is never below the computed one."""
    if value is None or not math.isfinite(value) or value == 0:
        return rounded(value, digits)
    scale = 10.0 ** (digits if value >= 0.01 else digits - 1 - math.floor(math.log10(value)))
    return rounded(math.ceil(value * scale * (1 - 1e-9)) / scale, digits)


def averaged_over(count: int, what: str = "seed", error: str = "deviation") -> str:
    """How ``count`` repetitions are summed up, in words: ± only where there are two or more.

    >>> averaged(1), averaged(3, "fold")
    ('one seed', 'mean ± standard deviation over 3 folds')
    """
    return f"one {what}" if count == 1 else f"mean ± standard {error} over {count} {what}s"


def mean_spread(row: Row, metric: str) -> str:
    """``mean ± standard deviation`` over seeds."""
    if not row.values(metric):
        return "—"
    if len(row.values(metric)) == 1:
        return f"{row.mean(metric):.3f}"
    return f"{row.mean(metric):.3f} ± {row.deviation(metric):.3f}"
