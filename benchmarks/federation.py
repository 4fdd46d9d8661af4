"""A federated round: processor seconds, bytes and memory beside a plain loop, one call per client, and other simulators.

    python -m benchmarks.federation [--clients 1000] [--rounds 3] [--workload w1|features|ego] [--json]
                                    [--pfl-python PYTHON] [--flower-python PYTHON]

w1: a GCN of 16 hidden units, 3 full-batch steps of descent per round, 3,703 words, 3,327/1000 nodes per client (CiteSeer where
``FEDGRAPH_DATA`` names it and there are at most 1,000 clients, else a random graph of its shape). features: one release of
``features`` per round. ego: w1's network on one-hop ego-networks of a random graph with as many nodes as clients.

CPU seconds are user and system seconds of all processes, per round, after a first round. ``fedgraph`` is the faster of our two
engines (``fedgraph_ray`` with two workers, ``fedgraph_serial``), all behind secure aggregation; ``--engine`` picks one.
pfl-research and Flower (its simulation engine, two actors) are run by interpreters of their own, which need torch and pfl, or
torch and flwr[simulation]; each is left out, with a message, where it is not there.

The last line is JSON. The run fails where parameters differ from the plain loop's by more than rounding.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

import numpy as np

ROUNDING = 5e-6  # largest difference in a parameter


def run(command: list[str], title: str) -> dict[str, Any]:
    """The last line of JSON that ``command`` prints, its processes marked for ``federation_meter``."""
    mark = {"FEDERATION_BENCHMARK": uuid.uuid4().hex, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=os.environ | mark, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{title} failed:\n{done.stderr[-2000:]}")
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]  # Ray may speak after it
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def ours(name: str, args: argparse.Namespace, files: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.federation_engines", name, "--workload", args.workload, "--clients"]
    command += [str(args.clients), "--rounds", str(args.rounds), "--workers", str(args.workers), "--files", str(files)]
    return run(command, name)


def peer(name: str, package: str, python: str | None, args: argparse.Namespace, files: Path) -> dict[str, Any] | None:
    """What another simulator takes; None, with a message, where it is not there."""
    if not python:
        print(f"{name}: left out; give --{name}-python an interpreter that has torch and {package}", file=sys.stderr)
        return None
    try:
        asked = subprocess.run([python, "-c", f"import torch, {package}"], capture_output=True, text=True, check=False)
    except OSError as error:
        print(f"{name}: left out; {python} cannot be started ({error.strerror})", file=sys.stderr)
        return None
    if asked.returncode:
        last = (asked.stderr.strip().splitlines() or ["no reason given"])[-1]
        print(f"{name}: left out; {python} cannot import it ({last})", file=sys.stderr)
        return None
    ours("clients", args, files)
    return run([python, "-m", f"benchmarks.federation_{name}", str(files), str(args.rounds)], name)


def differences(files: Path) -> dict[str, float]:
    """Largest difference of each engine's last parameters from the plain loop's."""
    expected = np.load(files / "plain_loop.npy")
    found = {p.stem: float(np.abs(np.load(p) - expected).max()) for p in files.glob("*.npy")}
    moved = found.pop("start")
    del found["plain_loop"]
    if moved < 100 * ROUNDING:
        raise SystemExit(f"the plain loop moved no parameter by more than {moved:.3g}, so nothing can be compared")
    if wrong := {name: value for name, value in found.items() if not value <= ROUNDING}:
        raise SystemExit(f"parameters differ from the plain loop's by more than {ROUNDING}: {wrong}")
    return found


def compare(args: argparse.Namespace, files: Path) -> dict[str, Any]:
    engines = ["ray", "serial"] if args.engine == "both" else [args.engine]
    results: dict[str, dict[str, Any] | None] = {}
    for engine in engines:
        results[f"fedgraph_{engine}"] = ours(engine, args, files)
        (files / "fedgraph.npy").rename(files / f"fedgraph_{engine}.npy")
    if args.workload != "ego" or args.clients <= 10_000:
        results["plain_loop"] = ours("plain_loop", args, files)
    if args.workload == "w1":
        results["one_call_per_client"] = ours("one_call_per_client", args, files)
        results["pfl"] = peer("pfl", "pfl", args.pfl_python, args, files)
        results["flower"] = peer("flower", "flwr.simulation", args.flower_python, args, files)
    done = {name: found for name, found in results.items() if found is not None}
    best = min(done[f"fedgraph_{engine}"]["cpu_s_per_round"] for engine in engines)
    seconds = {"fedgraph": best} | {name: found["cpu_s_per_round"] for name, found in done.items()}
    first = done[f"fedgraph_{engines[0]}"]
    report: dict[str, Any] = {
        "clients": args.clients,
        "rounds": args.rounds,
        "workload": args.workload,
        "data": first["source"],
        "cores": os.cpu_count(),
        "cpu_s_per_round": {name: round(value, 4) for name, value in seconds.items()},
        "wall_s_per_round": {name: round(found["wall_s_per_round"], 4) for name, found in done.items()},
        "peak_gb": {name: round(found["peak_gb"], 3) for name, found in done.items()},
        "bytes_per_round": ours("bytes", args, files)["bytes_per_round"],
        "ledger_bytes": first["ledger_bytes"],
        "releases": first["releases"],
    }
    if "plain_loop" in done:
        report["times_the_plain_loop"] = round(seconds["plain_loop"] / best, 2)
        if args.workload != "features":  # there the two draw other noise
            report["differences"] = differences(files)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3, help="steady rounds, after one to warm up")
    parser.add_argument("--workload", choices=("w1", "features", "ego"), default="w1")
    parser.add_argument("--engine", choices=("both", "ray", "serial"), default="both")
    parser.add_argument("--workers", type=int, default=2, help="of the Ray engine")
    parser.add_argument("--pfl-python", help="an interpreter with torch and pfl")
    parser.add_argument("--flower-python", help="an interpreter with torch and flwr[simulation]")
    parser.add_argument("--json", action="store_true", help="print nothing but the last line")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = compare(args, Path(folder))
    if not args.json:
        for name, value in report["cpu_s_per_round"].items():
            print(f"{name:22} {value:8.3f} CPU s per round")
    print(json.dumps(report))


if __name__ == "__main__":
    main()
