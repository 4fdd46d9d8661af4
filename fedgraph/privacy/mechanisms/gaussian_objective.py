"""Calibration of objective perturbation with Gaussian noise, B ~ N(0, σ²) per entry, in place of GCON's Gamma noise.

The constants follow from σ as the published ones follow from β. With d numbers per
column, c columns, n₁ labelled rows, and Λ the regulariser:

    q   = the 1 − δ_θ/c quantile of the length of a standard normal vector of d entries; so ‖b_j‖ ≤ σq except with δ_θ
    c_θ = r + (c₁ + σq/n₁)/Λ          from the stationary point; r: length of a column of the prior Θ₀
    W   = (c₁ + c₂c_θ)Ψ
    ε_Λ = c·d·ln(1 + (2c₂ + c₃c_θ)Ψ/(d·n₁·(Λ + Λ′)))
    σ   = s·W, where s is the least ratio for which (ε, δ, ε_Λ, δ_θ) is kept

σ = s·W is linear in σ, so σ = sΨ(c₁ + c₂(r + c₁/Λ))/(1 − sΨc₂q/(n₁Λ)), and Λ must exceed sΨc₂q/n₁. Λ′ is raised as in the
paper, until ε_Λ ≤ (1 − ω)ε; s is then solved again with the ε_Λ that was reached and Λ + Λ′, which only lowers σ, c_θ and ε_Λ.

**Guarantee.** That of ``mechanisms.objective_perturbation``: (ε, δ), edge-undirected, features and labels public; the distance
to the exact minimiser is noised and charged in the same way. ``per_end``: one end of an edge, which moves Z by Ψ/2, costs at
most (ε/2, δ/2), and an inner edge, which moves Z by Ψ at one client, at most (ε, δ). Both are asked for.

**Edge cases.** Ψ = 0: no noise, and the event costs nothing. Λ not above its bound: ``PrivacyError`` that names the bound.

**The price** (``delta_at``). There is one column θ_j for each of c classes, of d numbers each. It minimises

    (1/n₁)Σᵢ ℓ(zᵢᵀθ_j) + (Λ_tot/2)‖θ_j‖² + (1/n₁)⟨b_j, θ_j⟩,        b_j ~ N(0, σ²I_d).

An edge replaces rows zᵢ by zᵢ', ‖z‖ ≤ 1, Σᵢ ‖zᵢ' − zᵢ‖ ≤ Ψ. |ℓ'| ≤ c₁, |ℓ''| ≤ c₂. Write W = (c₁ + c₂c_θ)Ψ.

**Guarantee.** If every ‖θ_j‖ ≤ c_θ except with probability δ_θ in either world, and |ln det| of the change of variables is
at most ε_Λ (both as for the published noise, ``gcon_noise``), the exact minimiser is (ε, δ)-DP for every
order α > 1 with

    δ = δ_θ + (1/α)(1 − 1/α)^{α−1} · exp((α − 1)(ε_Λ + cW²/(2σ²) − ε)) · [2·exp(t²/2)·Φ(t)]^c,        t = (α − 1)W/σ.

*Proof*: ``docs/proofs.md``.

**Edge cases.** σ = ∞ → δ_θ where ε_Λ ≤ ε, else 1. A number that is not finite, or σ ≤ 0 → ``PrivacyError``.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from fedgraph.errors import PrivacyError
from fedgraph.privacy.events import Event, PureDP
from fedgraph.privacy.mechanisms import gcon_noise as gcon
from fedgraph.privacy.mechanisms import objective_perturbation
from fedgraph.privacy.mechanisms.objective_perturbation import OBJECTIVE_OUTPUT_SHARE

_ORDERS = 1 + np.geomspace(1e-3, 1e6, 2000)


def delta_at(epsilon: float, std: float, change: float, classes: int, log_determinant: float, missed: float = 0.0) -> float:
    """δ at a given ε, the best order taken.

    epsilon: ε ≥ 0. std: σ of b per entry, > 0; ∞ is allowed. change: W ≥ 0. classes: c ≥ 1. log_determinant: ε_Λ ≥ 0. missed:
    δ_θ ≥ 0. ``PrivacyError``: a number out of its range.

    >>> delta_at(1.0, 20.0, 1.0, 7, 0.1) < 1e-3 < delta_at(1.0, 5.0, 1.0, 7, 0.1)
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


def noise_std(epsilon: float, target: float, change: float, classes: int, log_determinant: float, missed: float = 0.0) -> float:
    """The smallest σ (to one part in 10⁶, from above) that keeps (ε, δ).

    epsilon: ε, above ε_Λ. target: δ, above δ_θ. change: W > 0. classes: c ≥ 1. log_determinant: ε_Λ ≥ 0. missed: δ_θ ≥ 0.
    ``PrivacyError``: no noise is enough, because ε_Λ or δ_θ alone take all.
    """
    if missed >= target or log_determinant >= epsilon:
        raise PrivacyError(f"no noise gives ε = {epsilon}: ε_Λ = {log_determinant}, δ_θ = {missed} of δ = {target} are spent")

    def gap(log_std: float) -> float:
        return math.log(
            delta_at(epsilon, math.exp(log_std), change, classes, log_determinant, missed) - missed + 1e-300
        ) - math.log(target - missed)

    low, high = math.log(change) - 10, math.log(change) + 25
    return math.exp(brentq(gap, low, high, xtol=1e-7)) * (1 + 1e-6)


_MISSED_SHARE = 0.05  # of δ, for the event that a column of Θ is longer than c_θ


class Situation(gcon.Situation):
    """A situation with the constants of independent normal noise."""

    @property
    def missed(self) -> float:
        """δ_θ."""
        return _MISSED_SHARE * self.delta * (1 - OBJECTIVE_OUTPUT_SHARE) / (2 if self.per_end else 1)

    @property
    def length(self) -> float:
        """q."""
        from scipy.stats import chi2  # its import takes half a second

        return math.sqrt(float(chi2.isf(self.missed / self.num_classes, self.dimension)))

    def determinant(self, c_theta: float, regulariser: float) -> float:
        """ε_Λ of a change of all Ψ."""
        d = self.dimension
        curvature = (2 * self.bounds.c2 + self.bounds.c3 * c_theta) * self.sensitivity
        return self.num_classes * d * math.log1p(curvature / (d * self.num_labelled * regulariser))

    def ratio(self, whole: float, half: float) -> float:
        """s = σ/W, of W at a change of Ψ. whole, half: ε_Λ at a change of Ψ and of Ψ/2."""
        epsilon, delta, c = (
            self.epsilon * (1 - OBJECTIVE_OUTPUT_SHARE),
            self.delta * (1 - OBJECTIVE_OUTPUT_SHARE),
            self.num_classes,
        )
        found = noise_std(epsilon, delta, 1.0, c, whole, self.missed)
        if self.per_end:
            found = max(found, noise_std(epsilon / 2, delta / 2, 1.0, c, half, self.missed) / 2)
        return found


@dataclass(frozen=True)
class Calibrated:
    """All constants of one release."""

    noise_std: float  # σ, of B
    regulariser: float  # Λ + Λ′
    output_std: float  # of the noise on the minimiser
    c_theta: float  # c_θ
    log_determinant: float  # ε_Λ
    event: Event  # what the release costs; with ``per_end``, what one end of an edge costs


def least_regulariser(given: Situation) -> float:
    """sΨc₂q/n₁: Λ must exceed it."""
    if not given.sensitivity:
        return 0.0
    return _first_ratio(given) * given.sensitivity * given.bounds.c2 * given.length / given.num_labelled


def calibrated(given: Situation, regulariser: float, gradient_norm: float) -> Calibrated:
    """All constants of one release that costs at most (ε, δ); with ``per_end``, (ε/2, δ/2) for each end.

    Args:
        given: sensitivity and budget.
        regulariser: Λ, above ``least_regulariser``.
        gradient_norm: g, the largest gradient norm of an accepted minimiser.

    Raises:
        PrivacyError: Λ is not above its bound, which the text names.
    """
    if not given.sensitivity:
        return Calibrated(0.0, regulariser, 0.0, math.inf, 0.0, PureDP(0.0))
    needed = least_regulariser(given)
    if not needed < regulariser < math.inf:
        raise PrivacyError(f"the regulariser Λ = {regulariser:.6g} must exceed {needed:.6g} here: raise Λ, ε or ω")
    _, c_theta = _std(given, _first_ratio(given), regulariser)
    total = regulariser
    allowed = (1 - given.share) * given.epsilon * (1 - OBJECTIVE_OUTPUT_SHARE) / (2 if given.per_end else 1)
    if given.determinant(c_theta, total) > allowed:
        curvature = (2 * given.bounds.c2 + given.bounds.c3 * c_theta) * given.sensitivity
        total = max(total, given.num_classes * curvature / (given.num_labelled * allowed))  # ln(1 + x) ≤ x
    reached = given.determinant(c_theta, total)
    std, c_theta = _std(given, given.ratio(reached, reached), total)
    output, event = objective_perturbation.output_noise(given, gradient_norm, total)
    return Calibrated(std, total, output, c_theta, given.determinant(c_theta, total), event)


def _first_ratio(given: Situation) -> float:
    """s where ε_Λ takes all of its share, (1 − ω)ε; of one end, half of that."""
    whole = (1 - given.share) * given.epsilon * (1 - OBJECTIVE_OUTPUT_SHARE)
    return given.ratio(whole / 2 if given.per_end else whole, whole / 2)


def _std(given: Situation, ratio: float, regulariser: float) -> tuple[float, float]:
    """(σ, c_θ) of the linear equation σ = s·W."""
    bounds, n = given.bounds, given.num_labelled
    at_rest = given.prior_norm + bounds.c1 / regulariser  # c_θ without noise
    slack = 1 - ratio * given.sensitivity * bounds.c2 * given.length / (n * regulariser)
    std = ratio * given.sensitivity * (bounds.c1 + bounds.c2 * at_rest) / slack
    return std, at_rest + std * given.length / (n * regulariser)
