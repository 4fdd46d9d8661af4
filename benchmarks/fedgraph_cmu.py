"""The two runs that FedGraph (CMU) logs, beside a plain loop: FedAvg of a two-layer GCN, 10 clients, 200 rounds of one step.

    python -m benchmarks.fedgraph_cmu [--data cora|arxiv] [--rounds 200] [--loop-rounds N] [--json]

cora: hidden 16, Cora where ``FEDGRAPH_DATA`` has it, else a random graph of its size. arxiv: a random graph of the size of
ogbn-arxiv (169,343 nodes, 1,166,243 edges, 128 dense features, 40 classes), hidden 256; its network has no batch norm here,
which is 0.1 % of the parameters. Descent with rate 0.1, full batches, each client its own induced subgraph, as in the
configuration that stands in FedGraph's log (benchmark/NC.log at b7073ec). The log says 70 to 76 s for Cora and 116 to 132 s
for ogbn-arxiv, of which 35 and 46 to 80 s are training, with three cores for each of ten trainers.

Both sides run in this process on one core; seconds are processor seconds after the data are ready and one round is done. The
parameters of both are compared after ``--loop-rounds`` rounds (default: all for cora, 3 for arxiv). The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch.nn import functional

from fedgraph import data, runtime, seeds
from fedgraph.errors import FedgraphError
from fedgraph.federation import rounds, server
from fedgraph.federation.messages import ClientJob
from fedgraph.learning.layers.torch_matrices import to_torch_matrix, unit_matrix_rows
from fedgraph.learning.propagation.walks import symmetric_walk_matrix
from fedgraph.methods import nonprivate
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
from fedgraph.partition import uniform
from fedgraph.privacy.units import Viewer
from fedgraph.runtime.process import use_one_process_thread
from fedgraph.types import Graph, GraphProvenance, Partition

CLIENTS, RATE = 10, 0.1
ROUNDING = 1e-4  # largest difference in a parameter, of parameters of size 1


@dataclass(frozen=True)
class Size:
    """What a random graph is made of. words: non-zero features of a node; None: all of them."""

    nodes: int
    edges: int
    features: int
    classes: int
    hidden: int
    words: int | None


SIZES = {"cora": Size(2708, 5278, 1433, 7, 16, 18), "arxiv": Size(169_343, 1_166_243, 128, 40, 256, None)}


def graph_of(name: str) -> Graph:
    """Cora where it is found, else a random graph of the size of ``name``."""
    if name == "cora" and os.environ.get("FEDGRAPH_DATA"):
        try:
            found = data.load("planetoid/cora")
            assert isinstance(found, Graph)
            return found
        except FedgraphError:
            pass
    size, rng = SIZES[name], np.random.default_rng(0)
    ends = np.sort(rng.integers(size.nodes, size=(size.edges, 2)), axis=1)
    ends = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)
    upper = sp.csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(size.nodes, size.nodes))
    if size.words is None:
        rows = sp.csr_array(rng.standard_normal((size.nodes, size.features), dtype=np.float32))
    else:
        words = np.sort(rng.integers(size.features, size=(size.nodes, size.words)), axis=1)
        starts = np.arange(0, words.size + 1, size.words)
        rows = sp.csr_array((np.ones(words.size, np.float32), words.ravel(), starts), shape=(size.nodes, size.features))
        rows.sum_duplicates()
    labels = rng.integers(size.classes, size=size.nodes)
    made = GraphProvenance("synthetic", f"a random graph of the size of {name}")
    return Graph(
        name,
        sp.csr_array(upper + upper.T),
        rows,
        labels,
        size.classes,
        made,
        features_from_edges=False,
        columns_from_rows=False,
        nodes_from_edges=False,
    )


def plan_of(graph: Graph, partition: Partition, hidden: int, count: int) -> Plan[Any, Any]:
    """FedAvg behind secure aggregation, ``count`` rounds."""
    sizes = tuple(s.graph.num_nodes for s in partition.subgraphs)
    facts = PublicFacts(
        PublicSizeFacts(sum(sizes), graph.num_features, graph.num_classes, sizes), Viewer.SERVER_SECURE_AGGREGATION,
        PublicMembershipFacts(from_edges=False, from_labels=False, holdings=None, cut_edges="dropped"),
        PublicFactsPart("nothing"),
        NO_PUBLIC_DERIVED_FACTS, colluders=1,
    )  # fmt: skip
    settings = Params(
        model="gcn", hidden=hidden, dropout=0, validation=0, local_epochs=1, client_optimiser="sgd", refit=False,
        weight_decay=0, learning_rate=RATE, rounds=count,
    )  # fmt: skip
    return nonprivate.plan(settings, facts, Budget(math.inf, 1e-5))


class Clock:
    """Processor seconds from the end of the first round on."""

    def __init__(self) -> None:
        self.began = time.process_time()

    def round_done(self, done: int, total: int) -> None:
        if done == 1:
            self.began = time.process_time()

    @property
    def seconds(self) -> float:
        return time.process_time() - self.began


def ours(partition: Partition, plan: Plan[Any, Any]) -> tuple[np.ndarray, float]:
    """(parameters, processor seconds of all rounds but the first) as a run does it."""
    clock = Clock()
    with runtime.start("serial", 1) as pool:
        shared = pool.share("partition", partition)
        done = rounds.run_rounds(pool, shared, plan, 0, ("start",), ("start",), rounds.RoundPrefixes(), clock.round_done)
    return done.state.model["parameters"], clock.seconds


def loop(partition: Partition, plan: Plan[Any, Any], hidden: int, count: int) -> tuple[np.ndarray, float]:
    """The same, one client after another, torch as its manual shows it: sparse features and adjacency."""
    state = server.begin_at_server(ClientJob("start", 0, ("start",), plan))
    vector = torch.tensor(state.model["parameters"])
    d, c = plan.facts.sizes.num_features, plan.facts.sizes.num_classes
    shapes = [(hidden,), (hidden, d), (c,), (c, hidden)]
    held = []
    for share in partition.subgraphs:
        rows = unit_matrix_rows(share.graph.features)
        x = torch.tensor(rows.toarray()) if rows.nnz > 0.5 * np.prod(rows.shape) else to_torch_matrix(rows)
        held.append((x, to_torch_matrix(symmetric_walk_matrix(share.graph.adjacency)), torch.tensor(share.graph.labels)))
    clock = Clock()
    for number in range(count):
        total = torch.zeros_like(vector)
        for x, hat, labels in held:
            parts = [p.view(s) for p, s in zip(torch.split(vector, [math.prod(s) for s in shapes]), shapes, strict=True)]
            b0, w0, b1, w1 = (p.clone().requires_grad_() for p in parts)
            scores = hat @ (torch.relu(hat @ (x @ w0.T) + b0) @ w1.T) + b1
            found = torch.autograd.grad(functional.cross_entropy(scores, labels), (b0, w0, b1, w1))
            after = [p.detach() - RATE * g for p, g in zip((b0, w0, b1, w1), found, strict=True)]
            total += len(labels) * torch.cat([p.reshape(-1) for p in after])
        vector = total / plan.facts.sizes.num_nodes
        clock.round_done(number + 1, count)
    return vector.numpy(), clock.seconds


def compare(name: str, count: int, loop_rounds: int) -> dict[str, Any]:
    """``SystemExit`` where the two disagree by more than rounding."""
    began, hidden = time.process_time(), SIZES[name].hidden
    graph = graph_of(name)
    partition = uniform.split(graph, uniform.Params(clients=CLIENTS), seeds.seeded_generator(0, "benchmark"))
    plan = plan_of(graph, partition, hidden, count)
    ready = time.process_time() - began
    vector, seconds = ours(partition, plan)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    if loop_rounds != count:
        vector, _ = ours(partition, plan_of(graph, partition, hidden, loop_rounds))
    expected, loop_seconds = loop(partition, plan, hidden, loop_rounds)
    difference = float(np.abs(vector - expected).max())
    if not difference <= ROUNDING:
        raise SystemExit(f"{name}: parameters differ from the plain loop's by {difference:.3g}")
    return {
        "data": graph.provenance.source,
        "nodes": graph.num_nodes,
        "rounds": count,
        "ready_s": round(ready, 2),
        "cpu_s": round(seconds, 2),
        "loop_cpu_s_per_round": round(loop_seconds / (loop_rounds - 1), 4),
        "cpu_s_per_round": round(seconds / (count - 1), 4),
        "megabytes_sent": round(2 * 4 * vector.size * CLIENTS * count / 2**20, 1),
        "peak_gb": round(peak, 2),
        "difference": difference,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=tuple(SIZES), default="cora")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--loop-rounds", type=int, help="rounds of the plain loop; default: all for cora, 3 for arxiv")
    parser.add_argument("--json", action="store_true", help="print nothing but the last line")
    args = parser.parse_args()
    if args.rounds < 2 or (args.loop_rounds is not None and args.loop_rounds < 2):
        parser.error("the first round warms up; allowed: 2 rounds or more")
    use_one_process_thread()
    report = compare(args.data, args.rounds, args.loop_rounds or (args.rounds if args.data == "cora" else 3))
    if not args.json:
        print(
            f"{args.data}: {report['cpu_s']} CPU s for {args.rounds} rounds; plain loop {report['loop_cpu_s_per_round']} each"
        )
    print(json.dumps(report))


if __name__ == "__main__":
    main()
