"""SAGE and DPGCN at edge level: one perturbed list of edges per client, and a network trained on the noisy graph.

**Who sees what.** The server sees every client's noisy list; nothing is broadcast. A client releases the pairs of its own
nodes, and edges between clients are dropped; or (``cut_edges: protected``) all pairs whose smaller id it holds
(``privacy.EdgeTriangle``). Of an edge between clients only that one reports it, and the other never uses it. So each edge is
one cell of one ε-DP release.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from fedgraph import learning, privacy
from fedgraph.documents import Settings
from fedgraph.errors import ScenarioError
from fedgraph.methods import base
from fedgraph.types import Graph, Subgraph

REFERENCE = base.method_bibtex("daigavane2021node", "wu2022linkteller")


class Params(Settings):
    relation: Literal["edge-undirected"] = Field("edge-undirected", description="neighbouring relation")
    hidden: int = Field(32, ge=1, description="hidden units of a two-layer network")
    network: Literal["sage", "gcn"] = Field("sage", description="what is trained on the perturbed graph; gcn: DPGCN")
    adjacency: Literal["edgerand", "lapgraph"] = Field("lapgraph", description="how edges are perturbed")
    count_share: ClassVar[float] = 0.01  # share of ε for the number of edges (lapgraph)
    memory_gb: float = Field(2.0, gt=0, description="memory the perturbed graph may take, in GB")
    epochs: int = Field(100, ge=1, description="Adam steps")
    training_rate: ClassVar[float] = 0.01  # Adam step size
    weight_decay: ClassVar[float] = 5e-4  # L2 weight

    @property
    def protects(self) -> privacy.Relation:
        return privacy.Relation(self.relation)


_KEPT = 5_000_000  # most entries of a noisy graph that the server keeps after training


@dataclass(frozen=True, eq=False)
class Memory:
    """What the server remembers. Scores and graph are None before the edges were received."""

    seed: int  # of the training
    scores: np.ndarray | None = None  # float [n, c]
    received: sp.csr_array | None = None  # CSR [n, n], the noisy graph, if it has at most ``_KEPT`` entries


Planned: TypeAlias = base.Plan[Params, Graph]  # made: every node's public features and labels


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """One perturbed graph per client. ``ScenarioError`` behind secure aggregation, or without public attributes;
    ``PrivacyError`` if the noisy graph would not fit into memory.
    """
    attributes = base.require_public_attributes("sage_edge", facts)
    if facts.viewer is privacy.Viewer.SERVER_SECURE_AGGREGATION:
        raise ScenarioError(
            "sage_edge sends lists of edges, which secure aggregation cannot add up; "
            "use trust: curator or own-client, or method: gap_edge"
        )
    published = budget.epsilon if budget.private else None
    guarantee = base.guarantee_from_public_facts(
        facts, params.protects, base.FACTS_ATTRIBUTES_PUBLIC, budget.delta, per_end=False
    )
    releases = tuple(_release(params, facts, budget, client) for client in range(facts.num_clients))
    return base.Plan("sage_edge", params, facts, guarantee, base.PlanSchedule(1, releases, 1), attributes, published)


def _release(params: Params, facts: base.PublicFacts, budget: base.Budget, client: int) -> privacy.PlannedRelease:
    size, smaller = facts.clients[client], None
    if facts.cut_edges_shared:
        size, smaller = facts.num_nodes, tuple(int(node) for node in facts.members[client])
    mechanism, event = base.PLAN_WITHOUT_NOISE
    epsilon, most = budget.epsilon, int(params.memory_gb * 1e9 / privacy.edge_mechanisms.BYTES_PER_EDGE_CELL)
    if budget.private and params.adjacency == "edgerand":
        mechanism, event = privacy.EdgeRand(epsilon, size, most, smaller), privacy.RandomizedResponse(epsilon, 2)
    elif budget.private:
        mechanism, event = privacy.LapGraph(epsilon, size, most, params.count_share, smaller), privacy.PureDP(epsilon)
    return privacy.PlannedRelease("adjacency", privacy.EdgeTriangle(size, smaller), mechanism, event, range(1), client=client)


def start(plan: Planned, rng: np.random.Generator) -> base.State[Memory]:
    return base.State({}, Memory(int(rng.integers(2**63))))


def prepare(plan: Planned, subgraph: Subgraph) -> np.ndarray:
    """int32 [m, 2], the client's edges, u < v: in its own numbering, or in global ids where cut edges are shared."""
    learning.aggregation.require_simple(subgraph.graph.adjacency)
    upper = sp.triu(subgraph.graph.adjacency, k=1, format="coo")
    edges = np.column_stack(upper.coords)
    if plan.facts.cut_edges_shared and subgraph.cut is not None:
        away = np.column_stack([subgraph.nodes[subgraph.cut[:, 0]], subgraph.cut[:, 1]])
        edges = np.concatenate([np.sort(subgraph.nodes[edges], axis=1), away[away[:, 0] < away[:, 1]]])
    return edges.astype(np.int32)


def client(
    plan: Planned, work: np.ndarray, model: base.Model, round_: int, streams: base.PlanStreams, desk: privacy.Desk
) -> base.PlanSent:
    """The perturbed edges, once."""
    return {"edges": desk.release("adjacency", work)}


def server(plan: Planned, state: base.State[Memory], inbox: base.PlanInbox) -> base.State[Memory]:
    """Joins the noisy edges and trains on them."""
    n, p = plan.facts.num_nodes, plan.params
    parts = inbox.each["edges"]
    if not plan.facts.cut_edges_shared:
        parts = [nodes[part] for nodes, part in zip(plan.facts.members, parts, strict=True)]
    edges = np.concatenate(parts)
    ends = np.concatenate([edges, edges[:, ::-1]])
    adjacency = sp.csr_array((np.ones(len(ends), dtype=np.int8), (ends[:, 0], ends[:, 1])), shape=(n, n))
    how = learning.PublicTrainingSteps(p.epochs, p.training_rate, p.weight_decay)
    train = learning.whole_graph.train_gcn if p.network == "gcn" else learning.whole_graph.train_graphsage
    scores = train(plan.made, adjacency, p.hidden, how, np.random.default_rng(state.memory.seed))
    return base.State({}, Memory(state.memory.seed, scores, adjacency if adjacency.nnz <= _KEPT else None))


def predict(plan: Planned, state: base.State[Memory], graph: Graph) -> np.ndarray:
    """[n, c] scores on the noisy graph; ``graph`` is not read."""
    return base.require_received(plan, state.memory.scores)


OFFERS: base.Offers[Params, Graph, np.ndarray, Memory] = base.Offers(
    units=(privacy.Unit.EDGE,),
    reads=lambda plan: base.MethodReads.NOTHING,
    situations=(
        base.MethodSituation("transductive", (privacy.Trust.CURATOR, privacy.Trust.OWN_CLIENT)),
        base.MethodSituation("transductive", (privacy.Trust.CURATOR, privacy.Trust.OWN_CLIENT), {"adjacency": "edgerand"}),
    ),
)
