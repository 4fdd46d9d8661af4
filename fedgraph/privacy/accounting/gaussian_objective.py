"""What Gaussian noise on a convex objective costs: GCON's classifier with N(0, σ²) in place of its Gamma noise.

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
