"""Accuracy over the rounds of a cell, kept as a plain file."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from fedgraph import run

SCENARIO = """
name: grown
seeds: 1
runtime: {engine: serial}
datasets: [{name: embedded/library}]
tasks:
  - task: node_classification
    label: t
    trust: [curator, own-client]
    epsilons: [8, inf]
    partition: {partition: uniform, clients: 3}
    curve: 3
    methods: [{method: features, steps: 6}, {method: nonprivate, rounds: 7}, {method: gap_node, steps: 3}]
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grown")
    (folder / "s.yaml").write_text(SCENARIO, encoding="utf-8")
    assert run.main([str(folder / "s.yaml"), "--out", str(folder / "out")]) == 0
    return folder / "out"


def table(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8") as text:
        return list(csv.DictReader(text))


def test_a_curve_ends_at_the_accuracy_of_the_cell_and_begins_elsewhere(out: Path) -> None:
    found = {
        (r["method"], r["trust"], r["epsilon"]): float(r["value"])
        for r in table(out / "results.csv")
        if r["metric"] == "accuracy"
    }
    curves: dict[tuple[str, ...], list[tuple[int, float]]] = {}
    for row in table(out / "curves.csv"):
        key = (row["method"], row["trust"], row["epsilon"])
        curves.setdefault(key, []).append((int(row["round"]), float(row["accuracy"])))
    assert {method for method, *_ in curves} == {"features", "nonprivate"}, "GAP has no answer before its last phase"
    for key, points in curves.items():
        assert len(points) == 3
        assert points[-1][1] == found[key]
        assert [r for r, _ in points] == sorted({r for r, _ in points})
    assert [r for r, _ in curves["features", "own-client", "8.0"]] == [2, 4, 6]
    assert any(points[0][1] != points[-1][1] for points in curves.values()), "the states are those of their rounds"


def test_the_page_shows_it(out: Path) -> None:
    assert (out / "t-embedded-library-curves.svg").exists()
    assert "curves.csv" in (out / "report.html").read_text(encoding="utf-8")
