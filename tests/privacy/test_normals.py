"""Fast normal numbers: the distribution, and its tail."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fedgraph.privacy import GaussianNoise

BLOCK = 65_536  # numbers that are drawn at a time


def normals(count: int, rng: np.random.Generator) -> np.ndarray:
    """What is added to zeros."""
    return GaussianNoise(1.0).apply(np.zeros(count, np.float32), rng)


def test_the_numbers_are_normal_and_independent() -> None:
    drawn = normals(2_000_001, np.random.default_rng(5)).astype(float)
    assert drawn.size == 2_000_001
    assert stats.kstest(drawn, "norm").pvalue > 1e-3
    assert stats.kstest(drawn * 2 / 3, "norm").pvalue < 1e-9  # the test sees weakened noise
    for one, other in [(drawn[:-1], drawn[1:]), (drawn[: BLOCK // 2], drawn[BLOCK // 2 : BLOCK])]:
        for power in (1, 2):
            correlation = stats.pearsonr(one**power, other**power)
            assert correlation.pvalue > 1e-3
    beyond = np.array([(np.abs(drawn) > far).mean() for far in (3.0, 4.0)])
    expected = 2 * stats.norm.sf([3.0, 4.0])
    assert np.all(np.abs(beyond - expected) < 5 * np.sqrt(expected / drawn.size))


def test_the_tail_goes_on_where_32_bits_end() -> None:
    rng = np.random.default_rng(7)

    class Longest:  # a generator in whose words the 32 bits of every radius are zero
        random = rng.random

        def integers(self, *_: object, size: int, **__: object) -> np.ndarray:
            return (1 << 30) + rng.integers(0, 1 << 30, size=size, dtype=np.uint64)

    out = normals(BLOCK, Longest())  # type: ignore[arg-type]
    squares = (out.reshape(2, -1).astype(float) ** 2).sum(axis=0)
    # Given u < 2⁻³², −ln u is 32·ln 2 plus an exponential number.
    assert stats.kstest(squares / 2 - 32 * np.log(2), "expon").pvalue > 1e-3


@pytest.mark.parametrize("count", [0, BLOCK - 1, BLOCK, 3 * BLOCK + 7])
def test_any_count_from_the_same_state_gives_the_same_numbers(count: int) -> None:
    first, second = (normals(count, np.random.default_rng(2)) for _ in range(2))
    assert first.shape == (count,)
    assert first.dtype == np.float32
    np.testing.assert_array_equal(first, second)
    if count < BLOCK:
        np.testing.assert_array_equal(first, np.random.default_rng(2).standard_normal(count, dtype=np.float32))
