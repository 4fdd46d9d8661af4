"""Several releases about one unit: by clients that overlap, and one after another.

**Overlapping clients**: a node that k clients hold is sent k times. One secure sum: the viewer sees Σ messages, so the
sensitivities add up *before* the noise, Δ = kC. Own messages: the viewer sees each, so the losses compose, μ² = Σ μᵢ². Worst
case: every client's contribution points the same way, as long as the clip.

**Sequences**: n equal Gaussian ones, three of different kinds, and what an earlier one chose.

Worst case: every release moves by its full sensitivity. The score is the sum of the releases' own
log-likelihood ratios.
"""

import math
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from fedgraph.audit import lower_bound
from fedgraph.privacy import sensitivity, settle
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.events import Composed, Gaussian, Laplace, OneOf, PureDP, RandomizedResponse, Repeated
from fedgraph.privacy.mechanisms.noise import GaussianNoise, KaryResponse, LaplaceNoise
from fedgraph.privacy.sensitivity import L2Ball
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer
from tests.mutants.bench import BenchCase, BenchClaim, Worlds, bench_sampler, twins

_EPSILON, _DELTA = 1.0, 1e-3
_NUM_CLIENTS, _COUNT = 4, 8
_BOUND = L2Ball(0.5)
_ZERO_OUT = Relation.NODE_ZERO_OUT


def cases() -> Iterator[BenchCase]:
    """Clients that overlap; sequences of releases."""
    yield from _overlapping()
    yield from _equal()
    yield from _mixed()
    yield from _chosen()


@bench_sampler
def _messages(runs, rng, row, std):
    """Each client bounds its copy of the row and adds its own noise. Their sum is sufficient: equal noise, equal shifts."""
    bounded = _BOUND.enforce(np.array([row]))[0]
    return GaussianNoise(std).apply(np.full((runs, _NUM_CLIENTS), bounded), rng).sum(axis=1)


def _overlapping() -> Iterator[BenchCase]:
    each, multiplier = sensitivity.l2(_BOUND, _ZERO_OUT), calibrate.gaussian_multiplier(1, _EPSILON, _DELTA)
    linear, squares = _NUM_CLIENTS * each, math.sqrt(_NUM_CLIENTS) * each

    def worlds(std: float) -> Worlds:
        return _messages(9.0, std), _messages(0.0, std)

    claim, how = BenchClaim.of(Gaussian(multiplier), _DELTA), (lower_bound.gaussian(),)
    broken = {  # every client adds its share of the noise
        "clients added in squares": worlds(multiplier * squares / math.sqrt(_NUM_CLIENTS)),
        "noise shares 1/k, not 1/√k": worlds(multiplier * linear / _NUM_CLIENTS),
    }
    right = worlds(multiplier * linear / math.sqrt(_NUM_CLIENTS))
    yield from twins("overlapping-secure-sum", f"{_ZERO_OUT.value}, secure sum", claim, right, broken, *how)

    spent = dict.fromkeys(range(_NUM_CLIENTS), Gaussian(multiplier * squares / each))
    held = sp.csr_array(np.ones((_NUM_CLIENTS, 1)))
    seen = Protection(_ZERO_OUT, Viewer.SERVER, (Assumption.MEMBERSHIP_GIVEN,))
    claim = BenchClaim.paid(settle.of_events(settle.Guarantee(seen, _DELTA, held, per_end=False), spent).price, _DELTA)
    broken = {"priced as disjoint clients": worlds(multiplier * each)}
    relation = f"{_ZERO_OUT.value}, every message"
    yield from twins("overlapping-messages", relation, claim, worlds(multiplier * squares), broken, *how)


def _equal() -> Iterator[BenchCase]:
    """The unit adds +1 to every other release and −1 to the rest (a row may change between rounds)."""
    signs = np.where(np.arange(_COUNT) % 2 == 0, 1.0, -1.0)

    @bench_sampler
    def release(runs, rng, value, multiplier, fresh=True):
        return (GaussianNoise(multiplier).apply(np.zeros((runs, _COUNT if fresh else 1)), rng) + value * signs) @ signs

    multiplier, single = (calibrate.gaussian_multiplier(count, _EPSILON, _DELTA) for count in (_COUNT, 1))
    claim, worlds = (
        BenchClaim.of(Repeated(Gaussian(multiplier), _COUNT), _DELTA),
        (release(1.0, multiplier), release(0.0, multiplier)),
    )
    broken = {
        "count dropped": (release(1.0, single), release(0.0, single)),
        "the same noise in every round": (release(1.0, multiplier, False), release(0.0, multiplier, False)),
    }
    yield from twins("composition", _ZERO_OUT.value, claim, worlds, broken, lower_bound.gaussian())


def _mixed() -> Iterator[BenchCase]:
    scale, response, delta = 1.5, 0.7, 1e-2

    def event(multiplier: float) -> Composed:
        return Composed((Gaussian(multiplier), Laplace(scale), RandomizedResponse(response, 2)))

    multiplier = calibrate.noise_multiplier_of(event, 1.5, delta)

    @bench_sampler
    def release(runs, rng, value):
        values = np.full(runs, float(value))
        normal = (GaussianNoise(multiplier).apply(values, rng) - 0.5) / multiplier**2
        heavy = LaplaceNoise(scale).apply(values, rng)
        bit = KaryResponse(response, 2).apply(np.full(runs, value), rng)
        return normal + (np.abs(heavy) - np.abs(heavy - 1)) / scale + response * (2 * bit - 1)

    claim, broken = (
        BenchClaim.of(event(multiplier), delta),
        {"one kind left out of the price": BenchClaim.of(Gaussian(multiplier), delta)},
    )
    yield from twins("composition-mixed", Relation.NODE_REPLACE.value, claim, (release(1), release(0)), broken)


def _chosen() -> Iterator[BenchCase]:
    """A noisy test chooses a response or a Gaussian release: the response where the test points to the unit."""
    response, delta, tested = 1.0, 1e-2, 3.0

    def event(multiplier: float) -> Composed:
        return Composed((Gaussian(tested), OneOf((PureDP(response), Gaussian(multiplier)))))

    multiplier = calibrate.noise_multiplier_of(event, 1.5, delta)

    @bench_sampler
    def release(runs, rng, value, both=False):
        values = np.full(runs, float(value))
        seen = GaussianNoise(tested).apply(values, rng)
        bit = response * (2 * KaryResponse(response, 2).apply(np.full(runs, value), rng) - 1)
        normal = (GaussianNoise(multiplier).apply(values, rng) - 0.5) / multiplier**2
        return (seen - 0.5) / tested**2 + (bit + normal if both else np.where(seen > 0.5, bit, normal))

    broken = {"both alternatives released": (release(1, True), release(0, True))}
    claim = BenchClaim.of(event(multiplier), delta)
    yield from twins("choice", Relation.NODE_REPLACE.value, claim, (release(1), release(0)), broken)
