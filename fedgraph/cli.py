"""The command ``fedgraph``: ``fedgraph COMMAND …``. Each command is one file of ``fedgraph/commands``.

Exit status: 0 on success; 2 with one line on stderr where a file or an option is wrong; 1 otherwise.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from fedgraph import plugins
from fedgraph.errors import DataError, FedgraphError, PricingError, ScenarioError

WRONG_INPUT = (ScenarioError, DataError, PricingError)


def version() -> str:
    """The installed version, or that of a checkout which was never installed."""
    from importlib import metadata

    try:
        return metadata.version("fedgraph-privacy")
    except metadata.PackageNotFoundError:
        return "0 (not installed)"


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(f"fedgraph {version()}")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    p = argparse.ArgumentParser(
        prog="fedgraph",
        description="Private learning on graphs: what accuracy, at which ε as published, at which ε that can be proven, and "
        "what an attacker could measure.",
    )
    p.add_argument("--version", action=_Version, nargs=0, help="print the version and stop")
    commands = p.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in plugins.names("commands"):
        module = plugins.load("commands", name)
        module.configure(commands.add_parser(name, help=module.HELP, description=module.HELP))
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status of one invocation."""
    options = parser().parse_args(arguments)
    try:
        status: int = plugins.load("commands", options.command).run(options)
        sys.stdout.flush()
        return status
    except WRONG_INPUT as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 2
    except FedgraphError as error:
        print(f"fedgraph: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of our output went away, e.g. `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("interrupted; finished cells are kept: repeat with --resume and the run's folder", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
