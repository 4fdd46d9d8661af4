"""GAP at edge level: the noisy hops are released. Everything else is computed from them and from public attributes.

In round k clients sum Hᵏ⁻¹ of all nodes (public, or released), as ``methods.base.noisy_hops`` says, which also says who sees
what. After round K the server trains the classifier on [H⁰ … Hᴷ].

* Transductive: predictions are the classifier's on the cached hops; inference reads no edge.
* New nodes (protocol ``inductive-edges``): the public test graph is encoded and aggregated in clear, the same classifier reads
  it; of the private graph only the noisy hops have been used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedgraph.errors import RuntimeFailure
from fedgraph.learning.baselines.hop_network import HopNetwork
from fedgraph.learning.optimisers import public_training as public
from fedgraph.learning.propagation.aggregation import hop, unit_length
from fedgraph.methods.base import Budget, Draft, Inbox, Offers, Plan, PublicFacts, Reads, Situation, State, noisy_hops
from fedgraph.methods.base.noisy_hops import HopMemory, Made, Work
from fedgraph.methods.gap_edge.params import Params
from fedgraph.privacy.units import Unit
from fedgraph.types import Graph

REFERENCE = """@inproceedings{sajadmanesh2023gap,
  title = {{GAP}: Differentially Private Graph Neural Networks with Aggregation Perturbation},
  author = {Sajadmanesh, Sina and Shamsabadi, Ali Shahin and Bellet, Aur{\\'e}lien and Gatica-Perez, Daniel},
  booktitle = {USENIX Security Symposium}, year = {2023}}"""

ALL_HOPS = (
    "All hops are read: the encoder saw the labels on which their number would be chosen. Rows of the classes out of fold "
    "(folds: 2 or more) are chosen on honestly, and neighbours count for more."
)


prepare, client = noisy_hops.prepare, noisy_hops.client


@dataclass(frozen=True, eq=False, kw_only=True)
class Memory(HopMemory):
    """Of the server: released sums and what followed from them.

    seed: of the classifier. encoder: its parameters. inputs: [H⁰ …], float32 [n, h] each. classifier, scores [n, c]: once
    every hop is there.
    """

    seed: int
    encoder: np.ndarray
    inputs: tuple[np.ndarray, ...]
    classifier: public.Chosen | HopNetwork | None = None
    scores: np.ndarray | None = None


def plan(params: Params, facts: PublicFacts, budget: Budget) -> Plan[Params, Made]:
    """Every hop, priced."""
    unread = params.hops and params.depth == "chosen" and params.in_sample
    return noisy_hops.plan_of("gap_edge", params, facts, budget, (ALL_HOPS,) if unread else ())


def _encoder(params: Params) -> public.Encoder:
    return public.Encoder(params.encoder, params.hidden, params.folds, public.Fitting(params.epochs, 0.01, 5e-4))


def start(plan: Plan[Params, Made], rng: np.random.Generator) -> State[Memory]:
    """The encoder, from public features and labels."""
    encoded = public.encode(plan.made.attributes, _encoder(plan.params))
    memory = Memory(seed=int(rng.integers(2**63)), encoder=encoded.parameters, inputs=(encoded.own,), sent=(encoded.message,))
    return _after_hop(plan, memory, encoded.message)


def server(plan: Plan[Params, Made], state: State[Memory], inbox: Inbox) -> State[Memory]:
    """Keep the noisy hop, broadcast it for the next one, and after the last train the classifier."""
    sums = noisy_hops.received(plan, inbox)
    rows = unit_length(sums)
    m = state.memory
    return _after_hop(plan, replace(m, inputs=(*m.inputs, rows), sent=(*m.sent, rows), sums=(*m.sums, sums)), rows)


def predict(plan: Plan[Params, Made], state: State[Memory], graph: Graph) -> np.ndarray:
    """[n, c] scores: from the cached hops (``graph`` is not read), or of the new nodes of a public ``graph``."""
    memory = state.memory
    if memory.classifier is None or memory.scores is None:
        raise RuntimeFailure("gap_edge was asked for predictions before its last hop")
    if not plan.made.new_nodes:
        return memory.scores
    inputs = [public.rows_of(memory.encoder, _encoder(plan.params), graph)]
    for _ in range(plan.params.hops):
        inputs.append(unit_length(hop(graph.adjacency, inputs[-1])))
    return _scores(memory.classifier, inputs)


def _after_hop(plan: Plan[Params, Made], memory: Memory, rows: np.ndarray) -> State[Memory]:
    """The next broadcast, or the trained classifier and its scores when every hop is there."""
    p, inputs = plan.params, list(memory.inputs)
    if len(inputs) <= p.hops:
        return State({"rows": rows}, memory)
    labels, rng = plan.made.attributes.labels, np.random.default_rng(memory.seed)
    chosen: HopNetwork | public.Chosen
    if p.encoder == "published":
        from fedgraph.learning.baselines import gap_networks  # not before it is used: it imports torch

        chosen = gap_networks.classifier(inputs, labels, p.hidden, plan.facts.sizes.num_classes, p.epochs, rng)
    else:
        widths = (*((p.classifier,) if p.classifier else ()), plan.facts.sizes.num_classes)
        chosen = public.classifier(inputs, labels, widths, public.Fitting(2 * p.epochs, 0.02, 1e-3), p.chooses, rng)
    return State({}, replace(memory, classifier=chosen, scores=_scores(chosen, inputs)))


def _scores(chosen: HopNetwork | public.Chosen, inputs: Sequence[np.ndarray]) -> np.ndarray:
    """[n, c]."""
    if isinstance(chosen, public.Chosen):
        return chosen.scores(inputs)
    from fedgraph.learning.baselines import gap_networks  # not before it is used: it imports torch

    return gap_networks.scores(chosen, inputs)


_NO_EDGES = "reads no edge: a private method has to be better than this"
OFFERS: Offers[Params, Made, Work, Memory] = Offers(
    kind="classifier",
    units=(Unit.EDGE,),
    reads=lambda plan: Reads.PUBLIC_GRAPH if plan.made.new_nodes else Reads.NOTHING,
    situations=(Situation("transductive"), Situation("inductive-edges")),
    reads_stand_ins=True,
    drafts=(
        Draft("graph", "edge", {"label": "GAP-EDP"}, "noisy sums over neighbours; features and labels are public"),
        Draft("graph", "edge", {"hops": 0, "label": "no edges"}, _NO_EDGES, compared=True),
        Draft("federation", "edge", {"label": "GAP-EDP", "folds": 2}, "noisy sums over neighbours", quick={"epochs": 30}),
        Draft(
            "federation", "edge", {"label": "no edges", "hops": 0, "folds": 2}, _NO_EDGES, compared=True, quick={"epochs": 30}
        ),
    ),
    evidence=noisy_hops.evidence,
)
