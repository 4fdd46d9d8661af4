"""GraphSAGE with privacy: at node level by noisy gradients of subgraphs, at edge level by a perturbed adjacency.

* ``node`` (Daigavane et al. 2021): bounded neighbourhoods, one or two layers, clipped gradients per subgraph, Gaussian
  noise for all the subgraphs that one node can be in (``_sage_node``). Inference on the public test graph.
* ``edge`` (Wu et al. 2022): each client sends its inner edges once through EdgeRand or LapGraph, ε-DP on the upper
  triangle; the server trains a two-layer GraphSAGE on the noisy graph with public features and labels
  (transductive protocol): post-processing, so training and inference cost nothing more. Cut edges are never read.

At ε = ∞ nothing is noised: SAGE-∞.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from pydantic import BaseModel, ConfigDict, Field, model_validator

from fedgraph.errors import ScenarioError
from fedgraph.learning import graphsage
from fedgraph.learning.public_training import Fitting
from fedgraph.methods import _sage_node as node
from fedgraph.methods.base import Budget, Inbox, Plan, PublicFacts, State, Streams, setting_assumptions
from fedgraph.privacy.desk import Desk, PlannedRelease, Released
from fedgraph.privacy.edge_mechanisms import BYTES_PER_CELL, EdgeRand, LapGraph, UpperTriangle
from fedgraph.privacy.events import Event, PureDP, RandomizedResponse, Unprotected
from fedgraph.privacy.mechanisms import Disclose, Mechanism
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer
from fedgraph.types import Graph, Subgraph

REFERENCE = """@article{daigavane2021node,
  title = {Node-Level Differentially Private Graph Neural Networks},
  author = {Daigavane, Ameya and Madan, Gagan and Sinha, Aditya and Thakurta, Abhradeep Guha and Aggarwal, Gaurav and Jain, Prateek},
  journal = {arXiv preprint arXiv:2111.15521}, year = {2021}}
@inproceedings{wu2022linkteller,
  title = {{LinkTeller}: Recovering Private Edges from Graph Neural Networks via Influence Analysis},
  author = {Wu, Fan and Long, Yunhui and Zhang, Ce and Li, Bo},
  booktitle = {IEEE Symposium on Security and Privacy}, year = {2022}}"""  # fmt: skip  # noqa: E501


class Params(BaseModel):
    """Settings; the level that a setting belongs to is in brackets where it is one."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    level: Literal["node", "edge"] = Field("node", description="what is protected: whole nodes, or edges")
    relation: Literal["auto", "edge-undirected", "node-zero-out", "node-replace"] = Field(
        "auto", description="neighbouring relation; auto: edge-undirected, node-zero-out"
    )
    hidden: int = Field(32, ge=1, description="hidden units of a two-layer network")
    layers: Literal[1, 2] = Field(1, description="layers (node)")
    degree: int = Field(10, ge=1, description="promised maximum degree D (node)")
    clip: float = Field(0.5, gt=0, description="norm to which a subgraph's gradient is clipped (node)")
    steps: int = Field(60, ge=1, description="gradient steps (node)")
    batches: Literal["fixed", "poisson"] = Field("fixed", description="batches without replacement, or by coins (node)")
    sampling_rate: float = Field(1.0, gt=0, le=1, description="share of the nodes in a batch (node); 1: all of them")
    learning_rate: float = Field(8.0, gt=0, description="step size on the mean clipped gradient (node)")
    momentum: float = Field(0.9, ge=0, lt=1, description="heavy-ball momentum (node)")
    averaged: float = Field(0.5, gt=0, le=1, description="share of the last iterates that is averaged (node)")
    projection: int = Field(64, ge=0, description="directions learned from the public test graph (node); 0: all features")
    adjacency: Literal["edgerand", "lapgraph"] = Field("lapgraph", description="how edges are perturbed (edge)")
    count_share: float = Field(0.01, gt=0, lt=1, description="share of ε for the number of edges (edge, lapgraph)")
    memory_gb: float = Field(2.0, gt=0, description="memory the perturbed graph may take, in GB (edge)")
    epochs: int = Field(100, ge=1, description="Adam steps (edge)")
    training_rate: float = Field(0.01, gt=0, description="Adam step size (edge)")
    weight_decay: float = Field(5e-4, ge=0, description="L2 weight (edge)")

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
    """A client's edges, int32 [m, 2], u < v, in its own numbering (edge level)."""

    edges: np.ndarray


def plan(params: Params, facts: PublicFacts, budget: Budget) -> Plan:
    """Edge level: one perturbed graph per client; refuses what does not fit into memory, from public numbers alone."""
    if params.level == "node":
        return node.plan(params, facts, budget)
    if facts.public_attributes is None:
        raise ScenarioError("sage at level 'edge' needs public features and labels: set the task's protocol: transductive")
    if facts.viewer is Viewer.SERVER_SECURE_AGGREGATION:
        raise ScenarioError(
            "sage at level 'edge' sends lists of edges, which secure aggregation cannot add up; "
            "use the settings central or local, or method: gap"
        )
    assumed = (
        Assumption.COUNTS_PUBLIC,
        Assumption.FEATURES_LABELS_PUBLIC,
        Assumption.HYPERPARAMETERS_PUBLIC,
        Assumption.SPLIT_PUBLIC,
        *setting_assumptions(facts),
    )
    releases = []
    for number, size in enumerate(facts.client_sizes):
        mechanism, event = _perturbation(params, budget, size)
        releases.append(PlannedRelease("adjacency", UpperTriangle(size), mechanism, event, range(1), client=number))
    return Plan(
        method="sage",
        params=params,
        rounds=1,
        releases=tuple(releases),
        protection=Protection(params.protects, facts.viewer, assumed),
        delta=budget.delta,
        facts=facts,
        epsilon_published=budget.epsilon if budget.private else None,
        made={"attributes": facts.public_attributes},
    )


def _perturbation(params: Params, budget: Budget, size: int) -> tuple[Mechanism, Event]:
    if not budget.private:
        return Disclose("no noise was asked for"), Unprotected("no noise")
    most = int(params.memory_gb * 1e9 / BYTES_PER_CELL)
    if params.adjacency == "edgerand":
        return EdgeRand(budget.epsilon, size, most), RandomizedResponse(budget.epsilon, 2)
    return LapGraph(budget.epsilon, size, most, params.count_share), PureDP(budget.epsilon)


def start(plan: Plan, rng: np.random.Generator) -> State:
    if plan.params.level == "node":
        return node.start(plan, rng)
    return State({}, {"seed": int(rng.integers(2**63))})


def prepare(plan: Plan, subgraph: Subgraph) -> Any:
    if plan.params.level == "node":
        return node.prepare(plan, subgraph)
    upper = sp.triu(subgraph.graph.adjacency, k=1, format="coo")
    return Work(np.column_stack([upper.row, upper.col]).astype(np.int32))


def client(
    plan: Plan, work: Any, model: Mapping[str, np.ndarray], round_: int, streams: Streams, desk: Desk
) -> dict[str, Released]:
    """Edge level: the perturbed edges, once."""
    if plan.params.level == "node":
        return node.client(plan, work, model, round_, streams, desk)
    release = next(r for r in plan.releases if r.client == desk.client)
    return {"edges": desk.release("adjacency", work.edges, release.bound, release.mechanism)}


def server(plan: Plan, state: State, inbox: Inbox) -> State:
    """Edge level: put the noisy edges together and train on them."""
    if plan.params.level == "node":
        return node.server(plan, state, inbox)
    n, p = plan.facts.num_nodes, plan.params
    edges = np.concatenate([nodes[part] for nodes, part in zip(plan.facts.members, inbox.each["edges"], strict=True)])
    ends = np.concatenate([edges, edges[:, ::-1]])
    adjacency = sp.csr_array((np.ones(len(ends), dtype=np.int8), (ends[:, 0], ends[:, 1])), shape=(n, n))
    how = Fitting(p.epochs, p.training_rate, p.weight_decay)
    rng = np.random.default_rng(state.memory["seed"])
    return State({}, {"scores": graphsage.trained_scores(plan.made["attributes"], adjacency, p.hidden, how, rng)})


def predict(plan: Plan, state: State, graph: Graph) -> np.ndarray:
    """[n, c] scores. Edge level: on the noisy graph, ``graph`` is not read. Node level: on the public ``graph``."""
    return node.predict(plan, state, graph) if plan.params.level == "node" else state.memory["scores"]
