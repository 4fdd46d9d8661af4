"""Links without privacy, for comparison: shared neighbours, or a trained graph convolutional encoder.

Every client sends its edges as they are, so ε = ∞. Shared neighbours are strong if friends of friends meet (Liben-Nowell and
Kleinberg 2007); the encoder also reads features (Kipf & Welling 2016).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from fedgraph import learning, privacy
from fedgraph.documents import Settings
from fedgraph.errors import ScenarioError
from fedgraph.learning import links, torch, torch_device
from fedgraph.methods import base
from fedgraph.types import Graph, Subgraph

REFERENCE = base.method_bibtex("liben2007link")

_BLOCK = 200_000  # pairs in memory at once
# units, steps and step size of the encoder; 300 steps and 128 units gain nothing on Cora and CiteSeer
_UNITS, _STEPS, _RATE = 64, 150, 0.01


class Params(Settings):
    model: Literal["adamic-adar", "gcn", "sage"] = Field(
        "adamic-adar", description="shared neighbours, weighed by 1/log degree; or a trained encoder"
    )


@dataclass(frozen=True, eq=False)
class _Memory:
    """What the server remembers."""

    seed: int  # of the encoder's training
    graph: Graph | None = None  # with all edges of the clients; None before they were received
    rows: np.ndarray | None = None  # float [n, 64], rows of the trained encoder; None if none is trained


Planned: TypeAlias = base.Plan[Params, Graph]  # made: every node's public features


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """All edges, in clear, at any ε."""
    if facts.public_attributes is None:
        raise ScenarioError("link_clear needs public features: use it in task: link_prediction")
    assumed = (privacy.Assumption.COUNTS_PUBLIC, privacy.Assumption.FEATURES_LABELS_PUBLIC)
    clear = privacy.Disclose("no privacy was asked for"), privacy.Unprotected("edges in clear")
    shown = privacy.PlannedRelease("edges", privacy.Unbounded(), *clear, range(1))
    guarantee = base.guarantee_from_public_facts(facts, privacy.Relation.EDGE_UNDIRECTED, assumed, budget.delta, per_end=False)
    return base.Plan("link_clear", params, facts, guarantee, base.PlanSchedule(1, (shown,), 1), facts.public_attributes)


def start(plan: Planned, rng: np.random.Generator) -> base.State[_Memory]:
    return base.State({}, _Memory(int(rng.integers(2**63))))


def prepare(plan: Planned, subgraph: Subgraph) -> np.ndarray:
    """int64 [m, 2], the client's edges by global ids, with those to nodes of others if it knows them."""
    return np.concatenate(links.list_known(subgraph))


def client(
    plan: Planned, work: np.ndarray, model: base.Model, round_: int, streams: base.PlanStreams, desk: privacy.Desk
) -> base.PlanSent:
    return {"edges": desk.release("edges", work)}


def server(plan: Planned, state: base.State[_Memory], inbox: base.PlanInbox) -> base.State[_Memory]:
    """Joins all edges, and trains the encoder if it is asked for."""
    every = np.concatenate([np.asarray(each, dtype=np.int64) for each in inbox.each["edges"]])
    graph = replace(plan.made, adjacency=links.adjacency_of(every, plan.facts.num_nodes))
    rows = encoder_rows(graph, state.memory.seed, plan.params.model) if plan.params.model in {"gcn", "sage"} else None
    return base.State({}, replace(state.memory, graph=graph, rows=rows))


def scores(plan: Planned, state: base.State[_Memory], pairs: np.ndarray) -> np.ndarray:
    """float64 [m], inner products of the encoder's rows, or weighted counts of shared neighbours."""
    memory = state.memory
    if memory.rows is not None:
        return np.einsum("ij,ij->i", memory.rows[pairs[:, 0]], memory.rows[pairs[:, 1]]).astype(np.float64)
    return adamic_adar(base.require_received(plan, memory.graph).adjacency, pairs)


def adamic_adar(adjacency: sp.csr_array, pairs: np.ndarray) -> np.ndarray:
    """float64 [m], shared neighbours weighed by 1/log degree (Liben-Nowell & Kleinberg 2007, section 3).

    adjacency: CSR [n, n], symmetric, ones. pairs: int64 [m, 2].
    """
    weights = 1.0 / np.log(np.maximum(np.diff(adjacency.indptr).astype(np.float64), 2.0))
    weighed = sp.csr_array(adjacency.astype(np.float64) @ sp.diags_array(weights))
    parts = [np.zeros(0)]
    for first in range(0, len(pairs), _BLOCK):
        some = pairs[first : first + _BLOCK]
        parts.append(np.asarray(weighed[some[:, 0]].multiply(adjacency[some[:, 1]]).sum(axis=1)).ravel())
    return np.concatenate(parts)


def encoder_rows(graph: Graph, seed: int, model: str = "gcn") -> np.ndarray:
    """float32 [n, 64], the rows of an encoder (``gcn`` or ``sage``), whose inner products score pairs.

    It is the graph autoencoder without variation (Kipf & Welling 2016), trained on the graph's own edges against random pairs,
    as in the Open Graph Benchmark. Without features a node's input is random.
    """
    rng = np.random.default_rng(seed)
    pairs = links.list_all(graph.adjacency)
    both = np.concatenate([pairs, pairs[:, ::-1]]).T
    edges = torch.tensor(np.ascontiguousarray(both), device=torch_device())
    signs = np.random.default_rng(seed).integers(0, 2, size=(graph.num_nodes, _UNITS)) * 2 - 1
    dense = graph.features.toarray() if graph.num_features else signs
    x = torch.nn.functional.normalize(torch.tensor(np.asarray(dense, dtype=np.float32), device=torch_device()), dim=1)
    from torch_geometric.nn import GCNConv, SAGEConv, Sequential  # not before it is used: every run lists all methods

    layer = SAGEConv if model == "sage" else GCNConv
    with torch.random.fork_rng(devices=[]):
        learning.seed_learner(int(rng.integers(2**31)))
        layers = [(layer(x.shape[1], _UNITS), "x, edges -> x"), torch.nn.ReLU(), (layer(_UNITS, _UNITS), "x, edges -> x")]
        network = Sequential("x, edges", layers).to(torch_device())
    optimiser = torch.optim.Adam(network.parameters(), lr=_RATE, weight_decay=5e-4)
    for _ in range(_STEPS if len(pairs) else 0):
        rows = network(x, edges)
        against = torch.tensor(links.draw_pairs(graph.num_nodes, len(pairs), rng, graph.adjacency), device=torch_device())
        both_kinds = torch.cat([torch.tensor(pairs, device=torch_device()), against])
        wanted = torch.cat([torch.ones(len(pairs)), torch.zeros(len(against))]).to(torch_device())
        scores = (rows[both_kinds[:, 0]] * rows[both_kinds[:, 1]]).sum(dim=1)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, wanted)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    with torch.no_grad():
        return np.asarray(network(x, edges).cpu().numpy(), dtype=np.float32)


OFFERS: base.Offers[Params, Graph, np.ndarray, _Memory] = base.Offers(
    kind="linker",
    reads=lambda plan: base.MethodReads.PRIVATE_EDGES,
    units=(privacy.Unit.EDGE,),
    situations=(base.MethodSituation("links", (privacy.Trust.CURATOR, privacy.Trust.OWN_CLIENT)),),
    ignores_budget={},
)
