"""``fedgraph model ANSWER -o people.model``: what a deployment wrote, as a model that ``fedgraph predict`` asks.

    fedgraph model answer -o people.model

ANSWER is the folder that the server of an exported project wrote. The model's ε is that of what was released until then.
"""

import argparse
from pathlib import Path

HELP = "make a model of what a deployment wrote"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("answer", type=Path, metavar="ANSWER", help="the folder 'out' of the exported project's server")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="MODEL", help="the file to write")


def run(options: argparse.Namespace) -> int:
    from fedgraph.commands.base import require_free_file
    from fedgraph.export import deployment

    require_free_file(options.out)
    model = deployment.open_model(options.answer)
    model.save(options.out)
    print(f"{options.out}: {model.row}")
    for sentence in model.statement:
        print(f"  {sentence}")
    return 0
