"""Barycentres, k-means under Gromov-Wasserstein, and scores."""

import numpy as np
import ot
import pytest
from sklearn.cluster import SpectralClustering

from fedgraph.comparison import cluster, gromov, metric_space
from fedgraph.comparison.metric_space import MetricSpace


def star(n):
    first = np.eye(n)[0]
    return metric_space.from_topology(np.abs(first[:, None] - first[None, :]))


@pytest.fixture(scope="module")
def planted():
    cycles = [metric_space.from_topology(np.roll(np.eye(n), 1, axis=0) + np.roll(np.eye(n), -1, axis=0)) for n in range(8, 14)]
    cliques = [metric_space.from_topology(np.ones((n, n)) - np.eye(n)) for n in range(8, 14)]
    spaces = [*cycles, *map(star, range(8, 14)), *cliques]
    labels = np.repeat([0, 1, 2], 6)
    which = gromov.all_pairs(len(spaces))
    return spaces, labels, gromov.assemble_matrix(len(spaces), which, gromov.solve_pairs(spaces, which).value)


def test_barycentre_falls_and_is_no_worse_than_pots():
    rng = np.random.default_rng(1)
    spaces = [metric_space.from_embedding(rng.normal(size=(n, 2))) for n in (6, 7, 8, 9, 9)]
    found = cluster.find_barycentre(spaces, 7)
    assert found.objective < cluster.find_barycentre(spaces, 7, max_rounds=1).objective
    which = np.stack([np.zeros(5, int), np.arange(1, 6)], axis=1)
    assert gromov.solve_pairs([found.space, *spaces], which).value.mean() == pytest.approx(found.objective, rel=1e-12)
    theirs = ot.gromov.gromov_barycenters(7, [space.distances for space in spaces], random_state=0, max_iter=50, tol=1e-7)
    theirs = MetricSpace(0.5 * (theirs + theirs.T), np.full(7, 1 / 7))
    assert found.objective <= 1.05 * gromov.solve_pairs([theirs, *spaces], which).value.mean()


def test_kmeans_recovers_planted_shapes(planted):
    spaces, labels, distances = planted
    found = cluster.by_gromov(spaces, 3, np.random.default_rng(0), distances=distances)
    assert cluster.scores(labels, found.labels)["ari"] == 1.0
    assert found.converged
    assert len(found.centroids) == 3
    again = cluster.by_gromov(spaces, 3, np.random.default_rng(0), distances=distances)
    assert np.array_equal(again.labels, found.labels)
    assert again.inertia == found.inertia


def test_copies_and_few_spaces_get_clusters_and_a_picture(planted):
    spaces, _, distances = planted
    copies = cluster.by_gromov([star(5)] * 4, 3, np.random.default_rng(1))
    assert np.unique(copies.labels).size == 3, "an empty cluster takes the worst served space"
    assert copies.inertia == pytest.approx(0, abs=1e-9)
    with pytest.raises(ValueError, match="num_clusters"):
        cluster.by_gromov(spaces, 99, np.random.default_rng(1))
    for few in (1, 3, 18):
        assert cluster.tsne(distances[:few, :few], np.random.default_rng(0)).shape == (few, 2)


def test_spectral_clusters_draw_from_no_stream_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    made = np.random.default_rng

    def named(seed: object = None) -> np.random.Generator:
        assert seed is not None, "a stream that differs in every run"
        return made(seed)  # type: ignore[arg-type]

    places, rng = made(0).integers(0, 3, 40).astype(float), made(1)
    monkeypatch.setattr(np.random, "default_rng", named)
    assert cluster.spectrally(np.abs(places[:, None] - places), 4, rng).labels.shape == (40,)


def test_spectral_clusters_are_those_of_scikit_learn() -> None:
    points = np.random.default_rng(0).normal(size=(40, 3))
    distances = np.abs(points[:, None] - points).sum(axis=-1)
    affinity = np.exp(-distances / np.median(distances[np.triu_indices(40, 1)]))
    state = int(np.random.default_rng(1).integers(2**31))
    peer = SpectralClustering(4, affinity="precomputed", random_state=state).fit_predict(affinity)
    found = cluster.spectrally(distances, 4, np.random.default_rng(1)).labels
    assert cluster.scores(peer, found)["ari"] == 1.0


def test_sizes_alone_do_not_find_shapes(planted):
    spaces, labels, _ = planted
    sizes = np.array([space.num_points for space in spaces])
    assert cluster.scores(labels, cluster.by_size(sizes, 3, np.random.default_rng(0)).labels)["ari"] < 0.2
    assert np.unique(cluster.by_size(np.full(5, 7), 3, np.random.default_rng(0)).labels).size == 1
