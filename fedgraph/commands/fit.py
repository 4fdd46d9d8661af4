"""``fedgraph fit RUN ROW``: a row of a run, trained once on everybody, as a file that answers.

    fedgraph fit runs/a "label_hop, sums, ε=4" -o model.fedgraph
    fedgraph fit runs/a "label_hop sums e=4" -o model.fedgraph --budget people.budget

The model is charged to the people before anything is released, to the book of ``--budget``, of the run, of FEDGRAPH_BUDGET or
beside the people; a charge that exceeds their budget is refused. Where there is none, a line says what is not counted.
A row whose ε is ∞ is trained only where the option that says so is given.
"""

import argparse
from pathlib import Path

from fedgraph.commands import base

HELP = "train a row of a run once, on everybody, and write it as a model"
_ACCEPT = "--i-know-that-nothing-is-protected"


def configure(parser: argparse.ArgumentParser) -> None:
    base.add_row(parser)
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="MODEL", help="the file to write")
    parser.add_argument("--graph", metavar="GRAPH", help="folder, file or data set of the people (default: the run's)")
    parser.add_argument("--public", metavar="GRAPH", help="people whose rows and edges are public, where the row needs some")
    charged = "charge this book before anything is released (default: the run's, or beside the people)"
    parser.add_argument("--budget", metavar="BOOK", help=charged)
    parser.add_argument("--epsilon", type=float, metavar="ε", help="in the place of the row's")
    parser.add_argument("--delta", type=float, metavar="δ", help="in the place of the row's (with --budget: of the budget's)")
    parser.add_argument("--select", type=Path, metavar="YAML", help="choose settings privately: over, among, by")
    parser.add_argument(_ACCEPT, action="store_true", dest="nothing_protected", help="needed where ε is ∞")


def run(options: argparse.Namespace) -> int:
    from fedgraph.models import fit
    from fedgraph.runs import open_run

    base.require_free_file(options.out)
    row = open_run(options.run).score(options.row)
    budget = fit.find_book(options.run, options.graph, options.budget)
    model = row.fit(
        options.graph,
        public=options.public,
        budget=budget,
        epsilon=options.epsilon,
        delta=options.delta,
        nothing_protected=options.nothing_protected,
        select=options.select,
    )
    model.save(options.out)
    print(f"{options.out}: {model.row}")
    for sentence in model.statement:
        print(f"  {sentence}")
    print(f"  Ask it: {fit.how_to_ask(model, options.out)}")
    if budget is not None:
        print(f"  Charged to {budget}; fedgraph budget show {budget} says what is left.")
    return 0
