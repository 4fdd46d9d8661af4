"""What a trained model gave: embeddings in the collection's order, what its release can show at most, and accuracies: its own,
those of a support vector machine on distances between graphs, and of votes of the nearest neighbours.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from fedgraph.cells.facts import GraphClassificationFacts
from fedgraph.comparison import classify
from fedgraph.comparison.classify import Split
from fedgraph.methods.base import Plan, State, kinds
from fedgraph.methods.base.kinds import Embedding, Received
from fedgraph.privacy.accounting import bayes
from fedgraph.privacy.mechanisms import blocks
from fedgraph.tasks.base.graphs import graph_collections as collections
from fedgraph.tasks.base.measures import named_measures
from fedgraph.tasks.graph_classification.settings import Params
from fedgraph.types import GraphCollection


def in_order(received: list[np.ndarray | None], dealt: collections.Dealt, width: int) -> list[np.ndarray]:
    """The embedding of each graph, in the order of the collection.

    Args:
        received: For each client, float64 [n, h], the rows of all its graphs. None: it never sent any, so it is known by its
            sizes alone, and its rows are ½ everywhere.
        dealt: Who holds which graph.
        width: h, numbers of one row.

    Returns:
        For each graph, float64 [n, h].
    """
    found: list[np.ndarray] = [np.zeros(0)] * dealt.order.size
    at = 0
    for rows, sizes in zip(received, dealt.sizes, strict=True):
        rows = np.full((sum(sizes), width), 0.5) if rows is None else rows
        for part in blocks.split(rows, sizes):
            found[int(dealt.order[at])] = part
            at += 1
    return found


def model_accuracy(
    made: Plan[Any, Embedding],
    state: State[Received],
    dealt: collections.Dealt,
    collection: GraphCollection,
    split: Split,
    tuned: bool,
) -> dict[str, float]:
    """What the shared model itself reaches on the graphs in clear.

    Args:
        made: The plan.
        state: The final state, with copies of the model where the server kept some.
        dealt: The graphs, as clients hold them.
        collection: The true classes.
        split: Which graphs train, choose and are tested.
        tuned: Whether accuracies of other choices are computed, too.

    Returns:
        From the name of a metric to an accuracy:

        * ``model``: of the last model on test graphs;
        * ``model_on_training`` (``tuned``): of the last model on the graphs that it was trained on;
        * ``model_by_validation`` (``tuned``, with copies): on test graphs, of the copy that is best on validation graphs, the
          first of equals;
        * ``model_tuned_on_test`` (``tuned``, with copies): of the copy that is best on the test graphs themselves. It is no
          result: it shows what that would print.
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


def _answers(made: Plan[Any, Embedding], parameters: np.ndarray, dealt: collections.Dealt) -> np.ndarray:
    """int64 [graphs]: the class that the model names, in the collection's order."""
    method = kinds.embedder(made.method)
    clients = zip(dealt.partition.subgraphs, dealt.sizes, strict=True)
    named = [method.answers(made, parameters, subgraph.graph, sizes).argmax(axis=1) for subgraph, sizes in clients]
    found = np.empty(dealt.order.size, dtype=np.int64)
    found[dealt.order] = np.concatenate(named)
    return found


def facts(collection: GraphCollection, dealt: collections.Dealt, split: Split) -> GraphClassificationFacts:
    """What the tables show beside every row: the clients, the graphs, and the sizes of the split."""
    sizes = np.array([g.num_nodes for g in collection.graphs])
    return GraphClassificationFacts(
        clients=dealt.partition.num_clients,
        partition=dealt.partition.description,
        cut_edges=0,
        graphs=int(sizes.size),
        tested=int(split.test.size),
        least_class=int(np.unique(collection.labels, return_counts=True)[1].min()),
        mean_nodes=float(sizes.mean()),
        smallest=int(sizes.min()),
        majority=float(np.bincount(collection.labels).max() / sizes.size),
        folds=(int(split.train.size), int(split.validation.size), int(split.test.size)),
    )


def with_bounds(
    facts: GraphClassificationFacts, made: Plan[Any, Embedding], dealt: collections.Dealt, collection: GraphCollection
) -> GraphClassificationFacts:
    """The facts with the ε of each graph's own release, and the best accuracy that any classifier can make of it.

    They stay as they are unless there are two classes and every graph's release has a finite pure ε.

    Args:
        facts: What the tables show beside every row.
        made: The plan, with the ε of each graph's release.
        dealt: Who holds which graph.
        collection: The graphs; their sizes are public, and may help a classifier (``bayes.best_given_public``).
    """
    if collection.num_classes != 2 or not made.made.graph_epsilons:
        return facts
    epsilons = np.empty(dealt.order.size)
    epsilons[dealt.order] = np.concatenate([np.array(e) for e in made.made.graph_epsilons])
    if not np.isfinite(epsilons).all():
        return facts
    sizes = np.array([g.num_nodes for g in collection.graphs])
    least, median, largest = (float(q) for q in np.quantile(epsilons, (0.0, 0.5, 1.0)))
    return replace(
        facts,
        graph_epsilon=(least, median, largest),
        bayes_balanced=float(np.mean([bayes.best_accuracy(float(e)) for e in epsilons])),
        bayes_given_size=bayes.best_given_public(sizes, collection.labels, epsilons),
    )


def judge_embeddings(
    distances: np.ndarray, labels: np.ndarray, split: classify.Split, rng: np.random.Generator, how: Params
) -> dict[str, float]:
    """Classify graphs by their distances, and say how often that is right.

    Args:
        distances: float64 [graphs, graphs].
        labels: int64 [graphs], the true classes.
        split: Which graphs train, choose and are tested. Where none chooses, inner folds of the training graphs do.
        rng: Draws the inner folds.
        how: The classifier, its neighbours, and what is done about negative eigenvalues.

    Returns:
        From the name of a metric to its value: ``accuracy``, ``macro_f1`` and ``majority_share`` of a support vector machine
        on exp(−γD), or of the first vote where ``classifier`` is ``neighbours``; ``knn<k>``, the accuracy of each vote. Of the
        support vector machine also ``most_negative_eigenvalue`` and, where asked for, ``tuned_on_test``, the accuracy with
        settings that were picked on the test graphs: no result.
    """
    nearest = {k: classify.nearest(distances, labels, (split,), k) for k in how.neighbours}
    votes = {f"knn{k}": found.mean for k, found in nearest.items()}
    if how.only_nearest is not None:
        return named_measures(nearest[how.neighbours[0]].named[0], labels[split.test]) | votes
    found = classify.svm(distances, labels, (split,), rng, how.handling)
    metrics = named_measures(found.named[0], labels[split.test])
    metrics["most_negative_eigenvalue"] = float(found.most_negative[0])
    if how.tuned_on_test:
        known = np.sort(np.concatenate([split.train, split.validation]))
        picked = classify.Split(known, split.test, split.test)
        found = classify.svm(distances, labels, (picked,), rng, how.handling)
        metrics["tuned_on_test"] = found.chosen[0]["validation"]
    return metrics | votes
