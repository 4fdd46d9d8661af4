"""The server's side: averages, early stopping, one candidate after another, and the refit.

A phase is the training of one candidate, at most ``rounds`` rounds; the last one, where there is a refit, trains the chosen
candidate on all training nodes. Phases that end early leave rounds over; they pass with empty messages at the end.

What a message holds: ``local``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from fedgraph.learning.baselines import fitting
from fedgraph.learning.baselines.networks import Shape
from fedgraph.methods.base import Inbox, Plan, State
from fedgraph.methods.nonprivate import server_steps
from fedgraph.methods.nonprivate.params import Asked, Params
from fedgraph.types import Graph

PROBATION, FAR = 100, 2.0  # steps before a candidate may be left early; standard errors behind the best one that it takes


@dataclass(frozen=True, eq=False)
class Best:
    """A round of a candidate. accuracy, loss: on validation nodes; updates: rounds that led there; parameters: float32 [p]."""

    candidate: int
    accuracy: float
    loss: float
    updates: int
    parameters: np.ndarray

    def beats(self, other: Best | None) -> bool:
        return other is None or (self.accuracy, -self.loss) > (other.accuracy, -other.loss)


@dataclass(frozen=True, eq=False)
class Training:
    """What the server knows. best: of the finished phases; in_phase: of this one; waited: rounds without progress; lowest: loss
    of this phase; last: the latest parameters; moments: of the server's own optimiser.
    """

    seed: int
    last: np.ndarray
    moments: server_steps.Moments
    best: Best | None = None
    in_phase: Best | None = None
    waited: int = 0
    lowest: float = np.inf


@dataclass(frozen=True)
class Place:
    """Where the training is. steps: that every client has taken in this phase; going: false once all is done."""

    candidate: int
    steps: int
    seed: int
    refits: bool
    going: bool

    @classmethod
    def of(cls, model: Mapping[str, np.ndarray]) -> Place:
        candidate, steps, seed, refits, going = (int(v) for v in model["place"])
        return cls(candidate, steps, seed, bool(refits), bool(going))

    def broadcast(self, parameters: np.ndarray, moments: np.ndarray) -> dict[str, np.ndarray]:
        place = np.array([self.candidate, self.steps, self.seed, self.refits, self.going], dtype=np.int64)
        return {"parameters": parameters, "moments": moments, "place": place}


def shape_of(plan: Plan[Params, Asked], index: int) -> Shape:
    facts = plan.facts
    shape: Shape = plan.params.candidates[index].shape(facts.num_features, facts.num_classes, plan.params.arguments)
    return shape


def step_seed(*path: int) -> int:
    """Of the dropout of one step: (run, client, candidate, step)."""
    return int(np.random.SeedSequence(path).generate_state(1)[0])


def divided(graph: Graph, share: float, drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(labels that train, labels that validate), int64 [n], −1 elsewhere: the graph's own mask, or a share of its labels.

    drawn: [n], uniform in [0, 1).
    """
    if graph.validation is not None:
        return graph.labels, graph.validation
    held_out = (drawn < share) & (graph.labels >= 0)
    return np.where(held_out, -1, graph.labels), np.where(held_out, graph.labels, -1)


def judged(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """[right, summed loss, labelled] on the nodes with a label ≥ 0."""
    known = labels >= 0
    scores, labels = scores[known].astype(np.float64), labels[known]
    shifted = scores - scores.max(axis=1, keepdims=True)
    losses = np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(labels.size), labels]
    return np.array([(scores.argmax(axis=1) == labels).sum(), losses.sum(), labels.size], dtype=np.float64)


def begin(plan: Plan[Params, Asked], seed: int) -> State[Training]:
    return _phase(plan, Training(seed, np.zeros(0, np.float32), server_steps.Moments()), 0, refits=False)


def chosen(state: State[Training]) -> tuple[int, np.ndarray]:
    """(candidate, parameters) that answer: of the best round, of the refit, or the last where nothing was validated."""
    return Place.of(state.model).candidate, state.model["parameters"]


def _phase(plan: Plan[Params, Asked], training: Training, candidate: int, refits: bool) -> State[Training]:
    """A candidate from its initial parameters."""
    fresh = fitting.start(shape_of(plan, candidate), step_seed(training.seed, candidate))
    own = replace(training, last=fresh.vector, moments=server_steps.Moments(), in_phase=None, waited=0, lowest=np.inf)
    place = Place(candidate, 0, training.seed, refits, going=True)
    moments = fresh.moments if plan.params.client_optimiser == "adam" else np.zeros((2, 0), np.float32)
    return State(place.broadcast(fresh.vector, moments), own)


def merged(plan: Plan[Params, Asked], state: State[Training], inbox: Inbox) -> State[Training]:
    """One round at the server."""
    model, place = state.model, Place.of(state.model)
    training = state.memory
    if not place.going:
        return state
    old, p = model["parameters"], model["parameters"].size
    total = inbox.sums["update"]
    at = p + model["moments"].size
    weight, right, loss, count, masked = total[at:]
    mean, moments = old, model["moments"]
    if weight:
        mean = (total[:p] / weight).astype(np.float32)
        moments = (total[p:at] / weight).astype(np.float32).reshape(2, -1)
    if plan.facts.asynchronous:  # messages say how far clients moved
        mean, moments = (mean + old, moments + model["moments"]) if weight else (old, model["moments"])
    stepped, kept = server_steps.step(plan.params, old, mean, training.moments)
    training = replace(training, last=stepped, moments=kept)
    done = place.steps // plan.params.local_epochs  # rounds that led to the model which was just judged
    if count:
        training = _noted(training, Best(place.candidate, right / count, loss / count, done, old))
    limit = training.best.updates if place.refits and training.best else plan.params.rounds
    hopeless = count > 0 and place.steps >= PROBATION and _is_behind(training, count)
    if done + 1 < limit and training.waited < plan.params.patience and not hopeless:
        after = replace(place, steps=place.steps + plan.params.local_epochs)
        return State(after.broadcast(stepped, moments), training)
    return _next(plan, training, place, bool(masked))


def _noted(training: Training, found: Best) -> Training:
    """A better round is the best of the phase; a better accuracy or a lower loss gives the phase new patience."""
    better = found.beats(training.in_phase)
    waited = 0 if better or found.loss < training.lowest else training.waited + 1
    in_phase = found if better else training.in_phase
    return replace(training, in_phase=in_phase, waited=waited, lowest=min(training.lowest, found.loss))


def _is_behind(training: Training, count: float) -> bool:
    """Whether the candidate in training is ``FAR`` standard errors (of ``count`` validation nodes) below the best one."""
    best, own = training.best, training.in_phase
    if best is None or own is None:
        return False
    return own.accuracy < best.accuracy - FAR * math.sqrt(max(best.accuracy * (1 - best.accuracy), 0.01) / count)


def _next(plan: Plan[Params, Asked], training: Training, place: Place, masked: bool) -> State[Training]:
    """The next candidate, the refit of the best, or the end."""
    ended, best = training.in_phase, training.best
    best = ended if ended is not None and ended.beats(best) else best
    training = replace(training, best=best)
    if place.refits or best is None:
        return _over(training, place.candidate, training.last)
    if place.candidate + 1 < len(plan.params.candidates):
        return _phase(plan, training, place.candidate + 1, refits=False)
    if plan.params.refit and not masked and best.updates:
        return _phase(plan, training, best.candidate, refits=True)
    return _over(training, best.candidate, best.parameters)


def _over(training: Training, candidate: int, parameters: np.ndarray) -> State[Training]:
    place = Place(candidate, 0, training.seed, refits=False, going=False)
    return State(place.broadcast(parameters, np.zeros((2, 0), np.float32)), training)
