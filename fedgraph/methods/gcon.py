"""GCON: a graph convolution without noise, and a linear classifier with noise in its objective.

    X = clip(encoder(features)),  Z = (1/s)[Z_{m₁} ⊕ … ⊕ Z_{m_s}],  Θ = argmin F(Θ; Z, Y) + (Λ′/2)‖Θ − Θ₀‖² + ⟨B, Θ⟩/n₁

Z holds the features after s walks with restart of m₁ … m_s steps (``learning.walks``), Y the labels of the n₁ labelled nodes,
F the mean loss with the regulariser Λ. B is the noise. Its columns have a Gamma-distributed length
(``privacy.objective_perturbation``). With ``noise: gaussian`` its entries are normal, and several times smaller if rows are
wide. Λ′ ≥ 0 is what the proof adds to Λ.

Each client releases Θ once. Edges are private; features and labels are public, so the encoder costs nothing. Published and
provable ε agree (Theorem 1) for the exact minimiser; the distance to it gets noise of its own and is priced. As published,
Θ₀ = 0 (prior: 0). By default Θ₀ reads the encoder's class scores as they are, so that a small ε costs little accuracy: Θ₀ is
public, and the proof changes only in c_θ, which grows by ‖Θ₀‖.

* Predictions on the private graph: a node reads its own edges, in one step Z′ = (1−α)ÃX + αX for every m > 0.
* Predictions on a public test graph (protocol ``inductive-edges``): the whole walk.
* ``release: nothing``: Θ = Θ₀ and ε = 0, for comparison: only own edges are read.

**Who sees what.** The server sees each client's Θ (or their weighted sum), and clients see X. Each client perturbs its own
objective on its own edges (parallel composition: one client holds an inner edge), and the server averages by numbers of
labelled nodes. A client with few of them needs more noise and a larger Λ. Edges between clients are dropped, or (``cut_edges:
protected``) are in both clients' walks, where each changes one row: one end costs at most (ε/2, δ/2) at its client.
"""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from pydantic import Field, field_validator, model_validator

from fedgraph import learning, privacy
from fedgraph.documents import InfiniteSetting, Settings
from fedgraph.errors import DataError, ScenarioError
from fedgraph.learning import public_training as public
from fedgraph.learning import walks
from fedgraph.methods import base
from fedgraph.privacy import objective_perturbation as perturbing
from fedgraph.types import Graph, Subgraph

REFERENCE = base.method_bibtex("wei2024gcon")


class Params(Settings):
    steps: Annotated[tuple[Annotated[float, Field(ge=0)], ...], InfiniteSetting] = Field(
        (2,), description="propagation steps m₁ … m_s; inf: convergence"
    )
    restart: float = Field(0.4, gt=0, le=1, description="restart probability α")
    cap: float = Field(0.5, gt=0, le=0.5, description="largest weight of a neighbour, p")
    loss: learning.ObjectiveLossName = Field("soft-margin", description="soft-margin | pseudo-huber")
    width: float = Field(1.0, gt=0, description="width of the pseudo-Huber loss")
    regulariser: Annotated[float, Field(gt=0)] | Literal["auto"] = Field(
        "auto", description="Λ; auto: ten times the value it must exceed, at least 0.02"
    )
    prior: Annotated[float, Field(ge=0)] | Literal["auto"] = Field(
        "auto", description="scale of Θ₀, to which Θ is pulled; 0: as published; auto: 3 with encoder classes, else 0"
    )
    noise: Literal["gamma", "gaussian"] = Field(
        "gamma", description="in the objective: gamma as published | gaussian: less of it"
    )
    share: float = Field(0.9, gt=0, lt=1, description="least share of ε for the noise, ω")
    release: Literal["trained", "nothing"] = Field("trained", description="Θ: the noisy minimiser, or the prior as it is")
    encoder: Literal["classes", "hidden", "none"] = Field("classes", description="rows X: class scores, hidden units, features")
    centred: bool = Field(True, description="hidden units minus their mean over the public nodes (hidden)")
    hidden: int = Field(64, ge=1, description="hidden units of the encoder")
    epochs: int = Field(100, ge=1, description="Adam steps of the encoder")
    folds: int = Field(5, ge=1, description="folds of the out-of-fold rows (classes); 1: none, rows then saw their labels")
    # two constants that nothing reads; they are part of the names of noise streams
    inference: ClassVar[str] = "auto"
    inference_restart: ClassVar[str] = "same"

    @model_validator(mode="after")
    def _prior_reads_classes(self) -> Self:
        if self.encoder != "classes" and self.scale:
            raise ValueError(f"prior reads the encoder's class scores: encoder {self.encoder!r} needs prior: 0")
        if self.release == "nothing" and not self.scale:
            raise ValueError("release: nothing predicts with the prior alone: it needs encoder: classes and a prior > 0")
        return self

    @property
    def scale(self) -> float:
        """Scale of the prior, with ``auto`` replaced by its number."""
        return (3.0 if self.encoder == "classes" else 0.0) if self.prior == "auto" else self.prior

    @field_validator("steps")
    @classmethod
    def _whole(cls, values: tuple[float, ...]) -> tuple[float, ...]:
        if not values or any(not (math.isinf(m) or m == int(m)) for m in values):
            raise ValueError(f"steps must be whole numbers ≥ 0, or inf for convergence, at least one; found {list(values)}")
        return values


@dataclass(frozen=True, eq=False)
class _Made:
    """What the plan made of public facts."""

    attributes: Graph  # public features and labels of every node, without edges
    own_edges: bool  # whether an answer reads the node's own edges, because test nodes are in the training graph


_GRADIENT_NORM = 1e-9  # largest gradient norm of an accepted minimiser
_LEAST_REGULARISER = 0.02  # smallest Λ of ``auto``


def _of_minimiser(
    params: Params, facts: base.PublicFacts, budget: base.Budget, client: int, labels: np.ndarray, weight: float
) -> privacy.PlannedRelease:
    """The planned release of one client: Λ, noise and price. labels: int64 [n₁]. weight: its share of all labelled nodes."""
    c, s = facts.num_classes, len(params.steps)
    d = s * {"classes": c, "hidden": params.hidden, "none": facts.num_features}[params.encoder]
    event: privacy.Event = privacy.Unprotected("the minimiser without noise")
    regulariser, rate, std, output_std = _regulariser(params, 0.0), math.inf, 0.0, 0.0
    if budget.private:
        given = perturbing.Situation(
            epsilon=budget.epsilon,
            delta=budget.delta,
            share=params.share,
            bounds=perturbing.LossBounds.soft_margin(c)
            if params.loss == "soft-margin"
            else perturbing.LossBounds.pseudo_huber(c, params.width),
            sensitivity=perturbing.psi(params.steps, params.restart, params.cap),
            num_classes=c,
            dimension=d,
            num_labelled=labels.size,
            prior_norm=params.scale * math.sqrt(s),
            per_end=facts.cut_edges_shared,
            gaussian=params.noise == "gaussian",
        )
        found = perturbing.calibrated(given, _regulariser(params, perturbing.least_regulariser(given)), _GRADIENT_NORM)
        regulariser, rate, std = found.regulariser, found.rate, found.noise_std
        output_std, event = found.output_std, found.event
    loss = learning.ObjectiveLoss(params.loss, c, params.width)
    problem = learning.LinearObjective(loss, labels, regulariser, _GRADIENT_NORM, params.scale)
    mechanism = perturbing.ObjectivePerturbation(c, rate, _GRADIENT_NORM, output_std, problem, weight, std)
    return privacy.PlannedRelease("theta", perturbing.ObjectiveRows(labels.size, d), mechanism, event, range(1), client=client)


def _regulariser(params: Params, least: float) -> float:
    return max(_LEAST_REGULARISER, 10 * least) if params.regulariser == "auto" else params.regulariser


@dataclass(frozen=True, eq=False)
class Memory:
    """What the server remembers."""

    parameters: np.ndarray  # parameters of the encoder, flat float32
    mean: np.ndarray | None  # float [h], mean of the rows, if it is subtracted; else None
    rows: np.ndarray  # float64 [n, h], X of all nodes


def _encoder(params: Params) -> public.PublicTrainingEncoder:
    how = public.PublicTrainingSteps(params.epochs, 0.01, 5e-4)
    return public.PublicTrainingEncoder(params.encoder, params.hidden, params.folds, how)


def _rows_of_public(attributes: Graph, params: Params) -> Memory:
    """The trained encoder, and X of every public node.

    Hidden units are positive, so their unit rows are similar: ``centred`` subtracts their mean over these public nodes, and
    scales again.
    """
    encoded = public.encode(attributes, _encoder(params))
    mean = encoded.own.mean(axis=0) if params.encoder == "hidden" and params.centred else None
    return Memory(encoded.parameters, mean, _scaled(encoded.own, mean))


def _scaled(rows: np.ndarray, mean: np.ndarray | None) -> np.ndarray:
    """Rows of norm 1 if a mean is subtracted; otherwise rows of norm at most 1."""
    out = np.asarray(rows if mean is None else learning.scale_to_unit_length(rows - mean), dtype=np.float64)
    return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1.0)


@dataclass(frozen=True, eq=False)
class _Work:
    """What a client prepares."""

    walk: sp.csr_array  # CSR [n_i, n_i], Ã among its own nodes
    away: sp.csr_array | None  # CSR [n_i, n], Ã from its nodes to those of other clients; None: such edges are dropped
    nodes: np.ndarray  # int64 [n_i], global ids of its nodes
    labelled: np.ndarray  # int64, places of its labelled nodes


Planned: TypeAlias = base.Plan[Params, _Made]


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """One release of a perturbed minimiser for each client with labelled nodes. ``DataError`` if there are none."""
    if facts.public_attributes is None:
        raise ScenarioError("gcon needs public features and labels: set the task's protocol: transductive, or inductive-edges")
    own_edges = facts.public_graph is None
    known = [facts.public_attributes.labels[nodes] for nodes in facts.members]
    known = [labels[labels >= 0] for labels in known]
    total = sum(labels.size for labels in known)
    if not total:
        raise DataError("gcon trains on labelled nodes, and no node has a label")
    trained, planned = params.release == "trained", []
    for client, labels in enumerate(known):
        if labels.size and trained:
            planned.append(_of_minimiser(params, facts, budget, client, labels, labels.size / total))
    assumed = (
        privacy.Assumption.COUNTS_PUBLIC,
        privacy.Assumption.FEATURES_LABELS_PUBLIC,
        privacy.Assumption.SPLIT_PUBLIC,
        privacy.Assumption.UNTUNED,
        privacy.Assumption.OWN_EDGES_KNOWN if own_edges else privacy.Assumption.TEST_GRAPH_PUBLIC,
    )
    reads_edges = trained and perturbing.psi(params.steps, params.restart, params.cap) > 0
    made = _Made(facts.public_attributes, own_edges)
    published = (budget.epsilon if reads_edges else 0.0) if budget.private and params.noise == "gamma" else None
    per_end = facts.cut_edges_shared
    guarantee = base.guarantee_from_public_facts(
        facts, privacy.Relation.EDGE_UNDIRECTED, assumed, budget.delta, per_end=per_end
    )
    schedule = base.PlanSchedule(int(trained), tuple(planned), 1)
    return base.Plan("gcon", params, facts, guarantee, schedule, made, published)


def start(plan: Planned, rng: np.random.Generator) -> base.State[Memory]:
    """Trains the encoder and broadcasts its rows X of all nodes, of norm at most 1. No edge is read."""
    params, classes = plan.params, plan.facts.num_classes
    memory = _rows_of_public(plan.made.attributes, params)
    if params.release != "nothing":
        return base.State({"rows": memory.rows}, memory)
    loss = learning.ObjectiveLoss(params.loss, classes, params.width)
    nobody = learning.LinearObjective(loss, np.zeros(0, np.int64), 1.0, 1.0, params.scale)
    return base.State({"theta": nobody.centre(len(params.steps) * classes)}, memory)  # Θ₀


def prepare(plan: Planned, subgraph: Subgraph) -> _Work:
    """The client's walk and its labelled nodes."""
    own, nodes = subgraph.graph.adjacency, subgraph.nodes
    labelled = np.flatnonzero(plan.made.attributes.labels[nodes] >= 0)
    if not plan.facts.cut_edges_shared or subgraph.cut is None:
        return _Work(walks.capped_matrix(own, plan.params.cap), None, nodes, labelled)
    outside = learning.aggregation.with_cut(sp.csr_array(own.shape, dtype=np.int8), nodes, subgraph.cut, plan.facts.num_nodes)
    return _Work(*walks.open_matrices(own, outside, plan.params.cap), nodes, labelled)


def client(
    plan: Planned, work: _Work, model: base.Model, round_: int, streams: base.PlanStreams, desk: privacy.Desk
) -> base.PlanSent:
    """Releases the perturbed minimiser on this client's labelled rows of Z, times its share of all labelled nodes.

    The mechanism at the desk minimises; the client never has a minimiser without noise.
    """
    if not any(r.client == desk.client for r in plan.schedule.releases):
        return {}

    def rows() -> np.ndarray:
        inflow = 0.0 if work.away is None else work.away @ model["rows"]
        own = model["rows"][work.nodes]
        return walks.rows_after(work.walk, own, plan.params.steps, plan.params.restart, inflow)[work.labelled]

    return {"theta": desk.release("theta", rows)}


def server(plan: Planned, state: base.State[Memory], inbox: base.PlanInbox) -> base.State[Memory]:
    """Θ is the sum of the messages, which the clients have weighted."""
    return base.State({"theta": inbox.sums["theta"]}, state.memory)


def predict(plan: Planned, state: base.State[Memory], graph: Graph) -> np.ndarray:
    """[n, c], scores Z·Θ: one step over each node's own edges, or the whole walk on a public graph."""
    params, rows, steps = plan.params, state.memory.rows, plan.params.steps
    if plan.made.own_edges:
        steps = tuple(min(m, 1) for m in steps)
    else:
        rows = _scaled(public.encode_after(state.memory.parameters, _encoder(params), graph), state.memory.mean)
    capped = walks.capped_matrix(graph.adjacency, params.cap)
    return walks.rows_after(capped, rows, steps, params.restart) @ state.model["theta"]


OFFERS: base.Offers[Params, _Made, _Work, Memory] = base.Offers(
    units=(privacy.Unit.EDGE,),
    reads=lambda plan: base.MethodReads.OWN_EDGES if plan.made.own_edges else base.MethodReads.PUBLIC_GRAPH,
    situations=(base.MethodSituation("transductive"), base.MethodSituation("inductive-edges")),
)
