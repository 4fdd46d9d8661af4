"""Links without privacy: heuristics on shared neighbours, or a trained graph convolutional encoder. What privacy is compared
with.

Every client shows its edges as they are, so ε = ∞. Heuristics are strong where friends of friends meet (Liben-Nowell and
Kleinberg 2007); the encoder also reads features (Kipf & Welling 2016).
"""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from pydantic import Field

from fedgraph.documents import Settings
from fedgraph.errors import RuntimeFailure, ScenarioError
from fedgraph.learning import links
from fedgraph.methods import base
from fedgraph.privacy import Assumption, Desk, Disclose, PlannedRelease, Relation, Trust, Unbounded, Unit, Unprotected
from fedgraph.types import Graph, Subgraph

REFERENCE = base.method_bibtex("liben2007link")


class Params(Settings):
    model: Literal["adamic-adar", "common", "resource", "preferential", "gcn", "sage"] = Field(
        "adamic-adar", description="shared neighbours weighed by 1/log degree, by 1, by 1/degree; degrees; or a trained encoder"
    )


@dataclass(frozen=True, eq=False)
class Memory:
    """What the server remembers."""

    seed: int  # of the encoder's training
    graph: Graph | None = None  # all edges that the clients hold, once they came; else None
    rows: np.ndarray | None = None  # float [n, 64], of the trained encoder; None where none is trained


Planned: TypeAlias = base.Plan[Params, Graph]  # made: every node's public features


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """All edges, in clear, at any ε."""
    if facts.public_attributes is None:
        raise ScenarioError("link_clear needs public features: use it in task: link_prediction")
    assumed = (Assumption.COUNTS_PUBLIC, Assumption.FEATURES_LABELS_PUBLIC)
    shown = PlannedRelease("edges", Unbounded(), Disclose("no privacy was asked for"), Unprotected("edges in clear"), range(1))
    guarantee = base.guarantee_from_public_facts(facts, Relation.EDGE_UNDIRECTED, assumed, budget.delta, per_end=False)
    return base.Plan("link_clear", params, facts, guarantee, base.PlanSchedule(1, (shown,), 1), facts.public_attributes)


def start(plan: Planned, rng: np.random.Generator) -> base.State[Memory]:
    return base.State({}, Memory(int(rng.integers(2**63))))


def prepare(plan: Planned, subgraph: Subgraph) -> np.ndarray:
    """int64 [m, 2], the client's edges by global ids, with those to nodes of others where it knows them."""
    return np.concatenate(links.list_known(subgraph))


def client(
    plan: Planned, work: np.ndarray, model: base.Model, round_: int, streams: base.PlanStreams, desk: Desk
) -> base.PlanSent:
    return {"edges": desk.release("edges", work)}


def server(plan: Planned, state: base.State[Memory], inbox: base.PlanInbox) -> base.State[Memory]:
    """The union of all edges, and the encoder if it is asked for."""
    every = np.concatenate([np.asarray(each, dtype=np.int64) for each in inbox.each["edges"]])
    graph = replace(plan.made, adjacency=links.adjacency_of(every, plan.facts.num_nodes))
    rows = links.fit_encoder(graph, state.memory.seed, plan.params.model) if plan.params.model in {"gcn", "sage"} else None
    return base.State({}, replace(state.memory, graph=graph, rows=rows))


def scores(plan: Planned, state: base.State[Memory], pairs: np.ndarray) -> np.ndarray:
    """float64 [m]."""
    memory = state.memory
    if memory.graph is None:
        raise RuntimeFailure("link_clear was asked for scores before it had the edges")
    if memory.rows is not None:
        return np.einsum("ij,ij->i", memory.rows[pairs[:, 0]], memory.rows[pairs[:, 1]]).astype(np.float64)
    return links.score_heuristically(plan.params.model, memory.graph.adjacency, pairs)


OFFERS: base.Offers[Params, Graph, np.ndarray, Memory] = base.Offers(
    kind="linker",
    reads=lambda plan: base.MethodReads.PRIVATE_EDGES,
    units=(Unit.EDGE,),
    situations=(base.MethodSituation("links", (Trust.CURATOR, Trust.OWN_CLIENT)),),
    ignores_budget={},
)
