"""``fedgraph audit``: does anything private leave beside the desk?

    fedgraph audit worlds SCENARIO [--quick]
    fedgraph audit wire answer/wire app --owners owner-0.json owner-1.json

``worlds`` runs one cell of each row of a scenario on its data and on neighbours of them. Whatever leaves must be the same, byte
for byte, and bounded values may be as far apart as is priced (``fedgraph.audit.worlds``); else its exit status is 1.
``wire`` reads what the server of an exported project received, shows that each released vector is one line of the ledger and
that nothing else left, and prices what left; its exit status is 1 where there is a fault, or another price.
Lower bounds on ε for a mechanism of one's own are functions of ``fedgraph.audit``.
"""

import argparse
from pathlib import Path

from fedgraph.commands import base
from fedgraph.errors import ScenarioError
from fedgraph.scenario import shipped

HELP = "two worlds, which nothing that leaves may tell apart; or the messages of a deployment, against its ledger"
_WORLDS = "run a scenario in two worlds, which nothing that leaves may tell apart"
_NEIGHBOURS, _FEW = 6, 2  # of each row; with --quick
_SHOWN = 5  # differences of a row


def configure(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
    worlds = kinds.add_parser("worlds", help=_WORLDS, description="Nothing private leaves beside the desk.")
    base.add_scenario(worlds, f"as fedgraph run --quick, and {_FEW} neighbours of each row")
    worlds.add_argument("--neighbours", type=int, metavar="N", help=f"neighbours of each row (default {_NEIGHBOURS})")
    wire = kinds.add_parser("wire", help="is each message of a deployment a line of its ledger, and what did it cost?")
    wire.add_argument("capture", type=Path, metavar="CAPTURE", help="the folder wire in the folder 'out' of the server")
    wire.add_argument("app", type=Path, metavar="PLAN", help="the project of 'fedgraph export'")
    of_owners = "their site files, or the records beside them: then both sides are compared"
    wire.add_argument("--owners", type=Path, nargs="*", default=[], metavar="FILE", help=of_owners)


def _run_wire(capture: Path, app: Path, owners: list[Path]) -> int:
    from fedgraph.export import wire

    found = wire.audit_wire(capture, app, owners)
    print(f"{capture}: {found.messages:,} messages, {found.values:,} released vectors; {len(found.faults):,} faults")
    for fault in found.faults[:_SHOWN]:
        print(f"  {fault}")
    if len(found.faults) > _SHOWN:
        print(f"  … and {len(found.faults) - _SHOWN:,} more")
    if not found.faults:
        print("  Each released vector is one line of the ledger, and nothing else left.")
    why = f"it differs: {found.difference}" if found.difference else "which is equal"
    print(f"  What left is worth ε = {found.epsilon:.6g}; the project states ε = {found.stated:.6g}, {why}")
    if found.frame:
        print(f"  The framework's own words around the messages: {', '.join(found.frame)}")
    return 1 if found.faults or (found.difference and found.epsilon > found.stated) else 0


def run(options: argparse.Namespace) -> int:
    if options.kind == "wire":
        return _run_wire(options.capture, options.app, options.owners)
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
