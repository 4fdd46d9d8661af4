"""A two-dimensional map of what a trained model makes of the private training nodes (DPAR, Figure 9).

The map reads the private training graph itself, so it is for the eyes of whoever holds that graph: it is no release, and
nothing of it is priced. What noise does shows in how far nodes of one class keep together.
"""

import numpy as np
from scipy.spatial.distance import cdist

from fedgraph.comparison import maps

MOST_NODES = 1000  # t-SNE of more takes longer than the training


def draw(scores: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> tuple[dict[str, np.ndarray], float]:
    """(artefacts ``map`` [m, 2] and ``classes`` [m], silhouette of the classes in the embedding, −1 … 1).

    scores: [n, c], one embedding per node. labels: int64 [n], −1 nodes are left out. m: at most ``MOST_NODES``, drawn
    by ``rng``. With fewer than two classes, or as many as nodes, the silhouette is NaN.
    """
    from sklearn.metrics import silhouette_score  # its import takes a second

    known = np.flatnonzero(labels >= 0)
    shown = np.sort(rng.permutation(known)[:MOST_NODES])
    distances = cdist(scores[shown].astype(np.float64), scores[shown].astype(np.float64))
    classes = labels[shown]
    enough = 2 <= np.unique(classes).size < shown.size
    apart = float(silhouette_score(distances, classes, metric="precomputed")) if enough else float("nan")
    return {"map": maps.tsne(distances, rng).astype(np.float32), "classes": classes.astype(np.int16)}, apart
