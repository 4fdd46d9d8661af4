"""GAP at node level: DP encoder (rounds 0 … T−1), noisy hops that stay with the client, DP classifier (rounds T … 2T−1).

Node j changes its own clipped gradient in each stage, and by a hop the rows of others. These rows get noise as if they were
released, but stay with their client: row j enters only j's own gradient and j's own messages in the next hop (PRIVACY.md §5).
How much j changes the rows of others is bounded for every graph by weights of edges that fall with degrees (``node_caps``); as
published the bound is √D, which holds only if no node has more than D neighbours. A restarted client makes the same noisy hops
from the same random stream, so nothing new is learnt.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from pydantic import Field

from fedgraph import learning, privacy
from fedgraph.learning import layouts, scale_to_unit_length
from fedgraph.methods import base
from fedgraph.methods.base import node_caps
from fedgraph.types import Graph, Subgraph

REFERENCE = base.method_bibtex("sajadmanesh2023gap")


_DISPUTED = (
    "GAP's node level is publicly disputed: Xiang, Wang & Wang (IEEE S&P 2024, arXiv 2311.06888) find privacy flaws in it, and "
    "show that private embeddings of single nodes cannot be useful. Here nobody is shown a node's own row."
)

_Stage = Literal["encoder", "classifier"]


class Params(node_caps.NodeCapSettings):
    encoder: Literal["classes", "hidden", "none"] = Field("classes", description="what is aggregated")
    hidden: int = Field(64, ge=1, description="hidden units of the encoder")
    steps: int = Field(60, ge=1, description="gradient steps of the encoder, and again of the classifier")
    learning_rate: float = Field(8.0, gt=0, description="step size on the mean clipped gradient")
    momentum: ClassVar[float] = 0.9  # heavy ball, at the server
    averaged: ClassVar[float] = 0.5  # share of the last iterates that is averaged


@dataclass(frozen=True, eq=False)
class _Made:
    """What the plan made of public facts."""

    first: int  # T, rounds of the encoder; 0: there is none
    caps: node_caps.NodeCaps  # the weights of edges in a hop
    basis: np.ndarray | None  # public directions [d, k] that features are projected on, or None
    layouts: Mapping[_Stage, learning.Layout]  # layout of the parameters of each stage

    def stage(self, round_: int) -> _Stage:
        """The stage of a round."""
        return "encoder" if round_ < self.first else "classifier"


Planned: TypeAlias = base.Plan[Params, _Made]
_Memory: TypeAlias = Mapping[_Stage, learning.Descended]  # how far the descent of each stage is


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """Noise multipliers of both stages and of the hops, and every release."""
    first = 0 if params.encoder == "none" else params.steps

    def make(capped: node_caps.NodeCaps) -> _Made:
        basis, inputs = node_caps.directions_of(params.projection, facts)
        classes = facts.num_classes
        widths = (inputs, params.hidden, classes) if params.encoder == "hidden" else (inputs, classes)
        sent = {"none": inputs, "hidden": params.hidden, "classes": classes}[params.encoder]
        layouts: dict[_Stage, learning.Layout] = {
            "encoder": learning.Layout(widths),
            "classifier": learning.Layout((sent * (params.hops + 1), classes)),
        }
        return _Made(first, capped, basis, layouts)

    gradients = {"classifier": range(first, first + params.steps), "encoder": range(first)}
    hops, kernel = (("aggregate", first, params.hops),), privacy.sensitivity.kernel_name(learning.per_sample.clipped_sum)
    return node_caps.plan_for("gap_node", params, facts, budget, gradients, hops, kernel, make, _DISPUTED)


def start(plan: Planned, rng: np.random.Generator) -> base.State[_Memory]:
    descent = node_caps.descent_of(plan.params)
    memory = {stage: descent.start(layout.start(rng)) for stage, layout in plan.made.layouts.items()}
    return base.State({stage: descended.parameters for stage, descended in memory.items()}, memory)


rows_of = node_caps.rows_of


def prepare(plan: Planned, subgraph: Subgraph) -> node_caps.Work:
    return node_caps.prepare(plan.made.caps, plan.made.basis, subgraph)


def client(
    plan: Planned, work: node_caps.Work, model: base.Model, round_: int, streams: base.PlanStreams, desk: privacy.Desk
) -> base.PlanSent:
    """The noisy sum of clipped gradients; in round T also the noisy hops, which are recorded and stay at the client."""
    stage, shown = plan.made.stage(round_), dict[str, privacy.Released]()
    x: learning.TorchMatrix = work.x
    if stage == "classifier":  # x is [H⁰ … Hᴷ] with the noise of round T, from the cache if it is there
        key, first = node_caps.key(streams, model["encoder"]), plan.made.first
        if key not in work.hops or round_ == first:
            rows = [scale_to_unit_length(sent_rows(plan, model["encoder"], work.x))]
            for number in range(plan.params.hops):
                sums = node_caps.aggregate_capped_rows(work.adjacency, rows[-1])
                rows.append(node_caps.release_hop(desk, "aggregate", hop_name(number), sums, first, shown))
            work.hops.clear()
            work.hops[key] = learning.DenseMatrix(np.concatenate(rows, axis=1))
        x = work.hops[key]

    def gradient() -> np.ndarray:
        mask = learning.descents.draw_poisson_mask(len(work.labels), plan.params.sampling_rate, streams.generator("batch"))
        known = learning.descents.mask_labels(work.labels, mask)
        return learning.per_sample.clipped_sum(plan.made.layouts[stage], model[stage], x, known, plan.params.clip)

    return {"gradient": desk.release(stage, gradient), **(shown if plan.watch.opened else {})}


def hop_name(number: int) -> str:
    """The part of a message that shows hop ``number`` to an attack."""
    return f"hop {number}"


def sent_rows(plan: Planned, encoder: np.ndarray, x: learning.FeatureMatrix) -> np.ndarray:
    """[n, h], the encoder's rows, which neighbours sum after scaling."""
    if plan.params.encoder == "none":
        return x.forward.to_dense().cpu().numpy()
    if plan.params.encoder == "hidden":
        return learning.public_training.hidden_units(plan.made.layouts["encoder"], encoder, x)
    return learning.public_training.centred_probabilities(layouts.logits(plan.made.layouts["encoder"], encoder, x))


def server(plan: Planned, state: base.State[_Memory], inbox: base.PlanInbox) -> base.State[_Memory]:
    """One step along the mean over the public number of nodes; at its end a stage takes its averaged iterate."""
    stage, number = plan.made.stage(inbox.round), inbox.round % plan.params.steps
    mean = inbox.sums["gradient"] / np.float32(plan.facts.num_nodes * plan.params.sampling_rate)
    after = node_caps.descent_of(plan.params).step(state.memory[stage], mean, number)
    shown = after.average if number == plan.params.steps - 1 else after.parameters
    return base.State({**state.model, stage: shown}, {**state.memory, stage: after})


def predict(plan: Planned, state: base.State[_Memory], graph: Graph) -> np.ndarray:
    """[n, c] scores of the nodes of a public graph, whose hops have no noise."""
    return layouts.logits(plan.made.layouts["classifier"], state.model["classifier"], _in_clear(plan, state, graph))


def _in_clear(plan: Planned, state: base.State[_Memory], graph: Graph) -> learning.DenseMatrix:
    """[H⁰ … Hᴷ] of ``graph`` without noise."""
    adjacency = plan.made.caps.weights(graph.adjacency, np.arange(graph.num_nodes))
    own = node_caps.rows_of(graph, plan.made.basis)
    rows = [scale_to_unit_length(sent_rows(plan, state.model["encoder"], own))]
    for _ in range(plan.params.hops):
        rows.append(scale_to_unit_length(node_caps.aggregate_capped_rows(adjacency, rows[-1])))
    return learning.DenseMatrix(np.concatenate(rows, axis=1))


def _tuned(plan: Planned, state: base.State[_Memory], graph: Graph, rng: np.random.Generator) -> base.State[_Memory]:
    """The state with the classifier after a client's own steps on ``graph``, in clear (``learning.own_models``)."""
    x = _in_clear(plan, state, graph)
    own = learning.own_models.tune(plan.made.layouts["classifier"], state.model["classifier"], x, graph.labels, rng)
    return replace(state, model={**state.model, "classifier": own})


OFFERS: base.Offers[Params, _Made, node_caps.Work, _Memory] = base.Offers(
    units=(privacy.Unit.NODE,),
    reads=lambda plan: base.MethodReads.PUBLIC_GRAPH,
    situations=(base.MethodSituation("inductive", settings={"steps": 4, "projection": 16}),),
    tuned=_tuned,
)
