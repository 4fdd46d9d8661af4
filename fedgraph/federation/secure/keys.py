"""Keys of the masks: X25519 agreements, the streams that follow from them (AES-128 in counter mode, as strong as
X25519 is), and sealed letters (AES-GCM).

From the package ``cryptography``. A stream's key is used for one stream: it is derived from the agreement (or the seed), the
round and the name of the part, by BLAKE2b.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

PUBLIC_BYTES, TAG_BYTES = 32, 16


def private(secret: bytes) -> X25519PrivateKey:
    """The private key of 32 uniform bytes."""
    return X25519PrivateKey.from_private_bytes(secret)


def public(own: X25519PrivateKey) -> bytes:
    return own.public_key().public_bytes_raw()


def agreed(own: X25519PrivateKey, other: bytes) -> bytes:
    """What both ends of a pair compute: 32 bytes."""
    return own.exchange(X25519PublicKey.from_public_bytes(other))


def stream(secret: bytes, round_: int, part: str, size: int, kind: type[np.unsignedinteger]) -> np.ndarray:
    """[size] uniform whole numbers of a type. The array is used again by the next call: add it at once."""
    key = hashlib.blake2b(f"{round_} {part}".encode(), key=secret, digest_size=16, person=b"fedgraph-masks").digest()
    count = size * np.dtype(kind).itemsize
    zeros, out = _buffers(count)
    Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update_into(zeros, out)
    return np.frombuffer(out, dtype=kind, count=size)


@lru_cache(maxsize=8)
def _buffers(count: int) -> tuple[bytes, bytearray]:
    return bytes(count), bytearray(count + 15)


def sealed(agreement: bytes, round_: int, sender: int, recipient: int, text: bytes) -> bytes:
    return _cipher(agreement).encrypt(*_letter(round_, sender, text, recipient))


def opened(agreement: bytes, round_: int, sender: int, recipient: int, letter: bytes) -> bytes:
    return _cipher(agreement).decrypt(*_letter(round_, sender, letter, recipient))


def _cipher(agreement: bytes) -> AESGCM:
    return AESGCM(hashlib.blake2b(key=agreement, digest_size=32, person=b"fedgraph-letter").digest())


def _letter(round_: int, sender: int, text: bytes, recipient: int) -> tuple[bytes, bytes, bytes]:
    """(nonce, text, what else is signed): no two letters of a pair have one nonce."""
    return round_.to_bytes(6, "big") + sender.to_bytes(6, "big"), text, recipient.to_bytes(6, "big")
