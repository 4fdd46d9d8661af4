"""Keys of the masks: X25519 agreements, the streams that follow from them (AES-128 in counter mode, as strong as
X25519 is), and sealed letters (AES-GCM).

From the package ``cryptography``. A stream's key is used for one stream: it is derived from the agreement (or the seed), the
round and the name of the part, by BLAKE2b.

Secrets of 256 bits are shared as Shamir's points of a random polynomial of degree t − 1 over the prime field of 2^256 + 297:
any t points give the value at 0 back; fewer say nothing of it at all (Shamir 1979).
"""

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from fedgraph.compiled import compiled, compiled_types

PUBLIC_KEY_BYTES, KEY_TAG_BYTES = 32, 16
_PRIME = 2**256 + 297
_SECRET_BYTES, KEY_SHARE_BYTES = 32, 33


def private_key(secret: bytes) -> X25519PrivateKey:
    """The private key of 32 uniform bytes."""
    return X25519PrivateKey.from_private_bytes(secret)


def public_key(own: X25519PrivateKey) -> bytes:
    """The public half, 32 bytes."""
    return own.public_key().public_bytes_raw()


def agree_on_key(own: X25519PrivateKey, other: bytes) -> bytes:
    """What both ends of a pair compute: 32 bytes."""
    return own.exchange(X25519PublicKey.from_public_bytes(other))


def add_key_stream(total: np.ndarray, secret: bytes, round_: int, part: str, bits: int, sign: int) -> None:
    """``total`` plus or minus as many numbers, uniform modulo 2^``bits``, in place.

    Of a modulus between 2^17 and 2^24 three bytes per number are drawn in place of four.

    Args:
        total: C-contiguous whole numbers that wrap.
        secret: from which the key of the stream follows; 1 to 64 bytes.
        round_: names the stream.
        part: names the stream.
        bits: of the modulus.
        sign: 1 or −1.
    """
    flat = total.reshape(-1)
    three = 16 < bits <= 24 and flat.dtype == np.uint32
    key = hashlib.blake2b(f"{round_} {part}".encode(), key=secret, digest_size=16, person=b"fedgraph-masks").digest()
    zeros, out = _buffers(flat.size * (3 if three else flat.dtype.itemsize))
    Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update_into(zeros, out)
    if three:
        low = np.frombuffer(out, np.uint16, flat.size)
        high = np.frombuffer(out, np.uint8, flat.size, 2 * flat.size)
        _add_three_bytes(flat, low, high, sign > 0)
    else:
        (np.add if sign > 0 else np.subtract)(flat, np.frombuffer(out, flat.dtype, flat.size), out=flat)


@compiled(
    compiled_types.void(
        compiled_types.uint32[::1], compiled_types.uint16[::1], compiled_types.uint8[::1], compiled_types.boolean
    )
)
def _add_three_bytes(total, low, high, plus):  # type: ignore[no-untyped-def]
    if plus:
        for i in range(len(total)):
            total[i] += np.uint32(low[i]) + (np.uint32(high[i]) << np.uint32(16))
    else:
        for i in range(len(total)):
            total[i] -= np.uint32(low[i]) + (np.uint32(high[i]) << np.uint32(16))


@lru_cache(maxsize=8)
def _buffers(count: int) -> tuple[bytes, bytearray]:
    return bytes(count), bytearray(count + 15)


def seal_with_key(channel: AESGCM, round_: int, sender: int, recipient: int, text: bytes) -> bytes:
    return channel.encrypt(*_letter(round_, sender, text, recipient))


def open_with_key(channel: AESGCM, round_: int, sender: int, recipient: int, letter: bytes) -> bytes:
    """The text of a sealed letter.

    Raises:
        cryptography.exceptions.InvalidTag: the letter was changed, or is another one.
    """
    return channel.decrypt(*_letter(round_, sender, letter, recipient))


def letter_key_channel(agreement: bytes) -> AESGCM:
    """Between two clients, for letters."""
    return AESGCM(hashlib.blake2b(key=agreement, digest_size=32, person=b"fedgraph-letter").digest())


def _letter(round_: int, sender: int, text: bytes, recipient: int) -> tuple[bytes, bytes, bytes]:
    """(nonce, text, what else is signed): no two letters of a pair have one nonce."""
    return round_.to_bytes(6, "big") + sender.to_bytes(6, "big"), text, recipient.to_bytes(6, "big")


def split_key_secret(secret: bytes, coefficients: Sequence[int], count: int) -> list[int]:
    """Values at 1 … ``count``. coefficients: of degrees 1 … t − 1, uniform below ``_PRIME``."""
    polynomial = [*reversed(coefficients), int.from_bytes(secret, "big")]
    shares = []
    for x in range(1, count + 1):
        value = 0
        for coefficient in polynomial:
            value = (value * x + coefficient) % _PRIME
        shares.append(value)
    return shares


@lru_cache(maxsize=4096)
def _lagrange_weights(places: tuple[int, ...]) -> list[int]:
    """Lagrange's: Σ weight · share at ``places`` is the value at 0."""
    found = []
    for place in places:
        above = below = 1
        for other in places:
            if other != place:
                above = above * other % _PRIME
                below = below * (other - place) % _PRIME
        found.append(above * pow(below, -1, _PRIME) % _PRIME)
    return found


def recover_key_secret(shares: Mapping[int, int]) -> bytes:
    """The secret from the points place → value, at least t of them.

    >>> shares = split_key_secret(bytes(31) + b"x", [7], 3)
    >>> recover_key_secret({1: shares[0], 3: shares[2]}) == bytes(31) + b"x"
    True

    Raises:
        ValueError: the shares do not belong to one secret.
    """
    value = sum(w * s for w, s in zip(_lagrange_weights(tuple(shares)), shares.values(), strict=True)) % _PRIME
    if value >= 2 ** (8 * _SECRET_BYTES):
        raise ValueError("the shares do not belong to one secret")
    return value.to_bytes(_SECRET_BYTES, "big")


def key_field_element(data: bytes) -> int:
    """A field element from 48 uniform bytes (its law is within 2^−127 of uniform)."""
    return int.from_bytes(data, "big") % _PRIME
