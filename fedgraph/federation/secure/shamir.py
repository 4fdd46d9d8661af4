"""Shamir's shares of 256-bit secrets: points of a random polynomial of degree t − 1 over the prime field of 2^256 + 297.

Any t points give the value at 0 back; fewer say nothing of it at all (Shamir 1979).
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

PRIME = 2**256 + 297
SECRET_BYTES, SHARE_BYTES = 32, 33


def split(secret: bytes, coefficients: Sequence[int], count: int) -> list[int]:
    """Values at 1 … ``count``. coefficients: of degrees 1 … t − 1, uniform below ``PRIME``."""
    polynomial = [*reversed(coefficients), int.from_bytes(secret, "big")]
    shares = []
    for x in range(1, count + 1):
        value = 0
        for coefficient in polynomial:
            value = (value * x + coefficient) % PRIME
        shares.append(value)
    return shares


@lru_cache(maxsize=4096)
def weights(places: tuple[int, ...]) -> list[int]:
    """Lagrange's: Σ weight · share at ``places`` is the value at 0."""
    found = []
    for place in places:
        above = below = 1
        for other in places:
            if other != place:
                above = above * other % PRIME
                below = below * (other - place) % PRIME
        found.append(above * pow(below, -1, PRIME) % PRIME)
    return found


def recover_secret(shares: Mapping[int, int]) -> bytes:
    """The secret from the points place → value, at least t of them.

    >>> recover_secret(dict(zip((1, 3), (split(bytes(31) + b"x", [7], 3)[i] for i in (0, 2))))) == bytes(31) + b"x"
    True
    """
    value = sum(w * s for w, s in zip(weights(tuple(shares)), shares.values(), strict=True)) % PRIME
    if value >= 2 ** (8 * SECRET_BYTES):
        raise ValueError("the shares do not belong to one secret")
    return value.to_bytes(SECRET_BYTES, "big")


def uniform(data: bytes) -> int:
    """A field element from 48 uniform bytes (its law is within 2^−127 of uniform)."""
    return int.from_bytes(data, "big") % PRIME
