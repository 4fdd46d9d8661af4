"""SAGE at node level: noisy sums of clipped subgraph gradients, one release per step.

A row is a training node with its neighbourhood. How many rows one node touches, and so what a step's noise must hide, is
``caps``: by default a bound that holds for every graph. The clip is a public number and batches are fresh, two things that the
released code does otherwise; its cut of neighbourhoods is ``cap: promised``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from fedgraph.learning.clipping import neighbour_rows, subgraphs
from fedgraph.learning.clipping.per_sample import clipped_gradient_sum, left_over_products, overlaps, products
from fedgraph.learning.late import torch
from fedgraph.learning.layers import graphsage
from fedgraph.learning.layers.matrices import DenseMatrix, FeatureMatrix, device
from fedgraph.learning.layers.models import Layout, logits, on_device
from fedgraph.learning.optimisers.descents import Descended, fixed_mask, masked, poisson_mask
from fedgraph.methods import base
from fedgraph.methods.base import seen
from fedgraph.methods.base.node_caps import descent_of, directions, sparse_rows
from fedgraph.methods.sage_node.caps import Caps, Made, Params, caps_from_settings
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.claims import sage
from fedgraph.privacy.desk import Desk, PlannedRelease
from fedgraph.privacy.events import Event, Gaussian
from fedgraph.privacy.mechanisms.noise import GaussianNoise, Mechanism
from fedgraph.privacy.sensitivity import ClippedSum, kernel_name
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Unit
from fedgraph.types import Graph, Subgraph

REFERENCE = base.bibtex("daigavane2021node", "wu2022linkteller")


@dataclass(frozen=True, eq=False)
class Work:
    """What a client prepares.

    Attributes:
        rows: aggregated features (one layer; an array under the log cap) or subgraphs (two layers).
        labels: int64 [n], −1 where unknown.
    """

    rows: FeatureMatrix | subgraphs.Roots | np.ndarray
    labels: torch.Tensor


Planned: TypeAlias = base.Plan[Params, Made]


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """One noise multiplier for all steps; each client's event is priced for its own number of rows."""
    base.require_test_graph("sage_node", facts)
    capped = caps_from_settings(params, facts, budget)
    mechanism, free = base.NO_NOISE
    events = [free] * facts.sizes.num_clients
    published, min_clients = None, 1
    if budget.private:
        mechanism, events, published, min_clients = _noise(params, facts, budget, capped)
    bound = ClippedSum(params.clip, facts.sizes.num_nodes, kernel_name(_kernel(params, capped)))
    guarantee = base.guarantee_of(
        facts,
        params.protects,
        (*base.TESTED_IN_PUBLIC, *capped.assumptions),
        budget.delta,
        per_end=False,
        promised=capped.promised,
        limit=capped.limit,
    )
    steps = range(params.steps)
    releases = (PlannedRelease("model", bound, mechanism, e, steps, client=client) for client, e in enumerate(events))
    schedule = base.Schedule(params.steps, tuple(releases), min_clients)
    made = _made(params, facts, capped)
    sums = base.Sums(suffice=True)
    return base.Plan("sage_node", params, facts, guarantee, schedule, made, published, sums=sums, notes=capped.notes)


def _kernel(params: Params, capped: Caps) -> Callable[..., np.ndarray]:
    """The function that clips the rows of a step."""
    if capped.kind == "log":
        return neighbour_rows.clipped_sum
    return subgraphs.clipped_sum if params.layers == 2 else clipped_gradient_sum


def _noise(
    params: Params, facts: base.PublicFacts, budget: base.Budget, capped: Caps
) -> tuple[Mechanism, list[Event], float | None, int]:
    """(mechanism, each client's event, published ε, clients that must finish)."""
    stage, sizes = capped.stage, facts.sizes.clients
    if capped.kind == "log":
        multiplier = calibrate.gaussian_multiplier(params.steps, budget.epsilon, budget.delta)
        std, min_clients = base.gradient_std(multiplier, capped.sensitivity, facts)
        return GaussianNoise(std), [Gaussian(multiplier)] * len(sizes), None, min_clients
    multiplier = sage.sage_noise_multiplier(stage, sizes, budget.epsilon, budget.delta, budget.calibrated_by)
    std, min_clients = base.gradient_std(multiplier, params.clip, facts)
    published = sage.published_sage_epsilon(stage, multiplier, sizes, budget.delta) if stage.claimed else None
    return GaussianNoise(std), [stage.event(multiplier, n) for n in sizes], published, min_clients


def _made(params: Params, facts: base.PublicFacts, capped: Caps) -> Made:
    basis, inputs = directions(params.projection, facts)
    two = graphsage.Widths(inputs, params.hidden, facts.sizes.num_classes)
    return Made(capped, basis, two if params.layers == 2 else Layout((2 * inputs, facts.sizes.num_classes)))


def start(plan: Planned, rng: np.random.Generator) -> base.State[Descended]:
    memory = descent_of(plan.params).start(plan.made.network.start(rng))
    return base.State({"parameters": memory.parameters}, memory)


def prepare(plan: Planned, subgraph: Subgraph) -> Work:
    graph = subgraph.graph
    adjacency = plan.made.caps.neighbourhoods(graph.adjacency, subgraph.nodes, held=True)
    return Work(_rows(plan, graph, adjacency), torch.tensor(graph.labels, device=device()))


def client(plan: Planned, work: Work, model: base.Model, round_: int, streams: base.Streams, desk: Desk) -> base.Sent:
    """The noisy sum of this batch's clipped subgraph gradients."""
    stage = plan.made.caps.stage

    def gradient() -> np.ndarray:
        rng, n = streams.generator("batch"), len(work.labels)
        mask = fixed_mask(n, stage.batch_size(n), rng) if stage.fixed else poisson_mask(n, stage.rate, rng)
        labels = masked(work.labels, mask)
        network = plan.made.network
        clip = plan.params.clip
        if isinstance(work.rows, np.ndarray) and isinstance(network, Layout):
            own = labels.cpu().numpy()
            return neighbour_rows.clipped_sum(network, model["parameters"], work.rows, own, clip, plan.params.bound)
        if isinstance(work.rows, subgraphs.Roots) and isinstance(network, graphsage.Widths):
            return subgraphs.clipped_sum(network, model["parameters"], work.rows, labels, clip)
        assert isinstance(work.rows, FeatureMatrix)
        assert isinstance(network, Layout)
        return clipped_gradient_sum(network, model["parameters"], work.rows, labels, clip)

    return {"gradient": desk.release("model", gradient)}


def server(plan: Planned, state: base.State[Descended], inbox: base.Inbox) -> base.State[Descended]:
    """One step on the mean over the public batch sizes."""
    stage, sizes = plan.made.caps.stage, plan.facts.sizes.clients
    rows = sum(stage.batch_size(n) if stage.fixed else stage.rate * n for n in sizes)
    memory = descent_of(plan.params).step(state.memory, inbox.sums["gradient"] / np.float32(rows), inbox.round)
    if isinstance(plan.made.network, Layout) and plan.made.caps.kind == "log":  # clients would project it anyway
        memory = replace(
            memory, parameters=neighbour_rows.neighbour_weights(plan.made.network, memory.parameters, plan.params.bound)
        )
    return base.State({"parameters": memory.parameters}, memory)


def predict(plan: Planned, state: base.State[Descended], graph: Graph) -> np.ndarray:
    """[n, c] scores on a public graph, its neighbourhoods bounded in the same way."""
    adjacency = plan.made.caps.neighbourhoods(graph.adjacency, np.arange(graph.num_nodes), held=False)
    average, network = state.memory.average, plan.made.network
    if isinstance(network, Layout):
        rows = _one_layer(plan, graph, adjacency)
        return logits(network, average, DenseMatrix(rows) if isinstance(rows, np.ndarray) else rows)
    features = FeatureMatrix(sparse_rows(graph, plan.made.basis))
    found = graphsage.scores(network, on_device(average), features, graphsage.Mean(adjacency))
    return found.cpu().numpy()


def reads_rounds(plan: Planned) -> bool:
    """Whether the rounds of a run should be kept: one layer, everybody in every batch, and a viewer who sees them."""
    network = plan.made.network
    return isinstance(network, Layout) and plan.params.sampling_rate == 1 and seen.worth_keeping(plan, network.num_parameters)


def evidence(plan: Planned, state: base.State[Descended], graph: Graph, units: np.ndarray) -> np.ndarray | None:
    """For each unit (node, −1, label) what all rounds say; None where nothing was kept, or nodes are replaced.

    A canary without edges touches its own row only, so ⟨clip(∇ⱼ), message − Σ wₖ clip(∇ₖ)⟩ summed over rounds is the
    log-likelihood ratio of zero-out times s², for a canary alone. Rows of others are known (the strongest attacker). Half of
    each canary's row is taken off, as its coin is unknown; ``seen.Coins`` takes off what canaries have along one another. The
    proof prices more than this shows: a node with edges touches other rows, too (``benchmarks.one_run_limits --rows``).
    """
    network = plan.made.network
    weights = seen.known_shares(plan, state, units)
    if weights is None or not isinstance(network, Layout):
        return None
    found = np.zeros(weights.size)
    for number, nodes in enumerate(seen.groups(plan)):
        parts = plan.facts.membership.nodes if len(seen.groups(plan)) == 1 and plan.facts.sizes.num_clients > 1 else (nodes,)
        made = []
        for part in parts:
            known = graph.induced(part)
            made.append(_one_layer(plan, known, plan.made.caps.neighbourhoods(known.adjacency, part, held=True)))
        order = np.concatenate(parts)
        labels = graph.labels[order]
        coins = seen.Coins.of(order, units[:, 0])
        overlap = overlaps(made[0], coins.rows) if isinstance(made[0], FeatureMatrix) else np.zeros((0, 0))
        for _, model, message in seen.seen_messages(plan, state, number, "gradient"):
            at = model["parameters"]
            if all(isinstance(m, np.ndarray) for m in made):
                inputs = np.concatenate([np.asarray(m) for m in made])
                how = (network, at, inputs, labels, plan.params.clip, plan.params.bound)
                left = neighbour_rows.left_over_products(*how, message, weights[order])
                coins.add(neighbour_rows.clipped_neighbour_products(*how, coins.rows), left)
            elif len(made) == 1 and isinstance(made[0], FeatureMatrix):
                one = (network, at, made[0], torch.tensor(labels, device=device()), plan.params.clip)
                coins.add(products(*one, overlap, coins.rows), left_over_products(*one, message, weights[order]))
            else:
                return None
        found[order[coins.rows]] = coins.ratios(seen.seen_noise(plan, plan.schedule.releases[0].path, plan.params.clip))
    return found[units[:, 0]]


def _rows(plan: Planned, graph: Graph, adjacency: sp.csr_array) -> FeatureMatrix | subgraphs.Roots | np.ndarray:
    if plan.params.layers == 2:
        return subgraphs.roots(sparse_rows(graph, plan.made.basis), adjacency)
    return _one_layer(plan, graph, adjacency)


def _one_layer(plan: Planned, graph: Graph, adjacency: sp.csr_array) -> FeatureMatrix | np.ndarray:
    features = sparse_rows(graph, plan.made.basis)
    if plan.made.caps.kind == "log":
        return neighbour_rows.rows(features, adjacency, plan.made.caps.scale)
    return FeatureMatrix(subgraphs.with_neighbours(features, adjacency))


OFFERS: base.Offers[Params, Made, Work, Descended] = base.Offers(
    units=(Unit.NODE,),
    reads=lambda plan: base.Reads.PUBLIC_GRAPH,
    situations=(
        base.Situation("inductive", settings={"steps": 5, "projection": 16}),
        base.Situation("inductive", (Trust.CURATOR,), {"steps": 3, "projection": 16, "layers": 2, "degree": 3}),
    ),
    answers_every_round=True,
    drafts=(base.Draft("graph", "node", {"label": "SAGE-NDP"}, "noisy gradients of neighbourhoods", spare=True),),
    reads_rounds=reads_rounds,
    evidence=evidence,
)
