"""A promise about the data, held against the data.

A guarantee that rests on a promised degree says nothing about graphs that break the promise: there its provable ε is ∞, and
the sentence made here says how far the data are from the promise and what ε would be if they kept it.
"""

from __future__ import annotations

import math

import numpy as np

from fedgraph.methods.base import Plan
from fedgraph.types import Partition


def broken(made: Plan, partition: Partition, epsilon: float) -> str | None:
    """What the data do to the plan's promise, in one sentence; None where the plan promises nothing or the data keep it.

    epsilon: the price under the promise. Degrees are those of each client's graph as it is given, before any cut.
    """
    promised = made.protection.promised_degree
    if promised is None or not np.isfinite(epsilon):
        return None
    degrees = np.concatenate([s.graph.degrees for s in partition.subgraphs])
    above = int((degrees > promised).sum())
    if not above:
        return None
    share, kept = 100 * above / degrees.size, math.ceil(epsilon * 1e4) / 1e4
    return (
        f"no node may have more than D = {promised} neighbours, but {above} of {degrees.size} nodes ({share:.1f} %) do, up to "
        f"{degrees.max()}; if none did, ε would be at most {kept:g}."
    )
