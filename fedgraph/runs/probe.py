"""What a scenario will take, from a short probe: a few of its cells are run for real and the others are like them.

Cells that differ only in ε, reading and seed are one *group*: they do the same work. For as long as there is time, one cell of
each group is run in this process, those of the largest groups first. A group that was not reached is taken to be as long as the
mean of those that were. Nothing is kept.
"""

from __future__ import annotations

import json
import resource
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from fedgraph import data, runtime, seeds
from fedgraph.cells import entry
from fedgraph.cells.cell import Cell
from fedgraph.runs import experiment, schedule
from fedgraph.runs.console import Console
from fedgraph.scenario.read import Ready
from fedgraph.worlds.world import World

Group = tuple[str, str, str, str, World]


@dataclass(frozen=True)
class Found:
    """counts: one line per task and data set. estimate: one or two sentences."""

    counts: tuple[str, ...]
    estimate: str


def probe_scenario(ready: Ready, data_root: Path | None, seconds: float) -> Found:
    """Count the cells; with ``seconds`` > 0 also load the data and probe."""
    probes = seconds > 0
    began = time.monotonic()
    data.look_in(data_root)
    graphs = [
        experiment.load(d, data_root, seeds.public(ready.scenario.seed), stand_in=not probes) for d in ready.scenario.datasets
    ]
    loading = time.monotonic() - began
    with runtime.start("serial") as engine:
        console = Console(quiet=True)
        stages = tuple(experiment.stages_of(ready, graphs, engine, console))
        counts = tuple(f"{s.task.label} on {s.context.dataset}: {len(s.cells)} cells" for s in stages)
        every = [cell for stage in stages for cell in stage.cells]
        total = f"{len(every)} cells in all"
        if not probes:
            return Found(counts, f"{total}; nothing was probed.")
        sizes = Counter(_group(cell) for cell in every)
        first = {_group(cell): (stage, cell) for stage in reversed(stages) for cell in reversed(stage.cells)}
        took: dict[Group, tuple[float, int]] = {}
        for group, _ in sizes.most_common():
            if took and time.monotonic() - began > seconds:
                break
            stage, cell = first[group]
            start = time.monotonic()
            console.begin(cell)
            outcome = schedule.timed(stage.task, cell, stage.context)[0]
            console.finish(cell)
            written = len(json.dumps(entry.to_json(entry.entry_of(cell, outcome, 0.0))))
            took[group] = (time.monotonic() - start, written)
    mean = sum(t for t, _ in took.values()) / len(took)
    wall = loading + sum(number * (took[group][0] if group in took else mean) for group, number in sizes.items())
    size = sum(number * (took[group][1] if group in took else 0) for group, number in sizes.items())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    known = f"{len(took)} of {len(sizes)} kinds of cells were tried"
    return Found(
        counts,
        f"{total}: about {wall / 60:.1f} minutes in one process, less with several workers; about {memory:.1f} GB of memory "
        f"for each process; about {max(size / 1e6, 0.1):.1f} MB on disk without figures ({known}).",
    )


def _group(cell: Cell) -> Group:
    return (cell.task, cell.dataset, cell.method, cell.variant, cell.world)
