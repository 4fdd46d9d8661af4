"""Which rows can be deployed, and the numbers from which every file of a project is written.

A row qualifies where all that its clients send are sums of bounded values with plain Gaussian noise, or answers that each
record randomises by itself. Each client adds ``share`` = total/√(s − t): s clients must answer, t of them may tell the server
their noise. Without sums hidden from the server, each client adds the total.

**Whole numbers.** Values are rounded to steps, so two neighbouring values of ``dimension`` entries move apart by at most Δ +
step·√dimension. The step is share/2^k with the least k ≥ ``_FEWEST_BITS`` for which this costs at most ``_FINE`` of Δ, and the
share is larger by as much.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from fedgraph.errors import ScenarioError
from fedgraph.methods import Plan, PlanSchedule, PlanSums
from fedgraph.pricing import ExportedSum
from fedgraph.privacy import (
    Assumption,
    ClippedSum,
    Gaussian,
    GaussianNoise,
    L2Ball,
    MaskedResponse,
    MeetingCounts,
    NeighbourSums,
    PartOf,
    PlannedRelease,
    Protection,
    PureDP,
    Rows,
    SensitivityBound,
    Unprotected,
    Viewer,
)

_FINE = 1e-7  # of the sensitivity, which rounding may cost
_FEWEST_BITS = 26  # so that the discrete law is the Gaussian's to within 1e-9 in ε for a million numbers
DEPLOYABLE_PATH = "model"  # the path of what is trained together
_FEDERATED = (Viewer.SERVER_SECURE_AGGREGATION, Viewer.SERVER, Viewer.ACTIVE_SERVER)


def training_of(plan: Plan) -> Plan:
    """The training alone, where clients train a model together and then each hand in something of their own; else the plan.

    So is DP-FedAvg deployed: nothing but sums of clipped updates leaves a client, and what is paid is the path of the model.
    """
    releases, clients = plan.schedule.releases, plan.facts.num_clients
    own = [r for r in releases if r.path == DEPLOYABLE_PATH and r.client is not None]
    alike = {(type(r.bound), r.mechanism, r.event, tuple(r.rounds), r.per_round) for r in own}
    early = any(r.path != DEPLOYABLE_PATH and r.rounds[0] <= own[0].rounds[-1] for r in releases if own)
    if len(own) != clients or len(alike) > 1 or early:
        return plan
    largest = max(own, key=lambda r: _largest(r.bound))
    rounds, least = range(own[0].rounds[-1] + 1), dict(plan.sums.paths).get(DEPLOYABLE_PATH)
    protection, facts = plan.guarantee.protection, plan.facts
    if least is not None:
        seen = Viewer.SERVER_SECURE_AGGREGATION
        summed = (Assumption.IDEAL_SECURE_AGGREGATION, Assumption.ONE_COLLUDER)
        others = (a for a in protection.assumptions if a is not Assumption.UPDATES_SUMMED)
        protection = replace(protection, viewer=seen, assumptions=(*others, *summed))
        facts = replace(facts, viewer=seen)
    schedule = PlanSchedule(len(rounds), (replace(largest, client=None, rounds=rounds),), least or 1)
    guarantee = replace(plan.guarantee, protection=protection)
    return replace(plan, facts=facts, guarantee=guarantee, schedule=schedule, sums=PlanSums())


def assumed(protection: Protection) -> tuple[Assumption, ...]:
    """The assumptions of a protection where it is deployed: sums are behind masks there, and not simulated."""
    ideal, masked = Assumption.IDEAL_SECURE_AGGREGATION, Assumption.MASKED_SECURE_AGGREGATION
    return tuple(masked if a is ideal else a for a in protection.assumptions)


def require(plan: Plan) -> None:
    """``ScenarioError`` that says why a row of this plan cannot be deployed."""
    facts, guarantee = plan.facts, plan.guarantee
    if facts.viewer not in _FEDERATED:
        why = f"its viewer is {facts.viewer.value}: one party computes it, so nobody is a client; export a row of trust: sums"
    elif guarantee.sampled_once is not None or guarantee.holdings is not None or guarantee.per_end:
        why = "its price counts a secret sample, nodes of several clients or single ends of edges, which no project carries out"
    elif not plan.schedule.releases:
        why = "it releases nothing"
    elif plan.watch.opened:
        why = "clients send more than a deployment may, for an attack to read"
    else:
        why = next((w for w in map(_refusal, plan.schedule.releases) if w), "")
    if why:
        raise ScenarioError(f"{plan.method} cannot be exported: {why}")


def _refusal(release: PlannedRelease) -> str:
    """Why one release is no sum of bounded values with noise of a known law; empty where it is one."""
    said = f"{release.path!r} is {release.mechanism.words}, priced as {type(release.event).__name__}"
    if isinstance(release.event, Unprotected):
        return f"{release.path!r} is sent in clear"
    if release.client is not None or release.per_round != 1 or list(release.rounds) != list(_span(release)):
        return f"{said}, not by all clients alike in rounds that follow one another"
    if isinstance(release.event, PartOf):
        settled = "settle it in advance (of label_hop: give label_epsilon a number)"
        return f"{said}: what is released is chosen on the way; {settled}"
    if isinstance(release.mechanism, MaskedResponse) and isinstance(release.event, PureDP):
        return ""
    if not (isinstance(release.mechanism, GaussianNoise) and isinstance(release.event, Gaussian)):
        return f"{said}; allowed: Gaussian noise on a sum of clipped values, answers by randomised response"
    return "" if _largest(release.bound) else f"{said}; its {type(release.bound).__name__} bounds no sum"


def _span(release: PlannedRelease) -> range:
    return range(release.rounds[0], release.rounds[0] + len(release.rounds)) if release.rounds else range(0)


def _largest(bound: SensitivityBound) -> float:
    """The norm that no value of ``bound`` exceeds; 0 for a bound that is not known here."""
    if isinstance(bound, (ClippedSum, Rows)):
        return bound.clip * bound.num_rows
    if isinstance(bound, L2Ball):
        return bound.radius
    if isinstance(bound, MeetingCounts):
        return float(bound.num_nodes * bound.length)
    return float(bound.max_terms) ** 1.5 if isinstance(bound, NeighbourSums) else 0.0


def list_sums(plan: Plan, dimensions: Mapping[str, int]) -> dict[str, ExportedSum]:
    """Per path, the numbers of its release. dimensions: entries of one value, per path."""
    return {r.path: _planned_sum(r, dimensions[r.path], _num_honest(plan)) for r in plan.schedule.releases}


def _num_honest(plan: Plan) -> int:
    """How many clients' noise hides one unit in what the viewer sees: all but the colluders'; one where messages are seen."""
    return plan.schedule.min_clients - plan.facts.colluders if plan.facts.viewer is Viewer.SERVER_SECURE_AGGREGATION else 1


def _planned_sum(release: PlannedRelease, dimension: int, honest: int) -> ExportedSum:
    bound, event, mechanism = release.bound, release.event, release.mechanism
    kind, where = type(bound).__name__, {"first": _span(release).start, "rounds": len(release.rounds), "dimension": dimension}
    if not (isinstance(mechanism, GaussianNoise) and isinstance(event, Gaussian)):
        spent = event.epsilon if isinstance(event, PureDP) else math.inf
        return ExportedSum(kind="answers", bound=kind, clip=None, sensitivity=spent, share=0.0, steps=1, largest=0.0, **where)
    clip = bound.radius if isinstance(bound, L2Ball) else bound.clip if isinstance(bound, (ClippedSum, Rows)) else None
    sensitivity = mechanism.std * math.sqrt(honest) / event.noise_multiplier
    share = mechanism.std * (1 + _FINE)  # the price is then at most the plan's, rounding included
    steps = 2 ** max(_FEWEST_BITS, math.ceil(math.log2(share * math.sqrt(dimension) / (_FINE * sensitivity))))
    largest = _largest(bound)
    return ExportedSum(
        kind="gaussian", bound=kind, clip=clip, sensitivity=sensitivity, share=share, steps=steps, largest=largest, **where
    )
