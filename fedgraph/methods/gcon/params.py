"""Settings of ``gcon``: each key with its default; and what a plan works out from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from fedgraph.documents.settings import Infinite, Settings
from fedgraph.learning.optimisers.objective import LossName
from fedgraph.types import Graph


class Params(Settings):
    """Settings of ``gcon``."""

    steps: Annotated[tuple[Annotated[float, Field(ge=0)], ...], Infinite] = Field(
        (2,), description="propagation steps m₁ … m_s; inf: convergence"
    )
    restart: float = Field(0.4, gt=0, le=1, description="restart probability α")
    cap: float = Field(0.5, gt=0, le=0.5, description="largest weight of a neighbour, p")
    loss: LossName = Field("soft-margin", description="soft-margin | pseudo-huber")
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
    inference: Literal["auto", "own-edges", "public"] = Field("auto", description="test graph; auto: public where it is")
    inference_restart: Annotated[float, Field(ge=0, le=1)] | Literal["same"] = Field("same", description="α with own edges")

    @model_validator(mode="after")
    def _prior_reads_classes(self) -> Params:
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
    """attributes: every node's public features and labels. own_edges: a node reads its own edges at inference.
    same_nodes: predictions are for the nodes that were trained on.
    """

    attributes: Graph
    own_edges: bool
    same_nodes: bool
