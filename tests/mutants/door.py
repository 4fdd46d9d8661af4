"""The desk, as the methods use it: what it bounds, and what it refuses to let out.

*Bounds*: a row a hundred times too long goes through ``Desk.release`` and must come out as one of the
clip's length. *Refusals*: a row that holds NaN, ±∞ or more than any clipped sum can hold must not leave at
all. There the score is 1 if a value left that no noise explains, 0 if a usual one or nothing left. (That a
run stopped is seen by the client that owns the row; the audit bounds what leaves.)

**Choices**: the best of a secret number of trials, chosen by a noisy score: priced, and as it is done everywhere, unpriced.

Worst case: the noisy score is all that a trial releases, and it is 1 higher with the unit than without. ``private selection``
draws many scores at once, which takes many runs to tell apart; ``choice at the desk`` is the way out that a run has.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np

from fedgraph.audit import lower_bound
from fedgraph.errors import UnboundedValueError
from fedgraph.privacy import sensitivity
from fedgraph.privacy.accounting import calibrate, selection
from fedgraph.privacy.desk import Desk, PlannedRelease
from fedgraph.privacy.events import Gaussian, Laplace, Selected
from fedgraph.privacy.mechanisms.noise import GaussianNoise, LaplaceNoise
from fedgraph.privacy.sensitivity import Box, ClippedSum, L2Ball, SensitivityBound, Unbounded
from fedgraph.privacy.units import Relation
from tests.mutants.bench import BenchCase, BenchClaim, bench_sampler

_EPSILON, _DELTA = 1.0, 1e-3
_RELATION = Relation.NODE_ZERO_OUT
_RUNS = 4_000  # one call of the desk each
_OUT_OF_REACH = 40.0  # standard deviations

_Door = Callable[[np.ndarray], np.ndarray]
_Opened = Callable[[int, np.random.Generator], _Door]


def cases() -> Iterator[BenchCase]:
    multiplier = calibrate.gaussian_multiplier(1, _EPSILON, _DELTA)
    claim = BenchClaim.of(Gaussian(multiplier), _DELTA)
    yield from _bounds(multiplier, claim)
    yield from _refusals(multiplier, claim)
    yield from _selection()


def _audit_desk(bound: SensitivityBound, std: float) -> _Opened:
    def opened(runs: int, rng: np.random.Generator) -> _Door:
        noise = GaussianNoise(std)
        planned = PlannedRelease("audit", bound, noise, Gaussian(std / sensitivity.l2(bound, _RELATION)), range(1), runs)
        through = Desk("audit", 0, 0, (planned,), rng)
        return lambda value: through.release("audit", value).value

    return opened


def _open_door(std: float) -> _Opened:
    """Noise without a look at the value: what the desk exists to prevent (and the mechanism refuses too)."""
    return lambda runs, rng: lambda value: value + rng.normal(scale=std, size=value.shape)


def _bounds(multiplier: float, claim: BenchClaim) -> Iterator[BenchCase]:
    bound = L2Ball(0.5)
    std = multiplier * sensitivity.l2(bound, _RELATION)

    @bench_sampler
    def release(runs: int, rng: np.random.Generator, opened: _Opened, value: float) -> np.ndarray:
        door = opened(runs, rng)
        return np.array([door(np.array([value]))[0] for _ in range(runs)])

    there, back = release(_audit_desk(bound, std), 50.0), release(_audit_desk(bound, std), 0.0)
    sound = BenchCase("desk-bounds", _RELATION.value, claim, there, back, lower_bound.gaussian(), runs=_RUNS)
    yield sound
    yield sound.broken("bound not enforced", release(_open_door(std), 50.0))


def _refusals(multiplier: float, claim: BenchClaim) -> Iterator[BenchCase]:
    bound = ClippedSum(0.5, 3)
    std = multiplier * sensitivity.l2(bound, _RELATION)
    forbidden = [np.array([0.2, bad]) for bad in (math.nan, math.inf, -math.inf, 1e9)]
    usual = [np.array([0.2, 0.1])]

    @bench_sampler
    def release(runs: int, rng: np.random.Generator, opened: _Opened, values: list[np.ndarray]) -> np.ndarray:
        door = opened(runs, rng)
        return np.array([_betrayed(door, values[run % len(values)], std) for run in range(runs)], dtype=float)

    there, back = release(_audit_desk(bound, std), forbidden), release(_audit_desk(bound, std), usual)
    sound = BenchCase("desk-refusals", _RELATION.value, claim, there, back, runs=_RUNS)
    yield sound
    yield sound.broken("NaN passed through", release(_open_door(std), forbidden[:1]), release(_open_door(std), usual))
    yield sound.broken("value beyond its bound passed", release(_open_door(std), forbidden[3:]))


def _betrayed(door: _Door, value: np.ndarray, std: float) -> bool:
    try:
        left = door(value)
    except UnboundedValueError:
        return False
    return not bool((np.abs(left) < _OUT_OF_REACH * std).all())


_SHAPE, _AMONG = 0.0, 20
_UNIT = Box(0.0, 1.0)
_FEW, _CHOICES = 5, 2_000  # trials on average, and choices, at the desk


def _selection() -> Iterator[BenchCase]:
    """A score that is released once; the best of many, priced as such; the same at the desk."""
    stop = selection.stop_for(_SHAPE, _AMONG)
    claim = BenchClaim.of(Laplace(1.0), 0.0)
    alone = BenchCase("one score", _RELATION.value, claim, _best(1.0, 1.0, 1.0), _best(0.0, 1.0, 1.0))
    yield alone
    yield alone.broken(f"the best of {_AMONG}, selection unpriced", _best(1.0, 1.0, stop), _best(0.0, 1.0, stop))
    claim = BenchClaim.of(Selected((Laplace(1.0),), _SHAPE, stop), _DELTA)
    sound = BenchCase("private selection", _RELATION.value, claim, _best(1.0, 1.0, stop), _best(0.0, 1.0, stop))
    yield sound
    yield sound.broken("scores with a quarter of the noise", _best(1.0, 0.25, stop), _best(0.0, 0.25, stop))
    claim = BenchClaim.of(Selected((Laplace(1.0),), _SHAPE, selection.stop_for(_SHAPE, _FEW)), _DELTA)
    door = BenchCase("choice at the desk", _RELATION.value, claim, _chosen(50.0, 1.0), _chosen(0.0, 1.0), runs=_CHOICES)
    yield door
    yield door.broken("scores with a quarter of the noise", _chosen(1.0, 0.25), _chosen(0.0, 0.25))
    yield door.broken("scores without a bound", _chosen(50.0, 1.0, Unbounded()))


@bench_sampler
def _best(runs: int, rng: np.random.Generator, value: float, scale: float, stop: float) -> np.ndarray:
    trials = np.array([selection.draw_trials(_SHAPE, stop, rng) for _ in range(runs)])
    scores = LaplaceNoise(scale).apply(np.full(int(trials.sum()), value), rng)
    return np.asarray(np.maximum.reduceat(scores, np.cumsum(trials) - trials))


@bench_sampler
def _chosen(runs: int, rng: np.random.Generator, value: float, scale: float, bound: SensitivityBound = _UNIT) -> np.ndarray:
    event, score = Selected((Laplace(1.0),), _SHAPE, selection.stop_for(_SHAPE, _FEW)), np.array([value])
    desk = Desk("audit", 0, 0, (PlannedRelease("choice", bound, LaplaceNoise(scale), event, range(1), runs),), rng)
    return np.array([desk.choose("choice", lambda _: (None, score))[1].value.item() for _ in range(runs)])
