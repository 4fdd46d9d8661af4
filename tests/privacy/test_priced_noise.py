"""A plan cannot price noise that it does not add: every pair of mechanism and event, with what is priced and with less."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from fedgraph.errors import PrivacyError
from fedgraph.privacy import events
from fedgraph.privacy import priced_noise as rules
from fedgraph.privacy.desk import PlannedRelease
from fedgraph.privacy.events import (
    ApproxDP,
    BoundedRange,
    Composed,
    EpochGaussian,
    Event,
    FixedSizeGaussian,
    Gaussian,
    Laplace,
    MentionedGaussian,
    MultiBit,
    PoissonGaussian,
    PureDP,
    RandomizedResponse,
    Repeated,
    Selected,
)
from fedgraph.privacy.mechanisms import noise
from fedgraph.privacy.mechanisms.blocks import PerBlock
from fedgraph.privacy.mechanisms.edge_mechanisms import EdgeRand, EdgeTriangle, LapGraph
from fedgraph.privacy.mechanisms.local_bits import MaskedResponse, SampledBits
from fedgraph.privacy.mechanisms.noise import NoiseMechanism
from fedgraph.privacy.mechanisms.objective_perturbation import ObjectivePerturbation, ObjectiveRows
from fedgraph.privacy.neighbour_sums import NeighbourSums, priced_log_cap
from fedgraph.privacy.private_counts import MeetingCounts
from fedgraph.privacy.sensitivity import Box, ClippedSum, L2Ball, NonNegativeRows, Rows, SensitivityBound, SimplexRows
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer

NODE, EDGE, GRAPH = Relation.NODE_ZERO_OUT, Relation.EDGE_UNDIRECTED, Relation.GRAPH_REPLACE
CAP = priced_log_cap(21)
normal = noise.GaussianNoise
# mechanism with just the noise that is priced, with less; event; bound; relation
EXAMPLES: list[tuple[NoiseMechanism, NoiseMechanism, Event, SensitivityBound, Relation]] = [
    (normal(3.0), normal(2.9), Gaussian(1.5), ClippedSum(2.0, 9, "kernel"), NODE),
    (normal(6.0), normal(3.0), Gaussian(1.5), ClippedSum(2.0, 9, "kernel"), Relation.NODE_REPLACE),
    (normal(3.0), normal(2.9), Gaussian(1.5), Rows(2.0, 9), NODE),
    (normal(6.0), normal(3.0), Repeated(Gaussian(1.5), 4), L2Ball(2.0), GRAPH),
    (normal(1.5 * CAP.sensitivity_l2()), normal(1.5), Gaussian(1.5), NeighbourSums(20, CAP), NODE),
    (normal(1.5 * math.sqrt(2)), normal(1.5), Gaussian(1.5), NeighbourSums(9), EDGE),
    (normal(1.5 * 3), normal(1.5 * 2), Gaussian(1.5), MeetingCounts(9, 3, False), NODE),
    (normal(1.5 * math.sqrt(18)), normal(1.5 * 3), Gaussian(1.5), SimplexRows(9), GRAPH),
    (normal(1.5 * math.sqrt(8)), normal(3.0), Composed((Gaussian(1.5), ApproxDP(0.0, 1e-6))), NonNegativeRows(1.0, 4), NODE),
    (normal(1.5), normal(1.0), Gaussian(1.5), Box(0.0, 1.0), GRAPH),
    (normal(3.0), normal(2.0), PoissonGaussian(1.5, 0.1, 1, False), ClippedSum(2.0, 9, "kernel"), NODE),
    (normal(1.5 * math.sqrt(2)), normal(1.5), PoissonGaussian(1.5, 0.1, 1, False), SimplexRows(1), NODE),
    (normal(3.0), normal(2.0), FixedSizeGaussian(1.5, 2, 9, 1, True), ClippedSum(2.0, 9, "kernel"), Relation.NODE_REPLACE),
    (normal(3.0), normal(2.9), Repeated(EpochGaussian(1.5, 11, 1, False), 20), ClippedSum(2.0, 9, "kernel"), NODE),
    (normal(3.0), normal(2.9), MentionedGaussian(1.5, 0.1, 0.2, 5, False), ClippedSum(2.0, 9, "kernel"), NODE),
    (
        noise.SymmetricLaplaceNoise(3.0), noise.SymmetricLaplaceNoise(2.9),
        MentionedGaussian(1.5, 0.1, 0.2, 5, True), ClippedSum(2.0, 9, "kernel"), NODE,
    ),
    (noise.LaplaceNoise(1.0), noise.LaplaceNoise(0.5), Repeated(Laplace(2.0), 3), Box(0.0, 0.5), NODE),
    (noise.GumbelTopK(3, 4.0), noise.GumbelTopK(3, 2.0), Repeated(BoundedRange(0.25), 3), Box(0.0, 0.5), NODE),
    (noise.KaryResponse(1.0, 5), noise.KaryResponse(2.0, 5), RandomizedResponse(1.0, 5), Box(0, 4), NODE),
    (noise.MultiBitEncoder(0.5, 4), noise.MultiBitEncoder(1.0, 4), MultiBit(0.5, 4), Box(0.0, 1.0), NODE),
    (SampledBits(0.5, 4, 0.0, 1.0), SampledBits(0.5, 8, 0.0, 1.0), MultiBit(0.5, 4), Box(0.0, 1.0), NODE),
    (MaskedResponse(1.0, 3, False), MaskedResponse(2.0, 3, False), PureDP(1.0), Box(-2, 2), NODE),
    (LapGraph(1.0, 9, 10**6), LapGraph(2.0, 9, 10**6), PureDP(1.0), EdgeTriangle(9), EDGE),
    (EdgeRand(1.0, 9, 10**6), EdgeRand(2.0, 9, 10**6), RandomizedResponse(1.0, 2), EdgeTriangle(9), EDGE),
    (
        PerBlock((noise.MultiBitEncoder(0.5, 2), noise.MultiBitEncoder(0.25, 2)), (3, 6)),
        PerBlock((noise.MultiBitEncoder(0.5, 2), noise.MultiBitEncoder(0.5, 2)), (3, 6)),
        PureDP(3.0), Box(0.0, 1.0), GRAPH,
    ),
    (
        PerBlock((normal(1.5 * math.sqrt(6)), normal(1.5 * math.sqrt(12))), (3, 6)),
        PerBlock((normal(1.5 * math.sqrt(6)), normal(1.5 * math.sqrt(6))), (3, 6)),
        Gaussian(1.5), SimplexRows(9), GRAPH,
    ),
    (
        ObjectivePerturbation(2, math.inf, 1e-9, 1.0, None, noise_std=1.0),  # type: ignore[arg-type]
        ObjectivePerturbation(2, math.inf, 1e-9, 0.0, None),  # type: ignore[arg-type]
        ApproxDP(1.0, 1e-5), ObjectiveRows(9, 4), EDGE,
    ),
    (
        ObjectivePerturbation(2, math.inf, 1e-9, 0.0, None),  # type: ignore[arg-type]
        ObjectivePerturbation(2, 3.0, 1e-9, 1.0, None),  # type: ignore[arg-type]
        PureDP(0.0), ObjectiveRows(9, 4), EDGE,
    ),
    (normal(3.0), normal(2.0), Selected((Gaussian(9.0), Gaussian(3.0)), 0.0, 0.1), Rows(1.0, 9), NODE),
    (noise.Disclose("public"), normal(3.0), Selected((Gaussian(9.0), PureDP(1.0)), 0.0, 0.1), Rows(1.0, 9), EDGE),
]  # fmt: skip


def place(bound: SensitivityBound, relation: Relation, hiding: int = 1, per_end: bool = False) -> rules.NoisePlace:
    assumed = (Assumption.FEATURES_LABELS_PUBLIC,) if relation is EDGE else ()
    return rules.NoisePlace(bound, Protection(relation, Viewer.SERVER, assumed), hiding, per_end=per_end)


@pytest.mark.parametrize(("enough", "less", "event", "bound", "relation"), EXAMPLES)
def test_what_is_priced_is_there_and_less_is_refused(
    enough: NoiseMechanism, less: NoiseMechanism, event: Event, bound: SensitivityBound, relation: Relation
) -> None:
    release = PlannedRelease("path", bound, enough, event, range(1))
    rules.require(release, place(bound, relation))
    with pytest.raises(PrivacyError, match=r"release 'path' is priced as .* more noise than it gets"):
        rules.require(replace(release, mechanism=less), place(bound, relation))


def test_every_rule_has_an_example_and_every_noise_a_rule() -> None:
    leaves = [(type(enough), next(events.flatten(event))[0]) for enough, _, event, _, _ in EXAMPLES]
    assert {(kind, type(leaf)) for kind, leaf in leaves} == set(rules.PRICED_NOISE_RULES)
    shipped = {name for name, kind in events.all_types().items() if kind.__module__.startswith("fedgraph.")}  # not of tests
    composite = {"Repeated", "Composed", "SampledOnce", "Unprotected", "OneOf", "PartOf"}
    ruled = {kind.__name__ for _, kind in rules.PRICED_NOISE_RULES}
    assert ruled == shipped - composite, "an event needs a rule in privacy/priced_noise.py"


BALL, ROWS = L2Ball(1.0), ClippedSum(2.0, 9, "kernel")
LESS, NO_RULE, NOTHING = "more noise than it gets", "no rule says", "which prices no noise"
HEAVY, LIGHT = (MentionedGaussian(1.5, 0.1, 0.2, 5, kind) for kind in (True, False))
CURVED, THIN = noise.SymmetricLaplaceNoise(3.0), noise.SymmetricLaplaceNoise(1.5)
SUMS, PROMISE = NeighbourSums(9), Protection(NODE, Viewer.SERVER, (Assumption.PROMISED_DEGREE,), promised_degree=4)
BATCHES = [PoissonGaussian, lambda *how: FixedSizeGaussian(1.5, 2, 9, *how[2:]), lambda *how: EpochGaussian(1.5, 2, *how[2:])]
WRONG = [  # mechanism, event, place, what is said
    *((noise.Disclose("in clear"), event, place(BALL, NODE), NO_RULE) for event in (Gaussian(1.0), PureDP(1.0))),
    *((normal(1.0), event, place(BALL, NODE), NO_RULE) for event in (PureDP(1.0), ApproxDP(1.0, 1e-5))),
    (noise.LaplaceNoise(1.0), Gaussian(1.0), place(BALL, NODE), NO_RULE),
    *((normal(9.0), e, place(BALL, NODE), NOTHING) for e in (Composed(()), ApproxDP(0.0, 1e-5), Repeated(Gaussian(1.0), 0))),
    # what hides a masked node is no price where nodes are replaced: a response whose answers tell a label from a masked one by
    # e², and two labels by e^3.7; a row that moves by two clips
    (MaskedResponse(2.0, 6, False), PureDP(2.0), place(Box(-2, 5), Relation.NODE_REPLACE), LESS),
    *((normal(9.0), kind(1.5, 0.1, 1, False), place(L2Ball(2.0), Relation.NODE_REPLACE), LESS) for kind in BATCHES),
    # noise of others counts in squares, and an end is half an edge
    (normal(1.0), Gaussian(2.0), place(BALL, NODE, 3), "of 3 client"),
    (normal(1.5), Gaussian(1.5), place(SUMS, EDGE), LESS),
    # one W for all coordinates is neither normal noise nor adds up (four clients, each with half) nor hides a replaced node
    (CURVED, LIGHT, place(ROWS, NODE), LESS), (normal(3.0), HEAVY, place(ROWS, NODE), LESS),
    (THIN, HEAVY, place(ROWS, NODE, 4), LESS), (CURVED, HEAVY, place(ROWS, Relation.NODE_REPLACE), LESS),
    # a promised degree is in the least change
    (normal(2.9), Gaussian(1.5), rules.NoisePlace(NeighbourSums(4), PROMISE, per_end=False), LESS),
    (normal(3.0), Gaussian(1.5), place(NeighbourSums(4), NODE), "promised maximum degree"),
]  # fmt: skip
RIGHT = [
    (MaskedResponse(2.0, 6, False), PureDP(2.0), place(Box(-2, 5), NODE)),
    (MaskedResponse(2.0, 6, True), PureDP(2.0), place(Box(-2, 5), Relation.NODE_REPLACE)),
    *((normal(9.0), kind(1.5, 0.1, 1, True), place(L2Ball(2.0), Relation.NODE_REPLACE)) for kind in BATCHES),
    (normal(1.0), Gaussian(2.0), place(BALL, NODE, 4)), (normal(1.5), Gaussian(1.5), place(SUMS, EDGE, per_end=True)),
    (CURVED, HEAVY, place(ROWS, NODE)), (normal(1.5), LIGHT, place(ROWS, NODE, 4)),
    (normal(3.0), Gaussian(1.5), rules.NoisePlace(NeighbourSums(4), PROMISE, per_end=False)),
]  # fmt: skip


def test_a_price_holds_for_its_unit_its_clients_and_its_promise_alone() -> None:
    for mechanism, event, where in RIGHT:
        rules.require(PlannedRelease("path", where.bound, mechanism, event, range(1)), where)
    for mechanism, event, where, says in WRONG:
        with pytest.raises(PrivacyError, match=says):
            rules.require(PlannedRelease("path", where.bound, mechanism, event, range(1)), where)
    one, two = MaskedResponse(2.0, 6, False).odds
    assert math.log(one / two) == pytest.approx(3.67, abs=0.01)
