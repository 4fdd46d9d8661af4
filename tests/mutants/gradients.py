"""Sums of clipped gradients whose rows read neighbours (``learning.neighbour_limits``): how far a hub moves all others.

Worst case: the ring of ``mutants.sums`` whose hub knows everybody, and parameters that anybody may have broadcast, so
large that a small move of a row turns its answer around. The kernel has to project them on the ball that the proof speaks of;
without that the rows move many times as far as is priced.
"""

from collections.abc import Iterator
from unittest import mock

import numpy as np
import scipy.sparse as sp

from fedgraph.audit import lower_bound
from fedgraph.learning import example_gradients, neighbour_limits
from fedgraph.privacy import neighbour_sums
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.events import Gaussian
from fedgraph.privacy.neighbour_sums import priced_log_cap
from fedgraph.privacy.units import Relation
from tests.mutants.bench import BenchCase, BenchClaim
from tests.mutants.sums import RING_OF_SUMS, audited_sums_hub, noisy_sum_worlds

EPSILON, DELTA = 2.0, 1e-3
_CLIP, _SCALE, _BOUND, _LARGE = 0.5, 5.0, 2.0, 1e4
_RUNS = 10_000


def cases() -> Iterator[BenchCase]:
    """The kernel under the log cap, and what it would do without a projection, or without the clip."""
    cap = priced_log_cap(RING_OF_SUMS + 1)
    multiplier = calibrate.gaussian_multiplier(1, EPSILON, DELTA)
    std = multiplier * neighbour_sums.gradient_sensitivity(cap, _CLIP, _BOUND, _SCALE)

    claim, relation = BenchClaim.of(Gaussian(multiplier), DELTA), Relation.NODE_ZERO_OUT.value
    present, absent = noisy_sum_worlds(_sum(True), _sum(False), std)
    sound = BenchCase("neighbour-gradients", relation, claim, present, absent, lower_bound.gaussian(), runs=_RUNS)
    yield sound
    with mock.patch.object(neighbour_limits, "limit_weights", lambda vector, inputs, bound: vector):
        yield sound.broken("parameters not projected", *noisy_sum_worlds(_sum(True), _sum(False), std))


def _sum(there: bool) -> np.ndarray:
    labels = np.zeros(RING_OF_SUMS + 1, dtype=np.int64)
    labels[-1] = 0 if there else -1
    factors = priced_log_cap(RING_OF_SUMS + 1).factors
    weights = [neighbour_limits.log_weights(audited_sums_hub(there), factors) for there in (True, False)]
    features = [sp.csr_array(np.append(np.ones(RING_OF_SUMS), own)[:, None]) for own in (1.0, 0.0)]
    both = [neighbour_limits.rows(f, w, _SCALE) for f, w in zip(features, weights, strict=True)]
    middle = (both[0][0, 1] + both[1][0, 1]) / 2  # between what a row reads with the hub and without it
    reads = _LARGE * np.array([[0.0, 0.0], [1.0, -1.0]])
    vector = neighbour_limits.limit_weights(np.concatenate([reads.T.ravel(), -middle * reads[1]]), 2, _BOUND)
    return example_gradients.outer(vector, both[0 if there else 1], labels, 2, _CLIP).total()
