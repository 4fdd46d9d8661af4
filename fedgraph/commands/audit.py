"""``fedgraph audit``: does anything private leave beside the desk?

    fedgraph audit worlds SCENARIO [--quick]

``worlds`` runs one cell of each row of a scenario on its data and on neighbours of them. Whatever leaves must be the same, byte
for byte, and bounded values may be as far apart as is priced (``fedgraph.audit.worlds``); else its exit status is 1.
Lower bounds on ε for a mechanism of one's own are functions of ``fedgraph.audit``.
"""

import argparse
from pathlib import Path

from fedgraph.errors import ScenarioError
from fedgraph.scenario import shipped

HELP = "run a scenario in two worlds, which nothing that leaves may tell apart"
_NEIGHBOURS, _FEW = 6, 2  # of each row; with --quick
_SHOWN = 5  # differences of a row


def configure(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="worlds")
    worlds = kinds.add_parser("worlds", help=HELP, description="Nothing private leaves beside the desk.")
    worlds.add_argument("scenario", metavar="SCENARIO", help="YAML file, or the name of a shipped scenario")
    worlds.add_argument("--quick", action="store_true", help=f"as fedgraph run --quick, and {_FEW} neighbours of each row")
    worlds.add_argument("--set", dest="changes", action="append", default=[], metavar="KEY=VALUE", help="change a key (dotted)")
    worlds.add_argument("--data-root", type=Path, metavar="DIR", help="folder with data; never written to")
    worlds.add_argument("--neighbours", type=int, metavar="N", help=f"neighbours of each row (default {_NEIGHBOURS})")


def run(options: argparse.Namespace) -> int:
    most = options.neighbours if options.neighbours is not None else _FEW if options.quick else _NEIGHBOURS
    if most < 1:
        raise ScenarioError(f"--neighbours is {most}; allowed: 1 or more")
    from fedgraph import seeds
    from fedgraph.runs import Console, experiment, two_worlds
    from fedgraph.scenario import read

    ready = read.from_file(shipped.find(options.scenario), options.changes, quick=options.quick)
    root = seeds.public_seed(ready.scenario.seed)
    graphs = [experiment.load_data(d, options.data_root, root) for d in ready.scenario.datasets]
    counted = dict.fromkeys(("same", "apart", "untried", "failed"), 0)
    for found in two_worlds.audit_scenario(ready, graphs, most, Console(quiet=True)):
        counted[found.verdict] += 1
        print(f"{found.verdict:8}{found.row}: {found.words}", flush=True)
        for difference in found.differences[:_SHOWN]:
            print(f"        {difference}", flush=True)
        if len(found.differences) > _SHOWN:
            print(f"        … and {len(found.differences) - _SHOWN} more", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in counted.items()))
    return 1 if counted["apart"] or counted["failed"] else 0
