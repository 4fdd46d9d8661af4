"""What private edges are worth on every campus of Facebook100 at hand: ``label_hop`` against rows alone, and ``features`` by ε.

    python -m benchmarks.campuses [--campuses mit8 …] [--epsilons 4 8] [--seeds 1] [--public] [--out campuses.csv]

Class year from the other attributes, one trusted curator, δ = 1/n_train, training included in ε. By default nothing is public:
test nodes ask with their own row and edges. With ``--public`` the test graph is public and only ``features`` runs: does more
budget ever do harm? One line per campus as soon as it is done, then means with standard errors over campuses.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import tempfile
from pathlib import Path

import numpy as np

import fedgraph

Scores = dict[tuple[str, float], float]


def campuses(root: Path) -> list[str]:
    """Names of the files below ``root``, smallest file first."""
    found = sorted((root / "facebook100" / "raw").glob("*.mat"), key=lambda path: path.stat().st_size)
    if not found:
        raise SystemExit(f"{root}/facebook100/raw holds no campus; name the data with --data-root or FEDGRAPH_DATA")
    return [path.stem.lower() for path in found]


def scores(campus: str, args: argparse.Namespace, root: Path) -> Scores:
    """(method, ε) → mean test accuracy over the seeds."""
    methods = ["features"] if args.public else ["features", "label_hop"]
    asked = {
        "name": "campus",
        "seed": 20269,
        "seeds": args.seeds,
        "runtime": {"engine": "serial"},
        "datasets": [{"name": campus if "/" in campus else f"facebook100/{campus}"}],
        "tasks": [
            {
                "task": "node_classification",
                "protocol": "inductive" if args.public else "asking",
                "epsilons": args.epsilons,
                "trust": ["curator"],
                "methods": [{"method": method} for method in methods],
            }
        ],
    }
    with tempfile.TemporaryDirectory() as folder:
        lines = fedgraph.run(asked, out=folder, data_root=root, quiet=True).table()
    means = lines.groupby(["method", "epsilon"])["accuracy"].mean()
    return {(method, epsilon): float(means[method, epsilon]) for method in methods for epsilon in args.epsilons}


def summary(name: str, values: list[float]) -> str:
    error = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    mean, lowest = np.mean(values), min(values)
    return f"{name}: mean {mean:+.4f} ± {error:.4f} (standard error), lowest {lowest:+.4f}, of {len(values)} graphs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--campuses", nargs="+", help="names, or other graphs as family/dataset; default: every file, smallest first"
    )
    parser.add_argument("--epsilons", nargs="+", type=float, default=[4.0, 8.0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--public", action="store_true", help="features alone, with a public test graph")
    parser.add_argument("--data-root", type=Path, default=os.environ.get("FEDGRAPH_DATA"))
    parser.add_argument("--out", type=Path, help="CSV of the lines; campuses that it holds already are not run again")
    args = parser.parse_args()
    if args.data_root is None:
        raise SystemExit("name the data with --data-root or FEDGRAPH_DATA")
    names = args.campuses or campuses(Path(args.data_root))
    known: dict[str, Scores] = _read(args.out) if args.out and args.out.exists() else {}
    for campus in names:
        if campus not in known:
            known[campus] = scores(campus, args, Path(args.data_root))
            if args.out:
                _append(args.out, campus, known[campus])
        print(campus, *(f"{m} ε = {e:g}: {v:.3f}" for (m, e), v in known[campus].items()), sep="  ", flush=True)
    done = [known[campus] for campus in names]
    low, high = min(args.epsilons), max(args.epsilons)
    if low < high:
        print(summary(f"features, ε = {high:g} over ε = {low:g}", [d["features", high] - d["features", low] for d in done]))
    for epsilon in [] if args.public else args.epsilons:
        gains = [d["label_hop", epsilon] - d["features", epsilon] for d in done]
        print(summary(f"label_hop over features, ε = {epsilon:g}", gains))


def _read(path: Path) -> dict[str, Scores]:
    known: dict[str, Scores] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for campus, method, epsilon, value in csv.reader(file):
            known.setdefault(campus, {})[method, float(epsilon)] = float(value)
    return known


def _append(path: Path, campus: str, found: Scores) -> None:
    with path.open("a", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([campus, method, epsilon, value] for (method, epsilon), value in found.items())


if __name__ == "__main__":
    main()
