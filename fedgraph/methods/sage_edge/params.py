"""Settings of ``sage_edge``: each key with its default."""

from typing import Literal

from pydantic import Field

from fedgraph.documents.settings import Settings
from fedgraph.privacy.units import Relation


class Params(Settings):
    """Settings of ``sage_edge``."""

    relation: Literal["edge-undirected"] = Field("edge-undirected", description="neighbouring relation")
    hidden: int = Field(32, ge=1, description="hidden units of a two-layer network")
    network: Literal["sage", "gcn"] = Field("sage", description="what is trained on the perturbed graph; gcn: DPGCN")
    adjacency: Literal["edgerand", "lapgraph"] = Field("lapgraph", description="how edges are perturbed")
    count_share: float = Field(0.01, gt=0, lt=1, description="share of ε for the number of edges (lapgraph)")
    memory_gb: float = Field(2.0, gt=0, description="memory the perturbed graph may take, in GB")
    epochs: int = Field(100, ge=1, description="Adam steps")
    training_rate: float = Field(0.01, gt=0, description="Adam step size")
    weight_decay: float = Field(5e-4, ge=0, description="L2 weight")

    @property
    def protects(self) -> Relation:
        return Relation(self.relation)
