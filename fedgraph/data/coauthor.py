"""Co-authorship networks CS and Physics: authors, keywords of their papers, most active field as label.

Shchur, Mumme, Bojchevski, Günnemann, "Pitfalls of Graph Neural Network Evaluation", 2018 (github.com/shchur/gnn-benchmark).
Attributes are binarised, as PyG's ``Coauthor`` does. CS is the ``ms_academic`` of PPNP, PPRGo and DPAR.
"""

from __future__ import annotations

from fedgraph.data import base
from fedgraph.data.base import gnn_benchmark
from fedgraph.data.base.block_model import BlockModel, stand_in
from fedgraph.data.base.structure import Counts
from fedgraph.types import Graph

_COUNTS = {"cs": Counts(18333, 81894, 6805, 15), "physics": Counts(34493, 247962, 8415, 5)}

# Measured on the published files; closure, topic_share and misfiled are tuned as in planetoid.py (regression: 0.93, 0.94).
_STAND_INS = {
    "cs": BlockModel(
        class_sizes=(708, 462, 2050, 429, 1394, 2193, 371, 924, 775, 118, 1444, 2033, 420, 4136, 876),
        num_edges=81894,
        num_features=6805,
        homophily=0.8081,
        words=59.57,
        words_spread=51.27,
        degree_spread=9.11,
        closure=0.6,
        topic_share=0.9,
        misfiled=0.03,
    ),
    "physics": BlockModel(
        class_sizes=(5750, 5045, 17426, 2753, 3519),
        num_edges=247962,
        num_features=8415,
        homophily=0.9314,
        words=32.97,
        words_spread=23.13,
        degree_spread=15.57,
        closure=0.7,
        topic_share=0.85,
        misfiled=0.03,
    ),
}

_FOLDERS = {"cs": "CS", "physics": "Physics"}

DATASETS = {
    name: base.Published(
        columns_from_rows=True,
        key=f"coauthor/{name}",
        title=f"Coauthor {folder}",
        folder=f"coauthor/{folder}/raw",
        files=(f"ms_academic_{name[:3]}.npz",),
    )
    for name, folder in _FOLDERS.items()
}


def load(dataset: str, request: base.Request) -> Graph:
    """``cs`` or ``physics``; see :func:`fedgraph.data.load`."""
    data = DATASETS[dataset]
    return base.load_published(
        data,
        request,
        read=lambda raw: gnn_benchmark.read(raw, data.files[0], data.key, data.title, _COUNTS[dataset]),
        stand_in=lambda seed: stand_in(_STAND_INS[dataset], data.key, data.title, seed),
        pyg=("Coauthor", {"name": _FOLDERS[dataset]}),
    )
