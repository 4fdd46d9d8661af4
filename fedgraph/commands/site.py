"""``fedgraph site FOLDER --for APP``: an owner's file for a deployment, of the owner's own tables, at the owner.

    fedgraph site bank_a --for app --client 0 -o bank_a.json

Tables are read as ``fedgraph.read`` reads them, with the columns, bounds and classes that were agreed. The file holds private
data and stays where it is.
"""

import argparse
from pathlib import Path

HELP = "make an owner's file for an exported project, of the owner's own tables"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tables", type=Path, metavar="FOLDER", help="the owner's folder or file, as for 'fedgraph new'")
    parser.add_argument("--for", dest="app", type=Path, required=True, metavar="APP", help="the project of 'fedgraph export'")
    parser.add_argument("--client", type=int, required=True, metavar="K", help="which client the owner is, from 0, as agreed")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FILE", help="the file to write")
    parser.add_argument("--force", action="store_true", help="replace a file that is already there")


def run(options: argparse.Namespace) -> int:
    from fedgraph.commands.base import require_free_file
    from fedgraph.export import owner

    require_free_file(options.out, options.force)
    print(f"{options.out}: {owner.write_site(options.tables, options.app, options.client, options.out)}")
    return 0
