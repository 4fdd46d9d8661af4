"""How our Gromov-Wasserstein solver and POT agree, as a cell's record holds it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Agreement:
    """Our solver and POT on the same ``pairs`` (``comparison.agreement``): how often ours is equal, lower, higher, and by how
    much at most, relative to POT's value; on how many pairs starts do not explain it; seconds of both on one thread.
    """

    pairs: int
    equal: int
    lower: int
    higher: int
    most_lower: float
    most_higher: float
    unexplained: int
    seconds: float
    seconds_pot: float


@dataclass(frozen=True)
class Barycentres:
    """``count`` barycentres made by both from equal starts: their members' mean discrepancy to ours, and to POT's."""

    count: int
    ours: float
    pot: float
