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
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from pydantic import Field, model_validator

from fedgraph.documents import Settings
from fedgraph.learning import (
    NetworkExamples,
    NetworkSpec,
    StatefulDescent,
    example_gradients,
    isolation,
    neighbour_limits,
    own_network,
    rooted,
    torch,
)
from fedgraph.methods import base
from fedgraph.methods.base import node_caps, seen
from fedgraph.methods.base.node_caps import NODE_CAP_COIN
from fedgraph.methods.own_model import occurrences
from fedgraph.methods.own_model.occurrences import Occurrences
from fedgraph.privacy import (
    Assumption,
    ClippedSum,
    Desk,
    Event,
    GaussianNoise,
    NoiseMechanism,
    PlannedRelease,
    Relation,
    Trust,
    Unit,
    sensitivity,
)
from fedgraph.types import Graph, Subgraph

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


@dataclass(frozen=True, eq=False)
class Made:
    """What the plan made of public facts.

    Attributes:
        network: what the network is made from.
        isolated: what the look at it found.
        rules: of each client.
        basis: public directions [d, k] of features, or None.
    """

    network: NetworkSpec
    isolated: isolation.IsolatedNetwork
    rules: tuple[Occurrences, ...]
    basis: np.ndarray | None


@dataclass(frozen=True, eq=False)
class Work:
    """What a client prepares.

    Attributes:
        rows: float32 [n, k], what the network reads of its nodes.
        adjacency: CSR [n, n], cut to the promised degree under ``cap: promised``.
        labels: int64 [n], −1 where unknown.
        ids: int64 [n], public names of its nodes.
        number: of the client.
    """

    rows: np.ndarray
    adjacency: sp.csr_array
    labels: np.ndarray
    ids: np.ndarray
    number: int


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
    basis, inputs = node_caps.directions_of(params.projection, facts)
    arguments = json.dumps(params.arguments, sort_keys=True)
    spec = NetworkSpec(params.model, arguments, inputs, facts.num_classes, params.weights)
    isolated, relation = isolation.require(spec), Relation(params.relation)
    how = (params.cap, params.degree, params.mentions, params.hops, params.sampling_rate, relation.replaces)
    rules = tuple(occurrences.rule(*how, n) for n in facts.clients)
    (mechanism, events, min_clients) = _noise(params, facts, budget, rules)
    bound = ClippedSum(params.clip, facts.num_nodes, sensitivity.kernel_name(example_gradients.clipped_sum))
    steps = range(params.steps)
    releases = (PlannedRelease("model", bound, mechanism, e, steps, client=client) for client, e in enumerate(events))
    reads = any(one.most > 1 for one in rules)
    promised, limit = (params.degree if params.cap == cap and reads else None for cap in ("promised", "limit"))
    caps = {"limit": (Assumption.DEGREE_LIMIT_ENFORCED,), "promised": (Assumption.PROMISED_DEGREE,)}
    assumed = (Assumption.COUNTS_PUBLIC, Assumption.UNTUNED, Assumption.SPLIT_PUBLIC, *base.assume_public_facts(facts))
    assumed += caps.get(params.cap, ()) if reads else ()
    guarantee = base.guarantee_from_public_facts(
        facts, relation, assumed, budget.delta, per_end=False, promised=promised, limit=limit
    )
    schedule = base.PlanSchedule(params.steps, tuple(releases), min_clients)
    made = Made(spec, isolated, rules, basis)
    notes = _notes(params, made)
    return base.Plan("own_model", params, facts, guarantee, schedule, made, None, sums=base.PlanSums(suffice=True), notes=notes)


def _noise(
    params: Params, facts: base.PublicFacts, budget: base.Budget, rules: tuple[Occurrences, ...]
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


def prepare(plan: Planned, subgraph: Subgraph) -> Work:
    graph, adjacency, params = subgraph.graph, subgraph.graph.adjacency, plan.params
    if plan.made.rules[subgraph.client].most > 1 and params.cap == "promised":
        adjacency = neighbour_limits.at_most(adjacency, params.degree, subgraph.nodes, NODE_CAP_COIN)
    elif plan.made.rules[subgraph.client].most > 1 and params.cap == "limit":
        neighbour_limits.require(adjacency, params.degree, subgraph.nodes)
    return Work(_rows(plan, graph), sp.csr_array(adjacency), graph.labels, subgraph.nodes, subgraph.client)


def _rows(plan: Planned, graph: Graph) -> np.ndarray:
    """float32 [n, k]: unit rows, or their coordinates along public directions."""
    return np.asarray(node_caps.sparse_rows(graph, plan.made.basis).toarray(), dtype=np.float32)


def client(plan: Planned, work: Work, model: base.Model, round_: int, streams: base.PlanStreams, desk: Desk) -> base.PlanSent:
    """The noisy sum of the clipped gradients of this step's roots."""
    params, rule = plan.params, plan.made.rules[work.number]

    def gradient() -> np.ndarray:
        drawn = streams.drawn("batch", work.ids, params.sampling_rate)
        roots = np.flatnonzero(drawn & (work.labels >= 0))

        def allowed(root: np.ndarray, node: np.ndarray) -> np.ndarray:
            pairs = np.stack([work.ids[root], work.ids[node]], axis=1)
            return ~drawn[node] & streams.drawn("mentions", pairs, rule.rate)

        hops = params.hops if rule.most > 1 else 0
        samples = rooted.subgraphs(work.adjacency, work.ids, roots, allowed, params.neighbours, hops, round_)
        examples = NetworkExamples(work.rows, samples, work.labels[roots])
        how = (params.clip, plan.facts.num_nodes, plan.made.isolated.loops)
        return example_gradients.clipped_sum(plan.made.network, model["parameters"], examples, *how)

    return {"gradient": desk.release("model", gradient)}


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
    return own_network.scores(plan.made.network, state.memory.average, _rows(plan, graph), sp.csr_array(shown))


def module_of(plan: Planned, state: base.State[Memory]) -> torch.nn.Module:
    """The trained torch module, its weights those that answer."""
    return own_network.with_weights(plan.made.network, state.memory.average)


def reads(plan: Planned) -> base.MethodReads:
    """A network without edges answers from its own row, and so does one where the asked graph is not public."""
    own = plan.facts.public != "test-graph" or not own_network.spec_reads_edges(plan.made.network)
    return base.MethodReads.OWN_ROW if own else base.MethodReads.PUBLIC_GRAPH


def reads_rounds(plan: Planned) -> bool:
    """Whether the rounds of a run should be kept: every node is in its own example alone, and the viewer sees them."""
    alone = all(one.most == 1 for one in plan.made.rules)
    return alone and seen.rounds_worth_keeping(plan, own_network.num_parameters(plan.made.network))


def evidence(plan: Planned, state: base.State[Memory], graph: Graph, units: np.ndarray) -> np.ndarray | None:
    """For each unit (node, −1, label) what all rounds say; None where nothing was kept, or a node is in several examples.

    Rows of others are known, who was drawn is not: of each its expected share is taken off. At
    q = 1 everybody is drawn, and the score is the exact log-likelihood ratio of zero-out times s².
    """
    weights = seen.known_shares(plan, state, units)
    if weights is None or any(one.most > 1 for one in plan.made.rules):
        return None
    rows, rate, clip = _rows(plan, graph), plan.params.sampling_rate, plan.params.clip

    def read(number: int, nodes: np.ndarray, coins: seen.SeenCoins) -> None:
        labelled = np.flatnonzero(graph.labels[nodes] >= 0)
        at = nodes[labelled]
        nobody = sp.csr_array((graph.num_nodes, graph.num_nodes), dtype=np.float32)
        samples = rooted.subgraphs(nobody, np.arange(graph.num_nodes), at, lambda root, node: node < 0, 1, 0, 0)
        examples = NetworkExamples(rows, samples, graph.labels[at])
        for _, model, message in seen.messages_of(plan, state, number, "gradient"):
            found = np.zeros((nodes.size, message.size))
            how = (clip, plan.made.isolated.loops)
            parts = example_gradients.weighed_rows(plan.made.network, model["parameters"], examples, *how)
            found[labelled] = np.concatenate([(rows * scale[:, None]).cpu().numpy() for rows, scale in parts])
            left_over = message - rate * (weights[nodes] @ found)
            own = found[coins.rows]
            coins.add(rate**2 * (own @ own.T), rate * (found @ left_over))

    return seen.coins_of(plan, units, seen.groups_of(plan), plan.schedule.releases[0].path, clip, read)


_SMALL: Mapping[str, object] = {"steps": 4, "projection": 16, "sampling_rate": 0.4}
_GCN = {"model": "torch_geometric.nn.GCN", "arguments": {"hidden_channels": 8, "num_layers": 2}}
_GAT = {"model": "torch_geometric.nn.GAT", "arguments": {"hidden_channels": 8, "num_layers": 2, "heads": 2}}
_READS = {"cap": "promised", "degree": 3, "mentions": 6.0}

OFFERS: base.Offers[Params, Made, Work, Memory] = base.Offers(
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
    reads_rounds=reads_rounds,
    evidence=evidence,
)
