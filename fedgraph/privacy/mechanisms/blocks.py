"""One release with many units, each in rows of its own: the message of a client that holds several graphs.

**Guarantee.** Part g reads the rows of block g alone and draws its own noise, so neighbours that differ in one block
(``graph-replace``: one graph becomes any other of the same, public, size) change the law of that part only: the loss of a
unit is the loss of its part, and the release as a whole is at most as bad as its worst part (parallel composition, McSherry
2009, Theorem 4). ``worst_pure`` and ``worst_gaussian`` state that price as one event.

**Edge cases.** No part, a block of fewer than one row, as many sizes as parts or not → ``PrivacyError``; a value whose rows
are not those of all blocks together → ``PrivacyError``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedgraph.errors import PrivacyError
from fedgraph.privacy.events import Gaussian, PureDP
from fedgraph.privacy.mechanisms.noise import NoiseMechanism


@dataclass(frozen=True)
class PerBlock(NoiseMechanism):
    """One mechanism for each block of rows of a matrix [Σ sizes, h]; blocks follow one another.

    Raises:
        PrivacyError: no part, an empty block, or another number of parts than of blocks.
    """

    parts: tuple[NoiseMechanism, ...]  # the mechanism of each block
    sizes: tuple[int, ...]  # rows of each block, ≥ 1

    def __post_init__(self) -> None:
        if not self.parts or len(self.parts) != len(self.sizes) or min(self.sizes) < 1:
            raise PrivacyError(
                f"PerBlock needs one mechanism per block of at least one row, found {len(self.parts)} for {self.sizes}"
            )

    def apply(self, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if value.ndim != 2 or value.shape[0] != sum(self.sizes):
            raise PrivacyError(f"PerBlock covers {sum(self.sizes)} rows, found a value of shape {value.shape}")
        return np.concatenate([part.apply(rows, rng) for part, rows in zip(self.parts, split(value, self.sizes), strict=True)])

    @property
    def words(self) -> str:
        different = list(dict.fromkeys(part.words for part in self.parts))
        more = f" … {different[-1]}" if len(different) > 1 else ""
        return f"{different[0]}{more}; each of {len(self.parts)} graphs on its own"


def split(value: np.ndarray, sizes: Sequence[int]) -> list[np.ndarray]:
    """The blocks of ``value``, in order (views)."""
    return np.split(value, np.cumsum(sizes)[:-1])


def worst_pure(epsilons: Sequence[float]) -> PureDP:
    """Parts that are ε_g-DP each: the release is max ε_g-DP for every unit.

    Args:
        epsilons: ε_g of each part, at least one.
    """
    return PureDP(max(epsilons))


def worst_gaussian(noise_multipliers: Sequence[float]) -> Gaussian:
    """Gaussian parts: trade-off curves of Gaussian mechanisms are ordered, so the smallest multiplier covers all.

    Args:
        noise_multipliers: std / Δ₂ of each part, at least one.
    """
    return Gaussian(min(noise_multipliers))
