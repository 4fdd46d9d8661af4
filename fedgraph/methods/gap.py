"""GAP: aggregation perturbation. Encoder → K noisy sums over neighbours, made once → classifier.

    H⁰ = scale(encoder(X)),      Hᵏ = scale(A·Hᵏ⁻¹ + N(0, s²)),  k = 1 … K,      rows scaled to norm ≤ 1     (slides, 2022)

The classifier reads [H⁰ … Hᴷ]. Noise enters each hop once; training and inference reuse the noisy hops.

* ``edge``: features and labels are public, edges private (transductive protocol). Hops are released and kept by the
  server; encoder and classifier are post-processing. Published: Δ = 1 per hop; provable: √2, because an undirected
  edge changes two rows. With hops: 0 this is an MLP, at ε = 0.
* ``node``: encoder and classifier descend on clipped, noisy gradients; hops over a graph of promised degree D carry
  noise for √D and stay with the client that made them. Inference is on the public test graph, without noise.

Federated: a client aggregates over its own edges with its own noise; cut edges are held by nobody, so never read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from fedgraph.errors import ScenarioError
from fedgraph.learning import public_training as public
from fedgraph.learning.aggregation import hop, placed, unit_length
from fedgraph.methods import _gap_node as node
from fedgraph.methods.base import Budget, Inbox, Plan, PublicFacts, State, Streams, gradient_std, setting_assumptions
from fedgraph.privacy import aggregation_noise, neighbour_sums
from fedgraph.privacy.desk import Desk, PlannedRelease, Released
from fedgraph.privacy.events import Event, Gaussian, Unprotected
from fedgraph.privacy.mechanisms import Disclose, GaussianNoise, Mechanism
from fedgraph.privacy.neighbour_sums import NeighbourSums
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer
from fedgraph.types import Graph, Subgraph

REFERENCE = """@inproceedings{sajadmanesh2023gap,
  title = {{GAP}: Differentially Private Graph Neural Networks with Aggregation Perturbation},
  author = {Sajadmanesh, Sina and Shamsabadi, Ali Shahin and Bellet, Aur{\\'e}lien and Gatica-Perez, Daniel},
  booktitle = {USENIX Security Symposium}, year = {2023}}"""


class Params(BaseModel):
    """Settings; those after ``folds`` concern level node only."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    level: Literal["edge", "node"] = Field("edge", description="what is protected: edges, or whole nodes")
    relation: Literal["auto", "edge-undirected", "edge-directed", "node-zero-out", "node-replace"] = Field(
        "auto", description="neighbouring relation; auto: edge-undirected, node-zero-out"
    )
    hops: int = Field(2, ge=0, description="aggregations K")
    formula: Literal["slides", "code"] = Field("code", description="published reading (edge): closed form, or exact")
    encoder: Literal["classes", "hidden", "none"] = Field("classes", description="what is aggregated")
    hidden: int = Field(64, ge=1, description="hidden units of the encoder")
    classifier: int = Field(32, ge=0, description="hidden units of the classifier (edge level); 0: logistic regression")
    epochs: int = Field(100, ge=1, description="Adam steps of the encoder, half of the classifier's (edge level)")
    depth: Literal["chosen", "all"] = Field("chosen", description="hops read (edge): chosen on public labels, or all")
    folds: int = Field(5, ge=1, description="folds of the out-of-fold rows (edge, classes); 1: none, as published")
    degree: int = Field(10, ge=1, description="promised maximum degree D")
    hop_share: float = Field(0.3, gt=0, lt=1, description="share of the squared loss spent on hops (provable reading)")
    clip: float = Field(0.5, gt=0, description="norm to which a node's gradient is clipped")
    steps: int = Field(60, ge=1, description="gradient steps of the encoder, and again of the classifier")
    sampling_rate: float = Field(1.0, gt=0, le=1, description="Poisson rate of a step's nodes; 1: all of them")
    learning_rate: float = Field(8.0, gt=0, description="step size on the mean clipped gradient")
    momentum: float = Field(0.9, ge=0, lt=1, description="heavy-ball momentum, at the server")
    averaged: float = Field(0.5, gt=0, le=1, description="share of the last iterates that is averaged")
    projection: int = Field(64, ge=0, description="directions learned from the public test graph; 0: all features")

    @model_validator(mode="after")
    def _one_unit(self) -> Params:
        if self.relation != "auto" and Relation(self.relation).unit.value != self.level:
            raise ValueError(f"relation {self.relation!r} does not protect level {self.level!r}")
        return self

    @property
    def protects(self) -> Relation:
        if self.relation != "auto":
            return Relation(self.relation)
        return Relation.EDGE_UNDIRECTED if self.level == "edge" else Relation.NODE_ZERO_OUT


@dataclass(frozen=True, eq=False)
class Work:
    """A client's graph and the global ids of its rows (edge level)."""

    graph: Graph
    nodes: np.ndarray


def plan(params: Params, facts: PublicFacts, budget: Budget) -> Plan:
    """Every hop, priced; at node level also both training stages."""
    if params.level == "node":
        return node.plan(params, facts, budget)
    if facts.public_attributes is None:
        raise ScenarioError("gap at level 'edge' needs public features and labels: set the task's protocol: transductive")
    assumed = (
        Assumption.COUNTS_PUBLIC,
        Assumption.FEATURES_LABELS_PUBLIC,
        Assumption.HYPERPARAMETERS_PUBLIC,
        Assumption.SPLIT_PUBLIC,
        *setting_assumptions(facts),
    )
    mechanism: Mechanism = Disclose("no noise was asked for")
    event: Event = Unprotected("no noise")
    published, min_clients = None, 1
    if budget.private and params.hops:
        delta2 = neighbour_sums.sensitivity(params.protects)
        noise = aggregation_noise.edge_level(
            params.hops, delta2, budget.epsilon, budget.delta, budget.calibrated_by, params.formula
        )
        std, min_clients = gradient_std(1.0, noise.std, facts)
        mechanism, event, published = GaussianNoise(std), Gaussian(noise.std / delta2), noise.published
    release = PlannedRelease("aggregate", NeighbourSums(facts.num_nodes), mechanism, event, range(params.hops))
    return Plan(
        method="gap",
        params=params,
        rounds=params.hops,
        releases=(release,) if params.hops else (),
        protection=Protection(params.protects, facts.viewer, assumed),
        delta=budget.delta,
        facts=facts,
        epsilon_published=published,
        min_clients=min_clients,
        made={"attributes": facts.public_attributes},
    )


def start(plan: Plan, rng: np.random.Generator) -> State:
    """Edge level: the encoder, from public features and labels. Node level: initial parameters."""
    if plan.params.level == "node":
        return node.start(plan, rng)
    p = plan.params
    encoder = public.Encoder(p.encoder, p.hidden, p.folds, public.Fitting(p.epochs, 0.01, 5e-4))
    encoded = public.encode(plan.made["attributes"], encoder)
    return _after_hop(plan, {"seed": int(rng.integers(2**63)), "inputs": [encoded.own]}, encoded.message)


def prepare(plan: Plan, subgraph: Subgraph) -> Any:
    return node.prepare(plan, subgraph) if plan.params.level == "node" else Work(subgraph.graph, subgraph.nodes)


def client(
    plan: Plan, work: Any, model: Mapping[str, np.ndarray], round_: int, streams: Streams, desk: Desk
) -> dict[str, Released]:
    """Edge level: one noisy hop over this client's own edges (behind secure aggregation: on the rows of all nodes)."""
    if plan.params.level == "node":
        return node.client(plan, work, model, round_, streams, desk)
    release = plan.releases[0]

    def aggregate() -> np.ndarray:
        sums = hop(work.graph.adjacency, model["rows"][work.nodes])
        secure = plan.facts.viewer is Viewer.SERVER_SECURE_AGGREGATION
        return placed([sums], [work.nodes], plan.facts.num_nodes) if secure else sums

    return {"aggregate": desk.release("aggregate", aggregate, release.bound, release.mechanism)}


def server(plan: Plan, state: State, inbox: Inbox) -> State:
    """Edge level: keep the noisy hop, broadcast it for the next one, and after the last train the classifier."""
    if plan.params.level == "node":
        return node.server(plan, state, inbox)
    parts = inbox.each.get("aggregate")
    sums = placed(parts, plan.facts.members, plan.facts.num_nodes) if parts else inbox.sums["aggregate"]
    rows = unit_length(sums)
    return _after_hop(plan, {**state.memory, "inputs": [*state.memory["inputs"], rows]}, rows)


def predict(plan: Plan, state: State, graph: Graph) -> np.ndarray:
    """[n, c] scores. Edge level: from the cached hops, ``graph`` is not read. Node level: on the public ``graph``."""
    return node.predict(plan, state, graph) if plan.params.level == "node" else state.memory["scores"]


def _after_hop(plan: Plan, memory: dict[str, Any], rows: np.ndarray) -> State:
    """The next broadcast, or the trained classifier's scores when every hop is there."""
    p, inputs = plan.params, memory["inputs"]
    if len(inputs) <= p.hops:
        return State({"rows": rows}, memory)
    widths = (*((p.classifier,) if p.classifier else ()), plan.facts.num_classes)
    labels, how = plan.made["attributes"].labels, public.Fitting(2 * p.epochs, 0.02, 1e-3)
    chosen = public.classifier(inputs, labels, widths, how, p.depth == "chosen", np.random.default_rng(memory["seed"]))
    return State({}, {**memory, "scores": chosen.scores(inputs), "depth": chosen.depth})
