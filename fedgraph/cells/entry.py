"""A finished cell as one frozen record, and how its file holds it as JSON.

make_entry(cell, outcome, seconds)   the record
entry_to_json(entry)                 for its file: ledger lines as objects, without what the entry says already
entry_from_json(stored)              the record again
"""

import gzip
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

import numpy as np
from pydantic import TypeAdapter

from fedgraph.cells.cell import Cell, CellOutcome
from fedgraph.cells.task_facts import CELL_FACTS_RECORDS, TaskFacts
from fedgraph.privacy import Ledger, Protection
from fedgraph.worlds import World

_ONCE = ("cell", "protection", "delta")  # of a ledger line: where it says the same as the entry, the file leaves it out
_F = TypeVar("_F", bound=TaskFacts)


class EntryRowKey(NamedTuple):
    """What the cells of one row have in common: all that names them but the seed.

    Attributes:
        task: The task's label.
        dataset: The label of the data set.
        method: The method.
        variant: The label of the row.
        world: Who trains together, and who is trusted.
        epsilon: The target ε.
        calibrated_by: For which reading of ε the noise was chosen.
    """

    task: str
    dataset: str
    method: str
    variant: str
    world: World
    epsilon: float
    calibrated_by: str

    @classmethod
    def of_cell(cls, cell: "Cell | CellEntry") -> Self:
        """Of the row that the cell belongs to."""
        return cls(*(vars(cell)[name] for name in cls._fields))


@dataclass(frozen=True)
class CellEntry:
    """What is kept of a finished cell, beside its artefacts.

    Attributes:
        task: As in ``Cell``, and so are the next seven.
        dataset: The label of the data set.
        method: The method.
        variant: The label of the row.
        world: Who trains together, and who is trusted.
        calibrated_by: For which reading of ε the noise was chosen.
        epsilon: The target ε, not what was reached.
        seed: The number of the repetition.
        metrics: Name → value.
        facts: What the cell's task says of it.
        protection: Who is protected from whom; None where nothing is released or learnt.
        delta: The δ of every ε here, 0 … 1; None where there is no protection.
        epsilon_published: What the paper's formula says; None where it says nothing.
        epsilon_provable: The proven ε of everything that is released.
        epsilon_measured: What an attack proves at least; None where there was none.
        theorem: What ``epsilon_provable`` rests on.
        paths: Path of releases → its proven ε alone.
        notes: Sentences that the plan says of its numbers.
        seconds: Wall time of the cell; 0 where it must not be known.
        ledger: The cell's lines of the ledger, each a JSON object as text.
    """

    task: str
    dataset: str
    method: str
    variant: str
    world: World
    calibrated_by: str
    epsilon: float
    seed: int
    metrics: Mapping[str, float]
    facts: TaskFacts
    protection: Protection | None
    delta: float | None
    epsilon_published: float | None
    epsilon_provable: float
    epsilon_measured: float | None
    theorem: str
    paths: Mapping[str, float]
    notes: tuple[str, ...]
    seconds: float
    ledger: tuple[str, ...]

    @property
    def row_key(self) -> EntryRowKey:
        """Names the row that the cell belongs to, together with the same cells of other seeds."""
        return EntryRowKey.of_cell(self)

    @property
    def noise_for(self) -> str:
        """Under which reading noise was chosen, and for which paths, where it was not for all that leaves.

        Example: ``FedAvg in clear`` at ε = 64 has noise for its embeddings, and its model leaves as it is. ε of the row is ∞,
        so it is not called ``provable`` but ``provable (embedding alone)``.
        """
        kept = [path for path, price in self.paths.items() if math.isfinite(price)]
        if self.calibrated_by != "provable" or not math.isinf(self.epsilon_provable) or not kept:
            return self.calibrated_by
        return f"provable ({', '.join(kept)} alone)"

    @property
    def status(self) -> str:
        """``ok``; or why a cell that was asked to be provable at a finite ε is not private."""
        if self.calibrated_by != "provable" or math.isinf(self.epsilon) or not math.isinf(self.epsilon_provable):
            return "ok"
        if self.facts.broken_promise:
            return f"not private: the promise is broken: {self.facts.broken_promise}"
        clear = [path for path, price in self.paths.items() if math.isinf(price)]
        return f"not private: ε = ∞ ({', '.join(clear) or 'all'})"

    def facts_as(self, record: type[_F]) -> _F:
        """The facts as the record of a known task.

        Args:
            record: The class of the record.

        Raises:
            TypeError: The cell is of another task.
        """
        if not isinstance(self.facts, record):
            raise TypeError(f"the facts of a cell of {self.task} are {type(self.facts).__name__}, not {record.__name__}")
        return self.facts


def make(cell: Cell, outcome: CellOutcome, seconds: float) -> CellEntry:
    """The record of a finished cell.

    Args:
        cell: What names it.
        outcome: What its task returned.
        seconds: Wall time that it took.

    Returns:
        The record. Account and releases carry the cell's name in the words that users write.
    """
    account = None if outcome.account is None else replace(outcome.account, cell=cell.name)
    releases = [replace(line, cell=cell.name) for line in outcome.releases]
    kept = {f.name: vars(outcome)[f.name] for f in fields(CellEntry) if f.name in vars(outcome)}
    return CellEntry(
        **{name: vars(cell)[name] for name in (*EntryRowKey._fields, "seed")},
        **kept,
        protection=None if account is None else account.protection,
        delta=None if account is None else account.delta,
        seconds=seconds,
        ledger=tuple(Ledger([] if account is None else [account], releases).lines()),
    )


def to_json(entry: CellEntry) -> dict[str, object]:
    """What the cell's file holds. Ledger lines keep their fields and their order; a field that is None stands in the entry.

    Returns:
        JSON in Python's dialect: ∞ is a number there, so that no text is taken for one.
    """
    protection = None if entry.protection is None else entry.protection.to_dict()
    lines = [json.loads(line) for line in entry.ledger]
    known = {"cell": next((line["cell"] for line in lines if "cell" in line), None)}
    known |= {"protection": protection, "delta": entry.delta}
    said = [{k: None if k in _ONCE and v is not None and v == known[k] else v for k, v in line.items()} for line in lines]
    whole = {**asdict(entry), "world": entry.world.to_dict(), "protection": protection, "cell": known["cell"], "ledger": said}
    return dict(json.loads(json.dumps(whole, default=np.generic.item)))


def from_json(stored: Mapping[str, object]) -> CellEntry:
    """The record that ``to_json`` wrote.

    Args:
        stored: The object in a cell's file, without its checksum.

    Raises:
        ValueError: A field is missing or of another type, or an accuracy is no share.
    """
    lines, facts, protection = (stored.get(name) for name in ("ledger", "facts", "protection"))
    world = stored.get("world")
    if not (
        isinstance(world, dict)
        and isinstance(lines, list)
        and isinstance(facts, dict)
        and facts.get("kind") in CELL_FACTS_RECORDS
    ):
        raise ValueError("no entry of a finished cell")
    whole = ({k: stored.get(k) if k in _ONCE and v is None else v for k, v in line.items()} for line in lines)
    read = {
        "world": World.from_dict(dict(world)),
        "facts": _facts_reader(facts["kind"]).validate_python(facts),
        "protection": Protection.from_dict(protection) if isinstance(protection, dict) else None,
        "ledger": tuple(json.dumps(line, separators=(",", ":")) for line in whole),
    }
    plain = {name: value for name, value in stored.items() if name != "cell"}
    entry = _entry_reader().validate_python(plain | read)
    if (share := entry.metrics.get("accuracy", 0.0)) < 0 or share > 1:
        raise ValueError(f"its accuracy is {share:g}; allowed: 0 to 1")
    return entry


@cache
def _facts_reader(kind: str) -> TypeAdapter[TaskFacts]:
    """What reads facts of this kind: made once, since that takes longer than reading a cell."""
    return TypeAdapter(CELL_FACTS_RECORDS[kind])


@cache
def _entry_reader() -> TypeAdapter[CellEntry]:
    return TypeAdapter(CellEntry)


def read_file(file: Path) -> dict[str, object]:
    """The JSON object in a cell's file.

    Args:
        file: Compressed by gzip.

    Raises:
        OSError: The file is not there or not compressed by gzip.
        EOFError: It ends too early.
        zlib.error: Its bytes are damaged.
        ValueError: It holds no JSON object.
    """
    content = json.loads(gzip.decompress(file.read_bytes()))
    if not isinstance(content, dict):
        raise ValueError("no JSON object")
    return content


def portable(value: object) -> object:
    """A value as JSON without numbers that are not standard.

    Args:
        value: Nested mappings and sequences of plain values, numpy scalars and worlds.

    Returns:
        The same as dictionaries, lists and plain values; ∞ is ``"inf"``, −∞ ``"-inf"`` and NaN ``"nan"``.
    """
    if isinstance(value, Mapping):
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
