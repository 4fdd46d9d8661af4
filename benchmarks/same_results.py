"""Whether two runs, or two commits on shipped scenarios in quick form, have the same numbers, bit for bit.

    python -m benchmarks.same_results OLD NEW
    python -m benchmarks.same_results OLD NEW --run quickstart links … [--same-noise]

OLD and NEW are runs, or folders of runs of one name. With ``--run`` they are commits, and each runs these scenarios of its own.
``--same-noise`` takes the plan out of the names of secret streams: a setting that is gone changes these names, and so all
noise, though nothing is computed otherwise.

Seconds, and what a column is called, are no numbers; a metric that only one of the runs has is a difference.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd

import fedgraph

ASKED = ["dataset", "task", "method", "variant", "world", "epsilon", "calibrated_by", "seed", "record"]
_NOT_COMPARED = {"seconds", "row", "name", "title", "facts", "ledger", "source"}
_ROOT = Path(__file__).parents[1]
_RUN = """
import sys
from fedgraph import run
from fedgraph.methods.base import Plan
if sys.argv.pop(1) == "same":
    Plan.fingerprint = Plan.shared_fingerprint = property(lambda plan: "")
sys.exit(run.main(sys.argv[1:]))
"""


def run_at(commit: str, scenarios: list[str], place: Path, same_noise: bool) -> Path:
    """The folder with a run of each scenario in quick form, as that commit runs it; what is there already stays."""
    tree, runs = place / f"{commit}-tree", place / (f"{commit}-same-noise" if same_noise else commit)
    if not tree.exists():
        tree.mkdir(parents=True)
        packed = subprocess.run(["git", "archive", commit], cwd=_ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", tree], input=packed, check=True)
    paths = os.pathsep.join([str(tree), str(tree / "zoo")])
    for name in scenarios:
        places = (tree / "scenarios" / f"{name}.yaml", tree / "zoo" / "scenarios" / f"{name}.yaml")
        file = next(place for place in places if place.exists())
        if not (runs / name / "results.csv").exists():
            words = [str(file), "--quick", "--runtime", "serial", "--out", str(runs / name)]
            command = [sys.executable, "-c", _RUN, "same" if same_noise else "own", *words]
            subprocess.run(command, cwd=tree, env=os.environ | {"PYTHONPATH": paths}, check=True, stderr=subprocess.DEVNULL)
    return runs


def read_lines(folder: Path) -> pd.DataFrame:
    """One line for each cell, with whatever was found of it; ``record`` tells worlds apart that have one kind."""
    found = fedgraph.open_run(folder).table()
    kept = [name for name in found if name not in _NOT_COMPARED and not name.startswith("seconds")]
    return found[kept].map(repr).set_index(ASKED).sort_index()


def differences(old: pd.DataFrame, new: pd.DataFrame) -> list[str]:
    """One sentence for each cell that is not in both, and for each number that is another, the largest differences first."""
    found = [f"only before: {name_of(asked)}" for asked in old.index.difference(new.index)]
    found += [f"only after: {name_of(asked)}" for asked in new.index.difference(old.index)]
    both, numbers = old.index.intersection(new.index), []
    for name in sorted(set(old) | set(new)):
        before, after = (lines.reindex(both)[name] if name in lines else pd.Series("nan", both) for lines in (old, new))
        numbers += [(_apart(before[at], after[at]), name, before[at], after[at], at) for at in both[before != after]]
    for by, name, one, two, at in sorted(numbers, key=lambda number: -number[0]):
        apart = f", apart by {by:.1g}" if math.isfinite(by) else ""
        found.append(f"{name}: {one} before, {two} after{apart}: {name_of(at)}")
    return found


def name_of(asked: tuple[str, ...]) -> str:
    """A cell as a person names it: task, method, trust and budget."""
    named = dict(zip(ASKED, (part.strip("'") for part in asked), strict=True))
    return "/".join(named[part] for part in ASKED if part not in ("record", "calibrated_by"))


def _apart(one: str, two: str) -> float:
    """How far two numbers are apart, relative to the larger; ∞ where they are none."""
    try:
        before, after = float(one), float(two)
    except ValueError:
        return math.inf
    return abs(before - after) / max(abs(before), abs(after)) if before == before and after == after else math.inf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--run", nargs="+", metavar="SCENARIO", help="run these at both commits")
    parser.add_argument("--same-noise", action="store_true", help="whatever the settings of a plan are called")
    parser.add_argument("--place", type=Path, default=Path("runs/same_results"), help="where trees and runs of --run go")
    parser.add_argument("--most", type=int, default=10, help="differences shown per run (default 10)")
    asked = parser.parse_args()
    names = asked.run or []
    if names:
        olds, news = (run_at(commit, names, asked.place.absolute(), asked.same_noise) for commit in (asked.old, asked.new))
    else:
        olds, news = Path(asked.old), Path(asked.new)
        names = sorted(run.name for run in news.iterdir() if (run / "environment.json").exists())
    pairs = [(olds / name, news / name) for name in names] or [(olds, news)]
    wrong = 0
    for old, new in pairs:
        before, lines = read_lines(old), read_lines(new)
        found = differences(before, lines)
        wrong += bool(found)
        cells = before.index.intersection(lines.index)
        equal = sum(not differences(before.loc[[cell]], lines.loc[[cell]]) for cell in cells)
        print(
            f"{new.name}: {equal} of {len(lines)} cells have the same numbers"
            + (f"; {len(found)} differences" if found else "")
        )
        print("".join(f"  {line}\n" for line in found[: asked.most]), end="")
    if wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
