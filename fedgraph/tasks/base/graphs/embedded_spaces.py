"""Metric spaces of released embeddings, and of embeddings that are constant, which show what the size alone gives away."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedgraph import seeds
from fedgraph.comparison import classify, gromov
from fedgraph.comparison.metric_space import Metric, MetricSpace, Weights, from_embedding
from fedgraph.comparison.solving import SolverFacts
from fedgraph.tasks.base import Context
from fedgraph.tasks.base.graphs.pairwise import all_pairs, asked_pairs
from fedgraph.types import Graph

CONSTANT = "constant embedding"


def embedded_spaces(
    embeddings: Sequence[np.ndarray],
    metric: Metric,
    graphs: Sequence[Graph],
    fused: str | None = None,
    weights: Weights = "uniform",
) -> list[MetricSpace]:
    """Spaces of node embeddings; fused: with node features, ``raw`` as the graph has them or the ``embedding`` itself.

    weights ``degree`` reads the graph itself: only for embeddings that are sent in clear.
    """
    made = []
    for rows, graph in zip(embeddings, graphs, strict=True):
        features = None if fused is None else rows if fused == "embedding" else graph.features.toarray()
        made.append(from_embedding(rows, metric, weights, graph.degrees if weights == "degree" else None, features))
    return made


def constant_spaces(sizes: Sequence[int], encoding: Any, metric: Metric, rng: np.random.Generator) -> list[MetricSpace]:
    """What the encoder makes of embeddings that are ½ everywhere, compared as all others are."""
    return [from_embedding(encoding.of_graph(n)[0].apply(np.full((n, encoding.width), 0.5), rng), metric) for n in sizes]


def constant_distances(
    key: tuple[Any, ...],
    sizes: Sequence[int],
    encoding: Any,
    options: gromov.GromovOptions,
    context: Context,
    split: classify.Split,
    k: int | None,
    metric: Metric = "euclidean",
) -> tuple[np.ndarray, SolverFacts]:
    """As ``asked_pairs``, of embeddings that are ½ everywhere, through the encoder: they carry the size and nothing else.

    Nothing of them is trained, so one draw, named by ``key``, serves all splits of this process.
    """

    def drawn() -> list[MetricSpace]:
        return constant_spaces(sizes, encoding, metric, seeds.generator(context.root, *key, "constant"))

    name = ("constant", *key)
    spaces = context.cached((*name, "spaces"), drawn)
    if k is None:
        return context.cached(name, lambda: all_pairs(spaces, options, context))
    known = context.cached((*name, "known"), lambda: np.full((len(spaces), len(spaces)), np.nan))
    return asked_pairs(spaces, options, context, split, k, known)
