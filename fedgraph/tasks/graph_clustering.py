"""Clustering small graphs by the geometry of what they release (Jin & Chen, §4 "Graph clustering").

Clients are ego-networks of one big graph. Each sends an (encoded) node embedding; the server makes it a
metric space, computes all pairwise Gromov-Wasserstein discrepancies and runs k-means whose centroids are
Gromov-Wasserstein barycentres. The pseudo-label of a graph is the label of its centre node. Scores
compare with those labels; the simulator knows them, the server does not.

Every table has the rows ``graph size`` (clusters made from the public number of nodes alone), ``size and degrees`` and
``constant embedding`` (the encoder applied to embeddings that are ½ everywhere). A release has shown something only above them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from fedgraph import plugins, seeds
from fedgraph.comparison import cluster, gromov, maps
from fedgraph.comparison.metric_space import Metric, MetricSpace, Weights
from fedgraph.errors import ScenarioError
from fedgraph.federation import rounds
from fedgraph.methods.base import Budget, Plan, PublicFacts, kinds
from fedgraph.methods.base.kinds import Embedding
from fedgraph.privacy.ledger import Account
from fedgraph.privacy.settle import settle
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer
from fedgraph.settings import Settings
from fedgraph.tasks import _promises
from fedgraph.tasks._graph_rows import constant_spaces, degree_distances, embedded_spaces
from fedgraph.tasks._graph_settings import WEIGHTS, Distinct, Encoder, Epsilons, Model
from fedgraph.tasks._pairwise import all_pairs
from fedgraph.tasks.base import Cell, Context, Outcome
from fedgraph.types import Graph, Partition

SIZE_ONLY = "graph size"
SIZE_AND_DEGREES = "size and degrees"
CONSTANT = "constant embedding"
PLAIN = "encoded"  # the variant of the paper's encoder at a plain ε


class Params(Settings):
    """One encoder, several budgets, and how the server compares and clusters."""

    method: Model = Field({"method": "local_dp"}, description="method: file name in fedgraph/methods, then its settings")
    partition: dict[str, Any] = Field(
        default_factory=lambda: {"partition": "ego", "clients": 200, "hops": 1},
        description="which small graphs are the clients",
    )
    epsilons: Epsilons = Field(
        min_length=1, description="ε of each client's encoded graph: a number, 1/n for n nodes, inf for no encoding"
    )
    encoders: Annotated[list[Encoder], Distinct] = Field(["multi-bit"], min_length=1, description="what finite ε are read by")
    seeds: int | None = Field(None, ge=1, description="repetitions of this task, at most the scenario's seeds")
    clusters: int | None = Field(None, ge=2, description="clusters; default the number of classes")
    metric: Metric = Field("euclidean", description="distance between rows: euclidean, cosine or correlation")
    weights: Weights = Field("uniform", description=WEIGHTS)
    restarts: int = Field(0, ge=0, description="random restarts of each Gromov-Wasserstein problem")
    num_init: int = Field(3, ge=1, description="k-means starts; the lowest inertia counts")
    max_iterations: int = Field(20, ge=1, description="k-means iterations")
    map: Literal["mds", "tsne"] = Field("mds", description="picture of the distances: mds, or tsne as in the paper")


def plugins_of(params: Params) -> list[tuple[tuple[str | int, ...], str, dict[str, Any]]]:
    """Nested plugin settings, for validation with their place in the file."""
    return [(("method",), "methods", params.method), (("partition",), "partition", params.partition)]


def refuses(params: Params, name: str) -> str | None:
    """Why the method ``name`` cannot serve here, or None."""
    return kinds.misfit(name, "embedder", "ego")


def cells(params: Params, context: Context) -> list[Cell]:
    """Per seed: the rows that see no embedding, then every budget and encoder."""
    found: list[Cell] = []
    for seed in range(min(context.seeds, params.seeds or context.seeds)):
        for row in (SIZE_ONLY, SIZE_AND_DEGREES):
            found.append(Cell(context.label, context.dataset, row, "baseline", "local", np.inf, "none", seed))
        finite = [e for e in params.epsilons if isinstance(e, str) or np.isfinite(e)]
        if finite:
            found.append(_cell(params, context, CONSTANT, params.encoders[0], finite[0], seed))
        for epsilon in params.epsilons:
            for encoder in params.encoders if epsilon in finite else params.encoders[:1]:
                found.append(_cell(params, context, params.method["method"], encoder, epsilon, seed))
    return found


def _cell(params: Params, context: Context, method: str, encoder: str, epsilon: float | str, seed: int) -> Cell:
    """The variant names encoder and rule; epsilon is the largest over graphs."""
    if isinstance(epsilon, str):
        smallest = min(s.graph.num_nodes for s in _partition(params, seed, context).subgraphs)
        return Cell(context.label, context.dataset, method, f"{encoder}/1/n", "local", 1.0 / smallest, _reading(encoder), seed)
    variant = PLAIN if encoder == "multi-bit" or np.isinf(epsilon) else f"{encoder}/epsilon"
    reading = "none" if np.isinf(epsilon) else _reading(encoder)
    return Cell(context.label, context.dataset, method, variant, "local", float(epsilon), reading, seed)


def _reading(encoder: str) -> str:
    """Which ε the target is: of the released code, the published one."""
    return "published" if encoder == "gaussian-as-coded" else "provable"


def plan(params: Params, cell: Cell, context: Context) -> Plan[Any, Embedding] | None:
    """The method's plan from public facts: sizes, and who holds which node. None for the rows without a release."""
    if cell.method in (SIZE_ONLY, SIZE_AND_DEGREES):
        return None
    graph = _graph(context)
    partition = _partition(params, cell.seed, context)
    facts = PublicFacts(
        num_nodes=graph.num_nodes,
        num_features=graph.num_features,
        num_classes=graph.num_classes,
        client_sizes=tuple(s.graph.num_nodes for s in partition.subgraphs),
        viewer=Viewer.SERVER,
        holdings=partition.holdings(graph.num_nodes),
        membership_from_edges=partition.from_edges,
    )
    spec = dict(params.method)
    module = kinds.embedder(spec.pop("method"))
    epsilon = cell.epsilon
    if cell.variant != PLAIN:
        spec["encoder"], spec["epsilon_rule"] = cell.variant.split("/", 1)
        epsilon = 1.0 if spec["epsilon_rule"] == "1/n" else epsilon
    return module.plan(module.Params(**spec), facts, Budget(epsilon, 1.0 / graph.num_nodes))


def run(params: Params, cell: Cell, context: Context) -> Outcome:
    """Train and encode at the clients, compare and cluster at the server."""
    partition = _partition(params, cell.seed, context)
    truth = np.array([s.graph.labels[s.center] for s in partition.subgraphs])
    k = params.clusters or _graph(context).num_classes
    if cell.method in (SIZE_ONLY, SIZE_AND_DEGREES):
        return _unreleased(cell, context, partition, truth, _by_counts(cell, context, partition, k), None, {})
    made = plan(params, cell, context)
    assert made is not None
    if cell.method == CONSTANT:
        return _constant(params, cell, context, partition, made, truth, k)
    shared = context.runtime.share(f"partition:{context.label}:{cell.dataset}:{cell.seed}", partition)
    common = (cell.task, cell.dataset, cell.method, PLAIN, cell.setting, cell.seed)
    trained = rounds.run(context.runtime, shared, made, context.root, cell.path, common, context.prefixes, context.on_round)

    weights = params.weights if np.isinf(cell.epsilon) else "uniform"
    received = _known(trained.state.memory.embeddings, made)
    spaces = embedded_spaces(received, params.metric, [s.graph for s in partition.subgraphs], weights=weights)
    distances, solved = all_pairs(spaces, gromov.GromovOptions(restarts=params.restarts), context)
    rng = seeds.generator(context.root, *cell.path, "cluster")
    found = context.runtime.get(
        context.runtime.on_server(_cluster, spaces, k, rng, params.num_init, params.max_iterations, distances)
    )

    guarantee = replace(made.guarantee, promises=_promises.looked_up(made, partition))
    settled = settle(guarantee, trained.releases)
    embedding = settled.paths["embedding"]
    rng = seeds.generator(context.root, *cell.path, "map")
    places = None if cell.seed else maps.mds(distances) if params.map == "mds" else maps.tsne(distances, rng)
    by_spectrum = cluster.spectral(distances, k, seeds.generator(context.root, *cell.path, "spectral"))
    upper = distances[np.triu_indices(len(spaces), 1)]
    return Outcome(
        metrics=cluster.scores(truth, found.labels, distances)
        | {f"spectral_{name}": value for name, value in cluster.scores(truth, by_spectrum.labels).items()}
        | {"gw_mean": float(upper.mean()) if upper.size else 0.0},
        facts=_facts(partition)
        | solved
        | {
            "rounds": made.rounds,
            "node_losses": embedding.quantiles,
            "worst_node_clients": len(embedding.holders or (0,)),
        },
        account=settled.account(cell.key, guarantee),
        releases=trained.releases,
        epsilon_published=made.epsilon_published,
        epsilon_provable=settled.epsilon,
        theorem=settled.theorem,
        paths=settled.path_epsilons(),
        notes=made.notes,
        artefacts={} if places is None else _artefacts(distances, truth, found.labels, places),
    )


def _cluster(
    spaces: Sequence[MetricSpace], k: int, rng: np.random.Generator, num_init: int, max_iterations: int, distances: np.ndarray
) -> Any:
    options = gromov.GromovOptions()
    return cluster.kmeans_gw(
        spaces, k, rng, options=options, num_init=num_init, max_iterations=max_iterations, distances=distances
    )


def _known(received: Sequence[np.ndarray | None], made: Plan[Any, Embedding]) -> list[np.ndarray]:
    """A client that never sent an embedding is known by its size alone: ½ everywhere."""
    width = made.made.encoding.width
    return [np.full((n, width), 0.5) if h is None else h for h, n in zip(received, made.facts.client_sizes, strict=True)]


def _by_counts(cell: Cell, context: Context, partition: Partition, k: int) -> np.ndarray:
    """Clusters of the sizes alone, or of sizes and degree sequences."""
    rng = seeds.generator(context.root, *cell.path, "cluster")
    if cell.method == SIZE_ONLY:
        return cluster.size_only(np.array([s.graph.num_nodes for s in partition.subgraphs]), k, rng).labels
    return cluster.spectral(degree_distances([s.graph for s in partition.subgraphs]), k, rng).labels


def _constant(
    params: Params, cell: Cell, context: Context, partition: Partition, made: Plan[Any, Embedding], truth: np.ndarray, k: int
) -> Outcome:
    """The encoder on embeddings that hold nothing, then the same geometry."""
    rng = seeds.generator(context.root, *cell.path, "constant")
    spaces = constant_spaces(made.facts.client_sizes, made.made.encoding, params.metric, rng)
    distances, solved = all_pairs(spaces, gromov.GromovOptions(restarts=params.restarts), context)
    rng = seeds.generator(context.root, *cell.path, "cluster")
    found = context.runtime.get(
        context.runtime.on_server(_cluster, spaces, k, rng, params.num_init, params.max_iterations, distances)
    )
    return _unreleased(cell, context, partition, truth, found.labels, distances, solved)


def _unreleased(
    cell: Cell,
    context: Context,
    partition: Partition,
    truth: np.ndarray,
    labels: np.ndarray,
    distances: np.ndarray | None,
    more: dict[str, Any],
) -> Outcome:
    """No release: ε = 0 where public sizes are all that is used; ∞ where degrees are."""
    public = cell.method != SIZE_AND_DEGREES
    given = (Assumption.SIZES_PUBLIC, Assumption.MEMBERSHIP_FROM_EDGES)
    protection = Protection(Relation.NODE_REPLACE, Viewer.SERVER, given)
    return Outcome(
        metrics=cluster.scores(truth, labels, distances),
        facts=_facts(partition) | {"rounds": 0} | more,
        account=Account(cell.key, protection, 1.0 / _graph(context).num_nodes),
        releases=(),
        epsilon_published=None,
        epsilon_provable=0.0 if public else np.inf,
        theorem="nothing was released beyond the public sizes" if public else "computed on raw data",
        paths={},
    )


def _facts(partition: Partition) -> dict[str, Any]:
    sizes = [s.graph.num_nodes for s in partition.subgraphs]
    edges = [s.graph.num_edges for s in partition.subgraphs]
    return {
        "clients": partition.num_clients,
        "partition": partition.description,
        "mean_nodes": float(np.mean(sizes)),
        "mean_edges": float(np.mean(edges)),
        "cut_edges": partition.num_cut_edges,
    }


def _artefacts(distances: np.ndarray, truth: np.ndarray, labels: np.ndarray, places: np.ndarray) -> dict[str, np.ndarray]:
    return {"distances": distances.astype(np.float32), "truth": truth, "clusters": labels, "map": places}


def _graph(context: Context) -> Graph:
    if not isinstance(context.data, Graph):
        raise ScenarioError(f"{context.dataset} is a collection of graphs; graph_clustering cuts ego-networks out of one graph")
    return context.data


def _partition(params: Params, seed: int, context: Context) -> Partition:
    settings = dict(params.partition)
    module = plugins.load("partition", settings.pop("partition"))

    def make() -> Partition:
        rng = seeds.generator(context.root, "partition", context.label, context.dataset, seed)
        found: Partition = module.split(_graph(context), module.Params(**settings), rng)
        if any(s.center is None for s in found.subgraphs):
            raise ScenarioError(f"graph_clustering needs centres; partition {params.partition['partition']!r} has none")
        return found

    return context.cached(("ego", context.label, context.dataset, seed), make)  # type: ignore[no-any-return]
