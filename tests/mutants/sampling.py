"""Steps on secret batches: Poisson coins, fixed and without-replacement batches, rows that change, one sample for a whole run.

Worst case: all other rows are zero, and the unit's rows are as long as the clip (+1), or gone (0), or
turned round (−1) in the other world. Unless the batch is revealed, the viewer sees the noisy sums only, and
the score is their log-likelihood ratio.
"""

from collections.abc import Iterator

import numpy as np
from scipy.stats import binom

from fedgraph.audit import lower_bound
from fedgraph.learning import pair_scorer
from fedgraph.privacy import events
from fedgraph.privacy.accounting.pld import MixturePair
from fedgraph.privacy.events import Gaussian, PoissonGaussian, RandomizedResponse, Repeated, SampledOnce
from fedgraph.privacy.mechanisms.noise import GaussianNoise, KaryResponse
from fedgraph.privacy.units import Relation
from tests.mutants.bench import BenchCase, BenchClaim, bench_sampler

_ZERO_OUT, _REPLACE = Relation.NODE_ZERO_OUT.value, Relation.NODE_REPLACE.value


def cases() -> Iterator[BenchCase]:
    """Poisson, pairs of nodes, fixed, without replacement, changing rows (ε and δ), mentions, one-time samples."""
    yield from _poisson()
    yield from _pairs()
    yield from _fixed_batches()
    yield from _without_replacement()
    yield from _changing_rows()
    yield from _one_changing_step()
    yield from _mentions()
    yield from _sampled_once()
    yield from _fixed_sample()


@bench_sampler
def _poisson_sums(
    runs: int,
    rng: np.random.Generator,
    sigma: float,
    rate: float,
    steps: int,
    rows: tuple[float, ...],
    read: MixturePair,
    drawn: bool = True,
) -> np.ndarray:
    """``steps`` noisy sums of ``rows`` (in units of the clip), each row in by its own coin, read through ``read``.

    drawn False: every row is in every batch.
    """
    coins = rng.random((runs, steps, len(rows))) < rate if drawn else np.ones((runs, steps, len(rows)))
    seen = GaussianNoise(sigma).apply(coins @ np.array(rows), rng)
    return np.asarray(read.loss(seen.ravel())[0].reshape(runs, steps).sum(axis=1))


def _poisson() -> Iterator[BenchCase]:
    sigma, rate, steps, delta = 1.0, 0.1, 10, 1e-2
    read = MixturePair.of_rows(sigma, rate, 1, False)
    claim = BenchClaim.of(Repeated(PoissonGaussian(sigma, rate, touched_rows=1, replaced=False), steps), delta)
    there, back = (_poisson_sums(sigma, rate, steps, rows, read) for rows in ((1.0,), (0.0,)))
    sound = BenchCase("poisson-gaussian", _ZERO_OUT, claim, there, back)
    yield sound
    yield sound.broken("sampling claimed but not done", _poisson_sums(sigma, rate, steps, (1.0,), read, drawn=False))

    @bench_sampler
    def cached(runs: int, rng: np.random.Generator, value: float) -> np.ndarray:
        """The rows are dealt into 1/q batches once; batch b is used in steps b, b + 1/q, …; which is known."""
        return np.asarray(GaussianNoise(sigma).apply(np.full((runs, round(rate * steps)), value), rng).sum(axis=1))

    yield sound.broken("fixed batches accounted as Poisson", cached(1.0), cached(0.0))


def _pairs() -> Iterator[BenchCase]:
    """An edge that is drawn gives the clipped gradient of its pair; random pairs are drawn without looking at edges."""
    sigma, rate, steps, delta = 1.5, 0.4, 4, 5e-2
    nodes, read = np.array([[1.0, 0.0], [-0.6, 0.8]]), MixturePair.of_rows(sigma, rate, 1, False)
    one = pair_scorer.clipped_sum(pair_scorer.start(1, 2), nodes, np.array([[0, 1]]), 1.0)
    long = float(np.linalg.norm(one))
    claim = BenchClaim.of(Repeated(PoissonGaussian(sigma, rate, touched_rows=1, replaced=False), steps), delta)
    there, back = (_poisson_sums(sigma, rate, steps, rows, read) for rows in ((long,), (0.0,)))
    sound = BenchCase("pairs-in-steps", Relation.EDGE_UNDIRECTED.value, claim, there, back)
    yield sound
    quiet = [_poisson_sums(sigma * 2 / 3, rate, steps, (own,), read) for own in (long, 0.0)]
    yield sound.broken("noise × ⅔", quiet[0], quiet[1])
    yield sound.broken("a row at each end of an edge", _poisson_sums(sigma, rate, steps, (long, long), read))
    yield sound.broken("a non-edge is a negative", there, _poisson_sums(sigma, rate, steps, (-long,), read))


def _fixed_batches() -> Iterator[BenchCase]:
    """A row is in one cached batch, visited a known number of times: μ = √visits / σ."""
    sigma, visits, delta = 3.0, 5, 1e-2

    @bench_sampler
    def release(runs: int, rng: np.random.Generator, value: float) -> np.ndarray:
        return np.asarray(GaussianNoise(sigma).apply(np.full((runs, visits), value), rng).sum(axis=1))

    claim = BenchClaim.of(Repeated(Gaussian(sigma), visits), delta)
    sound = BenchCase("fixed-batches", _ZERO_OUT, claim, release(1.0), release(0.0), lower_bound.gaussian())
    yield sound
    yield sound.broken("only the first visit counted", sound.present, claim=BenchClaim.of(Gaussian(sigma), delta))


def _without_replacement() -> Iterator[BenchCase]:
    """Two of four rows each step, one replaced: by what the others are, so that one world shows whether it was drawn."""
    sigma, steps, delta = 3.0, 2, 1e-2
    rows, size = np.array([0.0, -1.0, -1.0, -1.0]), 2
    rate = size / rows.size
    read = MixturePair(np.array([1 - rate, rate]), np.array([0.0, 2.0]), np.ones(1), np.zeros(1), sigma)

    @bench_sampler
    def release(runs: int, rng: np.random.Generator, value: float, std: float) -> np.ndarray:
        drawn = np.argsort(rng.random((runs, steps, rows.size)), axis=2)[:, :, :size]
        sums = np.where(drawn == 0, value, rows[drawn]).sum(axis=2)
        seen = GaussianNoise(std).apply(sums + size, rng)
        return np.asarray(read.loss(seen.ravel())[0].reshape(runs, steps).sum(axis=1))

    claim = BenchClaim.of(Repeated(events.FixedSizeGaussian(sigma, 2, 4, touched_rows=1, replaced=True), steps), delta)
    sound = BenchCase("fixed-size-batches", _REPLACE, claim, release(1.0, sigma), release(-1.0, sigma))
    yield sound
    yield sound.broken("replace priced as zero-out", release(1.0, sigma / 2), release(-1.0, sigma / 2))


def _changing_rows() -> Iterator[BenchCase]:
    """Three rows of one node, all replaced, three steps."""
    sigma, rate, steps, delta = 3.0, 0.3, 3, 5e-2
    read = MixturePair.of_rows(sigma, rate, 3, True)
    claim = BenchClaim.of(Repeated(PoissonGaussian(sigma, rate, 3, True), steps), delta)
    there, back = (_poisson_sums(sigma, rate, steps, (sign,) * 3, read) for sign in (1.0, -1.0))
    sound = BenchCase("poisson-changing-rows", _REPLACE, claim, there, back)
    yield sound
    own_only = BenchClaim.of(Repeated(PoissonGaussian(sigma, rate, 1, True), steps), delta)
    yield sound.broken("rows of other nodes forgotten", there, claim=own_only)


def _one_changing_step() -> Iterator[BenchCase]:
    """``docs/proofs.md``: q = 0.3, B' = 8, σ = 1, hockey-stick 0.846 at ε = 0; the one-sided mixture says 0.806."""
    sigma, rate, rows = 1.0, 0.3, 8
    event, delta = PoissonGaussian(sigma, rate, rows, replaced=False), 0.85
    there = _poisson_sums(sigma, rate, 1, (1.0,) * rows, MixturePair.of_rows(sigma, rate, rows, False))
    back = _poisson_sums(sigma, rate, 1, (0.0,) + (-1.0,) * (rows - 1), MixturePair.of_rows(sigma, rate, rows, False))
    sound = BenchCase("poisson-two-sided-mixture", _ZERO_OUT, BenchClaim.of(event, delta), there, back, measures="delta")
    yield sound
    said = hockey_stick(_one_sided_sampling_pair(sigma, rate, rows), 0.0)
    yield sound.broken("one-sided mixture, rows change", there, claim=BenchClaim(0.0, said, "one-sided mixture"))


def hockey_stick(chosen: MixturePair, epsilon: float) -> float:
    """The larger δ of both orders at one ε, as the accountant's curves say."""
    there, back = chosen.curves(1e-300)
    at = np.array([epsilon])
    return float(max(there.deltas(at)[0], (back or there).deltas(at)[0]))


def _one_sided_sampling_pair(sigma: float, rate: float, rows: int) -> MixturePair:
    """Σ P(d) N(d, σ²) against N(0, σ²), d = a + 2j the distance of the two sums: **not** a dominating pair.

    What ``from_mixture_gaussian_mechanism`` computes for sensitivities d: own row a ~ Bern(q), the others'
    changes 2j, j ~ 2·Bin(B' − 1, q). Only the mutant uses it.
    """
    others = MixturePair.of_rows(sigma, rate, rows - 1, True)
    weights = np.concatenate([others.weights_p * (1 - rate), others.weights_p * rate])
    shifts = np.concatenate([2 * others.shifts_p, 2 * others.shifts_p + 1])
    return MixturePair(weights, shifts, np.ones(1), np.zeros(1), sigma)


def _mentions() -> Iterator[BenchCase]:
    """HeterPoisson: a node that is not drawn turns the rows of drawn neighbours that mention it, each from −1 to +1."""
    sigma, rate, mention, others, steps, delta = 3.0, 0.5, 0.5, 4, 3, 5e-2

    @bench_sampler
    def release(runs: int, rng: np.random.Generator, there: bool) -> np.ndarray:
        """Drawn neighbours are known, and taken off: each adds −1, turned +1 where it mentions the node."""
        own = rng.random((runs, steps)) < rate
        drawn = rng.binomial(others, rate, (runs, steps))
        turned = np.where(own, 0, rng.binomial(drawn, mention))
        seen = GaussianNoise(sigma).apply(there * (own + 2.0 * turned), rng)
        shift = np.arange(others + 1)[:, None, None]
        chance = (1 - rate) * binom.pmf(shift, drawn, mention)
        ratios = chance * np.exp((2 * shift * seen - 2 * shift**2) / sigma**2)
        return np.asarray(np.log(rate * np.exp((seen - 0.5) / sigma**2) + ratios.sum(axis=0)).sum(axis=1))

    claim = BenchClaim.of(Repeated(events.MentionedGaussian(sigma, rate, mention, others, heavy=False), steps), delta)
    sound = BenchCase("poisson-mentions", _ZERO_OUT, claim, release(True), release(False))
    yield sound
    own_only = BenchClaim.of(Repeated(PoissonGaussian(sigma, rate, 1, False), steps), delta)
    yield sound.broken("mentions not counted", sound.present, claim=own_only)


def _sampled_once() -> Iterator[BenchCase]:
    """A node takes part in the whole run with probability q, by one secret coin."""
    multiplier, count, rate, delta = 0.8, 2, 0.2, 2e-2
    inside = Repeated(Gaussian(multiplier), count)

    @bench_sampler
    def release(runs: int, rng: np.random.Generator, value: float, taken: float) -> np.ndarray:
        part = (rng.random((runs, 1)) < taken) * np.full(count, value)
        return np.asarray(GaussianNoise(multiplier).apply(part, rng).sum(axis=1))

    claim = BenchClaim.of(SampledOnce(inside, rate), delta)
    sound = BenchCase("sampled-once", _ZERO_OUT, claim, release(1.0, rate), release(0.0, rate))
    yield sound
    yield sound.broken("sample claimed but not drawn", release(1.0, 1.0))
    inner = BenchClaim.of(inside, delta / rate)
    yield sound.broken("amplified to q·ε", sound.present, claim=BenchClaim(rate * inner.epsilon, delta, "q·ε"))


def _fixed_sample() -> Iterator[BenchCase]:
    """A quarter of six units was asked for, so round(1.5) = 2 are drawn without replacement: rate ⅓. What is released is a
    randomised answer to "does the sample hold the unit's first version?"; the other world holds its second one (replace)."""
    units, share, inner, delta = 6, 0.25, 3.0, 1e-6
    size = max(1, round(share * units))

    @bench_sampler
    def release(runs: int, rng: np.random.Generator, first_version: bool) -> np.ndarray:
        drawn = np.argsort(rng.random((runs, units)), axis=1)[:, :size]
        held = (drawn == 0).any(axis=1) & first_version
        return np.asarray(KaryResponse(inner, 2).apply(held.astype(np.int64), rng), dtype=float)

    claim = BenchClaim.of(SampledOnce(RandomizedResponse(inner, 2), size / units), delta)
    sound = BenchCase("fixed-size-sample", _REPLACE, claim, release(True), release(False))
    yield sound
    asked = BenchClaim.of(SampledOnce(RandomizedResponse(inner, 2), share), delta)
    yield sound.broken("amplified by q' instead of size/n", sound.present, claim=asked)
