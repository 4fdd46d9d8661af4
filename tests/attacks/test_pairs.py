"""LinkTeller's influence without any game: who moves whom is read from answers alone."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fedgraph.attacks import linkteller


def test_a_neighbour_moves_and_a_stranger_does_not() -> None:
    """A path of four: answers are means over neighbours, so two hops are as far as one question goes."""
    adjacency = sp.csr_array(np.eye(4, k=1) + np.eye(4, k=-1))
    rows = sp.csr_array(np.eye(4, dtype=np.float32))

    def ask(features: sp.csr_array) -> np.ndarray:
        return np.asarray((adjacency @ features).toarray(), dtype=np.float64)

    pairs = np.array([[0, 1], [1, 2], [0, 2], [0, 3]])
    found = linkteller.influence_of(pairs, rows, 1e-3, ask)
    assert (found[:2] > 1).all()
    np.testing.assert_allclose(found[2:], 0.0, atol=1e-12)
