"""A network of one's own, trained privately: noisy sums of clipped gradients, one for each root that was drawn.

``model`` is any module whose ``forward(x, edge_index)`` or ``forward(x)`` gives each node its class scores: a class of
``torch_geometric.nn``, or ``mypackage.nets:Net``. Before private data are touched it is looked at whether the gradient of an
example follows from that example alone (``learning.own_networks.isolation``); if not it is refused, with the layer's name.

A step: a secret coin draws each root; a root is trained with what it reads of nodes around it that were not drawn
(``occurrences``); its gradient is clipped; the sum is noised. By default roots read nobody (``mentions: 0``), so a node is in
one example, and edges come in where they are free: at the public graph that is asked. A layer with self-loops (GCN, SGC, APPNP)
is then trained as a network without edges, and used as one with them (Yang et al., ICLR 2023, arXiv:2212.09034).

**Guarantee.** Node level, zero-out or replace, for every graph without a promise (``cap: all``). Sums over clients, each of
which holds its own subgraph; priced at each client's own size.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from pydantic import Field, model_validator

from fedgraph.documents import Settings
from fedgraph.learning import StatefulDescent, isolation, own_network, torch
from fedgraph.methods import base
from fedgraph.methods.base import examples, occurrences
from fedgraph.privacy import Assumption, Event, GaussianNoise, NoiseMechanism, Relation, Trust, Unit
from fedgraph.types import Graph

REFERENCE = base.method_bibtex("abadi2016deep", "daigavane2021node")


class Params(Settings):
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

    @model_validator(mode="after")
    def _network_exists(self) -> Self:
        own_network.require(self.model, self.arguments)
        return self


@dataclass(frozen=True, eq=False, kw_only=True)
class Made(examples.ExamplesMade):
    """What the plan made of public facts. isolated: what the look at the network found."""

    isolated: isolation.IsolatedNetwork


@dataclass(frozen=True, eq=False)
class Memory:
    """Where the descent is; all of it follows from released sums.

    Attributes:
        parameters: float32 [p].
        first: Adam's first moments, [p].
        second: Adam's second moments, [p].
        average: float32 [p], of the last iterates so far.
    """

    parameters: np.ndarray
    first: np.ndarray
    second: np.ndarray
    average: np.ndarray


Planned: TypeAlias = base.Plan[Params, Made]


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """One noise multiplier for all steps and clients; each client's event is that of its own size."""
    spec, basis = examples.network_of(params.model, json.dumps(params.arguments, sort_keys=True), params.projection, facts)
    spec = replace(spec, weights=params.weights)
    isolated, relation = isolation.require(spec), Relation(params.relation)
    how = (params.cap, params.degree, params.mentions, params.hops, params.sampling_rate, relation.replaces)
    rules = tuple(occurrences.rule(*how, n) for n in facts.clients)
    reads = any(one.most > 1 for one in rules)
    promised, limit = (params.degree if params.cap == cap and reads else None for cap in ("promised", "limit"))
    caps = {"limit": (Assumption.DEGREE_LIMIT_ENFORCED,), "promised": (Assumption.PROMISED_DEGREE,)}
    assumed = (Assumption.COUNTS_PUBLIC, Assumption.UNTUNED, Assumption.SPLIT_PUBLIC, *base.assume_public_facts(facts))
    assumed += caps.get(params.cap, ()) if reads else ()
    guarantee = base.guarantee_from_public_facts(
        facts, relation, assumed, budget.delta, per_end=False, promised=promised, limit=limit
    )
    made = Made(spec, rules, basis, promised, limit, params.neighbours, params.hops, isolated.loops, isolated=isolated)
    noise = _noise(params, facts, budget, rules)
    return examples.plan_for("own_model", params, facts, guarantee, made, noise, notes=_notes(params, made))


def _noise(
    params: Params, facts: base.PublicFacts, budget: base.Budget, rules: tuple[occurrences.Occurrences, ...]
) -> tuple[NoiseMechanism, list[Event], int]:
    """(mechanism, each client's event, clients that must finish)."""
    if not budget.private:
        mechanism, free = base.PLAN_WITHOUT_NOISE
        return mechanism, [free] * len(rules), 1
    found = {one: occurrences.noise_multiplier(one, params.steps, budget.epsilon, budget.delta) for one in set(rules)}
    multiplier = max(needed for needed, _ in found.values())
    std, min_clients = base.gradient_std(multiplier, params.clip, facts)
    return GaussianNoise(std), [one.events(multiplier)[found[one][1]] for one in rules], min_clients


def _notes(params: Params, made: Made) -> tuple[str, ...]:
    most = max(one.most for one in made.rules)
    if most == 1:
        first = "Roots read nobody in training: a node is in its own example alone, in every graph."
    else:
        kept = {"all": "in every graph", "limit": f"because the platform allows {params.degree} neighbours",
                "promised": f"if no node has more than {params.degree} neighbours"}[params.cap]  # fmt: skip
        first = f"A node changes at most {most} examples of a step, {kept}; each other one by a coin of rate {_rate(made):.3g}."
    said = [first, "The network ran in its evaluation mode: dropout did nothing."]
    if made.isolated.loops:
        said.append(f"Gradients were taken one example after another, since vmap cannot run the network ({made.isolated.why}).")
    if params.weights == "public":
        said.append("Its first weights are taken as public: whoever trained them used no data of these people.")
    return tuple(said)


def _rate(made: Made) -> float:
    return max(one.rate for one in made.rules)


def start(plan: Planned, rng: np.random.Generator) -> base.State[Memory]:
    vector = own_network.start(plan.made.network, rng)
    return base.State({"parameters": vector}, Memory(vector, 0 * vector, 0 * vector, vector))


prepare, client = examples.prepare, examples.client


def server(plan: Planned, state: base.State[Memory], inbox: base.PlanInbox) -> base.State[Memory]:
    """One step on the mean over the public expected number of roots."""
    params, memory = plan.params, state.memory
    rows = params.sampling_rate * plan.facts.num_nodes
    descent = StatefulDescent(
        memory.parameters, params.learning_rate, params.optimiser, memory.first, memory.second, steps=inbox.round
    )
    descent.step(inbox.sums["gradient"], 1 / rows)
    first = params.steps - max(1, round(params.averaged * params.steps))
    average = descent.vector
    if inbox.round >= first:
        average = memory.average + (descent.vector - memory.average) / np.float32(inbox.round - first + 1)
    after = Memory(descent.vector, descent.first, descent.second, average)
    return base.State({"parameters": after.parameters}, after)


def predict(plan: Planned, state: base.State[Memory], graph: Graph) -> np.ndarray:
    """[n, c] scores. On a public graph each node reads all its neighbours; elsewhere each row is answered by itself."""
    public = plan.facts.public == "test-graph"
    shown = graph.adjacency if public else sp.csr_array(graph.adjacency.shape, dtype=np.float32)
    return own_network.scores(plan.made.network, state.memory.average, plan.made.rows(graph), sp.csr_array(shown))


def module_of(plan: Planned, state: base.State[Memory]) -> torch.nn.Module:
    """The trained torch module, its weights those that answer."""
    return own_network.with_weights(plan.made.network, state.memory.average)


def reads(plan: Planned) -> base.MethodReads:
    """A network without edges answers from its own row, and so does one where the asked graph is not public."""
    own = plan.facts.public != "test-graph" or not own_network.spec_reads_edges(plan.made.network)
    return base.MethodReads.OWN_ROW if own else base.MethodReads.PUBLIC_GRAPH


def evidence(plan: Planned, state: base.State[Memory], graph: Graph, units: np.ndarray) -> np.ndarray | None:
    """``examples.evidence``; None where a node is in several examples."""
    if any(one.most > 1 for one in plan.made.rules):
        return None
    return examples.evidence(plan, state, graph, units, lambda part, _: plan.made.rows(part))


_SMALL: Mapping[str, object] = {"steps": 4, "projection": 16, "sampling_rate": 0.4}
_GCN = {"model": "torch_geometric.nn.GCN", "arguments": {"hidden_channels": 8, "num_layers": 2}}
_GAT = {"model": "torch_geometric.nn.GAT", "arguments": {"hidden_channels": 8, "num_layers": 2, "heads": 2}}
_READS = {"cap": "promised", "degree": 3, "mentions": 6.0}

OFFERS: base.Offers[Params, Made, examples.Work, Memory] = base.Offers(
    units=(Unit.NODE,),
    reads=reads,
    situations=(
        base.MethodSituation("inductive", settings={**_SMALL, **_GCN, "mentions": 2.0, "hops": 1}),
        base.MethodSituation("inductive", settings={**_SMALL, **_GCN}),
        base.MethodSituation("inductive", (Trust.CURATOR,), {**_SMALL, **_GAT, **_READS}),
        base.MethodSituation("inductive", (Trust.CURATOR,), {**_SMALL, **_READS, "relation": "node-replace"}),
        base.MethodSituation("asking", (Trust.CURATOR,), {**_SMALL, **_GCN}),
    ),
    private_test_nodes=True,
    answers_every_round=True,
    reads_rounds=examples.reads_rounds,
    evidence=evidence,
)
