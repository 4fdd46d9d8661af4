"""How long it takes to read a finished run, as one table, as one line for each configuration, and one row of it.

    python -m benchmarks.results_table [RUN] [--cells 300 30000]     RUN: a finished run (default: the quickstart, shrunk)

The cells of RUN are repeated under further labels until there are so many. Goals, in processor seconds: 300 cells in 1 s,
30,000 in 10 s.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import fedgraph
from fedgraph.report import load_saved_run, table

_SEEDS = 3  # of each configuration


def repeated(run: Path, cells: int, out: Path) -> None:
    """A folder like that of ``run``, with so many cells."""
    out.mkdir()
    for name in ("environment.json", "scenario.yaml"):
        shutil.copy(run / name, out / name)
    known = load_saved_run(run).results
    numbered = itertools.islice(enumerate(itertools.cycle(known)), cells)
    made = [
        replace(one, variant=f"{one.variant} {place // (_SEEDS * len(known))}", seed=place // len(known) % _SEEDS)
        for place, one in numbered
    ]
    table.write(table.tabulate(made, {}), out)


def timed(what: Callable[[], object]) -> float:
    """Processor seconds."""
    began = time.process_time()
    what()
    return time.process_time() - began


def main() -> None:
    """Prints one line for each number of cells."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--cells", type=int, nargs="+", default=[300, 30_000])
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        run = asked.run or fedgraph.run("quickstart", quick=True, quiet=True, runtime="serial", out=Path(place) / "run").folder
        for cells in asked.cells:
            out = Path(place) / str(cells)
            made = timed(lambda cells=cells, out=out: repeated(run, cells, out))  # type: ignore[misc]
            megabytes = (out / "results.parquet").stat().st_size / 1e6
            read = timed(lambda out=out: fedgraph.open_run(out).table())  # type: ignore[misc]
            rows = timed(lambda out=out: fedgraph.open_run(out).table(per="row"))  # type: ignore[misc]
            name = fedgraph.open_run(out).table()["row"].iloc[-1]
            one = timed(lambda out=out, name=name: load_saved_run(out).find(name))  # type: ignore[misc]
            told = f"read {read:.2f} s, one line for each row {rows:.2f} s, one row by its name {one:.2f} s"
            print(f"{cells:,} cells, {megabytes:.1f} MB: {told}; made and written in {made:.1f} s", flush=True)


if __name__ == "__main__":
    main()
