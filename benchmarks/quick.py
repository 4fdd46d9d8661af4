"""How long the dry run and the quick run of every shipped scenario take, as a newcomer meets them.

    python -m benchmarks.quick [--dry] [--quick] [--limit SECONDS] [SCENARIO …]

Without ``--dry`` or ``--quick``: both. A line per scenario: wall seconds; processor seconds of the command and of all that it
started (on a machine that others use, too, these are what counts); the largest sum of proportional set sizes (shared pages
count once); the lines that the longest task of the dry run takes. The last line is JSON. The status is 1 where a run failed
or ran out of time.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.main_job import cpu_seconds, pss_bytes

SCENARIOS = Path(__file__).parents[1] / "scenarios"
GOALS = {"dry": (20.0, 50), "quick": (90.0, 0)}  # wall seconds on two quiet cores; lines of one task


@dataclass(frozen=True)
class Found:
    """One command. lines: of the longest table that it printed, with what stands above and below it."""

    scenario: str
    kind: str
    status: str
    wall_s: float
    cpu_s: float
    peak_gb: float
    lines: int


def longest(text: str) -> int:
    """The most lines that one task's part of a dry run takes: from one title, which says ``on DATA: N cells``, to the next."""
    starts = [i for i, line in enumerate(text.splitlines()) if " cells, " in line and " seed(s)" in line]
    ends = [*starts[1:], len(text.splitlines())]
    return max((end - start for start, end in zip(starts, ends, strict=False)), default=0)


def measured(scenario: Path, kind: str, limit: float) -> Found:
    """One command in a session of its own; what is left of it after ``limit`` seconds is ended."""
    with tempfile.TemporaryDirectory() as folder:
        option = ["--dry-run"] if kind == "dry" else ["--quick"]
        command = [sys.executable, "-m", "fedgraph.run", str(scenario), *option, "--out", f"{folder}/run"]
        began, peak, status = time.monotonic(), 0, "ok"
        used: dict[int, float] = {}
        said = Path(folder) / "said"
        with said.open("w", encoding="utf-8") as out:
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
            while process.poll() is None:
                cpu_seconds(process.pid, used)
                peak = max(peak, pss_bytes(process.pid))
                if time.monotonic() - began > limit:
                    status = f"ended after {limit:g} s"
                    os.killpg(process.pid, signal.SIGINT)
                    process.wait(timeout=60)
                time.sleep(0.5)
        wall = time.monotonic() - began
        text = said.read_text(encoding="utf-8")
    if process.returncode and status == "ok":
        last = text.strip().splitlines()[-1:] or ["nothing was printed"]
        status = f"failed: {last[0][:100]}"
    lines = longest(text) if kind == "dry" else 0
    cpu = sum(used.values())
    return Found(scenario.stem, kind, status, round(wall, 1), round(cpu, 1), round(peak / 1e9, 2), lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", type=Path, metavar="SCENARIO", help="default: every shipped one")
    parser.add_argument("--dry", action="store_true", help="dry runs only")
    parser.add_argument("--quick", action="store_true", help="quick runs only")
    parser.add_argument("--limit", type=float, default=300.0, metavar="SECONDS", help="of one command (default 300)")
    asked = parser.parse_args()
    kinds = [kind for kind in GOALS if getattr(asked, kind)] or list(GOALS)
    found = []
    print(f"{'scenario':22}{'run':7}{'wall s':>8}{'CPU s':>8}{'GB':>6}{'lines':>7}  status ({os.cpu_count()} cores)")
    for scenario in asked.scenarios or sorted(SCENARIOS.glob("*.yaml")):
        for kind in kinds:
            one = measured(scenario, kind, asked.limit)
            found.append(one)
            lines = one.lines or ""
            print(
                f"{one.scenario:22}{one.kind:7}{one.wall_s:8.1f}{one.cpu_s:8.1f}{one.peak_gb:6.2f}{lines:>7}  {one.status}",
                flush=True,
            )
    print(json.dumps([asdict(one) for one in found]))
    return int(any(one.status != "ok" for one in found))


if __name__ == "__main__":
    sys.exit(main())
