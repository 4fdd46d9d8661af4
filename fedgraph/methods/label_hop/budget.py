"""How ``label_hop`` divides its budget between noisy labels (pure ε), counts of class pairs, and gradients (both Gaussian)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fedgraph.errors import ScenarioError
from fedgraph.learning.optimisers.dp_training import full_width
from fedgraph.methods.base import Budget, PublicFacts, gradient_std
from fedgraph.methods.label_hop.params import Params
from fedgraph.privacy.accounting import calibrate
from fedgraph.privacy.events import Composed, Event, Gaussian, PureDP, Repeated
from fedgraph.privacy.mechanisms.masked_response import MaskedResponse

LEAST_EPSILON, MOST_FOR_LABELS = 3.0, 2.5
LEAST_SIGNAL = 15.0  # s per class, times the squared share of true answers, below which half of ε is worth more in the rows


@dataclass(frozen=True)
class Split:
    """labels: pure ε of the answers (0: no hop; ∞: in clear). meetings, gradient: noise multipliers (∞ and 0: none)."""

    labels: float
    meetings: float
    gradient: float
    steps: int
    rate: float
    clip: float


def split(params: Params, facts: PublicFacts, budget: Budget) -> Split:
    """Noise for every release, so that all of them together cost at most the budget (searched on the price itself)."""
    if not budget.private:
        steps, rate, clip = _descent(params, 3.0 * facts.num_train)
        return Split(math.inf if facts.sizes.num_classes > 1 else 0.0, 0.0, 0.0, steps, rate, clip)
    _, num_shares = gradient_std(1.0, 1.0, facts)
    alone = math.sqrt(1 if num_shares > 1 else facts.sizes.num_clients) * (2 if params.protects.replaces else 1)
    labels = _for_labels(params, facts, budget, alone)
    shares = (params.meeting_share, 1 - params.meeting_share) if labels else (0.0, 1.0)

    def all_of_it(total: float, steps: int) -> Event:
        gradients = Repeated(Gaussian(total * math.sqrt(steps / shares[1])), steps)
        return Composed((PureDP(labels), Gaussian(total / math.sqrt(shares[0])), gradients)) if labels else gradients

    total = calibrate.noise_multiplier(lambda m: all_of_it(m, 1), budget.epsilon, budget.delta)
    steps, rate, clip = _descent(params, facts.num_train * min(3.0, math.sqrt(shares[1]) / total / alone))
    total = calibrate.noise_multiplier(lambda m: all_of_it(m, steps), budget.epsilon, budget.delta)
    meetings = total / math.sqrt(shares[0]) if labels else math.inf
    return Split(labels, meetings, total * math.sqrt(steps / shares[1]), steps, rate, clip)


def _for_labels(params: Params, facts: PublicFacts, budget: Budget, alone: float) -> float:
    """Pure ε of the answers. auto: none where public numbers say that the rows need the whole budget.

    With s = n·μ of the whole budget (over ``alone``, what the noise of clients who add their own takes), rows of few nodes per
    class gain from every ε, and the answers of many classes are seldom true: a hop then costs more than it brings.
    """
    epsilon, classes = budget.epsilon, facts.sizes.num_classes
    if classes < 2:
        return 0.0
    if params.label_epsilon != "auto":
        if params.label_epsilon >= epsilon:
            raise ScenarioError(f"label_hop: label_epsilon {params.label_epsilon} leaves nothing of ε = {epsilon} for training")
        return float(params.label_epsilon)
    labels = min(epsilon / 2, MOST_FOR_LABELS)
    true = MaskedResponse(labels, classes, params.protects.replaces).keep
    strength = facts.num_train / calibrate.gaussian_multiplier(1, epsilon, budget.delta) / alone
    return labels if epsilon >= LEAST_EPSILON and strength / classes * true**2 >= LEAST_SIGNAL else 0.0


def _descent(params: Params, strength: float) -> tuple[int, float, float]:
    steps, rate, clip = full_width(strength)
    return (
        steps if params.steps == "auto" else params.steps,
        rate if params.learning_rate == "auto" else params.learning_rate,
        clip if params.clip == "auto" else params.clip,
    )
