"""Calibration of objective perturbation with Gaussian noise, B ~ N(0, σ²) per entry, in place of GCON's Gamma noise.

The price is that of ``accounting.gaussian``, whose proof stands there. Its constants follow from σ as the published
ones follow from β. With d numbers per column, c columns, n₁ labelled rows, and Λ the regulariser:

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
"""

import math
from dataclasses import dataclass

from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting import gaussian
from fedgraph.privacy.claims import gcon
from fedgraph.privacy.events import Event, PureDP
from fedgraph.privacy.mechanisms.objective_perturbation import OUTPUT_SHARE, output_noise

MISSED_SHARE = 0.05  # of δ, for the event that a column of Θ is longer than c_θ


class Situation(gcon.Situation):
    """The same, and what follows from it for noise with independent normal entries."""

    @property
    def missed(self) -> float:
        """δ_θ."""
        return MISSED_SHARE * self.delta * (1 - OUTPUT_SHARE) / (2 if self.per_end else 1)

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
        epsilon, delta, c = self.epsilon * (1 - OUTPUT_SHARE), self.delta * (1 - OUTPUT_SHARE), self.num_classes
        found = gaussian.noise_std(epsilon, delta, 1.0, c, whole, self.missed)
        if self.per_end:
            found = max(found, gaussian.noise_std(epsilon / 2, delta / 2, 1.0, c, half, self.missed) / 2)
        return found


@dataclass(frozen=True)
class Calibrated:
    """noise_std: σ, of B. regulariser: Λ + Λ′. output_std: noise on the minimiser. c_theta, log_determinant: c_θ, ε_Λ.

    event: what the release costs; with ``per_end``, what one end of an edge costs.
    """

    noise_std: float
    regulariser: float
    output_std: float
    c_theta: float
    log_determinant: float
    event: Event


def least_regulariser(given: Situation) -> float:
    """sΨc₂q/n₁: Λ must exceed it."""
    if not given.sensitivity:
        return 0.0
    return _first_ratio(given) * given.sensitivity * given.bounds.c2 * given.length / given.num_labelled


def calibrated(given: Situation, regulariser: float, gradient_norm: float) -> Calibrated:
    """All constants of one release that costs at most (ε, δ); with ``per_end``, (ε/2, δ/2) for each end."""
    if not given.sensitivity:
        return Calibrated(0.0, regulariser, 0.0, math.inf, 0.0, PureDP(0.0))
    needed = least_regulariser(given)
    if not needed < regulariser < math.inf:
        raise PrivacyError(f"the regulariser Λ = {regulariser:.6g} must exceed {needed:.6g} here: raise Λ, ε or ω")
    _, c_theta = _std(given, _first_ratio(given), regulariser)
    total = regulariser
    allowed = (1 - given.share) * given.epsilon * (1 - OUTPUT_SHARE) / (2 if given.per_end else 1)
    if given.determinant(c_theta, total) > allowed:
        curvature = (2 * given.bounds.c2 + given.bounds.c3 * c_theta) * given.sensitivity
        total = max(total, given.num_classes * curvature / (given.num_labelled * allowed))  # ln(1 + x) ≤ x
    reached = given.determinant(c_theta, total)
    std, c_theta = _std(given, given.ratio(reached, reached), total)
    output, event = output_noise(given, gradient_norm, total)
    return Calibrated(std, total, output, c_theta, given.determinant(c_theta, total), event)


def _first_ratio(given: Situation) -> float:
    """s where ε_Λ takes all of its share, (1 − ω)ε; of one end, half of that."""
    whole = (1 - given.share) * given.epsilon * (1 - OUTPUT_SHARE)
    return given.ratio(whole / 2 if given.per_end else whole, whole / 2)


def _std(given: Situation, ratio: float, regulariser: float) -> tuple[float, float]:
    """(σ, c_θ) of the linear equation σ = s·W."""
    bounds, n = given.bounds, given.num_labelled
    at_rest = given.prior_norm + bounds.c1 / regulariser  # c_θ without noise
    slack = 1 - ratio * given.sensitivity * bounds.c2 * given.length / (n * regulariser)
    std = ratio * given.sensitivity * (bounds.c1 + bounds.c2 * at_rest) / slack
    return std, at_rest + std * given.length / (n * regulariser)
