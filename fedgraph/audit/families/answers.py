"""Mechanisms with δ = 0: Laplace on one number and on two, k-ary randomised response, and answers that name a set of labels.

Worst case: the value is far outside its box in one world and at the other end of it in the other; for the
response, two different values.
"""

import math
from collections.abc import Iterator

import numpy as np

from fedgraph.audit.bench import Case, Claim, Sampler, sampler
from fedgraph.audit.closed_form import laplace, response
from fedgraph.privacy.events import Laplace, PureDP, RandomizedResponse
from fedgraph.privacy.mechanisms.masked_response import MASKED, MaskedResponse
from fedgraph.privacy.mechanisms.noise import KaryResponse, LaplaceNoise
from fedgraph.privacy.sensitivity import Box
from fedgraph.privacy.units import Relation

EPSILON = 1.0
UNIT_BOX = Box(0.0, 1.0)
NUM_VALUES = 5


def cases() -> Iterator[Case]:
    """One Laplace number, two Laplace numbers, k-ary response, sets of labels."""
    yield from _number()
    yield from _two_numbers()
    yield from _response()
    yield from _sets()


def _number() -> Iterator[Case]:
    def release(value: float, scale: float) -> Sampler:
        return lambda runs, rng: LaplaceNoise(scale).apply(np.full(runs, value), rng)

    high, low = (float(UNIT_BOX.enforce(np.array(v))) for v in (57.0, -3.0))
    scale = 1.0 / EPSILON
    claim = Claim.of(Laplace(scale), 0.0)
    sound = Case("laplace", Relation.NODE_REPLACE.value, claim, release(high, scale), release(low, scale), laplace())
    yield sound
    yield sound.broken("scale × ⅔", release(high, scale * 2 / 3), release(low, scale * 2 / 3))
    yield sound.broken("value not clamped", release(57.0, scale))


def _two_numbers() -> Iterator[Case]:
    """Both entries of a vector in [0, 1]² move from end to end: Δ₁ = 2, Δ₂ = √2.

    The score, |x| − |x − 1| per entry, is ±1 outside [0, 1] but for rounding, and how it is rounded betrays
    the world (Mironov 2012: unrounded, this audit finds ε ≥ 3.6 where 1 is claimed). That attack is outside
    the model, so the score is rounded to twelve decimals, far above one unit in the last place.
    """
    high, low = np.ones(2), np.zeros(2)

    @sampler
    def release(runs: int, rng: np.random.Generator, value: np.ndarray, scale: float) -> np.ndarray:
        seen = LaplaceNoise(scale).apply(np.broadcast_to(value, (runs, 2)), rng)
        ratio = (np.abs(seen - low) - np.abs(seen - high)).sum(axis=1)  # log-likelihood ratio × scale
        return np.asarray(np.round(ratio, 12))

    claim = Claim.of(Laplace(1.0 / EPSILON), 0.0)
    right, wrong = 2 / EPSILON, math.sqrt(2) / EPSILON
    # The largest ratio is an atom, met in a third of the runs with the unit: counting alone bounds it well.
    sound = Case("laplace-vector", Relation.NODE_REPLACE.value, claim, release(high, right), release(low, right))
    yield sound
    yield sound.broken("Δ₂ in place of Δ₁", release(high, wrong), release(low, wrong))


def _response() -> Iterator[Case]:
    @sampler
    def release(runs: int, rng: np.random.Generator, value: int, epsilon: float) -> np.ndarray:
        return np.asarray((KaryResponse(epsilon, NUM_VALUES).apply(np.full(runs, value), rng) == 3).astype(float))

    claim = Claim.of(RandomizedResponse(EPSILON, NUM_VALUES), 0.0)
    closed = response(NUM_VALUES)
    sound = Case("k-ary-response", Relation.NODE_REPLACE.value, claim, release(3, EPSILON), release(0, EPSILON), closed)
    yield sound
    # Keeping with e^ε/(e^ε + 1), the binary formula, is k-ary response at ε + ln(k − 1).
    binary = EPSILON + math.log(NUM_VALUES - 1)
    yield sound.broken("keep probability without k", release(3, binary), release(0, binary))


def _sets() -> Iterator[Case]:
    """A label against a masked one; the score is whether the label is named. Two of six values are, at ε = 1."""

    @sampler
    def release(runs: int, rng: np.random.Generator, label: int, epsilon: float) -> np.ndarray:
        return np.asarray(MaskedResponse(epsilon, 6, replaces=False).apply(np.full(runs, label), rng)[:, 3], dtype=float)

    claim = Claim.of(PureDP(EPSILON), 0.0)
    sound = Case("label-sets", Relation.NODE_ZERO_OUT.value, claim, release(3, EPSILON), release(MASKED, EPSILON))
    yield sound
    yield sound.broken("noise × ⅔", release(3, EPSILON * 1.5), release(MASKED, EPSILON * 1.5))
