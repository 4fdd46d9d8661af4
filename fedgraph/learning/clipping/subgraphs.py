"""Clipped gradient sums of a two-layer GraphSAGE, one row per root node and its bounded neighbourhood.

For root v with neighbours N(v), |N(v)| ≤ D, and a_u = [x_u, mean of u's neighbours' x] (``graphsage`` names the weights):

    h_u = relu(a_u W + b₀), u ∈ {v} ∪ N(v);    z_v = h_v U₁ + mean_{u∈N(v)} h_u V₁ + b₁.

The gradient of v's loss for W is Σ_u a_uᵀ δ_{u|v}, so its squared norm is Σ_{u,u'} (a_u·a_u')(δ_{u|v}·δ_{u'|v}): a
(D+1) × (D+1) Gram matrix of inputs, made once, against one of errors. Scaling v's errors by min(1, C/norm) and
summing them per node first gives the clipped sum with one product: no per-root gradient is ever made.

**Formal guarantee.** The sum changes by at most C when one root is removed and 2C when it is replaced, for every input,
rounding included (``per_sample``: its products, κ = 64); a root whose norm is not finite counts as zero. How many roots a node
touches is the sampler's business.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fedgraph.learning.clipping import per_sample
from fedgraph.learning.clipping.per_sample import PER_SAMPLE_NORM_ROUNDING, PER_SAMPLE_SPREAD
from fedgraph.learning.late import torch
from fedgraph.learning.layers import layouts
from fedgraph.learning.layers.graphsage import GraphsageMean, GraphsageWidths
from fedgraph.learning.layers.torch_matrices import FeatureMatrix, torch_device
from fedgraph.learning.propagation import walks

_CHUNK = 4_000_000  # entries of a dense block while Gram matrices are made


def join_inputs(features: sp.csr_array, adjacency: sp.csr_array) -> sp.csr_array:
    """[x_v, mean of v's neighbours' x], all that a one-layer GraphSAGE reads of v.

    Args:
        features: CSR [n, d].
        adjacency: CSR [n, n].

    Returns:
        CSR [n, 2d]; the second half is zero where a node has no neighbour.
    """
    mean = sp.csr_array(walks.random_matrix(adjacency).astype(np.float32) @ features)
    return sp.csr_array(sp.hstack([features, mean], format="csr"))


@dataclass(frozen=True, eq=False)
class SubgraphRoots:
    """A client's roots, ready.

    Attributes:
        x: a, [n, 2d].
        mean: Ā of the bounded graph.
        members: int64 [n, D + 1], each root and its neighbours, padded with n.
        gram: float64 [n, D + 1, D + 1], a_u·a_u' + 1. The 1 is the bias; terms may cancel, hence the precision.
        degrees: float32 [n].
    """

    x: FeatureMatrix
    mean: GraphsageMean
    members: torch.Tensor
    gram: torch.Tensor
    degrees: torch.Tensor


def prepare_roots(features: sp.csr_array, adjacency: sp.csr_array) -> SubgraphRoots:
    """What ``clipped_sum`` reads of a client's graph.

    Args:
        features: CSR [n, d].
        adjacency: CSR [n, n], symmetric, whose degrees are already bounded.
    """
    n, degrees = adjacency.shape[0], np.diff(adjacency.indptr)
    width = int(degrees.max(initial=0)) + 1
    members = np.full((n, width), n, dtype=np.int64)
    members[:, 0] = np.arange(n)
    owner = np.repeat(np.arange(n), degrees)
    members[owner, np.arange(owner.size) - adjacency.indptr[owner] + 1] = adjacency.indices
    rows = join_inputs(features, adjacency)
    place = torch_device()
    return SubgraphRoots(
        FeatureMatrix(rows),
        GraphsageMean(adjacency),
        torch.tensor(members, device=place),
        torch.tensor(_gram(rows, members), device=place),
        torch.tensor(degrees.astype(np.float32), device=place),
    )


def _gram(rows: sp.csr_array, members: np.ndarray) -> np.ndarray:
    """a_u·a_u' + 1 for all pairs of a root's members, float64; zero where a member is padding. May hold infinity."""
    n, width = members.shape
    out = np.zeros((n, width, width))
    padded = sp.csr_array(sp.vstack([rows, sp.csr_array((1, rows.shape[1]))], format="csr")).astype(np.float64)
    step = max(1, _CHUNK // (width * rows.shape[1]))
    for first in range(0, n, step):
        some = members[first : first + step]
        block = padded[some.ravel()].toarray().reshape(len(some), width, -1)
        real = (some < n).astype(np.float64)
        out[first : first + step] = block @ block.transpose(0, 2, 1) + real[:, :, None] * real[:, None, :]
    return out


def clipped_sum(
    widths: GraphsageWidths, vector: np.ndarray, inputs: SubgraphRoots, labels: torch.Tensor, clip: float
) -> np.ndarray:
    """Σ_roots clip(∇ cross-entropy of the root, C): flat [num_parameters], float32 up to 4,096 roots and float64 beyond.

    Args:
        widths: Of the network; its inputs are d.
        vector: [num_parameters].
        inputs: Of ``prepare_roots``.
        labels: int64 [n]; a root labelled −1 contributes nothing.
        clip: C.

    Raises:
        DataError: There are more roots than ``room_for`` allows.
    """
    dtype, share = per_sample.room_for(len(labels), PER_SAMPLE_SPREAD)
    u0, v0, b0, u1, v1, b1 = widths.views(layouts.to_device(vector))
    before = inputs.x @ torch.cat([u0, v0]) + b0
    hidden, active = torch.relu(before), (before > 0).float()
    around = inputs.mean.of(hidden)
    error = layouts.output_errors(hidden @ u1 + around @ v1 + b1, labels)

    own = (error @ u1.T) * active
    sent = (error @ v1.T) / inputs.degrees.clamp(min=1)[:, None]
    hidden, around, error, own, sent = (t.double() for t in (hidden, around, error, own, sent))
    outer = (hidden.square().sum(1) + around.square().sum(1) + 1) * error.square().sum(1)
    padded = torch.cat([active, torch.zeros_like(active[:1])]).double()
    errors = padded[inputs.members] * sent[:, None, :]  # δ_{u|v} of each root's members
    errors[:, 0] = own
    squared = ((errors @ errors.transpose(1, 2)) * inputs.gram).sum(dim=(1, 2)).clamp(min=0)
    lengths = torch.sqrt(inputs.gram.diagonal(dim1=1, dim2=2)) * errors.square().sum(dim=2).sqrt()
    length = torch.sqrt(outer) + lengths.sum(dim=1)
    norms = torch.maximum(torch.sqrt(outer + squared + PER_SAMPLE_NORM_ROUNDING * length.square()), length / PER_SAMPLE_SPREAD)
    scale = per_sample.scales(norms, clip * share)[:, None]
    error, own, sent = (per_sample.zero_infinite(t * scale) for t in (error, own, sent))
    hidden, around = (torch.where(scale > 0, t, torch.zeros_like(t)) for t in (hidden, around))  # 0 · ∞ must be 0

    first = own + inputs.mean.sums(sent) * active
    parts = (inputs.x.gradient(first), first.sum(0), hidden.T @ error, around.T @ error, error.sum(0))
    return torch.cat([part.reshape(-1) for part in parts]).cpu().numpy().astype(dtype, copy=False)
