"""What a private gate on degrees costs, together with the sums over neighbours that lie behind it.

Every node v of a graph with n nodes gets a bit b_v = [d_v + N(0, s²) ≤ T]. Only edges between two nodes of bit 1 are kept, and
K sums over neighbours R = W·x + N(0, τ²I) are taken there, weighed by a degree cap (``degree_caps``). With

    μ₁(m) = √m/s,    p(m) = Φ((T − m)/s),    Δ(m) = the largest change of a sum, over removed nodes of degree at most m,

and everything else that is released worth a Gaussian of parameter μ₀, all of it is (ε, δ) with

    δ = max over m = 0 … n − 1 of   p(m)·δ_G(√(μ₁² + KΔ²/τ² + μ₀²); ε) + (1 − p(m))·δ_G(√(μ₁² + μ₀²); ε),

δ_G(μ; ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ).

**Guarantee** (node-zero-out, every graph, no promise; the row and the bit of the protected node z are shown to nobody but z).

*Proof.* Let z have m neighbours in G, and none in the neighbour G − z. (1) The bits of the others are a function of noisy
degrees, of which m differ by one: a Gaussian release with μ₁(m). (2) The bit b_z of z is a coin of bias p(m), independent of
all other noise. It is used in G only. Give the world G − z a coin of the same law that nothing reads, and show the coin to the
adversary in both worlds: what the adversary really sees is a function of more. Since the coin has one law, the hockey-stick
divergence of the pair is the mean of the divergences given the coin. (3) Given b_z = 0, z has no edge behind the gate: with
the bits of the others equal, both worlds sum over the same graph. (4) Given b_z = 1 and equal bits of the others, the two
graphs behind the gate are some H and H − z, where z has m' ≤ m neighbours in H. The bound of ``degree_caps`` for m' neighbours
holds whatever the degrees of the others are, and it grows with the number of nodes, so n may stand for those of H. (5) In
either case bits, sums and the rest are Gaussian releases, each given the earlier ones: they compose to the μ of the formula.
Both directions (z gone or there) have the same curve. The worst m is taken, for the degree of z is unknown. □

So a hub pays for its m bits, and hardly ever for sums: p(m) falls to nothing above T. A node below T pays almost nothing for
bits. Under node-replace b_z has two laws and step (2) fails; nothing is claimed there.

*Checked*: each step was derived again from the statement. For every third of all labelled graphs of five nodes the exact
divergence, summed over all bits, is below the formula, and reaches more than 0.7 of it (``tests/privacy/test_degree_gate.py``).

**Numbers.** m beyond ``EXACT`` is taken in bins [low, high], with p(low), μ₁(high) and Δ(high): never below the formula, which
grows in each of them. ε is found by halving and rounded up. **Edge cases.** Several gates in one composition, bits released
more than once, or other releases that are not Gaussian: every part is priced as the Gaussian release that it is without the
gate's help (μ₁(n − 1), and Δ(n − 1)/τ), which is true and dear. s = 0 or τ = 0 → ε = ∞.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr

from fedgraph.errors import PrivacyError
from fedgraph.privacy.degree_caps import DegreeCap
from fedgraph.privacy.events import Event, GatedSums, Gaussian, NoisyDegreeBits
from fedgraph.privacy.shapes import Array

EXACT, RATIO = 512, 1.005  # degrees that are looked at one by one; how much wider the bins of larger ones are
STEPS = 46  # halvings of an interval that is at most twice as long as ε

Leaves = Sequence[tuple[Event, int]]


@dataclass(frozen=True, eq=False)
class Degrees:
    """Bins of the degree of the protected node: their lower and upper ends, float64 [bins]."""

    low: Array
    high: Array

    @classmethod
    def of(cls, num_nodes: int) -> Degrees:
        most = max(1, num_nodes - 1)
        ends = list(range(min(EXACT, most) + 1))
        while ends[-1] < most:
            ends.append(min(most, int(ends[-1] * RATIO) + 1))
        high = np.array(ends, dtype=np.float64)
        return cls(np.concatenate([[0.0], high[:-1] + 1]), high)


def covers(leaves: Leaves) -> bool:
    """Whether the formula of this module prices all of ``leaves``: one gate, its bits at most once, the rest Gaussian."""
    gates = {leaf.gate if isinstance(leaf, GatedSums) else leaf for leaf, _ in leaves if _gated(leaf)}
    once = all(count <= 1 for leaf, count in leaves if isinstance(leaf, NoisyDegreeBits))
    return len(gates) == 1 and once and all(_gated(leaf) or isinstance(leaf, Gaussian) for leaf, _ in leaves)


def epsilon(leaves: Leaves, delta: float) -> float:
    """The smallest ε of the formula, rounded up. ``PrivacyError`` where ``covers`` says no."""
    if not covers(leaves):
        raise PrivacyError("the price of a degree gate is known for one gate beside Gaussian releases")
    if delta == 0:
        return math.inf
    gate = next(leaf.gate if isinstance(leaf, GatedSums) else leaf for leaf, _ in leaves if _gated(leaf))
    assert isinstance(gate, NoisyDegreeBits)
    rest = math.fsum(count / leaf.noise_multiplier**2 for leaf, count in leaves if isinstance(leaf, Gaussian))
    degrees = Degrees.of(gate.num_rows)
    outside = degrees.high / gate.noise_std**2 + rest
    sums = np.zeros_like(outside)
    for leaf, count in leaves:
        if isinstance(leaf, GatedSums):
            sums += count * largest_changes(gate.num_rows, leaf.knee, leaf.silent) / leaf.noise_std**2
    log_pass, log_stop = passing(gate, degrees)
    inside, target = np.sqrt(outside + sums), math.log(delta)
    without = np.sqrt(outside)

    def enough(tried: float) -> bool:
        both = np.logaddexp(log_pass + log_deltas(tried, inside), log_stop + log_deltas(tried, without))
        return bool(both.max() <= target)

    if enough(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while not enough(high):
        low, high = high, 2 * high
        if high > 1e15:
            return math.inf
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high * (1 + 1e-12)


def ungated(leaves: Leaves) -> tuple[tuple[Event, int], ...]:
    """``leaves`` with every part of a gate as the Gaussian release that it is for a node of any degree."""
    counts: Counter[Event] = Counter()
    hidden = {leaf.gate for leaf, _ in leaves if isinstance(leaf, GatedSums)}
    for leaf, count in leaves:
        counts[alone(leaf) if isinstance(leaf, (NoisyDegreeBits, GatedSums)) else leaf] += count
        if isinstance(leaf, NoisyDegreeBits):
            hidden.discard(leaf)
    for gate in hidden:
        counts[alone(gate)] += 1
    return tuple(sorted(counts.items(), key=lambda item: repr(item[0])))


def alone(part: NoisyDegreeBits | GatedSums) -> Gaussian:
    """Bits: √(n − 1) entries move by one. Sums given the bits: the largest change of any removed node."""
    if isinstance(part, NoisyDegreeBits):
        return Gaussian(part.noise_std / math.sqrt(max(1, part.num_rows - 1)))
    return Gaussian(part.noise_std / math.sqrt(float(largest_changes(part.gate.num_rows, part.knee, part.silent)[-1])))


def passing(gate: NoisyDegreeBits, degrees: Degrees) -> tuple[Array, Array]:
    """(ln p, ln(1 − p)) per bin, p at its lower end; both rounded up, so that their sum is 1 or a little more."""
    if math.isinf(gate.noise_std):
        return np.full_like(degrees.low, math.log(0.5)), np.full_like(degrees.low, math.log(0.5))
    at = (gate.threshold - degrees.low) / gate.noise_std
    return log_ndtr(at) + 1e-12, log_ndtr(-at) + 1e-12


def largest_changes(num_nodes: int, knee: int, silent: int) -> Array:
    """Δ(m)² at the upper end of each bin, rounding of the sums included."""
    return _largest_changes(num_nodes, knee, silent)


@lru_cache(maxsize=64)
def _largest_changes(num_nodes: int, knee: int, silent: int) -> Array:
    cap = DegreeCap(num_nodes, knee, silent or None)
    squares = np.maximum.accumulate(cap.changes()[0])
    rounding = math.sqrt(num_nodes) * num_nodes**2 * 2.0**-50
    at = Degrees.of(num_nodes).high.astype(np.int64)
    found = np.square(np.sqrt(squares[at]) + rounding)
    found.flags.writeable = False
    return np.asarray(found)


def log_deltas(epsilon: float, mu: Array) -> Array:
    """ln δ_G(μ; ε) for each μ ≥ 0, as ``gaussian.log_delta``; −∞ where δ is 0 or below what ε can resolve."""
    with np.errstate(divide="ignore", invalid="ignore"):
        there = np.where(mu > 0, mu, 1.0)
        a, b = log_ndtr(there / 2 - epsilon / there), log_ndtr(-there / 2 - epsilon / there)
        x = epsilon + b - a
        found = np.where(x < 0, a + np.log(-np.expm1(np.minimum(x, 0.0))), -np.inf)
    return np.where(mu > 0, found, -np.inf)


def _gated(leaf: Event) -> bool:
    return isinstance(leaf, (NoisyDegreeBits, GatedSums))
