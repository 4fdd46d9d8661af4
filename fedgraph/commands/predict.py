"""``fedgraph predict MODEL GRAPH``: the answers of a model, for the nodes of a graph, or for pairs of nodes.

    fedgraph predict model.fedgraph my_folder -o answers.csv --people own
    fedgraph predict model.fedgraph --graph my_folder -o answers.csv --people public
    fedgraph predict links.fedgraph pairs.csv -o answers.parquet

``--people`` says who may see an answer: ``public`` where everybody may know the people's rows and edges; ``own`` where each
answer is shown to its own person alone.
"""

import argparse
from pathlib import Path

HELP = "ask a model about the people of a graph"


def configure(parser: argparse.ArgumentParser) -> None:
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


def run(options: argparse.Namespace) -> int:
    from fedgraph.commands.base import require_free_file, write_file
    from fedgraph.errors import ScenarioError
    from fedgraph.models import load
    from fedgraph.types import counted

    given = [one for one in (options.graph, options.named) if one is not None]
    if len(given) != 1:
        raise ScenarioError(
            f"predict: who is asked about was named {counted(len(given), 'time')}; allowed: GRAPH or --graph GRAPH"
        )
    require_free_file(options.out, options.force)
    model = load(options.model)
    table = model.answer_file(given[0], options.people, options.nothing_protected)
    parquet = options.out.suffix == ".parquet"
    content = table.to_parquet(index=False) if parquet else table.to_csv(index=False).encode()
    write_file(options.out, content, options.force)
    print(f"{options.out}: {len(table):,} answers of {model.row}")
    print(f"  {model.statement[0]}")
    if options.people == "own":
        print("  Each line is for its own person alone: shown to others it may tell of that person, and no ε counts it.")
    return 0
