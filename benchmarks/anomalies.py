"""Anomaly detection at the server (Jin & Chen's outlook): is a rare class of molecules far from all others by what is released?

    python -m benchmarks.anomalies [--seeds 3]

MUTAG, a client for each molecule, embeddings without a trained model (a collection's nodes have no labels). One class is made
rare: twelve of its graphs, drawn a hundred times, among all of the other class. A graph's score is its mean distance to its
five nearest others, and the number is the AUROC of rare against usual, as mean ± standard deviation over draws and seeds. Rows:
Gromov-Wasserstein of releases at each ε of a graph, of embeddings in clear, and the difference of sizes alone.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

import fedgraph
from fedgraph import data
from fedgraph.cells import result
from fedgraph.types import GraphCollection

SET, RARE, DRAWS, NEAREST = "tu/mutag", 12, 100, 5


def scenario(seed: int) -> dict[str, object]:
    """One clustering of the whole collection, whose cells keep all distances."""
    task = {
        "task": "graph_clustering", "quality": "fast", "epsilons": ["1/n", 1, 64, "inf"], "verify": 0, "num_init": 1,
        "max_iterations": 2, "method": {"method": "local_dp", "training": "none"},
    }  # fmt: skip
    run = {"name": "anomalies", "seed": seed, "runtime": {"engine": "serial"}}
    return {**run, "datasets": [{"name": SET}], "tasks": [task]}


def aurocs(distances: np.ndarray, classes: np.ndarray, rare: int, rng: np.random.Generator) -> list[float]:
    """One for each draw. distances: [n, n]. classes: int [n]."""
    usual, found = np.flatnonzero(classes != rare), []
    for _ in range(DRAWS):
        among = np.concatenate([usual, rng.choice(np.flatnonzero(classes == rare), RARE, replace=False)])
        apart = distances[np.ix_(among, among)].astype(np.float64)
        np.fill_diagonal(apart, np.inf)
        found.append(float(roc_auc_score(classes[among] == rare, np.sort(apart, axis=1)[:, :NEAREST].mean(axis=1))))
    return found


def distances_of(seed: int, data_root: str | None) -> dict[str, np.ndarray]:
    """Of each row, under its ε: [n, n], as the server has them."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        fedgraph.run(scenario(seed), out=folder, data_root=data_root, quiet=True)
        for arrays in sorted(Path(folder, "cells").glob("*.npz")):
            cell = result.read_file(arrays.with_name(f"{arrays.stem}.json.gz"))
            name = "1/n" if str(cell["variant"]).endswith("1/n") else f"{cell['epsilon']:g}".replace("inf", "in clear")
            found[name] = np.load(arrays)["distances"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data-root", default=os.environ.get("FEDGRAPH_DATA"))
    args = parser.parse_args()
    loaded = data.load(SET, root=args.data_root)
    assert isinstance(loaded, GraphCollection)
    sizes = np.array([graph.num_nodes for graph in loaded.graphs])
    rows: dict[str, dict[int, list[float]]] = {}
    for seed in range(args.seeds):
        every = {**distances_of(seed, args.data_root), "graph size alone": np.abs(sizes[:, None] - sizes)}
        for name, distances in every.items():
            for rare in (0, 1):
                draws = aurocs(distances, np.asarray(loaded.labels), rare, np.random.default_rng(seed))
                rows.setdefault(name, {}).setdefault(rare, []).extend(draws)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["AUROC, ε of a graph", "class 0 is rare", "class 1 is rare"])
    for name in ("1/n", "1", "64", "in clear", "graph size alone"):
        writer.writerow([name, *(f"{np.mean(rows[name][rare]):.3f} ± {np.std(rows[name][rare]):.3f}" for rare in (0, 1))])


if __name__ == "__main__":
    main()
