"""What ``label_hop`` releases: meetings, answered labels, and gradients with the labels or without, each with its noise."""

import math
from dataclasses import dataclass

from fedgraph.learning.clipping.per_sample import clipped_gradient_sum
from fedgraph.learning.layers.models import Layout
from fedgraph.methods.base import NO_NOISE, PublicFacts, gradient_std
from fedgraph.methods.label_hop.budget import Split, Training
from fedgraph.methods.label_hop.params import Params
from fedgraph.privacy.desk import PlannedRelease
from fedgraph.privacy.events import Event, Gaussian, PartOf, PureDP
from fedgraph.privacy.mechanisms.local_bits import ABSENT, MaskedResponse
from fedgraph.privacy.mechanisms.noise import GaussianNoise
from fedgraph.privacy.private_counts import MeetingCounts
from fedgraph.privacy.sensitivity import Box, ClippedSum, kernel_name, sensitivity_l2


@dataclass(frozen=True, eq=False)
class Made:
    """layout of the rows' model; parts: how the budget is divided; says: the round of the answers."""

    layout: Layout
    parts: Split
    says: int

    @property
    def measures(self) -> bool:
        return self.parts.meetings < math.inf

    def training(self, hop: bool) -> tuple[str, int, Training]:
        """(path, first round, noise and steps) of the gradients, with answers or without."""
        if self.parts.alone is not None and not hop:
            return "rows", 1, self.parts.alone
        return "model", self.says + 1 if self.parts.labels else int(self.measures), self.parts.beside


def planned(params: Params, facts: PublicFacts, made: Made) -> tuple[PlannedRelease, ...]:
    """Gradients with the hop first, then those without where that is to be chosen, labels, and meetings."""
    ways = (True, False) if made.parts.choice else (True,) if params.rows else ()
    releases = [_gradient(params, facts, made, hop) for hop in ways]
    releases += [_labels(params, facts, made)] if made.parts.labels else []
    return (*releases, *([_meetings(params, facts, made.parts)] if made.measures else ()))


def _gradient(params: Params, facts: PublicFacts, made: Made, hop: bool) -> PlannedRelease:
    path, first, training = made.training(hop)
    rounds = range(first, first + training.steps)
    bound = ClippedSum(training.clip, facts.sizes.num_nodes, kernel_name(clipped_gradient_sum))
    if not training.noise:
        return PlannedRelease(path, bound, *NO_NOISE, rounds)
    std, _ = gradient_std(training.noise, sensitivity_l2(bound, params.protects), facts)
    return PlannedRelease(path, bound, GaussianNoise(std), _priced(made, Gaussian(training.noise), hop), rounds)


def _priced(made: Made, event: Event, hop: bool) -> Event:
    whole = made.parts.choice
    return event if whole is None else PartOf(event, whole, 0 if hop else 1)


def _labels(params: Params, facts: PublicFacts, made: Made) -> PlannedRelease:
    bound, rounds = Box(ABSENT, facts.sizes.num_classes - 1), range(made.says, made.says + 1)
    if math.isinf(made.parts.labels):
        return PlannedRelease("labels", bound, *NO_NOISE, rounds)
    response = MaskedResponse(made.parts.labels, facts.sizes.num_classes, params.protects.replaces)
    return PlannedRelease("labels", bound, response, _priced(made, PureDP(made.parts.labels), True), rounds)


def _meetings(params: Params, facts: PublicFacts, parts: Split) -> PlannedRelease:
    bound = MeetingCounts(facts.sizes.num_nodes, facts.sizes.num_classes, parts.by_class)
    if not parts.meetings:
        return PlannedRelease("meetings", bound, *NO_NOISE, range(1))
    std, _ = gradient_std(parts.meetings, bound.change(params.protects), facts)
    return PlannedRelease("meetings", bound, GaussianNoise(std), Gaussian(parts.meetings), range(1))
