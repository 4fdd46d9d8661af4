"""``python -m fedgraph.privacy explain DIR/ledger.jsonl [--cell TEXT]``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fedgraph.errors import FedgraphError
from fedgraph.printing import replace_unprintable
from fedgraph.privacy import explain


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when the text was printed; 2, with one line on stderr, where a file cannot be read."""
    replace_unprintable()
    parser = argparse.ArgumentParser(prog="python -m fedgraph.privacy", description="Privacy in words and numbers.")
    commands = parser.add_subparsers(dest="command", required=True)
    in_words = commands.add_parser("explain", help="print a ledger in words, with its running total")
    in_words.add_argument("ledger", type=Path, help="a ledger.jsonl, or the folder that holds it")
    in_words.add_argument("--cell", metavar="TEXT", help="only cells whose name contains this")
    options = parser.parse_args(arguments)
    path = options.ledger / "ledger.jsonl" if options.ledger.is_dir() else options.ledger
    try:
        print(explain.in_words(explain.read(path), options.cell))
    except FedgraphError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
