"""Models of rows: ``fit`` makes one, ``model`` makes one of what a deployment wrote, ``predict`` asks one.

``fedgraph fit RUN ROW``: a row of a run, trained once on everybody, as a file that answers.

    fedgraph fit runs/a "label_hop, sums, ε=4" -o model.fedgraph
    fedgraph fit runs/a "label_hop sums e=4" -o model.fedgraph --budget people.budget

The model is charged to the people before anything is released, to the book of ``--budget``, of the run, of FEDGRAPH_BUDGET or
beside the people; a charge that exceeds their budget is refused. Where there is none, a line says what is not counted.
A row whose ε is ∞ is trained only where the option that says so is given.

``fedgraph predict MODEL GRAPH``: the answers of a model, for the nodes of a graph, or for pairs of nodes.

    fedgraph predict model.fedgraph my_folder -o answers.csv --people own
    fedgraph predict model.fedgraph --graph my_folder -o answers.csv --people public
    fedgraph predict links.fedgraph pairs.csv -o answers.parquet

``--people`` says who may see an answer: ``public`` where everybody may know the people's rows and edges; ``own`` where each
answer is shown to its own person alone.

``fedgraph model ANSWER -o people.model``: what a deployment wrote, as a model that ``fedgraph predict`` asks.

    fedgraph model answer -o people.model

ANSWER is the folder that the server of an exported project wrote. The model's ε is that of what was released until then.
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


HELP_PREDICT = "ask a model about the people of a graph"


def configure_predict(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", type=Path, metavar="MODEL", help="a file of fedgraph fit")
    of_pairs = "of links a CSV table of pairs: source,target"
    told = f"folder, file or data set of those who are asked about; {of_pairs}"
    add("graph", metavar="GRAPH", nargs="?", help=told)
    add("--graph", metavar="GRAPH", dest="named", help="the same, as fedgraph fit takes it")
    add("-o", "--out", type=Path, required=True, metavar="FILE", help="answers.csv, or .parquet")
    who = "public: everybody may know their rows and edges; own: each answer is shown to its own person alone"
    add("--people", choices=("public", "own"), help=who)
    add("--force", action="store_true", help="replace a file that is already there")
    add("--i-know-that-nothing-is-protected", action="store_true", dest="nothing_protected", help="needed where ε is ∞")


def run_predict(options: argparse.Namespace) -> int:
    from fedgraph.errors import ScenarioError
    from fedgraph.models import load
    from fedgraph.types import counted

    given = [one for one in (options.graph, options.named) if one is not None]
    if len(given) != 1:
        raise ScenarioError(
            f"predict: who is asked about was named {counted(len(given), 'time')}; allowed: GRAPH or --graph GRAPH"
        )
    base.require_free_file(options.out, options.force)
    model = load(options.model)
    table = model.answer_file(given[0], options.people, options.nothing_protected)
    parquet = options.out.suffix == ".parquet"
    content = table.to_parquet(index=False) if parquet else table.to_csv(index=False).encode()
    base.write_file(options.out, content, options.force)
    print(f"{options.out}: {len(table):,} answers of {model.row}")
    print(f"  {model.statement[0]}")
    if options.people == "own":
        print("  Each line is for its own person alone: shown to others it may tell of that person, and no ε counts it.")
    return 0


HELP_MODEL = "make a model of what a deployment wrote"


def configure_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("answer", type=Path, metavar="ANSWER", help="the folder 'out' of the exported project's server")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="MODEL", help="the file to write")


def run_model(options: argparse.Namespace) -> int:
    from fedgraph.export import deployment

    base.require_free_file(options.out)
    model = deployment.open_model(options.answer)
    model.save(options.out)
    print(f"{options.out}: {model.row}")
    for sentence in model.statement:
        print(f"  {sentence}")
    return 0
