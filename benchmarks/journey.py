"""How many records a cell makes, how often its calls change room, and how many types of records hold its ε.

    python -m benchmarks.journey [--method gap_edge] [--clients 3] [--types]

One scenario of one cell runs on the serial engine, from its YAML to its page. Records are dataclasses of fedgraph: those that
their constructor makes while the cell is computed. A call changes room where the next function of fedgraph on the stack stands
in another one. A holder of the ε is a type of which a record has exactly the budget, or what the training turned out to prove,
in a field (or in a tuple, list or dict there), from the file to the page. Goals: about a hundred records, and eight holders.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import gc
import importlib
import io
import sys
import tempfile
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from pydantic import BaseModel

import fedgraph
from fedgraph.methods import method_kinds
from fedgraph.runs import schedule

run = importlib.import_module("fedgraph.run")  # the command: as an attribute of the package it is the function
ROOT = f"{Path(fedgraph.__file__).parent}/"
EPSILON = 3.21987654321  # a value that nothing else has
SCENARIO = """\
name: journey
datasets: [{{name: embedded/library}}]
tasks:
  - task: node_classification
    protocol: {protocol}
    epsilons: [{epsilon}]
    trust: [{trust}]
    partition: {{partition: uniform, clients: {clients}}}
    methods: [{{method: {method}}}]
"""


class Journey:
    """What a profiler of one thread sees."""

    def __init__(self) -> None:
        self.records: collections.Counter[str] = collections.Counter()
        self.rooms: collections.Counter[tuple[str, str]] = collections.Counter()
        self.values: dict[str, set[float]] = collections.defaultdict(set)  # type → numbers that its records held
        self.proven = EPSILON
        self._cell = schedule.run_cell.__code__
        self._inside = 0
        self._room_of: dict[CodeType, str] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event not in ("call", "return"):
            return
        code = frame.f_code
        if code is self._cell:
            self._inside += 1 if event == "call" else -1
        own = self.room(code)
        if event == "call" and own and self._inside:
            above = frame.f_back
            while above is not None and not self.room(above.f_code):
                above = above.f_back
            if above is not None and (room := self.room(above.f_code)) != own:
                self.rooms[room, own] += 1
        if event == "return" and code.co_name == "__init__" and (made := frame.f_locals.get("self")) is not None:
            kind = type(made)
            if code.co_filename == "<string>" and kind.__module__.startswith("fedgraph.") and dataclasses.is_dataclass(kind):
                self.records[f"{kind.__module__}.{kind.__qualname__}"] += bool(self._inside)
                self.note(made)

    def room(self, code: CodeType) -> str:
        if code not in self._room_of:
            inside = code.co_filename.startswith(ROOT)
            self._room_of[code] = code.co_filename.removeprefix(ROOT).partition("/")[0].removesuffix(".py") if inside else ""
        return self._room_of[code]

    def note(self, record: Any) -> None:
        """Which numbers stand in the record's fields."""
        names = record.__dataclass_fields__ if dataclasses.is_dataclass(record) else vars(record)
        for value in (getattr(record, name, None) for name in names):
            parts = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else (value,)
            found = {float(part) for part in parts if isinstance(part, float)}
            if found:
                self.values[f"{type(record).__module__}.{type(record).__qualname__}"] |= found

    def holders(self) -> list[str]:
        """Types of which a record held the budget or what was proven."""
        return sorted(name for name, found in self.values.items() if found & {EPSILON, self.proven})


def followed(method: str, clients: int) -> Journey:
    """The journey of one cell from the file to the page."""
    seen, real = Journey(), schedule.run_cell
    situation = method_kinds.load(method).OFFERS.situations[0]
    trust = next(trust.value for trust in situation.trusted if not trust.whole)

    def cell(*args: Any) -> Any:
        found = real(*args)
        seen.proven = found.epsilon_provable
        for alive in gc.get_objects():  # what pydantic makes has not passed a constructor
            if issubclass(type(alive), BaseModel) and type(alive).__module__.startswith("fedgraph."):
                seen.note(alive)
        return found

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        path = Path(folder) / "journey.yaml"
        told = {"protocol": situation.given, "epsilon": EPSILON, "trust": trust, "clients": clients, "method": method}
        path.write_text(SCENARIO.format(**told), encoding="utf-8")
        command = [str(path), "--runtime", "serial", "--out"]
        run.main([*command, f"{folder}/first"])  # imports are no part of the journey
        setattr(schedule, "run_cell", cell)  # noqa: B010
        threading.setprofile(seen)
        sys.setprofile(seen)
        status = run.main([*command, f"{folder}/out"])
        sys.setprofile(None)
        threading.setprofile(None)
    if status or not seen.records:
        raise SystemExit("the run failed: nothing was counted")
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="gap_edge")
    parser.add_argument("--clients", type=int, default=3)
    parser.add_argument("--types", action="store_true", help="print every type, border and holder")
    args = parser.parse_args()
    seen = followed(args.method, args.clients)
    records = +seen.records
    print(
        f"{args.method}, {args.clients} clients: {records.total():,} records of {len(records)} types, "
        f"{seen.rooms.total():,} changes of room, {len(seen.holders())} types hold the ε"
    )
    if args.types:
        for name, count in records.most_common():
            print(f"{count:7,} {name.removeprefix('fedgraph.')}")
        for (one, other), count in seen.rooms.most_common():
            print(f"{count:7,} {one} → {other}")
        print("\n".join(seen.holders()))


if __name__ == "__main__":
    main()
