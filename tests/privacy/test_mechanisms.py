"""Every mechanism: its law at the true scale is accepted, at two thirds and at three halves of it rejected; what it refuses."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.privacy.mechanisms import likelihood_ratios, noise
from fedgraph.privacy.mechanisms.noise import GaussianNoise, GumbelTopK, KaryResponse, LaplaceNoise, MultiBitEncoder

DRAWS = 20_000
BLOCK = 65_536  # normal numbers that are drawn at a time


def rng():
    return np.random.default_rng(0)


def gaussian(factor, dtype):
    out = GaussianNoise(2.0).apply(np.full(DRAWS, 3.0, dtype=dtype), rng())
    assert out.dtype == dtype
    return stats.kstest((out - 3.0) / (2.0 * factor), "norm").pvalue


def symmetric_laplace(factor):
    stream, mechanism = rng(), noise.SymmetricLaplaceNoise(2.0)
    out = np.array([mechanism.apply(np.zeros(2), stream) for _ in range(DRAWS)])
    assert np.corrcoef(np.abs(out).T)[0, 1] > 0.2, "entries share their W"
    return stats.kstest(out[:, 0] / (math.sqrt(2) * factor), "laplace").pvalue


def counted(found, chances):
    return stats.chisquare(np.bincount(found, minlength=chances.size), found.size * chances / chances.sum()).pvalue


def gumbel(factor):
    """The first pick is the exponential mechanism's."""
    values = np.array([0.0, 0.5, 1.0, 1.7])
    picked = GumbelTopK(1, 0.6).apply(np.tile(values, (DRAWS, 1)), rng())[:, 0]
    return counted(picked, np.exp(values / (0.6 * factor)))


def response(factor):
    return counted(KaryResponse(1.2, 5).apply(np.full(DRAWS, 2), rng()), np.exp(1.2 * factor * (np.arange(5) == 2)))


def bits(factor, entry):
    out = MultiBitEncoder(1.1, 1).apply(np.full((2 * DRAWS, 1), entry), rng())[:, 0]
    low, high = 1 / (math.exp(1.1 * factor) + 1), 1 / (math.exp(-1.1 * factor) + 1)
    plus = low + entry * (high - low)
    return counted((out > 0).astype(int), np.array([1 - plus, plus]))


LAWS = {
    "Gaussian, single": lambda factor: gaussian(factor, np.float32),
    "Gaussian, double": lambda factor: gaussian(factor, np.float64),
    "Laplace": lambda factor: stats.kstest(LaplaceNoise(2.0).apply(np.zeros(DRAWS), rng()) / (2.0 * factor), "laplace").pvalue,
    "symmetric Laplace": symmetric_laplace,
    "Gumbel": gumbel,
    "k-ary response": response,
    **{f"bits of {entry}": lambda factor, entry=entry: bits(factor, entry) for entry in (0.0, 0.3, 1.0)},
}


@pytest.mark.parametrize("factor", [2 / 3, 1.0, 3 / 2])
@pytest.mark.parametrize("name", LAWS)
def test_the_law_is_the_stated_one_and_no_other(name, factor):
    found = LAWS[name](factor)
    assert found > 1e-3 if factor == 1.0 else found < 1e-6


def normals(count, generator):
    """What is added to zeros."""
    return GaussianNoise(1.0).apply(np.zeros(count, np.float32), generator)


def test_fast_normal_numbers_are_independent_and_their_tail_goes_on_where_32_bits_end():
    drawn = normals(500_001, np.random.default_rng(5)).astype(float)
    assert stats.kstest(drawn, "norm").pvalue > 1e-3
    for one, other in [(drawn[:-1], drawn[1:]), (drawn[: BLOCK // 2], drawn[BLOCK // 2 : BLOCK])]:
        assert min(stats.pearsonr(one**power, other**power).pvalue for power in (1, 2)) > 1e-3
    for far in (3.0, 4.0):
        expected = 2 * stats.norm.sf(far)
        assert abs((np.abs(drawn) > far).mean() - expected) < 5 * math.sqrt(expected / drawn.size)
    generator = np.random.default_rng(7)

    class Longest:  # in whose words the 32 bits of every radius are zero
        random = generator.random

        def integers(self, *_, size, **__):
            return (1 << 30) + generator.integers(0, 1 << 30, size=size, dtype=np.uint64)

    squares = (normals(BLOCK, Longest()).reshape(2, -1).astype(float) ** 2).sum(axis=0)
    # Given u < 2⁻³², −ln u is 32·ln 2 plus an exponential number.
    assert stats.kstest(squares / 2 - 32 * np.log(2), "expon").pvalue > 1e-3


def test_gumbel_top_k_is_peeling_without_repeats():
    picked = GumbelTopK(2, 1.0).apply(np.zeros((30_000, 3)), np.random.default_rng(1))
    assert (picked[:, 0] != picked[:, 1]).all()
    pairs = np.bincount(picked[:, 0] * 3 + picked[:, 1], minlength=9)[[1, 2, 3, 5, 6, 7]]
    assert stats.chisquare(pairs).pvalue > 1e-3


@pytest.mark.parametrize("in_total", [False, True])
def test_multi_bit_sends_exactly_m_and_rectifies_without_bias(in_total):
    value = np.array([[0.1, 0.9, 0.4, 0.0], [1.0, 0.5, 0.2, 0.7], [0.3, 0.3, 0.8, 0.6]])
    encoder, stream, tries = MultiBitEncoder(0.8, 2, in_total), np.random.default_rng(3), 4000
    total = np.zeros_like(value)
    for _ in range(tries):
        sent = encoder.apply(value, stream)
        assert (np.abs(sent).sum() == 2) if in_total else (np.abs(sent).sum(axis=1) == 2).all()
        total += encoder.rectify(sent)
    spread = 12 / (2 * 2) / math.tanh(0.4) * math.sqrt(1 / tries) * 2
    assert total / tries == pytest.approx(value, abs=4 * spread)


ADDED = [GaussianNoise(1.0), LaplaceNoise(1.0), GumbelTopK(1, 1.0), MultiBitEncoder(1.0, 1)]
REFUSED = [
    *((m, np.array([[0.0, bad]])) for m in ADDED for bad in (math.nan, math.inf, -math.inf)),
    *((KaryResponse(1.0, 5), np.array([0, bad])) for bad in (-1, 5, 1.5, math.nan)),
    *((quiet, np.array([[3.0, -1e3]], np.float32)) for quiet in (GaussianNoise(1e-6), LaplaceNoise(1e-6), GumbelTopK(1, 1e-6))),
]
BUILDERS = [GaussianNoise, LaplaceNoise, *(lambda x, f=f: f(1, x) for f in (GumbelTopK, lambda k, x: MultiBitEncoder(x, k)))]


def test_what_no_noise_covers_never_passes_and_inputs_are_never_changed():
    """NaN, infinity, a class that there is not, and noise that rounding would eat; of the last, double precision has room."""
    for mechanism, value in REFUSED:
        with pytest.raises(UnboundedValueError):
            mechanism.apply(value, rng())
        if value.dtype == np.float32:
            mechanism.apply(value.astype(np.float64), rng())
    for build, number in itertools.product([*BUILDERS, lambda x: KaryResponse(x, 3)], (0.0, -1.0, math.nan, math.inf)):
        with pytest.raises(PrivacyError):
            build(number)
    for wrong in (
        lambda: GumbelTopK(0, 1.0),
        lambda: KaryResponse(1.0, 1),
        lambda: MultiBitEncoder(1.0, 0),
        lambda: MultiBitEncoder(1.0, 1, low=1.0, high=1.0),
        lambda: GumbelTopK(3, 1.0).apply(np.zeros((2, 2)), rng()),
        lambda: MultiBitEncoder(1.0, 1).apply(np.zeros(3), rng()),
    ):
        with pytest.raises(PrivacyError):
            wrong()
    assert GaussianNoise(1.0).apply(np.zeros(0), rng()).size == 0
    value = np.arange(6.0).reshape(2, 3)
    for mechanism in (*ADDED, noise.Disclose("test")):
        mechanism.apply(value, rng())[...] = 99
        assert (value == np.arange(6.0).reshape(2, 3)).all()


def test_coins_are_read_from_gaussian_values_by_their_likelihood_ratio():
    """One alone exactly; of two hundred along one direction, and each along one of its own, the shared one is taken off."""
    generator = np.random.default_rng(0)
    h, seen, std = generator.normal(size=7), generator.normal(size=7), 1.3
    exact = (np.square(seen + h).sum() - np.square(seen - h).sum()) / (2 * std**2)
    (found,) = likelihood_ratios.of_coins(np.array([[h @ h / std**2]]), np.array([h @ seen / std**2]))
    assert found == pytest.approx(exact)
    generator = np.random.default_rng(2)
    moved, coins = np.vstack([np.eye(200) * 2, np.full((1, 200), 5.0)]), np.where(generator.random(200) < 0.5, 1.0, -1.0)
    along = moved.T @ (moved @ coins + generator.standard_normal(201))
    right = [np.mean(np.sign(score) == coins) for score in (likelihood_ratios.of_coins(moved.T @ moved, along), along)]
    assert right[0] > 0.93 > 0.75 > right[1]
