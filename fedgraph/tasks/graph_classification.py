"""Classifying graphs by the geometry of what their clients release (Jin & Chen, §4 "Graph classification", Table 1).

Graphs are dealt to clients by a Dirichlet distribution over labels. Clients train a shared GCN or GIN together, on the node
labels of the training graphs as in the paper (``pooling: none``; one-hot degrees for IMDB-BINARY, which has none) or on their
graph labels (``mean``, ``sum``; then the model itself is a classifier, too). Each graph's node embedding is encoded. The server
computes all Gromov-Wasserstein discrepancies D and classifies by a support vector machine on exp(−γD) and by nearest neighbours
(or by these alone: then only pairs that can be among them are solved). Seed s tests fold s of a cross-validation (7 : 2 : 1).

Rows of embeddings choose C and γ on validation graphs, on which the model did not train; rows without a model by inner folds.

Every table also has rows that read no embedding of a graph: ``graph size``, ``size and degrees``, and ``constant embedding``,
the encoder applied to embeddings that are ½ everywhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import AfterValidator, Field, model_validator
from scipy.sparse.csgraph import shortest_path

from fedgraph import comparison, documents, methods, seeds
from fedgraph.attacks import canary_graphs
from fedgraph.audit import operating_points
from fedgraph.cells import GraphClassificationCellFacts, require_distinct_cells
from fedgraph.comparison import ClassifySplit, classify, gromov, metric_space
from fedgraph.documents import SettingsSpec
from fedgraph.errors import ScenarioError
from fedgraph.methods import method_kinds
from fedgraph.partition import PartitionShares
from fedgraph.partition import base as partitions
from fedgraph.privacy import blocks
from fedgraph.tasks import base
from fedgraph.tasks.base import Cell, CellContext, Result, graphs, grid, measures
from fedgraph.types import Graph, GraphCollection, Partition, Subgraph

_KERNEL, TOPOLOGY, FUSED = "shortest-path kernel", "GW(A)", "FGW(A, X)"
_Baseline = Literal["shortest-path kernel", "GW(A)", "FGW(A, X)"]


def _label(method: SettingsSpec) -> str:
    return str(method.get("label", method.get("model", "gcn")))


class _RowKeys(grid.TaskRowKeys):
    """The keys of a model that are the task's."""

    epsilons: graphs.OwnEpsilons = Field(None, description="ε of this model; default the task's")
    compare: bool | None = Field(None, description="false: only the model's own answers")
    fused: Literal["raw", "embedding"] | None = Field(None, description="node features beside distances")


def _checked(methods: list[SettingsSpec]) -> list[SettingsSpec]:
    require_distinct_cells("the model", [_label(m) for m in methods])
    found = []
    for m in methods:
        budgets = [graphs.parse_epsilon(e) for e in m.get("epsilons", ())]
        in_clear = "epsilons" in m and all(map(graphs.is_in_clear, budgets))
        if "fused" in m and not in_clear:
            raise ValueError("fused looks at rows in clear: it needs epsilons [inf]")
        if not m.get("compare", True) and (m.get("pooling") == "none" or not in_clear):
            raise ValueError("compare: false asks for the model's own answers: it needs epsilons [inf] and pooling mean or sum")
        found.append(m | ({"epsilons": ["inf" if graphs.is_in_clear(e) else e for e in budgets]} if "epsilons" in m else {}))
    return found


_Model = Annotated[graphs.Model, AfterValidator(grid.check_keys(_RowKeys))]


class Params(graphs.CompareSettings):
    """Models, budgets, encoders, and how the server compares and classifies."""

    methods: Annotated[list[_Model], AfterValidator(_checked)] = Field(
        min_length=1, description="shared models: method, label, settings, and if wanted own epsilons, compare: false, fused"
    )
    epsilons_of: Annotated[dict[str, graphs.Epsilons], documents.SettingNotes(infinite=True, per_dataset=True)] = Field(
        {}, description="epsilons on single data sets, by name"
    )
    baselines: Annotated[list[_Baseline], graphs.Distinct] = Field(
        ["shortest-path kernel", "GW(A)", "FGW(A, X)"], description="rows on raw data"
    )
    partition: documents.SettingsSpec = Field(
        default_factory=lambda: {"partition": "dirichlet", "clients": 10}, description="how graphs are dealt to clients"
    )
    seeds_of: Annotated[dict[str, Annotated[int, Field(ge=1)]], documents.PerDatasetSetting] = Field(
        {}, description="repetitions on single data sets, by name"
    )
    folds: int = Field(10, ge=2, description="seed s tests fold s (mod folds) of a stratified cross-validation")
    validation: float = Field(0.2, gt=0, lt=1, description="share of all graphs that choose C and γ")
    held_out: Literal["folds", "clients"] = Field(
        "folds",
        description="folds: of all graphs; clients: each keeps 1/folds of its own to test, and a share validation of its own",
    )
    delta: float = Field(1e-5, gt=0, lt=1, description="δ at which losses that are not pure are priced")
    neighbours: list[Annotated[int, Field(ge=1)]] = Field([5, 20], description="k of the nearest-neighbour votes")
    classifier: Literal["svm", "neighbours"] = Field(
        "svm", description="svm, with votes beside it; neighbours: the first vote is the accuracy, and far pairs stay unsolved"
    )
    tuned_on_test: bool = Field(
        False, description="also accuracies with C, γ and the round picked on the test graphs: no result, what that would print"
    )
    loss: Literal["square", "kl"] = Field("square", description="of two distances: square, or kl (divergence, POT's solvers)")
    handling: comparison.IndefiniteKernelHandling = Field(
        "clip", description="negative eigenvalues of the kernel: as_is, clip or shift"
    )
    max_degree: int = Field(64, ge=1, description="largest one-hot degree, where nodes have no features (or degrees is true)")
    degrees: bool = Field(False, description="one-hot degrees before the features of nodes that have some")
    attributes: bool = Field(True, description="false: of nodes with numeric attributes and a kind, the one-hot kinds only")

    @model_validator(mode="after")
    def _votes(self) -> Self:
        self.options()
        if self.classifier == "neighbours" and (self.tuned_on_test or not self.neighbours):
            raise ValueError("classifier: neighbours needs a k in neighbours, and has nothing to be tuned_on_test")
        if self.classifier == "neighbours" and self.loss != "square":
            raise ValueError("classifier: neighbours skips far pairs by bounds for the square loss; write loss: square")
        return self

    def options(self, alpha: float | None = None, sizes: Sequence[int] = ()) -> gromov.GromovOptions:
        return replace(super().options(alpha, sizes), loss=self.loss)

    @property
    def only_nearest(self) -> int | None:
        """The largest k, if votes are all that is wanted of the distances."""
        return max(self.neighbours) if self.classifier == "neighbours" else None


def plugins_of(params: Params) -> list[base.NestedTaskPlugin]:
    """The partition and the methods, for validation with their place in the file."""
    return [(("partition",), "partition", params.partition), *base.nest_methods(params.methods, _RowKeys)]


def cells(params: Params, context: CellContext) -> list[Cell]:
    """Per seed: the rows without a model, then every model, budget and encoder."""
    collection = _collection(params, context)
    _require_classes(collection, params.folds)
    smallest = min(g.num_nodes for g in collection.graphs)
    rows = (*graphs.LEAKING, *(b for b in params.baselines if b != FUSED or _has_features(context)))
    found: list[Cell] = []
    for seed in range(min(context.seeds, params.seeds_of.get(context.dataset, params.seeds or context.seeds))):
        found += [graphs.name_row_in_clear(context, row, seed) for row in rows]
        for rows_of_model in _rows(params, context):
            first = rows_of_model[0]
            if not graphs.is_in_clear(first.epsilon):
                exposing = [r for r in rows_of_model if r.epsilon == first.epsilon]
                found += [_cell(context, graphs.CONSTANT, r, smallest, seed) for r in exposing]
            found += [_cell(context, params.methods[r.index]["method"], r, smallest, seed) for r in rows_of_model]
    return found


def _rows(params: Params, context: CellContext) -> list[tuple[graphs.Row, ...]]:
    """The rows of every model, in order."""
    usual, found = params.epsilons_of.get(context.dataset, params.epsilons), []
    for index, method in enumerate(params.methods):
        budgets = [graphs.parse_epsilon(e) for e in method.get("epsilons", usual)]
        encoders = {value: ["none"] if graphs.is_in_clear(value) else params.encoders for value in budgets}
        found.append(
            tuple(graphs.Row(index, _label(method), encoder, value) for value in budgets for encoder in encoders[value])
        )
    return found


def _row(params: Params, cell: Cell, context: CellContext) -> graphs.Row:
    return next(r for r in cell.among(_rows(params, context)) if r.variant == cell.variant)


def _cell(context: CellContext, method: str, row: graphs.Row, smallest: int, seed: int) -> Cell:
    return graphs.name_cell(context, method, row, 1.0 / smallest if isinstance(row.epsilon, str) else row.epsilon, seed)


def plan(params: Params, cell: Cell, context: CellContext) -> graphs.EmbedderPlan | None:
    """The method's plan from public facts; None for a row without a model."""
    return None if cell.variant == "baseline" else _planned(params, cell, context)[0]


@dataclass(frozen=True, eq=False)
class _Dealt:
    """A collection that was dealt to clients."""

    partition: Partition  # each client's graphs as one block-diagonal graph
    order: np.ndarray  # int64 [graphs], positions in the collection, client by client
    sizes: tuple[tuple[int, ...], ...]  # for each client, the number of nodes of each of its graphs


def _planned(params: Params, cell: Cell, context: CellContext) -> tuple[graphs.EmbedderPlan, _Dealt, ClassifySplit]:
    collection = _collection(params, context)
    row, entry = _row(params, cell, context), cell.among(params.methods)
    spec = grid.without_keys(entry, _RowKeys)
    split, dealt = _dealt(params, cell.seed, context, on_nodes=spec.get("pooling") == "none")
    features, classes = collection.graphs[0].num_features, dealt.partition.subgraphs[0].graph.num_classes
    all_of_them = isinstance(context.data, GraphCollection) and len(context.data.graphs) == len(collection.graphs)
    by_label = params.held_out == "folds" or not all_of_them  # folds, and a part of the collection, are drawn class by class
    facts = graphs.public_facts(dealt.partition, dealt.sizes, features, classes, split_from_labels=by_label)
    module = method_kinds.load_embedder(entry["method"])
    attendance = seeds.seeded_integer(context.root, "attendance", cell.seed)
    spec |= {"encoder": row.encoder, "epsilon_rule": row.rule, "attendance_seed": attendance}
    epsilon = 1.0 if row.rule == "1/n" else cell.epsilon
    made = module.plan(module.Params(**spec), facts, methods.Budget(epsilon, params.delta))
    return made, dealt, split


def run(params: Params, cell: Cell, context: CellContext) -> Result:
    """One row for one split."""
    if cell.variant == "baseline":
        split, dealt = _dealt(params, cell.seed, context)
        known = np.sort(np.concatenate([split.train, split.validation]))
        judged_by = ClassifySplit(known, np.zeros(0, np.int64), split.test)  # inner folds choose
        wanted = (params.alpha, _options(params, context), context, split, params.only_nearest, params.weights)
        distances, asked = of_row(cell.method, _collection(params, context), *wanted)
    elif cell.method == graphs.CONSTANT:
        made, dealt, split = _planned(params, cell, context)
        judged_by, key = split, cell.path[:-1]  # nothing is trained, so one draw serves all splits

        def spaces() -> list[comparison.MetricSpace]:
            sizes = [g.num_nodes for g in _collection(params, context).graphs]
            rng = seeds.seeded_generator(context.root, *key, "constant")
            return graphs.constant_spaces(sizes, made.made.encoding, params.metric, rng)

        options = _options(params, context)
        distances, asked = graphs.solve_once(("constant", *key), spaces, options, context, split, params.only_nearest)
    else:
        return _released(params, cell, context)
    facts = replace(_facts(params, context, dealt, split), solver=asked)
    return graphs.price_untrained(cell, params.delta, _judged(params, cell, context, distances, judged_by), facts)


def of_row(
    row: str,
    collection: GraphCollection,
    alpha: float,
    options: gromov.GromovOptions,
    context: CellContext,
    split: ClassifySplit,
    k: int | None,
    weights: comparison.SpaceWeights = "uniform",
) -> tuple[np.ndarray, comparison.SolverFacts]:
    """As ``graphs.solve_asked``, for a row that needs no model; results are kept for the other splits of this process."""
    key = ("distances", row, context.dataset, alpha, options, weights)
    if row in (TOPOLOGY, FUSED):  # shortest paths (unreachable pairs: one more than the diameter)

        def spaces() -> list[comparison.MetricSpace]:
            of_nodes = (g.features.toarray() if row == FUSED else None for g in collection.graphs)
            return [
                metric_space.from_topology(g.adjacency, weights, f) for g, f in zip(collection.graphs, of_nodes, strict=True)
            ]

        return graphs.solve_once(key, spaces, replace(options, alpha=alpha if row == FUSED else None), context, split, k)
    sizes = np.array([g.num_nodes for g in collection.graphs])
    made: dict[str, Callable[[], np.ndarray]] = {
        graphs.SIZE: lambda: graphs.scaled(np.subtract.outer(sizes, sizes).astype(float) ** 2),
        graphs.DEGREES: lambda: graphs.of_degrees(collection.graphs),
        _KERNEL: lambda: _shortest_path_distances(collection),
    }
    return context.cached(key, made[row]), comparison.SolverFacts()


def _shortest_path_distances(collection: GraphCollection) -> np.ndarray:
    """2 − 2K, K the normalised shortest-path kernel without node labels (Borgwardt & Kriegel 2005).

    K of two graphs is the cosine of their histograms of shortest-path lengths, over all pairs of nodes that a path joins. A
    node without edges is on no path; a graph without edges is like no other.
    """
    counts = [_path_length_counts(graph) for graph in collection.graphs]
    histograms = np.zeros((len(counts), max((c.size for c in counts), default=0)))
    for row, found in zip(histograms, counts, strict=True):
        row[: found.size] = found
    products = histograms @ histograms.T
    norms = np.sqrt(np.outer(products.diagonal(), products.diagonal()))
    kernel = np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)
    return np.clip(2.0 - 2.0 * kernel, 0.0, None) * (1.0 - np.eye(len(counts)))


def _path_length_counts(graph: Graph) -> np.ndarray:
    """int64 [longest + 1]: number of ordered pairs of different nodes whose shortest path has each length; none has 0."""
    lengths = shortest_path(graph.adjacency, directed=False, unweighted=True)
    return np.bincount(lengths[np.isfinite(lengths) & (lengths > 0)].astype(np.int64))


def _released(params: Params, cell: Cell, context: CellContext) -> Result:
    made, dealt, split = _planned(params, cell, context)
    collection = _collection(params, context)
    row, own = _row(params, cell, context), cell.among(params.methods)
    on_nodes = made.params.pooling == "none"
    done = graphs.train(made, dealt.partition, on_nodes, (row.label,), cell, context)
    metrics: dict[str, float] = {}
    asked = comparison.SolverFacts()
    if own.get("compare", True):
        embeddings = _in_order(done.outcome.state.memory.embeddings, dealt, made.made.encoding.width)
        weights = params.weights if graphs.is_in_clear(cell.epsilon) else "uniform"
        spaces = graphs.embedded_spaces(embeddings, params.metric, collection.graphs, own.get("fused"), weights)
        options = _options(params, context, params.alpha if "fused" in own else None)
        distances, asked = graphs.solve_asked(spaces, options, context, split, params.only_nearest)
        drawn = seeds.seeded_generator(context.root, *cell.path, "verify")
        asked = replace(asked, verified=graphs.verify(spaces, options, params.verify, drawn, context))
        metrics = _judged(params, cell, context, distances, split)
        if params.only_nearest is None:
            metrics["gw_mean"] = float(distances[np.triu_indices(len(spaces), 1)].mean())
    if not on_nodes:
        metrics |= _measure_model(made, done.outcome.state, dealt, collection, split, params.tuned_on_test)
    measured = canary_graphs.measure(params.attack, made, cell, context, dealt.partition, done.outcome.state)
    facts = _bound(_facts(params, context, dealt, split), made, dealt, collection)
    facts = replace(facts, solver=asked, attack=measured.attack, rounds=made.schedule.rounds)
    return done.as_result(cell, metrics | measured.metrics, facts, measured=measured.epsilon)


def _options(params: Params, context: CellContext, alpha: float | None = None) -> comparison.GromovOptions:
    return params.options(alpha, [graph.num_nodes for graph in _collection(params, context).graphs])


def _judged(params: Params, cell: Cell, context: CellContext, distances: np.ndarray, split: ClassifySplit) -> dict[str, float]:
    rng = seeds.seeded_generator(context.root, *cell.path, "svm")
    labels_of = _collection(params, context).labels
    return dict(context.runtime.on_server(_judge, distances, labels_of, split, rng, params))


def _require_classes(collection: GraphCollection, num_folds: int) -> None:
    """``ScenarioError`` if a class has fewer than two graphs, or the largest class has fewer graphs than there are folds."""
    counts = np.bincount(collection.labels, minlength=collection.num_classes)
    names = collection.classes or tuple(map(str, range(collection.num_classes)))
    if counts.size < 2 or int(counts.min()) < 2:
        few = int(counts.argmin())
        raise ScenarioError(
            f"{collection.name}: {counts.size} class(es), of which {names[few]!r} has {counts[few]} graph(s); allowed: two "
            "classes or more of two graphs or more, since some train and others test"
        )
    if int(counts.max()) < num_folds:
        allowed = f"at most {counts.max()}, the graphs of the largest class"
        raise ScenarioError(f"{collection.name}: folds is {num_folds}; allowed: {allowed}")


def _dealt(params: Params, seed: int, context: CellContext, on_nodes: bool = False) -> tuple[ClassifySplit, _Dealt]:
    def make() -> tuple[ClassifySplit, _Dealt]:
        collection = _collection(params, context)
        offers, settings = partitions.chosen(params.partition)
        if offers.deal is None:
            raise ScenarioError(f"graph_classification deals whole graphs; partition {params.partition['partition']!r} cannot")
        rng = seeds.seeded_generator(context.root, "partition", context.label, context.dataset, seed)
        shares = offers.deal(collection, settings, rng)
        how = (params.folds, params.validation, context.root, context.dataset, seed)
        split = split_by_clients(shares, *how) if params.held_out == "clients" else split_by_folds(collection.labels, *how)
        kinds = graphs.node_kinds(collection) if on_nodes else None
        return split, deal(collection, shares, split.train, kinds)

    return context.cached(("dealt", context.label, context.dataset, seed, on_nodes), make)


def split_by_folds(labels: np.ndarray, num_folds: int, validation: float, root: int, name: str, seed: int) -> ClassifySplit:
    """Split ``seed``: fold ``seed mod num_folds`` of a stratified cross-validation is the test set, so that ``num_folds`` seeds
    test every graph once. Of the others, ``validation`` (a share of all graphs) are validation graphs, the rest train.
    """
    from sklearn.model_selection import StratifiedKFold  # its import takes longer than many a cell

    turn, which = divmod(seed, num_folds)
    rng = seeds.seeded_generator(root, "folds", name, turn)
    model = StratifiedKFold(num_folds, shuffle=True, random_state=int(rng.integers(2**31)))
    rest, test = list(model.split(np.zeros(labels.size), labels))[which]
    order = seeds.seeded_generator(root, "validation", name, seed).permutation(rest)
    held = round(validation * labels.size)
    return ClassifySplit(np.sort(order[held:]), np.sort(order[:held]), np.sort(test))


def split_by_clients(
    shares: PartitionShares, num_folds: int, validation: float, root: int, name: str, seed: int
) -> ClassifySplit:
    """Every client keeps about 1/``num_folds`` of its own graphs for the test and a share ``validation`` for validation (Jin &
    Chen, §4: 10 % and 20 %). ``ScenarioError`` if no graph is left to test or to train.
    """
    test, held, rest = [], [], []
    for client, members in enumerate(shares.members):
        order = seeds.seeded_generator(root, "own parts", name, seed, client).permutation(members)
        asked, choosing = round(order.size / num_folds), round(validation * order.size)
        test.append(order[:asked])
        held.append(order[asked : asked + choosing])
        rest.append(order[asked + choosing :])
    train, validated, tested = (np.sort(np.concatenate(parts)) for parts in (rest, held, test))
    if not train.size or not tested.size:
        raise ScenarioError(
            f"{name}: of {len(shares.members)} clients none holds graphs enough to keep 1/{num_folds} of them for a test; "
            "allowed: fewer clients, fewer folds, or held_out: folds"
        )
    return ClassifySplit(train, validated, tested)


def deal(
    collection: GraphCollection,
    shares: PartitionShares,
    train: np.ndarray,
    kinds: tuple[tuple[np.ndarray, ...], int] | None = None,
) -> _Dealt:
    """The collection dealt to clients; labels of graphs outside ``train`` are hidden (−1).

    A node's label is that of its graph, or its own kind if ``kinds`` are given (as ``graphs.node_kinds`` returns them).
    """
    shown = np.full(collection.labels.size, -1, dtype=np.int64)
    shown[train] = collection.labels[train]
    seen = set(train.tolist())
    classes = collection.num_classes if kinds is None else kinds[1]
    first, subgraphs, sizes = 0, [], []
    for client, members in enumerate(shares.members):
        held = [collection.graphs[i] for i in members]
        own = tuple(g.num_nodes for g in held)
        labels = np.repeat(shown[members], own)
        if kinds is not None:
            own_kinds = (kinds[0][i] for i in members.tolist())
            given = [k if i in seen else np.full(k.size, -1) for i, k in zip(members.tolist(), own_kinds, strict=True)]
            labels = np.concatenate(given)
        nodes = np.arange(first, first + sum(own), dtype=np.int64)
        subgraphs.append(Subgraph(client, graphs.unite(collection.name, held, labels, classes), nodes))
        sizes.append(own)
        first += sum(own)
    told = (shares.description, False, shares.from_labels, shares.natural)
    partition = Partition(tuple(subgraphs), True, 0, *told)
    return _Dealt(partition, np.concatenate(shares.members), tuple(sizes))


def _collection(params: Params, context: CellContext) -> GraphCollection:
    given = context.data
    if not isinstance(given, GraphCollection):
        raise ScenarioError(f"{context.dataset} is one graph; task graph_classification needs a collection, such as tu/mutag")

    def make() -> GraphCollection:
        return graphs.prepare(given, params.max_graphs, params.max_degree, context.root, params.degrees, params.attributes)

    return context.cached(("collection", context.label, context.dataset), make)


def _has_features(context: CellContext) -> bool:
    return isinstance(context.data, GraphCollection) and context.data.graphs[0].num_features > 0


def _in_order(received: list[np.ndarray | None], dealt: _Dealt, width: int) -> list[np.ndarray]:
    """One embedding per graph of the collection; ½ everywhere for graphs of a client that never sent one."""
    found: list[np.ndarray] = [np.zeros(0)] * dealt.order.size
    at = 0
    for rows, sizes in zip(received, dealt.sizes, strict=True):
        rows = np.full((sum(sizes), width), 0.5) if rows is None else rows
        for part in blocks.split(rows, sizes):
            found[int(dealt.order[at])] = part
            at += 1
    return found


def _measure_model(
    made: graphs.EmbedderPlan,
    state: methods.State[methods.EmbedderMethodMemory],
    dealt: _Dealt,
    collection: GraphCollection,
    split: ClassifySplit,
    tuned: bool,
) -> dict[str, float]:
    """``model``: test accuracy of the shared model itself, on the graphs in clear.

    tuned: also ``model_on_training``, the accuracy on the training graphs; and if the server kept copies of the model, test
    accuracies of the copy that is best on validation graphs (``model_by_validation``, the first of equals) and of the one that
    is best on the test graphs (``model_tuned_on_test``: not a result; it shows how optimistic such a choice is).
    """
    method = method_kinds.load_embedder(made.method)

    def right(parameters: np.ndarray) -> np.ndarray:
        clients = zip(dealt.partition.subgraphs, dealt.sizes, strict=True)
        named = [method.answers(made, parameters, subgraph.graph, sizes).argmax(axis=1) for subgraph, sizes in clients]
        return np.asarray(np.concatenate(named) == collection.labels[dealt.order])[np.argsort(dealt.order)]

    last = right(state.model["parameters"])
    found = {"model": float(last[split.test].mean())}
    if not tuned:
        return found
    found["model_on_training"] = float(last[split.train].mean())
    if kept := [right(parameters) for parameters in state.memory.kept]:
        by_validation = max(kept, key=lambda r: float(r[split.validation].mean()))
        found["model_by_validation"] = float(by_validation[split.test].mean())
        found["model_tuned_on_test"] = max(float(r[split.test].mean()) for r in kept)
    return found


def _facts(params: Params, context: CellContext, dealt: _Dealt, split: ClassifySplit) -> GraphClassificationCellFacts:
    """Facts of every row: the clients, the graphs, and the sizes of the split."""
    collection, dealt_to = _collection(params, context), dealt.partition
    sizes = np.array([g.num_nodes for g in collection.graphs])
    parts = (int(split.train.size), int(split.validation.size), int(split.test.size))
    return GraphClassificationCellFacts(
        clients=dealt_to.num_clients, partition=dealt_to.description, natural=dealt_to.natural, cut_edges=0, folds=parts,
        graphs=int(sizes.size), tested=parts[2], mean_nodes=float(sizes.mean()),
        least_class=measures.least_class(collection.labels),
        classifier="SVM" if params.only_nearest is None else f"k-NN, k = {params.neighbours[0]}",
    )  # fmt: skip


def _bound(
    facts: GraphClassificationCellFacts,
    made: graphs.EmbedderPlan,
    dealt: _Dealt,
    collection: GraphCollection,
) -> GraphClassificationCellFacts:
    """The facts with the ε of each graph's release, and the best accuracy of any classifier at it (pure ε only)."""
    if collection.num_classes != 2 or not made.made.graph_epsilons:
        return facts
    epsilons = np.empty(dealt.order.size)
    epsilons[dealt.order] = np.concatenate([np.array(e) for e in made.made.graph_epsilons])
    if not np.isfinite(epsilons).all():
        return facts
    sizes = np.array([g.num_nodes for g in collection.graphs])
    balanced = float(np.mean([operating_points.best_accuracy(float(e)) for e in epsilons]))
    given = operating_points.best_accuracy_given(sizes, collection.labels, epsilons)
    return replace(facts, bayes_balanced=balanced, bayes_given_size=given)


def _judge(
    distances: np.ndarray, labels: np.ndarray, split: ClassifySplit, rng: np.random.Generator, how: Params
) -> dict[str, float]:
    """Metrics of the SVM on exp(−γD), or of the first vote if only votes are asked for; and each vote, ``knn<k>``.

    The SVM also gives the kernel's most negative eigenvalue. Inner folds choose its settings if there are no validation rows.
    """
    nearest = {k: classify.by_nearest(distances, labels, (split,), k) for k in how.neighbours}
    votes = {f"knn{k}": found.mean for k, found in nearest.items()}
    if how.only_nearest is not None:
        return measures.of_classes(nearest[how.neighbours[0]].named[0], labels[split.test]) | votes
    found = classify.by_svm(distances, labels, (split,), rng, how.handling)
    metrics = measures.of_classes(found.named[0], labels[split.test])
    metrics["most_negative_eigenvalue"] = float(found.most_negative[0])
    if how.tuned_on_test:
        known = np.sort(np.concatenate([split.train, split.validation]))
        picked = ClassifySplit(known, split.test, split.test)
        found = classify.by_svm(distances, labels, (picked,), rng, how.handling)
        metrics["tuned_on_test"] = found.chosen[0]["validation"]
    return metrics | votes


TASK: base.TaskOffers[Params] = base.TaskOffers(
    row_keys=_RowKeys,
    refuses=lambda params, name: method_kinds.explain_misfit(name, "embedder", "collection"),
    clients=lambda params, cell, context: _planned(params, cell, context)[1].partition,
)
