"""Time, work and memory of the main job, as a user meets it.

    python benchmarks/main_job.py [--quick] [--runtime ray|serial] [--out DIR] [scenarios/citeseer.yaml]

Prints: seconds to the first progress line, wall seconds, processor seconds (user and system, of the driver and everything it
started; on a machine that others use, too, these are what counts), and the peak of the proportional set size (PSS: shared
pages counted once). The last line is JSON: {"scenario", "wall_s", "cpu_s", "peak_gb", "first_line_s", "cores"}.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path


def pss_bytes(session: int) -> int:
    """Σ PSS of all processes of one session."""
    total = 0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if os.getsid(int(entry.name)) != session:
                continue
            for line in (entry / "smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
        except (OSError, ProcessLookupError):
            continue
    return total


def cpu_seconds(session: int, seen: dict[int, float]) -> None:
    """Keeps in ``seen``, per process of one session, the processor seconds that it has used so far."""
    ticks = os.sysconf("SC_CLK_TCK")
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.getsid(int(entry.name)) == session:
                    fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                    seen[int(entry.name)] = sum(map(int, fields[11:13])) / ticks
            except (OSError, ProcessLookupError):
                continue


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", nargs="?", default="scenarios/citeseer.yaml")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runtime", choices=("ray", "serial"), default="ray")
    parser.add_argument("--out", help="keep the run in this folder")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "fedgraph.run",
            args.scenario,
            "--runtime",
            args.runtime,
            "--out",
            args.out or f"{folder}/run",
        ]
        command += ["--quick"] if args.quick else []
        began, first, peak = time.monotonic(), 0.0, 0
        used: dict[int, float] = {}
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            done = threading.Event()

            def watch() -> None:
                nonlocal peak
                while not done.wait(2.0):
                    cpu_seconds(process.pid, used)
                    peak = max(peak, pss_bytes(process.pid))

            watcher = threading.Thread(target=watch)
            watcher.start()
            assert process.stderr is not None
            for line in process.stderr:
                if not first and re.search(r"\b\d+/\d+ cells", line):
                    first = time.monotonic() - began
            process.wait()
            done.set()
            watcher.join()
        wall = time.monotonic() - began
    if not first:
        raise SystemExit("no progress line was seen, so nobody knows when the first one came")
    print(f"{args.scenario} --runtime {args.runtime}{' --quick' if args.quick else ''} ({os.cpu_count()} cores)")
    cpu = sum(used.values())
    print(f"first progress line {first:.1f} s, whole run {wall:.0f} s, {cpu:.0f} CPU s, peak memory {peak / 1e9:.2f} GB (PSS)")
    facts = {"scenario": args.scenario, "wall_s": round(wall, 1), "cpu_s": round(cpu, 1), "peak_gb": round(peak / 1e9, 2)}
    print(json.dumps(facts | {"first_line_s": round(first, 1), "cores": os.cpu_count()}))
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
