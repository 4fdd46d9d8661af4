"""The price of an event: reads ``events`` and returns an ``Epsilon``.

``price`` asks every accountant that is valid for the whole ledger and reports the smallest ε, with the
accountant's name and theorem:

    name                      file          answers for
    exact Gaussian            gaussian      Gaussian releases only; an equality
    basic composition         rdp           releases that are ε-DP with δ = 0; also answers δ = 0
    zCDP                      rdp           releases with a ρ
    loss distribution         pld           everything but SampledOnce and Selected; pessimistic grid
    private selection         selection     Selected, by Rényi orders
    Rényi                     rdp           everything but ApproxDP (SampledOnce: in a choice); asked when the above cannot
    a choice                  pld           OneOf: the larger of its alternatives' δ at every ε
    amplification by sampling amplification SampledOnce, on its own composed pipeline

**Guarantee.** Unit and relation are those of the events' multipliers; adaptive composition; every
accountant is an upper bound, so the smallest is one too.

A δ is split where an accountant cannot take all releases into its own composition (``docs/proofs.md``).

**Edge cases.**

    δ NaN, negative or ≥ 1                       PrivacyError
    nothing released; multipliers ∞; ε, q = 0    ε = 0, δ = 0
    multiplier 0; ε = ∞; unprotected             ε = ∞
    δ = 0 where only (ε, δ) is known             ε = ∞
    an event class not known here                UnknownEventError naming it; never counted as zero
    count up to 1e12 and beyond                  priced (coarser grid, still pessimistic)
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedgraph.errors import PrivacyError, UnknownEventError
from fedgraph.privacy import events
from fedgraph.privacy.accounting import amplification, gaussian, pld, rdp, selection

_Leaves = tuple[tuple[events.Event, int], ...]
_SHARES = (0.0, 0.1, 0.5, 0.9, 1.0)
_SUMS = (events.PoissonGaussian, events.FixedSizeGaussian, events.EpochGaussian)  # of rows, each of which is clipped
_NOISED = (events.Gaussian, events.Laplace, events.MentionedGaussian, *_SUMS)
_NEXT_TO_NOTHING = 1.002
_MANY = 1_000_000  # beyond this the loss grid gets coarse, and Rényi may be tighter
_MOST_PRICES = 8192


@dataclass(frozen=True)
class Epsilon:
    """The price of an event, with the theorem that gives it."""

    epsilon: float  # ε ≥ 0, or ∞
    delta: float  # δ at which ε holds; at most the δ that was asked for
    accountant: str  # the name of the accountant that gave it
    theorem: str  # the result that was used, in one sentence


prices: dict[tuple[_Leaves, float], Epsilon] = {}  # what ``price`` found so far; a process that is given them need not search


def price(event: events.Event, delta: float) -> Epsilon:
    """The smallest ε that an accountant proves for an event. Prices are cached.

    Args:
        event: everything that was released.
        delta: δ in [0, 1).

    Returns:
        ε with the accountant and its theorem; ∞ if nothing is proven.

    Raises:
        PrivacyError: δ is not in [0, 1).
        UnknownEventError: an event class that no accountant knows.

    >>> from fedgraph.privacy.events import Gaussian, Repeated
    >>> price(Repeated(Gaussian(10.0), 100), 1e-5).accountant
    'exact Gaussian'
    """
    if isinstance(delta, bool) or math.isnan(delta) or not 0 <= delta < 1:
        raise PrivacyError(f"delta must satisfy 0 ≤ delta < 1, found {delta}")
    leaves = leaves_of(event)
    if isinstance(leaves, Epsilon):
        return leaves
    found = prices.get((leaves, float(delta)))
    if found is None:
        found = _price(leaves, float(delta))
        if len(prices) >= _MOST_PRICES:
            prices.clear()
        prices[leaves, float(delta)] = found
    return found


def leaves_of(event: events.Event) -> _Leaves | Epsilon:
    """The leaves of an event, equal ones merged, and trivial ones removed.

    event: everything that was released. Returns (leaf, occurrences) in a fixed order; or the price, if it is 0 or ∞ outright.
    ``UnknownEventError``: an event class that no accountant knows.
    """
    counts: Counter[events.Event] = Counter()
    for leaf, count in events.flatten(event):
        if isinstance(leaf, events.SampledOnce) and leaf.sampling_rate == 1:
            inner = leaves_of(leaf.event)
            if isinstance(inner, Epsilon):
                if inner.epsilon == 0:
                    continue
                return inner
            counts.update({e: n * count for e, n in inner})
            continue
        effective = leaf if isinstance(leaf, events.PartOf) else _settle(leaf)
        if isinstance(effective, Epsilon):
            return effective
        if effective is not None:
            counts[effective] += count
    for whole, copies in _choices(counts).items():
        settled = _settle(whole)
        if isinstance(settled, Epsilon):
            return settled
        if settled is not None:
            counts[settled] += copies
    if not counts:
        return Epsilon(0.0, 0.0, "exact", "nothing was released")
    return tuple(sorted(counts.items(), key=lambda item: repr(item[0])))


def _choices(counts: Counter[events.Event]) -> Counter[events.OneOf]:
    """Removes every ``PartOf`` from ``counts``; returns each choice with the least number of times that it was made."""
    made: dict[tuple[events.OneOf, int], int] = {}
    for part in [leaf for leaf in counts if isinstance(leaf, events.PartOf)]:
        alternatives = part.whole.alternatives
        allowed: Counter[events.Event] = Counter()
        for leaf, count in events.flatten(alternatives[part.index]) if part.index < len(alternatives) else ():
            allowed[leaf] += count
        if not allowed[part.event]:
            raise UnknownEventError(f"{part.event} is not in alternative {part.index} of its choice: {part}")
        key, copies = (part.whole, part.index), math.ceil(counts.pop(part) / allowed[part.event])
        made[key] = max(made.get(key, 0), copies)
    found: Counter[events.OneOf] = Counter()
    for (whole, _), copies in made.items():
        found[whole] += copies
    return found


def is_gaussian(event: events.Event) -> bool:
    """Whether all releases are Gaussian, so that their composition has the curve of one μ.

    >>> is_gaussian(events.Gaussian(2.0)), is_gaussian(events.Laplace(1.0))
    (True, False)
    """
    leaves = leaves_of(event)
    return not isinstance(leaves, Epsilon) and all(isinstance(leaf, events.Gaussian) for leaf, _ in leaves)


def _settle(leaf: events.Event) -> events.Event | Epsilon | None:
    """The leaf in its simplest equal form; None if it costs nothing; an ``Epsilon`` if there is no privacy."""
    if isinstance(leaf, events.Unprotected):
        return Epsilon(math.inf, 0.0, "none", f"unprotected: {leaf.reason}")
    if isinstance(leaf, events.SampledOnce):
        if leaf.sampling_rate == 0:
            return None
        inner = leaves_of(leaf.event)
        if isinstance(inner, Epsilon):  # without privacy, sampled or not
            return inner if inner.epsilon else None
        return events.SampledOnce(_composed(inner), leaf.sampling_rate)
    if isinstance(leaf, events.Selected):
        settled = [leaves_of(one) for one in leaf.candidates]
        free = next((one for one in settled if isinstance(one, Epsilon) and one.epsilon > 0), None)
        if free is not None or leaf.stop == 0 or math.isinf(leaf.shape):
            return free or Epsilon(math.inf, 0.0, "none", "the number of trials has no law")
        leaves = [() if isinstance(one, Epsilon) else one for one in settled]
        if not any(leaves):
            return None
        return events.Selected(tuple(sorted(set(map(_composed, leaves)), key=repr)), leaf.shape, leaf.stop)
    if (
        isinstance(leaf, events.MentionedGaussian)
        and not leaf.heavy
        and 0 in (1 - leaf.sampling_rate, leaf.mention_rate, leaf.others)
    ):
        return _settle(events.PoissonGaussian(leaf.noise_multiplier, leaf.sampling_rate, 1, replaced=False))
    if isinstance(leaf, _NOISED):
        rate = leaf.sampling_rate if isinstance(leaf, (events.PoissonGaussian, events.MentionedGaussian)) else 1.0
        batch = leaf.batch_size if isinstance(leaf, events.FixedSizeGaussian) else 1
        if math.isinf(leaf.noise_multiplier) or rate == 0 or batch == 0:
            return None
        if leaf.noise_multiplier == 0:
            return Epsilon(math.inf, 0.0, "none", f"no noise was added: {leaf}")
        every_row = (
            isinstance(leaf, events.EpochGaussian)
            or (isinstance(leaf, events.PoissonGaussian) and rate == 1)
            or (isinstance(leaf, events.FixedSizeGaussian) and leaf.batch_size == leaf.num_rows)
        )
        if every_row and isinstance(leaf, _SUMS):
            return events.Gaussian(leaf.noise_multiplier / (2 * leaf.touched_rows - (0 if leaf.replaced else 1)))
        return leaf
    if isinstance(leaf, events.OneOf):
        each = [leaves_of(alternative) for alternative in leaf.alternatives]
        dear = [found for found in each if isinstance(found, Epsilon) and found.epsilon > 0]
        return dear[0] if dear else None if all(isinstance(found, Epsilon) for found in each) else leaf
    if isinstance(leaf, events.ApproxDP):
        size = math.inf if leaf.delta == 1 else leaf.epsilon + leaf.delta
    elif isinstance(leaf, (events.PureDP, events.BoundedRange, events.RandomizedResponse)):
        size = leaf.epsilon
    elif isinstance(leaf, events.MultiBit):
        size = leaf.epsilon_per_bit if leaf.num_bits else 0.0
    else:
        raise UnknownEventError(f"no accountant can price {type(leaf).__name__}: {leaf}")
    if size == 0:
        return None
    return Epsilon(math.inf, 0.0, "none", f"no privacy is claimed by {leaf}") if math.isinf(size) else leaf


def _composed(leaves: _Leaves) -> events.Composed:
    return events.Composed(tuple(events.Repeated(e, n) for e, n in leaves))


def _price(leaves: _Leaves, delta: float) -> Epsilon:
    sampled = tuple((e, n) for e, n in leaves if isinstance(e, events.SampledOnce))
    rest = tuple((e, n) for e, n in leaves if not isinstance(e, events.SampledOnce))
    if not sampled:
        return _unsampled(rest, delta)
    if not rest and len(sampled) == 1 and sampled[0][1] == 1:
        return _sampled(sampled[0][0], delta)
    total_count = sum(n for _, n in sampled)
    best = Epsilon(math.inf, delta, "none", "no split of δ gives a finite ε")
    for share in _SHARES:
        prices = [(_sampled(e, share * delta / total_count), n) for e, n in sampled]
        if rest:
            prices.append((_unsampled(rest, delta * (1 - share)), 1))
        total = math.fsum(p.epsilon * n for p, n in prices)
        if total < best.epsilon:
            names = " + ".join(p.accountant for p, _ in prices)
            words = f"basic composition, {share:.0%} of δ for the sampled part: " + "; ".join(p.theorem for p, _ in prices)
            best = Epsilon(total, delta, names, words)
    return best


def _sampled(event: events.SampledOnce, delta: float) -> Epsilon:
    inner = price(event.event, amplification.delta_before(delta, event.sampling_rate))
    outer = amplification.amplified_epsilon(inner.epsilon, event.sampling_rate)
    theorem = (
        f"ε = ln(1 + q(e^{inner.epsilon:.6g} − 1)) with q = {event.sampling_rate:.6g}, once, inner δ = {inner.delta:.3g} "
        f"(Balle, Barthe & Gaboardi 2018, Theorem 8); inside: {inner.theorem}"
    )
    return Epsilon(outer, delta, f"amplification by sampling of {inner.accountant}", theorem)


def _unsampled(leaves: _Leaves, delta: float) -> Epsilon:
    if all(isinstance(leaf, events.Gaussian) for leaf, _ in leaves):
        return _exact_gaussian(leaves, delta)
    if any(isinstance(leaf, events.Selected) for leaf, _ in leaves):
        return min(_renyi(leaves, delta), key=lambda p: p.epsilon, default=Epsilon(math.inf, delta, "none", "δ is spent"))
    basic = _basic(leaves, delta)
    candidates = [*basic, *_concentrated(leaves, delta), *_loss_distribution(leaves, delta)]
    fine_grid = math.fsum(count for _, count in leaves) <= _MANY and delta >= pld.SMALLEST_DELTA
    if not (fine_grid and any(c.accountant == "loss distribution" and math.isfinite(c.epsilon) for c in candidates)):
        candidates += _renyi(leaves, delta)
    best = min(candidates, key=lambda p: p.epsilon, default=Epsilon(math.inf, delta, "none", "no finite ε at this δ"))
    # Without δ, where that costs next to nothing: a pure release alone is its own ε, and not what a δ takes off.
    return next((pure for pure in basic if pure.delta == 0 and pure.epsilon <= _NEXT_TO_NOTHING * best.epsilon), best)


def _exact_gaussian(leaves: _Leaves, delta: float) -> Epsilon:
    multipliers = np.array([leaf.noise_multiplier for leaf, _ in leaves if isinstance(leaf, events.Gaussian)])
    mu = gaussian.total_mu(multipliers, np.array([float(count) for _, count in leaves]))
    return Epsilon(gaussian.epsilon(mu, delta), delta, "exact Gaussian", f"μ = √Σ(Δ₂/s)² = {mu:.6g} (Dong, Roth & Su 2022)")


def _basic(leaves: _Leaves, delta: float) -> list[Epsilon]:
    main, epsilon, left = _without_approximate(leaves, delta)
    each = [(rdp.pure_epsilon(leaf), count) for leaf, count in main]
    if left < 0 or any(e is None for e, _ in each):
        return []
    total = epsilon + math.fsum(e * count for e, count in each if e is not None)
    if any(isinstance(leaf, events.ApproxDP) for leaf, _ in leaves):
        return [Epsilon(total, delta, "basic composition", "ε add up and δ = 1 − Π(1 − δ₀) (Kairouz, Oh & Viswanath 2015)")]
    return [Epsilon(total, 0.0, "basic composition", "pure ε add up (Dwork & Roth 2014, Theorem 3.14)")]


def _concentrated(leaves: _Leaves, delta: float) -> list[Epsilon]:
    main, epsilon, left = _without_approximate(leaves, delta)
    each = [(rdp.rho(leaf), count) for leaf, count in main]
    if left < 0 or not main or any(r is None for r, _ in each):
        return []
    total = math.fsum(r * count for r, count in each if r is not None)
    theorem = f"ρ = {total:.6g} (Bun & Steinke 2016; Canonne, Kamath & Steinke 2020 v4, Proposition 12)"
    return [Epsilon(rdp.epsilon_of_rho(total, left) + epsilon, delta, "zCDP", theorem + _beside(epsilon))]


def _loss_distribution(leaves: _Leaves, delta: float) -> list[Epsilon]:
    found = pld.epsilon(leaves, delta)
    theorem = "dominating pairs compose (Zhu, Dong & Wang 2022, Theorem 10), on a pessimistic grid"
    return [] if found is None else [Epsilon(found, delta, "loss distribution", theorem)]


def _renyi(leaves: _Leaves, delta: float) -> list[Epsilon]:
    main, epsilon, left = _without_approximate(leaves, delta)
    if left < 0:
        return []
    value, order = rdp.epsilon(main, left)
    theorem = f"Rényi order {order:.6g} (Mironov 2017; Canonne, Kamath & Steinke 2020 v4, Proposition 12)"
    return [Epsilon(value + epsilon, delta, "Rényi", theorem + _beside(epsilon))]


def _without_approximate(leaves: Sequence[tuple[events.Event, int]], delta: float) -> tuple[_Leaves, float, float]:
    """(other leaves, Σε₀, what they leave of δ); the last is negative where the (ε₀, δ₀) releases alone exceed δ.

    (ε₀, δ₀) is dominated by a pair that has the loss ∞ with probability δ₀ and is ε₀-DP otherwise (Kairouz, Oh & Viswanath
    2015, Theorem 3.1), so several of them spend 1 − Π(1 − δ₀). What is δ but for rounding (one part in 10¹²) is δ.
    """
    apart = [(leaf, count) for leaf, count in leaves if isinstance(leaf, events.ApproxDP)]
    main = [(*selection.without_missed(leaf), count) for leaf, count in leaves if not isinstance(leaf, events.ApproxDP)]
    clear = -math.expm1(math.fsum(count * math.log1p(-leaf.delta) for leaf, count in apart))
    used = math.fsum([clear, *(missed * count for _, missed, count in main)])
    others = tuple((leaf, count) for leaf, _, count in main)
    left = 0.0 if math.isclose(used, delta, rel_tol=1e-12) else delta - used
    return others, math.fsum(leaf.epsilon * count for leaf, count in apart), left


def _beside(epsilon: float) -> str:
    if epsilon == 0:
        return ""
    return f", plus {epsilon:.6g} of (ε, δ) releases by basic composition (Dwork & Roth 2014, Theorem 3.16)"
