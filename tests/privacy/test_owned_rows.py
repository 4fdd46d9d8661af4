"""Sums over records with owners: neighbours against the stated sensitivity, and what is refused."""

import numpy as np
import pytest

from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.privacy.private_counts import OwnedRows
from fedgraph.privacy.units import Relation

RNG = np.random.default_rng(5)


def records(rng: np.random.Generator, people: int, count: int, most: int, columns: int) -> np.ndarray:
    """[count, columns + most]: numbers, then between one and ``most`` different owners."""
    owners = np.full((count, most), -1)
    for row in owners:
        several = int(rng.integers(1, most + 1))
        row[:several] = rng.choice(people, size=several, replace=False)
    return np.concatenate([rng.random((count, columns)), owners], axis=1)


def without(value: np.ndarray, columns: int, person: int) -> np.ndarray:
    return value[~(value[:, columns:] == person).any(axis=1)]


@pytest.mark.parametrize("relation", [Relation.NODE_LINKS, Relation.ENTITY_LINKS])
@pytest.mark.parametrize(("people", "count", "most", "limit"), [(6, 15, 2, 1), (8, 40, 3, 4), (5, 60, 4, 7)])
def test_one_persons_records_move_no_column_by_more_than_the_limit(
    relation: Relation, people: int, count: int, most: int, limit: int
) -> None:
    bound = OwnedRows(limit, 3)
    for _ in range(4):
        value = records(RNG, people, count, most, 3)
        whole = bound.enforce(value)
        for person in range(people):
            moved = whole - bound.enforce(without(value, 3, person))
            assert (moved >= -1e-3 * limit).all()
            assert (moved <= limit * (1 + 1e-3)).all()
            assert np.linalg.norm(moved) <= bound.sensitivity_l2(relation)


def test_what_is_refused() -> None:
    bound = OwnedRows(2, 1)
    assert bound.enforce(np.zeros((0, 3))).tolist() == [0.0]
    assert bound.enforce(np.array([[7.0, 0, 1]])).tolist() == [1.0], "clamped"
    with pytest.raises(UnboundedValueError, match="NaN"):
        bound.enforce(np.array([[np.nan, 0, 1]]))
    with pytest.raises(UnboundedValueError, match="has no owner"):
        bound.enforce(np.array([[1.0, -1, -1]]))
    with pytest.raises(UnboundedValueError, match="names one owner twice"):
        bound.enforce(np.array([[1.0, 3, 3]]))
    with pytest.raises(UnboundedValueError, match="columns and owners"):
        bound.enforce(np.ones((2, 1)))
    for relation in (Relation.EDGE_UNDIRECTED, Relation.NODE_ZERO_OUT, Relation.GRAPH_REPLACE):
        with pytest.raises(PrivacyError, match="needs the relation node-links or entity-links"):
            bound.sensitivity_l2(relation)
    with pytest.raises(PrivacyError, match="≥ 1"):
        OwnedRows(0, 1)
