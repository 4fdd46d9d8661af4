"""The desk, as the methods use it: what it bounds, and what it refuses to let out.

*Bounds*: a row a hundred times too long goes through ``Desk.release`` and must come out as one of the
clip's length. *Refusals*: a row that holds NaN, ±∞ or more than any clipped sum can hold must not leave at
all. There the score is 1 if a value left that no noise explains, 0 if a usual one or nothing left. (That a
run stopped is seen by the client that owns the row; the audit bounds what leaves.)
"""

import math
from collections.abc import Callable, Iterator

import numpy as np

from fedgraph.audit.bench import Case, Claim, sampler
from fedgraph.audit.closed_form import gaussian
from fedgraph.errors import UnboundedValueError
from fedgraph.privacy.accounting.calibrate import gaussian_multiplier
from fedgraph.privacy.desk import Desk, PlannedRelease
from fedgraph.privacy.events import Gaussian
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.sensitivity import Bound, ClippedSum, L2Ball, sensitivity_l2
from fedgraph.privacy.units import Relation

EPSILON, DELTA = 1.0, 1e-3
RELATION = Relation.NODE_ZERO_OUT
RUNS = 4_000  # one call of the desk each
OUT_OF_REACH = 40.0  # standard deviations

Door = Callable[[np.ndarray], np.ndarray]
Opened = Callable[[int, np.random.Generator], Door]


def cases() -> Iterator[Case]:
    """Bounds enforced; values refused."""
    multiplier = gaussian_multiplier(1, EPSILON, DELTA)
    claim = Claim.of(Gaussian(multiplier), DELTA)
    yield from _bounds(multiplier, claim)
    yield from _refusals(multiplier, claim)


def desk(bound: Bound, std: float) -> Opened:
    """A desk with ``runs`` planned releases; the way out that the methods have."""

    def opened(runs: int, rng: np.random.Generator) -> Door:
        noise = GaussianNoise(std)
        planned = PlannedRelease("audit", bound, noise, Gaussian(std / sensitivity_l2(bound, RELATION)), range(1), runs)
        through = Desk("audit", 0, 0, (planned,), rng)
        return lambda value: through.release("audit", value).value

    return opened


def open_door(std: float) -> Opened:
    """Noise without a look at the value: what the desk exists to prevent (and the mechanism refuses too)."""
    return lambda runs, rng: lambda value: value + rng.normal(scale=std, size=value.shape)


def _bounds(multiplier: float, claim: Claim) -> Iterator[Case]:
    bound = L2Ball(0.5)
    std = multiplier * sensitivity_l2(bound, RELATION)

    @sampler
    def release(runs: int, rng: np.random.Generator, opened: Opened, value: float) -> np.ndarray:
        door = opened(runs, rng)
        return np.array([door(np.array([value]))[0] for _ in range(runs)])

    there, back = release(desk(bound, std), 50.0), release(desk(bound, std), 0.0)
    sound = Case("desk-bounds", RELATION.value, claim, there, back, gaussian(), runs=RUNS)
    yield sound
    yield sound.broken("bound not enforced", release(open_door(std), 50.0))


def _refusals(multiplier: float, claim: Claim) -> Iterator[Case]:
    bound = ClippedSum(0.5, 3)
    std = multiplier * sensitivity_l2(bound, RELATION)
    forbidden = [np.array([0.2, bad]) for bad in (math.nan, math.inf, -math.inf, 1e9)]
    usual = [np.array([0.2, 0.1])]

    @sampler
    def release(runs: int, rng: np.random.Generator, opened: Opened, values: list[np.ndarray]) -> np.ndarray:
        door = opened(runs, rng)
        return np.array([_betrayed(door, values[run % len(values)], std) for run in range(runs)], dtype=float)

    there, back = release(desk(bound, std), forbidden), release(desk(bound, std), usual)
    sound = Case("desk-refusals", RELATION.value, claim, there, back, runs=RUNS)
    yield sound
    yield sound.broken("NaN passed through", release(open_door(std), forbidden[:1]), release(open_door(std), usual))
    yield sound.broken("value beyond its bound passed", release(open_door(std), forbidden[3:]))


def _betrayed(door: Door, value: np.ndarray, std: float) -> bool:
    """Whether something left that the noise cannot explain."""
    try:
        left = door(value)
    except UnboundedValueError:
        return False
    return not bool((np.abs(left) < OUT_OF_REACH * std).all())
