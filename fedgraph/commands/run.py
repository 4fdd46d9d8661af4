"""Scenarios: run one, check one, copy a shipped one, and their JSON schema for editors.

``fedgraph run SCENARIO``: the same as ``python -m fedgraph.run``, for files and for shipped scenarios by name.

    fedgraph run citeseer --quick
    fedgraph run my.yaml --set tasks.0.epsilons=[1,8]

Options and exit status are those of ``python -m fedgraph.run``.

``fedgraph check SCENARIO``: is it right, how many cells has it, and what will it take?

    fedgraph check citeseer
    fedgraph check my.yaml --set seeds=3 --probe 60

The scenario is validated, what was understood of one's own data is shown, its cells are counted, and of each method the
cheapest cell and one at several clients are run: their seconds, times the numbers of cells, are a range. Nothing is written.

``fedgraph cp NAME``: a copy of a shipped scenario, to change.

    fedgraph cp citeseer            writes citeseer.yaml here
    fedgraph cp citeseer my.yaml

The copy is the shipped file byte for byte, so its comments stay.

``fedgraph schema``: the JSON schema of scenarios, so that an editor completes and checks them.

    fedgraph schema --out fedgraph.schema.json

The first line ``# yaml-language-server: $schema=fedgraph.schema.json`` of a scenario tells the editor where it is.
"""

import argparse
import importlib
import json
from pathlib import Path

from fedgraph.commands import base
from fedgraph.errors import RuntimeFailure, ScenarioError
from fedgraph.scenario import shipped

HELP = "run a scenario and write its report"


def configure(parser: argparse.ArgumentParser) -> None:
    importlib.import_module("fedgraph.run").configure(parser)  # ``fedgraph.run`` is a function, too, for whoever imports it


def run(options: argparse.Namespace) -> int:
    status: int = importlib.import_module("fedgraph.run").run_scenario(options)
    return status


_MOST_SECONDS = 86_400
_OWN = ("own/read", "own/csv", "own/npz", "own/federation", "own/graphs")
HELP_CHECK = "validate a scenario, count its cells, and time some of each method"


def configure_check(parser: argparse.ArgumentParser) -> None:
    base.add_scenario(parser, "as fedgraph run --quick would run it")
    seconds = "processor seconds to try; 0: only count (default 20)"
    parser.add_argument("--probe", type=float, default=20.0, metavar="SECONDS", help=seconds)


def run_check(options: argparse.Namespace) -> int:
    from fedgraph.runs import probe
    from fedgraph.scenario import read, wanted

    if not 0 <= options.probe <= _MOST_SECONDS:
        raise ScenarioError(f"--probe is {options.probe:g}; allowed: 0 to {_MOST_SECONDS:,} seconds")
    ready = read.from_file(shipped.find(options.scenario), options.changes, quick=options.quick)
    many = {"task": len(ready.tasks), "data set": len(ready.scenario.datasets)}
    counted = ", ".join(f"{count} {what}{'' if count == 1 else 's'}" for what, count in many.items())
    print(f"{options.scenario}: valid; {counted}")
    shown = set[Path]()
    for dataset in ready.scenario.datasets:
        if dataset.enabled and dataset.path is not None and dataset.name in _OWN and dataset.path not in shown:
            from fedgraph.data import read as read_own
            from fedgraph.data import read_federation

            shown.add(dataset.path)  # a collection is there twice: as rows, and whole
            said = {key: value for key, value in dataset.parameters.items() if key != "rows"}
            federation = dataset.name == "own/federation"
            found = read_federation(dataset.path, said) if federation else read_own(dataset.path, columns=said)
            settings = [task.params.model_dump(include={"split", "train_fraction"}) for task in ready.tasks]
            small = {wanted.words_of_size(found.graph, **own) for own in settings if len(own) == 2}  # tasks that divide nodes
            print(found, *sorted(small - {""}), sep="\n")
    tried = probe.probe_scenario(ready, options.data_root, options.probe)
    for line in tried.counts:
        print(f"  {line}")
    print(tried.estimate)
    if tried.failing:
        raise RuntimeFailure(f"{len(tried.failing)} of the tried kinds of cells have no result: {'; '.join(tried.failing)}")
    return 0


HELP_CP = "copy a shipped scenario, comments and all"


def configure_cp(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a shipped scenario, see fedgraph ls scenarios")
    parser.add_argument("destination", nargs="?", type=Path, metavar="FILE", help="where to (default NAME.yaml here)")
    parser.add_argument("--force", action="store_true", help="replace FILE where it exists")


def run_cp(options: argparse.Namespace) -> int:
    source = shipped.find(options.name)
    if not source.is_file():
        raise ScenarioError(f"{source}: no such file")
    to = options.destination or Path(f"{source.stem}.yaml")
    if to.is_dir():
        to = to / f"{source.stem}.yaml"
    base.write_file(to, source.read_bytes(), options.force)
    print(f"{to}: a copy of {source.stem}; run it with: fedgraph run {to}")
    return 0


HELP_SCHEMA = "print the JSON schema of scenarios, for editors"


def configure_schema(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, metavar="FILE", help="write it here instead of printing it")
    parser.add_argument("--force", action="store_true", help="replace FILE where it exists")


def run_schema(options: argparse.Namespace) -> int:
    from fedgraph.scenario import schema

    text = json.dumps(schema.whole(), indent=1, ensure_ascii=False)
    if options.out is None:
        print(text)
        return 0
    base.write_file(options.out, (text + "\n").encode(), options.force)
    print(f"{options.out}: put this line first in a scenario: # yaml-language-server: $schema={options.out}")
    return 0
