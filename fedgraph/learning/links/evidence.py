"""What released rows of two nodes say about the pair: similarities, a discriminant, and heuristics in clear."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fedgraph.learning.propagation.aggregation import unit_length

RIDGE = 1e-2  # added to the diagonal of a correlation matrix before it is inverted
BLOCK = 200_000  # pairs that are held in memory at once
LONGEST = 2.0  # rows of what is known of a pair are scaled down to this length


def public_rows(features: sp.csr_array, width: int, seed: int) -> np.ndarray:
    """float32 [n, ≤ width], unit rows: directions of public features (truncated SVD); no column without features."""
    if not features.shape[1] or not features.nnz:
        return np.zeros((features.shape[0], 0), dtype=np.float32)
    if features.shape[1] <= width:
        return unit_length(np.asarray(features.toarray(), dtype=np.float32))
    from sklearn.decomposition import TruncatedSVD  # not before it is used: every run lists all methods

    svd = TruncatedSVD(width, random_state=seed % 2**32)
    return unit_length(svd.fit_transform(sp.csr_matrix(features)).astype(np.float32))


def random_rows(num_nodes: int, width: int, seed: int) -> np.ndarray:
    """float32 [n, width], unit rows of random signs: sums of neighbours' rows keep inner products (Johnson-Lindenstrauss)."""
    signs = np.random.default_rng(seed).integers(0, 2, size=(num_nodes, width)) * 2 - 1
    return unit_length(signs.astype(np.float32))


@dataclass(frozen=True, eq=False)
class Blocks:
    """Released rows: hops float32 [n, w] each, of hop 0 (public) to hop K. split: columns of features; the rest are random
    rows.
    """

    hops: tuple[np.ndarray, ...]
    split: int

    def known_of(self, pairs: np.ndarray) -> np.ndarray:
        """float64 [m, d]: similarities of both ends, in an order that depends on K and the widths alone.

        Of features the cosine of every two hops. Of random rows the inner products that count paths (hops 1·1: shared
        neighbours), but not those that count the pair's own edge (0·1); and both ends' degrees, as the rows' lengths show them.
        """
        parts = [self._known(pairs[first : first + BLOCK]) for first in range(0, max(1, len(pairs)), BLOCK)]
        return np.concatenate(parts)

    def _known(self, pairs: np.ndarray) -> np.ndarray:
        one, two = pairs[:, 0], pairs[:, 1]
        columns: list[np.ndarray] = []
        last = len(self.hops)
        if self.split:
            rows = [unit_length(h[:, : self.split]).astype(np.float64) for h in self.hops]
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
class Scale:
    """centre, spread: float64 [d], of random pairs, which are public given released rows."""

    centre: np.ndarray
    spread: np.ndarray

    @staticmethod
    def of_random(known: np.ndarray) -> "Scale":
        spread = known.std(axis=0)
        return Scale(known.mean(axis=0), np.where(spread > 1e-9, spread, 1.0))

    def apply(self, known: np.ndarray) -> np.ndarray:
        """[m, d], standardised, tails drawn in (arsinh), and at most ``LONGEST`` long."""
        rows = np.arcsinh((known - self.centre) / self.spread) / np.sqrt(max(1, known.shape[1]))
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows * np.minimum(1.0, LONGEST / np.maximum(lengths, 1e-12)))


def discriminant(known: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """float64 [d], Fisher's direction between edges and random pairs.

    Args:
        known: [q, d] of random pairs, scaled (``Scale``).
        sums: [1 + d], noisy: how many edges there are, and the sum of their scaled rows.
    """
    own = Scale.of_random(known)
    rows = (known - own.centre) / own.spread
    away = (sums[1:] / max(float(sums[0]), 1.0) - own.centre) / own.spread
    alike = rows.T @ rows / max(1, len(rows)) + RIDGE * np.eye(known.shape[1])
    return np.asarray(np.linalg.solve(alike, away) / own.spread)


def heuristic(name: str, adjacency: sp.csr_array, pairs: np.ndarray) -> np.ndarray:
    """float64 [m], scores in clear: ``common`` neighbours, ``adamic-adar`` or ``resource`` allocation, ``preferential``.

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
    for first in range(0, len(pairs), BLOCK):
        some = pairs[first : first + BLOCK]
        parts.append(np.asarray(weighed[some[:, 0]].multiply(adjacency[some[:, 1]]).sum(axis=1)).ravel())
    return np.concatenate(parts) if parts else np.zeros(0)
