"""Amazon co-purchase graphs Photo and Computers: goods, words of their reviews, product category as label.

Shchur, Mumme, Bojchevski, Günnemann, "Pitfalls of Graph Neural Network Evaluation", 2018 (github.com/shchur/gnn-benchmark).
Attributes are binarised and arcs made undirected, as PyG's ``Amazon`` does.
"""

from __future__ import annotations

from fedgraph.data import base
from fedgraph.data.base import gnn_benchmark
from fedgraph.data.base.block_model import BlockModel, stand_in
from fedgraph.data.base.structure import Counts
from fedgraph.types import Graph

_COUNTS = {"photo": Counts(7650, 119081, 745, 8), "computers": Counts(13752, 245861, 767, 10)}

# Measured on the published files; closure and topic_share are tuned as in planetoid.py (logistic regression: 0.92, 0.84).
_STAND_INS = {
    "photo": BlockModel(
        class_sizes=(369, 1686, 703, 915, 882, 823, 1941, 331),
        num_edges=119081,
        num_features=745,
        homophily=0.8272,
        words=258.81,
        words_spread=197.17,
        degree_spread=47.27,
        closure=0.35,
        isolated=115,
        topic_share=0.4,
        zipf=0.3,
    ),
    "computers": BlockModel(
        class_sizes=(436, 2142, 1414, 542, 5158, 308, 487, 818, 2156, 291),
        num_edges=245861,
        num_features=767,
        homophily=0.7772,
        words=267.24,
        words_spread=201.63,
        degree_spread=70.31,
        closure=0.15,
        isolated=281,
        topic_share=0.31,
        zipf=0.3,
    ),
}

DATASETS = {
    name: base.Published(
        columns_from_rows=True,
        key=f"amazon/{name}",
        title=f"Amazon {name.capitalize()}",
        folder=f"amazon/{name.capitalize()}/raw",
        files=(f"amazon_electronics_{name}.npz",),
    )
    for name in _COUNTS
}


def load(dataset: str, request: base.Request) -> Graph:
    """``photo`` or ``computers``; see :func:`fedgraph.data.load`."""
    data = DATASETS[dataset]
    return base.load_published(
        data,
        request,
        read=lambda raw: gnn_benchmark.read(raw, data.files[0], data.key, data.title, _COUNTS[dataset]),
        stand_in=lambda seed: stand_in(_STAND_INS[dataset], data.key, data.title, seed),
        pyg=("Amazon", {"name": dataset}),
    )
