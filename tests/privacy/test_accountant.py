"""price(): every event, every edge case of the docstring's table, and the laws that any accountant obeys."""

import dataclasses
import importlib
import itertools
import math
import pkgutil

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

import fedgraph.privacy
from fedgraph.errors import PrivacyError, UnknownEventError
from fedgraph.privacy import events, fields
from fedgraph.privacy.accounting import amplification
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.accounting.amplification import amplified_epsilon
from fedgraph.privacy.events import (
    ApproxDP,
    BoundedRange,
    Composed,
    EpochGaussian,
    Event,
    FixedSizeGaussian,
    Gaussian,
    Laplace,
    LevelField,
    MentionedGaussian,
    MultiBit,
    OneOf,
    PartOf,
    PoissonGaussian,
    PureDP,
    RandomizedResponse,
    Repeated,
    SampledOnce,
    Selected,
    Unprotected,
)

CHOICE = OneOf((Composed((PureDP(0.3), Gaussian(9.0))), Repeated(Gaussian(8.0), 4)))
EVERY = [
    Gaussian(3.0), Laplace(4.0), RandomizedResponse(0.4, 5), MultiBit(0.05, 20), BoundedRange(0.3), PureDP(0.3),
    ApproxDP(0.3, 1e-7), PoissonGaussian(1.5, 0.1, 1, False), PoissonGaussian(3.0, 0.1, 2, False),
    PoissonGaussian(4.0, 0.1, 2, True), FixedSizeGaussian(4.0, 10, 100, 2, True), EpochGaussian(3.0, 5, 2, False),
    MentionedGaussian(3.0, 0.1, 0.2, 5, heavy=False), MentionedGaussian(2000.0, 0.1, 0.2, 5, heavy=True),
    SampledOnce(Repeated(Gaussian(2.0), 4), 0.1), CHOICE, PartOf(PureDP(0.3), CHOICE, 0),
    Selected((Gaussian(9.0), PureDP(0.2)), 0.0, 0.2),
]  # fmt: skip
FREE = [
    Gaussian(math.inf), Laplace(math.inf), PureDP(0.0), BoundedRange(0.0), RandomizedResponse(0.0, 4), MultiBit(0.3, 0),
    MultiBit(0.0, 3), ApproxDP(0.0, 0.0), PoissonGaussian(1.0, 0.0, 1, False), PoissonGaussian(math.inf, 0.5, 1, False),
    FixedSizeGaussian(1.0, 0, 10, 1, True), EpochGaussian(math.inf, 5, 1, True),
    MentionedGaussian(math.inf, 0.1, 0.2, 5, heavy=True), MentionedGaussian(1.0, 0.0, 0.2, 5, heavy=False),
    SampledOnce(Gaussian(1.0), 0.0), OneOf((PureDP(0.0), Gaussian(math.inf))),
    PartOf(PureDP(0.0), OneOf((PureDP(0.0), Composed(()))), 0), Repeated(Gaussian(1.0), 0), Composed(()),
]  # fmt: skip
ENDLESS = [
    Gaussian(0.0), Laplace(0.0), PureDP(math.inf), BoundedRange(math.inf), ApproxDP(1.0, 1.0),
    PoissonGaussian(0.0, 0.5, 1, False), FixedSizeGaussian(0.0, 5, 10, 1, True), EpochGaussian(0.0, 5, 1, True),
    MentionedGaussian(0.0, 0.1, 0.2, 5, heavy=True), Unprotected("in clear"), SampledOnce(Unprotected("in clear"), 0.1),
    OneOf((Gaussian(3.0), Unprotected("in clear"))), PartOf(Gaussian(3.0), OneOf((Gaussian(3.0), Gaussian(0.0))), 0),
]  # fmt: skip


def cost(event, delta=1e-5):
    return price(event, delta).epsilon


@pytest.mark.parametrize("event", EVERY, ids=lambda e: type(e).__name__)
def test_every_event_is_priced_and_composing_n_is_n_composes(event):
    one = price(event, 1e-5)
    assert 0 < one.epsilon < math.inf
    assert one.theorem
    repeated, composed = price(Repeated(event, 3), 1e-5), price(Composed((event, Composed((event, event)))), 1e-5)
    assert repeated == composed
    assert one.epsilon < repeated.epsilon
    assert events.from_dict(events.to_dict(event)) == event


def test_free_and_endless_events_alone_and_beside_others_and_without_a_delta():
    for event in FREE:
        assert cost(event) == 0.0, event
        assert cost(Composed((event, PureDP(0.5))), 0.0) == 0.5, event
    for event in ENDLESS:
        assert math.isinf(cost(event)), event
        assert math.isinf(cost(Composed((event, PureDP(0.5))))), event
    for event in (e for e in EVERY if not isinstance(e, SampledOnce)):
        pure = isinstance(event, (Laplace, RandomizedResponse, MultiBit, BoundedRange, PureDP))
        assert math.isfinite(cost(event, 0.0)) == pure, event
        for delta in (math.nan, -1e-9, 1.0, math.inf):
            with pytest.raises(PrivacyError, match="delta"):
                price(event, delta)


@dataclasses.dataclass(frozen=True)
class Secret(Event):
    """Nobody prices it."""

    amount: LevelField


def test_an_event_that_nobody_prices_is_found_and_never_zero():
    for module in pkgutil.walk_packages(fedgraph.privacy.__path__, "fedgraph.privacy."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    shipped = {kind.__name__ for kind in events.all_types().values() if kind.__module__.startswith("fedgraph.")}
    unpriced = shipped - {type(e).__name__ for e in (*EVERY, *FREE, *ENDLESS)}
    assert not unpriced, f"give {sorted(unpriced)} a price in accounting, and an example in EVERY"
    for event in (Secret(0.0), Composed((Gaussian(1.0), Secret(1.0))), SampledOnce(Secret(1.0), 0.5), Event()):
        with pytest.raises(UnknownEventError, match=r"Secret|Event"):
            price(event, 1e-5)


@pytest.mark.parametrize("event", {type(e): e for e in EVERY}.values(), ids=lambda e: type(e).__name__)
def test_a_field_refuses_what_it_cannot_mean(event):
    """0.5, infinity, NaN, −1 and True for a count; NaN, −1 and True for any number; and more than 1 for a rate."""
    for name, check in fields.checks_of(type(event)).items():
        value, never = getattr(event, name), (math.nan, -1, -1e-300, True, None, "x")
        wrong = (0.5, math.inf, 3)  # of a flag, or an event
        if isinstance(value, int) and not isinstance(value, bool):
            wrong = (*never, 0.5, 2.0, math.inf, np.float64(2))
        elif isinstance(value, float):
            wrong = (*never, 1 + 1e-9, math.inf) if check.words == "in [0, 1]" else never
        for found in wrong:
            with pytest.raises(PrivacyError, match=name):
                dataclasses.replace(event, **{name: found})


def test_huge_counts_are_priced_on_the_private_side():
    for count in (10**6, 10**12):
        assert cost(Repeated(Gaussian(1e6), count)) > 0
        sampled = cost(Repeated(PoissonGaussian(1e5, 1e-2, 1, False), count))
        assert cost(Repeated(Gaussian(1e7), count)) * 0.999 <= sampled < math.inf


@settings(max_examples=15)
@given(
    parts=st.lists(st.tuples(st.sampled_from(EVERY[:12]), st.integers(1, 5)), min_size=1, max_size=4),
    delta=st.floats(1e-6, 1e-2),
)
def test_more_releases_never_cost_less_and_order_is_irrelevant(parts, delta):
    """To forget a release is post-processing."""
    made = [Repeated(e, n) for e, n in parts]
    total = cost(Composed(tuple(made)), delta)
    assert cost(Composed(tuple(reversed(made))), delta) == total
    assert cost(Composed(tuple(made[1:])), delta) <= total * (1 + 3e-3) + 1e-9


@settings(max_examples=15)
@given(epsilon=st.floats(1e-3, 3.0), count=st.integers(1, 400), delta=st.floats(1e-7, 1e-2))
def test_pure_releases_are_at_most_basic_and_at_least_the_optimum(epsilon, count, delta):
    """Kairouz, Oh & Viswanath's optimal composition, summed exactly, is the floor."""
    found = cost(Repeated(PureDP(epsilon), count), delta)
    assert found <= count * epsilon * (1 + 1e-12)
    mp.mp.dps = 30
    p, least = 1 / (1 + mp.exp(-epsilon)), mp.mpf(0)
    for i in range(count + 1):
        loss = (2 * i - count) * mp.mpf(epsilon)
        if loss > found:
            least += mp.binomial(count, i) * p**i * (1 - p) ** (count - i) * (1 - mp.exp(found - loss))
    assert least <= delta * (1 + 1e-9)


@pytest.mark.parametrize(
    ("noise", "pure", "delta"), [(74.0, 0.97, 3e-5), (288.0, 0.99, 1e-5), (502.0, 1.0, 1e-3), (8.0, 0.1, 1e-6)]
)
def test_a_pure_release_beside_a_gaussian_one_costs_what_both_do(noise, pure, delta):
    """The loss of the pure pair is ±ε₀, so δ(ε) is two terms of the Gaussian curve; ε₀ between two grid points costs a gap."""

    def gaussian(e):
        return norm.cdf(0.5 / noise - e * noise) - math.exp(e) * norm.cdf(-0.5 / noise - e * noise)

    high = 1 / (1 + math.exp(-pure))
    least = brentq(lambda e: high * gaussian(e - pure) + (1 - high) * gaussian(e + pure) - delta, 0, 5)
    assert least <= cost(Composed((Gaussian(noise), PureDP(pure))), delta) <= least * (1 + 2e-3)


def test_amplification_is_exact_at_any_size():
    mp.mp.dps = 60
    for epsilon, rate in itertools.product((1e-12, 1e-6, 0.5, 11.1, 29.9, 30.1, 88.9, 1e3, 1e6), (1e-12, 1e-3, 0.09, 0.5, 1.0)):
        exact = mp.log(1 + mp.mpf(rate) * (mp.exp(mp.mpf(epsilon)) - 1))
        assert amplified_epsilon(epsilon, rate) == pytest.approx(float(exact), rel=1e-12), rate
        if rate > 1e-6:
            assert amplified_epsilon(amplification.epsilon_before(epsilon, rate), rate) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("rows", [1, 3])
def test_a_rate_of_one_costs_what_rates_near_one_approach(rows, replaced):
    """A row that is replaced moves a sum by two clips, and so do all but the unit's own."""
    whole, nearly = (cost(Repeated(PoissonGaussian(9.0, rate, rows, replaced), 4)) for rate in (1.0, 1 - 1e-6))
    assert whole == cost(Repeated(Gaussian(9.0 / (2 * rows - (not replaced))), 4)) == pytest.approx(nearly, rel=2e-2)


def test_sampling_once_is_applied_once_to_the_whole():
    inner = Composed((Repeated(Gaussian(1.0), 10), PureDP(2.0)))
    paid, before = cost(SampledOnce(inner, 0.09), 1e-4), cost(inner, 1e-4 / 0.09)
    assert paid == pytest.approx(amplified_epsilon(before, 0.09))
    assert paid > 0.09 * before, "the published reading"
    assert price(SampledOnce(inner, 1.0), 1e-4) == price(inner, 1e-4)
    assert cost(SampledOnce(PureDP(5.0), 0.1), 0.0) == pytest.approx(amplified_epsilon(5.0, 0.1))
    assert cost(SampledOnce(Gaussian(0.5), 0.01), 0.05) == pytest.approx(0.0, abs=1e-6)
    assert cost(Composed((SampledOnce(inner, 0.09), PureDP(0.5))), 1e-4) == pytest.approx(paid + 0.5, rel=1e-6)


@pytest.mark.parametrize("rates", [(0.5,), (0.5, 0.25, 0.1), (0.2,) * 5], ids=str)
def test_what_sampled_parts_may_miss_adds_up(rates):
    """Each gives everything away with probability q·δ₀, else nothing: below their sum no ε holds, above it ε = 0 does."""
    parts = [SampledOnce(ApproxDP(0.0, 1e-5), rate) for rate in rates]
    each = max(rates) * 1e-5 * len(rates)  # δ is divided evenly
    missed = math.fsum(rate * 1e-5 for rate in rates)
    assert cost(Composed(tuple(parts)), each * 1.001) == 0
    assert cost(Composed(tuple(parts)), missed * 0.999) == math.inf
    beside = Composed((*parts, ApproxDP(0.0, each)))
    assert cost(beside, 2 * each * 1.001) == 0
    assert cost(beside, (missed + each) * 0.999) == math.inf


def chosen(*events):
    return Selected(events, 0.0, 0.2)


def test_a_choice_among_trials_on_secret_samples_costs_less_than_without_and_never_nothing():
    inner = Composed((Repeated(Gaussian(4.0), 5), PureDP(0.1)))
    prices = [cost(chosen(SampledOnce(inner, rate))) for rate in (0.01, 0.1, 0.5, 0.999, 1.0)]
    assert 0 < prices[0] < prices[1] < prices[2] < prices[3] < prices[4] == cost(chosen(inner))
    assert prices[1] > cost(SampledOnce(inner, 0.1)), "choosing costs"
    assert cost(chosen(SampledOnce(Unprotected("x"), 0.1), Gaussian(9.0))) == math.inf
    assert cost(chosen(SampledOnce(inner, 0.0))) == 0
    assert cost(chosen(SampledOnce(Gaussian(4.0), 0.1))) >= cost(chosen(PoissonGaussian(4.0, 0.1, 1, False)))


def test_what_a_trial_may_miss_adds_to_delta_as_often_as_there_are_trials():
    gauss, trials = Gaussian(4.0), (1 / 0.2 - 1) / math.log(1 / 0.2)  # the mean of the logarithmic law
    for wrap in (lambda e: e, lambda e: SampledOnce(e, 0.5)):
        paid = cost(chosen(wrap(Composed((gauss, ApproxDP(0.0, 1e-7)))), wrap(gauss)))
        assert paid == cost(chosen(wrap(gauss)), 1e-5 - 1e-7 * trials)
        assert paid > cost(chosen(wrap(gauss)), 1e-5 - 1e-7), "once would be too little"
        assert cost(chosen(wrap(Composed((gauss, ApproxDP(0.0, 9e-6)))))) == math.inf
    with pytest.raises(UnknownEventError):
        price(chosen(Composed((gauss, ApproxDP(0.5, 1e-7)))), 1e-5)


@pytest.mark.parametrize(("touched_rows", "replaced"), [(1, False), (2, True)])
def test_the_price_does_not_jump_where_the_grid_ends(touched_rows, replaced):
    event = Repeated(PoissonGaussian(1.5, 0.05, touched_rows, replaced), 100)
    above, below, tiny = (cost(event, delta) for delta in (1e-9, 0.999e-9, 1e-15))
    assert above < below < 1.15 * above
    assert below < tiny < 2 * above


@pytest.mark.parametrize("mu", [0.01, 0.3, 3.0])
@pytest.mark.parametrize("delta", [9e-10, 1e-40])
def test_moments_of_the_grid_are_never_below_the_exact_gaussian(mu, delta):
    halves = Repeated(Gaussian(math.sqrt(2) / mu), 2)
    exact = cost(halves, delta)
    assert exact < cost(Composed((halves, PureDP(1e-9))), delta) < 1.08 * exact


def test_a_delta_that_is_met_exactly_is_met():
    assert cost(Repeated(ApproxDP(0.5, 1e-7), 3), 3e-7) == pytest.approx(1.5)  # 3 × 1e-7 > 3e-7 in floats
    assert cost(Composed((ApproxDP(0.5, 1e-6), PureDP(0.1))), 1e-6) == pytest.approx(0.6)
    assert cost(Composed((ApproxDP(0.5, 1e-6), Gaussian(100.0))), 1e-6) == math.inf  # nothing is left for the normal
    assert cost(Repeated(ApproxDP(0.5, 1.001e-7), 3), 3e-7) == math.inf


def test_a_choice_made_by_what_was_seen_is_not_dearer_than_its_price():
    """Randomised response first; its answer chooses Gaussian noise or another response: the exact curve, integrated."""
    first, second, mu = 0.5, 0.8, 0.9
    claimed = Composed((PureDP(first), OneOf((PureDP(second), Gaussian(1 / mu)))))
    p, q = (1 / (1 + math.exp(-e)) for e in (first, second))
    curves = (
        lambda e: max(0.0, q - math.exp(e) * (1 - q)) + max(0.0, (1 - q) - math.exp(e) * q),
        lambda e: float(norm.cdf(mu / 2 - e / mu) - math.exp(e) * norm.cdf(-mu / 2 - e / mu)),
    )
    for epsilon, (one, other) in itertools.product((0.3, 1.2), itertools.product(curves, repeat=2)):
        exact = p * one(epsilon - first) + (1 - p) * other(epsilon + first)
        assert cost(claimed, max(exact, 1e-9) * (1 - 1e-2)) > epsilon * (1 - 5e-2)
        assert cost(claimed, max(exact, 1e-9)) >= epsilon * (1 - 1e-6)


def test_parts_of_a_choice_are_priced_once_and_what_was_not_planned_as_one_more():
    choice = OneOf((Composed((PureDP(0.3), Repeated(Gaussian(9.0), 2))), Repeated(Gaussian(8.0), 4)))
    label, step, row = (PartOf(e, choice, i) for e, i in ((PureDP(0.3), 0), (Gaussian(9.0), 0), (Gaussian(8.0), 1)))
    once, twice = cost(choice), cost(Repeated(choice, 2))
    assert cost(Composed((label, Repeated(step, 2)))) == cost(step) == cost(Repeated(row, 4)) == once
    assert cost(Repeated(row, 5)) == cost(Composed((label, row))) == cost(Repeated(label, 2)) == twice
    for stranger in (PartOf(Gaussian(8.0), choice, 0), PartOf(Gaussian(9.0), choice, 2)):
        with pytest.raises(UnknownEventError):
            price(stranger, 1e-5)
