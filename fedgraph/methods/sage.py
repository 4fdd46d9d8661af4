"""GraphSAGE with privacy: at node level by noisy gradients of subgraphs, at edge level by a perturbed adjacency.

* ``node`` (Daigavane et al. 2021): bounded neighbourhoods, one or two layers, clipped gradients per subgraph, Gaussian
  noise for all the subgraphs that one node can be in (``_sage_node``). Inference on the public test graph.
* ``edge`` (Wu et al. 2022; ``_sage_edge``): each client sends its edges once through EdgeRand or LapGraph, ε-DP on the cells
  it answers for; the server trains a two-layer GraphSAGE, or a GCN (DPGCN), on the noisy graph with public features and
  labels (transductive protocol): post-processing, so training and inference cost nothing more.

At ε = ∞ nothing is noised: SAGE-∞, or the plain GCN.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from fedgraph.methods import _sage_edge, _sage_node
from fedgraph.methods.base import Budget, Inbox, Plan, PublicFacts, State, Streams
from fedgraph.privacy.desk import Desk, Released
from fedgraph.privacy.units import Relation
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
    network: Literal["sage", "gcn"] = Field("sage", description="what is trained on the perturbed graph (edge); gcn: DPGCN")
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


def _of(level: str) -> ModuleType:
    return _sage_edge if level == "edge" else _sage_node


def plan(params: Params, facts: PublicFacts, budget: Budget) -> Plan:
    """Edge level: one perturbed graph per client. Node level: one noisy gradient sum per step."""
    return _of(params.level).plan(params, facts, budget)  # type: ignore[no-any-return]


def start(plan: Plan, rng: np.random.Generator) -> State:
    return _of(plan.params.level).start(plan, rng)  # type: ignore[no-any-return]


def prepare(plan: Plan, subgraph: Subgraph) -> Any:
    return _of(plan.params.level).prepare(plan, subgraph)


def client(
    plan: Plan, work: Any, model: Mapping[str, np.ndarray], round_: int, streams: Streams, desk: Desk
) -> dict[str, Released]:
    """Edge level: the perturbed edges, once. Node level: this step's noisy gradient sum."""
    return _of(plan.params.level).client(plan, work, model, round_, streams, desk)  # type: ignore[no-any-return]


def server(plan: Plan, state: State, inbox: Inbox) -> State:
    """Edge level: put the noisy edges together and train on them. Node level: one descent step."""
    return _of(plan.params.level).server(plan, state, inbox)  # type: ignore[no-any-return]


def predict(plan: Plan, state: State, graph: Graph) -> np.ndarray:
    """[n, c] scores. Edge level: on the noisy graph, ``graph`` is not read. Node level: on the public ``graph``."""
    return _of(plan.params.level).predict(plan, state, graph)  # type: ignore[no-any-return]


def evidence(plan: Plan, state: State, graph: Graph, units: np.ndarray) -> np.ndarray | None:
    """Edge level: the noisy graph that was received. Node level: nothing but the model is looked at."""
    return _sage_edge.evidence(plan, state, graph, units) if plan.params.level == "edge" else None
