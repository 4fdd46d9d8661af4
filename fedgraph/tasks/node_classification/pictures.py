"""What is drawn of one training for the eyes of whoever holds the data: it is no release, and nothing of it is priced.

The curve compares with true labels. The map (DPAR, Figure 9) reads the private training graph itself: what noise does shows in
how far nodes of one class keep together.
"""

import numpy as np
from scipy.spatial.distance import cdist

from fedgraph.comparison import cluster
from fedgraph.methods import Plan, method_kinds

_MOST_NODES = 1000  # t-SNE of more takes longer than the training


def choose_rounds(points: int, plan: Plan) -> frozenset[int]:
    """After which rounds, counted from 1, accuracy is kept: at most ``points``, evenly spaced, the last always among them.

    A method that has no answer before its last phase (``Offers.answers_every_round``) has no curve, nor has a single round.
    """
    many = plan.schedule.rounds
    if not points or many < 2 or not method_kinds.load(plan.method).OFFERS.answers_every_round:
        return frozenset()
    return frozenset(int(r) for r in np.linspace(0, many, min(points, many) + 1).round()[1:])


def of_nodes(scores: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> tuple[dict[str, np.ndarray], float]:
    """(artefacts ``map`` [m, 2] and ``classes`` [m], silhouette of the classes in the embedding, −1 … 1).

    scores: [n, c], one embedding per node. labels: int64 [n], −1 nodes are left out. m: at most ``_MOST_NODES``, drawn
    by ``rng``. With fewer than two classes, or as many as nodes, the silhouette is NaN.
    """
    from sklearn.metrics import silhouette_score  # its import takes a second

    order = rng.permutation(labels.size)
    shown = np.sort(order[labels[order] >= 0][:_MOST_NODES])
    distances = cdist(scores[shown].astype(np.float64), scores[shown].astype(np.float64))
    classes = labels[shown]
    enough = 2 <= np.unique(classes).size < shown.size
    apart = float(silhouette_score(distances, classes, metric="precomputed")) if enough else float("nan")
    return {"map": cluster.tsne(distances, rng).astype(np.float32), "classes": classes.astype(np.int16)}, apart
