"""A network of one's own, trained privately: noisy sums of clipped gradients, one for each root that was drawn.

``model`` is any module whose ``forward(x, edge_index)`` or ``forward(x)`` gives each node its class scores: a class of
``torch_geometric.nn``, or ``mypackage.nets:Net``. Before private data are read, ``learning.isolation`` checks that the gradient
of an example follows from that example alone; otherwise it refuses the network, with the name of the layer.

In each step secret coins draw the roots. A root trains with the nodes around it that it reads (``base.examples``), its
gradient is clipped, and the sum gets noise. By default roots read no other node (``mentions: 0``): a node is in one example,
and edges are used only at inference, on the public graph. A layer with self-loops (GCN, SGC, APPNP) is then trained as a
network without edges, and used as one with edges (Yang et al., ICLR 2023, arXiv:2212.09034).

``unit: edge``: features and labels are public. A network of these makes class rows, which are summed along the private edges in
K noisy hops, each released once (``base.noisy_hops``, as in ``gap_edge``). The network reads a node's features, class row and
noisy hops, without any edge, and is trained on these without noise. Hops of a public test graph have no noise.

**Guarantee.** Node level, zero-out or replace, for every graph without a promise (``cap: all``); each client is priced at its
own number of nodes. Edge level under ``unit: edge``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self, TypeAlias, cast

import numpy as np
import scipy.sparse as sp
from pydantic import Field, model_validator

from fedgraph import learning, privacy
from fedgraph.documents import Settings
from fedgraph.learning import isolation, own_network, projection, public_training, torch
from fedgraph.methods import base
from fedgraph.methods.base import examples, noisy_hops
from fedgraph.privacy import Assumption
from fedgraph.types import Graph, Subgraph

REFERENCE = base.method_bibtex("abadi2016deep", "daigavane2021node", "sajadmanesh2023gap")
_EVALUATED = "The network ran in its evaluation mode: dropout did nothing."


class Params(Settings):
    unit: Literal["node", "edge"] = Field("node", description="what one person's data are; edge: noisy hops before the network")
    model: str = Field("torch_geometric.nn.SGConv", description="dotted name of a class of torch modules, or package.nets:Net")
    arguments: dict[str, object] = Field({}, description="its keyword arguments; $inputs and $classes: what the data say")
    weights: Literal["fresh", "public"] = Field(
        "fresh", description="first weights: drawn by the layers, or those it came with, from data that are public"
    )
    relation: Literal["node-zero-out", "node-replace"] = Field("node-zero-out", description="neighbouring relation")
    cap: Literal["all", "limit", "promised"] = Field("all", description="what bounds the examples that a node may be in")
    degree: int = Field(10, ge=1, description="neighbours of one node, at most (cap: limit and cap: promised)")
    mentions: float = Field(
        0.0, ge=0, description="M, other examples that a node may be in, on average, if all are drawn; 0: roots read nobody"
    )
    neighbours: int = Field(5, ge=1, description="neighbours that one reader reads, at most")
    hops: int = Field(2, ge=0, le=4, description="how far a root reads")
    clip: float = Field(1.0, gt=0, description="norm to which an example's gradient is clipped")
    steps: int = Field(100, ge=1, description="gradient steps T")
    sampling_rate: float = Field(0.2, gt=0, le=1, description="q, probability that a node is a root of a step")
    optimiser: Literal["adam", "sgd"] = Field("adam", description="what follows the noisy mean gradients, at the server")
    learning_rate: float = Field(0.02, gt=0, description="its step size")
    averaged: float = Field(0.5, gt=0, le=1, description="share of the last iterates that is averaged")
    projection: int = Field(64, ge=0, description="directions learned from the public test graph; 0: all features")

    formula: ClassVar[Literal["code"]] = "code"  # of noisy hops

    @model_validator(mode="after")
    def _network_exists(self) -> Self:
        own_network.require(self.model, self.arguments)
        node = {"relation", "cap", "degree", "mentions", "neighbours", "clip", "sampling_rate", "optimiser", "averaged"}
        wrong = sorted(node & self.model_fields_set) if self.unit == "edge" else ()
        if wrong:
            raise ValueError(f"unit: edge has no clipped gradients, found {', '.join(wrong)}; allowed: without, or unit: node")
        return self

    @property
    def protects(self) -> privacy.Relation:
        return privacy.Relation.EDGE_UNDIRECTED if self.unit == "edge" else privacy.Relation(self.relation)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Made(examples.ExamplesMade):
    """What the plan made of public facts."""

    isolated: isolation.IsolatedNetwork  # result of the check of the network
    attributes: Graph | None = None  # every node's public features and labels; None unless ``unit: edge``
    new_nodes: bool = True  # whether predictions are for nodes of a public graph, and not for those that trained


@dataclass(frozen=True, eq=False)
class _Memory:
    """What the server remembers: the state of the descent."""

    parameters: np.ndarray  # float32 [p]
    first: np.ndarray  # Adam's first moments, [p]
    second: np.ndarray  # Adam's second moments, [p]
    average: np.ndarray  # float32 [p], mean of the last iterates so far


@dataclass(frozen=True, eq=False)
class _HopMemory:
    """What the server remembers under ``unit: edge``."""

    seed: int  # of the first weights
    encoder: np.ndarray  # parameters of the network that makes class rows, flat
    inputs: tuple[np.ndarray, ...]  # public features, class rows, and noisy hops so far, float32 [n, h] each
    sent: tuple[np.ndarray, ...]  # the broadcast rows of each hop
    sums: tuple[np.ndarray, ...] = ()  # the noisy sums as received
    average: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))  # [p], weights; empty before the last hop
    scores: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.float32))  # [n, c], of the training graph


Planned: TypeAlias = base.Plan[Params, _Made]
_Work: TypeAlias = examples.Work | noisy_hops.Work
State: TypeAlias = base.State[_Memory | _HopMemory]
_ENCODER = public_training.PublicTrainingEncoder("classes", 64, 5, public_training.PublicTrainingSteps(100, 0.01, 5e-4))


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """One noise multiplier for all steps and clients; each client's event is that of its own size."""
    if params.unit == "edge":
        return _plan_of_hops(params, facts, budget)
    spec, basis = examples.network_of(params.model, json.dumps(params.arguments, sort_keys=True), params.projection, facts)
    spec = replace(spec, weights=params.weights)
    isolated, relation = isolation.require(spec), params.protects
    how = (params.cap, params.degree, params.mentions, params.hops, params.sampling_rate, relation.replaces)
    rules = tuple(examples.rule(*how, n) for n in facts.clients)
    reads = any(one.most > 1 for one in rules)
    promised, limit = (params.degree if params.cap == cap and reads else None for cap in ("promised", "limit"))
    caps = {"limit": (Assumption.DEGREE_LIMIT_ENFORCED,), "promised": (Assumption.PROMISED_DEGREE,)}
    usual = (Assumption.COUNTS_PUBLIC, Assumption.UNTUNED, Assumption.SPLIT_PUBLIC, Assumption.NETWORK_AS_TRIED)
    assumed = (*usual, *base.assume_public_facts(facts))
    assumed += caps.get(params.cap, ()) if reads else ()
    guarantee = base.guarantee_from_public_facts(
        facts, relation, assumed, budget.delta, per_end=False, promised=promised, limit=limit
    )
    made = _Made(spec, rules, basis, promised, limit, params.neighbours, params.hops, isolated.loops, isolated=isolated)
    noise = _noise(params, facts, budget, rules)
    return examples.plan_for("own_model", params, facts, guarantee, made, noise, notes=_notes(params, made))


def _plan_of_hops(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    said = (_EVALUATED, "The network reads public rows and released hops, and no edge.")
    priced = noisy_hops.plan_for("own_model", params, facts, budget, said)
    attributes = priced.made.attributes
    basis = projection.basis_of(attributes, params.projection) if params.projection else None
    columns = (facts.num_features if basis is None else basis.shape[1]) + (params.hops + 1) * facts.num_classes
    arguments = json.dumps(params.arguments, sort_keys=True)
    spec = learning.NetworkSpec(params.model, arguments, columns, facts.num_classes, params.weights)
    made = _Made(spec, (), basis, isolated=isolation.require(spec), attributes=attributes, new_nodes=priced.made.new_nodes)
    protection = priced.guarantee.protection
    protection = replace(protection, assumptions=(*protection.assumptions, Assumption.NETWORK_AS_TRIED))
    how = (replace(priced.guarantee, protection=protection), priced.schedule)
    return base.Plan("own_model", params, facts, *how, made, sums=priced.sums, notes=priced.notes)


def _noise(
    params: Params, facts: base.PublicFacts, budget: base.Budget, rules: tuple[examples.Occurrences, ...]
) -> tuple[privacy.NoiseMechanism, list[privacy.Event], int]:
    """(mechanism, each client's event, clients that must finish)."""
    if not budget.private:
        mechanism, free = base.PLAN_WITHOUT_NOISE
        return mechanism, [free] * len(rules), 1
    found = {one: examples.noise_multiplier(one, params.steps, budget.epsilon, budget.delta) for one in set(rules)}
    multiplier = max(needed for needed, _ in found.values())
    std, min_clients = base.gradient_std(multiplier, params.clip, facts)
    return privacy.GaussianNoise(std), [one.events(multiplier)[found[one][1]] for one in rules], min_clients


def _notes(params: Params, made: _Made) -> tuple[str, ...]:
    most = max(one.most for one in made.rules)
    if most == 1:
        first = "Roots read nobody in training: a node is in its own example alone, in every graph."
    else:
        kept = {"all": "in every graph", "limit": f"because the platform allows {params.degree} neighbours",
                "promised": f"if no node has more than {params.degree} neighbours"}[params.cap]  # fmt: skip
        first = f"A node changes at most {most} examples of a step, {kept}; each other one by a coin of rate {_rate(made):.3g}."
    said = [first, _EVALUATED]
    if made.isolated.loops:
        said.append(f"Gradients were taken one example after another, since vmap cannot run the network ({made.isolated.why}).")
    if params.weights == "public":
        said.append("Its first weights are taken as public: whoever trained them used no data of these people.")
    return tuple(said)


def _rate(made: _Made) -> float:
    return max(one.rate for one in made.rules)


def start(plan: Planned, rng: np.random.Generator) -> State:
    if plan.made.attributes is not None:
        encoded = public_training.encode(plan.made.attributes, _ENCODER)
        inputs = (plan.made.rows(plan.made.attributes), encoded.own)
        seed = int(rng.integers(2**62))
        return _after_hop(plan, _HopMemory(seed=seed, encoder=encoded.parameters, inputs=inputs, sent=(encoded.message,)))
    vector = own_network.start(plan.made.network, rng)
    return base.State({"parameters": vector}, _Memory(vector, 0 * vector, 0 * vector, vector))


def _after_hop(plan: Planned, memory: _HopMemory) -> State:
    """The state with the next broadcast, or after the last hop with the trained network and its scores."""
    if len(memory.sums) < plan.params.hops:
        return base.State({"rows": memory.sent[-1]}, memory)
    spec, x, labels = plan.made.network, np.concatenate(memory.inputs, axis=1), cast(Graph, plan.made.attributes).labels
    how = public_training.PublicTrainingSteps(plan.params.steps, plan.params.learning_rate, 1e-3)
    vector = own_network.fit(spec, own_network.start(spec, np.random.default_rng(memory.seed)), x, labels, how)
    return base.State({}, replace(memory, average=vector, scores=_of_rows(plan, vector, x)))


def _of_rows(plan: Planned, vector: np.ndarray, x: np.ndarray) -> np.ndarray:
    return own_network.scores(plan.made.network, vector, x, sp.csr_array((len(x), len(x)), dtype=np.float32))


def prepare(plan: Planned, subgraph: Subgraph) -> _Work:
    return (noisy_hops if plan.params.unit == "edge" else examples).prepare(plan, subgraph)


def client(
    plan: Planned, work: _Work, model: base.Model, round_: int, streams: base.PlanStreams, desk: privacy.Desk
) -> base.PlanSent:
    """The noisy sum of the clipped gradients of this step's roots, or a noisy hop."""
    if isinstance(work, noisy_hops.Work):
        return noisy_hops.client(plan, work, model, round_, streams, desk)
    return examples.client(plan, work, model, round_, streams, desk)


def server(plan: Planned, state: State, inbox: base.PlanInbox) -> State:
    """One step along the mean over the expected number of roots, or keeps the noisy hop and broadcasts it."""
    params, memory = plan.params, state.memory
    if isinstance(memory, _HopMemory):
        sums = noisy_hops.receive(plan, inbox)
        hop = learning.scale_to_unit_length(sums)
        found = replace(memory, inputs=(*memory.inputs, hop), sent=(*memory.sent, hop), sums=(*memory.sums, sums))
        return _after_hop(plan, found)
    rows = params.sampling_rate * plan.facts.num_nodes
    descent = learning.StatefulDescent(
        memory.parameters, params.learning_rate, params.optimiser, memory.first, memory.second, steps=inbox.round
    )
    descent.step(inbox.sums["gradient"], 1 / rows)
    first = params.steps - max(1, round(params.averaged * params.steps))
    average = descent.vector
    if inbox.round >= first:
        average = memory.average + (descent.vector - memory.average) / np.float32(inbox.round - first + 1)
    after = _Memory(descent.vector, descent.first, descent.second, average)
    return base.State({"parameters": after.parameters}, after)


def predict(plan: Planned, state: State, graph: Graph) -> np.ndarray:
    """[n, c] scores. On a public test graph each node reads all its neighbours; else each row is answered alone.

    Under ``unit: edge`` scores come from the released hops (``graph`` is not read), or from the hops of a public ``graph``.
    """
    if isinstance(state.memory, _HopMemory):
        if not plan.made.new_nodes:
            return state.memory.scores
        hops = [public_training.encode_after(state.memory.encoder, _ENCODER, graph)]
        for _ in range(plan.params.hops):
            hops.append(learning.scale_to_unit_length(learning.aggregate_hop(graph.adjacency, hops[-1])))
        return _of_rows(plan, state.memory.average, np.concatenate([plan.made.rows(graph), *hops], axis=1))
    known = (plan.made.network, state.memory.average, plan.made.rows(graph))
    if plan.facts.public == "test-graph":
        return own_network.scores(*known, graph.adjacency)
    return own_network.own_scores(*known, plan.made.isolated.loops)


def module_of(plan: Planned, state: State) -> torch.nn.Module:
    """The trained torch module, with the weights that answer."""
    return own_network.with_weights(plan.made.network, state.memory.average)


def _reads(plan: Planned) -> base.MethodReads:
    """What an answer reads: its own row, if the network reads no edges or the asked graph is not public."""
    if plan.params.unit == "edge":
        return base.MethodReads.PUBLIC_GRAPH if plan.made.new_nodes else base.MethodReads.NOTHING
    own = plan.facts.public != "test-graph" or not own_network.reads_edges(plan.made.network)
    return base.MethodReads.OWN_ROW if own else base.MethodReads.PUBLIC_GRAPH


def _reads_rounds(plan: Planned) -> bool:
    return plan.params.unit == "node" and examples.reads_rounds(plan)


def _evidence(plan: Planned, state: State, graph: Graph, units: np.ndarray) -> np.ndarray | None:
    """``base.examples.evidence``, or that of noisy hops; None if a node may be in several examples."""
    if isinstance(state.memory, _HopMemory):
        return noisy_hops.evidence(plan, base.State(state.model, state.memory), graph, units)
    if any(one.most > 1 for one in plan.made.rules):
        return None
    return examples.evidence(plan, state, graph, units, lambda part, _: plan.made.rows(part))


_SMALL: Mapping[str, object] = {"steps": 4, "projection": 16, "sampling_rate": 0.4}
_GCN = {"model": "torch_geometric.nn.GCN", "arguments": {"hidden_channels": 8, "num_layers": 2}}
_GAT = {"model": "torch_geometric.nn.GAT", "arguments": {"hidden_channels": 8, "num_layers": 2, "heads": 2}}
_MLP = {"model": "torch_geometric.nn.MLP", "arguments": {"hidden_channels": 8, "num_layers": 2, "norm": None}}
_EDGES: Mapping[str, object] = {"unit": "edge", "steps": 20, "projection": 16}
_READS = {"cap": "promised", "degree": 3, "mentions": 6.0}

OFFERS: base.Offers[Params, _Made, _Work, _Memory | _HopMemory] = base.Offers(
    units=(privacy.Unit.NODE, privacy.Unit.EDGE),
    reads=_reads,
    situations=(
        base.MethodSituation("inductive", settings={**_SMALL, **_GCN, "mentions": 2.0, "hops": 1}),
        base.MethodSituation("inductive", settings={**_SMALL, **_GCN}),
        base.MethodSituation("inductive", (privacy.Trust.CURATOR,), {**_SMALL, **_GAT, **_READS}),
        base.MethodSituation("inductive", (privacy.Trust.CURATOR,), {**_SMALL, **_READS, "relation": "node-replace"}),
        base.MethodSituation("asking", (privacy.Trust.CURATOR,), {**_SMALL, **_GCN}),
        base.MethodSituation("transductive", settings={**_EDGES, **_GCN}),
        base.MethodSituation("inductive-edges", settings={**_EDGES, **_MLP}),
    ),
    private_test_nodes=True,
    answers_every_round=True,
    reads_rounds=_reads_rounds,
    evidence=_evidence,
)
