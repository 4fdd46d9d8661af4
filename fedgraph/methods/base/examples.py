"""What methods share that train on examples: roots that were drawn, each with what it reads, and its clipped gradient.

A step: a secret coin draws each root; it reads nodes around it (``learning.own_networks.rooted``); the gradient of its loss is
clipped; the sum is released, once. Which nodes a root may read, and so in how many examples a node is, is ``occurrences``. What
a method says by itself is its network, its rows, its neighbourhoods and its price.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import scipy.sparse as sp

from fedgraph.learning import (
    Descended,
    Descent,
    NetworkExamples,
    NetworkSpec,
    example_gradients,
    neighbour_limits,
    own_network,
    rooted,
)
from fedgraph.methods.base import seen
from fedgraph.methods.base.node_caps import NODE_CAP_COIN, directions_of, sparse_rows
from fedgraph.methods.base.occurrences import Occurrences
from fedgraph.methods.base.plan import Model, Plan, PlanInbox, PlanSchedule, PlanSent, PlanStreams, PlanSums, State
from fedgraph.methods.base.public_facts import PublicFacts
from fedgraph.privacy import ClippedSum, Desk, Event, Guarantee, NoiseMechanism, PlannedRelease, sensitivity
from fedgraph.types import Graph, Subgraph


class ExampleSettings(Protocol):
    """Settings that every such method has."""

    @property
    def clip(self) -> float: ...
    @property
    def steps(self) -> int: ...
    @property
    def sampling_rate(self) -> float: ...


@dataclass(frozen=True, eq=False)
class ExamplesMade:
    """How examples are made, and of what network; what a plan made of public facts."""

    network: NetworkSpec  # what the network is made from
    rules: tuple[Occurrences, ...]  # of each client
    basis: np.ndarray | None  # public directions [d, k] of features, or None
    cut: int | None = None  # neighbours that a node keeps at most, by public coins; None: all
    limit: int | None = None  # neighbours that a node has at most, or its client is refused; None: any number
    neighbours: int = 1 << 30  # that one reader reads, at most
    hops: int = 0  # how far a root reads
    loops: bool = False  # whether gradients are taken one after another

    def rows(self, graph: Graph) -> np.ndarray:
        """float32 [n, k]: unit rows, or their coordinates along public directions."""
        return np.asarray(sparse_rows(graph, self.basis).toarray(), dtype=np.float32)

    def bounded(self, adjacency: sp.csr_array, ids: np.ndarray, held: bool = True) -> sp.csr_array:
        """The neighbourhoods that roots read. held: a client's own graph, which must keep a limit."""
        if self.cut is not None:
            return neighbour_limits.at_most(adjacency, self.cut, ids, NODE_CAP_COIN)
        if self.limit is not None and held:
            neighbour_limits.require(adjacency, self.limit, ids)
        return sp.csr_array(adjacency.astype(np.float32))


class _Steps(ExampleSettings, Protocol):
    @property
    def learning_rate(self) -> float: ...
    @property
    def momentum(self) -> float: ...
    @property
    def averaged(self) -> float: ...


_P = TypeVar("_P", bound=ExampleSettings)
_M = TypeVar("_M", bound=ExamplesMade)


@dataclass(frozen=True, eq=False)
class Work:
    """What a client prepares."""

    rows: np.ndarray  # float [n, k], what the network reads of its nodes
    adjacency: sp.csr_array  # CSR [n, n], what its roots read
    labels: np.ndarray  # int64 [n], −1 where unknown
    ids: np.ndarray  # int64 [n], public names of its nodes
    number: int  # of the client


def plan_for(
    method: str,
    params: _P,
    facts: PublicFacts,
    guarantee: Guarantee,
    made: _M,
    noise: tuple[NoiseMechanism, list[Event], int],
    published: float | None = None,
    notes: tuple[str, ...] = (),
    *,
    suffice: bool = True,
) -> Plan[_P, _M]:
    """One release a step at each client.

    noise: (of a client's release, each client's event, clients that must finish). suffice: whether sums of messages do.
    """
    mechanism, events, min_clients = noise
    bound = ClippedSum(params.clip, facts.num_nodes, sensitivity.kernel_name(example_gradients.clipped_sum))
    releases = (
        PlannedRelease("model", bound, mechanism, e, range(params.steps), client=client) for client, e in enumerate(events)
    )
    schedule = PlanSchedule(params.steps, tuple(releases), min_clients)
    return Plan(method, params, facts, guarantee, schedule, made, published, PlanSums(suffice=suffice), notes=notes)


def network_of(
    model: str, arguments: str, projection: int, facts: PublicFacts, *, wide: int = 1
) -> tuple[NetworkSpec, np.ndarray | None]:
    """(what the network is made from, the public directions of its rows). wide: columns of a row for each direction."""
    basis, inputs = directions_of(projection, facts)
    return NetworkSpec(model, arguments, wide * inputs, facts.num_classes), basis


def prepare(plan: Plan[ExampleSettings, ExamplesMade], subgraph: Subgraph) -> Work:
    """The rows and the bounded neighbourhoods of the client that holds ``subgraph``."""
    graph = subgraph.graph
    adjacency = plan.made.bounded(graph.adjacency, subgraph.nodes)
    return Work(plan.made.rows(graph), adjacency, graph.labels, subgraph.nodes, subgraph.client)


def client(
    plan: Plan[ExampleSettings, ExamplesMade], work: Work, model: Model, round_: int, streams: PlanStreams, desk: Desk
) -> PlanSent:
    """The noisy sum of the clipped gradients of this step's roots."""
    params, made, rule = plan.params, plan.made, plan.made.rules[work.number]

    def gradient() -> np.ndarray:
        drawn = streams.drawn("batch", work.ids, params.sampling_rate)
        roots = np.flatnonzero(drawn & (work.labels >= 0))

        def allowed(root: np.ndarray, node: np.ndarray) -> np.ndarray:
            if rule.drawn_too:
                return node >= 0
            pairs = np.stack([work.ids[root], work.ids[node]], axis=1)
            return ~drawn[node] & streams.drawn("mentions", pairs, rule.rate)

        hops = made.hops if rule.most > 1 else 0
        samples = rooted.subgraphs(work.adjacency, work.ids, roots, allowed, made.neighbours, hops, round_)
        examples = NetworkExamples(work.rows, samples, work.labels[roots])
        how = (params.clip, plan.facts.num_nodes, made.loops)
        return example_gradients.clipped_sum(made.network, model["parameters"], examples, *how)

    return {"gradient": desk.release("model", gradient)}


def descent_of(params: _Steps) -> Descent:
    """Heavy-ball steps along noisy mean gradients."""
    return Descent(params.learning_rate, params.momentum, params.steps, params.averaged)


def server(plan: Plan[_Steps, object], state: State[Descended], inbox: PlanInbox) -> State[Descended]:
    """One step on the mean over the public expected number of roots."""
    rows = np.float32(plan.params.sampling_rate * plan.facts.num_nodes)
    memory = descent_of(plan.params).step(state.memory, inbox.sums["gradient"] / rows, inbox.round)
    return State({"parameters": memory.parameters}, memory)


def reads_rounds(plan: Plan[ExampleSettings, ExamplesMade]) -> bool:
    """Whether the rounds of a run should be kept: roots read nobody, and the viewer sees them."""
    network, alone = plan.made.network, not plan.made.hops or all(one.most == 1 for one in plan.made.rules)
    return alone and seen.rounds_worth_keeping(plan, own_network.num_parameters(network))


def evidence(
    plan: Plan[ExampleSettings, ExamplesMade],
    state: State,
    graph: Graph,
    units: np.ndarray,
    make: Callable[[Graph, np.ndarray], np.ndarray],
) -> np.ndarray | None:
    """For each unit (node, −1, label) what all rounds say; None where nothing was kept, or nodes are replaced.

    A canary is read by its own example, a root alone. Rows of others are known, who was drawn is not: of each its expected
    share is taken off. Where everybody is drawn and a canary touches no other row, ⟨clip(∇ⱼ), message − Σ wₖ clip(∇ₖ)⟩ summed
    over rounds is the exact log-likelihood ratio of zero-out times s². make: (the graph of a client's nodes, their ids) → its
    rows, float [n, k].
    """
    shares = seen.known_shares(plan, state, units)
    if shares is None:
        return None
    groups: list[list[np.ndarray]] = [[nodes] for nodes in seen.groups_of(plan)]
    if len(groups) == 1 and plan.facts.num_clients > 1:  # a sum, without what colluders sent
        colluders = seen.colluders_of(plan)
        groups = [[nodes for client, nodes in enumerate(plan.facts.members) if client not in colluders]]
    network, rate, clip = plan.made.network, plan.params.sampling_rate, plan.params.clip

    def read(number: int, nodes: np.ndarray, coins: seen.SeenCoins) -> None:
        rows = np.concatenate([make(graph.induced(part), part) for part in groups[number]])
        labels, weights = graph.labels[nodes], rate * shares[nodes]
        for _, model, message in seen.gradients_of(plan, state, number):
            if own_network.is_linear(network):
                each = example_gradients.outer(model["parameters"], rows, labels, network.classes, clip)
                products, left_over = each.products(coins.rows), each.left_over_products(message, weights)
            else:
                known, own = _gradients(plan, model["parameters"], rows, labels, weights, coins.rows)
                products, left_over = own @ own.T, np.zeros(nodes.size)
                left_over[coins.rows] = own @ (message - known)
            coins.add(rate**2 * products, rate * left_over)

    orders = [np.concatenate(parts) for parts in groups]
    return seen.coins_of(plan, units, orders, plan.schedule.releases[0].path, clip, read)


def _gradients(
    plan: Plan[ExampleSettings, ExamplesMade],
    vector: np.ndarray,
    rows: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    of: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """(Σ weights · clipped gradient over all roots alone, [p]; those of the rows ``of``, [m, p])."""
    roots = np.flatnonzero(labels >= 0)
    given = NetworkExamples(rows, rooted.alone(roots), labels[roots])
    known, own = np.zeros(vector.size), np.zeros((of.size, vector.size))
    for gradients, scale, some in example_gradients.weighed_rows(
        plan.made.network, vector, given, plan.params.clip, plan.made.loops
    ):
        found, at = (gradients * scale[:, None]).cpu().numpy(), roots[some]
        known += weights[at] @ found
        here = np.isin(at, of)
        own[np.searchsorted(of, at[here])] = found[here]
    return known, own
