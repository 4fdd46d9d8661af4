"""Clustering small graphs by the geometry of what they release (Jin & Chen, §4 "Graph clustering").

Clients are ego-networks of one big graph. Each sends an (encoded) node embedding; the server makes it a
metric space, computes all pairwise Gromov-Wasserstein discrepancies and runs k-means whose centroids are
Gromov-Wasserstein barycentres. The pseudo-label of a graph is the label of its centre node. Scores
compare with those labels; the simulator knows them, the server does not.

Every table has the row ``graph size``: clusters made from the public number of nodes alone. A release has
shown something only above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator

from fedgraph import plugins, seeds
from fedgraph.errors import ScenarioError
from fedgraph.federation import rounds
from fedgraph.geometry import cluster, gromov, maps
from fedgraph.geometry.metric_space import MetricSpace, from_embedding
from fedgraph.methods.base import Budget, Plan, PublicFacts
from fedgraph.privacy import composition
from fedgraph.privacy.ledger import Account, Ledger
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer
from fedgraph.tasks.base import Cell, Context, Outcome
from fedgraph.types import Graph, Partition

SIZE_ONLY = "graph size"
PAIRS_PER_CHUNK = 2000


class Params(BaseModel):
    """One encoder, several budgets, and how the server compares and clusters."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    method: dict[str, Any] = Field({"method": "local_dp"}, description="method: file name in fedgraph/methods, then its settings")
    partition: dict[str, Any] = Field(
        default_factory=lambda: {"partition": "ego", "clients": 200, "hops": 1}, description="which small graphs are the clients"
    )
    epsilons: list[float] = Field(min_length=1, description="ε of each client's encoded graph; inf for no encoding")
    seeds: int | None = Field(None, ge=1, description="repetitions of this task, at most the scenario's seeds")
    clusters: int | None = Field(None, ge=2, description="clusters; default the number of classes")
    restarts: int = Field(0, ge=0, description="random restarts of each Gromov-Wasserstein problem")
    num_init: int = Field(3, ge=1, description="k-means starts; the lowest inertia counts")
    max_iterations: int = Field(20, ge=1, description="k-means iterations")

    @field_validator("epsilons")
    @classmethod
    def _positive(cls, values: list[float]) -> list[float]:
        for value in values:
            if not value > 0:
                raise ValueError(f"every ε must be > 0 (inf for no encoding), found {value}: at ε = 0 nothing may be released")
        return values


def plugins_of(params: Params) -> list[tuple[tuple[str | int, ...], str, dict[str, Any]]]:
    """Nested plugin settings, for validation with their place in the file."""
    return [(("method",), "methods", params.method), (("partition",), "partition", params.partition)]


def cells(params: Params, context: Context) -> list[Cell]:
    """Per seed: the size-only row, then every budget."""
    found: list[Cell] = []
    for seed in range(min(context.seeds, params.seeds or context.seeds)):
        found.append(Cell(context.label, context.dataset, SIZE_ONLY, "baseline", "local", np.inf, "none", seed))
        for epsilon in params.epsilons:
            reading = "provable" if np.isfinite(epsilon) else "none"
            found.append(Cell(context.label, context.dataset, params.method["method"], "encoded", "local", float(epsilon), reading, seed))
    return found


def plan(params: Params, cell: Cell, context: Context) -> Plan | None:
    """The method's plan from public facts: sizes, and who holds which node. None for the size-only row."""
    if cell.method == SIZE_ONLY:
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
    )
    spec = dict(params.method)
    module = plugins.load("methods", spec.pop("method"))
    made: Plan = module.plan(module.Params(**spec), facts, Budget(cell.epsilon, 1.0 / graph.num_nodes))
    return made


def run(params: Params, cell: Cell, context: Context) -> Outcome:
    """Train and encode at the clients, compare and cluster at the server."""
    partition = _partition(params, cell.seed, context)
    truth = np.array([s.graph.labels[s.center] for s in partition.subgraphs])
    k = params.clusters or _graph(context).num_classes
    if cell.method == SIZE_ONLY:
        return _size_only(cell, context, partition, truth, k)
    made = plan(params, cell, context)
    assert made is not None
    assert made.facts.holdings is not None
    shared = context.runtime.share(f"partition:ego:{cell.dataset}:{sorted(params.partition.items())}:{cell.seed}", partition)
    common = (cell.task, cell.dataset, cell.method, cell.variant, cell.setting, cell.seed)
    trained = rounds.run(context.runtime, shared, made, context.root, cell.path, common, context.prefixes, context.on_round)

    spaces = [from_embedding(h) for h in trained.state.memory["embeddings"]]
    distances = all_pairs(spaces, gromov.GromovOptions(restarts=params.restarts), context)
    rng = seeds.generator(context.root, *cell.path, "cluster")
    found = context.runtime.get(
        context.runtime.on_server(_cluster, spaces, k, rng, params.num_init, params.max_iterations, distances)
    )

    ledger_account = Account(cell.key, made.protection, made.delta)
    ledger = Ledger([ledger_account], trained.releases)
    total = composition.overlapping(ledger.spent(cell.key), made.facts.holdings, made.delta)
    paths: dict[str, float] = {}
    holders: tuple[int, ...] = total.worst_holders
    quantiles: tuple[float, ...] = ()
    for path in made.paths:
        losses = composition.overlapping(ledger.spent(cell.key, path), made.facts.holdings, made.delta)
        paths[path] = losses.worst.epsilon
        if path == "embedding":
            holders, quantiles = losses.worst_holders, losses.quantiles
    artefacts = {} if cell.seed else _artefacts(distances, truth, found.labels)
    return Outcome(
        metrics=cluster.scores(truth, found.labels, distances),
        facts=_facts(partition) | {"rounds": made.rounds, "node_losses": quantiles, "worst_node_clients": len(holders)},
        account=Account(cell.key, made.protection, made.delta, holders),
        releases=trained.releases,
        epsilon_published=made.epsilon_published,
        epsilon_provable=total.worst.epsilon,
        theorem=total.worst.theorem,
        paths=paths,
        notes=made.notes,
        artefacts=artefacts,
    )


def all_pairs(spaces: Sequence[MetricSpace], options: gromov.GromovOptions, context: Context) -> np.ndarray:
    """[N, N] discrepancies, computed in chunks by the pool."""
    which = gromov.pairs(len(spaces))
    chunks = [which[i : i + PAIRS_PER_CHUNK] for i in range(0, len(which), PAIRS_PER_CHUNK)]
    handle = context.runtime.share(f"spaces:{id(spaces)}", tuple(spaces))
    values: list[np.ndarray] = []
    for part in context.runtime.map(_solve_chunk, chunks, handle, options):
        values.append(part)
        context.progress("GW pairs", sum(map(len, values)), len(which))
    context.runtime.forget(handle)
    return gromov.assemble(len(spaces), which, np.concatenate(values) if values else np.zeros(0))


def _solve_chunk(which: np.ndarray, spaces: Sequence[MetricSpace], options: gromov.GromovOptions) -> np.ndarray:
    return gromov.solve_pairs(spaces, which, options).value


def _cluster(
    spaces: Sequence[MetricSpace], k: int, rng: np.random.Generator, num_init: int, max_iterations: int, distances: np.ndarray
) -> Any:
    options = gromov.GromovOptions()
    return cluster.kmeans_gw(
        spaces, k, rng, options=options, num_init=num_init, max_iterations=max_iterations, distances=distances
    )


def _size_only(cell: Cell, context: Context, partition: Partition, truth: np.ndarray, k: int) -> Outcome:
    """Nothing but public sizes: no release, so ε = 0 given that sizes are public."""
    sizes = np.array([s.graph.num_nodes for s in partition.subgraphs])
    labels = cluster.size_only(sizes, k, seeds.generator(context.root, *cell.path, "cluster")).labels
    given = (Assumption.SIZES_PUBLIC, Assumption.MEMBERSHIP_GIVEN)
    protection = Protection(Relation.NODE_REPLACE, Viewer.SERVER, given)
    return Outcome(
        metrics=cluster.scores(truth, labels, None),
        facts=_facts(partition) | {"rounds": 0},
        account=Account(cell.key, protection, 1.0 / _graph(context).num_nodes),
        releases=(),
        epsilon_published=None,
        epsilon_provable=0.0,
        theorem="nothing was released beyond the public sizes",
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


def _artefacts(distances: np.ndarray, truth: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    return {"distances": distances.astype(np.float32), "truth": truth, "clusters": labels, "map": maps.mds(distances)}


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
