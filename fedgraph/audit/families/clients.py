"""Overlapping clients: a node that k clients hold is sent k times.

One secure sum: the viewer sees Σ messages, so the sensitivities add up *before* the noise, Δ = kC. Own
messages: the viewer sees each, so the losses compose, μ² = Σ μᵢ². Worst case: every client's contribution
points the same way, as long as the clip.
"""

import math
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from fedgraph.audit.bench import Case, Claim, Sampler
from fedgraph.audit.closed_form import gaussian
from fedgraph.privacy.accounting import composition
from fedgraph.privacy.accounting.calibrate import gaussian_multiplier
from fedgraph.privacy.events import Gaussian
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.sensitivity import L2Ball, sensitivity_l2
from fedgraph.privacy.units import Relation

EPSILON, DELTA = 1.0, 1e-3
NUM_CLIENTS = 4
BOUND = L2Ball(0.5)
RELATION = Relation.NODE_ZERO_OUT


def cases() -> Iterator[Case]:
    """One secure sum (linear); each client's own message (squares)."""
    each = sensitivity_l2(BOUND, RELATION)
    multiplier = gaussian_multiplier(1, EPSILON, DELTA)
    yield from _secure_sum(each, multiplier)
    yield from _own_messages(each, multiplier)


def _secure_sum(each: float, multiplier: float) -> Iterator[Case]:
    linear, squares = NUM_CLIENTS * each, math.sqrt(NUM_CLIENTS) * each
    std = multiplier * linear
    held = sp.csr_array(np.full((NUM_CLIENTS, 1), each))
    claim = Claim.paid(composition.overlapping_secure(held, std, 1, DELTA).price, DELTA)

    def release(row: float, share: float) -> Sampler:
        return lambda runs, rng: messages(row, share, runs, rng).sum(axis=1)

    def of_total(total: float) -> tuple[Sampler, Sampler]:
        """Every client adds its share of a total noise of this standard deviation."""
        return release(9.0, total / math.sqrt(NUM_CLIENTS)), release(0.0, total / math.sqrt(NUM_CLIENTS))

    relation = f"{RELATION.value}, secure sum"
    sound = Case("overlapping-secure-sum", relation, claim, *of_total(std), gaussian())
    yield sound
    yield sound.broken("clients added in squares", *of_total(multiplier * squares))
    share = std / NUM_CLIENTS
    yield sound.broken("noise shares 1/k, not 1/√k", release(9.0, share), release(0.0, share))


def _own_messages(each: float, multiplier: float) -> Iterator[Case]:
    std = multiplier * math.sqrt(NUM_CLIENTS) * each
    spent = {client: Gaussian(std / each) for client in range(NUM_CLIENTS)}
    held = sp.csr_array(np.ones((NUM_CLIENTS, 1)))
    claim = Claim.paid(composition.overlapping(spent, held, DELTA).price, DELTA)

    def release(row: float, noise: float) -> Sampler:
        return lambda runs, rng: messages(row, noise, runs, rng).sum(axis=1)  # sufficient: equal noise, equal shifts

    relation = f"{RELATION.value}, every message"
    sound = Case("overlapping-messages", relation, claim, release(9.0, std), release(0.0, std), gaussian())
    yield sound
    alone = multiplier * each
    yield sound.broken("priced as disjoint clients", release(9.0, alone), release(0.0, alone))


def messages(row: float, std: float, runs: int, rng: np.random.Generator) -> np.ndarray:
    """float [runs, clients]: each client bounds its copy of the row and adds its own noise."""
    bounded = BOUND.enforce(np.array([row]))[0]
    return GaussianNoise(std).apply(np.full((runs, NUM_CLIENTS), bounded), rng)
