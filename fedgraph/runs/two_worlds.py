"""The two-worlds test of whole cells: each is run on its data and on neighbours of them, and what leaves must be the same.

``audit.worlds`` explains the test, draws the neighbours and compares. Here stands how a cell is run twice: with the task's own
machinery, one root seed and the serial engine. What leaves is recorded where it leaves: the plan and its fingerprint, every
model that is broadcast, every message, the final state, the lines of the ledger, and all that ``RUN/outside`` holds of a cell.

Where who holds which node was computed from what is private, and the row states it as an assumption
(``membership-from-edges``), the neighbour is made of what the clients hold; everywhere else of the data themselves, so that
splits, partitions and plans are drawn again from the neighbour.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from fedgraph import audit, privacy, runtime, scenario, seeds
from fedgraph.audit import Change, Difference, worlds
from fedgraph.cells import Cell, CellContext, CellKind
from fedgraph.errors import FedgraphError, UnboundedValueError
from fedgraph.federation import ClientJob, Federation, client, rounds
from fedgraph.methods import Plan, method_kinds
from fedgraph.privacy import Assumption, desk, ledger
from fedgraph.report import reduce_to_outside
from fedgraph.runs import experiment
from fedgraph.runs.console import Console
from fedgraph.runtime import SerialRuntime
from fedgraph.tasks import base as tasks
from fedgraph.types import Graph, GraphCollection, Partition

_DERIVED = {  # what was computed from private data and is taken as public: the neighbour is made of what clients hold
    Assumption.MEMBERSHIP_FROM_EDGES,
    Assumption.MEMBERSHIP_FROM_LABELS,
    Assumption.SPLIT_FROM_EDGES,
    Assumption.SPLIT_FROM_LABELS,
    Assumption.COMPONENT_FROM_EDGES,
}
_QUIET = {"attack": None, "map": False, "curve": 0}  # what a run measures beside its rows reads private data for their holder

Broadcast: TypeAlias = Callable[[np.ndarray], np.ndarray]
HOSTILE: Mapping[str, Broadcast] = {  # what a server that clients do not trust may send in the place of each array of a model
    "zeros": lambda array: np.zeros_like(array),
    "all the same": lambda array: np.full_like(array, 1.0),
    "very large": lambda array: (array + 1) * array.dtype.type(1e6),
}


# -------------------------------------------------------------------------------------------------------- what is recorded


@dataclass(eq=False)
class _Left:
    """What left in one world.

    items: (what it is, value), in order. jobs: account → the plan that it was run by, and who held what.
    """

    items: list[tuple[str, Any]] = field(default_factory=list)
    jobs: dict[str, tuple[Plan, Partition | None]] = field(default_factory=dict)


class _WatchedClients(runtime.SerialClients):
    """Records what the server sends and what the clients answer. hostile: what the server sends in the place of its models."""

    left: _Left
    hostile: Broadcast | None = None

    def ask(self, function: runtime.RuntimeFunction, num_items: int, *args: object) -> list[Any]:
        if self.hostile is not None:
            change = self.hostile
            args = tuple({k: _of_floats(change, v) for k, v in a.items()} if isinstance(a, dict) else a for a in args)
        answers = super().ask(function, num_items, *args)
        if function is not client.forget:
            round_ = next((a for a in args if isinstance(a, int)), 0)
            self.left.items.append((f"broadcast of round {round_}", [a for a in args if isinstance(a, dict)]))
            self.left.items.append((f"messages of round {round_} ({function.__name__})", answers))
        return answers


def _of_floats(change: Broadcast, value: object) -> object:
    return change(value) if isinstance(value, np.ndarray) and value.dtype.kind == "f" else value


class WatchedRuntime(SerialRuntime):
    """The serial engine, which records what passes between clients and server.

    Args:
        change: makes the neighbour of what clients hold; None where the data are the neighbour already, or in the first world.
        hostile: what a dishonest server broadcasts.
    """

    def __init__(self, change: Change | None = None, hostile: Broadcast | None = None) -> None:
        super().__init__()
        self.left = _Left()
        self._change, self._hostile = change, hostile
        self._held: dict[int, tuple[Partition, Partition]] = {}
        self._dealt_last: Partition | None = None

    def share(self, key: Any, value: object) -> Any:
        if isinstance(value, Partition):
            if id(value) not in self._held:
                self._held[id(value)] = (value, value if self._change is None else self._change.of_partition(value))
            value = self._held[id(value)][1]
        return super().share(key, value)

    def deal(self, handle: Any, piece: runtime.RuntimeFunction, num_items: int) -> Any:
        self._dealt_last = handle.value if isinstance(handle.value, Partition) else None
        return super().deal(handle, piece, num_items)

    def clients(self, path: runtime.RuntimeCountPath, on_round: runtime.OnRuntimeRound) -> runtime.SerialClients:
        found = _WatchedClients(self._tally, path, on_round)
        found.left, found.hostile = self.left, self._hostile
        return found

    def federate(
        self,
        function: runtime.RuntimeFunction,
        *args: object,
        path: runtime.RuntimeCountPath,
        on_round: runtime.OnRuntimeRound = lambda done, total: None,
    ) -> Any:
        for job in (a for a in args if isinstance(a, ClientJob)):
            self.left.jobs[ledger.account_name(job.stream)] = (job.plan, self._dealt_last)
            self.left.items.append(("plan of a training", (job.plan.fingerprint_text, job.plan)))
        found = super().federate(function, *args, path=path, on_round=on_round)
        self.left.items.append(("state after the last round", found))
        return found


# ------------------------------------------------------------------------------------------------------------ two worlds


@dataclass(frozen=True)
class WorldsFinding:
    """What the test found of one row."""

    row: str  # in words
    neighbours: int = 0  # how many were tried
    # path → largest distance of bounded values over the one that is priced
    largest: Mapping[str, float] = field(default_factory=dict)
    unmeasured: frozenset[str] = frozenset()  # paths whose price rests on a law that no distance states
    differences: tuple[Difference, ...] = ()  # what tells the worlds apart, with the neighbour; empty where nothing does
    note: str = ""  # why nothing was tried, or how both worlds stopped; else empty
    failed: bool = False  # whether the row has no plan, or fails on its own data

    @property
    def verdict(self) -> Literal["same", "apart", "untried", "failed"]:
        """``untried``: the row promises nothing, or no neighbour keeps what it assumes."""
        if self.differences:
            return "apart"
        return "failed" if self.failed else "same" if self.neighbours else "untried"

    @property
    def words(self) -> str:
        """One line: how many neighbours, and how near the stated distance they came."""
        if self.note:
            return self.note
        near = [f"{path} {ratio:.3g}" for path, ratio in sorted(self.largest.items())]
        parts = [f"{self.neighbours} neighbours", *(["distance over the priced one: " + ", ".join(near)] if near else [])]
        if self.unmeasured:
            parts.append(f"left to the audits of its law: {', '.join(sorted(self.unmeasured))}")
        return "; ".join(parts)


_Work: TypeAlias = Callable[[WatchedRuntime, Change | None], Mapping[str, object]]  # what a world does → what else leaves it


@dataclass(frozen=True, eq=False)
class _World:
    left: _Left
    also: Mapping[str, object]
    error: str


def _in_world(work: _Work, engine: WatchedRuntime, change: Change | None, witness: desk.DeskWitness) -> _World:
    with desk.witness_desks(witness), engine:
        try:
            return _World(engine.left, work(engine, change), "")
        except FedgraphError as error:
            return _World(engine.left, {}, f"{type(error).__name__}: {' '.join(str(error).split())}")


def _tell_apart(
    row: str, work: _Work, plan: Plan, found: Sequence[Change], held: bool, hostile: Broadcast | None
) -> WorldsFinding:
    """``work`` once on the data and once on each neighbour. held: the engine makes the neighbour, of what clients hold."""
    tape = audit.FirstWorld()
    one = _in_world(work, WatchedRuntime(None, hostile), None, tape)
    if one.error and hostile is None:
        return WorldsFinding(row, note=f"it fails on its own data: {one.error}", failed=True)
    if _breaks_promise(one):
        return WorldsFinding(row, note="the data break a promise that it rests on, so nothing is promised (ε = ∞)")
    differences, largest, unmeasured = list[Difference](), dict[str, float](), set[str]()
    tried = 0
    if one.error.startswith(UnboundedValueError.__name__):  # whoever sends such a model sees who stops
        differences.append(Difference("error", f"a client stops at its own value: {one.error}"))
    for change in found:
        second = audit.SecondWorld(tape.tape, same_coins=True)
        other = _in_world(work, WatchedRuntime(change if held else None, hostile), change, second)
        if _breaks_promise(other):
            continue  # data that the row says nothing of are no neighbour
        tried += 1
        prices = {account: _priced_for(made, dealt, change) for account, (made, dealt) in one.left.jobs.items()}
        told, ratios, without = second.differences(prices, _priced_for(plan, None, change))
        unmeasured |= without
        for path, ratio in ratios.items():
            largest[path] = max(largest.get(path, 0.0), ratio)
        if one.error != other.error:
            told = [Difference("error", f"{other.error or 'none'}; in the first world {one.error or 'none'}")]
        told += [] if one.error or other.error else _differences(one, other)
        differences += [Difference(f"{change.words}: {d.where}", d.what) for d in told]
    note = f"stopped on its own data: {one.error}" if one.error else ""
    return WorldsFinding(row, tried, largest, frozenset(unmeasured), tuple(differences), note)


def _breaks_promise(world: _World) -> bool:
    account = world.also.get("account")
    return isinstance(account, ledger.LedgerAccount) and account.broken is not None


def _differences(one: _World, other: _World) -> Iterator[Difference]:
    """The first difference of each kind of thing that leaves."""
    told = set[str]()
    pairs = itertools.zip_longest(one.left.items, other.left.items, fillvalue=("nothing", None))
    also = (((f"{k}", v), (f"{k}", other.also.get(k))) for k, v in one.also.items())
    for (name, value), (name_, value_) in itertools.chain(pairs, also):
        kind = name.split(" of ")[0]
        if kind in told:
            continue
        apart = f"{name} and {name_}" if name != name_ else audit.first_difference(value, value_)
        if apart:
            told.add(kind)
            yield Difference(name, apart)


def _priced_for(plan: Plan, dealt: Partition | None, change: Change) -> audit.PricedFor:
    protection, fewest = plan.guarantee.protection, dict(plan.sums.paths)
    others = plan.facts.cohort - plan.facts.colluders if protection.viewer is privacy.Viewer.SERVER_SECURE_AGGREGATION else 1
    paths = plan.schedule.paths
    hiding = {path: fewest.get(path, others + 1) - 1 for path in paths}
    rows = {} if dealt is None else {s.client: int(row) for s in dealt.subgraphs for row in np.flatnonzero(_is_unit(s, change))}
    return audit.PricedFor(plan.guarantee, hiding, worlds.summed_paths(protection, paths, plan.sums.paths), rows)


def _is_unit(share: Any, change: Change) -> np.ndarray:
    if share.graph.names.ids:
        return np.array([name == _WORLD_ID.format(change.one) for name in share.graph.names.ids])
    return np.asarray(share.nodes == change.one)


_WORLD_ID = "node {}"  # what the test calls the nodes, so that each is found again after a split


# ------------------------------------------------------------------------------------------------------------------ cells


def compare_rounds(
    plan: Plan, partition: Partition, changes: Sequence[Change], hostile: str = "", row: str = "", root: int = 0
) -> WorldsFinding:
    """One training of a plan on what clients hold, and on each neighbour of it.

    Args:
        plan: of the training.
        partition: who holds what.
        changes: the neighbours, in the numbers of the whole graph.
        hostile: what a dishonest server broadcasts, a key of ``HOSTILE``; empty: what the method says.
        row: what it is called.
        root: seed of all random streams.
    """

    def work(engine: WatchedRuntime, change: Change | None) -> Mapping[str, object]:
        shared = engine.share("partition", partition)
        stream = ("two worlds", plan.method)
        done = rounds.run(engine, shared, plan, root, stream, stream, rounds.RoundPrefixes())
        return {"ledger": done.releases, "notes": done.notes, "kept states": done.kept}

    return _tell_apart(row or plan.method, work, plan, changes, True, HOSTILE[hostile] if hostile else None)


def compare_cell(
    task: scenario.ScenarioTask, cell: Cell, data: Graph | GraphCollection, root: int, most: int, hostile: str = ""
) -> WorldsFinding:
    """One cell on its data, and on at most ``most`` neighbours.

    Args:
        task: the cell's task, with its settings.
        cell: which one.
        data: of the cell.
        root: seed of all random streams.
        most: neighbours.
        hostile: what a dishonest server broadcasts, a key of ``HOSTILE``; empty: what the method says.
    """
    module = tasks.load(task.kind)
    params = task.params.model_copy(update={k: v for k, v in _QUIET.items() if k in type(task.params).model_fields})
    row = f"{cell.task} / {cell.words}" + (f", server sends {hostile}" if hostile else "")
    given = _named(data)

    def context_on(engine: SerialRuntime, graph: Graph | GraphCollection) -> CellContext:
        return CellContext(cell.task, cell.dataset, graph, root, cell.seed + 1, engine)

    with SerialRuntime() as engine:
        context = context_on(engine, given)
        try:
            plan = module.plan(params, cell, context)
        except FedgraphError as error:
            return WorldsFinding(row, note=f"it has no plan: {' '.join(str(error).split())}", failed=True)
        if plan is None or math.isinf(plan.provable().epsilon):
            return WorldsFinding(row, note="nothing is promised (ε = ∞)")
        held, found = _changes_of(plan, given, context, module, params, cell)
    if not found:
        return WorldsFinding(row, note="no neighbour keeps what the row assumes")
    if held and cell.entry is not None and "select" in dict(params).get("methods", [{}] * (cell.entry + 1))[cell.entry]:
        return WorldsFinding(
            row, note="its trials run on engines of their own, which do not take a neighbour of what clients hold"
        )

    def work(engine: WatchedRuntime, change: Change | None) -> Mapping[str, object]:
        graph = given if held or change is None or not isinstance(given, Graph) else change.of(given)
        context = context_on(engine, graph)
        made = module.plan(params, cell, context)
        outcome = module.run(params, cell, context)
        handed_out = reduce_to_outside(outcome)
        return {"plan": made, "account": outcome.account, "ledger": outcome.releases, "cell as it is handed out": handed_out}

    return _tell_apart(row, work, plan, found[:most], held, HOSTILE[hostile] if hostile else None)


def compare_model(
    task: scenario.ScenarioTask, cell: Cell, data: Graph | GraphCollection, root: int, most: int
) -> WorldsFinding | None:
    """What a model of a cell's row holds before it is trained (``fedgraph fit``): its plan, in which everybody trains.

    Args:
        task: the cell's task, with its settings.
        cell: which one.
        data: of the cell.
        root: seed of all random streams.
        most: neighbours.

    Returns:
        None where the row makes no model, names people who are public, promises nothing, or takes as public what was computed
        from private data.
    """
    module = tasks.load(task.kind)
    models, given = module.TASK.models, _named(data)
    if models is None or not isinstance(given, Graph) or cell.entry is None or not isinstance(task.params, models.params):
        return None
    rows = [{k: v for k, v in spec.items() if k != "publish_accuracy"} for spec in dict(task.params)["methods"]]
    quiet = {k: v for k, v in {**_QUIET, "owners": False}.items() if k in models.params.model_fields}
    params = task.params.model_copy(update={**quiet, "methods": rows})

    def planned(graph: Graph) -> Plan:
        with SerialRuntime() as engine:
            context = CellContext(cell.task, cell.dataset, graph, root, cell.seed + 1, engine)
            models.give_setting(params, cell, context, models.everybody(params, graph, None))
            return models.spends(params, cell, context)[0]

    try:
        one = planned(given)
    except FedgraphError:
        return None
    protection = one.guarantee.protection
    if math.isinf(one.provable().epsilon) or _DERIVED & set(protection.assumptions):
        return None
    found, differences = worlds.changes(given, protection)[:most], list[Difference]()
    for change in found:
        try:
            other = planned(change.of(given))
            apart = audit.first_difference((one, one.fingerprint_text), (other, other.fingerprint_text))
        except FedgraphError as error:
            apart = f"there is none: {' '.join(str(error).split())}"
        if apart:
            differences.append(Difference(f"{change.words}: plan of a model", apart))
    return WorldsFinding(f"{cell.task} / {cell.words}, as a model", len(found), differences=tuple(differences))


def _named(data: Graph | GraphCollection) -> Graph | GraphCollection:
    """With a name for each node by which it is found after a split."""
    if isinstance(data, GraphCollection):
        return data
    adjacency = data.adjacency.copy()
    adjacency.sort_indices()  # as in a neighbour
    return replace(
        data, adjacency=adjacency, names=replace(data.names, ids=tuple(_WORLD_ID.format(k) for k in range(data.num_nodes)))
    )


def _changes_of(
    plan: Plan, data: Graph | GraphCollection, context: CellContext, module: tasks.Task, params: Any, cell: Cell
) -> tuple[bool, list[Change]]:
    """(whether neighbours are made of what clients hold, the neighbours)."""
    protection = plan.guarantee.protection
    held = (
        isinstance(data, GraphCollection)
        or bool(_DERIVED & set(protection.assumptions))
        or method_kinds.load(plan.method).OFFERS.kind == "embedder"
    )
    if protection.relation is privacy.Relation.GRAPH_REPLACE or isinstance(data, GraphCollection):
        if module.TASK.clients is None:
            return True, []
        partition = module.TASK.clients(params, cell, context)
        if protection.relation is privacy.Relation.GRAPH_REPLACE:
            return True, worlds.client_changes(partition, plan.facts.graphs)
        share = max(partition.subgraphs, key=lambda s: s.graph.num_nodes)
        local = worlds.changes(share.graph, protection)
        return True, [change_of_whole(change, share.nodes) for change in local]
    private, trained = _private_nodes(context, data)
    found = (worlds.changes(data, protection, nodes) for nodes in (trained, private))  # who trains, and who only asks, in turn
    in_turn = itertools.chain.from_iterable(itertools.zip_longest(*found))
    return held, list(dict.fromkeys(change for change in in_turn if change is not None))


def change_of_whole(change: Change, nodes: np.ndarray) -> Change:
    """A change of what one client holds, in the numbers of the whole graph. nodes: the client's, in its order."""
    other = -1 if change.other < 0 else int(nodes[change.other])
    edges = None if change.edges is None else tuple(int(nodes[e]) for e in change.edges)
    return replace(change, one=int(nodes[change.one]), other=other, edges=edges)


def _private_nodes(context: CellContext, graph: Graph) -> tuple[np.ndarray | None, np.ndarray | None]:
    """(the nodes that are held or ask and are not public, those of them that train), as the task split them; None: all."""
    kept = (one if isinstance(one, tuple) else (one,) for one in context.cache.values())
    settings = [part for parts in kept for part in parts if isinstance(part, Federation)]
    if not settings:
        return None, None
    setting, number = settings[-1], {name: node for node, name in enumerate(graph.names.ids)}
    held, asked = setting.held.names.ids, setting.asked.names.ids
    public = set() if setting.public_graph is None else set(setting.public_graph.names.ids)
    private = {*held, *(() if setting.test_graph_public else asked)} - public
    trains = {name for name, label in zip(held, setting.held.labels, strict=True) if label >= 0} - public
    rows = (np.array(sorted(number[name] for name in names if name in number), dtype=np.int64) for names in (private, trains))
    every, trained = (found if found.size else None for found in rows)
    return every, every if trained is None else trained


def audit_scenario(
    ready: scenario.ReadyScenario, graphs: list[Graph | GraphCollection], most: int, console: Console
) -> Iterator[WorldsFinding]:
    """Every row of a scenario: one cell of each kind, at its smallest ε, and the model of its row.

    Args:
        ready: the scenario.
        graphs: its data sets, in their order.
        most: neighbours of each cell.
        console: is told what goes on.
    """
    root = seeds.public_seed(ready.scenario.seed)
    with SerialRuntime() as engine:
        for stage in experiment.stages_of(ready, graphs, engine, console):
            kinds: dict[CellKind, Cell] = {}
            for cell in sorted(stage.cells, key=lambda c: (c.seed, c.epsilon)):
                kinds.setdefault(cell.kind, cell)
            for cell in kinds.values():
                yield compare_cell(stage.task, cell, stage.context.data, root, most)
                if (model := compare_model(stage.task, cell, stage.context.data, root, most)) is not None:
                    yield model
                if cell.world.viewer is privacy.Viewer.ACTIVE_SERVER:
                    for hostile in HOSTILE:
                        yield compare_cell(stage.task, cell, stage.context.data, root, most, hostile)
