"""Whether two runs of one scenario have the same numbers.

    python -m benchmarks.same_results OLD NEW

OLD, NEW: folders of runs, or folders of such folders, which are compared name by name. A row is told by what was asked (task,
data set, method, variant, trust, ε, seed, participation, client, metric). ``value`` and every ε must be equal as they are
written, so bit for bit; else the status is 1.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from pathlib import Path

ASKED = (
    "dataset",
    "task",
    "method",
    "variant",
    "trust",
    "epsilon",
    "calibrated_by",
    "delta",
    "seed",
    "participation",
    "client",
    "metric",
)
FOUND = ("value", "epsilon_published", "epsilon_provable", "epsilon_measured", "paths", "clients", "cut_edges")

Line = tuple[tuple[str, ...], tuple[str, ...]]


def read_lines(folder: Path) -> list[Line]:
    """(what was asked, what was found) of every row of a run's ``results.csv``."""
    with (folder / "results.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [(tuple(row[name] for name in ASKED), tuple(row[name] for name in FOUND)) for row in rows]


def differences(old: list[Line], new: list[Line]) -> list[str]:
    """One sentence for each row that is not in both, or has other numbers."""
    before, after = Counter(old), Counter(new)
    found = [f"only before: {asked} {told}" for asked, told in (before - after).elements()]
    return found + [f"only after:  {asked} {told}" for asked, told in (after - before).elements()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--most", type=int, default=10, help="differences shown per run (default 10)")
    asked = parser.parse_args()
    pairs = [(asked.old, asked.new)]
    if not (asked.old / "results.csv").exists():
        pairs = [(asked.old / run.name, run) for run in sorted(asked.new.iterdir()) if (run / "results.csv").exists()]
    wrong = 0
    for old, new in pairs:
        lines = read_lines(new)
        found = differences(read_lines(old), lines)
        wrong += bool(found)
        print(f"{new.name}: {len(lines)} rows, {'the same numbers' if not found else f'{len(found)} differences'}")
        print("".join(f"  {line}\n" for line in found[: asked.most]), end="")
    if wrong or not pairs:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
