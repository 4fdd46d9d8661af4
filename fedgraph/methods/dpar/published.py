"""DPAR (Zhang et al., WWW 2024): the published budget, the ε that its noise really gives, and why they differ.

Published (Theorems 1-3 there): noise for the M APPR vectors from one vector's share

    ε_v = ε_pr / (2√(M ln(e + ε_pr/δ_pr))),    δ_v = δ_pr/(2M),
    GM:  σ_pr = √(2 ln(1.25/δ_v))·C1/ε_v,
    EM:  ε_v = 2·min{Kε, Kε(e^{2ε} − 1)/(e^{2ε} + 1) + ε√(2K ln(1/δ_v))}  (+ ε₂ for Laplace values, EM1),
    SGD: Rényi moments of the Poisson Gaussian with q = B/N', ε = RDP + ln(1/δ)/(α − 1) at the best of the released code's
         orders 1.1, 1.2 … 10.9 and 12, 13 … 63,
    total: q'·(ε_pr + ε_sgd).

Why that is no proof: PRIVACY §4.

**Guarantee** of the provable rows: node-level, viewer sees every step, Π and the sampled ids stay inside;
relation and B' as the row says. With one-time sampling, replace is amplified like zero-out here: by joint
convexity the bound needs the distance to "replaced" and to "not sampled", and "not sampled" equals one
replacement (the zeroed node). The lower bounds are for a worst-case data set and a viewer of every step
(in a federation the server); for a final model alone they bound the accounting, not that model.

**Edge cases.** Arguments must be finite and > 0 (``PrivacyError``).
"""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp

from fedgraph.errors import PrivacyError
from fedgraph.privacy import ArrayField, rdp, require_positive

_FRACTIONS = 1 + np.arange(1, 100) / 10  # Emory-AIMS/DPAR, dpgnn/utils.py, commit 62159715
_WHOLE_ORDERS = np.arange(12.0, 64.0)
_ORDERS = np.concatenate([_FRACTIONS, _WHOLE_ORDERS])
_POINTS = 4001


def claimed_dpar_vector_budget(epsilon: float, delta: float, num_vectors: int) -> tuple[float, float]:
    """(ε_v, δ_v) of one of several vectors (Kairouz, Oh & Viswanath 2017, as the paper uses it).
    epsilon: ε_pr of all vectors, > 0. delta: δ_pr of all vectors, > 0. num_vectors: M ≥ 1. Raises ``PrivacyError``: ε or δ is
    not finite and > 0.
    """
    require_positive("epsilon", epsilon)
    require_positive("delta", delta)
    return epsilon / (2 * math.sqrt(num_vectors * math.log(math.e + epsilon / delta))), delta / (2 * num_vectors)


def claimed_dpar_gm_multiplier(epsilon: float, delta: float, num_vectors: int) -> float:
    """σ_pr / C1 of the published GM option.
    epsilon: ε_pr of all vectors, > 0. delta: δ_pr of all vectors, > 0. num_vectors: M ≥ 1. Raises ``PrivacyError``: ε or δ is
    not finite and > 0.
    """
    each, each_delta = claimed_dpar_vector_budget(epsilon, delta, num_vectors)
    return math.sqrt(2 * math.log(1.25 / each_delta)) / each


def claimed_dpar_em_epsilon(base: float, top: int, delta: float) -> float:
    """The corollary: ε of the one-shot Gumbel top-k with scale Δ/base.
    base: ε of the formula in the module, half of the bounded range of one pick. top: K ≥ 1. delta: δ_v in (0, 1).
    """
    slope = math.tanh(base)
    return 2 * min(top * base, top * base * slope + base * math.sqrt(2 * top * math.log(1 / delta)))


def claimed_dpar_em_base(epsilon: float, top: int, delta: float) -> float:
    """The base whose corollary gives an ε; the Gumbel scale is then Δ/base.
    epsilon: ε_v, > 0. top: K ≥ 1. delta: δ_v in (0, 1). Raises ``PrivacyError``: ε is not finite and > 0.
    """
    require_positive("epsilon", epsilon)
    return float(brentq(lambda b: claimed_dpar_em_epsilon(b, top, delta) - epsilon, 0.0, epsilon, xtol=1e-14))


def _moments(noise_multiplier: float, sampling_rate: float) -> ArrayField:
    """Rényi divergence of one step at each of ``_ORDERS``, as the authors have it: at fractional orders the integral itself.

    ``rdp.of_poisson_row`` takes the chord between whole orders there, which is an upper bound and up to 1 % more noise.
    """
    whole = rdp.of_poisson_row(noise_multiplier, sampling_rate, _WHOLE_ORDERS)
    if sampling_rate == 1:
        return np.concatenate([_FRACTIONS / (2 * noise_multiplier**2), whole])
    x = np.linspace(-12 * noise_multiplier, _FRACTIONS[-1] + 12 * noise_multiplier, _POINTS)
    log_density = -np.square(x / noise_multiplier) / 2 - math.log(noise_multiplier * math.sqrt(2 * math.pi))
    ratio = np.logaddexp(math.log1p(-sampling_rate), math.log(sampling_rate) + (2 * x - 1) / (2 * noise_multiplier**2))
    log_mean = logsumexp(log_density + _FRACTIONS[:, None] * ratio, axis=1) + math.log(x[1] - x[0])
    return np.concatenate([log_mean / (_FRACTIONS - 1), whole])


def claimed_dpar_sgd_epsilon(noise_multiplier: float, sampling_rate: float, steps: int, delta: float) -> float:
    """The authors' accountant: Rényi moments at the orders 1.1 … 10.9 and 12 … 63, ε = RDP + ln(1/δ)/(α − 1).
    noise_multiplier: σ / C, > 0. sampling_rate: q of Poisson batches, in (0, 1]. delta: δ_sgd in (0, 1).
    """
    moments = steps * _moments(noise_multiplier, sampling_rate)
    return float(np.min(moments + math.log(1 / delta) / (_ORDERS - 1)))


def claimed_dpar_sgd_multiplier(epsilon: float, sampling_rate: float, steps: int, delta: float) -> float:
    """The σ / C for which ``claimed_dpar_sgd_epsilon`` returns a given ε.

    epsilon: ε_sgd, above ln(1/δ)/62, the least that orders up to 63 can show. sampling_rate: q of Poisson batches, in (0, 1].
    delta: δ_sgd in (0, 1). Raises ``PrivacyError``: ε is out of that range.

    >>> round(claimed_dpar_sgd_multiplier(8 / 2 / 0.09, 60 / 210, 800, 1e-3 / 0.09), 3)  # Cora-ML at ε = 8
    1.291
    """
    require_positive("epsilon", epsilon)
    floor = math.log(1 / delta) / (_ORDERS[-1] - 1)
    if epsilon <= floor * (1 + 1e-6):
        raise PrivacyError(f"with orders up to 63 the authors' accountant cannot be below {floor:.6g}, asked for {epsilon}")

    def gap(log_sigma: float) -> float:
        return math.log(claimed_dpar_sgd_epsilon(math.exp(log_sigma), sampling_rate, steps, delta) / epsilon)

    return math.exp(brentq(gap, math.log(0.1), math.log(1e4), xtol=1e-10))


def claimed_dpar_total_epsilon(sampled: float, epsilon_pr: float, epsilon_sgd: float) -> float:
    """q'·(ε_pr + ε_sgd)."""
    return sampled * (epsilon_pr + epsilon_sgd)
