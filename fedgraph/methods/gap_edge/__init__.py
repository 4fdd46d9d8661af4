"""GAP at edge level: hops are released, everything else is made of public attributes and of them.

Round k: the server broadcasts Hᵏ⁻¹ of all nodes (public, or released), a client adds up the rows of its nodes' neighbours
and sends the sums with noise. After round K the server trains the classifier on [H⁰ … Hᴷ].

* Transductive: predictions are the classifier's on the cached hops; inference reads no edge.
* New nodes (protocol ``inductive-edges``): the public test graph is encoded and aggregated in clear, the same classifier reads
  it; of the private graph only the noisy hops have been used.

Federated, who sees what: the server sees every message (behind secure aggregation: their sum), clients see each broadcast. An
inner edge changes two rows of one client's message. An edge between clients is dropped, or (``cut_edges: protected``) known
to both its clients: it changes one row of either's message, so at Δ = 1 an end either message carries enough noise and both
together cost what an inner edge costs, 1² + 1² = √2² (``composition.ends``). Nothing passes between clients but released rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import ScenarioError
from fedgraph.learning.baselines import gap_networks
from fedgraph.learning.optimisers import public_training as public
from fedgraph.learning.propagation.aggregation import hop, placed, require_simple, unit_length, with_cut
from fedgraph.methods.base import Budget, Inbox, Plan, PublicFacts, State, Streams, gradient_std, setting_assumptions
from fedgraph.methods.gap_edge.params import Params
from fedgraph.privacy import neighbour_sums
from fedgraph.privacy.accounting import aggregation_noise
from fedgraph.privacy.desk import Desk, PlannedRelease, Released
from fedgraph.privacy.events import Event, Gaussian, Unprotected
from fedgraph.privacy.mechanisms.noise import Disclose, GaussianNoise, Mechanism
from fedgraph.privacy.neighbour_sums import NeighbourSums
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer
from fedgraph.types import Graph, Subgraph

REFERENCE = """@inproceedings{sajadmanesh2023gap,
  title = {{GAP}: Differentially Private Graph Neural Networks with Aggregation Perturbation},
  author = {Sajadmanesh, Sina and Shamsabadi, Ali Shahin and Bellet, Aur{\\'e}lien and Gatica-Perez, Daniel},
  booktitle = {USENIX Security Symposium}, year = {2023}}"""


@dataclass(frozen=True, eq=False)
class Work:
    """Whose sums a client makes: CSR [n_i, n_i] over its own rows, or [n_i, num_nodes] where cut edges are shared."""

    adjacency: sp.csr_array
    nodes: np.ndarray


def plan(params: Params, facts: PublicFacts, budget: Budget) -> Plan:
    """Every hop, priced."""
    if facts.public_attributes is None:
        raise ScenarioError(
            "gap_edge needs public features and labels: set the task's protocol: transductive, or inductive-edges"
        )
    if facts.cut_edges_shared and params.protects is not Relation.EDGE_UNDIRECTED:
        raise ScenarioError("edges between clients change a row at either end: relation edge-undirected, or cut_edges: dropped")
    assumed = (
        Assumption.COUNTS_PUBLIC,
        Assumption.FEATURES_LABELS_PUBLIC,
        Assumption.HYPERPARAMETERS_PUBLIC,
        Assumption.SPLIT_PUBLIC,
        *((Assumption.TEST_GRAPH_PUBLIC,) if facts.public_graph is not None else ()),
        *setting_assumptions(facts),
    )
    mechanism: Mechanism = Disclose("no noise was asked for")
    event: Event = Unprotected("no noise")
    published, min_clients = None, 1
    if budget.private and params.hops:
        delta2 = neighbour_sums.sensitivity(params.protects)
        noise = aggregation_noise.edge_level(
            params.hops, delta2, budget.epsilon, budget.delta, budget.calibrated_by, params.formula
        )
        std, min_clients = gradient_std(1.0, noise.std, facts)
        of_one = neighbour_sums.END if facts.cut_edges_shared else delta2
        mechanism, event, published = GaussianNoise(std), Gaussian(noise.std / of_one), noise.published
    release = PlannedRelease("aggregate", NeighbourSums(facts.num_nodes), mechanism, event, range(params.hops))
    return Plan(
        method="gap_edge",
        params=params,
        rounds=params.hops,
        releases=(release,) if params.hops else (),
        protection=Protection(params.protects, facts.viewer, assumed),
        delta=budget.delta,
        facts=facts,
        epsilon_published=published,
        per_end=facts.cut_edges_shared,
        min_clients=min_clients,
        made={"attributes": facts.public_attributes, "new_nodes": facts.public_graph is not None},
    )


def _encoder(params: Params) -> public.Encoder:
    return public.Encoder(params.encoder, params.hidden, params.folds, public.Fitting(params.epochs, 0.01, 5e-4))


def start(plan: Plan, rng: np.random.Generator) -> State:
    """The encoder, from public features and labels."""
    encoded = public.encode(plan.made["attributes"], _encoder(plan.params))
    memory = {"seed": int(rng.integers(2**63)), "inputs": [encoded.own], "encoder": encoded.parameters}
    return _after_hop(plan, memory | {"sent": [encoded.message], "sums": []}, encoded.message)


def prepare(plan: Plan, subgraph: Subgraph) -> Work:
    adjacency = subgraph.graph.adjacency
    if plan.params.protects is Relation.EDGE_UNDIRECTED:
        require_simple(adjacency)
    if plan.facts.cut_edges_shared and subgraph.cut is not None:
        adjacency = with_cut(adjacency, subgraph.nodes, subgraph.cut, plan.facts.num_nodes)
    return Work(adjacency, subgraph.nodes)


def client(
    plan: Plan, work: Work, model: Mapping[str, np.ndarray], round_: int, streams: Streams, desk: Desk
) -> dict[str, Released]:
    """One noisy hop over this client's edges (behind secure aggregation: on the rows of all nodes)."""

    def aggregate() -> np.ndarray:
        everywhere = work.adjacency.shape[1] == plan.facts.num_nodes
        sums = hop(work.adjacency, model["rows"] if everywhere else model["rows"][work.nodes])
        secure = plan.facts.viewer is Viewer.SERVER_SECURE_AGGREGATION
        return placed([sums], [work.nodes], plan.facts.num_nodes) if secure else sums

    return {"aggregate": desk.release("aggregate", aggregate)}


def server(plan: Plan, state: State, inbox: Inbox) -> State:
    """Keep the noisy hop, broadcast it for the next one, and after the last train the classifier."""
    parts = inbox.each.get("aggregate")
    sums = placed(parts, plan.facts.members, plan.facts.num_nodes) if parts else inbox.sums["aggregate"]
    rows = unit_length(sums)
    seen = {"sent": [*state.memory["sent"], rows], "sums": [*state.memory["sums"], sums]}
    return _after_hop(plan, {**state.memory, **seen, "inputs": [*state.memory["inputs"], rows]}, rows)


def predict(plan: Plan, state: State, graph: Graph) -> np.ndarray:
    """[n, c] scores: from the cached hops (``graph`` is not read), or of the new nodes of a public ``graph``."""
    if not plan.made["new_nodes"]:
        return state.memory["scores"]  # type: ignore[no-any-return]
    inputs = [public.rows_of(state.memory["encoder"], _encoder(plan.params), graph)]
    for _ in range(plan.params.hops):
        inputs.append(unit_length(hop(graph.adjacency, inputs[-1])))
    return state.memory["classifier"].scores(inputs)  # type: ignore[no-any-return]


def evidence(plan: Plan, state: State, graph: Graph, pairs: np.ndarray) -> np.ndarray:
    """For each pair [m, 2] the log-likelihood ratio of all released sums, with the edge against without, times the variance.

    Given the rows that were sent, a sum is Gaussian around that of the known neighbours, or around that plus the other's row.
    """
    ends = [pairs] if plan.params.protects is Relation.EDGE_DIRECTED else [pairs, pairs[:, ::-1]]
    found = np.zeros(len(pairs))
    for rows, sums in zip(state.memory["sent"], state.memory["sums"], strict=False):
        beyond = sums.astype(np.float64) - hop(graph.adjacency, rows)
        for one, other in (e.T for e in ends):
            found += (beyond[one] * rows[other]).sum(axis=1) - np.square(rows[other]).sum(axis=1) / 2
    return found


def _after_hop(plan: Plan, memory: dict[str, Any], rows: np.ndarray) -> State:
    """The next broadcast, or the trained classifier and its scores when every hop is there."""
    p, inputs = plan.params, memory["inputs"]
    if len(inputs) <= p.hops:
        return State({"rows": rows}, memory)
    labels, rng = plan.made["attributes"].labels, np.random.default_rng(memory["seed"])
    chosen: gap_networks.Classifier | public.Chosen
    if p.encoder == "published":
        chosen = gap_networks.classifier(inputs, labels, p.hidden, plan.facts.num_classes, p.epochs, rng)
    else:
        widths = (*((p.classifier,) if p.classifier else ()), plan.facts.num_classes)
        chosen = public.classifier(inputs, labels, widths, public.Fitting(2 * p.epochs, 0.02, 1e-3), p.depth == "chosen", rng)
    return State({}, {**memory, "classifier": chosen, "scores": chosen.scores(inputs), "depth": chosen.depth})
