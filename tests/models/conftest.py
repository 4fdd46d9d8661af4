"""One run of a method of every kind in its protocol, on a small folder of people: what most tests of this folder start from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fedgraph
from fedgraph.methods.base import method_kinds
from fedgraph.models.model import Model
from fedgraph.runs.run import Run

BOUNDS = {"bounds": {"age": [0, 100]}, "text": "one-hot"}
ROWS = {
    "inductive": [{"method": "features"}, {"method": "gap_node", "steps": 4}, {"method": "dpar", "epochs": 4},
                  {"method": "sage_node", "steps": 4}, {"method": "nonprivate", "rounds": 3}],
    "asking": [{"method": "features", "label": "alone", "steps": 5}, {"method": "label_hop", "steps": 5}],
    "transductive": [{"method": "gap_edge", "epochs": 5, "hops": 1}, {"method": "gcon"}, {"method": "sage_edge"}],
}  # fmt: skip


def write_people(
    folder: Path, count: int, first: int, seed: int, header: str = "id,age,member,city", known: bool = True
) -> Path:
    """Three classes that columns and edges show."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    labels = rng.integers(0, 3, count)
    ids = [f"p{first + k}" for k in range(count)]
    rows = {
        "id": ids,
        "age": np.clip(rng.normal(20 + 20 * labels, 5), 0, 100).round(1),
        "member": (rng.random(count) < 0.2 + 0.3 * labels).astype(int),
        "city": [("Bern", "Genf", "Basel")[(label + (k % 12 == 0)) % 3] for k, label in enumerate(labels)],
    }
    pd.DataFrame(rows)[header.split(",")].to_csv(folder / "features.csv", index=False)
    ends = [(a, rng.choice(np.flatnonzero(labels == labels[a]))) for a in rng.integers(0, count, 2 * count)]
    lines = [f"{ids[a]},{ids[b]}" for a, b in ends]
    (folder / "edges.csv").write_text("source,target\n" + "\n".join(lines) + "\n", encoding="utf-8")
    if known:  # the last ten only ask
        words = [f"{one},{('low', 'mid', 'high')[label]}" for one, label in zip(ids, labels, strict=True)]
        (folder / "labels.csv").write_text("id,label\n" + "\n".join(words[:-10]) + "\n", encoding="utf-8")
    return folder


def who(model: Model) -> dict[str, Any]:
    """How its method is asked: of which people, and whether nothing is protected."""
    reads = method_kinds.load(model.method).OFFERS.reads
    assert reads is not None
    public = reads(model.plan).name in ("PUBLIC_GRAPH", "NOTHING")
    return {"people": "public" if public else "own", "nothing_protected": np.isinf(model.epsilon)}


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """People, volunteers (public) and newcomers, each a folder; and a run of every method in its protocol."""
    home = tmp_path_factory.mktemp("use")
    write_people(home / "people", 150, 0, 1)
    write_people(home / "volunteers", 60, 1000, 2, known=False)
    write_people(home / "newcomers", 40, 2000, 3, header="id,city,member,age", known=False)
    (home / "people.csv").write_text("id\n" + "\n".join(f"p{k}" for k in range(150)), encoding="utf-8")
    tasks = [
        {"task": "node_classification", "label": protocol, "protocol": protocol, "trust": ["curator"], "epsilons": [4],
         "methods": rows, "delta": 1e-4}
        for protocol, rows in ROWS.items()
    ]  # fmt: skip
    data = [{"name": "own/csv", "path": str(home / "people"), "parameters": BOUNDS}]
    asked = {"name": "use", "runtime": {"engine": "serial"}, "datasets": data, "tasks": tasks}
    fedgraph.run(asked, out=home / "run", quiet=True)
    return home


@pytest.fixture(scope="session")
def run(place: Path) -> Run:
    return fedgraph.open_run(place / "run")
