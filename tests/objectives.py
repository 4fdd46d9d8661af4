"""What neighbours do to the density of a perturbed minimiser: the shift of the noise, and the determinants."""

from collections.abc import Iterator

import numpy as np
from scipy import stats

from fedgraph.learning import LinearObjective, ObjectiveLoss
from fedgraph.privacy.mechanisms.objective_perturbation import Calibrated


def changes_of_density(
    made: Calibrated,
    missed: float,
    worlds: list[np.ndarray],
    labels: np.ndarray,
    num_classes: int,
    prior: float,
    rng: np.random.Generator,
) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    """(ln of the ratio of the densities of Θ, columns of Θ, shift of the noise) for 20 draws of which δ does not take out any.

    The noise is as it is published: columns of uniform direction whose norms are Gamma(d, 1/β). missed: that δ.
    """
    loss, d = ObjectiveLoss("soft-margin", num_classes), worlds[0].shape[1]
    objective = LinearObjective(loss, labels, made.regulariser, 1e-9, prior)
    longest = stats.gamma.isf(missed / num_classes, d) / made.rate
    for _ in range(20):
        noise = rng.standard_normal((d, num_classes))
        noise *= rng.gamma(d, 1 / made.rate, size=num_classes) / np.linalg.norm(noise, axis=0)
        if (np.linalg.norm(noise, axis=0) > longest).any():
            continue  # the event that δ pays for
        theta = objective.minimise(worlds[0], noise)
        other = noise - len(labels) * objective.gradient(theta, worlds[1], noise)
        ratio = made.rate * float((np.linalg.norm(other, axis=0) - np.linalg.norm(noise, axis=0)).sum())
        for rows, sign in zip(worlds, (1, -1), strict=True):
            weights = loss.second(rows @ theta, np.eye(num_classes)[labels])
            ridge = len(rows) * made.regulariser * np.eye(d)
            ratio += sign * float(sum(np.linalg.slogdet((rows.T * w) @ rows + ridge)[1] for w in weights.T))
        yield ratio, theta, other - noise
