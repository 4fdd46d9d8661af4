"""Trains a row of a run once, on everybody, with noise from the operating system.

A run trains on a part of the people and tests on the others. A model trains on all of them. If the row takes its test graph as
public, another graph has to be named whose people are public.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import yaml
from pydantic import ValidationError

from fedgraph import methods, privacy, runtime, scenario, seeds
from fedgraph.cells import Cell, CellContext
from fedgraph.documents import Settings
from fedgraph.errors import DataError, PrivacyError, ScenarioError
from fedgraph.methods import MethodReads, method_kinds
from fedgraph.models import model
from fedgraph.models.model import ACCEPT_ANSWERS_UNPROTECTED, AnswerRoster, Model
from fedgraph.privacy import Candidate, budget_book, settle
from fedgraph.runtime import process
from fedgraph.scenario import read as scenarios
from fedgraph.tasks import TaskModels, TaskRowKeys, TaskRowSelect
from fedgraph.tasks import base as tasks
from fedgraph.types import Graph, GraphNames, in_words_of


@dataclass(frozen=True)
class FitOptions:
    """Options of a fit."""

    epsilon: float | None = None  # ε instead of the row's; above 0
    delta: float | None = None  # δ instead of the row's
    budget: str | None = None  # the book that is charged; None: as ``find_book`` finds it
    public: object = None  # a graph whose people are public: a folder, a file, the name of a data set, or a graph in memory
    nothing_protected: bool = False  # whether ε = ∞ is accepted
    columns: Mapping[str, object] | None = None  # how own tables are read; None: as the run read them
    select: TaskRowSelect | None = None  # settings that are chosen privately, within the row's ε
    progress: Callable[[str, int, int], None] | None = None  # called with (stage, done, total)


def fit_row(folder: Path, row: Cell, people: object, wanted: FitOptions, others: Sequence[Candidate] = ()) -> Model:
    """Trains the row ``row`` of the run in ``folder`` once, on ``people``. The budget is charged first, if there is one.

    people: a folder, a file, the name of a data set, or a graph in memory; None: the run's own data. others: the run's other
    rows, the best first; the error of an exceeded budget names one that fits.

    Raises:
        ScenarioError: the row cannot be fitted.
        PrivacyError: the budget does not allow it, nothing would be protected and this was not accepted, or people who train
            are given as public.
        DataError: the data cannot be read.
    """
    book = find_book(folder, people, wanted.budget)
    task, settings = _asked(folder, row)
    models = tasks.load(task.kind).TASK.models
    if models is None:
        raise ScenarioError(f"{folder}: rows of {task.kind} are no models; allowed: rows that classify nodes, or score links")
    reading = wanted.columns if wanted.columns is not None else settings.parameters
    graph, reading = model.read_people(people, reading) if people is not None else _own(settings, reading)
    public = None if wanted.public is None else model.read_people(wanted.public, reading, labelled=False)[0]
    if public is not None:
        public = model.unlabelled(public, graph.num_classes)
        public = model.match_columns(public, graph.names.columns, graph.num_features)
    name = f"{row.method} · {row.variant}, {row.world.words}"
    with runtime.start("serial") as engine:
        fresh = CellContext(row.task, row.dataset, graph, seeds.root_seed("secret"), 1, engine)
        context = fresh if wanted.progress is None else replace(fresh, progress=wanted.progress)
        params, cell = _cell(models, task, row, replace(context, cache={}), wanted, book)
        setting = models.everybody(params, graph, public)
        if public is not None:
            _require_apart(graph, public)
        models.give_setting(params, cell, context, setting)
        made, guarantee = models.spends(params, cell, context)
        _answer_reads(made)
        broken = any(not promise.kept for promise in guarantee.promises)
        if (broken or math.isinf(made.provable().epsilon)) and not wanted.nothing_protected:
            raise PrivacyError(
                f"{name}: its ε is ∞, so nothing would be protected; say {ACCEPT_ANSWERS_UNPROTECTED}, or fit another row"
            )
        if book is not None:
            planned = Candidate.planned(f"model {name}", guarantee, made.schedule.releases)
            # owners of edges are no nodes, and the data do not say which of the budget's people they are: all of these pay
            owners = guarantee.protection.unit is privacy.Unit.ENTITY
            _charge_training(book, planned, None if owners else graph.names.ids or None, others)
        fitted = models.train(params, cell, context)
    settled = fitted.settled
    releases = [replace(line, cell=cell.name) for line in fitted.outcome.releases]
    ledger = privacy.Ledger([settled.account(cell.name, fitted.guarantee)], releases)
    ids = tuple(dict.fromkeys((*fitted.federation.held.ids, *graph.ids)))
    plan, state = model.strip_rows(fitted.plan, fitted.outcome.state)
    named = bool(graph.names.ids) or _answer_reads(plan) in (MethodReads.NOTHING, MethodReads.OWN_EDGES)
    return _model(
        name, plan, state, ledger, settled.epsilon, () if book else (budget_book.NOT_COUNTED,),
        reading=reading,
        names=replace(graph.names, ids=()),
        people=AnswerRoster.of(ids if named else ()),
        unnamed=0 if graph.names.ids else graph.num_nodes,
        ranks=fitted.federation.ranks,
    )  # fmt: skip


def _model(
    row: str, plan: methods.Plan, state: methods.State, ledger: privacy.Ledger, epsilon: float, said: tuple[str, ...], *,
    reading: Mapping[str, object], names: GraphNames, people: AnswerRoster, unnamed: int, ranks: methods.ColumnRanks | None,
) -> Model:  # fmt: skip
    """A model with the guarantee of a ledger. said: sentences after the guarantee in its statement."""
    (account,), made_with = ledger.accounts, process.own_versions()
    return Model(
        row=row,
        method=plan.method,
        plan=plan,
        state=state,
        epsilon=epsilon,
        delta=account.delta,
        statement=(*_training_statement(epsilon, account, names.one), *said),
        ledger=tuple(ledger.lines()),
        versions={"python": made_with.python, **dict(made_with.packages), "fedgraph's source": made_with.source},
        reading=reading,
        names=names,
        people=people,
        unnamed=unnamed,
        ranks=ranks,
    )


def of_deployment(
    row: str,
    plan: methods.Plan,
    state: methods.State,
    names: GraphNames,
    reading: Mapping[str, object],
    lines: Sequence[privacy.LedgerLine],
    said: tuple[str, ...],
) -> Model:
    """The model, called ``row``, of a training that other programs carried out by a plan.

    state: the server's final state. reading: how own tables are read. lines: ledger lines of the releases. said: sentences on
    its accuracy. ``DataError`` if the method is an embedder.
    """
    kind = method_kinds.load(plan.method).OFFERS.kind
    if kind == "embedder":
        raise DataError(f"{plan.method} classifies no nodes and scores no links, so there is no model to ask")
    _answer_reads(plan)
    settled = settle.of_releases(plan.guarantee, lines)
    ledger = privacy.Ledger([settled.account(row, plan.guarantee)], [replace(line, cell=row) for line in lines])
    plan, state = model.strip_rows(plan, state)
    return _model(
        row, plan, state, ledger, settled.epsilon, (*said, _OWNERS_KNOW),
        reading=reading, names=names, people=AnswerRoster.of(()), unnamed=plan.facts.num_nodes, ranks=None,
    )  # fmt: skip


_OWNERS_KNOW = (
    "Who trained is known to the owners alone: the model cannot tell whether somebody who is asked about is one of them, and "
    "other releases of these people are added up in the owners' budgets."
)


def find_book(folder: Path, people: object, named: str | None = None) -> str | None:
    """The book that pays for a training, the first of: named, the run's, of ``FEDGRAPH_BUDGET``, beside the people."""
    own = people if isinstance(people, (str, Path)) and Path(people).exists() else None
    return budget_book.find(named or scenarios.from_file(folder / "scenario.yaml").book, own)


def _require_apart(graph: Graph, public: Graph) -> None:
    """``PrivacyError`` if somebody who trains is given as public, whose data would be read without noise.

    People are compared by ids. Without ids, they count as those who train if there are as many of them, or if each of their
    rows is a row of somebody who trains.
    """
    if graph.names.ids and public.names.ids:
        both = len(set(graph.ids) & set(public.ids))
        if not both:
            return
        who, remedy = f"{both:,} of {public.num_nodes:,} people who are given as public train, too", "Leave them out"
    else:
        trained, known = _rows_of(graph), _rows_of(public)
        if public.num_nodes != graph.num_nodes and not set(known) <= set(trained):
            return
        who, remedy = "people who are given as public have no ids, and count as those who train", "Give both graphs ids"
        if public.num_nodes != graph.num_nodes:
            who += ": each of their rows is one of these"
    raise PrivacyError(
        f"{who}: their rows and edges are protected, so they are not public, and a model would hold what is computed from them "
        f"without noise. {remedy}, or fit a row that takes nobody as public"
    )


def _rows_of(graph: Graph) -> list[bytes]:
    """Every row of features as bytes: its columns that are not zero, and their numbers."""
    rows = graph.features.tocsr(copy=True)
    rows.eliminate_zeros()
    rows.sort_indices()
    spans = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    return [rows.indices[a:b].astype(np.int64).tobytes() + rows.data[a:b].astype(np.float32).tobytes() for a, b in spans]


def _answer_reads(made: methods.Plan) -> MethodReads:
    """What an answer reads. ``ScenarioError`` if the method does not say it, or if an answer reads private edges."""
    offered = method_kinds.load(made.method).OFFERS.reads
    reads = None if offered is None else offered(made)
    if reads is None:
        raise ScenarioError(f"nobody has said what an answer of {made.method} reads under these settings; it is no model")
    if reads is MethodReads.PRIVATE_EDGES:
        raise ScenarioError(f"an answer of {made.method} reads {reads.value}, so nobody else may have it: it is no model")
    return reads


def how_to_ask(made: Model, file: Path) -> str:
    """The command that asks the model in ``file``."""
    reads = _answer_reads(made.plan)
    if method_kinds.load(made.method).OFFERS.kind == "linker":
        return f"fedgraph predict {file} PAIRS.csv -o answers.csv"
    people = {MethodReads.NOTHING: "", MethodReads.PUBLIC_GRAPH: " --people public"}.get(reads, " --people own")
    return f"fedgraph predict {file} GRAPH -o answers.csv{people}"


_NAMES_PUBLIC = (
    "The file holds the names of columns and of classes as they are: they are taken as public; hand it out only if they are."
)


def _training_statement(epsilon: float, account: privacy.LedgerAccount, one: str) -> tuple[str, ...]:
    """Sentences on what the training protects. one: what a node is called."""
    protection = account.protection
    unit = in_words_of(one, protection.unit.value)
    if math.isinf(epsilon):
        return (f"Nothing is protected: ε = ∞ for each {unit}.",)
    first = f"ε = {math.ceil(epsilon * 1e4) / 1e4:g} at δ = {account.delta:.3g} for each {unit}: {protection.neighbours}."
    holds = (f"It holds if {protection.sentence(assumption)}." for assumption in protection.assumptions)
    said = (first, f"Hidden from {protection.viewer.words}.", *holds, _NAMES_PUBLIC)
    return tuple(in_words_of(one, sentence) for sentence in said)


def _asked(folder: Path, row: Cell) -> tuple[scenario.ScenarioTask, scenario.ScenarioDataset]:
    """The row's task and data set in the run's scenario; ``ScenarioError`` if they are not there."""
    ready = scenarios.from_file(folder / "scenario.yaml")
    task = next((t for t in ready.tasks if t.label == row.task), None)
    settings = next((d for d in ready.scenario.datasets if (d.label or d.name) == row.dataset), None)
    if task is None or settings is None:
        raise ScenarioError(f"{folder / 'scenario.yaml'}: has no task {row.task!r} on {row.dataset!r}; it is not of this run")
    return task, settings


def _own(settings: scenario.ScenarioDataset, reading: Mapping[str, object]) -> tuple[Graph, Mapping[str, object]]:
    """(the run's own data, how other people are read in the same way)."""
    if settings.name == "own/object":
        raise ScenarioError("the run's graph was in memory, and no file holds it; say --graph GRAPH, or fit(data)")
    from fedgraph import data

    if settings.path is not None and settings.name in ("own/read", "own/csv", "own/npz"):
        return model.read_people(settings.path, reading)
    found = data.load(settings.name, root=settings.root, path=settings.path, parameters=settings.parameters)
    if not isinstance(found, Graph):
        raise ScenarioError(f"{settings.name} is a collection of graphs; allowed: one graph, whose nodes or links have a model")
    return found, reading


def _cell(
    models: TaskModels[Settings],
    task: scenario.ScenarioTask,
    row: Cell,
    context: CellContext,
    wanted: FitOptions,
    book: str | None,
) -> tuple[Settings, Cell]:
    """(the row's settings without ``_MEASURED``, its cell of the first seed). With a budget, δ is at most the budget's."""
    if not isinstance(task.params, models.params):
        raise ScenarioError(f"task {row.task!r} has settings of another kind than {task.kind!r}, so no model")
    quiet: dict[str, object] = {k: v for k, v in _MEASURED.items() if k in models.params.model_fields}
    quiet["methods"] = [{k: v for k, v in spec.items() if k != "publish_accuracy"} for spec in dict(task.params)["methods"]]
    if wanted.delta is not None:
        quiet["delta"] = wanted.delta
    elif book is not None:
        delta = budget_book.read(book).delta
        written = dict(task.params).get("delta")
        quiet["delta"] = min(delta, written) if isinstance(written, float) else delta
    params = task.params.model_copy(update=quiet)
    module = tasks.load(task.kind)
    if wanted.select is not None and "select" not in (module.TASK.row_keys or TaskRowKeys).model_fields:
        raise ScenarioError(f"rows of {task.kind} choose no settings (select); write the settings into the row")
    for cell in module.cells(params, context):
        if cell.seed == 0 and cell.row == row:
            if wanted.select is not None:
                params = _chosen(params, cell, wanted.select)
            return params, cell if wanted.epsilon is None else replace(cell, epsilon=wanted.epsilon)
    raise ScenarioError(f"the run's scenario has no row {row.method} · {row.variant} at ε = {row.epsilon:g}")


_MEASURED = {"attack": None, "map": False, "curve": 0, "owners": False}  # what a run measures beside its rows, turned off


def _chosen(params: Settings, cell: Cell, select: TaskRowSelect) -> Settings:
    """The row's settings with ``select``. ``ScenarioError`` if a choice has no price."""
    methods = [dict(spec) for spec in dict(params)["methods"]]
    cell.among(methods).update(trust=[cell.world.trust.value], select=select.model_dump())
    try:
        return type(params).model_validate({**params.model_dump(), "methods": methods, "epsilons": [cell.epsilon]})
    except ValidationError as error:
        raise ScenarioError(error.errors()[0]["msg"].removeprefix("Value error, ")) from error


def read_select(path: Path) -> TaskRowSelect:
    """The choice in a YAML file: the keys ``over, among, by``, there or under ``select``. ``ScenarioError`` for other files."""
    try:
        given = yaml.safe_load(path.read_text(encoding="utf-8"))
        return TaskRowSelect(**given["select"] if isinstance(given, dict) and "select" in given else given)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, TypeError, ValidationError) as error:
        raise ScenarioError(f"{path}: {' '.join(str(error).split())[:300]}; allowed: over, among, by") from error


def _charge_training(book: str, row: Candidate, ids: tuple[str, ...] | None, others: Sequence[Candidate]) -> None:
    """Charges the training to its people; the error of a refusal names the first of ``others`` that would still fit."""
    try:
        budget_book.charge(book, row.name, [row], ids)
    except PrivacyError as error:
        raise PrivacyError(f"{error}. {budget_book.fits(budget_book.read(book), others, ids)}") from error
