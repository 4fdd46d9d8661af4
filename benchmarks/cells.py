"""Cells side by side against one after another: wall time, work and memory of one scenario on the Ray engine.

    python -m benchmarks.cells [--times N] [--workers N] [SCENARIO [options of fedgraph.run]]

The default is Table 1 of DPAR on Cora-ML, one seed, every cell at one curator. Both ways run N times in turn (default 2) and
the shortest counts, so that other work on the machine meets both. The rows must be equal. work: processor seconds of the driver
and everything it started; more of it side by side is what workers do twice. memory: peak of the summed proportional set size.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.main_job import pss_bytes

TABLE = ["scenarios/dpar_table1.yaml", "--seeds", "1", "--set", "datasets.1.enabled=false", "--set", "datasets.2.enabled=false"]
RUN = "import sys; from fedgraph import run; from fedgraph.runs import schedule; {}; sys.exit(run.main(sys.argv[1:]))"
WAYS = {"one after another": "schedule.is_scheduled_alone = lambda stage, cell: False", "side by side": "pass"}


def processor_seconds(session: int, seen: dict[str, float]) -> None:
    """Write down what every process of the session has used so far, under its id."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[3]) == session:
                seen[entry.name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rows(out: Path) -> list[dict[str, str]]:
    """The results without the seconds."""
    with (out / "results.csv").open(encoding="utf-8") as file:
        lines = csv.DictReader(line for line in file if line[0] != "#")
        return [{k: v for k, v in row.items() if k != "seconds"} for row in lines]


def measure(way: str, options: list[str], out: Path) -> tuple[float, float, float, list[dict[str, str]]]:
    """(wall seconds, processor seconds, peak bytes, rows) of one run; ``SystemExit`` where it fails."""
    seen: dict[str, float] = {}
    peak, began, ended = 0, time.monotonic(), threading.Event()
    command = [sys.executable, "-c", RUN.format(WAYS[way]), *options, "--runtime", "ray", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as process:

        def watch() -> None:
            nonlocal peak
            while not ended.wait(0.5):
                processor_seconds(process.pid, seen)
                peak = max(peak, pss_bytes(process.pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        status = process.wait()
        ended.set()
        watcher.join()
    if status:
        raise SystemExit(f"{way}: exit status {status}: python -m fedgraph.run {' '.join(options)} says why")
    return time.monotonic() - began, sum(seen.values()), peak, rows(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=2, help="runs of each way")
    parser.add_argument("--workers", type=int, help="size of the pool (default one per CPU)")
    args, options = parser.parse_known_args()
    options = options or TABLE
    options += ["--set", f"runtime.workers={args.workers}"] if args.workers else []
    found: dict[str, list[tuple[float, float, float, list[dict[str, str]]]]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(args.times):
            for way, runs in found.items():
                runs.append(measure(way, options, Path(folder) / f"{way}-{turn}".replace(" ", "-")))
                print(
                    f"{way}: {runs[-1][0]:.0f} s, work {runs[-1][1]:.0f} s, peak memory {runs[-1][2] / 1e9:.2f} GB", flush=True
                )
    first, second = (min(runs, key=lambda r: r[0]) for runs in found.values())
    same = all(run[3] == first[3] for runs in found.values() for run in runs)
    print(f"{' '.join(options)} ({os.cpu_count()} cores): {first[0] / second[0]:.2f} × faster side by side, ", end="")
    print(f"{second[1] / first[1]:.2f} × the work, {len(first[3])} rows {'equal' if same else 'DIFFER'}")
    sys.exit(not same)


if __name__ == "__main__":
    main()
