"""Open Graph Benchmark, node property prediction: papers of arXiv (Computer Science), and products bought together at Amazon.

Hu et al., "Open Graph Benchmark: Datasets for Machine Learning on Graphs", NeurIPS 2020 (arXiv 2005.00687). The raw files of
the downloads ``arxiv.zip`` and ``products.zip``, as they lie in them: ``raw/edge.csv.gz``, ``raw/node-feat.csv.gz``,
``raw/node-label.csv.gz`` and ``split/<by>/{train,valid,test}.csv.gz``. Citations are read as undirected edges. The split is
the published one (``split: public``): arXiv by year, products by sales rank. fedgraph does not download them: their host asks
for a confirmation; put them below a data root.
"""

from __future__ import annotations

import numpy as np

from fedgraph.data import base
from fedgraph.data.base import arrays
from fedgraph.data.base.block_model import BlockModel, stand_in
from fedgraph.data.base.files import RawFiles
from fedgraph.data.base.structure import Counts, feature_matrix
from fedgraph.errors import DataError
from fedgraph.types import Graph

_COUNTS = {"arxiv": Counts(169_343, 1_157_799, 128, 40), "products": Counts(2_449_029, 61_859_140, 100, 47)}
_BY = {"arxiv": "time", "products": "sales_ranking"}
_TABLES = ("raw/edge.csv.gz", "raw/node-feat.csv.gz", "raw/node-label.csv.gz")
_PARTS = ("train", "valid", "test")

DATASETS = {
    name: base.Published(
        key=f"ogbn/{name}",
        title=f"ogbn-{name}",
        folder=f"ogbn/{name}",
        files=(*_TABLES, *(f"split/{by}/{part}.csv.gz" for part in _PARTS)),
        direct=False,
        columns_from_rows=True,
    )
    for name, by in _BY.items()
}


def load(dataset: str, request: base.Request) -> Graph:
    """``arxiv`` or ``products``; see :func:`fedgraph.data.load`."""
    return base.load_published(
        DATASETS[dataset],
        request,
        read=lambda raw: read(dataset, raw),
        stand_in=lambda seed: generated(dataset, seed),
        pyg=None,
    )


def read(dataset: str, raw: RawFiles) -> Graph:
    """The graph in a folder with ``raw`` and ``split``. Raises ``DataError`` naming file, line, found and allowed."""
    edges, rows, labels = _TABLES
    features = arrays.numbers(raw, rows)
    n, counts = features.shape[0], _COUNTS[dataset]
    given = arrays.numbers(raw, labels, 1)
    if given.shape[0] != n:
        raise DataError(f"{raw.folder / labels}: {given.shape[0]} labels for {n} nodes; allowed: one a node")
    known = arrays.whole(given[:, 0], counts.classes, raw, labels)
    arcs = arrays.whole(arrays.numbers(raw, edges, 2), n, raw, edges)
    split = [f"split/{_BY[dataset]}/{part}.csv.gz" for part in _PARTS]
    ids = [arrays.whole(arrays.numbers(raw, name, 1)[:, 0], n, raw, name) for name in split]
    graph = Graph(
        name=f"ogbn/{dataset}",
        adjacency=arrays.adjacency(arcs[:, 0], arcs[:, 1], n),
        features=feature_matrix(features.astype(np.float32)),
        labels=known,
        num_classes=counts.classes,
        provenance=raw.provenance(f"ogbn-{dataset}"),
        masks=arrays.masks(*ids),
        features_from_edges=False,
        columns_from_rows=False,
        nodes_from_edges=False,
    )
    return arrays.require(graph, counts)


def generated(dataset: str, seed: int) -> Graph:
    """A stand-in of a twentieth (arxiv) or a hundredth (products) of the nodes, with the published number of classes."""
    counts, part = _COUNTS[dataset], {"arxiv": 20, "products": 100}[dataset]
    each = counts.nodes // part // counts.classes
    model = BlockModel(
        class_sizes=(each,) * counts.classes,
        num_edges=counts.edges // part,
        num_features=counts.features,
        homophily={"arxiv": 0.65, "products": 0.81}[dataset],
        words=20.0,
        words_spread=5.0,
        degree_spread=30.0,
        topic_share=0.5,
    )
    return stand_in(model, f"ogbn/{dataset}", f"ogbn-{dataset} (1/{part} of its size)", seed)
