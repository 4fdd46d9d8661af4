"""One graph as somebody gave it, in files or in memory, becomes a checked graph whose provenance says what was done to it."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fedgraph.data.base.adjacencies import describe_adjacency_cleaning, feature_matrix, undirected_adjacency
from fedgraph.data.own.columns import EdgeColumnRules, OwnColumns, notice_edge_columns, own_column_scales, own_kinds_from_rows
from fedgraph.data.own.labels import OwnLabels, describe_label_classes, read_own_labels
from fedgraph.errors import DataError
from fedgraph.types import Graph, GraphMasks, GraphNames, GraphProvenance, plain_graph

_logger = logging.getLogger("fedgraph")


@dataclass(frozen=True, eq=False)
class OneGraph:
    """What was given.

    Attributes:
        rows: features [n, d], dense or sparse.
        where: names the data in an error.
        unused: what the data hold and no method reads.
        from_rows: whether the columns there are, or their kinds, were computed from the rows.
        names: of the d columns; none where they have no names.
        ids: of the n nodes, or none.
        bounded: names of the columns that have bounds.
        checksums: of the files; None for what is in memory, of which a digest is made.
    """

    name: str
    title: str
    one: np.ndarray
    two: np.ndarray
    rows: Any
    words: Iterable[object]
    where: str = "the labels"
    unused: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    from_rows: bool = False
    names: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    bounded: tuple[str, ...] = ()
    checksums: Mapping[str, str] | None = None
    masks: tuple[GraphMasks, ...] = ()

    def with_table(self, read: OwnColumns) -> OneGraph:
        """Its rows are those of a table; what was remarked of columns stands before its own remarks."""
        told = replace(self, rows=read.matrix, names=read.names, from_rows=read.from_rows)
        return replace(told, bounded=read.bounded, remarks=(*read.remarks, *self.remarks))


def _as_narrow(rows: sp.csr_array) -> sp.csr_array:
    """CSR float32 without stored zeros; float64 where some column would lose values that differ, such as seconds since 1970."""
    narrow = feature_matrix(rows)
    wide = sp.csc_array(rows, dtype=np.float64)
    wide.sum_duplicates()
    wide.eliminate_zeros()
    for place in range(wide.shape[1]):
        own = np.unique(wide.data[wide.indptr[place] : wide.indptr[place + 1]])
        if own.size > 1 and np.unique(own.astype(np.float32)).size < own.size and np.abs(own).max() > 2**24:
            found = sp.csr_array(wide)
            found.sort_indices()
            return found
    return narrow


def check_one_graph(given: OneGraph, rules: EdgeColumnRules, labelled: bool = True) -> Graph:
    """The graph. labelled: whether some label must be known; if not, none is read.

    Raises ``DataError`` in one line that says what was found and what is allowed.
    """
    dense = given.rows if sp.issparse(given.rows) else np.atleast_2d(np.asarray(given.rows, np.float64))
    matrix, words = _as_narrow(sp.csr_array(dense)), list(given.words)
    n = len(words)
    if matrix.shape[0] != n or n == 0:
        raise DataError(f"{matrix.shape[0]} rows of features for {n} labels; allowed: one of each per node, at least one node")
    if given.checksums is not None and matrix.shape[1] == 0:
        raise DataError(
            f"{given.where}: nodes have no feature; allowed: one column or more (a constant 1 says nothing, and is one)"
        )
    one, two = given.one, given.two
    if one.size and (min(one.min(), two.min()) < 0 or max(one.max(), two.max()) >= n):
        raise DataError(f"an edge names node {max(one.max(), two.max())}; allowed: 0 … {n - 1}")
    labels = read_own_labels(words, given.where) if labelled else OwnLabels(np.full(n, -1, dtype=np.int64), (), ())
    cleaned = undirected_adjacency(one, two, n)
    names = given.names or tuple(f"column {k}" for k in range(matrix.shape[1]))
    from_edges, seen = notice_edge_columns(rules, matrix, cleaned.adjacency, names)
    not_used = [f"not used: {', '.join(given.unused)}"] if given.unused else []
    counted = f"{given.title}: {n} nodes, {cleaned.adjacency.nnz // 2} edges, {describe_label_classes(len(labels.classes))}"
    detail = "; ".join([counted, *labels.remarks, *not_used, *describe_adjacency_cleaning([cleaned]), *given.remarks, *seen])
    checksums = given.checksums
    if checksums is None:
        for sentence in (*(f"not used: {what}" for what in given.unused), *labels.remarks, *given.remarks, *seen):
            _logger.warning("%s: %s", given.name, sentence)
        digest, edges = hashlib.sha256(), cleaned.adjacency
        for part in (edges.indptr, edges.indices, matrix.indptr, matrix.indices, matrix.data, labels.numbers):
            digest.update(np.ascontiguousarray(part).tobytes())
        checksums = {"(in memory)": digest.hexdigest()}
    scales = own_column_scales(matrix, names, given.bounded)
    provenance = GraphProvenance("own", detail, dict(checksums))
    graph = plain_graph(given.name, cleaned.adjacency, matrix, labels.numbers, len(labels.classes), provenance)
    from_rows = given.from_rows or own_kinds_from_rows(names, given.bounded)
    graph = replace(graph, masks=given.masks, columns_from_rows=from_rows, features_from_edges=from_edges)
    return replace(graph, names=GraphNames(given.ids, given.names, labels.classes), columns=scales)
