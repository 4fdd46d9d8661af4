"""Rows seen through pairs of words: a quadratic kernel on public rows.

Two words together say more than the sum of what each says. The kernel

    k(x, z) = ((⟨x, z⟩ + t) / (1 + t))²,   x and z unit rows in public coordinates (``projection.coordinates``), t = 0.05

is an inner product over all pairs of coordinates (Schölkopf & Smola 2002, §13.1). Predictions are asked for public rows
only, so nothing is lost by keeping only its span over them (Nyström: Williams & Seeger 2001): directions are the leading
ones of the kernel between public rows, smoothed over the public graph as ``public_basis`` smooths words. No private row
enters any of it, and each row is mapped on its own.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy.sparse as sp

from fedgraph.learning.propagation.propagate import row_stochastic
from fedgraph.learning.views.projection import OVERSAMPLED, PASSES, coordinates, public_basis, smoothed, unit_or_zero
from fedgraph.types import Graph

OFFSET = 0.05  # t: how much single words count beside pairs
WORD_DIRECTIONS = 600  # coordinates below the kernel
LANDMARKS = 4000  # public rows that are compared with, at most (their kernel is a dense matrix)
ROWS = 2048  # rows whose similarities are held at a time


@dataclass(frozen=True, eq=False)
class Pairs:
    """basis: float32 [d, k] (``public_basis``). landmarks: float32 [m, k], unit or zero rows. mixing: float32 [m, p]."""

    basis: np.ndarray
    landmarks: np.ndarray
    mixing: np.ndarray

    def rows(self, features: sp.csr_array) -> np.ndarray:
        """Unit rows in the p directions, float32 [n, p]; a row that no public direction sees is zero."""
        inner = coordinates(features, self.basis)
        found = np.empty((len(inner), self.mixing.shape[1]), dtype=np.float32)
        for first in range(0, len(inner), ROWS):
            found[first : first + ROWS] = similarity(inner[first : first + ROWS], self.landmarks) @ self.mixing
        return unit_or_zero(found, 1e-6)


def similarity(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """k(x, z), float32 [n, m], of unit rows [n, k] and [m, k]; 0 where either row is zero."""
    found = left @ right.T
    found += np.float32(OFFSET)
    found *= np.float32(1 / (1 + OFFSET))
    np.square(found, out=found)
    found[~left.any(axis=1)] = 0
    found[:, ~right.any(axis=1)] = 0
    return found


@lru_cache(maxsize=8)
def public_pairs(public: Graph, num_directions: int, alpha: float = 0.25, steps: int = 4, rarity: float = 0.0) -> Pairs:
    """The min(num_directions, rank) strongest directions of S K Sᵀ, K the kernel of the public rows, S the smoothing.

    public: a graph whose features and edges are public; of more than ``LANDMARKS`` nodes a fixed sample is compared with.
    alpha, steps, rarity: as in ``public_basis``. Deterministic (fixed start block and sample). Randomised subspace
    iteration (Halko, Martinsson & Tropp 2011).
    """
    basis = public_basis(public, WORD_DIRECTIONS, alpha=alpha, steps=steps, rarity=rarity)
    rng = np.random.default_rng(0)
    known = public
    if public.num_nodes > LANDMARKS:
        known = public.induced(np.sort(rng.choice(public.num_nodes, LANDMARKS, replace=False)))
    landmarks = coordinates(known.features, basis)
    kernel = similarity(landmarks, landmarks)
    walk = row_stochastic(known.adjacency).astype(np.float32)
    back = sp.csr_array(walk.T)

    def image(block: np.ndarray) -> np.ndarray:
        return smoothed(walk, kernel @ smoothed(back, block, alpha, steps), alpha, steps)

    block = rng.standard_normal((len(landmarks), min(num_directions + OVERSAMPLED, len(landmarks))), dtype=np.float32)
    for _ in range(PASSES + 1):
        block, _ = np.linalg.qr(image(block))
    inner = (block.T @ image(block)).astype(np.float64)
    strength, turned = np.linalg.eigh((inner + inner.T) / 2)
    strength, turned = strength[::-1], turned[:, ::-1]
    k = max(1, min(num_directions, int((strength > 1e-5 * max(strength[0], 1e-12)).sum())))
    scale = 1 / np.sqrt(np.maximum(strength[:k], 1e-12))
    mixing = smoothed(back, block @ (turned[:, :k] * scale).astype(np.float32), alpha, steps)
    return Pairs(basis, landmarks, np.ascontiguousarray(mixing, dtype=np.float32))
