"""Objective perturbation: noise is added to a convex objective, and its exact minimiser is released.

    F(Θ) = (1/n₁) Σᵢ L(Θ; zᵢ, yᵢ) + (Λ/2)‖Θ − Θ₀‖² + ⟨B, Θ⟩/n₁,     Θ, B ∈ R^(d×c)     (GCON, Theorem 1: Θ₀ = 0)

Each column of B has a uniform direction and a norm ~ Gamma(d, 1/β), i.e. a density ∝ e^(−β‖b‖); or, with ``noise_std``, all
entries of B are independent N(0, σ²) (proof and constants in ``gaussian_objective``).

Where two clients know an edge, either's Z changes because of it, by Ψ/2 (``propagation.walks``, open walk). ``per_end``
prices one end; an inner edge, which changes Z by Ψ at one client, costs no more than two of them.

**Guarantee.** (ε, δ), edge-undirected, features and labels public: (ε₁, δ₁) for the exact minimiser
(``gcon_noise.gcon_perturbation``) and (ε₂, δ₂) for the distance to it, ε₁ + ε₂ = ε, δ₁ + δ₂ = δ. F is Λ-strongly convex, so a
solution with ‖∇F‖ ≤ g is within g/Λ of the minimiser, and two such distances differ by at most 2g/Λ. Given the exact
minimiser B is determined, so the distance plus Gaussian noise is one more release (approximate minima perturbation,
Iyengar et al. 2019, Theorem 1).

**Edge cases.**

    a row longer than 1                      scaled down to norm 1
    NaN or ±inf in the rows                  UnboundedValueError
    rate = ∞ and noise_std = 0               no noise: nothing private was used (Ψ = 0), or nothing is promised (Unprotected)
    rate < ∞ and noise_std > 0               PrivacyError when the mechanism is built: one kind of noise has one price
    rate ≤ 0, NaN; negative std              PrivacyError when the mechanism is built
    the gradient norm is above its bound     PrivacyError: the output noise would not cover the distance

References: Wei et al. 2024 (GCON), Theorem 1, Algorithm 1; Chaudhuri et al. 2011, Algorithm 2; Iyengar et al. 2019.
"""

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from fedgraph.errors import PrivacyError, UnboundedValueError
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.events import ApproxDP, Event, PureDP
from fedgraph.privacy.fields import ArrayField, CountField, PositiveField, require_finite, require_positive
from fedgraph.privacy.mechanisms import gcon_noise as gcon
from fedgraph.privacy.mechanisms.noise import NoiseMechanism
from fedgraph.privacy.sensitivity import SensitivityBound

OBJECTIVE_OUTPUT_SHARE = 1e-3  # of ε and of δ, for the distance to the exact minimiser


class PerturbedObjectiveProblem(Protocol):
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
    problem: PerturbedObjectiveProblem  # the objective
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


@dataclass(frozen=True)
class Calibrated:
    """All constants of one release."""

    rate: float  # β; ∞: no noise
    regulariser: float  # Λ + Λ'
    output_std: float  # of the noise on the minimiser
    event: Event  # what the release costs, or one end of an edge in it
    made: gcon.GconPerturbation  # all constants of the objective's noise


def calibrated(given: gcon.Situation, regulariser: float, gradient_norm: float) -> Calibrated:
    """All constants of one release that costs at most (ε, δ).

    Where ``given.per_end`` the event prices one end of an edge, at most (ε/2, δ/2), so that two ends, at one client or at two,
    cost at most (ε, δ). Ψ = 0 (no edge is used): no noise, and the event costs nothing.

    given: sensitivity and budget. regulariser: Λ, above ``least_regulariser``. gradient_norm: g, the largest gradient of an
    accepted minimiser. ``PrivacyError``: Λ is below its bound (the text names the smallest allowed value).
    """
    kept = 1 - OBJECTIVE_OUTPUT_SHARE
    if given.per_end:
        made = _of_ends(replace(given, epsilon=given.epsilon * kept, delta=given.delta / 2 * kept), regulariser)
    else:
        made = gcon.gcon_perturbation(replace(given, epsilon=given.epsilon * kept, delta=given.delta * kept), regulariser)
    total = regulariser + made.extra_regulariser
    if math.isinf(made.beta):
        return Calibrated(math.inf, total, 0.0, PureDP(0.0), made)
    return Calibrated(made.beta, total, *output_noise(given, gradient_norm, total), made)


def output_noise(given: gcon.Situation, gradient_norm: float, total_regulariser: float) -> tuple[float, Event]:
    """(noise std for the distance to the exact minimiser, what the whole release costs, or one end of an edge in it)."""
    ends = 2 if given.per_end else 1
    epsilon, delta = given.epsilon / ends, given.delta / ends
    distance = gcon.gcon_output_sensitivity(gradient_norm, total_regulariser)
    return distance * calibrate.gaussian_multiplier(
        1, epsilon * OBJECTIVE_OUTPUT_SHARE, delta * OBJECTIVE_OUTPUT_SHARE
    ), ApproxDP(epsilon, delta)


def _of_ends(given: gcon.Situation, regulariser: float) -> gcon.GconPerturbation:
    """The largest ε′ ≤ ε whose ``gcon_end_epsilon`` is at most ε/2, by bisection from below.

    ε′ = ε/(2 − ω) will do: the half of ε′ − ε_Λ, and at most ε_Λ ≤ (1 − ω)ε′ for the determinant.
    """

    def tried(share: float) -> tuple[gcon.GconPerturbation, float]:
        made = gcon.gcon_perturbation(replace(given, epsilon=given.epsilon * share), regulariser)
        if math.isinf(made.beta):
            return made, 0.0
        return made, gcon.gcon_end_epsilon(made, given, regulariser + made.extra_regulariser)

    low, high = 1 / (2 - given.share), 1.0
    tried(low)  # refuses a Λ that is too small there, and names the smallest
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if tried(middle)[1] <= given.epsilon / 2 else (low, middle)
    made, cost = tried(low)
    if cost > given.epsilon / 2:
        raise PrivacyError(f"no noise makes one end of an edge cost {given.epsilon / 2:.6g} here; raise Λ or ε")
    return made


def least_regulariser(given: gcon.Situation) -> float:
    """The value that Λ must exceed, for the part of (ε, δ) that ``calibrated`` gives to the objective."""
    epsilon = given.epsilon * (1 - OBJECTIVE_OUTPUT_SHARE) / (2 - given.share if given.per_end else 1)
    delta = given.delta * (1 - OBJECTIVE_OUTPUT_SHARE) / (2 if given.per_end else 1)
    return gcon.least_regulariser(replace(given, epsilon=epsilon, delta=delta))
