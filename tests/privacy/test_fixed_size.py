"""Batches of fixed size: which distances the two worlds can have, and what a vanishing row saves."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from fedgraph.methods.sage_node import published as sage
from fedgraph.privacy.accounting import pld
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.events import FixedSizeGaussian, Gaussian, Repeated


@pytest.mark.parametrize("replaced", [True, False])
@pytest.mark.parametrize(("batch", "rows", "touched"), [(2, 5, 3), (4, 6, 2), (3, 3, 3), (1, 4, 1), (5, 6, 6)])
def test_distances_are_those_of_every_batch(batch: int, rows: int, touched: int, replaced: bool) -> None:
    counted: Counter[float] = Counter()
    drawn = list(itertools.combinations(range(rows), batch))
    for chosen in drawn:  # rows 0 … touched − 1 are touched, row 0 is the node's own
        others = sum(row in chosen for row in range(touched))
        counted[2.0 * others - (0 in chosen and not replaced)] += 1
    found, weights = pld.pld_batch_distances(batch, rows, touched, replaced)
    said: Counter[float] = Counter()
    for distance, weight in zip(found, weights, strict=True):
        said[float(distance)] += weight
    assert {d: w for d, w in said.items() if w > 1e-12} == pytest.approx({d: c / len(drawn) for d, c in counted.items()})


def test_a_whole_batch_costs_2k_minus_1_or_2k() -> None:
    assert price(FixedSizeGaussian(50.0, 100, 100, 11, False), 1e-5) == price(Gaussian(50.0 / 21), 1e-5)
    assert price(FixedSizeGaussian(50.0, 100, 100, 11, True), 1e-5) == price(Gaussian(50.0 / 22), 1e-5)


@pytest.mark.parametrize("batch", [10, 99])
def test_a_vanishing_row_is_never_dearer_than_a_replaced_one(batch: int) -> None:
    vanishes, replaced = (price(Repeated(FixedSizeGaussian(40.0, batch, 100, 5, r), 20), 1e-5).epsilon for r in (False, True))
    assert vanishes < replaced
    assert vanishes > price(Repeated(FixedSizeGaussian(40.0, batch, 100, 4, True), 20), 1e-5).epsilon


def test_stages_count_the_rows_that_exist() -> None:
    stage = sage.ClaimedSageStage(10, 1.0, sage.claimed_touched_rows(4, 2), True, False)
    assert stage.touched == 17
    assert stage.event(3.0, 100) == FixedSizeGaussian(3.0, 100, 100, 17, False)
    regular_tree = np.array([1, 4, 4 * 3])  # the node, its neighbours, theirs without the way back
    assert regular_tree.sum() == 17
