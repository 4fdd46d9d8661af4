"""Pairs of nodes: drawn, split by public coins, scored, and measured against held-out edges.

A pair is an int64 row (u, v) with u < v. An undirected edge is one pair. It is scored by what released rows of both nodes say
(similarities, a discriminant), or in clear by heuristics or an encoder (``fit_encoder``).

**Encoder.** A graph convolutional encoder for links, without privacy: GCN or GraphSAGE layers, inner products, negatives drawn
in every step.

Reference: Kipf & Welling, *Variational Graph Auto-Encoders*, 2016 (its encoder without variation), with the training that the
Open Graph Benchmark uses for links (random negatives, binary cross-entropy).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fedgraph.errors import DataError
from fedgraph.learning.late import torch
from fedgraph.learning.layers.torch_matrices import seed_learner, torch_device
from fedgraph.learning.propagation.aggregation import scale_to_unit_length
from fedgraph.types import Graph, Subgraph

_HITS = (20, 50, 100)  # K of Hits@K (Hu et al. 2020, Open Graph Benchmark)
_RANKED = 1000  # the first so many negatives rank a positive for MRR, as in ogbl-citation2


def list_all(adjacency: sp.csr_array) -> np.ndarray:
    """Every undirected edge once: int64 [m, 2], u < v in each row, in ascending order.
    adjacency: CSR [n, n], symmetric; its values are not read.
    """
    upper = sp.triu(adjacency, 1).tocoo()
    pairs = np.stack([upper.row, upper.col], axis=1).astype(np.int64)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def list_known(subgraph: Subgraph) -> tuple[np.ndarray, np.ndarray]:
    """The edges that a client knows, by global ids.
    Returns (int64 [m, 2], the edges among its own nodes; int64 [k, 2], those that lead to nodes of others, smaller id first).
    """
    own, nodes = list_all(subgraph.graph.adjacency), subgraph.nodes
    cut = np.zeros((0, 2), dtype=np.int64) if subgraph.cut is None else subgraph.cut
    away = np.sort(np.column_stack([nodes[cut[:, 0]], cut[:, 1]]), axis=1).astype(np.int64)
    return nodes[own] if len(own) else own, away


def adjacency_of(pairs: np.ndarray, num_nodes: int) -> sp.csr_array:
    """The symmetric matrix of pairs: CSR [n, n] of float32 ones.
    pairs: int64 [m, 2]; a pair may be there more than once.
    """
    ends = np.concatenate([pairs, pairs[:, ::-1]])
    found = sp.csr_array((np.ones(len(ends), dtype=np.float32), (ends[:, 0], ends[:, 1])), shape=(num_nodes, num_nodes))
    found.sum_duplicates()
    found.data[:] = 1.0
    return found


def _owners_of_links(graph: Graph, pairs: np.ndarray) -> np.ndarray:
    """int64 [m, k], the owners of the edges ``pairs``; −1 where there is no further one. k is 0 where the data name none."""
    if not graph.edge_owners or not len(pairs):
        return np.zeros((len(pairs), len(graph.edge_owners)), dtype=np.int64)
    columns = [np.asarray(owners[pairs[:, 0], pairs[:, 1]]).ravel().astype(np.int64) - 1 for owners in graph.edge_owners]
    return np.stack(columns, axis=1)


def list_records(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """The records of a graph. A record is an edge with all its owners.

    Where each owner has a record of its own (``graph.one_owner_a_record``), an edge is there once for each owner. One owner's
    records then go without the edge, and without what others own of it.

    graph: the graph that says who owns which edge. Returns (int64 [r, 2], the edge of each record; int64 [r, k], its owners as
    in ``_owners_of_links``).
    """
    pairs = list_all(graph.adjacency)
    owners = _owners_of_links(graph, pairs)
    if not graph.one_owner_a_record:
        return pairs, owners
    records, place = np.nonzero(owners >= 0)
    return pairs[records], owners[records, place][:, None]


def require_unlinked_pair(num_nodes: int, without: sp.csr_array | None = None) -> None:
    """Refuse a graph without a pair that could be drawn as a non-edge.
    without: CSR [n, n], the edges that may not be drawn; None: none. Raises ``DataError``: every two nodes are joined, or there
    are no two.
    """
    taken = 0 if without is None else int(without.nnz) // 2
    if taken >= num_nodes * (num_nodes - 1) // 2:
        raise DataError(f"there is no pair without an edge among {num_nodes} nodes with {taken} edges; allowed: one or more")


def draw_pairs(num_nodes: int, count: int, rng: np.random.Generator, without: sp.csr_array | None = None) -> np.ndarray:
    """Pairs of different nodes, drawn uniformly with replacement: int64 [count, 2], u < v in each row.
    count: how many; 0 is allowed. without: CSR [n, n], symmetric, edges that are never drawn; None: every pair may be. Raises
    ``DataError``: there is no such pair.
    """
    if count:
        require_unlinked_pair(num_nodes, without)
    drawn = np.zeros((0, 2), dtype=np.int64)
    while len(drawn) < count:
        more = np.sort(rng.integers(num_nodes, size=(2 * count + 16, 2)), axis=1)
        more = more[more[:, 0] < more[:, 1]]
        if without is not None and len(more):
            more = more[np.asarray(without[more[:, 0], more[:, 1]]).ravel() == 0]
        drawn = np.concatenate([drawn, more])
    return drawn[:count]


def measure_scores(positives: np.ndarray, negatives: np.ndarray) -> dict[str, float]:
    """How well scores tell held-out edges from pairs without an edge.

    Args:
        positives: float [p], scores of held-out edges, p ≥ 1.
        negatives: float [q], scores of pairs that are no edges, q ≥ 1.

    Returns:
        A dictionary of:

        * ``auc``;
        * ``hits_at_K``, the share of positives above the K-th best negative, for each K of 20, 50, 100 that q allows
          (Hu et al. 2020, Open Graph Benchmark);
        * ``mrr``, the mean of 1 / rank among the first ``_RANKED`` negatives; equal scores share their ranks.
    """
    from sklearn.metrics import roc_auc_score  # not before it is used: every run lists all tasks

    truth = np.concatenate([np.ones(positives.size), np.zeros(negatives.size)])
    found = {"auc": float(roc_auc_score(truth, np.concatenate([positives, negatives])))}
    best = np.sort(negatives)[::-1]
    found |= {f"hits_at_{k}": float((positives > best[k - 1]).mean()) for k in _HITS if k <= negatives.size}
    some = np.sort(negatives[:_RANKED])
    above = some.size - np.searchsorted(some, positives, side="right")
    equal = np.searchsorted(some, positives, side="right") - np.searchsorted(some, positives, side="left")
    return found | {"mrr": float((1.0 / (1.0 + above + equal / 2)).mean())}


def rank_scores(positives: np.ndarray, negatives: np.ndarray) -> np.ndarray:
    """Of each positive the share of negatives below it; equal ones count by half. Their mean is the AUC.
    positives: float [p]. negatives: float [q], q ≥ 1. Returns float64 [p] in 0 … 1.
    """
    ranked = np.sort(negatives)
    sides = np.searchsorted(ranked, positives, side="left") + np.searchsorted(ranked, positives, side="right")
    return np.asarray(sides / (2 * ranked.size))


_RIDGE = 1e-2  # added to the diagonal of a correlation matrix before it is inverted
_BLOCK = 200_000  # pairs that are held in memory at once
LINK_ROW_LENGTH = 2.0  # rows of what is known of a pair are scaled down to this length


def public_rows(features: sp.csr_array, width: int, seed: int) -> np.ndarray:
    """Directions of public features, by a truncated singular value decomposition where there are more than ``width`` features.
    features: CSR [n, d], public. width: how many columns at most. Returns float32 [n, ≤ width], rows of length one or zero; no
    column where there are no features.
    """
    if not features.shape[1] or not features.nnz:
        return np.zeros((features.shape[0], 0), dtype=np.float32)
    if features.shape[1] <= width:
        return scale_to_unit_length(np.asarray(features.toarray(), dtype=np.float32))
    from sklearn.decomposition import TruncatedSVD  # not before it is used: every run lists all methods

    svd = TruncatedSVD(width, random_state=seed % 2**32)
    return scale_to_unit_length(svd.fit_transform(sp.csr_matrix(features)).astype(np.float32))


def random_rows(num_nodes: int, width: int, seed: int) -> np.ndarray:
    """Rows of random signs: sums of neighbours' rows keep inner products (Johnson-Lindenstrauss).
    seed: of the signs; who knows it knows the rows. Returns float32 [n, width], rows of length one.
    """
    signs = np.random.default_rng(seed).integers(0, 2, size=(num_nodes, width)) * 2 - 1
    return scale_to_unit_length(signs.astype(np.float32))


@dataclass(frozen=True, eq=False)
class LinkRows:
    """Released rows of every node, hop by hop."""

    hops: tuple[np.ndarray, ...]  # float32 [n, w] each, of hop 0 (public) to hop K
    split: int  # how many of the w columns come from features; the others come from random rows

    def known_of(self, pairs: np.ndarray) -> np.ndarray:
        """Similarities of both ends of each pair, in an order that depends on K and the widths alone.

        Of features the cosine of every two hops. Of random rows the inner products that count paths (hops 1·1: shared
        neighbours), but not those that count the pair's own edge (0·1); and both ends' degrees, as the rows' lengths show them.

        pairs: int64 [m, 2]. Returns float64 [m, d].
        """
        parts = [self._known(pairs[first : first + _BLOCK]) for first in range(0, max(1, len(pairs)), _BLOCK)]
        return np.concatenate(parts)

    def _known(self, pairs: np.ndarray) -> np.ndarray:
        one, two = pairs[:, 0], pairs[:, 1]
        columns: list[np.ndarray] = []
        last = len(self.hops)
        if self.split:
            rows = [scale_to_unit_length(h[:, : self.split]).astype(np.float64) for h in self.hops]
            columns += [_inner(rows[i], rows[j], one, two) for i in range(last) for j in range(i, last)]
        if self.hops[0].shape[1] > self.split:
            random = [h[:, self.split :].astype(np.float64) for h in self.hops]
            columns += [_inner(random[i], random[j], one, two) for i in range(last) for j in range(i, last) if i + j > 1]
            lengths = [np.log1p(np.square(h).sum(axis=1)) for h in random[1:]]
            columns += [length[one] + length[two] for length in lengths]
        return np.stack(columns, axis=1) if columns else np.zeros((len(pairs), 0))


def _inner(left: np.ndarray, right: np.ndarray, one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """The mean of ⟨left_u, right_v⟩ and ⟨right_u, left_v⟩ of every pair."""
    here = np.einsum("ij,ij->i", left[one], right[two])
    return here if left is right else (here + np.einsum("ij,ij->i", right[one], left[two])) / 2


@dataclass(frozen=True, eq=False)
class LinkScale:
    """Where similarities of random pairs lie; these are public given released rows."""

    centre: np.ndarray  # float64 [d], their mean
    spread: np.ndarray  # float64 [d], their standard deviation, 1 where it is 0

    @staticmethod
    def of_random(known: np.ndarray) -> LinkScale:
        """The scale of the similarities ``known``, float64 [q, d], of random pairs."""
        spread = known.std(axis=0)
        return LinkScale(known.mean(axis=0), np.where(spread > 1e-9, spread, 1.0))

    def apply(self, known: np.ndarray) -> np.ndarray:
        """Similarities [m, d], standardised, tails drawn in (arsinh), and at most ``LINK_ROW_LENGTH`` long."""
        rows = np.arcsinh((known - self.centre) / self.spread) / np.sqrt(max(1, known.shape[1]))
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows * np.minimum(1.0, LINK_ROW_LENGTH / np.maximum(lengths, 1e-12)))


def fit_direction(known: np.ndarray, sums: np.ndarray, std: float = 0.0) -> np.ndarray:
    """Fisher's direction between edges and random pairs: float64 [d].
    known: float64 [q, d], scaled similarities of random pairs (``LinkScale``). sums: [1 + d], noisy: how many edges there are,
    and the sum of their scaled rows. std: of the noise in each sum; a difference is drawn towards zero by its share of noise
    (James & Stein 1961).
    """
    own = LinkScale.of_random(known)
    rows = (known - own.centre) / own.spread
    away = (sums[1:] / max(float(sums[0]), 1.0) - own.centre) / own.spread
    if std:
        noise = np.square(std / max(float(sums[0]), 1.0) / own.spread)
        away = away * np.maximum(0.0, 1.0 - noise / np.maximum(np.square(away), 1e-300))
    alike = rows.T @ rows / max(1, len(rows)) + _RIDGE * np.eye(known.shape[1])
    return np.asarray(np.linalg.solve(alike, away) / own.spread)


def score_heuristically(name: str, adjacency: sp.csr_array, pairs: np.ndarray) -> np.ndarray:
    """Scores of pairs in clear, by a heuristic that reads the graph: float64 [m].

    name: ``common`` neighbours, ``adamic-adar``, ``resource`` allocation, or ``preferential`` attachment. adjacency: CSR [n,
    n], symmetric, ones. pairs: int64 [m, 2].

    Reference: Liben-Nowell & Kleinberg 2007, section 3; Zhou, Lü & Zhang 2009 (resource allocation).
    """
    degrees = np.diff(adjacency.indptr).astype(np.float64)
    if name == "preferential":
        return np.asarray(degrees[pairs[:, 0]] * degrees[pairs[:, 1]])
    weights = {
        "common": np.ones_like(degrees),
        "adamic-adar": 1.0 / np.log(np.maximum(degrees, 2.0)),
        "resource": 1.0 / np.maximum(degrees, 1.0),
    }[name]
    weighed = sp.csr_array(adjacency.astype(np.float64) @ sp.diags_array(weights))
    parts = []
    for first in range(0, len(pairs), _BLOCK):
        some = pairs[first : first + _BLOCK]
        parts.append(np.asarray(weighed[some[:, 0]].multiply(adjacency[some[:, 1]]).sum(axis=1)).ravel())
    return np.concatenate(parts) if parts else np.zeros(0)


UNITS, STEPS, RATE = 64, 150, 0.01  # tried on Cora and CiteSeer without privacy; 300 steps and 128 units gain nothing there


def fit_encoder(graph: Graph, seed: int, model: str = "gcn") -> np.ndarray:
    """Rows whose inner products score pairs, of an encoder that is trained on the graph's own edges. Nothing of it is private.
    graph: its edges and features. Without features a node's row is random. seed: of the initial parameters and of the
    negatives. model: ``gcn`` or ``sage``. Returns float32 [n, 64].
    """
    rng = np.random.default_rng(seed)
    pairs = list_all(graph.adjacency)
    both = np.concatenate([pairs, pairs[:, ::-1]]).T
    edges = torch.tensor(np.ascontiguousarray(both), device=torch_device())
    dense = graph.features.toarray() if graph.num_features else random_rows(graph.num_nodes, UNITS, seed)
    x = torch.nn.functional.normalize(torch.tensor(np.asarray(dense, dtype=np.float32), device=torch_device()), dim=1)
    from torch_geometric.nn import GCNConv, SAGEConv, Sequential  # not before it is used: every run lists all methods

    layer = SAGEConv if model == "sage" else GCNConv
    with torch.random.fork_rng(devices=[]):
        seed_learner(int(rng.integers(2**31)))
        layers = [(layer(x.shape[1], UNITS), "x, edges -> x"), torch.nn.ReLU(), (layer(UNITS, UNITS), "x, edges -> x")]
        network = Sequential("x, edges", layers).to(torch_device())
    optimiser = torch.optim.Adam(network.parameters(), lr=RATE, weight_decay=5e-4)
    for _ in range(STEPS if len(pairs) else 0):
        rows = network(x, edges)
        against = torch.tensor(draw_pairs(graph.num_nodes, len(pairs), rng, graph.adjacency), device=torch_device())
        both_kinds = torch.cat([torch.tensor(pairs, device=torch_device()), against])
        wanted = torch.cat([torch.ones(len(pairs)), torch.zeros(len(against))]).to(torch_device())
        scores = (rows[both_kinds[:, 0]] * rows[both_kinds[:, 1]]).sum(dim=1)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, wanted)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    with torch.no_grad():
        return np.asarray(network(x, edges).cpu().numpy(), dtype=np.float32)
