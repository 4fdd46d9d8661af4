"""The exact δ and ε of the Gaussian mechanism, computed with logarithms.

For sensitivity Δ₂ and standard deviation s let μ = Δ₂/s. Then (Balle & Wang 2018, Theorem 8; Dong, Roth &
Su 2022, Corollary 2.13)

    δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ),     and n releases compose to μ = √(μ₁² + … + μₙ²).

**Guarantee.** Both are equalities, so nothing is lost. Adaptive composition is included (Dong et al.,
Corollary 3.3).

**Edge cases.** μ = 0 → ε = 0; μ = ∞ → ε = ∞; NaN or negative → ``PrivacyError``; δ ≥ δ(0) → ε = 0;
δ = 0 with μ > 0 → ε = ∞.

What sums of rounded values with discrete Gaussian noise cost: the price of distributed noise behind real secure aggregation.

Every client scales its value to whole steps, rounds it at random (⌊x + U⌋ with U uniform in [0, 1) per entry), and adds
discrete Gaussian noise of standard deviation parameter σ steps. Sums are taken modulo 2^b.

**Rounding.** Let v be the difference of two neighbouring values in steps, ‖v‖₂ ≤ R, in d entries. Give both worlds the same U.
Then entry j of the rounded difference is D_j = ⌊v_j⌋ + B_j, B_j a coin of chance v_j − ⌊v_j⌋, independent over j, so
E D_j² ≤ v_j² + ¼, and D_j² lies in an interval of length |2⌊v_j⌋ + 1| ≤ 2|v_j| + 1. Hoeffding: with probability at least 1 − β

    ‖D‖₂² ≤ R² + d/4 + (2R + √d)·√(ln(1/β)/2),        and always ‖D‖₂ ≤ R + √d.

U does not depend on data, so it may be thought of as published. Where the bound fails (chance β in both worlds) everything
is given up: the release is β-approximately ρ-zCDP (Bun & Steinke 2016, Definition 8.1), and β adds to δ.

**Noise of n honest clients.** A sum of n discrete Gaussians is not one, but nearly (Kairouz, Liu & Steinke 2021, "The
distributed discrete Gaussian mechanism", Theorem 1, its second form): for σ ≥ ½

    ρ = ½·(‖D‖₂/(√n·σ) + τ·√d)²,        τ = 10·Σ_{k=1}^{n−1} exp(−2π²σ²k/(k + 1)).

**Wrap-around** is taken of the noisy sum: post-processing, which is free. It can only cost accuracy. More clients than n add
noise that is independent of the rest: post-processing, too.

**Edge cases.** σ < ½ → ∞ (the theorem says nothing); R = 0 → rounding is still paid for; d = 0 → nothing is released, ρ = 0.

What Gaussian noise on a convex objective costs: GCON's classifier with N(0, σ²) in place of its Gamma noise.

θ_j (one column per class, c of them, d numbers each) minimises (1/n₁)Σᵢ ℓ(zᵢᵀθ_j) + (Λ_tot/2)‖θ_j‖² + (1/n₁)⟨b_j, θ_j⟩ with
b_j ~ N(0, σ²I_d). An edge replaces rows zᵢ by zᵢ', ‖z‖ ≤ 1, Σᵢ ‖zᵢ' − zᵢ‖ ≤ Ψ. |ℓ'| ≤ c₁, |ℓ''| ≤ c₂. Write W = (c₁ + c₂c_θ)Ψ.

**Guarantee.** If every ‖θ_j‖ ≤ c_θ except with probability δ_θ in either world, and |ln det| of the change of variables is
at most ε_Λ (both as for the published noise, ``mechanisms.objective_perturbation``), the exact minimiser is (ε, δ)-DP for every
order α > 1 with

    δ = δ_θ + (1/α)(1 − 1/α)^{α−1} · exp((α − 1)(ε_Λ + cW²/(2σ²) − ε)) · [2·exp(t²/2)·Φ(t)]^c,        t = (α − 1)W/σ.

*Proof.* θ ↦ b is one to one, so the density of θ is that of b(θ) times a determinant. In the other world the same θ needs
b_j' = b_j + V_j, V_j = Σᵢ [zᵢℓ'(zᵢᵀθ_j) − zᵢ'ℓ'(zᵢ'ᵀθ_j)], or −Σᵢ [(zᵢ' − zᵢ)ℓ'(zᵢ'ᵀθ_j) + zᵢ(ℓ'(zᵢ'ᵀθ_j) − ℓ'(zᵢᵀθ_j))].
The loss is Σ_j (2⟨b_j, V_j⟩ + ‖V_j‖²)/(2σ²) + ln det. V_j depends on b_j through θ_j, but in its coefficients only: its
directions zᵢ' − zᵢ and zᵢ are fixed. Where ‖θ_j‖ ≤ c_θ those coefficients are at most c₁ and c₂‖zᵢ' − zᵢ‖c_θ, so

    |⟨b_j, V_j⟩| ≤ Σᵢ ‖zᵢ' − zᵢ‖ (c₁|⟨b_j, dᵢ⟩| + c₂c_θ|⟨b_j, zᵢ⟩|),   dᵢ of length 1, zᵢ of length at most 1,        ‖V_j‖ ≤ W.

Each |⟨b_j, ·⟩| is at most σ|N| in the usual order, and a sum of weights W of such variables is below Wσ|N| in increasing convex
order, for their comonotone sum is the largest (Dhaene et al. 2002, Theorem 7). x ↦ e^{(α−1)x} is increasing and convex and the
b_j are independent, so E e^{(α−1)loss} over ‖θ‖ ≤ c_θ is at most exp((α−1)(ε_Λ + cW²/(2σ²)))·(E e^{t|N|})^c, and
E e^{t|N|} = 2e^{t²/2}Φ(t). Pointwise (1 − e^{−x})₊ ≤ (1/α)(1 − 1/α)^{α−1}·e^{(α−1)x} (its maximum in x), which gives δ; what is
left is the event ‖θ_j‖ > c_θ. Neighbours are a symmetric relation, so the other order is the same statement. □

It is not enough that ‖V_j‖ ≤ W: a field of that length along b_j itself would give ⟨b_j, V_j⟩ ≈ Wσ√d, as with Gamma noise.

**Edge cases.** σ = ∞ → δ_θ. A number that is not finite, or σ ≤ 0 → ``PrivacyError``.
"""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from fedgraph.errors import PrivacyError
from fedgraph.privacy.events import ZCDP, ApproxDP, Composed, Event


def log_delta(epsilon: float, mu: float) -> float:
    """log δ(ε) of the μ-Gaussian mechanism; −∞ when δ underflows even as a logarithm.

    ε ≥ 0, μ > 0 finite. Uses log Φ(a) + log(1 − e^x), x = ε + log Φ(b) − log Φ(a) ≤ 0.
    """
    a = mu / 2 - epsilon / mu
    b = -mu / 2 - epsilon / mu
    log_a = float(log_ndtr(a))
    x = epsilon + float(log_ndtr(b)) - log_a
    if x >= 0:  # the two terms agree to rounding: δ is below what this ε can resolve
        return -math.inf
    return log_a + math.log(-math.expm1(x))


def epsilon(mu: float, delta: float) -> float:
    """Smallest ε ≥ 0 with δ(ε) ≤ delta, to one part in 10⁹, rounded up where double precision resolves δ(ε).

    For μ below about 1e-9 together with δ below about 1e-12 it does not, and δ(ε) may be missed by rounding.

    Args:
        mu: Δ₂/s of everything together, ≥ 0; ∞ → ∞.
        delta: in [0, 1]; 0 → ∞ unless μ = 0.

    Raises:
        PrivacyError: NaN or a number out of range.
    """
    if math.isnan(mu) or mu < 0 or math.isnan(delta) or not 0 <= delta <= 1:
        raise PrivacyError(f"need mu ≥ 0 and 0 ≤ delta ≤ 1, found mu={mu}, delta={delta}")
    if mu == 0:
        return 0.0
    if math.isinf(mu) or delta == 0:
        return math.inf
    target = math.log(delta)
    if log_delta(0.0, mu) <= target:
        return 0.0
    high = max(1.0, mu * mu)
    while log_delta(high, mu) > target:
        high *= 2
    root = brentq(lambda e: max(log_delta(e, mu), -1e300) - target, 0.0, high, xtol=1e-14 * max(high, 1e-6), rtol=1e-14)
    for step in (1e-13, 1e-12, 1e-11, 1e-10):
        candidate = root * (1 + step) + 1e-300
        if log_delta(candidate, mu) <= target:
            return float(candidate)
    return float(root * (1 + 1e-9))


def total_mu(noise_multipliers: np.ndarray, counts: np.ndarray) -> float:
    """√Σ countᵢ / multiplierᵢ²; a zero multiplier gives ∞, an infinite one contributes 0."""
    with np.errstate(divide="ignore"):
        return float(np.sqrt(np.sum(counts / np.square(noise_multipliers))))


def moments_epsilon(mu: float, delta: float) -> float:
    """ε as papers publish it: μ²/2 + μ√(2 ln 1/δ), the closed form of the moments accountant.

    min over α of αμ²/2 + ln(1/δ)/(α − 1) (Mironov 2017, Propositions 3 and 7; with μ = √K/σ this is GAP's
    formula). An upper bound on ``epsilon(mu, delta)``.
    """
    return mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta))


def moments_mu(target: float, delta: float) -> float:
    """The largest μ with ``moments_epsilon(μ, δ) ≤ target``: √(s² + 2ε) − s with s = √(2 ln 1/δ), rounded down."""
    s = math.sqrt(2 * math.log(1 / delta))
    return 2 * target / (math.sqrt(s * s + 2 * target) + s) * (1 - 1e-12)


FRACTION = 2.0**16  # values are first rounded to this part of a step, so that everything after is exact


def rounded_sensitivity(norm: float, dimension: int, failure: float) -> float:
    """The L2 norm, in steps, that a rounded difference exceeds with chance at most ``failure``.

    norm: R, of the difference before rounding, in steps. dimension: d. failure: β in (0, 1).

    >>> round(rounded_sensitivity(1000.0, 10_000, 1e-12), 2)
    1005.14
    """
    if not (math.isfinite(norm) and norm >= 0 and dimension >= 0 and 0 < failure < 1):
        raise PrivacyError(f"need norm ≥ 0, dimension ≥ 0 and 0 < failure < 1, found {norm}, {dimension} and {failure}")
    root = math.sqrt(dimension)
    exact = norm + root / FRACTION  # two values, each within half a fraction
    likely = math.sqrt(exact**2 + dimension / 4 + (2 * exact + root) * math.sqrt(-math.log(failure) / 2))
    return min(likely, exact + root)


def tau(std: float, shares: int) -> float:
    """How far the sum of ``shares`` discrete Gaussians of parameter ``std`` is from one: τ of the theorem."""
    terms = np.arange(1, shares, dtype=np.float64)
    return 10.0 * float(np.exp(-2 * (math.pi * std) ** 2 * terms / (terms + 1)).sum())


def rho(norm: float, std: float, shares: int, dimension: int) -> float:
    """ρ of a sum with ``shares`` discrete Gaussians: ½(norm/(√shares·std) + τ√dimension)², ∞ for std < ½.

    Args:
        norm: the largest L2 norm of a difference of whole numbers, in steps.
        std: parameter σ of one share, in steps, > 0.
        shares: honest clients, ≥ 1.
        dimension: entries, ≥ 0.

    Raises:
        PrivacyError: no share, or noise that is not > 0.
    """
    if shares < 1 or not std > 0:
        raise PrivacyError(f"need at least one share of noise with std > 0, found {shares} of {std}")
    if std < 0.5:
        return math.inf
    return 0.5 * (norm / (math.sqrt(shares) * std) + tau(std, shares) * math.sqrt(dimension)) ** 2


def event(norm: float, std: float, shares: int, dimension: int, failure: float) -> Event:
    """What one such sum costs. norm: R, of the difference before rounding, in steps."""
    if not dimension:
        return Composed(())
    return Composed((ZCDP(rho(rounded_sensitivity(norm, dimension, failure), std, shares, dimension)), ApproxDP(0.0, failure)))


ORDERS = 1 + np.geomspace(1e-3, 1e6, 2000)


def delta(epsilon: float, std: float, change: float, classes: int, log_determinant: float, missed: float = 0.0) -> float:
    """δ at ``epsilon``, the best order taken.

    std: σ of b per entry. change: W. classes: c. log_determinant: ε_Λ. missed: δ_θ.

    >>> delta(1.0, 20.0, 1.0, 7, 0.1) < 1e-3 < delta(1.0, 5.0, 1.0, 7, 0.1)
    True
    """
    if not (std > 0 and all(math.isfinite(x) and x >= 0 for x in (epsilon, change, log_determinant, missed)) and classes >= 1):
        raise PrivacyError("σ must be > 0, classes ≥ 1, and ε, W, ε_Λ, δ_θ finite numbers ≥ 0")
    if math.isinf(std):
        return missed if log_determinant <= epsilon else 1.0
    more = ORDERS - 1
    t = more * change / std
    logs = (
        -np.log(ORDERS)
        + more * np.log1p(-1 / ORDERS)
        + more * (log_determinant + classes * change**2 / (2 * std**2) - epsilon)
        + classes * (math.log(2) + t**2 / 2 + log_ndtr(t))
    )
    return min(1.0, missed + math.exp(min(0.0, float(logs.min()))))


def noise_std(epsilon: float, target: float, change: float, classes: int, log_determinant: float, missed: float = 0.0) -> float:
    """The smallest σ (to one part in 10⁶, from above) with δ ≤ ``target``; ``PrivacyError`` where no noise is enough."""
    if missed >= target or log_determinant >= epsilon:
        raise PrivacyError(f"no noise gives ε = {epsilon}: ε_Λ = {log_determinant}, δ_θ = {missed} of δ = {target} are spent")

    def gap(log_std: float) -> float:
        return math.log(
            delta(epsilon, math.exp(log_std), change, classes, log_determinant, missed) - missed + 1e-300
        ) - math.log(target - missed)

    low, high = math.log(change) - 10, math.log(change) + 25
    return math.exp(brentq(gap, low, high, xtol=1e-7)) * (1 + 1e-6)
