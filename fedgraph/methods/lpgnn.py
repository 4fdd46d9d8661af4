"""LPGNN: every node randomises its own features and label; the server knows the graph and learns from averages.

    features  m of d entries, one bit each at ε_x/m (multi-bit encoder);  KProp: x̂ = P^K x′, the mean over K hops
    label     k-ary randomised response at ε_y; Drop: labels are denoised by the same kind of averaging (§3.3)

Nobody is trusted (viewer: world). A node's features and label are protected, and its edges are *public*. Both randomisers are
pure, and each node's rows depend on that node alone: ε = ε_x + ε_y per node, published and provable. Everything after them is
post-processing, also the training, which is done when predictions are asked for.

Two ablations send no features, with ε_y = ε: ``features: random`` draws dense Gaussian features, ``random-bits`` draws the bits
of the encoder by fair coins. LPGNN's features are worth what its rows have above these.

The server trains on bits of unit mean square (±√(d/m) for a bit that was sent): rows of one ±1 in d columns are too small to
learn from in the given number of steps. ``rows: rectified`` is the paper's unbiased rectifier, which differs by a factor and a
shift that are the same for every node with neighbours; the factor grows with 1/ε_x.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from fedgraph import learning, privacy
from fedgraph.documents import Settings
from fedgraph.errors import ScenarioError
from fedgraph.learning import train_on_noisy_graph
from fedgraph.methods import base
from fedgraph.types import Graph, Subgraph

REFERENCE = base.method_bibtex("sajadmanesh2021locally")


_RANDOM_WIDTH = 64  # columns of random features


class Params(Settings):
    feature_share: float = Field(0.5, gt=0, lt=1, description="share of ε for the features, ε_x/ε; the rest is the label's")
    features: Literal["encoded", "random", "random-bits"] = Field(
        "encoded", description="random, random-bits: ablations without any feature"
    )
    # nothing reads it, but it is part of the names of noise streams: m = max(1, min(d, floor(ε_x/2.18))) bits
    bits: ClassVar[str] = "auto"
    rows: Literal["unit", "rectified"] = Field(
        "unit", description="what is learnt from: bits of unit mean square, or the unbiased rectifier's estimate, as published"
    )
    low: float = Field(0.0, description="least feature value (public); smaller ones are clamped")
    high: float = Field(1.0, description="largest feature value (public); larger ones are clamped")
    feature_hops: int = Field(8, ge=0, description="K of the features' averaging")
    label_hops: int = Field(4, ge=0, description="K of the labels' averaging (drop)")
    correction: learning.NoisyGraphCorrection = Field("drop", description="drop | forward | none")
    hidden: int = Field(32, ge=1, description="hidden units")
    epochs: int = Field(100, ge=1, description="Adam steps")
    learning_rate: float = Field(0.01, gt=0, description="Adam step size")
    weight_decay: ClassVar[float] = 1e-3  # L2 penalty


@dataclass(frozen=True, eq=False)
class _Work:
    """A client's nodes."""

    features: sp.csr_array  # CSR [n, d]
    labels: np.ndarray  # int64, labels of its nodes that have one


@dataclass(frozen=True, eq=False)
class _Made:
    """What the plan made of public facts."""

    labelled: np.ndarray  # bool [n], which nodes have a label; only this and the edges are public
    keep: float  # probability that a label is sent as it is


@dataclass(frozen=True, eq=False)
class Memory:
    """What the server remembers."""

    seed: int  # of the training
    labels: np.ndarray | None = None  # int64 [n], as received, −1: none; None before the messages
    features: sp.csr_array | None = None  # CSR [n, d], as received; None if none were sent


Planned: TypeAlias = base.Plan[Params, _Made]


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """One release of features and one of labels; a node's price is their sum."""
    if facts.public_attributes is None or facts.public_graph is not None:
        raise ScenarioError("lpgnn predicts for nodes of the graph it learned on: set the task's protocol: transductive")
    bound, categories = privacy.Box(params.low, params.high), privacy.Box(0, facts.num_classes - 1)
    of_features = privacy.PlannedRelease("features", bound, *base.PLAN_WITHOUT_NOISE, range(1))
    of_labels = privacy.PlannedRelease("labels", categories, *base.PLAN_WITHOUT_NOISE, range(1))
    keep = 1.0
    if budget.private:
        share = params.feature_share if params.features == "encoded" else 0.0
        for_features, for_labels = share * budget.epsilon, (1 - share) * budget.epsilon
        if for_features:
            m = max(1, min(facts.num_features, math.floor(for_features / 2.18)))  # Proposition 3.3
            encoder = privacy.SampledBits(for_features / m, m, params.low, params.high)
            of_features = privacy.PlannedRelease("features", bound, encoder, privacy.MultiBit(for_features / m, m), range(1))
        response = privacy.KaryResponse(for_labels, facts.num_classes)
        event = privacy.RandomizedResponse(for_labels, facts.num_classes)
        of_labels = privacy.PlannedRelease("labels", categories, response, event, range(1))
        keep = 1 / (1 + (facts.num_classes - 1) * math.exp(-for_labels))
    assumed = (
        privacy.Assumption.COUNTS_PUBLIC,
        privacy.Assumption.EDGES_PUBLIC,
        privacy.Assumption.SPLIT_PUBLIC,
        privacy.Assumption.UNTUNED,
        *base.assume_public_derived_facts(facts, privacy.Relation.NODE_REPLACE, edges_private=False),
    )
    made = _Made(facts.public_attributes.labels >= 0, keep)
    facts = replace(facts, public_attributes=None)  # the rows that the protocol calls public are private
    published = budget.epsilon if budget.private else None
    notes = ("lpgnn protects features and labels of a node and gives its edges away; other rows here protect edges",)
    protection = privacy.Protection(privacy.Relation.NODE_REPLACE, privacy.Viewer.WORLD, assumed)
    guarantee = privacy.Guarantee(protection, budget.delta, facts.holdings, per_end=False)
    schedule = base.PlanSchedule(1, (of_features, of_labels) if params.features == "encoded" else (of_labels,), 1)
    return base.Plan("lpgnn", params, facts, guarantee, schedule, made, published, notes=notes)


def start(plan: Planned, rng: np.random.Generator) -> base.State[Memory]:
    return base.State({}, Memory(int(rng.integers(2**63))))


def prepare(plan: Planned, subgraph: Subgraph) -> _Work:
    labels = subgraph.graph.labels
    return _Work(subgraph.graph.features, labels[labels >= 0])


def client(
    plan: Planned, work: _Work, model: base.Model, round_: int, streams: base.PlanStreams, desk: privacy.Desk
) -> base.PlanSent:
    """The randomised features and labels of this client's nodes."""
    values = {"features": work.features.toarray, "labels": lambda: work.labels}
    return {r.path: desk.release(r.path, values[r.path]) for r in plan.schedule.releases}


def server(plan: Planned, state: base.State[Memory], inbox: base.PlanInbox) -> base.State[Memory]:
    """Puts the received rows at their nodes' places."""
    facts = plan.facts
    labels = np.full(facts.num_nodes, -1, dtype=np.int64)
    for nodes, received in zip(facts.members, inbox.each["labels"], strict=True):
        labels[nodes[plan.made.labelled[nodes]]] = received
    features = None
    if "features" in inbox.each:
        order = np.argsort(np.concatenate(facts.members))
        bits = isinstance(plan.schedule.releases[0].mechanism, privacy.SampledBits)
        rows = [
            _unit_square(privacy.local_bits.signs(part, facts.num_features)) if bits else sp.csr_array(part.astype(np.float32))
            for part in inbox.each["features"]
        ]
        features = sp.csr_array(sp.vstack(rows, format="csr")[order])
    return base.State({}, Memory(state.memory.seed, labels, features))


def _unit_square(bits: sp.csr_array) -> sp.csr_array:
    """±1 entries times √(entries / entries that are not zero)."""
    rows, width = bits.shape
    return sp.csr_array(bits * np.float32(math.sqrt(rows * width / bits.nnz)))


def predict(plan: Planned, state: base.State[Memory], graph: Graph) -> np.ndarray:
    """[n, c] scores after training on what was received, over the public edges of ``graph`` (its attributes are not read)."""
    params, memory = plan.params, state.memory
    rng, features, shift = np.random.default_rng(memory.seed), memory.features, 0.0
    mechanism = plan.schedule.releases[0].mechanism
    if params.rows == "rectified" and features is not None and isinstance(mechanism, privacy.SampledBits):
        factor, shift = mechanism.rectifier(graph.num_features)
        features = sp.csr_array(np.float32(factor) * features.sign())
    if params.features == "random":
        features = sp.csr_array(rng.standard_normal((graph.num_nodes, _RANDOM_WIDTH)).astype(np.float32))
    elif params.features == "random-bits":
        sent = rng.integers(2 * graph.num_features, size=(graph.num_nodes, 1))
        features = _unit_square(privacy.local_bits.signs(sent, graph.num_features))
    channel = learning.NoisyGraphChannel(plan.facts.num_classes, plan.made.keep, params.correction, params.label_hops)
    how = learning.PublicTrainingSteps(params.epochs, params.learning_rate, params.weight_decay)
    labels, hops = base.require_received(plan, memory.labels), params.feature_hops
    return train_on_noisy_graph(graph.adjacency, features, labels, channel, params.hidden, hops, how, rng, shift)


OFFERS: base.Offers[Params, _Made, _Work, Memory] = base.Offers(
    units=(privacy.Unit.NODE,),
    situations=(base.MethodSituation("transductive", (privacy.Trust.CURATOR, privacy.Trust.OWN_CLIENT)),),
    trusts_nobody=True,
)
