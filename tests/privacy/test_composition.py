"""Clients that share nodes, each with messages of its own: the worst node pays for all that hold it."""

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.accounting.composition import compose_overlapping
from fedgraph.privacy.events import Composed, Gaussian, PoissonGaussian, PureDP, Repeated

DELTA = 1e-5


def test_general_events_are_grouped_and_priced_exactly():
    rng = np.random.default_rng(0)
    kinds = [PureDP(0.2), PoissonGaussian(2.0, 0.1, touched_rows=1, replaced=False), Repeated(Gaussian(9.0), 2)]
    spent = {c: kinds[c % 3] for c in range(12)}
    held = (rng.random((12, 30)) < 0.25).astype(float)
    found = compose_overlapping(spent, sp.csr_array(held), DELTA)
    each = [price(Composed(tuple(spent[c] for c in np.flatnonzero(held[:, n]))), DELTA).epsilon for n in range(30)]
    assert found.price.epsilon == pytest.approx(max(each), rel=1e-12)
    assert found.holders == tuple(np.flatnonzero(held[:, int(np.argmax(each))]))
