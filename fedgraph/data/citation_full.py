"""The full citation networks Cora_ML and CiteSeer of Bojchevski & Günnemann.

"Deep Gaussian Embedding of Graphs: Unsupervised Inductive Learning via Ranking", ICLR 2018
(github.com/abojchevski/graph2gauss). Citations are made undirected, attributes binarised, as PyG's ``CitationFull`` does.
"""

from __future__ import annotations

from fedgraph.data import base
from fedgraph.data.base import gnn_benchmark
from fedgraph.data.base.block_model import BlockModel, stand_in
from fedgraph.data.base.structure import Counts
from fedgraph.types import Graph

_COUNTS = {"cora_ml": Counts(2995, 8158, 2879, 7), "citeseer": Counts(4230, 5337, 602, 6)}

# Measured on the published files; closure, topic_share and misfiled are tuned as in planetoid.py (regression: 0.80, 0.81).
_STAND_INS = {
    "cora_ml": BlockModel(
        class_sizes=(354, 402, 452, 442, 857, 193, 295),
        num_edges=8158,
        num_features=2879,
        homophily=0.7886,
        words=50.47,
        words_spread=21.41,
        degree_spread=8.24,
        closure=0.3,
        topic_share=0.48,
        misfiled=0.06,
    ),
    "citeseer": BlockModel(
        class_sizes=(628, 740, 778, 831, 558, 695),
        num_edges=5337,
        num_features=602,
        homophily=0.9494,
        words=4.58,
        words_spread=2.24,
        degree_spread=3.75,
        closure=0.13,
        topic_share=0.88,
    ),
}

DATASETS = {
    name: base.Published(
        columns_from_rows=True,
        key=f"citation_full/{name}",
        title=f"CitationFull {title}",
        folder=f"citation_full/{name}/raw",
        files=(f"{name}.npz",),
    )
    for name, title in (("cora_ml", "Cora_ML"), ("citeseer", "CiteSeer"))
}


def load(dataset: str, request: base.Request) -> Graph:
    """``cora_ml`` or ``citeseer``; see :func:`fedgraph.data.load`."""
    data = DATASETS[dataset]
    return base.load_published(
        data,
        request,
        read=lambda raw: gnn_benchmark.read(raw, data.files[0], data.key, data.title, _COUNTS[dataset]),
        stand_in=lambda seed: stand_in(_STAND_INS[dataset], data.key, data.title, seed),
        pyg=("CitationFull", {"name": dataset}),
    )
