"""What published data sets hold, as a digest of nodes, edges, features and labels.

Copies of one data set differ in their bytes (compressed or not, with or without text fields), so the digest is of the content
as fedgraph reads it. A file in which one edge, one word or one label was changed has other content, even where all counts are
the published ones. (Planetoid's files exist in one form only; ``planetoid.py`` demands their bytes.)
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from fedgraph.errors import DataError
from fedgraph.types import Graph, GraphCollection

DIGESTS = {
    "citation_full/cora_ml": "0139e374e2d63373f635266e01a33799e35dfc8ea77429a5a5c4d0e10a2688c8",
    "citation_full/citeseer": "32a862654ff9090496c07a0f7676d5af2c75b593eed265ff6db76756038944a2",
    "coauthor/cs": "44a9b52fb4a6330ea3abf82c104ded980b2c23aa9ac1e18279a93ac398c6e070",
    "coauthor/physics": "455bcf752e7132bfeff8958cbe49aee534cf543dd1b35a642aced8164d4c25cf",
    "amazon/photo": "96a8d92cb46a5d264144724daa35ba7a9a9d67e18ae8938419788e20afc2dcba",
    "amazon/computers": "6fabfeedb5d7733549d9295e61121623c3e54df4a20c3f2e287b3b4c604fd851",
    "geom_gcn/chameleon": "e1f100f48371154bfb3ff3000c113dfa2ddff4f96cc35584ac16a79c7366edf1",
    "geom_gcn/squirrel": "0291eb777e23bbdc976c6f930b373e1e8d33da1ec517fe55128065e853035b77",
    "geom_gcn/actor": "dd68c5b7fd3e6c4d722db1769f3d52b9adcf1091a0bb8e24c122555323462daa",
    "tu/mutag": "f7490405b6597401b41b2771b1bea3189681bd1bd8c5bd477232513c0527f766",
    "tu/proteins": "6824e805a7981dd7369424ff179d306867f58e99c3844a0203bd13413f966edf",
    "tu/imdb-binary": "51775f044464ec87d309376694063fc3ae7d130c8e4bff2d6c79308bd36d03dd",
}


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


def require_published(key: str, data: Graph | GraphCollection, folder: Path) -> None:
    """``DataError`` naming both digests where the content is not the published one."""
    expected = DIGESTS.get(key)
    if expected is not None and (found := digest(data)) != expected:
        raise DataError(
            f"{folder}: {key!r} has content SHA-256 {found}, expected {expected}. Counts are the published ones, something in "
            "the files is not; fetch them again from their publisher"
        )
