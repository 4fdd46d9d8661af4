"""A graph convolutional encoder for links, without privacy: GCN layers, inner products, negatives drawn in every step.

Reference: Kipf & Welling, *Variational Graph Auto-Encoders*, 2016 (its encoder without variation), with the training that the
Open Graph Benchmark uses for links (random negatives, binary cross-entropy).
"""

from __future__ import annotations

import numpy as np

from fedgraph.learning.late import torch
from fedgraph.learning.layers.sparse import device, seed_torch
from fedgraph.learning.links.evidence import random_rows
from fedgraph.learning.links.pairs import edges_of, random_pairs
from fedgraph.types import Graph

UNITS, STEPS, RATE = 64, 150, 0.01  # tried on Cora and CiteSeer without privacy; 300 steps and 128 units gain nothing there


def _network(width: int) -> torch.nn.Module:
    """Two layers, [n, width] → [n, 64]."""
    from torch_geometric.nn import GCNConv, Sequential  # not before it is used: every run lists all methods

    layers = [(GCNConv(width, UNITS), "x, edges -> x"), torch.nn.ReLU(), (GCNConv(UNITS, UNITS), "x, edges -> x")]
    found: torch.nn.Module = Sequential("x, edges", layers)
    return found


def fit(graph: Graph, seed: int) -> np.ndarray:
    """float32 [n, 64], rows whose inner products score pairs; trained on the graph's own edges. Without features a node's row
    is random.
    """
    rng = np.random.default_rng(seed)
    pairs = edges_of(graph.adjacency)
    both = np.concatenate([pairs, pairs[:, ::-1]]).T
    edges = torch.tensor(np.ascontiguousarray(both), device=device())
    dense = graph.features.toarray() if graph.num_features else random_rows(graph.num_nodes, UNITS, seed)
    x = torch.nn.functional.normalize(torch.tensor(np.asarray(dense, dtype=np.float32), device=device()), dim=1)
    with torch.random.fork_rng(devices=[]):
        seed_torch(int(rng.integers(2**31)))
        network = _network(x.shape[1]).to(device())
    optimiser = torch.optim.Adam(network.parameters(), lr=RATE, weight_decay=5e-4)
    for _ in range(STEPS if len(pairs) else 0):
        rows = network(x, edges)
        against = torch.tensor(random_pairs(graph.num_nodes, len(pairs), rng, graph.adjacency), device=device())
        both_kinds = torch.cat([torch.tensor(pairs, device=device()), against])
        wanted = torch.cat([torch.ones(len(pairs)), torch.zeros(len(against))]).to(device())
        scores = (rows[both_kinds[:, 0]] * rows[both_kinds[:, 1]]).sum(dim=1)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, wanted)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    with torch.no_grad():
        return np.asarray(network(x, edges).cpu().numpy(), dtype=np.float32)
