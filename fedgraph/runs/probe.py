"""What a scenario will take, and how much a draft may ask for: cells of each method are tried.

A *method* is a row: a task, a data set, a method and its variant. Its cheapest cell is run in this process, one curator's where
it has one, and then, in the time that is left, one at several clients. What these took, times the numbers of cells, is a range.
A cell that takes too long is stopped, and its rounds say how far it was. Nothing is kept.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fedgraph import data, runtime, seeds
from fedgraph.cells import Cell, CellKind
from fedgraph.errors import FedgraphError
from fedgraph.runs import console, experiment, schedule
from fedgraph.runs.console import Console
from fedgraph.runs.schedule import ScheduledStage
from fedgraph.runtime import Runtime
from fedgraph.scenario import ReadyScenario, Wanted, WantedSize, draft, read

_SHARE = 0.4  # of the trial's time that one cell may take
_FITS = 140.0  # processor seconds of a draft's cells: two minutes on two cores, start and report included
_WITH_DRAFT = 160.0  # with those that the draft itself has taken, of a graph that takes long to read
_DRAFT_PROBE = 12.0  # seconds of processor time
_TRIED_AGAIN = 4.0  # seconds for the rows of the draft that is written, where they are dearer than those that were tried
_CHEAPEST = 0.6  # share of a trial's time for the cheapest cells
_DEARER = 3.0  # times the cheapest that a cell at several clients may take, where none was tried
_LEAST = 4  # settings of a comparison, from the dearest to the cheapest
_ONE = "one for each method, level of trust, ε and seed"


@dataclass(frozen=True)
class _Tried:
    """One cell."""

    seconds: float  # Of the trial's clock; of a cell that was stopped, with what its other rounds would need
    whole: bool = True  # Whether it was not stopped
    failed: str = ""  # Why it has no result, and would have none in the run; empty where it has one


@dataclass(frozen=True)
class _Findings:
    """What a trial says of a scenario."""

    counts: tuple[str, ...]  # One line for each task and data set
    estimate: str  # One line for all cells, and one for each method that was tried
    failing: tuple[str, ...] = ()  # Methods whose cell fails, and why


class _Enough(Exception):
    """Raised inside a cell that has shown how long it takes. left: seconds that its other rounds would need."""

    def __init__(self, left: float) -> None:
        super().__init__(left)
        self.left = left


def probe_kinds(
    stages: Sequence[ScheduledStage], seconds: float, clock: Callable[[], float] = time.perf_counter, apart: bool = False
) -> dict[CellKind, _Tried]:
    """The cheapest cell of each method, for about so many seconds of ``clock``; at least one whole or stopped cell.

    apart: instead a cell at several clients, of each method that has some beside its cheapest.
    """
    cheapest: dict[tuple[str, str, str, str], tuple[ScheduledStage, Cell]] = {}
    for stage in stages:
        whole = {cell.kind[:4] for cell in stage.cells if cell.world.trust.whole}
        for cell in sorted(stage.cells, key=lambda cell: bool(cell.world.trust.whole) is apart):
            if not apart or (cell.kind[:4] in whole and not cell.world.trust.whole):
                cheapest.setdefault(cell.kind[:4], (stage, cell))
    began, tried = clock(), dict[CellKind, _Tried]()
    for stage, cell in cheapest.values():
        left = seconds - (clock() - began)
        if tried and left <= 0:
            break
        most = max(min(_SHARE * seconds, 0.5 * left), left / (len(cheapest) - len(tried)))
        tried[cell.kind] = _tried(stage, cell, most, clock)
    return tried


@dataclass
class _Reports:
    """What a running cell said."""

    began: float  # when, in seconds
    first: tuple[float, float] | None = None  # time and share of its first report; None before it
    share: float = 0.0  # of its last report, 0 … 1

    def add(self, now: float, share: float) -> None:
        if self.first is None or share < self.share:
            self.first = now, share
        self.share = share

    def rest(self, now: float) -> float | None:
        """Seconds, at the pace since the first report; None before a second one."""
        if self.first is None or self.share <= self.first[1]:
            return None
        return (now - self.first[0]) * (1 - self.share) / (self.share - self.first[1])


def _tried(stage: ScheduledStage, cell: Cell, most: float, clock: Callable[[], float]) -> _Tried:
    began = clock()
    reports = _Reports(began)

    def progress(_: str, done: int, total: int) -> None:
        reports.add(clock(), done / max(total, 1))
        rest = reports.rest(clock())
        if clock() - began > most and rest:
            raise _Enough(rest)

    try:
        schedule.run_cell(stage.task, cell, replace(stage.context, progress=progress))
    except _Enough as enough:
        return _Tried(clock() - began + enough.left, whole=False)
    except FedgraphError as error:  # a cell that fails is a row with its reason when the scenario runs
        return _Tried(clock() - began, failed=str(error))
    return _Tried(clock() - began)


def _seconds_of_cells(cells: Iterable[Cell], tried: Mapping[CellKind, _Tried]) -> float:
    """All cells one after another. A cell takes what its method's took that was tried, else what these took on average."""
    rows = {kind[:4]: one.seconds for kind, one in tried.items()}
    mean = statistics.fmean(rows.values())
    return sum(count * rows.get(row, mean) for row, count in Counter(cell.kind[:4] for cell in cells).items())


def _range_of_cells(
    cells: Iterable[Cell], tried: Mapping[CellKind, _Tried], apart: Mapping[CellKind, _Tried]
) -> tuple[float, float]:
    """(by the cheapest cells; by those at several clients, as far as cells are such), one cell after another."""
    rows, dear = ({kind[:4]: one.seconds for kind, one in found.items()} for found in (tried, apart))
    whole = {kind[:4] for kind in tried if kind[4].trust.whole}
    most = max((dear[row] / max(rows[row], 1e-3) for row in dear if row in rows), default=_DEARER)
    mean, low, high = statistics.fmean(rows.values()), 0.0, 0.0
    for cell in cells:
        row = cell.kind[:4]
        cheapest = rows.get(row, mean)
        low += cheapest
        beyond = not cell.world.trust.whole and (row in whole or row not in rows)
        high += max(cheapest, dear.get(row, most * cheapest)) if beyond else cheapest
    return low, high


def probe_scenario(ready: ReadyScenario, data_root: Path | None, seconds: float) -> _Findings:
    """Count the cells of a scenario, and try one of each method.

    Args:
        ready: The scenario.
        data_root: Where data sets are looked for first.
        seconds: Of processor time for the trial; 0: generated stand-ins take the place of the data, and nothing is tried.
    """
    data.set_data_search_root(data_root)
    seed = seeds.public_seed(ready.scenario.seed)
    graphs = [experiment.load_data(d, data_root, seed, stand_in=seconds == 0) for d in ready.scenario.datasets]
    with runtime.start("serial") as engine:
        stages = tuple(experiment.stages_of(ready, graphs, engine, Console(quiet=True)))
        counts = tuple(f"{s.task.label} on {s.context.dataset}: {len(s.cells)} cells" for s in stages)
        every = [cell for stage in stages for cell in stage.cells]
        if not seconds:
            return _Findings(counts, f"{len(every)} cells in all, {_ONE}; nothing was tried.")
        began = time.process_time()
        tried = probe_kinds(stages, _CHEAPEST * seconds, time.process_time)
        left = seconds - (time.process_time() - began)
        apart = probe_kinds(stages, left, time.process_time, apart=True) if left > 0 else {}
    sizes = Counter(cell.kind[:4] for cell in every)
    low, high = map(console.format_span, _range_of_cells(every, tried, apart))
    total = f"about {low}" if low == high else f"{low} to {high}"
    said = [f"{len(every)} cells in all, {_ONE}: {total} of one core, by trials of each method, without start and report:"]
    for kind, one in tried.items():
        stopped = "" if one.whole else ", by its first rounds"
        dearer = next((f", {_words(k)}: {two.seconds:.1f} s" for k, two in apart.items() if k[:4] == kind[:4]), "")
        said.append(f"  {kind[0]} · {_words(kind)}: {one.seconds:.1f} s{stopped}{dearer}; × {sizes[kind[:4]]}")
    if left := len(sizes) - len(tried):
        said.append(f"  {left} more method{'s were' if left > 1 else ' was'} not tried, and counted as the others are")
    failing = tuple(f"{_words(kind)}: {one.failed}" for kind, one in tried.items() if one.failed)
    return _Findings(counts, "\n".join(said), failing)


def _words(kind: CellKind) -> str:
    method, variant, world = kind[2:]
    return f"{method if variant in ('default', method) else variant} ({world.words})"


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
        costs = {(name, str(d.settings.get("label"))): [c for c, _ in d.cheaper] for name, d in draft.rows_for(wanted)}
        fits = min(_FITS, _WITH_DRAFT - (time.process_time() - began))
        for size in _sizes(len(wanted.trust), fixed_trust, wanted.data.federation and not wanted.links):
            asked = replace(wanted, size=size)
            now = {}
            for kind, one in tried.items():  # so many times dearer than in the cheapest draft
                steps = costs.get((kind[2], kind[3]), [1.0])
                pairs = draft.cost_of_pairs(size.cheaper, wanted.data.people) if kind[0] in draft.PAIRWISE_DRAFT_TASKS else None
                now[kind] = replace(one, seconds=one.seconds * (pairs or steps[min(size.cheaper, len(steps) - 1)]))
            stages = _stages(asked, Path(folder), engine)
            cells = [cell for stage in stages for cell in stage.cells]
            work = _seconds_of_cells(cells, now)
            if work <= fits:
                break
        few = "" if work <= fits else "; nothing smaller is left to write: fewer budgets or levels of trust are quicker"
        # what was only reckoned from the cheapest draft is tried as it is written, so that what is said was measured
        reckoned = {kind[:4] for kind, one in tried.items() if now[kind].seconds != one.seconds}
        left = [replace(stage, cells=tuple(c for c in stage.cells if c.kind[:4] in reckoned)) for stage in stages]
        if any(stage.cells for stage in left):
            work = _seconds_of_cells(cells, {**now, **probe_kinds(left, _TRIED_AGAIN, time.process_time)})
    words = (
        f"{len(cells)} cells: about {console.format_span(work)} of one core, by one cell of each method{few}{_shrunk(asked)}"
    )
    return replace(asked, fits=words)


def _shrunk(wanted: Wanted) -> str:
    """What a draft lacks since it would take too long on this machine; "" where it lacks nothing."""
    size, most = wanted.size, WantedSize()
    less = []
    for _, row in draft.rows_for(wanted):
        settings = row.cheaper[min(size.cheaper, len(row.cheaper) - 1)][1]
        if settings:
            less.append(f"{row.settings.get('label')} with {', '.join(f'{key}: {value}' for key, value in settings.items())}")
    if size.cheaper and wanted.data.collection is not None:
        less.append("fewer graphs are compared")
    if not size.spare:
        less.append("what adds little is left out")
    if size.seeds < most.seeds:
        less.append(f"seeds: {size.seeds} instead of {most.seeds}")
    if size.trust < len(wanted.trust):
        less.append(f"trust: {size.trust} of {len(wanted.trust)} levels")
    return f"; shrunk to two minutes by the time of these trials (another day it may differ): {'; '.join(less)}" if less else ""


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
    path.write_text(draft.as_yaml(wanted, folder), encoding="utf-8")
    given = [one for one in (wanted.data.graph, wanted.data.collection) if one is not None]
    return tuple(experiment.stages_of(read.from_file(path), given, engine, Console(quiet=True)))
