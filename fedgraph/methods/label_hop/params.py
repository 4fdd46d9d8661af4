"""Settings of ``label_hop``: each key with its default."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from fedgraph.documents.settings import Settings
from fedgraph.privacy.units import Relation


class Params(Settings):
    """Settings; ``auto`` follows ε, or s = n·μ of what is left for training (``optimisers.dp_training.full_width``)."""

    relation: Literal["node-zero-out", "node-replace"] = Field("node-zero-out", description="neighbouring relation")
    label_epsilon: NonNegativeFloat | Literal["auto"] = Field(
        "auto",
        description="pure ε of the answered labels; auto: half of ε, at most 2.5, and 0 (no hop) below ε = 3, or with "
        "few nodes per class",
    )
    meeting_share: float = Field(0.1, gt=0, lt=1, description="share of the remaining squared loss for how classes meet")
    kept: float = Field(0.125, gt=0, le=1, description="share of edges, by public coins, among which meetings are counted")
    clip: PositiveFloat | Literal["auto"] = Field("auto", description="norm to which each node's gradient is clipped")
    steps: PositiveInt | Literal["auto"] = Field("auto", description="gradient steps, one release each")
    learning_rate: PositiveFloat | Literal["auto"] = Field("auto", description="step size on the mean clipped gradient")
    momentum: float = Field(0.9, ge=0, lt=1, description="heavy-ball momentum, at the server")
    averaged: float = Field(0.5, gt=0, le=1, description="share of the last iterates that is averaged")
    propagation_steps: int = Field(3, ge=0, description="passes over a public test graph, where there is one")

    @property
    def protects(self) -> Relation:
        return Relation(self.relation)
