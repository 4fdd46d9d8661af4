"""Counts of columns: what one person changes, compared with what is stated; ranks that are made of them."""

import numpy as np
import pytest

from fedgraph.errors import UnboundedValueError
from fedgraph.privacy import private_counts as counts
from fedgraph.privacy.private_counts import COUNT_BINS, ColumnCounts
from fedgraph.privacy.units import Relation

NODE = (Relation.NODE_ZERO_OUT, Relation.NODE_REPLACE)


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("relation", NODE)
def test_one_person_changes_the_counts_by_at_most_what_is_stated(relation: Relation, pooled: bool) -> None:
    """Any rows, any brackets: noise and empty cells, absurd numbers, a bracket that nobody is in."""
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(300):
        n, d = int(rng.integers(1, 8)), 3
        rows = rng.choice([0.0, 1.0, 45.0, 2e4, -7.5, 1e300, np.nan], size=(n, d))
        brackets = np.sort(rng.choice([-40.0, -3.0, 0.0, 5.5, 6.0, 40.0], size=(1 if pooled else d, 2)), axis=1)
        brackets[:, 1] += 0.5
        other = rows.copy()
        other[0] = np.nan if relation is Relation.NODE_ZERO_OUT else rng.choice([0.0, 9.0, -1e9], size=d)
        bound = ColumnCounts(d, n, pooled)
        before, after = (bound.enforce(counts.positions(counts.number_line(r), brackets)) for r in (rows, other))
        worst = max(worst, float(np.linalg.norm(before - after)))
    stated = ColumnCounts(3, 8, pooled).change(relation)
    assert 0.99 * stated <= worst <= stated + 1e-9, "met, so the noise is neither too little nor wasted"


@pytest.mark.parametrize(
    "positions",
    [np.zeros((2, 2), int), np.zeros((9, 3), int), np.full((2, 3), COUNT_BINS + 2), np.full((2, 3), -2), np.zeros((2, 3))],
)
def test_what_cannot_be_a_position_is_refused(positions: np.ndarray) -> None:
    with pytest.raises(UnboundedValueError):
        ColumnCounts(3, 8, pooled=False).enforce(positions)


def ranks(values: np.ndarray, std: float) -> np.ndarray:
    line, rng, brackets = counts.number_line(values[:, None]), np.random.default_rng(0), counts.widest_brackets(1)
    for _ in range(4):
        last = brackets
        found = ColumnCounts(1, values.size, False).enforce(counts.positions(line, last))
        found = found + std * rng.standard_normal(found.shape)
        brackets = counts.narrowed_brackets(last, found, std)
    return np.interp(line[:, 0], counts.bin_edges(last)[0], counts.shares_below(found)[0])


@pytest.mark.parametrize(("middle", "width"), [(45, 14), (-3000, 6000), (0.01, 0.003), (3e6, 1e6)])
@pytest.mark.parametrize(("std", "off"), [(0.0, 0.05), (20.0, 0.09)])
def test_ranks_of_any_scale_are_near_the_true_ones(middle: float, width: float, std: float, off: float) -> None:
    """Though one value in a hundred is absurd."""
    rng = np.random.default_rng(1)
    values = middle + width * rng.standard_normal(1500)
    values[rng.random(1500) < 0.01] = 1e10
    found = ranks(values, std)
    assert np.abs(found - np.argsort(np.argsort(values)) / 1500).mean() < off
    assert (np.diff(found[np.argsort(values)]) >= 0).all()
