"""Many releases about one unit: n equal Gaussian ones, three of different kinds, and what an earlier one chose.

Worst case: every release moves by its full sensitivity. The score is the sum of the releases' own
log-likelihood ratios.
"""

from collections.abc import Iterator

import numpy as np

from fedgraph.audit.bench import Case, Claim, sampler
from fedgraph.audit.closed_form import gaussian
from fedgraph.privacy.accounting.calibrate import gaussian_multiplier, noise_multiplier
from fedgraph.privacy.events import Composed, Gaussian, Laplace, OneOf, PureDP, RandomizedResponse, Repeated
from fedgraph.privacy.mechanisms.noise import GaussianNoise, KaryResponse, LaplaceNoise
from fedgraph.privacy.units import Relation

EPSILON, DELTA = 1.0, 1e-3
COUNT = 8


def cases() -> Iterator[Case]:
    """n Gaussian releases; a Gaussian, a Laplace and a response; a Gaussian that chooses between two others."""
    yield from _equal()
    yield from _mixed()
    yield from _chosen()


def _equal() -> Iterator[Case]:
    """The unit adds +1 to every other release and −1 to the rest (a row may change between rounds)."""
    signs = np.where(np.arange(COUNT) % 2 == 0, 1.0, -1.0)

    @sampler
    def release(runs: int, rng: np.random.Generator, value: float, multiplier: float, fresh: bool = True) -> np.ndarray:
        shape = (runs, COUNT if fresh else 1)
        seen = GaussianNoise(multiplier).apply(np.zeros(shape), rng) + value * signs
        return seen @ signs

    multiplier = gaussian_multiplier(COUNT, EPSILON, DELTA)
    claim = Claim.of(Repeated(Gaussian(multiplier), COUNT), DELTA)
    there, back = release(1.0, multiplier), release(0.0, multiplier)
    sound = Case("composition", Relation.NODE_ZERO_OUT.value, claim, there, back, gaussian())
    yield sound
    single = gaussian_multiplier(1, EPSILON, DELTA)
    yield sound.broken("count dropped", release(1.0, single), release(0.0, single))
    yield sound.broken("the same noise in every round", release(1.0, multiplier, False), release(0.0, multiplier, False))


def _mixed() -> Iterator[Case]:
    scale, response, delta = 1.5, 0.7, 1e-2

    def event(multiplier: float) -> Composed:
        return Composed((Gaussian(multiplier), Laplace(scale), RandomizedResponse(response, 2)))

    multiplier = noise_multiplier(event, 1.5, delta)

    @sampler
    def release(runs: int, rng: np.random.Generator, value: int) -> np.ndarray:
        values = np.full(runs, float(value))
        normal = (GaussianNoise(multiplier).apply(values, rng) - 0.5) / multiplier**2
        heavy = LaplaceNoise(scale).apply(values, rng)
        bit = KaryResponse(response, 2).apply(np.full(runs, value), rng)
        return np.asarray(normal + (np.abs(heavy) - np.abs(heavy - 1)) / scale + response * (2 * bit - 1))

    claim = Claim.of(event(multiplier), delta)
    sound = Case("composition-mixed", Relation.NODE_REPLACE.value, claim, release(1), release(0))
    yield sound
    yield sound.broken("one kind left out of the price", sound.present, claim=Claim.of(Gaussian(multiplier), delta))


def _chosen() -> Iterator[Case]:
    """A noisy test chooses a response or a Gaussian release: the response where the test points to the unit."""
    response, delta, tested = 1.0, 1e-2, 3.0

    def event(multiplier: float) -> Composed:
        return Composed((Gaussian(tested), OneOf((PureDP(response), Gaussian(multiplier)))))

    multiplier = noise_multiplier(event, 1.5, delta)

    @sampler
    def release(runs: int, rng: np.random.Generator, value: int, multiplier: float, both: bool = False) -> np.ndarray:
        values = np.full(runs, float(value))
        seen = GaussianNoise(tested).apply(values, rng)
        bit = response * (2 * KaryResponse(response, 2).apply(np.full(runs, value), rng) - 1)
        normal = (GaussianNoise(multiplier).apply(values, rng) - 0.5) / multiplier**2
        return np.asarray((seen - 0.5) / tested**2 + (bit + normal if both else np.where(seen > 0.5, bit, normal)))

    claim = Claim.of(event(multiplier), delta)
    sound = Case("choice", Relation.NODE_REPLACE.value, claim, release(1, multiplier), release(0, multiplier))
    yield sound
    yield sound.broken("both alternatives released", release(1, multiplier, True), release(0, multiplier, True))
