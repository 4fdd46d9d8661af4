"""Settings of ``gap_edge``: each key with its default."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from fedgraph.methods.base.noisy_hops import HopSettings


class Params(HopSettings):
    """Settings of ``gap_edge``."""

    encoder: Literal["classes", "published", "hidden", "none"] = Field(
        "classes",
        description="what is aggregated; published: networks and training of GAP's released code (16 units, depth: all)",
    )
    hidden: int = Field(64, ge=1, description="hidden units of the encoder (published: of the classifier too)")
    classifier: int = Field(32, ge=0, description="hidden units of the classifier; 0: logistic regression")
    epochs: int = Field(100, ge=1, description="Adam steps of the encoder, half of the classifier's")
    depth: Literal["chosen", "all"] = Field(
        "chosen", description="hops read: chosen on public labels (folds > 1, or encoder none; otherwise all), or all"
    )
    folds: int = Field(
        5,
        ge=1,
        description="folds of the out-of-fold rows (classes); 1: none, the classifier then trusts rows that saw its labels",
    )

    @model_validator(mode="after")
    def _published_reads_all(self) -> Params:
        if self.encoder == "published" and self.depth != "all":
            raise ValueError("encoder: published trains on every hop, as the released code does; write depth: all with it")
        return self

    @property
    def chooses(self) -> bool:
        """Whether the number of hops is chosen on held-out labels.

        It is not where a node's own row comes from a network that was trained on its label: such rows look better than any
        neighbour, so that no hop would ever be read.
        """
        return self.depth == "chosen" and not self.in_sample

    @property
    def in_sample(self) -> bool:
        """Whether own rows of labelled nodes come from a network that was trained on their labels."""
        return self.encoder == "hidden" or (self.encoder == "classes" and self.folds == 1)
