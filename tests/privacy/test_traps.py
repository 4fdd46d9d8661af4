"""Known traps of dp_accounting 0.6.0. Each test fails when the library's behaviour changes: then re-read PRIVACY §2."""

import math

import dp_accounting as dp
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant

from fedgraph.privacy.accounting import rdp
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.events import Gaussian, Repeated

REPLACE = dp.NeighboringRelation.REPLACE_ONE


def test_rdp_replace_one_prices_the_gaussian_at_sensitivity_one():
    event = dp.SelfComposedDpEvent(dp.GaussianDpEvent(2.0), 10)
    theirs = dp.rdp.RdpAccountant(neighboring_relation=REPLACE).compose(event).get_epsilon(1e-5)
    added = dp.rdp.RdpAccountant().compose(event).get_epsilon(1e-5)
    right = PLDAccountant(REPLACE).compose(event).get_epsilon(1e-5)
    assert theirs == pytest.approx(added)  # the trap: replacing costs no more than adding
    assert theirs == pytest.approx(8.08, abs=0.01)
    assert right == pytest.approx(17.86, abs=0.01)
    assert price(Repeated(Gaussian(2.0 / 2), 10), 1e-5).epsilon == pytest.approx(right, rel=1e-3)


def test_fractional_orders_may_fail_to_converge_and_are_only_logged(caplog):
    event = dp.PoissonSampledDpEvent(60 / 210, dp.GaussianDpEvent(0.5))
    with caplog.at_level("WARNING", logger="absl"):
        broken = dp.rdp.RdpAccountant([1.1]).compose(event).rdp[0]
    assert math.isinf(broken)
    ours = rdp.of_poisson_row(0.5, 60 / 210, np.array([1.1, 1.5, 2.0, 2.5]))
    assert np.isfinite(ours).all()
    whole = dp.rdp.RdpAccountant([2.0, 3.0]).compose(event).rdp
    assert ours[2] == pytest.approx(whole[0])
    assert ours[3] * 1.5 == pytest.approx((whole[0] + 2 * whole[1]) / 2)


@pytest.mark.parametrize("sampling_rate", [1e-6, 0.01, 0.3, 1.0])
@pytest.mark.parametrize("noise_multiplier", [0.3, 1.0, 20.0])
def test_whole_orders_are_those_of_the_library(noise_multiplier, sampling_rate):
    orders = np.arange(2.0, 65.0)
    event = dp.PoissonSampledDpEvent(sampling_rate, dp.GaussianDpEvent(noise_multiplier))
    theirs = dp.rdp.RdpAccountant(orders).compose(event).rdp
    assert rdp.of_poisson_row(noise_multiplier, sampling_rate, orders) == pytest.approx(theirs, rel=1e-10, abs=1e-14)


def test_interpolated_orders_are_above_the_exact_ones():
    event = dp.PoissonSampledDpEvent(0.05, dp.GaussianDpEvent(1.5))
    orders = np.array([1.7, 2.5, 4.3, 7.9])
    exact = dp.rdp.RdpAccountant(orders).compose(event).rdp
    assert (rdp.of_poisson_row(1.5, 0.05, orders) >= exact * (1 - 1e-12)).all()
