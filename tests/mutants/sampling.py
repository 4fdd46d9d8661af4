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
from tests.mutants.bench import BenchCase, BenchClaim, bench_sampler, twins

_ZERO_OUT, _REPLACE = Relation.NODE_ZERO_OUT.value, Relation.NODE_REPLACE.value


def cases() -> Iterator[BenchCase]:
    """Poisson, pairs of nodes, fixed, without replacement, changing rows (ε and δ), mentions, one-time samples."""
    yield from _poisson()
    yield from _pairs()
    yield from _fixed_batches()
    yield from _without_replacement()
    yield from _changing_rows()
    yield from _mentions()
    yield from _sampled_once()
    yield from _fixed_sample()


@bench_sampler
def _sums(runs, rng, sigma, rate, steps, rows, read: MixturePair, drawn=True):
    """``steps`` noisy sums of ``rows`` (in units of the clip), each row in by its own coin, read through ``read``.

    drawn False: every row is in every batch.
    """
    coins = rng.random((runs, steps, len(rows))) < rate if drawn else np.ones((runs, steps, len(rows)))
    seen = GaussianNoise(sigma).apply(coins @ np.array(rows), rng)
    return read.loss(seen.ravel())[0].reshape(runs, steps).sum(axis=1)


@bench_sampler
def _visits(runs, rng, sigma, visits, value):
    """A batch that is known, and used so many times."""
    return GaussianNoise(sigma).apply(np.full((runs, visits), value), rng).sum(axis=1)


def _poisson() -> Iterator[BenchCase]:
    sigma, rate, steps, delta = 1.0, 0.1, 10, 1e-2
    read, visits = MixturePair.of_rows(sigma, rate, 1, False), round(rate * steps)
    claim = BenchClaim.of(Repeated(PoissonGaussian(sigma, rate, touched_rows=1, replaced=False), steps), delta)
    worlds = _sums(sigma, rate, steps, (1.0,), read), _sums(sigma, rate, steps, (0.0,), read)
    broken = {
        "sampling claimed but not done": _sums(sigma, rate, steps, (1.0,), read, drawn=False),
        # The rows are dealt into 1/q batches once; batch b is used in steps b, b + 1/q, …; which is known.
        "fixed batches accounted as Poisson": (_visits(sigma, visits, 1.0), _visits(sigma, visits, 0.0)),
    }
    yield from twins("poisson-gaussian", _ZERO_OUT, claim, worlds, broken)


def _pairs() -> Iterator[BenchCase]:
    """An edge that is drawn gives the clipped gradient of its pair; random pairs are drawn without looking at edges."""
    sigma, rate, steps, delta = 1.5, 0.4, 4, 5e-2
    nodes, read = np.array([[1.0, 0.0], [-0.6, 0.8]]), MixturePair.of_rows(sigma, rate, 1, False)
    long = float(np.linalg.norm(pair_scorer.clipped_sum(pair_scorer.start(1, 2), nodes, np.array([[0, 1]]), 1.0)))
    claim = BenchClaim.of(Repeated(PoissonGaussian(sigma, rate, touched_rows=1, replaced=False), steps), delta)
    there, back = (_sums(sigma, rate, steps, (own,), read) for own in (long, 0.0))
    quiet = [_sums(sigma * 2 / 3, rate, steps, (own,), read) for own in (long, 0.0)]
    broken = {
        "noise × ⅔": (quiet[0], quiet[1]),
        "a row at each end of an edge": _sums(sigma, rate, steps, (long, long), read),
        "a non-edge is a negative": (there, _sums(sigma, rate, steps, (-long,), read)),
    }
    yield from twins("pairs-in-steps", Relation.EDGE_UNDIRECTED.value, claim, (there, back), broken)


def _fixed_batches() -> Iterator[BenchCase]:
    """A row is in one cached batch, visited a known number of times: μ = √visits / σ."""
    sigma, visits, delta = 3.0, 5, 1e-2
    claim, broken = BenchClaim.of(Repeated(Gaussian(sigma), visits), delta), BenchClaim.of(Gaussian(sigma), delta)
    worlds = _visits(sigma, visits, 1.0), _visits(sigma, visits, 0.0)
    yield from twins(
        "fixed-batches", _ZERO_OUT, claim, worlds, {"only the first visit counted": broken}, lower_bound.gaussian()
    )


def _without_replacement() -> Iterator[BenchCase]:
    """Two of four rows each step, one replaced: by what the others are, so that one world shows whether it was drawn."""
    sigma, steps, delta = 3.0, 2, 1e-2
    rows, size = np.array([0.0, -1.0, -1.0, -1.0]), 2
    rate = size / rows.size
    read = MixturePair(np.array([1 - rate, rate]), np.array([0.0, 2.0]), np.ones(1), np.zeros(1), sigma)

    @bench_sampler
    def release(runs, rng, value, std):
        drawn = np.argsort(rng.random((runs, steps, rows.size)), axis=2)[:, :, :size]
        seen = GaussianNoise(std).apply(np.where(drawn == 0, value, rows[drawn]).sum(axis=2) + size, rng)
        return read.loss(seen.ravel())[0].reshape(runs, steps).sum(axis=1)

    claim = BenchClaim.of(Repeated(events.FixedSizeGaussian(sigma, 2, 4, touched_rows=1, replaced=True), steps), delta)
    right, half = ((release(1.0, std), release(-1.0, std)) for std in (sigma, sigma / 2))
    yield from twins("fixed-size-batches", _REPLACE, claim, right, {"replace priced as zero-out": half})


def _changing_rows() -> Iterator[BenchCase]:
    """Three rows of one node, all replaced, three steps; and one step that shows δ.

    ``docs/proofs.md``: q = 0.3, B' = 8, σ = 1, hockey-stick 0.846 at ε = 0; the one-sided mixture says 0.806.
    """
    sigma, rate, steps, delta = 3.0, 0.3, 3, 5e-2
    read = MixturePair.of_rows(sigma, rate, 3, True)
    claim, own_only = (BenchClaim.of(Repeated(PoissonGaussian(sigma, rate, rows, True), steps), delta) for rows in (3, 1))
    worlds = _sums(sigma, rate, steps, (1.0,) * 3, read), _sums(sigma, rate, steps, (-1.0,) * 3, read)
    yield from twins("poisson-changing-rows", _REPLACE, claim, worlds, {"rows of other nodes forgotten": own_only})

    sigma, rate, rows = 1.0, 0.3, 8
    read, claim = MixturePair.of_rows(sigma, rate, rows, False), BenchClaim.of(PoissonGaussian(sigma, rate, rows, False), 0.85)
    worlds = tuple(_sums(sigma, rate, 1, (own,) + (sign,) * (rows - 1), read) for own, sign in ((1.0, 1.0), (0.0, -1.0)))
    said = BenchClaim(0.0, hockey_stick(one_sided_pair(sigma, rate, rows), 0.0), "one-sided mixture")
    broken = {"one-sided mixture, rows change": said}
    yield from twins("poisson-two-sided-mixture", _ZERO_OUT, claim, worlds, broken, measures="delta")


def hockey_stick(chosen: MixturePair, epsilon: float) -> float:
    """The larger δ of both orders at one ε, as the accountant's curves say."""
    there, back = chosen.curves(1e-300)
    at = np.array([epsilon])
    return float(max(there.deltas(at)[0], (back or there).deltas(at)[0]))


def one_sided_pair(sigma: float, rate: float, rows: int) -> MixturePair:
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
    def release(runs, rng, there):
        """Drawn neighbours are known, and taken off: each adds −1, turned +1 where it mentions the node."""
        own = rng.random((runs, steps)) < rate
        drawn = rng.binomial(others, rate, (runs, steps))
        turned = np.where(own, 0, rng.binomial(drawn, mention))
        seen = GaussianNoise(sigma).apply(there * (own + 2.0 * turned), rng)
        shift = np.arange(others + 1)[:, None, None]
        chance = (1 - rate) * binom.pmf(shift, drawn, mention)
        ratios = chance * np.exp((2 * shift * seen - 2 * shift**2) / sigma**2)
        return np.log(rate * np.exp((seen - 0.5) / sigma**2) + ratios.sum(axis=0)).sum(axis=1)

    claim = BenchClaim.of(Repeated(events.MentionedGaussian(sigma, rate, mention, others, heavy=False), steps), delta)
    broken = {"mentions not counted": BenchClaim.of(Repeated(PoissonGaussian(sigma, rate, 1, False), steps), delta)}
    yield from twins("poisson-mentions", _ZERO_OUT, claim, (release(True), release(False)), broken)


def _sampled_once() -> Iterator[BenchCase]:
    """A node takes part in the whole run with probability q, by one secret coin."""
    multiplier, count, rate, delta = 0.8, 2, 0.2, 2e-2
    inside = Repeated(Gaussian(multiplier), count)

    @bench_sampler
    def release(runs, rng, value, taken):
        part = (rng.random((runs, 1)) < taken) * np.full(count, value)
        return GaussianNoise(multiplier).apply(part, rng).sum(axis=1)

    claim, worlds = BenchClaim.of(SampledOnce(inside, rate), delta), (release(1.0, rate), release(0.0, rate))
    linear = BenchClaim(rate * BenchClaim.of(inside, delta / rate).epsilon, delta, "q·ε")
    broken = {"sample claimed but not drawn": release(1.0, 1.0), "amplified to q·ε": linear}
    yield from twins("sampled-once", _ZERO_OUT, claim, worlds, broken)


def _fixed_sample() -> Iterator[BenchCase]:
    """A quarter of six units was asked for, so round(1.5) = 2 are drawn without replacement: rate ⅓. What is released is a
    randomised answer to "does the sample hold the unit's first version?"; the other world holds its second one (replace)."""
    units, share, inner, delta = 6, 0.25, 3.0, 1e-6
    size = max(1, round(share * units))

    @bench_sampler
    def release(runs, rng, first_version):
        drawn = np.argsort(rng.random((runs, units)), axis=1)[:, :size]
        held = (drawn == 0).any(axis=1) & first_version
        return KaryResponse(inner, 2).apply(held.astype(np.int64), rng)

    right, asked = (BenchClaim.of(SampledOnce(RandomizedResponse(inner, 2), rate), delta) for rate in (size / units, share))
    broken = {"amplified by q' instead of size/n": asked}
    yield from twins("fixed-size-sample", _REPLACE, right, (release(True), release(False)), broken)
