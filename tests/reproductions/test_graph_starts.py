"""Starts: cells, gains, equal budgets, and the words of the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.reproductions.sections import graph_starts as section
from benchmarks.reproductions.tasks import graph_starts as task
from fedgraph import data, runtime
from fedgraph.cells.store import CellStore
from fedgraph.errors import DataError
from fedgraph.report.sections.base import SectionRecords
from fedgraph.tasks.base import CellContext
from fedgraph.types import Graph
from tests.results import plain_result


def params(**changes: Any) -> task.Params:
    given: dict[str, Any] = {"graphs": 8, "pairs": 20, "noise": [0.05, 1.0], "max_nodes": 12, "training": {"epochs": 5}}
    return task.Params(**(given | changes))


def run(graph: Any, given: task.Params, tmp_path: Path, seeds: int) -> tuple[list[Any], SectionRecords]:
    where = CellContext("t", "d", graph, 0, seeds, runtime.start("serial"))
    store, cells = CellStore(tmp_path), task.cells(given, where)
    outcomes = []
    for cell in cells:
        assert task.plan(given, cell, where) is None
        outcomes.append(task.run(given, cell, where))
        store.save(outcomes[-1])
    found = [store.load(cell) for cell in cells]
    return outcomes, SectionRecords("graph_starts", "t", "d", given.model_dump(), tuple(found))


def test_gains_and_budgets(library: Graph, tmp_path: Path) -> None:
    outcomes, records = run(library, params(), tmp_path, 2)
    by = {(e.variant, e.seed): o for e, o in zip(records.entries, outcomes, strict=True)}
    for seed in (0, 1):
        product = by["product", seed].metrics
        assert product["gain"] == product["lower"] == product["higher"] == 0.0
        for name, descents in (("nudged", 2), ("two random", 2), ("product, one random", 2), ("noise 0.05", 2),
                               ("product, two random", 3), ("product, noise 0.05", 3)):  # fmt: skip
            assert by[name, seed].facts.descents == descents
            found = by[name, seed].metrics
            assert found["gain"] == pytest.approx(1 - found["objective"] / product["objective"])
            if name.startswith("product,"):
                assert found["gain"] >= 0.0
                assert found["higher"] == 0.0
                assert found["iterations"] > product["iterations"]
        assert by["product, two random", seed].metrics["gain"] >= by["product, one random", seed].metrics["gain"]
        assert by["noise 1", seed].metrics["noised_objective"] > product["objective"]
    assert by["product", 0].metrics["objective"] != by["product", 1].metrics["objective"], "a repetition draws its own sample"
    assert all(o.account is None and not o.releases for o in outcomes), "raw data: no price is claimed"


@pytest.mark.parametrize(("noise", "rival", "verdict"), [
    ([0.05, 0.06, 0.07], [0.0, 0.0, 0.0], "noise ends lower"),
    ([0.0, 0.0, 0.01], [0.05, 0.06, 0.07], "the random vertices end lower"),
    ([0.0, 0.1, -0.1], [0.0, -0.1, 0.1], "no difference"),
])  # fmt: skip
def test_the_verdict_follows_the_paired_difference(noise: list[float], rival: list[float], verdict: str) -> None:
    from benchmarks.reproductions.facts import GraphStartsCellFacts
    from fedgraph.federation import ALONE_WORLD
    from fedgraph.report.table import Line, rows_of

    def row(name: str, gains: list[float]) -> Line:
        facts = GraphStartsCellFacts(descents=2, noise=0.1 if name.startswith("noise") else None)
        given = ("t", "d", "GW(H)", name, ALONE_WORLD, "none", np.inf)
        rest = (facts, None, None, None, np.inf, None, "", {}, (), 0.0, ())
        (found,) = rows_of([plain_result(*given, i, {"gain": g}, *rest) for i, g in enumerate(gains)])
        return found

    assert f": {verdict}" in section._against([row("noise 0.1", noise)], row("two random", rival))


def test_it_takes_collections_and_says_when_graphs_are_missing() -> None:
    mutag = data.load("tu/mutag", stand_in=True)
    where = CellContext("t", "tu/mutag", mutag, 0, 1, runtime.start("serial"))
    given = params(max_nodes=60, pairs=5)
    assert np.isfinite(task.run(given, task.cells(given, where)[0], where).metrics["objective"])
    few, again = params(min_nodes=500, max_nodes=600), CellContext("t", "tu/mutag", mutag, 0, 1, runtime.start("serial"))
    with pytest.raises(DataError, match="8 graphs of 500 to 600 nodes were asked for"):
        task.run(few, task.cells(few, again)[0], again)
