"""A generated graph: the degree-corrected contextual block model.

Edges follow a degree-corrected stochastic block model (Karrer & Newman, Phys. Rev. E 83, 016107, 2011): a node's edges are
proportional to its propensity, and a fixed share of all edges joins nodes of one class. On top, every node gets at least one
edge (unless it is to stay isolated) and a share of the edges closes triangles, because ego-networks of block models are stars
and those of citation graphs are not. Words follow the class: each document draws a share of its words from the word
distribution of its class and the others from a background with Zipf popularity (the "contextual" part, after Deshpande et
al., NeurIPS 2018). That share varies between documents, and some neighbourhoods use the words of another class
altogether, so that no learner reaches 100 % and averaging over neighbours helps as little as it does on the real graphs.

Everything is sampled edge by edge and word by word: memory and time are linear in edges and words.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp

from fedgraph import seeds
from fedgraph.data.base.adjacencies import adjacency_of_edges
from fedgraph.errors import DataError
from fedgraph.types import Graph, GraphProvenance, plain_graph

_TILT = 1.5  # standard deviation of log(class probability / background probability) of a word
_EARNEST = 4.0  # concentration of the Beta distribution of a document's topical share
_STRETCH = 1.4  # the guaranteed edges even degrees out; wider propensities make up for it (found by trying)
_ROUNDS = 200


@dataclass(frozen=True)
class BlockModel:
    """What the generated graph shall look like."""

    class_sizes: tuple[int, ...]
    num_edges: int
    num_features: int  # words of the vocabulary
    homophily: float  # share of edges within a class, 0 … 1
    words: float  # mean number of distinct words of a node
    words_spread: float
    degree_spread: float
    closure: float = 0.0  # share of edges that close triangles, 0 … 1
    isolated: int = 0
    topic_share: float = 0.3  # mean share of a document's words that come from its class, 0 … 1
    misfiled: float = 0.0  # share of nodes whose words are those of another class than their label, 0 … 1
    zipf: float = 1.0  # exponent of word popularity (0 = all words equally common)

    @property
    def num_nodes(self) -> int:
        return sum(self.class_sizes)


def stand_in(model: BlockModel, key: str, title: str, seed: int) -> Graph:
    """The generated replacement of a published data set; its provenance says ``synthetic``."""
    detail = (
        f"SYNTHETIC stand-in for {title}: a generated degree-corrected contextual block model with its published size, "
        f"classes, homophily and words per document (seed {seed}); not the published data"
    )
    return draw(model, key, seed, GraphProvenance("synthetic", detail))


def draw(model: BlockModel, name: str, seed: int, provenance: GraphProvenance) -> Graph:
    """The graph of ``model`` for this name and seed; the same arguments give the same bytes.

    Raises ``DataError`` when so many edges do not fit.
    """
    rng = seeds.seeded_generator(seed, "data", name)
    labels = rng.permutation(np.repeat(np.arange(len(model.class_sizes)), model.class_sizes)).astype(np.int64)
    adjacency = adjacency_of_edges(_edges(model, labels, rng), labels.size)
    subjects = _subjects(model, labels, adjacency, rng)
    # Binary CSR float32 [n, num_features].
    n, d, num_classes = subjects.size, model.num_features, len(model.class_sizes)
    popularity = rng.permutation((np.arange(d) + 10.0) ** -model.zipf)
    background = popularity / popularity.sum()
    topics = background * np.exp(_TILT * rng.standard_normal((num_classes, d)))
    topics /= topics.sum(axis=1, keepdims=True)
    spread = max(model.words_spread, 1e-3)  # of the wanted distinct words of a node: gamma, at most 95 % of the vocabulary
    lengths = rng.gamma((model.words / spread) ** 2, spread**2 / model.words, n).clip(1.0, 0.95 * d)
    drawn = _draws_for(lengths, (1 - model.topic_share) * background + model.topic_share * topics.mean(axis=0))
    share = rng.beta(_EARNEST * model.topic_share, _EARNEST * (1 - model.topic_share), n) if 0 < model.topic_share < 1 else None
    topical = rng.binomial(drawn, model.topic_share if share is None else share)
    tokens = [_sample(np.repeat(np.arange(n), drawn - topical), background, d, rng)]
    for label in range(num_classes):
        members = np.flatnonzero(subjects == label)
        tokens.append(_sample(np.repeat(members, topical[members]), topics[label], d, rng))
    rows, columns = np.divmod(np.unique(np.concatenate(tokens)), d)
    matrix = sp.csr_array((np.ones(rows.size, np.float32), (rows.astype(np.int32), columns.astype(np.int32))), shape=(n, d))
    matrix.sort_indices()
    return plain_graph(name, adjacency, matrix, labels, len(model.class_sizes), provenance)


class _Partners:
    """Draws nodes proportionally to their propensity, within a class or outside it."""

    def __init__(self, labels: np.ndarray, propensity: np.ndarray, num_classes: int) -> None:
        self.labels = labels
        self.order = np.argsort(labels, kind="stable")
        self.mass = np.concatenate([[0.0], np.cumsum(propensity[self.order])])
        self.start = self.mass[np.searchsorted(labels[self.order], np.arange(num_classes + 1))]

    def anyone(self, count: int, rng: np.random.Generator) -> np.ndarray:
        return self._at(rng.random(count) * self.mass[-1])

    def of(self, nodes: np.ndarray, same: bool, rng: np.random.Generator) -> np.ndarray:
        """One partner for each of ``nodes``: of its class, or of any other class."""
        low, high = self.start[self.labels[nodes]], self.start[self.labels[nodes] + 1]
        if same:
            return self._at(low + rng.random(nodes.size) * (high - low))
        point = rng.random(nodes.size) * (self.mass[-1] - (high - low))
        return self._at(np.where(point < low, point, point + (high - low)))

    def _at(self, point: np.ndarray) -> np.ndarray:
        return self.order[np.minimum(np.searchsorted(self.mass, point, side="right") - 1, self.order.size - 1)]


def _edges(model: BlockModel, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Distinct edge keys, int64 [num_edges]; exactly ``round(homophily · num_edges)`` of them within a class."""
    n = labels.size
    if model.num_edges == 0:
        return np.zeros(0, np.int64)
    mean = 2 * model.num_edges / n
    variation = max((_STRETCH * model.degree_spread) ** 2 - mean, 0.0) / mean**2
    propensity = rng.lognormal(0.0, np.sqrt(np.log1p(variation)), n)
    alone = rng.permutation(n)[: model.isolated]
    propensity[alone] = 0.0
    partners = _Partners(labels, propensity, len(model.class_sizes))
    same_target = round(model.homophily * model.num_edges) if len(model.class_sizes) > 1 else model.num_edges
    joined = rng.permutation(np.setdiff1d(np.arange(n), alone))[: model.num_edges]
    share = round(model.homophily * joined.size)
    parts = []
    sides = (True, same_target, joined[:share]), (False, model.num_edges - same_target, joined[share:])
    for same, target, guaranteed in sides:
        if target == 0:
            continue

        def propose(count: int, same: bool = same) -> np.ndarray:
            nodes = partners.anyone(count, rng)
            return _keys(nodes, partners.of(nodes, same, rng), n)

        first = _distinct(_keys(guaranteed, partners.of(guaranteed, same, rng), n))[:target] if guaranteed.size else np.zeros(0)
        open_edges = _collect(first.astype(np.int64), max(round((1 - model.closure) * target), first.size), propose)
        parts.append((same, target, open_edges, propose))
    wedges = adjacency_of_edges(np.concatenate([p[2] for p in parts]), n)
    closed = []
    for same, target, pool, propose in parts:
        pool = _collect(pool, target, partial(_closing, wedges, labels, same, rng), rounds=12)
        closed.append(_collect(pool, target, propose, strict=True))
    return np.sort(np.concatenate(closed))


def _collect(
    pool: np.ndarray, target: int, propose: Callable[[int], np.ndarray], rounds: int = _ROUNDS, strict: bool = False
) -> np.ndarray:
    for _ in range(rounds):
        if pool.size >= target:
            break
        pool = _distinct(np.concatenate([pool, propose(2 * (target - pool.size) + 16)]))[:target]
    if strict and pool.size < target:
        raise DataError(f"the block model cannot place {target} distinct edges of one kind, only {pool.size}; ask for fewer")
    return pool


def _closing(wedges: sp.csr_array, labels: np.ndarray, same: bool, rng: np.random.Generator, count: int) -> np.ndarray:
    if wedges.nnz == 0:
        return np.zeros(0, np.int64)
    degrees = np.diff(wedges.indptr)
    arcs = rng.integers(wedges.nnz, size=count)
    middle = np.searchsorted(wedges.indptr, arcs, side="right") - 1
    other = wedges.indptr[middle] + (rng.random(count) * degrees[middle]).astype(np.int64)
    one, two = wedges.indices[arcs].astype(np.int64), wedges.indices[other].astype(np.int64)
    fit = (labels[one] == labels[two]) == same
    return _keys(one[fit], two[fit], labels.size)


def _keys(one: np.ndarray, two: np.ndarray, n: int) -> np.ndarray:
    proper = one != two
    low, high = np.minimum(one, two)[proper], np.maximum(one, two)[proper]
    keys: np.ndarray = low.astype(np.int64) * n + high
    return keys


def _distinct(keys: np.ndarray) -> np.ndarray:
    _, first = np.unique(keys, return_index=True)
    return keys[np.sort(first)]


def _subjects(model: BlockModel, labels: np.ndarray, adjacency: sp.csr_array, rng: np.random.Generator) -> np.ndarray:
    """The class whose words a node uses, int64 [n]: its label, or another for ``misfiled`` of the nodes.

    Whole neighbourhoods are misfiled together (a node and its neighbours of the same label), so that asking the neighbours
    does not help, as it does not on the real graphs.
    """
    subjects = labels.copy()
    left = round(model.misfiled * labels.size) if len(model.class_sizes) > 1 else 0
    for node in rng.permutation(labels.size) if left else ():
        if left == 0:
            break
        if subjects[node] == labels[node]:
            near = adjacency.indices[adjacency.indptr[node] : adjacency.indptr[node + 1]]
            near = near[(labels[near] == labels[node]) & (subjects[near] == labels[near])]
            group = np.append(near, node)[-left:]
            subjects[group] = (labels[node] + rng.integers(1, len(model.class_sizes))) % len(model.class_sizes)
            left -= group.size
    return subjects


def _draws_for(distinct: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """How many draws (int64) are expected to give that many ``distinct`` words."""
    grid = np.unique(np.geomspace(1, 50 * distinct.max() + 10, 60).astype(np.int64))
    expected = np.array([(-np.expm1(draws * np.log1p(-np.minimum(probabilities, 0.999)))).sum() for draws in grid])
    draws: np.ndarray = np.maximum(np.rint(np.interp(distinct, expected, grid)), 1).astype(np.int64)
    return draws


def _sample(rows: np.ndarray, probabilities: np.ndarray, d: int, rng: np.random.Generator) -> np.ndarray:
    cumulative = np.cumsum(probabilities)
    words = np.searchsorted(cumulative, rng.random(rows.size) * cumulative[-1], side="right")
    tokens: np.ndarray = rows.astype(np.int64) * d + np.minimum(words, d - 1)
    return tokens
