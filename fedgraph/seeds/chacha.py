"""ChaCha20 (RFC 8439) as the source of a numpy ``Generator``: random numbers that nobody can predict without the key.

numpy's own generators are not cryptographic: who sees enough of their output can compute the rest. Here all bits come from the
ChaCha20 key stream of a 256-bit key with a 64-bit block counter, in a compiled loop. numpy reads any source of bits through a
small public structure of function pointers (``numpy/random/bitgen.h``). ``ChaCha20`` replaces that structure in a ``PCG64``
object, whose own numbers are never used.
"""

import ctypes
from typing import NoReturn

import numpy as np
from numba import carray, cfunc, njit, types  # type: ignore[attr-defined]

_WORDS = types.CPointer(types.uint32)  # type: ignore[no-untyped-call]
_STATE = 34  # 0–15: the block's input, 16–31: its output, 32: how many output words are used, 33: unused
_CONSTANTS = np.frombuffer(b"expand 32-byte k", dtype="<u4")


@njit(types.void(types.uint32[::1]), cache=True)
def _block(state: np.ndarray) -> None:
    """Computes the next block, 16 words, and increments the counter (words 12 and 13)."""
    x = state[:16].copy()
    for _ in range(10):
        for column in range(8):
            a, shift = column % 4, column // 4
            b = 4 + (a + shift) % 4
            c = 8 + (a + 2 * shift) % 4
            d = 12 + (a + 3 * shift) % 4
            for left_d, left_b in ((16, 12), (8, 7)):
                x[a] = np.uint32(x[a] + x[b])
                mixed = np.uint32(x[d] ^ x[a])
                x[d] = np.uint32((mixed << np.uint32(left_d)) | (mixed >> np.uint32(32 - left_d)))
                x[c] = np.uint32(x[c] + x[d])
                mixed = np.uint32(x[b] ^ x[c])
                x[b] = np.uint32((mixed << np.uint32(left_b)) | (mixed >> np.uint32(32 - left_b)))
    for word in range(16):
        state[16 + word] = np.uint32(x[word] + state[word])
    state[12] = np.uint32(state[12] + np.uint32(1))
    if state[12] == 0:
        state[13] = np.uint32(state[13] + np.uint32(1))
    state[32] = 0


@njit(types.uint32(types.uint32[::1]), cache=True)
def _word(state: np.ndarray) -> int:
    if state[32] >= 16:
        _block(state)
    state[32] += np.uint32(1)
    return state[15 + state[32]]


@cfunc(types.uint32(_WORDS), cache=True)
def _next_uint32(pointer):  # type: ignore[no-untyped-def]
    return _word(carray(pointer, (_STATE,)))


@njit(types.uint64(types.uint32[::1]), cache=True)
def _two_words(state: np.ndarray) -> np.uint64:
    """64 bits: the first word is the lower half."""
    low = types.uint64(_word(state))
    return low | (types.uint64(_word(state)) << types.uint64(32))


@cfunc(types.uint64(_WORDS), cache=True)
def _next_uint64(pointer):  # type: ignore[no-untyped-def]
    return _two_words(carray(pointer, (_STATE,)))


@cfunc(types.float64(_WORDS), cache=True)
def _next_double(pointer):  # type: ignore[no-untyped-def]
    return (_two_words(carray(pointer, (_STATE,))) >> types.uint64(11)) * (1.0 / 9007199254740992.0)


class _Structure(ctypes.Structure):
    """``bitgen_t``."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("state", "next_uint64", "next_uint32", "next_double", "next_raw")]


class ChaCha20(np.random.PCG64):
    """A numpy bit generator over a ChaCha20 key stream. ``TypeError`` if it is pickled.

    Args:
        key: 32 bytes, else ``ValueError``. The counter and the nonce begin at zero, so a key serves one stream.
    """

    def __init__(self, key: bytes) -> None:
        super().__init__(0)
        if len(key) != 32:
            raise ValueError(f"a ChaCha20 key has 32 bytes, found {len(key)}")
        self._words = _initial(key)
        found = _Structure.from_address(self.ctypes.bit_generator.value)
        found.state = self._words.ctypes.data
        found.next_uint64 = found.next_raw = _next_uint64.address
        found.next_uint32, found.next_double = _next_uint32.address, _next_double.address

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret generator is not written anywhere")


@njit(types.float64[::1](types.uint32[::1], types.uint64[:, ::1]), cache=True)
def _of_names(start: np.ndarray, names: np.ndarray) -> np.ndarray:
    """float64 [m]: 53 bits of the block whose counter and nonce are a name's two words."""
    found, state = np.empty(len(names)), start.copy()
    for thing in range(len(names)):
        for word in range(2):
            state[12 + 2 * word] = np.uint32(names[thing, word] & np.uint64(0xFFFFFFFF))
            state[13 + 2 * word] = np.uint32(names[thing, word] >> np.uint64(32))
        _block(state)
        drawn = types.uint64(state[16]) | (types.uint64(state[17]) << types.uint64(32))
        found[thing] = (drawn >> types.uint64(11)) * (1.0 / 9007199254740992.0)
    return found


def chacha_coins(key: bytes, names: np.ndarray) -> np.ndarray:
    """One number for each name, independent of other names: the ChaCha20 block function as a keyed hash.

    key: 32 bytes. A key that serves coins serves no ``ChaCha20``. names: uint64 [m, 2]. Returns float64 [m] in [0, 1),
    multiples of 2⁻⁵³.
    """
    return np.asarray(_of_names(_initial(key), np.ascontiguousarray(names, dtype=np.uint64)))


def _initial(key: bytes, counter: int = 0, nonce: bytes = bytes(8)) -> np.ndarray:
    """uint32 [34]: the state before the first block."""
    words = np.zeros(_STATE, dtype=np.uint32)
    words[:4], words[4:12] = _CONSTANTS, np.frombuffer(key, dtype="<u4")
    words[12], words[13] = counter & 0xFFFFFFFF, counter >> 32
    words[14:16] = np.frombuffer(nonce, dtype="<u4")
    words[32] = 16
    return words
