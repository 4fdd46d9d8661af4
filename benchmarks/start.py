"""From the command to the first line and the first trained step: wall and CPU seconds, memory of all processes, two workers.

    python -m benchmarks.start [--runtime ray|serial] [--curator] [--json]

The scenario trains one step on the graph that ships with fedgraph, so its first finished cell is the first step, its price and
its score. ``--curator`` adds the same row with a trusted curator, which the driver computes while Ray starts. Memory is the sum
of proportional set sizes (shared pages count once), looked at ten times a second.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fedgraph.runtime import watchdog

SCENARIO = """\
name: first-step
runtime: {workers: 2}
datasets: [{name: embedded/library}]
tasks:
  - task: node_classification
    epsilons: [1]
    trust: TRUST
    partition: {partition: uniform, clients: 4}
    methods: [{method: features, steps: 1, projection: 16}]
"""
TICK = os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> float:
    """Proportional set size; 0 where the process has gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
    except (OSError, StopIteration):
        return 0.0


def cpu_seconds(pid: int) -> float:
    """User and system time so far; 0 where the process has gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK
    except OSError:
        return 0.0


def measured(runtime: str, trust: str) -> dict[str, float | str]:
    """One start. trust: of the rows."""
    with tempfile.TemporaryDirectory() as folder:
        scenario, out = Path(folder) / "first-step.yaml", Path(folder) / "out"
        scenario.write_text(SCENARIO.replace("TRUST", trust), encoding="utf-8")
        command = [sys.executable, "-m", "fedgraph.run", str(scenario), "--out", str(out), "--runtime", runtime]
        began = time.monotonic()
        said = Path(folder) / "said"
        with said.open("wb") as stderr:
            run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr)
        peak, first, line = 0.0, 0.0, 0.0
        cpu: dict[int, float] = {}
        while run.poll() is None and not first:
            family = [run.pid, *(pid for pid, _ in watchdog.watchdog_family(run.pid) if pid != os.getpid())]
            peak = max(peak, sum(memory_mb(pid) for pid in family))
            cpu |= {pid: max(cpu.get(pid, 0.0), cpu_seconds(pid)) for pid in family}
            line = line or (time.monotonic() - began if said.stat().st_size else 0.0)
            if list(out.glob("cells/*.json.gz")):
                first = time.monotonic() - began
            time.sleep(0.1)
        status = run.wait(timeout=300)
    if status or not first:
        raise SystemExit(f"the run ended with status {status} and no first step")
    cost = {
        "line_s": round(line, 1),
        "seconds": round(first, 1),
        "cpu_s": round(sum(cpu.values()), 1),
        "memory_mb": round(peak),
    }
    return {"runtime": runtime, **cost}


def main() -> None:
    parser = argparse.ArgumentParser(description="Time and memory from the command to the first trained step.")
    parser.add_argument("--runtime", choices=("ray", "serial"), default="ray")
    parser.add_argument("--curator", action="store_true", help="with a row that a trusted curator computes")
    parser.add_argument("--json", action="store_true", help="the last line is JSON")
    asked = parser.parse_args()
    found = measured(asked.runtime, "[curator, own-client]" if asked.curator else "[own-client]")
    cost = f"{found['seconds']} s wall, {found['cpu_s']} CPU s, {found['memory_mb']} MB at most"
    print(f"{found['runtime']}: first line after {found['line_s']} s; {cost}, until the first step")
    if asked.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
