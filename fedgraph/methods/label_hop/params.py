"""Settings of ``label_hop``: each key with its default."""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from fedgraph.documents.settings import Settings
from fedgraph.privacy.units import Relation


class Params(Settings):
    """Settings; ``auto`` follows ε, or s = n·μ of what is left for training (``optimisers.descents.full_width``)."""

    relation: Literal["node-zero-out", "node-replace"] = Field("node-zero-out", description="neighbouring relation")
    label_epsilon: NonNegativeFloat | Literal["auto"] = Field(
        "auto",
        description="pure ε of the answered labels; 0: no hop; auto: 0.7 of ε, at most 2.5, or none and rows alone, as a "
        "private test of the edges finds",
    )
    meeting_share: Annotated[float, Field(gt=0, lt=1)] | Literal["auto"] = Field(
        "auto", description="share of the remaining squared loss for how classes meet; auto: as little as n allows"
    )
    correlation: float = Field(
        0.03, ge=0, lt=1, description="ρ of two neighbours' labels given one's own; d votes count as d/(1 + ρ(d − 1))"
    )
    rows: bool = Field(
        True, description="learn from rows, too; false: the whole ε for labels, and the majority of the neighbours' answers"
    )
    clip: PositiveFloat | Literal["auto"] = Field("auto", description="norm to which each node's gradient is clipped")
    steps: PositiveInt | Literal["auto"] = Field("auto", description="gradient steps, one release each")
    learning_rate: PositiveFloat | Literal["auto"] = Field("auto", description="step size on the mean clipped gradient")
    momentum: float = Field(0.9, ge=0, lt=1, description="heavy-ball momentum, at the server")
    averaged: float = Field(0.5, gt=0, le=1, description="share of the last iterates that is averaged")
    propagation_steps: int = Field(3, ge=0, description="passes over a public test graph, where there is one")

    @property
    def protects(self) -> Relation:
        return Relation(self.relation)
