"""Every shipped scenario parses, comments its keys, can be planned on data of its own sizes, and its quick form runs."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest
import yaml

from fedgraph import plugins, run, runtime, seeds
from fedgraph.runs import experiment
from fedgraph.runs.console import Console
from fedgraph.scenario import read

FOLDER = Path(__file__).parents[2] / "scenarios"
FILES = sorted(FOLDER.glob("*.yaml"))


def test_they_parse_and_every_key_is_commented() -> None:
    """Whole and in quick form. A scalar key at first sight carries a comment saying what it is (unit, default)."""
    bare = []
    for path in FILES:
        for quick in (False, True):
            scenario = read.from_file(path, quick=quick).scenario
            assert (scenario.name, bool(scenario.title)) == (path.stem, True)
        seen = set()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            body = line.split("#")[0].strip().removeprefix("- ")
            key = body.split(":")[0]
            if ":" not in body or key.startswith(("title", "tasks.", "datasets.")) or "#" in line or key in seen:
                seen.add(key)
            elif not body.endswith(":"):
                bare.append(f"{path.name}:{number}: {body}")
    assert not bare


def test_scenarios_of_benchmarks_parse() -> None:
    for path in sorted((FOLDER.parent / "benchmarks").glob("*.yaml")):
        if path.name in ("papers.yaml", "pictures.yaml", "tables.yaml"):  # lists of what documents show
            continue
        assert read.from_file(path).scenario.name == path.stem


def planned(path: Path, first: bool) -> int:
    """How many cells of the first seed could be planned, on generated stand-ins with the published counts.

    first: one ε of each row, on the first data set of each task. An error of a plan names the scenario's line.
    """
    ready = read.from_file(path)
    scenario = ready.scenario
    if first:
        wanted = {
            task.datasets[0] if task.datasets else (d.label or d.name) for task in ready.tasks for d in scenario.datasets[:1]
        }
        scenario.datasets[:] = [d for d in scenario.datasets if (d.label or d.name) in wanted]
    root = seeds.public_seed(scenario.seed)
    graphs = [experiment.load_data(d, None, root, stand_in=True) for d in scenario.datasets]
    made, rows, tasks = 0, set(), set()
    with runtime.start("serial") as engine:
        for stage in experiment.stages_of(ready, graphs, engine, Console()):
            if first and stage.task.label in tasks:
                continue
            tasks.add(stage.task.label)
            for cell in stage.cells:
                row = (cell.task, cell.method, cell.variant, cell.world, cell.calibrated_by)
                if cell.seed == 0 and not (first and row in rows):
                    rows.add(row)
                    experiment.plan_cell(ready, stage, cell)
                    made += 1
    return made


def rooms_of(path: Path, quick: bool, *more: str) -> tuple[str, ...]:
    """Whose change asks for a test of a scenario: its own, what it names, what all of their kind share, and ``more``."""
    ready = read.from_file(path, quick=quick)
    rooms = {f"scenarios/{path.stem}", "runs", *more}
    for task in ready.tasks:
        said = yaml.safe_dump(task.params.model_dump(mode="json"))
        for kind in ("methods", "attacks", "partition"):
            named = {name for name in plugins.names(kind) if re.search(rf"\b{name}\b", said)}
            rooms |= {f"{kind}/{name}" for name in (*named, *(["base"] if named else []))}
        rooms |= {f"tasks/{task.kind}", "tasks/base"}
    return tuple(sorted(rooms))


def of_rooms(path: Path, *given: bool | str) -> pytest.MarkDecorator:
    """The file is read where tests of quality are chosen, and not while tests are collected."""
    return pytest.mark.quality.with_args(functools.partial(rooms_of, path, *given))


# The others are planned where a room of theirs changed; every row of the main job is in test_main_job.py.
ALWAYS = {"card", "quickstart"}
PLANNED = [
    pytest.param(f, id=f.stem, marks=[] if f.stem in ALWAYS else [of_rooms(f, False, "privacy", "scenario", "federation")])
    for f in FILES
]


@pytest.mark.parametrize("path", PLANNED)
def test_plans_as_it_stands(path: Path) -> None:
    assert planned(path, first=True)


@pytest.mark.slow
@pytest.mark.quality("methods", "partition", "privacy", "scenario", "tasks", "federation")
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_plans_every_budget_on_every_data_set(path: Path) -> None:
    """Minutes in all. What needs a large generated graph is planned on it."""
    assert planned(path, first=False)


SHORT = {"card", "dpar_split", "quickstart"}  # under a minute; all together take most of an hour, so the others are slow, too


def quick_marks(path: Path) -> list[pytest.MarkDecorator]:
    return [of_rooms(path, True), *([] if path.stem in SHORT else [pytest.mark.slow])]


QUICK = [pytest.param(f, marks=quick_marks(f), id=f.stem) for f in FILES]


@pytest.mark.dataset
@pytest.mark.parametrize("path", QUICK)
def test_quick_form_runs(path: Path, tmp_path: Path) -> None:
    assert run.main([str(path), "--quick", "--runtime", "serial", "--out", str(tmp_path / "out")]) == 0
    assert list((tmp_path / "out").rglob("results.csv"))


def test_a_scenario_is_run_again_where_a_file_that_it_names_changed() -> None:
    assert {"methods/dpar", "methods/base", "tasks/node_classification", "runs"} <= set(
        rooms_of(FOLDER / "dpar_split.yaml", True)
    )
    assert "methods/gap_edge" not in rooms_of(FOLDER / "dpar_split.yaml", True)
    assert "attacks/lira" in rooms_of(FOLDER / "attacks.yaml", True)
