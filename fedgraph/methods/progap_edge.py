"""ProGAP at edge level: a network that grows by one stage with every noisy hop.

Stage 0 is trained on public features and labels. In round k clients sum the unit rows of stage k − 1 with noise
(``methods.base.noisy_hops`` says who sees what), and the server trains stage k on features and all sums so far
(``learning.gap_networks``). So later sums are of rows that learnt from earlier sums, while GAP sums the rows of one encoder K
times; the price is the same.

**Guarantee.** One undirected edge changes two rows of a hop, Δ₂ = √2, and the K hops compose as Gaussians. Published (and in
the released code): Δ = 1. That code (sisaman/ProGAP at 3ccad59e) adds up Rényi divergences, while GAP composes exactly, so
noise as published is 5 to 7 % above GAP's. Training between two hops reads public values and what was released.

* Transductive: the last stage reads the kept sums; inference reads no edge.
* New nodes (protocol ``inductive-edges``): the public test graph passes all stages without noise.
"""

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from pydantic import Field

from fedgraph import learning, privacy
from fedgraph.methods import base
from fedgraph.methods.base import noisy_hops
from fedgraph.types import Graph

REFERENCE = base.method_bibtex("sajadmanesh2024progap")

prepare, client = noisy_hops.prepare, noisy_hops.client


class Params(noisy_hops.NoisyHopSettings):
    hidden: int = Field(16, ge=1, description="hidden units of a stage")
    epochs: int = Field(100, ge=1, description="Adam steps of each stage")


@dataclass(frozen=True, eq=False)
class _Memory:
    """What the server remembers."""

    seed: int  # of all stages
    sent: tuple[np.ndarray, ...] = ()  # the broadcast rows of each hop
    sums: tuple[np.ndarray, ...] = ()  # the noisy sums as received
    stages: tuple[np.ndarray, ...] = ()  # parameters of each stage so far, flat float32


Planned: TypeAlias = base.Plan[Params, noisy_hops.Made]


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """Every hop, priced."""
    return noisy_hops.plan_for("progap_edge", params, facts, budget, code="renyi")


def start(plan: Planned, rng: np.random.Generator) -> base.State[_Memory]:
    """Stage 0, from public features and labels."""
    return _grown(plan, _Memory(int(rng.integers(2**31))))


def server(plan: Planned, state: base.State[_Memory], inbox: base.PlanInbox) -> base.State[_Memory]:
    """Keeps the noisy hop, and trains the next stage on it."""
    memory = state.memory
    return _grown(plan, replace(memory, sums=(*memory.sums, noisy_hops.receive(plan, inbox))))


def _grown(plan: Planned, memory: _Memory) -> base.State[_Memory]:
    """The state with the next stage, and with its rows if another hop follows."""
    from fedgraph.learning import gap_networks  # not before it is used: it imports torch

    p = plan.params
    public = plan.made.attributes
    number = len(memory.stages)
    chooses = gap_networks.draw_validation(public.labels, np.random.default_rng(memory.seed))
    before = memory.stages[-1] if number else None
    stage = gap_networks.train_progressive_stage(before, public, memory.sums, chooses, p.hidden, p.epochs, memory.seed + number)
    memory = replace(memory, stages=(*memory.stages, stage))
    if number == p.hops:
        return base.State({}, memory)
    rows = gap_networks.progressive_rows(stage, public, memory.sums, p.hidden)
    return base.State({"rows": rows}, replace(memory, sent=(*memory.sent, rows)))


def predict(plan: Planned, state: base.State[_Memory], graph: Graph) -> np.ndarray:
    """[n, c] scores: from the kept sums (``graph`` is not read), or of the new nodes of a public ``graph``."""
    from fedgraph.learning import gap_networks  # not before it is used: it imports torch

    memory, hidden = state.memory, plan.params.hidden
    if not plan.made.new_nodes:
        return gap_networks.score_progressive_stage(memory.stages[-1], plan.made.attributes, memory.sums, hidden)
    sums: list[np.ndarray] = []
    for stage in memory.stages[:-1]:
        sums.append(learning.aggregate_hop(graph.adjacency, gap_networks.progressive_rows(stage, graph, sums, hidden)))
    return gap_networks.score_progressive_stage(memory.stages[-1], graph, sums, hidden)


OFFERS: base.Offers[Params, noisy_hops.Made, noisy_hops.Work, _Memory] = base.Offers(
    units=(privacy.Unit.EDGE,),
    reads=lambda plan: base.MethodReads.PUBLIC_GRAPH if plan.made.new_nodes else base.MethodReads.NOTHING,
    situations=(
        base.MethodSituation("transductive", settings={"epochs": 20}),
        base.MethodSituation("inductive-edges", settings={"epochs": 20}),
    ),
)
