"""DPAR (Zhang et al., WWW 2024): the published budget, the ε that its noise really gives, and why they differ.

Published (Theorems 1-3 there): noise for the M APPR vectors from one vector's share

    ε_v = ε_pr / (2√(M ln(e + ε_pr/δ_pr))),    δ_v = δ_pr/(2M),
    GM:  σ_pr = √(2 ln(1.25/δ_v))·C1/ε_v,
    EM:  ε_v = 2·min{Kε, Kε(e^{2ε} − 1)/(e^{2ε} + 1) + ε√(2K ln(1/δ_v))}  (+ ε₂ for Laplace values, EM1),
    SGD: Rényi moments of the Poisson Gaussian with q = B/N' (as coded), ε = RDP + ln(1/δ)/(α − 1),
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
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from fedgraph.errors import PrivacyError
from fedgraph.privacy import events
from fedgraph.privacy.accounting import rdp
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.accounting.amplification import amplified_epsilon
from fedgraph.privacy.claims.claim import Claim
from fedgraph.privacy.fields import require_positive

# The one calibration of PRIVACY §4 (Cora-ML).
DELTA, SAMPLED, SOURCES, _TOP, STEPS, _EPOCHS, BATCH, ROWS = 2e-3, 0.09, 70, 2, 800, 200, 60, 210
RATE = BATCH / ROWS
_WHOLE_ORDERS = np.arange(2.0, 64.0)
PAPER = "DPAR (WWW 2024)"
_EXACT = "the exact worst case, to one part in 10³"


def claimed_dpar_vector_budget(epsilon: float, delta: float, num_vectors: int) -> tuple[float, float]:
    """(ε_v, δ_v) of one of several vectors (Kairouz, Oh & Viswanath 2017, as the paper uses it).

    Args:
        epsilon: ε_pr of all vectors, > 0.
        delta: δ_pr of all vectors, > 0.
        num_vectors: M ≥ 1.

    Raises:
        PrivacyError: ε or δ is not finite and > 0.
    """
    require_positive("epsilon", epsilon)
    require_positive("delta", delta)
    return epsilon / (2 * math.sqrt(num_vectors * math.log(math.e + epsilon / delta))), delta / (2 * num_vectors)


def claimed_dpar_gm_multiplier(epsilon: float, delta: float, num_vectors: int) -> float:
    """σ_pr / C1 of the published GM option.

    Args:
        epsilon: ε_pr of all vectors, > 0.
        delta: δ_pr of all vectors, > 0.
        num_vectors: M ≥ 1.

    Raises:
        PrivacyError: ε or δ is not finite and > 0.
    """
    each, each_delta = claimed_dpar_vector_budget(epsilon, delta, num_vectors)
    return math.sqrt(2 * math.log(1.25 / each_delta)) / each


def claimed_dpar_em_epsilon(base: float, top: int, delta: float) -> float:
    """The corollary: ε of the one-shot Gumbel top-k with scale Δ/base.

    Args:
        base: ε of the formula in the module, half of the bounded range of one pick.
        top: K ≥ 1.
        delta: δ_v in (0, 1).
    """
    slope = math.tanh(base)
    return 2 * min(top * base, top * base * slope + base * math.sqrt(2 * top * math.log(1 / delta)))


def claimed_dpar_em_base(epsilon: float, top: int, delta: float) -> float:
    """The base whose corollary gives an ε; the Gumbel scale is then Δ/base.

    Args:
        epsilon: ε_v, > 0.
        top: K ≥ 1.
        delta: δ_v in (0, 1).

    Raises:
        PrivacyError: ε is not finite and > 0.
    """
    require_positive("epsilon", epsilon)
    return float(brentq(lambda b: claimed_dpar_em_epsilon(b, top, delta) - epsilon, 0.0, epsilon, xtol=1e-14))


def claimed_dpar_sgd_epsilon(noise_multiplier: float, sampling_rate: float, steps: int, delta: float) -> float:
    """The authors' accountant: Rényi moments at whole orders 2-63, ε = RDP + ln(1/δ)/(α − 1).

    Args:
        noise_multiplier: σ / C, > 0.
        sampling_rate: q of Poisson batches, in (0, 1].
        steps: T.
        delta: δ_sgd in (0, 1).
    """
    moments = steps * rdp.rdp_of_poisson_row(noise_multiplier, sampling_rate, _WHOLE_ORDERS)
    return float(np.min(moments + math.log(1 / delta) / (_WHOLE_ORDERS - 1)))


def claimed_dpar_sgd_multiplier(epsilon: float, sampling_rate: float, steps: int, delta: float) -> float:
    """The σ / C for which ``claimed_dpar_sgd_epsilon`` returns a given ε.

    Args:
        epsilon: ε_sgd, above ln(1/δ)/62, the least that whole orders up to 63 can show.
        sampling_rate: q of Poisson batches, in (0, 1].
        steps: T.
        delta: δ_sgd in (0, 1).

    Raises:
        PrivacyError: ε is out of that range.
    """
    require_positive("epsilon", epsilon)
    floor = math.log(1 / delta) / (_WHOLE_ORDERS[-1] - 1)
    if epsilon <= floor * (1 + 1e-6):
        raise PrivacyError(f"with orders up to 63 the authors' accountant cannot be below {floor:.6g}, asked for {epsilon}")

    def gap(log_sigma: float) -> float:
        return math.log(claimed_dpar_sgd_epsilon(math.exp(log_sigma), sampling_rate, steps, delta) / epsilon)

    return math.exp(brentq(gap, math.log(0.1), math.log(1e4), xtol=1e-10))


def claimed_dpar_total_epsilon(sampled: float, epsilon_pr: float, epsilon_sgd: float) -> float:
    """q'·(ε_pr + ε_sgd)."""
    return sampled * (epsilon_pr + epsilon_sgd)


def rows() -> list[Claim]:
    """The table of PRIVACY §4, both columns under the one calibration, then EM0 and EM1."""
    return [*_table(1.0), *_table(8.0)]


def _table(claimed: float) -> list[Claim]:
    half, half_delta = claimed / SAMPLED / 2, 1e-3 / SAMPLED
    sigma = claimed_dpar_sgd_multiplier(half, RATE, STEPS, half_delta)
    pr = claimed_dpar_gm_multiplier(half, half_delta, SOURCES)
    inputs = _inputs(half, half_delta, sigma, pr)
    steps = _steps(sigma)

    def line(mechanism: str, kind: str, epsilon: float, explanation: str) -> Claim:
        return Claim(PAPER, mechanism, claimed, DELTA, explanation, inputs, **{kind: epsilon})

    def once(vectors: events.Event, training: events.Event) -> float:
        return price(events.SampledOnce(events.Composed((vectors, training)), SAMPLED), DELTA).epsilon

    def alone(training: events.Event) -> float:
        return price(events.SampledOnce(training, SAMPLED), DELTA).epsilon

    published, provable, lower = "epsilon_published", "epsilon_provable", "epsilon_lower_bound"
    paper, sound = events.Repeated(events.Gaussian(pr), SOURCES), events.Repeated(events.Gaussian(pr / math.sqrt(2)), SOURCES)
    inner = half + claimed_dpar_sgd_epsilon(sigma, RATE, STEPS, half_delta)
    revealed = ((events.PoissonGaussian(sigma, RATE, 4, True), STEPS), (events.Gaussian(pr / math.sqrt(2)), SOURCES))
    elementary = amplified_epsilon(rdp.epsilon(revealed, DELTA / SAMPLED)[0], SAMPLED)
    same = amplified_epsilon(inner, SAMPLED)
    poisson, fixed = alone(steps["poisson"]), alone(steps["fixed"])
    return [
        line("GM: q'(ε_pr + ε_sgd)", published, SAMPLED * inner, "the published total; q'·ε is not an upper bound"),
        line("GM: inner ε before q'", published, inner, "ε_pr + ε_sgd on the sampled graph"),
        line("GM: same blocks, correct amplification", published, same, "ln(1 + q'(e^ε − 1)), once"),
        line("GM: tight accounting, paper's own sensitivities", published, once(paper, steps["poisson"]), "C1, C, Poisson"),
        line("SGD alone, Poisson, sensitivity C", lower, poisson, f"zero-out, worst data, every step seen; {_EXACT}"),
        line("SGD alone, as coded (fixed batches), own row only", lower, fixed, f"one visit per epoch, μ = √200/σ; {_EXACT}"),
        line("GM: zero-out, √2·C1, B' = 1, Poisson", provable, once(sound, steps["poisson"]), "needs B' = 1 enforced"),
        line("GM: zero-out, √2·C1, B' = 2, Poisson", provable, once(sound, steps["zero-out 2"]), "needs B' ≤ 2 enforced"),
        line("GM: replace, √2·C1, B' = 1, Poisson", provable, once(sound, steps["replace 1"]), "one row moves by 2C"),
        line("GM: replace, B' = 4, mixture pair", provable, once(sound, steps["replace 4"]), "the pair of mixture.py"),
        line("GM: replace, B' = 4, elementary", provable, elementary, "coins revealed, Rényi"),
        line("GM: as coded (fixed batches), B' = 4", provable, once(sound, steps["fixed 4"]), "μ = 2·4·√200/σ, one batch"),
        *_exponential(claimed, half, half_delta, sigma, once),
    ]


def _inputs(half: float, half_delta: float, sigma: float, pr: float) -> dict[str, float | str]:
    return {
        "accountant of the authors": "Rényi, whole orders 2-63, ε = RDP + ln(1/δ)/(α−1)", "delta": DELTA,
        "delta_sgd": half_delta, "delta_pr": half_delta, "epsilon_sgd": half, "epsilon_pr": half, "q'": SAMPLED, "N'": ROWS,
        "B": BATCH, "q": RATE, "T": STEPS, "M": SOURCES, "K": _TOP, "sigma_sgd / C": sigma, "sigma_pr / C1": pr,
    }  # fmt: skip


def _steps(sigma: float) -> dict[str, events.Event]:
    return {
        "poisson": events.Repeated(events.PoissonGaussian(sigma, RATE, touched_rows=1, replaced=False), STEPS),
        "zero-out 2": events.Repeated(events.PoissonGaussian(sigma, RATE, 2, replaced=False), STEPS),
        "replace 1": events.Repeated(events.PoissonGaussian(sigma, RATE, 1, True), STEPS),
        "replace 4": events.Repeated(events.PoissonGaussian(sigma, RATE, 4, True), STEPS),
        "fixed": events.Repeated(events.Gaussian(sigma), _EPOCHS),
        "fixed 4": events.Repeated(events.Gaussian(sigma / 8), _EPOCHS),
    }


def _exponential(
    claimed: float, half: float, half_delta: float, sigma: float, once: Callable[[events.Event, events.Event], float]
) -> list[Claim]:
    """EM0 and EM1: scale Δ/base is 2Δ/ε₀ with ε₀ = 2·base, so each pick is 2·base-bounded-range."""
    each, each_delta = claimed_dpar_vector_budget(half, half_delta, SOURCES)
    training = events.Repeated(events.PoissonGaussian(sigma, RATE, 1, True), STEPS)
    out = []
    for name, share in (("EM0", 1.0), ("EM1", 0.5)):
        base = claimed_dpar_em_base(each * share, _TOP, each_delta)
        picks = events.Repeated(events.BoundedRange(2 * base), SOURCES * _TOP)
        values = events.Repeated(events.PureDP(each * (1 - share) / _TOP), SOURCES * _TOP)
        inputs = _inputs(half, half_delta, sigma, math.nan)
        del inputs["sigma_pr / C1"]
        inputs |= {"epsilon_v": each, "Gumbel scale / C2": 1 / base}
        if share < 1:
            inputs["Laplace scale / C2"] = _TOP / (each * (1 - share))
        words = "published: the corollary outside its range and q'·ε; provable: bounded range per pick"
        words += ", Laplace values as pure ε" if share < 1 else ""
        provable = once(events.Composed((picks, values)), training)
        out.append(Claim(PAPER, f"{name}: replace, B' = 1, Poisson", claimed, DELTA, words, inputs, claimed, provable))
    return out
