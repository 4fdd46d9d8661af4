"""What a finished or running run says: its answer, several in one table, its ledger in words, and its progress.

``fedgraph show RUN``: the answer of a finished run, and its rows.

    fedgraph show runs/citeseer
    fedgraph show runs/citeseer --csv        every column of every row

Without an option it prints what the run printed at its end: what was found, one table, and where the page is.

``fedgraph compare RUN RUN…``: several finished runs in one answer and one table.

    fedgraph compare runs/a runs/b --csv both.csv

``fedgraph explain RUN``: a run's ledger in plain words.

    fedgraph explain runs/citeseer
    fedgraph explain runs/citeseer --cell gap_edge      release by release

It says what was released, and what that costs, by the same accountant as the report.

``fedgraph watch RUN``: clients, server, rounds, messages and ε of a run, while it goes on and afterwards.

    fedgraph watch runs/citeseer
    fedgraph watch runs/citeseer --once

It reads what the run writes beside its results, and changes nothing. It ends with the run; where the output is no terminal it
prints once.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fedgraph.commands.base import write_file
from fedgraph.errors import DataError

if TYPE_CHECKING:
    from fedgraph.runs import Run

HELP = "show the answer of a finished run, and its rows"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's folder")
    parser.add_argument("--csv", action="store_true", help="print every row as CSV instead")


def run(options: argparse.Namespace) -> int:
    from fedgraph.report import table
    from fedgraph.runs import run as runs

    found = runs.open_run(options.run)
    print(table.to_text(found.table("row")).strip() if options.csv else _text_of(found))
    if not options.csv and (options.run / "results.parquet").is_file():  # written with the page
        print(f"\nreport: {options.run / 'report.html'}")
    return 0


def _text_of(found: Run) -> str:
    """The answer as a run prints it at its end."""
    more = "Every column of every row, with the name that “fedgraph fit”, “sheet” and “export” take: fedgraph show RUN --csv"
    return "\n".join([*([found.notice] if found.notice else []), found.answer, "", more])


HELP_COMPARE = "compare finished runs: one answer, one table"


def configure_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="folders of finished runs")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="also write every row")
    parser.add_argument("--force", action="store_true", help="replace FILE where it exists")


def run_compare(options: argparse.Namespace) -> int:
    from fedgraph.report import table as tables
    from fedgraph.runs import run as runs

    found = runs.open_run(*options.runs)
    if options.csv:
        write_file(options.csv, tables.to_text(found.table(per="row")).encode(), options.force)
    print(_text_of(found))
    if options.csv:
        print(f"written: {options.csv}")
    return 0


HELP_EXPLAIN = "explain what a run released, and what that costs, from its ledger"


def configure_explain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's folder, or a ledger.jsonl")
    parser.add_argument("--cell", metavar="NAME", help="only cells whose name contains this, release by release")


def run_explain(options: argparse.Namespace) -> int:
    from fedgraph.privacy import explain
    from fedgraph.types import in_words_of

    path = options.run / "ledger.jsonl" if options.run.is_dir() else options.run
    if not path.is_file():
        raise DataError(f"{path}: no such file; a finished run has a ledger.jsonl")
    print(explain.in_words(explain.read(path), options.cell, in_words_of))
    return 0


HELP_WATCH = "watch a run: clients, server, rounds, messages a second, ε spent so far"


def configure_watch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's folder; running, interrupted or finished")
    parser.add_argument("--once", action="store_true", help="print what there is now and end")


def run_watch(options: argparse.Namespace) -> int:
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
