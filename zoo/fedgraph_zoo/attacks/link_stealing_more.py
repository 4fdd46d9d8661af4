"""Stealing links with more than answers: the six of the paper's eight attacks that have all rows or another graph.

What the attacker may have beside the answers decides the number: F, all rows; A*, a part of the edges; D′, another graph with a
model of its own.

    1  D′   2  F   4  D′ and F   5  D′ and A*   6  F and A*   7  all three

(0, nothing, and 3, A*, are fedgraph's ``link_stealing``.) Attack 2 takes off what a model that reads rows alone (the attacker's
reference) finds alike anyway. With A* or D′ a classifier learns from pairs described as there, with F also by the same of the
reference's answers and of the rows. A pair of D′ and one of the target are described by the same numbers, whatever the classes
and words are.
"""

from typing import Literal

import numpy as np
from pydantic import Field

from fedgraph import data, seeds
from fedgraph.attacks import link_stealing
from fedgraph.attacks.base import attack_scene, coin_game
from fedgraph.attacks.base.attack_scene import Scene, SceneFinding
from fedgraph.documents import Settings
from fedgraph.errors import DataError
from fedgraph.learning import NetworkShape, fitting
from fedgraph.privacy import Viewer
from fedgraph.types import Graph

REFERENCE = "He, Jia, Backes, Gong & Zhang, USENIX Security 2021, arXiv 2005.02131"
NEEDS = "the model's answers for the nodes; attacks 2, 4, 6, 7 all rows; 5, 6, 7 a part of the edges; 1, 4, 5, 7 another graph"
VIEWER = Viewer.CURATOR_TRUSTED
GAME: coin_game.CoinGameKind = "edges"

STEPS, RATE, _DECAY = 100, 0.01, 5e-4  # of models of the attacker's own
ROWS, _PART, _OTHER = (2, 4, 6, 7), (5, 6, 7), (1, 4, 5, 7)


class Params(Settings):
    number: Literal[1, 2, 4, 5, 6, 7] = Field(7, description="which of the paper's attacks")
    part: float = Field(0.1, gt=0, le=0.5, description="share of the other edges that the attacker knows (A*)")
    shadow: str = Field("embedded/library", description="family/dataset of the other graph (D′)")


refuses = coin_game.refuse_edges


def attack(params: Params, scene: Scene) -> SceneFinding:
    known, found = scene.known, scene.game.found
    pairs = found.units
    answers = scene.shown(scene.target)
    own = _Described(np.exp(answers), known, params.number in ROWS, scene.rng)
    examples: list[tuple[np.ndarray, np.ndarray]] = []
    if params.number in _PART:
        some, there = link_stealing.known_pairs(scene, params.part)
        examples.append((own.of(some), there))
    if params.number in _OTHER:
        examples.append(_elsewhere(params, scene))
    strangers = scene.game.strangers
    if examples:
        told, there = (np.concatenate(part) for part in zip(*examples, strict=True))
        classifier = link_stealing.pair_classifier(told, there)
        score, apart = (classifier.decision_function(own.of(p)) for p in (pairs, strangers))
    else:
        score, apart = own.alike(pairs), own.alike(strangers)
    return attack_scene.find_edges(score, scene.target.coins, apart, f"edges kept from edges dropped (attack {params.number})")


def _elsewhere(params: Params, scene: Scene) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of another graph, described by the answers of a graph network of its own, and whether they have an edge."""
    graph = data.load(params.shadow)
    if not isinstance(graph, Graph):
        raise DataError(f"{params.shadow} is a collection of graphs; an attacker's shadow needs one graph")
    answers = _answers_of_own(graph, "gcn", int(scene.rng.integers(2**31)))
    described = _Described(answers, graph, params.number in ROWS, scene.rng)
    inside = np.column_stack(graph.adjacency.nonzero())
    inside = inside[inside[:, 0] < inside[:, 1]][:5000]
    rng = seeds.seeded_generator(int(scene.rng.integers(2**31)), "strangers")
    n = graph.num_nodes
    away = coin_game.draw_pairs(graph, len(inside), lambda k: rng.integers(n, size=(k, 2)))
    return described.of(np.concatenate([inside, away])), np.arange(len(inside) + len(away)) < len(inside)


class _Described:
    def __init__(self, answers: np.ndarray, graph: Graph, rows: bool, rng: np.random.Generator) -> None:
        self.answers, self.graph, self.rows = answers, graph, rows
        self.reference = _answers_of_own(graph, "mlp", int(rng.integers(2**31))) if rows else None

    def of(self, pairs: np.ndarray) -> np.ndarray:
        """[k, 12], or with rows [k, 32]."""
        parts = [link_stealing.pair_distances(self.answers, pairs), link_stealing.pair_entropies(self.answers, pairs)]
        if self.reference is not None:
            known = link_stealing.pair_distances(self.reference, pairs)
            parts += [parts[0] - known, link_stealing.pair_entropies(self.reference, pairs), self._rows(pairs)]
        return np.nan_to_num(np.concatenate(parts, axis=1))

    def _rows(self, pairs: np.ndarray) -> np.ndarray:
        """[k, 8]: the same distances of the nodes' own rows, some pairs at a time."""
        found = [np.zeros((0, 8))]
        for part in np.array_split(pairs, -(-len(pairs) // 1000)) if len(pairs) else []:
            nodes, places = np.unique(part, return_inverse=True)
            found.append(link_stealing.pair_distances(self.graph.features[nodes].toarray(), places.reshape(part.shape)))
        return np.concatenate(found)

    def alike(self, pairs: np.ndarray) -> np.ndarray:
        """[k]: correlation of the answers, less the reference's where there is one."""
        found = -link_stealing.pair_distances(self.answers, pairs)[:, 2]
        return found if self.reference is None else found + link_stealing.pair_distances(self.reference, pairs)[:, 2]


def _answers_of_own(graph: Graph, model: str, seed: int) -> np.ndarray:
    """[n, c] probabilities for the nodes of ``graph`` from a network (``gcn`` or ``mlp``) trained on its known labels."""
    shape = NetworkShape(model, graph.num_features, graph.num_classes, 32)
    given = fitting.prepare_fitting_inputs(graph)
    network = fitting.build_network_for_fitting(shape, seed)
    before, how = fitting.start_fitting(shape, seed), fitting.FittingSteps(STEPS, 0, RATE, _DECAY)
    after = fitting.continue_fitting(network, given, graph.labels, before, how, lambda step: seed + step)
    scores = fitting.score_after_fitting(network, after.vector, given).astype(np.float64)
    likely = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(likely / likely.sum(axis=1, keepdims=True))
