"""``fedgraph compare RUN RUN…``: several finished runs in one table and one page."""

from __future__ import annotations

import argparse
from pathlib import Path

from fedgraph.commands import show
from fedgraph.files import write_new

HELP = "compare finished runs: one answer, one table, one page"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="folders of finished runs")
    parser.add_argument("--html", type=Path, metavar="PAGE", help="write a self-contained page")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the table")
    parser.add_argument("--force", action="store_true", help="replace PAGE and FILE where they exist")


def run(options: argparse.Namespace) -> int:
    from fedgraph import runs

    found = runs.open_run(*options.runs)
    if options.csv:
        write_new(options.csv, found.table().to_csv(index=False).encode(), options.force)
    if options.html:
        from fedgraph.report import together

        write_new(options.html, together.page_of(found.rows, [f.name for f in found.folders]).encode(), options.force)
    print(show.shown(found))
    for path in filter(None, (options.csv, options.html)):
        print(f"written: {path}")
    return 0
