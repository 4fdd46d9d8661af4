"""One-shot Gumbel top-k, priced in two ways: as k bounded-range choices, and by ρ = kε₀²/8.

Worst case: k of the candidates have the largest utility in one world and the smallest in the other, and
all the rest the reverse (Δ = 1 each). The score is the log-likelihood ratio of the ordered picks
(Plackett-Luce): Σᵢ (u_P − u_Q)(cᵢ)/scale less the logarithms of what was left to pick from.
"""

from collections.abc import Iterator

import numpy as np

from fedgraph.audit.bench import Case, Claim, sampler
from fedgraph.privacy.events import ZCDP, BoundedRange, Repeated
from fedgraph.privacy.mechanisms.noise import GumbelTopK
from fedgraph.privacy.units import Relation

NUM_PICKS, NUM_CANDIDATES = 3, 20
PER_PICK = 0.8  # ε₀
DELTA = 1e-2
SCALE = 2.0 / PER_PICK  # 2Δ/ε₀


def cases() -> Iterator[Case]:
    """Priced as bounded-range picks, with mutants; priced as zCDP."""
    favoured = np.zeros(NUM_CANDIDATES)
    favoured[:NUM_PICKS] = 1.0
    there, back = release(favoured, SCALE), release(1.0 - favoured, SCALE)
    relation = Relation.NODE_REPLACE.value
    claim = Claim.of(Repeated(BoundedRange(PER_PICK), NUM_PICKS), DELTA)
    sound = Case("gumbel-top-k", relation, claim, there, back)
    yield sound
    yield sound.broken("scale halved", release(favoured, SCALE / 2), release(1.0 - favoured, SCALE / 2))
    whole = 2.0 / (PER_PICK * NUM_PICKS)
    yield sound.broken("k picks at the price of one", release(favoured, whole), release(1.0 - favoured, whole))
    concentrated = Claim.of(ZCDP(NUM_PICKS * PER_PICK**2 / 8), DELTA)
    yield Case("gumbel-top-k-zcdp", relation, concentrated, there, back)


@sampler
def release(runs: int, rng: np.random.Generator, utility: np.ndarray, scale: float) -> np.ndarray:
    """The shipped mechanism, one row per run."""
    picks = GumbelTopK(NUM_PICKS, scale).apply(np.broadcast_to(utility, (runs, NUM_CANDIDATES)), rng)
    return log_ratio(picks < NUM_PICKS, scale)


def log_ratio(favoured: np.ndarray, scale: float) -> np.ndarray:
    """favoured: bool [runs, k], whether each pick was one of the k favoured candidates. Returns float [runs]."""
    weight = np.exp(1.0 / scale)
    left_favoured = NUM_PICKS - np.cumsum(favoured, axis=1) + favoured
    left_others = NUM_CANDIDATES - NUM_PICKS - np.cumsum(~favoured, axis=1) + ~favoured
    step = np.where(favoured, 1.0, -1.0) / scale
    step -= np.log(left_favoured * weight + left_others) - np.log(left_favoured + left_others * weight)
    return np.asarray(step.sum(axis=1))
