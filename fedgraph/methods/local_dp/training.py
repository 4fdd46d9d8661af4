"""A client's local training: full-batch steps of the shared model on its own graphs (Jin & Chen, Algorithm 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from fedgraph.errors import PrivacyError
from fedgraph.learning.layers import small_graphs
from fedgraph.learning.optimisers.training import adam, descent
from fedgraph.methods.base import Plan
from fedgraph.methods.local_dp.attendance import Attendance
from fedgraph.methods.local_dp.encoders import Encoding
from fedgraph.methods.local_dp.params import Params
from fedgraph.privacy.desk import PlannedRelease
from fedgraph.types import Subgraph


@dataclass(frozen=True, eq=False)
class Made:
    """network: the shared model. attendance: who takes part in which round. sent, sizes, encoding, graph_epsilons: as
    ``methods.base.kinds.Embedding`` says. personal: a client embeds with the model it has trained once more.
    """

    network: small_graphs.Network
    attendance: Attendance
    sent: tuple[PlannedRelease, ...]
    sizes: tuple[tuple[int, ...], ...]
    encoding: Encoding
    personal: bool
    graph_epsilons: list[list[float]]


@dataclass(frozen=True, eq=False)
class Work:
    """A client's arrays, the network over the features in use, where its parameters are, and its weight in the average."""

    inputs: small_graphs.Inputs
    network: small_graphs.Network
    where: np.ndarray
    weight: float


def prepare(plan: Plan[Params, Made], subgraph: Subgraph) -> Work:
    """Raises ``PrivacyError`` where a graph breaks the promised degree: the price would not be true."""
    promised, found = plan.protection.promised_degree, int(subgraph.graph.degrees.max())
    if promised is not None and found > promised:
        raise PrivacyError(
            f"client {subgraph.client} holds a node with {found} neighbours, but the promised degree is {promised}: a row then "
            f"depends on more nodes than are priced; allowed: a promised_degree of at least {found}, or none"
        )
    several = plan.facts.graph_sizes
    inputs = small_graphs.inputs(plan.made.network, subgraph.graph, several[subgraph.client] if several else None)
    net, where = small_graphs.selected(plan.made.network, inputs)
    weight = (
        len(several[subgraph.client]) / sum(map(len, several))
        if several
        else subgraph.graph.num_nodes / sum(plan.facts.client_sizes)
    )
    return Work(inputs, net, where, weight)


def trained(params: Params, work: Work, before: torch.Tensor) -> torch.Tensor:
    """``local_epochs`` steps from ``before``, with FedProx's pull towards it."""

    def gradient(vector: torch.Tensor) -> torch.Tensor:
        found = small_graphs.gradient(work.network, vector, work.inputs)
        return found + params.proximal * (vector - before) if params.proximal else found

    steps, rate = params.local_epochs, params.learning_rate
    return adam(before, gradient, steps, rate, 0.0) if params.optimiser == "adam" else descent(before, gradient, steps, rate)
