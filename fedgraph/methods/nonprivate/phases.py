"""The server's side: averages, early stopping, one candidate after another, and the refit.

A phase is the training of one candidate while one fold validates, at most ``rounds`` rounds. All candidates are tried with
the first fold; those within two standard errors of the best go on to the next one, until one is left or the folds are through.
The last phases, where there is a refit, train the chosen ones on all training nodes. Phases that end early
leave rounds over; they pass with empty messages at the end.

A part of the training nodes (a fold) validates while the others train, and each fold does so in turn. What a candidate showed
is added up over folds, round by round, so that one number of rounds is chosen on all validation nodes together: a choice on 150
nodes follows chance, and the best of many rounds on them even more. Where several candidates are within a standard error of
the best, nobody can tell which is better. They answer together: the mean of their log-probabilities, as an average of models is
seldom worse than the one among them that happens to be chosen.

What a message holds: ``clients``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import log_softmax

from fedgraph.learning import NetworkShape, fitting
from fedgraph.methods.base import PlanInbox, State
from fedgraph.methods.nonprivate.params import NONPRIVATE_CEILING_FEW, Planned
from fedgraph.types import Graph

_PROBATION, _FAR = 100, 2.0  # steps before a candidate may be left early; standard errors behind the best one that it takes


NEAR_CANDIDATES = 1.0  # standard errors below the best within which a candidate answers too


@dataclass(frozen=True, eq=False)
class BestCandidate:
    """A round of a candidate."""

    candidate: int  # its place among the candidates
    accuracy: float  # on validation nodes
    loss: float  # mean over validation nodes
    updates: int  # rounds that led there
    parameters: np.ndarray  # float32 [p]; empty where they need not be kept
    # rounds that must have led there; before, a network is hardly trained, and a handful of nodes praises it by chance
    least: int = 1

    @property
    def rank(self) -> tuple[bool, float, float]:
        """The larger the better. A network that is hardly trained is the last choice."""
        return self.updates >= self.least, self.accuracy, -self.loss

    def beats(self, other: BestCandidate | None) -> bool:
        return other is None or self.rank > other.rank


@dataclass(frozen=True, eq=False)
class TriedCandidate:
    """What a candidate showed."""

    # float64 [rounds, 3], right answers, summed loss and number of validation nodes of the model after so many rounds, summed
    # over folds; a fold that stopped earlier counts with its last row
    curve: np.ndarray
    folds: int  # how many
    first: BestCandidate  # the best round of the first fold

    @property
    def best(self) -> BestCandidate:
        """The best round by what all folds say together; its parameters are those of the first fold's best round."""
        if self.folds == 1:
            return self.first
        rounds = (replace(self.first, accuracy=r / n, loss=loss / n, updates=t) for t, (r, loss, n) in enumerate(self.curve))
        return max(rounds, key=lambda found: found.rank)

    @property
    def count(self) -> float:
        """Validation nodes, over all folds."""
        return float(self.curve[0, 2])

    def after(self, curve: np.ndarray) -> TriedCandidate:
        """With one more fold, whose ``curve`` is float64 [rounds, 3]."""
        length = max(len(curve), len(self.curve))
        return replace(self, curve=_lengthened(self.curve, length) + _lengthened(curve, length), folds=self.folds + 1)


def _lengthened(curve: np.ndarray, length: int) -> np.ndarray:
    return np.concatenate([curve, np.repeat(curve[-1:], length - len(curve), axis=0)])


def _standard_error(accuracy: float, count: float) -> float:
    """Of an accuracy on ``count`` nodes, as if one more had been right and one more wrong: two right of two are not sure."""
    likely = (accuracy * count + 1) / (count + 2)
    return math.sqrt(likely * (1 - likely) / count)


def candidates_within(tried: Mapping[int, TriedCandidate], errors: float) -> list[int]:
    """Candidates at most ``errors`` standard errors below the best, from the best on; of those that saw the most folds."""
    if not tried:
        return []
    folds = max(t.folds for t in tried.values())
    whole = {c: t.best for c, t in tried.items() if t.folds == folds}
    order = sorted(whole, key=lambda c: (-whole[c].accuracy, whole[c].loss))
    top = whole[order[0]]
    least = top.accuracy - errors * _standard_error(top.accuracy, tried[order[0]].count)
    return [c for c in order if whole[c].accuracy >= least]


def candidates_together(scores: Sequence[np.ndarray]) -> np.ndarray:
    """[n, c]: the scores of the only member as they are, or the mean of all members' log-probabilities."""
    if len(scores) == 1:
        return scores[0]
    found = np.zeros_like(scores[0], dtype=np.float64)
    for own in scores:
        found += log_softmax(own.astype(np.float64), axis=1)
    return (found / len(scores)).astype(scores[0].dtype)


@dataclass(frozen=True, eq=False)
class PhaseTraining:
    """What the server knows."""

    seed: int  # of everything that is drawn
    last: np.ndarray  # the latest parameters, float32 [p]
    in_phase: BestCandidate | None = None  # the best round of this phase
    curve: tuple[np.ndarray, ...] = ()  # [right, loss, count] after each round of this phase
    waited: int = 0  # rounds without progress
    lowest: float = np.inf  # lowest loss of this phase
    tried: Mapping[int, TriedCandidate] = field(default_factory=dict)  # candidate → what it showed in finished phases
    going: tuple[int, ...] = ()  # who is trained in this fold
    members: tuple[BestCandidate, ...] = ()  # who answers
    fitted: int = 0  # so many of the members are trained again already, or need not be


@dataclass(frozen=True)
class PhasePlace:
    """Where the training is."""

    candidate: int  # that is trained
    steps: int  # that every client has taken in this phase
    seed: int  # of the run
    refits: bool  # the phase trains a chosen one again, on all training nodes
    going: bool  # false once all is done
    fold: int = 0  # which part of the training nodes validates

    @classmethod
    def of(cls, model: Mapping[str, np.ndarray]) -> PhasePlace:
        candidate, steps, seed, refits, going, fold = (int(v) for v in model["place"])
        return cls(candidate, steps, seed, bool(refits), bool(going), fold)

    def broadcast(self, parameters: np.ndarray, moments: np.ndarray) -> dict[str, np.ndarray]:
        place = np.array([self.candidate, self.steps, self.seed, self.refits, self.going, self.fold], dtype=np.int64)
        return {"parameters": parameters, "moments": moments, "place": place}

    def step_seed(self, client: int, step: int) -> int:
        """Of the dropout of one step of a client."""
        return seed_of_step(self.seed, client, self.candidate, step, *_later(self.fold))


def shape_of(plan: Planned, index: int) -> NetworkShape:
    facts = plan.facts
    return plan.made.candidates[index].shape(facts.num_features, facts.num_classes, plan.params.arguments)


def seed_of_step(*path: int) -> int:
    """The seed of the dropout of one step: of (run, client, candidate, step), and the fold after the first one."""
    return int(np.random.SeedSequence(path).generate_state(1)[0])


def _later(fold: int) -> tuple[int, ...]:
    return (fold,) if fold else ()


def divide_labels(graph: Graph, share: float, drawn: np.ndarray, fold: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(labels that train, labels that validate), int64 [n], −1 elsewhere: the graph's own mask, or a share of its labels.

    drawn: [n], uniform in [0, 1). fold: which share; different ones have no node in common.
    """
    if graph.validation is not None:
        return graph.labels, graph.validation
    held_out = (drawn >= fold * share) & (drawn < (fold + 1) * share) & (graph.labels >= 0)
    return np.where(held_out, -1, graph.labels), np.where(held_out, graph.labels, -1)


def count_validation(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """[right, summed loss, labelled] on the nodes with a label ≥ 0."""
    known = labels >= 0
    scores, labels = scores[known].astype(np.float64), labels[known]
    losses = -log_softmax(scores, axis=1)[np.arange(labels.size), labels]
    return np.array([(scores.argmax(axis=1) == labels).sum(), losses.sum(), labels.size], dtype=np.float64)


def begin(plan: Planned, seed: int) -> State[PhaseTraining]:
    everybody = tuple(range(len(plan.made.candidates)))
    return _phase(plan, PhaseTraining(seed, np.zeros(0, np.float32), going=everybody), 0)


def answering(state: State[PhaseTraining]) -> list[tuple[int, np.ndarray]]:
    """(candidate, parameters) of every network that answers: the chosen ones, or the one that is being trained."""
    if "members" not in state.model:
        return [(PhasePlace.of(state.model).candidate, state.model["parameters"])]
    candidates, sizes = state.model["members"]
    parts = np.split(state.model["parameters"], np.cumsum(sizes)[:-1])
    return [(int(candidate), part) for candidate, part in zip(candidates, parts, strict=True)]


def with_parameters(state: State[PhaseTraining], parameters: list[np.ndarray]) -> State[PhaseTraining]:
    """The same networks with other parameters."""
    return replace(state, model={**state.model, "parameters": np.concatenate(parameters)})


def _phase(
    plan: Planned, training: PhaseTraining, candidate: int, *, refits: bool = False, fold: int = 0
) -> State[PhaseTraining]:
    fresh = fitting.start_fitting(shape_of(plan, candidate), seed_of_step(training.seed, candidate, *_later(fold)))
    own = replace(training, last=fresh.vector, in_phase=None, curve=(), waited=0, lowest=np.inf)
    place = PhasePlace(candidate, 0, training.seed, refits, going=True, fold=fold)
    return State(place.broadcast(fresh.vector, fresh.moments), own)


def merge(plan: Planned, state: State[PhaseTraining], inbox: PlanInbox) -> State[PhaseTraining]:
    """One round at the server."""
    model, place = state.model, PhasePlace.of(state.model)
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
    training = replace(training, last=mean)
    done = place.steps // plan.params.local_epochs  # rounds that led to the model which was just judged
    if count:
        best = BestCandidate(place.candidate, right / count, loss / count, done, old, _least(plan, count))
        training = _noted(training, best, total[at + 1 : at + 4])
    limit = training.members[training.fitted].updates if place.refits else plan.params.rounds
    hopeless = count > 0 and place.steps >= _PROBATION and not place.fold and _is_behind(training, count)
    if done + 1 < limit and training.waited < plan.params.patience and not hopeless:
        after = replace(place, steps=place.steps + plan.params.local_epochs)
        return State(after.broadcast(mean, moments), training)
    return _next(plan, training, place, bool(masked))


def _least(plan: Planned, count: float) -> int:
    """Rounds before which a choice by ``count`` validation nodes in this fold, and as many in each other one, trusts nobody."""
    surely = len(plan.made.candidates) == 1 or plan.made.folds * count >= NONPRIVATE_CEILING_FEW
    return 1 if surely else max(1, _PROBATION // plan.params.local_epochs)


def _noted(training: PhaseTraining, found: BestCandidate, row: np.ndarray) -> PhaseTraining:
    """A better round is the best of the phase; a better accuracy or a lower loss gives the phase new patience."""
    better = found.beats(training.in_phase)
    waited = 0 if better or found.loss < training.lowest else training.waited + 1
    in_phase = found if better else training.in_phase
    unheard = found.updates - len(training.curve)  # rounds in which no validation node answered
    curve = (*training.curve, *(training.curve[-1:] or (row,)) * unheard, row)
    return replace(training, in_phase=in_phase, curve=curve, waited=waited, lowest=min(training.lowest, found.loss))


def _is_behind(training: PhaseTraining, count: float) -> bool:
    """Whether the candidate in training is ``_FAR`` standard errors (of ``count`` validation nodes) below the best one."""
    if not training.tried or training.in_phase is None:
        return False
    best = max(t.first.accuracy for t in training.tried.values())
    return training.in_phase.accuracy < best - _FAR * _standard_error(best, count)


def _next(plan: Planned, training: PhaseTraining, place: PhasePlace, masked: bool) -> State[PhaseTraining]:
    if place.refits:
        members, at = list(training.members), training.fitted
        members[at] = replace(members[at], parameters=training.last)
        return _refit(plan, replace(training, members=tuple(members), fitted=at + 1))
    ended, tried = training.in_phase, dict(training.tried)
    if ended is not None:
        curve, before = np.array(training.curve), tried.get(place.candidate)
        if plan.params.refit and not masked and ended.updates:  # it will be trained again: its parameters need not be kept
            ended = replace(ended, parameters=np.zeros(0, np.float32))
        tried[place.candidate] = TriedCandidate(curve, 1, ended) if before is None else before.after(curve)
    training = replace(training, tried=tried)
    if left := [c for c in training.going if c > place.candidate]:
        return _phase(plan, training, left[0], fold=place.fold)
    going = tuple(sorted(candidates_within(tried, _FAR))) or tuple(range(len(plan.made.candidates)))
    if len(going) > 1 and place.fold + 1 < plan.made.folds and not masked:
        return _phase(plan, replace(training, going=going), going[0], fold=place.fold + 1)
    chosen = candidates_within(tried, NEAR_CANDIDATES)[: plan.params.members]
    if not chosen:
        last = BestCandidate(place.candidate, np.nan, np.nan, 0, training.last)
        return _over(replace(training, members=(last,)))
    training = replace(training, members=tuple(tried[c].best for c in chosen))
    return _refit(plan, training) if plan.params.refit and not masked else _over(training)


def _refit(plan: Planned, training: PhaseTraining) -> State[PhaseTraining]:
    while training.fitted < len(training.members) and not training.members[training.fitted].updates:
        training = replace(training, fitted=training.fitted + 1)
    if training.fitted == len(training.members):
        return _over(training)
    return _phase(plan, training, training.members[training.fitted].candidate, refits=True)


def _over(training: PhaseTraining) -> State[PhaseTraining]:
    members = training.members
    place = PhasePlace(members[0].candidate, 0, training.seed, refits=False, going=False)
    model = place.broadcast(np.concatenate([m.parameters for m in members]), np.zeros((2, 0), np.float32))
    if len(members) > 1:
        model["members"] = np.array([[m.candidate for m in members], [m.parameters.size for m in members]], dtype=np.int64)
    return State(model, training)
