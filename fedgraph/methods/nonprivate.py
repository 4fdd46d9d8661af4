"""The method without privacy, for comparison: the accuracy on the same data if nothing is protected.

Any network (``learning.networks``) trained by FedAvg (McMahan et al. 2017). Clients take full-batch steps; the average is
weighted by labelled nodes. Adam's moments travel with the parameters and are averaged like them, so a client that joins or is
restarted goes on where the federation is. One client is central training, bit for bit, however it is cut into rounds.

**Early stopping.** A share of the training nodes (or the split's own validation mask) does not train. In every round clients
report the broadcast model's accuracy and loss there, on a graph with as few edges per node as a separate test graph. Training
ends after ``patience`` rounds without a better accuracy or loss, and the best round counts. With ``refit`` the network is then
trained again on all training nodes, for as many rounds; not so with a validation mask of the split, as in published work.

**Phases.** ``model: ceiling`` trains each candidate of a small grid. A phase is the training of one candidate while one fold
validates, at most ``rounds`` rounds; a candidate two standard errors below the best after 100 steps stops. All candidates train
with the first fold, those within two standard errors of the best also with the next one, until one is left or all folds are
used. Results are added up over folds, round by round: a choice on 150 nodes follows chance. Those within a standard error of
the best answer together, each trained again in a last phase. Rounds that are left pass with empty messages.

**The training graph at inference.** Inductive: the model reads only the test graph. Transductive: the whole graph, which is the
asked graph. If nodes ask, one candidate of ``model: ceiling`` also reads the labels of their neighbours, as a private row may
(``label_hop``). Nobody sees test labels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from pydantic import Field, model_validator
from scipy.special import log_softmax

from fedgraph import learning, privacy
from fedgraph.documents import Settings
from fedgraph.errors import PrivacyError
from fedgraph.learning import fitting, own_models
from fedgraph.methods import base
from fedgraph.types import Graph, Subgraph

REFERENCE = base.method_bibtex("mcmahan2017communication", "kipf2017semi")

_CHOSEN = "ceiling"
_ENOUGH, _MOST_FOLDS = 1000, 5  # validation nodes over all folds that ``folds: auto`` wants; the most folds that it takes
_CEILING_FEW = 100  # validation nodes of all folds, below which every labelled node validates and no early round is trusted


@dataclass(frozen=True)
class Candidate:
    """One network and how it is trained."""

    model: str  # name of the network
    hidden: int  # hidden units
    dropout: float  # on hidden layers
    input_dropout: float  # on features
    rate: float  # step size
    decay: float  # L2 penalty
    alpha: float = 1.0  # teleport probability of the spread of its scores over the asked graph; 1: no spread
    columns: bool = False  # as in ``NetworkShape``
    hears: bool = False  # whether it reads the labels of a node's neighbours beside its row, also at inference

    def shape(self, num_features: int, num_classes: int, arguments: dict[str, Any]) -> learning.NetworkShape:
        sizes = (num_features + num_classes * self.hears, num_classes, self.hidden, self.dropout, self.input_dropout)
        return learning.NetworkShape(self.model, *sizes, arguments, self.columns)

    def __str__(self) -> str:
        spread = f", spread with α = {self.alpha:g}" if self.alpha < 1 else ""
        sizes = "" if self.model == "logistic" else f", {self.hidden} units, dropout {self.dropout:g}"
        heard = " with the labels of neighbours" if self.hears else ""
        return f"{self.model}{heard}{sizes}, rate {self.rate:g}, decay {self.decay:g}{spread}"


@dataclass(frozen=True)
class _Made:
    """What the plan made of public facts."""

    # nodes of a separate test graph over training nodes, at most 1; 1 if the training graph is asked, or the size is unknown
    share: float
    candidates: tuple[Candidate, ...]  # in the order in which they are trained
    folds: int = 1  # parts of the training nodes that validate in turn
    validation: float = 0.1  # share of the labelled nodes in each of them


# Small on purpose: networks of features alone (logistic, mlp), for neighbours that agree, and for neighbours that do not
# (gprgnn, sage, gcn-jk), in the order of their cost: a later one that is far behind stops early.
CEILING_GRID = (
    Candidate("logistic", 1, 0.0, 0.0, 0.05, 1e-4),
    Candidate("logistic", 1, 0.0, 0.0, 0.05, 1e-4, alpha=0.25),
    Candidate("mlp", 64, 0.5, 0.2, 0.01, 1e-4),
    Candidate("gcn", 64, 0.5, 0.5, 0.01, 5e-4),
    Candidate("gcn", 64, 0.2, 0.0, 0.02, 0.0),
    Candidate("appnp", 64, 0.5, 0.5, 0.01, 5e-4),
    Candidate("gprgnn", 64, 0.5, 0.2, 0.01, 5e-4),
    Candidate("sage", 64, 0.5, 0.2, 0.01, 1e-4),
    Candidate("gcn-jk", 64, 0.5, 0.2, 0.01, 1e-5),
    Candidate("gat", 64, 0.5, 0.5, 0.01, 5e-4),
)
_HEARING = Candidate("logistic", 1, 0.0, 0.0, 0.05, 1e-4, hears=True)  # for protocol asking


class Params(Settings):
    """Settings of the unprotected learners."""

    model: str = Field("gcn", description="ceiling, logistic, mlp, gcn, gat, sage, gcn-jk, appnp, gprgnn, torch_geometric.nn.…")
    arguments: dict[str, Any] = Field({}, description="keyword arguments of a torch_geometric.nn class")
    among: list[str] = Field([], description="ceiling: only these models of the grid; empty: all")
    hidden: int = Field(64, ge=1, description="hidden units")
    rounds: int = Field(40, ge=1, description="FedAvg rounds, at most; of every candidate")
    local_epochs: int = Field(10, ge=1, description="full-batch steps per client and round")
    learning_rate: float = Field(0.01, gt=0, description="step size")
    weight_decay: float = Field(5e-4, ge=0, description="L2 penalty")
    dropout: float = Field(0.5, ge=0, lt=1, description="dropout on hidden layers")
    input_dropout: float = Field(0.0, ge=0, lt=1, description="dropout on the features")
    features: fitting.FittingScaling = Field(
        "unit",
        description="feature rows of length one (unit), or of sum one, as GCN and GAT were published; or columns of mean 0 and "
        "variance 1 over the training rows (default of model: ceiling where more than half of the entries are not zero)",
    )
    alpha: float = Field(0.25, gt=0, le=1, description="teleport probability of the spread of scores (logistic, mlp); 1: none")
    propagation_steps: int = Field(10, ge=0, description="power iterations over the asked graph (logistic, mlp)")
    validation: float = Field(0.1, ge=0, lt=1, description="share of training nodes that stops and chooses; 0: last round")
    folds: Literal["auto"] | Annotated[int, Field(ge=1)] = Field(
        "auto",
        description="ceiling: parts of the training nodes that validate in turn, each of the share validation; auto: as many "
        "as make 1,000 validation nodes, at most 5",
    )
    members: int = Field(
        3, ge=1, description="ceiling: networks that answer together, where as many are within a standard error"
    )
    patience: int = Field(10, ge=1, description="rounds without a better validation loss or accuracy, then the candidate stops")
    refit: bool = Field(
        True, description="train again on all training nodes for the rounds found (not with a given validation mask)"
    )
    client_optimiser: ClassVar[str] = "adam"  # nothing reads it, but it is part of the names of streams

    @model_validator(mode="after")
    def _network_exists(self) -> Self:
        known = list(dict.fromkeys(c.model for c in CEILING_GRID))
        if self.model == _CHOSEN:
            if self.arguments:
                raise ValueError("arguments belong to one model; model: ceiling tries several")
            if not self.validation:
                raise ValueError("model: ceiling chooses on validation nodes; validation must be > 0")
            if self.folds != "auto" and self.folds * self.validation > 1:
                found = f"{self.folds} folds of {self.validation:g}"
                raise ValueError(f"{found} are more than all training nodes; lower one of them")
            if unknown := [m for m in self.among if m not in known]:
                raise ValueError(f"among: {unknown[0]!r} is not in the grid; allowed: {', '.join(known)}")
        else:
            if self.among:
                raise ValueError("among is for model: ceiling")
            if self.folds not in ("auto", 1):
                raise ValueError("folds is for model: ceiling")
            if self.model.startswith(learning.NETWORK_SHAPE_PREFIX):
                from fedgraph.learning import networks  # not before it is used: it imports torch

                networks.require_callable_network(self.model, self.arguments)
            else:
                learning.require_short_network_shape(self.model, self.arguments)
        return self

    def divided(self, num_labelled: int, tried: int) -> tuple[int, float]:
        """(number of parts of ``num_labelled`` nodes that validate in turn, share of each); one part for a single candidate."""
        if self.model != _CHOSEN or tried == 1:
            return 1, self.validation
        if self.folds != "auto":
            return self.folds, self.validation
        of_one = max(1.0, self.validation * num_labelled)
        folds = max(1, min(math.ceil(_ENOUGH / of_one), _MOST_FOLDS, math.floor(1 / self.validation)))
        return folds, max(self.validation, 1 / folds) if folds * of_one < _CEILING_FEW else self.validation

    def candidates(self, asking: bool) -> tuple[Candidate, ...]:
        """The candidates in order. asking: whether nodes ask, so that the ceiling may read the labels of their neighbours."""
        columns = self.features == "columns"
        if self.model == _CHOSEN:
            grid = (*CEILING_GRID, _HEARING) if asking else CEILING_GRID
            return tuple(replace(c, columns=columns) for c in grid if not self.among or c.model in self.among)
        sizes = (self.hidden, self.dropout, self.input_dropout)
        own = Candidate(self.model, *sizes, self.learning_rate, self.weight_decay, columns=columns)
        return (replace(own, alpha=self.alpha) if self.model in ("logistic", "mlp") else own,)


Planned: TypeAlias = base.Plan[Params, _Made]


_PROBATION, _FAR = 100, 2.0  # steps before a candidate may stop early; standard errors below the best with which it does
NEAR_CANDIDATES = 1.0  # standard errors below the best within which a candidate answers, too


@dataclass(frozen=True, eq=False)
class BestCandidate:
    """A round of a candidate."""

    candidate: int  # its place among the candidates
    accuracy: float  # on validation nodes
    loss: float  # mean over validation nodes
    updates: int  # rounds that led there
    parameters: np.ndarray  # float32 [p]; empty if they are not kept
    least: int = 1  # least number of rounds: before, a few nodes may be right by chance

    @property
    def rank(self) -> tuple[bool, float, float]:
        """Larger is better. A network of too few rounds is the last choice."""
        return self.updates >= self.least, self.accuracy, -self.loss

    def beats(self, other: BestCandidate | None) -> bool:
        """Whether it has a larger rank than ``other``, or there is no other."""
        return other is None or self.rank > other.rank


@dataclass(frozen=True, eq=False)
class TriedCandidate:
    """Validation results of a candidate."""

    # float64 [rounds, 3], right answers, summed loss and number of validation nodes after each number of rounds, summed over
    # folds; a fold that stopped earlier counts with its last row
    curve: np.ndarray
    folds: int  # number of folds
    first: BestCandidate  # the best round of the first fold

    @property
    def best(self) -> BestCandidate:
        """The best round by all folds together; its parameters are those of the first fold's best round."""
        if self.folds == 1:
            return self.first
        rounds = (replace(self.first, accuracy=r / n, loss=loss / n, updates=t) for t, (r, loss, n) in enumerate(self.curve))
        return max(rounds, key=lambda found: found.rank)

    @property
    def count(self) -> float:
        """Validation nodes, over all folds."""
        return float(self.curve[0, 2])

    def after(self, curve: np.ndarray) -> TriedCandidate:
        """The results with one more fold, whose ``curve`` is float64 [rounds, 3]."""
        length = max(len(curve), len(self.curve))
        return replace(self, curve=_lengthened(self.curve, length) + _lengthened(curve, length), folds=self.folds + 1)


def _lengthened(curve: np.ndarray, length: int) -> np.ndarray:
    return np.concatenate([curve, np.repeat(curve[-1:], length - len(curve), axis=0)])


def _standard_error(accuracy: float, count: float) -> float:
    """The standard error of an accuracy on ``count`` nodes, as if one more had been right and one more wrong."""
    likely = (accuracy * count + 1) / (count + 2)
    return math.sqrt(likely * (1 - likely) / count)


def candidates_within(tried: Mapping[int, TriedCandidate], errors: float) -> list[int]:
    """Candidates at most ``errors`` standard errors below the best, the best first, of those with the most folds."""
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
class _Training:
    """What the server remembers."""

    seed: int  # of all random draws
    last: np.ndarray  # the latest parameters, float32 [p]
    in_phase: BestCandidate | None = None  # the best round of this phase
    curve: tuple[np.ndarray, ...] = ()  # [right, loss, count] after each round of this phase
    waited: int = 0  # rounds without progress
    lowest: float = np.inf  # lowest loss of this phase
    tried: Mapping[int, TriedCandidate] = field(default_factory=dict)  # candidate → results of finished phases
    going: tuple[int, ...] = ()  # candidates of this fold
    members: tuple[BestCandidate, ...] = ()  # the chosen ones, which answer
    fitted: int = 0  # number of members that were trained again, or need not be


@dataclass(frozen=True)
class _Place:
    """The state of the phases, which is broadcast."""

    candidate: int  # the candidate that is trained
    steps: int  # steps of every client in this phase
    seed: int  # of the run
    refits: bool  # whether the phase trains a chosen one again, on all training nodes
    going: bool  # whether there are rounds left to train
    fold: int = 0  # the part of the training nodes that validates

    @classmethod
    def of(cls, model: Mapping[str, np.ndarray]) -> _Place:
        """The place in a broadcast model."""
        candidate, steps, seed, refits, going, fold = (int(v) for v in model["place"])
        return cls(candidate, steps, seed, bool(refits), bool(going), fold)

    def broadcast(self, parameters: np.ndarray, moments: np.ndarray) -> dict[str, np.ndarray]:
        """The model with this place."""
        place = np.array([self.candidate, self.steps, self.seed, self.refits, self.going, self.fold], dtype=np.int64)
        return {"parameters": parameters, "moments": moments, "place": place}


def shape_of(plan: Planned, index: int) -> learning.NetworkShape:
    """The shape of the network of candidate ``index``."""
    facts = plan.facts
    return plan.made.candidates[index].shape(facts.num_features, facts.num_classes, plan.params.arguments)


def seed_of_step(*path: int) -> int:
    """The seed of the dropout of one step. path: (run, client, candidate, step), and the fold unless it is the first."""
    return int(np.random.SeedSequence(path).generate_state(1)[0])


def _later(fold: int) -> tuple[int, ...]:
    return (fold,) if fold else ()


def divide_labels(graph: Graph, share: float, drawn: np.ndarray, fold: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(labels that train, labels that validate), int64 [n], −1 elsewhere: by the graph's own mask, or a share of its labels.

    drawn: [n], uniform in [0, 1). fold: number of the share; different shares have no node in common.
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


def answering(state: base.State[_Training]) -> list[tuple[int, np.ndarray]]:
    """(candidate, parameters) of every network that answers: the chosen ones, or before that the one in training."""
    if "members" not in state.model:
        return [(_Place.of(state.model).candidate, state.model["parameters"])]
    candidates, sizes = state.model["members"]
    parts = np.split(state.model["parameters"], np.cumsum(sizes)[:-1])
    return [(int(candidate), part) for candidate, part in zip(candidates, parts, strict=True)]


def _phase(plan: Planned, training: _Training, candidate: int, *, refits: bool = False, fold: int = 0) -> base.State[_Training]:
    fresh = fitting.start_fitting(shape_of(plan, candidate), seed_of_step(training.seed, candidate, *_later(fold)))
    own = replace(training, last=fresh.vector, in_phase=None, curve=(), waited=0, lowest=np.inf)
    place = _Place(candidate, 0, training.seed, refits, going=True, fold=fold)
    return base.State(place.broadcast(fresh.vector, fresh.moments), own)


def server(plan: Planned, state: base.State[_Training], inbox: base.PlanInbox) -> base.State[_Training]:
    """Averages the messages, judges the model, and goes on with the phase or begins the next one."""
    model, place = state.model, _Place.of(state.model)
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
    done = place.steps // plan.params.local_epochs  # rounds of the model that was just judged
    if count:
        best = BestCandidate(place.candidate, right / count, loss / count, done, old, _least(plan, count))
        training = _noted(training, best, total[at + 1 : at + 4])
    limit = training.members[training.fitted].updates if place.refits else plan.params.rounds
    hopeless = count > 0 and place.steps >= _PROBATION and not place.fold and _is_behind(training, count)
    if done + 1 < limit and training.waited < plan.params.patience and not hopeless:
        after = replace(place, steps=place.steps + plan.params.local_epochs)
        return base.State(after.broadcast(mean, moments), training)
    return _next(plan, training, place, bool(masked))


def _least(plan: Planned, count: float) -> int:
    """The least number of rounds that a choice trusts, with ``count`` validation nodes in each fold."""
    surely = len(plan.made.candidates) == 1 or plan.made.folds * count >= _CEILING_FEW
    return 1 if surely else max(1, _PROBATION // plan.params.local_epochs)


def _noted(training: _Training, found: BestCandidate, row: np.ndarray) -> _Training:
    """Notes a round: a better rank or a lower loss gives the phase new patience."""
    better = found.beats(training.in_phase)
    waited = 0 if better or found.loss < training.lowest else training.waited + 1
    in_phase = found if better else training.in_phase
    unheard = found.updates - len(training.curve)  # rounds without an answer from a validation node
    curve = (*training.curve, *(training.curve[-1:] or (row,)) * unheard, row)
    return replace(training, in_phase=in_phase, curve=curve, waited=waited, lowest=min(training.lowest, found.loss))


def _is_behind(training: _Training, count: float) -> bool:
    """Whether the candidate in training is ``_FAR`` standard errors (of ``count`` validation nodes) below the best one."""
    if not training.tried or training.in_phase is None:
        return False
    best = max(t.first.accuracy for t in training.tried.values())
    return training.in_phase.accuracy < best - _FAR * _standard_error(best, count)


def _next(plan: Planned, training: _Training, place: _Place, masked: bool) -> base.State[_Training]:
    if place.refits:
        members, at = list(training.members), training.fitted
        members[at] = replace(members[at], parameters=training.last)
        return _refitted(plan, replace(training, members=tuple(members), fitted=at + 1))
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
    best = [tried[c].best for c in chosen]  # untrained by all folds, though not by the first: one round leaves it parameters
    members = [b if b.parameters.size else replace(b, updates=max(1, b.updates)) for b in best]
    members = members or [BestCandidate(place.candidate, np.nan, np.nan, 0, training.last)]
    fitted = 0 if plan.params.refit and not masked else len(members)
    return _refitted(plan, replace(training, members=tuple(members), fitted=fitted))


def _refitted(plan: Planned, training: _Training) -> base.State[_Training]:
    """The phase that trains the next member again, or the end, where the members answer."""
    members = training.members
    if left := [at for at in range(training.fitted, len(members)) if members[at].updates]:
        return _phase(plan, replace(training, fitted=left[0]), members[left[0]].candidate, refits=True)
    place = _Place(members[0].candidate, 0, training.seed, refits=False, going=False)
    model = place.broadcast(np.concatenate([m.parameters for m in members]), np.zeros((2, 0), np.float32))
    if len(members) > 1:
        model["members"] = np.array([[m.candidate for m in members], [m.parameters.size for m in members]], dtype=np.int64)
    return base.State(model, training)


@dataclass(frozen=True, eq=False)
class _Work:
    """The graph of one client, with caches of what is computed from it."""

    graph: Graph  # of the client
    rows: fitting.FittingScaling  # how feature rows are scaled
    networks: dict[int, learning.Network] = field(default_factory=dict)  # candidate → network; its parameters are broadcast
    # (seed, refits, fold) → what ``_divided`` returns; the latest only
    divided: dict[tuple[int, bool, int], tuple[np.ndarray, np.ndarray, _Work]] = field(default_factory=dict)
    # labels that train → rows with the labels of neighbours; the latest only
    heard: dict[bytes, fitting.FittingInputs] = field(default_factory=dict)

    @cached_property
    def inputs(self) -> fitting.FittingInputs:
        """The inputs of networks that read no labels."""
        return fitting.prepare_fitting_inputs(self.graph, self.rows)

    def read_by(self, candidate: Candidate, training: np.ndarray) -> fitting.FittingInputs:
        """The inputs of a candidate. training: int64 [n], the labels that it may read of neighbours, −1 elsewhere."""
        if not candidate.hears:
            return self.inputs
        if (key := training.tobytes()) not in self.heard:
            self.heard.clear()
            self.heard[key] = fitting.prepare_fitting_inputs(self.graph, self.rows, training)
        return self.heard[key]

    def network(self, plan: Planned, index: int) -> learning.Network:
        """The network of candidate ``index``."""
        if index not in self.networks:
            self.networks[index] = fitting.build_network_for_fitting(shape_of(plan, index), 0)
        return self.networks[index]


def _divided(plan: Planned, work: _Work, place: _Place, number: int) -> tuple[np.ndarray, np.ndarray, _Work]:
    """(labels that train, labels that validate, what is asked about the latter) in a phase of client ``number``.

    A separate test graph has few of its nodes' neighbours. So validation nodes are asked on a graph with as few edges per node:
    only edges among them and a share of the other nodes, drawn once, are kept.
    """
    key = (place.seed, place.refits, place.fold)
    if key in work.divided:
        return work.divided[key]
    graph, labels = work.graph, work.graph.labels
    training, validation, asked = labels, np.full_like(labels, -1), work
    if not place.refits:
        drawn = np.random.default_rng([place.seed, number]).random(labels.size)
        training, validation = divide_labels(graph, plan.made.validation, drawn, place.fold)
        if plan.made.share < 1 and (validation >= 0).any():
            others = np.random.default_rng([place.seed, number, 1]).random(labels.size) < plan.made.share
            kept = sp.diags_array((others | (validation >= 0)).astype(graph.adjacency.dtype))
            thin = sp.csr_array(kept @ graph.adjacency @ kept)
            thin.eliminate_zeros()
            asked = _Work(replace(graph, adjacency=thin), work.rows, work.networks)
    work.divided.clear()
    work.divided[key] = training, validation, asked
    return work.divided[key]


def _message_of(plan: Planned, work: _Work, model: Mapping[str, np.ndarray], number: int) -> np.ndarray:
    """What client ``number`` sends after its steps, one float64 vector whose parts add up over clients.

    Parameters [p] and Adam's moments [2p], both times the number of labelled nodes; that number; then right answers, summed
    loss and number of validation nodes of the broadcast model; and 1 if the client has a validation mask of the split, else 0.
    """
    params, place = plan.params, _Place.of(model)
    if not place.going:
        return np.zeros(1)
    candidate = plan.made.candidates[place.candidate]
    training, validation, asked = _divided(plan, work, place, number)
    judged = np.zeros(3)
    if (validation >= 0).any():
        given, network = asked.read_by(candidate, training), asked.network(plan, place.candidate)
        scores = _scores_of(plan, place.candidate, network, model["parameters"], asked.graph, given)
        judged = count_validation(scores, validation)

    def seed_of(step: int) -> int:
        return seed_of_step(place.seed, number, place.candidate, step, *_later(place.fold))

    how = fitting.FittingSteps(params.local_epochs, place.steps, candidate.rate, candidate.decay)
    before = fitting.FittingProgress(model["parameters"], model["moments"])
    network, given = work.network(plan, place.candidate), work.read_by(candidate, training)
    after = fitting.continue_fitting(network, given, training, before, how, seed_of)
    weight, masked = float((training >= 0).sum()), float(work.graph.validation is not None)
    sums = (after.vector.astype(np.float64) * weight, after.moments.astype(np.float64).ravel() * weight)
    return np.concatenate((*sums, [weight], judged, [masked]))


def _scores_of(
    plan: Planned, index: int, network: learning.Network, parameters: np.ndarray, graph: Graph, given: fitting.FittingInputs
) -> np.ndarray:
    """[n, c], scores of the nodes of ``graph``, spread over its edges if the candidate spreads."""
    found, alpha = fitting.score_after_fitting(network, parameters, given), plan.made.candidates[index].alpha
    if alpha == 1:
        return found
    return learning.walks.personalised_pagerank(graph.adjacency, found, alpha, plan.params.propagation_steps)


def _tuned_weights(plan: Planned, index: int, shared: np.ndarray, graph: Graph, rng: np.random.Generator) -> np.ndarray:
    """A client's own weights: steps of the candidate on ``graph`` from the shared weights."""
    candidate, shape = plan.made.candidates[index], shape_of(plan, index)
    network, seed = fitting.build_network_for_fitting(shape, 0), int(rng.integers(2**31))

    def given(labels: np.ndarray) -> fitting.FittingInputs:
        return fitting.prepare_fitting_inputs(graph, plan.params.features, labels if candidate.hears else None)

    def descended(labels: np.ndarray, steps: int) -> list[np.ndarray]:
        known = given(labels)
        at = fitting.FittingProgress(shared, np.zeros((2, shared.size), np.float32))
        kept = [shared]
        for first in range(0, steps, own_models.OWN_MODEL_EVERY):
            how = fitting.FittingSteps(own_models.OWN_MODEL_EVERY, first, candidate.rate, candidate.decay)
            at = fitting.continue_fitting(network, known, labels, at, how, partial(seed_of_step, seed, index))
            kept.append(at.vector)
        return kept

    def answers(weights: np.ndarray) -> np.ndarray:
        return fitting.score_after_fitting(network, weights, known)

    known = given(graph.labels)  # a node's own label is not in its own row, so held-out nodes may read all others
    return own_models.choose_steps(descended, answers, shared, graph.labels, rng)


_TOO_FEW = (
    f"Fewer than {_CEILING_FEW} validation nodes cannot tell networks apart: this row may lie below a plain "
    "network. Compare with one, or label more nodes."
)
_IN_CLEAR = privacy.Disclose("plain FedAvg: the updated parameters")


def plan(params: Params, facts: base.PublicFacts, budget: base.Budget) -> Planned:
    """One unprotected release per client and round, at ε = ∞ whatever the budget is."""
    assumed = (privacy.Assumption.COUNTS_PUBLIC, *base.assume_public_facts(facts))
    if params.model == _CHOSEN and "features" not in params.model_fields_set:
        if not isinstance(facts, base.ClearFacts):
            raise PrivacyError("model: ceiling counts entries of private rows: give base.ClearFacts, or write features")
        if facts.filled > 0.5:
            params = params.model_copy(update={"features": "columns"})
    candidates, attributes = params.candidates(facts.asks), facts.public_attributes
    tried = len(candidates)
    labelled = facts.num_train if attributes is None else int((attributes.labels >= 0).sum())
    known = facts.public_graph if facts.public == "test-graph" else None
    share = 1.0 if known is None else min(1.0, known.num_nodes / facts.num_train)
    made = _Made(share, candidates, *params.divided(labelled, tried))
    refits = min(params.members, tried) if params.refit and params.validation else 0
    rounds = (tried * made.folds + refits) * params.rounds
    event = privacy.Unprotected("parameters are sent without noise")
    note = f"Chosen on validation nodes from {tried} candidates; test labels are read once, at the end."
    notes = (note,) if params.model == _CHOSEN else ()
    guarantee = base.guarantee_from_public_facts(facts, privacy.Relation.NODE_ZERO_OUT, assumed, budget.delta, per_end=False)
    schedule = base.PlanSchedule(
        rounds, (privacy.PlannedRelease("model", privacy.Unbounded(), _IN_CLEAR, event, range(rounds)),), 1
    )
    return base.Plan("nonprivate", params, facts, guarantee, schedule, made, sums=base.PlanSums(suffice=True), notes=notes)


def start(plan: Planned, rng: np.random.Generator) -> base.State[_Training]:
    everybody = tuple(range(len(plan.made.candidates)))
    return _phase(plan, _Training(int(rng.integers(2**31)), np.zeros(0, np.float32), going=everybody), 0)


def prepare(plan: Planned, subgraph: Subgraph) -> _Work:
    return _Work(subgraph.graph, plan.params.features)


def client(
    plan: Planned, work: _Work, model: base.Model, round_: int, streams: base.PlanStreams, desk: privacy.Desk
) -> base.PlanSent:
    """Trains locally and judges the broadcast model on validation nodes (``_message_of``)."""
    return {"update": desk.release("model", _message_of(plan, work, model, desk.client))}


def predict(plan: Planned, state: base.State[_Training], graph: Graph) -> np.ndarray:
    """float [n, c] scores on the asked graph, by all networks that answer."""
    found = []
    for index, parameters in answering(state):
        network = fitting.build_network_for_fitting(shape_of(plan, index), 0)
        heard = graph.labels if plan.made.candidates[index].hears else None
        given = fitting.prepare_fitting_inputs(graph, plan.params.features, heard)
        found.append(_scores_of(plan, index, network, parameters, graph, given))
    return candidates_together(found)


def _tuned(plan: Planned, state: base.State[_Training], graph: Graph, rng: np.random.Generator) -> base.State[_Training]:
    """The state with the weights after a client's own steps on ``graph`` (``learning.own_models``)."""
    own = [_tuned_weights(plan, index, parameters, graph, rng) for index, parameters in answering(state)]
    return replace(state, model={**state.model, "parameters": np.concatenate(own)})


def _says(plan: Planned, state: base.State[_Training]) -> tuple[str, ...]:
    members, tried, steps = state.memory.members, state.memory.tried, plan.params.local_epochs
    if plan.params.model != _CHOSEN or not tried:
        return ()
    named = [f"{plan.made.candidates[m.candidate]} ({m.accuracy:.3f} after {m.updates * steps} steps)" for m in members]
    found = "; ".join(named)
    first = tried[members[0].candidate]
    count = f"{first.count:.0f} validation nodes" + (f" in {first.folds} folds" if first.folds > 1 else "")
    said = f"Chosen by {count}: {found}."
    if len(members) > 1:
        said = f"Within a standard error of the best by {count}, answering together: {found}."
    return (said, _TOO_FEW) if first.count < _CEILING_FEW else (said,)


_FEWER = {"rounds": 3, "local_epochs": 3}
OFFERS: base.Offers[Params, _Made, _Work, _Training] = base.Offers(
    units=(privacy.Unit.NODE,),
    reads=lambda plan: base.MethodReads.PUBLIC_GRAPH,
    situations=(
        base.MethodSituation("inductive", settings=_FEWER),
        base.MethodSituation("transductive", settings=_FEWER),
        base.MethodSituation("inductive-edges", settings=_FEWER),
        base.MethodSituation("asking", settings=_FEWER),
    ),
    ignores_budget={},
    any_broadcast=True,  # nothing is guaranteed anyway
    private_test_nodes=True,  # nothing is protected, so a test node may be asked in any setting
    partial_rounds=True,  # averages are weighted by what came
    answers_every_round=True,
    tuned=_tuned,
    says=_says,
)
