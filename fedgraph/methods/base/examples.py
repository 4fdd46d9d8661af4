"""What methods share that train on examples: an example is a node that was drawn, the root, with the nodes that it reads.

In each step secret coins of rate q draw the roots. A root reads nodes around it (``learning.rooted``), the gradient of its loss
is clipped, and the sum is released once. A method adds its network, its rows, its neighbourhoods and its price.

**In how many examples a node may be.** A root reads a node only if that node was not drawn itself and a secret coin of the
pair, of rate p, says so. So a node is in its own example, or in some of the examples of at most m other roots, never both. If
roots also read nodes that were drawn (``drawn_too``), it may be in both.

    cap: all        m = n − 1: every graph, no promise
    cap: limit      m follows from the largest number of neighbours that the platform enforces
    cap: promised   m follows from a promised degree, to which neighbourhoods are cut; if the data break it, ε = ∞

p = min(1, M / m), where M (``mentions``) is the mean number of other examples that a node is in, at most, if all roots are
drawn. With M = 0 roots read no other node, and each node is only in its own example.

**Price of a step.** Zero-out: ``MentionedGaussian`` (own example, or Bin(m, qp) changed ones; ``privacy.accounting.pld``)
or ``PoissonGaussian`` of m + 1 touched rows (``privacy.accounting.pld``), whichever needs less noise: both hold. Replace:
the node has other neighbours in the other graph, so 2m + 1 rows change. Under ``drawn_too`` only the second price holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeVar

import numpy as np
import scipy.sparse as sp

from fedgraph import learning, privacy
from fedgraph.methods import base
from fedgraph.methods.base import node_caps, seen
from fedgraph.types import Graph, Subgraph


@dataclass(frozen=True)
class Occurrences:
    """The rule at one client."""

    others: int  # m, most other examples that a node may be in
    rate: float  # p, rate of a pair's coin, in [0, 1]
    sampling_rate: float  # q, rate of a root's coin
    replaced: bool  # whether a node is replaced, not zeroed
    num_rows: int  # n, nodes of the client
    drawn_too: bool = False  # whether a root reads nodes that were drawn themselves

    @property
    def most(self) -> int:
        """The largest number of examples of a step that one node changes."""
        alone = not (self.others and self.rate)
        return 1 if alone else min(self.num_rows, 1 + self.others * (2 if self.replaced else 1))

    def events(self, multiplier: float) -> tuple[privacy.Event, ...]:
        """The price of one step, in every way that holds. multiplier: standard deviation of the noise over the clip."""
        touched = privacy.PoissonGaussian(multiplier, self.sampling_rate, self.most, self.replaced)
        if self.most == 1 or self.replaced or self.drawn_too:
            return (touched,)
        return (privacy.MentionedGaussian(multiplier, self.sampling_rate, self.rate, self.others, False), touched)


def rule(
    cap: str,
    degree: int,
    mentions: float,
    hops: int,
    sampling_rate: float,
    replaced: bool,
    num_rows: int,
    drawn_too: bool = False,
) -> Occurrences:
    """The rule of a client of ``num_rows`` nodes. The other arguments are settings of the method; mentions: M, ∞ for p = 1."""
    others = max(num_rows - 1, 0) if cap == "all" else min(learning.rooted.reach(degree, hops), max(num_rows - 1, 0))
    reads = hops > 0 and mentions > 0 and others > 0
    rate = min(1.0, mentions / others) if reads else 0.0
    return Occurrences(others if reads else 0, rate, sampling_rate, replaced, num_rows, drawn_too)


@lru_cache(maxsize=256)  # the same for every seed, and for clients of one size
def noise_multiplier(of: Occurrences, steps: int, epsilon: float, delta: float) -> tuple[float, int]:
    """(least σ / clip with which ``steps`` steps cost at most ε; the number of the price in ``Occurrences.events``)."""
    ways = range(len(of.events(1.0)))

    def cost(way: int) -> Callable[[float], privacy.Event]:
        return lambda multiplier: privacy.Repeated(of.events(multiplier)[way], steps)

    found = [privacy.calibrate.noise_multiplier_of(cost(way), epsilon, delta) for way in ways]
    best = min(ways, key=lambda i: found[i])
    return found[best], best


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

    network: learning.NetworkSpec
    rules: tuple[Occurrences, ...]  # the rule of each client
    basis: np.ndarray | None  # public directions [d, k] of features, or None
    cut: int | None = None  # most neighbours that a node keeps, by public coins; None: all
    limit: int | None = None  # most neighbours of a node, else its client is refused; None: any number
    neighbours: int = 1 << 30  # most neighbours that one reader reads
    hops: int = 0  # how far a root reads
    loops: bool = False  # whether gradients are computed one after another

    def rows(self, graph: Graph) -> np.ndarray:
        """float32 [n, k]: unit rows, or their coordinates along public directions."""
        return np.asarray(node_caps.sparse_rows(graph, self.basis).toarray(), dtype=np.float32)

    def bounded(self, adjacency: sp.csr_array, ids: np.ndarray, held: bool = True) -> sp.csr_array:
        """The neighbourhoods that roots read. held: whether it is a client's own graph, which must keep the limit."""
        if self.cut is not None:
            return learning.neighbour_limits.at_most(adjacency, self.cut, ids, node_caps.NODE_CAP_COIN)
        if self.limit is not None and held:
            learning.neighbour_limits.require(adjacency, self.limit, ids)
        return sp.csr_array(adjacency.astype(np.float32))


class _Steps(_Settings, node_caps.Descends, Protocol):
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
    facts: base.PublicFacts,
    guarantee: privacy.Guarantee,
    made: _M,
    noise: tuple[privacy.NoiseMechanism, list[privacy.Event], int],
    published: float | None = None,
    notes: tuple[str, ...] = (),
    *,
    suffice: bool = True,
) -> base.Plan[_P, _M]:
    """A plan with one release in each step at each client.

    noise: (mechanism of a client's release, each client's event, clients that must finish). suffice: whether the server needs
    only sums of messages.
    """
    mechanism, events, min_clients = noise
    bound = privacy.ClippedSum(
        params.clip, facts.num_nodes, privacy.sensitivity.kernel_name(learning.example_gradients.clipped_sum)
    )
    releases = (
        privacy.PlannedRelease("model", bound, mechanism, e, range(params.steps), client=client)
        for client, e in enumerate(events)
    )
    schedule = base.PlanSchedule(params.steps, tuple(releases), min_clients)
    return base.Plan(method, params, facts, guarantee, schedule, made, published, base.PlanSums(suffice=suffice), notes=notes)


def network_of(
    model: str, arguments: str, projection: int, facts: base.PublicFacts, *, wide: int = 1
) -> tuple[learning.NetworkSpec, np.ndarray | None]:
    """(the network, the public directions of its rows). wide: columns of a row for each direction."""
    basis, inputs = node_caps.directions_of(projection, facts)
    return learning.NetworkSpec(model, arguments, wide * inputs, facts.num_classes), basis


def prepare(plan: base.Plan[_Settings, ExamplesMade], subgraph: Subgraph) -> Work:
    """The rows and the bounded neighbourhoods of the client that holds ``subgraph``."""
    graph = subgraph.graph
    adjacency = plan.made.bounded(graph.adjacency, subgraph.nodes)
    return Work(plan.made.rows(graph), adjacency, graph.labels, subgraph.nodes, subgraph.client)


def client(
    plan: base.Plan[_Settings, ExamplesMade],
    work: Work,
    model: base.Model,
    round_: int,
    streams: base.PlanStreams,
    desk: privacy.Desk,
) -> base.PlanSent:
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
        samples = learning.rooted.subgraphs(work.adjacency, work.ids, roots, allowed, made.neighbours, hops, round_)
        examples = learning.NetworkExamples(work.rows, samples, work.labels[roots])
        how = (params.clip, plan.facts.num_nodes, made.loops)
        return learning.example_gradients.clipped_sum(made.network, model["parameters"], examples, *how)

    return {"gradient": desk.release("model", gradient)}


def server(
    plan: base.Plan[_Steps, object], state: base.State[learning.Descended], inbox: base.PlanInbox
) -> base.State[learning.Descended]:
    """One step along the sum over the public expected number of roots."""
    rows = np.float32(plan.params.sampling_rate * plan.facts.num_nodes)
    memory = node_caps.descent_of(plan.params).step(state.memory, inbox.sums["gradient"] / rows, inbox.round)
    return base.State({"parameters": memory.parameters}, memory)


def reads_rounds(plan: base.Plan[_Settings, ExamplesMade]) -> bool:
    """Whether rounds are kept: if roots read no other node, and the viewer sees rounds."""
    network, alone = plan.made.network, not plan.made.hops or all(one.most == 1 for one in plan.made.rules)
    return alone and seen.rounds_worth_keeping(plan, learning.own_network.num_parameters(network))


def evidence(
    plan: base.Plan[_Settings, ExamplesMade],
    state: base.State,
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
            if learning.own_network.is_linear(network):
                each = learning.example_gradients.outer(model["parameters"], rows, labels, network.classes, clip)
                products, left_over = each.products(coins.rows), each.left_over_products(message, weights)
            else:
                known, own = _gradients(plan, model["parameters"], rows, labels, weights, coins.rows)
                products, left_over = own @ own.T, np.zeros(nodes.size)
                left_over[coins.rows] = own @ (message - known)
            coins.add(rate**2 * products, rate * left_over)

    orders = [np.concatenate(parts) for parts in groups]
    return seen.coins_of(plan, units, orders, plan.schedule.releases[0].path, clip, read)


def _gradients(
    plan: base.Plan[_Settings, ExamplesMade],
    vector: np.ndarray,
    rows: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    of: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """(Σ weights · clipped gradient over all nodes as roots alone, [p]; the clipped gradients of the rows ``of``, [m, p])."""
    roots = np.flatnonzero(labels >= 0)
    given = learning.NetworkExamples(rows, learning.rooted.alone(roots), labels[roots])
    known, own = np.zeros(vector.size), np.zeros((of.size, vector.size))
    for gradients, scale, some in learning.example_gradients.weighed_rows(
        plan.made.network, vector, given, plan.params.clip, plan.made.loops
    ):
        found, at = (gradients * scale[:, None]).cpu().numpy(), roots[some]
        known += weights[at] @ found
        here = np.isin(at, of)
        own[np.searchsorted(of, at[here])] = found[here]
    return known, own
