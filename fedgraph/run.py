"""Command line: ``python -m fedgraph.run SCENARIO [options]``.

Exit status: 0 on success; 2 when the scenario, an option or the data are wrong; 1 otherwise. Every error is one line on stderr.
``FEDGRAPH_TRACEBACK=1`` shows where an unforeseen error came from.
"""

import argparse
import os
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedgraph.commands import CommandParser, guard
from fedgraph.errors import ScenarioError
from fedgraph.printing import replace_unprintable
from fedgraph.scenario import shipped


def run_parser() -> argparse.ArgumentParser:
    """The options of ``python -m fedgraph.run``."""
    p = CommandParser(prog="python -m fedgraph.run", description="Run a scenario and write its report.")
    configure(p)
    return p


def configure(p: argparse.ArgumentParser) -> None:
    """Add the options of a run."""
    p.add_argument("scenario", metavar="SCENARIO", help="YAML file, or the name of a shipped one, e.g. citeseer")
    p.add_argument("--out", type=Path, metavar="DIR", help="where results go (default runs/<scenario>-<time>)")
    p.add_argument("--data-root", type=Path, metavar="DIR", help="folder with data in PyG's raw layout; never written to")
    p.add_argument("--runtime", choices=("ray", "serial"), help="engine; both give the same numbers")
    p.add_argument(
        "--set", dest="changes", action="append", default=[], metavar="KEY=VALUE", help="change a scenario key (dotted)"
    )
    p.add_argument("--seeds", type=int, metavar="N", help="number of repetitions")
    p.add_argument("--quick", action="store_true", help="shrink every stage: the whole journey, at most 90 s on two cores")
    p.add_argument("--resume", type=Path, metavar="DIR", help="continue the run in DIR; same scenario and options")
    p.add_argument("--watch", action="store_true", help="start Ray's dashboard and say its address; see also: fedgraph watch")
    p.add_argument("--dry-run", action="store_true", help="print cells, clients, releases and their ε; touch no data")


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status of one invocation; every error is one line on stderr."""
    replace_unprintable()
    args = run_parser().parse_args(arguments)
    return guard(lambda: run_scenario(args))


def run_scenario(args: argparse.Namespace) -> int:
    """Exit status of a run with these options."""
    from fedgraph.scenario import read

    changes = list(args.changes)
    if args.runtime:
        changes.append(f"runtime.engine={args.runtime}")
    if args.resume and args.out:
        raise ScenarioError("--resume DIR continues in DIR: leave --out away")
    if args.resume and args.dry_run:
        raise ScenarioError("--dry-run computes nothing, so it has nothing to --resume: leave one of them away")
    ready = read.from_file(shipped.find(args.scenario), changes, quick=args.quick, seeds=args.seeds)
    for option, path in (("--out", args.out), ("--resume", args.resume), ("--data-root", args.data_root)):
        if path is not None and not str(path).isprintable():
            raise ScenarioError(f"{option} {str(path)!r}: holds characters that cannot be printed; allowed: a folder's name")
    if args.watch:
        os.environ["FEDGRAPH_DASHBOARD"] = "1"  # ``runtime.ray.cluster``
    from fedgraph.cells import store
    from fedgraph.runs import Console, experiment

    console = Console()
    if args.dry_run:
        experiment.dry_run(ready, console)
        return 0
    with store.folder_for(args.resume or args.out, ready.scenario.name) as out:
        try:
            experiment.run(ready, out, args.data_root, resume=args.resume is not None, console=console)
        except (OSError, MemoryError) as error:
            if (out / "cells" / store.STORE_MARK).exists():
                error.add_note("finished cells are kept: --resume goes on")
            raise
        finally:
            console.close()
    return 0


class _Callable(types.ModuleType):
    """``fedgraph.run(scenario)`` runs a scenario (``library.run``), although ``fedgraph.run`` is this module's name, too."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from fedgraph import library

        return library.run(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable

if __name__ == "__main__":
    sys.exit(main())
