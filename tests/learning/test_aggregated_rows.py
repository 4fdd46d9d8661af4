"""Choices become rows: ties, mention limits, column norms, fallbacks."""

from __future__ import annotations

import numpy as np
import pytest

from fedgraph.learning import aggregated_rows


def test_largest_breaks_ties_by_the_smaller_index() -> None:
    values = np.array([[0.0, 2.0, 2.0, 1.0, 2.0], [5.0, 1.0, 0.0, 0.0, 0.0]])
    assert aggregated_rows.choose_largest(values, 2).tolist() == [[1, 2], [0, 1]]
    assert aggregated_rows.choose_largest(values, 5).tolist() == [[1, 2, 4, 3, 0], [0, 1, 2, 3, 4]]
    assert aggregated_rows.choose_largest(np.zeros((0, 5)), 2).shape == (0, 2)


@pytest.mark.parametrize("most", [0, 1, 3])
def test_no_node_is_named_by_more_other_rows_than_allowed(most: int) -> None:
    rng = np.random.default_rng(most)
    sources = rng.choice(60, 40, replace=False)
    chosen = np.array([rng.choice(12, 4, replace=False) for _ in sources])  # a crowd around twelve hubs
    kept = aggregated_rows.limit_mentions(sources, chosen, most, rng.random(40))
    for node in range(60):
        naming = {int(s) for s, row in zip(sources, kept, strict=True) if node in row} - {node}
        available = {int(s) for s, row in zip(sources, chosen, strict=True) if node in row} - {node}
        assert len(naming) == min(most, len(available)), "never more than allowed, and no slot wasted"
    own = chosen == sources[:, None]
    assert (kept[own] == chosen[own]).all(), "a row may always name its own node"


def test_aggregation_falls_back_on_the_own_node() -> None:
    chosen = np.array([[3, 4], [-1, -1], [0, -1]])
    pi = aggregated_rows.matrix_of(6, np.array([0, 1, 2]), chosen, np.full((3, 2), 0.5), np.array([5]), 1.0, "none").toarray()
    assert pi[0].tolist() == [0, 0, 0, 0.5, 0.5, 0]
    assert pi[1].tolist() == [0, 1, 0, 0, 0, 0]
    assert pi[2].tolist() == [0.5, 0, 0, 0, 0, 0]
    assert pi[5, 5] == 1
    assert not pi[3].any()
