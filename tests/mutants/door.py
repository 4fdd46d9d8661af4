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
from tests.mutants.bench import BenchCase, BenchClaim, bench_sampler, twins

_EPSILON, _DELTA = 1.0, 1e-3
_RELATION = Relation.NODE_ZERO_OUT.value
_RUNS = 4_000  # one call of the desk each
_OUT_OF_REACH = 40.0  # standard deviations
_Opened = Callable[[int, np.random.Generator], Callable[[np.ndarray], np.ndarray]]


def cases() -> Iterator[BenchCase]:
    yield from _desk()
    yield from _selection()


def _audit_desk(bound: SensitivityBound, std: float) -> _Opened:
    def opened(runs, rng):
        event = Gaussian(std / sensitivity.l2(bound, Relation.NODE_ZERO_OUT))
        through = Desk("audit", 0, 0, (PlannedRelease("audit", bound, GaussianNoise(std), event, range(1), runs),), rng)
        return lambda value: through.release("audit", value).value

    return opened


def _open_door(std: float) -> _Opened:
    """Noise without a look at the value: what the desk exists to prevent (and the mechanism refuses too)."""
    return lambda runs, rng: lambda value: value + rng.normal(scale=std, size=value.shape)


@bench_sampler
def _released(runs, rng, opened: _Opened, value: float):
    door = opened(runs, rng)
    return [door(np.array([value]))[0] for _ in range(runs)]


@bench_sampler
def _betrayed(runs, rng, opened: _Opened, values: list[np.ndarray], std: float):
    door = opened(runs, rng)

    def betrays(value: np.ndarray) -> bool:
        try:
            left = door(value)
        except UnboundedValueError:
            return False
        return not bool((np.abs(left) < _OUT_OF_REACH * std).all())

    return [betrays(values[run % len(values)]) for run in range(runs)]


def _desk() -> Iterator[BenchCase]:
    multiplier = calibrate.gaussian_multiplier(1, _EPSILON, _DELTA)
    claim = BenchClaim.of(Gaussian(multiplier), _DELTA)
    bound, std = L2Ball(0.5), multiplier * sensitivity.l2(L2Ball(0.5), Relation.NODE_ZERO_OUT)
    worlds = _released(_audit_desk(bound, std), 50.0), _released(_audit_desk(bound, std), 0.0)
    broken = {"bound not enforced": _released(_open_door(std), 50.0)}
    yield from twins("desk-bounds", _RELATION, claim, worlds, broken, lower_bound.gaussian(), runs=_RUNS)

    sums, std = ClippedSum(0.5, 3), multiplier * sensitivity.l2(ClippedSum(0.5, 3), Relation.NODE_ZERO_OUT)
    forbidden, usual = [np.array([0.2, bad]) for bad in (math.nan, math.inf, -math.inf, 1e9)], [np.array([0.2, 0.1])]
    worlds = _betrayed(_audit_desk(sums, std), forbidden, std), _betrayed(_audit_desk(sums, std), usual, std)
    broken = {
        "NaN passed through": (_betrayed(_open_door(std), forbidden[:1], std), _betrayed(_open_door(std), usual, std)),
        "value beyond its bound passed": _betrayed(_open_door(std), forbidden[3:], std),
    }
    yield from twins("desk-refusals", _RELATION, claim, worlds, broken, runs=_RUNS)


_SHAPE, _AMONG = 0.0, 20
_FEW = 5  # trials on average, at the desk
_CHOICES = 1_000  # runs


@bench_sampler
def _best(runs, rng, value, scale, stop):
    trials = np.array([selection.draw_trials(_SHAPE, stop, rng) for _ in range(runs)])
    scores = LaplaceNoise(scale).apply(np.full(int(trials.sum()), value), rng)
    return np.maximum.reduceat(scores, np.cumsum(trials) - trials)


@bench_sampler
def _chosen(runs, rng, value, scale, bound=Box(0.0, 1.0)):  # noqa: B008
    event, score = Selected((Laplace(1.0),), _SHAPE, selection.stop_for(_SHAPE, _FEW)), np.array([value])
    desk = Desk("audit", 0, 0, (PlannedRelease("choice", bound, LaplaceNoise(scale), event, range(1), runs),), rng)
    return [desk.choose("choice", lambda _: (None, score))[1].value.item() for _ in range(runs)]


def _selection() -> Iterator[BenchCase]:
    """A score that is released once; the best of many, priced as such; the same at the desk."""
    stop, few = selection.stop_for(_SHAPE, _AMONG), selection.stop_for(_SHAPE, _FEW)
    once, best, quiet = ((_best(1.0, scale, s), _best(0.0, scale, s)) for scale, s in ((1.0, 1.0), (1.0, stop), (0.25, stop)))
    unpriced = {f"the best of {_AMONG}, selection unpriced": best}
    yield from twins("one score", _RELATION, BenchClaim.of(Laplace(1.0), 0.0), once, unpriced)
    claim = BenchClaim.of(Selected((Laplace(1.0),), _SHAPE, stop), _DELTA)
    broken = {"scores with a quarter of the noise": quiet}
    yield from twins("private selection", _RELATION, claim, best, broken)
    claim = BenchClaim.of(Selected((Laplace(1.0),), _SHAPE, few), _DELTA)
    broken = {
        "scores with a quarter of the noise": (_chosen(1.0, 0.25), _chosen(0.0, 0.25)),
        "scores without a bound": _chosen(50.0, 1.0, Unbounded()),
    }
    yield from twins("choice at the desk", _RELATION, claim, (_chosen(50.0, 1.0), _chosen(0.0, 1.0)), broken, runs=_CHOICES)
