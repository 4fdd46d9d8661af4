"""``fedgraph sheet RUN [ROW]``: the privacy of one row, on one page to sign."""

import argparse
from pathlib import Path

HELP = "write the privacy of one row as one page to sign, and as a record for the public registry"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a finished run")
    parser.add_argument("row", nargs="?", metavar="ROW", help="a row's name, as its link in the report; default: the answer")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the two files go (default: the run's folder)")
    parser.add_argument("--force", action="store_true", help="replace files that are already there")


def run(options: argparse.Namespace) -> int:
    from fedgraph.report import sheet

    return sheet.command(options)
