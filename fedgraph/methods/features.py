"""Features: a learner with clipped gradients. It never reads private edges.

Full-batch gradient descent on node features: each node's gradient is clipped to C, and only T noisy sums of these are released.
Edges are used once, at inference, and only those of the public test graph. Every training node changes only its own gradient,
so the sensitivity is C under zero-out, and the T releases compose exactly to μ = √T·C/std.

The following reads only public data and costs nothing. Words get a weight by their rarity among the test nodes. Features are
projected on directions learned from these (``learning.projection``), of words or, if the budget suffices, of pairs of words.
Each step is preconditioned by the curvature along these directions. Predictions spread over the test graph and among nodes with
similar features (``learning.mean_field``), by the sign and strength with which predictions at both ends of its edges agree, and
less if features alone decide. The settings follow from the public signal-to-noise number n·μ (nodes × Gaussian parameter of the
budget).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt
from scipy.special import softmax

from fedgraph import learning, privacy
from fedgraph.documents import Settings
from fedgraph.learning import mean_field, projection, torch
from fedgraph.methods import base
from fedgraph.types import Graph, Subgraph

REFERENCE = base.method_bibtex("abadi2016deep")

_NODES = 3.0  # largest s over the number of nodes: beyond it, sampling limits the accuracy more than noise
_FAINT = 768.0  # s below which curvature is damped twice as much
_FEW = 8.0  # words in a mean public row, from which pairs of words are used
_PAIRS = 2.5  # s per public row from which pairs of words are worth their noise
_FITS = 1 << 27  # most numbers in all rows through pairs, with which pairs are used by default (half a gigabyte)


class Params(Settings):
    """Settings; ``auto`` follows s = n·μ.

    From s = 2.5 per public row on, if rows have 8 words or more, rows are read through pairs of words: s/3 directions within
    [64, 1000], curvature damping 120/√(n·s). Else s/12 directions within [16, 500], at most 16 per word of a mean public row or
    s/30, whichever is more; damping 60/√(n·s), twice that below s = 768. 60 steps, clip 0.5, rarity 0.75 (0 if public features
    have weights already). With nothing public, rows as they are and ``learning.descents.full_width``. Without curvature (the
    mlp, or no projection): 20 + s/60 steps (at most 100), clip 0.5 (1 for the mlp and from s = 10⁴), learning rate 8 (logistic;
    16 without noise) or 4 (mlp; 2 from s = 1500), averaged second half.

    Curvature, rarity, pairs and inference were tuned on training nodes of Cora-ML and CS, split again. The other settings were
    tuned, and pairs and inference checked, on Cora, CiteSeer and PubMed with test nodes in sight (optimistic in the last
    digit); so were the settings below s = 768 and for rows of few words (Cora-ML, CS, Simmons81, MIT8, Cornell5, Virginia63).
    """

    model: Literal["logistic", "mlp"] = Field("logistic", description="multinomial logistic regression, or one hidden layer")
    hidden: int = Field(32, ge=1, description="hidden units of the mlp")
    relation: Literal["node-zero-out", "node-replace"] = Field("node-zero-out", description="neighbouring relation")
    clip: PositiveFloat | Literal["auto"] = Field("auto", description="norm to which each node's gradient is clipped")
    steps: PositiveInt | Literal["auto"] = Field("auto", description="gradient steps, one release each")
    learning_rate: PositiveFloat | Literal["auto"] = Field("auto", description="step size on the mean clipped gradient")
    momentum: float = Field(0.9, ge=0, lt=1, description="heavy-ball momentum at the server (without curvature)")
    averaged: ClassVar[float] = 0.5  # share of the last iterates that is averaged (without curvature)
    projection: PositiveInt | Literal["auto", "none"] = Field("auto", description="public directions kept, or none")
    rarity: NonNegativeFloat | Literal["auto"] = Field("auto", description="power of the public inverse document frequency")
    pairs: Literal["auto"] | bool = Field("auto", description="see rows through pairs of words (quadratic kernel, public rows)")
    curvature: ClassVar[bool] = True  # precondition by the public curvature (logistic with projection)
    spread: Literal["mean-field", "pagerank"] = Field("mean-field", description="how predictions spread over the test graph")
    propagation_steps: int = Field(3, ge=0, description="iterations of it (auto coupling: passes of two)")
    coupling: NonNegativeFloat | Literal["auto"] = Field(
        "auto", description="along test edges: auto, as predictions at both ends go together; or attraction × mean doubt"
    )
    likeness: NonNegativeFloat | Literal["auto"] = Field(
        "auto", description="log-odds of the ten test nodes of most similar features (auto: 0.5, or 1 below s = 768)"
    )
    alpha: float = Field(0.6, gt=0, le=1, description="teleport probability (pagerank)")


@dataclass(frozen=True, eq=False)
class _Made:
    """What the plan made of public facts; every ``auto`` is a number here."""

    layout: learning.Layout  # layout of the parameters
    basis: np.ndarray | None  # public directions of words, [d, k], if they are used
    pairs: projection.PairProjection | None  # public directions of pairs of words, if they are used
    curvature: np.ndarray | None  # the inverse public curvature, if it is used
    clip: float
    steps: int
    learning_rate: float
    likeness: float = 0.5

    def rows(self, graph: Graph) -> learning.FeatureMatrix:
        """The rows that the learner reads: unit rows, or their coordinates along public directions."""
        if self.basis is None:
            return learning.FeatureMatrix(learning.unit_matrix_rows(graph.features))
        along = (
            projection.project_features(graph.features, self.basis) if self.pairs is None else self.pairs.rows(graph.features)
        )
        return projection.ProjectedRows(along)


@dataclass(frozen=True, eq=False)
class Memory:
    """What the server remembers."""

    velocity: np.ndarray  # of the descent, float32 [num_parameters]
    average: np.ndarray  # mean of the last iterates, float32 [num_parameters]
    count: int = 0  # iterates in the mean; 0 before averaging begins, when it is the latest iterate


def _signal_of(facts: base.PublicFacts, mu: float, relation: privacy.Relation) -> float:
    """s = n·μ of the merged update: noise of separate clients adds up, and replacing costs twice."""
    _, min_clients = base.gradient_std(1.0, 1.0, facts)
    shares = 1 if min_clients > 1 else facts.cohort
    each = min(_NODES, mu / math.sqrt(shares) / (2 if relation.replaces else 1))
    return facts.num_train * (facts.cohort / facts.num_clients) * each


def _make(params: Params, facts: base.PublicFacts, strength: float, private: bool) -> _Made:
    """Layout, directions, curvature, and every ``auto`` as a number. strength: s. private: whether ε is finite."""
    public = facts.public_graph if params.projection != "none" else None
    logistic = params.model == "logistic"
    basis, pairs = _views(params, public, facts.num_train, strength, private, logistic)
    newton = logistic and basis is not None
    inputs = facts.num_features if basis is None else basis.shape[1] if pairs is None else pairs.mixing.shape[1]
    alone = logistic and facts.public_graph is None
    scale = 0.1 if newton or alone else 1.0  # the bias takes the share scale² / (1 + scale²) of a unit row's clipped gradient
    layout = learning.Layout((inputs, *(() if logistic else (params.hidden,)), facts.num_classes), bias_scale=scale)
    curvature = None
    if newton and public is not None and basis is not None:
        rows = projection.project_features(public.features, basis) if pairs is None else pairs.rows(public.features)
        damping = (60 if pairs is None and strength >= _FAINT else 120) / math.sqrt(facts.num_train * strength)
        curvature = projection.curvature_of(rows, layout.bias_scale, damping)
    steps, rate, clip = _descent(strength, private, newton, logistic, nothing_public=facts.public_graph is None)
    clip = params.clip if params.clip != "auto" else clip
    steps = params.steps if params.steps != "auto" else steps
    rate = params.learning_rate if params.learning_rate != "auto" else rate
    likeness = params.likeness if params.likeness != "auto" else 0.5 if strength >= _FAINT else 1.0
    return _Made(layout, basis, pairs, curvature, clip, steps, rate, likeness)


def _descent(strength: float, private: bool, newton: bool, logistic: bool, nothing_public: bool) -> tuple[int, float, float]:
    """(steps, learning rate, clip)."""
    if newton:
        return 60, 1.0, 0.5
    if logistic and nothing_public:
        return learning.descents.full_width(strength)
    steps = int(np.clip(round(20 + strength / 60), 20, 100))
    if logistic:
        return steps, 8.0 if private else 16.0, 0.5 if strength < 1e4 else 1.0
    return steps, 4.0 if strength < 1500 else 2.0, 1.0


def _views(
    params: Params, public: Graph | None, nodes: int, strength: float, private: bool, newton: bool
) -> tuple[np.ndarray | None, projection.PairProjection | None]:
    """(basis, pairs), of which either is None if it is not used. Without noise and pairs, ``auto`` does not project."""
    if public is None:
        return None, None
    rarity = params.rarity if params.rarity != "auto" else 0.75 if projection.has_projectable_words(public) else 0.0
    words = public.features.nnz / public.num_nodes
    wanted = params.projection if isinstance(params.projection, int) else int(np.clip(round(strength / 3), 64, 1000))
    fits = (nodes + public.num_nodes) * wanted <= _FITS
    auto = newton and strength >= _PAIRS * public.num_nodes and words >= _FEW and fits
    if auto if params.pairs == "auto" else params.pairs:
        pairs = projection.of_pairs(public, wanted, rarity=rarity)
        return pairs.basis, pairs
    if not private and params.projection == "auto":
        return None, None
    most = np.clip(max(16 * words, strength / 30), 16, 500)  # rows of few words lie in few directions, unless rows are many
    wanted = params.projection if isinstance(params.projection, int) else int(np.clip(round(strength / 12), 16, most))
    return projection.basis_of(public, wanted, steps=4, rarity=rarity), None


FEATURES_MOST_HEARD = 4.0  # log-odds that a sure neighbour may add, times mean doubt: neighbours add little if rows decide
_SHARPER = 2.0  # factor for scores of a heavily damped fit, which are less sure than they are right
_ASSUMED = (privacy.Assumption.COUNTS_PUBLIC, privacy.Assumption.UNTUNED, privacy.Assumption.SPLIT_PUBLIC)


@dataclass(frozen=True, eq=False)
class _Work:
    """What a client prepares."""

    x: learning.FeatureMatrix  # rows that the learner reads
    labels: torch.Tensor  # int64 [n], −1: unknown


Planned: TypeAlias = base.Plan[Params, _Made]


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """Noise, steps and directions, from public facts and the budget."""
    relation = privacy.Relation(params.relation)
    mu, as_published = math.inf, budget.calibrated_by == "published"
    if budget.private and as_published:
        mu = privacy.gaussian.moments_mu(budget.epsilon, budget.delta)
    elif budget.private:
        mu = 1.0 / privacy.calibrate.gaussian_multiplier(1, budget.epsilon, budget.delta)
    strength = _signal_of(facts, mu, relation)
    made = _make(params, facts, strength, budget.private)
    steps = made.steps
    bound = privacy.ClippedSum(made.clip, facts.num_nodes, privacy.sensitivity.kernel_name(learning.per_sample.clipped_sum))
    mechanism, event = base.PLAN_WITHOUT_NOISE
    min_clients, published = 1, None
    if budget.private:
        multiplier = math.sqrt(steps) / mu
        if not as_published:
            multiplier = privacy.calibrate.gaussian_multiplier(steps, budget.epsilon, budget.delta)
        std, min_clients = base.gradient_std(multiplier, privacy.sensitivity.l2(bound, relation), facts)
        mechanism, event = privacy.GaussianNoise(std), privacy.Gaussian(multiplier)
        published = privacy.gaussian.moments_epsilon(math.sqrt(steps) / multiplier, budget.delta)
    assumed = (*_ASSUMED, *base.assume_public_facts(facts))
    guarantee = base.guarantee_from_public_facts(facts, relation, assumed, budget.delta, per_end=False)
    schedule = base.PlanSchedule(steps, (privacy.PlannedRelease("model", bound, mechanism, event, range(steps)),), min_clients)
    return base.Plan("features", params, facts, guarantee, schedule, made, published, sums=base.PlanSums(additive=True))


def start(plan: Planned, rng: np.random.Generator) -> base.State[Memory]:
    vector = plan.made.layout.start(rng)
    return base.State({"parameters": vector}, Memory(0 * vector, vector))


def prepare(plan: Planned, subgraph: Subgraph) -> _Work:
    return _Work(plan.made.rows(subgraph.graph), torch.tensor(subgraph.graph.labels, device=learning.torch_device()))


def client(
    plan: Planned, work: _Work, model: base.Model, round_: int, streams: base.PlanStreams, desk: privacy.Desk
) -> base.PlanSent:
    """The noisy sum of this client's clipped gradients at the current parameters."""
    made = plan.made
    exact = partial(learning.per_sample.clipped_sum, made.layout, model["parameters"], work.x, work.labels, made.clip)
    return {"gradient": desk.release("model", exact)}


def server(plan: Planned, state: base.State[Memory], inbox: base.PlanInbox) -> base.State[Memory]:
    """One step on the mean over the public number of nodes: damped Newton, or momentum and averaged iterates."""
    gradient = (inbox.sums["gradient"] / plan.facts.num_train).astype(np.float32)
    if plan.facts.answering is not None:  # all clients are equally likely, so the sum of some is scaled to all
        gradient *= np.float32(plan.facts.num_clients / inbox.num_clients)
    before, made = state.model["parameters"], plan.made
    if made.curvature is not None:
        step = (made.curvature @ gradient.reshape(made.curvature.shape[0], -1)).reshape(-1)
        after = before - np.float32(made.learning_rate) * step
        return base.State({"parameters": after}, Memory(state.memory.velocity, after))
    velocity = plan.params.momentum * state.memory.velocity + gradient
    after = before - np.float32(made.learning_rate) * velocity
    if inbox.round < plan.schedule.rounds - max(1, round(plan.params.averaged * plan.schedule.rounds)):
        return base.State({"parameters": after}, Memory(velocity, after))
    count, average = state.memory.count + 1, state.memory.average
    average = after if count == 1 else average + (after - average) / np.float32(count)
    return base.State({"parameters": after}, Memory(velocity, average, count))


def predict(plan: Planned, state: base.State[Memory], graph: Graph) -> np.ndarray:
    """[n, c] class probabilities. On a public test graph they spread over its edges and among nodes with similar features; a
    private test node is answered from its own row alone.
    """
    params, basis = plan.params, plan.made.basis
    scores = learning.layouts.logits(plan.made.layout, state.memory.average, plan.made.rows(graph))
    if plan.made.pairs is not None:
        scores = _SHARPER * scores
    if plan.facts.public != "test-graph":
        return np.asarray(softmax(scores, axis=1))
    if params.spread == "pagerank":
        return learning.walks.personalised_pagerank(
            graph.adjacency, softmax(scores, axis=1), params.alpha, params.propagation_steps
        )
    alike: list[tuple[float | np.ndarray, sp.csr_array]] = []
    if basis is not None:
        along = learning.project_features(graph.features, basis[:, :100])
        alike.append((plan.made.likeness, mean_field.look_alikes(along, 10)))
    doubt, passes = mean_field.doubt(scores), params.propagation_steps
    if params.coupling == "auto":
        return mean_field.couple(scores, graph.adjacency, alike, FEATURES_MOST_HEARD * doubt, passes)
    return mean_field.run(scores, [(params.coupling * doubt, graph.adjacency), *alike], passes)


def _tuned(plan: Planned, state: base.State[Memory], graph: Graph, rng: np.random.Generator) -> base.State[Memory]:
    """The state with the weights after a client's own steps on ``graph``, in clear (``learning.own_models``)."""
    own = learning.own_models.tune(plan.made.layout, state.memory.average, plan.made.rows(graph), graph.labels, rng)
    return replace(state, memory=replace(state.memory, average=own))


OFFERS: base.Offers[Params, _Made, _Work, Memory] = base.Offers(
    units=(privacy.Unit.NODE,),
    reads=lambda plan: base.MethodReads.PUBLIC_GRAPH if plan.facts.public == "test-graph" else base.MethodReads.OWN_ROW,
    situations=(
        base.MethodSituation("inductive", settings={"steps": 5}),
        base.MethodSituation("asking", settings={"steps": 5}),
    ),
    any_broadcast=True,  # each row is clipped at whatever parameters are sent
    private_test_nodes=True,
    partial_rounds=True,
    answers_every_round=True,
    tuned=_tuned,
)
