"""From a method's plan to one whose sums are whole numbers behind masks: the same releases, with discrete noise, priced anew.

Of a release with Gaussian noise the plan's own sensitivity Δ is kept: its noise over its multiplier. One step is Δ/R; R follows
from the rule that rounding may cost half a percent of noise (``resolution`` sets it by hand). Each client adds discrete
Gaussian noise so that the honest ones among the ``least`` answers make up the whole; who colludes knows its own share. Under
the provable reading all noise is scaled until the exact price, with rounding, is at most the target.

A release without noise becomes a fixed-point number of 64 bits, 40 of them after the point; it stays unprotected.
"""

import dataclasses
import math

from fedgraph.errors import PrivacyError
from fedgraph.methods.base import Budget, Plan
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.accounting.discrete_gaussian import discrete_gaussian_event, discrete_rounded_norm
from fedgraph.privacy.desk import PlannedRelease
from fedgraph.privacy.events import Composed, Event, Gaussian, Repeated
from fedgraph.privacy.mechanisms.integer_shares import (
    LEAST_SHARE_STD,
    MOST_SHARE_STD,
    DiscreteGaussianShare,
    PlainShare,
    integer_share_bits,
)
from fedgraph.privacy.mechanisms.noise import Disclose, GaussianNoise
from fedgraph.privacy.sensitivity import ClippedSum, L2Ball, Rows, SensitivityBound
from fedgraph.privacy.units import Assumption, Viewer

_ROUNDING_COSTS = 0.005  # of the noise
_FRACTION_BITS, _PLAIN_BITS = 40, 64
_FAILURES = 1e-4  # of δ, for roundings that exceed their bound
_LEAST_RESOLUTION = 4
_CARRIED_OUT = Assumption.MASKED_SECURE_AGGREGATION


def make_masked_plan(plan: Plan, budget: Budget, dimension: int, resolution: int | None = None) -> Plan:
    """``plan`` behind masks; the plan itself where no sums are hidden.

    Args:
        plan: of the method.
        budget: that its noise is chosen for.
        dimension: numbers in one message.
        resolution: steps per sensitivity; None: as few as cost half a percent of noise.

    Raises:
        PrivacyError: the plan releases more than one sum, the release is neither a plain Gaussian sum nor unprotected, or
            nobody would be hidden.
    """
    if plan.guarantee.protection.viewer is not Viewer.SERVER_SECURE_AGGREGATION:
        return plan
    if (
        len(plan.schedule.releases) != 1
        or plan.schedule.releases[0].client is not None
        or plan.guarantee.sampled_once
        or plan.guarantee.holdings is not None
    ):
        raise PrivacyError(f"masks hide one sum per round of clients that share no node; {plan.method} releases something else")
    (release,), colluders = plan.schedule.releases, plan.facts.colluders
    if plan.facts.cohort < colluders + 2:
        raise PrivacyError(
            f"a sum of {plan.facts.cohort} clients with {colluders} colluders does not hide anybody among two; at least "
            f"{colluders + 2} have to answer"
        )
    made = _plain(plan, release) if isinstance(release.mechanism, Disclose) else None
    made = made or _noisy(plan, release, budget, dimension, plan.facts.cohort - colluders, resolution)
    stated = tuple(
        _CARRIED_OUT if a is Assumption.IDEAL_SECURE_AGGREGATION else a for a in plan.guarantee.protection.assumptions
    )
    protection = dataclasses.replace(plan.guarantee.protection, assumptions=stated)
    return dataclasses.replace(
        plan,
        guarantee=dataclasses.replace(plan.guarantee, protection=protection),
        schedule=dataclasses.replace(plan.schedule, releases=(made,), min_clients=plan.facts.cohort),
        epsilon_published=None,
        notes=(*plan.notes, _note(made, colluders)),
    )


def _plain(plan: Plan, release: PlannedRelease) -> PlannedRelease:
    largest = 2.0 ** (_PLAIN_BITS - 2) / plan.facts.sizes.num_clients  # so that the sum is below half of the modulus
    reason = release.mechanism.reason if isinstance(release.mechanism, Disclose) else ""
    return dataclasses.replace(release, mechanism=PlainShare(2.0**-_FRACTION_BITS, _PLAIN_BITS, largest, reason))


def _noisy(
    plan: Plan, release: PlannedRelease, budget: Budget, dimension: int, honest: int, resolution: int | None
) -> PlannedRelease:
    mechanism, priced = release.mechanism, release.event
    if not (isinstance(mechanism, GaussianNoise) and isinstance(priced, Gaussian)):
        raise PrivacyError(
            f"masks hide sums with plain Gaussian noise; {plan.method} releases {release.path!r} with {mechanism.words}, "
            f"priced as {type(priced).__name__}: write secure_aggregation: ideal"
        )
    multiplier = priced.noise_multiplier
    sensitivity = mechanism.std * math.sqrt(honest) / multiplier
    failure = _FAILURES * plan.guarantee.delta / release.count
    steps = float(resolution or _resolution(dimension, failure, multiplier, honest))

    def share(factor: float) -> float:
        return factor * steps / math.sqrt(honest)

    def event(factor: float) -> Event:
        return discrete_gaussian_event(steps, share(factor), honest, dimension, failure)

    if budget.private and budget.calibrated_by != "published":
        multiplier = calibrate.calibrate_noise(
            lambda factor: Composed((Repeated(event(factor), release.count),)), budget.epsilon, budget.delta
        )
    if not LEAST_SHARE_STD <= share(multiplier) <= MOST_SHARE_STD:
        raise PrivacyError(
            f"a share of the noise would be {share(multiplier):.3g} steps of 1/{steps:g} of the sensitivity; allowed: "
            f"{LEAST_SHARE_STD:g} to {MOST_SHARE_STD:g}: choose another resolution"
        )
    step = sensitivity / steps
    largest = _largest(release.bound, plan.facts.sizes.num_clients, plan.method) / step
    bits = integer_share_bits(largest, share(multiplier), plan.facts.sizes.num_clients, float(dimension) * release.count)
    noise = DiscreteGaussianShare(step, bits, share(multiplier), dimension)
    return dataclasses.replace(release, mechanism=noise, event=event(multiplier))


def _resolution(dimension: int, failure: float, multiplier: float, honest: int) -> int:
    """Steps per sensitivity: the least power of two at which rounding costs no more than ``_ROUNDING_COSTS``.

    Lower where a share of the noise would be larger than ``MOST_SHARE_STD``, higher where it would be below two steps.
    """
    steps = _LEAST_RESOLUTION
    while discrete_rounded_norm(steps, dimension, failure) > (1 + _ROUNDING_COSTS) * steps:
        steps *= 2
    while steps > _LEAST_RESOLUTION and 2 * multiplier * steps / math.sqrt(honest) > MOST_SHARE_STD:
        steps //= 2
    while multiplier * steps / math.sqrt(honest) < 2:
        steps *= 2
    return steps


def _largest(bound: SensitivityBound, num_clients: int, method: str) -> float:
    """No entry of the sum over all clients is larger; data units."""
    if isinstance(bound, (ClippedSum, Rows)):
        return bound.clip * bound.num_rows
    if isinstance(bound, L2Ball):
        return bound.radius * num_clients
    raise PrivacyError(f"masks need sums of bounded size; {method} bounds its release by {type(bound).__name__}")


def _note(release: PlannedRelease, colluders: int) -> str:
    return (
        f"Secure aggregation is carried out with masks, on whole numbers modulo 2^{release.mechanism.bits} in steps of "  # type: ignore[attr-defined]
        f"{release.mechanism.step:.3g}; noise shares are for the answers that a round is sure of, less {colluders} colluding."  # type: ignore[attr-defined]
    )
