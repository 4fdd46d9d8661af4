"""Maps of awkward distances are drawn without a word on the terminal."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from fedgraph.comparison import cluster


@pytest.mark.parametrize("distances", [1e150 * (1 - np.eye(12)), np.where(np.eye(12, k=1) + np.eye(12, k=-1) > 0, 0, 1e160)])
def test_no_warning_reaches_the_terminal(distances: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = cluster.tsne(distances, np.random.default_rng(0))
    assert drawn.shape == (12, 2)
