"""What a GCON client releases: one perturbed minimiser, its constants fixed from public numbers and the budget."""

import math
from dataclasses import dataclass

import numpy as np

from fedgraph.learning.optimisers.objective import LinearObjective, Loss
from fedgraph.methods.base import Budget, PublicFacts
from fedgraph.methods.gcon.params import Params
from fedgraph.privacy.claims import gcon as claim
from fedgraph.privacy.desk import PlannedRelease
from fedgraph.privacy.events import Event, Unprotected
from fedgraph.privacy.mechanisms import gaussian_objective
from fedgraph.privacy.mechanisms import objective_perturbation as perturbing

GRADIENT_NORM = 1e-9  # of an accepted minimiser
IN_CLEAR = Unprotected("the minimiser without noise")
LEAST_REGULARISER = 0.02  # of "auto"


def minimiser(
    params: Params, facts: PublicFacts, budget: Budget, client: int, labels: np.ndarray, weight: float
) -> PlannedRelease:
    """The client's perturbed minimiser: Λ, β and the output noise for its ``labels`` (int64 [n₁])."""
    c, s = facts.sizes.num_classes, len(params.steps)
    d = s * {"classes": c, "hidden": params.hidden, "none": facts.sizes.num_features}[params.encoder]
    noise = Noise(_regulariser(params, 0.0))
    if budget.private:
        given = gaussian_objective.Situation(
            epsilon=budget.epsilon,
            delta=budget.delta,
            share=params.share,
            bounds=claim.soft_margin(c) if params.loss == "soft-margin" else claim.pseudo_huber(c, params.width),
            sensitivity=claim.psi(params.steps, params.restart, params.cap),
            num_classes=c,
            dimension=d,
            num_labelled=labels.size,
            prior_norm=params.scale * math.sqrt(s),
            per_end=facts.membership.cut_edges_shared,
        )
        noise = _gaussian(params, given) if params.noise == "gaussian" else _gamma(params, given)
    problem = LinearObjective(Loss(params.loss, c, params.width), labels, noise.regulariser, GRADIENT_NORM, params.scale)
    mechanism = perturbing.ObjectivePerturbation(c, noise.rate, GRADIENT_NORM, noise.output_std, problem, weight, noise.std)
    return PlannedRelease("theta", perturbing.UnitRows(labels.size, d), mechanism, noise.event, range(1), client=client)


@dataclass(frozen=True)
class Noise:
    """What the objective gets. regulariser: Λ + Λ′. rate: β of Gamma noise (∞: none). std: σ of Gaussian noise (0: none)."""

    regulariser: float
    rate: float = math.inf
    std: float = 0.0
    output_std: float = 0.0
    event: Event = IN_CLEAR


def _regulariser(params: Params, least: float) -> float:
    """Λ: as given, or ten times the value that it must exceed."""
    return max(LEAST_REGULARISER, 10 * least) if params.regulariser == "auto" else params.regulariser


def _gaussian(params: Params, given: gaussian_objective.Situation) -> Noise:
    regulariser = _regulariser(params, gaussian_objective.least_regulariser(given))
    found = gaussian_objective.calibrated(given, regulariser, GRADIENT_NORM)
    return Noise(found.regulariser, std=found.noise_std, output_std=found.output_std, event=found.event)


def _gamma(params: Params, given: claim.Situation) -> Noise:
    found = perturbing.calibrated(given, _regulariser(params, perturbing.least_regulariser(given)), GRADIENT_NORM)
    return Noise(found.regulariser, found.rate, output_std=found.output_std, event=found.event)


def prior(params: Params, num_classes: int) -> np.ndarray:
    """Θ₀, [s·c, c]: every part of a row of Z is read as class scores."""
    objective = LinearObjective(Loss(params.loss, num_classes, params.width), np.zeros(0, np.int64), 1.0, 1.0, params.scale)
    return objective.centre(len(params.steps) * num_classes)
