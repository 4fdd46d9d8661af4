"""``fedgraph watch RUN``: clients, server, rounds, messages and ε of a run, while it goes on and afterwards.

    fedgraph watch runs/citeseer
    fedgraph watch runs/citeseer --once

It reads what the run writes beside its results, and changes nothing. It ends with the run; where the output is no terminal it
prints once.
"""

import argparse
import time
from pathlib import Path

HELP = "watch a run: clients, server, rounds, messages a second, ε spent so far"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's folder; running, interrupted or finished")
    parser.add_argument("--once", action="store_true", help="print what there is now and end")


def run(options: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.live import Live

    from fedgraph.runs import live

    state, console = live.read(options.run), Console(markup=False, emoji=False)
    if options.once or state.status != "running" or not console.is_terminal:
        console.print(live.view(state, options.run))
        return 0
    with Live(live.view(state, options.run), console=console, auto_refresh=False) as screen:
        while state.status == "running":
            time.sleep(live.LIVE_SECONDS)
            state = live.read(options.run)
            screen.update(live.view(state, options.run), refresh=True)
    return 0
