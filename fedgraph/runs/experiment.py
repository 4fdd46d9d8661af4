"""The steps of a run, from the scenario to the report, on one page and without mathematics.

scenario → data → (task → partition → clients → release → server → comparison → scores) per cell → ledger → report
"""

from __future__ import annotations

import contextlib
import functools
import os
import statistics
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import yaml

from fedgraph import data, plugins, runtime, seeds
from fedgraph.cells import Cell, CellContext, Result, store
from fedgraph.errors import DataError, PrivacyError, RuntimeFailure, ScenarioError
from fedgraph.learning import public_cache
from fedgraph.methods import Plan, method_kinds
from fedgraph.privacy import budget_book
from fedgraph.runs import live, schedule
from fedgraph.runs.charged import ChargedRun
from fedgraph.runs.console import Console
from fedgraph.runs.reporting import Reporting
from fedgraph.runs.schedule import ScheduledStage
from fedgraph.runtime import Runtime
from fedgraph.scenario import ReadyScenario, ScenarioDataset
from fedgraph.tasks import base as tasks
from fedgraph.types import Graph, GraphCollection, describe_graph


def run(
    ready: ReadyScenario,
    out: Path,
    data_root: Path | None,
    resume: bool,
    console: Console,
    given: Mapping[str, Graph | GraphCollection] | None = None,
) -> Path:
    """Everything that a scenario asks for.

    Args:
        ready: The scenario, checked.
        out: The folder of the run.
        data_root: Where data sets are looked for first; None: as the scenario and the environment say.
        resume: Whether a run that is there goes on.
        console: What a person sees.
        given: Data sets that are in memory, by label.

    Returns:
        The folder with the results.

    Raises:
        ScenarioError: The folder or the scenario does not fit.
        DataError: Data cannot be read.
        PrivacyError: The budget does not allow it.
        RuntimeFailure: Cells failed; the others are in the folder.
    """
    store.require_folder(out, resume)  # before data are read and Ray starts
    text = yaml.safe_dump(ready.resolved, sort_keys=False, allow_unicode=True)
    comparable = yaml.safe_dump({k: v for k, v in ready.resolved.items() if k != "runtime"})
    known = given or {}
    settings = ready.scenario.runtime
    data.set_data_search_root(data_root)
    with runtime.start_runtime_beside(
        settings.engine, settings.workers, settings.gpus_per_worker, settings.silence
    ) as beginning:
        graphs = [
            known.get(d.label) or load_data(d, data_root, seeds.public_seed(ready.scenario.seed))
            for d in ready.scenario.datasets
        ]
        store.claim_folder(out, text, comparable + "".join(repr(g.provenance) for g in graphs), resume)
        with (
            store.lock_folder(out),
            public_cache.opened() if settings.engine == "ray" else contextlib.nullcontext(),
        ):
            try:
                return _computed(ready, graphs, out, text, console, beginning)
            except (ScenarioError, DataError, PrivacyError):
                store.disclaim_folder(out)
                raise


def _computed(
    ready: ReadyScenario,
    graphs: list[Graph | GraphCollection],
    out: Path,
    text: str,
    console: Console,
    beginning: runtime.RuntimeBeginning,
) -> Path:
    """Every cell that is missing, and the report. ``RuntimeFailure`` at the end where cells failed; the others are whole."""
    began, asked = time.time(), ready.scenario.runtime
    kept = store.CellStore(out)
    console.say(": ".join(filter(None, (ready.scenario.name, ready.scenario.title))) + f" → {out}")
    for graph in graphs:
        console.say(describe_graph(graph))
    here = beginning.ready() if asked.engine == "serial" else runtime.start("serial")  # plans need no Ray
    stages = tuple(stages_of(ready, graphs, here, console, store.CellPairStore(out)))
    todo = [(stage, cell) for stage in stages for cell in stage.cells if not kept.has(cell)]
    for line in kept.damaged:
        console.say(f"{line}; it is computed again")
    rounds_of, declared = _require_plans(ready, [(stage, cell) for stage in stages for cell in stage.cells if cell.seed == 0])
    charged = None if ready.book is None else ChargedRun.of(ready.book, out, graphs[0])
    if charged is not None:
        charged.charge(stages, todo)
    elif any(d.name.startswith("own/") for d in ready.scenario.datasets):
        console.say(budget_book.NOT_COUNTED)
    # The dearest first. Then trainings of few rounds, which the server computes, so that clients are busy with the others.
    todo.sort(key=lambda one: (not _is_ceiling(one[1]), rounds_of.get(one[0], 0.0)))
    total = sum(len(stage.cells) for stage in stages)
    rounds: dict[str, object] = {"federations": schedule.describe_rounds(asked.engine, asked.spread)}
    reporting = Reporting(ready, graphs, out, text, stages, kept, rounds | {"runtime": asked.engine}, began)
    reporting.plans = declared
    reporting.write_environment()
    reporting.write_first_page()
    workers = 1 if asked.engine == "serial" else asked.workers or os.cpu_count() or 1
    console.plan(total, total - len(todo), [cell for _, cell in todo], workers)
    engine: Runtime | None = None

    def begun() -> Runtime:
        """The engine, which knows what every process has to know."""
        nonlocal engine
        engine = beginning.ready()
        engine.tell(data.set_data_search_root, data.data_search_root())
        engine.tell(public_cache.set_folder, public_cache.folder())
        root = stages[0].context.root if stages else 0
        if isinstance(root, seeds.SecretSeed):  # beside this one, the only copies of the key: in the memory of the workers
            engine.tell(seeds.hold_secret_seed, root.key)
        reporting.where = engine.describe() | rounds
        reporting.write_environment()
        console.follow(out, engine)
        return engine

    with reporting.told_how_to_go_on():
        try:
            for done in schedule.compute_cells(todo, begun, console, asked.spread, beginning.is_up):
                _save(done, kept, charged, console)
                if engine is not None and not done.failed:
                    engine.spent(tuple(map(str, done.path)), done.epsilon_provable)
                reporting.report_now_and_then()
            reporting.where = beginning.ready().describe() | rounds
        except BaseException:  # also Ctrl-C: what is done has its page
            reporting.report_so_far()
            raise
        beginning.ready().close()
        console.close()
        failed = reporting.report(console)
    (out / live.LIVE_FILE).unlink(missing_ok=True)  # the report says more
    reporting.hide_times()
    if failed:
        first = "; ".join(f"{f.task}/{f.dataset}/{f.method}/{f.variant}: {f.failed}" for f in failed[:3])
        others = f", the others are in {out}" if len(failed) < total else f"; the report is in {out}"
        raise RuntimeFailure(f"{len(failed)} of {total} cells failed{others}; --resume tries again. {first}")
    return out


def _save(done: Result, kept: store.CellStore, charged: ChargedRun | None, console: Console) -> None:
    """Keep what a cell found, or why it failed."""
    if charged is not None and not done.failed:
        charged.note(done)
    kept.save(done)
    if done.failed:
        console.say(f"FAILED {done.name}: {done.failed}")
    else:
        console.note_score(done, done.metrics)


def _is_ceiling(cell: Cell) -> bool:
    """Whether its method protects nothing: such cells train longest. A task's own rows have no method."""
    return cell.method in plugins.names("methods") and method_kinds.load(cell.method).OFFERS.never_private


def _require_plans(
    ready: ReadyScenario, first: Iterable[tuple[ScheduledStage, Cell]]
) -> tuple[dict[ScheduledStage, float], dict[Cell, Mapping[str, object]]]:
    """Every row must have a plan before the first cell runs; ``ScenarioError`` that names the place otherwise.

    Args:
        first: The cell of each row's first seed.

    Returns: of each stage, how many rounds its plans have on average; of each row that releases something its plan, JSON-ready.
    """
    found: dict[ScheduledStage, list[int]] = {}
    declared: dict[Cell, Mapping[str, object]] = {}
    for stage, cell in first:
        made = plan_cell(ready, stage, cell)
        found.setdefault(stage, []).append(0 if made is None else made.schedule.rounds)
        if made is not None:
            declared[cell.row] = made.to_dict()
    return {stage: statistics.fmean(rounds) for stage, rounds in found.items()}, declared


def plan_cell(ready: ReadyScenario, stage: ScheduledStage, cell: Cell) -> Plan | None:
    """The plan of one cell, which releases nothing.

    Args:
        ready: The scenario.
        stage: Whose cell it is.
        cell: Which one.

    Returns:
        None where nothing is released.

    Raises:
        DataError: With file and line, where the data do not fit.
        ScenarioError: With file and line, where the scenario asks for what cannot be.
    """
    try:
        made = tasks.load(stage.task.kind).plan(stage.task.params, cell, stage.context)
    except DataError as error:
        raise DataError(f"{ready.place(stage.task, cell.entry)}: {error}") from error
    except Exception as error:
        raise ScenarioError(f"{ready.place(stage.task, cell.entry)}: {schedule.describe_error(error)}") from error
    return made


def stages_of(
    ready: ReadyScenario,
    graphs: list[Graph | GraphCollection],
    engine: Runtime,
    console: Console,
    pairs: store.CellPairStore | None = None,
) -> Iterator[ScheduledStage]:
    """Every task on every data set.

    Args:
        ready: The scenario.
        graphs: Its data sets, in their order.
        engine: Where rounds run.
        console: Is told how far a cell is.
        pairs: Where solved pairs are kept; None keeps none.

    Raises:
        DataError: With file and line, where a task cannot list its cells.
        ScenarioError: As for ``DataError``.
    """
    root = seeds.root_seed(ready.scenario.seed)
    for settings, graph in zip(ready.scenario.datasets, graphs, strict=True):
        name = settings.label or settings.name
        for task in ready.tasks:
            if task.datasets and name not in task.datasets:
                continue
            module, many = tasks.load(task.kind), ready.scenario.seeds
            context = CellContext(task.label, name, graph, root, many, engine, progress=console.progress, pairs=pairs)
            try:
                asked = tuple(module.cells(task.params, context))
            except (DataError, ScenarioError) as error:
                raise type(error)(f"{ready.place(task, None)}: {error}") from error
            if not asked:
                raise ScenarioError(f"{ready.place(task, None)}: task {task.label!r} on {name} leaves nothing to run")
            yield ScheduledStage(task, context, asked)


def load_data(settings: ScenarioDataset, data_root: Path | None, seed: int, stand_in: bool = False) -> Graph | GraphCollection:
    """Read one data set.

    It is looked for in ``--data-root``, then the scenario's root, then ``FEDGRAPH_DATA`` and the cache, and then downloaded.

    Args:
        settings: Of the data set.
        data_root: The folder of ``--data-root``.
        seed: For what is generated.
        stand_in: Whether a generated graph with the published counts is enough.
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
    """Cells, clients, releases and their ε, from published counts on a generated stand-in: no data set is read."""
    from fedgraph.runs import preview

    with runtime.start("serial") as engine:
        graphs = [load_data(d, None, seeds.public_seed(ready.scenario.seed), stand_in=True) for d in ready.scenario.datasets]
        for graph in graphs:
            console.say(f"planned on: {describe_graph(graph)}")
        plan = functools.partial(plan_cell, ready)
        preview.show(tuple(stages_of(ready, graphs, engine, console)), ready.scenario.seeds, plan, console)
