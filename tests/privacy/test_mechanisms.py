"""Every mechanism: its law at the true scale is accepted, at two thirds and at three halves of it rejected; what it refuses."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.privacy.mechanisms import noise
from fedgraph.privacy.mechanisms.noise import GaussianNoise, GumbelTopK, KaryResponse, LaplaceNoise, MultiBitEncoder

DRAWS = 20_000


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def gaussian(factor: float, dtype: type) -> float:
    out = GaussianNoise(2.0).apply(np.full(DRAWS, 3.0, dtype=dtype), rng())
    assert out.dtype == dtype
    return float(stats.kstest((out - 3.0) / (2.0 * factor), "norm").pvalue)


def symmetric_laplace(factor: float) -> float:
    stream, mechanism = rng(), noise.SymmetricLaplaceNoise(2.0)
    out = np.array([mechanism.apply(np.zeros(2), stream) for _ in range(DRAWS)])
    assert np.corrcoef(np.abs(out).T)[0, 1] > 0.2, "entries share their W"
    return float(stats.kstest(out[:, 0] / (math.sqrt(2) * factor), "laplace").pvalue)


def counted(found: np.ndarray, chances: np.ndarray) -> float:
    return float(stats.chisquare(np.bincount(found, minlength=chances.size), found.size * chances / chances.sum()).pvalue)


def gumbel(factor: float) -> float:
    """The first pick is the exponential mechanism's."""
    values = np.array([0.0, 0.5, 1.0, 1.7])
    picked = GumbelTopK(1, 0.6).apply(np.tile(values, (DRAWS, 1)), rng())[:, 0]
    return counted(picked, np.exp(values / (0.6 * factor)))


def response(factor: float) -> float:
    return counted(KaryResponse(1.2, 5).apply(np.full(DRAWS, 2), rng()), np.exp(1.2 * factor * (np.arange(5) == 2)))


def bits(factor: float, entry: float) -> float:
    out = MultiBitEncoder(1.1, 1).apply(np.full((2 * DRAWS, 1), entry), rng())[:, 0]
    low, high = 1 / (math.exp(1.1 * factor) + 1), 1 / (math.exp(-1.1 * factor) + 1)
    plus = low + entry * (high - low)
    return counted((out > 0).astype(int), np.array([1 - plus, plus]))


LAWS: dict[str, Callable[[float], float]] = {
    "Gaussian, single": lambda factor: gaussian(factor, np.float32),
    "Gaussian, double": lambda factor: gaussian(factor, np.float64),
    "Laplace": lambda f: float(stats.kstest(LaplaceNoise(2.0).apply(np.zeros(DRAWS), rng()) / (2.0 * f), "laplace").pvalue),
    "symmetric Laplace": symmetric_laplace,
    "Gumbel": gumbel,
    "k-ary response": response,
    **{f"bits of {entry}": lambda factor, entry=entry: bits(factor, entry) for entry in (0.0, 0.3, 1.0)},  # type: ignore[misc]
}


@pytest.mark.parametrize("factor", [2 / 3, 1.0, 3 / 2])
@pytest.mark.parametrize("name", LAWS)
def test_the_law_is_the_stated_one_and_no_other(name: str, factor: float) -> None:
    found = LAWS[name](factor)
    assert found > 1e-3 if factor == 1.0 else found < 1e-6


def test_gumbel_top_k_is_peeling_without_repeats() -> None:
    picked = GumbelTopK(2, 1.0).apply(np.zeros((30_000, 3)), np.random.default_rng(1))
    assert (picked[:, 0] != picked[:, 1]).all()
    pairs = np.bincount(picked[:, 0] * 3 + picked[:, 1], minlength=9)[[1, 2, 3, 5, 6, 7]]
    assert stats.chisquare(pairs).pvalue > 1e-3


@pytest.mark.parametrize("in_total", [False, True])
def test_multi_bit_sends_exactly_m_and_rectifies_without_bias(in_total: bool) -> None:
    value = np.array([[0.1, 0.9, 0.4, 0.0], [1.0, 0.5, 0.2, 0.7], [0.3, 0.3, 0.8, 0.6]])
    encoder, stream = MultiBitEncoder(0.8, 2, in_total), np.random.default_rng(3)
    total = np.zeros_like(value)
    for _ in range(8000):
        sent = encoder.apply(value, stream)
        assert (np.abs(sent).sum() == 2) if in_total else (np.abs(sent).sum(axis=1) == 2).all()
        total += encoder.rectify(sent)
    spread = 12 / (2 * 2) / math.tanh(0.4) * math.sqrt(1 / 8000) * 2
    assert total / 8000 == pytest.approx(value, abs=4 * spread)


ADDED = [GaussianNoise(1.0), LaplaceNoise(1.0), GumbelTopK(1, 1.0), MultiBitEncoder(1.0, 1)]
REFUSED = [
    *((m, np.array([[0.0, bad]])) for m in ADDED for bad in (math.nan, math.inf, -math.inf)),
    *((KaryResponse(1.0, 5), np.array([0, bad])) for bad in (-1, 5, 1.5, math.nan)),
    *((quiet, np.array([[3.0, -1e3]], np.float32)) for quiet in (GaussianNoise(1e-6), LaplaceNoise(1e-6), GumbelTopK(1, 1e-6))),
]


def test_what_no_noise_covers_never_passes() -> None:
    """NaN, infinity, a class that there is not, and noise that rounding would eat; of the last, double precision has room."""
    for mechanism, value in REFUSED:
        with pytest.raises(UnboundedValueError):
            mechanism.apply(value, rng())
        if value.dtype == np.float32:
            mechanism.apply(value.astype(np.float64), rng())


BUILDERS: list[Callable[[float], object]] = [
    GaussianNoise,
    LaplaceNoise,
    lambda x: GumbelTopK(1, x),
    lambda x: KaryResponse(x, 3),
    lambda x: MultiBitEncoder(x, 1),
]


def test_bad_numbers() -> None:
    for build, number in itertools.product(BUILDERS, (0.0, -1.0, math.nan, math.inf)):
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


def test_inputs_are_never_changed() -> None:
    value = np.arange(6.0).reshape(2, 3)
    before = value.copy()
    for mechanism in (*ADDED, noise.Disclose("test")):
        mechanism.apply(value, rng())[...] = 99
        assert (value == before).all()
