"""What a client computes between two rounds, and what it sends of it.

A message is one float64 vector: parameters [p] and Adam's moments [2p, or none with plain descent], both times the number of
labelled nodes; that number; then right answers, summed loss and number of validation nodes of the broadcast model; and how many
of the clients have a validation mask of the split. Every part adds up over clients.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from fedgraph.learning import fitting, own_models, walks
from fedgraph.methods.nonprivate import phases
from fedgraph.methods.nonprivate.params import Candidate, Planned
from fedgraph.types import Graph

if TYPE_CHECKING:
    from fedgraph.learning import Network


@dataclass(frozen=True, eq=False)
class Work:
    """The graph of one client. What is computed from it is kept while it is needed."""

    graph: Graph  # of the client
    rows: fitting.FittingScaling  # how feature rows are scaled
    # candidate → network, built when first needed (its parameters are always broadcast)
    networks: dict[int, Network] = field(default_factory=dict)
    # of the latest run's seed, phase and fold, the labels that train and those that validate
    divided: dict[tuple[int, bool, int], tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    # of the latest run's seed and fold, the graph on which nodes validate
    thinned: dict[tuple[int, int], Work] = field(default_factory=dict)
    # of the latest labels that train, rows with the labels of neighbours
    heard: dict[bytes, fitting.FittingInputs] = field(default_factory=dict)

    @cached_property
    def inputs(self) -> fitting.FittingInputs:
        return fitting.prepare_fitting_inputs(self.graph, self.rows)

    def read_by(self, candidate: Candidate, training: np.ndarray) -> fitting.FittingInputs:
        """Its inputs. training: int64 [n], the labels that it may read of neighbours, −1 elsewhere."""
        if not candidate.hears:
            return self.inputs
        if (key := training.tobytes()) not in self.heard:
            self.heard.clear()
            self.heard[key] = fitting.prepare_fitting_inputs(self.graph, self.rows, training)
        return self.heard[key]


def message_of(plan: Planned, work: Work, model: Mapping[str, np.ndarray], number: int) -> np.ndarray:
    """What client ``number`` sends."""
    place = phases.PhasePlace.of(model)
    if not place.going:
        return np.zeros(1)
    key = (place.seed, place.refits, place.fold)
    if key not in work.divided:
        work.divided.clear()
        labels = work.graph.labels
        work.divided[key] = labels, np.full_like(labels, -1)
        if not place.refits:
            drawn = np.random.default_rng([place.seed, number]).random(labels.size)
            work.divided[key] = phases.divide_labels(work.graph, plan.made.validation, drawn, place.fold)
    training, validation = work.divided[key]
    judged = np.zeros(3)
    if (validation >= 0).any():
        like_asked = _like_asked(plan, work, validation, place, number)
        answers = _asked(plan, like_asked, place.candidate, model["parameters"], training)
        judged = phases.count_validation(answers, validation)
    vector, moments, weight = _trained(plan, work, model, training, number)
    masked = 0.0 if work.graph.validation is None else 1.0
    return np.concatenate((vector, moments.ravel(), [weight], judged, [masked]))


def scores(
    plan: Planned, index: int, network: Network, parameters: np.ndarray, graph: Graph, given: fitting.FittingInputs
) -> np.ndarray:
    """[n, c] of ``graph``, spread over its edges where the candidate says so."""
    return _spread(plan, index, fitting.score_after_fitting(network, parameters, given), graph)


def tuned(plan: Planned, index: int, shared: np.ndarray, graph: Graph, rng: np.random.Generator) -> np.ndarray:
    """One client's own weights: steps of the candidate on ``graph`` from the shared ones, with its rate, decay and dropout."""
    candidate, shape = plan.made.candidates[index], phases.shape_of(plan, index)
    network, seed = fitting.build_network_for_fitting(shape, 0), int(rng.integers(2**31))

    def given(labels: np.ndarray) -> fitting.FittingInputs:
        return fitting.prepare_fitting_inputs(graph, plan.params.features, labels if candidate.hears else None)

    def descended(labels: np.ndarray, steps: int) -> list[np.ndarray]:
        known = given(labels)
        at = fitting.FittingProgress(shared, np.zeros((2, shared.size), np.float32))
        kept = [shared]
        for first in range(0, steps, own_models.OWN_MODEL_EVERY):
            how = fitting.FittingSteps(own_models.OWN_MODEL_EVERY, first, candidate.rate, candidate.decay)
            at = fitting.continue_fitting(network, known, labels, at, how, partial(phases.seed_of_step, seed, index))
            kept.append(at.vector)
        return kept

    def answers(weights: np.ndarray) -> np.ndarray:
        return fitting.score_after_fitting(network, weights, known)

    known = given(graph.labels)  # a node's own label is not in its own row, so held-out nodes may hear all others
    return own_models.choose_steps(descended, answers, shared, graph.labels, rng)


def _asked(plan: Planned, work: Work, index: int, parameters: np.ndarray, training: np.ndarray) -> np.ndarray:
    given = work.read_by(plan.made.candidates[index], training)
    return scores(plan, index, _network(plan, work, index), parameters, work.graph, given)


def _trained(
    plan: Planned, work: Work, model: Mapping[str, np.ndarray], training: np.ndarray, number: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """(parameters, moments, labelled nodes), the first two times the third; float64."""
    params, place = plan.params, phases.PhasePlace.of(model)
    candidate = plan.made.candidates[place.candidate]
    how = fitting.FittingSteps(params.local_epochs, place.steps, candidate.rate, candidate.decay)
    before = fitting.FittingProgress(model["parameters"], model["moments"])
    network, given = _network(plan, work, place.candidate), work.read_by(candidate, training)
    after = fitting.continue_fitting(network, given, training, before, how, lambda step: place.step_seed(number, step))
    weight = float((training >= 0).sum())
    return after.vector.astype(np.float64) * weight, after.moments.astype(np.float64) * weight, weight


def _like_asked(plan: Planned, work: Work, validation: np.ndarray, place: phases.PhasePlace, number: int) -> Work:
    """The graph on which validation nodes are judged: with as few edges per node as the graph that will be asked.

    Where the test graph is a graph of its own, most neighbours of its nodes are missing from it. So are they here: edges stay
    between validation nodes and so many others, drawn once, that as many nodes have edges as the test graph has.
    """
    if plan.made.share == 1:
        return work
    if (key := (place.seed, place.fold)) not in work.thinned:
        drawn = np.random.default_rng([place.seed, number, 1]).random(validation.size)
        kept = sp.diags_array(((drawn < plan.made.share) | (validation >= 0)).astype(work.graph.adjacency.dtype))
        thin = sp.csr_array(kept @ work.graph.adjacency @ kept)
        thin.eliminate_zeros()
        work.thinned.clear()
        work.thinned[key] = Work(replace(work.graph, adjacency=thin), work.rows, work.networks)
    return work.thinned[key]


def _network(plan: Planned, work: Work, index: int) -> Network:
    if index not in work.networks:
        work.networks[index] = fitting.build_network_for_fitting(phases.shape_of(plan, index), 0)
    return work.networks[index]


def _spread(plan: Planned, index: int, found: np.ndarray, graph: Graph) -> np.ndarray:
    alpha = plan.made.candidates[index].alpha
    if alpha == 1:
        return found
    return walks.personalised_pagerank(graph.adjacency, found, alpha, plan.params.propagation_steps)
