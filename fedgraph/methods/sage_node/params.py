"""Settings of ``sage_node``: each key with its default."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fedgraph.documents.settings import Settings
from fedgraph.privacy.units import Relation


class Params(Settings):
    """Settings of ``sage_node``."""

    relation: Literal["node-zero-out", "node-replace"] = Field("node-zero-out", description="neighbouring relation")
    hidden: int = Field(32, ge=1, description="hidden units of a two-layer network")
    layers: Literal[1, 2] = Field(1, description="layers")
    cap: Literal["auto", "log", "limit", "promised"] = Field(
        "auto", description="what bounds the rows a node touches; auto: log where noise is provable, promised where it is not"
    )
    knee: int = Field(1, ge=1, description="degree up to which the log cap weighs every edge 1")
    limit: int | None = Field(None, ge=1, description="neighbours that the platform allows (cap: limit)")
    scale: Annotated[float, Field(gt=0)] | Literal["auto"] = Field(
        "auto", description="what sums over neighbours are divided by (log); auto: they cost as much as the own row"
    )
    bound: float = Field(2.0, gt=0, description="norm that the weights of the neighbours' part keep (log)")
    degree: int = Field(10, ge=1, description="promised maximum degree D, to which neighbourhoods are cut (cap: promised)")
    clip: float = Field(0.5, gt=0, description="norm to which a subgraph's gradient is clipped")
    steps: int = Field(60, ge=1, description="gradient steps")
    batches: Literal["fixed", "poisson"] = Field("fixed", description="batches without replacement, or by coins")
    sampling_rate: float = Field(1.0, gt=0, le=1, description="share of the nodes in a batch; 1: all of them")
    learning_rate: float = Field(8.0, gt=0, description="step size on the mean clipped gradient")
    momentum: float = Field(0.9, ge=0, lt=1, description="heavy-ball momentum")
    averaged: float = Field(0.5, gt=0, le=1, description="share of the last iterates that is averaged")
    projection: int = Field(64, ge=0, description="directions learned from the public test graph; 0: all features")

    @model_validator(mode="after")
    def _limit_has_its_number(self) -> Params:
        if (self.cap == "limit") != (self.limit is not None):
            raise ValueError("cap: limit and its number belong together, e.g. {cap: limit, limit: 50}; give both or none")
        return self

    @property
    def protects(self) -> Relation:
        return Relation(self.relation)
