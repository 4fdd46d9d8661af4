"""``fedgraph cp NAME``: a copy of a shipped scenario, to change.

    fedgraph cp citeseer            writes citeseer.yaml here
    fedgraph cp citeseer my.yaml

The copy is the shipped file byte for byte, so its comments stay.
"""

import argparse
from pathlib import Path

from fedgraph.commands.base import write_file
from fedgraph.errors import ScenarioError
from fedgraph.scenario import shipped

HELP = "copy a shipped scenario, comments and all"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a shipped scenario, see fedgraph ls scenarios")
    parser.add_argument("destination", nargs="?", type=Path, metavar="FILE", help="where to (default NAME.yaml here)")
    parser.add_argument("--force", action="store_true", help="replace FILE where it exists")


def run(options: argparse.Namespace) -> int:
    source = shipped.find(options.name)
    if not source.is_file():
        raise ScenarioError(f"{source}: no such file")
    to = options.destination or Path(f"{source.stem}.yaml")
    if to.is_dir():
        to = to / f"{source.stem}.yaml"
    write_file(to, source.read_bytes(), options.force)
    print(f"{to}: a copy of {source.stem}; run it with: fedgraph run {to}")
    return 0
