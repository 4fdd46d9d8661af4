"""What published data sets hold, as a digest of nodes, edges, features and labels.

Copies of one data set differ in their bytes (compressed or not, with or without text fields), so the digest is of the content
as fedgraph reads it. A file in which one edge, one word or one label was changed has other content, even where all counts are
the published ones. (Planetoid's files exist in one form only; ``planetoid.py`` demands their bytes.)
"""

import hashlib
from pathlib import Path

import numpy as np

from fedgraph.errors import DataError
from fedgraph.types import Graph, GraphCollection


def digest(data: Graph | GraphCollection) -> str:
    """SHA-256 over the arrays of every graph, in order, and the labels."""
    found = hashlib.sha256()
    graphs = data.graphs if isinstance(data, GraphCollection) else (data,)
    for graph in graphs:
        for array in (graph.adjacency.indptr, graph.adjacency.indices, graph.features.indptr, graph.features.indices):
            found.update(np.ascontiguousarray(array, dtype="<i8").tobytes())
        found.update(np.ascontiguousarray(graph.features.data, dtype="<f4").tobytes())
        found.update(np.ascontiguousarray(graph.labels, dtype="<i8").tobytes())
    found.update(np.ascontiguousarray(data.labels, dtype="<i8").tobytes())
    return found.hexdigest()


def require_published(key: str, expected: str, data: Graph | GraphCollection, folder: Path) -> None:
    """``DataError`` naming both digests where the content is not the published one. expected: its digest; "": not known."""
    if expected and (found := digest(data)) != expected:
        raise DataError(
            f"{folder}: {key!r} has content SHA-256 {found}, expected {expected}. Counts are the published ones, something in "
            "the files is not; fetch them again from their publisher"
        )
