"""A client that asks for more protection than the others: it sends a smaller share of the same bounded sum.

Every client adds the noise that the plan gives it. A client with an own ε multiplies its bounded value by a share w ≤ 1 first,

    message = w·value + N(0, std²I),

so that its units move the message by wΔ instead of Δ (a sampled row by wC instead of its clip C), and each of its releases of
noise multiplier m counts as m/w. Noise of the others, and so their ε, does not change. With all its releases Gaussian,
μ² = Σ n_i/m_i² in total, and

    w = min(1, μ(ε_own, δ)/μ),     μ(ε, δ): the Gaussian parameter worth (ε, δ).

Where batches are sampled, w is found by halving, and ends at or below the ε that was asked for.

**Guarantee.** For units of this client: its own ε, under the same relation, viewer, δ and assumptions as the plan's; behind
secure aggregation too, since a sum that holds w·value moves by wΔ. For units of other clients: the plan's ε.
That w ≤ 1 (that this client asked) is public. **Edge cases.** ε_own ≥ the plan's ε → w = 1, nothing changes. A release that is
not a Gaussian on a bounded value → ``PrivacyError``; so are noise-free plans (ε = ∞), which have no noise to hide in. Not for
prices per end of an edge: the other end may lie at a client that did not ask.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedgraph.errors import PrivacyError
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.accounting.accountant import price
from fedgraph.privacy.desk import PlannedRelease
from fedgraph.privacy.events import Composed, Event, FixedSizeGaussian, Gaussian, PoissonGaussian, Repeated
from fedgraph.privacy.fields import PositiveField
from fedgraph.privacy.mechanisms.noise import GaussianNoise, NoiseMechanism

_NOISED = (Gaussian, PoissonGaussian, FixedSizeGaussian)
_HALVINGS = 12  # of the interval in which w is looked for, where releases are not all Gaussian
_MARGIN = 1 - 1e-6  # of the share, for what rounding the product can add


@dataclass(frozen=True)
class OwnBudgetNoise(NoiseMechanism):
    """share·value + N(0, std²) per entry.

    Attributes:
        std: of the noise, in data units, finite and > 0.
        share: w, in (0, 1]. The value is multiplied by a little less (one part in 10⁶), for what rounding the product can add.

    Raises:
        PrivacyError: a share above 1.
    """

    std: PositiveField
    share: PositiveField
    phrase: ClassVar[str] = "Gaussian noise of standard deviation {std:.6g} on {share:.4g} times the value"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.share > 1:
            raise PrivacyError(f"ShrunkGaussianNoise.share must be at most 1, found {self.share}")

    def apply(self, value: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return GaussianNoise(self.std).apply(value * value.dtype.type(self.share * _MARGIN), rng)

    def of_many(self, shares: int) -> OwnBudgetNoise:
        """Values of one share add up, and so do the variances of independent normals."""
        return OwnBudgetNoise(self.std * math.sqrt(shares), self.share)


def _own_budget_share(releases: Sequence[PlannedRelease], epsilon: float, delta: float) -> float:
    """w of a client with an ε of its own.

    Args:
        releases: all that it releases.
        epsilon: what it asks for, > 0 and finite.
        delta: of the plan.

    Returns:
        w in (0, 1]; 1 where the plan keeps that ε already.

    Raises:
        PrivacyError: a release is no Gaussian sum, or no share of 2⁻¹² or more is small enough.
    """
    for release in releases:
        if not isinstance(release.event, _NOISED) or not isinstance(release.mechanism, GaussianNoise):
            raise PrivacyError(
                "a client's own ε is offered where everything that is released is a sum with Gaussian noise; the release "
                f"{release.path!r} is priced as {type(release.event).__name__}, with {release.mechanism.words}"
            )
    if not releases:
        return 1.0
    if all(isinstance(r.event, Gaussian) for r in releases):
        squared = sum(r.count / r.event.noise_multiplier**2 for r in releases if isinstance(r.event, Gaussian))
        return min(1.0, 1.0 / (calibrate.calibrate_gaussian(1, epsilon, delta) * math.sqrt(squared)))
    if _price(releases, 1.0, delta) <= epsilon:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _price(releases, middle, delta) <= epsilon else (low, middle)
    if not low:
        raise PrivacyError(f"no share of the value above {2.0**-_HALVINGS:.2g} keeps ε = {epsilon:g}; ask for a larger ε")
    return low


def _price(releases: Sequence[PlannedRelease], kept: float, delta: float) -> float:
    return price(Composed(tuple(Repeated(_weaker(r.event, kept), r.count) for r in releases)), delta).epsilon


def _weaker(event: Event, kept: float) -> Event:
    """What a release costs whose rows all count ``kept`` times as much, under the same noise."""
    assert isinstance(event, _NOISED)
    return replace(event, noise_multiplier=event.noise_multiplier / kept)


def apply_own_budgets(
    releases: Sequence[PlannedRelease], own: Mapping[int, float], num_clients: int, delta: float
) -> tuple[PlannedRelease, ...]:
    """The plan's releases, where some clients keep an ε of their own.

    Args:
        releases: those of the plan.
        own: client → the ε that it asks for, > 0 and finite; empty: nothing changes.
        num_clients: how many clients there are.
        delta: of the plan.

    Returns:
        The releases; where somebody asks, one for each client.

    Raises:
        PrivacyError: a client or an ε that there is not, or as ``_own_budget_share``.
    """
    if not own:
        return tuple(releases)
    shares = {}
    for client, epsilon in own.items():
        if not 0 <= client < num_clients or not 0 < epsilon < math.inf:
            raise PrivacyError(f"client {client} asks for ε = {epsilon}; allowed: clients 0 … {num_clients - 1}, 0 < ε < ∞")
        shares[client] = _own_budget_share([r for r in releases if r.client in (None, client)], epsilon, delta)
    found: list[PlannedRelease] = []
    for release in releases:
        for client in range(num_clients) if release.client is None else (release.client,):
            found.append(_shrunk(replace(release, client=client), shares.get(client, 1.0)))
    return tuple(found)


def _shrunk(release: PlannedRelease, kept: float) -> PlannedRelease:
    if kept >= 1 or not isinstance(release.mechanism, GaussianNoise):
        return release
    return replace(release, mechanism=OwnBudgetNoise(release.mechanism.std, kept), event=_weaker(release.event, kept))
