"""Settings of ``gap_node``: each key with its default."""

from typing import Literal

from pydantic import Field

from fedgraph.methods.base.node_caps import CapSettings


class Params(CapSettings):
    """Settings of ``gap_node``."""

    encoder: Literal["classes", "hidden", "none"] = Field("classes", description="what is aggregated")
    hidden: int = Field(64, ge=1, description="hidden units of the encoder")
    steps: int = Field(60, ge=1, description="gradient steps of the encoder, and again of the classifier")
    learning_rate: float = Field(8.0, gt=0, description="step size on the mean clipped gradient")
    momentum: float = Field(0.9, ge=0, lt=1, description="heavy-ball momentum, at the server")
    averaged: float = Field(0.5, gt=0, le=1, description="share of the last iterates that is averaged")
