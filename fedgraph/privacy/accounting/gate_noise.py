"""How much noise a private degree gate and the sums behind it get, and where the gate stands, from public numbers alone.

Chosen for one client: the noise s of the degrees, the threshold T, the degree m₀ from which an edge weighs nothing, and the
noise τ of the sums, such that everything together with the gradients costs at most ε. Among a small grid of (s, T, m₀) that
choice is taken which leaves the largest

    Φ((T − d)/s)² · h(d) / τ,        d: a public guess of a usual degree,

i.e. the weight of an edge between two usual nodes that both pass, over the noise. Bits and sums share the room that the
gradients leave: at degrees above T a node pays for bits, below T for sums, so both may use nearly all of it.

**Guarantee.** ``price`` of what ``chosen`` returns, with the gradients, is at most ε: it is found by ``calibrate``, which
checks it. **Edge cases.** Gradients that leave no room → ``PrivacyError``. Reference: ``degree_gate``, which states and proves
the price.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting import calibrate, degree_gate
from fedgraph.privacy.accounting.degree_gate import Degrees
from fedgraph.privacy.degree_caps import DegreeCap
from fedgraph.privacy.events import Composed, GatedSums, Gaussian, NoisyDegreeBits, Repeated
from fedgraph.privacy.shapes import Array

SPREADS = (1.02, 1.1, 1.25, 1.5, 2.0, 3.0)  # s over the least s that the room allows
PLACES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)  # (T − d)/s
ENDS = 24  # how many m₀ are tried
HALVINGS = 24  # of an interval of ln μ², for the choice alone; the price of what is chosen is exact
LEAST, MOST = 1e-6, 1e6  # μ² that is told from none, and from any
LOOKED_AT = 240  # bins of degrees that the choice looks at


@dataclass(frozen=True)
class GateNoise:
    """gate: the bits. cap: how edges behind it are weighed. hop_std: τ, in data units."""

    gate: NoisyDegreeBits
    cap: DegreeCap
    hop_std: float

    @property
    def sums(self) -> GatedSums:
        """The event of one sum behind the gate."""
        return GatedSums(self.gate, self.hop_std, self.cap.knee, self.cap.silent or 0)


@lru_cache(maxsize=256)
def chosen(num_nodes: int, hops: int, gradients: Repeated, typical: int, knee: int, budget: tuple[float, float]) -> GateNoise:
    """For one client. hops: K ≥ 1. gradients: what else is released, Gaussian. typical: d. budget: (ε, δ)."""
    if not isinstance(gradients.event, Gaussian):
        raise PrivacyError("a degree gate is priced beside Gaussian releases: let every node take part in every step")
    rest = gradients.count / gradients.event.noise_multiplier**2
    room = calibrate.gaussian_multiplier(1, *budget) ** -2 - rest
    if not room > 0:
        raise PrivacyError("the gradients leave no budget for a degree gate; raise hop_share")
    every, least = Degrees.of(num_nodes), math.sqrt(max(1, num_nodes - 1) / room)
    some = np.unique(np.geomspace(1, every.high.size, LOOKED_AT).astype(int)) - 1
    degrees = Degrees(np.concatenate([[0.0], every.high[some][:-1] + 1]), every.high[some])
    caps = [(cap, degree_gate.largest_changes(num_nodes, knee, cap.silent or 0)[some]) for cap in _caps(num_nodes, knee)]
    best, found = -1.0, None
    for spread, place in ((s, p) for s in SPREADS for p in PLACES):
        gate = NoisyDegreeBits(least * spread, typical + place * least * spread, num_nodes)
        squares = _room_for_sums(gate, degrees, rest, budget) / hops
        passed = float(ndtr(place)) ** 2
        for cap, changes in caps:
            with np.errstate(divide="ignore"):
                std = math.sqrt(float(np.max(changes / squares)))
            worth = passed * float(cap.factors[min(typical, cap.factors.size - 1)]) / std
            if worth > best:
                best, found = worth, (gate, cap)
    if found is None:
        raise PrivacyError(f"no degree gate for {num_nodes} nodes costs at most ε = {budget[0]:g}")
    gate, cap = found

    def event(std: float) -> Composed:
        return Composed((gradients, gate, Repeated(GateNoise(gate, cap, std).sums, hops)))

    return GateNoise(gate, cap, calibrate.noise_multiplier(event, *budget))


def _caps(num_nodes: int, knee: int) -> list[DegreeCap]:
    """Every edge weighs 1; or falls to nothing at some degree up to the one of the ungated log cap."""
    most = (num_nodes - 1) // 2
    ends = {int(m) for m in np.geomspace(knee + 1, most, ENDS)} if most > knee else set()
    return [DegreeCap(num_nodes, knee, None), *(DegreeCap(num_nodes, knee, m) for m in sorted(ends))]


def _room_for_sums(gate: NoisyDegreeBits, degrees: Degrees, rest: float, budget: tuple[float, float]) -> Array:
    """Per bin of degrees, the largest squared μ of all sums together with which that degree costs at most (ε, δ)."""
    epsilon, target = budget[0], math.log(budget[1])
    outside = degrees.high / gate.noise_std**2 + rest
    log_pass, log_stop = degree_gate.passing(gate, degrees)
    stopped = log_stop + degree_gate.log_deltas(epsilon, np.sqrt(outside))
    low, high = np.full_like(outside, LEAST), np.full_like(outside, MOST)
    for _ in range(HALVINGS):
        middle = np.sqrt(low * high)
        both = np.logaddexp(log_pass + degree_gate.log_deltas(epsilon, np.sqrt(outside + middle)), stopped)
        low, high = np.where(both <= target, middle, low), np.where(both <= target, high, middle)
    return low
