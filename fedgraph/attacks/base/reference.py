"""Models of the attacker's own: trained on what the attacker knows, to compare answers with."""

import numpy as np

from fedgraph import data
from fedgraph.errors import DataError
from fedgraph.learning.baselines import fitting
from fedgraph.learning.baselines.shapes import Shape
from fedgraph.types import Graph

STEPS, RATE, DECAY = 100, 0.01, 5e-4


def other_graph(name: str) -> Graph:
    """Another graph with features and labels, by its ``family/dataset``. ``DataError`` for a collection of graphs."""
    found = data.load(name)
    if not isinstance(found, Graph):
        raise DataError(f"{name} is a collection of graphs; an attacker's shadow needs one graph")
    return found


def answers(graph: Graph, model: str, seed: int) -> np.ndarray:
    """[n, c] probabilities for the nodes of ``graph`` from a network (``gcn`` or ``mlp``) trained on its known labels."""
    shape = Shape(model, graph.num_features, graph.num_classes, 32)
    given = fitting.inputs(graph)
    network = fitting.build_network(shape, seed)
    how = fitting.Steps(STEPS, 0, RATE, DECAY)
    after = fitting.trained(network, given, graph.labels, fitting.start(shape, seed), how, lambda step: seed + step)
    scores = fitting.scores(network, after.vector, given).astype(np.float64)
    likely = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(likely / likely.sum(axis=1, keepdims=True))
