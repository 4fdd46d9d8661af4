"""GAP: aggregation perturbation. Encoder → K noisy sums over neighbours, made once → classifier.

    H⁰ = scale(encoder(X)),      Hᵏ = scale(A·Hᵏ⁻¹ + N(0, s²)),  k = 1 … K,      rows scaled to norm ≤ 1     (slides, 2022)

The classifier reads [H⁰ … Hᴷ]. Noise enters each hop once; training and inference reuse the noisy hops.

* ``edge`` (``_gap_edge``): features and labels are public, edges private. Hops are released and kept by the server; encoder
  and classifier are post-processing. Published: Δ = 1 per hop; provable: √2, because an undirected edge changes two rows.
  With hops: 0 this is an MLP, at ε = 0.
* ``node`` (``_gap_node``): encoder and classifier descend on clipped, noisy gradients; hops over a graph of promised degree D
  carry noise for √D and stay with the client that made them. Inference is on the public test graph, without noise.

Federated: a client aggregates with its own noise over its own edges, and at edge level, where the scenario says so, over the
edges between clients: each end by the client that holds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from fedgraph.methods import _gap_edge, _gap_node
from fedgraph.methods.base import Budget, Inbox, Plan, PublicFacts, State, Streams
from fedgraph.privacy.desk import Desk, Released
from fedgraph.privacy.units import Relation
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


def _of(level: str) -> ModuleType:
    return _gap_edge if level == "edge" else _gap_node


def plan(params: Params, facts: PublicFacts, budget: Budget) -> Plan:
    """Every hop, priced; at node level also both training stages."""
    return _of(params.level).plan(params, facts, budget)  # type: ignore[no-any-return]


def start(plan: Plan, rng: np.random.Generator) -> State:
    """Edge level: the encoder, from public features and labels. Node level: initial parameters."""
    return _of(plan.params.level).start(plan, rng)  # type: ignore[no-any-return]


def prepare(plan: Plan, subgraph: Subgraph) -> Any:
    return _of(plan.params.level).prepare(plan, subgraph)


def client(
    plan: Plan, work: Any, model: Mapping[str, np.ndarray], round_: int, streams: Streams, desk: Desk
) -> dict[str, Released]:
    """Edge level: one noisy hop. Node level: this round's noisy gradient sum."""
    return _of(plan.params.level).client(plan, work, model, round_, streams, desk)  # type: ignore[no-any-return]


def server(plan: Plan, state: State, inbox: Inbox) -> State:
    """Edge level: the next broadcast, at the end the classifier. Node level: one descent step."""
    return _of(plan.params.level).server(plan, state, inbox)  # type: ignore[no-any-return]


def predict(plan: Plan, state: State, graph: Graph) -> np.ndarray:
    """[n, c] scores; what of ``graph`` is read, the level's own file says."""
    return _of(plan.params.level).predict(plan, state, graph)  # type: ignore[no-any-return]


def evidence(plan: Plan, state: State, graph: Graph, units: np.ndarray) -> np.ndarray | None:
    """Edge level: the likelihood of the released hops. Node level: hops stay at their clients, only the model is seen."""
    return _gap_edge.evidence(plan, state, graph, units) if plan.params.level == "edge" else None
