"""What a GCON client releases: one perturbed minimiser, its constants fixed from public numbers and the budget."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fedgraph.learning.optimisers.objective import LinearObjective, Loss
from fedgraph.methods.base import Budget, PublicFacts
from fedgraph.privacy.claims import gcon as claim
from fedgraph.privacy.desk import PlannedRelease
from fedgraph.privacy.events import Event, Unprotected
from fedgraph.privacy.mechanisms import objective_perturbation as perturbing

if TYPE_CHECKING:
    from fedgraph.methods.gcon import Params

GRADIENT_NORM = 1e-9  # of an accepted minimiser
LEAST_REGULARISER = 0.02  # of "auto"


def minimiser(
    params: Params, facts: PublicFacts, budget: Budget, client: int, labels: np.ndarray, weight: float
) -> PlannedRelease:
    """The client's perturbed minimiser: Λ, β and the output noise for its ``labels`` (int64 [n₁])."""
    c, s = facts.num_classes, len(params.steps)
    d = s * {"classes": c, "hidden": params.hidden, "none": facts.num_features}[params.encoder]
    rate, std = math.inf, 0.0
    event: Event = Unprotected("the minimiser without noise")
    regulariser = LEAST_REGULARISER if params.regulariser == "auto" else params.regulariser
    if budget.private:
        same: dict[str, Any] = {
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "share": params.share,
            "bounds": claim.soft_margin(c) if params.loss == "soft-margin" else claim.pseudo_huber(c, params.width),
            "sensitivity": claim.psi(params.steps, params.restart, params.cap),
            "num_classes": c,
            "dimension": d,
            "num_labelled": labels.size,
            "per_end": facts.cut_edges_shared,
        }
        if params.regulariser == "auto":
            regulariser = max(regulariser, 10 * perturbing.least_regulariser(**same))
        norm = params.scale * math.sqrt(s)
        found = perturbing.calibrated(regulariser=regulariser, gradient_norm=GRADIENT_NORM, prior_norm=norm, **same)
        rate, std, event, regulariser = found.rate, found.output_std, found.event, found.regulariser
    problem = LinearObjective(Loss(params.loss, c, params.width), labels, regulariser, GRADIENT_NORM, params.scale)
    mechanism = perturbing.ObjectivePerturbation(c, rate, GRADIENT_NORM, std, problem, weight)
    return PlannedRelease("theta", perturbing.UnitRows(labels.size, d), mechanism, event, range(1), client=client)


def prior(params: Params, num_classes: int) -> np.ndarray:
    """Θ₀, [s·c, c]: every part of a row of Z is read as class scores."""
    objective = LinearObjective(Loss(params.loss, num_classes, params.width), np.zeros(0, np.int64), 1.0, 1.0, params.scale)
    return objective.centre(len(params.steps) * num_classes)
