"""Rényi divergences: pure ε, ρ of zero-concentrated DP, and RDP at a fixed list of orders.

**Pure ε** (``pure_epsilon``): ε-DP with δ = 0. The numbers add up under adaptive composition (Dwork & Roth 2014, Theorem 3.14),
and any (εᵢ, δᵢ) add up componentwise (Theorem 3.16).

    Laplace, multiplier b/Δ₁      Δ₁/b
    k-ary response                its ε
    bounded range ε               ε (Durfee & Rogers 2019, Corollary 4.2)
    multi-bit, m bits at a        m·a

**ρ** (``rho``): ρ-zCDP means D_α(P‖Q) ≤ ρα for every α > 1 (Bun & Steinke 2016, Definition 1.1). ρ adds up under adaptive
composition (Lemma 1.7), and the sum is converted to (ε, δ) (``epsilon_of_rho``).

    Gaussian, multiplier σ        1/(2σ²)          Bun & Steinke 2016, Proposition 1.6
    ε-DP (also k-RR, each bit)    ε·tanh(ε/2)      ≤ ε²/2; Bun & Steinke 2016, Proposition 3.3, its KL end
    bounded range ε               ε²/8             Cesar & Rogers 2021, Lemma 3.4
    Laplace, multiplier 1/ε       as ε-DP

**RDP** (``epsilon``), the accountant for ledgers that no loss distribution covers:

RDP(α) = max of D_α(P‖Q), D_α(Q‖P), added up per order (Mironov 2017, Proposition 1), converted by

    ε(δ) = min over α of  RDP(α) + ln(1 − 1/α) − ln(δα)/(α − 1)    (Canonne et al. 2020 v4, Proposition 12).

Per release, with a Gaussian step of multiplier σ, rate q, B' touched rows:

    whatever has a ρ          ρα, and never more than its pure ε
    Poisson, zero-out, B' = 1 exact moments at whole orders (``_poisson_moments``)      Mironov et al. 2019
    Poisson, otherwise        1/(α−1)·ln E_j exp(α(α−1)d_j²/(2σ²)), coins revealed:
                              zero-out d = a + 2j, a ~ Bern(q), j ~ Bin(B'−1, q); replace d = 2j, j ~ Bin(B', q)
    selected                  ``selection``: max over candidates, and what choosing adds
    a secret sample, once     1/(α−1)·ln(1 − q + q·e^((α−1)·RDP(α))) of all that ran on it, inside of a selection
    fixed size                1/(α−1)·ln E_d exp(α(α−1)d²/(2σ²)), d of ``pld.batch_distances``, batch revealed

**Guarantee.** As the events state; adaptive composition. Orders are listed below; where the
series of a Poisson step is too long (order > 256) the order is left out (∞), which is valid.
dp_accounting's own RDP accountant (0.6.0) is not used: under REPLACE_ONE it prices Gaussian and
without-replacement steps at sensitivity 1 instead of 2 (8.08 where the truth is 17.86), and between
whole orders a Poisson step's moments may be ∞ or far off (.0188 for 1.24e-4 at σ = 20, q = .3, α = 1.1).

*Proof*: ``docs/proofs.md``.

**Edge cases.** Noise multiplier 0 → pure ε = ∞; ∞ → 0. ρ = 0 → ε = 0; ρ = ∞ or δ = 0 → ε = ∞; NaN or negative →
``PrivacyError``. Other parameters 0 and ∞ are settled in ``accountant.leaves_of``.
"""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, logsumexp, xlog1py, xlogy

from fedgraph.errors import PrivacyError, UnknownEventError
from fedgraph.privacy import events
from fedgraph.privacy.accounting import pld, selection
from fedgraph.privacy.fields import ArrayField

RDP_ORDERS: ArrayField = np.array(
    sorted(
        {1 + x / 100 for x in (2, 4, 6, 8)}
        | {1 + x / 10 for x in range(1, 100)}
        | {float(x) for x in range(11, 65)}
        | {float(x) for x in (72, 80, 96, 112, 128, 160, 192, 224, 256)}
        | {float(round(x)) for x in np.geomspace(300, 1e7, 40)}
    )
)
_LONGEST_SERIES = 256


def pure_epsilon(event: events.Event) -> float | None:
    """The ε of a release that is ε-DP with δ = 0. event: one release. Returns ε; None if it is not ε-DP, or not known to be."""
    if isinstance(event, (events.PureDP, events.RandomizedResponse, events.BoundedRange)):
        return event.epsilon
    if isinstance(event, events.MultiBit):
        return event.epsilon_per_bit * event.num_bits
    if isinstance(event, events.Laplace):
        return math.inf if event.noise_multiplier == 0 else 1.0 / event.noise_multiplier
    if isinstance(event, events.ApproxDP) and event.delta == 0:
        return event.epsilon
    return None


def rho(event: events.Event) -> float | None:
    """ρ of one release, by the table above.

    event: one release; its noise multiplier, where it has one, is > 0. Returns ρ; None where the event has no zCDP bound here.
    """
    if isinstance(event, events.Gaussian):
        return 0.5 / event.noise_multiplier**2
    if isinstance(event, events.BoundedRange):
        return event.epsilon**2 / 8
    if isinstance(event, (events.PureDP, events.RandomizedResponse)):
        return _pure(event.epsilon)
    if isinstance(event, events.Laplace):
        return _pure(1 / event.noise_multiplier)
    if isinstance(event, events.MultiBit):
        return event.num_bits * _pure(event.epsilon_per_bit)
    return None


def _pure(epsilon: float) -> float:
    return epsilon * math.tanh(epsilon / 2)


def epsilon_of_rho(total_rho: float, delta: float) -> float:
    """ε of a ρ-zCDP mechanism: min over α > 1 of ρα + ln(1 − 1/α) − ln(δα)/(α − 1).

    Any α gives a valid ε, so the search over α cannot make the answer wrong, only loose.

    Args:
        total_rho: ρ ≥ 0; ∞ → ∞.
        delta: δ in [0, 1]; 0 → ∞ unless ρ = 0.

    Raises:
        PrivacyError: a number out of its range, or NaN.

    >>> round(epsilon_of_rho(0.5, 1e-5), 4)
    4.7284
    """
    if math.isnan(total_rho) or total_rho < 0 or not 0 <= delta <= 1:
        raise PrivacyError(f"need rho ≥ 0 and 0 ≤ delta ≤ 1, found rho={total_rho}, delta={delta}")
    if total_rho == 0:
        return 0.0
    if math.isinf(total_rho) or delta == 0:
        return math.inf

    def at(log_excess: float) -> float:
        excess = math.exp(log_excess)
        alpha = 1 + excess
        return total_rho * alpha + math.log(excess / alpha) - math.log(delta * alpha) / excess

    guess = 0.5 * math.log(max(-math.log(delta), 1e-3) / total_rho)
    found = minimize_scalar(at, bounds=(guess - 6, guess + 6), method="bounded", options={"xatol": 1e-10})
    return max(0.0, float(found.fun))


def epsilon(leaves: Sequence[tuple[events.Event, int]], delta: float) -> tuple[float, float]:
    """ε of all releases together, and the order that gives it.

    Args:
        leaves: of ``accountant.leaves_of``.
        delta: δ in [0, 1); 0: (∞, ∞).

    Returns:
        (ε, α)

    Raises:
        UnknownEventError: an event without an RDP bound.
    """
    total = _of_all(leaves)
    if delta == 0:
        return math.inf, math.inf
    return converted(total, RDP_ORDERS, delta)


def converted(moments: ArrayField, orders: ArrayField, delta: float) -> tuple[float, float]:
    """(ε, α): RDP(α) + ln(1 − 1/α) − (ln δ + ln α)/(α − 1) at the best order; autodp 0.2 reads ε off in the same way.

    Args:
        moments: RDP at ``orders``.
        orders: α > 1.
        delta: δ in (0, 1).
    """
    values = moments + np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    best = int(np.argmin(values))
    return max(0.0, float(values[best])), float(orders[best])


def _of_all(leaves: Iterable[tuple[events.Event, int]]) -> ArrayField:
    return np.asarray(sum((count * _per_release(event) for event, count in leaves), np.zeros_like(RDP_ORDERS)))


@lru_cache(maxsize=512)
def _per_release(event: events.Event) -> ArrayField:
    per_order = rho(event)
    if per_order is not None:
        ceiling = pure_epsilon(event)
        return per_order * RDP_ORDERS if ceiling is None else np.minimum(per_order * RDP_ORDERS, ceiling)
    if isinstance(event, events.Selected):
        trials = [_of_all(events.flatten(one)) for one in event.candidates]
        return selection.rdp(np.max(np.stack(trials), axis=0), RDP_ORDERS, event.shape, event.stop)
    if isinstance(event, events.SampledOnce):
        moments = (RDP_ORDERS - 1) * _of_all(events.flatten(event.event))
        q = event.sampling_rate
        return np.asarray(np.logaddexp(math.log1p(-q), math.log(q) + moments) / (RDP_ORDERS - 1))
    if isinstance(event, events.PoissonGaussian):
        if event.touched_rows == 1 and not event.replaced:
            return of_poisson_row(event.noise_multiplier, event.sampling_rate, RDP_ORDERS)
        return _poisson_revealed(event)
    if isinstance(event, events.FixedSizeGaussian):
        apart, weights = pld.batch_distances(event.batch_size, event.num_rows, event.touched_rows, event.replaced)
        with np.errstate(divide="ignore"):
            return _revealed(apart, np.log(weights), event.noise_multiplier)
    if isinstance(event, events.OneOf):
        return np.asarray(np.max([_of_all(events.flatten(one)) for one in event.alternatives], axis=0))
    if isinstance(event, events.MentionedGaussian):  # priced by loss distributions alone
        return np.full_like(RDP_ORDERS, math.inf)
    raise UnknownEventError(f"no Rényi bound is known for {type(event).__name__}: {event}")


def of_poisson_row(noise_multiplier: float, sampling_rate: float, orders: ArrayField) -> ArrayField:
    """RDP of the Poisson-sampled Gaussian, zero-out, one row; ∞ above order 256.

    Exact moments at whole orders. Between them (α − 1)·RDP(α) is convex in α, so the chord is an upper bound
    (Wang, Balle & Kasiviswanathan 2019, Corollary 10). dp_accounting's series for fractional orders does not always
    converge, and then only logs it.

    Args:
        noise_multiplier: std / clip, > 0.
        sampling_rate: q in (0, 1].
        orders: α > 1, float64.

    Returns:
        float64, one number for each order.
    """
    largest = min(_LONGEST_SERIES, max(2, math.ceil(orders.max())))
    moments = _poisson_moments(noise_multiplier, sampling_rate, largest)
    out = np.interp(orders, np.arange(1.0, largest + 1), moments) / (orders - 1)
    return np.where(orders <= largest, out, math.inf)


@lru_cache(maxsize=512)
def _poisson_moments(noise_multiplier: float, sampling_rate: float, largest: int) -> ArrayField:
    """(α − 1)·RDP(α) at the orders α = 1, 2 … ``largest``: log Σₖ C(α, k) qᵏ (1 − q)^(α − k) exp(k(k − 1) / 2σ²).

    Mironov, Talwar & Zhang 2019 (arXiv 1908.10530), section 3.3.
    """
    whole, drawn = np.arange(1.0, largest + 1)[:, None], np.arange(largest + 1.0)
    ways = gammaln(whole + 1) - gammaln(drawn + 1) - gammaln(np.maximum(whole - drawn, 0) + 1)
    tossed = xlogy(drawn, sampling_rate) + xlog1py(whole - drawn, -sampling_rate)
    terms = np.where(drawn <= whole, ways + tossed + drawn * (drawn - 1) / (2 * noise_multiplier**2), -math.inf)
    moments: ArrayField = np.maximum(logsumexp(terms, axis=1), 0.0)
    moments[0] = 0.0
    moments.flags.writeable = False
    return moments


def _poisson_revealed(event: events.PoissonGaussian) -> ArrayField:
    from scipy.stats import binom

    others = event.touched_rows - (0 if event.replaced else 1)
    hits = np.arange(others + 1)
    log_weights = binom.logpmf(hits, others, event.sampling_rate)
    if event.replaced:
        return _revealed(np.asarray(2.0 * hits), log_weights, event.noise_multiplier)
    own_in, own_out = math.log(event.sampling_rate), math.log1p(-event.sampling_rate)
    distances = np.concatenate([2.0 * hits, 2.0 * hits + 1])
    return _revealed(distances, np.concatenate([log_weights + own_out, log_weights + own_in]), event.noise_multiplier)


def _revealed(distances: ArrayField, log_weights: ArrayField, noise_multiplier: float) -> ArrayField:
    exponents = RDP_ORDERS[:, None] * (RDP_ORDERS[:, None] - 1) * np.square(distances) / (2 * noise_multiplier**2)
    out: ArrayField = logsumexp(exponents + log_weights, axis=1) / (RDP_ORDERS - 1)
    return out
