"""Pairs of words: the kernel it says, all of it kept between public rows, row by row, and no private row anywhere."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph.learning import project_features
from fedgraph.learning import projection as module
from fedgraph.types import Graph


@pytest.fixture
def public(library: Graph) -> Graph:
    return library.induced(np.arange(80))


def test_rows_are_mapped_on_their_own(library: Graph, public: Graph) -> None:
    pairs = module.of_pairs(public, 16, rarity=0.75)
    whole = pairs.rows(library.features)
    assert np.allclose(np.linalg.norm(whole, axis=1), 1, atol=1e-5)
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


def test_same_public_graph_same_pairs(public: Graph) -> None:
    one, two = module.of_pairs(public, 8), module.of_pairs(dataclasses.replace(public), 8)
    assert one is not two
    assert np.array_equal(one.mixing, two.mixing)
    known = {row.tobytes() for row in project_features(public.features, one.basis)}
    assert {row.tobytes() for row in one.landmarks} <= known
