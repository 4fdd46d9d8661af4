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

from fedgraph.learning import (
    DenseMatrix,
    Descended,
    FeatureMatrix,
    Layout,
    descents,
    graphsage,
    layouts,
    neighbour_rows,
    per_sample,
    subgraphs,
    torch,
    torch_device,
)
from fedgraph.methods import base
from fedgraph.methods.base import node_caps, seen
from fedgraph.methods.sage_node import caps
from fedgraph.methods.sage_node import published as sage
from fedgraph.methods.sage_node.caps import Caps, Made, Params
from fedgraph.privacy import (
    ClippedSum,
    Desk,
    Event,
    Gaussian,
    GaussianNoise,
    NoiseMechanism,
    PlannedRelease,
    Trust,
    Unit,
    calibrate,
    sensitivity,
)
from fedgraph.types import Graph, Subgraph

REFERENCE = base.method_bibtex("daigavane2021node", "wu2022linkteller")


@dataclass(frozen=True, eq=False)
class Work:
    """What a client prepares.

    Attributes:
        rows: aggregated features (one layer; an array under the log cap) or subgraphs (two layers).
        labels: int64 [n], −1 where unknown.
    """

    rows: FeatureMatrix | subgraphs.SubgraphRoots | np.ndarray
    labels: torch.Tensor


Planned: TypeAlias = base.Plan[Params, Made]


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """One noise multiplier for all steps; each client's event is priced for its own number of rows."""
    base.require_public_test_graph("sage_node", facts)
    capped = caps.rule_of(params, facts, budget)
    mechanism, free = base.PLAN_WITHOUT_NOISE
    events, published, min_clients = [free] * facts.num_clients, None, 1
    if budget.private:
        mechanism, events, published, min_clients = _noise(params, facts, budget, capped)
    kernel = sensitivity.kernel_name(_kernel(params, capped))
    bound, steps = ClippedSum(params.clip, facts.num_nodes, kernel), range(params.steps)
    assumed, promise = (*base.FACTS_TESTED_IN_PUBLIC, *capped.assumptions), {"promised": capped.promised, "limit": capped.limit}
    guarantee = base.guarantee_from_public_facts(facts, params.protects, assumed, budget.delta, per_end=False, **promise)
    releases = (PlannedRelease("model", bound, mechanism, e, steps, client=client) for client, e in enumerate(events))
    schedule = base.PlanSchedule(params.steps, tuple(releases), min_clients)
    basis, inputs = node_caps.directions_of(params.projection, facts)
    two = graphsage.GraphsageWidths(inputs, params.hidden, facts.num_classes)
    made = Made(capped, basis, two if params.layers == 2 else Layout((2 * inputs, facts.num_classes)))
    sums = base.PlanSums(suffice=True)
    return base.Plan("sage_node", params, facts, guarantee, schedule, made, published, sums=sums, notes=capped.notes)


def _kernel(params: Params, capped: Caps) -> Callable[..., np.ndarray]:
    """The function that clips the rows of a step."""
    if capped.kind == "log":
        return neighbour_rows.clipped_sum
    return subgraphs.clipped_sum if params.layers == 2 else per_sample.clipped_sum


def _noise(
    params: Params, facts: base.PublicFacts, budget: base.Budget, capped: Caps
) -> tuple[NoiseMechanism, list[Event], float | None, int]:
    """(mechanism, each client's event, published ε, clients that must finish)."""
    stage, sizes = capped.stage, facts.clients
    if capped.kind == "log":
        multiplier = calibrate.gaussian_multiplier(params.steps, budget.epsilon, budget.delta)
        std, min_clients = base.gradient_std(multiplier, capped.sensitivity, facts)
        return GaussianNoise(std), [Gaussian(multiplier)] * len(sizes), None, min_clients
    multiplier = sage.sage_noise_multiplier(stage, sizes, budget.epsilon, budget.delta, budget.calibrated_by)
    std, min_clients = base.gradient_std(multiplier, params.clip, facts)
    published = sage.epsilon_of_paper(stage, multiplier, sizes, budget.delta) if stage.claimed else None
    return GaussianNoise(std), [stage.event(multiplier, n) for n in sizes], published, min_clients


def start(plan: Planned, rng: np.random.Generator) -> base.State[Descended]:
    memory = node_caps.descent_of(plan.params).start(plan.made.network.start(rng))
    return base.State({"parameters": memory.parameters}, memory)


def prepare(plan: Planned, subgraph: Subgraph) -> Work:
    graph = subgraph.graph
    adjacency = plan.made.caps.neighbourhoods(graph.adjacency, subgraph.nodes, held=True)
    if plan.params.layers == 2:
        features = node_caps.sparse_rows(graph, plan.made.basis)
        rows: FeatureMatrix | subgraphs.SubgraphRoots | np.ndarray = subgraphs.prepare_roots(features, adjacency)
    else:
        rows = _one_layer(plan, graph, adjacency)
    return Work(rows, torch.tensor(graph.labels, device=torch_device()))


def client(plan: Planned, work: Work, model: base.Model, round_: int, streams: base.PlanStreams, desk: Desk) -> base.PlanSent:
    """The noisy sum of this batch's clipped subgraph gradients."""
    caps, params, stage = plan.made.caps, plan.params, plan.made.caps.stage

    def gradient() -> np.ndarray:
        rng, n = streams.generator("batch"), len(work.labels)
        if stage.fixed:
            mask = descents.draw_fixed_mask(n, stage.batch_size(n), rng)
        else:
            mask = descents.draw_poisson_mask(n, stage.rate, rng)
        labels = descents.mask_labels(work.labels, mask)
        known = (labels.cpu().numpy(), params.clip, params.bound) if caps.kind == "log" else (labels, params.clip)
        return _kernel(params, caps)(plan.made.network, model["parameters"], work.rows, *known)

    return {"gradient": desk.release("model", gradient)}


def server(plan: Planned, state: base.State[Descended], inbox: base.PlanInbox) -> base.State[Descended]:
    """One step on the mean over the public batch sizes."""
    stage, sizes = plan.made.caps.stage, plan.facts.clients
    rows = sum(stage.batch_size(n) if stage.fixed else stage.rate * n for n in sizes)
    memory = node_caps.descent_of(plan.params).step(state.memory, inbox.sums["gradient"] / np.float32(rows), inbox.round)
    if isinstance(plan.made.network, Layout) and plan.made.caps.kind == "log":  # clients would project it anyway
        limited = neighbour_rows.limit_weights(plan.made.network, memory.parameters, plan.params.bound)
        memory = replace(memory, parameters=limited)
    return base.State({"parameters": memory.parameters}, memory)


def predict(plan: Planned, state: base.State[Descended], graph: Graph) -> np.ndarray:
    """[n, c] scores on a public graph, its neighbourhoods bounded in the same way."""
    adjacency = plan.made.caps.neighbourhoods(graph.adjacency, np.arange(graph.num_nodes), held=False)
    average, network = state.memory.average, plan.made.network
    if isinstance(network, Layout):
        rows = _one_layer(plan, graph, adjacency)
        return layouts.logits(network, average, DenseMatrix(rows) if isinstance(rows, np.ndarray) else rows)
    features = FeatureMatrix(node_caps.sparse_rows(graph, plan.made.basis))
    found = graphsage.graphsage_scores(network, layouts.to_device(average), features, graphsage.GraphsageMean(adjacency))
    return found.cpu().numpy()


def reads_rounds(plan: Planned) -> bool:
    """Whether the rounds of a run should be kept: one layer, everybody in every batch, and a viewer who sees them."""
    network = plan.made.network
    if not isinstance(network, Layout) or plan.params.sampling_rate < 1:
        return False
    return seen.rounds_worth_keeping(plan, network.num_parameters)


def evidence(plan: Planned, state: base.State[Descended], graph: Graph, units: np.ndarray) -> np.ndarray | None:
    """For each unit (node, −1, label) what all rounds say; None where nothing was kept, or nodes are replaced.

    A canary without edges touches its own row only, so ⟨clip(∇ⱼ), message − Σ wₖ clip(∇ₖ)⟩ summed over rounds is the
    log-likelihood ratio of zero-out times s², for a canary alone. Rows of others are known (the strongest attacker). Half of
    each canary's row is taken off, as its coin is unknown; ``seen.SeenCoins`` takes off what canaries have along one another.
    The proof prices more than this shows: a node with edges touches other rows, too (``benchmarks.one_run_limits --rows``).
    """
    network, clip, bound = plan.made.network, plan.params.clip, plan.params.bound
    weights = seen.known_shares(plan, state, units)
    if weights is None or not isinstance(network, Layout):
        return None
    groups: list[list[np.ndarray]] = [[nodes] for nodes in seen.groups_of(plan)]
    if len(groups) == 1 and plan.facts.num_clients > 1:  # a sum, without what colluders sent
        colluders = seen.colluders_of(plan)
        groups = [[nodes for client, nodes in enumerate(plan.facts.members) if client not in colluders]]
    if plan.made.caps.kind != "log" and len(groups[0]) > 1:
        return None

    def made_of(nodes: np.ndarray) -> FeatureMatrix | np.ndarray:
        known = graph.induced(nodes)
        return _one_layer(plan, known, plan.made.caps.neighbourhoods(known.adjacency, nodes, held=True))

    def read(number: int, order: np.ndarray, coins: seen.SeenCoins) -> None:
        made, labels = [made_of(nodes) for nodes in groups[number]], graph.labels[order]
        rows = seen.SeenRows(coins, made[0], labels, weights[order]) if isinstance(made[0], FeatureMatrix) else None
        for _, model, message in seen.messages_of(plan, state, number, "gradient"):
            if rows is not None:
                rows.read(network, model["parameters"], clip, message)
                continue
            inputs = np.concatenate([np.asarray(m) for m in made])
            sums = neighbour_rows.gradients(network, model["parameters"], inputs, labels, clip, bound)
            coins.add(sums.products(coins.rows), sums.left_over_products(message, weights[order]))

    orders = [np.concatenate(parts) for parts in groups]
    return seen.coins_of(plan, units, orders, plan.schedule.releases[0].path, clip, read)


def _one_layer(plan: Planned, graph: Graph, adjacency: sp.csr_array) -> FeatureMatrix | np.ndarray:
    features = node_caps.sparse_rows(graph, plan.made.basis)
    if plan.made.caps.kind == "log":
        return neighbour_rows.make(features, adjacency, plan.made.caps.scale)
    return FeatureMatrix(subgraphs.join_inputs(features, adjacency))


OFFERS: base.Offers[Params, Made, Work, Descended] = base.Offers(
    units=(Unit.NODE,),
    reads=lambda plan: base.MethodReads.PUBLIC_GRAPH,
    situations=(
        base.MethodSituation("inductive", settings={"steps": 5, "projection": 16}),
        base.MethodSituation("inductive", (Trust.CURATOR,), {"steps": 3, "projection": 16, "layers": 2, "degree": 3}),
    ),
    answers_every_round=True,
    reads_rounds=reads_rounds,
    evidence=evidence,
)
