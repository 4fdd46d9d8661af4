"""``fedgraph check SCENARIO``: is it right, how many cells has it, and what will it take?

    fedgraph check citeseer
    fedgraph check my.yaml --set seeds=3 --probe 60

The scenario is validated, what was understood of one's own data is shown, its cells are counted, and of each method the
cheapest cell and one at several clients are run: their seconds, times the numbers of cells, are a range. Nothing is written.
"""

import argparse
from pathlib import Path

from fedgraph.commands import base
from fedgraph.errors import RuntimeFailure, ScenarioError
from fedgraph.scenario import shipped

_MOST_SECONDS = 86_400
_OWN = ("own/read", "own/csv", "own/npz", "own/federation", "own/graphs")
HELP = "validate a scenario, count its cells, and time some of each method"


def configure(parser: argparse.ArgumentParser) -> None:
    base.add_scenario(parser, "as fedgraph run --quick would run it")
    seconds = "processor seconds to try; 0: only count (default 20)"
    parser.add_argument("--probe", type=float, default=20.0, metavar="SECONDS", help=seconds)


def run(options: argparse.Namespace) -> int:
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
