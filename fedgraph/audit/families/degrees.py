"""Sums over neighbours at node level: the log cap, where one node changes as much as possible.

Worst case: a ring in which everybody knows four others, and a hub that knows everybody. The hub's own row stays hidden; all
messages point one way, so that what the hub moves adds up over rows. The score is the noisy rows along that movement.
"""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from fedgraph.audit.bench import Case, Claim, Sampler
from fedgraph.audit.closed_form import gaussian
from fedgraph.audit.families.sums import noisy
from fedgraph.learning.sampling.neighbour_sampling import bounded
from fedgraph.learning.sampling.stable_cap import weighted
from fedgraph.privacy.accounting.calibrate import gaussian_multiplier
from fedgraph.privacy.events import Gaussian
from fedgraph.privacy.neighbour_sums import log_cap, sensitivity
from fedgraph.privacy.units import Relation

EPSILON, DELTA = 1.0, 1e-3
OTHERS, NEAREST, PROMISED = 150, 4, 4
RUNS = 10_000


def cases() -> Iterator[Case]:
    """The log cap; a rule that is too steep, and the cut that refills, priced as if nothing refilled."""
    multiplier = gaussian_multiplier(1, EPSILON, DELTA)
    claim, cap = Claim.of(Gaussian(multiplier), DELTA), log_cap(OTHERS + 1)
    there, gone = hub(True), hub(False)
    ones, signs = np.ones((OTHERS + 1, 1)), np.where(np.arange(OTHERS + 1) % 2, 1.0, -1.0)[:, None]

    def release(one: sp.csr_array, other: sp.csr_array, messages: np.ndarray, std: float) -> tuple[Sampler, Sampler]:
        values = [(matrix @ messages)[:OTHERS].ravel() for matrix in (one, other)]
        return noisy(values[0], std, values[0] - values[1]), noisy(values[1], std, values[0] - values[1])

    std = multiplier * cap.sensitivity_l2()
    right = (weighted(there, cap.factors), weighted(gone, cap.factors))
    present, absent = release(*right, ones, std)
    sound = Case("log-cap-hop", Relation.NODE_ZERO_OUT.value, claim, present, absent, gaussian(), runs=RUNS)
    yield sound
    steep = np.maximum(0.0, 2 * cap.factors - 1)
    yield sound.broken("h twice as steep", *release(weighted(there, steep), weighted(gone, steep), ones, std))
    ids = np.arange(OTHERS + 1)
    cut = (bounded(there, PROMISED, ids), bounded(gone, PROMISED, ids))
    claimed = multiplier * sensitivity(Relation.NODE_ZERO_OUT, PROMISED, rows_released=False)
    yield sound.broken("cut with refill priced as √D", *release(*cut, signs, claimed))


def hub(there: bool) -> sp.csr_array:
    """The ring, and the last node, which knows everybody or (zeroed) nobody."""
    own = np.arange(OTHERS)
    ends = [np.column_stack([own, (own + step) % OTHERS]) for step in range(1, NEAREST // 2 + 1)]
    ends += [np.column_stack([own, np.full(OTHERS, OTHERS)])] if there else []
    pairs = np.concatenate(ends)
    both = np.concatenate([pairs, pairs[:, ::-1]])
    ones = np.ones(len(both), dtype=np.float32)
    return sp.csr_array((ones, (both[:, 0], both[:, 1])), shape=(OTHERS + 1, OTHERS + 1))
