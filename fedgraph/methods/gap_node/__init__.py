"""GAP at node level: DP encoder (rounds 0 … T−1), hops kept at the client, DP classifier (rounds T … 2T−1).

What touches node j: its own clipped gradient in either stage, and through a hop the rows of others, which get noise as if
they were released, but stay with their client: row j feeds j's own gradient and j's own messages at the next hop, nothing
else (PRIVACY.md §5). How much j changes in the rows of others is bounded for every graph by weights of edges that fall with
degrees (``node_caps``); as published it is √D, which only holds if no node has more than D neighbours. A client that is
restarted makes the same noisy hops again from the same random stream: same input, same noise, so nothing new is learnt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from fedgraph.learning import fine_tuning
from fedgraph.learning.clipping.per_sample import clipped_gradient_sum
from fedgraph.learning.late import torch
from fedgraph.learning.layers.dense import DenseMatrix
from fedgraph.learning.layers.models import Layout, logits
from fedgraph.learning.layers.sparse import device
from fedgraph.learning.optimisers.dp_training import Descended, Descent, masked, poisson_mask
from fedgraph.learning.propagation.aggregation import unit_length
from fedgraph.learning.views.projection import public_basis
from fedgraph.methods import base
from fedgraph.methods.base.node_caps import Caps, Hops, aggregate, plan_of
from fedgraph.methods.gap_node.evidence import evidence, reads_rounds
from fedgraph.methods.gap_node.params import Params
from fedgraph.methods.gap_node.rows import Made, Stage, Work, noisy_rows, rows_of, sent
from fedgraph.privacy.desk import Desk, Released
from fedgraph.privacy.sensitivity import kernel_name
from fedgraph.privacy.units import Unit
from fedgraph.types import Graph, Subgraph

REFERENCE = """@inproceedings{sajadmanesh2023gap,
  title = {{GAP}: Differentially Private Graph Neural Networks with Aggregation Perturbation},
  author = {Sajadmanesh, Sina and Shamsabadi, Ali Shahin and Bellet, Aur{\\'e}lien and Gatica-Perez, Daniel},
  booktitle = {USENIX Security Symposium}, year = {2023}}"""


DISPUTED = (
    "GAP's node level is publicly disputed: Xiang, Wang & Wang (IEEE S&P 2024, arXiv 2311.06888) find privacy flaws in it, and "
    "show that private embeddings of single nodes cannot be useful. Here nobody is shown a node's own row."
)


@dataclass(frozen=True, eq=False)
class Memory:
    """Of the server: how far the descent of either stage is."""

    encoder: Descended
    classifier: Descended


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> base.Plan[Params, Made]:
    """Noise multipliers of both stages and of the hops, and every release."""
    first = 0 if params.encoder == "none" else params.steps
    return plan_of(
        "gap_node",
        params,
        facts,
        budget,
        {"classifier": range(first, first + params.steps), "encoder": range(first)},
        (Hops("aggregate", first, params.hops),),
        kernel_name(clipped_gradient_sum),
        lambda capped: _made(params, facts, first, capped),
        DISPUTED,
    )


def _made(params: Params, facts: base.PublicFacts, first: int, capped: Caps) -> Made:
    basis = (
        public_basis(facts.public.graph, params.projection) if params.projection and facts.public.graph is not None else None
    )
    inputs = facts.sizes.num_features if basis is None else basis.shape[1]
    widths = (
        (inputs, params.hidden, facts.sizes.num_classes) if params.encoder == "hidden" else (inputs, facts.sizes.num_classes)
    )
    sent = {"none": inputs, "hidden": params.hidden, "classes": facts.sizes.num_classes}[params.encoder]
    return Made(first, capped, basis, Layout(widths), Layout((sent * (params.hops + 1), facts.sizes.num_classes)))


def start(plan: base.Plan[Params, Made], rng: np.random.Generator) -> base.State[Memory]:
    descent = _descent(plan)
    memory = Memory(descent.start(plan.made.encoder.start(rng)), descent.start(plan.made.classifier.start(rng)))
    return base.State({"encoder": memory.encoder.parameters, "classifier": memory.classifier.parameters}, memory)


def prepare(plan: base.Plan[Params, Made], subgraph: Subgraph) -> Work:
    graph = subgraph.graph
    rule = plan.made.caps
    adjacency = rule.weights(graph.adjacency, subgraph.nodes, subgraph.client)
    return Work(rows_of(plan, graph), torch.tensor(graph.labels, device=device()), adjacency)


def client(
    plan: base.Plan[Params, Made], work: Work, model: Mapping[str, np.ndarray], round_: int, streams: base.Streams, desk: Desk
) -> dict[str, Released]:
    """This round's noisy gradient sum; in round T the hops as well, which are recorded and stay here."""
    stage: Stage = "encoder" if round_ < plan.made.first else "classifier"
    hops: dict[str, Released] = {}
    shown = hops if plan.watch.opened else None
    x = work.x if stage == "encoder" else noisy_rows(plan, work, model, round_, streams, desk, shown)

    def gradient() -> np.ndarray:
        mask = poisson_mask(len(work.labels), plan.params.sampling_rate, streams.generator("batch"))
        return clipped_gradient_sum(plan.made.layout(stage), model[stage], x, masked(work.labels, mask), plan.params.clip)

    return {"gradient": desk.release(stage, gradient), **hops}


def server(plan: base.Plan[Params, Made], state: base.State[Memory], inbox: base.Inbox) -> base.State[Memory]:
    """One step on the mean over the public number of nodes; the encoder is frozen at its averaged iterate."""
    first, before = plan.made.first, state.memory
    number = inbox.round if inbox.round < first else inbox.round - first
    mean = inbox.sums["gradient"] / np.float32(plan.facts.sizes.num_nodes * plan.params.sampling_rate)
    stage: Stage = "encoder" if inbox.round < first else "classifier"
    after = _descent(plan).step(before.encoder if stage == "encoder" else before.classifier, mean, number)
    memory = Memory(after, before.classifier) if stage == "encoder" else Memory(before.encoder, after)
    shown = after.average if number == plan.params.steps - 1 else after.parameters
    return base.State({**state.model, stage: shown}, memory)


def predict(plan: base.Plan[Params, Made], state: base.State[Memory], graph: Graph) -> np.ndarray:
    """[n, c] scores on a public graph: the same pipeline, without noise."""
    return logits(plan.made.classifier, state.model["classifier"], _in_clear(plan, state, graph))


def _in_clear(plan: base.Plan[Params, Made], state: base.State[Memory], graph: Graph) -> DenseMatrix:
    """[H⁰ … Hᴷ] of ``graph`` without noise."""
    adjacency = plan.made.caps.weights(graph.adjacency, np.arange(graph.num_nodes))
    rows = [unit_length(sent(plan, state.model["encoder"], rows_of(plan, graph)))]
    for _ in range(plan.params.hops):
        rows.append(unit_length(aggregate(adjacency, rows[-1])))
    return DenseMatrix(np.concatenate(rows, axis=1))


def tuned(
    plan: base.Plan[Params, Made], state: base.State[Memory], graph: Graph, rng: np.random.Generator
) -> base.State[Memory]:
    """With the classifier after a client's own steps on ``graph``, in clear (``learning.fine_tuning``)."""
    x = _in_clear(plan, state, graph)
    own = fine_tuning.tuned(plan.made.classifier, state.model["classifier"], x, graph.labels, rng)
    return replace(state, model={**state.model, "classifier": own})


def _descent(plan: base.Plan[Params, Made]) -> Descent:
    p = plan.params
    return Descent(p.learning_rate, p.momentum, p.steps, p.averaged)


OFFERS: base.Offers[Params, Made, Work, Memory] = base.Offers(
    kind="classifier",
    units=(Unit.NODE,),
    reads=lambda plan: base.Reads.PUBLIC_GRAPH,
    situations=(base.Situation("inductive", settings={"steps": 4, "projection": 16}),),
    drafts=(base.Draft("graph", "node", {"label": "GAP-NDP"}, "noisy sums over neighbours, bounded without a promise"),),
    tuned=tuned,
    reads_rounds=reads_rounds,
    evidence=evidence,
)
