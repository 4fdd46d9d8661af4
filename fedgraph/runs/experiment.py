"""A run, from the scenario to the answer: the journey of the data on one page, and without mathematics.

    scenario     what is asked, checked                              ``scenario.read``
    graph        what is read, through one door                      ``data.load``
    federation   who holds what, who sees what, what is public       ``federation.Federation``, dealt by the task of a cell
    plan         every release and its noise, from public facts      ``methods.<name>.plan``, of all rows before the first cell
    rounds       clients compute, again and again                    ``federation.rounds``, at the places of ``runtime``
    release      bounded, noised, written down; all else stays       ``privacy.Desk``
    server       merges what was released, or compares graphs by it  ``methods.<name>.server``, ``comparison``
    settle       what the releases cost: ε                           ``privacy.settle``
    result       one record for each cell, kept, reported            ``cells.Result``, ``report``

A *cell* is one method in one world at one budget with one seed: a task makes the cells, plans them and runs them. All cells of
one task on one data set are a *stage*; the cells that differ in their seed alone are a *row*. From *rounds* to *settle* all
happens inside one cell: ``schedule.compute_cells`` calls ``tasks.<name>.run``, and ``tasks.base.cell_training`` trains and
prices.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import statistics
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
    data.set_data_search_root(data_root)
    asked, known, seed = ready.scenario.runtime, given or {}, seeds.public_seed(ready.scenario.seed)
    with runtime.start_beside(asked.engine, asked.workers, asked.gpus_per_worker, asked.silence) as beginning:
        graphs = [known.get(d.label) or load_data(d, data_root, seed) for d in ready.scenario.datasets]
        with _own_folder(ready, graphs, out, resume):
            failed, total = _compute(ready, graphs, out, console, beginning)
    if failed:
        first = "; ".join(f"{f.task}/{f.dataset}/{f.method}/{f.variant}: {f.failed}" for f in failed[:3])
        others = f", the others are in {out}" if len(failed) < total else f"; the report is in {out}"
        raise RuntimeFailure(f"{len(failed)} of {total} cells failed{others}; --resume tries again. {first}")
    return out


def _compute(
    ready: ReadyScenario, graphs: _Graphs, out: Path, console: Console, beginning: runtime.RuntimeBeginning
) -> tuple[list[cells.Result], int]:
    """Every cell that is missing, and the report: (the cells that failed, how many there are)."""
    began, asked, kept = time.time(), ready.scenario.runtime, store.CellStore(out)
    console.say(": ".join(filter(None, (ready.scenario.name, ready.scenario.title))) + f" → {out}")
    for graph in graphs:
        console.say(describe_graph(graph))
    here = beginning.ready() if asked.engine == "serial" else runtime.start("serial")  # plans need no Ray
    stages = tuple(stages_of(ready, graphs, here, console, store.CellPairStore(out)))
    todo = [(stage, cell) for stage in stages for cell in stage.cells if not kept.has(cell)]
    for line in kept.damaged:
        console.say(f"{line}; it is computed again")
    plans = _plan_rows(ready, stages)  # from public facts alone: noise and releases are fixed before anything is trained
    charged = _charged(ready, graphs, out, stages, todo, console)
    todo = _in_order(todo, plans)
    where = {"federations": schedule.describe_rounds(asked.engine, asked.spread), "runtime": asked.engine}
    reporting = Reporting(ready, graphs, out, _text(ready), stages, kept, where, began, plans=_declared(plans))
    reporting.write_environment()
    reporting.write_first_page()
    total = sum(len(stage.cells) for stage in stages)
    console.plan(total, total - len(todo))
    begun = functools.partial(_begin, beginning, stages, reporting, console)
    with reporting.page_where_it_breaks_off():
        for done in schedule.compute_cells(todo, begun, console, asked.spread, beginning.is_up):
            if charged is not None and not done.failed:
                charged.note(done)
            kept.save(done)
            if done.failed:
                console.say(f"FAILED {done.name}: {done.failed}")
            else:
                console.note_score(done, done.metrics)
                if beginning.is_up():  # for whoever watches the engine's own counters
                    beginning.ready().spent(tuple(map(str, done.path)), done.epsilon_provable)
        reporting.note_engine(beginning.ready())
        beginning.ready().close()
        console.close()
        failed = reporting.report(console)
    (out / live.LIVE_FILE).unlink(missing_ok=True)  # the report says more
    reporting.hide_times()
    return failed, total


@contextlib.contextmanager
def _own_folder(ready: ReadyScenario, graphs: _Graphs, out: Path, resume: bool) -> Iterator[None]:
    """The folder belongs to this run, of this scenario on these data; it is given back where nothing could begin."""
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
    """All that a run reads of a data set; of what is said of it, the source alone."""
    bare = GraphProvenance(found.provenance.source, "")
    if isinstance(found, GraphCollection):
        found = replace(found, graphs=tuple(replace(graph, provenance=bare) for graph in found.graphs))
    return canonical.text(replace(found, provenance=bare))


def _masks(ready: ReadyScenario) -> Iterator[str]:
    """What the files that name public nodes hold."""
    for params in (task.params for task in ready.tasks):
        mask = params.public_mask if isinstance(params, Params) else None
        if mask is not None and mask.is_file():
            yield hashlib.sha256(mask.read_bytes()).hexdigest()


def _text(ready: ReadyScenario) -> str:
    return yaml.safe_dump(ready.resolved, sort_keys=False, allow_unicode=True)


def _begin(
    beginning: runtime.RuntimeBeginning, stages: Sequence[ScheduledStage], reporting: Reporting, console: Console
) -> runtime.Runtime:
    """The engine, which knows what every process has to know."""
    engine, root = beginning.ready(), stages[0].context.root if stages else 0
    engine.tell(data.set_data_search_root, data.data_search_root())
    engine.tell(public_cache.set_folder, public_cache.folder())
    if isinstance(root, seeds.SecretSeed):  # beside this one, the only copies of the key: in the memory of the workers
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
    """The budget, charged for every cell before the first of them; None where none is kept."""
    if ready.book is None:
        if any(d.name.startswith("own/") for d in ready.scenario.datasets):
            console.say(budget_book.NOT_COUNTED)
        return None
    charged = ChargedRun.of(ready.book, out, graphs[0])
    charged.charge(stages, todo)
    return charged


_Plans = dict[tuple[ScheduledStage, Cell], Plan | None]


def _plan_rows(ready: ReadyScenario, stages: Sequence[ScheduledStage]) -> _Plans:
    """The plan of every row, by its first seed, before the first cell runs; ``ScenarioError`` names the place of one that has
    none. The other seeds are planned where they are computed.
    """
    first = [(stage, cell) for stage in stages for cell in stage.cells if cell.seed == 0]
    return {(stage, cell): plan_cell(ready, stage, cell) for stage, cell in first}


def _declared(plans: _Plans) -> dict[Cell, Mapping[str, object]]:
    """Of each row that releases something its plan, JSON-ready."""
    return {cell.row: made.to_dict() for (_, cell), made in plans.items() if made is not None}


def _in_order(todo: Sequence[tuple[ScheduledStage, Cell]], plans: _Plans) -> list[tuple[ScheduledStage, Cell]]:
    """What protects nothing first, since it trains longest. Then stages by their rounds, the fewest first: these the server
    computes, while clients are busy with the others.
    """
    rounds: dict[ScheduledStage, list[int]] = {}
    for (stage, _), made in plans.items():
        rounds.setdefault(stage, []).append(0 if made is None else made.schedule.rounds)
    mean = {stage: statistics.fmean(counts) for stage, counts in rounds.items()}
    return sorted(todo, key=lambda one: (not _is_ceiling(one[1]), mean.get(one[0], 0.0)))


def _is_ceiling(cell: Cell) -> bool:
    """Whether its method protects nothing: such cells train longest. A task's own rows have no method."""
    return cell.method in plugins.names("methods") and method_kinds.load(cell.method).OFFERS.never_private


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
            context = cells.CellContext(task.label, name, graph, root, many, engine, progress=console.progress, pairs=pairs)
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
