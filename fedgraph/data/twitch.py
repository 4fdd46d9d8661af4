"""Twitch: mutual friendships of streamers, one graph per language.

Rozemberczki, Allen and Sarkar, "Multi-scale Attributed Node Embedding" (MUSAE), J. Complex Networks 9, 2021. Each language has
three text files: ``musae_<LANG>_edges.csv`` (header, then two node numbers a line), ``musae_<LANG>_features.json`` (node → the
numbers of its features; they are games and habits, 3,170 in all, the same in every language) and ``musae_<LANG>_target.csv``
(``new_id`` is the node; the label is ``mature``: whether the streamer uses explicit language). Neighbours are hardly more
alike than strangers.

``twitch/<lang>`` is one language; ``twitch/federation`` is all seven as one graph whose nodes know their language, with no edge
between languages (``partition: natural``). The vocabulary of 3,170 features is the publishers' own and counts as public.
"""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from fedgraph.data import base
from fedgraph.data.base import csv_tables, number_files, owner_parts, published
from fedgraph.data.base.adjacencies import feature_matrix
from fedgraph.data.base.files import DataFileFaults, RawFiles
from fedgraph.errors import DataError, ScenarioError
from fedgraph.types import Graph, GraphProvenance

_NUM_FEATURES = 3170
_LANGUAGES = published.records_of("twitch")
DATASETS = _LANGUAGES | {"federation": base.PublishedData("twitch/federation", "Twitch, seven languages", "twitch", (), True)}


def load(dataset: str, request: base.PublishedRequest) -> Graph:
    """One language (``de``, ``engb``, …), or ``federation``; see :func:`fedgraph.data.load`."""
    if dataset != "federation":
        return _language(dataset, request)
    if request.parameters or request.path is not None:
        raise ScenarioError("data set 'twitch/federation' takes neither parameters nor a path")
    graphs = [_language(name, request) for name in _LANGUAGES]
    owners = [name.upper() for name in _LANGUAGES]
    graph = owner_parts.join_owner_graphs("twitch/federation", graphs, owners)
    checksums = {k: v for g in graphs for k, v in g.provenance.checksums.items()}
    said = GraphProvenance("real", "Twitch, seven languages, published files", checksums)
    if {g.provenance.source for g in graphs} != {"real"}:
        detail = f"SYNTHETIC stand-in for Twitch: {', '.join(owners)} generated (seed {request.seed})"
        said = GraphProvenance("synthetic", detail)
    return replace(graph, provenance=said)


def read(data: published.PublishedData, raw: RawFiles) -> Graph:
    """The graph of one language. Raises ``DataError`` naming file, line or node, what was found and what is allowed."""
    edges, words, target = data.files
    features = _features(raw, words)
    # int64 [n]: 1 where mature. A node may stand twice with the same label (the published FR file has two such).
    num_nodes = features.shape[0]
    file, faults = str(raw.folder / target), DataFileFaults()
    labels = np.full(num_nodes, -1, dtype=np.int64)
    head, lines = csv_tables.read_headed_csv(raw.read(target), file, ("mature", "new_id"))
    mature, node = head.index("mature"), head.index("new_id")
    for line, cells in lines:
        which, said = cells[node], cells[mature]
        if not (which.isdecimal() and int(which) < num_nodes and said in ("True", "False")):
            allowed = f"0 … {num_nodes - 1} with True or False"
            faults.note(f"{file}:{line}", f"node {which!r} with mature {said!r}; allowed: {allowed}")
        elif labels[int(which)] not in (-1, said == "True"):
            faults.note(f"{file}:{line}", f"node {which} stands twice with different labels; allowed: one")
        else:
            labels[int(which)] = said == "True"
    faults.refuse()
    arcs = number_files.read_whole_numbers(raw, edges, 2, num_nodes, skip=1)
    return published.graph_of(data, raw, arcs.T, features, labels, features_from_edges=False)


_language = published.loader(_LANGUAGES, read, published.PublishedData.generated)


def _features(raw: RawFiles, name: str) -> sp.csr_array:
    file, table = raw.folder / name, number_files.read_json(raw, name)
    if not table:
        raise DataError(f"{file}: holds no node; expected a mapping: node → list of feature numbers")
    rows: list[int] = []
    columns: list[int] = []
    for position in range(len(table)):
        found = table.get(str(position))
        if not isinstance(found, list) or not all(type(f) is int and 0 <= f < _NUM_FEATURES for f in found):
            raise DataError(f"{file}: node {position}: expected a list of whole numbers in 0 … {_NUM_FEATURES - 1}")
        rows += [position] * len(found)
        columns += found
    shape = (len(table), _NUM_FEATURES)
    return feature_matrix(sp.coo_array((np.ones(len(rows)), (rows, columns)), shape=shape), binarise=True)
