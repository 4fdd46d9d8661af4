"""Fast normal numbers: the distribution, and its tail."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fedgraph.privacy.mechanisms import normals
from fedgraph.privacy.mechanisms.normals import _BLOCK


def reference(words: np.ndarray) -> np.ndarray:
    """Box & Muller in double precision, [2, m]: the angle lies within ±π/4 unless swapped, the sign turns it round."""
    radius = np.sqrt(-2 * np.log(((words >> np.uint64(32)).astype(float) + 0.5) / 2.0**32))
    angle = ((words & np.uint64(0x3FFFFFFF)).astype(float) - 2.0**29 + 0.5) * np.pi / 2**31
    radius = np.where(words & np.uint64(1 << 30), radius, -radius)
    pair = radius * np.stack([np.cos(angle), np.sin(angle)])
    return np.where(words & np.uint64(1 << 31), pair[::-1], pair)


def test_the_numbers_are_normal_and_independent() -> None:
    drawn = normals.standard(2_000_001, np.random.default_rng(5)).astype(float)
    assert drawn.size == 2_000_001
    assert stats.kstest(drawn, "norm").pvalue > 1e-3
    assert stats.kstest(drawn * 2 / 3, "norm").pvalue < 1e-9  # the test sees weakened noise
    for one, other in [(drawn[:-1], drawn[1:]), (drawn[: _BLOCK // 2], drawn[_BLOCK // 2 : _BLOCK])]:
        for power in (1, 2):
            correlation = stats.pearsonr(one**power, other**power)
            assert correlation.pvalue > 1e-3
    beyond = np.array([(np.abs(drawn) > far).mean() for far in (3.0, 4.0)])
    expected = 2 * stats.norm.sf([3.0, 4.0])
    assert np.all(np.abs(beyond - expected) < 5 * np.sqrt(expected / drawn.size))


def test_the_tail_goes_on_where_32_bits_end() -> None:
    rng, words = np.random.default_rng(7), np.full(40_000, 1 << 30, np.uint64)  # the 32 bits of every radius are zero
    words += rng.integers(0, 1 << 30, size=words.size, dtype=np.uint64)
    out = np.empty(2 * words.size, np.float32)
    normals._pairs(words, out)
    assert np.unique(np.hypot(*out.reshape(2, -1).astype(float)).round(4)).size == 1
    normals._lengthen(words, out, rng)
    squares = (out.reshape(2, -1).astype(float) ** 2).sum(axis=0)
    # Given u < 2⁻³², −ln u is 32·ln 2 plus an exponential number.
    assert stats.kstest(squares / 2 - 32 * np.log(2), "expon").pvalue > 1e-3


def test_long_radii_get_their_bits_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words below the bound, and only those, give another pair than their 32 bits alone."""
    monkeypatch.setattr(normals, "_RARE", np.uint64(1 << 48 << 12))
    drawn = normals.standard(_BLOCK, np.random.default_rng(11)).reshape(2, -1)
    words = np.random.default_rng(11).integers(0, 2**64 - 1, size=_BLOCK // 2, dtype=np.uint64, endpoint=True)
    coarse = np.empty(_BLOCK, np.float32)
    normals._pairs(words, coarse)
    changed = (drawn != coarse.reshape(2, -1)).any(axis=0)
    assert 0 < changed.sum() < words.size / 8
    assert not changed[words >= normals._RARE].any()
    np.testing.assert_allclose(drawn, reference(words), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("count", [0, 1, _BLOCK - 1, _BLOCK, _BLOCK + 1, 3 * _BLOCK + 7])
def test_any_count_from_the_same_state_gives_the_same_numbers(count: int) -> None:
    first, second = (normals.standard(count, np.random.default_rng(2)) for _ in range(2))
    assert first.shape == (count,)
    assert first.dtype == np.float32
    np.testing.assert_array_equal(first, second)
    if count < _BLOCK:
        np.testing.assert_array_equal(first, np.random.default_rng(2).standard_normal(count, dtype=np.float32))
