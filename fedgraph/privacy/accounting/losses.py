"""Privacy losses on a grid: from a hockey-stick curve to a loss distribution, and the composition of such distributions.

For a pair (P, Q) the hockey-stick curve is δ(ε) = sup_A P(A) − e^ε Q(A), and the privacy loss is
L = ln(dP/dQ) under P. Curves go onto a grid by **connecting the dots**: on ε₁ < … < εₙ, a gap g apart,
with d = e^g,

    p₁ = 1 − δ₁ + (δ₂ − δ₁)/(d − 1),      pᵢ = ((δᵢ₊₁ − δᵢ) − d(δᵢ − δᵢ₋₁))/(d − 1),
    pₙ = (δₙ₋₁ − δₙ)·d/(d − 1),            P(L = ∞) = δₙ.

**Guarantee.** ``compose`` returns an ε with true δ(ε) ≤ the given δ. Three errors are all pushed to the
private side: the grid (above), the tails cut off before the Fourier transform (their mass moves to
L = ∞), and rounding in the transform, which grows with the number of events: 1e-16 per event is charged
to L = ∞ (six to seventy times what was measured against exact binomial sums, for 3·10⁵ to 10⁸ events), and the
answer is read at 0.999·δ. Below ``SMALLEST_DELTA_OF_LOSSES`` rounding would decide, so the moments of the same
grid distributions answer there: they add up without a transform, and the bound is a few per cent looser.

*Why the grid is never more private than the mechanism*: ``docs/proofs.md``.

**Edge cases.**

    nothing to compose               → ε = 0
    δ < SMALLEST_DELTA_OF_LOSSES     → ``_by_moments``; δ = 0 → ε = ∞
    mass at ∞ above δ                → ε = ∞
    δ curve not monotone by rounding → made so from above

Reference: Doroshenko, Ghazi, Kamath, Kumar & Manurangsi, "Connect the Dots", 2022 (arXiv v1), Algorithm 1.
dp_accounting's ``create_pmf_pessimistic_connect_dots_fixed_gap`` is the same formula and is held against
this one by a test; this file exists because the library composes event by event in Python loops.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import logsumexp

from fedgraph.privacy.fields import ArrayField

SMALLEST_DELTA_OF_LOSSES = 1e-9
_SHARE_OF_DELTA_CUT = 1e-4
_DELTA_KEPT = 0.999
_ROUNDING = 1e-16
_MAX_DOTS = 40_000
_MAX_WINDOW = 1_000_000
_MANY_STEPS = 32  # from which on the gap is a fiftieth of a step's spread
_TILTS = np.geomspace(0.05, 30.0, 12)


@dataclass(frozen=True)
class LossCurve:
    """One direction of a mechanism's hockey-stick curve."""

    deltas: Callable[[ArrayField], ArrayField]  # an increasing array of ε → δ at each of them
    low: float  # a loss below which next to no mass lies (``infinite_loss_mass``)
    high: float  # a loss above which next to no mass lies
    spread: float  # standard deviation of the loss, roughly; it only chooses the grid, never the validity
    cost: float = 1.0  # how expensive one ε is, relative to a closed form; it bounds the number of dots


@dataclass(frozen=True)
class LossPart:
    """A mechanism, repeated."""

    forward: LossCurve  # unit present → absent
    backward: LossCurve | None  # the reverse order; None where both orders have the same curve
    count: float  # how often


@dataclass(frozen=True)
class Losses:
    """A loss distribution on a grid."""

    lowest: int  # index of the first grid point
    masses: ArrayField  # at (lowest + i)·gap, i = 0, 1, …
    infinity: float  # the mass of the loss ∞


def _connect_loss_dots(deltas: ArrayField, lowest: int, gap: float) -> Losses:
    """Algorithm 1 of "Connect the Dots" for an even grid.

    deltas: δ at (lowest + i)·gap, i = 0, 1, …; made monotone from above. lowest: index of the first grid point. gap: between
    grid points, > 0. Returns a distribution whose curve is δ at every dot, and the chord in e^ε between dots.
    """
    deltas = np.maximum.accumulate(np.clip(deltas, 0.0, 1.0)[::-1])[::-1]
    if deltas.size == 1:
        return Losses(lowest, np.array([1 - deltas[0]]), float(deltas[0]))
    steps, shrink = np.diff(deltas), math.exp(-gap)  # everything times e^{−g}, so that a wide gap cannot overflow
    masses = np.empty_like(deltas)
    masses[0] = 1 - deltas[0] + steps[0] * shrink / -math.expm1(-gap)
    masses[1:-1] = (steps[1:] * shrink - steps[:-1]) / -math.expm1(-gap)
    masses[-1] = steps[-1] / math.expm1(-gap)
    return Losses(lowest, np.maximum(masses, 0.0), float(deltas[-1]))


def infinite_loss_mass(delta: float, total_count: float) -> float:
    """The mass that one step may put to a loss of ∞, so that all steps together cost 1e-4 of δ.

    delta: δ of the whole composition. total_count: how many steps.
    """
    return max(_SHARE_OF_DELTA_CUT * delta / max(total_count, 1.0), 1e-290)


def compose(parts: Sequence[LossPart], delta: float) -> float:
    """The smallest ε ≥ 0 on record at which all parts together keep δ, in both orders.

    parts: what is composed; none: ε = 0. delta: δ in [0, 1); 0: ∞.
    """
    if not parts:
        return 0.0
    if delta == 0:
        return math.inf
    gap = _gap(parts)
    read = _by_moments if delta < SMALLEST_DELTA_OF_LOSSES else _one_order
    worst = read([(p.forward, p.count) for p in parts], gap, delta)
    if any(p.backward is not None for p in parts) and math.isfinite(worst):
        worst = max(worst, read([(p.backward or p.forward, p.count) for p in parts], gap, delta))
    return worst


def _gap(parts: Sequence[LossPart]) -> float:
    """A fiftieth of the typical step's spread, coarser where a curve or the window would get too long.

    Of few steps it is finer: a loss that lies between two points, such as that of a pure ε, costs up to a gap.
    """
    count = math.fsum(p.count for p in parts)
    variance = math.fsum(p.count * max(c.spread for c in (p.forward, p.backward or p.forward)) ** 2 for p in parts)
    gap = 0.02 * math.sqrt(variance / count) * min(1.0, count / _MANY_STEPS)
    for p in parts:
        for c in (p.forward, p.backward or p.forward):
            gap = max(gap, (c.high - c.low) * c.cost / _MAX_DOTS)
    return max(gap, 16 * math.sqrt(variance) / _MAX_WINDOW, 1e-12)


def _one_order(parts: Sequence[tuple[LossCurve, float]], gap: float, delta: float) -> float:
    steps = [(_on_grid(curve, gap), count) for curve, count in parts]
    cut = _SHARE_OF_DELTA_CUT * delta
    low, high = _window(steps, gap, cut)
    size = high - low + 1
    if size > 4 * _MAX_WINDOW:
        return math.inf
    length = next_fast_len(max(size, max(s.masses.size for s, _ in steps)), real=True)
    spectrum = np.ones(length // 2 + 1, dtype=complex)
    offset = 0
    for losses, count in steps:
        spectrum *= rfft(losses.masses, length) ** count
        offset += losses.lowest * round(count)
    masses = np.maximum(np.roll(irfft(spectrum, length), offset - low)[:size], 0.0)
    log_finite = math.fsum(count * math.log1p(-min(losses.infinity, 1 - 1e-16)) for losses, count in steps)
    # Charged to ∞: the window's two tails (one cut), the two ends of every curve (``infinite_loss_mass``; two cuts), rounding.
    rounding = _ROUNDING * math.fsum(count for _, count in steps)
    return _epsilon(masses, low, gap, 3 * cut + rounding - math.expm1(log_finite), _DELTA_KEPT * delta)


def _by_moments(parts: Sequence[tuple[LossCurve, float]], gap: float, delta: float) -> float:
    """ε by δ(ε) ≤ P(∞) + min over α of E[e^{(α−1)L}; L < ∞]·e^{−(α−1)ε}·(1 − 1/α)^α/(α − 1).

    (1 − e^{−x})₊ ≤ e^{(α−1)x}·(1 − 1/α)^α/(α − 1) at every x (Canonne et al. 2020 v4, Proposition 12), so the bound holds for
    the part of a distribution that is finite, too. Each moment is enlarged by what rounding may have taken off its masses.
    """
    less_one = np.geomspace(0.02, 2e4, 160)
    total = np.zeros_like(less_one)
    log_finite = 0.0
    for curve, count in parts:
        losses = _on_grid(curve, gap)
        held = np.flatnonzero(losses.masses)
        at, log_masses = gap * (losses.lowest + held), np.log(losses.masses[held])
        total += count * (np.array([logsumexp(log_masses + one * at) for one in less_one]) + 10 * _ROUNDING / gap)
        log_finite += count * math.log1p(-min(losses.infinity, 1 - 1e-16))
    left = delta * _DELTA_KEPT + math.expm1(log_finite)
    if left <= 0:
        return math.inf
    orders = less_one + 1
    epsilons = (total - math.log(left) + orders * np.log1p(-1 / orders) - np.log(less_one)) / less_one
    return max(0.0, float(np.min(epsilons)))


def _on_grid(curve: LossCurve, gap: float) -> Losses:
    low, high = math.floor(curve.low / gap), math.ceil(curve.high / gap)
    return _connect_loss_dots(curve.deltas(gap * np.arange(low, high + 1, dtype=np.float64)), low, gap)


def _window(steps: Sequence[tuple[Losses, float]], gap: float, cut: float) -> tuple[int, int]:
    """Grid indices outside which the sum has mass at most ``cut`` (Chernoff, over a few tilts each way)."""
    lowest = sum(s.lowest * round(n) for s, n in steps)
    highest = sum((s.lowest + s.masses.size - 1) * round(n) for s, n in steps)
    centred, centre, variance = [], 0.0, 0.0
    for s, n in steps:
        held = np.flatnonzero(s.masses)
        masses = s.masses[held]
        index = held.astype(float)
        mean = float(index @ masses / masses.sum())
        index -= mean
        centre += n * (s.lowest + mean)
        variance += n * float(np.square(index) @ masses)
        centred.append((index, np.log(masses), n))
    spread = math.sqrt(variance) + 1.0
    reaches = []
    for sign in (1.0, -1.0):
        best = math.inf
        for tilt in sign * _TILTS / spread:
            log_moment = 0.0
            for index, log_masses, n in centred:
                exponent = tilt * index + log_masses
                top = float(exponent.max())
                log_moment += n * (top + math.log(float(np.exp(exponent - top).sum())))
            best = min(best, (log_moment + math.log(2 / cut)) / abs(tilt))
        reaches.append(best)
    return max(lowest, math.floor(centre - reaches[1])), min(highest, math.ceil(centre + reaches[0]))


def _epsilon(masses: ArrayField, lowest: int, gap: float, infinity: float, delta: float) -> float:
    """Read ε off a loss distribution.

    With W_k = Σ_{i ≥ k} pᵢ e^{ε_k − εᵢ} (a geometric recursion), δ(ε_k) = P(∞) + (1 − e^{−g}) Σ_{j > k} W_j:
    sums of positive terms only. Between dots δ is linear in e^ε.
    """
    if infinity > delta:
        return math.inf
    from scipy.signal import lfilter  # its import takes half a second

    discounted = lfilter([1.0], [1.0, -math.exp(-gap)], masses[::-1])[::-1]
    later = np.concatenate([np.cumsum(discounted[::-1])[::-1][1:], [0.0]])
    deltas = infinity - math.expm1(-gap) * later
    first = int(np.argmax(deltas <= delta))  # deltas decrease, the last one is P(∞) ≤ delta
    loss = (lowest + first) * gap
    share = (delta - float(deltas[first])) / max(float(discounted[first]), 1e-300)
    if first == 0 and share >= 1:
        return 0.0
    return max(0.0, loss + math.log1p(-min(share, -math.expm1(-gap)))) if share > 0 else max(0.0, loss)
