"""Published data sets: one table of records (``fedgraph/data/published.toml``), and what all their readers share.

A family file of published data is its reader: ``DATASETS = published.records("amazon")`` takes its records from the table, and
``load = published.loader(DATASETS, read, PublishedData.generated)`` searches for the files, reads and checks them, or
generates the stand-in.
"""

from __future__ import annotations

import hashlib
import io
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import scipy.sparse as sp
from pydantic import TypeAdapter

from fedgraph.data.base import block_model, files
from fedgraph.data.base.adjacencies import undirected_adjacency
from fedgraph.data.base.block_model import BlockModel
from fedgraph.documents import Settings
from fedgraph.errors import DataError, FedgraphError, ScenarioError
from fedgraph.types import Graph, GraphCollection, GraphMasks, plain_graph

if TYPE_CHECKING:
    import pandas as pd

WhenPublishedUnavailable = Literal["error", "synthetic"]
_Loaded = TypeVar("_Loaded", Graph, GraphCollection)

PUBLISHED_ROOT_VARIABLE = "FEDGRAPH_DATA"


@dataclass(frozen=True)
class PublishedRequest:
    """What the caller asked for, beside the name."""

    roots: tuple[Path, ...] = ()  # folders searched in order, never written
    when_unavailable: WhenPublishedUnavailable = "error"
    seed: int = 0
    path: Path | None = None  # the user's own file or folder
    # of data sets that take some, such as those of ``synthetic`` and ``own``
    parameters: Mapping[str, object] = field(default_factory=dict)
    download: bool = True  # whether PyG may be asked to fetch missing files into the user's cache
    stand_in: bool = False  # go straight to the stand-in of a published data set, reading no file


@dataclass(frozen=True)
class PublishedCounts:
    """Published counts of a node-level data set."""

    nodes: int
    edges: int  # undirected and distinct, without self-loops
    features: int
    classes: int  # how many occur among the known labels

    def check(self, graph: Graph, lost: float = 0.0) -> Graph:
        """``graph`` itself; ``DataError`` when it is not the published one. lost: share of the edges that may be
        missing.
        """
        classes = np.unique(graph.labels[graph.labels >= 0]).size
        found = PublishedCounts(graph.num_nodes, graph.num_edges, graph.num_features, classes)
        if replace(found, edges=self.edges) != self or not self.edges * (1 - lost) <= found.edges <= self.edges:
            raise DataError(f"{graph.name!r} is not the published data set: found {found}, expected {self}")
        return graph


@dataclass(frozen=True)
class PublishedData:
    """The facts of one published data set."""

    key: str  # ``family/dataset``
    title: str
    folder: str  # where its files lie below a data root, in PyG's layout (``planetoid/CiteSeer/raw``)
    files: tuple[str, ...]
    columns_from_rows: bool  # as in ``Graph``
    # file name → digest, demanded before a byte is interpreted; empty where copies with equal content differ in bytes
    sha256: Mapping[str, str] = field(default_factory=dict)
    # ``_graphs_digest`` of what is read; "" where none is known. Copies of a data set differ in bytes, so it is of the content:
    # where one edge, word or label was changed it is another one, even where all counts are the published ones.
    content: str = ""
    # as published; zeros where the reader has counts of its own
    counts: PublishedCounts = field(default_factory=lambda: PublishedCounts(0, 0, 0, 0))
    lost: float = 0.0  # share of the published edges that may be loops or repeated
    # ``class``, the PyG class that downloads the files, and the attributes that its ``download`` reads; empty: no download
    pyg: Mapping[str, object] = field(default_factory=dict)
    # arguments of the block model that replaces the data; edges and features are those of ``counts`` unless it says other ones,
    # and one number of ``class_sizes`` holds for every class
    stand_in: Mapping[str, object] = field(default_factory=dict)
    parameters: type[Settings] | None = None  # the model of what a scenario may say under ``parameters``; None: nothing

    def generated(self, seed: int) -> Graph:
        """The stand-in that the block model draws. seed: 0 or more."""
        sizes = self.stand_in["class_sizes"]
        given = {"num_edges": self.counts.edges, "num_features": self.counts.features, **self.stand_in}
        given["class_sizes"] = sizes if isinstance(sizes, list) else [sizes] * self.counts.classes
        return block_model.stand_in(TypeAdapter(BlockModel).validate_python(given), self.key, self.title, seed)


@cache
def _table() -> Mapping[str, Mapping[str, Mapping[str, object]]]:
    return tomllib.loads(resources.files("fedgraph.data").joinpath("published.toml").read_text(encoding="utf-8"))


def records_of(family: str) -> dict[str, PublishedData]:
    """The records of one family, by data set."""
    entries = {name: {**entry, "key": f"{family}/{name}"} for name, entry in _table()[family].items()}
    return TypeAdapter(dict[str, PublishedData]).validate_python(entries)


def campuses() -> tuple[str, ...]:
    """The names of the campuses of Facebook100."""
    return tuple(str(_table()["facebook100"]["campuses"]).split())


def loader(
    datasets: Mapping[str, PublishedData],
    read: Callable[[PublishedData, files.RawFiles], _Loaded],
    stand_in: Callable[[PublishedData, int], _Loaded],
) -> Callable[[str, PublishedRequest], _Loaded]:
    """The ``load`` of a family: it reads published files from where they are found first, or generates the stand-in.

    Args:
        stand_in: (record, seed) → generated data; ``PublishedData.generated``: by the block model.

    ``load`` raises ``ScenarioError`` for parameters or a path, and ``DataError`` for a root that is no folder, and for files
    that are missing, damaged or not the published ones.
    """

    def load(dataset: str, request: PublishedRequest) -> _Loaded:
        """See :func:`fedgraph.data.load`."""
        data = datasets[dataset]
        if request.parameters or request.path is not None:
            raise ScenarioError(f"data set {data.key!r} takes neither parameters nor a path; use own/npz or own/csv for a file")
        if request.stand_in:
            return stand_in(data, request.seed)
        if strange := next((folder for folder in request.roots if not folder.is_dir()), None):
            raise DataError(f"the data root {str(strange)!r} is not a folder; name an existing one, or none")
        cache = files.cache_folder()
        roots = (*request.roots, cache)
        found = files.find(data.folder, data.files, data.sha256, roots)
        trouble = "a download was not allowed" if data.pyg else "it is not downloaded"
        if found is None and request.download and data.pyg:
            trouble = files.download(data.folder, data.files, cache, data.pyg)
            found = files.find(data.folder, data.files, data.sha256, (cache,))
        if found is not None:
            try:
                loaded = read(data, found)
            except FedgraphError:
                raise
            except Exception as error:  # whatever a damaged file does to a parser
                said = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
                raise DataError(
                    f"{found.folder}: {data.key!r} is damaged ({said}); fetch it again from its publisher"
                ) from error
            _require_published(data.key, data.content, loaded, found.folder)
            return loaded
        if request.when_unavailable == "synthetic":
            return stand_in(data, request.seed)
        searched = f"searched: {', '.join(map(str, roots))}"
        wanted = ", ".join(f"{data.folder}/{name}" for name in data.files)
        if partly := files.incomplete(data.folder, data.files, roots):
            searched = f"{partly}; {searched}"
        raise DataError(
            f"data set {data.key!r} is not available ({searched}; {trouble}). Put these files below one of these "
            f"folders, or below a folder that --data-root or {PUBLISHED_ROOT_VARIABLE} names: {wanted}. "
            f"Or write 'when_unavailable: synthetic' to run on a generated stand-in."
        )

    return load


def table(raw: files.RawFiles, name: str, **how: Any) -> pd.DataFrame:
    """A text table, as ``pandas.read_csv`` reads it. What it holds is checked by the digest of the content, and not here."""
    import pandas as pd  # not before a table is read

    return pd.read_csv(io.BytesIO(raw.read(name)), **how)


def graph_of(
    data: PublishedData,
    raw: files.RawFiles,
    arcs: Iterable[np.ndarray],
    features: sp.csr_array,
    labels: np.ndarray,
    *,
    masks: tuple[GraphMasks, ...] = (),
    features_from_edges: bool,
) -> Graph:
    """What a reader read, as the published graph: arcs made undirected, without loops, each edge once.

    Args:
        arcs: sources and targets, integers [2, m].
        labels: integers [n], −1 where unknown.

    Raises:
        DataError: where the counts are not the published ones.
    """
    sources, targets = arcs
    adjacency, numbers = undirected_adjacency(sources, targets, features.shape[0]).adjacency, labels.astype(np.int64)
    found = plain_graph(data.key, adjacency, features, numbers, data.counts.classes, raw.provenance(data.title))
    found = replace(found, columns_from_rows=data.columns_from_rows, features_from_edges=features_from_edges, masks=masks)
    return data.counts.check(found, data.lost)


def _graphs_digest(data: Graph | GraphCollection) -> str:
    parts: list[tuple[np.ndarray, str]] = []
    for graph in data.graphs if isinstance(data, GraphCollection) else (data,):
        edges, rows = graph.adjacency, graph.features
        parts += [(array, "<i8") for array in (edges.indptr, edges.indices, rows.indptr, rows.indices)]
        parts += [(rows.data, "<f4"), (graph.labels, "<i8")]
    found = hashlib.sha256()
    for array, kind in (*parts, (data.labels, "<i8")):
        found.update(np.ascontiguousarray(array, dtype=kind).tobytes())
    return found.hexdigest()


def _require_published(key: str, expected: str, data: Graph | GraphCollection, folder: Path) -> None:
    """``DataError`` naming both digests where the content is not the published one. expected: its digest; "": not known."""
    if expected and (found := _graphs_digest(data)) != expected:
        raise DataError(
            f"{folder}: {key!r} has content SHA-256 {found}, expected {expected}. Counts are the published ones, something in "
            "the files is not; fetch them again from their publisher"
        )
