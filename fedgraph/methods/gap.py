"""GAP: aggregation perturbation. Encoder → K noisy sums over neighbours, made once → classifier.

    H⁰ = encoder(X),  rows scaled to norm ≤ 1;      Hᵏ = scale(A·Hᵏ⁻¹ + N(0, s²)),  k = 1 … K        (slides, 2022)

The classifier reads [H⁰ … Hᴷ]. Noise enters each hop once; training and inference reuse the noisy hops.

* ``edge``: features and labels are public, edges private (transductive protocol). Every hop is released and kept by
  the server; encoder and classifier are post-processing. Published: Δ = 1 per hop; provable: √2 (an undirected
  edge changes two rows). With K = 0 this is an MLP, at ε = 0.
* ``node``: encoder and classifier are trained with clipped, noisy gradients (``learning.per_sample``); hops of a graph
  with promised degree D get noise for √D and stay with the client that made them. Inference is on the public test
  graph, without noise. A sampler that cuts degrees to D refills slots; the promise excludes that case (see notes).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from fedgraph.errors import ScenarioError
from fedgraph.learning import public_training as public
from fedgraph.learning.aggregation import hop, unit_length
from fedgraph.learning.dense import DenseMatrix
from fedgraph.learning.models import Layout, logits
from fedgraph.methods.base import Budget, Plan, PublicFacts, State, gradient_std, setting_assumptions
from fedgraph.privacy import calibrate, gaussian, neighbour_sums
from fedgraph.privacy.desk import PlannedRelease
from fedgraph.privacy.events import Gaussian, Unprotected
from fedgraph.privacy.mechanisms import Disclose, GaussianNoise
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer
from fedgraph.types import Graph, Subgraph

REFERENCE = """@inproceedings{sajadmanesh2023gap,
  title = {{GAP}: Differentially Private Graph Neural Networks with Aggregation Perturbation},
  author = {Sajadmanesh, Sina and Shamsabadi, Ali Shahin and Bellet, Aur{\\'e}lien and Gatica-Perez, Daniel},
  booktitle = {USENIX Security Symposium}, year = {2023}}"""

CLEAR = Disclose("no noise was asked for")


class Params(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    level: Literal["edge"] = Field("edge", description="what is protected")
    hops: int = Field(2, ge=0, description="aggregations K")
    relation: Literal["edge-undirected", "edge-directed"] = Field("edge-undirected", description="neighbouring relation")
    formula: Literal["slides", "code"] = Field("code", description="published reading")
    encoder: Literal["classes", "hidden", "none"] = Field("classes", description="what is aggregated")
    hidden: int = Field(64, ge=1)
    folds: int = Field(5, ge=1)
    classifier_hidden: int = Field(32, ge=0)
    epochs: int = 100


@dataclass(frozen=True, eq=False)
class Work:
    graph: Graph
    nodes: np.ndarray


def plan(params: Params, facts: PublicFacts, budget: Budget) -> Plan:
    if facts.public_attributes is None:
        raise ScenarioError("gap at level 'edge' needs public features and labels: set the task's protocol: transductive")
    relation = Relation(params.relation)
    releases: tuple[PlannedRelease, ...] = ()
    published, min_clients = None, 1
    if params.hops:
        bound = neighbour_sums.NeighbourSums(facts.num_nodes)
        if budget.private:
            delta2 = neighbour_sums.sensitivity(relation)
            if budget.calibrated_by == "published":
                total = math.sqrt(params.hops) / (
                    gaussian.moments_mu(budget.epsilon, budget.delta)
                    if params.formula == "slides"
                    else 1 / calibrate.gaussian_multiplier(1, budget.epsilon, budget.delta)
                )
            else:
                total = delta2 * calibrate.gaussian_multiplier(params.hops, budget.epsilon, budget.delta)
            std, min_clients = gradient_std(1.0, total, facts)
            mech, event = GaussianNoise(std), Gaussian(total / delta2)
            mu = math.sqrt(params.hops) / total
            published = (
                gaussian.moments_epsilon(mu, budget.delta) if params.formula == "slides" else gaussian.epsilon(mu, budget.delta)
            )
        else:
            mech, event = CLEAR, Unprotected("no noise")
        releases = (PlannedRelease("aggregate", bound, mech, event, range(params.hops)),)
    assumed = (
        Assumption.COUNTS_PUBLIC,
        Assumption.FEATURES_LABELS_PUBLIC,
        Assumption.HYPERPARAMETERS_PUBLIC,
        Assumption.SPLIT_PUBLIC,
        *setting_assumptions(facts),
    )
    return Plan(
        "gap",
        params,
        params.hops,
        releases,
        Protection(relation, facts.viewer, assumed),
        budget.delta,
        facts,
        published,
        min_clients=min_clients,
    )


def start(plan: Plan, rng: np.random.Generator) -> State:
    p = plan.params
    enc = public.encode(
        plan.facts.public_attributes, public.Encoder(p.encoder, p.hidden, p.folds, public.Fitting(p.epochs, 0.01, 5e-4))
    )
    memory = {"inputs": [enc.own], "seed": int(rng.integers(2**63))}
    return _next(plan, memory, enc.message)


def _next(plan, memory, rows):
    if len(memory["inputs"]) <= plan.params.hops:
        return State({"rows": rows}, memory)
    p = plan.params
    x = DenseMatrix(np.concatenate(memory["inputs"], axis=1))
    layout = Layout((x.rows.shape[1], *((p.classifier_hidden,) if p.classifier_hidden else ()), plan.facts.num_classes))
    v = public.fit(
        layout, x, plan.facts.public_attributes.labels, public.Fitting(200, 0.02, 1e-4), np.random.default_rng(memory["seed"])
    )
    return State({}, {**memory, "scores": logits(layout, v, x)})


def prepare(plan: Plan, subgraph: Subgraph) -> Work:
    return Work(subgraph.graph, subgraph.nodes)


def client(plan, work, model, round_, streams, desk):
    release = plan.releases[0]

    def aggregate():
        sums = hop(work.graph.adjacency, model["rows"][work.nodes])
        if plan.facts.viewer is Viewer.SERVER_SECURE_AGGREGATION:
            out = np.zeros((plan.facts.num_nodes, sums.shape[1]), np.float32)
            out[work.nodes] = sums
            return out
        return sums

    return {"aggregate": desk.release("aggregate", aggregate, release.bound, release.mechanism)}


def server(plan, state, inbox):
    if inbox.each:
        rows = np.zeros((plan.facts.num_nodes, inbox.each["aggregate"][0].shape[1]), np.float32)
        for members, values in zip(plan.facts.members, inbox.each["aggregate"], strict=True):
            rows[members] = values
    else:
        rows = inbox.sums["aggregate"]
    rows = unit_length(rows)
    return _next(plan, {**state.memory, "inputs": [*state.memory["inputs"], rows]}, rows)


def predict(plan, state, graph):
    return state.memory["scores"]
