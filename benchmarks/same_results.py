"""Whether two runs, or folders of runs of one name, have the same numbers, bit for bit.

    python -m benchmarks.same_results OLD NEW

Seconds, and what a column is called, are no numbers; a metric that only one of the runs has is a difference.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

import fedgraph

ASKED = ["dataset", "task", "method", "variant", "world", "epsilon", "calibrated_by", "seed", "record"]
_NOT_COMPARED = {"seconds", "row", "name", "title", "facts", "ledger", "source"}


def read_lines(folder: Path) -> pd.DataFrame:
    """One line for each cell, with whatever was found of it; ``record`` tells worlds apart that have one kind."""
    found = fedgraph.open_run(folder).table()
    kept = [name for name in found if name not in _NOT_COMPARED and not name.startswith("seconds")]
    return found[kept].map(repr).set_index(ASKED).sort_index()


def differences(old: pd.DataFrame, new: pd.DataFrame) -> list[str]:
    """One sentence for each cell that is not in both, and for each number that is another."""
    found = [f"only before: {asked}" for asked in old.index.difference(new.index)]
    found += [f"only after:  {asked}" for asked in new.index.difference(old.index)]
    both = old.index.intersection(new.index)
    for name in sorted(set(old) | set(new)):
        before, after = (lines.reindex(both)[name] if name in lines else pd.Series("nan", both) for lines in (old, new))
        other = before != after
        found += [f"{name}: {before[at]} before, {after[at]} after: {at}" for at in both[other]]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--most", type=int, default=10, help="differences shown per run (default 10)")
    asked = parser.parse_args()
    pairs = [(asked.old, asked.new)]
    if not (asked.old / "scenario.yaml").exists():
        pairs = [(asked.old / run.name, run) for run in sorted(asked.new.iterdir()) if (run / "scenario.yaml").exists()]
    wrong = 0
    for old, new in pairs:
        lines = read_lines(new)
        found = differences(read_lines(old), lines)
        wrong += bool(found)
        print(f"{new.name}: {len(lines)} cells, {'the same numbers' if not found else f'{len(found)} differences'}")
        print("".join(f"  {line}\n" for line in found[: asked.most]), end="")
    if wrong or not pairs:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
