"""GAP at edge level: the noisy hops are released. Everything else is computed from them and from public attributes.

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

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import RuntimeFailure, ScenarioError
from fedgraph.learning.baselines import gap_networks
from fedgraph.learning.optimisers import public_training as public
from fedgraph.learning.propagation.aggregation import hop, placed, require_simple, unit_length, with_cut, with_stand_ins
from fedgraph.methods.base import (
    Budget,
    Draft,
    Inbox,
    Offers,
    Plan,
    PublicFacts,
    Reads,
    Schedule,
    Situation,
    State,
    Streams,
    Sums,
    gradient_std,
    guarantee_of,
)
from fedgraph.methods.gap_edge.params import Params
from fedgraph.privacy import neighbour_sums
from fedgraph.privacy.accounting import aggregation_noise
from fedgraph.privacy.desk import Desk, PlannedRelease, Released
from fedgraph.privacy.events import Event, Gaussian, Unprotected
from fedgraph.privacy.mechanisms.noise import Disclose, GaussianNoise, Mechanism
from fedgraph.privacy.neighbour_sums import NeighbourSums
from fedgraph.privacy.units import Assumption, Relation, Unit, Viewer
from fedgraph.types import Graph, Subgraph

REFERENCE = """@inproceedings{sajadmanesh2023gap,
  title = {{GAP}: Differentially Private Graph Neural Networks with Aggregation Perturbation},
  author = {Sajadmanesh, Sina and Shamsabadi, Ali Shahin and Bellet, Aur{\\'e}lien and Gatica-Perez, Daniel},
  booktitle = {USENIX Security Symposium}, year = {2023}}"""

ALL_HOPS = (
    "All hops are read: the encoder saw the labels on which their number would be chosen. Rows of the classes out of fold "
    "(folds: 2 or more) are chosen on honestly, and neighbours count for more."
)


@dataclass(frozen=True, eq=False)
class Work:
    """Whose sums a client makes: CSR [n_i, n_i] over its own rows, or [n_i, num_nodes] where cut edges are shared."""

    adjacency: sp.csr_array
    nodes: np.ndarray


@dataclass(frozen=True, eq=False)
class Made:
    """attributes: every node's public features and labels. new_nodes: predictions are for the nodes of a public graph."""

    attributes: Graph
    new_nodes: bool


@dataclass(frozen=True, eq=False)
class Memory:
    """Of the server: released sums and what followed from them.

    seed: of the classifier. encoder: its parameters. inputs: [H⁰ …], float32 [n, h] each. sent: the rows that were broadcast
    for each hop. sums: the noisy sums that came back. classifier, scores [n, c]: once every hop is there.
    """

    seed: int
    encoder: np.ndarray
    inputs: tuple[np.ndarray, ...]
    sent: tuple[np.ndarray, ...]
    sums: tuple[np.ndarray, ...]
    classifier: public.Chosen | gap_networks.Classifier | None = None
    scores: np.ndarray | None = None


def plan(params: Params, facts: PublicFacts, budget: Budget) -> Plan[Params, Made]:
    """Every hop, priced."""
    if facts.public.attributes is None:
        raise ScenarioError(
            "gap_edge needs public features and labels: set the task's protocol: transductive, or inductive-edges"
        )
    if facts.membership.cut_edges_shared and params.protects is not Relation.EDGE_UNDIRECTED:
        raise ScenarioError("edges between clients change a row at either end: relation edge-undirected, or cut_edges: dropped")
    assumed = (
        Assumption.COUNTS_PUBLIC,
        Assumption.FEATURES_LABELS_PUBLIC,
        Assumption.UNTUNED,
        Assumption.SPLIT_PUBLIC,
        *((Assumption.TEST_GRAPH_PUBLIC,) if facts.public.graph is not None else ()),
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
        of_one = neighbour_sums.END if facts.membership.cut_edges_shared else delta2
        mechanism, event, published = GaussianNoise(std), Gaussian(noise.std / of_one), noise.published
    release = PlannedRelease("aggregate", NeighbourSums(facts.sizes.num_nodes), mechanism, event, range(params.hops))
    return Plan(
        method="gap_edge",
        params=params,
        facts=facts,
        guarantee=guarantee_of(facts, params.protects, assumed, budget.delta, per_end=facts.membership.cut_edges_shared),
        schedule=Schedule(
            rounds=params.hops,
            releases=(release,) if params.hops else (),
            min_clients=min_clients,
            # the encoder reads public data only: all budgets share it
            shared_key=params.model_dump_json(),
        ),
        made=Made(facts.public.attributes, facts.public.graph is not None),
        epsilon_published=published,
        # behind secure aggregation all clients' rows have their places in one matrix; an edge between clients is in two rows
        sums=Sums(additive=facts.viewer is Viewer.SERVER_SECURE_AGGREGATION and not facts.membership.cut_edges_shared),
        notes=(ALL_HOPS,) if params.hops and params.depth == "chosen" and params.in_sample else (),
    )


def _encoder(params: Params) -> public.Encoder:
    return public.Encoder(params.encoder, params.hidden, params.folds, public.Fitting(params.epochs, 0.01, 5e-4))


def start(plan: Plan[Params, Made], rng: np.random.Generator) -> State[Memory]:
    """The encoder, from public features and labels."""
    encoded = public.encode(plan.made.attributes, _encoder(plan.params))
    memory = Memory(int(rng.integers(2**63)), encoded.parameters, (encoded.own,), (encoded.message,), ())
    return _after_hop(plan, memory, encoded.message)


def prepare(plan: Plan[Params, Made], subgraph: Subgraph) -> Work:
    adjacency = subgraph.graph.adjacency
    if plan.params.protects is Relation.EDGE_UNDIRECTED:
        require_simple(adjacency)
    if plan.facts.membership.cut_edges_shared and subgraph.cut is not None:
        along = with_stand_ins if plan.facts.membership.cut_edges == "generated" else with_cut
        adjacency = along(adjacency, subgraph.nodes, subgraph.cut, plan.facts.sizes.num_nodes)
    return Work(adjacency, subgraph.nodes)


def client(
    plan: Plan[Params, Made], work: Work, model: Mapping[str, np.ndarray], round_: int, streams: Streams, desk: Desk
) -> dict[str, Released]:
    """One noisy hop over this client's edges (behind secure aggregation: on the rows of all nodes)."""

    def aggregate() -> np.ndarray:
        everywhere = work.adjacency.shape[1] == plan.facts.sizes.num_nodes
        sums = hop(work.adjacency, model["rows"] if everywhere else model["rows"][work.nodes])
        secure = plan.facts.viewer is Viewer.SERVER_SECURE_AGGREGATION
        return placed([sums], [work.nodes], plan.facts.sizes.num_nodes) if secure else sums

    return {"aggregate": desk.release("aggregate", aggregate)}


def server(plan: Plan[Params, Made], state: State[Memory], inbox: Inbox) -> State[Memory]:
    """Keep the noisy hop, broadcast it for the next one, and after the last train the classifier."""
    parts = inbox.each.get("aggregate")
    sums = placed(parts, plan.facts.membership.nodes, plan.facts.sizes.num_nodes) if parts else inbox.sums["aggregate"]
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
    return memory.classifier.scores(inputs)


def evidence(plan: Plan[Params, Made], state: State[Memory], graph: Graph, pairs: np.ndarray) -> np.ndarray:
    """For each pair [m, 2] the log-likelihood ratio of all released sums, with the edge against without, times the variance.

    Given the rows that were sent, a sum is Gaussian around that of the known neighbours, or around that plus the other's row.
    """
    ends = [pairs] if plan.params.protects is Relation.EDGE_DIRECTED else [pairs, pairs[:, ::-1]]
    found = np.zeros(len(pairs))
    for rows, sums in zip(state.memory.sent, state.memory.sums, strict=False):
        beyond = sums.astype(np.float64) - hop(graph.adjacency, rows)
        for one, other in (e.T for e in ends):
            found += (beyond[one] * rows[other]).sum(axis=1) - np.square(rows[other]).sum(axis=1) / 2
    return found


def _after_hop(plan: Plan[Params, Made], memory: Memory, rows: np.ndarray) -> State[Memory]:
    """The next broadcast, or the trained classifier and its scores when every hop is there."""
    p, inputs = plan.params, list(memory.inputs)
    if len(inputs) <= p.hops:
        return State({"rows": rows}, memory)
    labels, rng = plan.made.attributes.labels, np.random.default_rng(memory.seed)
    chosen: gap_networks.Classifier | public.Chosen
    if p.encoder == "published":
        chosen = gap_networks.classifier(inputs, labels, p.hidden, plan.facts.sizes.num_classes, p.epochs, rng)
    else:
        widths = (*((p.classifier,) if p.classifier else ()), plan.facts.sizes.num_classes)
        chosen = public.classifier(inputs, labels, widths, public.Fitting(2 * p.epochs, 0.02, 1e-3), p.chooses, rng)
    return State({}, replace(memory, classifier=chosen, scores=chosen.scores(inputs)))


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
    evidence=evidence,
)
