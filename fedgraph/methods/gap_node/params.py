"""Settings of ``gap_node``: each key with its default."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from fedgraph.documents.settings import Settings
from fedgraph.privacy.units import Relation


class Params(Settings):
    """Settings of ``gap_node``."""

    relation: Literal["node-zero-out", "node-replace"] = Field("node-zero-out", description="neighbouring relation")
    hops: int = Field(2, ge=0, description="aggregations K")
    encoder: Literal["classes", "hidden", "none"] = Field("classes", description="what is aggregated")
    hidden: int = Field(64, ge=1, description="hidden units of the encoder")
    cap: Literal["auto", "log", "limit", "promised"] = Field(
        "auto",
        description="what bounds a node's share of a hop; auto: log where noise is provable, promised where published",
    )
    knee: int = Field(1, ge=1, description="degree up to which the log cap weighs every edge 1")
    limit: int | None = Field(None, ge=1, description="neighbours that the platform allows (cap: limit)")
    typical: int = Field(10, ge=1, description="public guess of a degree: chooses the rule under a limit")
    degree: int = Field(10, ge=1, description="promised maximum degree D, to which neighbourhoods are cut (cap: promised)")
    hop_share: float = Field(0.3, gt=0, lt=1, description="share of the squared loss spent on hops (provable reading)")
    clip: float = Field(0.5, gt=0, description="norm to which a node's gradient is clipped")
    steps: int = Field(60, ge=1, description="gradient steps of the encoder, and again of the classifier")
    sampling_rate: float = Field(1.0, gt=0, le=1, description="Poisson rate of a step's nodes; 1: all of them")
    learning_rate: float = Field(8.0, gt=0, description="step size on the mean clipped gradient")
    momentum: float = Field(0.9, ge=0, lt=1, description="heavy-ball momentum, at the server")
    averaged: float = Field(0.5, gt=0, le=1, description="share of the last iterates that is averaged")
    projection: int = Field(64, ge=0, description="directions learned from the public test graph; 0: all features")

    @model_validator(mode="after")
    def _limit_has_its_number(self) -> Params:
        if (self.cap == "limit") != (self.limit is not None):
            raise ValueError("cap: limit and its number belong together, e.g. {cap: limit, limit: 1000}; give both or none")
        return self

    @property
    def protects(self) -> Relation:
        return Relation(self.relation)
