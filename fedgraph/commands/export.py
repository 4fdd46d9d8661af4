"""A row as a project for Flower or NVIDIA FLARE, and an owner's file for it.

``fedgraph export RUN ROW --to flower|nvflare DIR``: a row as a project that runs there, with the noise that was proven.

    fedgraph export runs/a "features, sums, ε=4" project --to flower
    fedgraph export runs/a "features, sums, e=4" project --to nvflare --clients rehearsal

The project is priced from its own files before the command ends, and the ε is printed beside that of the ledger. ``--clients``
also writes private graphs, for a rehearsal on one machine.

``fedgraph site FOLDER --for APP``: an owner's file for a deployment, of the owner's own tables, at the owner.

    fedgraph site bank_a --for app --client 0 -o bank_a.json

Tables are read as ``fedgraph.read`` reads them, with the columns, bounds and classes that were agreed. The file holds private
data and stays where it is.
"""

import argparse
from pathlib import Path

from fedgraph.commands import base

HELP = "write a row as a project for Flower or NVIDIA FLARE, with exactly the noise that was proven"


def configure(parser: argparse.ArgumentParser) -> None:
    base.add_row(parser)
    parser.add_argument("out", type=Path, metavar="DIR", help="a new folder for the project")
    parser.add_argument("--to", required=True, metavar="FRAMEWORK", help="flower or nvflare")
    parser.add_argument("--clients", type=Path, metavar="DIR", help="also write the private graphs of the run's clients here")
    parser.add_argument("--data-root", type=Path, metavar="DIR", help="where the run's data are, if not where it found them")
    parser.add_argument("--force", action="store_true", help="replace an earlier export")


def run(options: argparse.Namespace) -> int:
    from fedgraph.errors import ScenarioError
    from fedgraph.export import project
    from fedgraph.pricing import exported_layouts

    if options.to not in exported_layouts():
        raise ScenarioError(f"--to {options.to}: unknown; allowed: {', '.join(exported_layouts())}")
    if options.clients is not None and options.clients.exists():
        raise ScenarioError(f"--clients {options.clients}: exists already; allowed: a new folder")
    found = project.open_row(options.run, options.row, options.data_root)
    epsilon = project.write(found, options.to, options.out, options.force)
    plan = found.plan
    print(
        f"{options.out}: {plan.method} for {plan.facts.num_clients} clients, {plan.schedule.rounds} rounds; its files "
        f"are worth ε = {epsilon:.6g} at δ = {plan.guarantee.delta:.6g} (ledger: {found.row.head.epsilon_provable:.6g})"
    )
    owners = "each owner's own book (FEDGRAPH_BUDGET, or a file beside its graph)"
    print(f"Nothing is charged yet: before a client draws its first noise, it charges all of this ε to {found.book or owners}")
    if options.clients is not None:
        project.write_clients(found, options.clients)
        print(f"{options.clients}: private graphs of the run's clients, for a rehearsal on this machine; delete them after it")
    return 0


HELP_SITE = "make an owner's file for an exported project, of the owner's own tables"


def configure_site(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tables", type=Path, metavar="FOLDER", help="the owner's folder or file, as for 'fedgraph new'")
    parser.add_argument("--for", dest="app", type=Path, required=True, metavar="APP", help="the project of 'fedgraph export'")
    parser.add_argument("--client", type=int, required=True, metavar="K", help="which client the owner is, from 0, as agreed")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FILE", help="the file to write")
    parser.add_argument("--force", action="store_true", help="replace a file that is already there")


def run_site(options: argparse.Namespace) -> int:
    from fedgraph.export import deployment

    base.require_free_file(options.out, options.force)
    print(f"{options.out}: {deployment.write_site(options.tables, options.app, options.client, options.out)}")
    return 0
