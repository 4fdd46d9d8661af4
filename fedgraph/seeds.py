"""One root seed, many independent named streams.

A stream is named by a path, e.g. ``generator(7, "noise", "client", 3, "round", 0)``. The path is
hashed into the spawn key of a ``numpy.random.SeedSequence``, so a stream depends on its name alone:
not on how many workers ran, in which order, or whether a call was retried.
"""

from __future__ import annotations

import hashlib

import numpy as np


def sequence(root: int, *path: str | int | float) -> np.random.SeedSequence:
    """The ``SeedSequence`` named by ``path`` under ``root`` (a non-negative integer)."""
    if root < 0:
        raise ValueError(f"a root seed must be a non-negative integer, found {root}")
    name = "\x1f".join(f"{type(part).__name__}:{part}" for part in path)
    digest = hashlib.sha256(name.encode()).digest()
    return np.random.SeedSequence(root, spawn_key=tuple(np.frombuffer(digest, dtype=np.uint32).tolist()))


def generator(root: int, *path: str | int | float) -> np.random.Generator:
    """A numpy generator for the stream named by ``path``."""
    return np.random.default_rng(sequence(root, *path))


def integer(root: int, *path: str | int | float) -> int:
    """A 63-bit integer seed for libraries that want one (torch, scikit-learn takes it modulo 2**32)."""
    return int(sequence(root, *path).generate_state(1, np.uint64)[0] >> np.uint64(1))
