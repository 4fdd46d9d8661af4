"""Are the numbers in the documents of today? A cheap draw of each recorded one (its first seed) is made again and compared.

    python -m benchmarks.tables --check [--documents README.md docs/links.md …] [--scenarios progap …] [--data-root DIR]

``tables.yaml`` is the list, and ``Record`` says what each entry holds. One line a record as soon as it is done; last, how many
are off by more than their error. A table that no record stands in is named, and each that is too dear to make again. The exit
status is 1 where a number is off, where a document does not say any more what is recorded, or where a table has no record.
Without ``--check`` nothing runs, and only the latter two are looked for.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import yaml

import fedgraph
from fedgraph.report import table

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = (  # their tables come from runs
    *("README.md", "docs/index.md", "docs/node_level.md", "docs/edge_level.md", "docs/graph_level.md", "docs/federations.md"),
    *("docs/links.md", "docs/own_model.md"),
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "methods").glob("*.md")),
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "zoo" / "docs").glob("*.md")),
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "data").rglob("*.csv")),
)


@dataclass(frozen=True)
class Record:
    """A number that a document prints.

    Args:
        document: the file, from the root of the checkout.
        stands: text in it; the number in double braces. What is around it names the row.
        error: by how much one draw may differ: rounding where it is the same draw, two deviations of seeds else.
        commit: on which the number was made.
        scenario: a file, of which one task (its label), one data set and one method (its label, variant or name) are run with
            ``epsilon`` and ``trust`` (empty: the task has none), on the first ``seeds`` seeds, of which the mean counts.
            settings: further keys of the task. where: column of the run's table, long → value.
        command: in the place of a scenario: arguments of Python. finds: an expression whose group is the number in its output.
        scale: by which it is multiplied (100: the document has per cent).
        dear: in the place of both: why it is not made again.
    """

    document: str
    stands: str
    error: float
    commit: str
    scenario: str = ""
    task: str = ""
    dataset: str = ""
    method: str = ""
    epsilon: float | str = 1
    trust: str = "curator"
    settings: dict[str, object] = field(default_factory=dict)
    where: dict[str, str] = field(default_factory=dict)
    command: list[str] = field(default_factory=list)
    finds: str = ""
    scale: float = 1
    seeds: int = 1
    dear: str = ""

    @property
    def printed(self) -> float:
        return float(re.findall(r"\{\{(.*?)\}\}", self.stands)[0])

    @property
    def text(self) -> str:
        return self.stands.replace("{{", "").replace("}}", "")

    @property
    def still_stands(self) -> bool:
        return self.text in (ROOT / self.document).read_text(encoding="utf-8")


def records() -> list[Record]:
    return [Record(**one) for one in yaml.safe_load((ROOT / "benchmarks" / "tables.yaml").read_text(encoding="utf-8"))]


def cut(record: Record) -> dict[str, object]:
    """The part of the scenario that makes the number."""
    whole = yaml.safe_load((ROOT / record.scenario).read_text(encoding="utf-8"))
    task = next(t for t in whole["tasks"] if t.get("label", t["task"]) == record.task)
    data = [d for d in whole["datasets"] if d["name"] == record.dataset]
    methods = [m for m in task["methods"] if record.method in (m.get("label"), m.get("variant"), m["method"])][:1]
    left_out = {"attack", "curve", "datasets", "seeds", *(key for key in task if key.endswith("_of"))}
    kept = {key: value for key, value in task.items() if key not in left_out}
    if isinstance(kept.get("delta"), dict):
        kept["delta"] = kept["delta"][record.dataset]
    budget, trust = {"epsilons": [record.epsilon]}, {"trust": [record.trust]} if record.trust else {}
    method = {**methods[0], **trust, **(budget if "epsilons" in methods[0] else {})}
    asked = {**budget, "methods": [method], **trust}
    return {
        "name": whole["name"], "seed": whole["seed"], "seeds": record.seeds, "runtime": {"engine": "serial"},
        "datasets": [{"name": d["name"], **({"parameters": d["parameters"]} if "parameters" in d else {})} for d in data],
        "tasks": [{**kept, **asked, **record.settings}],
    }  # fmt: skip


@functools.cache
def results(scenario: str, data_root: str | None, clients: bool) -> list[dict[str, str]]:
    """One for each cell and metric of a run, as text; clients: of each client. scenario: as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        run = fedgraph.run(json.loads(scenario), out=folder, data_root=data_root, quiet=True)
    cells = run.table().drop(columns=["metric", "value"])
    named = [name for name in cells if name in table.COLUMNS]
    found = run.table(per="client") if clients else cells.melt(named, var_name="metric").dropna(subset="value")
    return [{str(k): str(v) for k, v in line.items()} for line in found.to_dict("records")]


def made_again(record: Record, data_root: str | None) -> float:
    """The number of today. ``SystemExit`` where the run does not say exactly one for each seed."""
    if record.command:
        done = subprocess.run([sys.executable, *record.command], cwd=ROOT, capture_output=True, text=True, check=True)
        found = re.findall(record.finds, done.stdout)
    else:
        where = {"metric": "accuracy", **record.where}
        rows = results(json.dumps(cut(record)), data_root, "client" in where)
        found = [row["value"] for row in rows if all(row[column] == value for column, value in where.items())]
    if len(found) != record.seeds:
        raise SystemExit(f"{record.document}: {record.text!r}: {len(found)} numbers were found; allowed: {record.seeds}")
    return record.scale * sum(map(float, found)) / len(found)


def tables(document: str) -> list[str]:
    """The tables of a document that print decimal numbers, each as its lines; a CSV file is one, below what makes it again."""
    text = (ROOT / document).read_text(encoding="utf-8")
    if document.endswith(".csv"):
        return [text.partition("\n")[2]]
    return [one for one in re.findall(r"(?m)(?:^ *\|.*\n)+", text) if re.search(r"\d\.\d|(?<![\w.])\.\d\d", one)]


def unrecorded(every: list[Record]) -> list[str]:
    """Document and first line of each table that no record stands in."""
    texts = {document: [r.text for r in every if r.document == document] for document in DOCUMENTS}
    return [
        f"{document}: {table.splitlines()[0]}"
        for document in DOCUMENTS
        for table in tables(document)
        if not any(text in table for text in texts[document])
    ]


def judged(record: Record, check: bool, data_root: str | None) -> bool:
    """Whether the record is as it should be; one line says so."""
    name = f"{record.document}, {record.commit}: {record.text}"
    if not record.still_stands:
        print(f"GONE  {name}", flush=True)
        return False
    if record.dear or not check:
        print(f"dear  {name}: {record.dear}" if record.dear else f"      {name}", flush=True)
        return True
    begun = time.monotonic()
    found = made_again(record, data_root)
    off = abs(found - record.printed) > record.error + 1e-9
    took = f"{time.monotonic() - begun:.0f} s"
    print(f"{'OFF ' if off else 'ok  '}  {found:.4f} for {record.printed:g} ± {record.error:g}, {took}  {name}", flush=True)
    return not off


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="make each number again")
    parser.add_argument("--documents", nargs="+", help="of these only")
    parser.add_argument("--scenarios", nargs="+", help="made by these scenarios only, without folder and .yaml")
    parser.add_argument("--data-root", default=os.environ.get("FEDGRAPH_DATA"))
    args = parser.parse_args()
    every = records()
    asked = [r for r in every if not args.documents or r.document in args.documents]
    asked = [r for r in asked if not args.scenarios or Path(r.scenario).stem in args.scenarios]
    wrong = sum(not judged(record, args.check, args.data_root) for record in asked)
    without = unrecorded(every)
    print("\n".join([*(f"NO RECORD  {name}" for name in without), f"{wrong} of {len(asked)} are off or gone"]))
    return int(wrong > 0 or bool(without))


if __name__ == "__main__":
    sys.exit(main())
