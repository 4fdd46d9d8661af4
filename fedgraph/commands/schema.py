"""``fedgraph schema``: the JSON schema of scenarios, so that an editor completes and checks them.

    fedgraph schema --out fedgraph.schema.json

The first line ``# yaml-language-server: $schema=fedgraph.schema.json`` of a scenario tells the editor where it is.
"""

import argparse
import json
from pathlib import Path

from fedgraph.commands.base import write_file

HELP = "print the JSON schema of scenarios, for editors"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, metavar="FILE", help="write it here instead of printing it")
    parser.add_argument("--force", action="store_true", help="replace FILE where it exists")


def run(options: argparse.Namespace) -> int:
    from fedgraph.scenario import schema

    text = json.dumps(schema.whole(), indent=1, ensure_ascii=False)
    if options.out is None:
        print(text)
        return 0
    write_file(options.out, (text + "\n").encode(), options.force)
    print(f"{options.out}: put this line first in a scenario: # yaml-language-server: $schema={options.out}")
    return 0
