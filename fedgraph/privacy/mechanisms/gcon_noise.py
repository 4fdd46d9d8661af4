"""GCON: edge-level objective perturbation, its constants as pure functions (used by the method itself).

Ã_uv = min(1/(k_u + 1), p), p ≤ ½, diagonal = remainder; Z_{t+1} = (1−a)ÃZ_t + aX, rows of X at most unit norm.

    Ψ(Z_m) = 4p(1−a)/a · [1 − (1−a)^m]   (m = ∞: no bracket),      Ψ = (1/s) Σ Ψ(Z_{mᵢ})
    c_sf   = the 1 − δ/c quantile of Gamma(d, 1)
    c_θ    = (n₁ωε c₁ + c c₁ Ψ c_sf) / (n₁ωε Λ − c c₂ Ψ c_sf),     needs Λ > c c₂ Ψ c_sf/(n₁ωε)
    ε_Λ    = c d ln(1 + (2c₂ + c₃c_θ)Ψ / (d n₁(Λ + Λ')))
    Λ'     = 0 if ε_Λ ≤ (1−ω)ε at Λ' = 0, else max(0, c(2c₂ + c₃c_θ)Ψ/(n₁(1−ω)ε) − Λ)
    β      = max(ε − ε_Λ, ωε) / (c (c₁ + c₂c_θ) Ψ)

Each of the c noise columns has a uniform direction and norm ~ Gamma(d, 1/β).

With a public prior, (Λ + Λ')/2·‖Θ − Θ₀‖² in place of (Λ + Λ')/2·‖Θ‖², columns of Θ₀ of norm ≤ r, stationarity gives
‖θ‖ ≤ r + (c₁ + ‖b‖/n₁)/Λ, so c_θ gains n₁ωεΛr in its numerator; nothing else changes (r = 0: as published).

**Guarantee.** (ε, δ), edge-undirected, features and labels public, for the **exact** minimiser. An
approximate one (gradient norm ≤ g) is another output: add Gaussian noise for Δ₂ = 2g/(Λ + Λ') and charge
it (Iyengar et al. 2019). Private-graph inference assumes that the asking node may see its own edges.

**Edge cases.** p outside (0, ½], a outside (0, 1], m < 0, Λ below its condition, ω outside (0, 1), or
anything not finite and > 0 where that is needed → ``PrivacyError``. a = 1 or m = 0 → Ψ = 0 → ε spent 0,
β = ∞ (no noise is needed, as no edge is used).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from fedgraph.errors import PrivacyError
from fedgraph.privacy.fields import require_positive


@dataclass(frozen=True)
class GconLossBounds:
    """Suprema of the absolute value of the loss's derivatives."""

    c1: float  # of the first
    c2: float  # of the second
    c3: float  # of the third


def gcon_soft_margin(num_classes: int) -> GconLossBounds:
    """Multi-label soft margin: (1/c, 1/(4c), 1/(6√3 c))."""
    require_positive("num_classes", num_classes)
    return GconLossBounds(1 / num_classes, 1 / (4 * num_classes), 1 / (6 * math.sqrt(3) * num_classes))


def gcon_pseudo_huber(num_classes: int, width: float) -> GconLossBounds:
    """Pseudo-Huber: (δ_l/c, 1/c, 48√5/(125 c δ_l)).

    num_classes: c ≥ 1. width: δ_l > 0. ``PrivacyError``: a number that is not finite and > 0.
    """
    require_positive("num_classes", num_classes)
    require_positive("width", width)
    return GconLossBounds(width / num_classes, 1 / num_classes, 48 * math.sqrt(5) / (125 * num_classes * width))


def claimed_gcon_psi(steps: Sequence[float], restart: float, cap: float = 0.5) -> float:
    """Ψ: sensitivity (sum over rows of L2 changes) of Z = (1/s) ⊕ Z_{mᵢ}; 0 where no edge is used.

    Args:
        steps: m₁ … m_s ≥ 0, math.inf allowed.
        restart: a in (0, 1].
        cap: p in (0, ½].

    Raises:
        PrivacyError: a number out of its range, or no step.
    """
    if not 0 < restart <= 1 or not 0 < cap <= 0.5 or not steps or any(math.isnan(m) or m < 0 for m in steps):
        raise PrivacyError(f"need 0 < restart ≤ 1, 0 < cap ≤ ½ and steps ≥ 0, found {restart}, {cap}, {list(steps)}")
    each = [1.0 if math.isinf(m) else 1 - (1 - restart) ** m for m in steps]
    return 4 * cap * (1 - restart) / restart * sum(each) / len(each)


@dataclass(frozen=True)
class Situation:
    """The sensitivity that noise in the objective must cover, and its budget.

    Attributes:
        epsilon: ε of one edge, > 0.
        delta: δ of one edge, in (0, 1).
        share: ω in (0, 1), the least share of ε for the noise.
        bounds: of the loss.
        sensitivity: Ψ ≥ 0.
        num_classes: c ≥ 1.
        dimension: d ≥ 1, columns of Z.
        num_labelled: n₁ ≥ 1.
        prior_norm: r ≥ 0, the largest norm of a column of Θ₀.
        per_end: whether two clients may each make such a release because of one edge, so that an event prices one end of it.
    """

    epsilon: float
    delta: float
    share: float
    bounds: GconLossBounds
    sensitivity: float
    num_classes: int
    dimension: int
    num_labelled: int
    prior_norm: float = 0.0
    per_end: bool = field(kw_only=True)

    @property
    def c_sf(self) -> float:
        """The 1 − δ/c quantile of Gamma(d, 1)."""
        from scipy.stats import gamma  # its import takes half a second

        return float(gamma.isf(self.delta / self.num_classes, self.dimension))


def least_regulariser(given: Situation) -> float:
    """c c₂ Ψ c_sf/(n₁ωε): Λ must exceed it."""
    spent = given.num_labelled * given.share * given.epsilon
    return given.num_classes * given.bounds.c2 * given.sensitivity * given.c_sf / spent


@dataclass(frozen=True)
class GconPerturbation:
    """The noise and regulariser that GCON adds to the objective; its total regulariser is Λ + Λ'."""

    psi: float  # Ψ
    c_sf: float  # the 1 − δ/c quantile of Gamma(d, 1)
    c_theta: float  # c_θ, which bounds the norm of every column of Θ but with probability δ
    epsilon_lambda: float  # ε_Λ, for the change of variables
    extra_regulariser: float  # Λ' ≥ 0
    beta: float  # β, the rate of the norm of a noise column; ∞: no noise


def gcon_perturbation(given: Situation, regulariser: float) -> GconPerturbation:
    """All constants of noise that keeps (ε, δ) of a situation; its ends are not priced here.

    Args:
        given: what has to be hidden, and what it may cost.
        regulariser: Λ > 0.

    Raises:
        PrivacyError: a number is out of its range, or Λ is not above ``least_regulariser``, which the text names.
    """
    for name, value in (("epsilon", given.epsilon), ("delta", given.delta), ("regulariser", regulariser)):
        require_positive(name, value)
    if not 0 <= given.prior_norm < math.inf:
        raise PrivacyError(f"prior_norm is a number ≥ 0, found {given.prior_norm}")
    c, d, n, share, sensitivity = given.num_classes, given.dimension, given.num_labelled, given.share, given.sensitivity
    if not (0 < share < 1 and given.delta < 1 and 0 <= sensitivity < math.inf and min(c, d, n) >= 1):
        raise PrivacyError("need 0 < share < 1, delta < 1, a finite sensitivity ≥ 0 and at least one class, feature and label")
    epsilon, bounds, c_sf = given.epsilon, given.bounds, given.c_sf
    spent = n * share * epsilon
    slack = spent * regulariser - c * bounds.c2 * sensitivity * c_sf
    if slack <= 0:
        needed = c * bounds.c2 * sensitivity * c_sf / spent
        raise PrivacyError(f"the regulariser Λ = {regulariser:.6g} must exceed {needed:.6g} here: raise Λ, ε or ω")
    c_theta = (spent * (bounds.c1 + regulariser * given.prior_norm) + c * bounds.c1 * sensitivity * c_sf) / slack
    curvature = (2 * bounds.c2 + bounds.c3 * c_theta) * sensitivity

    def cost(extra: float) -> float:
        return c * d * math.log1p(curvature / (d * n * (regulariser + extra)))

    extra = 0.0
    if cost(0.0) > (1 - share) * epsilon:
        extra = max(0.0, c * curvature / (n * (1 - share) * epsilon) - regulariser)
    scale = c * (bounds.c1 + bounds.c2 * c_theta) * sensitivity
    left = max(epsilon - cost(extra), share * epsilon)
    return GconPerturbation(sensitivity, c_sf, c_theta, cost(extra), extra, left / scale if scale > 0 else math.inf)


def gcon_end_epsilon(made: GconPerturbation, given: Situation, total_regulariser: float) -> float:
    """What one *end* of an edge costs under some noise: the same terms at sensitivity Ψ/2, ΔB and ln det ratio.

    An inner edge costs at most twice this, because ln(1 + x) ≤ 2 ln(1 + x/2).

    made: the noise, with a finite β. given: what it was made for. total_regulariser: Λ + Λ′ > 0.
    """
    c, d, bounds, half = given.num_classes, given.dimension, given.bounds, made.psi / 2
    shift = c * (bounds.c1 + bounds.c2 * made.c_theta) * half * made.beta
    curvature = (2 * bounds.c2 + bounds.c3 * made.c_theta) * half
    return shift + c * d * math.log1p(curvature / (d * given.num_labelled * total_regulariser))


def gcon_output_sensitivity(gradient_norm: float, total_regulariser: float) -> float:
    """Δ₂ = 2g/(Λ + Λ') between two approximate minimisers' distances to their exact ones.

    gradient_norm: g ≥ 0, that a minimiser is accepted with. total_regulariser: Λ + Λ' > 0. ``PrivacyError``: a number out of
    its range, or NaN.
    """
    require_positive("total_regulariser", total_regulariser)
    if math.isnan(gradient_norm) or gradient_norm < 0:
        raise PrivacyError(f"a gradient norm is a number ≥ 0, found {gradient_norm}")
    return 2 * gradient_norm / total_regulariser
