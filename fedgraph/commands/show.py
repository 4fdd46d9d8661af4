"""``fedgraph show RUN``: the answer of a finished run, and its rows.

    fedgraph show runs/citeseer
    fedgraph show runs/citeseer --csv        every column of every row
    fedgraph show runs/citeseer --all        every sentence, note and table of the page

Without an option it prints what the run printed at its end: what was found, one table, and where the page is.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from fedgraph.errors import DataError

if TYPE_CHECKING:
    from fedgraph.runs import Run

HELP = "show the answer of a finished run, and its rows"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's folder")
    parser.add_argument("--csv", action="store_true", help="print every row as CSV instead")
    parser.add_argument("--all", action="store_true", help="print every sentence, note and table of the page instead")


def run(options: argparse.Namespace) -> int:
    from fedgraph.runs import run as runs

    if options.all:
        whole = options.run / "tables.txt"
        if not whole.is_file():
            raise DataError(f"{options.run}: no tables.txt: no finished run; allowed: --csv")
        print(whole.read_text(encoding="utf-8").rstrip())
        return 0
    found = runs.open_run(options.run)
    print(found.table().to_csv(index=False).strip() if options.csv else text_of(found))
    if not options.csv and (options.run / "results.json").is_file():  # written with the page
        print(f"\nreport: {options.run / 'report.html'}")
    return 0


def text_of(found: Run) -> str:
    """The answer as a run prints it at its end."""
    more = "Every column of every row, with the name that “fedgraph sheet” takes: fedgraph show RUN --csv; every table: --all"
    return "\n".join([*([found.notice] if found.notice else []), found.answer, "", more])
