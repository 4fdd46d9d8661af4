"""Standard normal numbers in single precision, drawn fast: numpy's own take half the time of a noisy gradient step.

Box & Muller's pairs (A Note on the Generation of Random Normal Deviates, 1958) from the words of numpy's generator, in
one compiled loop without ``fastmath``: the same bits on every machine. The usual weakness of that method is its tail
(a 24-bit uniform number ends at 5.8 σ, a 32-bit one at 6.7 σ). Here a word whose first 16 bits are zero gets
53 more random bits, so radii reach 10.8 σ, and steps between neighbouring radii stay below 10⁻⁶ everywhere but near zero.
"""

import math

import numpy as np

from fedgraph.compiled import compiled, compiled_constant, compiled_types

_BLOCK = 65_536  # numbers drawn at a time, so that words and results stay in the cache; below it numpy is as fast
_RARE = np.uint64(1 << 48)  # words below it have 16 leading zeros
_LN2 = math.log(2.0)
_TURN = np.float32(math.pi / 2**31)


def standard(count: int, rng: np.random.Generator) -> np.ndarray:
    """Independent N(0, 1) numbers, a function of the generator's state and of their number alone.

    count: how many. rng: random stream. Returns float32 [count].
    """
    if count < _BLOCK:
        return rng.standard_normal(count, dtype=np.float32)
    out = np.empty(count + count % 2, dtype=np.float32)
    for first in range(0, out.size, _BLOCK):
        block = out[first : first + _BLOCK]
        words = rng.integers(0, 2**64 - 1, size=block.size // 2, dtype=np.uint64, endpoint=True)
        _pairs(words, block)
        _lengthen(words, block, rng)
    return out[:count]


@compiled(compiled_types.void(compiled_constant(compiled_types.uint64), compiled_types.float32[::1]), reassociate=False)
def _pairs(words: np.ndarray, out: np.ndarray) -> None:
    """Word k → the pair (out[k], out[k + m]), m words. High 32 bits: radius. 30 low bits: angle within ±π/4; 2: which quarter.

    ln u by the series of artanh after taking the exponent out, relative error below 10⁻⁸; sine and cosine by Taylor
    series in single precision.
    """
    half = words.size
    one, half_one = np.float32(1), np.float32(0.5)
    sixth, s5, s7, s9 = np.float32(-1 / 6), np.float32(1 / 120), np.float32(-1 / 5040), np.float32(1 / 362880)
    c4, c6, c8 = np.float32(1 / 24), np.float32(-1 / 720), np.float32(1 / 40320)
    for k in range(half):
        word = words[k]
        high = np.float64(np.float64(np.uint32(word >> np.uint64(32))) + 0.5)
        bits = np.float64(high).view(np.int64)
        exponent = (bits - np.int64(0x3FE6A09E667F3BCD)) >> np.int64(52)  # the mantissa then lies within [√½, √2)
        mantissa = np.int64(bits - (exponent << np.int64(52))).view(np.float64)
        s = (mantissa - 1.0) / (mantissa + 1.0)
        z = s * s
        log = 2.0 * s * (1.0 + z * (1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9))))) + (exponent - 32) * _LN2
        radius = np.float32(math.sqrt(-2.0 * log))
        angle = (np.float32(np.int32(word & np.uint64(0x3FFFFFFF)) - np.int32(0x20000000)) + half_one) * _TURN
        q = angle * angle
        sine = angle * (one + q * (sixth + q * (s5 + q * (s7 + q * s9))))
        cosine = one + q * (-half_one + q * (c4 + q * (c6 + q * c8)))
        radius = radius if (word & np.uint64(0x40000000)) else -radius
        swap = (word & np.uint64(0x80000000)) != 0
        out[k] = radius * (sine if swap else cosine)
        out[half + k] = radius * (cosine if swap else sine)


def _lengthen(words: np.ndarray, out: np.ndarray, rng: np.random.Generator) -> None:
    """Give the longest radii (one pair in 65,536) a uniform number of 85 instead of 32 bits, in place."""
    rare = np.flatnonzero(words < _RARE)
    high = (words[rare] >> np.uint64(32)).astype(np.float64)
    fine = np.log((high + 1.0 - rng.random(rare.size)) / 2.0**32)
    factor = np.sqrt(fine / np.log((high + 0.5) / 2.0**32))
    out[rare] = out[rare] * factor
    out[rare + words.size] = out[rare + words.size] * factor
