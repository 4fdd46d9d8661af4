"""What a trained model gave: embeddings in the collection's order, its own accuracy, what its release can show at most."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedgraph.geometry.classify import Split
from fedgraph.methods.base import Plan
from fedgraph.privacy import bayes, blocks
from fedgraph.tasks import _graph_collections as collections
from fedgraph.types import GraphCollection


def in_order(received: list[np.ndarray | None], dealt: collections.Dealt, width: int) -> list[np.ndarray]:
    """One embedding per graph of the collection. A client that never sent one is known by its sizes alone: ½ everywhere."""
    found: list[np.ndarray] = [np.zeros(0)] * dealt.order.size
    at = 0
    for rows, sizes in zip(received, dealt.sizes, strict=True):
        rows = np.full((sum(sizes), width), 0.5) if rows is None else rows
        for part in blocks.split(rows, sizes):
            found[int(dealt.order[at])] = part
            at += 1
    return found


def accuracy(made: Plan, parameters: np.ndarray, dealt: collections.Dealt, collection: GraphCollection, split: Split) -> float:
    """Test accuracy of the shared model itself, on the graphs in clear."""
    from fedgraph.learning import small_graphs  # torch only where a model ran

    truth = np.full(collection.labels.size, -1)
    truth[split.test] = collection.labels[split.test]
    right, at = 0, 0
    for subgraph, sizes in zip(dealt.partition.subgraphs, dealt.sizes, strict=True):
        guesses = small_graphs.graph_scores(made.made["network"], parameters, subgraph.graph, sizes).argmax(axis=1)
        right += int((guesses == truth[dealt.order[at : at + len(sizes)]]).sum())
        at += len(sizes)
    return right / split.test.size


def bounds(made: Plan, dealt: collections.Dealt, collection: GraphCollection) -> dict[str, Any]:
    """ε of each graph's own release, and the best that any classifier can make of it (pure ε only)."""
    if collection.num_classes != 2 or not made.made["graph_epsilons"]:
        return {}
    epsilons = np.empty(dealt.order.size)
    epsilons[dealt.order] = np.concatenate([np.array(e) for e in made.made["graph_epsilons"]])
    if not np.isfinite(epsilons).all():
        return {}
    sizes = np.array([g.num_nodes for g in collection.graphs])
    return {
        "graph_epsilon": [float(q) for q in np.quantile(epsilons, (0.0, 0.5, 1.0))],
        "bayes_balanced": float(np.mean([bayes.best_accuracy(float(e)) for e in epsilons])),
        "bayes_given_size": bayes.best_given_public(sizes, collection.labels, epsilons),
    }
