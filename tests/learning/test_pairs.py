"""Pairs of words: the kernel it says, all of it kept between public rows, row by row, and no private row anywhere."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import subspace_angles

from fedgraph.learning import projection as module
from fedgraph.learning.projection import _similarity, project_features
from fedgraph.learning.propagation import walks
from fedgraph.types import Graph


@pytest.fixture
def public(library: Graph) -> Graph:
    return library.induced(np.arange(80))


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_the_kernel_is_an_inner_product_over_pairs_of_coordinates() -> None:
    rng = np.random.default_rng(0)
    left, right = unit(rng.standard_normal((5, 4))), unit(rng.standard_normal((6, 4)))
    t = module._OFFSET

    def lifted(rows: np.ndarray) -> np.ndarray:
        products = np.einsum("ni,nj->nij", rows, rows).reshape(len(rows), -1)
        return np.hstack([products, np.sqrt(2 * t) * rows, np.full((len(rows), 1), t)]) / (1 + t)

    assert np.allclose(_similarity(left, right), lifted(left) @ lifted(right).T, atol=1e-6)
    assert np.allclose(np.diag(_similarity(left, left)), 1, atol=1e-6)
    left[2], right[4] = 0, 0
    assert not _similarity(left, right)[2].any()
    assert not _similarity(left, right)[:, 4].any()


def test_nothing_is_lost_between_public_rows(public: Graph) -> None:
    pairs = module.of_pairs(public, 80, rarity=0.75)
    rows, kernel = pairs.rows(public.features), _similarity(pairs.landmarks, pairs.landmarks)
    assert np.allclose(rows @ rows.T, kernel, atol=2e-2)
    assert np.abs(pairs.landmarks @ pairs.landmarks.T - kernel).max() > 0.1, "words alone are another kernel"


@pytest.mark.parametrize("k", [2, 6])
def test_directions_are_the_leading_ones_of_the_smoothed_kernel(public: Graph, k: int) -> None:
    pairs = module.of_pairs(public, k)
    smooth = walks.personalised_pagerank(public.adjacency, np.eye(80), 0.25, 4)
    kernel = _similarity(pairs.landmarks, pairs.landmarks)
    expected = np.linalg.eigh(smooth @ kernel @ smooth.T)[1][:, ::-1][:, :k]
    assert np.rad2deg(subspace_angles(smooth @ kernel @ pairs.mixing, expected)).max() < 1


def test_rows_are_mapped_on_their_own(library: Graph, public: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = module.of_pairs(public, 16, rarity=0.75)
    whole = pairs.rows(library.features)
    assert np.allclose(np.linalg.norm(whole, axis=1), 1, atol=1e-5)
    monkeypatch.setattr(module, "_ROWS", 3)
    for rows in ([5], [200, 7, 130, 2, 3, 4, 5]):
        assert np.allclose(pairs.rows(library.features[rows]), whole[rows], atol=1e-5)


def test_rows_that_no_public_direction_sees_are_zero(public: Graph) -> None:
    features = np.zeros((80, 6), dtype=np.float32)
    features[:, :3] = np.random.default_rng(0).random((80, 3))
    pairs = module.of_pairs(dataclasses.replace(public, features=sp.csr_array(features)), 3, rarity=0.75)
    private = np.array(
        [[0, 0, 0, 0, 0, 0], [0, 0, 0, 5, 1, 2], [1e-30, 0, 0, 0, 0, 0], [1e18, 0, 0, 0, 9, 0]], dtype=np.float32
    )
    norms = np.linalg.norm(pairs.rows(sp.csr_array(private)), axis=1)
    assert norms[0] == norms[1] == 0
    assert (norms <= 1 + 1e-5).all()


def test_same_public_graph_same_pairs_and_a_large_one_is_sampled(public: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = module.of_pairs(public, 8), module.of_pairs(dataclasses.replace(public), 8)
    assert one is not two
    assert np.array_equal(one.mixing, two.mixing)
    monkeypatch.setattr(module, "_LANDMARKS", 30)
    few, again = (module.of_pairs(dataclasses.replace(public), 8) for _ in range(2))
    assert few.landmarks.shape[0] == few.mixing.shape[0] == 30
    assert np.array_equal(few.landmarks, again.landmarks)
    known = {row.tobytes() for row in project_features(public.features, few.basis)}
    assert {row.tobytes() for row in few.landmarks} <= known
