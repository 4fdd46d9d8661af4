"""The noise of DPAR: from a budget to noise multipliers, by the published formulas or by a proof.

Stage 1 releases the choices of M sources, stage 2 runs T noised steps of sampling rate q; each unit takes
part with probability q' (once, secretly). ``published`` uses the paper's arithmetic (``privacy.claims.dpar``):
q'·(ε_pr + ε_sgd). ``provable`` gives stage 1 its share of the inner budget and stage 2 all that the composed
price leaves:

    em:  ρ = M·K·ε₀²/8, scale 2C₂/ε₀      gm: μ = √(2M)·C₁/σ      sgd: Poisson Gaussian with B' touched rows
    ε = ln(1 + q'(e^inner − 1)), δ = q'·inner δ,   + P(more than M_max sources are sampled).
"""

import math
from dataclasses import dataclass
from functools import lru_cache

from scipy.optimize import brentq

from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting import amplification, calibrate
from fedgraph.privacy.claims import dpar as published
from fedgraph.privacy.events import (
    ApproxDP,
    BoundedRange,
    Composed,
    Event,
    Gaussian,
    Laplace,
    PoissonGaussian,
    Repeated,
    SampledOnce,
)

FREE = ("random", "features")  # kinds without a private choice
MOST_SGD_NOISE = 1e4  # the published search ends here; beyond it a budget is called too small


@dataclass(frozen=True)
class Shape:
    """Public numbers that the noise depends on.

    kind: em0, em1, gm, random or features. sampled: q'. sources: rows that hold data, at most. missed: probability
    that more were sampled. top: K. rate, steps: q, T. touched: B'. replaced: whether the unit's rows change
    rather than vanish. fixed_batches: T steps visit each row once per ``1/rate`` steps instead of by coins.
    values_share: EM1's share of stage 1 for values.
    """

    kind: str
    sampled: float
    sources: int
    missed: float
    top: int
    rate: float
    steps: int
    touched: int
    replaced: bool
    fixed_batches: bool = False
    values_share: float = 0.5


@dataclass(frozen=True)
class Noise:
    """choice: Gumbel scale / C₂ (em) or noise std / C₁ (gm), 0 without stage 1. values: Laplace scale / C₂
    (em1, else 0). sgd: noise std / C. notes: what a reader must know."""

    choice: float
    values: float
    sgd: float
    notes: tuple[str, ...] = ()


def source_cap(marked: int, sampled: float, missed: float) -> int:
    """The smallest M_max that a Binomial(marked, q') exceeds with probability at most ``missed``."""
    from scipy.stats import binom  # its import takes half a second

    return marked if sampled >= 1 else min(marked, int(binom.isf(missed, marked, sampled)) + 1)


def stage_one(shape: Shape, noise: Noise) -> Event:
    """The choices (and values) of every source that holds data."""
    count = shape.sources * shape.top
    parts: tuple[Event, ...] = (ApproxDP(0.0, shape.missed / shape.sampled),) if shape.missed else ()
    if noise.choice == 0:
        return Composed(())
    if shape.kind == "gm":
        return Composed((Gaussian(noise.choice / math.sqrt(2 * shape.sources)), *parts))
    return Composed((Repeated(BoundedRange(2 / noise.choice), count), *parts))


def stage_one_values(shape: Shape, noise: Noise) -> Event:
    """EM1's noisy values: one Laplace per chosen entry."""
    return Repeated(Laplace(noise.values), shape.sources * shape.top) if noise.values else Composed(())


def sgd_step(shape: Shape, multiplier: float) -> Event:
    """One step. Fixed batches: each row is visited once per 1/q steps, so T steps cost T·q visits of sensitivity
    (2B' − 1)C (2B'C replaced); the event spreads that evenly over all steps (μ² = q·(reach/σ)² each), which is
    exact over whole epochs and says nothing about one step alone."""
    if not shape.fixed_batches:
        return PoissonGaussian(multiplier, shape.rate, shape.touched, shape.replaced)
    reach = 2 * shape.touched - (0 if shape.replaced else 1)
    return Composed((Gaussian(multiplier / (reach * math.sqrt(shape.rate))),))


def whole(shape: Shape, noise: Noise) -> Event:
    """Everything one unit's data goes through, amplified by the one-time sample."""
    inner = Composed(
        (stage_one(shape, noise), stage_one_values(shape, noise), Repeated(sgd_step(shape, noise.sgd), shape.steps))
    )
    return inner if shape.sampled >= 1 else SampledOnce(inner, shape.sampled)


@lru_cache(maxsize=1024)
def provable(shape: Shape, epsilon: float, delta: float, split: float) -> Noise:
    """Noise whose composed price is at most ε: ``split`` of the inner budget buys stage 1, stage 2 takes the rest."""
    share = split * amplification.inner_epsilon(epsilon, shape.sampled)
    inner_delta = amplification.inner_delta(delta, shape.sampled)

    def first(multiplier: float) -> Noise:
        if shape.kind == "gm":
            return Noise(multiplier * math.sqrt(2 * shape.sources), 0.0, 0.0)
        values = 2 * math.sqrt((1 - shape.values_share) / shape.values_share) * multiplier if shape.kind == "em1" else 0.0
        return Noise(2 * multiplier, values, 0.0)

    chosen = Noise(0.0, 0.0, 0.0)
    if shape.kind not in FREE:
        cost = lambda m: Composed((stage_one(shape, first(m)), stage_one_values(shape, first(m))))  # noqa: E731
        chosen = first(calibrate.noise_multiplier(cost, share, inner_delta))
    sgd = calibrate.noise_multiplier(lambda m: whole(shape, Noise(chosen.choice, chosen.values, m)), epsilon, delta)
    return Noise(chosen.choice, chosen.values, sgd)


@lru_cache(maxsize=1024)
def as_published(shape: Shape, epsilon: float, delta: float, split: float) -> Noise:
    """Noise by the paper's formulas: ε_pr = split·ε/q', ε_sgd the rest, δ/2 to each stage before sampling."""
    inner, half_delta = epsilon / shape.sampled, delta / 2 / shape.sampled
    choice, values = 0.0, 0.0
    if shape.kind == "gm":
        choice = published.gm_multiplier(split * inner, half_delta, shape.sources)
    elif shape.kind not in FREE:
        each, each_delta = published.vector_budget(split * inner, half_delta, shape.sources)
        kept = shape.values_share if shape.kind == "em1" else 0.0
        choice = 1 / published.em_base(each * (1 - kept), shape.top, each_delta)
        values = shape.top / (each * kept) if kept else 0.0
    floor = published.sgd_epsilon(MOST_SGD_NOISE, shape.rate, shape.steps, half_delta)
    if (1 - split) * inner <= floor:
        note = (
            f"the published accountant never says less than ε_sgd = {floor:.3g} (orders below 64), {(1 - split) * inner:.3g} "
            f"was asked for: noise multiplier {MOST_SGD_NOISE:g} is used"
        )
        return Noise(choice, values, MOST_SGD_NOISE, (note,))
    return Noise(choice, values, _sgd_multiplier((1 - split) * inner, shape.rate, shape.steps, half_delta))


def published_epsilon(shape: Shape, noise: Noise, delta: float) -> float:
    """q'·(ε_pr + ε_sgd), the paper's formula read backwards from this noise."""
    half_delta = delta / 2 / shape.sampled
    choice = 0.0
    if noise.choice:
        each_delta = half_delta / (2 * shape.sources)
        if shape.kind == "gm":
            each = math.sqrt(2 * math.log(1.25 / each_delta)) / noise.choice
        else:
            each = published.em_epsilon(1 / noise.choice, shape.top, each_delta)
            each += shape.top / noise.values if noise.values else 0.0
        choice = _all_vectors(each, half_delta, shape.sources)
    sgd = published.sgd_epsilon(noise.sgd, shape.rate, shape.steps, half_delta)
    return published.total_epsilon(shape.sampled, choice, sgd)


@lru_cache(maxsize=256)
def _sgd_multiplier(epsilon: float, rate: float, steps: int, delta: float) -> float:
    low = 0.1
    if published.sgd_epsilon(low, rate, steps, delta) < epsilon:
        return low
    return published.sgd_multiplier(epsilon, rate, steps, delta)


def _all_vectors(each: float, delta: float, num_vectors: int) -> float:
    """ε_pr of vectors that cost ``each``: the inverse of ``published.vector_budget`` in ε."""

    def gap(epsilon: float) -> float:
        return published.vector_budget(epsilon, delta, num_vectors)[0] - each

    high = max(each, 1.0)
    while gap(high) < 0:
        high *= 2
        if high > 1e300:
            raise PrivacyError(f"no ε_pr gives ε_v = {each}")
    return float(brentq(gap, 1e-300, high, xtol=1e-14 * high))
