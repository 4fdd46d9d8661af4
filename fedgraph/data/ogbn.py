"""Open Graph Benchmark, node property prediction: papers of arXiv (Computer Science), and products bought together at Amazon.

Hu et al., "Open Graph Benchmark: Datasets for Machine Learning on Graphs", NeurIPS 2020 (arXiv 2005.00687). The raw files of
the downloads ``arxiv.zip`` and ``products.zip``, as they lie in them: ``raw/edge.csv.gz``, ``raw/node-feat.csv.gz``,
``raw/node-label.csv.gz`` and ``split/<by>/{train,valid,test}.csv.gz``. Citations are read as undirected edges. The split is
the published one (``split: public``): arXiv by year, products by sales rank. fedgraph does not download them: their host asks
for a confirmation; put them below a data root.
"""

import numpy as np

from fedgraph.data.base import number_files, published, splits
from fedgraph.data.base.adjacencies import feature_matrix
from fedgraph.data.base.files import RawFiles
from fedgraph.errors import DataError
from fedgraph.types import Graph

DATASETS = published.published_records("ogbn")


def read(data: published.PublishedData, raw: RawFiles) -> Graph:
    """The graph in a folder with ``raw`` and ``split``. Raises ``DataError`` naming file, line, found and allowed."""
    edges, rows, labels, *split = data.files
    features = number_files.read_number_file(raw, rows)
    n = features.shape[0]
    given = number_files.read_number_file(raw, labels, 1)
    if given.shape[0] != n:
        raise DataError(f"{raw.folder / labels}: {given.shape[0]} labels for {n} nodes; allowed: one a node")
    known = number_files.check_whole_number_file(given[:, 0], data.counts.classes, raw, labels)
    arcs = number_files.read_whole_numbers(raw, edges, 2, n)
    masks = splits.split_of_ids(*(number_files.read_whole_numbers(raw, name, 1, n)[:, 0] for name in split))
    nodes = feature_matrix(features.astype(np.float32))
    return published.published_graph(data, raw, arcs.T, nodes, known, masks=masks, features_from_edges=False)


load = published.published_loader(DATASETS, read, published.PublishedData.generated)
