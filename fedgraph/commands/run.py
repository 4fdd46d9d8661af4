"""``fedgraph run SCENARIO``: the same as ``python -m fedgraph.run``, for files and for shipped scenarios by name."""

from __future__ import annotations

import argparse

HELP = "run a scenario and write its report"


def configure(parser: argparse.ArgumentParser) -> None:
    from fedgraph import run as command

    command.configure(parser)


def run(options: argparse.Namespace) -> int:
    from fedgraph import run as command

    return command.started(options)
