"""The graphs on which private graph learning is ranked, from published files: arxiv, products, Reddit, GAP's Reddit and Amazon.

Files are read as their archives unpack, below a data root or ``path``, and never downloaded:

    field/arxiv, field/products   ``ogbn_arxiv`` / ``ogbn_products``: ``raw/edge.csv.gz``, ``raw/node-feat.csv.gz``,
                                  ``raw/node-label.csv.gz`` (Open Graph Benchmark, arXiv 2005.00687)
    field/reddit                  ``Reddit``: ``raw/reddit_data.npz`` (feature, label), ``raw/reddit_graph.npz`` (GraphSAGE)
    field/gap-reddit, gap-amazon  the same Reddit and products without classes of fewer than 10,000 and 100,000 nodes
                                  (sisaman/GAP, core/datasets/loader.py)

Where files are missing, ``when_unavailable: synthetic`` generates a graph of a fiftieth of the nodes, which says so (Reddit's
with a fifth of its mean degree). Nothing is unpickled.
There is no checksum, since the files were not at hand: counts are compared with the published ones, and files of other counts
are an error unless ``path`` names them.
"""

from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from fedgraph.data import base
from fedgraph.data.base import npz
from fedgraph.data.base.adjacencies import undirected_adjacency
from fedgraph.documents import Settings
from fedgraph.errors import DataError
from fedgraph.types import Graph, GraphProvenance, plain_graph


class Params(Settings):
    """Which classes stay."""

    least: int = Field(0, ge=0, description="classes of fewer nodes are left out with their nodes; 0: as published")


_FOLDERS = {
    "arxiv": "ogbn_arxiv",
    "products": "ogbn_products",
    "reddit": "Reddit",
    "gap-reddit": "Reddit",
    "gap-amazon": "ogbn_products",
}
_LEAST = {"gap-reddit": 10_000, "gap-amazon": 100_000}
_NODES = {"arxiv": 169_343, "products": 2_449_029, "reddit": 232_965, "gap-reddit": 116_713, "gap-amazon": 1_790_731}
_SHAPES = {  # mean degree, columns, classes
    "arxiv": (14, 128, 40),
    "products": (50, 100, 47),
    "reddit": (100, 602, 41),
    "gap-reddit": (100, 602, 8),
    "gap-amazon": (45, 100, 10),
}
DATASETS: dict[str, type[Params]] = dict.fromkeys(_FOLDERS, Params)


def load(dataset: str, request: base.PublishedRequest) -> Graph:
    """One graph; see :func:`fedgraph.data.load`.

    Raises:
        DataError: the files are not there, are not of this layout, or hold another number of nodes than is published.
    """
    params = base.validate_data_parameters(Params, request.parameters, f"field/{dataset}")
    if request.stand_in:
        return _stand_in(dataset, request.seed)
    try:
        folder = _folder(dataset, request)
    except DataError:
        if request.when_unavailable == "error" or request.path is not None:
            raise
        return _stand_in(dataset, request.seed)
    read = _reddit if _FOLDERS[dataset] == "Reddit" else _ogb
    ends, features, labels = read(folder)
    n = labels.size
    if features.shape[0] != n or (ends.size and not 0 <= ends.min() <= ends.max() < n):
        raise DataError(
            f"{folder}: {n} labels, {features.shape[0]} rows of features, ends up to {int(ends.max(initial=0))}; allowed: one "
            "number of nodes"
        )
    least = params.least or _LEAST.get(dataset, 0)
    kept = np.flatnonzero(np.bincount(labels)[labels] >= least) if least else np.arange(n)
    classes, numbers = np.unique(labels[kept], return_inverse=True)
    if request.path is None and not params.least and kept.size != _NODES[dataset]:
        raise DataError(
            f"{folder}: {kept.size} nodes; field/{dataset} is published with {_NODES[dataset]}; name files of your own with "
            "path:"
        )
    adjacency = undirected_adjacency(ends[0], ends[1], n).adjacency
    if kept.size < n:
        adjacency, features = sp.csr_array(adjacency[kept][:, kept]), features[kept]
    found = GraphProvenance("own", f"files in {folder.name}, not checked: no digest of them was at hand")
    return plain_graph(
        f"field/{dataset}", adjacency, sp.csr_array(features.astype(np.float32)), numbers.astype(np.int64), classes.size, found
    )


def _stand_in(dataset: str, seed: int) -> Graph:
    """A generated graph with a fiftieth of the nodes, and the published degree, columns and classes."""
    nodes, (degree, features, classes) = _NODES[dataset] // 50, _SHAPES[dataset]
    parameters = {"nodes": nodes, "edges": nodes * degree // 2, "classes": classes, "features": features}
    graph = cast(Graph, base.load("synthetic/block_model", seed=seed, parameters=parameters))
    said = f"generated: field/{dataset} is not at hand; a fiftieth of its nodes"
    return replace(graph, name=f"field/{dataset}", provenance=GraphProvenance("synthetic", said))


def _folder(dataset: str, request: base.PublishedRequest) -> Path:
    """Where ``raw`` is."""
    places = [request.path] if request.path is not None else [root / _FOLDERS[dataset] for root in request.roots]
    for place in places:
        if (place / "raw").is_dir():
            return place
    where = ", ".join(map(str, places)) or "no data root"
    raise DataError(
        f"field/{dataset}: no folder 'raw' in {where}; unpack the published archive to {_FOLDERS[dataset]} below a data root, "
        "or name path:"
    )


def _ogb(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(ends [2, m], features [n, d], labels [n]) of Open Graph Benchmark's CSV files, which have no header."""
    import pandas as pd

    def table(name: str, kind: str) -> np.ndarray:
        path = folder / "raw" / f"{name}.csv.gz"
        try:
            return np.asarray(pd.read_csv(path, header=None, dtype=kind))
        except (ValueError, EOFError, OSError) as error:
            raise DataError(f"{path}: {error}; allowed: numbers with commas, no header, compressed by gzip") from None

    ends, labels = table("edge", "int64"), table("node-label", "int64")
    if ends.shape[1] != 2 or labels.shape[1] != 1 or labels.min() < 0:
        found = f"edge of {ends.shape[1]} columns, node-label of {labels.shape[1]}"
        raise DataError(f"{folder / 'raw'}: {found}; allowed: 2 and 1, labels from 0")
    return ends.T, table("node-feat", "float32"), labels[:, 0]


def _reddit(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same of the two files that PyG reads."""
    raw = folder / "raw"
    try:
        with np.load(raw / "reddit_data.npz", allow_pickle=False) as stored:
            features, labels = stored["feature"], stored["label"].astype(np.int64)
        joined = sp.coo_array(sp.load_npz(raw / "reddit_graph.npz"))
    except npz.NPZ_ERRORS as error:
        wanted = "reddit_data.npz with feature and label, reddit_graph.npz of scipy"
        raise DataError(f"{raw}: {error}; allowed: {wanted}") from None
    return np.stack(joined.coords).astype(np.int64), features, labels
