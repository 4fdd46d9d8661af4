"""Command line: ``python -m fedgraph.run SCENARIO [options]``.

Exit status: 0 on success; 2 when the scenario, an option or the data are wrong; 1 otherwise. Every error is one line on stderr.
``FEDGRAPH_TRACEBACK=1`` shows where an unforeseen error came from.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from fedgraph import scenario
from fedgraph.errors import DataError, FedgraphError, ScenarioError

TRACEBACK = "FEDGRAPH_TRACEBACK"


class _Parser(argparse.ArgumentParser):
    """An option that is wrong is one line, not a page of usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {' '.join(message.split())}; see --help\n")


def parser() -> argparse.ArgumentParser:
    """The options of ``fedgraph.run``."""
    p = _Parser(prog="python -m fedgraph.run", description="Run a scenario and write its report.")
    p.add_argument("scenario", type=Path, metavar="SCENARIO", help="YAML file, e.g. scenarios/citeseer.yaml")
    p.add_argument("--out", type=Path, metavar="DIR", help="where results go (default runs/<scenario>-<time>)")
    p.add_argument("--data-root", type=Path, metavar="DIR", help="folder with data in PyG's raw layout; never written to")
    p.add_argument("--runtime", choices=("ray", "serial"), help="engine; both give the same numbers")
    p.add_argument(
        "--set", dest="changes", action="append", default=[], metavar="KEY=VALUE", help="change a scenario key (dotted)"
    )
    p.add_argument("--seeds", type=int, metavar="N", help="number of repetitions")
    p.add_argument("--quick", action="store_true", help="shrink every stage: the whole journey in well under a minute")
    p.add_argument("--resume", type=Path, metavar="DIR", help="continue the run in DIR; same scenario and options")
    p.add_argument("--dry-run", action="store_true", help="print cells, clients, releases and their ε; touch no data")
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status of one invocation."""
    args = parser().parse_args(arguments)
    try:
        return _run(args)
    except KeyboardInterrupt:
        return _say("interrupted; finished cells are kept: repeat the command with --resume and the run's folder", 1)
    except ScenarioError as error:
        return _say(str(error), 2)
    except DataError as error:
        return _say(f"fedgraph: {error}", 2)
    except FedgraphError as error:
        return _say(f"fedgraph: {error}", 1)
    except BrokenPipeError:  # whoever read our output has gone: nobody is left to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _say(f"fedgraph: {where}{error.strerror or error}; finished cells are kept: --resume goes on", 1)
    except MemoryError as error:
        return _say(f"fedgraph: not enough memory ({str(error) or 'no size told'}); finished cells are kept: --resume goes on", 1)
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        return _say(f"fedgraph: unforeseen {type(error).__name__}: {error}; {TRACEBACK}=1 shows where", 1)


def _say(message: str, status: int) -> int:
    """One line on stderr, then the exit status."""
    print(" ".join(message.split()), file=sys.stderr)
    return status


def _run(args: argparse.Namespace) -> int:
    changes = list(args.changes)
    if args.runtime:
        changes.append(f"runtime.engine={args.runtime}")
    if args.resume and args.out:
        raise ScenarioError("--resume DIR continues in DIR: leave --out away")
    if args.resume and args.dry_run:
        raise ScenarioError("--dry-run computes nothing, so it has nothing to --resume: leave one of them away")
    ready = scenario.load(args.scenario, changes, quick=args.quick, seeds=args.seeds)
    from fedgraph import experiment  # after validation: a bad scenario is refused before torch is loaded
    from fedgraph.console import Console

    console = Console()
    if args.dry_run:
        experiment.dry_run(ready, console)
        return 0
    out = args.resume or args.out or Path("runs") / f"{ready.scenario.name}-{time.strftime('%Y%m%d-%H%M%S')}"
    experiment.run(ready, out, args.data_root, resume=args.resume is not None, console=console)
    return 0


if __name__ == "__main__":
    sys.exit(main())
