"""What was found of one cell, as one frozen record: a task returns it, a file holds it, and every reader of a run reads it.

Result.of(cell, metrics=…, facts=…, account=…)   what a task returns
to_line(result), from_line(line)                 its line in the table of a run, and alone in its file while the run goes on
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ConfigDict, TypeAdapter

from fedgraph import federation, privacy
from fedgraph.cells.cell import Cell
from fedgraph.cells.task_facts import CELL_FACTS_RECORDS, NodeClassificationCellFacts, TaskFacts

FAILED = "failed: "  # how the status of a cell without a number begins


@dataclass(frozen=True, kw_only=True)
class Result(Cell):
    """A cell, and what was found of it."""

    __pydantic_config__ = ConfigDict(arbitrary_types_allowed=True)

    metrics: Mapping[str, float] = field(default_factory=dict)  # name → value
    facts: TaskFacts = field(default_factory=TaskFacts)  # what the cell's task says of it
    protection: privacy.Protection | None = None  # who is protected from whom; None where nothing is released or learnt
    delta: float | None = None  # the δ of every ε here, 0 … 1; None where there is no protection
    epsilon_published: float | None = None  # what the paper's formula says; None where it says nothing
    epsilon_provable: float = math.nan  # the proven ε of everything that is released, 0 … ∞; NaN where the cell failed
    epsilon_measured: float | None = None  # what an attack proves at least; None where there was none
    theorem: str = ""  # what ``epsilon_provable`` rests on
    paths: Mapping[str, float] = field(default_factory=dict)  # path of releases → its proven ε alone
    notes: tuple[str, ...] = ()  # sentences that the plan says of its numbers
    seconds: float | None = None  # wall time of the cell; None before it was measured, 0 where it must not be known
    ledger: tuple[str, ...] = ()  # the cell's lines of the ledger, each a JSON object as text
    failed: str = ""  # why there is no number, in one line; empty where the cell was computed
    # small named arrays, for figures
    artefacts: Mapping[str, np.ndarray] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        cell: Cell,
        account: privacy.LedgerAccount | None = None,
        releases: Iterable[privacy.LedgerLine] = (),
        facts: TaskFacts | None = None,
        **found: object,
    ) -> Result:
        """The result of a cell. Account and releases carry its name in the words that users write.

        Args:
            account: What the cell promises, for the ledger; None where nothing is released or learnt.
            found: Other fields, by name.
        """
        told = facts or TaskFacts()
        named = None if account is None else replace(account, cell=cell.name, one=told.one)
        lines = privacy.Ledger([] if named is None else [named], [replace(line, cell=cell.name) for line in releases]).lines()
        own = {f.name: vars(cell)[f.name] for f in fields(Cell)}
        held = {} if account is None else {"protection": account.protection, "delta": account.delta}
        return cls(**own, **held, ledger=tuple(lines), facts=told, **found)  # type: ignore[arg-type]

    @cached_property
    def _read(self) -> privacy.Ledger:
        return privacy.Ledger.of_lines(self.ledger)

    @property
    def account(self) -> privacy.LedgerAccount | None:
        """What the cell promises, as its ledger says; None where nothing is released or learnt."""
        return next(iter(self._read.accounts), None)

    @property
    def releases(self) -> tuple[privacy.LedgerLine, ...]:
        """The releases of its ledger."""
        return tuple(self._read)

    @property
    def noise_for(self) -> str:
        """Under which reading noise was chosen, and for which paths, where it was not for all that leaves.

        Example: ``FedAvg in clear`` has noise for its embeddings alone: ``provable (embedding alone)``, and the row's ε is ∞.
        """
        kept = [path for path, price in self.paths.items() if math.isfinite(price)]
        if self.calibrated_by != "provable" or not math.isinf(self.epsilon_provable) or not kept:
            return self.calibrated_by
        return f"provable ({', '.join(kept)} alone)"

    @property
    def status(self) -> str:
        """``ok``; or why it has no number, or why a cell that was asked to be provable at a finite ε is not private."""
        if self.failed:
            return f"{FAILED}{self.failed}"
        if self.calibrated_by != "provable" or math.isinf(self.epsilon) or not math.isinf(self.epsilon_provable):
            return "ok"
        if self.facts.broken_promise:
            return f"not private: the promise is broken: {self.facts.broken_promise}"
        clear = [path for path, price in self.paths.items() if math.isinf(price)]
        return f"not private: ε = ∞ ({', '.join(clear) or 'all'})"


@cache
def _reader(kind: str = "") -> TypeAdapter[Any]:
    """What reads a result, or facts of a kind: made once, since that takes longer than reading a cell."""
    return TypeAdapter(CELL_FACTS_RECORDS[kind] if kind else Result)


_NAMING = ("task", "dataset", "method", "variant", "epsilon", "calibrated_by", "seed")
_PRICES = ("delta", "epsilon_published", "epsilon_provable", "epsilon_measured")
_OF_FACTS = ("one", "clients", "cut_edges", "public", "protocol", "split", "partition", "rounds", "train_nodes", "tested")


def to_line(result: Result) -> dict[str, object]:
    """The result as one line of a table: column → number, text, list of texts, or JSON as text. Each metric is a column of its
    name, and ``from_line`` gives the same result but for its artefacts."""
    held, facts = result.protection, result.facts
    choice = facts.choice if isinstance(facts, NodeClassificationCellFacts) else None
    line: dict[str, object] = {name: vars(result)[name] for name in (*_NAMING, *_PRICES, "theorem", "seconds")}
    line |= {
        "status": result.status, "world": result.world.words,
        "viewer": held and held.viewer.value, "unit": held and held.unit.value, "relation": held and held.relation.value,
        "assumptions": [] if held is None else [held.sentence(assumption) for assumption in held.assumptions],
        "paths": _text(dict(result.paths)),
        "private": bool(result.paths) or math.isinf(result.epsilon_provable),
        "raw": math.isinf(result.epsilon) and math.isinf(result.epsilon_provable),
        "chosen": "" if choice is None else choice.words,
        "epsilon_trial": None if choice is None else round(choice.epsilon, 4),
        "notes": list(result.notes), "facts": _text(asdict(facts)), "ledger": "[" + ",".join(result.ledger) + "]",
        "record": _text({
            "world": result.world.to_dict(), "protection": held and held.to_dict(), "metrics": list(result.metrics),
            "measured": result.epsilon_measured,
        }),
    }  # fmt: skip
    line |= {name: vars(facts)[name] for name in _OF_FACTS}
    return line | {f"{name}_" if name in line else name: value for name, value in result.metrics.items()}


def from_line(line: Mapping[str, Any], artefacts: Mapping[str, np.ndarray] | None = None) -> Result:
    """The result that ``to_line`` wrote, of a table or of a cell's file; what is missing in it is None or NaN. ``KeyError`` or
    ``ValueError`` where a column is missing, a value is of another type, or an accuracy is no share."""
    record, status = json.loads(line["record"]), str(line["status"])
    own = {name: f"{name}_" if name in _own_columns() else name for name in record["metrics"]}
    held = record["protection"] and privacy.Protection.from_dict(record["protection"])
    known = {name: None if line[name] != line[name] else line[name] for name in (*_PRICES, "seconds")}
    facts = json.loads(line["facts"])
    if facts.get("kind") not in CELL_FACTS_RECORDS:
        raise ValueError("no result of a cell")
    read: Result = _reader().validate_python(
        {name: line[name] for name in (*_NAMING, "theorem", "notes")}
        | {**known, "epsilon_provable": line["epsilon_provable"], "epsilon_measured": record["measured"]}
        | {
            "metrics": {name: line[column] for name, column in own.items()},
            "paths": json.loads(line["paths"]),
            "world": federation.World.from_dict(record["world"]),
            "facts": _reader(facts["kind"]).validate_python(facts),
            "protection": held,
            "ledger": tuple(json.dumps(one, separators=(",", ":")) for one in json.loads(line["ledger"])),
            "failed": status.removeprefix(FAILED) if status.startswith(FAILED) else "",
            "artefacts": artefacts or {},
        }
    )
    if (share := read.metrics.get("accuracy", 0.0)) < 0 or share > 1:
        raise ValueError(f"its accuracy is {share:g}; allowed: 0 to 1")
    return read


def _text(value: object) -> str:
    return json.dumps(value, default=np.generic.item, ensure_ascii=False, separators=(",", ":"))


@cache
def _own_columns() -> frozenset[str]:
    """Columns that are no metrics: a metric of such a name has an underscore behind it."""
    nothing = Result("", "", "", "", federation.world_of_trust(privacy.Trust.CURATOR), 0.0, "", 0)
    return frozenset(to_line(nothing))


def read_file(file: Path) -> dict[str, object]:
    """The JSON object in a cell's file, which is compressed by gzip; ``ValueError`` where it holds none."""
    content = json.loads(gzip.decompress(file.read_bytes()))
    if not isinstance(content, dict):
        raise ValueError("no JSON object")
    return content


def portable(value: object) -> object:
    """Nested mappings and sequences of plain values, numpy scalars and worlds as standard JSON: ∞ is ``"inf"``, −∞ ``"-inf"``
    and NaN ``"nan"``."""
    if isinstance(value, Mapping):
        return {str(k): portable(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [portable(v) for v in value]
    if isinstance(value, federation.World | np.generic):
        return portable(value.to_dict() if isinstance(value, federation.World) else value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return "inf" if value > 0 else "-inf" if value < 0 else "nan"
    return value
