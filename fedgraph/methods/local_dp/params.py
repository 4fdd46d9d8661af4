"""Settings of ``local_dp``: the shared model, who takes part, and the encoder."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fedgraph.learning.layers import small_graphs
from fedgraph.methods.local_dp.encoders import Encoder, Rule
from fedgraph.settings import Settings

ENCODING = ("bits_per_row", "encoder", "epsilon_rule", "rectify", "embedding", "promised_degree")  # no update needs these


class Params(Settings):
    """Settings of the shared model, of who takes part, and of the encoder."""

    model: small_graphs.Model = Field("gcn", description="shared model: gcn (two layers) or gin")
    hidden: int = Field(16, ge=1, description="hidden units of the shared model")
    layers: int = Field(5, ge=1, description="message rounds of gin (the gcn has two)")
    pooling: small_graphs.Pooling = Field(
        "mean", description="where clients hold whole graphs: mean or sum of node scores; none: labels belong to nodes"
    )
    normalise: bool = Field(True, description="gin: divide each row by its root mean square after every layer")
    rounds: int = Field(60, ge=1, description="FedAvg rounds before embeddings are retrieved")
    local_epochs: int = Field(2, ge=1, description="full-batch steps per client and round")
    optimiser: Literal["descent", "adam"] = Field(
        "descent", description="local steps: plain gradient descent, or Adam from scratch"
    )
    learning_rate: float = Field(4.0, gt=0, allow_inf_nan=False, description="step size of the local steps")
    proximal: float = Field(0.0, ge=0, allow_inf_nan=False, description="FedProx weight μ of ½‖w − w₀‖²; 0 is FedAvg")
    client_fraction: float = Field(1.0, gt=0, le=1, description="share of the clients still there that train in a round")
    dropout: float = Field(0.0, ge=0, lt=1, description="probability that a client leaves for good before a round")
    retrieval_period: int | None = Field(
        None, ge=1, description="rounds between retrievals of embeddings; none: one, at the end"
    )
    keep_every: int | None = Field(
        None, ge=1, description="rounds between copies of the model that the server keeps, to look at training (default: none)"
    )
    attendance_seed: int = Field(0, ge=0, description="root of the public coins of who takes part")
    embedding: small_graphs.Source = Field(
        "softmax", description="softmax output, or hidden: x/(1 + x) of the last hidden layer"
    )
    personal: bool = Field(True, description="one graph per client: embed after one more local training (Algorithm 3)")
    encoder: Encoder = Field("multi-bit", description="multi-bit, multi-bit-total, multi-bit-node, gaussian-as-coded or none")
    epsilon_rule: Rule = Field("epsilon", description="a graph's ε: the budget, or the budget times 1/n for n nodes")
    bits_per_row: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        "auto", description="entries of each row (or of the matrix) that are sent; auto: max(1, min(h, floor(ε/2.18)))"
    )
    rectify: bool = Field(False, description="the server makes multi-bit embeddings unbiased before it compares them")
    promised_degree: int | None = Field(None, ge=1, description="promised maximum degree: multi-bit-node then protects a node")
