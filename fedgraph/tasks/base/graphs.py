"""What the tasks that compare graphs share: settings, rows, the features of collections, and discrepancies of all pairs.

**Settings**: ε, the models of a table, and how Gromov-Wasserstein problems are solved. These are not convex: a value is the
local minimum at which one descent ended, or the best of several (``quality``).

**Rows**: every table has ``graph size`` (public, ε = 0), ``size and degrees`` (raw data, ε = ∞), and ``constant embedding``,
which shows how much of a result follows from the sizes of encoded embeddings alone.

**Pairs**: solved at the server, in chunks. Results are kept beside those of the run: a resumed run solves no pair twice.
"""

import hashlib
import math
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from pydantic import AfterValidator, BeforeValidator, Field
from scipy.spatial.distance import cdist

from fedgraph import cells, comparison, documents, methods, privacy, seeds
from fedgraph.attacks import canary_graphs
from fedgraph.comparison import (
    ClassifySplit,
    MetricSpace,
    SolverFacts,
    agreement,
    gromov,
    gromov_bounds,
    metric_space,
)
from fedgraph.documents import SettingsSpec
from fedgraph.errors import DataError, ScenarioError
from fedgraph.federation import JOINED_WORLD, rounds
from fedgraph.methods import column_ranks
from fedgraph.tasks.base import Cell, CellContext, Result, cell_training, grid
from fedgraph.types import Graph, GraphCollection, Partition, plain_graph

EmbedderPlan: TypeAlias = methods.Plan[Any, methods.EmbedderMethodMade]
RESTARTS, KICKS = 8, 40  # of the careful search, beside the usual start
# Σ over pairs of n·m·(n + m)/2 points that the careful search may take by itself: about ten seconds of a core
_CAREFUL_WORK = 2e8
_Encoder = Literal["multi-bit", "multi-bit-total", "multi-bit-node", "gaussian-as-coded"]


Distinct = grid.distinct_values("the value")


def parse_epsilon(value: Any) -> float | str:
    """A number > 0 (∞ for no encoding) or ``1/n``; anything else is a ``ValueError`` that says why."""
    if value == "1/n":
        return str(value)
    try:
        found = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        found = math.nan
    if found > 0:
        return found
    why = "; at ε = 0 nothing may be released" if found == 0 else ""
    raise ValueError(f"allowed: ε > 0, 1/n (for a graph of n nodes), or inf (no encoding){why}")


_GraphEpsilon = Annotated[float | Literal["1/n"], BeforeValidator(parse_epsilon)]
Epsilons = Annotated[list[_GraphEpsilon], Distinct, documents.InfiniteSetting]
OwnEpsilons = Annotated[Epsilons | None, Field(min_length=1), documents.InfiniteSetting]
_Encoders = Annotated[list[_Encoder], Distinct]


def is_in_clear(epsilon: float | str) -> bool:
    """Whether embeddings are sent without encoding: ε is ∞."""
    return epsilon != "1/n" and math.isinf(float(epsilon))


def _without_own_encoder(method: SettingsSpec) -> SettingsSpec:
    """The entry as it is; ``ValueError`` if it names an encoder or a rule of ε, which are settings of the task."""
    for key, instead in (("encoder", "encoders"), ("epsilon_rule", "epsilons (1/n is the rule)")):
        if key in method:
            raise ValueError(f"{key} is a setting of the whole task here; allowed: the task's {instead}")
    return method


Model = Annotated[SettingsSpec, AfterValidator(_without_own_encoder)]


@dataclass(frozen=True)
class Row:
    """One model at one budget through one encoder."""

    index: int  # place of the model among the entries
    label: str  # name of the model's rows
    encoder: str  # how a release is encoded; ``none``: in clear
    epsilon: float | str  # a number > 0, or ``1/n``

    @property
    def rule(self) -> str:
        """How ε is meant: ``1/n`` for a graph of n nodes, or ``epsilon``, a number."""
        return "1/n" if isinstance(self.epsilon, str) else "epsilon"

    @property
    def pooled(self) -> bool:
        """Whether a graph sends one vector instead of a row for each node."""
        return False

    @property
    def variant(self) -> str:
        """The name of the row's cells."""
        return f"{self.label}/{self.encoder}/{self.rule}"


class SolverSettings(documents.Settings):
    """Settings that every task with Gromov-Wasserstein discrepancies has."""

    solver: Literal["fast", "pot", "proximal", "batched"] = Field(
        "fast",
        description="fast (compiled), or POT's at the server: pot (conditional gradient), proximal (proximal point), batched "
        "(proximal gradient of many pairs at once, on a GPU where there is one)",
    )
    verify: int = Field(50, ge=0, description="pairs that the server also solves with POT, to compare with ours")
    quality: Literal["auto", "fast", "careful"] = Field(
        "auto",
        description="fast: one descent for each pair; careful: the best of 49; auto: careful where all pairs take about 10 s",
    )
    restarts: int = Field(0, ge=0, description="random restarts of each Gromov-Wasserstein problem, where quality is fast")

    def options(self, alpha: float | None = None, sizes: Sequence[int] = ()) -> gromov.GromovOptions:
        """The options of the solvers. alpha: weight of structure in the fused discrepancy, None: not fused. sizes: points of
        every space; without them, or with ``restarts``, ``quality: auto`` is fast.

        ``ValueError`` if POT is asked for more than one descent, which it does not offer.
        """
        fits = self.solver == "fast" and not self.restarts and len(sizes) > 0 and _work(sizes) <= _CAREFUL_WORK
        careful = self.quality == "careful" or (self.quality == "auto" and fits)
        starts, kicks = (RESTARTS, KICKS) if careful else (self.restarts, 0)
        if self.solver != "fast" and starts:
            raise ValueError(f"solver: {self.solver} is one descent from p qᵀ: it needs quality: fast and restarts: 0")
        return gromov.GromovOptions(solver=self.solver, alpha=alpha, restarts=starts, kicks=kicks)


class CompareSettings(SolverSettings):
    """Settings of a task that compares what small graphs release."""

    epsilons: Epsilons = Field(min_length=1, description="ε of each graph: a number, 1/n for n nodes, inf for no encoding")
    encoders: _Encoders = Field(["multi-bit"], min_length=1, description="what finite ε are read by")
    max_graphs: int | None = Field(None, ge=20, description="of a collection, a stratified sample of this many graphs")
    seeds: int | None = Field(None, ge=1, description="repetitions of this task, at most the scenario's seeds")
    metric: comparison.SpaceMetric = Field("euclidean", description="distance between rows: euclidean, cosine or correlation")
    weights: comparison.SpaceWeights = Field(
        "uniform",
        description="weights of nodes, on raw data and in clear: uniform or degree (an encoded release: uniform, its degrees "
        "are private)",
    )
    alpha: float = Field(0.5, ge=0, le=1, description="weight of structure in the fused discrepancy")
    attack: canary_graphs.GraphAttack | None = Field(
        None, description="toss a coin for each graph, and read what is released: a lower bound on ε"
    )


def name_cell(context: CellContext, method: str, row: Row, epsilon: float, seed: int) -> Cell:
    """The cell of a row. epsilon: the largest of any graph. Noise as the authors coded it has the published ε."""
    coded = row.encoder == "gaussian-as-coded" and not row.pooled
    reading = "none" if math.isinf(epsilon) else "published" if coded else "provable"
    return Cell(context.label, context.dataset, method, row.variant, JOINED_WORLD, epsilon, reading, seed, row.index)


def name_row_in_clear(context: CellContext, method: str, seed: int) -> Cell:
    """The cell of a row that needs no model."""
    return Cell(context.label, context.dataset, method, "baseline", JOINED_WORLD, math.inf, "none", seed)


def public_facts(
    partition: Partition, sizes: tuple[tuple[int, ...], ...], num_features: int, num_classes: int, **said: Any
) -> methods.PublicFacts:
    """What is public where clients hold small graphs.

    sizes: for each client the number of nodes of each of its graphs; empty where a client is one part of one graph. said: facts
    that differ from the usual ones.
    """
    own = tuple(s.graph.num_nodes for s in partition.subgraphs)
    usual: dict[str, Any] = {
        "num_nodes": sum(own), "holdings": None, "public": "nothing", "public_graph": None, "component_from_edges": False,
        "columns_from_rows": False, "features_from_edges": False,
    }  # fmt: skip
    return methods.PublicFacts(
        num_features=num_features, num_classes=num_classes, clients=own, graphs=sizes, viewer=privacy.Viewer.SERVER,
        membership_from_edges=partition.from_edges, membership_from_labels=partition.from_labels, cut_edges="dropped",
        public_attributes=None, colluders=1, split_from_edges=False, **usual | said,
    )  # fmt: skip


def train(
    made: EmbedderPlan, partition: Partition, key: Hashable, named: tuple[str | int, ...], cell: Cell,
    context: CellContext,
) -> cell_training.SettledPlan:  # fmt: skip
    """All rounds at the clients, and their price. key: names the partition at the workers. named: the model, in names of shared
    streams.
    """
    shared = context.runtime.share(("partition", context.label, cell.dataset, cell.seed, key), partition)
    common: tuple[str | int | float, ...] = (cell.task, cell.dataset, cell.method, *named, cell.seed)
    progress = (context.prefixes, context.on_round)
    outcome = rounds.run(context.runtime, shared, made, context.root, cell.path, common, *progress)
    return cell_training.settle_plan(made, partition, outcome)


def price_untrained(
    cell: Cell, delta: float, metrics: dict[str, float], facts: cells.TaskFacts, *, by_edges: bool = False
) -> Result:
    """The result of a row that releases nothing: it reads public sizes alone (ε = 0), or raw data (ε = ∞).

    by_edges: the graphs are parts of one, drawn along its edges.
    """
    membership = privacy.Assumption.MEMBERSHIP_FROM_EDGES if by_edges else privacy.Assumption.MEMBERSHIP_GIVEN
    relation = privacy.Relation.NODE_REPLACE if by_edges else privacy.Relation.GRAPH_REPLACE
    protection = privacy.Protection(relation, privacy.Viewer.SERVER, (privacy.Assumption.SIZES_PUBLIC, membership))
    epsilon, theorem = np.inf, "computed on raw data"
    if cell.method in (SIZE, CONSTANT):
        epsilon, theorem = 0.0, "nothing was released beyond the public sizes"
    account = privacy.LedgerAccount(cell.key, protection, delta)
    return Result.of(cell, account, metrics=metrics, facts=facts, epsilon_provable=epsilon, theorem=theorem)


def _work(sizes: Sequence[int]) -> float:
    """Σ over pairs of n·m·(n + m)/2, which grows about as the cost of a descent on spaces of n and m points."""
    n = np.asarray(sizes, dtype=np.float64)
    return float((n.sum() * np.square(n).sum() - (n**3).sum()) / 2)


def prepare(
    collection: GraphCollection,
    max_graphs: int | None,
    max_degree: int,
    root: int,
    degrees: bool = False,
    attributes: bool = True,
) -> GraphCollection:
    """At most ``max_graphs`` graphs, drawn class by class; nodes without features get one-hot degrees.

    Columns of numbers become their logarithm over a range that is the same for all data (``methods.column_ranks.fixed``).
    degrees: put one-hot degrees before the features as well (not after them: the last columns name the kind of a node).
    attributes: False keeps only the one-hot kinds of nodes (``node_kinds``).
    """
    if max_graphs is not None and max_graphs < len(collection.graphs):
        rng = seeds.seeded_generator(root, "subset", collection.name)
        order, kept = rng.permutation(len(collection.graphs)), list[int]()
        for label in range(collection.num_classes):
            own = order[collection.labels[order] == label]
            kept += own[: max(1, round(max_graphs * own.size / len(collection.graphs)))].tolist()
        collection = collection.chosen(np.sort(kept))
    if (columns := collection.graphs[0].columns) is not None:  # nobody can estimate ranks where a graph is the unit
        scale = column_ranks.fixed(columns)
        collection = replace(collection, graphs=tuple(scale.scaled(graph) for graph in collection.graphs))
    if collection.graphs[0].num_features == 0:
        return _degree_features(collection, max_degree)
    if not attributes:
        kinds = node_kinds(collection)[1]
        narrow = [replace(g, features=sp.csr_array(g.features.tocsc()[:, -kinds:].tocsr())) for g in collection.graphs]
        collection = replace(collection, graphs=tuple(narrow))
    if degrees:
        counted = _degree_features(collection, max_degree)
        pairs = zip(counted.graphs, collection.graphs, strict=True)
        joined = [replace(g, features=sp.csr_array(sp.hstack([d.features, g.features], format="csr"))) for d, g in pairs]
        collection = replace(collection, graphs=tuple(joined))
    return collection


def node_kinds(collection: GraphCollection) -> tuple[tuple[np.ndarray, ...], int]:
    """(per graph, int64 [n] the kind of each node; how many kinds there are): the categorical part of the features.

    These are the last columns, as many as possible, in which every row has exactly one 1 and zeros otherwise: atoms of MUTAG,
    secondary structures of PROTEINS, one-hot degrees. ``ScenarioError`` if there are none.
    """
    rows = sp.vstack([g.features for g in collection.graphs], format="csr").toarray()
    for first in range(rows.shape[1] - 1):
        part = rows[:, first:]
        if ((part == 0) | (part == 1)).all() and (part.sum(axis=1) == 1).all():
            sizes = [g.num_nodes for g in collection.graphs]
            return tuple(np.split(part.argmax(axis=1).astype(np.int64), np.cumsum(sizes)[:-1])), part.shape[1]
    raise ScenarioError(f"{collection.name} has no node labels to train on; write 'pooling: mean' to train on graph labels")


def unite(name: str, graphs: Sequence[Graph], labels: np.ndarray, num_classes: int) -> Graph:
    """The disjoint union of the graphs. labels: int64, of all nodes."""
    adjacency = sp.csr_array(sp.block_diag([g.adjacency for g in graphs], format="csr"))
    features = sp.csr_array(sp.vstack([g.features for g in graphs], format="csr"))
    return plain_graph(name, adjacency, features, labels, num_classes, graphs[0].provenance)


_PAIRS_PER_CHUNK = 2000, 20_000  # least and most pairs; the latter for tiny spaces
_PAIRS_TO_VERIFY = 10  # in one call
_PAIRS_PER_BATCH = 20_000  # of POT's batched solver, in order of size
_SECONDS_BETWEEN_WRITES = 5.0


def _name_of(spaces: Sequence[MetricSpace], options: gromov.GromovOptions) -> str:
    digest = hashlib.sha256(repr(options).encode())
    for space in spaces:
        for part in (space.distances, space.weights, space.features if options.alpha is not None else None):
            if part is not None:
                digest.update(repr(part.shape).encode())
                digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()[:24]


@dataclass(frozen=True, eq=False)
class _Solved:
    """Results of the pairs of N spaces; each array is symmetric."""

    value: np.ndarray  # float64 [N, N], discrepancies; NaN where a pair is not solved
    converged: np.ndarray  # bool [N, N], whether the descent that won came to an end
    steps: np.ndarray  # int32 [N, N], its iterations; −1 where a pair is not solved

    @classmethod
    def nothing(cls, num: int) -> "_Solved":
        """No pair of ``num`` spaces."""
        shape = (num, num)
        return cls(np.full(shape, np.nan), np.zeros(shape, np.bool_), np.full(shape, -1, np.int32))

    def enter(self, which: np.ndarray, results: gromov.GromovResults) -> None:
        """Takes in the results of the pairs ``which``, int64 [q, 2], at (i, j) and at (j, i)."""
        for i, j in (which.T, which.T[::-1]):
            self.value[i, j], self.converged[i, j], self.steps[i, j] = results.value, results.converged, results.iterations

    def missing(self, which: np.ndarray) -> np.ndarray:
        """bool [q]: which pairs of ``which`` int64 [q, 2] are not there yet."""
        return np.asarray(self.steps[which[:, 0], which[:, 1]] < 0)


class _Pairs:
    """Pairs of a set of spaces, solved at the server.

    Results of other cells for the same spaces are read from the disk, and new ones are written there.
    """

    def __init__(
        self, spaces: Sequence[MetricSpace], options: gromov.GromovOptions, context: CellContext, known: _Solved | None = None
    ) -> None:
        self.solved = _Solved.nothing(len(spaces)) if known is None else known
        self._context, self._options, self._disk = context, options, context.pairs
        self._points = np.array([space.num_points for space in spaces])
        self._handle = context.runtime.share(f"spaces:{id(spaces)}", spaces)
        self._asked = np.zeros(self.solved.steps.shape, np.bool_)
        self._waiting: list[tuple[np.ndarray, gromov.GromovResults]] = []
        self._written = time.monotonic()
        self._name = _name_of(spaces, options) if self._disk else ""
        for part in self._disk.load(self._name) if self._disk else ():
            self.solved.enter(part["pairs"], gromov.GromovResults(part["value"], part["converged"], part["steps"]))

    def __enter__(self) -> "_Pairs":
        return self

    def __exit__(self, *error: object) -> None:
        self._write()  # also where the run is interrupted
        self._context.runtime.forget(self._handle)

    def solve(self, which: np.ndarray) -> np.ndarray:
        """float64 [q], the discrepancies of pairs int64 [q, 2]; a known pair is not solved again."""
        new, batched = which[self.solved.missing(which)], self._options.solver == "batched"
        order = np.lexsort(self._points[new].T) if batched else np.arange(len(new))
        size = _PAIRS_PER_BATCH if batched else _chunk_size(self._points)
        chunks = [new[order[i : i + size]] for i in range(0, len(new), size)]
        done = len(which) - len(new)
        self._context.progress("GW pairs", done, len(which))
        found = self._context.runtime.map(_solve_chunk, chunks, self._handle, self._options)
        for chunk, part in zip(chunks, found, strict=True):
            self.solved.enter(chunk, part)
            self._waiting.append((chunk, part))
            if time.monotonic() - self._written > _SECONDS_BETWEEN_WRITES:
                self._write()
            done += len(chunk)
            self._context.progress("GW pairs", done, len(which))
        self._asked[which.min(1), which.max(1)] = True
        return self.solved.value[which[:, 0], which[:, 1]]

    def close(self) -> comparison.GromovPairFacts:
        """Writes all results as one table. Returns where it is, how many pairs this cell asked for, and how many converged.

        The table also holds pairs of other cells. They do not count here, since their order must not change this record.
        """
        self._write()
        file = self._disk.close(self._name) if self._disk and self._asked.any() else None
        return comparison.GromovPairFacts(file, int(self._asked.sum()), int(self.solved.converged[self._asked].sum()))

    def _write(self) -> None:
        """Writes the results since the last call."""
        if self._disk and self._waiting:
            parts = [results for _, results in self._waiting]
            columns = {
                "pairs": np.concatenate([which for which, _ in self._waiting]).astype(np.int32),
                "value": np.concatenate([p.value for p in parts]),
                "converged": np.concatenate([p.converged for p in parts]),
                "steps": np.concatenate([p.iterations for p in parts]).astype(np.int32),
            }
            self._disk.add(self._name, columns)
        self._waiting, self._written = [], time.monotonic()


def solve_all(
    spaces: Sequence[MetricSpace], options: gromov.GromovOptions, context: CellContext
) -> tuple[np.ndarray, SolverFacts]:
    """[N, N] discrepancies, and how they were solved."""
    which = gromov.all_pairs(len(spaces))
    with _Pairs(spaces, options, context) as pairs:
        values = pairs.solve(which)
    return gromov.assemble_matrix(len(spaces), which, values), SolverFacts(pairs.close())


def solve_asked(
    spaces: Sequence[MetricSpace],
    options: gromov.GromovOptions,
    context: CellContext,
    split: ClassifySplit,
    k: int | None,
    known: _Solved | None = None,
) -> tuple[np.ndarray, SolverFacts]:
    """All discrepancies; with ``k``, those that votes of up to k neighbours of test rows need, and infinity elsewhere.

    The facts say where the results are kept, and how many pairs were asked for. known: results for the same spaces from
    before, to which new ones are added; they save work and change no number.
    """
    if k is None:
        return solve_all(spaces, options, context)
    columns = np.sort(np.concatenate([split.train, split.validation]))
    with _Pairs(spaces, options, context, known) as pairs:
        found, asked = gromov_bounds.solve_within(spaces, split.test, columns, k, options.alpha, pairs.solve)
    reached = np.full(pairs.solved.value.shape, np.inf)
    reached[np.ix_(split.test, columns)] = found
    return reached, SolverFacts(pairs.close(), asked=(asked, int(split.test.size * columns.size)))


def solve_once(
    key: tuple[Hashable, ...],
    make: Callable[[], list[MetricSpace]],
    options: gromov.GromovOptions,
    context: CellContext,
    split: ClassifySplit,
    k: int | None,
) -> tuple[np.ndarray, SolverFacts]:
    """As ``solve_asked``, of spaces that ``make`` makes once; results are kept under ``key`` for all splits."""
    spaces = context.cached((*key, "spaces"), make)
    if k is None:
        return context.cached(key, lambda: solve_all(spaces, options, context))
    known = context.cached((*key, "known"), lambda: _Solved.nothing(len(spaces)))
    return solve_asked(spaces, options, context, split, k, known)


def verify(
    spaces: Sequence[MetricSpace], options: gromov.GromovOptions, num: int, rng: np.random.Generator, context: CellContext
) -> comparison.SolverAgreement | None:
    """``num`` pairs, drawn by ``rng``, solved by our solver and by POT in the server's processes (``agreement``)."""
    which = gromov.all_pairs(len(spaces))
    which = which[rng.permutation(len(which))[:num]]
    if not len(which) or options.loss != "square":  # ours has no other loss
        return None
    handle = context.runtime.share(f"spaces:{id(spaces)}", spaces)
    chunks = [which[i : i + _PAIRS_TO_VERIFY] for i in range(0, len(which), _PAIRS_TO_VERIFY)]
    found = list(context.runtime.map(agreement.with_pot, chunks, handle, options))
    context.runtime.forget(handle)
    return agreement.add(found)


def _chunk_size(points: np.ndarray) -> int:
    """Pairs in one call, for spaces of ``points`` int64 [N]: about the work of the least number of pairs of 20 points."""
    least, most = _PAIRS_PER_CHUNK
    return int(np.clip(least * 400.0 / max(float(points.mean()) ** 2, 1.0), least, most))


def _solve_chunk(which: np.ndarray, spaces: Sequence[MetricSpace], options: gromov.GromovOptions) -> gromov.GromovResults:
    return gromov.solve_pairs(spaces, which, options)


SIZE, DEGREES = "graph size", "size and degrees"
CONSTANT = "constant embedding"
LEAKING = (SIZE, DEGREES)


def of_degrees(graphs: Sequence[Graph]) -> np.ndarray:
    """Squared Euclidean distance of sizes and sorted degree sequences, in medians."""
    rows = np.zeros((len(graphs), 1 + max(g.num_nodes for g in graphs)))
    for row, graph in zip(rows, graphs, strict=True):
        row[0] = graph.num_nodes
        row[1 : 1 + graph.num_nodes] = np.sort(graph.degrees)[::-1]
    return scaled(cdist(rows, rows, "sqeuclidean"))


def scaled(distances: np.ndarray) -> np.ndarray:
    """Divided by the median of the positive entries, so that one grid of γ fits every baseline."""
    positive = distances[distances > 0]
    return distances / float(np.median(positive)) if positive.size else distances


def embedded_spaces(
    embeddings: Sequence[np.ndarray],
    metric: comparison.SpaceMetric,
    graphs: Sequence[Graph],
    fused: str | None = None,
    weights: comparison.SpaceWeights = "uniform",
) -> list[MetricSpace]:
    """Spaces of node embeddings; fused: with node features, ``raw`` as the graph has them or the ``embedding`` itself.

    weights ``degree`` reads the graph itself: only for embeddings that are sent in clear.
    """
    made = []
    for rows, graph in zip(embeddings, graphs, strict=True):
        features = None if fused is None else rows if fused == "embedding" else graph.features.toarray()
        made.append(
            metric_space.from_embedding(rows, metric, weights, graph.degrees if weights == "degree" else None, features)
        )
    return made


def constant_spaces(
    sizes: Sequence[int], encoding: Any, metric: comparison.SpaceMetric, rng: np.random.Generator
) -> list[MetricSpace]:
    """Spaces of encoded embeddings that were ½ everywhere."""
    return [
        metric_space.from_embedding(encoding.of_graph(n)[0].apply(np.full((n, encoding.width), 0.5), rng), metric)
        for n in sizes
    ]


def _degree_features(collection: GraphCollection, max_degree: int) -> GraphCollection:
    """The collection with one-hot degrees, CSR float32 [n, max_degree + 1], instead of its features.

    Larger degrees share the last column. ``DataError`` if ``max_degree`` is negative.
    """
    if max_degree < 0:
        raise DataError(f"max_degree is {max_degree}; allowed: 0 or more")
    graphs = []
    for graph in collection.graphs:
        columns = np.minimum(graph.degrees, max_degree).astype(np.int32)
        index = np.arange(graph.num_nodes + 1, dtype=np.int32)
        ones = np.ones(graph.num_nodes, dtype=np.float32)
        graphs.append(replace(graph, features=sp.csr_array((ones, columns, index), shape=(graph.num_nodes, max_degree + 1))))
    return replace(collection, graphs=tuple(graphs))
