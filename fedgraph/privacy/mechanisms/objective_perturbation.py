"""Objective perturbation: noise is added to a convex objective, and its exact minimiser is released.

    F(Θ) = (1/n₁) Σᵢ L(Θ; zᵢ, yᵢ) + (Λ/2)‖Θ − Θ₀‖² + ⟨B, Θ⟩/n₁,     Θ, B ∈ R^(d×c)     (GCON, Theorem 1: Θ₀ = 0)

Rows zᵢ have norm at most 1. An edge changes them by at most Ψ in all (``psi``); the loss has derivatives of at most c₁, c₂, c₃
(``LossBounds``). Each column of B has a uniform direction and a norm ~ Gamma(d, 1/β), i.e. a density ∝ e^(−β‖b‖), as published;
or, ``gaussian``, all entries of B are independent N(0, σ²). ``calibrated`` finds all constants of one release.

Where two clients know an edge, either's Z changes because of it, by Ψ/2 (``propagation.walks``, open walk). ``per_end``
prices one end; an inner edge, which changes Z by Ψ at one client, costs no more than two of them.

**Guarantee.** (ε, δ), edge-undirected, features and labels public: (ε₁, δ₁) for the exact minimiser and (ε₂, δ₂) for the
distance to it, ε₁ + ε₂ = ε, δ₁ + δ₂ = δ. F is Λ-strongly convex, so a solution with ‖∇F‖ ≤ g is within g/Λ of the minimiser,
and two such distances differ by at most 2g/Λ. Given the exact minimiser B is determined, so the distance plus Gaussian noise is
one more release (approximate minima perturbation, Iyengar et al. 2019, Theorem 1). Private-graph inference assumes that the
asking node may see its own edges.

**Gamma noise** (``gamma_noise``), with ω the least share of ε for the noise:

    c_sf   = the 1 − δ/c quantile of Gamma(d, 1)
    c_θ    = (n₁ωε c₁ + c c₁ Ψ c_sf) / (n₁ωε Λ − c c₂ Ψ c_sf),     needs Λ > c c₂ Ψ c_sf/(n₁ωε)
    ε_Λ    = c d ln(1 + (2c₂ + c₃c_θ)Ψ / (d n₁(Λ + Λ')))
    Λ'     = 0 if ε_Λ ≤ (1−ω)ε at Λ' = 0, else max(0, c(2c₂ + c₃c_θ)Ψ/(n₁(1−ω)ε) − Λ)
    β      = max(ε − ε_Λ, ωε) / (c (c₁ + c₂c_θ) Ψ)

With a public prior, (Λ + Λ')/2·‖Θ − Θ₀‖² in place of (Λ + Λ')/2·‖Θ‖², columns of Θ₀ of norm ≤ r, stationarity gives
‖θ‖ ≤ r + (c₁ + ‖b‖/n₁)/Λ, so c_θ gains n₁ωεΛr in its numerator; nothing else changes (r = 0: as published).

**Gaussian noise.** The constants follow from σ as the published ones follow from β:

    q   = the 1 − δ_θ/c quantile of the length of a standard normal vector of d entries; so ‖b_j‖ ≤ σq except with δ_θ
    c_θ = r + (c₁ + σq/n₁)/Λ          from the stationary point
    W   = (c₁ + c₂c_θ)Ψ
    ε_Λ = c·d·ln(1 + (2c₂ + c₃c_θ)Ψ/(d·n₁·(Λ + Λ′)))
    σ   = s·W, where s is the least ratio for which (ε, δ, ε_Λ, δ_θ) is kept (``gaussian_delta``)

σ = s·W is linear in σ, so σ = sΨ(c₁ + c₂(r + c₁/Λ))/(1 − sΨc₂q/(n₁Λ)), and Λ must exceed sΨc₂q/n₁. Λ′ is raised as in the
paper, until ε_Λ ≤ (1 − ω)ε; s is then solved again with the ε_Λ that was reached and Λ + Λ′, which only lowers σ, c_θ and ε_Λ.
``per_end``: one end of an edge, which moves Z by Ψ/2, costs at most (ε/2, δ/2), and an inner edge, which moves Z by Ψ at one
client, at most (ε, δ). Both are asked for.

**Edge cases.**

    a row longer than 1                      scaled down to norm 1
    NaN or ±inf in the rows                  UnboundedValueError
    a = 1 or m = 0, so Ψ = 0 (no edge used)  no noise, and the event costs nothing
    ω outside (0, 1), or a number that is
    not finite and > 0 where that is needed  PrivacyError
    Λ not above its bound                    PrivacyError that names the bound
    rate = ∞ and noise_std = 0               no noise: nothing private was used (Ψ = 0), or nothing is promised (Unprotected)
    rate < ∞ and noise_std > 0               PrivacyError when the mechanism is built: one kind of noise has one price
    rate ≤ 0, NaN; negative std              PrivacyError when the mechanism is built
    the gradient norm is above its bound     PrivacyError: the output noise would not cover the distance

References: Wei et al. 2024 (GCON), Theorem 1, Algorithm 1; Chaudhuri et al. 2011, Algorithm 2; Iyengar et al. 2019. Proof for
Gaussian noise: ``docs/proofs.md``.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.events import ApproxDP, Event, PureDP
from fedgraph.privacy.fields import ArrayField, CountField, PositiveField, require_finite, require_positive
from fedgraph.privacy.mechanisms.noise import NoiseMechanism
from fedgraph.privacy.sensitivity import SensitivityBound

OUTPUT_SHARE = 1e-3  # of ε and of δ, for the distance to the exact minimiser
_KEPT = 1 - OUTPUT_SHARE
_MISSED_SHARE = 0.05  # of δ, for the event that a column of Θ is longer than c_θ under Gaussian noise
_ORDERS = 1 + np.geomspace(1e-3, 1e6, 2000)


class _Problem(Protocol):
    """A strongly convex objective over Θ [d, c], given the rows [n₁, d] and the linear term's noise [d, c]."""

    def minimise(self, rows: ArrayField, noise: ArrayField) -> ArrayField: ...

    def gradient(self, theta: ArrayField, rows: ArrayField, noise: ArrayField) -> ArrayField: ...


@dataclass(frozen=True)
class ObjectiveRows(SensitivityBound):
    """A matrix [num_rows, dimension] with rows of L2 norm at most 1, enforced by scaling rows down."""

    num_rows: int  # exactly so many rows
    dimension: int  # exactly so many columns

    def enforce(self, value: np.ndarray) -> np.ndarray:
        if value.shape != (self.num_rows, self.dimension):
            raise UnboundedValueError(f"expected rows [{self.num_rows}, {self.dimension}], found shape {value.shape}")
        require_finite(value)
        rows = np.asarray(value, dtype=np.float64)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.maximum(norms, 1.0))


@dataclass(frozen=True)
class ObjectivePerturbation(NoiseMechanism):
    """rows [n₁, d] → weight · (minimiser [d, c] of the perturbed objective + N(0, output_std²)).

    Raises:
        PrivacyError: a number out of its range, two kinds of noise, or output noise without noise in the objective.
    """

    num_columns: CountField  # c ≥ 1
    rate: float  # β > 0 of Gamma noise; ∞: none
    gradient_norm: PositiveField  # g, finite and > 0: the largest gradient norm that a minimiser is accepted with
    output_std: float  # noise for the distance to the exact minimiser, > 0; 0 exactly where the objective has no noise
    problem: _Problem  # the objective
    weight: PositiveField = 1.0  # a public factor, finite and > 0, e.g. a client's share in an average.
    noise_std: float = 0.0  # σ ≥ 0 of Gaussian noise; 0: none

    def __post_init__(self) -> None:
        super().__post_init__()
        if math.isnan(self.rate) or self.rate <= 0:
            raise PrivacyError(f"ObjectivePerturbation.rate must be > 0, found {self.rate}")
        if not 0 <= self.noise_std < math.inf or (self.noise_std and math.isfinite(self.rate)):
            raise PrivacyError(
                f"ObjectivePerturbation.noise_std is {self.noise_std} beside rate {self.rate}; allowed: one noise"
            )
        if math.isfinite(self.rate) or self.noise_std:
            require_positive("ObjectivePerturbation.output_std", self.output_std)
        elif self.output_std != 0:
            raise PrivacyError("without noise in the objective, noise on its minimiser protects nothing: set output_std = 0")

    def apply(self, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        require_finite(value)
        rows = np.asarray(value, dtype=np.float64)
        if self.noise_std:
            noise = self.noise_std * rng.standard_normal((rows.shape[1], self.num_columns))
        else:
            noise = _columns(rows.shape[1], self.num_columns, self.rate, rng)
        theta = self.problem.minimise(rows, noise)
        reached = float(np.linalg.norm(self.problem.gradient(theta, rows, noise)))
        if not reached <= self.gradient_norm:
            raise PrivacyError(
                f"the minimiser was not reached: gradient norm {reached:.3g}, allowed {self.gradient_norm:.3g}; the guarantee "
                "is for the exact minimiser and its output noise covers no larger distance; raise Λ or gradient_norm"
            )
        if self.output_std:
            theta = theta + self.output_std * rng.standard_normal(theta.shape)
        return np.asarray(self.weight * theta)

    @property
    def words(self) -> str:
        if math.isinf(self.rate) and not self.noise_std:
            return "minimiser of a convex objective, without noise"
        law = f"of N(0, {self.noise_std:.6g}²)" if self.noise_std else f"of norm Gamma(d, 1/{self.rate:.6g})"
        return (
            f"objective perturbation, {self.num_columns} columns {law}, "
            f"and Gaussian noise of standard deviation {self.output_std:.3g} on the minimiser"
        )


def _columns(dimension: int, count: int, rate: float, rng: np.random.Generator) -> ArrayField:
    """Noise of the linear term: columns of uniform direction and norm ~ Gamma(dimension, 1/rate).

    dimension: d, numbers per column. count: c, how many columns. rate: β > 0; ∞: zeros. rng: noise stream. Returns float64
    [dimension, count].
    """
    if math.isinf(rate):
        return np.zeros((dimension, count))
    direction = rng.standard_normal((dimension, count))
    direction /= np.linalg.norm(direction, axis=0)
    return np.asarray(direction * rng.gamma(dimension, 1.0 / rate, size=count))


# --------------------------------------------------------------------------------------------------------- what it is made for


@dataclass(frozen=True)
class LossBounds:
    """Suprema of the absolute value of the loss's derivatives."""

    c1: float  # of the first
    c2: float  # of the second
    c3: float  # of the third

    @classmethod
    def soft_margin(cls, num_classes: int) -> Self:
        """Multi-label soft margin: (1/c, 1/(4c), 1/(6√3 c)). num_classes: c ≥ 1."""
        require_positive("num_classes", num_classes)
        return cls(1 / num_classes, 1 / (4 * num_classes), 1 / (6 * math.sqrt(3) * num_classes))

    @classmethod
    def pseudo_huber(cls, num_classes: int, width: float) -> Self:
        """Pseudo-Huber: (δ_l/c, 1/c, 48√5/(125 c δ_l)).

        num_classes: c ≥ 1. width: δ_l > 0. ``PrivacyError``: a number that is not finite and > 0.
        """
        require_positive("num_classes", num_classes)
        require_positive("width", width)
        return cls(width / num_classes, 1 / num_classes, 48 * math.sqrt(5) / (125 * num_classes * width))


def psi(steps: Sequence[float], restart: float, cap: float = 0.5) -> float:
    """Ψ: sensitivity (sum over rows of L2 changes) of Z = (1/s) ⊕ Z_{mᵢ}; 0 where no edge is used.

    Ã_uv = min(1/(k_u + 1), p), p ≤ ½, diagonal = remainder; Z_{t+1} = (1−a)ÃZ_t + aX, rows of X at most unit norm.

        Ψ(Z_m) = 4p(1−a)/a · [1 − (1−a)^m]   (m = ∞: no bracket),      Ψ = (1/s) Σ Ψ(Z_{mᵢ})

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
        gaussian: whether the noise is Gaussian; else as published.
    """

    epsilon: float
    delta: float
    share: float
    bounds: LossBounds
    sensitivity: float
    num_classes: int
    dimension: int
    num_labelled: int
    prior_norm: float = 0.0
    per_end: bool = field(kw_only=True)
    gaussian: bool = field(default=False, kw_only=True)

    @property
    def c_sf(self) -> float:
        """The 1 − δ/c quantile of Gamma(d, 1)."""
        from scipy.stats import gamma  # its import takes half a second

        return float(gamma.isf(self.delta / self.num_classes, self.dimension))

    @property
    def missed(self) -> float:
        """δ_θ of Gaussian noise."""
        return _MISSED_SHARE * self.delta * _KEPT / (2 if self.per_end else 1)

    @property
    def length(self) -> float:
        """q of Gaussian noise."""
        from scipy.stats import chi2  # its import takes half a second

        return math.sqrt(float(chi2.isf(self.missed / self.num_classes, self.dimension)))

    def determinant(self, c_theta: float, regulariser: float, part: float = 1.0) -> float:
        """ε_Λ of the change of variables. regulariser: Λ + Λ'. part: of Ψ, by which Z changes."""
        d = self.dimension
        curvature = (2 * self.bounds.c2 + self.bounds.c3 * c_theta) * (self.sensitivity * part)
        return self.num_classes * d * math.log1p(curvature / (d * self.num_labelled * regulariser))


@dataclass(frozen=True)
class Calibrated:
    """All constants of one release."""

    rate: float  # β; ∞: no Gamma noise
    noise_std: float  # σ; 0: no Gaussian noise
    regulariser: float  # Λ + Λ'
    output_std: float  # of the noise on the minimiser
    c_theta: float  # c_θ, which bounds the norm of every column of Θ but with probability δ, or δ_θ of Gaussian noise
    log_determinant: float  # ε_Λ, for the change of variables
    event: Event  # what the release costs; with ``per_end``, what one end of an edge costs

    def end_epsilon(self, given: Situation) -> float:
        """What one *end* of an edge costs under Gamma noise, β finite: the same terms at sensitivity Ψ/2, ΔB and ln det ratio.

        An inner edge costs at most twice this, because ln(1 + x) ≤ 2 ln(1 + x/2).

        given: what the noise was made for.
        """
        bounds, half = given.bounds, given.sensitivity / 2
        shift = given.num_classes * (bounds.c1 + bounds.c2 * self.c_theta) * half * self.rate
        return shift + given.determinant(self.c_theta, self.regulariser, 0.5)


def least_regulariser(given: Situation) -> float:
    """The value that Λ must exceed, for the part of (ε, δ) that ``calibrated`` gives to the objective."""
    if given.gaussian:
        if not given.sensitivity:
            return 0.0
        return _first_ratio(given) * given.sensitivity * given.bounds.c2 * given.length / given.num_labelled
    epsilon = given.epsilon * _KEPT / (2 - given.share if given.per_end else 1)
    given = replace(given, epsilon=epsilon, delta=given.delta * _KEPT / (2 if given.per_end else 1))
    spent = given.num_labelled * given.share * given.epsilon
    return given.num_classes * given.bounds.c2 * given.sensitivity * given.c_sf / spent


def calibrated(given: Situation, regulariser: float, gradient_norm: float) -> Calibrated:
    """All constants of one release that costs at most (ε, δ).

    Where ``given.per_end`` the event prices one end of an edge, at most (ε/2, δ/2), so that two ends, at one client or at two,
    cost at most (ε, δ). Ψ = 0 (no edge is used): no noise, and the event costs nothing.

    Args:
        given: sensitivity and budget.
        regulariser: Λ, above ``least_regulariser``.
        gradient_norm: g, the largest gradient norm of an accepted minimiser.

    Raises:
        PrivacyError: a number out of its range, or Λ is not above its bound, which the text names.
    """
    if given.gaussian:
        made = _gaussian_noise(given, regulariser)
    elif given.per_end:
        made = _gamma_of_ends(replace(given, epsilon=given.epsilon * _KEPT, delta=given.delta / 2 * _KEPT), regulariser)
    else:
        made = gamma_noise(replace(given, epsilon=given.epsilon * _KEPT, delta=given.delta * _KEPT), regulariser)
    if math.isinf(made.rate) and not made.noise_std:
        return made
    require_positive("total_regulariser", made.regulariser)
    if math.isnan(gradient_norm) or gradient_norm < 0:
        raise PrivacyError(f"a gradient norm is a number ≥ 0, found {gradient_norm}")
    ends = 2 if given.per_end else 1
    epsilon, delta = given.epsilon / ends, given.delta / ends
    distance = 2 * gradient_norm / made.regulariser  # Δ₂ between two approximate minimisers' distances to their exact ones
    output = distance * calibrate.gaussian_multiplier(1, epsilon * OUTPUT_SHARE, delta * OUTPUT_SHARE)
    return replace(made, output_std=output, event=ApproxDP(epsilon, delta))


# ----------------------------------------------------------------------------------------------------------------- Gamma noise


def gamma_noise(given: Situation, regulariser: float) -> Calibrated:
    """The constants of Gamma noise with which the **exact** minimiser is (ε, δ)-DP; ends are not priced here.

    Args:
        given: what has to be hidden, and what it may cost.
        regulariser: Λ > 0.

    Raises:
        PrivacyError: a number is out of its range, or Λ is not above its bound, which the text names.
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
    extra = 0.0
    if given.determinant(c_theta, regulariser) > (1 - share) * epsilon:
        curvature = (2 * bounds.c2 + bounds.c3 * c_theta) * sensitivity
        extra = max(0.0, c * curvature / (n * (1 - share) * epsilon) - regulariser)
    total = regulariser + extra
    lost = given.determinant(c_theta, total)
    scale = c * (bounds.c1 + bounds.c2 * c_theta) * sensitivity
    if not scale > 0:
        return Calibrated(math.inf, 0.0, total, 0.0, c_theta, lost, PureDP(0.0))
    return Calibrated(
        max(epsilon - lost, share * epsilon) / scale, 0.0, total, 0.0, c_theta, lost, ApproxDP(epsilon, given.delta)
    )


def _gamma_of_ends(given: Situation, regulariser: float) -> Calibrated:
    """The noise of the largest ε′ ≤ ε whose ``end_epsilon`` is at most ε/2, by bisection from below.

    ε′ = ε/(2 − ω) will do: the half of ε′ − ε_Λ, and at most ε_Λ ≤ (1 − ω)ε′ for the determinant.
    """

    def tried(share: float) -> tuple[Calibrated, float]:
        made = gamma_noise(replace(given, epsilon=given.epsilon * share), regulariser)
        return made, 0.0 if math.isinf(made.rate) else made.end_epsilon(given)

    low, high = 1 / (2 - given.share), 1.0
    tried(low)  # refuses a Λ that is too small there, and names the smallest
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if tried(middle)[1] <= given.epsilon / 2 else (low, middle)
    made, cost = tried(low)
    if cost > given.epsilon / 2:
        raise PrivacyError(f"no noise makes one end of an edge cost {given.epsilon / 2:.6g} here; raise Λ or ε")
    return made


# -------------------------------------------------------------------------------------------------------------- Gaussian noise


def gaussian_delta(
    epsilon: float, std: float, change: float, classes: int, log_determinant: float, missed: float = 0.0
) -> float:
    """δ of the exact minimiser at a given ε under Gaussian noise, the best order taken.

    There is one column θ_j for each of c classes, of d numbers each. It minimises

        (1/n₁)Σᵢ ℓ(zᵢᵀθ_j) + (Λ_tot/2)‖θ_j‖² + (1/n₁)⟨b_j, θ_j⟩,        b_j ~ N(0, σ²I_d).

    An edge replaces rows zᵢ by zᵢ', ‖z‖ ≤ 1, Σᵢ ‖zᵢ' − zᵢ‖ ≤ Ψ. |ℓ'| ≤ c₁, |ℓ''| ≤ c₂. Write W = (c₁ + c₂c_θ)Ψ.

    **Guarantee.** If every ‖θ_j‖ ≤ c_θ except with probability δ_θ in either world, and |ln det| of the change of variables is
    at most ε_Λ (both as for the published noise), the exact minimiser is (ε, δ)-DP for every order α > 1 with

        δ = δ_θ + (1/α)(1 − 1/α)^{α−1} · exp((α − 1)(ε_Λ + cW²/(2σ²) − ε)) · [2·exp(t²/2)·Φ(t)]^c,        t = (α − 1)W/σ.

    *Proof*: ``docs/proofs.md``.

    **Edge cases.** σ = ∞ → δ_θ where ε_Λ ≤ ε, else 1. A number that is not finite, or σ ≤ 0 → ``PrivacyError``.

    epsilon: ε ≥ 0. std: σ of b per entry, > 0; ∞ is allowed. change: W ≥ 0. classes: c ≥ 1. log_determinant: ε_Λ ≥ 0. missed:
    δ_θ ≥ 0.

    >>> gaussian_delta(1.0, 20.0, 1.0, 7, 0.1) < 1e-3 < gaussian_delta(1.0, 5.0, 1.0, 7, 0.1)
    True
    """
    if not (std > 0 and all(math.isfinite(x) and x >= 0 for x in (epsilon, change, log_determinant, missed)) and classes >= 1):
        raise PrivacyError("σ must be > 0, classes ≥ 1, and ε, W, ε_Λ, δ_θ finite numbers ≥ 0")
    if math.isinf(std):
        return missed if log_determinant <= epsilon else 1.0
    more = _ORDERS - 1
    t = more * change / std
    logs = (
        -np.log(_ORDERS)
        + more * np.log1p(-1 / _ORDERS)
        + more * (log_determinant + classes * change**2 / (2 * std**2) - epsilon)
        + classes * (math.log(2) + t**2 / 2 + log_ndtr(t))
    )
    return min(1.0, missed + math.exp(min(0.0, float(logs.min()))))


def _least_ratio(epsilon: float, target: float, classes: int, log_determinant: float, missed: float) -> float:
    """The smallest σ/W (to one part in 10⁶, from above) that keeps (ε, δ).

    epsilon: ε, above ε_Λ. target: δ, above δ_θ. classes: c ≥ 1. log_determinant: ε_Λ ≥ 0. missed: δ_θ ≥ 0. ``PrivacyError``: no
    noise is enough, because ε_Λ or δ_θ alone take all.
    """
    if missed >= target or log_determinant >= epsilon:
        raise PrivacyError(f"no noise gives ε = {epsilon}: ε_Λ = {log_determinant}, δ_θ = {missed} of δ = {target} are spent")

    def gap(log_std: float) -> float:
        found = gaussian_delta(epsilon, math.exp(log_std), 1.0, classes, log_determinant, missed)
        return math.log(found - missed + 1e-300) - math.log(target - missed)

    return math.exp(brentq(gap, -10.0, 25.0, xtol=1e-7)) * (1 + 1e-6)


def _ratio(given: Situation, whole: float, half: float) -> float:
    """s = σ/W, of W at a change of Ψ. whole, half: ε_Λ at a change of Ψ and of Ψ/2."""
    epsilon, delta, c = given.epsilon * _KEPT, given.delta * _KEPT, given.num_classes
    found = _least_ratio(epsilon, delta, c, whole, given.missed)
    if given.per_end:
        found = max(found, _least_ratio(epsilon / 2, delta / 2, c, half, given.missed) / 2)
    return found


def _first_ratio(given: Situation) -> float:
    """s where ε_Λ takes all of its share, (1 − ω)ε; of one end, half of that."""
    whole = (1 - given.share) * given.epsilon * _KEPT
    return _ratio(given, whole / 2 if given.per_end else whole, whole / 2)


def _gaussian_noise(given: Situation, regulariser: float) -> Calibrated:
    """The constants of Gaussian noise for the exact minimiser, in the part of (ε, δ) that is kept for it."""
    if not given.sensitivity:
        return Calibrated(math.inf, 0.0, regulariser, 0.0, math.inf, 0.0, PureDP(0.0))
    needed = least_regulariser(given)
    if not needed < regulariser < math.inf:
        raise PrivacyError(f"the regulariser Λ = {regulariser:.6g} must exceed {needed:.6g} here: raise Λ, ε or ω")
    _, c_theta = _std(given, _first_ratio(given), regulariser)
    total = regulariser
    allowed = (1 - given.share) * given.epsilon * _KEPT / (2 if given.per_end else 1)
    if given.determinant(c_theta, total) > allowed:
        curvature = (2 * given.bounds.c2 + given.bounds.c3 * c_theta) * given.sensitivity
        total = max(total, given.num_classes * curvature / (given.num_labelled * allowed))  # ln(1 + x) ≤ x
    reached = given.determinant(c_theta, total)
    std, c_theta = _std(given, _ratio(given, reached, reached), total)
    ends = 2 if given.per_end else 1
    event = ApproxDP(given.epsilon * _KEPT / ends, given.delta * _KEPT / ends)
    return Calibrated(math.inf, std, total, 0.0, c_theta, given.determinant(c_theta, total), event)


def _std(given: Situation, ratio: float, regulariser: float) -> tuple[float, float]:
    """(σ, c_θ) of the linear equation σ = s·W."""
    bounds, n = given.bounds, given.num_labelled
    at_rest = given.prior_norm + bounds.c1 / regulariser  # c_θ without noise
    slack = 1 - ratio * given.sensitivity * bounds.c2 * given.length / (n * regulariser)
    std = ratio * given.sensitivity * (bounds.c1 + bounds.c2 * at_rest) / slack
    return std, at_rest + std * given.length / (n * regulariser)
