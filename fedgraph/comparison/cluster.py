"""Clustering of metric spaces, scores that compare the clusters with the labels, and two-dimensional maps for pictures.

``by_gromov`` is k-means whose distance is the Gromov-Wasserstein discrepancy and whose centroids are
Gromov-Wasserstein barycentres with the mean number of nodes of their members (Jin & Chen, section 4).
``spectrally`` needs the distance matrix alone. ``by_size`` sees nothing but the number of nodes: what a
clustering shows beyond that row is what it learnt from the release.

**Barycentres** by block coordinate descent over the compiled solver:

    minimise over C  Σ_s λ_s GW(C, p; C_s, p_s)

With the couplings T_s fixed, the best structure is C = (Σ_s λ_s T_s C_s T_sᵀ) / (p pᵀ), and with features
x = (Σ_s λ_s T_s x_s) / p (Peyré, Cuturi & Solomon 2016, Proposition 3; Vayer et al. 2019, section 4).
Each half step can only lower the objective when the couplings are improved from where they were; a fresh
descent from p qᵀ may land higher, so a round that raises the objective is not taken.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedgraph.comparison import gromov, gromov_bounds
from fedgraph.comparison.gromov import GromovOptions
from fedgraph.comparison.metric_space import MetricSpace

_Spaces = Sequence[MetricSpace]
_ROUNDS = 5  # of a barycentre, at most
_SETTLED = 1e-6  # of its objective, relative
_STARTS = 10  # of k-means on points
_PERPLEXITY = 30.0  # of a map of many spaces


@dataclass(frozen=True, eq=False)
class Clustering:
    """Clusters of S spaces."""

    labels: np.ndarray  # int64 [S], 0 … k − 1
    inertia: float  # Σ_s of the discrepancy to the own centroid; NaN where the method has no centroids
    centroids: tuple[MetricSpace, ...]  # k spaces; none where the method has none
    iterations: int  # Of the best start
    converged: bool  # Whether labels stood still


def by_gromov(
    spaces: Sequence[MetricSpace],
    num_clusters: int,
    rng: np.random.Generator,
    options: GromovOptions = GromovOptions(),  # noqa: B008
    num_init: int = 3,
    max_iterations: int = 30,
    distances: np.ndarray | None = None,
) -> Clustering:
    """The best of several runs of Lloyd's algorithm under (fused) Gromov-Wasserstein.

    A centroid has the rounded mean number of its members' nodes. An empty cluster restarts from the space worst served by its
    own centroid. It is deterministic given ``rng``.

    Args:
        spaces: At least as many as clusters.
        num_clusters: k, at least 1.
        rng: Draws the seeds (k-means++, Arthur & Vassilvitskii 2007: the next seed is drawn in proportion to the discrepancy to
            the nearest one, which already is a squared loss).
        options: How discrepancies are computed.
        num_init: How many runs.
        max_iterations: Of each run.
        distances: float64 [S, S], precomputed discrepancies, used for the seeds only; without it the few columns needed are
            computed.

    Raises:
        ValueError: A number is out of its range.
    """
    if not 1 <= num_clusters <= len(spaces):
        raise ValueError(f"num_clusters must lie in 1 … {len(spaces)} (the number of spaces), found {num_clusters}")
    if num_init < 1 or max_iterations < 1:
        raise ValueError(f"num_init and max_iterations must be at least 1, found {num_init} and {max_iterations}")
    every = np.arange(len(spaces))
    runs = []
    for stream in rng.spawn(num_init):
        chosen = [int(stream.integers(len(spaces)))]
        nearest = np.full(len(spaces), np.inf)
        while len(chosen) < num_clusters:
            if distances is not None:
                row = distances[chosen[-1]]
            else:
                row = _values(spaces, [spaces[chosen[-1]]], every, np.zeros_like(every), options)
            nearest = np.minimum(nearest, np.maximum(row, 0.0))
            nearest[chosen] = 0.0
            open_mass = nearest.sum()
            if open_mass > 0:
                chosen.append(int(stream.choice(len(spaces), p=nearest / open_mass)))
            else:
                chosen.append(int(stream.choice(np.setdiff1d(every, chosen))))
        runs.append(_lloyd(spaces, [spaces[i] for i in chosen], options, max_iterations))
    return min(runs, key=lambda run: run.inertia)


def spectrally(distances: np.ndarray, num_clusters: int, rng: np.random.Generator) -> Clustering:
    """Spectral clustering on the affinity exp(−D / s), where s is the median distance of two spaces.

    Only labels are meaningful: there are no centroids and the inertia is NaN. Where fewer spaces can be told apart than there
    are clusters, some are empty, or split by rounding.

    Args:
        distances: [S, S].
        num_clusters: k.
        rng: Draws the starts of its k-means.
    """
    upper = distances[np.triu_indices(distances.shape[0], 1)]
    scale = float(np.median(upper)) if upper.size else 1.0
    affinity = np.exp(-np.asarray(distances) / (scale if scale > 0 else 1.0))
    if num_clusters == 1 or distances.shape[0] <= num_clusters:
        labels = np.arange(distances.shape[0]) % num_clusters
    else:
        from sklearn.cluster import k_means  # not before it is used: every run lists all tasks
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.utils import check_random_state

        # As scikit-learn's SpectralClustering, with its draws, but for its ARPACK, which restarts by a stream that nobody can
        # name where spaces tie.
        state = check_random_state(int(rng.integers(2**31)))
        state.uniform(-1, 1, len(affinity))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Number of distinct clusters", category=ConvergenceWarning)
            _, labels, _ = k_means(_spectral_map(affinity, num_clusters), num_clusters, random_state=state, n_init=_STARTS)
    return Clustering(labels.astype(np.int64), float("nan"), (), 1, True)


def _spectral_map(affinity: np.ndarray, size: int) -> np.ndarray:
    """[S, size], the first eigenvectors of the normalised Laplacian, scaled and signed as by scikit-learn."""
    from scipy.linalg import eigh
    from scipy.sparse.csgraph import laplacian

    matrix, roots = laplacian(affinity, normed=True, return_diag=True)
    np.fill_diagonal(matrix, 1.0)
    vectors = eigh(matrix, subset_by_index=(0, size - 1))[1] / roots[:, None]
    return np.asarray(vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(size)]))


def by_vectors(points: np.ndarray, num_clusters: int, rng: np.random.Generator) -> Clustering:
    """k-means on points. Where fewer of them differ than there are clusters, some clusters are empty.

    Args:
        points: [S, h].
        num_clusters: k.
        rng: Draws the starts.
    """
    from sklearn.cluster import KMeans  # not before it is used: every run lists all tasks
    from sklearn.exceptions import ConvergenceWarning

    model = KMeans(min(num_clusters, len(points)), n_init=_STARTS, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Number of distinct clusters", category=ConvergenceWarning)
        model.fit(np.asarray(points, dtype=np.float64))
    return Clustering(model.labels_.astype(np.int64), float(model.inertia_), (), int(model.n_iter_), True)


def by_size(sizes: np.ndarray, num_clusters: int, rng: np.random.Generator) -> Clustering:
    """k-means on the number of nodes alone: the baseline that exposes leaks. Fewer distinct sizes give fewer clusters.

    Args:
        sizes: [S].
        num_clusters: k at most.
        rng: Draws the starts.
    """
    return by_vectors(np.asarray(sizes).reshape(-1, 1), min(num_clusters, np.unique(sizes).size), rng)


def scores(labels_true: np.ndarray, labels_pred: np.ndarray, distances: np.ndarray | None = None) -> dict[str, float]:
    """How well clusters match classes.

    Args:
        labels_true: [S], S ≥ 1.
        labels_pred: [S].
        distances: [S, S], for the silhouette alone.

    Returns:
        ``ari`` (adjusted Rand index), ``nmi`` (arithmetic mean), ``purity``, and where distances are given ``silhouette`` of
        the predicted clusters (NaN when it is undefined: one cluster, or only singletons).

    Raises:
        ValueError: The labels are not two equally long, non-empty vectors.
    """
    from sklearn.metrics import (  # not before it is used: every run lists all tasks
        adjusted_rand_score,
        normalized_mutual_info_score,
        silhouette_score,
    )
    from sklearn.metrics.cluster import contingency_matrix

    labels_true, labels_pred = np.asarray(labels_true), np.asarray(labels_pred)
    if labels_true.shape != labels_pred.shape or labels_true.ndim != 1 or labels_true.size == 0:
        raise ValueError(
            f"labels must be two equally long, non-empty vectors, found {labels_true.shape} and {labels_pred.shape}"
        )
    table = contingency_matrix(labels_true, labels_pred)  # [classes, clusters]
    result = {
        "ari": float(adjusted_rand_score(labels_true, labels_pred)),
        "nmi": float(normalized_mutual_info_score(labels_true, labels_pred)),
        "purity": float(table.max(axis=0).sum() / labels_true.size),
    }
    if distances is not None:
        defined = 2 <= table.shape[1] < labels_pred.size
        result["silhouette"] = float(silhouette_score(distances, labels_pred, metric="precomputed") if defined else np.nan)
    return result


def _lloyd(spaces: _Spaces, centroids: list[MetricSpace], options: GromovOptions, max_iterations: int) -> Clustering:
    """Assignment and barycentre steps until the labels repeat; the best state seen is returned.

    Both steps rest on local minima of a non-convex problem, so the inertia may rise; the best is kept.
    """
    best, centroids = Clustering(np.zeros(0, np.int64), np.inf, (), 0, False), list(centroids)
    before = np.zeros(0, np.int64)
    for iteration in range(1, max_iterations + 1):
        table = _nearest(spaces, centroids, options)
        labels = table.argmin(axis=1).astype(np.int64)
        served = table[np.arange(labels.size), labels].copy()
        for k in range(len(centroids)):
            if not (labels == k).any():  # an empty cluster takes the worst served space of a larger one
                shared = np.bincount(labels, minlength=len(centroids))[labels] > 1
                worst = int(np.argmax(np.where(shared, served, -np.inf)))
                labels[worst], served[worst] = k, -np.inf
        moved = np.flatnonzero(~np.isfinite(table[np.arange(labels.size), labels]))  # they fill an empty cluster
        if moved.size:
            table[moved, labels[moved]] = _values(spaces, centroids, moved, labels[moved], options)
        inertia = float(table[np.arange(labels.size), labels].sum())
        if iteration <= 2 or inertia < best.inertia:  # the first centroids are seeds, not yet barycentres
            best = Clustering(labels, inertia, tuple(centroids), iteration, False)
        if np.array_equal(labels, before):
            return Clustering(best.labels, best.inertia, best.centroids, iteration, True)
        before = labels
        for k, previous in enumerate(centroids if iteration < max_iterations else ()):
            own = [spaces[i] for i in np.flatnonzero(labels == k).tolist()]
            size = max(1, round(float(np.mean([space.num_points for space in own]))))
            start = previous if previous.num_points == size and (previous.weights == previous.weights[0]).all() else None
            centroids[k] = find_barycentre(own, size, options, start, _ROUNDS).space
    return Clustering(best.labels, best.inertia, best.centroids, max_iterations, False)


def _values(spaces: _Spaces, centroids: _Spaces, rows: np.ndarray, columns: np.ndarray, options: GromovOptions) -> np.ndarray:
    """The discrepancy of space ``rows[i]`` to centroid ``columns[i]``."""
    return gromov.solve_pairs([*centroids, *spaces], np.stack([columns, len(centroids) + rows], axis=1), options).value


def _nearest(spaces: _Spaces, centroids: _Spaces, options: GromovOptions) -> np.ndarray:
    """Discrepancies [S, k] to the centroids, ∞ to those that a lower bound shows to be farther than another.

    First every space's centroid of the lowest bound is solved; then those whose bound is not above that value.
    """
    bounds = gromov_bounds.first_bounds(spaces, centroids) * (1.0 if options.alpha is None else options.alpha)
    table = np.full(bounds.shape, np.inf)
    every, likely = np.arange(len(spaces)), bounds.argmin(axis=1)
    table[every, likely] = _values(spaces, centroids, every, likely, options)
    reach = table[every, likely] * (1.0 + 1e-9) + 1e-12  # room for rounding
    rows, columns = np.nonzero((bounds <= reach[:, None]) & ~np.isfinite(table))
    if rows.size:
        table[rows, columns] = _values(spaces, centroids, rows, columns, options)
    return table


def map_distances_by_mds(distances: np.ndarray) -> np.ndarray:
    """Classical multidimensional scaling (Torgerson 1952); it is deterministic.

    The leading eigenvectors of B = −½ J D² J, J = I − 11ᵀ/S, times the roots of their eigenvalues; where B
    has fewer positive eigenvalues the remaining columns are zero. Each column's sign makes its entry of
    largest magnitude positive.

    Args:
        distances: [S, S].

    Returns:
        float64 [S, 2].
    """
    squares = np.asarray(distances, dtype=np.float64) ** 2
    centred = squares - squares.mean(axis=0, keepdims=True)
    centred = -0.5 * (centred - centred.mean(axis=1, keepdims=True))
    values, vectors = np.linalg.eigh(0.5 * (centred + centred.T))
    leading = np.argsort(values)[::-1][:2]
    places = vectors[:, leading] * np.sqrt(np.clip(values[leading], 0.0, None))
    signs = np.sign(places[np.abs(places).argmax(axis=0), np.arange(places.shape[1])])
    result = np.zeros((squares.shape[0], 2))
    result[:, : places.shape[1]] = places * np.where(signs == 0, 1.0, signs)
    return result


def tsne(distances: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """t-SNE of a precomputed distance matrix (van der Maaten & Hinton 2008): float64 [S, 2].

    The perplexity of small collections is (S − 1) / 3.

    Args:
        distances: [S, S]; fewer than four spaces fall back to ``map_distances_by_mds``.
        rng: Draws the start.
    """
    from sklearn.manifold import TSNE  # its import takes a second

    count = distances.shape[0]
    if count < 4:
        return map_distances_by_mds(distances)
    model = TSNE(
        2,
        metric="precomputed",
        init="random",
        learning_rate="auto",
        perplexity=min(_PERPLEXITY, (count - 1) / 3),
        random_state=int(rng.integers(2**31)),
    )
    with warnings.catch_warnings():
        # Huge distances (embeddings under much noise) overflow in its gradient; a map for the eyes bears that.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"sklearn\.")
        return model.fit_transform(np.clip(distances, 0.0, None)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Barycentre:
    """A barycentre and how it was found."""

    space: MetricSpace  # The barycentre; all its points weigh the same
    objective: float  # Σ_s λ_s GW at the couplings last solved


def find_barycentre(
    spaces: Sequence[MetricSpace],
    num_points: int,
    options: GromovOptions = GromovOptions(),  # noqa: B008
    start: MetricSpace | None = None,
    max_rounds: int = 20,
) -> Barycentre:
    """The barycentre of spaces, all of which count the same (λ_s = 1/S).

    spaces: At least one. num_points: Of the barycentre, at least one; they weigh the same. options: How discrepancies are
    computed. start: Where C begins; by default the space closest in size, carried onto ``num_points`` points by the monotone
    coupling. max_rounds: How many rounds at most; it stops earlier when the objective falls by less than ``_SETTLED``.
    ``ValueError``: There is no space, or no point.
    """
    if not spaces or num_points < 1:
        raise ValueError(f"a barycentre needs spaces and at least one point, found {len(spaces)} and {num_points}")
    which = np.stack([np.zeros(len(spaces), np.int64), np.arange(1, len(spaces) + 1)], axis=1)

    def assess(current: MetricSpace) -> tuple[Barycentre, list[np.ndarray]]:
        results, plans = gromov.solve_couplings([current, *spaces], which, options)
        return Barycentre(current, float(results.value.mean())), plans

    best, plans = assess(start if start is not None else _first(spaces, num_points))
    for _ in range(max_rounds - 1):
        following, plans = assess(_update_barycentre(best.space.weights, spaces, plans))
        if following.objective >= best.objective:
            break
        settled = best.objective - following.objective <= _SETTLED * best.objective
        best = following
        if settled:
            break
    return best


def _update_barycentre(weights: np.ndarray, spaces: Sequence[MetricSpace], plans: Sequence[np.ndarray]) -> MetricSpace:
    """The closed-form half step for couplings ``plans`` [n, n_s] from the barycentre to each space."""
    share = 1.0 / len(spaces)
    structure = np.zeros((weights.size, weights.size))
    for space, plan in zip(spaces, plans, strict=True):
        structure += share * (plan @ space.distances @ plan.T)
    structure /= np.outer(weights, weights)
    features = None
    if all(space.features is not None for space in spaces):
        carried = sum(share * (plan @ space.features) for space, plan in zip(spaces, plans, strict=True))
        features = carried / weights[:, None]
    return MetricSpace(0.5 * (structure + structure.T), weights, features)


def _first(spaces: Sequence[MetricSpace], num_points: int) -> MetricSpace:
    sizes = np.array([space.num_points for space in spaces])
    nearest = spaces[int(np.argmin(np.abs(sizes - num_points)))]
    weights = np.full(num_points, 1.0 / num_points)
    # The coupling [n, m] that spreads the space's points, by ascending mean distance, over the weights in order.
    order = np.argsort(nearest.distances @ nearest.weights, kind="stable")
    ends = np.minimum(np.cumsum(weights), 1.0)[:, None], np.minimum(np.cumsum(nearest.weights[order]), 1.0)[None, :]
    starts = ends[0] - weights[:, None], ends[1] - nearest.weights[order][None, :]
    plan = np.zeros((weights.size, nearest.num_points))
    plan[:, order] = np.clip(np.minimum(*ends) - np.maximum(*starts), 0.0, None)
    return _update_barycentre(weights, [nearest], [plan])
