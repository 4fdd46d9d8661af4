"""A low-dimensional view of the features, learned from public rows only.

Noise added to a gradient grows with the number of parameters; the signal does not. Projecting features
on the leading right singular vectors of the *public* test features (smoothed over the public test graph)
keeps most of the signal in few directions. No private row enters, so it is free.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import svds

from fedgraph.learning.propagate import personalised_pagerank
from fedgraph.learning.sparse import unit_rows
from fedgraph.types import Graph


@lru_cache(maxsize=8)
def public_basis(public: Graph, num_directions: int, alpha: float = 0.25, steps: int = 2) -> np.ndarray:
    """Orthonormal [d, k], strongest direction first, k = min(num_directions, rank allowed by the public rows).

    public: a graph whose features and edges are public. Deterministic (fixed start vector).
    """
    rows = unit_rows(public.features)
    smoothed = personalised_pagerank(public.adjacency, rows, alpha, steps)
    k = min(num_directions, min(smoothed.shape) - 1)
    start = np.ones(min(smoothed.shape)) / np.sqrt(min(smoothed.shape))
    _, strength, directions = svds(sp.csr_array(smoothed).astype(np.float64), k=k, v0=start)
    return np.ascontiguousarray(directions[np.argsort(-strength)].T.astype(np.float32))


def project(features: sp.csr_array, basis: np.ndarray) -> sp.csr_array:
    """Unit rows of (unit rows of ``features``) · basis, [n, k]; a row outside the basis becomes zero."""
    return unit_rows(sp.csr_array(unit_rows(features) @ basis))


def public_curvature(public: Graph, basis: np.ndarray, bias_scale: float, damping: float) -> np.ndarray:
    """(S + damping·I)⁻¹ with S the second moment of the projected public rows, [k + 1, k + 1]; the last index is the bias.

    The Hessian of a multinomial logistic regression depends on features and not on labels, and is at most ½ S
    (Böhning 1992). Public rows estimate S, so a step preconditioned by this matrix is a damped Newton step whose
    only private part is the gradient.
    """
    rows = project(public.features, basis).toarray()
    rows = np.hstack([rows, np.full((rows.shape[0], 1), bias_scale)])
    strength, directions = np.linalg.eigh(rows.T @ rows / rows.shape[0])
    return np.ascontiguousarray((directions / (np.maximum(strength, 0) + damping)) @ directions.T).astype(np.float32)
