"""Graphs whose neighbours are unlike each other: Chameleon, Squirrel (Wikipedia pages), Actor (co-occurrence on Wikipedia).

Pei, Wei, Chang, Lei, Yang, "Geom-GCN: Geometric Graph Convolutional Networks", ICLR 2020
(github.com/graphdml-uiuc-jlu/geom-gcn). Text tables; a line of features is either 0,1,0,… or (Actor) the numbers of the words
that occur. Arcs are made undirected, self-loops dropped; PyG leaves both as they are. Chameleon and Squirrel hold many
duplicate nodes that leak from training into test (Platonov et al., ICLR 2023): rest no claim on them alone.
"""

import numpy as np
import scipy.sparse as sp

from fedgraph.data.base import published, splits
from fedgraph.data.base.adjacencies import feature_matrix
from fedgraph.data.base.files import RawFiles
from fedgraph.errors import DataError
from fedgraph.types import Graph, GraphMasks

_TABLE, _EDGES = "out1_node_feature_label.txt", "out1_graph_edges.txt"

DATASETS = published.records_of("geom_gcn")


def _read(data: published.PublishedData, raw: RawFiles) -> Graph:
    """The graph of the two text tables; node i is the one that the files call i."""
    dataset, columns = data.key.partition("/")[2], data.counts.features
    nodes, texts, labels = published.table(raw, _TABLE, sep="\t", dtype=str).to_numpy().T
    order = np.argsort(nodes.astype(np.int64))
    words = [np.array(texts[row].split(","), dtype=np.int64) for row in order]
    if dataset == "actor":
        rows = np.repeat(np.arange(order.size), [own.size for own in words])
        features = sp.coo_array((np.ones(rows.size), (rows, np.concatenate(words))), shape=(order.size, columns))
    else:
        features = sp.csr_array(np.stack(words).astype(np.float32))
    arcs = published.table(raw, _EDGES, sep="\t").to_numpy().T
    binary, split = feature_matrix(features, binarise=True), _splits(dataset, raw, order.size)
    classes = labels.astype(np.int64)[order]
    return published.graph_of(data, raw, arcs, binary, classes, masks=split, features_from_edges=False)


def _splits(dataset: str, raw: RawFiles, num_nodes: int) -> tuple[GraphMasks, ...]:
    """The ten published splits (60 % train, 20 % validate, 20 % test), all or none of which lie beside the tables."""
    names = [f"{'film' if dataset == 'actor' else dataset}_split_0.6_0.2_{i}.npz" for i in range(10)]
    there = [name for name in names if (raw.folder / name).is_file()]
    if lacking := sorted(set(names) - set(there)) if there else []:
        raise DataError(f"{raw.folder}: lacks {', '.join(lacking)}; allowed: all ten published splits, or none of them")
    return tuple(split for n in there for split in splits.read_masks(raw.read(n), str(raw.folder / n), num_nodes))


load = published.loader(DATASETS, _read, published.PublishedData.generated)
