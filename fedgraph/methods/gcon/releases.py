"""Settings of ``gcon``, the rows X of its encoder (only public data enter), and what a client releases: one perturbed
minimiser, its constants fixed from public numbers and the budget.
"""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, field_validator, model_validator

from fedgraph.documents import InfiniteSetting, Settings
from fedgraph.learning import LinearObjective, ObjectiveLoss, ObjectiveLossName, scale_to_unit_length
from fedgraph.learning import public_training as public
from fedgraph.methods.base import Budget, PublicFacts
from fedgraph.privacy import Event, PlannedRelease, Unprotected, gaussian_objective
from fedgraph.privacy import gcon_noise as claim
from fedgraph.privacy import objective_perturbation as perturbing
from fedgraph.types import Graph


class Params(Settings):
    steps: Annotated[tuple[Annotated[float, Field(ge=0)], ...], InfiniteSetting] = Field(
        (2,), description="propagation steps m₁ … m_s; inf: convergence"
    )
    restart: float = Field(0.4, gt=0, le=1, description="restart probability α")
    cap: float = Field(0.5, gt=0, le=0.5, description="largest weight of a neighbour, p")
    loss: ObjectiveLossName = Field("soft-margin", description="soft-margin | pseudo-huber")
    width: float = Field(1.0, gt=0, description="width of the pseudo-Huber loss")
    regulariser: Annotated[float, Field(gt=0)] | Literal["auto"] = Field(
        "auto", description="Λ; auto: ten times the value it must exceed, at least 0.02"
    )
    prior: Annotated[float, Field(ge=0)] | Literal["auto"] = Field(
        "auto", description="scale of Θ₀, to which Θ is pulled; 0: as published; auto: 3 with encoder classes, else 0"
    )
    noise: Literal["gamma", "gaussian"] = Field(
        "gamma", description="in the objective: gamma as published | gaussian: less of it"
    )
    share: float = Field(0.9, gt=0, lt=1, description="least share of ε for the noise, ω")
    release: Literal["trained", "nothing"] = Field("trained", description="Θ: the noisy minimiser, or the prior as it is")
    encoder: Literal["classes", "hidden", "none"] = Field("classes", description="rows X: class scores, hidden units, features")
    centred: bool = Field(True, description="hidden units minus their mean over the public nodes (hidden)")
    hidden: int = Field(64, ge=1, description="hidden units of the encoder")
    epochs: int = Field(100, ge=1, description="Adam steps of the encoder")
    folds: int = Field(5, ge=1, description="folds of the out-of-fold rows (classes); 1: none, rows then saw their labels")
    inference: ClassVar[str] = "auto"  # test graph: public where it is, else own edges
    inference_restart: ClassVar[str] = "same"  # α with own edges

    @model_validator(mode="after")
    def _prior_reads_classes(self) -> Self:
        if self.encoder != "classes" and self.scale:
            raise ValueError(f"prior reads the encoder's class scores: encoder {self.encoder!r} needs prior: 0")
        if self.release == "nothing" and not self.scale:
            raise ValueError("release: nothing predicts with the prior alone: it needs encoder: classes and a prior > 0")
        return self

    @property
    def scale(self) -> float:
        """The prior's scale, resolved."""
        return (3.0 if self.encoder == "classes" else 0.0) if self.prior == "auto" else self.prior

    @field_validator("steps")
    @classmethod
    def _whole(cls, values: tuple[float, ...]) -> tuple[float, ...]:
        if not values or any(not (math.isinf(m) or m == int(m)) for m in values):
            raise ValueError(f"steps must be whole numbers ≥ 0, or inf for convergence, at least one; found {list(values)}")
        return values


@dataclass(frozen=True, eq=False)
class Made:
    """What the plan made of public facts."""

    attributes: Graph  # every node's public features and labels
    own_edges: bool  # a node reads its own edges at inference: predictions are for the nodes that were trained on


_GRADIENT_NORM = 1e-9  # of an accepted minimiser
_LEAST_REGULARISER = 0.02  # of "auto"


def of_minimiser(
    params: Params, facts: PublicFacts, budget: Budget, client: int, labels: np.ndarray, weight: float
) -> PlannedRelease:
    """The client's perturbed minimiser: Λ, β and the output noise for its ``labels`` (int64 [n₁])."""
    c, s = facts.num_classes, len(params.steps)
    d = s * {"classes": c, "hidden": params.hidden, "none": facts.num_features}[params.encoder]
    event: Event = Unprotected("the minimiser without noise")
    regulariser, rate, std, output_std = _regulariser(params, 0.0), math.inf, 0.0, 0.0
    if budget.private:
        given = gaussian_objective.Situation(
            epsilon=budget.epsilon,
            delta=budget.delta,
            share=params.share,
            bounds=claim.gcon_soft_margin(c) if params.loss == "soft-margin" else claim.gcon_pseudo_huber(c, params.width),
            sensitivity=claim.claimed_gcon_psi(params.steps, params.restart, params.cap),
            num_classes=c,
            dimension=d,
            num_labelled=labels.size,
            prior_norm=params.scale * math.sqrt(s),
            per_end=facts.cut_edges_shared,
        )
        if params.noise == "gaussian":
            least = gaussian_objective.least_regulariser(given)
            normal = gaussian_objective.calibrated(given, _regulariser(params, least), _GRADIENT_NORM)
            regulariser, std, output_std, event = normal.regulariser, normal.noise_std, normal.output_std, normal.event
        else:
            found = perturbing.calibrated(given, _regulariser(params, perturbing.least_regulariser(given)), _GRADIENT_NORM)
            regulariser, rate, output_std, event = found.regulariser, found.rate, found.output_std, found.event
    loss = ObjectiveLoss(params.loss, c, params.width)
    problem = LinearObjective(loss, labels, regulariser, _GRADIENT_NORM, params.scale)
    mechanism = perturbing.ObjectivePerturbation(c, rate, _GRADIENT_NORM, output_std, problem, weight, std)
    return PlannedRelease("theta", perturbing.ObjectiveRows(labels.size, d), mechanism, event, range(1), client=client)


def _regulariser(params: Params, least: float) -> float:
    return max(_LEAST_REGULARISER, 10 * least) if params.regulariser == "auto" else params.regulariser


def prior(params: Params, num_classes: int) -> np.ndarray:
    """Θ₀, [s·c, c]: every part of a row of Z is read as class scores."""
    loss = ObjectiveLoss(params.loss, num_classes, params.width)
    objective = LinearObjective(loss, np.zeros(0, np.int64), 1.0, 1.0, params.scale)
    return objective.centre(len(params.steps) * num_classes)


@dataclass(frozen=True, eq=False)
class Memory:
    """What the server remembers."""

    parameters: np.ndarray  # of the encoder, flat float32, also for the rows of new nodes
    mean: np.ndarray | None  # float [h], of the rows of the public nodes, where it is taken off; else None
    rows: np.ndarray  # float64 [n, h], X of all nodes


def _encoder(params: Params) -> public.PublicTrainingEncoder:
    how = public.PublicTrainingSteps(params.epochs, 0.01, 5e-4)
    return public.PublicTrainingEncoder(params.encoder, params.hidden, params.folds, how)


def gcon_rows_of_public(attributes: Graph, params: Params) -> Memory:
    """The trained encoder, and X of every public node.

    Hidden units are positive, so unit rows of them are much alike: ``centred`` subtracts their mean over these nodes, whose
    features are public, and scales again.
    """
    encoded = public.encode(attributes, _encoder(params))
    mean = encoded.own.mean(axis=0) if params.encoder == "hidden" and params.centred else None
    return Memory(encoded.parameters, mean, _scaled(encoded.own, mean))


def gcon_rows_of_new(memory: Memory, params: Params, graph: Graph) -> np.ndarray:
    """X of the nodes of another public graph with the same features, float64 [n, h]."""
    return _scaled(public.encode_after(memory.parameters, _encoder(params), graph), memory.mean)


def _scaled(rows: np.ndarray, mean: np.ndarray | None) -> np.ndarray:
    """Norm 1 where a mean was taken off; else scaled down where it is above 1."""
    out = np.asarray(rows if mean is None else scale_to_unit_length(rows - mean), dtype=np.float64)
    return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1.0)
