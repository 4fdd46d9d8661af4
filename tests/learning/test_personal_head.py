"""A client's own head: it starts as the shared model, learns what the shared model does not know, and then stops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedgraph.learning import own_models
from fedgraph.types import Graph


def uniform(graph: Graph) -> np.ndarray:
    return np.full((graph.num_nodes, graph.num_classes), 1 / graph.num_classes)


def test_it_learns_where_the_shared_model_knows_nothing(library: Graph) -> None:
    rows = own_models.prepare(library, uniform(library))
    rng = np.random.default_rng(0)
    train = rng.random(library.num_nodes) < 0.7
    head = own_models.fit_head(rows, np.where(train, library.labels, -1), rng)
    right = head.scores(rows).argmax(axis=1) == library.labels
    assert head.steps > 0
    assert right[~train].mean() > 0.45, "the majority class alone is right for about a quarter"


def test_it_keeps_a_shared_model_that_knows_everything(library: Graph) -> None:
    """Labels that rows say nothing about, and a shared model that is sure and right: no step helps."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, library.num_classes, library.num_nodes)
    chances = np.full((library.num_nodes, library.num_classes), 1e-9)
    chances[np.arange(labels.size), labels] = 1.0
    head = own_models.fit_head(own_models.prepare(library, chances), labels, rng)
    assert (head.scores(own_models.prepare(library, chances)).argmax(axis=1) == labels).all()


def test_without_labels_or_neighbours_it_is_the_shared_model(library: Graph) -> None:
    alone = replace(library, adjacency=library.adjacency * 0, labels=np.full(library.num_nodes, -1))
    alone.adjacency.eliminate_zeros()
    rows = own_models.prepare(alone, uniform(alone))
    assert (rows.around == 0).all()
    head = own_models.fit_head(rows, alone.labels, np.random.default_rng(0))
    assert head.steps == 0
    np.testing.assert_allclose(head.scores(rows), np.log(uniform(alone)))
