"""``fedgraph new``: a commented scenario for your own graph, from a few questions or from options."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fedgraph.commands.base.files import write_new
from fedgraph.errors import ScenarioError
from fedgraph.privacy.trust import Trust, trust_called
from fedgraph.scenario import draft

HELP = "write a commented scenario for your own graph or federation"


def configure(parser: argparse.ArgumentParser) -> None:
    data = parser.add_mutually_exclusive_group()
    data.add_argument(
        "--graph", metavar="PATH", help="your .npz file or CSV folder, or the name of a data set (fedgraph ls data)"
    )
    data.add_argument("--federation", type=Path, metavar="DIR", help="your federation: a folder with one folder per client")
    parser.add_argument("--unit", choices=draft.UNITS, help="what is one person's data: a node, or an edge")
    parser.add_argument("--trust", nargs="+", choices=[t.value for t in Trust], help="who may be trusted; several are compared")
    parser.add_argument("--epsilons", nargs="+", type=float, metavar="ε", help="privacy budgets, e.g. 1 4 8 inf")
    parser.add_argument("--clients", type=int, metavar="N", help="clients that share one graph (default 10)")
    parser.add_argument("--name", help="name of the scenario (default: of the data)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to write it (default NAME.yaml)")
    parser.add_argument("--force", action="store_true", help="replace FILE where it exists")


def run(options: argparse.Namespace) -> int:
    asks, offered = sys.stdin.isatty(), " ".join(t.value for t in draft.TRUST)
    graph = options.graph or (
        None if options.federation else _asked(asks, "--graph", "Your graph (a .npz file, a CSV folder, or a name)")
    )
    unit = options.unit or _asked(asks, "--unit", f"What is protected? {' or '.join(draft.UNITS)}", "node")
    trust = (
        options.trust or _asked(asks, "--trust", f"Who may be trusted? some of: {offered}", "curator sums own-client").split()
    )
    given = options.epsilons or _asked(asks, "--epsilons", "Budgets ε", "1 8 inf").split()
    wanted = draft.Wanted(
        data=draft.data_of(graph, options.federation),
        unit=unit,
        trust=tuple(map(trust_called, trust)),
        epsilons=draft.budgets(given),
        clients=options.clients,
        name=options.name,
    )
    out = options.out or Path(f"{wanted.title}.yaml")
    write_new(out, draft.text(wanted, out.parent).encode(), options.force)
    print(wanted.data.found)
    print(f"{out}: check it with: fedgraph check {out}; run it with: fedgraph run {out}")
    return 0


def _asked(asks: bool, option: str, question: str, default: str = "") -> str:
    """The answer of a person, or the default; ``ScenarioError`` where nobody can be asked and there is no default."""
    if not asks:
        if default:
            return default
        raise ScenarioError(f"{option} is missing; nobody can be asked here, so it must be given")
    shown = f" [{default}]" if default else ""
    answer = input(f"{question}{shown}: ").strip() or default
    if not answer:
        raise ScenarioError(f"{option}: no answer was given")
    return answer
