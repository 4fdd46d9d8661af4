"""Graphs whose neighbours are unlike each other: Chameleon, Squirrel (Wikipedia pages), Actor (co-occurrence on Wikipedia).

Pei, Wei, Chang, Lei, Yang, "Geom-GCN: Geometric Graph Convolutional Networks", ICLR 2020
(github.com/graphdml-uiuc-jlu/geom-gcn). Text tables; a line of features is either 0,1,0,… or (Actor) the numbers of the words
that occur. Arcs are made undirected, self-loops dropped; PyG leaves both as they are. Chameleon and Squirrel hold many
duplicate nodes that leak from training into test (Platonov et al., ICLR 2023): rest no claim on them alone.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fedgraph.data import base
from fedgraph.data.base import masks
from fedgraph.data.base.block_model import BlockModel, stand_in
from fedgraph.data.base.files import RawFiles
from fedgraph.data.base.structure import Counts, feature_matrix, undirected
from fedgraph.errors import DataError
from fedgraph.types import Graph, Masks

_COUNTS = {
    "chameleon": Counts(2277, 31371, 2325, 5),
    "squirrel": Counts(5201, 198353, 2089, 5),
    "actor": Counts(7600, 26659, 932, 5),
}

# Measured on the published files; closure and topic_share are tuned as in planetoid.py (logistic regression: 0.49, 0.34, 0.37).
_STAND_INS = {
    "chameleon": BlockModel(
        class_sizes=(456, 460, 453, 521, 387),
        num_edges=31371,
        num_features=2325,
        homophily=0.2299,
        words=12.81,
        words_spread=14.71,
        degree_spread=46.38,
        closure=0.6,
        topic_share=0.32,
        zipf=0.6,
    ),
    "squirrel": BlockModel(
        class_sizes=(1042, 1040, 1039, 1040, 1040),
        num_edges=198353,
        num_features=2089,
        homophily=0.2221,
        words=17.97,
        words_spread=18.87,
        degree_spread=161.44,
        closure=0.6,
        topic_share=0.15,
        zipf=0.6,
    ),
    "actor": BlockModel(
        class_sizes=(853, 1337, 1630, 1815, 1965),
        num_edges=26659,
        num_features=932,
        homophily=0.2167,
        words=5.39,
        words_spread=3.27,
        degree_spread=17.77,
        topic_share=0.22,
        zipf=1.4,
    ),
}

_TABLE, _EDGES = "out1_node_feature_label.txt", "out1_graph_edges.txt"

DATASETS = {
    name: base.Published(
        columns_from_rows=True,
        key=f"geom_gcn/{name}",
        title=f"{name.capitalize()} (geom-gcn)",
        folder="geom_gcn/actor/raw" if name == "actor" else f"geom_gcn/{name}/geom_gcn/raw",
        files=(_TABLE, _EDGES),
    )
    for name in _COUNTS
}


def load(dataset: str, request: base.Request) -> Graph:
    """``chameleon``, ``squirrel`` or ``actor``; see :func:`fedgraph.data.load`."""
    data = DATASETS[dataset]
    return base.load_published(
        data,
        request,
        read=lambda raw: read(dataset, raw),
        stand_in=lambda seed: stand_in(_STAND_INS[dataset], data.key, data.title, seed),
        pyg=("Actor", {}) if dataset == "actor" else ("WikipediaNetwork", {"name": dataset, "geom_gcn_preprocess": True}),
    )


def read(dataset: str, raw: RawFiles) -> Graph:
    """The graph of the two text tables; node i is the one that the files call i."""
    data, counts = DATASETS[dataset], _COUNTS[dataset]
    nodes, words, labels = _table(raw, counts, listed=dataset == "actor")
    if not np.array_equal(np.sort(nodes), np.arange(nodes.size)):
        raise DataError(f"{raw.folder / _TABLE}: node ids are not 0 … {nodes.size - 1}, each once")
    if dataset == "actor":
        rows = np.repeat(nodes, [w.size for w in words])
        features = sp.coo_array((np.ones(rows.size), (rows, np.concatenate(words))), shape=(nodes.size, counts.features))
    else:
        features = sp.csr_array(np.stack(words).astype(np.float32)[np.argsort(nodes)])
    arcs = _arcs(raw, nodes.size)
    graph = Graph(
        name=data.key,
        adjacency=undirected(arcs[:, 0], arcs[:, 1], nodes.size).adjacency,
        features=feature_matrix(features, binarise=True),
        labels=labels[np.argsort(nodes)],
        num_classes=counts.classes,
        masks=_splits(dataset, raw, nodes.size),
        provenance=raw.provenance(data.title),
        features_from_edges=False,
        columns_from_rows=False,
        nodes_from_edges=False,
    )
    return counts.check(graph)


def _splits(dataset: str, raw: RawFiles, num_nodes: int) -> tuple[Masks, ...]:
    """The ten published splits (60 % train, 20 % validate, 20 % test), all or none of which lie beside the tables."""
    names = [f"{'film' if dataset == 'actor' else dataset}_split_0.6_0.2_{i}.npz" for i in range(10)]
    there = [name for name in names if (raw.folder / name).is_file()]
    if lacking := sorted(set(names) - set(there)) if there else []:
        raise DataError(f"{raw.folder}: lacks {', '.join(lacking)}; allowed: all ten published splits, or none of them")
    return tuple(split for n in there for split in masks.read(raw.read(n), str(raw.folder / n), num_nodes))


def _table(raw: RawFiles, counts: Counts, listed: bool) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Node ids [n], numbers of the feature column per node, labels [n]; ``DataError`` naming the line otherwise.

    listed: the numbers are those of the words that occur; otherwise 0 or 1 for every word.
    """
    nodes, words, labels = [], [], []
    for number, line in _lines(raw, _TABLE):
        try:
            node, features, label = line.split("\t")
            found = np.array(features.split(","), dtype=np.int64)
            row = int(node), int(label)
        except (ValueError, OverflowError) as error:
            raise DataError(f"{raw.folder / _TABLE}:{number}: {error}; allowed: id, features, label, split by tabs") from error
        most = counts.features - 1 if listed else 1
        if found.min() < 0 or found.max() > most or (not listed and found.size != counts.features):
            what = f"{found.size} features from {found.min()} to {found.max()}"
            allowed = f"words 0 … {most}" if listed else f"{counts.features} features, 0 or 1"
            raise DataError(f"{raw.folder / _TABLE}:{number}: {what}; allowed: {allowed}")
        if not 0 <= row[1] < counts.classes:
            raise DataError(f"{raw.folder / _TABLE}:{number}: label {row[1]}; allowed: 0 … {counts.classes - 1}")
        nodes.append(row[0])
        words.append(found)
        labels.append(row[1])
    if len(nodes) != counts.nodes:
        raise DataError(f"{raw.folder / _TABLE}: {len(nodes)} nodes; allowed: {counts.nodes}, one a line below the header")
    return np.array(nodes, dtype=np.int64), words, np.array(labels, dtype=np.int64)


def _arcs(raw: RawFiles, num_nodes: int) -> np.ndarray:
    """int64 [m, 2], both ends in 0 … num_nodes − 1; ``DataError`` naming the line otherwise."""
    ends = []
    for number, line in _lines(raw, _EDGES):
        try:
            source, target = map(int, line.split())
        except ValueError:
            raise DataError(f"{raw.folder / _EDGES}:{number}: {line[:40]!r}; allowed: two node ids") from None
        if not (0 <= source < num_nodes and 0 <= target < num_nodes):
            allowed = f"node ids 0 … {num_nodes - 1}"
            raise DataError(f"{raw.folder / _EDGES}:{number}: {source} and {target}; allowed: {allowed}")
        ends.append((source, target))
    return np.array(ends, dtype=np.int64).reshape(-1, 2)


def _lines(raw: RawFiles, file: str) -> list[tuple[int, str]]:
    """(number, text) of the lines below the header; empty lines at the end are left out."""
    try:
        lines = raw.read(file).decode("ascii").rstrip().split("\n")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{raw.folder / file}: not ASCII text ({error.reason} at byte {error.start}); allowed: a table"
        ) from error
    return list(enumerate(lines, start=1))[1:]
