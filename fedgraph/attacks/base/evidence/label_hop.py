"""Evidence in the answers of ``label_hop``."""

import numpy as np

from fedgraph.methods import State, label_hop
from fedgraph.types import Graph


def evidence(plan: label_hop.Planned, state: State[label_hop.Memory], graph: Graph, units: np.ndarray) -> np.ndarray | None:
    """float64 [m]: for each unit (node, label in version 0, label in version 1) whether its answer names the label of version 1
    minus whether it names that of version 0; None if there are no answers.
    """
    if state.memory.answers is None:
        return None
    named, (node, before, after) = state.memory.answers, units[:, :3].T
    return np.asarray(named[node, after].astype(float) - named[node, before])
