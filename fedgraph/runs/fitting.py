"""How much a draft may ask for on one's own graph: what fits into two minutes on two cores, decided by a short probe."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from fedgraph import runtime
from fedgraph.cells.cell import Kind
from fedgraph.methods.base import Draft
from fedgraph.runs import experiment, probe
from fedgraph.runs.console import Console, span
from fedgraph.runs.schedule import Stage
from fedgraph.runtime.base import Runtime
from fedgraph.scenario import draft, draft_collection, draft_rows, read
from fedgraph.scenario.draft import Size, Wanted

SECONDS = 100.0  # from the command to the answer, of the two minutes; the rest is for the draft itself
PROBE = 12.0  # seconds of processor time
WORKERS = 2
LEAST = 4  # settings of a comparison, from the dearest to the cheapest


def fitted(wanted: Wanted, fixed_trust: bool) -> Wanted:
    """The same with the size that fits. fixed_trust: the person said whom to trust, so no level is left out."""
    graph = wanted.data.graph
    if graph is None:
        return wanted
    with runtime.start("serial") as engine, tempfile.TemporaryDirectory() as folder:
        probed = _stages(replace(wanted, size=Size(seeds=1, cheaper=LEAST)), Path(folder), engine)
        tried = probe.probe_kinds(probed, PROBE, time.process_time)
        costs = {(name, str(d.settings.get("label"))): [c for c, _ in d.cheaper] for name, d in _rows(wanted)}
        for size in _sizes(len(wanted.trust), fixed_trust):
            asked = replace(wanted, size=size)
            now = {}
            for kind, one in tried.items():
                now[kind] = replace(one, seconds=one.seconds * _times(kind, size, costs, wanted.data.people))
            cells = [cell for stage in _stages(asked, Path(folder), engine) for cell in stage.cells]
            wall = probe.wall_seconds(*probe.seconds_of_cells(cells, now), "ray", WORKERS, WORKERS)
            if wall <= SECONDS:
                break
    few = "" if wall <= SECONDS else "; nothing smaller is left to write: fewer budgets or levels of trust are quicker"
    return replace(asked, fits=f"{len(cells)} cells: about {span(wall)} on {WORKERS} quiet cores{few}")


def _times(kind: Kind, size: Size, costs: Mapping[tuple[str, str], list[float]], people: int) -> float:
    """How much dearer a cell is than in the cheapest draft."""
    if kind[0] in draft_collection.PAIRWISE:
        return draft_collection.cost_of(size.cheaper, people)
    steps = costs.get((kind[2], kind[3]), [1.0])
    return steps[min(size.cheaper, len(steps) - 1)]


def _sizes(num_trust: int, fixed_trust: bool) -> Iterator[Size]:
    """From the most that is of use to the least: dear comparisons go first, then spare rows, then seeds, then trust."""
    yield from (Size(3, True, cheaper, num_trust) for cheaper in range(3))
    yield from (Size(3, False, cheaper, num_trust) for cheaper in range(2, LEAST + 1))
    yield Size(2, False, LEAST, num_trust)
    yield Size(1, False, LEAST, num_trust)
    yield from (Size(1, False, LEAST, least) for least in range(num_trust - 1, 0, -1) if not fixed_trust)


def _rows(wanted: Wanted) -> list[tuple[str, Draft]]:
    kind = "federation" if wanted.data.federation else "graph"
    return draft_rows.offered(kind, wanted.unit, wanted.data.crossing)  # type: ignore[arg-type]


def _stages(wanted: Wanted, folder: Path, engine: Runtime) -> tuple[Stage, ...]:
    path = folder / "draft.yaml"
    path.write_text(draft.text(wanted, folder), encoding="utf-8")
    given = [one for one in (wanted.data.graph, wanted.data.collection) if one is not None]
    return tuple(experiment.stages_of(read.load(path), given, engine, Console(quiet=True)))
