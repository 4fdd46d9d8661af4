"""``fedgraph show RUN``: the answer of a finished run, and its rows.

    fedgraph show runs/citeseer
    fedgraph show runs/citeseer --csv        every column of every row

Without an option it prints what the run printed at its end: what was found, one table, and where the page is.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedgraph.runs import Run

HELP = "show the answer of a finished run, and its rows"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's folder")
    parser.add_argument("--csv", action="store_true", help="print every row as CSV instead")


def run(options: argparse.Namespace) -> int:
    from fedgraph.report import table
    from fedgraph.runs import run as runs

    found = runs.open_run(options.run)
    print(table.to_text(found.table("row")).strip() if options.csv else text_of(found))
    if not options.csv and (options.run / "results.parquet").is_file():  # written with the page
        print(f"\nreport: {options.run / 'report.html'}")
    return 0


def text_of(found: Run) -> str:
    """The answer as a run prints it at its end."""
    more = "Every column of every row, with the name that “fedgraph fit”, “sheet” and “export” take: fedgraph show RUN --csv"
    return "\n".join([*([found.notice] if found.notice else []), found.answer, "", more])
