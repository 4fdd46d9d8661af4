"""GAP at node level: the rows of a client, and the noisy hops, which are computed once and kept.

The hops are released to nobody, but pass the desk and are counted; a client that has lost them makes the same ones again,
from the same input and the same random stream.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import scipy.sparse as sp

from fedgraph.learning.late import torch
from fedgraph.learning.layers.dense import DenseMatrix
from fedgraph.learning.layers.models import Layout, logits
from fedgraph.learning.layers.sparse import FeatureMatrix, unit_rows
from fedgraph.learning.optimisers.public_training import centred_probabilities, hidden_units
from fedgraph.learning.propagation.aggregation import unit_length
from fedgraph.learning.views.projection import ProjectedRows, coordinates
from fedgraph.methods.base import Plan, Streams
from fedgraph.methods.base.node_caps import Caps, aggregate
from fedgraph.methods.gap_node.params import Params
from fedgraph.privacy.desk import Desk, Released
from fedgraph.types import Graph

Stage = Literal["encoder", "classifier"]


@dataclass(frozen=True, eq=False)
class Made:
    """first: rounds of the encoder. caps: how much of each neighbour a hop hears.

    basis: public directions [d, k] that features are projected on, or None. encoder, classifier: layouts of their parameters.
    """

    first: int
    caps: Caps
    basis: np.ndarray | None
    encoder: Layout
    classifier: Layout

    def layout(self, stage: Stage) -> Layout:
        return self.encoder if stage == "encoder" else self.classifier


@dataclass(frozen=True, eq=False)
class Work:
    """A client's rows, its bounded graph, its noisy hops (a cache: rebuilt where missing)."""

    x: FeatureMatrix
    labels: torch.Tensor
    adjacency: sp.csr_array
    hops: dict[str, DenseMatrix] = field(default_factory=dict)


def noisy_rows(
    plan: Plan[Params, Made],
    work: Work,
    model: Mapping[str, np.ndarray],
    round_: int,
    streams: Streams,
    desk: Desk,
    shown: dict[str, Released] | None = None,
) -> DenseMatrix:
    """[H⁰ … Hᴷ] with the noise of round T, from the cache where it is there. shown: takes the noisy hops of round T, for an
    attack that reads all that is priced (``Watch.opened``).
    """
    key = hashlib.sha256(
        np.ascontiguousarray(model["encoder"]).tobytes() + str((streams.root, streams.path[:-1])).encode()
    ).hexdigest()
    first = plan.made.first
    if key not in work.hops or round_ == first:
        rows = [unit_length(sent(plan, model["encoder"], work.x))]
        for number in range(plan.params.hops):
            sums = aggregate(work.adjacency, rows[-1])
            if round_ == first:
                released = desk.release("aggregate", sums)
                noised = released.value
                if shown is not None:
                    shown[hop_name(number)] = released
            else:
                noised = desk.replay("aggregate", sums)
            rows.append(unit_length(noised))
        work.hops.clear()
        work.hops[key] = DenseMatrix(np.concatenate(rows, axis=1))
    return work.hops[key]


def hop_name(number: int) -> str:
    """Of a hop in a message, where an attack reads it."""
    return f"hop {number}"


def sent(plan: Plan[Params, Made], encoder: np.ndarray, x: FeatureMatrix) -> np.ndarray:
    """What a node's neighbours will sum, before scaling: [n, h]."""
    if plan.params.encoder == "none":
        return x.forward.to_dense().cpu().numpy()
    if plan.params.encoder == "hidden":
        return hidden_units(plan.made.encoder, encoder, x)
    return centred_probabilities(logits(plan.made.encoder, encoder, x))


def rows_of(plan: Plan[Params, Made], graph: Graph) -> FeatureMatrix:
    basis = plan.made.basis
    return FeatureMatrix(unit_rows(graph.features)) if basis is None else ProjectedRows(coordinates(graph.features, basis))
