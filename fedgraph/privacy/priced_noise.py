"""Checks that a plan adds at least the noise that its events price: one rule for every pair of mechanism and event.

A plan names the mechanism and the event of a release separately, so they could disagree. Every plan calls ``require`` for each
of its releases before any data are read. ``require`` looks up the rule of (mechanism, kind of event) in
``PRICED_NOISE_RULES``; a pair without a rule is an error, so a new mechanism or event cannot be planned before it has a rule.

A rule is a necessary condition: it uses a lower bound on the sensitivity of the bounded value (``_least_change``). Tests
measure that the price covers the largest change that a method makes (``tests/methods/test_situations.py``).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from fedgraph.errors import PrivacyError
from fedgraph.privacy import events, neighbour_sums, private_counts, sensitivity
from fedgraph.privacy.desk import PlannedRelease
from fedgraph.privacy.mechanisms import edge_mechanisms, local_bits, noise
from fedgraph.privacy.mechanisms.blocks import PerBlock
from fedgraph.privacy.mechanisms.objective_perturbation import ObjectivePerturbation
from fedgraph.privacy.units import Protection, Relation, Unit

_ROUNDING = 1e-9  # of a standard deviation or an ε


@dataclass(frozen=True)
class NoisePlace:
    """The setting in which a mechanism adds noise."""

    bound: sensitivity.SensitivityBound  # bound of the value to which noise is added
    protection: Protection  # unit, relation and promises of the price
    hiding: int = 1  # least number of clients whose noise is in what the viewer sees and is unknown to it
    per_end: bool = field(kw_only=True)  # whether events price one end of an edge


_Rule: TypeAlias = Callable[..., bool]  # (mechanism, event, place) → whether the noise is there


def require(release: PlannedRelease, place: NoisePlace) -> None:
    """Refuses a release whose event prices more noise than its mechanism adds.

    Args:
        release: a planned release.
        place: the setting of its mechanism; its bound is that of the release.

    Raises:
        PrivacyError: there is less noise than is priced, no rule for the pair, no priced event, or a clipped sum without its
            kernel.
    """
    mechanism, bound = release.mechanism, release.bound
    if (
        isinstance(bound, sensitivity.ClippedSum)
        and not bound.kernel
        and isinstance(mechanism, noise.GaussianNoise | noise.SymmetricLaplaceNoise)
    ):
        raise PrivacyError(
            f"release {release.path!r} is priced as a sum of clipped rows, and names no kernel that clips them: give "
            "ClippedSum its kernel, or let the desk clip with Rows"
        )
    leaves = [leaf.event if isinstance(leaf, events.PartOf) else leaf for leaf, _ in events.flatten(release.event)]
    missed = [leaf for leaf in leaves if isinstance(leaf, events.ApproxDP) and not leaf.epsilon]  # δ beside the noise
    noised = [leaf for leaf in leaves if leaf not in missed]
    if not noised:
        raise PrivacyError(f"release {release.path!r} is priced as {release.event}, which prices no noise")
    for leaf in noised:
        if not _rule_of(mechanism, leaf)(mechanism, leaf, place):
            raise PrivacyError(
                f"release {release.path!r} is priced as {leaf}, which is more noise than it gets: {mechanism.words} on "
                f"{type(bound).__name__} under {place.protection.relation.value}, of {place.hiding} client(s)"
            )


def _rule_of(mechanism: noise.NoiseMechanism, event: events.Event) -> _Rule:
    """The rule of the pair. ``PrivacyError`` where there is none."""
    if isinstance(event, events.Unprotected):
        return lambda mechanism, event, place: True
    pair = (type(mechanism), type(event))
    if pair not in PRICED_NOISE_RULES:
        raise PrivacyError(
            f"no rule says how much noise {pair[0].__name__} must add for the price of {pair[1].__name__}: add one to "
            "PRICED_NOISE_RULES in privacy/priced_noise.py"
        )
    return PRICED_NOISE_RULES[pair]


def _least_change(place: NoisePlace, relation: Relation) -> float:
    """A lower bound on Δ₂ of the bounded value, in data units: some unit changes it by as much.

    ``PrivacyError``: the bound has no sensitivity under ``relation``.
    """
    bound, promised = place.bound, place.protection.promised_degree
    if isinstance(bound, neighbour_sums.NeighbourSums):
        if relation is Relation.EDGE_UNDIRECTED and place.per_end:
            return neighbour_sums.NEIGHBOUR_SUM_END
        if bound.cap is not None:
            return bound.cap.sensitivity_l2(relation.replaces)
        return neighbour_sums.sensitivity(relation, promised, rows_released=False)
    if isinstance(bound, sensitivity.EdgeRows) and place.per_end:
        return bound.clip / math.sqrt(2)  # an inner edge, both of whose ends are at one client, moves it by the clip
    if isinstance(bound, private_counts.OwnedRows):
        return bound.sensitivity_l2(relation)
    if isinstance(bound, private_counts.MeetingCounts | private_counts.ColumnCounts):
        return bound.change(relation)
    if isinstance(bound, sensitivity.Box):
        return _side(bound)
    return sensitivity.l2(bound, relation)


def _normal(mechanism: noise.GaussianNoise, event: events.Gaussian, place: NoisePlace) -> bool:
    return _enough(mechanism, event.noise_multiplier * _least_change(place, place.protection.relation), place)


def _of_sampled_rows(
    mechanism: noise.GaussianNoise,
    event: events.PoissonGaussian | events.FixedSizeGaussian | events.EpochGaussian,
    place: NoisePlace,
) -> bool:
    """The multiplier is relative to the clip of one row, or of one answer that is computed from the sampled rows.

    Replacing a row moves the sum by two clips, which an event for a vanishing row does not price. At edge level a row must
    belong to one edge (``EdgeRows``, ``EdgeClippedSum``) of one client; where an edge changes the rows of both its ends
    (``EndsClippedSum``), the event must price two replaced rows.
    """
    relation = place.protection.relation
    if place.per_end or (relation.replaces and not event.replaced):
        return False
    if not isinstance(place.bound, (sensitivity.ClippedSum, sensitivity.L2Ball, sensitivity.Rows, sensitivity.SimplexRows)):
        return False
    if isinstance(place.bound, sensitivity.EndsClippedSum):
        ends = isinstance(event, events.FixedSizeGaussian) and event.replaced and event.touched_rows >= 2
        return (
            ends
            and relation is Relation.EDGE_UNDIRECTED
            and _enough(mechanism, event.noise_multiplier * place.bound.clip, place)
        )
    of_one = relation if relation.unit is Unit.EDGE else Relation.NODE_ZERO_OUT
    return _enough(mechanism, event.noise_multiplier * _least_change(place, of_one), place)


def _of_mentions(
    mechanism: noise.GaussianNoise | noise.SymmetricLaplaceNoise, event: events.MentionedGaussian, place: NoisePlace
) -> bool:
    """The multiplier is relative to the clip of one row. √W times Gaussian noise of several clients does not add up."""
    heavy = isinstance(mechanism, noise.SymmetricLaplaceNoise)
    if place.protection.relation.replaces or event.heavy is not heavy or not isinstance(place.bound, sensitivity.ClippedSum):
        return False
    needed = event.noise_multiplier * place.bound.clip
    return mechanism.std * (1.0 if heavy else math.sqrt(place.hiding)) >= needed * (1 - _ROUNDING)


def _enough(mechanism: noise.GaussianNoise, std: float, place: NoisePlace) -> bool:
    return mechanism.std * math.sqrt(place.hiding) >= std * (1 - _ROUNDING)


def _laplace(mechanism: noise.LaplaceNoise, event: events.Laplace, place: NoisePlace) -> bool:
    bound = place.bound
    change = (
        bound.sensitivity_l1(place.protection.relation) if isinstance(bound, neighbour_sums.NeighbourCounts) else _side(bound)
    )
    return mechanism.scale >= event.noise_multiplier * change * (1 - _ROUNDING)


def _side(bound: sensitivity.SensitivityBound) -> float:
    """The largest change of one entry of a ``Box``; ∞ for any other bound."""
    return bound.high - bound.low if isinstance(bound, sensitivity.Box) else math.inf


def _of_bits(mechanism: noise.MultiBitEncoder | local_bits.SampledBits) -> float:
    """ε of one row's bits, or of all bits of the matrix if they are priced together."""
    return mechanism.epsilon_per_bit * mechanism.num_sampled


def _pure_blocks(mechanism: PerBlock, event: events.PureDP, place: NoisePlace) -> bool:
    def spent(part: noise.NoiseMechanism, rows: int) -> float:
        if not isinstance(part, noise.MultiBitEncoder):
            return math.inf
        whole = place.protection.unit is Unit.GRAPH and not part.in_total
        return _of_bits(part) * (rows if whole else 1)

    return all(spent(p, n) <= event.epsilon * (1 + _ROUNDING) for p, n in zip(mechanism.parts, mechanism.sizes, strict=True))


def _normal_blocks(mechanism: PerBlock, event: events.Gaussian, place: NoisePlace) -> bool:
    def of_block(rows: int) -> NoisePlace:
        return (
            replace(place, bound=sensitivity.SimplexRows(rows)) if isinstance(place.bound, sensitivity.SimplexRows) else place
        )

    parts = zip(mechanism.parts, mechanism.sizes, strict=True)
    return all(isinstance(p, noise.GaussianNoise) and _normal(p, event, of_block(n)) for p, n in parts)


def _score(mechanism: noise.GaussianNoise, event: events.Selected, place: NoisePlace) -> bool:
    """The last candidate is the score; what a trial releases beside it was planned at a desk of its own."""
    score = event.candidates[-1]
    return isinstance(score, events.Gaussian) and _normal(mechanism, score, place)


def _bits(m: noise.MultiBitEncoder | local_bits.SampledBits, e: events.MultiBit, _: NoisePlace) -> bool:
    return _of_bits(m) <= e.epsilon_per_bit * e.num_bits * (1 + _ROUNDING)


PRICED_NOISE_RULES: dict[tuple[type[noise.NoiseMechanism], type[events.Event]], _Rule] = {
    (noise.GaussianNoise, events.Gaussian): _normal,
    **{
        (noise.GaussianNoise, event): _of_sampled_rows
        for event in (events.PoissonGaussian, events.FixedSizeGaussian, events.EpochGaussian)
    },
    **{(kind, events.MentionedGaussian): _of_mentions for kind in (noise.GaussianNoise, noise.SymmetricLaplaceNoise)},
    (noise.LaplaceNoise, events.Laplace): _laplace,
    (noise.GumbelTopK, events.BoundedRange): lambda m, e, p: m.scale * e.epsilon >= 2 * _side(p.bound) * (1 - _ROUNDING),
    (noise.KaryResponse, events.RandomizedResponse): lambda m, e, _: m.num_values == e.num_values and m.epsilon <= e.epsilon,
    (noise.MultiBitEncoder, events.MultiBit): _bits,
    (local_bits.SampledBits, events.MultiBit): _bits,
    # A response that hides a label from a masked one may tell two labels apart by more than its ε.
    (local_bits.MaskedResponse, events.PureDP): lambda m, e, p: (
        m.epsilon <= e.epsilon and m.replaces >= p.protection.relation.replaces
    ),
    (edge_mechanisms.LapGraph, events.PureDP): lambda m, e, _: m.epsilon <= e.epsilon,
    (edge_mechanisms.EdgeRand, events.RandomizedResponse): lambda m, e, _: e.num_values == 2 and m.epsilon <= e.epsilon,
    (PerBlock, events.PureDP): _pure_blocks,
    (PerBlock, events.Gaussian): _normal_blocks,
    # That there is noise; how much is calibrated where its constants are (``mechanisms.objective_perturbation``).
    (ObjectivePerturbation, events.ApproxDP): lambda m, e, _: m.noise_std > 0 or math.isfinite(m.rate),
    # A minimiser without noise whose rows read no edge (Ψ = 0) costs nothing; no other is priced so.
    (ObjectivePerturbation, events.PureDP): lambda m, e, _: not m.noise_std and math.isinf(m.rate) and e.epsilon == 0,
    (noise.GaussianNoise, events.Selected): _score,
    # A score in clear is computed from what is released and public, as it can be where only edges are private.
    (noise.Disclose, events.Selected): lambda m, e, p: p.protection.unit is Unit.EDGE,
}
