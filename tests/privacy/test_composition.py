"""Disjoint and overlapping clients, each with messages of its own."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.accounting.composition import (
    compose_ends,
    compose_overlapping,
)
from fedgraph.privacy.events import Composed, Gaussian, PoissonGaussian, PureDP, Repeated, Unprotected

DELTA = 1e-5


def holdings(*rows):
    return sp.csr_array(np.array(rows, dtype=float))


def test_general_events_are_grouped_and_priced_exactly():
    rng = np.random.default_rng(0)
    kinds = [PureDP(0.2), PoissonGaussian(2.0, 0.1, touched_rows=1, replaced=False), Repeated(Gaussian(9.0), 2)]
    spent = {c: kinds[c % 3] for c in range(12)}
    held = (rng.random((12, 30)) < 0.25).astype(float)
    found = compose_overlapping(spent, sp.csr_array(held), DELTA)
    each = [price(Composed(tuple(spent[c] for c in np.flatnonzero(held[:, n]))), DELTA).epsilon for n in range(30)]
    assert found.price.epsilon == pytest.approx(max(each), rel=1e-12)
    assert found.holders == tuple(np.flatnonzero(held[:, int(np.argmax(each))]))


def test_values_other_than_one_and_stored_zeros_only_say_who_holds():
    table = sp.csr_array((np.array([0.0, 7.0]), (np.array([0, 1]), np.array([0, 0]))), shape=(2, 1))
    found = compose_overlapping({0: Gaussian(1.0), 1: Gaussian(5.0)}, table, DELTA)
    assert found.price == price(Gaussian(5.0), DELTA)
    assert found.holders == (1,)


def test_edge_cases():
    empty = compose_overlapping({}, holdings([1.0, 1.0]), DELTA)
    assert empty.price.epsilon == 0.0
    assert compose_overlapping({0: Gaussian(1.0)}, holdings([0.0]), DELTA).price.epsilon == 0.0
    assert math.isinf(compose_overlapping({0: Unprotected("clear")}, holdings([1.0]), DELTA).price.epsilon)
    with pytest.raises(PrivacyError, match="no nodes"):
        compose_overlapping({}, sp.csr_array((3, 0)), DELTA)


def test_an_edge_costs_its_two_dearest_ends():
    spent = {0: Gaussian(5.0), 1: PureDP(0.2), 2: Gaussian(5.0), 3: Repeated(Gaussian(6.0), 2)}
    worst, holders = compose_ends(spent, DELTA)
    assert worst == price(Repeated(Gaussian(6.0), 4), DELTA)
    assert holders == (3, 3), "an inner edge has both ends at one client"
    assert compose_ends({7: Gaussian(math.sqrt(2))}, DELTA)[0].epsilon == pytest.approx(price(Gaussian(1.0), DELTA).epsilon)
    assert compose_ends({}, DELTA)[0].epsilon == 0
    assert compose_ends({4: Unprotected("x")}, DELTA)[1] == (4, 4)
    assert math.isinf(compose_ends({4: Unprotected("x"), 5: PureDP(1.0)}, DELTA)[0].epsilon)
