"""Twitch: mutual friendships of streamers, one graph per language.

Rozemberczki, Allen and Sarkar, "Multi-scale Attributed Node Embedding" (MUSAE), J. Complex Networks 9, 2021. Each language has
three text files: ``musae_<LANG>_edges.csv`` (header, then two node numbers a line), ``musae_<LANG>_features.json`` (node → the
numbers of its features; they are games and habits, 3,170 in all, the same in every language) and ``musae_<LANG>_target.csv``
(``new_id`` is the node; the label is ``mature``: whether the streamer uses explicit language). Neighbours are hardly more
alike than strangers.

``twitch/<lang>`` is one language; ``twitch/federation`` is all seven as one graph whose nodes know their language, with no edge
between languages (``partition: natural``). The vocabulary of 3,170 features is the publishers' own and counts as public.
"""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from fedgraph.data import base
from fedgraph.data.base import federated, published
from fedgraph.data.base.files import RawFiles
from fedgraph.data.base.structure import feature_matrix
from fedgraph.errors import DataError, ScenarioError
from fedgraph.types import Graph, Provenance

NUM_FEATURES = 3170
LANGUAGES = published.records("twitch")
DATASETS = LANGUAGES | {"federation": base.Published("twitch/federation", "Twitch, seven languages", "twitch", (), True)}


def load(dataset: str, request: base.Request) -> Graph:
    """``de``, ``engb``, ``es``, ``fr``, ``ptbr``, ``ru``, ``tw`` or ``federation``; see :func:`fedgraph.data.load`."""
    return _federation(request) if dataset == "federation" else _language(dataset, request)


def _federation(request: base.Request) -> Graph:
    if request.parameters or request.path is not None:
        raise ScenarioError("data set 'twitch/federation' takes neither parameters nor a path")
    graphs, owners = [_language(name, request) for name in LANGUAGES], [name.upper() for name in LANGUAGES]
    graph = federated.united("twitch/federation", graphs, owners)
    sources = {g.provenance.source for g in graphs}
    checksums = {k: v for g in graphs for k, v in g.provenance.checksums.items()}
    if sources != {"real"}:
        detail = f"SYNTHETIC stand-in for Twitch: {', '.join(owners)} generated (seed {request.seed})"
        return replace(graph, provenance=Provenance("synthetic", detail))
    return replace(graph, provenance=Provenance("real", "Twitch, seven languages, published files", checksums))


def read(data: published.Published, raw: RawFiles) -> Graph:
    """The graph of one language. Raises ``DataError`` naming file, line or node, what was found and what is allowed."""
    edges, words, target = data.files
    features = _features(raw, words)
    labels = _labels(raw, target, features.shape[0])
    arcs = _edges(raw, edges, features.shape[0])
    return published.graph(data, raw, (arcs[:, 0], arcs[:, 1]), features, labels, features_from_edges=False)


_language = published.loader(LANGUAGES, read, published.Published.generated)


def _features(raw: RawFiles, name: str) -> sp.csr_array:
    file = raw.folder / name
    try:
        table = json.loads(raw.read(name).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file}: not JSON in UTF-8: {error}") from error
    if not isinstance(table, dict) or not table:
        raise DataError(f"{file}: found {type(table).__name__}; expected an object: node → list of feature numbers")
    rows, columns = [], []
    for position in range(len(table)):
        found = table.get(str(position))
        if not isinstance(found, list) or not all(type(f) is int and 0 <= f < NUM_FEATURES for f in found):
            raise DataError(f"{file}: node {position}: expected a list of whole numbers in 0 … {NUM_FEATURES - 1}")
        rows += [position] * len(found)
        columns += found
    shape = (len(table), NUM_FEATURES)
    return feature_matrix(sp.coo_array((np.ones(len(rows)), (rows, columns)), shape=shape), binarise=True)


def _labels(raw: RawFiles, name: str, num_nodes: int) -> np.ndarray:
    """int64 [n]: 1 where mature. A node may stand twice with the same label (the published FR file has two such)."""
    file = raw.folder / name
    labels = np.full(num_nodes, -1, dtype=np.int64)
    reader = csv.reader(io.StringIO(_text(raw, name)))
    header = next(reader, [])
    if "mature" not in header or "new_id" not in header:
        raise DataError(f"{file}:1: found columns {header}; expected 'mature' and 'new_id' among them")
    mature, node = header.index("mature"), header.index("new_id")
    for line, row in enumerate(reader, start=2):
        try:
            which, said = int(row[node]), row[mature]
        except (ValueError, IndexError):
            raise DataError(f"{file}:{line}: found {row}; expected {len(header)} columns, new_id a whole number") from None
        if not 0 <= which < num_nodes or said not in ("True", "False"):
            raise DataError(
                f"{file}:{line}: node {which} with mature {said!r}; allowed: 0 … {num_nodes - 1} with True or False"
            )
        label = int(said == "True")
        if labels[which] not in (-1, label):
            raise DataError(f"{file}:{line}: node {which} stands twice with different labels")
        labels[which] = label
    return labels


def _edges(raw: RawFiles, name: str, num_nodes: int) -> np.ndarray:
    """int64 [m, 2]."""
    file = raw.folder / name
    lines = _text(raw, name).splitlines()
    found = np.zeros((max(len(lines) - 1, 0), 2), dtype=np.int64)
    for number, line in enumerate(lines[1:]):
        one, _, two = line.partition(",")
        if not (one.isascii() and one.isdigit() and two.isascii() and two.isdigit()):
            raise DataError(f"{file}:{number + 2}: found {line[:60]!r}; expected two whole numbers with a comma between them")
        found[number] = int(one[:12]), int(two[:12])
    bad = np.flatnonzero((found >= num_nodes).any(axis=1))
    if bad.size:
        raise DataError(f"{file}:{bad[0] + 2}: edge {found[bad[0]].tolist()}; allowed node numbers: 0 … {num_nodes - 1}")
    return found


def _text(raw: RawFiles, name: str) -> str:
    try:
        return raw.read(name).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{raw.folder / name}: byte {error.start} is not UTF-8") from error
