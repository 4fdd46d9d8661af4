"""SAGE at node level: how many rows one node can change, which the noise of a step has to hide.

log        one layer: weights of ``privacy.neighbour_sums`` and its bound of gradients; two layers: every
           row counts as touched. Proven for every graph, no promise; what it costs grows with the number of nodes
limit      the platform enforces at most M neighbours: nothing is cut, a node touches at most k(M) rows
promised   as published: neighbourhoods are cut to D by public coins, k(D) rows; provable only where no node has more than D
           neighbours, for a slot that a removed node frees is filled again
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from pydantic import Field, model_validator

from fedgraph.documents import Settings
from fedgraph.learning import Layout, graphsage, neighbour_limits
from fedgraph.methods.base import Budget, PublicFacts, node_caps
from fedgraph.methods.base.node_caps import NODE_CAP_COIN
from fedgraph.methods.sage_node.published import ClaimedSageStage, claimed_sage_subgraphs, claimed_touched_rows
from fedgraph.privacy import Assumption, PricedDegreeCap, Relation, neighbour_sums


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
    batches: Literal["fixed", "poisson"] = Field("fixed", description="batches without replacement, or by coins")
    sampling_rate: float = Field(1.0, gt=0, le=1, description="share of the nodes in a batch; 1: all of them")
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


@dataclass(frozen=True)
class Caps:
    """What bounds the rows that a node changes, and what a step costs.

    Attributes:
        kind: ``log``, ``limit`` or ``promised``; ``all`` where every row counts as touched.
        stage: the steps, as they are priced.
        cap: where rows hold weighted sums, the rule of the largest client; else None.
        scale: c, what sums over neighbours are divided by (``log``).
        sensitivity: Δ₂ of a step (``log``).
        cut: neighbours that a row keeps at most, by public coins; None: all.
        promised: maximum degree D that the data promise, or None.
        limit: number of neighbours M that the platform enforces, or None.
        assumptions: what the guarantee rests on.
        notes: what a statement must say.
    """

    kind: str
    stage: ClaimedSageStage
    cap: PricedDegreeCap | None = None
    scale: float = 1.0
    sensitivity: float = 0.0
    cut: int | None = None
    promised: int | None = None
    limit: int | None = None
    assumptions: tuple[Assumption, ...] = ()
    notes: tuple[str, ...] = ()

    def neighbourhoods(self, adjacency: sp.csr_array, ids: np.ndarray, held: bool) -> sp.csr_array:
        """What rows aggregate over: weights, or the graph, cut where it is cut. held: a client's own graph."""
        if self.cap is not None:
            return node_caps.edge_weights(adjacency, self.cap)
        if self.cut is not None:
            return neighbour_limits.at_most(adjacency, self.cut, ids, NODE_CAP_COIN)
        if held and self.limit is not None:
            neighbour_limits.require(adjacency, self.limit, ids)
        return sp.csr_array(adjacency.astype(np.float32))


@dataclass(frozen=True, eq=False)
class Made:
    """What the plan made of public facts.

    Attributes:
        caps: the rule, and what a step costs.
        basis: public directions [d, k] that features are projected on, or None.
        network: layout of one layer's parameters, or of two.
    """

    caps: Caps
    basis: np.ndarray | None
    network: graphsage.GraphsageWidths | Layout


def rule_of(params: Params, facts: PublicFacts, budget: Budget) -> Caps:
    """The rule that ``params.cap`` asks for, from public sizes."""
    promised = not budget.private or budget.calibrated_by == "published"
    kind = params.cap if params.cap != "auto" else "promised" if promised else "log"
    if kind == "log":
        return _log(params, max(facts.clients))
    degree = params.limit or params.degree
    touched = claimed_touched_rows(degree, params.layers)
    changed = 2 * touched - 1 if params.protects.replaces else touched  # replaced: it has other neighbours in the other world
    stage = _stage(params, changed, claimed_sage_subgraphs(degree, params.layers))
    if kind == "limit":
        note = f"A node is in at most {touched} training subgraphs, because the platform allows {degree} neighbours."
        known = (Assumption.DEGREE_LIMIT_ENFORCED,)
        return Caps(kind, stage, limit=degree, assumptions=known, notes=(note,))
    note = (
        f"A node is in at most {touched} training subgraphs, if no node has more than {degree} neighbours. Above that, "
        "neighbourhoods are cut and a node that goes frees slots that others refill: where the data break the promise the "
        "provable ε is ∞."
    )
    return Caps(kind, stage, cut=degree, promised=degree, assumptions=(Assumption.PROMISED_DEGREE,), notes=(note,))


def _stage(params: Params, touched: int, claimed: int | None = None) -> ClaimedSageStage:
    fixed = params.batches == "fixed"
    return ClaimedSageStage(params.steps, params.sampling_rate, touched, fixed, params.protects.replaces, claimed)


def _log(params: Params, largest: int) -> Caps:
    """largest: nodes of the largest client."""
    if params.layers > 1:
        note = (
            f"No promise: with two layers every one of a client's rows may change with a node, {largest} at the largest "
            "client, and is priced so. cap: limit or cap: promised price fewer rows, on what they assume."
        )
        return Caps("all", _stage(params, largest), cut=params.degree, notes=(note,))
    cap = neighbour_sums.priced_log_cap(largest, params.knee)
    scale = neighbour_sums.gradient_scale(cap, params.clip, params.bound) if params.scale == "auto" else params.scale
    delta = neighbour_sums.gradient_sensitivity(cap, params.clip, params.bound, scale, params.protects.replaces)
    note = (
        f"No promise: a node changes a step's sum by at most {delta / params.clip:.4g} clips in every graph of {largest} "
        f"nodes. For that, sums over neighbours are divided by {scale:.4g}: they hardly count, and the row is about as good as "
        "DP-SGD on a node's own features with that much more noise."
    )
    return Caps("log", _stage(params, 1), cap, scale, delta, notes=(note,))
