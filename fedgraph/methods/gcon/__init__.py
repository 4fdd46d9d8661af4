"""GCON: a graph convolution without noise, and a linear classifier with noise in its objective.

    X = clip(encoder(features)),  Z = (1/s)[Z_{m₁} ⊕ … ⊕ Z_{m_s}],  Θ = argmin F(Θ; Z, Y) + (Λ′/2)‖Θ − Θ₀‖² + ⟨B, Θ⟩/n₁

Z is the capped walk with restart (``learning.propagation.capped_walk``), B has columns of Gamma-distributed radius
(``mechanisms.objective_perturbation``; constants in ``privacy.claims.gcon``). With ``noise: gaussian`` its entries are normal,
and several times smaller where rows are wide (own proof: ``accounting.gaussian_objective``). One release per client: Θ. Edges
are private, features and labels public, so the encoder is free. Published and provable ε agree (Theorem 1), for the exact
minimiser; the distance to it is noised and charged. Θ₀ = 0 as published (prior: 0); by default Θ is pulled towards reading the
encoder's class scores as they are, which is public, so a small ε costs little (c_θ grows by ‖Θ₀‖; the rest is as proven).

* Inference on the private graph: a node reads its own edges, one step Z′ = (1−α)ÃX + αX for every m > 0.
* Inference on a public test graph (protocol ``inductive-edges``): the whole walk.
* ``release: nothing``: Θ = Θ₀, ε = 0: own-edge inference alone, which shows what a release is worth.

Federated, who sees what: the server sees each client's Θ (or their weighted sum), clients see X and nothing else. Each client
perturbs its own objective on its own edges (parallel composition: an inner edge is held once); the server averages by labelled
nodes. A client with few of them needs more noise and a larger Λ. Edges between clients are dropped, or
(``cut_edges: protected``) in both clients' walks, where each changes one row: an end costs at most (ε/2, δ/2) at its client.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import DataError, ScenarioError
from fedgraph.learning.propagation.aggregation import with_cut
from fedgraph.learning.propagation.capped_walk import capped_walk, open_walk, walked
from fedgraph.methods import base
from fedgraph.methods.gcon import releases as release
from fedgraph.methods.gcon import rows as encoding
from fedgraph.methods.gcon.evidence import of_minimiser
from fedgraph.methods.gcon.params import Made, Params
from fedgraph.methods.gcon.rows import Memory
from fedgraph.privacy.claims import gcon as claim
from fedgraph.privacy.desk import Desk, Released
from fedgraph.privacy.settle import Guarantee as Guarantee
from fedgraph.privacy.units import Assumption, Relation, Unit
from fedgraph.privacy.units import Protection as Protection
from fedgraph.types import Graph, Subgraph

REFERENCE = """@inproceedings{wei2024gcon,
  title = {{GCON}: Differentially Private Graph Convolutional Network via Objective Perturbation},
  author = {Wei, Jianxin and Zhu, Yizheng and Xiao, Xiaokui and Bao, Ergute and Yang, Yin and Cai, Kuntai and Ooi, Beng Chin},
  journal = {arXiv preprint arXiv:2407.05034}, year = {2024}}"""


@dataclass(frozen=True, eq=False)
class Work:
    """A client's Ã, to whom it leads outside (None: cut edges are dropped), its rows' global ids, which are labelled."""

    walk: sp.csr_array
    away: sp.csr_array | None
    nodes: np.ndarray
    labelled: np.ndarray


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> base.Plan[Params, Made]:
    """One perturbed minimiser per client that has labelled nodes."""
    if facts.public.attributes is None:
        raise ScenarioError("gcon needs public features and labels: set the task's protocol: transductive, or inductive-edges")
    own_edges = params.inference == "own-edges" or (params.inference == "auto" and facts.public.graph is None)
    if not own_edges and facts.public.graph is None:
        raise ScenarioError(
            "inference: public needs a public test graph: set protocol: inductive-edges, or inference: own-edges"
        )
    labels = [facts.public.attributes.labels[nodes] for nodes in facts.membership.nodes]
    labels = [known[known >= 0] for known in labels]
    total = sum(known.size for known in labels)
    if not total:
        raise DataError("gcon trains on labelled nodes, and no node has a label")
    trained = params.release == "trained"
    releases = tuple(
        release.minimiser(params, facts, budget, client, known, known.size / total)
        for client, known in enumerate(labels)
        if known.size and trained
    )
    assumed = (
        Assumption.COUNTS_PUBLIC,
        Assumption.FEATURES_LABELS_PUBLIC,
        Assumption.SPLIT_PUBLIC,
        Assumption.UNTUNED,
        *((Assumption.OWN_EDGES_KNOWN,) if own_edges else (Assumption.TEST_GRAPH_PUBLIC,)),
    )
    reads_edges = trained and claim.psi(params.steps, params.restart, params.cap) > 0
    return base.Plan(
        method="gcon",
        params=params,
        facts=facts,
        guarantee=base.guarantee_of(
            facts, Relation.EDGE_UNDIRECTED, assumed, budget.delta, per_end=facts.membership.cut_edges_shared
        ),
        schedule=base.Schedule(rounds=int(trained), releases=releases, min_clients=1),
        made=Made(facts.public.attributes, own_edges, facts.public.graph is None),
        epsilon_published=(budget.epsilon if reads_edges else 0.0) if budget.private and params.noise == "gamma" else None,
    )


def start(plan: base.Plan[Params, Made], rng: np.random.Generator) -> base.State[Memory]:
    """The encoder's rows X of all nodes, of norm at most 1; no edge is read."""
    rows, encoder = encoding.of_public(plan.made.attributes, plan.params)
    if plan.params.release == "nothing":
        return base.State({"theta": release.prior(plan.params, plan.facts.sizes.num_classes)}, Memory(encoder, rows))
    return base.State({"rows": rows}, Memory(encoder, rows))


def prepare(plan: base.Plan[Params, Made], subgraph: Subgraph) -> Work:
    labels = plan.made.attributes.labels[subgraph.nodes]
    own, nodes, labelled = subgraph.graph.adjacency, subgraph.nodes, np.flatnonzero(labels >= 0)
    if not plan.facts.membership.cut_edges_shared or subgraph.cut is None:
        return Work(capped_walk(own, plan.params.cap), None, nodes, labelled)
    outside = with_cut(sp.csr_array(own.shape, dtype=np.int8), nodes, subgraph.cut, plan.facts.sizes.num_nodes)
    return Work(*open_walk(own, outside, plan.params.cap), nodes, labelled)


def client(
    plan: base.Plan[Params, Made], work: Work, model: Mapping[str, np.ndarray], round_: int, streams: base.Streams, desk: Desk
) -> dict[str, Released]:
    """The perturbed minimiser on this client's labelled rows, times its share of the labelled nodes."""
    if not any(r.client == desk.client for r in plan.schedule.releases):
        return {}

    def rows() -> np.ndarray:
        inflow = 0.0 if work.away is None else work.away @ model["rows"]
        own = model["rows"][work.nodes]
        return walked(work.walk, own, plan.params.steps, plan.params.restart, inflow)[work.labelled]

    return {"theta": desk.release("theta", rows)}


def server(plan: base.Plan[Params, Made], state: base.State[Memory], inbox: base.Inbox) -> base.State[Memory]:
    """The average: weights are public and already inside the messages."""
    return base.State({"theta": inbox.sums["theta"]}, state.memory)


def reads_rounds(plan: base.Plan[Params, Made]) -> bool:
    """Whether the one round should be kept: a server that sees each client's Θ."""
    return plan.guarantee.protection.viewer.sees_messages and plan.schedule.rounds > 0


def evidence(plan: base.Plan[Params, Made], state: base.State[Memory], graph: Graph, pairs: np.ndarray) -> np.ndarray | None:
    """What the objective's noise, taken back out of Θ, says of each pair (``evidence``)."""
    return of_minimiser(plan, state, graph, pairs)


def predict(plan: base.Plan[Params, Made], state: base.State[Memory], graph: Graph) -> np.ndarray:
    """[n, c] scores: Z·Θ, by one step over each node's own edges, or by the whole walk on a public graph."""
    params, alpha, steps = plan.params, plan.params.restart, plan.params.steps
    rows = state.memory.rows
    if not plan.made.same_nodes:
        rows = encoding.of_new(state.memory.encoder, params, graph)
    if plan.made.own_edges:
        alpha = alpha if params.inference_restart == "same" else params.inference_restart
        steps = tuple(min(m, 1) for m in steps)
    return walked(capped_walk(graph.adjacency, params.cap), rows, steps, alpha) @ state.model["theta"]


def reads(plan: base.Plan[Params, Made]) -> base.Reads | None:
    """What an answer reads; new nodes that read their own edges to one another are no case of ``Reads``."""
    if not plan.made.own_edges:
        return base.Reads.PUBLIC_GRAPH
    return base.Reads.OWN_EDGES if plan.made.same_nodes else None


OFFERS: base.Offers[Params, Made, Work, Memory] = base.Offers(
    kind="classifier",
    units=(Unit.EDGE,),
    reads=reads,
    situations=(base.Situation("transductive"), base.Situation("inductive-edges")),
    drafts=(base.Draft("graph", "edge", {"label": "GCON"}, "perturbed objective of a linear classifier"),),
    reads_rounds=reads_rounds,
    evidence=evidence,
)
