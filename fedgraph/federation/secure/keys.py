"""Keys of the masks: X25519 agreements, the streams that follow from them (AES-128 in counter mode, as strong as
X25519 is), and sealed letters (AES-GCM).

From the package ``cryptography``. A stream's key is used for one stream: it is derived from the agreement (or the seed), the
round and the name of the part, by BLAKE2b.
"""

import hashlib
from functools import lru_cache

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from fedgraph.compiled import compiled, types

PUBLIC_BYTES, TAG_BYTES = 32, 16


def private(secret: bytes) -> X25519PrivateKey:
    """The private key of 32 uniform bytes."""
    return X25519PrivateKey.from_private_bytes(secret)


def public(own: X25519PrivateKey) -> bytes:
    return own.public_key().public_bytes_raw()


def agreed(own: X25519PrivateKey, other: bytes) -> bytes:
    """What both ends of a pair compute: 32 bytes."""
    return own.exchange(X25519PublicKey.from_public_bytes(other))


def add_stream(total: np.ndarray, secret: bytes, round_: int, part: str, bits: int, sign: int) -> None:
    """``total`` ± as many numbers, uniform modulo 2^``bits``, in place; C-contiguous whole numbers that wrap. sign: 1 or −1.

    Of a modulus between 2^17 and 2^24 three bytes per number are drawn in place of four.
    """
    flat = total.reshape(-1)
    three = 16 < bits <= 24 and flat.dtype == np.uint32
    key = hashlib.blake2b(f"{round_} {part}".encode(), key=secret, digest_size=16, person=b"fedgraph-masks").digest()
    zeros, out = _buffers(flat.size * (3 if three else flat.dtype.itemsize))
    Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update_into(zeros, out)
    if three:
        low, high = np.frombuffer(out, np.uint16, flat.size), np.frombuffer(out, np.uint8, flat.size, 2 * flat.size)
        _add_three_bytes(flat, low, high, sign > 0)
    else:
        (np.add if sign > 0 else np.subtract)(flat, np.frombuffer(out, flat.dtype, flat.size), out=flat)


@compiled(types.void(types.uint32[::1], types.uint16[::1], types.uint8[::1], types.boolean))
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


def sealed(channel: AESGCM, round_: int, sender: int, recipient: int, text: bytes) -> bytes:
    return channel.encrypt(*_letter(round_, sender, text, recipient))


def opened(channel: AESGCM, round_: int, sender: int, recipient: int, letter: bytes) -> bytes:
    return channel.decrypt(*_letter(round_, sender, letter, recipient))


def channel(agreement: bytes) -> AESGCM:
    """Between two clients, for letters."""
    return AESGCM(hashlib.blake2b(key=agreement, digest_size=32, person=b"fedgraph-letter").digest())


def _letter(round_: int, sender: int, text: bytes, recipient: int) -> tuple[bytes, bytes, bytes]:
    """(nonce, text, what else is signed): no two letters of a pair have one nonce."""
    return round_.to_bytes(6, "big") + sender.to_bytes(6, "big"), text, recipient.to_bytes(6, "big")
