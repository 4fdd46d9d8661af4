"""The public view of the features: right directions, rare words and pairs, row by row, and no private row anywhere."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import subspace_angles

from fedgraph.learning import projection, unit_matrix_rows, walks
from fedgraph.learning.projection import has_projectable_words, project_features
from fedgraph.types import Graph

View = Callable[[sp.csr_array], np.ndarray]


def with_features(graph: Graph, features: np.ndarray) -> Graph:
    return dataclasses.replace(graph, features=sp.csr_array(features.astype(np.float32)))


def coordinates(public: Graph, k: int) -> View:
    basis = projection.basis_of(public, k, rarity=0.75)
    return lambda features: project_features(features, basis)


def pairs(public: Graph, k: int) -> View:
    return projection.of_pairs(public, k, rarity=0.75).rows


each_view = pytest.mark.parametrize("view", [coordinates, pairs])


@pytest.fixture
def public(library: Graph) -> Graph:
    return library.induced(np.arange(80))


@pytest.mark.parametrize("k", [3, 10])
def test_directions_are_the_leading_singular_vectors(public: Graph, k: int) -> None:
    smoothed = walks.personalised_pagerank(public.adjacency, unit_matrix_rows(public.features).toarray(), 0.25, 2)
    expected = np.linalg.svd(smoothed)[2][:k].T
    basis = projection.basis_of(public, k)
    assert np.allclose(basis.T @ basis, np.eye(k), atol=1e-4)
    assert np.rad2deg(subspace_angles(basis, expected)).max() < 1


@each_view
def test_rows_are_mapped_on_their_own(view: Callable[[Graph, int], View], library: Graph, public: Graph) -> None:
    made = view(public, 16)
    whole = made(library.features)
    for rows in ([5], [200, 7, 130, 2, 3, 4, 5]):
        assert np.allclose(made(library.features[rows]), whole[rows], atol=1e-5)
    assert view is coordinates or np.allclose(np.linalg.norm(whole, axis=1), 1, atol=1e-5)


@each_view
def test_rows_outside_the_public_span_and_empty_rows_become_zero(view: Callable[[Graph, int], View], public: Graph) -> None:
    features = np.zeros((80, 6))
    features[:, :3] = np.random.default_rng(0).random((80, 3))
    private = [[0, 0, 0, 0, 0, 0], [0, 0, 0, 5, 1, 2], [1e-30, 0, 0, 0, 0, 0], [1e18, 0, 0, 0, 9, 0], [1e30, 0, 0, 0, 9, 0]]
    rows = np.array(private if view is coordinates else private[:4], dtype=np.float32)
    norms = np.linalg.norm(view(with_features(public, features), 3)(sp.csr_array(rows)), axis=1)
    assert norms[0] == norms[1] == 0
    assert (norms <= 1 + 1e-5).all()


def test_curvature_is_the_damped_inverse_of_the_public_second_moment(public: Graph) -> None:
    rows = project_features(public.features, projection.basis_of(public, 8, rarity=0.75))
    inverse = projection.curvature_of(rows, 0.1, 0.05)
    rows = np.hstack([rows, np.full((80, 1), 0.1)])
    assert np.allclose(inverse @ (rows.T @ rows / 80 + 0.05 * np.eye(9)), np.eye(9), atol=1e-4)
    assert np.linalg.eigvalsh(inverse).max() <= 1 / 0.05 + 1e-3


def test_whole_numbers_are_words_and_fractions_are_weights(public: Graph) -> None:
    counts = np.random.default_rng(0).integers(0, 5, (80, 6))
    assert has_projectable_words(with_features(public, counts))
    assert not has_projectable_words(with_features(public, counts * 0.3))
    assert has_projectable_words(with_features(public, counts * 0))


def test_same_public_graph_same_view_of_public_rows_alone_and_never_more_than_the_rank(public: Graph) -> None:
    again = dataclasses.replace(public)
    assert np.array_equal(projection.basis_of(public, 8, rarity=0.75), projection.basis_of(again, 8, rarity=0.75))
    one, two = projection.of_pairs(public, 8), projection.of_pairs(again, 8)
    assert np.array_equal(one.mixing, two.mixing)
    known = {row.tobytes() for row in project_features(public.features, one.basis)}
    assert {row.tobytes() for row in one.landmarks} <= known
    low = np.outer(np.ones(80), np.arange(1.0, 21)) + np.outer(np.arange(80), np.ones(20))
    assert projection.basis_of(with_features(public, low), 16, steps=0).shape == (20, 2)
