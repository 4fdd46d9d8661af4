"""One root seed, many independent named streams.

A stream is named by a path, e.g. ``seeded_generator(7, "noise", "client", 3, "round", 0)``. The path is
hashed into the spawn key of a ``numpy.random.SeedSequence``, so a stream depends on its name alone:
not on how many workers ran, in which order, or whether a call was retried.

A seed that is written, or can be guessed, is no secret: 30,000 candidates are tried against one noisy sum in two seconds. With
``seed: secret`` a run draws 256 bits from the operating system and keeps them in memory only. ``secret_seeded_generator`` then
gives each private stream (noise, samples, batches) a ChaCha20 key of its own, BLAKE2b of that secret and the stream's name;
public streams (splits, partitions, starting points) are those of seed 0.

**Coins for things.** Which of some private things are hidden, asked or sampled is drawn by ``coins``, a keyed hash of each
thing's own number: one thing more or less changes no other coin. A permutation of the list would change all.

**The key and other processes.** A pickled ``SecretSeed`` holds the name of the key and never the key, so what is stored, shared
or spilled to disk (as Ray's object store does) reveals nothing. A worker gets the key by ``hold_secret_seed``, from memory to
memory; without the key it draws nothing. It may get the key after it has unpickled the seed, because Ray unpickles all
arguments of a call before the call begins.
"""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from typing import Any

import numpy as np

SEED_KEY_BYTES = 32
_SEPARATOR = "\x1f"  # between the parts of a stream's name
_held: dict[str, bytes] = {}  # keys that this process was given or drew, by their names


class SecretSeed(int):
    """A root seed that nobody can guess and nothing prints.

    Its public streams are those of seed 0; its private ones follow from ``key``. Two are equal if their keys are. It is never
    written, so a resumed run has another one. ``ValueError`` for a key of another length.
    """

    name: str  # the name of the key: a digest of 256 random bits, which reveals nothing of them

    def __new__(cls, key: bytes) -> SecretSeed:
        if len(key) != SEED_KEY_BYTES:
            raise ValueError(f"a secret root has {8 * SEED_KEY_BYTES} bits, found {8 * len(key)}")
        hold_secret_seed(key)
        return cls._named(_name_of(key))

    @classmethod
    def _named(cls, name: str) -> SecretSeed:
        made = super().__new__(cls, 0)
        made.name = name
        return made

    @property
    def key(self) -> bytes:
        """32 random bytes. ``RuntimeError`` in a process that was not given the key."""
        if self.name not in _held:
            raise RuntimeError("this process was not given the key of the run's secret seed, so it can draw no noise")
        return _held[self.name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretSeed) and other.name == self.name

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return "secret"

    __str__ = __repr__

    def __reduce__(self) -> tuple[Any, ...]:
        return SecretSeed._named, (self.name,)


def hold_secret_seed(key: bytes) -> None:
    """Lets this process draw from the ``SecretSeed`` of a key.

    Args:
        key: 32 bytes, handed over as a plain argument and never in a shared value.
    """
    _held[_name_of(key)] = key


def _name_of(key: bytes) -> str:
    return hashlib.blake2b(key, digest_size=16, person=b"fedgraph-name").hexdigest()


def root_seed(seed: int | str) -> int:
    """What a scenario's ``seed`` stands for.

    Args:
        seed: A non-negative number, or ``secret``.

    Returns:
        The number itself, or for ``secret`` a ``SecretSeed`` of 256 fresh random bits of the operating system.
    """
    return SecretSeed(os.urandom(SEED_KEY_BYTES)) if isinstance(seed, str) else seed


def public_seed(seed: int | str) -> int:
    """The root of public streams (splits, partitions, starting points).

    Args:
        seed: A non-negative number, or ``secret``.

    Returns:
        The number itself, or 0 for ``secret``.
    """
    return 0 if isinstance(seed, str) else seed


def _sequence(root: int, *path: str | int | float) -> np.random.SeedSequence:
    """The ``SeedSequence`` named by ``path`` under ``root`` (a non-negative integer)."""
    if root < 0:
        raise ValueError(f"a root seed must be a non-negative integer, found {root}")
    key = np.frombuffer(hashlib.sha256(_name(path).encode()).digest(), dtype=np.uint32)
    return np.random.SeedSequence(np.concatenate([_words(int(root)), key]))  # as spawn_key=key, in half the time


@lru_cache(maxsize=16)
def _words(root: int) -> np.ndarray:
    """``root`` as numpy writes it before a spawn key: words of 32 bits, the lowest first, at least four."""
    count = max(4, -(-root.bit_length() // 32))
    return np.array([(root >> (32 * place)) & 0xFFFFFFFF for place in range(count)], dtype=np.uint32)


def secret_seeded_generator(root: int, *path: str | int | float) -> np.random.Generator:
    """The generator of a private stream (noise, samples, batches).

    Args:
        root: A non-negative integer, or a ``SecretSeed``.
        path: Names the stream.

    Returns:
        As ``seeded_generator`` for a number. For a ``SecretSeed`` a ``ChaCha20`` generator whose key is BLAKE2b of its key and
        the path.
    """
    if not isinstance(root, SecretSeed):
        return seeded_generator(root, *path)
    from fedgraph.seeds.chacha import ChaCha20

    return np.random.Generator(ChaCha20(hashlib.blake2b(_name(path).encode(), key=root.key, digest_size=32).digest()))


def seeded_generator(root: int, *path: str | int | float) -> np.random.Generator:
    """A numpy generator for the stream named by ``path``. Who knows the root can repeat it.

    Args:
        root: A non-negative integer.
        path: Names the stream.
    """
    return np.random.default_rng(_sequence(root, *path))


def coins(root: int, *path: str | int | float, things: np.ndarray) -> np.ndarray:
    """A coin for each thing: a number in [0, 1) that follows from the stream and from the thing's own name alone.

    Neither the other things nor their order change it, and a thing that comes twice has the same coin twice.

    Args:
        root: A non-negative integer, or a ``SecretSeed``, whose coins nobody can compute without its key. A split that is
            public takes ``int(root)``, which is 0 there, as the other public streams do.
        path: Names the stream.
        things: int64 [m] or [m, 2], at least 0: numbers of nodes or records, or both ends of pairs. (u, v) is not (v, u).

    Returns:
        float64 [m], uniform multiples of 2⁻⁵³, independent between things and between streams.

    Raises:
        ValueError: ``things`` has another shape or other values, or the root is negative.
    """
    named = np.asarray(things)
    if named.ndim not in (1, 2) or (named.ndim == 2 and named.shape[1] != 2):
        raise ValueError(f"coins are drawn for things [m] or pairs [m, 2], found shape {named.shape}")
    if not np.issubdtype(named.dtype, np.integer) or (named.size and named.min() < 0):
        raise ValueError(f"things are named by whole numbers of at least 0, found {named.dtype}; allowed: ids, not values")
    if root < 0:
        raise ValueError(f"a root seed must be a non-negative integer, found {root}")
    from fedgraph.seeds.chacha import chacha_coins

    names = np.zeros((len(named), 2), dtype=np.uint64)
    names[:, : named.ndim] = named if named.ndim == 2 else named[:, None]
    secret, number = (root.key, "secret") if isinstance(root, SecretSeed) else (b"", str(int(root)))
    shape = b"pairs" if named.ndim == 2 else b"things"  # node 3 is not the pair (3, 0)
    stream = f"{number}{_SEPARATOR}{_name(path)}".encode()
    return chacha_coins(
        hashlib.blake2b(stream, digest_size=32, key=secret, person=b"fedgraph-coins", salt=shape).digest(), names
    )


def seeded_integer(root: int, *path: str | int | float) -> int:
    """A 63-bit integer seed for libraries that want one (torch; scikit-learn takes it modulo 2**32).

    Args:
        root: A non-negative integer.
        path: Names the stream.
    """
    return int(_sequence(root, *path).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _name(path: tuple[str | int | float, ...]) -> str:
    """The name of a stream, which differs between different paths. A part may hold the separator, since users name owners and
    data sets: then the name is the quoted parts after a separator, with which no other name begins.
    """
    parts = [f"{type(part).__name__}:{part}" for part in path]
    joined = _SEPARATOR.join(parts)
    return joined if joined.count(_SEPARATOR) < max(1, len(parts)) else f"{_SEPARATOR}{parts!r}"
