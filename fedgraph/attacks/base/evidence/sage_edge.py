"""Evidence of an edge in the noisy graph of ``sage_edge``."""

import numpy as np

from fedgraph.methods import State, sage_edge
from fedgraph.types import Graph


def evidence(plan: sage_edge.Planned, state: State[sage_edge.Memory], graph: Graph, pairs: np.ndarray) -> np.ndarray | None:
    """float64 [m]: for each pair [m, 2] 1 if the noisy graph has the edge, else −½, as it says less; None if not kept."""
    received = state.memory.received
    if received is None:
        return None
    return np.where(np.asarray(received[pairs[:, 0], pairs[:, 1]]).ravel() > 0, 1.0, -0.5)
