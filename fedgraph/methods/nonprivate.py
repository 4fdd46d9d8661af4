"""No privacy: what the same data gives when nothing is protected. The upper line of every comparison.

A logistic regression or MLP on features (predictions spread over the test graph, as in ``features``), or
a two-layer GCN. Clients train locally with Adam and the server averages parameters (FedAvg, McMahan et
al. 2017) weighted by the public client sizes; one client is plain central training.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from pydantic import Field

from fedgraph.learning.clipping.per_sample import clipped_gradient_sum
from fedgraph.learning.layers import gcn
from fedgraph.learning.layers.models import Layout, logits, on_device
from fedgraph.learning.layers.sparse import FeatureMatrix, device, unit_rows
from fedgraph.learning.optimisers.training import adam
from fedgraph.learning.propagation.propagate import personalised_pagerank
from fedgraph.methods.base import (
    Budget,
    Inbox,
    Kind,
    Plan,
    PublicFacts,
    Situation,
    State,
    Streams,
    public_assumptions,
    setting_assumptions,
)
from fedgraph.privacy.desk import Desk, PlannedRelease, Released
from fedgraph.privacy.events import Unprotected
from fedgraph.privacy.mechanisms.noise import Disclose
from fedgraph.privacy.sensitivity import Unbounded
from fedgraph.privacy.units import Assumption, Protection, Relation
from fedgraph.settings import Settings
from fedgraph.types import Graph, Subgraph

REFERENCE = """@inproceedings{mcmahan2017communication,
  title = {Communication-Efficient Learning of Deep Networks from Decentralized Data},
  author = {McMahan, Brendan and Moore, Eider and Ramage, Daniel and Hampson, Seth and Ag{\\"u}era y Arcas, Blaise},
  booktitle = {Artificial Intelligence and Statistics}, year = {2017}}
@inproceedings{kipf2017semi,
  title = {Semi-Supervised Classification with Graph Convolutional Networks},
  author = {Kipf, Thomas N. and Welling, Max},
  booktitle = {International Conference on Learning Representations}, year = {2017}}"""

KIND: Kind = "classifier"
SITUATIONS = (
    Situation("inductive", settings={"rounds": 3}),
    Situation("transductive", settings={"rounds": 3}),
    Situation("inductive-edges", settings={"rounds": 3}),
)

IN_CLEAR = Disclose("plain FedAvg: the updated parameters")
PRIVATE_TEST_NODES = True  # nothing is protected, so a test node may be asked in any setting


class Params(Settings):
    """Settings of the unprotected learners."""

    model: Literal["logistic", "mlp", "gcn"] = Field("gcn", description="which learner")
    hidden: int = Field(32, ge=1, description="hidden units (mlp, gcn)")
    rounds: int = Field(20, ge=1, description="FedAvg rounds")
    local_epochs: int = Field(5, ge=1, description="full-batch Adam steps per client and round")
    learning_rate: float = Field(0.02, gt=0, description="Adam step size")
    weight_decay: float = Field(5e-4, ge=0, description="L2 penalty")
    dropout: float = Field(0.5, ge=0, lt=1, description="dropout on the hidden layer (gcn)")
    alpha: float = Field(0.25, gt=0, le=1, description="teleport probability of the propagation (logistic, mlp)")
    propagation_steps: int = Field(10, ge=0, description="power iterations over the test graph (logistic, mlp)")


@dataclass(frozen=True, eq=False)
class Work:
    """A client's graph (gcn) or rows (otherwise), and its weight in the average."""

    inputs: gcn.GraphInputs | None
    x: FeatureMatrix | None
    labels: torch.Tensor
    weight: float


@dataclass(frozen=True, eq=False)
class Made:
    """layout: of the parameters."""

    layout: Layout


def plan(params: Params, facts: PublicFacts, budget: Budget) -> Plan[Params, Made]:
    """One unprotected release per client and round; the budget is ignored, and the price says so: ε = ∞."""
    hidden = () if params.model == "logistic" else (params.hidden,)
    protection = Protection(
        Relation.NODE_ZERO_OUT,
        facts.viewer,
        (Assumption.COUNTS_PUBLIC, *public_assumptions(facts), *setting_assumptions(facts)),
    )
    event = Unprotected("parameters are sent without noise")
    return Plan(
        method="nonprivate",
        params=params,
        rounds=params.rounds,
        releases=(PlannedRelease("model", Unbounded(), IN_CLEAR, event, range(params.rounds)),),
        protection=protection,
        delta=budget.delta,
        facts=facts,
        made=Made(Layout((facts.num_features, *hidden, facts.num_classes))),
    )


def start(plan: Plan[Params, Made], rng: np.random.Generator) -> State[None]:
    return State({"parameters": plan.made.layout.start(rng)}, None)


def prepare(plan: Plan[Params, Made], subgraph: Subgraph) -> Work:
    graph = subgraph.graph
    weight = graph.num_nodes / sum(plan.facts.client_sizes)
    labels = torch.tensor(graph.labels, device=device())
    if plan.params.model == "gcn":
        return Work(gcn.whole(graph), None, labels, weight)
    return Work(None, FeatureMatrix(unit_rows(graph.features)), labels, weight)


def client(
    plan: Plan[Params, Made], work: Work, model: Mapping[str, np.ndarray], round_: int, streams: Streams, desk: Desk
) -> dict[str, Released]:
    """Locally trained parameters times this client's share of the nodes."""
    layout, params, rng = plan.made.layout, plan.params, streams.generator("dropout")
    labelled = int((work.labels >= 0).sum())

    def gradient(vector: torch.Tensor) -> torch.Tensor:
        if work.inputs is not None:
            keep = (rng.random((len(work.labels), params.hidden)) >= params.dropout) / (1 - params.dropout)
            return gcn.gradient(layout, vector, work.inputs, torch.tensor(keep, dtype=torch.float32, device=device()))
        assert work.x is not None
        total = clipped_gradient_sum(layout, vector.cpu().numpy(), work.x, work.labels, clip=None)
        return on_device(total) / max(labelled, 1)

    trained = adam(on_device(model["parameters"]), gradient, params.local_epochs, params.learning_rate, params.weight_decay)
    return {"parameters": desk.release("model", trained.cpu().numpy() * np.float32(work.weight))}


def server(plan: Plan[Params, Made], state: State[None], inbox: Inbox) -> State[None]:
    """FedAvg: the weights are public sizes and already inside the messages."""
    return State({"parameters": inbox.sums["parameters"]}, None)


def predict(plan: Plan[Params, Made], state: State[None], graph: Graph) -> np.ndarray:
    """[n, c] scores on the test graph."""
    layout, params = plan.made.layout, plan.params
    if params.model == "gcn":
        return gcn.scores(layout, on_device(state.model["parameters"]), gcn.whole(graph)).cpu().numpy()
    found = logits(layout, state.model["parameters"], FeatureMatrix(unit_rows(graph.features)))
    return personalised_pagerank(graph.adjacency, found, params.alpha, params.propagation_steps)
