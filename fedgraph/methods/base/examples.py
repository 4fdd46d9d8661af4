"""What methods share that train on examples: an example is a node that was drawn, the root, with the nodes that it reads.

In each step secret coins draw the roots. A root reads nodes around it (``learning.rooted``), the gradient of its loss is
clipped, and the sum is released once. ``occurrences`` says which nodes a root may read, and so in how many examples a node may
be. A method adds its network, its rows, its neighbourhoods and its price.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import scipy.sparse as sp

from fedgraph.learning import (
    Descended,
    NetworkExamples,
    NetworkSpec,
    example_gradients,
    neighbour_limits,
    own_network,
    rooted,
)
from fedgraph.methods.base import seen
from fedgraph.methods.base.node_caps import NODE_CAP_COIN, Descends, descent_of, directions_of, sparse_rows
from fedgraph.methods.base.occurrences import Occurrences
from fedgraph.methods.base.plan import Model, Plan, PlanInbox, PlanSchedule, PlanSent, PlanStreams, PlanSums, State
from fedgraph.methods.base.public_facts import PublicFacts
from fedgraph.privacy import ClippedSum, Desk, Event, Guarantee, NoiseMechanism, PlannedRelease, sensitivity
from fedgraph.types import Graph, Subgraph


class _Settings(Protocol):
    """Settings that every such method has."""

    @property
    def clip(self) -> float: ...
    @property
    def steps(self) -> int: ...
    @property
    def sampling_rate(self) -> float: ...


@dataclass(frozen=True, eq=False)
class ExamplesMade:
    """What a plan made of public facts: the network, and how examples are made."""

    network: NetworkSpec
    rules: tuple[Occurrences, ...]  # the rule of each client
    basis: np.ndarray | None  # public directions [d, k] of features, or None
    cut: int | None = None  # most neighbours that a node keeps, by public coins; None: all
    limit: int | None = None  # most neighbours of a node, else its client is refused; None: any number
    neighbours: int = 1 << 30  # most neighbours that one reader reads
    hops: int = 0  # how far a root reads
    loops: bool = False  # whether gradients are computed one after another

    def rows(self, graph: Graph) -> np.ndarray:
        """float32 [n, k]: unit rows, or their coordinates along public directions."""
        return np.asarray(sparse_rows(graph, self.basis).toarray(), dtype=np.float32)

    def bounded(self, adjacency: sp.csr_array, ids: np.ndarray, held: bool = True) -> sp.csr_array:
        """The neighbourhoods that roots read. held: whether it is a client's own graph, which must keep the limit."""
        if self.cut is not None:
            return neighbour_limits.at_most(adjacency, self.cut, ids, NODE_CAP_COIN)
        if self.limit is not None and held:
            neighbour_limits.require(adjacency, self.limit, ids)
        return sp.csr_array(adjacency.astype(np.float32))


class _Steps(_Settings, Descends, Protocol):
    """Settings of such a method whose server descends."""


_P = TypeVar("_P", bound=_Settings)
_M = TypeVar("_M", bound=ExamplesMade)


@dataclass(frozen=True, eq=False)
class Work:
    """What a client prepares."""

    rows: np.ndarray  # float [n, k], rows that the network reads
    adjacency: sp.csr_array  # CSR [n, n], neighbourhoods that roots read
    labels: np.ndarray  # int64 [n], −1: unknown
    ids: np.ndarray  # int64 [n], public ids of its nodes
    number: int  # number of the client


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
    """A plan with one release in each step at each client.

    noise: (mechanism of a client's release, each client's event, clients that must finish). suffice: whether the server needs
    only sums of messages.
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
    """(the network, the public directions of its rows). wide: columns of a row for each direction."""
    basis, inputs = directions_of(projection, facts)
    return NetworkSpec(model, arguments, wide * inputs, facts.num_classes), basis


def prepare(plan: Plan[_Settings, ExamplesMade], subgraph: Subgraph) -> Work:
    """The rows and the bounded neighbourhoods of the client that holds ``subgraph``."""
    graph = subgraph.graph
    adjacency = plan.made.bounded(graph.adjacency, subgraph.nodes)
    return Work(plan.made.rows(graph), adjacency, graph.labels, subgraph.nodes, subgraph.client)


def client(
    plan: Plan[_Settings, ExamplesMade], work: Work, model: Model, round_: int, streams: PlanStreams, desk: Desk
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


def server(plan: Plan[_Steps, object], state: State[Descended], inbox: PlanInbox) -> State[Descended]:
    """One step along the sum over the public expected number of roots."""
    rows = np.float32(plan.params.sampling_rate * plan.facts.num_nodes)
    memory = descent_of(plan.params).step(state.memory, inbox.sums["gradient"] / rows, inbox.round)
    return State({"parameters": memory.parameters}, memory)


def reads_rounds(plan: Plan[_Settings, ExamplesMade]) -> bool:
    """Whether rounds are kept: if roots read no other node, and the viewer sees rounds."""
    network, alone = plan.made.network, not plan.made.hops or all(one.most == 1 for one in plan.made.rules)
    return alone and seen.rounds_worth_keeping(plan, own_network.num_parameters(network))


def evidence(
    plan: Plan[_Settings, ExamplesMade],
    state: State,
    graph: Graph,
    units: np.ndarray,
    make: Callable[[Graph, np.ndarray], np.ndarray],
) -> np.ndarray | None:
    """float64 [m], a score for each unit (node, −1, label); None if rounds were not kept, or nodes are replaced.

    A canary is read by its own example, in which it is alone. The attacker knows all rows but not who was drawn, so it
    subtracts the expected share of each. If all are drawn and a canary is in no other example, ⟨clip(∇ⱼ), message − Σ wₖ
    clip(∇ₖ)⟩ summed over rounds is the exact log-likelihood ratio of zero-out times s². make: (graph of a client's nodes, their
    ids) → their rows, float [n, k].
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
    plan: Plan[_Settings, ExamplesMade],
    vector: np.ndarray,
    rows: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    of: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """(Σ weights · clipped gradient over all nodes as roots alone, [p]; the clipped gradients of the rows ``of``, [m, p])."""
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
