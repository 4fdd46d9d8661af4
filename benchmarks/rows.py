"""One task of a scenario on one data set, as a table of accuracies: a row for each method, a column for each ε.

    python -m benchmarks.rows scenarios/gcon_figures.yaml restart citation_full/cora_ml --seeds 1 [--reading published]
    python -m benchmarks.rows scenarios/field.yaml "node replaced" synthetic/block_model --methods GAP-NDP --epsilons 8

The same numbers as the whole scenario gives (same seeds, streams and settings), in one process. ± is the standard deviation
over seeds; what the process took goes to standard error. Tables of ``docs/data`` that come from such a part name the command in
their first line.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import statistics
import sys
import tempfile
from pathlib import Path

import yaml

import fedgraph


def part(
    path: str, task: str, dataset: str, seeds: int, reading: str | None, methods: list[str], epsilons: list[float]
) -> dict[str, object]:
    """The scenario with this task and data set alone. ``SystemExit`` where it has no such task or data set."""
    whole = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    tasks = {t.get("label", t["task"]): t for t in whole["tasks"]}
    data = {d["name"]: {key: d[key] for key in ("name", "parameters") if key in d} for d in whole["datasets"]}
    if task not in tasks or dataset not in data:
        raise SystemExit(f"{path} has no {task} on {dataset}; its tasks: {', '.join(tasks)}; its data: {', '.join(data)}")
    kept = {key: value for key, value in tasks[task].items() if key not in ("attack", "curve", "datasets", "seeds")}
    if isinstance(kept.get("delta"), dict):
        kept["delta"] = kept["delta"][dataset]
    if reading:
        kept["calibrated_by"] = [reading]
    if epsilons:
        kept["epsilons"] = epsilons
    if methods:
        kept["methods"] = [m for m in kept["methods"] if (m.get("label") or m.get("variant") or m["method"]) in methods]
    return {
        "name": whole["name"], "seed": whole["seed"], "seeds": seeds, "runtime": {"engine": "serial"},
        "datasets": [data[dataset]], "tasks": [kept],
    }  # fmt: skip


def table(results: Path, metric: str = "accuracy") -> list[list[str]]:
    """Heads, then one line for each row of results.csv's methods: mean over seeds at each ε."""
    lines = (results / "results.csv").read_text(encoding="utf-8").splitlines()
    found: dict[str, dict[str, list[float]]] = {}
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        if row.get(metric):
            name = row["variant"] if row["variant"] not in ("", "default") else row["method"]
            found.setdefault(name, {}).setdefault(f"{float(row['epsilon']):g}".replace("inf", "∞"), []).append(
                float(row[metric])
            )
    if not found:
        raise SystemExit(f"no row has a number under {metric!r}; the columns of results.csv are allowed")
    epsilons = list(dict.fromkeys(e for cells in found.values() for e in cells))
    spread = any(len(values) > 1 for cells in found.values() for values in cells.values())

    def cell(values: list[float]) -> str:
        mean = f"{statistics.mean(values):.3f}" if values else ""
        return f"{mean} ± {statistics.stdev(values):.3f}" if spread and len(values) > 1 else mean

    return [["row, ε =", *epsilons], *([name, *(cell(cells.get(e, [])) for e in epsilons)] for name, cells in found.items())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario")
    parser.add_argument("task")
    parser.add_argument("dataset")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--reading", choices=["published", "provable"])
    parser.add_argument("--methods", nargs="+", default=[], help="of these labels only")
    parser.add_argument("--epsilons", nargs="+", type=float, default=[], help="in place of the task's")
    parser.add_argument("--metric", default="accuracy")
    parser.add_argument("--data-root", default=os.environ.get("FEDGRAPH_DATA"))
    args = parser.parse_args()
    made = part(args.scenario, args.task, args.dataset, args.seeds, args.reading, args.methods, args.epsilons)
    with tempfile.TemporaryDirectory() as folder:
        fedgraph.run(made, out=folder, data_root=args.data_root, quiet=True)
        csv.writer(sys.stdout, lineterminator="\n").writerows(table(Path(folder), args.metric))
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(f"{used.ru_utime + used.ru_stime:.0f} CPU s, at most {used.ru_maxrss * 1024 / 1e9:.1f} GB", file=sys.stderr)


if __name__ == "__main__":
    main()
