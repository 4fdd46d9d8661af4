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
from tests.mutants.bench import BenchCase, BenchClaim, BenchSampler, bench_sampler

_EPSILON, _DELTA = 1.0, 1e-3
_NUM_CLIENTS, _COUNT = 4, 8
_BOUND = L2Ball(0.5)
_RELATION = Relation.NODE_ZERO_OUT


def cases() -> Iterator[BenchCase]:
    """Clients that overlap; sequences of releases."""
    each = sensitivity.l2(_BOUND, _RELATION)
    multiplier = calibrate.gaussian_multiplier(1, _EPSILON, _DELTA)
    yield from _secure_sum(each, multiplier)
    yield from _own_messages(each, multiplier)
    yield from _equal()
    yield from _mixed()
    yield from _chosen()


def _secure_sum(each: float, multiplier: float) -> Iterator[BenchCase]:
    linear, squares = _NUM_CLIENTS * each, math.sqrt(_NUM_CLIENTS) * each
    std = multiplier * linear
    claim = BenchClaim.of(Gaussian(std / linear), _DELTA)

    def of_total(total: float) -> tuple[BenchSampler, BenchSampler]:
        """Every client adds its share of a total noise of this standard deviation."""
        return _messages(9.0, total / math.sqrt(_NUM_CLIENTS)), _messages(0.0, total / math.sqrt(_NUM_CLIENTS))

    relation = f"{_RELATION.value}, secure sum"
    sound = BenchCase("overlapping-secure-sum", relation, claim, *of_total(std), lower_bound.gaussian())
    yield sound
    yield sound.broken("clients added in squares", *of_total(multiplier * squares))
    share = std / _NUM_CLIENTS
    yield sound.broken("noise shares 1/k, not 1/√k", _messages(9.0, share), _messages(0.0, share))


def _own_messages(each: float, multiplier: float) -> Iterator[BenchCase]:
    std = multiplier * math.sqrt(_NUM_CLIENTS) * each
    spent = {client: Gaussian(std / each) for client in range(_NUM_CLIENTS)}
    held = sp.csr_array(np.ones((_NUM_CLIENTS, 1)))
    seen = Protection(_RELATION, Viewer.SERVER, (Assumption.MEMBERSHIP_GIVEN,))
    claim = BenchClaim.paid(settle.of_events(settle.Guarantee(seen, _DELTA, held, per_end=False), spent).price, _DELTA)

    relation, worlds = f"{_RELATION.value}, every message", (_messages(9.0, std), _messages(0.0, std))
    sound = BenchCase("overlapping-messages", relation, claim, *worlds, lower_bound.gaussian())
    yield sound
    alone = multiplier * each
    yield sound.broken("priced as disjoint clients", _messages(9.0, alone), _messages(0.0, alone))


@bench_sampler
def _messages(runs: int, rng: np.random.Generator, row: float, std: float) -> np.ndarray:
    """Each client bounds its copy of the row and adds its own noise. Their sum is sufficient: equal noise, equal shifts."""
    bounded = _BOUND.enforce(np.array([row]))[0]
    return np.asarray(GaussianNoise(std).apply(np.full((runs, _NUM_CLIENTS), bounded), rng).sum(axis=1))


def _equal() -> Iterator[BenchCase]:
    """The unit adds +1 to every other release and −1 to the rest (a row may change between rounds)."""
    signs = np.where(np.arange(_COUNT) % 2 == 0, 1.0, -1.0)

    @bench_sampler
    def release(runs: int, rng: np.random.Generator, value: float, multiplier: float, fresh: bool = True) -> np.ndarray:
        shape = (runs, _COUNT if fresh else 1)
        seen = GaussianNoise(multiplier).apply(np.zeros(shape), rng) + value * signs
        return seen @ signs

    multiplier = calibrate.gaussian_multiplier(_COUNT, _EPSILON, _DELTA)
    claim = BenchClaim.of(Repeated(Gaussian(multiplier), _COUNT), _DELTA)
    there, back = release(1.0, multiplier), release(0.0, multiplier)
    sound = BenchCase("composition", Relation.NODE_ZERO_OUT.value, claim, there, back, lower_bound.gaussian())
    yield sound
    single = calibrate.gaussian_multiplier(1, _EPSILON, _DELTA)
    yield sound.broken("count dropped", release(1.0, single), release(0.0, single))
    yield sound.broken("the same noise in every round", release(1.0, multiplier, False), release(0.0, multiplier, False))


def _mixed() -> Iterator[BenchCase]:
    scale, response, delta = 1.5, 0.7, 1e-2

    def event(multiplier: float) -> Composed:
        return Composed((Gaussian(multiplier), Laplace(scale), RandomizedResponse(response, 2)))

    multiplier = calibrate.noise_multiplier_of(event, 1.5, delta)

    @bench_sampler
    def release(runs: int, rng: np.random.Generator, value: int) -> np.ndarray:
        values = np.full(runs, float(value))
        normal = (GaussianNoise(multiplier).apply(values, rng) - 0.5) / multiplier**2
        heavy = LaplaceNoise(scale).apply(values, rng)
        bit = KaryResponse(response, 2).apply(np.full(runs, value), rng)
        return np.asarray(normal + (np.abs(heavy) - np.abs(heavy - 1)) / scale + response * (2 * bit - 1))

    claim = BenchClaim.of(event(multiplier), delta)
    sound = BenchCase("composition-mixed", Relation.NODE_REPLACE.value, claim, release(1), release(0))
    yield sound
    yield sound.broken("one kind left out of the price", sound.present, claim=BenchClaim.of(Gaussian(multiplier), delta))


def _chosen() -> Iterator[BenchCase]:
    """A noisy test chooses a response or a Gaussian release: the response where the test points to the unit."""
    response, delta, tested = 1.0, 1e-2, 3.0

    def event(multiplier: float) -> Composed:
        return Composed((Gaussian(tested), OneOf((PureDP(response), Gaussian(multiplier)))))

    multiplier = calibrate.noise_multiplier_of(event, 1.5, delta)

    @bench_sampler
    def release(runs: int, rng: np.random.Generator, value: int, multiplier: float, both: bool = False) -> np.ndarray:
        values = np.full(runs, float(value))
        seen = GaussianNoise(tested).apply(values, rng)
        bit = response * (2 * KaryResponse(response, 2).apply(np.full(runs, value), rng) - 1)
        normal = (GaussianNoise(multiplier).apply(values, rng) - 0.5) / multiplier**2
        return np.asarray((seen - 0.5) / tested**2 + (bit + normal if both else np.where(seen > 0.5, bit, normal)))

    claim = BenchClaim.of(event(multiplier), delta)
    sound = BenchCase("choice", Relation.NODE_REPLACE.value, claim, release(1, multiplier), release(0, multiplier))
    yield sound
    yield sound.broken("both alternatives released", release(1, multiplier, True), release(0, multiplier, True))
