"""Time and memory of the main job, as a user meets it.

    python benchmarks/main_job.py [--quick] [--runtime ray|serial] [--out DIR] [scenarios/citeseer.yaml]

Prints: seconds to the first progress line, wall seconds, and the peak of the proportional set size (PSS: shared pages counted
once) summed over the driver and everything it started.
"""

from __future__ import annotations

import argparse
import os
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
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            done = threading.Event()

            def watch() -> None:
                nonlocal peak
                while not done.wait(0.5):
                    peak = max(peak, pss_bytes(process.pid))

            watcher = threading.Thread(target=watch)
            watcher.start()
            assert process.stderr is not None
            for line in process.stderr:
                if not first and "cell 1/" in line:
                    first = time.monotonic() - began
            process.wait()
            done.set()
            watcher.join()
        wall = time.monotonic() - began
    print(f"{args.scenario} --runtime {args.runtime}{' --quick' if args.quick else ''} ({os.cpu_count()} cores)")
    print(f"first progress line {first:.1f} s, whole run {wall:.0f} s, peak memory {peak / 1e9:.2f} GB (PSS)")
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
