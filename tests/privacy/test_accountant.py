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
    Gaussian(3.0),
    Laplace(4.0),
    RandomizedResponse(0.4, 5),
    MultiBit(0.05, 20),
    BoundedRange(0.3),
    PureDP(0.3),
    ApproxDP(0.3, 1e-7),
    PoissonGaussian(1.5, 0.1, touched_rows=1, replaced=False),
    PoissonGaussian(3.0, 0.1, 2, replaced=False),
    PoissonGaussian(4.0, 0.1, 2, True),
    FixedSizeGaussian(4.0, 10, 100, 2, replaced=True),
    EpochGaussian(3.0, 5, 2, replaced=False),
    MentionedGaussian(3.0, 0.1, 0.2, 5, heavy=False),
    MentionedGaussian(2000.0, 0.1, 0.2, 5, heavy=True),
    SampledOnce(Repeated(Gaussian(2.0), 4), 0.1),
    CHOICE,
    PartOf(PureDP(0.3), CHOICE, 0),
    Selected((Gaussian(9.0), PureDP(0.2)), 0.0, 0.2),
]
FREE = [
    Gaussian(math.inf),
    Laplace(math.inf),
    PureDP(0.0),
    BoundedRange(0.0),
    RandomizedResponse(0.0, 4),
    MultiBit(0.3, 0),
    MultiBit(0.0, 3),
    ApproxDP(0.0, 0.0),
    PoissonGaussian(1.0, 0.0, touched_rows=1, replaced=False),
    PoissonGaussian(math.inf, 0.5, touched_rows=1, replaced=False),
    FixedSizeGaussian(1.0, 0, 10, touched_rows=1, replaced=True),
    EpochGaussian(math.inf, 5, 1, replaced=True),
    MentionedGaussian(math.inf, 0.1, 0.2, 5, heavy=True),
    MentionedGaussian(1.0, 0.0, 0.2, 5, heavy=False),
    SampledOnce(Gaussian(1.0), 0.0),
    OneOf((PureDP(0.0), Gaussian(math.inf))),
    PartOf(PureDP(0.0), OneOf((PureDP(0.0), Composed(()))), 0),
    Repeated(Gaussian(1.0), 0),
    Composed(()),
]
ENDLESS = [
    Gaussian(0.0),
    Laplace(0.0),
    PureDP(math.inf),
    BoundedRange(math.inf),
    ApproxDP(1.0, 1.0),
    PoissonGaussian(0.0, 0.5, touched_rows=1, replaced=False),
    FixedSizeGaussian(0.0, 5, 10, touched_rows=1, replaced=True),
    EpochGaussian(0.0, 5, 1, replaced=True),
    MentionedGaussian(0.0, 0.1, 0.2, 5, heavy=True),
    Unprotected("in clear"),
    SampledOnce(Unprotected("in clear"), 0.1),
    OneOf((Gaussian(3.0), Unprotected("in clear"))),
    PartOf(Gaussian(3.0), OneOf((Gaussian(3.0), Gaussian(0.0))), 0),
]


@pytest.mark.parametrize("event", EVERY, ids=lambda e: type(e).__name__)
def test_every_event_is_priced_and_composing_n_is_n_composes(event):
    one = price(event, 1e-5)
    assert 0 < one.epsilon < math.inf
    assert one.theorem
    repeated, composed = price(Repeated(event, 3), 1e-5), price(Composed((event, Composed((event, event)))), 1e-5)
    assert repeated == composed
    assert one.epsilon < repeated.epsilon
    assert events.from_dict(events.to_dict(event)) == event


def test_free_and_endless_events_alone_and_beside_others():
    for event in FREE:
        assert price(event, 1e-5).epsilon == 0.0, event
        assert price(Composed((event, PureDP(0.5))), 0.0).epsilon == 0.5, event
    for event in ENDLESS:
        assert math.isinf(price(event, 1e-5).epsilon), event
        assert math.isinf(price(Composed((event, PureDP(0.5))), 1e-5).epsilon), event


def test_without_a_delta_pure_releases_alone_have_a_price():
    for event in (e for e in EVERY if not isinstance(e, SampledOnce)):
        pure = isinstance(event, (Laplace, RandomizedResponse, MultiBit, BoundedRange, PureDP))
        assert math.isfinite(price(event, 0.0).epsilon) == pure, event
        for delta in (math.nan, -1e-9, 1.0, math.inf):
            with pytest.raises(PrivacyError, match="delta"):
                price(event, delta)


@dataclasses.dataclass(frozen=True)
class Secret(Event):
    """Nobody prices it."""

    amount: LevelField


def shipped_events() -> list[type[Event]]:
    """Every event that some module of the package defines, at any depth."""
    for module in pkgutil.walk_packages(fedgraph.privacy.__path__, "fedgraph.privacy."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    return [kind for kind in events.all_types().values() if kind.__module__.startswith("fedgraph.")]


def test_an_event_that_nobody_prices_is_found():
    unpriced = {kind.__name__ for kind in shipped_events()} - {type(e).__name__ for e in (*EVERY, *FREE, *ENDLESS)}
    assert not unpriced, f"give {sorted(unpriced)} a price in accounting, and an example in EVERY"


WRONG_COUNTS = st.one_of(
    st.floats(), st.integers(max_value=-1), st.booleans(), st.none(), st.text(max_size=3), st.just(np.float64(2))
)
WRONG_NUMBERS = st.one_of(
    st.just(math.nan), st.floats(max_value=-1e-300), st.integers(max_value=-1), st.booleans(), st.none(), st.text(max_size=3)
)
ABOVE_ONE = st.floats(min_value=1, exclude_min=True)


@pytest.mark.parametrize("event", {type(e): e for e in EVERY}.values(), ids=lambda e: type(e).__name__)
@given(data=st.data())
@settings(max_examples=20, derandomize=True)
def test_a_field_refuses_what_it_cannot_mean(event, data):
    """0.5, infinity, NaN, −1 and True for a count; NaN, −1 and True for any number; and more than 1 for a rate."""
    for name, check in fields.checks_of(type(event)).items():
        value = getattr(event, name)
        if isinstance(value, int) and not isinstance(value, bool):
            wrong = WRONG_COUNTS
        elif isinstance(value, float):
            wrong = st.one_of(WRONG_NUMBERS, ABOVE_ONE) if check.words == "in [0, 1]" else WRONG_NUMBERS
        else:
            wrong = st.one_of(st.floats(), st.integers())
        found = data.draw(wrong, label=name)
        with pytest.raises(PrivacyError, match=name):
            dataclasses.replace(event, **{name: found})


def test_unknown_events_are_never_zero():
    for event in (Secret(0.0), Composed((Gaussian(1.0), Secret(1.0))), SampledOnce(Secret(1.0), 0.5), Event()):
        with pytest.raises(UnknownEventError, match=r"Secret|Event"):
            price(event, 1e-5)


def test_huge_counts_are_priced_on_the_private_side():
    for count in (10**6, 10**12):
        found = price(Repeated(Gaussian(1e6), count), 1e-5)
        assert found.epsilon > 0
        sampled = price(Repeated(PoissonGaussian(1e5, 1e-2, touched_rows=1, replaced=False), count), 1e-5).epsilon
        assert price(Repeated(Gaussian(1e7), count), 1e-5).epsilon * 0.999 <= sampled < math.inf


@settings(max_examples=20, derandomize=True)
@given(
    parts=st.lists(st.tuples(st.sampled_from(EVERY[:12]), st.integers(1, 5)), min_size=1, max_size=4),
    delta=st.floats(1e-6, 1e-2),
)
def test_more_releases_never_cost_less_and_order_is_irrelevant(parts, delta):
    events = [Repeated(e, n) for e, n in parts]
    total = price(Composed(tuple(events)), delta).epsilon
    assert price(Composed(tuple(reversed(events))), delta).epsilon == total
    # Post-processing: forgetting a release is post-processing, so the rest never costs more.
    assert price(Composed(tuple(events[1:])), delta).epsilon <= total * (1 + 3e-3) + 1e-9


@settings(max_examples=15, derandomize=True)
@given(epsilon=st.floats(1e-3, 3.0), count=st.integers(1, 400), delta=st.floats(1e-7, 1e-2))
def test_pure_releases_are_at_most_basic_and_at_least_the_optimum(epsilon, count, delta):
    """Kairouz, Oh & Viswanath's optimal composition, summed exactly, is the floor."""
    found = price(Repeated(PureDP(epsilon), count), delta).epsilon
    assert found <= count * epsilon * (1 + 1e-12)
    assert _optimal_delta(epsilon, count, found) <= delta * (1 + 1e-9)


@pytest.mark.parametrize(
    ("noise", "pure", "delta"), [(74.0, 0.97, 3e-5), (288.0, 0.99, 1e-5), (502.0, 1.0, 1e-3), (8.0, 0.1, 1e-6)]
)
def test_a_pure_release_beside_a_gaussian_one_costs_what_both_do(noise, pure, delta):
    """The loss of the pure pair is ±ε₀, so δ(ε) is two terms of the Gaussian curve; ε₀ between two grid points costs a gap."""

    def gaussian(e):
        return norm.cdf(0.5 / noise - e * noise) - math.exp(e) * norm.cdf(-0.5 / noise - e * noise)

    high = 1 / (1 + math.exp(-pure))
    least = brentq(lambda e: high * gaussian(e - pure) + (1 - high) * gaussian(e + pure) - delta, 0, 5)
    found = price(Composed((Gaussian(noise), PureDP(pure))), delta).epsilon
    assert least <= found <= least * (1 + 2e-3)


def _optimal_delta(epsilon, count, at):
    mp.mp.dps = 30
    p = 1 / (1 + mp.exp(-epsilon))
    total = mp.mpf(0)
    for i in range(count + 1):
        loss = (2 * i - count) * mp.mpf(epsilon)
        if loss > at:
            total += mp.binomial(count, i) * p**i * (1 - p) ** (count - i) * (1 - mp.exp(at - loss))
    return total


def test_amplification_is_exact_at_any_size():
    mp.mp.dps = 60
    for epsilon in (1e-12, 1e-6, 0.5, 11.1, 29.9, 30.1, 88.9, 1e3, 1e4, 1e6):
        for rate in (1e-12, 1e-3, 0.09, 0.5, 1.0):
            exact = mp.log(1 + mp.mpf(rate) * (mp.exp(mp.mpf(epsilon)) - 1))
            assert amplified_epsilon(epsilon, rate) == pytest.approx(float(exact), rel=1e-12), rate
            if rate > 1e-6:
                assert amplified_epsilon(amplification.epsilon_before(epsilon, rate), rate) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_rate_of_one_costs_what_rates_near_one_approach(rows, replaced):
    """A row that is replaced moves a sum by two clips, and so do all but the unit's own."""
    exact = price(Repeated(Gaussian(9.0 / (2 * rows - (not replaced))), 4), 1e-5).epsilon
    whole = price(Repeated(PoissonGaussian(9.0, 1.0, rows, replaced), 4), 1e-5).epsilon
    nearly = price(Repeated(PoissonGaussian(9.0, 1 - 1e-6, rows, replaced), 4), 1e-5).epsilon
    assert whole == exact == pytest.approx(nearly, rel=2e-2)


def test_sampling_once_is_applied_once_to_the_whole():
    inner = Composed((Repeated(Gaussian(1.0), 10), PureDP(2.0)))
    paid = price(SampledOnce(inner, 0.09), 1e-4)
    assert paid.epsilon == pytest.approx(amplified_epsilon(price(inner, 1e-4 / 0.09).epsilon, 0.09))
    assert price(SampledOnce(inner, 1.0), 1e-4) == price(inner, 1e-4)
    assert price(SampledOnce(PureDP(5.0), 0.1), 0.0).epsilon == pytest.approx(amplified_epsilon(5.0, 0.1))
    assert price(SampledOnce(Gaussian(0.5), 0.01), 0.05).epsilon == pytest.approx(0.0, abs=1e-6)
    published_reading = 0.09 * price(inner, 1e-4 / 0.09).epsilon
    assert paid.epsilon > published_reading
    beside = price(Composed((SampledOnce(inner, 0.09), PureDP(0.5))), 1e-4)
    assert beside.epsilon == pytest.approx(paid.epsilon + 0.5, rel=1e-6)


@pytest.mark.parametrize("rates", [(0.5,), (0.5, 0.5), (0.5, 0.25, 0.1), (0.2,) * 5], ids=str)
def test_what_sampled_parts_may_miss_adds_up(rates):
    """Each gives everything away with probability q·δ₀, else nothing: below their sum no ε holds, above it ε = 0 does."""
    parts = [SampledOnce(ApproxDP(0.0, 1e-5), rate) for rate in rates]
    each = max(rates) * 1e-5 * len(rates)  # δ is divided evenly
    missed = math.fsum(rate * 1e-5 for rate in rates)
    assert price(Composed(tuple(parts)), each * 1.001).epsilon == 0
    assert price(Composed(tuple(parts)), missed * 0.999).epsilon == math.inf
    beside = Composed((*parts, ApproxDP(0.0, each)))
    assert price(beside, 2 * each * 1.001).epsilon == 0
    assert price(beside, (missed + each) * 0.999).epsilon == math.inf


def test_a_choice_among_trials_on_secret_samples_costs_less_than_without_and_never_nothing():
    inner = Composed((Repeated(Gaussian(4.0), 5), PureDP(0.1)))
    prices = [price(Selected((SampledOnce(inner, rate),), 0.0, 0.2), 1e-5).epsilon for rate in (0.01, 0.1, 0.5, 0.999, 1.0)]
    assert 0 < prices[0] < prices[1] < prices[2] < prices[3] < prices[4]
    assert prices[4] == price(Selected((inner,), 0.0, 0.2), 1e-5).epsilon
    assert prices[1] > price(SampledOnce(inner, 0.1), 1e-5).epsilon, "choosing costs"
    assert price(Selected((SampledOnce(Unprotected("x"), 0.1), Gaussian(9.0)), 0.0, 0.2), 1e-5).epsilon == math.inf
    assert price(SampledOnce(Unprotected("x"), 0.1), 1e-5).epsilon == math.inf
    assert price(Selected((SampledOnce(inner, 0.0),), 0.0, 0.2), 1e-5).epsilon == 0
    once, exact = (
        price(Selected((e,), 0.0, 0.2), 1e-5).epsilon
        for e in (SampledOnce(Gaussian(4.0), 0.1), PoissonGaussian(4.0, 0.1, 1, False))
    )
    assert once >= exact


def test_what_a_trial_may_miss_adds_to_delta_as_often_as_there_are_trials():
    stop, gauss = 0.2, Gaussian(4.0)
    trials = (1 / stop - 1) / math.log(1 / stop)  # the mean of the logarithmic law
    for wrap in (lambda e: e, lambda e: SampledOnce(e, 0.5)):
        paid = price(Selected((wrap(Composed((gauss, ApproxDP(0.0, 1e-7)))), wrap(gauss)), 0.0, stop), 1e-5).epsilon
        assert paid == price(Selected((wrap(gauss),), 0.0, stop), 1e-5 - 1e-7 * trials).epsilon
        assert paid > price(Selected((wrap(gauss),), 0.0, stop), 1e-5 - 1e-7).epsilon, "once would be too little"
        assert price(Selected((wrap(Composed((gauss, ApproxDP(0.0, 9e-6)))),), 0.0, stop), 1e-5).epsilon == math.inf
    with pytest.raises(UnknownEventError):
        price(Selected((Composed((gauss, ApproxDP(0.5, 1e-7))),), 0.0, stop), 1e-5)


@pytest.mark.parametrize(("touched_rows", "replaced"), [(1, False), (3, False), (2, True)])
def test_the_price_does_not_jump_where_the_grid_ends(touched_rows, replaced):
    event = Repeated(PoissonGaussian(1.5, 0.05, touched_rows, replaced), 100)
    above, below, tiny = (price(event, delta).epsilon for delta in (1e-9, 0.999e-9, 1e-15))
    assert above < below < 1.15 * above
    assert below < tiny < 2 * above


@pytest.mark.parametrize("mu", [0.01, 0.3, 3.0])
@pytest.mark.parametrize("delta", [9e-10, 1e-14, 1e-40])
def test_moments_of_the_grid_are_never_below_the_exact_gaussian(mu, delta):
    halves = Repeated(Gaussian(math.sqrt(2) / mu), 2)
    exact = price(halves, delta).epsilon
    assert exact < price(Composed((halves, PureDP(1e-9))), delta).epsilon < 1.08 * exact


def test_a_delta_that_is_met_exactly_is_met():
    assert price(Repeated(ApproxDP(0.5, 1e-7), 3), 3e-7).epsilon == pytest.approx(1.5)  # 3 × 1e-7 > 3e-7 in floats
    assert price(Composed((ApproxDP(0.5, 1e-6), PureDP(0.1))), 1e-6).epsilon == pytest.approx(0.6)
    assert price(Composed((ApproxDP(0.5, 1e-6), Gaussian(100.0))), 1e-6).epsilon == math.inf  # nothing is left for the normal
    assert price(Repeated(ApproxDP(0.5, 1.001e-7), 3), 3e-7).epsilon == math.inf


def test_a_choice_made_by_what_was_seen_is_not_dearer_than_its_price():
    """Randomised response first; its answer chooses Gaussian noise or another response: the exact curve, integrated."""
    first, second, mu = 0.5, 0.8, 0.9
    claimed = Composed((PureDP(first), OneOf((PureDP(second), Gaussian(1 / mu)))))
    p = 1 / (1 + math.exp(-first))
    q = 1 / (1 + math.exp(-second))
    for epsilon in (0.3, 0.8, 1.2):

        def response(e):
            return max(0.0, q - math.exp(e) * (1 - q)) + max(0.0, (1 - q) - math.exp(e) * q)

        def gauss(e):
            return float(norm.cdf(mu / 2 - e / mu) - math.exp(e) * norm.cdf(-mu / 2 - e / mu))

        for chosen in itertools.product((response, gauss), repeat=2):
            exact = p * chosen[0](epsilon - first) + (1 - p) * chosen[1](epsilon + first)
            assert price(claimed, max(exact, 1e-9) * (1 - 1e-2)).epsilon > epsilon * (1 - 5e-2)
            assert price(claimed, max(exact, 1e-9)).epsilon >= epsilon * (1 - 1e-6)


def test_parts_of_a_choice_are_priced_once_and_what_was_not_planned_as_one_more():
    choice = OneOf((Composed((PureDP(0.3), Repeated(Gaussian(9.0), 2))), Repeated(Gaussian(8.0), 4)))
    label, step, row = (PartOf(e, choice, i) for e, i in ((PureDP(0.3), 0), (Gaussian(9.0), 0), (Gaussian(8.0), 1)))
    once, twice = price(choice, 1e-5), price(Repeated(choice, 2), 1e-5)
    assert price(Composed((label, Repeated(step, 2))), 1e-5) == price(step, 1e-5) == price(Repeated(row, 4), 1e-5) == once
    assert price(Repeated(row, 5), 1e-5) == price(Composed((label, row)), 1e-5) == price(Repeated(label, 2), 1e-5) == twice
    for stranger in (PartOf(Gaussian(8.0), choice, 0), PartOf(Gaussian(9.0), choice, 2)):
        with pytest.raises(UnknownEventError):
            price(stranger, 1e-5)
