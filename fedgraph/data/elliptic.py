"""Elliptic: 203,769 Bitcoin transactions, an edge where one spends what another paid; 4,545 of them are known to be illicit.

Weber et al., "Anti-Money Laundering in Bitcoin: Experimenting with Graph Convolutional Networks for Financial Forensics",
2019 (arXiv 1908.02591). Three files: ``elliptic_txs_features.csv`` (no header: transaction, time step 1 to 49, 165 numbers),
``elliptic_txs_edgelist.csv`` (header; two transactions) and ``elliptic_txs_classes.csv`` (header; transaction, and ``1``
illicit, ``2`` licit or ``unknown``). Class 1 here is illicit, 0 licit, −1 unknown. Time steps up to 34 train and later ones
test (``split: public``), as in the paper. Seventy-two of the features sum up the neighbours' features, so
``features_from_edges`` holds.
"""

import numpy as np
import scipy.sparse as sp

from fedgraph.data.base import number_files, published, splits
from fedgraph.data.base.adjacencies import feature_matrix
from fedgraph.data.base.files import RawFiles
from fedgraph.errors import DataError
from fedgraph.types import Graph

ROWS, EDGES, CLASSES = "elliptic_txs_features.csv", "elliptic_txs_edgelist.csv", "elliptic_txs_classes.csv"
_LAST_TO_TRAIN = 34
_WORDS = {b"1": 1, b"2": 0, b"unknown": -1}

DATASETS = published.published_records("elliptic")


def read(data: published.PublishedData, raw: RawFiles) -> Graph:
    """The graph. Raises ``DataError`` naming file, line, what was found and what is allowed."""
    table = number_files.read_number_file(raw, ROWS)
    if table.shape[1] < 3:
        raise DataError(f"{raw.folder / ROWS}:1: {table.shape[1]} columns; allowed: transaction, time step, and features")
    names = number_files.check_whole_number_file(table[:, 0], 2**53, raw, ROWS)
    order = np.argsort(names, kind="stable")
    if (twice := np.flatnonzero(np.diff(names[order]) == 0)).size:
        raise DataError(f"{raw.folder / ROWS}: transaction {names[order][twice[0]]} stands twice; allowed: each once")

    def rows_of(ids: np.ndarray, name: str) -> np.ndarray:
        place = np.minimum(np.searchsorted(names[order], ids), names.size - 1)
        unknown = names[order][place] != ids
        if unknown.any():
            line = int(np.argwhere(unknown)[0][0]) + 2
            raise DataError(f"{raw.folder / name}:{line}: there is no transaction {ids[unknown][0]} in {ROWS}")
        return np.asarray(order[place])

    ends = rows_of(number_files.read_whole_numbers(raw, EDGES, 2, 2**53, skip=1), EDGES)
    labels = np.full(names.size, -1, dtype=np.int64)
    known = []
    for number, line in enumerate(number_files.unpack_number_file(raw, CLASSES).splitlines()[1:], 2):
        transaction, comma, word = line.strip().partition(b",")
        if not comma or not transaction.isdigit() or len(transaction) > 15 or word not in _WORDS:
            shown = line[:60].decode("utf-8", "replace")
            raise DataError(f"{raw.folder / CLASSES}:{number}: found {shown!r}; allowed: a transaction, then 1, 2 or unknown")
        known.append((int(transaction), _WORDS[word]))
    if known:
        pairs = np.array(known, dtype=np.int64)
        labels[rows_of(pairs[:, 0], CLASSES)] = pairs[:, 1]
    step = table[:, 1]
    features = feature_matrix(sp.csr_array(table[:, 2:].astype(np.float32)))
    train, test = (np.flatnonzero((labels >= 0) & side) for side in (step <= _LAST_TO_TRAIN, step > _LAST_TO_TRAIN))
    split = splits.split_of_ids(train, np.zeros(0, np.int64), test) if train.size and test.size else ()
    return published.published_graph(data, raw, ends.T, features, labels, masks=split, features_from_edges=True)


load = published.published_loader(DATASETS, read, published.PublishedData.generated)
