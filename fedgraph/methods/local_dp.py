"""Local DP embeddings for Gromov-Wasserstein (Jin & Chen): FedAvg on small graphs, then encoded embeddings.

Clients (graphs, e.g. ego-networks) train a shared two-layer GCN on their own node labels: R rounds of
FedAvg with E plain gradient steps each. Then each client trains once more, takes the softmax output
H ∈ [0, 1]^(n×c) (Algorithm 3), and sends it through the multi-bit encoder (Algorithm 1).

Two paths, priced apart. **model**: the updates, unprotected in the paper, ε = ∞. **embedding**: given the
model, every bit has likelihood ratio e^a; a graph of n nodes with m bits per row and a = ε/(m·n) is ε-LDP
(graph-replace of known n). A node is in several ego-networks, and its loss adds up over all of them.

What the paper's text, its proof and the released code disagree on is in ``privacy.claims``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field

from fedgraph.learning import gcn
from fedgraph.learning.models import Layout, on_device
from fedgraph.learning.training import descent
from fedgraph.methods.base import Budget, Inbox, Plan, PublicFacts, State, Streams, setting_assumptions
from fedgraph.privacy.desk import Desk, PlannedRelease, Released
from fedgraph.privacy.events import MultiBit, Unprotected
from fedgraph.privacy.mechanisms import Disclose, MultiBitEncoder
from fedgraph.privacy.sensitivity import Box, Unbounded
from fedgraph.privacy.units import Assumption, Protection, Relation
from fedgraph.types import Subgraph

REFERENCE = """@article{jin2022gromov,
  title = {Gromov-Wasserstein Discrepancy with Local Differential Privacy for Distributed Structural Graphs},
  author = {Jin, Hongwei and Chen, Xun}, journal = {IJCAI}, year = {2022}}
@inproceedings{sajadmanesh2021locally,
  title = {Locally Private Graph Neural Networks},
  author = {Sajadmanesh, Sina and Gatica-Perez, Daniel},
  booktitle = {ACM SIGSAC Conference on Computer and Communications Security}, year = {2021}}"""

UPDATE = Disclose("plain FedAvg: the change of the parameters")
VOCABULARY = Disclose("plain FedAvg: which features the client's nodes have (the sparsity of its update)")
NO_ENCODING = Disclose("no encoding: the embedding itself")


class Params(BaseModel):
    """Settings of the shared model and of the encoder."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    hidden: int = Field(16, ge=1, description="hidden units of the shared two-layer GCN")
    rounds: int = Field(60, ge=1, description="FedAvg rounds before embeddings are retrieved")
    local_epochs: int = Field(2, ge=1, description="full-batch gradient steps per client and round")
    learning_rate: float = Field(4.0, gt=0, description="step size of plain gradient descent")
    bits_per_row: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        "auto", description="entries of each row that are sent; auto: max(1, min(c, floor(ε/2.18)))"
    )


@dataclass(frozen=True, eq=False)
class Work:
    """A client's small graph, its layout over the features in use, and its weight in the average."""

    inputs: gcn.GraphInputs
    layout: Layout
    where: np.ndarray
    weight: float


def plan(params: Params, facts: PublicFacts, budget: Budget) -> Plan:
    """``rounds`` unprotected updates per client, then one encoded embedding."""
    last = params.rounds
    unprotected = Unprotected("FedAvg updates are sent in clear")
    releases = [
        PlannedRelease("vocabulary", Unbounded(), VOCABULARY, unprotected, range(1)),
        PlannedRelease("model", Unbounded(), UPDATE, unprotected, range(last)),
    ]
    final = range(last, last + 1)
    for client, size in enumerate(facts.client_sizes):
        if not budget.private:
            event = Unprotected("the embedding is sent without encoding")
            releases.append(PlannedRelease("embedding", Box(0.0, 1.0), NO_ENCODING, event, final, client=client))
            continue
        m = bits_per_row(params, budget.epsilon, facts.num_classes)
        encoder = MultiBitEncoder(budget.epsilon / (m * size), m)
        bits = MultiBit(encoder.epsilon_per_bit, m * size)
        releases.append(PlannedRelease("embedding", Box(0.0, 1.0), encoder, bits, final, client=client))
    assumed = (Assumption.MODEL_GIVEN, Assumption.HYPERPARAMETERS_PUBLIC, *setting_assumptions(facts))
    return Plan(
        method="local_dp",
        params=params,
        rounds=last + 1,
        releases=tuple(releases),
        protection=Protection(Relation.NODE_REPLACE, facts.viewer, assumed),
        delta=budget.delta,
        facts=facts,
        epsilon_published=budget.epsilon if budget.private else None,
        shared_rounds=last,
        shared_key=params.model_dump_json(exclude={"bits_per_row"}),
        made={"layout": Layout((facts.num_features, params.hidden, facts.num_classes))},
    )


def bits_per_row(params: Params, epsilon: float, num_entries: int) -> int:
    """m* = max(1, min(h, ⌊ε/2.18⌋)) (Sajadmanesh & Gatica-Perez 2021, Proposition 3.4), or the number asked for."""
    if params.bits_per_row != "auto":
        return min(params.bits_per_row, num_entries)
    return max(1, min(num_entries, math.floor(epsilon / 2.18)))


def start(plan: Plan, rng: np.random.Generator) -> State:
    return State({"parameters": plan.made["layout"].start(rng)})


def prepare(plan: Plan, subgraph: Subgraph) -> Work:
    inputs = gcn.compact(subgraph.graph)
    assert inputs.columns is not None
    layout, where = gcn.select(plan.made["layout"], inputs.columns)
    return Work(inputs, layout, where, subgraph.graph.num_nodes / sum(plan.facts.client_sizes))


def client(
    plan: Plan, work: Work, model: Mapping[str, np.ndarray], round_: int, streams: Streams, desk: Desk
) -> dict[str, Released]:
    """Before the last round: the change of the parameters this client touches. In it: the encoded embedding."""
    before = on_device(model["parameters"][work.where])

    def gradient(vector: torch.Tensor) -> torch.Tensor:
        return gcn.gradient(work.layout, vector, work.inputs)

    after = descent(before, gradient, plan.params.local_epochs, plan.params.learning_rate)
    if round_ < plan.params.rounds:
        change = (after - before).cpu().numpy() * np.float32(work.weight)
        sent = {"change": desk.release("model", change, Unbounded(), UPDATE)}
        if round_ == 0:
            sent["where"] = desk.release("vocabulary", work.where, Unbounded(), VOCABULARY)
        return sent
    embedding = torch.softmax(gcn.scores(work.layout, after, work.inputs), dim=1).cpu().numpy().astype(np.float64)
    own = next(r for r in plan.releases if r.path == "embedding" and r.client == desk.client)
    return {"embedding": desk.release("embedding", embedding, own.bound, own.mechanism)}


def server(plan: Plan, state: State, inbox: Inbox) -> State:
    """FedAvg on the touched parameters; in the last round the embeddings are kept as received."""
    if "embedding" in inbox.each:
        return State(state.model, {"embeddings": inbox.each["embedding"]})
    where = inbox.each.get("where") or state.memory["where"]
    parameters = state.model["parameters"].copy()
    for change, at in zip(inbox.each["change"], where, strict=True):
        parameters[at] += change
    return State({"parameters": parameters}, {"where": where})
