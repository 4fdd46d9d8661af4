"""GAP at edge level: the noisy hops are released. Everything else is computed from them and from public attributes.

``start`` encodes all nodes from public features and labels: H⁰. In round k = 1 … K clients sum Hᵏ⁻¹ over neighbours and release
the noisy sums (``methods.base.noisy_hops``, which also says who sees what); the server scales their rows to unit length, Hᵏ,
and broadcasts them for the next hop. After round K it trains the classifier on [own, H¹ … Hᴷ]. ``own`` is the encoder's row of
the node itself: H⁰, but with ``encoder: classes`` a labelled node's row is that of a network that did not train on its label
(``learning.public_training``).

* Transductive: the classifier reads the kept hops; inference reads no edge.
* New nodes (protocol ``inductive-edges``): the public test graph is encoded and its hops are summed without noise, and the same
  classifier reads them; of the private graph only the noisy hops have been used.
"""

from dataclasses import dataclass, replace
from typing import Literal, Self, TypeAlias

import numpy as np
from pydantic import Field, model_validator

from fedgraph import learning, privacy
from fedgraph.errors import RuntimeFailure
from fedgraph.learning import public_training as public
from fedgraph.methods import base
from fedgraph.methods.base import noisy_hops
from fedgraph.types import Graph

REFERENCE = base.method_bibtex("sajadmanesh2023gap")


class Params(noisy_hops.NoisyHopSettings):
    encoder: Literal["classes", "published", "hidden", "none"] = Field(
        "classes",
        description="what is aggregated; published: networks and training of GAP's released code (16 units, depth: all)",
    )
    hidden: int = Field(64, ge=1, description="hidden units of the encoder (published: of the classifier too)")
    classifier: int = Field(32, ge=0, description="hidden units of the classifier; 0: logistic regression")
    epochs: int = Field(
        100, ge=1, description="Adam steps of the encoder; the classifier takes twice as many (published: as many)"
    )
    depth: Literal["chosen", "all"] = Field(
        "chosen", description="hops read: chosen on public labels (folds > 1, or encoder none; otherwise all), or all"
    )
    folds: int = Field(
        5,
        ge=1,
        description="folds of the out-of-fold rows (classes); 1: none, the classifier then trusts rows that saw its labels",
    )

    @model_validator(mode="after")
    def _published_reads_all(self) -> Self:
        if self.encoder == "published" and self.depth != "all":
            raise ValueError("encoder: published trains on every hop, as the released code does; write depth: all with it")
        return self

    @property
    def chooses(self) -> bool:
        """Whether the number of hops is chosen on held-out labels: not if own rows saw their labels: hop 0 would always win."""
        return self.depth == "chosen" and not self.in_sample

    @property
    def in_sample(self) -> bool:
        """Whether own rows saw their labels in training (as under ``published``, which reads all hops anyway)."""
        return self.encoder == "hidden" or (self.encoder == "classes" and self.folds == 1)


_ALL_HOPS = (
    "All hops are read: the encoder saw the labels on which their number would be chosen. Rows of the classes out of fold "
    "(folds: 2 or more) are chosen on honestly, and neighbours count for more."
)


prepare, client = noisy_hops.prepare, noisy_hops.client
_Classifier: TypeAlias = public.PublicTrainingClassifier | learning.HopNetworkShape


@dataclass(frozen=True, eq=False)
class _Memory:
    """What the server remembers."""

    seed: int  # of the classifier
    encoded: public.PublicTrainingEncoded  # the encoder, and its rows of all nodes
    sums: tuple[np.ndarray, ...] = ()  # noisy sums as received, [n, h] each
    classifier: _Classifier | None = None  # None before the last hop

    @property
    def sent(self) -> list[np.ndarray]:
        """H⁰ and the hops so far; Hᴷ is broadcast to nobody."""
        return [self.encoded.message, *map(learning.scale_to_unit_length, self.sums)]


Planned: TypeAlias = base.Plan[Params, noisy_hops.Made]


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """Every hop, with its noise."""
    choice_refused = params.hops and params.depth == "chosen" and params.in_sample
    return noisy_hops.plan_for("gap_edge", params, facts, budget, (_ALL_HOPS,) if choice_refused else ())


def _encoder(params: Params) -> public.PublicTrainingEncoder:
    how = public.PublicTrainingSteps(params.epochs, 0.01, 5e-4)
    return public.PublicTrainingEncoder(params.encoder, params.hidden, params.folds, how)


def start(plan: Planned, rng: np.random.Generator) -> base.State[_Memory]:
    """The encoder, from public features and labels."""
    encoded = public.encode(plan.made.attributes, _encoder(plan.params))
    return _after_hop(plan, _Memory(int(rng.integers(2**63)), encoded))


def server(plan: Planned, state: base.State[_Memory], inbox: base.PlanInbox) -> base.State[_Memory]:
    """Keeps the noisy hop; broadcasts it for the next one, or after the last one trains the classifier."""
    return _after_hop(plan, replace(state.memory, sums=(*state.memory.sums, noisy_hops.receive(plan, inbox))))


def _after_hop(plan: Planned, memory: _Memory) -> base.State[_Memory]:
    p, sent = plan.params, memory.sent
    if len(sent) <= p.hops:  # a hop is still to come
        return base.State({"rows": sent[-1]}, memory)
    inputs, labels, classes = [memory.encoded.own, *sent[1:]], plan.made.attributes.labels, plan.facts.num_classes
    rng, widths = np.random.default_rng(memory.seed), (*((p.classifier,) if p.classifier else ()), classes)
    chosen: _Classifier
    if p.encoder == "published":
        from fedgraph.learning import gap_networks  # not before it is used: it imports torch

        chosen = gap_networks.train_classifier(inputs, labels, p.hidden, classes, p.epochs, rng)
    else:
        how = public.PublicTrainingSteps(2 * p.epochs, 0.02, 1e-3)
        chosen = public.classify(inputs, labels, widths, how, p.chooses, rng)
    return base.State({}, replace(memory, classifier=chosen))


def predict(plan: Planned, state: base.State[_Memory], graph: Graph) -> np.ndarray:
    """[n, c] scores: from the kept hops (``graph`` is not read), or of the new nodes of a public ``graph``."""
    memory, classifier = state.memory, state.memory.classifier
    if classifier is None:
        raise RuntimeFailure("gap_edge was asked for predictions before its last hop")
    inputs = [memory.encoded.own, *memory.sent[1:]]
    if plan.made.new_nodes:
        inputs = [public.encode_after(memory.encoded.parameters, _encoder(plan.params), graph)]
        for _ in range(plan.params.hops):
            inputs.append(learning.scale_to_unit_length(learning.aggregate_hop(graph.adjacency, inputs[-1])))
    if isinstance(classifier, public.PublicTrainingClassifier):
        return classifier.scores(inputs)
    from fedgraph.learning import gap_networks  # not before it is used: it imports torch

    return gap_networks.score(classifier, inputs)


OFFERS: base.Offers[Params, noisy_hops.Made, noisy_hops.Work, _Memory] = base.Offers(
    units=(privacy.Unit.EDGE,),
    reads=lambda plan: base.MethodReads.PUBLIC_GRAPH if plan.made.new_nodes else base.MethodReads.NOTHING,
    situations=(base.MethodSituation("transductive"), base.MethodSituation("inductive-edges")),
)
