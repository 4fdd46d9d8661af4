"""What a trained model gave: embeddings in the collection's order, what its release can show at most, and accuracies: its own,
those of a support vector machine on distances between graphs, and of votes of the nearest neighbours.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from fedgraph.cells import GraphClassificationCellFacts
from fedgraph.comparison import ClassifySplit, classify
from fedgraph.methods import EmbedderMethodMade, EmbedderMethodMemory, Plan, State, method_kinds
from fedgraph.privacy import best_accuracy, blocks
from fedgraph.tasks.base import measures
from fedgraph.tasks.base.graphs import graph_collections as collections
from fedgraph.tasks.graph_classification.settings import Params
from fedgraph.types import GraphCollection


def in_order(received: list[np.ndarray | None], dealt: collections.TaskCollection, width: int) -> list[np.ndarray]:
    """One embedding per graph of the collection. A client that never sent one is known by its sizes alone: ½ everywhere."""
    found: list[np.ndarray] = [np.zeros(0)] * dealt.order.size
    at = 0
    for rows, sizes in zip(received, dealt.sizes, strict=True):
        rows = np.full((sum(sizes), width), 0.5) if rows is None else rows
        for part in blocks.split(rows, sizes):
            found[int(dealt.order[at])] = part
            at += 1
    return found


def measure_model(
    made: Plan[Any, EmbedderMethodMade],
    state: State[EmbedderMethodMemory],
    dealt: collections.TaskCollection,
    collection: GraphCollection,
    split: ClassifySplit,
    tuned: bool,
) -> dict[str, float]:
    """``model``: test accuracy of the shared model itself, on the graphs in clear.

    tuned: also ``model_on_training``, the accuracy on the graphs it was trained on; and where the server kept copies of the
    model, test accuracies of the copy that is best on validation graphs (``model_by_validation``, the first of equals) and of
    the one that is best on the test graphs themselves (``model_tuned_on_test``: no result, it shows what that would print).
    """

    def right(parameters: np.ndarray) -> np.ndarray:
        return np.asarray(_answers(made, parameters, dealt) == collection.labels)

    last = right(state.model["parameters"])
    found = {"model": float(last[split.test].mean())}
    if not tuned:
        return found
    found["model_on_training"] = float(last[split.train].mean())
    if kept := [right(parameters) for parameters in state.memory.kept]:
        by_validation = max(kept, key=lambda r: float(r[split.validation].mean()))
        found["model_by_validation"] = float(by_validation[split.test].mean())
        found["model_tuned_on_test"] = max(float(r[split.test].mean()) for r in kept)
    return found


def _answers(made: Plan[Any, EmbedderMethodMade], parameters: np.ndarray, dealt: collections.TaskCollection) -> np.ndarray:
    method = method_kinds.load_embedder(made.method)
    clients = zip(dealt.partition.subgraphs, dealt.sizes, strict=True)
    named = [method.answers(made, parameters, subgraph.graph, sizes).argmax(axis=1) for subgraph, sizes in clients]
    found = np.empty(dealt.order.size, dtype=np.int64)
    found[dealt.order] = np.concatenate(named)
    return found


def facts_of(
    collection: GraphCollection, dealt: collections.TaskCollection, split: ClassifySplit
) -> GraphClassificationCellFacts:
    """What the tables show beside every row: the clients, the graphs, and the sizes of the split."""
    sizes = np.array([g.num_nodes for g in collection.graphs])
    parts, dealt_to = (int(split.train.size), int(split.validation.size), int(split.test.size)), dealt.partition
    facts = GraphClassificationCellFacts(clients=dealt_to.num_clients, partition=dealt_to.description, cut_edges=0, folds=parts)
    facts = replace(facts, graphs=int(sizes.size), tested=parts[2], mean_nodes=float(sizes.mean()))
    least, most = measures.least_class(collection.labels), np.bincount(collection.labels).max()
    return replace(facts, least_class=least, majority=float(most / sizes.size))


def bound(
    facts: GraphClassificationCellFacts,
    made: Plan[Any, EmbedderMethodMade],
    dealt: collections.TaskCollection,
    collection: GraphCollection,
) -> GraphClassificationCellFacts:
    """The facts with the ε of each graph's own release, and the best that any classifier can make of it (pure ε only)."""
    if collection.num_classes != 2 or not made.made.graph_epsilons:
        return facts
    epsilons = np.empty(dealt.order.size)
    epsilons[dealt.order] = np.concatenate([np.array(e) for e in made.made.graph_epsilons])
    if not np.isfinite(epsilons).all():
        return facts
    sizes = np.array([g.num_nodes for g in collection.graphs])
    least, median, largest = (float(q) for q in np.quantile(epsilons, (0.0, 0.5, 1.0)))
    balanced = float(np.mean([best_accuracy.at_epsilon(float(e)) for e in epsilons]))
    given = best_accuracy.given_public(sizes, collection.labels, epsilons)
    return replace(facts, graph_epsilon=(least, median, largest), bayes_balanced=balanced, bayes_given_size=given)


def judge(
    distances: np.ndarray, labels: np.ndarray, split: classify.ClassifySplit, rng: np.random.Generator, how: Params
) -> dict[str, float]:
    """``accuracy`` and ``macro_f1`` of the SVM on exp(−γD), its settings, ``knn<k>``, and the majority share of the test rows.

    Without validation rows inner folds choose.
    """
    nearest = {k: classify.by_nearest(distances, labels, (split,), k) for k in how.neighbours}
    votes = {f"knn{k}": found.mean for k, found in nearest.items()}
    if how.only_nearest is not None:
        return measures.of_classes(nearest[how.neighbours[0]].named[0], labels[split.test]) | votes
    found = classify.by_svm(distances, labels, (split,), rng, how.handling)
    metrics = measures.of_classes(found.named[0], labels[split.test])
    metrics["most_negative_eigenvalue"] = float(found.most_negative[0])
    if how.tuned_on_test:
        known = np.sort(np.concatenate([split.train, split.validation]))
        picked = classify.ClassifySplit(known, split.test, split.test)
        found = classify.by_svm(distances, labels, (picked,), rng, how.handling)
        metrics["tuned_on_test"] = found.chosen[0]["validation"]
    return metrics | votes
