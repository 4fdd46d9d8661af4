"""``fedgraph new``: a commented scenario for your own graph, from a few questions or from options.

    fedgraph new --graph my_folder
    fedgraph new --federation clients --yes --out mine.yaml

At a terminal it asks what the options leave open. With ``--yes``, or where nobody can be asked, it takes the most private
answer to every question. Unless ``--no-probe`` is given it tries what fits into two minutes, and shrinks the draft to that.
"""

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from fedgraph import privacy
from fedgraph.commands.base import require_free_file, write_file
from fedgraph.errors import ScenarioError
from fedgraph.privacy import Trust
from fedgraph.scenario import first_look
from fedgraph.scenario import wanted as wishes

HELP = "write a commented scenario for your own graph or federation"
_LABEL = "What is to be predicted? one of: {}"
_LINKS_UNIT = "What is private? node: all ties of a person; edge: one tie; entity: all records of one owner (with --owner)"
_UNIT = "What is private? node: everything about a person; edge: only who is tied to whom"
_ASKED = (
    "Are the people whose answers you want private, too? private: each gives its own data and only it sees its answer; "
    "public: they and their ties are known"
)
_WHOM = "Whom can people trust with their data? some of: curator (one party holds all), sums (a server sees sums), own-client"
_BUDGETS = "Budgets ε (1 is strong, 8 is weak protection)"
_BOUNDS = "{}: least and largest value that anybody could have, known without the data (empty: not known)"


def configure(parser: argparse.ArgumentParser) -> None:
    data = parser.add_mutually_exclusive_group()
    data.add_argument(
        "--graph", metavar="PATH", help="your .npz file, CSV folder or folder of graphs, or a name (fedgraph ls data)"
    )
    data.add_argument("--federation", type=Path, metavar="DIR", help="your federation: a folder with one folder per client")
    parser.add_argument(
        "--task", choices=wishes.WANTED_TASKS, default="nodes", help="classify nodes, or say who will be linked"
    )
    parser.add_argument("--owner", metavar="COLUMN", help="links: column of edges.csv that says who owns each record")
    parser.add_argument("--label", metavar="COLUMN", help="what is to be predicted, where a table has several columns")
    parser.add_argument(
        "--unit", choices=wishes.WANTED_UNITS, help="what is one person's data: a node, an edge, or an owner's edges"
    )
    parser.add_argument(
        "--asked", choices=wishes.WANTED_ASKED, help="whether the people whose answers you want are private, too"
    )
    parser.add_argument("--trust", nargs="+", choices=[t.value for t in Trust], help="who may be trusted; several are compared")
    parser.add_argument("--epsilons", nargs="+", type=float, metavar="ε", help="privacy budgets, e.g. 1 4 8 inf")
    parser.add_argument(
        "--bounds", nargs="+", default=[], metavar="COLUMN=LEAST:LARGEST", help="of columns of numbers, known without the data"
    )
    parser.add_argument("--clients", type=int, metavar="N", help="clients that share one graph (default 10)")
    parser.add_argument("--yes", action="store_true", help="ask nothing: the most private answer to every question")
    parser.add_argument("--no-probe", action="store_true", help="do not try what fits into two minutes")
    parser.add_argument("--name", help="name of the scenario (default: of the data)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to write it (default NAME.yaml)")
    parser.add_argument("--force", action="store_true", help="replace FILE where it exists")


@dataclass(frozen=True)
class _Questions:
    """asks: whether a person sits at a terminal and did not say ``--yes``."""

    asks: bool

    def ask(self, option: str, question: str, default: str = "") -> str:
        """The answer of a person, or the default; ``ScenarioError`` where nobody is asked and there is no default."""
        if not self.asks:
            if default:
                return default
            raise ScenarioError(f"{option} is missing; nobody can be asked here, so it must be given")
        answer = input(f"{question}{f' [{default}]' if default else ''}: ").strip() or default
        if not answer:
            raise ScenarioError(f"{option}: no answer was given")
        return answer

    def column_bounds(self, columns: list[str], given: list[str]) -> dict[str, list[float]]:
        """Column → [least, largest], of those that were given or answered."""
        found = dict(_bounds(*text.rpartition("=")[::2]) for text in given)
        for column in columns if self.asks else []:
            if column not in found and (answer := input(f"{_BOUNDS.format(column)}: ").strip()):
                found |= dict([_bounds(column, answer)])
        return found


def run(options: argparse.Namespace) -> int:
    from fedgraph.data import is_graph_folder
    from fedgraph.scenario import draft

    began = time.process_time()
    questions = _Questions(sys.stdin.isatty() and not options.yes)
    graph = options.graph
    if not graph and not options.federation:
        graph = questions.ask("--graph", "Your graph (a .npz file, a CSV folder, or a name)")
    if options.label and options.federation:
        raise ScenarioError(
            f"--label is {options.label!r}; allowed with --graph alone, since labels.csv of a federation's client has one "
            "column of labels: leave --label away"
        )
    seen = first_look.at_federation(options.federation) if options.federation else first_look.at_data(Path(graph or ""))
    label, links = options.label, options.task == "links"
    if options.owner and not (links and graph and Path(graph).is_dir()):
        raise ScenarioError(
            f"--owner is {options.owner!r}; allowed with --task links and --graph FOLDER, whose edges.csv has that column"
        )
    if not label and len(seen.labels) > 1 and not links:
        label = questions.ask("--label", _LABEL.format(", ".join(seen.labels)), seen.labels[0])
    many = is_graph_folder(Path(graph or ""))  # then a whole graph is private
    most = "entity" if options.owner else "node"
    unit = options.unit or ("node" if many else questions.ask("--unit", _LINKS_UNIT if links else _UNIT, most))
    told = unit == "edge" or options.federation or links
    asked = options.asked or ("private" if told else questions.ask("--asked", _ASKED, "private"))
    trust = options.trust or questions.ask("--trust", _WHOM, "curator sums own-client").split()
    budgets = options.epsilons or questions.ask("--epsilons", _BUDGETS, "1 8 inf" if options.federation else "1 4 8").split()
    bounds = questions.column_bounds(seen.numbers, options.bounds)
    parameters = seen.parameters | ({"label": label} if label else {}) | ({"bounds": bounds} if bounds else {})
    if links:
        parameters = {key: value for key, value in parameters.items() if key != "label" or options.label}
        folder = Path(graph or "")
        parameters |= {"labels": False} if options.federation else {}
        parameters |= {"labels": ""} if graph and folder.is_dir() and not many and not (folder / "labels.csv").exists() else {}
    parameters |= {"owner": options.owner} if options.owner else {}
    data = wishes.find_data(graph, options.federation, parameters, options.task)
    trusted = tuple(map(privacy.trust.called, trust))
    given = (wishes.budgets(budgets), options.clients, options.name, asked, parameters)
    wanted = wishes.Wanted(data, unit, trusted, *given, task=options.task)
    out = options.out or Path(f"{wanted.title}.yaml")
    require_free_file(out, options.force)
    if not options.no_probe:
        from fedgraph.runs import probe

        wanted = probe.probe_draft_size(wanted, bool(options.trust) or questions.asks, began)
    write_file(out, draft.as_yaml(wanted, out.parent).encode(), options.force)
    print(wanted.data.found)
    if wanted.fits:
        print(wanted.fits)
    print(f"{out}: check it with: fedgraph check {out}; run it with: fedgraph run {out}")
    return 0


def _bounds(column: str, text: str) -> tuple[str, list[float]]:
    try:
        least, largest = map(float, text.replace(":", " ").replace(",", " ").split())
    except ValueError:
        least = largest = 0.0
    if not column or not least < largest:
        raise ScenarioError(f"--bounds {column}={text}: allowed: COLUMN=LEAST:LARGEST, two numbers, such as age=0:120")
    return column, [least, largest]
