"""What the answers of ``label_hop`` say."""

import numpy as np

from fedgraph.methods import State, label_hop
from fedgraph.types import Graph


def evidence(plan: label_hop.Planned, state: State[label_hop.Memory], graph: Graph, units: np.ndarray) -> np.ndarray | None:
    """Per unit (node, label in version 0, label in version 1): what its answer says, 1 or −1 where it is one of them."""
    if state.memory.answers is None:
        return None
    named, (node, before, after) = state.memory.answers, units[:, :3].T
    return np.asarray(named[node, after].astype(float) - named[node, before])
