"""``fedgraph run SCENARIO``: the same as ``python -m fedgraph.run``, for files and for shipped scenarios by name.

    fedgraph run citeseer --quick
    fedgraph run my.yaml --set tasks.0.epsilons=[1,8]

Options and exit status are those of ``python -m fedgraph.run``.
"""

import argparse
import importlib

HELP = "run a scenario and write its report"


def configure(parser: argparse.ArgumentParser) -> None:
    importlib.import_module("fedgraph.run").configure(parser)  # ``fedgraph.run`` is a function, too, for whoever imports it


def run(options: argparse.Namespace) -> int:
    status: int = importlib.import_module("fedgraph.run").run_scenario(options)
    return status
