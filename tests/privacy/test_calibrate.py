"""Calibration: never above the target, close below it, quick, and honest when it cannot."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.events import (
    Composed,
    FixedSizeGaussian,
    Gaussian,
    Laplace,
    PoissonGaussian,
    PureDP,
    Repeated,
    SampledOnce,
)

MAKERS = {
    "gaussian": lambda m: Repeated(Gaussian(m), 100),
    "laplace": lambda m: Repeated(Laplace(m), 50),
    "poisson": lambda m: Repeated(PoissonGaussian(m, 0.05, touched_rows=1, replaced=False), 800),
    "two rows": lambda m: Repeated(PoissonGaussian(m, 0.05, 2, replaced=False), 800),
    "replace": lambda m: Repeated(PoissonGaussian(m, 0.1, 2, True), 100),
    "fixed size": lambda m: Repeated(FixedSizeGaussian(m, 10, 100, 2, replaced=True), 20),
    "sampled once": lambda m: SampledOnce(
        Composed((Repeated(Gaussian(m), 70), Repeated(PoissonGaussian(1.5, 0.05, touched_rows=1, replaced=False), 100))), 0.09
    ),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("target", [0.7, 8.0, 60.0])
def test_never_above_the_target_and_just_below(name, target):
    make = MAKERS[name]
    found = calibrate.noise_multiplier_of(make, target, 1e-5)
    assert price(make(found), 1e-5).epsilon <= target
    assert price(make(found / 1.001), 1e-5).epsilon > target * 0.9999


@settings(max_examples=80, derandomize=True)
@given(count=st.integers(1, 10**6), log_epsilon=st.floats(-6, 4), log_delta=st.floats(-12, -1))
def test_gaussian_multiplier(count, log_epsilon, log_delta):
    epsilon, delta = 10**log_epsilon, 10**log_delta
    sigma = calibrate.gaussian_multiplier(count, epsilon, delta)
    event = Repeated(Gaussian(sigma), count)
    assert price(event, delta).epsilon <= epsilon
    assert price(event, delta).epsilon == pytest.approx(epsilon, rel=1e-5)


@pytest.mark.parametrize("target", [math.nan, 0.0, -1.0, math.inf])
def test_targets_that_mean_nothing(target):
    with pytest.raises(PrivacyError, match="target epsilon"):
        calibrate.noise_multiplier_of(MAKERS["gaussian"], target, 1e-5)
    with pytest.raises(PrivacyError, match="target epsilon"):
        calibrate.gaussian_multiplier(1, target, 1e-5)


def test_unreachable_targets_name_the_floor():
    with pytest.raises(PrivacyError, match=r"cannot be reached.*leaves ε = 2"):
        calibrate.noise_multiplier_of(lambda m: Composed((Gaussian(m), PureDP(2.0))), 1.0, 1e-5)
    with pytest.raises(PrivacyError, match="count"):
        calibrate.gaussian_multiplier(0, 1.0, 1e-5)
    for delta in (math.nan, 0.0, 1.0, -1.0):
        with pytest.raises(PrivacyError, match="delta"):
            calibrate.gaussian_multiplier(1, 1.0, delta)
