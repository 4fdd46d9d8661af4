"""What a GPU changes: seconds and accuracy of every method of a small job, on the CPU and on the GPU; lines for README.md.

    python -m benchmarks.gpu [SCENARIO]

The same scenario runs twice in one process each (``--runtime serial``), once with every GPU hidden. Noise is drawn on the CPU
in both, from the same streams, so accuracies should differ by rounding alone. The first cell on a GPU also loads its kernels.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SCENARIO = """\
name: gpu
datasets: [{name: embedded/library}]
seeds: 1
tasks:
  - task: node_classification
    epsilons: [4]
    trust: [curator]
    methods:
      - {method: dpar, epochs: 2}
      - {method: features, steps: 20, projection: 16}
      - {method: gap_node, hops: 1}
      - {method: label_hop}
      - {method: nonprivate, model: gcn}
      - {method: sage_node}
"""
ASKED = "import torch; print(torch.cuda.get_device_name(0) if torch.cuda.is_available() else '')"


def measured(scenario: Path, out: Path, hidden: bool) -> dict[str, tuple[float, float]]:
    """Method and ε → (accuracy, seconds of its cells) of one run. hidden: no GPU is seen."""
    environment = os.environ | ({"CUDA_VISIBLE_DEVICES": ""} if hidden else {})
    command = [sys.executable, "-m", "fedgraph.run", str(scenario), "--out", str(out), "--runtime", "serial"]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    with (out / "results.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] == "accuracy"]
    return {
        f"{row['method']}, ε = {row['epsilon']}": (float(row["value"]), float(row["seconds"])) for row in reversed(rows)
    }  # all clients come first, and count


def main() -> None:
    parser = argparse.ArgumentParser(description="Seconds and accuracy of each method on the CPU and on the GPU.")
    parser.add_argument("scenario", nargs="?", type=Path, help="default: a small job on the graph that ships with fedgraph")
    asked = parser.parse_args()
    gpu = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True, check=True).stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        scenario = asked.scenario or Path(folder) / "gpu.yaml"
        if asked.scenario is None:
            scenario.write_text(SCENARIO, encoding="utf-8")
        cpu = measured(scenario, Path(folder) / "cpu", hidden=True)
        other = measured(scenario, Path(folder) / "gpu", hidden=False) if gpu else {}
    print(f"| method | CPU: seconds | accuracy | {gpu or 'no GPU here'}: seconds | accuracy |\n|---|---|---|---|---|")
    for name, (value, seconds) in sorted(cpu.items()):
        there = f"{other[name][1]:.2f} | {other[name][0]:.3f}" if name in other else "– | –"
        print(f"| {name} | {seconds:.2f} | {value:.3f} | {there} |")


if __name__ == "__main__":
    main()
