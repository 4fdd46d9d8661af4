"""Every mechanism: the true scale is accepted, two thirds and three halves of it are rejected."""

import math

import numpy as np
import pytest
from scipy import stats

from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.privacy.mechanisms.noise import (
    Disclose,
    GaussianNoise,
    GumbelTopK,
    KaryResponse,
    LaplaceNoise,
    MultiBitEncoder,
    SymmetricLaplaceNoise,
)

FACTORS = (2 / 3, 1.0, 3 / 2)


def accepts(p_value, factor):
    """The true scale must pass at 1e-3, a wrong one must fail clearly."""
    return p_value > 1e-3 if factor == 1.0 else p_value < 1e-6


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gaussian_scale(factor, dtype):
    out = GaussianNoise(2.0).apply(np.full(20_000, 3.0, dtype=dtype), np.random.default_rng(0))
    assert out.dtype == dtype
    assert accepts(stats.kstest((out - 3.0) / (2.0 * factor), "norm").pvalue, factor)


@pytest.mark.parametrize("factor", FACTORS)
def test_laplace_scale(factor):
    out = LaplaceNoise(2.0).apply(np.zeros(20_000), np.random.default_rng(0))
    assert accepts(stats.kstest(out / (2.0 * factor), "laplace").pvalue, factor)


@pytest.mark.parametrize("factor", FACTORS)
def test_symmetric_laplace_is_laplace_per_entry_with_one_scale_for_all(factor):
    rng, mechanism = np.random.default_rng(0), SymmetricLaplaceNoise(2.0)
    out = np.array([mechanism.apply(np.zeros(2), rng) for _ in range(20_000)])
    assert accepts(stats.kstest(out[:, 0] / (math.sqrt(2) * factor), "laplace").pvalue, factor)
    assert np.corrcoef(np.abs(out).T)[0, 1] > 0.2, "entries share their W"


@pytest.mark.parametrize("factor", FACTORS)
def test_gumbel_first_pick_is_the_exponential_mechanism(factor):
    values, scale, draws = np.array([0.0, 0.5, 1.0, 1.7]), 0.6, 20_000
    picked = GumbelTopK(1, scale).apply(np.tile(values, (draws, 1)), np.random.default_rng(0))[:, 0]
    weights = np.exp(values / (scale * factor))
    found = stats.chisquare(np.bincount(picked, minlength=4), draws * weights / weights.sum())
    assert accepts(found.pvalue, factor)


def test_gumbel_top_k_is_peeling_without_repeats():
    picked = GumbelTopK(2, 1.0).apply(np.zeros((30_000, 3)), np.random.default_rng(1))
    assert (picked[:, 0] != picked[:, 1]).all()
    pairs = np.bincount(picked[:, 0] * 3 + picked[:, 1], minlength=9)[[1, 2, 3, 5, 6, 7]]
    assert stats.chisquare(pairs).pvalue > 1e-3


@pytest.mark.parametrize("factor", FACTORS)
def test_k_ary_response(factor):
    epsilon, k, draws = 1.2, 5, 20_000
    out = KaryResponse(epsilon, k).apply(np.full(draws, 2), np.random.default_rng(0))
    other = 1 / (math.exp(epsilon * factor) + k - 1)
    expected = np.full(k, other)
    expected[2] = math.exp(epsilon * factor) * other
    assert accepts(stats.chisquare(np.bincount(out, minlength=k), draws * expected).pvalue, factor)


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("entry", [0.0, 0.3, 1.0])
def test_multi_bit(factor, entry):
    a, draws = 1.1, 40_000
    out = MultiBitEncoder(a, 1).apply(np.full((draws, 1), entry), np.random.default_rng(0))
    e = math.exp(a * factor)
    plus = 1 / (e + 1) + entry * (e - 1) / (e + 1)
    found = stats.chisquare([(out == 1).sum(), (out == -1).sum()], [draws * plus, draws * (1 - plus)])
    assert accepts(found.pvalue, factor)


@pytest.mark.parametrize("in_total", [False, True])
def test_multi_bit_sends_exactly_m_and_rectifies_without_bias(in_total):
    value = np.array([[0.1, 0.9, 0.4, 0.0], [1.0, 0.5, 0.2, 0.7], [0.3, 0.3, 0.8, 0.6]])
    encoder = MultiBitEncoder(0.8, 2, in_total)
    rng = np.random.default_rng(3)
    total = np.zeros_like(value)
    for _ in range(8000):
        sent = encoder.apply(value, rng)
        assert (np.abs(sent).sum() == 2) if in_total else (np.abs(sent).sum(axis=1) == 2).all()
        total += encoder.rectify(sent)
    spread = 12 / (2 * 2) / math.tanh(0.4) * math.sqrt(1 / 8000) * 2
    assert total / 8000 == pytest.approx(value, abs=4 * spread)


@pytest.mark.parametrize(
    "mechanism",
    [GaussianNoise(1.0), LaplaceNoise(1.0), GumbelTopK(1, 1.0), MultiBitEncoder(1.0, 1)],
    ids=lambda m: type(m).__name__,
)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_non_finite_never_passes(mechanism, bad):
    with pytest.raises(UnboundedValueError):
        mechanism.apply(np.array([[0.0, bad]]), np.random.default_rng(0))


@pytest.mark.parametrize("bad", [-1, 5, 1.5, math.nan])
def test_categories_must_exist(bad):
    with pytest.raises(UnboundedValueError):
        KaryResponse(1.0, 5).apply(np.array([0, bad]), np.random.default_rng(0))


@pytest.mark.parametrize("number", [0.0, -1.0, math.nan, math.inf])
def test_bad_scales(number):
    for build in (
        GaussianNoise,
        LaplaceNoise,
        lambda x: GumbelTopK(1, x),
        lambda x: KaryResponse(x, 3),
        lambda x: MultiBitEncoder(x, 1),
    ):
        with pytest.raises(PrivacyError):
            build(number)


def test_bad_shapes_and_counts():
    for build in (
        lambda: GumbelTopK(0, 1.0),
        lambda: KaryResponse(1.0, 1),
        lambda: MultiBitEncoder(1.0, 0),
        lambda: MultiBitEncoder(1.0, 1, low=1.0, high=1.0),
        lambda: GumbelTopK(3, 1.0).apply(np.zeros((2, 2)), np.random.default_rng(0)),
        lambda: MultiBitEncoder(1.0, 1).apply(np.zeros(3), np.random.default_rng(0)),
    ):
        with pytest.raises(PrivacyError):
            build()


def test_inputs_are_never_changed():
    value = np.arange(6.0).reshape(2, 3)
    before = value.copy()
    for mechanism in (GaussianNoise(1.0), LaplaceNoise(1.0), GumbelTopK(2, 1.0), MultiBitEncoder(1.0, 1), Disclose("test")):
        out = mechanism.apply(value, np.random.default_rng(0))
        out[...] = 99
        assert (value == before).all()
        assert mechanism.words


@pytest.mark.parametrize("mechanism", [GaussianNoise(1e-6), LaplaceNoise(1e-6), GumbelTopK(1, 1e-6)])
def test_noise_that_rounding_would_eat_is_refused(mechanism):
    rng = np.random.default_rng(0)
    with pytest.raises(UnboundedValueError, match="cannot be added"):
        mechanism.apply(np.array([[3.0, -1e3]], np.float32), rng)
    mechanism.apply(np.array([[3.0, -1e3]]), rng)  # double precision resolves it
    mechanism.apply(np.array([[1e-2, -1e-2]], np.float32), rng)
