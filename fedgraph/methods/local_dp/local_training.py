"""The local training of a client: full-batch steps of the shared model on its own graphs (Jin & Chen, Algorithm 3); and what
the server makes of a round's messages: the next parameters, and each client's embedding as it reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from fedgraph.learning import descend, descend_by_adam, gin, layouts, shared_gnn, torch
from fedgraph.methods.base import Plan, PlanInbox
from fedgraph.methods.local_dp import encoders
from fedgraph.methods.local_dp.encoders import EncoderSettings, PooledEncoder
from fedgraph.methods.local_dp.params import Params
from fedgraph.methods.local_dp.updates import Attendance
from fedgraph.privacy import L2Ball, MultiBitEncoder, PlannedRelease, blocks
from fedgraph.types import Graph, Subgraph


@dataclass(frozen=True, eq=False)
class Made:
    """What the plan made of settings and public facts."""

    network: shared_gnn.SharedGnn  # the shared model
    projection: np.ndarray | None  # public, of the features before it, [d, k]; or None
    public: Graph | None  # the graph that it trains on where it trains on public nodes alone; else None
    attendance: Attendance  # who takes part in which round
    sent: tuple[PlannedRelease, ...]  # as ``methods.base.method_kinds.EmbedderMethodMade`` says
    sizes: tuple[tuple[int, ...], ...]  # as ``methods.base.method_kinds.EmbedderMethodMade`` says
    encoding: EncoderSettings  # how rows are encoded
    pooled: PooledEncoder | None  # how a graph is sent as one vector; None where every node has a row
    personal: bool  # a client embeds with the model that it has trained once more
    graph_epsilons: list[list[float]]  # as ``methods.base.method_kinds.EmbedderMethodMade`` says


Planned: TypeAlias = Plan[Params, Made]


_MOMENTUM = 0.9  # heavy ball at clients


@dataclass(frozen=True, eq=False)
class _Part:
    """One graph, ready for the network over the features in use. where: int64, its parameters' places among all."""

    inputs: shared_gnn.SharedGnnInputs
    network: shared_gnn.SharedGnn
    where: np.ndarray


@dataclass(frozen=True, eq=False)
class Work(_Part):
    """All that a client holds, as one graph."""

    weight: float  # in the average; in (0, 1]
    # draws some of the graphs for each step; None where steps see all of them
    batches: shared_gnn.SharedGnnBatches | None = None
    graphs: tuple[_Part, ...] = ()  # each of its graphs apart (``dp_sgd``), else empty


def prepare(plan: Planned, subgraph: Subgraph) -> Work:
    several, graph = plan.facts.graphs, _viewed(plan, subgraph.graph)
    sizes = several[subgraph.client] if several else None
    made, weight = _part(plan, graph, sizes), graph.num_nodes / sum(plan.facts.clients)
    if sizes is not None:
        weight = len(sizes) / sum(map(len, several))
    apart: tuple[_Part, ...] = ()
    if plan.params.training == "dp_sgd":
        rows = np.split(np.arange(graph.num_nodes), np.cumsum(sizes or (graph.num_nodes,))[:-1])
        apart = tuple(_part(plan, graph.induced(own), (own.size,) if several else None) for own in rows)
    batches = shared_gnn.SharedGnnBatches(graph.adjacency, sizes) if plan.params.batch_size is not None and sizes else None
    return Work(made.inputs, made.network, made.where, weight, batches, apart)


def _part(plan: Planned, graph: Graph, sizes: tuple[int, ...] | None) -> _Part:
    inputs = shared_gnn.prepare(plan.made.network, graph, sizes)
    return _Part(inputs, *shared_gnn.select_inputs(plan.made.network, inputs))


def _viewed(plan: Planned, graph: Graph) -> Graph:
    matrix = plan.made.projection
    return graph if matrix is None else replace(graph, features=sp.csr_array(graph.features @ matrix))


def train_locally(params: Params, work: Work, before: torch.Tensor) -> torch.Tensor:
    """``local_epochs`` steps (or passes, with ``batch_size``) from ``before``, with FedProx's pull towards it."""
    layout, whole = work.network.layout, work.inputs
    batched = work.network.norm == "batch" or work.batches is not None
    if batched and isinstance(layout, gin.GinLayout) and isinstance(whole, gin.GinInputs):
        return _trained_in_batches(params, work, layout, whole, before)
    if params.optimiser == "adam":
        return descend_by_adam(before, _gradient(params, work, before), params.local_epochs, params.learning_rate, 0.0)
    momentum = _MOMENTUM if params.optimiser == "momentum" else 0.0
    return descend(before, _gradient(params, work, before), params.local_epochs, params.learning_rate, momentum)


def _gradient(params: Params, work: Work, before: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    def gradient(vector: torch.Tensor) -> torch.Tensor:
        found = shared_gnn.gradient(work.network, vector, work.inputs)
        return found + params.proximal * (vector - before) if params.proximal else found

    return gradient


def _trained_in_batches(
    params: Params, work: Work, layout: gin.GinLayout, whole: gin.GinInputs, before: torch.Tensor
) -> torch.Tensor:
    """As ``train_locally``, a step for each batch of graphs; running statistics of batch norm follow the batches."""
    vector, first, second, step = before, torch.zeros_like(before), torch.zeros_like(before), 0
    for epoch in range(params.local_epochs):
        parts = [whole]
        if work.batches is not None and params.batch_size is not None:
            parts = work.batches.inputs(whole, params.batch_size, epoch)
        for part in parts:
            seen: list[torch.Tensor] = []
            found = gin.gin_gradient(layout, vector, part, seen)
            found = found + params.proximal * (vector - before) if params.proximal else found
            step += 1
            if params.optimiser == "adam":
                first, second = 0.9 * first + 0.1 * found, 0.999 * second + 0.001 * found * found
                found = (first / (1 - 0.9**step)) / ((second / (1 - 0.999**step)).sqrt() + 1e-8)
            elif params.optimiser == "momentum":
                found = first = _MOMENTUM * first + found
            vector = gin.update_gin_statistics(layout, vector - params.learning_rate * found, seen)
    return vector


def update_of(params: Params, work: Work, parameters: np.ndarray) -> np.ndarray:
    """float32 [parameters]: how local training changes the model, zero where the client has nothing; not yet clipped."""
    before = layouts.to_device(parameters[work.where])
    update = np.zeros_like(parameters)
    update[work.where] = (train_locally(params, work, before) - before).cpu().numpy()
    return update


def clip_gradients(params: Params, work: Work, parameters: np.ndarray) -> np.ndarray:
    """float32 [parameters]: the sum over the client's graphs of their gradients, each scaled down to norm ``clip``."""
    total = np.zeros_like(parameters)
    for graph in work.graphs:
        total[graph.where] += clip_gradient(params, graph, parameters)
    return total


def clip_gradient(params: Params, graph: _Part, parameters: np.ndarray) -> np.ndarray:
    """float32: of one graph, scaled down to norm ``clip``, over the parameters in ``graph.where``."""
    before = layouts.to_device(parameters[graph.where])
    found = shared_gnn.gradient(graph.network, before, graph.inputs).cpu().numpy()
    return L2Ball(params.clip).enforce(found)


def embedding_of(plan: Planned, work: Work, parameters: np.ndarray) -> np.ndarray:
    """What is handed to the desk in a retrieval round: rows, or one vector of the graph. parameters: the broadcast model's."""
    pooled, params = plan.made.pooled, plan.params
    if pooled is not None and params.release == "labels":
        return pooled.value(encoders.histogram(work.inputs.labels.cpu().numpy(), pooled.width))
    before = layouts.to_device(parameters[work.where])
    now = train_locally(params, work, before) if plan.made.personal else before
    rows = shared_gnn.embed(work.network, now, work.inputs, params.embedding)
    return rows if pooled is None else pooled.value(rows.mean(axis=0))


def on_public(plan: Planned, parameters: np.ndarray, public: Graph) -> np.ndarray:
    """The parameters after full-batch training on the public labelled nodes, which no client holds."""
    part = _part(plan, _viewed(plan, public), None)
    start, how = layouts.to_device(parameters[part.where]), plan.params
    gradient = partial(shared_gnn.gradient, part.network, given=part.inputs)
    found = descend_by_adam(start, gradient, how.public_steps, how.public_rate, 0.0)
    after = parameters.copy()
    after[part.where] = found.cpu().numpy()
    return after


def step_of(plan: Planned, velocity: np.ndarray, inbox: PlanInbox) -> np.ndarray:
    """The change of the parameters: the mean noisy update (or minus the mean noisy gradient, over graphs), with momentum."""
    params = plan.params
    training = plan.made.attendance.training[inbox.round]
    if params.training == "dp_sgd":
        count, rate = sum(len(plan.made.sizes[c]) for c in training), -params.learning_rate
    else:
        count, rate = len(training), params.server_rate
    return params.momentum * velocity + np.float32(rate / count) * inbox.sums["model"]


def merged(
    plan: Planned, before: np.ndarray, training: tuple[int, ...], changes: list[np.ndarray], where: Mapping[int, np.ndarray]
) -> np.ndarray:
    """The parameters after a round in clear: FedAvg's weighted average over those who trained.

    before: float32 [p]. changes: of each who trained, float32, weighted by its share of all clients. where: per client, which
    entries of ``before`` it changes.
    """
    counts = np.array([len(s) if plan.facts.graphs else sum(s) for s in plan.made.sizes], dtype=np.float64)
    missing = len(training) < plan.facts.num_clients
    scale = np.float32(counts.sum() / counts[list(training)].sum()) if missing else None
    parameters = before.copy()
    for client, change in zip(training, changes, strict=True):
        parameters[where[client]] += change if scale is None else change * scale
    return parameters


def received_embedding(plan: Planned, client: int, received: np.ndarray) -> np.ndarray:
    """As the server takes it: bits made unbiased where the settings say so."""
    pooled, mechanism = plan.made.pooled, plan.made.sent[client].mechanism
    if pooled is not None:
        return pooled.read(received)
    if not plan.params.rectify:
        return received
    parts = blocks.split(received, plan.made.sizes[client])
    made = [encoders.part_of(mechanism, i) for i in range(len(parts))]
    return np.concatenate([m.rectify(h) if isinstance(m, MultiBitEncoder) else h for m, h in zip(made, parts, strict=True)])
