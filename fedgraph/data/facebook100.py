"""Facebook100: the friendships of one hundred American campuses in September 2005, one graph per campus.

Traud, Mucha and Porter, "Social Structure of Facebook Networks", Physica A 391, 2012 (arXiv 1102.2166). One MATLAB file per
campus: ``A`` (symmetric adjacency, no self-loops) and ``local_info`` with seven integer columns: student or faculty status,
gender, major, second major or minor, dormitory, year, high school; 0 means missing.

``facebook100/<campus>`` is one campus; ``facebook100/federation`` is all campuses that are found (or those that the parameter
``campuses`` names) as one graph in which every node knows its campus (``Graph.owner``) and no edge joins two campuses, so that
``partition: natural`` makes each campus a client.

**Preparation.** The label is the ``target`` column and never a feature. For the target ``year`` the classes are the years 2004
to 2009 and every other value counts as unknown, as in the loader by the authors of GAP and ProGAP (sisaman/pyg-datasets). Nodes
without a label are dropped with their edges (``unlabelled: dropped``), and so are nodes that are left without an edge, as
GAP does. The other columns are one-hot, and a missing value sets no column. The high school is left out, as GAP leaves it
out. A negative number or one above 100,000 is not a code of this collection and counts as
missing (two people of the 28 campuses that were looked at typed such a year).

**Codes.** Majors, minors and dormitories are numbered by each campus for itself: between campuses, the share of women per major
code has a median correlation of 0.01 over the pairs of 28 campuses. So in a federation these codes get columns of their own per
campus; status and gender share theirs. Which columns exist is read from all rows, test rows included: the vocabulary is
taken as public.
"""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from fedgraph import plugins
from fedgraph.data import base
from fedgraph.data.base import block_model, files, owner_parts, published
from fedgraph.data.base.adjacencies import undirected_adjacency
from fedgraph.data.base.block_model import BlockModel
from fedgraph.data.base.files import RawFiles
from fedgraph.documents import Settings
from fedgraph.errors import DataError, ScenarioError
from fedgraph.types import Graph

_COLUMNS = ("status", "gender", "major", "minor", "dormitory", "year", "high_school")
_CODED_BY_CAMPUS = ("major", "minor", "dormitory")
_YEARS = tuple(range(2004, 2010))
_LARGEST_CODE = 100_000
_FOLDER = "facebook100/raw"

_FACEBOOK100_CAMPUSES = published.campuses()


class _CampusParams(Settings):
    """How one campus is prepared."""

    target: Literal["year", "status", "gender", "major", "minor", "dormitory"] = Field("year", description="column to predict")
    unlabelled: Literal["dropped", "kept"] = Field("dropped", description="nodes without a label: dropped, or kept as unknown")


class _FederationParams(_CampusParams):
    """How all campuses are prepared together."""

    campuses: tuple[str, ...] = Field(
        (), description="names of campuses, e.g. [MIT8, Cornell5]; none: every file that is found"
    )


DATASETS: dict[str, type[_CampusParams]] = dict.fromkeys(map(str.casefold, _FACEBOOK100_CAMPUSES), _CampusParams)
DATASETS["federation"] = _FederationParams
_SPELT = {name.casefold(): name for name in _FACEBOOK100_CAMPUSES}


@dataclass(frozen=True, eq=False)
class _Campus:
    """One file, checked."""

    name: str
    adjacency: sp.csr_array  # CSR [n, n], symmetric, ones, empty diagonal
    info: np.ndarray  # int64 [n, 7], the columns of ``_COLUMNS``, 0 where missing


def load(dataset: str, request: base.PublishedRequest) -> Graph:
    """A campus, or the federation of all; see :func:`fedgraph.data.load`.

    Args:
        dataset: a name of ``_FACEBOOK100_CAMPUSES`` in lower case, or ``federation``.
        request: its parameters are those of ``_CampusParams`` or ``_FederationParams``.

    Raises:
        ScenarioError: a parameter is wrong, or there is a path.
        DataError: a file is missing or damaged, or no node is left.
    """
    params = base.validate_data_parameters(DATASETS[dataset], request.parameters, f"facebook100/{dataset}")
    if request.path is not None:
        where = f"{_FOLDER}/<campus>.mat"
        raise ScenarioError(f"data set 'facebook100/{dataset}' takes no path; name a data root that holds {where}")
    federation = params if isinstance(params, _FederationParams) else None
    names = (_named(federation.campuses) or _present(request) or ("<campus>",)) if federation else (_SPELT[dataset],)
    key, title = f"facebook100/{dataset}", f"{len(names)} campuses" if federation else f"campus {names[0]}"
    record = published.PublishedData(key, f"Facebook100 {title}", _FOLDER, tuple(f"{name}.mat" for name in names), True)

    def prepared(_: published.PublishedData, raw: RawFiles) -> Graph:
        parts = [_prepared(read(raw, name), params, alone=federation is None) for name in names]
        graph = owner_parts.join_owner_parts(key, parts, raw.provenance(_detail(params, title)))
        return graph if federation else replace(graph, owner=None, owner_names=())

    without = replace(request, parameters={})
    load_campuses = published.loader({dataset: record}, prepared, lambda _, seed: _stand_in(dataset, params, seed))
    return load_campuses(dataset, without)


def read(raw: RawFiles, name: str) -> _Campus:
    """The campus of ``<name>.mat``. Raises ``DataError`` naming the file, what was found and what is allowed."""
    from scipy.io import loadmat

    file = raw.folder / f"{name}.mat"
    try:
        found = loadmat(io.BytesIO(raw.read(f"{name}.mat")), variable_names=["A", "local_info"])
        given, info = found["A"], np.asarray(found["local_info"])
    except DataError:
        raise
    except Exception as error:  # what scipy and zlib raise for a damaged stream has no common base
        said = " ".join(str(error).split())
        raise DataError(f"{file}: {type(error).__name__}: {said}; allowed: a MATLAB 5 file with A and local_info") from error
    n = given.shape[0]
    if not sp.issparse(given) or given.shape != (n, n) or n == 0:
        raise DataError(f"{file}: A is {type(given).__name__} of shape {given.shape}; allowed: a square sparse matrix")
    if info.shape != (n, len(_COLUMNS)) or info.dtype.kind not in "iuf" or not np.isfinite(info.astype(np.float64)).all():
        said = f"local_info has shape {info.shape} and type {info.dtype}"
        raise DataError(f"{file}: {said}; allowed: whole numbers [{n}, {len(_COLUMNS)}], 0 where missing")
    codes = info.astype(np.int64)
    codes[(codes < 0) | (codes > _LARGEST_CODE)] = 0
    return _Campus(name, _simple(sp.csr_array(given)), codes)


def _simple(given: sp.csr_array) -> sp.csr_array:
    given.eliminate_zeros()
    given.sum_duplicates()
    given.sort_indices()
    turned = sp.csr_array(given.T.tocsr())
    turned.sort_indices()
    same = np.array_equal(given.indptr, turned.indptr) and np.array_equal(given.indices, turned.indices)
    if same and not given.diagonal().any():
        return sp.csr_array((np.ones(given.nnz), given.indices, given.indptr), shape=given.shape)
    arcs = given.tocoo()
    return undirected_adjacency(arcs.coords[0], arcs.coords[1], given.shape[0]).adjacency


def _prepared(campus: _Campus, params: _CampusParams, *, alone: bool) -> owner_parts.OwnerPart:
    target = _COLUMNS.index(params.target)
    values = campus.info[:, target].copy()
    if params.target == "year":
        values[~np.isin(values, _YEARS)] = 0
    keep = np.ones(values.size, dtype=bool)
    adjacency = campus.adjacency
    if params.unlabelled == "dropped":
        keep = values > 0
        inner = sp.csr_array(adjacency[keep][:, keep])
        keep[np.flatnonzero(keep)[np.diff(inner.indptr) == 0]] = False
        adjacency = sp.csr_array(adjacency[keep][:, keep])
        if not keep.any():
            raise DataError(f"campus {campus.name}: no node has both a {params.target} and a friend who has one")
    rows, columns = [], []
    names: list[str] = []
    for position, column in enumerate(_COLUMNS):
        if position == target or column == "high_school":
            continue
        codes = campus.info[keep, position]
        there = np.flatnonzero(codes > 0)
        kinds, place = np.unique(codes[there], return_inverse=True)
        owned = f"{campus.name}:" if column in _CODED_BY_CAMPUS and not alone else ""
        rows.append(there)
        columns.append(place + len(names))
        names += [f"{owned}{column}={kind}" for kind in kinds]
    classes = tuple(str(y) for y in _YEARS) if params.target == "year" else ()
    owned = f"{campus.name}:" if params.target in _CODED_BY_CAMPUS and not alone else ""
    kinds, place = np.unique(values[keep], return_inverse=True)
    labels = np.array([f"{owned}{kind}" if kind > 0 else "" for kind in kinds])[place]
    entries = (np.concatenate(rows), np.concatenate(columns), tuple(names))
    return owner_parts.OwnerPart(campus.name, adjacency, *entries, labels, classes)


def _detail(params: _CampusParams, what: str) -> str:
    kept = "nodes without it and nodes without a friend dropped" if params.unlabelled == "dropped" else "nodes without it kept"
    return f"Facebook100, {what}: {params.target} from the other attributes, one-hot, without the high school; {kept}"


def _named(campuses: Sequence[str]) -> tuple[str, ...]:
    found = []
    for name in campuses:
        if name.casefold() not in _SPELT:
            hint = plugins.suggest_plugin_name(name, list(_FACEBOOK100_CAMPUSES))
            unknown = f"data set 'facebook100/federation': unknown campus {name!r}{hint}"
            raise ScenarioError(f"{unknown}; allowed: {', '.join(_FACEBOOK100_CAMPUSES)}")
        found.append(_SPELT[name.casefold()])
    twice = next((n for n in found if found.count(n) > 1), None)
    if twice is not None:
        raise ScenarioError(f"data set 'facebook100/federation': campus {twice!r} is named twice; allowed: each once")
    return tuple(found)


def _present(request: base.PublishedRequest) -> tuple[str, ...]:
    for place in files.places(_FOLDER, (*request.roots, files.cache_folder())):
        found = sorted(p.stem for p in place.glob("*.mat") if re.fullmatch(r"[A-Za-z ]+\d+", p.stem)) if place.is_dir() else []
        if found:
            return tuple(found)
    return ()


_SIZES = {"MIT8": 5170, "Cornell5": 15300, "Simmons81": 1350, "UIllinois20": 26406}  # nodes that the preparation keeps, about
_TYPICAL = 6000


def _stand_in(dataset: str, params: _CampusParams, seed: int) -> Graph:
    """Generated campuses: six years, about 70 friends each, half of them of one's own year."""
    if dataset != "federation":
        return _generated(_SPELT[dataset], seed)
    names = _named(params.campuses) if isinstance(params, _FederationParams) else ()
    parts = [_generated(name, seed) for name in names or ("Simmons81", "MIT8", "Cornell5")]
    return owner_parts.join_owner_graphs("facebook100/federation", parts, [p.name.split("/")[1] for p in parts])


def _generated(name: str, seed: int) -> Graph:
    size = _SIZES.get(name, _TYPICAL)
    shares = np.array([0.13, 0.16, 0.17, 0.18, 0.20, 0.16])
    sizes = np.round(shares * size).astype(int)
    model = BlockModel(tuple(map(int, sizes)), 30 * size, 150, 0.5, 3.8, 1.0, 50.0, closure=0.2, topic_share=0.15)
    return block_model.stand_in(model, f"facebook100/{name.casefold()}", f"Facebook100 campus {name}", seed)
