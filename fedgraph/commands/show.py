"""``fedgraph show RUN``: the answer of a finished run, and its rows."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "show the answer of a finished run, and its rows"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's folder")
    parser.add_argument("--csv", action="store_true", help="print every row as CSV instead")


def run(options: argparse.Namespace) -> int:
    from fedgraph import runs

    found = runs.open_run(options.run)
    print(found.table().to_csv(index=False).strip() if options.csv else shown(found))
    if not options.csv and (options.run / "report.html").is_file():
        print(f"\nreport: {options.run / 'report.html'}")
    return 0


def shown(found: object) -> str:
    """The answer, then one line per row, best first within data set, unit and trust."""
    from fedgraph.runs import Run

    assert isinstance(found, Run)
    table = found.table().sort_values(
        ["dataset", "unit", "trust", "provable", "mean"], ascending=[True, True, True, True, False]
    )
    columns = ["dataset", "unit", "trust", "name", "mean", "provable", "measured", "anchor"]
    if len(found.folders) > 1:
        columns.insert(0, "run")
    text = table[columns].to_string(index=False, float_format=lambda v: f"{v:.4g}", na_rep="—")
    notice = f"{found.notice}\n\n" if found.notice else ""
    return f"{notice}{found.answer}\n\n{text}"
