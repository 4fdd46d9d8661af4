"""GAP at node level: DP encoder (rounds 0 … T−1), hops kept at the client, DP classifier (rounds T … 2T−1).

What touches node j: its own clipped gradient in either stage, and through a hop the rows of others, which get noise as if
they were released, but stay with their client: row j feeds j's own gradient and j's own messages at the next hop, nothing
else (PRIVACY.md §5). How much j changes in the rows of others is bounded for every graph by weights of edges that fall with
degrees (``node_caps``); as published it is √D, which only holds if no node has more than D neighbours. A client that is
restarted makes the same noisy hops again from the same random stream: same input, same noise, so nothing new is learnt.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from pydantic import Field

from fedgraph.learning import own_models
from fedgraph.learning.clipping.per_sample import (
    clip_per_sample,
    overlap_per_sample,
    per_sample_gradients,
)
from fedgraph.learning.late import torch
from fedgraph.learning.layers.layouts import Layout, layout_logits
from fedgraph.learning.layers.torch_matrices import DenseMatrix, FeatureMatrix, torch_device
from fedgraph.learning.optimisers.descents import Descended, draw_poisson_descent_mask, mask_descent_labels
from fedgraph.learning.optimisers.public_training import centre_public_training_probabilities, public_training_hidden_units
from fedgraph.learning.propagation.aggregation import scale_to_unit_length
from fedgraph.methods import base
from fedgraph.methods.base import node_caps, seen
from fedgraph.methods.base.node_caps import (
    NodeCapHops,
    NodeCaps,
    NodeCapSettings,
    Work,
    aggregate_capped_rows,
    node_caps_descent,
    node_caps_directions,
    node_caps_key,
    node_caps_rows,
    plan_node_caps,
    release_node_caps_hop,
)
from fedgraph.privacy.desk import Desk, Released
from fedgraph.privacy.sensitivity import sensitivity_kernel_name
from fedgraph.privacy.units import Unit
from fedgraph.types import Graph, Subgraph

REFERENCE = base.method_bibtex("sajadmanesh2023gap")


_DISPUTED = (
    "GAP's node level is publicly disputed: Xiang, Wang & Wang (IEEE S&P 2024, arXiv 2311.06888) find privacy flaws in it, and "
    "show that private embeddings of single nodes cannot be useful. Here nobody is shown a node's own row."
)

_Stage = Literal["encoder", "classifier"]


class Params(NodeCapSettings):
    """Settings of ``gap_node``."""

    encoder: Literal["classes", "hidden", "none"] = Field("classes", description="what is aggregated")
    hidden: int = Field(64, ge=1, description="hidden units of the encoder")
    steps: int = Field(60, ge=1, description="gradient steps of the encoder, and again of the classifier")
    learning_rate: float = Field(8.0, gt=0, description="step size on the mean clipped gradient")
    momentum: float = Field(0.9, ge=0, lt=1, description="heavy-ball momentum, at the server")
    averaged: float = Field(0.5, gt=0, le=1, description="share of the last iterates that is averaged")


@dataclass(frozen=True, eq=False)
class Made:
    """What the plan made of public facts.

    Attributes:
        first: T, the rounds of the encoder; 0 where there is none.
        caps: how much of each neighbour a hop hears.
        basis: public directions [d, k] that features are projected on, or None.
        encoder: layout of its parameters.
        classifier: layout of its parameters.
    """

    first: int
    caps: NodeCaps
    basis: np.ndarray | None
    encoder: Layout
    classifier: Layout

    def layout(self, stage: _Stage) -> Layout:
        return self.encoder if stage == "encoder" else self.classifier


@dataclass(frozen=True, eq=False)
class Memory:
    """What the server remembers.

    Attributes:
        encoder: how far its descent is.
        classifier: how far its descent is.
    """

    encoder: Descended
    classifier: Descended


Planned: TypeAlias = base.Plan[Params, Made]


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """Noise multipliers of both stages and of the hops, and every release."""
    first = 0 if params.encoder == "none" else params.steps
    return plan_node_caps(
        "gap_node",
        params,
        facts,
        budget,
        {"classifier": range(first, first + params.steps), "encoder": range(first)},
        (NodeCapHops("aggregate", first, params.hops),),
        sensitivity_kernel_name(clip_per_sample),
        lambda capped: _made(params, facts, first, capped),
        _DISPUTED,
    )


def _made(params: Params, facts: base.PublicFacts, first: int, capped: NodeCaps) -> Made:
    basis, inputs = node_caps_directions(params.projection, facts)
    classes = facts.sizes.num_classes
    widths = (inputs, params.hidden, classes) if params.encoder == "hidden" else (inputs, classes)
    sent = {"none": inputs, "hidden": params.hidden, "classes": classes}[params.encoder]
    return Made(first, capped, basis, Layout(widths), Layout((sent * (params.hops + 1), classes)))


def start(plan: Planned, rng: np.random.Generator) -> base.State[Memory]:
    descent = node_caps_descent(plan.params)
    memory = Memory(descent.start(plan.made.encoder.start(rng)), descent.start(plan.made.classifier.start(rng)))
    return base.State({"encoder": memory.encoder.parameters, "classifier": memory.classifier.parameters}, memory)


def prepare(plan: Planned, subgraph: Subgraph) -> Work:
    return node_caps.prepare_node_caps(plan.made.caps, plan.made.basis, subgraph)


def client(plan: Planned, work: Work, model: base.Model, round_: int, streams: base.PlanStreams, desk: Desk) -> base.PlanSent:
    """This round's noisy gradient sum; in round T the hops as well, which are recorded and stay here."""
    stage: _Stage = "encoder" if round_ < plan.made.first else "classifier"
    hops: dict[str, Released] = {}
    shown = hops if plan.watch.opened else None
    x = work.x if stage == "encoder" else _noisy_rows(plan, work, model, round_, streams, desk, shown)

    def gradient() -> np.ndarray:
        mask = draw_poisson_descent_mask(len(work.labels), plan.params.sampling_rate, streams.generator("batch"))
        return clip_per_sample(
            plan.made.layout(stage), model[stage], x, mask_descent_labels(work.labels, mask), plan.params.clip
        )

    return {"gradient": desk.release(stage, gradient), **hops}


def _noisy_rows(
    plan: Planned,
    work: Work,
    model: base.Model,
    round_: int,
    streams: base.PlanStreams,
    desk: Desk,
    shown: dict[str, Released] | None = None,
) -> DenseMatrix:
    """[H⁰ … Hᴷ] with the noise of round T, from the cache where it is there. shown: takes the noisy hops of round T, for an
    attack that reads all that is priced (``plan.watch.opened``).
    """
    key, first = node_caps_key(streams, model["encoder"]), plan.made.first
    if key not in work.hops or round_ == first:
        rows = [scale_to_unit_length(_sent(plan, model["encoder"], work.x))]
        for number in range(plan.params.hops):
            sums = aggregate_capped_rows(work.adjacency, rows[-1])
            rows.append(release_node_caps_hop(desk, "aggregate", _hop_name(number), sums, first, shown))
        work.hops.clear()
        work.hops[key] = DenseMatrix(np.concatenate(rows, axis=1))
    return work.hops[key]


def _hop_name(number: int) -> str:
    """Of a hop in a message, where an attack reads it."""
    return f"hop {number}"


def _sent(plan: Planned, encoder: np.ndarray, x: FeatureMatrix) -> np.ndarray:
    """What a node's neighbours will sum, before scaling: [n, h]."""
    if plan.params.encoder == "none":
        return x.forward.to_dense().cpu().numpy()
    if plan.params.encoder == "hidden":
        return public_training_hidden_units(plan.made.encoder, encoder, x)
    return centre_public_training_probabilities(layout_logits(plan.made.encoder, encoder, x))


def server(plan: Planned, state: base.State[Memory], inbox: base.PlanInbox) -> base.State[Memory]:
    """One step on the mean over the public number of nodes; the encoder is frozen at its averaged iterate."""
    first, before = plan.made.first, state.memory
    number = inbox.round if inbox.round < first else inbox.round - first
    mean = inbox.sums["gradient"] / np.float32(plan.facts.sizes.num_nodes * plan.params.sampling_rate)
    stage: _Stage = "encoder" if inbox.round < first else "classifier"
    after = node_caps_descent(plan.params).step(before.encoder if stage == "encoder" else before.classifier, mean, number)
    memory = Memory(after, before.classifier) if stage == "encoder" else Memory(before.encoder, after)
    shown = after.average if number == plan.params.steps - 1 else after.parameters
    return base.State({**state.model, stage: shown}, memory)


def predict(plan: Planned, state: base.State[Memory], graph: Graph) -> np.ndarray:
    """[n, c] scores on a public graph: the same pipeline, without noise."""
    return layout_logits(plan.made.classifier, state.model["classifier"], _in_clear(plan, state, graph))


def _in_clear(plan: Planned, state: base.State[Memory], graph: Graph) -> DenseMatrix:
    """[H⁰ … Hᴷ] of ``graph`` without noise."""
    adjacency = plan.made.caps.weights(graph.adjacency, np.arange(graph.num_nodes))
    rows = [scale_to_unit_length(_sent(plan, state.model["encoder"], node_caps_rows(graph, plan.made.basis)))]
    for _ in range(plan.params.hops):
        rows.append(scale_to_unit_length(aggregate_capped_rows(adjacency, rows[-1])))
    return DenseMatrix(np.concatenate(rows, axis=1))


def tuned(plan: Planned, state: base.State[Memory], graph: Graph, rng: np.random.Generator) -> base.State[Memory]:
    """With the classifier after a client's own steps on ``graph``, in clear (``learning.own_models``)."""
    x = _in_clear(plan, state, graph)
    own = own_models.tune_own_model(plan.made.classifier, state.model["classifier"], x, graph.labels, rng)
    return replace(state, model={**state.model, "classifier": own})


def reads_rounds(plan: Planned) -> bool:
    """Whether the rounds of a run should be kept: some message is a sum over rows that somebody who sees it knows."""
    size = max(plan.made.encoder.num_parameters, plan.made.classifier.num_parameters)
    readable = plan.made.first > 0 or plan.watch.opened
    return readable and plan.params.sampling_rate == 1 and seen.seen_rounds_worth_keeping(plan, size)


def evidence(plan: Planned, state: base.State, graph: Graph, units: np.ndarray) -> np.ndarray | None:
    """For each unit (node, −1, label) what all readable messages say; None where the rounds were not kept, or nodes are
    replaced. graph: all nodes, with every canary as in version 1.

    **Encoder** (rounds 0 … T−1): a message is a noisy sum of clipped gradients at known rows. Half of each canary's row is
    taken off, as its coin is unknown, and what is left is held against the canary's own gradient.

    **Classifier** (rounds T … 2T−1): rows are [H⁰ … Hᴷ], and the noisy hops stay with their client. A viewer of messages does
    not know these rows, so they are left unread. Where the hops are shown (``plan.watch.opened``), rows are known exactly, and
    read as before. A canary without edges has the same hops in both versions, so they tell nothing of it by themselves, and
    cost the share of the budget that they have: of μ² it shows 1 − ``hop_share`` at most
    (``benchmarks.one_run_limits --rows``).
    """
    weights = seen.seen_known_shares(plan, state, units)
    if weights is None:
        return None
    found = np.zeros(weights.size)
    hops = _hops(plan, state)
    for number, nodes in enumerate(seen.seen_groups(plan)):
        part, coins = graph.induced(nodes), seen.SeenCoins.of(nodes, units[:, 0])
        x, labels = node_caps_rows(part, plan.made.basis), torch.tensor(part.labels, device=torch_device())
        of_stage: dict[_Stage, tuple[Any, np.ndarray]] = {"encoder": (x, overlap_per_sample(x, coins.rows))}
        for round_, model, message in seen.seen_messages(plan, state, number, "gradient"):
            stage: _Stage = "encoder" if round_ < plan.made.first else "classifier"
            if stage == "classifier" and stage not in of_stage:
                if not hops:
                    break
                of_stage[stage] = _joined(plan, model, x, [hop[number] for hop in hops], coins.rows)
            rows, overlap = of_stage[stage]
            each = per_sample_gradients(plan.made.layout(stage), model[stage], rows, labels).clipped(plan.params.clip)
            coins.add(each.products([overlap], coins.rows), each.left_over_products(message, weights[nodes]))
        found[nodes[coins.rows]] = coins.ratios(seen.seen_noise(plan, "classifier", plan.params.clip))
    return found[units[:, 0]]


def _hops(plan: Planned, state: base.State) -> list[list[np.ndarray]]:
    """The noisy hops as they were released, each a list over clients; none where they stayed with their client."""
    for _, inbox in state.seen:
        if inbox.round == plan.made.first:
            return [inbox.each[name] for name in map(_hop_name, range(plan.params.hops)) if name in inbox.each]
    return []


def _joined(plan: Planned, model: base.Model, x: Any, hops: list[np.ndarray], of: np.ndarray) -> tuple[DenseMatrix, np.ndarray]:
    """(the classifier's rows of one client, products of those ``of``)."""
    parts = [scale_to_unit_length(_sent(plan, model["encoder"], x)), *(scale_to_unit_length(hop) for hop in hops)]
    rows = DenseMatrix(np.concatenate(parts, axis=1))
    return rows, overlap_per_sample(rows, of)


OFFERS: base.Offers[Params, Made, Work, Memory] = base.Offers(
    units=(Unit.NODE,),
    reads=lambda plan: base.MethodReads.PUBLIC_GRAPH,
    situations=(base.MethodSituation("inductive", settings={"steps": 4, "projection": 16}),),
    drafts=(base.MethodDraft("graph", "node", {"label": "GAP-NDP"}, "noisy sums over neighbours, bounded without a promise"),),
    tuned=tuned,
    reads_rounds=reads_rounds,
    evidence=evidence,
)
