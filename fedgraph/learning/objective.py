"""A strongly convex linear classifier and its exact minimiser, in float64.

    F(Θ) = (1/n₁) Σᵢ Σⱼ ℓ(zᵢ·θⱼ; yᵢⱼ) + (Λ/2)‖Θ − Θ₀‖² + ⟨B, Θ⟩/n₁,   y one-hot, Θ = [θ₁ … θ_c]     (GCON, Algorithm 1)

Θ₀ is a public prior (GCON: 0). F is a sum over columns, so each θⱼ has its own d × d Newton system. Two losses, both
convex in x = z·θ:

* multi-label soft margin  ℓ = −(1/c)[y ln σ(x) + (1−y) ln σ(−x)]: |ℓ′| ≤ 1/c, ℓ″ ≤ 1/(4c), |ℓ‴| ≤ 1/(6√3 c);
* pseudo-Huber of width w  ℓ = (w²/c)(√(1 + ((x−y)/w)²) − 1): |ℓ′| ≤ w/c, ℓ″ ≤ 1/c, |ℓ‴| ≤ 48√5/(125 c w).

The bounds are what ``privacy.objective_perturbation`` charges for; tests measure them on these very functions.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit

ObjectiveLossName = Literal["soft-margin", "pseudo-huber"]
_MOST_STEPS = 200


@dataclass(frozen=True)
class ObjectiveLoss:
    """ℓ for one entry."""

    name: ObjectiveLossName  # which loss
    num_classes: int  # c
    width: float = 1.0  # w of the pseudo-Huber loss

    def value(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """ℓ(x; y), entry by entry."""
        if self.name == "soft-margin":
            return (np.logaddexp(0.0, x) - y * x) / self.num_classes
        u = (x - y) / self.width
        return self.width**2 * (np.sqrt(1 + u * u) - 1) / self.num_classes

    def first(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """ℓ′(x; y)."""
        if self.name == "soft-margin":
            return (expit(x) - y) / self.num_classes
        u = (x - y) / self.width
        return (x - y) / np.sqrt(1 + u * u) / self.num_classes

    def second(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """ℓ″(x; y) ≥ 0."""
        if self.name == "soft-margin":
            return expit(x) * expit(-x) / self.num_classes
        u = (x - y) / self.width
        return (1 + u * u) ** -1.5 / self.num_classes


@dataclass(frozen=True, eq=False)
class LinearObjective:
    """F for fixed public labels. Rows z [n₁, d] and noise B [d, c] are private, so they are arguments of its methods."""

    loss: ObjectiveLoss  # ℓ
    labels: np.ndarray  # int64 [n₁], all ≥ 0
    regulariser: float  # Λ, in all; above 0
    tolerance: float  # norm of the gradient to reach
    prior: float = 0.0  # Θ₀ = prior · [I … I], which reads class scores as they are (d is a multiple of c); 0: Θ₀ = 0

    def centre(self, dimension: int) -> np.ndarray:
        """Θ₀, [dimension, c]; each column has norm prior·√(dimension/c)."""
        c = self.loss.num_classes
        return self.prior * np.tile(np.eye(c), (dimension // c, 1)) if self.prior else np.zeros((dimension, c))

    @property
    def targets(self) -> np.ndarray:
        """One-hot labels, [n₁, c]."""
        return np.eye(self.loss.num_classes)[self.labels]

    def value(self, theta: np.ndarray, rows: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """F, split by column: [c]."""
        fit = self.loss.value(rows @ theta, self.targets).sum(axis=0)
        apart = np.square(theta - self.centre(len(theta))).sum(axis=0)
        return (fit + (noise * theta).sum(axis=0)) / len(rows) + self.regulariser / 2 * apart

    def gradient(self, theta: np.ndarray, rows: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """∇F, [d, c]."""
        fit = rows.T @ self.loss.first(rows @ theta, self.targets)
        return (fit + noise) / len(rows) + self.regulariser * (theta - self.centre(len(theta)))

    def minimise(self, rows: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """The minimiser by damped Newton steps, from Θ₀ until ‖∇F‖ ≤ tolerance / 2 or ``_MOST_STEPS``. The caller checks which.

        Each column halves its own step until F falls enough (Armijo, 1e-4). Near the minimum, where F no longer resolves the
        fall, the full step is taken.
        rows: z, float64 [n₁, d]. noise: B, float64 [d, c]. Returns Θ, float64 [d, c].
        """
        theta = self.centre(rows.shape[1])
        for _ in range(_MOST_STEPS):
            gradient = self.gradient(theta, rows, noise)
            if np.linalg.norm(gradient) <= self.tolerance / 2:
                break
            theta = self._step(theta, gradient, rows, noise)
        return theta

    def _step(self, theta: np.ndarray, gradient: np.ndarray, rows: np.ndarray, noise: np.ndarray) -> np.ndarray:
        curvature = self.loss.second(rows @ theta, self.targets) / len(rows)
        ridge = self.regulariser * np.eye(rows.shape[1])
        step = np.stack(
            [np.linalg.solve((rows.T * w) @ rows + ridge, g) for w, g in zip(curvature.T, gradient.T, strict=True)], axis=1
        )
        before, slope = self.value(theta, rows, noise), (gradient * step).sum(axis=0)
        resolution = 1e-12 * np.maximum(1.0, np.abs(before))
        length = np.ones(self.loss.num_classes)
        for _ in range(40):
            after = self.value(theta - length * step, rows, noise)
            falls = after <= before - 1e-4 * length * slope + resolution
            if falls.all():
                break
            length = np.where(falls, length, length / 2)
        return theta - length * step
