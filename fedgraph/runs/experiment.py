"""One run, from its scenario to its report: the journey of the data on one page, without mathematics.

    scenario     what to run, checked                                      ``scenario.read``
    graph        the data, all read in one place                           ``data.load``
    federation   who holds what, who sees what, what is public             ``federation.Federation``, made by the cell's task
    plan         every release and its noise, from public facts alone      ``methods.<name>.plan``; of each row before any cell
    rounds       clients compute on their own subgraphs                    ``federation.rounds``, on the engine of ``runtime``
    release      a value is checked against its bound, noised, recorded    ``privacy.Desk``; nothing else leaves a client
    server       merges what clients released, or compares graphs by it    ``methods.<name>.server``, ``comparison``
    settle       prices the releases: ε                                    ``privacy.settle``
    answer       predictions, or clusters, are scored                      ``tasks.<name>``
    result       one record for each cell, which the report reads          ``cells.Result``, ``report``

A *cell* is one method in one world (who trains together, and whom they trust) at one budget with one seed. A task lists its
cells, plans them and runs them. All cells of one task on one data set are a *stage*; the cells that differ only in their seed
are a *row*. Steps *rounds* to *answer* happen inside a cell: ``schedule.compute_cells`` (where cells run, under Ray, too) calls
``tasks.<name>.run``, which trains and prices by ``tasks.base.cell_training``.

``run`` reads the data while the engine starts. ``_compute`` then plans every row, charges the budget, computes the cells that
the folder does not have yet, and writes the report.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import statistics
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import yaml

from fedgraph import cells, data, plugins, runtime, seeds
from fedgraph.cells import Cell, store
from fedgraph.documents import canonical
from fedgraph.errors import DataError, PrivacyError, RuntimeFailure, ScenarioError
from fedgraph.learning import public_cache
from fedgraph.methods import Plan, method_kinds
from fedgraph.privacy import budget_book
from fedgraph.runs import live, schedule
from fedgraph.runs.charged import ChargedRun
from fedgraph.runs.console import Console
from fedgraph.runs.reporting import Reporting
from fedgraph.runs.schedule import ScheduledStage
from fedgraph.scenario import ReadyScenario, ScenarioDataset
from fedgraph.tasks import Params
from fedgraph.tasks import base as tasks
from fedgraph.types import Graph, GraphCollection, GraphProvenance, describe_graph

_Graphs = Sequence[Graph | GraphCollection]


def run(
    ready: ReadyScenario,
    out: Path,
    data_root: Path | None,
    resume: bool,
    console: Console,
    given: Mapping[str, Graph | GraphCollection] | None = None,
) -> Path:
    """Computes every cell of a scenario that its folder does not have yet, and writes the report.

    Args:
        ready: The scenario, checked.
        out: The folder of the run.
        data_root: Where data sets are looked for first; None: as the scenario and the environment say.
        resume: Whether to continue the run that is in ``out``.
        console: Prints what a person sees.
        given: Data sets in memory, by label.

    Returns:
        The folder with the results.

    Raises:
        ScenarioError: The folder or the scenario does not fit.
        DataError: Data cannot be read.
        PrivacyError: The budget does not allow the releases.
        RuntimeFailure: Cells failed; the others are in the folder.
    """
    store.require_folder(out, resume)  # before data are read and Ray starts
    data.set_data_search_root(data_root)
    where, in_memory, seed = ready.scenario.runtime, given or {}, seeds.public_seed(ready.scenario.seed)
    with runtime.start_beside(where.engine, where.workers, where.gpus_per_worker, where.silence) as starting:
        graphs = [in_memory.get(d.label) or load_data(d, data_root, seed) for d in ready.scenario.datasets]
        with _own_folder(ready, graphs, out, resume):
            failed, total = _compute(ready, graphs, out, console, starting)
    if failed:
        first = "; ".join(f"{f.task}/{f.dataset}/{f.method}/{f.variant}: {f.failed}" for f in failed[:3])
        others = f", the others are in {out}" if len(failed) < total else f"; the report is in {out}"
        raise RuntimeFailure(f"{len(failed)} of {total} cells failed{others}; --resume tries again. {first}")
    return out


def _compute(
    ready: ReadyScenario, graphs: _Graphs, out: Path, console: Console, starting: runtime.RuntimeBeginning
) -> tuple[list[cells.Result], int]:
    """Computes every cell that ``out`` lacks, and writes the report. Returns (the cells that failed, number of all cells).

    ``starting`` is the engine, which may still be starting: ``ready()`` waits for it, ``is_up()`` does not.
    """
    began, where, kept = time.time(), ready.scenario.runtime, store.CellStore(out)
    console.say(": ".join(filter(None, (ready.scenario.name, ready.scenario.title))) + f" → {out}")
    for graph in graphs:
        console.say(describe_graph(graph))
    in_process = starting.ready() if where.engine == "serial" else runtime.start("serial")  # plans need no Ray
    stages = tuple(stages_of(ready, graphs, in_process, console, store.CellPairStore(out)))
    todo = [(stage, cell) for stage in stages for cell in stage.cells if not kept.has(cell)]
    for line in kept.damaged:
        console.say(f"{line}; it is computed again")
    plans = _plan_rows(ready, stages)  # noise and releases are fixed from public facts, before anything is trained
    schedule.share_prices(public_cache.folder())
    charged = _charged(ready, graphs, out, stages, todo, console)
    todo = _in_order(todo, plans)
    at = {"federations": schedule.describe_rounds(where.engine, where.spread), "runtime": where.engine}
    reporting = Reporting(ready, graphs, out, _text(ready), stages, kept, at, began, plans=_declared(plans))
    reporting.write_environment()
    reporting.write_first_page()
    total, left = sum(len(stage.cells) for stage in stages), len(todo)
    console.plan(total, total - len(todo))
    engine = functools.partial(_prepared_engine, starting, stages, reporting, console)
    with reporting.page_where_it_breaks_off():  # an interrupted run has a page of what is done
        for done in schedule.compute_cells(todo, engine, console, where.spread, starting.is_up):
            if charged is not None and not done.failed:
                charged.note(done)
            kept.save(done)
            if (left := left - 1) == 1:  # while the last cell runs
                threading.Thread(target=reporting.load_libraries, daemon=True).start()
            if done.failed:
                console.say(f"FAILED {done.name}: {done.failed}")
            else:
                console.note_score(done, done.metrics)
                if starting.is_up():  # for Ray's dashboard
                    starting.ready().spent(tuple(map(str, done.path)), done.epsilon_provable)
        reporting.note_engine(starting.ready())
        starting.ready().close()
        console.close()
        failed = reporting.report(console)
    (out / live.LIVE_FILE).unlink(missing_ok=True)  # the report says more
    reporting.hide_times()
    return failed, total


@contextlib.contextmanager
def _own_folder(ready: ReadyScenario, graphs: _Graphs, out: Path, resume: bool) -> Iterator[None]:
    """Claims the folder for this scenario on these data, and locks it; gives it back if the run cannot begin.

    A run that is continued must have the same scenario, but for its runtime, and the same data.
    """
    comparable = yaml.safe_dump({k: v for k, v in ready.resolved.items() if k != "runtime"})
    read = [*map(_content, graphs), *_masks(ready)]
    store.claim_folder(out, _text(ready), comparable + "".join(read), resume)
    cache = public_cache.opened() if ready.scenario.runtime.engine == "ray" else contextlib.nullcontext()
    with store.lock_folder(out), cache:
        try:
            yield
        except (ScenarioError, DataError, PrivacyError):
            store.disclaim_folder(out)
            raise


def _content(found: Graph | GraphCollection) -> str:
    """The content of a data set as text; of its provenance only the source."""
    bare = GraphProvenance(found.provenance.source, "")
    if isinstance(found, GraphCollection):
        found = replace(found, graphs=tuple(replace(graph, provenance=bare) for graph in found.graphs))
    return canonical.text(replace(found, provenance=bare))


def _masks(ready: ReadyScenario) -> Iterator[str]:
    """Digests of the files that name public nodes."""
    for params in (task.params for task in ready.tasks):
        mask = params.public_mask if isinstance(params, Params) else None
        if mask is not None and mask.is_file():
            yield hashlib.sha256(mask.read_bytes()).hexdigest()


def _text(ready: ReadyScenario) -> str:
    return yaml.safe_dump(ready.resolved, sort_keys=False, allow_unicode=True)


def _prepared_engine(
    starting: runtime.RuntimeBeginning, stages: Sequence[ScheduledStage], reporting: Reporting, console: Console
) -> runtime.Runtime:
    """Waits for the engine, and tells its processes where data and caches are, and the secret seed if there is one."""
    engine, root = starting.ready(), stages[0].context.root if stages else 0
    engine.tell(data.set_data_search_root, data.data_search_root())
    engine.tell(public_cache.set_folder, public_cache.folder())
    if isinstance(root, seeds.SecretSeed):  # the workers' memory has the only copies of the key beside this process
        engine.tell(seeds.hold_secret_seed, root.key)
    reporting.note_engine(engine)
    reporting.write_environment()
    console.follow(reporting.out, engine)
    return engine


def _charged(
    ready: ReadyScenario,
    graphs: _Graphs,
    out: Path,
    stages: Sequence[ScheduledStage],
    todo: Sequence[tuple[ScheduledStage, Cell]],
    console: Console,
) -> ChargedRun | None:
    """Charges every cell to the people's budget book before the first cell runs; None if there is no book."""
    if ready.book is None:
        if any(d.name.startswith("own/") for d in ready.scenario.datasets):
            console.say(budget_book.NOT_COUNTED)
        return None
    charged = ChargedRun.of(ready.book, out, graphs[0])
    charged.charge(stages, todo)
    return charged


_Plans = dict[tuple[ScheduledStage, Cell], Plan | None]


def _plan_rows(ready: ReadyScenario, stages: Sequence[ScheduledStage]) -> _Plans:
    """Plans the first cell of every row, before any cell runs; cells of other seeds are planned when they run.

    ``ScenarioError``, with the line of the scenario, for a row that cannot be planned.
    """
    first = [(stage, cell) for stage in stages for cell in stage.cells if cell.seed == 0]
    return {(stage, cell): plan_cell(ready, stage, cell) for stage, cell in first}


def _declared(plans: _Plans) -> dict[Cell, Mapping[str, object]]:
    """Row → its plan as JSON, for rows that release something."""
    return {cell.row: made.to_dict() for (_, cell), made in plans.items() if made is not None}


def _in_order(todo: Sequence[tuple[ScheduledStage, Cell]], plans: _Plans) -> list[tuple[ScheduledStage, Cell]]:
    """Cells in the order in which they run: methods without privacy first, because they train longest, then stages by their
    number of rounds, fewest first, so that the server computes these while clients are busy with the others.
    """
    rounds: dict[ScheduledStage, list[int]] = {}
    for (stage, _), made in plans.items():
        rounds.setdefault(stage, []).append(0 if made is None else made.schedule.rounds)
    mean = {stage: statistics.fmean(counts) for stage, counts in rounds.items()}
    return sorted(todo, key=lambda one: (not _is_ceiling(one[1]), mean.get(one[0], 0.0)))


def _is_ceiling(cell: Cell) -> bool:
    """Whether the cell's method has no privacy under any settings. Rows of the task itself have no method."""
    return cell.method in plugins.names("methods") and method_kinds.load(cell.method).OFFERS.never_private


def plan_cell(ready: ReadyScenario, stage: ScheduledStage, cell: Cell) -> Plan | None:
    """The plan of one cell, from public facts. Planning releases nothing.

    Args:
        ready: The scenario.
        stage: The stage of the cell.
        cell: The cell.

    Returns:
        The plan; None if the cell releases nothing.

    Raises:
        DataError: The data do not fit; the error names file and line of the scenario.
        ScenarioError: The row cannot be planned; the error names file and line.
    """
    try:
        return tasks.load(stage.task.kind).plan(stage.task.params, cell, stage.context)
    except DataError as error:
        raise DataError(f"{ready.place(stage.task, cell.entry)}: {error}") from error
    except Exception as error:
        raise ScenarioError(f"{ready.place(stage.task, cell.entry)}: {schedule.describe_error(error)}") from error


def stages_of(
    ready: ReadyScenario,
    graphs: _Graphs,
    engine: runtime.Runtime,
    console: Console,
    pairs: store.CellPairStore | None = None,
) -> Iterator[ScheduledStage]:
    """Every task on every data set, with its cells.

    Args:
        ready: The scenario.
        graphs: Its data sets, in their order.
        engine: Runs what planning needs in this process; under Ray cells have engines of their own.
        console: Shows the progress of a cell.
        pairs: Store of solved Gromov-Wasserstein pairs; None: they are not kept.

    Raises:
        DataError, ScenarioError: A task cannot list its cells; the error names file and line of the scenario.
    """
    root = seeds.root_seed(ready.scenario.seed)
    for settings, graph in zip(ready.scenario.datasets, graphs, strict=True):
        name = settings.label or settings.name
        for task in ready.tasks:
            if task.datasets and name not in task.datasets:
                continue
            module, many = tasks.load(task.kind), ready.scenario.seeds
            context = cells.CellContext(task.label, name, graph, root, many, engine, progress=console.progress, pairs=pairs)
            try:
                listed = tuple(module.cells(task.params, context))
            except (DataError, ScenarioError) as error:
                raise type(error)(f"{ready.place(task, None)}: {error}") from error
            if not listed:
                raise ScenarioError(f"{ready.place(task, None)}: task {task.label!r} on {name} leaves nothing to run")
            yield ScheduledStage(task, context, listed)


def load_data(settings: ScenarioDataset, data_root: Path | None, seed: int, stand_in: bool = False) -> Graph | GraphCollection:
    """Reads one data set.

    One folder is looked in: that of ``--data-root``, else the scenario's root, else ``FEDGRAPH_DATA``; then the cache; it
    is downloaded last.

    Args:
        settings: The data set's entry in the scenario.
        data_root: The folder of ``--data-root``.
        seed: Seed of generated data.
        stand_in: Whether to generate a graph with the published counts instead.
    """
    return data.load(
        settings.name,
        root=data_root or settings.root,
        when_unavailable=settings.when_unavailable,
        seed=seed,
        path=settings.path,
        parameters=settings.parameters,
        stand_in=stand_in,
    )


def dry_run(ready: ReadyScenario, console: Console) -> None:
    """Prints cells, clients, releases and their ε. Reads no data: a generated graph with the published counts stands in."""
    from fedgraph.runs import preview

    with runtime.start("serial") as engine:
        graphs = [load_data(d, None, seeds.public_seed(ready.scenario.seed), stand_in=True) for d in ready.scenario.datasets]
        for graph in graphs:
            console.say(f"planned on: {describe_graph(graph)}")
        plan = functools.partial(plan_cell, ready)
        preview.show(tuple(stages_of(ready, graphs, engine, console)), ready.scenario.seeds, plan, console)
