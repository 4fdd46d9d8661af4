"""ProGAP at node level: stage s is trained by clipped, noisy gradients on features and the noisy sums x₁ … x_s.

Rounds sT … (s+1)T − 1 train stage s from the bases of stage s − 1 (``fedgraph_zoo.staged``). In round sT, s ≥ 1, every
client sums the unit rows that stage s − 1 makes of its nodes, once, with noise; the sums stay with their client, where they are
read at unit length. Frozen stages are broadcast, so a client that is restarted makes the same noisy sums again.

What touches node j: its own clipped gradient in each of (K + 1)T rounds, and through a hop the rows of others: what GAP pays at
node level for its two stages (``methods.base.node_caps``), with K + 1 of them. Published: √D per hop, sound only where no node
has more than D neighbours. By default the sums are bounded for every graph (log cap). The released code sums over sampled
neighbours and puts a group norm behind each base, in whose place sums have unit length here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from pydantic import Field

from fedgraph.learning import (
    DenseMatrix,
    Descended,
    TorchMatrix,
    descents,
    per_sample,
    scale_to_unit_length,
    torch,
    torch_device,
)
from fedgraph.methods import base, seen
from fedgraph.methods.base import node_caps
from fedgraph.methods.base.node_caps import NodeCaps, NodeCapSettings, Work
from fedgraph.privacy import Desk, Released, Unit, sensitivity
from fedgraph.types import Graph, Subgraph
from fedgraph_zoo import staged

REFERENCE = base.method_bibtex("sajadmanesh2024progap")

_DISPUTED = (
    "ProGAP's node level rests on GAP's, which is publicly disputed: Xiang, Wang & Wang (IEEE S&P 2024, arXiv 2311.06888). "
    "Here nobody is shown a node's own row."
)


class Params(NodeCapSettings):
    hidden: int = Field(16, ge=1, description="hidden units of a stage")
    steps: int = Field(40, ge=1, description="gradient steps of each stage")
    learning_rate: float = Field(4.0, gt=0, description="step size on the mean clipped gradient")
    momentum: float = Field(0.9, ge=0, lt=1, description="heavy-ball momentum, at the server")
    averaged: float = Field(0.5, gt=0, le=1, description="share of the last iterates of a stage that is averaged")


@dataclass(frozen=True, eq=False)
class Made:
    """What the plan made of public facts."""

    caps: NodeCaps  # how much of each neighbour a hop hears
    basis: np.ndarray | None  # public directions [d, k] of features, or None
    stages: tuple[staged.ClippedStage, ...]  # the networks 0 … K


@dataclass(frozen=True, eq=False)
class Memory:
    """What the server remembers."""

    seed: int  # of the first parameters of every stage
    descended: Descended  # how far the stage in training is


Planned: TypeAlias = base.Plan[Params, Made]


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """Noise multipliers of gradients and hops, and every release."""
    steps, stages = params.steps, range(params.hops + 1)

    def make(capped: NodeCaps) -> Made:
        basis, inputs = node_caps.directions_of(params.projection, facts)
        widths = (inputs, params.hidden, facts.num_classes)
        return Made(capped, basis, tuple(staged.ClippedStage(*widths, s) for s in stages))

    gradients = {_name(s): range(s * steps, (s + 1) * steps) for s in stages}
    hops = tuple((_hop(s), s * steps, 1) for s in stages[1:])
    kernel = sensitivity.kernel_name(staged.clip_staged_gradients)
    return node_caps.plan_for("progap_node", params, facts, budget, gradients, hops, kernel, make, _DISPUTED)


def _name(stage: int) -> str:
    return f"stage {stage}"


def _hop(stage: int) -> str:
    return f"aggregate {stage}"


def start(plan: Planned, rng: np.random.Generator) -> base.State[Memory]:
    seed = int(rng.integers(2**31))
    model = {_name(s.hops): s.start(np.random.default_rng([seed, s.hops])) for s in plan.made.stages}
    return base.State(model, Memory(seed, node_caps.descent_of(plan.params).start(model[_name(0)])))


def prepare(plan: Planned, subgraph: Subgraph) -> Work:
    return node_caps.prepare(plan.made.caps, plan.made.basis, subgraph)


def client(plan: Planned, work: Work, model: base.Model, round_: int, streams: base.PlanStreams, desk: Desk) -> base.PlanSent:
    """This round's noisy gradient sum; in the first round of a stage its hop as well, which is recorded and stays here."""
    steps, stages, number = plan.params.steps, plan.made.stages, round_ // plan.params.steps
    xs: list[TorchMatrix] = [work.x]
    shown: dict[str, Released] = {}
    for s in range(1, number + 1):  # x_s with the noise of round sT, from the cache where it is there
        key = node_caps.key(streams, *(model[_name(before)] for before in range(s)))
        if key not in work.hops or round_ == s * steps:
            if s == 1:
                work.hops.clear()
            rows = scale_to_unit_length(staged.staged_rows(stages[s - 1], model[_name(s - 1)], xs))
            sums = node_caps.aggregate_capped_rows(work.adjacency, rows)
            work.hops[key] = DenseMatrix(node_caps.release_hop(desk, _hop(s), _hop(s), sums, s * steps, shown))
        xs.append(work.hops[key])

    def gradient() -> np.ndarray:
        mask = descents.draw_poisson_mask(len(work.labels), plan.params.sampling_rate, streams.generator("batch"))
        known = descents.mask_labels(work.labels, mask)
        return staged.clip_staged_gradients(stages[number], model[_name(number)], xs, known, plan.params.clip)

    return {"gradient": desk.release(_name(number), gradient), **(shown if plan.watch.opened else {})}


def server(plan: Planned, state: base.State[Memory], inbox: base.PlanInbox) -> base.State[Memory]:
    """One step on the mean over the public number of nodes; a stage is frozen at its averaged iterate, and the next begins."""
    p, memory = plan.params, state.memory
    number, step = divmod(inbox.round, p.steps)
    mean = inbox.sums["gradient"] / np.float32(plan.facts.num_nodes * p.sampling_rate)
    after = node_caps.descent_of(plan.params).step(memory.descended, mean, step)
    if step < p.steps - 1:
        return base.State({**state.model, _name(number): after.parameters}, replace(memory, descended=after))
    model = {**state.model, _name(number): after.average}
    if number < p.hops:
        grown = plan.made.stages[number + 1].start(np.random.default_rng([memory.seed, number + 1]), after.average)
        model[_name(number + 1)], after = grown, node_caps.descent_of(plan.params).start(grown)
    return base.State(model, replace(memory, descended=after))


def predict(plan: Planned, state: base.State[Memory], graph: Graph) -> np.ndarray:
    """[n, c] scores on a public graph: the same stages, without noise."""
    adjacency = plan.made.caps.weights(graph.adjacency, np.arange(graph.num_nodes))
    xs: list[TorchMatrix] = [node_caps.rows_of(graph, plan.made.basis)]
    for stage in plan.made.stages[:-1]:
        rows = staged.staged_rows(stage, state.model[_name(stage.hops)], xs)
        sums = node_caps.aggregate_capped_rows(adjacency, scale_to_unit_length(rows))
        xs.append(DenseMatrix(scale_to_unit_length(sums)))
    return staged.score_staged_network(plan.made.stages[-1], state.model[_name(plan.params.hops)], xs)


def reads_rounds(plan: Planned) -> bool:
    """Whether the rounds of a run should be kept: everybody is in every batch, and the viewer sees them."""
    return plan.params.sampling_rate == 1 and seen.rounds_worth_keeping(plan, plan.made.stages[-1].num_parameters)


def evidence(plan: Planned, state: base.State[Memory], graph: Graph, units: np.ndarray) -> np.ndarray | None:
    """For each unit (node, −1, label) what all readable messages say, as in ``gap_node``: those of stage 0, whose rows are
    known, and of later stages where noisy hops are shown (``plan.watch.opened``). None where nothing was kept or nodes are
    replaced.
    """
    weights = seen.known_shares(plan, state, units)
    if weights is None:
        return None
    hops = {name: each for _, inbox in state.seen for name, each in inbox.each.items() if name != "gradient"}

    def read(number: int, nodes: np.ndarray, coins: seen.SeenCoins) -> None:
        part = graph.induced(nodes)
        labels = torch.tensor(part.labels, device=torch_device())
        xs: list[TorchMatrix] = [node_caps.rows_of(part, plan.made.basis)]
        shown = [hops[_hop(s)][number] for s in range(1, plan.params.hops + 1) if _hop(s) in hops]
        xs += [DenseMatrix(scale_to_unit_length(rows)) for rows in shown]
        met = [per_sample.overlaps(x, coins.rows) for x in xs]
        for round_, model, message in seen.gradients_of(plan, state, number):
            stage = round_ // plan.params.steps
            if stage >= len(xs):
                break
            each = staged.staged_gradients(plan.made.stages[stage], model[_name(stage)], xs, labels).clipped(plan.params.clip)
            products = each.products(met[: stage + 1], coins.rows)
            coins.add(products, each.left_over_products(message, weights[nodes]))

    return seen.coins_of(plan, units, seen.groups_of(plan), _name(0), plan.params.clip, read)


OFFERS: base.Offers[Params, Made, Work, Memory] = base.Offers(
    units=(Unit.NODE,),
    reads=lambda plan: base.MethodReads.PUBLIC_GRAPH,
    situations=(base.MethodSituation("inductive", settings={"steps": 3, "projection": 16}),),
    reads_rounds=reads_rounds,
    evidence=evidence,
)
