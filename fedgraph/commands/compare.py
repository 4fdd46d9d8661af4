"""``fedgraph compare RUN RUN…``: several finished runs in one answer and one table.

fedgraph compare runs/a runs/b --csv both.csv
"""

import argparse
from pathlib import Path

from fedgraph.commands import show
from fedgraph.commands.base import write_file

HELP = "compare finished runs: one answer, one table"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="folders of finished runs")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="also write every row")
    parser.add_argument("--force", action="store_true", help="replace FILE where it exists")


def run(options: argparse.Namespace) -> int:
    from fedgraph.report import table as tables
    from fedgraph.runs import run as runs

    found = runs.open_run(*options.runs)
    if options.csv:
        write_file(options.csv, tables.to_text(found.table(per="row")).encode(), options.force)
    print(show.text_of(found))
    if options.csv:
        print(f"written: {options.csv}")
    return 0
