"""Clipped gradients of a logistic regression on rows [own features, projected sums over neighbours], in double precision.

What a node changes in the sum is proven in ``privacy.neighbour_sums`` from two facts that are made true here: the
neighbours' part of a row has norm at most 1, and the weights that read it have Frobenius norm at most ``bound``.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from fedgraph.learning.clipping import per_sample
from fedgraph.learning.layers.layouts import Layout


def make(features: sp.csr_array, weights: sp.csr_array, scale: float) -> np.ndarray:
    """[x_u; P(Σ_v W_uv x_v / c)], where P projects on the unit ball.

    Args:
        features: CSR [n, d]; a row longer than 1 is scaled down to norm 1.
        weights: W, CSR [n, n].
        scale: c, above 0.

    Returns:
        float64 [n, 2d], both halves of norm at most 1.
    """
    own = np.asarray(features.astype(np.float64).todense())
    own /= np.maximum(1.0, np.linalg.norm(own, axis=1, keepdims=True))
    around = np.asarray(weights.astype(np.float64) @ own) / scale
    around /= np.maximum(1.0, np.linalg.norm(around, axis=1, keepdims=True))
    return np.hstack([own, around])


def limit_weights(layout: Layout, vector: np.ndarray, bound: float) -> np.ndarray:
    """``vector`` with the weights of the neighbours' part (rows d … 2d of the first layer) projected on ‖·‖_F ≤ bound.

    Args:
        layout: One layer, 2d inputs.
        vector: [num_parameters]; it is copied.
        bound: At least 0.
    """
    inputs, outputs = layout.shapes[0]
    found = np.array(vector)
    part = found[inputs // 2 * outputs : inputs * outputs]
    part *= min(1.0, bound / max(float(np.linalg.norm(part.astype(np.float64))), 1e-30))
    return found


def clipped_sum(
    layout: Layout, vector: np.ndarray, inputs: np.ndarray, labels: np.ndarray, clip: float, bound: float
) -> np.ndarray:
    """Σ_rows clip(∇ cross-entropy, C). A row whose norm is not finite counts as zero.

    Args:
        layout: One layer, 2d inputs.
        vector: [num_parameters]; ``limit_weights`` is applied first.
        inputs: float64 [n, 2d], of ``make``.
        labels: int64 [n]; a row labelled −1 contributes nothing.
        clip: C.
        bound: Of the neighbours' weights.

    Returns:
        Flat float64 [num_parameters].
    """
    return gradients(layout, vector, inputs, labels, clip, bound).total()


@dataclass(frozen=True, eq=False)
class NeighbourRowGradients:
    """The clipped gradients of all rows, each the outer product of (its inputs, 1) and its errors.

    Attributes:
        inputs: float64 [n, 2d].
        errors: float64 [n, c].
    """

    inputs: np.ndarray
    errors: np.ndarray

    def total(self) -> np.ndarray:
        """Their sum, flat [num_parameters]."""
        return np.concatenate([(self.inputs.T @ self.errors).ravel(), self.errors.sum(axis=0)])

    def left_over_products(self, message: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """As ``PerSampleGradients.left_over_products``."""
        known = self.errors * weights[:, None]
        split = self.inputs.shape[1] * self.errors.shape[1]
        beyond = message[:split].reshape(self.inputs.shape[1], -1) - self.inputs.T @ known
        return np.asarray(((self.inputs @ beyond + message[split:] - known.sum(axis=0)) * self.errors).sum(axis=1))

    def products(self, of: np.ndarray) -> np.ndarray:
        """As ``PerSampleGradients.products``."""
        error, rows = self.errors[of], self.inputs[of]
        return np.asarray((rows @ rows.T + 1.0) * (error @ error.T))


def gradients(
    layout: Layout, vector: np.ndarray, inputs: np.ndarray, labels: np.ndarray, clip: float, bound: float
) -> NeighbourRowGradients:
    """The clipped gradients of all rows. Arguments: as in ``clipped_sum``."""
    d, c = layout.shapes[0]
    theta = limit_weights(layout, vector.astype(np.float64), bound)
    error = softmax(inputs @ theta[: d * c].reshape(d, c) + theta[d * c :], axis=1)
    error[np.arange(len(labels)), np.maximum(labels, 0)] -= 1.0
    error[labels < 0] = 0.0
    norms = np.sqrt((np.square(inputs).sum(axis=1) + 1.0) * np.square(error).sum(axis=1))
    limit = clip * per_sample.room_for(len(labels))[1]
    error *= np.where(np.isfinite(norms), np.minimum(1.0, limit / np.maximum(norms, 1e-30)), 0.0)[:, None]
    return NeighbourRowGradients(inputs, np.asarray(error))
