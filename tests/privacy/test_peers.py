"""Numbers that other libraries print for the same mechanism: ours is the same, or tighter by as much as their method is looser.

Each case names its source; the figure is what the source's own tests hold its code to.
"""

import math

import dp_accounting as dp
import numpy as np
import pytest

from fedgraph.privacy import price, rdp
from fedgraph.privacy.events import ApproxDP, Composed, Event, Gaussian, Laplace, PoissonGaussian, RandomizedResponse, Repeated


def poisson(multiplier: float, rate: float, steps: int) -> Event:
    return Repeated(PoissonGaussian(multiplier, rate, touched_rows=1, replaced=False), steps)


OPACUS = poisson(1.5, 0.04, 2249)  # opacus/tests/accountants_test.py; int(90 // 0.04) is 2,249 in floats
JAX = poisson(4.0, 1024 / 50_000, 10_000)  # jax_privacy/tests/accounting/analysis_test.py
LAPLACE = Composed((Repeated(Laplace(1.0), 3), Repeated(Laplace(2.0), 2)))
SAME = [
    ("Opacus, PRV", OPACUS, 1e-5, 6.777395712150674, 2e-3),  # their ε is an estimate within eps_error = 0.01
    ("jax_privacy, PLD", JAX, 1e-5, 2.09245, 1e-4),
    ("dp_accounting, PLD: Gaussian", Repeated(Gaussian(math.sqrt(3)), 3), 0.126936, 1.0, 1e-5),
    ("dp_accounting, PLD: Poisson", poisson(0.5, 0.2, 3), 0.15594, 1.0, 3e-3),  # their δ has five digits, held to 1e-3
    ("dp_accounting, PLD: Laplace", LAPLACE, 0.0, 4.0, 1e-12),
    ("dp_accounting, PLD: responses, 4 values", RandomizedResponse(1.0, 4), 0.0, 1.0, 1e-12),
    ("dp_accounting, PLD: (ε, δ)", Composed((ApproxDP(1.0, 0.1), ApproxDP(2.0, 0.2))), 0.28, 3.0, 1e-12),
    ("pfl, analytic Gaussian", Gaussian(math.sqrt(2)), 0.00040834087, 2.25, 1e-7),
]


@pytest.mark.parametrize(("event", "delta", "theirs", "tolerance"), [c[1:] for c in SAME], ids=[c[0] for c in SAME])
def test_the_price_is_theirs(event: Event, delta: float, theirs: float, tolerance: float) -> None:
    assert price(event, delta).epsilon == pytest.approx(theirs, rel=tolerance)


@pytest.mark.parametrize(
    ("event", "theirs"), [(OPACUS, 7.32911117143), (JAX, 2.27535)], ids=["Opacus, RDP", "jax_privacy, RDP"]
)
def test_the_price_is_below_a_looser_method(event: Event, theirs: float) -> None:
    assert 0.9 * theirs < price(event, 1e-5).epsilon < theirs


@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.3, 1.0])
@pytest.mark.parametrize("multiplier", [0.3, 1.0, 20.0])
def test_moments_of_a_poisson_step_are_dp_accountings_at_whole_orders(multiplier: float, rate: float) -> None:
    """Between them ours is a chord, an upper bound. Its series does not converge there, or is off: 150 × at 20, .3 and 1.1."""
    orders = np.array([1.1, 1.7, 2.0, 2.5, 3.0, 8.0, 32.0, 64.0])
    event = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(multiplier))
    theirs, ours = dp.rdp.RdpAccountant(orders).compose(event).rdp, rdp.of_poisson_row(multiplier, rate, orders)
    whole = orders == np.round(orders)
    assert ours[whole] == pytest.approx(theirs[whole], rel=1e-10, abs=1e-14)
    assert np.isfinite(ours).all()
    assert (multiplier, rate) != (1.0, 0.01) or (ours >= theirs * (1 - 1e-10) - 1e-14).all()
