"""The two neighbouring inputs on which whole methods are run, sound and broken (``mutants``), and how their runs are read.

Nodes and edges: 90 nodes of the graph that is shipped, one canary node or edge. Graphs (``local_dp``): clients of six nodes
each with two classes, and one canary graph: with two classes the gradients of the two versions point away from each other
exactly, and a large step makes the clip bind, so that the canary moves an update by all that is priced. The histogram of labels
that is released beside it moves by all that is priced, too.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedgraph import data, plugins
from fedgraph.attacks.base import canaries, canary_graphs
from fedgraph.documents.settings import Spec
from fedgraph.errors import DataError
from fedgraph.methods.base import NOTHING_DERIVED, Budget, Membership, Plan, PublicFacts, PublicPart, Sizes, State
from fedgraph.privacy.units import Unit, Viewer
from fedgraph.types import Graph, Partition, Subgraph, without_edges

EPSILON, DELTA = 4.0, 1e-3
SMALL = {  # one step of a small model, clipped, and a histogram of labels
    "unit": "graph", "rounds": 2, "hidden": 2, "projection": 4, "local_epochs": 1, "learning_rate": 50.0, "clip": 0.01,
    "release": "labels", "server_rate": 0.1,
}  # fmt: skip
NODES = 6  # of a client's graph


@dataclass(frozen=True, eq=False)
class Game:
    """Two neighbouring inputs of one method, and how a run on one of them is read.

    Attributes:
        plan: The plan, at ``EPSILON`` and ``DELTA``.
        worlds: The clients without the canary (or with it in version 0), and with it.
        read: From (plan, final state) to the score of one run; the plan may be replaced by what a viewer sees of it.
    """

    plan: Plan
    worlds: tuple[Partition, Partition]
    read: Callable[[Any, State], float]


def play(method: Spec, viewer: Viewer, clients: int, rng: np.random.Generator) -> Game:
    """The game of one method. method: its settings, ``method`` among them."""
    module = plugins.load("methods", method["method"])
    settings = module.Params(**{k: v for k, v in method.items() if k != "method"})
    if module.OFFERS.kind == "embedder":
        return _graphs(module, settings, clients, rng)
    return _units(module, settings, viewer, clients, rng)


def _units(module: Any, settings: Any, viewer: Viewer, clients: int, rng: np.random.Generator) -> Game:
    whole = _shipped()
    held, public = whole.induced(np.arange(90)), whole.induced(np.arange(90, 180))
    parts = np.array_split(np.arange(held.num_nodes), clients)
    dealt = _dealt(tuple(Subgraph(i, held.induced(p), p) for i, p in enumerate(parts)))
    edge = module.OFFERS.units == (Unit.EDGE,)
    facts = PublicFacts(
        Sizes(held.num_nodes, held.num_features, held.num_classes, tuple(p.size for p in parts)),
        viewer,
        Membership(from_edges=False, from_labels=False, holdings=None, cut_edges="dropped", nodes=tuple(parts)),
        PublicPart("test-graph", None if edge else public, without_edges(held) if edge else None),
        NOTHING_DERIVED,
        colluders=1,
    )
    plan: Plan[Any, Any] = module.plan(settings, facts, Budget(EPSILON, DELTA))
    known = canaries.held_together(dealt, held)
    if plan.guarantee.protection.unit is Unit.NODE:
        honest = replace(known, labels=np.where(np.isin(np.arange(known.num_nodes), parts[0]), known.labels, -1))
        found: canaries.Canaries = canaries.canary_nodes(honest, public, plan.guarantee.protection.relation, 1, "word", rng)
        asked = found.planted(known, np.arange(known.num_nodes), np.ones(1, dtype=bool))
    else:
        found = canaries.canary_edges(known, dealt, plan.guarantee.protection.relation, 1, rng)
        asked = known
    worlds = [canaries.planted_canaries(dealt, replace(found, coins=np.array([there]))) for there in (False, True)]

    def read(seen_as: Any, state: State) -> float:
        return float(module.OFFERS.evidence(seen_as, state, asked, found.units)[0])

    return Game(plan, (worlds[0], worlds[1]), read)


def _graphs(module: Any, settings: Any, clients: int, rng: np.random.Generator) -> Game:
    whole = _shipped()
    two = replace(whole, labels=np.where(whole.labels >= 0, whole.labels % 2, -1), num_classes=2)
    parts = [np.arange(NODES * i, NODES * (i + 1)) for i in range(clients)]
    dealt = _dealt(tuple(Subgraph(i, two.induced(p), p, center=0) for i, p in enumerate(parts)))
    sizes = (NODES,) * clients
    facts = PublicFacts(
        Sizes(two.num_nodes, two.num_features, 2, sizes),
        Viewer.SERVER,
        Membership(from_edges=False, from_labels=False, holdings=dealt.holdings(two.num_nodes), cut_edges="dropped"),
        PublicPart("nothing"),
        NOTHING_DERIVED,
        colluders=1,
    )
    plan: Plan[Any, Any] = module.plan(settings, facts, Budget(EPSILON, DELTA))
    found = canary_graphs.drawn(plan, dealt, rng)
    if found is None:
        raise DataError(f"{plan.method}: no canary graph fits")
    one = replace(found.zero, subgraphs=(found.one.subgraphs[0], *found.zero.subgraphs[1:]))
    units = (found.units[0], *(np.full_like(own, -1) for own in found.units[1:]))

    def read(seen_as: Any, state: State) -> float:
        return float(module.OFFERS.graph_evidence(seen_as, state, found.zero, one, units)[0])

    return Game(plan, (found.zero, one), read)


def _dealt(clients: tuple[Subgraph, ...]) -> Partition:
    return Partition(clients, True, 0, f"{len(clients)} clients", from_edges=False, from_labels=False)


def _shipped() -> Graph:
    whole = data.load("embedded/library")
    if not isinstance(whole, Graph):
        raise DataError("embedded/library is not one graph")
    return whole
