"""``fedgraph run SCENARIO``: the same as ``python -m fedgraph.run``, for files and for shipped scenarios by name."""

import argparse
import importlib

HELP = "run a scenario and write its report"


def configure(parser: argparse.ArgumentParser) -> None:
    importlib.import_module("fedgraph.run").configure(parser)  # ``fedgraph.run`` is a function, too, for whoever imports it


def run(options: argparse.Namespace) -> int:
    status: int = importlib.import_module("fedgraph.run").run_scenario(options)
    return status
