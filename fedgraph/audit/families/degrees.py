"""Sums over neighbours at node level: the log cap, and the bits of a degree gate, where one node changes as much as possible.

Worst case: a ring in which everybody knows four others, and a hub that knows everybody. The hub's own row stays hidden; all
messages point one way, so that what the hub moves adds up over rows. The score is the noisy rows along that movement. Bits:
the gate stands between the degrees that the ring has with and without the hub, where a bit tells most; the score is how many
of the others pass. Hops behind the gate: a hub whose neighbours know nobody else; the score is the log-likelihood ratio of all
bits and of the noisy rows of those who pass, the hub's own coin shown.
"""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtr

from fedgraph.audit.bench import Case, Claim, Sampler, sampler
from fedgraph.audit.closed_form import gaussian
from fedgraph.audit.families.sums import noisy
from fedgraph.learning.sampling.neighbour_sampling import bounded
from fedgraph.learning.sampling.stable_cap import weighted
from fedgraph.privacy.accounting.calibrate import gaussian_multiplier
from fedgraph.privacy.degree_caps import log_cap
from fedgraph.privacy.events import Composed, GatedSums, Gaussian, NoisyDegreeBits
from fedgraph.privacy.mechanisms.noise import GaussianNoise, NoisyThreshold
from fedgraph.privacy.neighbour_sums import sensitivity
from fedgraph.privacy.sensitivity import Degrees, sensitivity_l2
from fedgraph.privacy.units import Relation

EPSILON, DELTA = 1.0, 1e-3
OTHERS, NEAREST, PROMISED = 150, 4, 4
RUNS = 10_000


def cases() -> Iterator[Case]:
    """The log cap; a rule that is too steep, and the cut that refills, priced as if nothing refilled. The gate."""
    yield from _bits()
    yield from _gated_hops()
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


def _bits() -> Iterator[Case]:
    std = gaussian_multiplier(1, EPSILON, DELTA) * sensitivity_l2(Degrees(OTHERS + 1), Relation.NODE_ZERO_OUT)
    gate = NoisyDegreeBits(std, NEAREST + 0.5, OTHERS + 1)
    degrees = [np.diff(hub(there).indptr)[:OTHERS].astype(float) for there in (False, True)]

    @sampler
    def passing(runs: int, rng: np.random.Generator, value: np.ndarray, spread: float) -> np.ndarray:
        mechanism = NoisyThreshold(spread, gate.threshold)
        return np.asarray(mechanism.apply(np.broadcast_to(value, (runs, value.size)), rng).sum(axis=1))

    claim = Claim.of(gate, DELTA)
    relation = Relation.NODE_ZERO_OUT.value
    sound = Case("degree-gate-bits", relation, claim, passing(degrees[0], std), passing(degrees[1], std), gaussian())
    yield sound
    yield sound.broken("noise × ⅔", passing(degrees[0], std * 2 / 3), passing(degrees[1], std * 2 / 3))
    alone = gaussian_multiplier(1, EPSILON, DELTA)
    yield sound.broken("one neighbour for all", passing(degrees[0], alone), passing(degrees[1], alone))


def _gated_hops() -> Iterator[Case]:
    others, spread, delta = 12, 4.0, 1e-2
    gate = NoisyDegreeBits(spread * np.sqrt(others), 30.0, others + 1)
    pass_with, pass_without, own = (float(ndtr((gate.threshold - d) / gate.noise_std)) for d in (1, 0, others))
    tau = 1.5 * np.sqrt(others)
    of_bits = np.log([(1 - pass_with) / (1 - pass_without), pass_with / pass_without])

    @sampler
    def release(runs: int, rng: np.random.Generator, there: bool, std: float) -> np.ndarray:
        bits = NoisyThreshold(gate.noise_std, gate.threshold).apply(np.full((runs, others), float(there)), rng)
        rows = bits * (rng.random((runs, 1)) < own)  # that read the hub
        noisy_rows = GaussianNoise(std).apply(rows * there, rng)
        of_rows = (rows * (noisy_rows - 0.5)).sum(axis=1) / std**2
        return np.asarray(of_bits[bits.astype(np.int64)].sum(axis=1) + of_rows)

    claim = Claim.of(Composed((gate, GatedSums(gate, tau, 1, 0))), delta)
    relation = Relation.NODE_ZERO_OUT.value
    sound = Case("gated-hop", relation, claim, release(True, tau), release(False, tau))
    yield sound
    yield sound.broken("noised at half, priced in full", release(True, tau / 2), release(False, tau / 2))


def hub(there: bool) -> sp.csr_array:
    """The ring, and the last node, which knows everybody or (zeroed) nobody."""
    own = np.arange(OTHERS)
    ends = [np.column_stack([own, (own + step) % OTHERS]) for step in range(1, NEAREST // 2 + 1)]
    ends += [np.column_stack([own, np.full(OTHERS, OTHERS)])] if there else []
    pairs = np.concatenate(ends)
    both = np.concatenate([pairs, pairs[:, ::-1]])
    ones = np.ones(len(both), dtype=np.float32)
    return sp.csr_array((ones, (both[:, 0], both[:, 1])), shape=(OTHERS + 1, OTHERS + 1))
