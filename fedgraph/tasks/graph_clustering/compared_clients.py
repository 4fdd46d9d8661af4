"""How the server compares what clients released, and what it finds: clusters, and classes where some labels are known.

    gw          Gromov-Wasserstein of the rows' distances to each other: blind to which class a row points to
    fgw         the fused discrepancy, with the rows themselves beside their distances
    mean        the squared distance of the graphs' mean rows
    histogram   the squared distance of vectors that were pooled before they were released

``mean`` and ``fgw`` read rows that were made unbiased; all of them are post-processing of one release and cost nothing more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from scipy.spatial.distance import cdist

from fedgraph import seeds
from fedgraph.comparison import (
    GromovBarycentreFacts,
    MetricSpace,
    SolverFacts,
    SolverMinima,
    agreement,
    classify,
    cluster,
    gromov,
)
from fedgraph.tasks.base import Cell, CellContext
from fedgraph.tasks.base.graphs import graph_distances, graph_pairs
from fedgraph.tasks.base.graphs.graph_settings import KICKS, RESTARTS

ClientComparison = Literal["gw", "fgw", "mean", "histogram"]
CLIENT_VECTOR_COMPARISONS = ("mean", "histogram")
_FOLDS, _NEIGHBOURS = 5, 5
_SAMPLED = 100  # pairs that are solved with one descent and carefully
_BARYCENTRES, _MOST_MEMBERS = 3, 12  # that are made with POT, too; members of each
_COSTS, _GAMMAS = (1.0, 10.0, 100.0), (0.125, 0.5, 2.0)  # of the support vector machine, on distances in medians


@dataclass(frozen=True)
class Clustering:
    """How clusters are made.

    Attributes:
        num_init: Starts of k-means with barycentres; the lowest inertia counts.
        max_iterations: Of each start.
        verify: How many pairs are solved with POT, too.
    """

    k: int
    num_init: int
    max_iterations: int
    verify: int = 0


@dataclass(frozen=True, eq=False)
class Compared:
    """What the server found.

    Attributes:
        distances: float64 [graphs, graphs]; [0, 0] where clusters were made without distances.
        labels: int64 [graphs], the cluster of each.
        facts: How Gromov-Wasserstein problems were solved.
        pictured: Arrays for a picture (``_matched_largest``), where one is drawn.
    """

    distances: np.ndarray
    labels: np.ndarray
    facts: SolverFacts
    pictured: dict[str, np.ndarray] = field(default_factory=dict)


def compare_vectors(received: Sequence[np.ndarray], how_many: Clustering, cell: Cell, context: CellContext) -> Compared:
    """Compare clients by one vector of each, and cluster the vectors by k-means.

    Args:
        received: For each client, float64 [n, h], its rows. The vector is their mean; a vector that was released is one row.
        how_many: Only the number of clusters is read.
        cell: Names the random stream of the starts.
        context: The root of the random streams.

    Returns:
        Squared Euclidean distances, and clusters.
    """
    points = np.stack([rows.mean(axis=0) for rows in received])
    rng = seeds.seeded_generator(context.root, *cell.path, "cluster")
    found = cluster.by_vectors(points, how_many.k, rng)
    return Compared(cdist(points, points, "sqeuclidean"), found.labels, SolverFacts())


def compare_spaces(
    made: Sequence[MetricSpace], options: gromov.GromovOptions, how_many: Clustering, cell: Cell, context: CellContext
) -> Compared:
    """All pairs, k-means with barycentres, and how much the local minima vary."""
    distances, solved = graph_pairs.solve_all(made, options, context)
    rng = seeds.seeded_generator(context.root, *cell.path, "cluster")
    found = context.runtime.on_server(_kmeans, tuple(made), options, how_many, rng, distances)
    sample = seeds.seeded_generator(context.root, *cell.path, "minima")
    checked = graph_pairs.verify(
        made, options, how_many.verify, seeds.seeded_generator(context.root, *cell.path, "verify"), context
    )
    centres = None
    if checked is not None and options.alpha is None:
        centres = context.runtime.on_server(_verified_barycentres, tuple(made), found.labels)
    minima = _minima_variation(made, options, sample)
    pictured = {} if cell.seed else context.runtime.on_server(_matched_largest, tuple(made), options)
    facts = replace(solved, minima=minima, verified=checked, barycentres=centres)
    return Compared(distances, found.labels, facts, pictured)


def _matched_largest(made: Sequence[MetricSpace], options: gromov.GromovOptions) -> dict[str, np.ndarray]:
    """What Gromov-Wasserstein matched between the two largest clients, whose sizes are public, for a picture.

    matched: int64 [2], their numbers. coupling: float32 [n, m]. places_one, places_two: float32 [n, 2] and [m, 2], maps of
    their own distances.
    """
    sizes = np.array([space.num_points for space in made])
    pair = np.sort(np.argsort(-sizes, kind="stable")[:2])
    if pair.size < 2:
        return {}
    plan = gromov.solve_couplings(made, pair[None, :], options)[1][0]
    one, two = (cluster.map_distances_by_mds(made[i].distances).astype(np.float32) for i in pair)
    return {"matched": pair.astype(np.int64), "coupling": plan.astype(np.float32), "places_one": one, "places_two": two}


def _verified_barycentres(made: Sequence[MetricSpace], labels: np.ndarray) -> GromovBarycentreFacts | None:
    clusters = [np.flatnonzero(labels == label)[:_MOST_MEMBERS] for label in np.unique(labels)]
    members = [[made[i] for i in own] for own in clusters if own.size > 1][:_BARYCENTRES]
    both = [agreement.of_barycentres(own, round(float(np.mean([s.num_points for s in own])))) for own in members]
    if not both:
        return None
    ours, theirs = (float(np.mean([values[which] for values in both])) for which in (0, 1))
    return GromovBarycentreFacts(len(both), ours, theirs)


def _kmeans(
    made: Sequence[MetricSpace],
    options: gromov.GromovOptions,
    how: Clustering,
    rng: np.random.Generator,
    distances: np.ndarray,
) -> cluster.Clustering:
    plain = gromov.GromovOptions(solver=options.solver, alpha=options.alpha)
    return cluster.by_gromov(
        made, how.k, rng, options=plain, num_init=how.num_init, max_iterations=how.max_iterations, distances=distances
    )


def _minima_variation(
    spaces: Sequence[MetricSpace], options: gromov.GromovOptions, rng: np.random.Generator
) -> SolverMinima | None:
    """The share of a sample of pairs where the careful search is lower than one descent; mean drop is (one − best)/one."""
    which = gromov.all_pairs(len(spaces))
    if not len(which):
        return None
    which = which[rng.permutation(len(which))[:_SAMPLED]]
    plain = replace(options, solver="fast", restarts=0, kicks=0)
    careful = replace(plain, restarts=RESTARTS, kicks=KICKS)
    one, best = (gromov.solve_pairs(spaces, which, how).value for how in (plain, careful))
    drop = np.where(one > 0, (one - best) / np.where(one > 0, one, 1.0), 0.0)
    lower = float((drop > 1e-6).mean())
    return SolverMinima(len(which), lower, float(drop.mean()), 1 + RESTARTS + KICKS, options.restarts + options.kicks > 0)


def accuracy_of_folds(distances: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> dict[str, float]:
    """Mean accuracy over five folds, where the labels of the other four are known: ``accuracy`` of a support
    vector machine on exp(−γD), its settings chosen on the known graphs, and ``knn5`` of the votes of the five nearest. Graphs
    of a class with fewer members than folds are left out.
    """
    kept = np.flatnonzero(np.bincount(truth, minlength=truth.max() + 1)[truth] >= _FOLDS)
    if kept.size < 2 * _FOLDS or np.unique(truth[kept]).size < 2:
        return {}
    scaled, labels = graph_distances.scaled(np.maximum(distances[np.ix_(kept, kept)], 0.0)), truth[kept]
    from sklearn.model_selection import StratifiedKFold  # not before it is used: every run lists all tasks

    model = StratifiedKFold(_FOLDS, shuffle=True, random_state=int(rng.integers(2**31)))
    folds = model.split(np.zeros(labels.size), labels)
    splits = tuple(classify.ClassifySplit(train, np.zeros(0, np.int64), test) for train, test in folds)
    by_kernel = classify.by_svm(scaled, labels, splits, rng, costs=_COSTS, gammas=_GAMMAS)
    nearest = classify.by_nearest(scaled, labels, splits, _NEIGHBOURS)
    return {"accuracy": by_kernel.mean, f"knn{_NEIGHBOURS}": nearest.mean}
