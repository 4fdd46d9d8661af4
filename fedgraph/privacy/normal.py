"""Single-precision standard normals in bulk: the ziggurat, exact, at under half the cost of numpy's.

The density is cut into 256 strips of equal area V (Marsaglia & Tsang 2000; tables as in Doornik 2005):
strip i ≥ 1 reaches to x_i, with x_1 = R and f(x_{i+1}) = f(x_i) + V/x_i, f(x) = exp(−x²/2); strip 0 holds the
tail beyond R. One 32-bit draw gives the strip (8 bits) and a signed position u in it (24 bits): u·x_i stands
wherever it lies under the next strip (98.8 %). The rest is settled as the method says, in double precision:
the wedge by one comparison (a miss starts over, which any exact normal may do, here numpy's), the tail by
inverting its distribution function.

**Guarantee.** The law is the standard normal up to the resolution of the draw: |u| is a multiple of 2⁻²³ plus
a half, so a value is rounded by at most x_i·2⁻²⁴ ≤ 2.4e-7, as for numpy's float32 normals. Floating-point
noise has the known limits (see ``mechanisms``).

**Edge cases.** size 0 → empty. Not for float64: there numpy's own is used.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numba import types
from scipy.special import ndtr, ndtri

from fedgraph.privacy.shapes import Array

STRIPS, EDGE, AREA = 256, 3.6541528853610088, 0.00492867323399


def _edges() -> Array:
    """x_0 = V/f(R) (the width of a rectangle as large as strip 0), x_1 = R, …, x_256 = 0."""
    x = np.zeros(STRIPS + 1)
    x[0], x[1] = AREA / math.exp(-0.5 * EDGE**2), EDGE
    for i in range(1, STRIPS - 1):
        x[i + 1] = math.sqrt(-2 * math.log(AREA / x[i] + math.exp(-0.5 * x[i] ** 2)))
    return x


EDGES = _edges()
_BLOCK = 16384  # draws at a time
_SCALE = (EDGES[:-1] * 2.0**-23).astype(np.float32)
_INSIDE = np.floor(EDGES[1:] / EDGES[:-1] * 2.0**23).astype(np.int32)


def single_normals(rng: np.random.Generator, size: int) -> np.ndarray:
    """``size`` independent standard normals, float32. Drawn block by block, so that scratch memory stays in cache."""
    out, scratch = np.empty(size, np.float32), np.empty(_BLOCK + 1, np.int64)
    places, draws = [np.zeros(0, np.int64)], [np.zeros(0, np.uint32)]
    for begin in range(0, size, _BLOCK):
        bits = rng.integers(0, 2**32, size=min(_BLOCK, size - begin), dtype=np.uint32)
        open_ = scratch[: _stand(bits, _SCALE, _INSIDE, out[begin : begin + bits.size], scratch)]
        places.append(open_ + begin)
        draws.append(bits[open_])
    left = np.concatenate(draws)
    strip = (left & np.uint32(STRIPS - 1)).astype(np.int64)
    u: Array = (left.view(np.int32) >> 8).astype(np.float64)
    out[np.concatenate(places)] = _settle(strip, (u + 0.5) * 2.0**-23, rng)
    return out


def _settle(strip: np.ndarray, u: Array, rng: np.random.Generator) -> Array:
    """Values of the draws whose position is not under the next strip. strip: int [m]; u: in (−1, 1), [m]."""
    x = u * EDGES[strip]
    below = np.exp(-0.5 * EDGES[strip] ** 2)
    height = below + rng.random(strip.size) * (np.exp(-0.5 * EDGES[strip + 1] ** 2) - below)
    kept = height < np.exp(-0.5 * x**2)
    fresh = np.where(kept, x, rng.standard_normal(strip.size))
    tail = np.copysign(-ndtri((1.0 - rng.random(strip.size)) * ndtr(-EDGE)), u)
    value: Array = np.where(strip > 0, fresh, np.where(np.abs(x) < EDGE, x, tail))
    return value


_KERNEL = types.int64(
    types.Array(types.uint32, 1, "C"),
    types.Array(types.float32, 1, "C"),
    types.Array(types.int32, 1, "C"),
    types.Array(types.float32, 1, "C"),
    types.Array(types.int64, 1, "C"),
)


def _stand_loop(bits, scale, inside, out, open_):  # type: ignore[no-untyped-def]
    """Write u·x_i of every draw to ``out`` and the places that are not settled by that to ``open_``; their count."""
    count = 0
    for k in range(bits.size):
        strip = bits[k] & np.uint32(255)
        u = np.int32(bits[k]) >> np.int32(8)
        out[k] = (np.float32(u) + np.float32(0.5)) * scale[strip]
        open_[count] = k
        count += (u if u >= 0 else ~u) >= inside[strip]
    return count


try:
    _stand = numba.njit(_KERNEL, nogil=True, cache=True, error_model="numpy")(_stand_loop)
except RuntimeError:  # numba found no folder it may write to: every process compiles for itself
    _stand = numba.njit(_KERNEL, nogil=True, error_model="numpy")(_stand_loop)
