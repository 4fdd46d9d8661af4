"""Evidence in the randomised rows and labels of ``lpgnn``."""

import math

import numpy as np
import scipy.sparse as sp

from fedgraph.methods import State, lpgnn, require_received
from fedgraph.privacy import SampledBits, noise
from fedgraph.types import Graph


def evidence(plan: lpgnn.Planned, state: State[lpgnn.Memory], graph: Graph, units: np.ndarray) -> np.ndarray:
    """float64 [m], log-likelihood ratios of units (node, label in version 0, label in version 1, whether version 0 has an empty
    row).

    ``graph`` has the rows of version 1. A label is sent as it is with probability p, else as one of the others, and counts
    ln p(c − 1)/(1 − p) for or against. Bits of rows that differ add their ratios. Without noise only the signs mean something.
    """
    received = require_received(plan, state.memory.labels)[units[:, 0]]
    keep, c = plan.made.keep, plan.facts.num_classes
    size = math.log(keep * (c - 1) / (1 - keep)) if keep < 1 else 1.0
    found = size * ((received == units[:, 2]).astype(float) - (received == units[:, 1]))
    mechanism, bits = plan.schedule.releases[0].mechanism, state.memory.features
    if units.shape[1] < 4 or bits is None or not isinstance(mechanism, SampledBits):
        return found
    law = (mechanism.low, mechanism.high, mechanism.epsilon_per_bit)
    for place, (node, _, _, differs) in enumerate(units):
        sent = sp.csr_array(bits[[int(node)]])
        if not differs or not sent.nnz:
            continue
        one = noise.chance_of_bit(graph.features[[int(node)]].toarray().ravel()[sent.indices], *law)
        zero = noise.chance_of_bit(np.zeros(sent.nnz), *law)
        found[place] += np.where(sent.data > 0, np.log(one / zero), np.log((1 - one) / (1 - zero))).sum()
    return found
