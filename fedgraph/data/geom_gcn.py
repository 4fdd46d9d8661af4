"""Graphs whose neighbours are unlike each other: Chameleon, Squirrel (Wikipedia pages), Actor (co-occurrence on Wikipedia).

Pei, Wei, Chang, Lei, Yang, "Geom-GCN: Geometric Graph Convolutional Networks", ICLR 2020
(github.com/graphdml-uiuc-jlu/geom-gcn). Text tables; a line of features is either 0,1,0,… or (Actor) the numbers of the words
that occur. Arcs are made undirected, self-loops dropped; PyG leaves both as they are. Chameleon and Squirrel hold many
duplicate nodes that leak from training into test (Platonov et al., ICLR 2023): rest no claim on them alone.
"""

import numpy as np
import scipy.sparse as sp

from fedgraph.data.base import csv_tables, number_files, published, splits
from fedgraph.data.base.adjacencies import feature_matrix
from fedgraph.data.base.files import DataFileFaults, RawFiles
from fedgraph.data.base.published import PublishedCounts
from fedgraph.errors import DataError
from fedgraph.types import Graph, GraphMasks

_TABLE, _EDGES = "out1_node_feature_label.txt", "out1_graph_edges.txt"

DATASETS = published.records_of("geom_gcn")


def read(data: published.PublishedData, raw: RawFiles) -> Graph:
    """The graph of the two text tables; node i is the one that the files call i."""
    dataset, counts = data.key.partition("/")[2], data.counts
    nodes, words, labels = _table(raw, counts, listed=dataset == "actor")
    if not np.array_equal(np.sort(nodes), np.arange(nodes.size)):
        raise DataError(f"{raw.folder / _TABLE}: node ids are not 0 … {nodes.size - 1}, each once")
    if dataset == "actor":
        rows = np.repeat(nodes, [w.size for w in words])
        features = sp.coo_array((np.ones(rows.size), (rows, np.concatenate(words))), shape=(nodes.size, counts.features))
    else:
        features = sp.csr_array(np.stack(words).astype(np.float32)[np.argsort(nodes)])
    arcs = number_files.read_whole_numbers(raw, _EDGES, 2, nodes.size, skip=1, blanks=True)
    split = _splits(dataset, raw, nodes.size)
    binary, labels = feature_matrix(features, binarise=True), labels[np.argsort(nodes)]
    return published.graph_of(data, raw, arcs.T, binary, labels, masks=split, features_from_edges=False)


def _splits(dataset: str, raw: RawFiles, num_nodes: int) -> tuple[GraphMasks, ...]:
    """The ten published splits (60 % train, 20 % validate, 20 % test), all or none of which lie beside the tables."""
    names = [f"{'film' if dataset == 'actor' else dataset}_split_0.6_0.2_{i}.npz" for i in range(10)]
    there = [name for name in names if (raw.folder / name).is_file()]
    if lacking := sorted(set(names) - set(there)) if there else []:
        raise DataError(f"{raw.folder}: lacks {', '.join(lacking)}; allowed: all ten published splits, or none of them")
    return tuple(split for n in there for split in splits.read_masks(raw.read(n), str(raw.folder / n), num_nodes))


def _table(raw: RawFiles, counts: PublishedCounts, listed: bool) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Node ids [n], numbers of the feature column per node, labels [n]; ``DataError`` naming the lines otherwise.

    listed: the numbers are those of the words that occur; otherwise 0 or 1 for every word.
    """
    file, faults = str(raw.folder / _TABLE), DataFileFaults()
    nodes, words, labels = [], [], []
    most = counts.features - 1 if listed else 1
    for number, line in enumerate(csv_tables.decode_csv_text(raw.read(_TABLE), file).rstrip().split("\n")[1:], 2):
        try:
            node, features, label = line.split("\t")
            found = np.array(features.split(","), dtype=np.int64)
            nodes.append(int(node))
            labels.append(int(label))
        except (ValueError, OverflowError) as error:
            faults.note(f"{file}:{number}", f"{error}; allowed: id, features, label, split by tabs")
            continue
        words.append(found)
        if found.min() < 0 or found.max() > most or (not listed and found.size != counts.features):
            allowed = f"words 0 … {most}" if listed else f"{counts.features} features, 0 or 1"
            faults.note(f"{file}:{number}", f"{found.size} features from {found.min()} to {found.max()}; allowed: {allowed}")
        if not 0 <= labels[-1] < counts.classes:
            faults.note(f"{file}:{number}", f"label {labels[-1]}; allowed: 0 … {counts.classes - 1}")
    faults.refuse()
    if len(nodes) != counts.nodes:
        raise DataError(f"{file}: {len(nodes)} nodes; allowed: {counts.nodes}, one a line below the header")
    return np.array(nodes, dtype=np.int64), words, np.array(labels, dtype=np.int64)


load = published.loader(DATASETS, read, published.PublishedData.generated)
