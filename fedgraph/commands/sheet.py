"""``fedgraph sheet RUN [ROW]``: the privacy of one row, on one page to sign.

    fedgraph sheet runs/citeseer
    fedgraph sheet runs/citeseer "gap_node, curator, ε=4" --out papers

Two files are written: the sheet, and a record for the public registry. A row whose ε is ∞ has no record. Both may be handed
out: an accuracy stands there only where it was computed on public people, or was bought with noise (``report.outside``).
"""

import argparse
from pathlib import Path

HELP = "write the privacy of one row as one page to sign, and as a record for the public registry"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a finished run")
    parser.add_argument(
        "row",
        nargs="?",
        metavar="ROW",
        help="a row's name, as fedgraph show prints it; default: the answer, where what it is chosen by may leave",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the two files go (default: RUN/outside/sheets)")
    parser.add_argument("--force", action="store_true", help="replace files that are already there")


def run(options: argparse.Namespace) -> int:
    from fedgraph.report import outside, privacy_sheet, saved_run

    found = saved_run.load_saved_run(options.run)
    made = outside.make_outside_sheet(found, options.row)
    for file in privacy_sheet.write_privacy_sheet(made, options.out or options.run / outside.OUTSIDE / "sheets", options.force):
        print(file)
    if made.record is None:
        print("Nothing is guaranteed for this row (ε = ∞): the sheet says so, and no record for the registry was written.")
    return 0
