"""Clients that share nodes, each with messages of its own: the worst node pays for all that hold it."""

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.events import Composed, Event, Gaussian, PoissonGaussian, PureDP, Repeated, Unprotected
from fedgraph.privacy.settle import Guarantee, WorstUnit, of_events
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer

DELTA = 1e-5
NODE = Protection(Relation.NODE_ZERO_OUT, Viewer.SERVER, (Assumption.MEMBERSHIP_GIVEN,))


def compose_overlapping(spent: dict[int, Event], holdings: sp.csr_array, delta: float) -> WorstUnit:
    return of_events(Guarantee(NODE, delta, holdings, per_end=False), spent)


def test_general_events_are_grouped_and_priced_exactly():
    rng = np.random.default_rng(0)
    kinds = [PureDP(0.2), PoissonGaussian(2.0, 0.1, touched_rows=1, replaced=False), Repeated(Gaussian(9.0), 2)]
    spent = {c: kinds[c % 3] for c in range(12)}
    held = (rng.random((12, 30)) < 0.25).astype(float)
    found = compose_overlapping(spent, sp.csr_array(held), DELTA)
    each = [price(Composed(tuple(spent[c] for c in np.flatnonzero(held[:, n]))), DELTA).epsilon for n in range(30)]
    assert found.price.epsilon == pytest.approx(max(each), rel=1e-12)
    assert found.holders == tuple(np.flatnonzero(held[:, int(np.argmax(each))]))


def test_whatever_a_table_of_holders_says_an_entry_holds_and_what_is_in_clear_is_infinite():
    table = sp.csr_array((np.array([0.0, 7.0]), (np.array([0, 1]), np.array([0, 0]))), shape=(2, 1))
    found = compose_overlapping({0: Gaussian(1.0), 1: Gaussian(5.0)}, table, DELTA)
    assert found.price == price(Gaussian(5.0), DELTA)
    assert found.holders == (1,)
    one = sp.csr_array(np.ones((1, 1)))
    assert compose_overlapping({0: Unprotected("in clear")}, one, DELTA).price.epsilon == np.inf
    assert compose_overlapping({}, one, DELTA).price.epsilon == 0
    with pytest.raises(PrivacyError, match="no nodes"):
        compose_overlapping({}, sp.csr_array((3, 0)), DELTA)
