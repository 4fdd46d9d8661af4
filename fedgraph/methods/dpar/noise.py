"""The noise of DPAR: from a budget to noise multipliers, by the published formulas or by a proof.

Stage 1 releases the choices of M sources, stage 2 runs T noised steps of sampling rate q; each unit takes
part with probability q' (once, secretly). ``published`` uses the paper's arithmetic (``published``):
q'·(ε_pr + ε_sgd). ``as_provable`` gives stage 1 its share of the inner budget and stage 2 all that the composed
price leaves:

    em:  ρ = M·K·ε₀²/8, scale 2C₂/ε₀      gm: μ = √(2M)·C₁/σ      sgd: Poisson Gaussian with B' touched rows
    ε = ln(1 + q'(e^inner − 1)), δ = q'·inner δ,   + P(more than M_max sources are sampled).
"""

import math
from dataclasses import dataclass
from functools import lru_cache

from scipy.optimize import brentq

from fedgraph.errors import PrivacyError
from fedgraph.methods.base import Budget
from fedgraph.methods.dpar import published
from fedgraph.privacy import Composed, Event, Gaussian, Repeated, amplification, calibrate, events

DPAR_NOISE_FREE = ("random", "features")  # kinds without a private choice
_SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)  # of the budget for choosing neighbours, as in the paper's Figures 2 to 6
_MOST_SGD_NOISE = 1e4  # the published search ends here; beyond it a budget is called too small


@dataclass(frozen=True)
class Sizes:
    """Public numbers of a run, all that the noise depends on among them."""

    kind: str  # em0, em1, gm, random, features or none
    sampled: float  # q', share of nodes that take part
    # the rate that amplifies: 1 where clients know the sample; size/n after rounding, of the client where it is largest, where
    # the sample has a fixed size; else q'
    amplified: float
    fixed: bool  # the sample has a fixed size
    sources: int  # M per client
    marked: int  # how many ids may become a source
    cap: int  # how many of them hold data at most
    missed: float  # probability that more do
    top: int  # K, neighbours of each source
    rate: float  # of the gradient steps: probability that a row is in one
    groups: int  # steps in one pass over the rows
    rounds: int  # how many there are
    local_steps: int  # gradient steps of each round
    fixed_batches: bool  # steps visit each row once per ``1/rate`` of them instead of by coins
    expected_batch: float  # rows per step and client
    most_mentions: int | None  # B' − 1, how many other rows may name a node; None: any number
    touched: int  # B' as priced
    replaced: bool  # the unit's rows change rather than vanish
    values_share: float  # EM1's share of stage 1 for values
    notes: tuple[str, ...]  # sentences for the report

    @property
    def steps(self) -> int:
        return self.rounds * self.local_steps


@dataclass(frozen=True)
class StageNoise:
    """The multipliers of both stages."""

    choice: float  # Gumbel scale / C₂ (em) or noise std / C₁ (gm); 0 without stage 1
    values: float  # Laplace scale / C₂ (em1, else 0)
    sgd: float  # noise std / C
    notes: tuple[str, ...] = ()  # what a reader must know


def choices_event(sizes: Sizes, noise: StageNoise) -> Event:
    """The choices (and values) of every source that holds data."""
    parts: tuple[Event, ...] = (events.ApproxDP(0.0, sizes.missed / sizes.amplified),) if sizes.missed else ()
    if noise.choice == 0:
        return Composed(())
    if sizes.kind == "gm":
        return Composed((Gaussian(noise.choice / math.sqrt(2 * sizes.cap)), *parts))
    return Composed((Repeated(events.BoundedRange(2 / noise.choice), sizes.cap * sizes.top), *parts))


def values_event(sizes: Sizes, noise: StageNoise) -> Event:
    """EM1's noisy values: one Laplace per chosen entry."""
    return Repeated(events.Laplace(noise.values), sizes.cap * sizes.top) if noise.values else Composed(())


def round_steps(sizes: Sizes, multiplier: float) -> Repeated:
    """The steps of one round: each on rows drawn by coins, or whole passes over fixed batches."""
    if not sizes.fixed_batches:
        return Repeated(events.PoissonGaussian(multiplier, sizes.rate, sizes.touched, sizes.replaced), sizes.local_steps)
    one_pass = events.EpochGaussian(multiplier, sizes.groups, sizes.touched, sizes.replaced)
    return Repeated(one_pass, sizes.local_steps // sizes.groups)


def _whole(sizes: Sizes, noise: StageNoise) -> Event:
    steps = Repeated(round_steps(sizes, noise.sgd), sizes.rounds)
    inner = Composed((choices_event(sizes, noise), values_event(sizes, noise), steps))
    return inner if sizes.amplified >= 1 else events.SampledOnce(inner, sizes.amplified)


@lru_cache(maxsize=1024)
def as_provable(sizes: Sizes, epsilon: float, delta: float, split: float) -> StageNoise:
    """Noise whose composed price is at most ε: ``split`` of the inner budget buys stage 1, stage 2 takes the rest."""
    share = split * amplification.epsilon_before(epsilon, sizes.amplified)
    inner_delta = amplification.delta_before(delta, sizes.amplified)

    def first(multiplier: float) -> StageNoise:
        if sizes.kind == "gm":
            return StageNoise(multiplier * math.sqrt(2 * sizes.cap), 0.0, 0.0)
        values = 2 * math.sqrt((1 - sizes.values_share) / sizes.values_share) * multiplier if sizes.kind == "em1" else 0.0
        return StageNoise(2 * multiplier, values, 0.0)

    chosen = StageNoise(0.0, 0.0, 0.0)
    if sizes.kind not in DPAR_NOISE_FREE:

        def cost(multiplier: float) -> Event:
            noise = first(multiplier)
            return Composed((choices_event(sizes, noise), values_event(sizes, noise)))

        chosen = first(calibrate.noise_multiplier_of(cost, share, inner_delta))
    sgd = calibrate.noise_multiplier_of(lambda m: _whole(sizes, StageNoise(chosen.choice, chosen.values, m)), epsilon, delta)
    return StageNoise(chosen.choice, chosen.values, sgd)


@lru_cache(maxsize=1024)
def as_published(sizes: Sizes, epsilon: float, delta: float, split: float) -> StageNoise:
    """Noise by the paper's formulas: ε_pr = split·ε/q', ε_sgd the rest, δ/2 to each stage before sampling."""
    inner, half_delta = epsilon / sizes.amplified, delta / 2 / sizes.amplified
    choice, values = 0.0, 0.0
    if sizes.kind == "gm":
        choice = published.claimed_dpar_gm_multiplier(split * inner, half_delta, sizes.cap)
    elif sizes.kind not in DPAR_NOISE_FREE:
        each, each_delta = published.claimed_dpar_vector_budget(split * inner, half_delta, sizes.cap)
        kept = sizes.values_share if sizes.kind == "em1" else 0.0
        choice = 1 / published.claimed_dpar_em_base(each * (1 - kept), sizes.top, each_delta)
        values = sizes.top / (each * kept) if kept else 0.0
    floor = published.claimed_dpar_sgd_epsilon(_MOST_SGD_NOISE, sizes.rate, sizes.steps, half_delta)
    asked = (1 - split) * inner
    if asked <= floor:
        note = (
            f"the published accountant never says less than ε_sgd = {floor:.3g} (orders below 64), {asked:.3g} was asked for: "
            f"noise multiplier {_MOST_SGD_NOISE:g} is used"
        )
        return StageNoise(choice, values, _MOST_SGD_NOISE, (note,))
    least, how = 0.1, (sizes.rate, sizes.steps, half_delta)
    if published.claimed_dpar_sgd_epsilon(least, *how) < asked:
        return StageNoise(choice, values, least)
    return StageNoise(choice, values, published.claimed_dpar_sgd_multiplier(asked, *how))


def least_share(sizes: Sizes, candidates: int, budget: Budget) -> tuple[float, str]:
    """The smallest share of the budget at which an entry at the clip stands out; the smallest of ``_SHARES`` where none does.

    Stands out: its clip is at least what the largest of the noises on ``candidates`` empty entries is expected to be (Gumbel
    b·ln n, Gaussian σ·√(2 ln n)). All of it is public, so the rule costs nothing. Returns the share and why.
    """
    among = math.sqrt(2 * math.log(candidates)) if sizes.kind == "gm" else math.log(candidates)
    drowned = math.inf
    for share in _SHARES:
        calibrated = as_published if budget.calibrated_by == "published" else as_provable
        drowned = calibrated(sizes, budget.epsilon, budget.delta, share).choice * among
        if drowned <= 1:
            return share, f"split: public takes {share:g}, the smallest share at which the largest possible entry stands out"
    return _SHARES[0], (
        f"split: public takes {_SHARES[0]:g}: at no share does the largest possible entry of a PageRank row stand out (at "
        f"{_SHARES[-1]:g} the largest noise on {candidates} empty entries is still {drowned:.3g} times as large)"
    )


def published_dpar_epsilon(sizes: Sizes, noise: StageNoise, delta: float) -> float:
    """q'·(ε_pr + ε_sgd), the paper's formula read backwards from this noise."""
    half_delta = delta / 2 / sizes.amplified
    choice = 0.0
    if noise.choice:
        each_delta = half_delta / (2 * sizes.cap)
        if sizes.kind == "gm":
            each = math.sqrt(2 * math.log(1.25 / each_delta)) / noise.choice
        else:
            each = published.claimed_dpar_em_epsilon(1 / noise.choice, sizes.top, each_delta)
            each += sizes.top / noise.values if noise.values else 0.0
        choice = _all_vectors(each, half_delta, sizes.cap)
    sgd = published.claimed_dpar_sgd_epsilon(noise.sgd, sizes.rate, sizes.steps, half_delta)
    return published.claimed_dpar_total_epsilon(sizes.amplified, choice, sgd)


def _all_vectors(each: float, delta: float, num_vectors: int) -> float:
    """ε_pr of vectors that cost ``each``: the inverse of ``published.claimed_dpar_vector_budget`` in ε."""

    def gap(epsilon: float) -> float:
        return published.claimed_dpar_vector_budget(epsilon, delta, num_vectors)[0] - each

    high = max(each, 1.0)
    while gap(high) < 0:
        high *= 2
        if high > 1e300:
            raise PrivacyError(f"no ε_pr gives ε_v = {each}")
    return float(brentq(gap, 1e-300, high, xtol=1e-14 * high))
