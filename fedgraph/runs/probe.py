"""What a scenario will take, and how much a draft may ask for, from a short probe.

A few of its cells are run for real and the others are like them.

Cells that differ only in ε, reading and seed are one *kind*: they do the same work. While there is time, one cell of each kind
is run in this process: first one of each method, since methods differ most, then those of the largest kinds. A cell that takes
too long is stopped, and its rounds say how far it was. Nothing is kept.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fedgraph import data, runtime, seeds
from fedgraph.cells import entry
from fedgraph.cells.cell import Cell, CellKind
from fedgraph.errors import FedgraphError
from fedgraph.runs import experiment, schedule
from fedgraph.runs.console import Console, ConsoleReports, format_console_span
from fedgraph.runs.schedule import ScheduledStage
from fedgraph.runtime.base import Runtime
from fedgraph.scenario import draft, read
from fedgraph.scenario.read import ReadyScenario
from fedgraph.scenario.wanted import Wanted, WantedSize

_SHARE = 0.4  # of the probe's time that one cell may take
_EARLY = 0.8  # trainings stop early now and then: the part of the other rounds that a stopped cell is taken to need
_BEGIN = {"serial": 6.0, "ray": 14.0}  # seconds for starting and for the report, on two quiet cores (2026-11)
_WORK_TO_BEGIN = {"serial": 6.0, "ray": 24.0}  # processor seconds for the same, those of two workers included
_LIBRARIES = 4.0  # processor seconds that reading the libraries takes where a start takes those of BEGIN
_ALL_OF_A_CORE = 0.95  # share of a core from which on a process was not held up
_FITS = 100.0  # seconds from the command to the answer, of the two minutes; the rest is for the draft itself
_WITH_DRAFT = 115.0  # seconds with those that the draft has taken, of a graph that takes long to read
_DRAFT_PROBE = 12.0  # seconds of processor time
_WORKERS = 2
_LEAST = 4  # settings of a comparison, from the dearest to the cheapest
_ONE = "one for each method, level of trust, ε and seed"
_HELD_UP = 1.25  # workers wait for each other at the end


@dataclass(frozen=True)
class _Tried:
    """One cell of a kind.

    Attributes:
        seconds: Of the probe's clock; of a cell that was stopped, with what its other rounds would need.
        written: Bytes of its record.
        whole: Whether it was not stopped.
        failed: Why it has no result, and would have none in the run; empty where it has one.
    """

    seconds: float
    written: int = 0
    whole: bool = True
    failed: str = ""


@dataclass(frozen=True)
class ProbeFindings:
    """What a probe says of a scenario.

    Attributes:
        counts: One line for each task and data set.
        estimate: A few sentences.
        failing: Kinds of cells that fail, and why.
    """

    counts: tuple[str, ...]
    estimate: str
    failing: tuple[str, ...] = ()


class _Enough(Exception):
    """Raised inside a cell that has shown how long it takes. left: seconds that its other rounds would need."""

    def __init__(self, left: float) -> None:
        super().__init__(left)
        self.left = left


def probe_kinds(
    stages: Sequence[ScheduledStage], seconds: float, clock: Callable[[], float] = time.perf_counter
) -> dict[CellKind, _Tried]:
    """One cell of each kind, for about so many seconds of ``clock``; at least one whole or stopped cell."""
    sizes = Counter(cell.kind for stage in stages for cell in stage.cells)
    first = {cell.kind: (stage, cell) for stage in reversed(stages) for cell in reversed(stage.cells)}
    seen: Counter[tuple[str, str, str, str]] = Counter()
    order: list[tuple[int, int, CellKind]] = []
    for kind in sorted(first, key=lambda k: -sizes[k]):
        order.append((seen[kind[:4]], -sizes[kind], kind))
        seen[kind[:4]] += 1
    began, tried = clock(), dict[CellKind, _Tried]()
    for _, _, kind in sorted(order, key=lambda o: o[:2]):
        left = seconds - (clock() - began)
        if tried and left <= 0:
            break
        stage, cell = first[kind]
        rows_left = max(1, len(seen) - len({k[:4] for k in tried}))
        tried[kind] = _tried(stage, cell, max(min(_SHARE * seconds, 0.5 * left), left / rows_left), clock)
    return tried


def _tried(stage: ScheduledStage, cell: Cell, most: float, clock: Callable[[], float]) -> _Tried:
    began = clock()
    reports = ConsoleReports(began)

    def progress(_: str, done: int, total: int) -> None:
        reports.add(clock(), done / max(total, 1))
        rest = reports.rest(clock())
        if clock() - began > most and rest:
            raise _Enough(rest)

    try:
        outcome = schedule.run_scheduled_cell(stage.task, cell, replace(stage.context, progress=progress))
    except _Enough as enough:
        return _Tried(clock() - began + _EARLY * enough.left, whole=False)
    except FedgraphError as error:  # a cell that fails is a row with its reason when the scenario runs
        return _Tried(clock() - began, failed=str(error))
    written = len(json.dumps(entry.entry_to_json(entry.make_entry(cell, outcome, 0.0))))
    return _Tried(clock() - began, written)


def _seconds_of_cells(cells: Iterable[Cell], tried: Mapping[CellKind, _Tried]) -> tuple[float, float]:
    """(all cells one after another, the longest), in processor seconds.

    A kind that was not tried is like its row elsewhere, else like the mean.
    """
    mean = statistics.fmean(t.seconds for t in tried.values())
    total = longest = 0.0
    for kind, count in Counter(cell.kind for cell in cells).items():
        alike = [t.seconds for k, t in tried.items() if k[:4] == kind[:4]] or [mean]
        one = tried[kind].seconds if kind in tried else max(alike)
        total, longest = total + count * one, max(longest, one)
    return total, longest


def _wall_seconds(
    total: float, longest: float, engine: str, workers: int | None, cores: int, others: float = 0.0, slow: float = 1.0
) -> float:
    """How long a run takes whose cells need ``total`` processor seconds, start and report included.

    others: how many other processes want the ``cores`` at the same time; all get equal parts of them. slow: of ``_slowness``.
    """
    side_by_side = 1 if engine == "serial" else workers or cores
    spread = total if side_by_side == 1 else max(_HELD_UP * total / side_by_side, longest)
    part = min(1.0, cores / (others + side_by_side))  # of a core, for each of the run's processes
    return (_BEGIN[engine] * slow + spread) / part


def _slowness(started: float) -> float:
    """How many times the processor seconds of quiet cores a start takes here.

    started: processor seconds that this process needed until it probes: it read the same libraries as a run. Programs
    that share a core's caches make each second do less. At most 3: the process may have done other things before.
    """
    return min(max(started / _LIBRARIES, 1.0), 3.0)


def _other_processes(worked: float, passed: float, cores: int, load: float) -> float:
    """How many others want the cores, from the processor seconds that one process got of the seconds that passed.

    load: the machine's own count of waiting processes, this one among them. One that got all of a core shows only that fewer
    than all cores were taken; then ``load`` says how many.
    """
    share = min(1.0, worked / max(passed, 1e-9))
    if share > _ALL_OF_A_CORE:
        return min(max(load - 1.0, 0.0), cores - 1.0)
    return cores / max(share, 1e-3) - 1.0


def probe_scenario(ready: ReadyScenario, data_root: Path | None, seconds: float) -> ProbeFindings:
    """Count the cells of a scenario, and say what they will take.

    Args:
        ready: The scenario.
        data_root: Where data sets are looked for first.
        seconds: Of processor time for the probe; 0: generated stand-ins take the place of the data, and nothing is probed.
    """
    if seconds:
        importlib.import_module("torch_geometric.nn")  # a run pays for that once, and no cell does
    began, started = time.perf_counter(), time.process_time()
    data.set_data_search_root(data_root)
    seed = seeds.public_seed(ready.scenario.seed)
    graphs = [experiment.load_experiment_data(d, data_root, seed, stand_in=seconds == 0) for d in ready.scenario.datasets]
    loading, reading = time.perf_counter() - began, time.process_time() - started
    with runtime.start("serial") as engine:
        stages = tuple(experiment.stage_experiment(ready, graphs, engine, Console(quiet=True)))
        counts = tuple(f"{s.task.label} on {s.context.dataset}: {len(s.cells)} cells" for s in stages)
        every = [cell for stage in stages for cell in stage.cells]
        if not seconds:
            return ProbeFindings(counts, f"{len(every)} cells in all, {_ONE}; nothing was probed.")
        before, worked = time.perf_counter(), time.process_time()
        tried = probe_kinds(stages, seconds, time.process_time)
        passed, worked = time.perf_counter() - before, time.process_time() - worked
    cores = os.cpu_count() or 1
    others = _other_processes(worked, passed, cores, os.getloadavg()[0])
    sizes = Counter(cell.kind for cell in every)
    asked = ready.scenario.runtime
    slow, (total, longest) = _slowness(started), _seconds_of_cells(every, tried)
    wall = loading + _wall_seconds(total, longest, asked.engine, asked.workers, cores, others, slow)
    work = reading + total + slow * _WORK_TO_BEGIN[asked.engine]
    size = sum(number * tried[kind].written for kind, number in sizes.items() if kind in tried)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    where = "in one process" if asked.engine == "serial" else f"with {asked.workers or os.cpu_count()} workers"
    disk = f"about {max(size / 1e6, 0.1):.1f} MB on disk without figures"
    said = [
        f"{len(every)} cells in all: about {format_console_span(wall)} ({_ONE}) on this machine {where} "
        f"({format_console_span(work)} of processors); "
        f"about {memory:.1f} GB of memory for each process; {disk} ({len(tried)} of {len(sizes)} kinds of cells were tried)."
    ]
    if others >= 1:
        said.append(f"Other programs are at work here: a process gets {min(1.0, cores / (others + 1)):.0%} of a core.")
    said += _named("Stopped before their end, so their time is a guess", [k for k, t in tried.items() if not t.whole])
    said += _named("Not tried, and taken to be like the others", [k for k in sizes if k not in tried])
    dear = max(sizes, key=lambda k: sizes[k] * (tried[k].seconds if k in tried else 0.0))
    part = sizes[dear] * tried[dear].seconds / max(total, 1e-9)
    if part > 0.3 and len(sizes) > 1:
        said.append(f"{part:.0%} of the computing is for {_words(dear)} ({sizes[dear]} cell{'' if sizes[dear] == 1 else 's'}).")
    return ProbeFindings(
        counts, "\n".join(said), tuple(f"{_words(kind)}: {one.failed}" for kind, one in tried.items() if one.failed)
    )


def _words(kind: CellKind) -> str:
    method, variant, world = kind[2:]
    return f"{method if variant in ('default', method) else variant} ({world.words})"


def _named(what: str, kinds: Sequence[CellKind]) -> list[str]:
    """One sentence that names the first of them; none where there are none."""
    more = f" and {len(kinds) - 6} more" if len(kinds) > 6 else ""
    return [f"{what}: {', '.join(map(_words, kinds[:6]))}{more}."] if kinds else []


def probe_draft_size(wanted: Wanted, fixed_trust: bool, began: float) -> Wanted:
    """A draft with the size that fits into two minutes.

    Args:
        wanted: What the draft is about.
        fixed_trust: Whether the person said whom to trust, so that no level is left out.
        began: Processor seconds of this process when the draft began.

    Returns:
        The same with its size and a sentence on it; unchanged where there is no single graph.
    """
    graph = wanted.data.graph
    if graph is None:
        return wanted
    with runtime.start("serial") as engine, tempfile.TemporaryDirectory() as folder:
        probed = _stages(replace(wanted, size=WantedSize(seeds=1, cheaper=_LEAST)), Path(folder), engine)
        tried = probe_kinds(probed, _DRAFT_PROBE, time.process_time)
        costs = {(name, str(d.settings.get("label"))): [c for c, _ in d.cheaper] for name, d in draft.draft_rows(wanted)}
        fits = min(_FITS, _WITH_DRAFT - (time.process_time() - began))
        for size in _sizes(len(wanted.trust), fixed_trust, wanted.data.federation and not wanted.links):
            asked = replace(wanted, size=size)
            now = {}
            for kind, one in tried.items():  # so many times dearer than in the cheapest draft
                steps = costs.get((kind[2], kind[3]), [1.0])
                pairs = (
                    draft.draft_cost_of_pairs(size.cheaper, wanted.data.people)
                    if kind[0] in draft.PAIRWISE_DRAFT_TASKS
                    else None
                )
                now[kind] = replace(one, seconds=one.seconds * (pairs or steps[min(size.cheaper, len(steps) - 1)]))
            cells = [cell for stage in _stages(asked, Path(folder), engine) for cell in stage.cells]
            wall = _wall_seconds(*_seconds_of_cells(cells, now), "ray", _WORKERS, _WORKERS)
            if wall <= fits:
                break
    few = "" if wall <= fits else "; nothing smaller is left to write: fewer budgets or levels of trust are quicker"
    return replace(asked, fits=f"{len(cells)} cells: about {format_console_span(wall)} on {_WORKERS} quiet cores{few}")


def _sizes(num_trust: int, fixed_trust: bool, owners: bool) -> Iterator[WantedSize]:
    """From the most that is of use to the least: dear comparisons go first, then spare rows, then seeds, then trust.

    owners: of a federation get advice from three seeds on, so their levels of trust go before seeds.
    """
    less_trust = () if fixed_trust else range(num_trust - 1, 0, -1)
    yield from (WantedSize(3, True, cheaper, num_trust) for cheaper in range(3))
    yield from (WantedSize(3, False, cheaper, num_trust) for cheaper in range(2, _LEAST + 1))
    if owners:
        yield from (WantedSize(3, False, _LEAST, least) for least in less_trust)
    else:
        yield WantedSize(2, False, _LEAST, num_trust)
        yield WantedSize(1, False, _LEAST, num_trust)
    yield from (WantedSize(1, False, _LEAST, least) for least in (less_trust or (num_trust,)))


def _stages(wanted: Wanted, folder: Path, engine: Runtime) -> tuple[ScheduledStage, ...]:
    path = folder / "draft.yaml"
    path.write_text(draft.draft_yaml(wanted, folder), encoding="utf-8")
    given = [one for one in (wanted.data.graph, wanted.data.collection) if one is not None]
    return tuple(experiment.stage_experiment(read.read_scenario_file(path), given, engine, Console(quiet=True)))
