"""Are the numbers in the documents of today? A cheap draw of each recorded one (its first seed) is made again and compared.

    python -m benchmarks.tables --check [--documents README.md docs/links.md …] [--data-root DIR]

``tables.yaml`` is the list, and says what each record holds. One line a record as soon as it is done; last, how many are off by
more than their error. The exit status is 1 where one is, or where a document does not say any more what is recorded. Without
``--check`` nothing runs, and only the latter is looked for.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import yaml

import fedgraph

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Record:
    """A number that a document prints.

    Args:
        document: the file, from the root of the checkout.
        stands: text in it; the number in double braces. What is around it names the row.
        error: by how much one draw may differ: rounding where it is the same draw, two deviations of seeds else.
        commit: on which the number was made.
        scenario: a file, of which one task (its label), one data set and one method (its label, variant or name) are run with
            ``epsilon`` and ``trust`` (empty: the task has none), on the first seed. settings: further keys of the task. where:
            column of results.csv → value.
        command: in the place of a scenario: arguments of Python. finds: an expression whose group is the number in its output.
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
    kept = {key: value for key, value in task.items() if key not in ("attack", "curve") and not key.endswith("_of")}
    trust = {"trust": [record.trust]} if record.trust else {}
    asked = {"epsilons": [record.epsilon], "methods": [{**methods[0], **trust}], **trust}
    return {
        "name": whole["name"], "seed": whole["seed"], "seeds": 1, "runtime": {"engine": "serial"},
        "datasets": [{"name": d["name"], **({"parameters": d["parameters"]} if "parameters" in d else {})} for d in data],
        "tasks": [{**kept, **asked, **record.settings}],
    }  # fmt: skip


def made_again(record: Record, data_root: str | None) -> float:
    """The number of one draw. ``SystemExit`` where the run does not say exactly one."""
    if record.command:
        done = subprocess.run([sys.executable, *record.command], cwd=ROOT, capture_output=True, text=True, check=True)
        found = re.findall(record.finds, done.stdout)
    else:
        with tempfile.TemporaryDirectory() as folder:
            fedgraph.run(cut(record), out=folder, data_root=data_root, quiet=True)
            lines = (Path(folder) / "results.csv").read_text(encoding="utf-8").splitlines()
        rows = csv.DictReader(line for line in lines if not line.startswith("#"))
        where = {"metric": "accuracy", **record.where}
        found = [row["value"] for row in rows if all(row[column] == value for column, value in where.items())]
    if len(found) != 1:
        raise SystemExit(f"{record.document}: {record.text!r}: {len(found)} numbers were found; allowed: one")
    return float(found[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="make each number again")
    parser.add_argument("--documents", nargs="+", help="of these only")
    parser.add_argument("--data-root", default=os.environ.get("FEDGRAPH_DATA"))
    args = parser.parse_args()
    wrong, every = 0, [r for r in records() if not args.documents or r.document in args.documents]
    for record in every:
        name = f"{record.document}, {record.commit}: {record.text}"
        if not record.still_stands:
            print(f"GONE  {name}", flush=True)
            wrong += 1
        elif args.check:
            found = made_again(record, args.data_root)
            off = abs(found - record.printed) > record.error + 1e-9
            print(f"{'OFF ' if off else 'ok  '}  {found:.3f} for {record.printed:g} ± {record.error:g}  {name}", flush=True)
            wrong += off
    print(f"{wrong} of {len(every)} are off or gone")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
