"""Generated collections of small graphs: molecules, contact maps, circles of colleagues.

Stand-ins for MUTAG, PROTEINS and IMDB-BINARY. Number of graphs per class, mean nodes and mean edges are those of the published
collections (measured on the files); the two classes differ in structure as the real ones do: fused rings and size in
molecules, size and reach of contacts in proteins, number of circles in ego-networks. The spreads overlap, so that no
classifier is perfect. Nothing else about the real collections is imitated.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from fedgraph import seeds
from fedgraph.data.base.adjacencies import feature_matrix, undirected_adjacency
from fedgraph.types import Graph, GraphCollection, GraphProvenance, plain_graph

_HEXAGON = 6


class _Sketch(NamedTuple):
    """One small graph as it is drawn: edges int [m, 2], features float [n, d]."""

    edges: np.ndarray
    features: np.ndarray


_Draw = Callable[[int, np.random.Generator], _Sketch]


def draw_collection(
    draw: _Draw, class_sizes: tuple[int, ...], name: str, seed: int, provenance: GraphProvenance
) -> GraphCollection:
    """``class_sizes[c]`` graphs of each class ``c`` in random order. draw: (class, generator) → sketch."""
    rng = seeds.seeded_generator(seed, "data", name)
    labels = rng.permutation(np.repeat(np.arange(len(class_sizes)), class_sizes)).astype(np.int64)
    graphs = tuple(_graph(draw(int(label), rng), f"{name}#{i}", provenance) for i, label in enumerate(labels))
    return GraphCollection(name, graphs, labels, len(class_sizes), provenance)


def draw_molecule(label: int, rng: np.random.Generator) -> _Sketch:
    """Fused hexagons with side atoms; features: one-hot atom type [n, 7]. Class 1 has more rings."""
    rings = 1 + int(rng.binomial(5, 0.49) if label else rng.binomial(2, 0.34))
    side_atoms = int(rng.poisson(4.12 if label else 5.21))
    ring = list(range(_HEXAGON))
    edges = [(a, (a + 1) % _HEXAGON) for a in range(_HEXAGON)]
    atoms = _HEXAGON
    for _ in range(rings - 1):
        at = int(rng.integers(2, 5))  # one of the sides that no earlier ring shares
        ring = [ring[at], ring[at + 1], *range(atoms, atoms + 4)]
        chain = [ring[1], *ring[2:], ring[0]]
        edges += list(pairwise(chain))
        atoms += 4
    kinds = [0] * atoms
    for _ in range(side_atoms):
        edges.append((int(rng.integers(atoms)), atoms))
        kinds.append(int(rng.choice(7, p=(0.10, 0.30, 0.56, 0.012, 0.001, 0.024, 0.003))))
        atoms += 1
    return _Sketch(np.array(edges), np.eye(7)[kinds])


def contacts(label: int, rng: np.random.Generator) -> _Sketch:
    """A chain with contacts; features [n, 4]: length of the element, one-hot kind of it. Class 1: shorter, far contacts."""
    mean, spread, sheets, near = (22.94, 20.84, 0.55, 0.55) if label else (50.0, 54.07, 0.46, 0.65)
    n = 4 + int(rng.gamma(((mean - 3.5) / spread) ** 2, spread**2 / (mean - 3.5)))
    wanted = round((0.85 if label else 0.90) * n)
    chain = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    contacts: set[tuple[int, int]] = set()
    for _ in range(20 * wanted):
        if len(contacts) == wanted:
            break
        first = int(rng.integers(n - 2))
        reach = int(rng.integers(2, 4)) if rng.random() < near else int(rng.integers(2, n))
        if first + reach < n:
            contacts.add((first, first + reach))
    kinds = rng.choice(3, size=n, p=(0.97 - sheets, sheets, 0.03))
    lengths = 1 + rng.poisson(np.where(kinds == 1, 4.0, 10.0))
    edges = np.concatenate([chain, np.array(sorted(contacts), dtype=np.int64).reshape(-1, 2)])
    return _Sketch(edges, np.column_stack([lengths, np.eye(3)[kinds]]))


def circles(label: int, rng: np.random.Generator) -> _Sketch:
    """An actor's ego-network: colleagues in cliques, the actor in all of them; no features. The classes differ in cliques."""
    mean, spread = (19.43, 8.26) if label else (20.11, 11.57)
    n = 12 + int(rng.gamma(((mean - 11.5) / spread) ** 2, spread**2 / (mean - 11.5)))
    few = rng.choice([1, 2, 4, 5], p=(0.32, 0.14, 0.27, 0.27)) if label else rng.choice([1, 2, 3], p=(0.14, 0.49, 0.37))
    cliques = int(few) + (n - 12) // 12
    circle = rng.integers(cliques, size=n)
    one, two = np.triu_indices(n, k=1)
    kept = (circle[one] == circle[two]) | (one == 0)
    return _Sketch(np.column_stack([one[kept], two[kept]]), np.zeros((n, 0)))


def _graph(sketch: _Sketch, name: str, provenance: GraphProvenance) -> Graph:
    n = sketch.features.shape[0]
    adjacency = undirected_adjacency(sketch.edges[:, 0], sketch.edges[:, 1], n).adjacency
    features = feature_matrix(sp.csr_array(sketch.features.astype(np.float32)))
    return plain_graph(name, adjacency, features, np.full(n, -1, dtype=np.int64), 0, provenance)
