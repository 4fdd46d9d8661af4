"""Twitch: mutual friendships of streamers, one graph per language.

Rozemberczki, Allen and Sarkar, "Multi-scale Attributed Node Embedding" (MUSAE), J. Complex Networks 9, 2021. Each language has
three text files: ``musae_<LANG>_edges.csv`` (header, then two node numbers a line), ``musae_<LANG>_features.json`` (node → the
numbers of its features; they are games and habits, 3,170 in all, the same in every language) and ``musae_<LANG>_target.csv``
(``new_id`` is the node; the label is ``mature``: whether the streamer uses explicit language). Neighbours are hardly more
alike than strangers.

``twitch/<lang>`` is one language; ``twitch/federation`` is all seven as one graph whose nodes know their language, with no edge
between languages (``partition: natural``). The vocabulary of 3,170 features is the publishers' own and counts as public.
"""

import json
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from fedgraph.data import base
from fedgraph.data.base import owner_parts, published
from fedgraph.data.base.adjacencies import feature_matrix
from fedgraph.data.base.files import RawFiles
from fedgraph.errors import ScenarioError
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


def _read(data: published.PublishedData, raw: RawFiles) -> Graph:
    edges, words, target = data.files
    lists = json.loads(raw.read(words))
    own = [lists[str(node)] for node in range(len(lists))]
    rows, columns = np.repeat(np.arange(len(own)), list(map(len, own))), np.concatenate(own)
    features = sp.coo_array((np.ones(rows.size), (rows, columns)), shape=(len(own), _NUM_FEATURES))
    told = published.table(raw, target)
    labels = np.full(len(own), -1, dtype=np.int64)
    labels[told["new_id"]] = told["mature"]  # a node may stand there twice with one label
    arcs = published.table(raw, edges).to_numpy().T
    return published.graph_of(data, raw, arcs, feature_matrix(features, binarise=True), labels, features_from_edges=False)


_language = published.loader(_LANGUAGES, _read, published.PublishedData.generated)
