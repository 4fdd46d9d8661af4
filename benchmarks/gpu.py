"""What a GPU brings, in at most ten minutes: for whoever has one for a short time.

    python -m benchmarks.gpu [--out FILE] [--only methods pairs …]
    python -m benchmarks.gpu --dry-run        # the same steps on small data, with the CPU in the GPU's place

=========  ==============================================================================================================
tests      ``pytest -m gpu``: every method trains there as on the CPU, and POT's batched solver gives the same values
methods    a cell of each classifier on a generated graph of 20,000 nodes: wall seconds and accuracy on the CPU and on the GPU
pairs      Gromov-Wasserstein of MUTAG's pairs: POT's batched solver on the GPU, the compiled one on a core of the CPU
million    ``features`` and ``gap_node`` on a million nodes: wall seconds and memory on the CPU and on the GPU
card       ``scenarios/card.yaml --quick`` with actors on the CPU and on the GPU: where they stood, and accuracies
=========  ==============================================================================================================

Each step is a process of its own with a limit, and is printed when it ends, so what a limit cuts off takes nothing else with
it. With four cores or more the CPU's and the GPU's half of a step run side by side. ``--out`` takes every line, and the JSON of
the last one.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
TINY = """\
name: tiny
datasets: [{name: embedded/library}]
tasks:
  - task: node_classification
    epsilons: [8]
    trust: [own-client]
    partition: {partition: uniform, clients: 4}
    methods: [{method: features, steps: 3, projection: 16}]
"""


def cells(methods: Sequence[str], nodes: int) -> None:
    """In this process: a line of JSON for each method, as soon as it is known."""
    import torch

    from benchmarks import growth

    for method in methods:
        try:
            growth.measured(method, 800, 800 * growth.DEGREE)  # imports, compilation and the device's own start are no work
            began = time.perf_counter()
            found: dict[str, Any] = growth.measured(method, nodes, growth.DEGREE * nodes)
        except Exception as error:  # of one method, which takes nothing from the next: blink refuses so many nodes
            print(json.dumps({"method": method, "why": str(error)[:200]}), flush=True)
            continue
        found |= {"method": method, "wall_s": round(time.perf_counter() - began, 2)}
        if torch.cuda.is_available():
            found["gpu_gb"] = round(torch.cuda.max_memory_allocated() / 1e9, 2)
        print(json.dumps(found), flush=True)


class Steps:
    """Runs commands until the time is over.

    Args:
        seconds: In all.
        dry: Whether the CPU stands in the GPU's place, on small data.
        out: Also takes what is said; None: nobody.
    """

    def __init__(self, seconds: float, dry: bool, out: Path | None) -> None:
        self.dry, self._until, self._out = dry, time.monotonic() + seconds, out
        self.found: dict[str, Any] = {}

    def say(self, line: str) -> None:
        print(line, flush=True)
        if self._out is not None:
            with self._out.open("a", encoding="utf-8") as file:
                file.write(line + "\n")

    def run(self, command: Sequence[str], limit: float, gpu: bool) -> tuple[str, str]:
        """(what it printed, why it did not end well; empty: it did)."""
        env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        env |= {} if gpu and not self.dry else {"CUDA_VISIBLE_DEVICES": ""}
        limit = min(limit, self._until - time.monotonic())
        if limit < 5:
            return "", "no time was left"
        with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as errors:
            try:
                code = subprocess.run(
                    [sys.executable, *command], cwd=ROOT, env=env, stdout=printed, stderr=errors, timeout=limit, check=False
                ).returncode
                why = f"exit status {code}" if code else ""
            except subprocess.TimeoutExpired:
                why = f"cut off after {limit:.0f} s"
            printed.seek(0)
            errors.seek(0)
            said, last = printed.read(), errors.read().strip().splitlines()[-1:]
        return said, f"{why}: {last[0][:300]}" if why and last else why

    def both(self, ask: Callable[[bool], tuple[list[str], float]]) -> list[tuple[str, str]]:
        """[of the CPU, of the GPU]: ``run`` of the command and limit that ``ask`` gives for it."""
        with ThreadPoolExecutor(2 if (os.cpu_count() or 1) >= 4 else 1) as pool:
            return list(pool.map(lambda gpu: self.run(*ask(gpu), gpu), (False, True)))


def tests(steps: Steps) -> None:
    command = [
        "-m",
        "pytest",
        "-n",
        "0",
        "-m",
        "gpu",
        "tests/methods/test_devices.py",
        "tests/comparison/test_batched.py",
    ]
    if steps.dry:
        command[5:] = ["slow", "tests/methods/test_devices.py", "-k", "features"]
    said, why = steps.run(command, 200, gpu=True)
    lines = [
        line for line in said.splitlines() if line.startswith(("FAILED", "ERROR")) or " passed" in line or " failed" in line
    ]
    steps.found["tests"] = {"lines": lines, "why": why}
    steps.say("tests: " + (why or "all that ran passed"))
    for line in lines:
        steps.say(f"  {line}")


def methods(steps: Steps) -> None:
    from fedgraph.methods.base import method_kinds

    names = method_kinds.list_names(lambda offers: offers.kind == "classifier")
    _compare(steps, "methods", names[:2] if steps.dry else names, 800 if steps.dry else 20_000, 150)


def million(steps: Steps) -> None:
    _compare(steps, "million", ["features", "gap_node"], 2000 if steps.dry else 1_000_000, 240)


def _compare(steps: Steps, name: str, of: Sequence[str], nodes: int, limit: float) -> None:
    command = ["-m", "benchmarks.gpu", "--cells", str(nodes), *of]
    (cpu, cpu_why), (gpu, gpu_why) = steps.both(lambda _: (command, limit))
    rows = [{one["method"]: one for one in map(json.loads, said.splitlines())} for said in (cpu, gpu)]
    steps.found[name] = {"nodes": nodes, "cpu": rows[0], "gpu": rows[1], "why": [cpu_why, gpu_why]}
    steps.say(f"{name}: {nodes:,} nodes; {'; '.join(filter(None, (cpu_why, gpu_why))) or 'all ended'}")
    for method in of:
        one, other = (found.get(method, {"why": "-"}) for found in rows)
        words = [
            found.get("why") or f"{found['wall_s']:.2f} s, {found['peak_gb']:.2f} GB, accuracy {found['accuracy']:.3f}"
            for found in (one, other)
        ]
        ratio = "" if "why" in one | other else f", {one['wall_s'] / max(other['wall_s'], 0.01):.2f} × as fast"
        steps.say(f"  {method:14} CPU {words[0]}; GPU {words[1]}{ratio}")


def pairs(steps: Steps) -> None:
    command = ["benchmarks/gromov.py", "--only", "mutag", "--batched", "--pairs", "200" if steps.dry else "17000", "--oracle"]
    said, why = steps.run([*command, "20" if steps.dry else "300"], 120, gpu=True)
    lines = [line for line in said.splitlines() if line.startswith(("set", "mutag", "  batched", "  median"))]
    steps.found["pairs"] = {"lines": lines, "why": why}
    steps.say("pairs: " + (why or "all ended"))
    for line in lines:
        steps.say(f"  {line.strip()}")


def card(steps: Steps) -> None:
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder, "tiny.yaml")
        scenario.write_text(TINY, encoding="utf-8")
        path = [str(scenario)] if steps.dry else ["scenarios/card.yaml", "--quick"]

        def ask(gpu: bool) -> tuple[list[str], float]:
            share = 0.25 if gpu and not steps.dry else 0
            command = ["-m", "fedgraph.run", *path, "--runtime", "ray", "--out", f"{folder}/{'gpu' if gpu else 'cpu'}"]
            return [*command, "--set", f"runtime.gpus_per_worker={share}", "--set", "runtime.workers=2"], 180

        whys = [why for _, why in steps.both(ask)]
        found = [_read(Path(folder, name)) for name in ("cpu", "gpu")]
    steps.found["card"] = {"cpu": found[0], "gpu": found[1], "why": whys}
    steps.say("card: " + ("; ".join(filter(None, whys)) or "both runs ended"))
    for name, one in zip(("CPU", "GPU"), found, strict=True):
        steps.say(f"  {name}: {one['seconds']} s; actors {one['actors']}")
    shared = sorted(found[0]["accuracy"].keys() & found[1]["accuracy"].keys())
    apart = [abs(found[0]["accuracy"][row] - found[1]["accuracy"][row]) for row in shared]
    steps.say(f"  {len(shared)} accuracies, at most {max(apart, default=float('nan')):.3f} apart")


def _read(folder: Path) -> dict[str, Any]:
    """Of a run: seconds, where each actor stood, accuracy of each row."""
    made: dict[str, Any] = {"seconds": None, "actors": {}, "accuracy": {}}
    if (folder / "environment.json").exists():
        about = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
        made |= {"seconds": about.get("made", {}).get("seconds"), "actors": about["runtime"].get("actors", {})}
    if (folder / "results.csv").exists():
        with (folder / "results.csv").open(encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["metric"] == "accuracy"]
        keys = ("task", "dataset", "protocol", "calibrated_by", "row", "seed")
        made["accuracy"] = {" ".join(row[key] for key in keys): float(row["value"]) for row in rows}
    return made


STEPS = (tests, methods, pairs, card, million)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry-run", action="store_true", help="on small data, with the CPU in the GPU's place")
    parser.add_argument("--only", nargs="+", choices=[step.__name__ for step in STEPS])
    parser.add_argument("--seconds", type=float, default=590.0, help="for all steps together (default 590)")
    parser.add_argument("--out", type=Path, help="a file that takes every line")
    parser.add_argument("--cells", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.cells:
        cells(args.cells[1:], int(args.cells[0]))
        return
    import torch

    steps = Steps(args.seconds, args.dry_run, args.out)
    if not (args.dry_run or torch.cuda.is_available()):
        raise SystemExit("no GPU that torch can use; --dry-run tries the steps on the CPU")
    where = "the CPU in a GPU's place" if args.dry_run else torch.cuda.get_device_name(0)
    steps.say(f"{where}; torch {torch.__version__}, CUDA {torch.version.cuda}; {os.cpu_count()} cores")
    steps.found["device"] = where
    for step in STEPS:
        if not args.only or step.__name__ in args.only:
            step(steps)
    steps.say(json.dumps(steps.found))


if __name__ == "__main__":
    main()
