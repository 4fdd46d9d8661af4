"""The local training of a client: full-batch steps of the shared model on its own graphs (Jin & Chen, Algorithm 3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import PrivacyError
from fedgraph.learning.late import torch
from fedgraph.learning.layers import gin, small_graphs
from fedgraph.learning.layers.models import on_device
from fedgraph.learning.optimisers.training import adam, descent
from fedgraph.methods.base import Plan
from fedgraph.methods.local_dp.attendance import Attendance
from fedgraph.methods.local_dp.encoders import Encoding
from fedgraph.methods.local_dp.params import Params
from fedgraph.methods.local_dp.pooled import Pooled, histogram
from fedgraph.privacy.desk import PlannedRelease
from fedgraph.privacy.sensitivity import L2Ball
from fedgraph.types import Graph, Subgraph


@dataclass(frozen=True, eq=False)
class Made:
    """network: the shared model. projection: public, of the features before it, [d, k], or None. public: what it trains on
    where it trains on public nodes alone. attendance: who takes part in which round. sent, sizes, encoding, graph_epsilons:
    as ``methods.base.kinds.Embedding`` says. pooled: how a graph is sent as one vector, or None. personal: a client embeds
    with the model that it has trained once more.
    """

    network: small_graphs.Network
    projection: np.ndarray | None
    public: Graph | None
    attendance: Attendance
    sent: tuple[PlannedRelease, ...]
    sizes: tuple[tuple[int, ...], ...]
    encoding: Encoding
    pooled: Pooled | None
    personal: bool
    graph_epsilons: list[list[float]]


@dataclass(frozen=True, eq=False)
class Part:
    """One graph: its arrays, the network over the features in use, and where its parameters are."""

    inputs: small_graphs.Inputs
    network: small_graphs.Network
    where: np.ndarray


@dataclass(frozen=True, eq=False)
class Work(Part):
    """All that a client holds as one graph, its weight in the average, and (``dp_sgd``) each of its graphs apart.

    batches: where steps see some of the graphs only.
    """

    weight: float
    batches: small_graphs.Batches | None = None
    graphs: tuple[Part, ...] = ()


def prepare(plan: Plan[Params, Made], subgraph: Subgraph) -> Work:
    """Raises ``PrivacyError`` where a graph breaks the promised degree: the price would not be true."""
    promised, found = plan.guarantee.protection.promised_degree, int(subgraph.graph.degrees.max())
    if promised is not None and found > promised:
        raise PrivacyError(
            f"client {subgraph.client} holds a node with {found} neighbours, but the promised degree is {promised}: a row then "
            f"depends on more nodes than are priced; allowed: a promised_degree of at least {found}, or none"
        )
    several = plan.facts.sizes.graphs
    graph = _viewed(plan, subgraph.graph)
    sizes = several[subgraph.client] if several else None
    made = _part(plan, graph, sizes)
    weight = (
        len(several[subgraph.client]) / sum(map(len, several))
        if several
        else subgraph.graph.num_nodes / sum(plan.facts.sizes.clients)
    )
    apart: tuple[Part, ...] = ()
    if plan.params.training == "dp_sgd":
        rows = np.split(np.arange(graph.num_nodes), np.cumsum(sizes or (graph.num_nodes,))[:-1])
        apart = tuple(_part(plan, graph.induced(own), (own.size,) if several else None) for own in rows)
    batches = small_graphs.Batches(graph.adjacency, sizes) if plan.params.batch_size is not None and sizes else None
    return Work(made.inputs, made.network, made.where, weight, batches, apart)


def _part(plan: Plan[Params, Made], graph: Graph, sizes: tuple[int, ...] | None) -> Part:
    inputs = small_graphs.inputs(plan.made.network, graph, sizes)
    return Part(inputs, *small_graphs.selected(plan.made.network, inputs))


def _viewed(plan: Plan[Params, Made], graph: Graph) -> Graph:
    """The graph with its feature rows through the public projection, where there is one."""
    matrix = plan.made.projection
    return graph if matrix is None else replace(graph, features=sp.csr_array(graph.features @ matrix))


def trained(params: Params, work: Work, before: torch.Tensor) -> torch.Tensor:
    """``local_epochs`` steps (or passes, with ``batch_size``) from ``before``, with FedProx's pull towards it."""
    if isinstance(work.inputs, gin.GraphInputs) and (work.network.norm == "batch" or work.batches is not None):
        return _trained_in_batches(params, work, work.inputs, before)
    if params.optimiser == "adam":
        return adam(before, _gradient(params, work, before), params.local_epochs, params.learning_rate, 0.0)
    return with_momentum(params, work, before, torch.zeros_like(before))[0]


def with_momentum(
    params: Params, work: Work, before: torch.Tensor, velocity: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """(parameters, velocity) after ``local_epochs`` steps of plain descent, whose velocity is the server's at first (MFL)."""
    how = (params.local_epochs, params.learning_rate, params.client_momentum)
    return descent(before, velocity, _gradient(params, work, before), *how)


def _gradient(params: Params, work: Work, before: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    def gradient(vector: torch.Tensor) -> torch.Tensor:
        found = small_graphs.gradient(work.network, vector, work.inputs)
        return found + params.proximal * (vector - before) if params.proximal else found

    return gradient


def _trained_in_batches(params: Params, work: Work, whole: gin.GraphInputs, before: torch.Tensor) -> torch.Tensor:
    """As ``trained``, a step for each batch of graphs; running statistics of batch norm follow the batches."""
    layout, vector = work.network.layout, before
    assert isinstance(layout, gin.GinLayout)
    first, second, step = torch.zeros_like(vector), torch.zeros_like(vector), 0
    for epoch in range(params.local_epochs):
        parts = [whole]
        if work.batches is not None and params.batch_size is not None:
            parts = work.batches.inputs(whole, params.batch_size, epoch)
        for part in parts:
            seen: list[torch.Tensor] = []
            found = gin.gradient(layout, vector, part, seen)
            found = found + params.proximal * (vector - before) if params.proximal else found
            step += 1
            if params.optimiser == "adam":
                first, second = 0.9 * first + 0.1 * found, 0.999 * second + 0.001 * found * found
                found = (first / (1 - 0.9**step)) / ((second / (1 - 0.999**step)).sqrt() + 1e-8)
            vector = gin.with_statistics(layout, vector - params.learning_rate * found, seen)
    return vector


def whole_update(params: Params, work: Work, parameters: np.ndarray) -> np.ndarray:
    """float32 [parameters]: how local training changes the model, zero where the client has nothing; not yet clipped."""
    before = on_device(parameters[work.where])
    update = np.zeros_like(parameters)
    update[work.where] = (trained(params, work, before) - before).cpu().numpy()
    return update


def clipped_gradients(params: Params, work: Work, parameters: np.ndarray) -> np.ndarray:
    """float32 [parameters]: the sum over the client's graphs of their gradients, each scaled down to norm ``clip``."""
    total = np.zeros_like(parameters)
    for graph in work.graphs:
        total[graph.where] += clipped_gradient(params, graph, parameters)
    return total


def clipped_gradient(params: Params, graph: Part, parameters: np.ndarray) -> np.ndarray:
    """float32: of one graph, scaled down to norm ``clip``, over the parameters in ``graph.where``."""
    found = small_graphs.gradient(graph.network, on_device(parameters[graph.where]), graph.inputs).cpu().numpy()
    return L2Ball(params.clip).enforce(found)


def handed_in(plan: Plan[Params, Made], work: Work, parameters: np.ndarray) -> np.ndarray:
    """What is handed to the desk in a retrieval round: rows, or one vector of the graph. parameters: the broadcast model's."""
    pooled, params = plan.made.pooled, plan.params
    if pooled is not None and params.release == "labels":
        return pooled.value(histogram(work.inputs.labels.cpu().numpy(), pooled.width))
    before = on_device(parameters[work.where])
    now = trained(params, work, before) if plan.made.personal else before
    rows = small_graphs.embedding(work.network, now, work.inputs, params.embedding)
    return rows if pooled is None else pooled.value(rows.mean(axis=0))


def on_public(plan: Plan[Params, Made], parameters: np.ndarray, public: Graph) -> np.ndarray:
    """The parameters after full-batch training on the public labelled nodes, which no client holds."""
    part = _part(plan, _viewed(plan, public), None)
    start, how = on_device(parameters[part.where]), plan.params
    found = adam(start, lambda v: small_graphs.gradient(part.network, v, part.inputs), how.public_steps, how.public_rate, 0.0)
    after = parameters.copy()
    after[part.where] = found.cpu().numpy()
    return after
