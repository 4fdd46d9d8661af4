"""The best of a secret number of trials, chosen by a noisy score: priced, and as it is done everywhere, unpriced.

Worst case: the noisy score is all that a trial releases, and it is 1 higher with the unit than without. ``private selection``
draws many scores at once, which takes many runs to tell apart; ``choice at the desk`` is the way out that a run has.
"""

from collections.abc import Iterator

import numpy as np

from fedgraph.audit.bench import Case, Claim, Sampler, sampler
from fedgraph.privacy.accounting import selection
from fedgraph.privacy.desk import Desk, PlannedRelease
from fedgraph.privacy.events import Laplace, Selected
from fedgraph.privacy.mechanisms.noise import LaplaceNoise
from fedgraph.privacy.sensitivity import Bound, Box, Unbounded
from fedgraph.privacy.units import Relation

SHAPE, AMONG, DELTA = 0.0, 20, 1e-3
FEW, RUNS = 5, 2_000  # trials on average, and choices, at the desk
RELATION = Relation.NODE_ZERO_OUT.value


def cases() -> Iterator[Case]:
    """A score that is released once; the best of many, priced as such; the same at the desk."""
    stop = selection.stop_for(SHAPE, AMONG)
    alone = Case("one score", RELATION, Claim.of(Laplace(1.0), 0.0), _best(1.0, 1.0, 1.0), _best(0.0, 1.0, 1.0))
    yield alone
    yield alone.broken(f"the best of {AMONG}, selection unpriced", _best(1.0, 1.0, stop), _best(0.0, 1.0, stop))
    claim = Claim.of(Selected((Laplace(1.0),), SHAPE, stop), DELTA)
    sound = Case("private selection", RELATION, claim, _best(1.0, 1.0, stop), _best(0.0, 1.0, stop))
    yield sound
    yield sound.broken("scores with a quarter of the noise", _best(1.0, 0.25, stop), _best(0.0, 0.25, stop))
    claim = Claim.of(Selected((Laplace(1.0),), SHAPE, selection.stop_for(SHAPE, FEW)), DELTA)
    door = Case("choice at the desk", RELATION, claim, _chosen(50.0, 1.0), _chosen(0.0, 1.0), runs=RUNS)
    yield door
    yield door.broken("scores with a quarter of the noise", _chosen(1.0, 0.25), _chosen(0.0, 0.25))
    yield door.broken("scores without a bound", _chosen(50.0, 1.0, Unbounded()))


def _best(value: float, scale: float, stop: float) -> Sampler:
    """The largest of K noisy scores."""

    @sampler
    def release(runs: int, rng: np.random.Generator) -> np.ndarray:
        trials = np.array([selection.draw_trials(SHAPE, stop, rng) for _ in range(runs)])
        scores = LaplaceNoise(scale).apply(np.full(int(trials.sum()), value), rng)
        return np.asarray(np.maximum.reduceat(scores, np.cumsum(trials) - trials))

    return release()


def _chosen(value: float, scale: float, bound: Bound | None = None) -> Sampler:
    """The score of the best trial, as ``Desk.choose`` lets it out."""

    @sampler
    def release(runs: int, rng: np.random.Generator) -> np.ndarray:
        event, score = Selected((Laplace(1.0),), SHAPE, selection.stop_for(SHAPE, FEW)), np.array([value])
        planned = PlannedRelease("choice", bound or Box(0.0, 1.0), LaplaceNoise(scale), event, range(1), runs)
        desk = Desk("audit", 0, 0, (planned,), rng)
        return np.array([desk.choose("choice", lambda _: (None, score))[1].value.item() for _ in range(runs)])

    return release()
