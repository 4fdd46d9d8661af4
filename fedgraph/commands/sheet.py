"""``fedgraph sheet WHAT [ROW]``: the privacy of one row, of a model, or of a deployment, on one page to sign.

    fedgraph sheet runs/citeseer
    fedgraph sheet runs/citeseer "gap_node, curator, ε=4" --out papers
    fedgraph sheet people.model
    fedgraph sheet answer

Each sheet names its object by hash: the ledger of a row, the file of a model, the state of a deployment; the ε is that
object's, computed anew from its own ledger. Of a row two files are written: the sheet, and a record for the public registry,
but for a row whose ε is ∞. Both may be handed out: an accuracy stands there only where it was computed on public people, or
was bought with noise (``report.outside``).
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedgraph.report import privacy_sheet

HELP = "write the privacy of a row, a model or a deployment as one page to sign"


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    what = "folder of a finished run, file of a model, or the folder that a deployment wrote"
    add("what", type=Path, metavar="WHAT", help=what)
    add(
        "row",
        nargs="?",
        metavar="ROW",
        help="of a run: a row's name, as fedgraph show prints it; default: the answer, where what it is chosen by may leave",
    )
    add("--out", type=Path, metavar="DIR", help="where the files go (default: RUN/outside/sheets, or beside WHAT)")
    add("--force", action="store_true", help="replace files that are already there")


def run(options: argparse.Namespace) -> int:
    from fedgraph.errors import DataError
    from fedgraph.report import outside, privacy_sheet, saved_run

    deployed = (options.what / "state.json").is_file()
    if options.what.is_file() or deployed:
        if options.row is not None:
            raise DataError(f"{options.what}: a model has no rows; found {options.row!r}; allowed: no ROW")
        made, place = _of_model(options.what, deployed), options.what if deployed else options.what.absolute().parent
        for file in privacy_sheet.write_privacy_sheet(made, options.out or place, options.force):
            print(file)
        return 0
    found = saved_run.load_saved_run(options.what)
    made = outside.make_outside_sheet(found, options.row)
    for file in privacy_sheet.write_privacy_sheet(
        made, options.out or options.what / outside.OUTSIDE / "sheets", options.force
    ):
        print(file)
    if made.record is None:
        print("Nothing is guaranteed for this row (ε = ∞): the sheet says so, and no record for the registry was written.")
    return 0


def _of_model(what: Path, deployed: bool) -> privacy_sheet.PrivacySheet:
    """The sheet of a model's file, or of the state of a deployment."""
    from fedgraph.export import deployment
    from fedgraph.models import load
    from fedgraph.privacy import LedgerAccount, LedgerLine
    from fedgraph.report import privacy_sheet

    model, file = (deployment.open_model(what), what / "state.json") if deployed else (load(what), what)
    account, *lines = map(json.loads, model.ledger)
    software = ", ".join(f"{name} {version}" for name, version in model.versions.items())
    return privacy_sheet.make_model_sheet(
        model.row,
        f"{'a deployment' if deployed else 'a model'}, {file.name if not deployed else f'{what.name}/{file.name}'}",
        hashlib.sha256(file.read_bytes()).hexdigest(),
        LedgerAccount.from_dict(account),
        [LedgerLine.from_dict(line) for line in lines],
        model.statement,
        software,
        model.names.one,
    )
