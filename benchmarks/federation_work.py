"""What ``federation.py`` measures: the data, who holds what, and the plan."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fedgraph import data, seeds
from fedgraph.errors import FedgraphError
from fedgraph.methods import features, nonprivate
from fedgraph.methods.base import (
    NO_PUBLIC_DERIVED_FACTS,
    Budget,
    Plan,
    PublicFacts,
    PublicFactsPart,
    PublicMembershipFacts,
    PublicSizeFacts,
)
from fedgraph.methods.nonprivate.params import Params
from fedgraph.partition import ego, uniform
from fedgraph.privacy.units import Viewer
from fedgraph.types import Graph, GraphProvenance, Partition

NODES, WORDS, CLASSES, EDGES, PER_ROW = 3327, 3703, 6, 4552, 32  # CiteSeer's
HIDDEN, STEPS, RATE = 16, 3, 0.1
WORKLOADS = ("w1", "features", "ego")


@dataclass(frozen=True, eq=False)
class Workload:
    """name: one of ``WORKLOADS``. source: where the graph is from."""

    name: str
    source: str
    partition: Partition
    plan: Plan[Any, Any]


def graph_of(name: str, clients: int) -> Graph:
    """CiteSeer where ``FEDGRAPH_DATA`` has it and it is large enough, else a random graph of its words and degrees."""
    wanted = max(NODES, math.ceil(NODES * clients / 1000)) if name != "ego" else max(NODES, clients)
    if wanted == NODES and os.environ.get("FEDGRAPH_DATA"):
        try:
            found = data.load("planetoid/citeseer")
            assert isinstance(found, Graph)
            return found
        except FedgraphError:
            pass
    rng = np.random.default_rng(0)
    count = EDGES * wanted // NODES
    ends = rng.integers(wanted, size=(count, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    upper = sp.csr_array((np.ones(len(ends)), (ends.min(axis=1), ends.max(axis=1))), shape=(wanted, wanted))
    both = sp.csr_array(upper + upper.T)
    both.data[:] = 1.0
    words = np.sort(rng.integers(WORDS, size=(wanted, PER_ROW)), axis=1)
    rows = sp.csr_array(
        (np.ones(words.size, np.float32), words.ravel(), np.arange(0, words.size + 1, PER_ROW)), shape=(wanted, WORDS)
    )
    rows.sum_duplicates()
    labels = rng.integers(CLASSES, size=wanted)
    return Graph(
        "generated",
        both,
        rows,
        labels,
        CLASSES,
        GraphProvenance("synthetic", "a random graph of CiteSeer's shape"),
        features_from_edges=False,
        columns_from_rows=False,
        nodes_from_edges=False,
    )


def workload(name: str, clients: int, rounds: int) -> Workload:
    """``rounds`` rounds of all clients behind secure aggregation, so that sums are all that is seen."""
    graph = graph_of(name, clients)
    rng = seeds.seeded_generator(0, "benchmark")
    if name == "ego":
        partition = ego.split(graph, ego.Params(clients=clients), rng)
    else:
        partition = uniform.split(graph, uniform.Params(clients=clients), rng)
    sizes = tuple(s.graph.num_nodes for s in partition.subgraphs)
    viewer = Viewer.SERVER_SECURE_AGGREGATION
    facts = PublicFacts(
        PublicSizeFacts(sum(sizes), graph.num_features, graph.num_classes, sizes), viewer,
        PublicMembershipFacts(from_edges=False, from_labels=False, holdings=None, cut_edges="dropped"),
        PublicFactsPart("nothing"),
        NO_PUBLIC_DERIVED_FACTS, colluders=1,
    )  # fmt: skip
    if name == "features":
        plan: Plan[Any, Any] = features.plan(features.Params(steps=rounds), facts, Budget(1.0, 1e-5))
    else:
        settings = Params(
            model="gcn", hidden=HIDDEN, dropout=0, validation=0, local_epochs=STEPS, client_optimiser="sgd", refit=False,
            weight_decay=0, learning_rate=RATE, rounds=rounds,
        )  # fmt: skip
        plan = nonprivate.plan(settings, facts, Budget(math.inf, 1e-5))
    return Workload(name, graph.provenance.source, partition, plan)
