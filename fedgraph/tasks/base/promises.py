"""Checks a promise about the data on the data.

A guarantee that rests on a promised degree says nothing about graphs that break the promise: ``privacy.settle`` then prices
the run at ε = ∞, and says how far the data are from the promise and what ε would be if they kept it.
"""

import numpy as np

from fedgraph.methods.base import Plan
from fedgraph.privacy.settle import Promise
from fedgraph.privacy.units import Assumption
from fedgraph.types import Partition


def looked_up(made: Plan, partition: Partition) -> tuple[Promise, ...]:
    """Every promise of the plan beside what the data are; empty where the plan promises nothing.

    Degrees are those of each client's graph as it is given, before any cut.
    """
    promised = made.guarantee.protection.promised_degree
    if promised is None:
        return ()
    degrees = np.concatenate([s.graph.degrees for s in partition.subgraphs])
    above = int((degrees > promised).sum())
    return (Promise(Assumption.PROMISED_DEGREE, promised, int(degrees.max(initial=0)), above, degrees.size),)
