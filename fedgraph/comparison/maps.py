"""Two-dimensional maps of a distance matrix, for pictures."""

import warnings

import numpy as np


def mds(distances: np.ndarray, num_dimensions: int = 2) -> np.ndarray:
    """Classical multidimensional scaling (Torgerson 1952): float64 [S, num_dimensions], deterministic.

    The leading eigenvectors of B = −½ J D² J, J = I − 11ᵀ/S, times the roots of their eigenvalues; where B
    has fewer positive eigenvalues the remaining columns are zero. Each column's sign makes its entry of
    largest magnitude positive.
    """
    squares = np.asarray(distances, dtype=np.float64) ** 2
    centred = squares - squares.mean(axis=0, keepdims=True)
    centred = -0.5 * (centred - centred.mean(axis=1, keepdims=True))
    values, vectors = np.linalg.eigh(0.5 * (centred + centred.T))
    leading = np.argsort(values)[::-1][:num_dimensions]
    places = vectors[:, leading] * np.sqrt(np.clip(values[leading], 0.0, None))
    signs = np.sign(places[np.abs(places).argmax(axis=0), np.arange(places.shape[1])])
    result = np.zeros((squares.shape[0], num_dimensions))
    result[:, : places.shape[1]] = places * np.where(signs == 0, 1.0, signs)
    return result


def tsne(distances: np.ndarray, rng: np.random.Generator, perplexity: float = 30.0) -> np.ndarray:
    """t-SNE of a precomputed distance matrix (van der Maaten & Hinton 2008): float64 [S, 2].

    Perplexity is lowered to (S − 1) / 3 for small collections; fewer than four spaces fall back to ``mds``.
    """
    from sklearn.manifold import TSNE  # its import takes a second

    count = distances.shape[0]
    if count < 4:
        return mds(distances)
    model = TSNE(
        2,
        metric="precomputed",
        init="random",
        learning_rate="auto",
        perplexity=min(perplexity, (count - 1) / 3),
        random_state=int(rng.integers(2**31)),
    )
    with warnings.catch_warnings():
        # Huge distances (embeddings under much noise) overflow in its gradient; a map for the eyes bears that.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"sklearn\.")
        return model.fit_transform(np.clip(distances, 0.0, None)).astype(np.float64)
