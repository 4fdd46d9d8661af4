"""Pairs of spaces: kept through an interruption and only for the very same question; which solver, how carefully."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from fedgraph import runtime
from fedgraph.cells.store import CellPairStore
from fedgraph.comparison import gromov, metric_space
from fedgraph.comparison.classify import ClassifySplit
from fedgraph.comparison.gromov import GromovOptions
from fedgraph.comparison.metric_space import MetricSpace
from fedgraph.comparison.solver_facts import SolverFacts
from fedgraph.tasks.base import CellContext, graphs


def spaces(seed: int = 0, count: int = 20) -> list[MetricSpace]:
    rng = np.random.default_rng(seed)
    return [metric_space.from_embedding(rng.random((n, 2)), features=rng.random((n, 1))) for n in rng.integers(1, 9, count)]


def context(folder: Path | None = None) -> CellContext:
    if folder is not None:
        folder.mkdir(exist_ok=True)
    kept = None if folder is None else CellPairStore(folder)
    return CellContext("t", "none", None, 0, 1, runtime.start("serial"), pairs=kept)


def test_an_interrupted_matrix_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, options, real = spaces(), GromovOptions(restarts=1), gromov.solve_pairs
    monkeypatch.setattr(graphs, "_PAIRS_PER_CHUNK", (30, 30))
    whole = graphs.solve_all(given, options, context())[0]
    calls: list[int] = []

    def stops_at_the_fourth(some, which, *rest, **named):
        calls.append(len(which))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(some, which, *rest, **named)

    monkeypatch.setattr(gromov, "solve_pairs", stops_at_the_fourth)
    with pytest.raises(KeyboardInterrupt):
        graphs.solve_all(given, options, context(tmp_path))
    for asked, solved in ((given, 190 - 3 * 30), (given, 0), (spaces(1), 190), (given[::-1], 190)):
        calls[:] = [0] * 4  # no further stop
        found, facts = graphs.solve_all(asked, options, context(tmp_path))
        assert sum(calls) == solved, "what was solved before is not solved again, and only the same question is known"
        if asked is given:
            assert np.array_equal(found, whole)
            assert [f"pairs/{f.name}" for f in (tmp_path / "pairs").iterdir()] == [facts.solved.file]


def _adds_and_closes(folder: Path, part: int) -> None:
    pairs = CellPairStore(folder)
    for number in range(20):
        which = np.array([[0, 1], [part, 10 + number]], np.int32)
        ones = np.ones(2, np.int32)
        pairs.load("x")
        pairs.add("x", {"pairs": which, "value": which.sum(1) * 1.0, "converged": ones > 0, "steps": ones})
        pairs.close("x")


def test_cells_of_several_curators_write_to_one_table(tmp_path: Path) -> None:
    """Rows without a model have the same spaces in every seed, so two curators may solve them at the same time."""
    method = multiprocessing.get_context("forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn")
    method.set_forkserver_preload([__name__])  # what four processes need is imported once
    with ProcessPoolExecutor(4, method) as processes:
        for done in [processes.submit(_adds_and_closes, tmp_path, part) for part in range(4)]:
            done.result()
    (file,) = (tmp_path / "pairs").iterdir()
    with np.load(file) as kept:
        assert kept["pairs"].tolist() == [[0, 1], *([part, 10 + number] for part in range(4) for number in range(20))]


def test_a_damaged_table_of_pairs_is_solved_again(tmp_path: Path) -> None:
    pairs = CellPairStore(tmp_path)
    pairs.add("x", {"a": np.arange(3)})
    pairs.add("x", {"a": np.arange(4)})
    (tmp_path / "pairs" / "x.0.npz").write_bytes(b"PK\x03\x04damaged")
    assert [part["a"].size for part in pairs.load("x")] == [4]


@pytest.mark.parametrize(("disk", "earlier"), [(False, (1,)), (True, (1, 2))])
def test_what_other_cells_asked_before_changes_no_record(tmp_path: Path, disk: bool, earlier: tuple[int, ...]) -> None:
    """Seeds of one row share a table; which is the first depends on who computes them, and on interruptions."""
    given, options = spaces(), GromovOptions(max_iterations=2)
    split = {seed: ClassifySplit(np.arange(5, 20), np.arange(0), np.arange(5) if seed else np.arange(3)) for seed in range(3)}
    where = tmp_path if disk else None

    def asked(seed: int, here: CellContext) -> tuple[np.ndarray, SolverFacts]:
        return graphs.solve_once(("k",), lambda: given, options, here, split[seed], 2)

    alone, facts = asked(0, context(tmp_path / "alone" if disk else None))
    shared = context(where)
    for seed in earlier:
        asked(seed, context(where) if seed == 2 else shared)
    found, later = asked(0, shared)
    assert np.array_equal(found, alone)
    assert facts.solved is not None
    assert facts.solved.pairs < 190
    assert later == facts
    whole = graphs.solve_once(("all",), lambda: given, options, shared, split[0], None)
    assert graphs.solve_once(("all",), lambda: given, options, shared, split[1], None)[0] is whole[0], "one draw for all splits"
    nearest = np.sort(found[:3, 5:], axis=1)[:, :2]
    assert np.array_equal(nearest, np.sort(whole[0][:3, 5:], axis=1)[:, :2]), "the two nearest of every test graph are solved"


def test_careful_is_never_worse() -> None:
    made, which = spaces(count=12), gromov.all_pairs(12)
    one, best = (gromov.solve_pairs(made, which, graphs.SolverSettings(quality=q).options()).value for q in ("fast", "careful"))
    assert (best <= one + 1e-12).all()
    assert (best < one - 1e-6).any(), "several starts should find a lower minimum somewhere"
