"""Settings of ``sage_node``: each key with its default."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from fedgraph.privacy.units import Relation
from fedgraph.settings import Settings


class Params(Settings):
    """Settings of ``sage_node``."""

    relation: Literal["node-zero-out", "node-replace"] = Field("node-zero-out", description="neighbouring relation")
    hidden: int = Field(32, ge=1, description="hidden units of a two-layer network")
    layers: Literal[1, 2] = Field(1, description="layers")
    degree: int = Field(10, ge=1, description="promised maximum degree D")
    clip: float = Field(0.5, gt=0, description="norm to which a subgraph's gradient is clipped")
    steps: int = Field(60, ge=1, description="gradient steps")
    batches: Literal["fixed", "poisson"] = Field("fixed", description="batches without replacement, or by coins")
    sampling_rate: float = Field(1.0, gt=0, le=1, description="share of the nodes in a batch; 1: all of them")
    learning_rate: float = Field(8.0, gt=0, description="step size on the mean clipped gradient")
    momentum: float = Field(0.9, ge=0, lt=1, description="heavy-ball momentum")
    averaged: float = Field(0.5, gt=0, le=1, description="share of the last iterates that is averaged")
    projection: int = Field(64, ge=0, description="directions learned from the public test graph; 0: all features")

    @property
    def protects(self) -> Relation:
        return Relation(self.relation)
