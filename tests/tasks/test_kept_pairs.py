"""What is solved is kept: pair by pair, through an interruption, and only for the very same question."""

from __future__ import annotations

import multiprocessing
import re
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from fedgraph import runtime
from fedgraph.cells.cell import Cell
from fedgraph.cells.result import Result
from fedgraph.cells.store import CellPairStore
from fedgraph.cells.task_facts import GraphClusteringCellFacts
from fedgraph.comparison import gromov, metric_space
from fedgraph.comparison.classify import ClassifySplit
from fedgraph.comparison.gromov import GromovOptions
from fedgraph.comparison.metric_space import MetricSpace
from fedgraph.comparison.solver_facts import SolverFacts
from fedgraph.report.sections.base import SectionRecords, build_sections
from fedgraph.runs.console import Console
from fedgraph.tasks.base import CellContext, graphs
from fedgraph.worlds.world import ALONE_WORLD, JOINED_WORLD


def spaces(seed: int = 0) -> list[MetricSpace]:
    rng = np.random.default_rng(seed)
    return [metric_space.from_embedding(rng.random((n, 2)), features=rng.random((n, 1))) for n in rng.integers(1, 9, 20)]


def context(folder: Path | None) -> CellContext:
    kept = None if folder is None else CellPairStore(folder)
    if folder is not None:
        folder.mkdir(exist_ok=True)
    return CellContext("t", "none", None, 0, 1, runtime.start("serial"), pairs=kept)


def test_an_interrupted_matrix_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, options, real = spaces(), GromovOptions(restarts=1), graphs._solve_chunk
    monkeypatch.setattr(graphs, "_PAIRS_PER_CHUNK", (30, 30))
    whole = graphs.solve_all(given, options, context(None))[0]
    calls: list[int] = []

    def stops_at_the_fourth(which, *rest):
        calls.append(len(which))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(which, *rest)

    monkeypatch.setattr(graphs, "_solve_chunk", stops_at_the_fourth)
    with pytest.raises(KeyboardInterrupt):
        graphs.solve_all(given, options, context(tmp_path))
    calls[:] = [0] * 4  # no further stop
    found, facts = graphs.solve_all(given, options, context(tmp_path))
    assert sum(calls) == 190 - 3 * 30, "what was solved before is not solved again"
    assert np.array_equal(found, whole)
    calls[:] = [0] * 4
    assert np.array_equal(graphs.solve_all(given, options, context(tmp_path))[0], whole)
    assert not sum(calls)
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


@pytest.mark.parametrize("earlier", [(), (1,), (1, 2)])
@pytest.mark.parametrize("disk", [False, True])
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


def test_value_convergence_and_steps_of_each_pair_can_be_read(tmp_path: Path) -> None:
    given, options = spaces(), GromovOptions(max_iterations=2)
    matrix, facts = graphs.solve_all(given, options, context(tmp_path))
    reference = gromov.solve_pairs(given, gromov.all_pairs(20), options)
    with np.load(tmp_path / facts.solved.file) as kept:
        which = kept["pairs"]
        assert np.array_equal(which, gromov.all_pairs(20))
        assert np.array_equal(kept["value"], matrix[which[:, 0], which[:, 1]])
        assert np.array_equal(kept["converged"], reference.converged)
        assert np.array_equal(kept["steps"], reference.iterations)
    assert facts.solved.pairs == 190
    assert 0 < facts.solved.converged == reference.converged.sum() < 190
    results = tuple(
        Result.of(Cell("t", "d", "m", "v", ALONE_WORLD, 1.0, "provable", seed), facts=GraphClusteringCellFacts(solver=facts))
        for seed in range(2)
    )
    words = " ".join(build_sections(SectionRecords("n", "graph_clustering", "t", "d", {}, results, ({}, {})), None).sentences)
    assert "of 190 pairs" in words, "one table of two seeds counts once"
    assert f"{reference.converged.sum()} ended by the tolerance, the others" in words


def test_only_the_same_question_has_the_same_name() -> None:
    given = spaces()
    name = graphs._name_of(given, GromovOptions())
    assert name == graphs._name_of(spaces(), GromovOptions())
    others = [
        graphs._name_of(given, GromovOptions(restarts=1)),
        graphs._name_of(given, GromovOptions(alpha=0.5)),
        graphs._name_of(spaces(1), GromovOptions()),
        graphs._name_of(given[::-1], GromovOptions()),
        graphs._name_of([*given[:-1], MetricSpace(given[-1].distances * 2, given[-1].weights)], GromovOptions()),
    ]
    assert len({name, *others}) == 6


def test_progress_says_what_is_left(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """How much of the cell is done tells what is left of it, whatever its stage."""
    clock = iter(float(s) for s in range(0, 1000, 10))
    monkeypatch.setattr("fedgraph.runs.console.time.monotonic", lambda: next(clock))
    monkeypatch.setattr("fedgraph.runs.console._SHARE_BETWEEN_LINES", 0.0)
    console = Console()
    console.plan(1, 0)
    console.begin(Cell("t", "d", "m", "v", JOINED_WORLD, 1.0, "none", 0))
    console.progress("rounds", 1, 2)
    console.progress("GW pairs", 100, 1000)
    console.progress("GW pairs", 600, 1000)
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert re.fullmatch(r"█{14}░{10} 0/1 cells, .+, about \d+ s left", last)


def test_tiny_spaces_are_solved_many_at_a_time() -> None:
    assert [graphs._chunk_size(np.full(3, n)) for n in (1, 5, 10, 20, 300)] == [20_000, 20_000, 8_000, 2_000, 2_000]
