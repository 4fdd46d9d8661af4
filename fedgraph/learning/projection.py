"""A low-dimensional view of the features, learned from public rows only.

Features are projected on the leading right singular vectors of the *public* test features, smoothed over the public test graph,
words weighed by how rare they are among the public rows (inverse document frequency, Spärck Jones 1972). No private row enters
any of it, so it is free.

**Pairs of words** (``of_pairs``), a quadratic kernel on public rows: two words together say more than the sum of
what each says. The kernel

    k(x, z) = ((⟨x, z⟩ + t) / (1 + t))²,   x and z unit rows in public coordinates (``project_features``), t = 0.05

is an inner product over all pairs of coordinates (Schölkopf & Smola 2002, §13.1). Kept is its span over public rows (Nyström:
Williams & Seeger 2001): the leading directions of their kernel, smoothed in the same way. Each row is mapped on its own.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from fedgraph.learning import public_cache, walks
from fedgraph.learning.tensors import FeatureMatrix, torch, torch_device, unit_matrix_rows
from fedgraph.types import Graph

_OVERSAMPLED, _PASSES = 50, 2  # of the randomised SVD (Halko, Martinsson & Tropp 2011)
_ROWS = 1 << 16  # rows of which temporary copies are held at a time
_PART = 1 << 8  # rows that go to double precision at a time, within the processor's cache
_MEMORY = Path("/proc/meminfo")
_ALPHA = 0.25  # share of a node's own row in every step of the smoothing
_DOUBLED = 1 << 26  # numbers up to which dense rows are kept in double precision, too (half a gigabyte)


class ProjectedRows(FeatureMatrix):
    """Dense rows [n, k] with the products of ``TorchMatrix``; many of them go to double precision by parts.
    rows: float [n, k].
    """

    def __init__(self, rows: np.ndarray) -> None:
        self.forward = torch.as_tensor(rows, dtype=torch.float32, device=torch_device())
        self.transposed = self.forward.T
        self.squared_norms = torch.cat([part.double().square().sum(dim=1) for part in torch.split(self.forward, _ROWS)])

    def gradient(self, error: torch.Tensor) -> torch.Tensor:
        if error.dtype != torch.float64 or self.forward.numel() <= _DOUBLED:
            return super().gradient(error)
        found = torch.zeros((self.forward.shape[1], error.shape[1]), dtype=torch.float64, device=error.device)
        for part, off in zip(torch.split(self.forward, _PART), torch.split(error, _PART), strict=True):
            found += part.double().T @ off
        return found


def has_projectable_words(public: Graph) -> bool:
    """Whether public features are whole numbers (presence or counts of words), and not yet weighted (tf-idf, embeddings)."""
    return bool((public.features.data == np.round(public.features.data)).all())


def _rarity_weights(public: Graph, power: float) -> np.ndarray:
    """log((m + 2) / (df + 1))^power of each feature, float32 [d]; df counts the m public rows that have it. Never zero."""
    rows = public.features
    frequency = np.bincount(rows.indices[rows.data != 0], minlength=rows.shape[1])
    return np.asarray(np.log((rows.shape[0] + 2) / (frequency + 1)) ** power, dtype=np.float32)


@lru_cache(maxsize=8)
def basis_of(public: Graph, num_directions: int, steps: int = 2, rarity: float = 0.0) -> np.ndarray:
    """Directions of the public features, strongest first. It is deterministic (fixed start block).
    public: a graph whose features and edges are public. num_directions: how many at most. steps: of the smoothing over the
    public graph. rarity: the power of ``_rarity_weights``.
    Where it is 0 the columns are orthonormal. Else they are orthonormal directions of the weighted features, times the weights,
    so that ``project_features`` takes unweighted rows either way. Returns float32 [d, k] with k = min(num_directions,
    rank of the public rows), at least 1.
    """
    key = public_cache.key_of("basis", public.features, public.adjacency, num_directions, steps, rarity)
    return public_cache.make(key, lambda: _basis(public, num_directions, steps, rarity))


def _basis(public: Graph, num_directions: int, steps: int, rarity: float) -> np.ndarray:
    weights = _rarity_weights(public, rarity)
    rows = unit_matrix_rows(sp.csr_array(public.features @ sp.diags_array(weights)))
    walk = walks.random_matrix(public.adjacency).astype(np.float32)
    back, columns = sp.csr_array(walk.T), sp.csr_array(rows.T)

    width = min(num_directions + _OVERSAMPLED, *rows.shape)
    block = np.random.default_rng(0).standard_normal((rows.shape[1], width), dtype=np.float32)
    for _ in range(_PASSES):
        image, _ = np.linalg.qr(_smoothed(walk, rows @ block, steps))
        block, _ = np.linalg.qr(columns @ _smoothed(back, image, steps))
    _, strength, turned = np.linalg.svd(_smoothed(walk, rows @ block, steps), full_matrices=False)
    k = max(1, min(num_directions, int((strength > 1e-5 * strength[0]).sum())))
    return np.ascontiguousarray(weights[:, None] * (block @ turned[:k].T).astype(np.float32))


def _smoothed(over: sp.csr_array, block: np.ndarray, steps: int) -> np.ndarray:
    """B ← (1 − ``_ALPHA``) W B + ``_ALPHA`` block, ``steps`` times from B = block; W = over [n, n], block float32 [n, k]."""
    out = block
    for _ in range(steps):
        out = np.float32(1 - _ALPHA) * (over @ out) + np.float32(_ALPHA) * block
    return out


def _unit_or_zero(rows: np.ndarray, least: float) -> np.ndarray:
    """``rows`` (float32 [n, k]), each divided by its norm in place; a norm of at most ``least`` (rounding) makes zeros."""
    for first in range(0, len(rows), _ROWS):
        part = rows[first : first + _ROWS]
        norms = np.linalg.norm(part, axis=1, keepdims=True)
        np.divide(part, norms, out=part, where=norms > least)
        part[norms[:, 0] <= least] = 0
    return rows


def project_features(features: sp.csr_array, basis: np.ndarray) -> np.ndarray:
    """Unit rows of ``features`` · basis. Every row is on its own; one outside the basis becomes zero.
    features: CSR [n, d]. basis: float32 [d, k]. Returns float32 [n, k], rows of length one or zero. Raises ``MemoryError``: the
    rows need more memory than this machine has free.
    """
    num_rows = features.shape[0]
    num_directions = basis.shape[1]
    needed = 3 * 4 * num_rows * num_directions
    with contextlib.suppress(OSError, StopIteration):
        line = next(text for text in _MEMORY.read_text().splitlines() if text.startswith("MemAvailable:"))
        free = 1024 * int(line.split()[1])
        if needed > free:
            wide = f"{num_rows:,} rows in {num_directions} directions"
            raise MemoryError(f"{wide} need {needed / 1e9:.1f} GB, {free / 1e9:.1f} GB are free: give a smaller 'projection'")
    rows = np.asarray(unit_matrix_rows(features) @ basis, dtype=np.float32)
    return _unit_or_zero(rows, 1e-6 * np.abs(basis).max())


def curvature_of(rows: np.ndarray, bias_scale: float, damping: float) -> np.ndarray:
    """(S + damping·I)⁻¹ with S the second moment of public rows and their bias: float32 [k + 1, k + 1]; the bias comes last.

    The Hessian of a multinomial logistic regression depends on features and not on labels, and is at most ½ S
    (Böhning 1992). Public rows estimate S, so a step preconditioned by this matrix is a damped Newton step whose
    only private part is the gradient.
    rows: float [n, k], public. bias_scale: the constant that stands for the bias in every row. damping: above 0.
    """
    second = np.zeros((rows.shape[1] + 1, rows.shape[1] + 1))
    for first in range(0, len(rows), _ROWS):
        part = rows[first : first + _ROWS]
        part = np.hstack([part, np.full((part.shape[0], 1), bias_scale, dtype=np.float32)]).astype(np.float64)
        second += part.T @ part
    second /= rows.shape[0]
    return np.linalg.inv(second + damping * np.eye(len(second))).astype(np.float32)


_STEPS = 4  # of the smoothing, as in ``basis_of``
_OFFSET = 0.05  # t: how much single words count beside pairs
_WORD_DIRECTIONS = 600  # coordinates below the kernel
_LANDMARKS = 4000  # public rows that are compared with, at most (their kernel is a dense matrix)
_COMPARED_ROWS = 2048  # rows whose similarities are held at a time


@dataclass(frozen=True, eq=False)
class PairProjection:
    """A map of features to directions of pairs of words, made from public rows."""

    basis: np.ndarray  # float32 [d, k] (``basis_of``)
    landmarks: np.ndarray  # float32 [m, k], public rows that are compared with, of length one or zero
    mixing: np.ndarray  # float32 [m, p], from similarities to directions

    def rows(self, features: sp.csr_array) -> np.ndarray:
        """Unit rows in the p directions; a row that no public direction sees is zero.
        features: CSR [n, d]. Returns float32 [n, p].
        """
        inner = project_features(features, self.basis)
        found = np.empty((len(inner), self.mixing.shape[1]), dtype=np.float32)
        for first in range(0, len(inner), _COMPARED_ROWS):
            found[first : first + _COMPARED_ROWS] = (
                _similarity(inner[first : first + _COMPARED_ROWS], self.landmarks) @ self.mixing
            )
        return _unit_or_zero(found, 1e-6)


def _similarity(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """k(x, z), float32 [n, m], of unit rows [n, k] and [m, k]; 0 where either row is zero."""
    found = left @ right.T
    found += np.float32(_OFFSET)
    found *= np.float32(1 / (1 + _OFFSET))
    np.square(found, out=found)
    found[~left.any(axis=1)] = 0
    found[:, ~right.any(axis=1)] = 0
    return found


@lru_cache(maxsize=8)
def of_pairs(public: Graph, num_directions: int, rarity: float = 0.0) -> PairProjection:
    """The strongest directions of S K Sᵀ, K the kernel of the public rows and S the smoothing.

    It is deterministic (fixed start block and sample), by randomised subspace iteration (Halko, Martinsson & Tropp 2011).
    public: a graph whose features and edges are public; of more than ``_LANDMARKS`` nodes a fixed sample is compared with.
    num_directions: how many at most; fewer where the rank is lower. rarity: as in ``basis_of``.
    """
    basis = basis_of(public, _WORD_DIRECTIONS, steps=_STEPS, rarity=rarity)
    key = public_cache.key_of("pairs", public.features, public.adjacency, num_directions, _ALPHA, _STEPS, rarity)
    landmarks, mixing = public_cache.make(key, lambda: _pairs(public, basis, num_directions))
    return PairProjection(basis, landmarks, mixing)


def _pairs(public: Graph, basis: np.ndarray, num_directions: int) -> tuple[np.ndarray, np.ndarray]:
    """(landmarks, mixing) of ``PairProjection``."""
    rng = np.random.default_rng(0)
    known = public
    if public.num_nodes > _LANDMARKS:
        known = public.induced(np.sort(rng.choice(public.num_nodes, _LANDMARKS, replace=False)))
    landmarks = project_features(known.features, basis)
    kernel = _similarity(landmarks, landmarks)
    walk = walks.random_matrix(known.adjacency).astype(np.float32)
    back = sp.csr_array(walk.T)

    def image(block: np.ndarray) -> np.ndarray:
        return _smoothed(walk, kernel @ _smoothed(back, block, _STEPS), _STEPS)

    block = rng.standard_normal((len(landmarks), min(num_directions + _OVERSAMPLED, len(landmarks))), dtype=np.float32)
    for _ in range(_PASSES + 1):
        block, _ = np.linalg.qr(image(block))
    inner = (block.T @ image(block)).astype(np.float64)
    strength, turned = np.linalg.eigh((inner + inner.T) / 2)
    strength, turned = strength[::-1], turned[:, ::-1]
    k = max(1, min(num_directions, int((strength > 1e-5 * max(strength[0], 1e-12)).sum())))
    scale = 1 / np.sqrt(np.maximum(strength[:k], 1e-12))
    mixing = _smoothed(back, block @ (turned[:, :k] * scale).astype(np.float32), _STEPS)
    return landmarks, np.ascontiguousarray(mixing, dtype=np.float32)
