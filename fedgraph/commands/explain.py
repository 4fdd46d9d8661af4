"""``fedgraph explain RUN``: a run's ledger in plain words.

    fedgraph explain runs/citeseer
    fedgraph explain runs/citeseer --cell gap_edge      release by release

It says what was released, and what that costs, by the same accountant as the report.
"""

import argparse
from pathlib import Path

from fedgraph.errors import DataError

HELP = "explain what a run released, and what that costs, from its ledger"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's folder, or a ledger.jsonl")
    parser.add_argument("--cell", metavar="NAME", help="only cells whose name contains this, release by release")


def run(options: argparse.Namespace) -> int:
    from fedgraph.privacy import explain
    from fedgraph.types import in_words_of

    path = options.run / "ledger.jsonl" if options.run.is_dir() else options.run
    if not path.is_file():
        raise DataError(f"{path}: no such file; a finished run has a ledger.jsonl")
    print(explain.in_words(explain.read(path), options.cell, in_words_of))
    return 0
