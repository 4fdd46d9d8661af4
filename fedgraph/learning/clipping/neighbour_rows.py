"""A logistic regression on rows [own features, projected sums over neighbours], in double precision.

What a node changes in a sum of its clipped gradients (``own_networks.example_gradients``) is proven in
``privacy.neighbour_sums`` from two facts that are made true here: the neighbours' part of a row has norm at most 1, and the
weights that read it have Frobenius norm at most ``bound``.
"""

import numpy as np
import scipy.sparse as sp


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


def limit_weights(vector: np.ndarray, inputs: int, bound: float) -> np.ndarray:
    """``vector`` with the weights of the neighbours' part (the last half of each row of W) projected on ‖·‖_F ≤ bound.

    Args:
        vector: (W [c, 2d], bias [c]) of a ``torch.nn.Linear``, flat; it is copied.
        inputs: 2d.
        bound: At least 0.
    """
    classes = vector.size // (inputs + 1)
    found = np.array(vector)
    part = found[: inputs * classes].reshape(classes, inputs)[:, inputs // 2 :]
    part *= min(1.0, bound / max(float(np.linalg.norm(part.astype(np.float64))), 1e-30))
    return found
