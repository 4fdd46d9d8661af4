"""The table by which speed is held: every figure of it in one run, beside its goal.

    python -m benchmarks.all [--quick] [--only NAME …]

Each part runs other modules of this folder in processes of their own; ``--quick`` makes them small, so that all take about ten
minutes on two quiet cores (sizes stand in the table). Figures are processor seconds and ratios, which a busy machine moves
least; where wall seconds are told, so is the load. A part that fails is said in its line, and the exit status is 1: no line
stands for something that was not measured.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Found = dict[str, Any]  # the last line of a module, as JSON


@dataclass(frozen=True)
class Part:
    """One line of the table.

    Attributes:
        goal: In words.
        whole: Module and arguments.
        quick: The same for ``--quick``.
        says: From what the module printed to the figures.
    """

    goal: str
    whole: tuple[str, ...]
    quick: tuple[str, ...]
    says: Callable[[Found], str]


def beside_plain(found: Found) -> str:
    (own,) = found.values()
    plain, serial = (own[engine]["cpu_ms"] for engine in ("plain", "serial"))
    return (
        f"a round takes {number(plain / serial)} × less in blocks than client by client ({number(serial)} and {number(plain)} "
        f"CPU ms); Ray costs {number(own['ray']['beside_ms'])} CPU ms beside its work"
    )


def of_rounds(found: Found) -> str:
    ((clients, own),) = found.items()
    said = ", ".join(f"{engine} {number(one['cpu_ms'])} CPU ms" for engine, one in own.items())
    return f"{int(clients):,} clients, a round: {said}"


def against_pot(found: Found) -> str:
    return ", ".join(f"{name} {number(ratio)} ×" for name, ratio in found["ratios"].items())


def of_nodes(found: Found) -> str:
    said = []
    for method, axes in found.items():
        nodes, cpu, peak, _ = axes["nodes"][-1]
        said.append(f"{method} {nodes:,} nodes: {number(cpu)} CPU s, {number(peak)} GB")
    return "; ".join(said)


def of_start(found: Found) -> str:
    (own,) = found.values()
    return f"import to the end of the first round: {number(own['ray']['start_s'])} s of wall (load {os.getloadavg()[0]:.0f})"


def of_run(found: Found) -> str:
    first = f"first progress line after {number(found['first_line_s'])} s"
    wall = f"{number(found['wall_s'])} s of wall (load {os.getloadavg()[0]:.0f}), {first}"
    return f"{number(found['cpu_s'])} CPU s, {wall}, {number(found['peak_gb'])} GB"


def number(value: float) -> str:
    """Three digits. ``ValueError`` for what is no number, or not above zero: a clock that ran says neither."""
    if not math.isfinite(value) or value <= 0:
        raise ValueError(f"{value} was measured, which cannot be")
    return f"{value:.3g}"


ROUNDS = ("rounds", "--json", "--clients")
PARTS = {
    "1,000 clients": Part(
        "a round of Ray costs about 5 CPU ms beside its work",
        (*ROUNDS, "1000", "--rounds", "40"),
        (*ROUNDS, "1000", "--rounds", "10"),
        beside_plain,
    ),
    "10,000 clients": Part(
        "10 × the clients cost no more than 10 × the work",
        (*ROUNDS, "10000", "--rounds", "20", "--engines", "ray", "serial"),
        (*ROUNDS, "10000", "--rounds", "5", "--engines", "serial"),
        of_rounds,
    ),
    "GW against POT": Part(
        "compiled, of each pair: 29 to 112 × faster",
        ("gromov",),
        ("gromov", "--pairs", "5000", "--oracle", "200"),
        against_pot,
    ),
    "a million nodes": Part(
        "at most 150 CPU s and 8 GB (a million)",
        ("growth", "--json", "--methods", "features", "gap_node", "--nodes", "1000000"),
        ("growth", "--json", "--methods", "features", "gap_node", "--nodes", "100000"),
        of_nodes,
    ),
    "first step": Part(
        "a new Ray, actors and one round",
        (*ROUNDS, "4", "--rounds", "1", "--engines", "ray"),
        (*ROUNDS, "4", "--rounds", "1", "--engines", "ray"),
        of_start,
    ),
    "main job": Part("citeseer.yaml", ("main_job",), ("main_job", "--quick"), of_run),
}


def measured(part: Part, quick: bool) -> str:
    """The figures of a part. ``RuntimeError`` with its last words where its module fails."""
    module, *args = part.quick if quick else part.whole
    command = [sys.executable, "-m", f"benchmarks.{module}", *args]
    done = subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout).strip().splitlines()[-1])
    return part.says(json.loads(done.stdout.strip().splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes: about ten minutes")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    asked = parser.parse_args()
    failed = []
    for name in asked.only:
        began = time.monotonic()
        try:
            said = measured(PARTS[name], asked.quick)
        except (RuntimeError, ValueError, KeyError) as error:
            failed.append(name)
            said = f"NOT MEASURED: {error}"
        print(f"{name:15} {said}  [goal: {PARTS[name].goal}; {time.monotonic() - began:.0f} s]", flush=True)
    if failed:
        raise SystemExit(f"not measured: {', '.join(failed)}")


if __name__ == "__main__":
    main()
