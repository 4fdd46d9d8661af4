"""The best of a secret number of trials, chosen by a noisy score: priced, and as it is done everywhere, unpriced.

Worst case: the noisy score is all that a trial releases, and it is 1 higher with the unit than without.
"""

from collections.abc import Iterator

import numpy as np

from fedgraph.audit.bench import Case, Claim, Sampler, sampler
from fedgraph.privacy.accounting import selection
from fedgraph.privacy.events import Laplace, Selected
from fedgraph.privacy.mechanisms.noise import LaplaceNoise
from fedgraph.privacy.units import Relation

SHAPE, AMONG, DELTA = 0.0, 20, 1e-3


def cases() -> Iterator[Case]:
    """A score that is released once; the best of many, priced as such."""
    stop = selection.stop_for(SHAPE, AMONG)
    once = Claim.of(Laplace(1.0), 0.0)
    alone = Case("one score", Relation.NODE_ZERO_OUT.value, once, _best(1.0, 1.0, 1.0), _best(0.0, 1.0, 1.0))
    yield alone
    yield alone.broken(f"the best of {AMONG}, selection unpriced", _best(1.0, 1.0, stop), _best(0.0, 1.0, stop))
    claim = Claim.of(Selected((Laplace(1.0),), SHAPE, stop), DELTA)
    sound = Case("private selection", Relation.NODE_ZERO_OUT.value, claim, _best(1.0, 1.0, stop), _best(0.0, 1.0, stop))
    yield sound
    yield sound.broken("scores with a quarter of the noise", _best(1.0, 0.25, stop), _best(0.0, 0.25, stop))


def _best(value: float, scale: float, stop: float) -> Sampler:
    """The largest of K noisy scores."""

    @sampler
    def release(runs: int, rng: np.random.Generator) -> np.ndarray:
        trials = np.array([selection.draw_trials(SHAPE, stop, rng) for _ in range(runs)])
        scores = LaplaceNoise(scale).apply(np.full(int(trials.sum()), value), rng)
        return np.asarray(np.maximum.reduceat(scores, np.cumsum(trials) - trials))

    return release()
