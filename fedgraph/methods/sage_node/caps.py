"""SAGE at node level: how many rows one node can change, which the noise of a step has to hide.

log        one layer: weights of ``privacy.neighbour_sums`` and its bound of gradients; two layers: every row counts as changed.
           Proven for every graph, no promise; the cost grows with the number of nodes
limit      the platform enforces at most M neighbours: nothing is cut, and a node changes at most k(M) rows
promised   as published: neighbourhoods are cut to D by public coins, and a node changes k(D) rows. This is provable only if no
           node has more than D neighbours, because others fill a slot that a removed node frees

A row is a training node with its neighbours up to L steps away, so with degrees of at most D a node lies in at most
k(D) = 1 + D·(1 + (D − 1) + … + (D − 1)^{L−1}) rows: D + 1 with one layer, D² + 1 with two.
"""

import json
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from pydantic import Field, model_validator

from fedgraph.documents import Settings
from fedgraph.learning import neighbour_limits, rooted, walks
from fedgraph.methods.base import Budget, PublicFacts, examples, node_caps, occurrences
from fedgraph.privacy import Assumption, PricedDegreeCap, Relation, neighbour_sums
from fedgraph.types import Graph


class Params(Settings):
    relation: Literal["node-zero-out", "node-replace"] = Field("node-zero-out", description="neighbouring relation")
    hidden: int = Field(32, ge=1, description="hidden units of a two-layer network")
    layers: Literal[1, 2] = Field(1, description="layers")
    cap: Literal["auto", "log", "limit", "promised"] = Field(
        "auto", description="what bounds the rows a node touches; auto: log where noise is provable, promised where it is not"
    )
    knee: ClassVar[int] = 1  # degree up to which the log cap weighs every edge 1
    limit: int | None = Field(None, ge=1, description="neighbours that the platform allows (cap: limit)")
    scale: Annotated[float, Field(gt=0)] | Literal["auto"] = Field(
        "auto", description="what sums over neighbours are divided by (log); auto: they cost as much as the own row"
    )
    bound: ClassVar[float] = 2.0  # norm that the weights of the neighbours' part keep (log)
    degree: int = Field(10, ge=1, description="promised maximum degree D, to which neighbourhoods are cut (cap: promised)")
    clip: float = Field(0.5, gt=0, description="norm to which a subgraph's gradient is clipped")
    steps: int = Field(60, ge=1, description="gradient steps")
    sampling_rate: float = Field(1.0, gt=0, le=1, description="q, probability that a node is in a batch; 1: all of them")
    learning_rate: float = Field(8.0, gt=0, description="step size on the mean clipped gradient")
    momentum: float = Field(0.9, ge=0, lt=1, description="heavy-ball momentum")
    averaged: ClassVar[float] = 0.5  # share of the last iterates that is averaged
    projection: int = Field(64, ge=0, description="directions learned from the public test graph; 0: all features")

    @model_validator(mode="after")
    def _limit_has_its_number(self) -> Self:
        if (self.cap == "limit") != (self.limit is not None):
            raise ValueError("cap: limit and its number belong together, e.g. {cap: limit, limit: 50}; give both or none")
        return self

    @property
    def protects(self) -> Relation:
        return Relation(self.relation)


@dataclass(frozen=True, eq=False)
class Made(examples.ExamplesMade):
    """What the plan made of public facts."""

    cap: PricedDegreeCap | None = None  # if rows hold weighted sums, the rule of the largest client; else None
    scale: float = 1.0  # c, by which sums over neighbours are divided (``log``)
    sensitivity: float = 0.0  # Δ₂ of a step (``log``)
    joined: bool = True  # whether a row holds what one layer reads of neighbours, so that the network is linear
    promised: int | None = None  # maximum degree D that the data promise, or None
    assumptions: tuple[Assumption, ...] = ()
    notes: tuple[str, ...] = ()  # sentences for the report

    def read(self, graph: Graph, ids: np.ndarray, held: bool = True) -> tuple[np.ndarray, sp.csr_array]:
        """(rows [n, k], neighbourhoods that roots read). held: whether it is a client's own graph.

        Rows are unit rows, or their coordinates along public directions. With one layer each row is followed by the weighted
        sum, or the mean, of its neighbours' rows, and roots read no other node.
        """
        if self.cap is not None:
            weights = node_caps.edge_weights(graph.adjacency, self.cap)
            return neighbour_limits.rows(node_caps.sparse_rows(graph, self.basis), weights, self.scale), graph.adjacency
        adjacency, own = self.bounded(graph.adjacency, ids, held), self.rows(graph)
        if not self.joined:
            return own, adjacency
        return np.hstack([own, walks.random_matrix(adjacency).astype(np.float32) @ own]), adjacency


def made_of(params: Params, facts: PublicFacts, budget: Budget) -> Made:
    """The rule of ``params.cap``, from public sizes, and the network: PyG's ``SAGEConv`` as a linear layer of joined rows, or
    two layers of its ``GraphSAGE``.
    """
    one = params.layers == 1
    model = "torch.nn.Linear" if one else "torch_geometric.nn.GraphSAGE"
    sizes = {"in_features": "$inputs", "out_features": "$classes"}
    shape = sizes if one else {"hidden_channels": params.hidden, "num_layers": params.layers}
    spec, basis = examples.network_of(model, json.dumps(shape), params.projection, facts, wide=2 if one else 1)
    promised = not budget.private or budget.calibrated_by == "published"
    kind = params.cap if params.cap != "auto" else "promised" if promised else "log"
    degree, largest = params.limit or params.degree, max(facts.clients)
    every = kind == "log" and not one
    how = ("all" if every else kind, degree, np.inf, params.layers, params.sampling_rate, params.protects.replaces)
    rules = tuple(occurrences.rule(*how, n, True) for n in facts.clients)
    made = Made(spec, rules, basis, hops=0 if one else params.layers, joined=one)
    touched = 1 + rooted.reach(degree, params.layers)
    if every:
        note = (
            f"No promise: with two layers every one of a client's rows may change with a node, {largest} at the largest "
            "client, and is priced so. cap: limit or cap: promised price fewer rows, on what they assume."
        )
        return replace(made, cut=params.degree, notes=(note,))
    if kind == "log":
        return _log(params, largest, made)
    if kind == "limit":
        note = f"A node is in at most {touched} training subgraphs, because the platform allows {degree} neighbours."
        return replace(made, limit=degree, assumptions=(Assumption.DEGREE_LIMIT_ENFORCED,), notes=(note,))
    note = (
        f"A node is in at most {touched} training subgraphs, if no node has more than {degree} neighbours. Above that, "
        "neighbourhoods are cut and a node that goes frees slots that others refill: where the data break the promise the "
        "provable ε is ∞."
    )
    return replace(made, cut=degree, promised=degree, assumptions=(Assumption.PROMISED_DEGREE,), notes=(note,))


def _log(params: Params, largest: int, made: Made) -> Made:
    """``made`` with the rule ``log`` of one layer. largest: number of nodes of the largest client."""
    cap = neighbour_sums.priced_log_cap(largest, params.knee)
    scale = neighbour_sums.gradient_scale(cap, params.clip, params.bound) if params.scale == "auto" else params.scale
    delta = neighbour_sums.gradient_sensitivity(cap, params.clip, params.bound, scale, params.protects.replaces)
    note = (
        f"No promise: a node changes a step's sum by at most {delta / params.clip:.4g} clips in every graph of {largest} "
        f"nodes. For that, sums over neighbours are divided by {scale:.4g}: they hardly count, and the row is about as good as "
        "DP-SGD on a node's own features with that much more noise."
    )
    return replace(made, cap=cap, scale=scale, sensitivity=delta, notes=(note,))
