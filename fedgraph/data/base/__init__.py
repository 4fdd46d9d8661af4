"""From a name to a graph, and the contract of a family file.

A family is one file of ``fedgraph/data``. It offers

- ``DATASETS``: a mapping from its data sets (lower case) to what describes each (``_Described``);
- ``load(dataset, request) -> Graph | GraphCollection``.

A family of *published* data takes its :class:`PublishedData` records from one table and hands its reader to
:func:`published.loader`, which knows the search order: the roots of the request, the user's cache, a download through
PyG into that cache, and last the stand-in or one clear error. A root is only ever read.
"""

import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, TypeVar

from pydantic import BaseModel, ValidationError

from fedgraph import plugins
from fedgraph.data.base import npz
from fedgraph.data.base import splits as splits
from fedgraph.data.base.published import PUBLISHED_ROOT_VARIABLE as PUBLISHED_ROOT_VARIABLE
from fedgraph.data.base.published import PublishedCounts, WhenPublishedUnavailable
from fedgraph.data.base.published import PublishedData as PublishedData
from fedgraph.data.base.published import PublishedRequest as PublishedRequest
from fedgraph.documents import Settings
from fedgraph.errors import DataError, FedgraphError, ScenarioError
from fedgraph.types import Graph, GraphCollection

_Model = TypeVar("_Model", bound=BaseModel)

_MOST_NAMED = 5  # of one family, in a message


# of a data set: the facts of a published one, the counts of a shipped one, or the model of the parameters of another
_Described: TypeAlias = PublishedData | PublishedCounts | type[Settings]


_first: list[Path] = []  # what ``set_data_search_root`` was told


def set_data_search_root(root: Path | None) -> None:
    """From now on search one folder first where nobody names a folder: ``--data-root``, for every data set that a run reads.

    Args:
        root: the folder; None: none any more.
    """
    _first[:] = [] if root is None else [root]


def data_search_root() -> Path | None:
    """The folder that ``set_data_search_root`` was told; None where it was told none."""
    return _first[0] if _first else None


def _default_data_roots() -> tuple[Path, ...]:
    """The roots that hold when nobody names one: that of ``set_data_search_root``, then ``$FEDGRAPH_DATA``, where they
    are set.
    """
    named = os.environ.get(PUBLISHED_ROOT_VARIABLE, "")
    return (*_first, *((Path(named).expanduser(),) if named else ()))


def data_families() -> dict[str, Mapping[str, _Described]]:
    """Family name → its data sets."""
    return {name: plugins.load("data", name).DATASETS for name in plugins.usable("data")}


def data_settings(family: str, dataset: str) -> type[Settings] | None:
    """The model of the parameters that a data set takes; None where it takes none.

    Args:
        family: its name, lower case.
        dataset: the data set's name within the family, lower case.
    """
    entry = data_families()[family][dataset]
    if isinstance(entry, PublishedData):
        return entry.parameters
    return entry if isinstance(entry, type) else None


def names() -> list[str]:
    """Every ``family/dataset`` there is, sorted."""
    return sorted(f"{family}/{dataset}" for family, datasets in data_families().items() for dataset in datasets)


def parse_data_name(name: str) -> tuple[str, str]:
    """Split the name of a data set.

    Args:
        name: ``family/dataset``, any case, spaces around it do not matter.

    Returns:
        Both in lower case.

    Raises:
        ScenarioError: nothing is called so; the line suggests a similar name and lists what is allowed.
    """
    family, _, dataset = name.strip().casefold().partition("/")
    known = data_families()
    if dataset in known.get(family, ()):
        return family, dataset
    every = names()
    same = [n for n in every if n.split("/")[1] == family and not dataset]
    hint = f"; did you mean {' or '.join(map(repr, same))}?" if same else plugins.suggest_plugin_name(name.casefold(), every)
    raise ScenarioError(f"unknown data set {name!r}{hint}; allowed: {_listed(every)}")


def _listed(every: Sequence[str]) -> str:
    shown = []
    for family, group in itertools.groupby(every, key=lambda n: n.split("/")[0]):
        members = list(group)
        more = [f"{family}/… ({len(members) - _MOST_NAMED} more)"] if len(members) > _MOST_NAMED else []
        shown += [*members[:_MOST_NAMED], *more]
    return ", ".join(shown)


def load(
    name: str,
    *,
    root: Path | str | Sequence[Path | str] | None = None,
    when_unavailable: WhenPublishedUnavailable = "error",
    seed: int = 0,
    path: Path | str | None = None,
    parameters: Mapping[str, object] | None = None,
    download: bool = True,
    stand_in: bool = False,
) -> Graph | GraphCollection:
    """Read, or generate, the data set called ``name``.

    Args:
        name: ``family/dataset``, any case.
        root: a folder in the layout of ``PyG``, or several, searched in order; None means :func:`_default_data_roots`. It is
            never written to.
        when_unavailable: where the files are missing, ``error`` raises, and ``synthetic`` generates a stand-in whose
            ``provenance.source`` says so.
        seed: of anything generated; 0 or more.
        path: the file or folder of ``own/…``.
        parameters: of data sets that take some (``synthetic/…``, ``own/…``), validated by the family.
        download: whether missing files may be fetched.
        stand_in: go straight to the stand-in of a published data set, reading no file.

    Returns:
        The graph, or the collection of graphs.

    Raises:
        ScenarioError: an unknown name or parameter, or a value that is not allowed.
        DataError: a root is no folder, or files are missing, damaged or not the published ones.
    """
    if when_unavailable not in ("error", "synthetic"):
        raise ScenarioError(f"when_unavailable is {when_unavailable!r}; allowed: error, synthetic")
    if seed < 0:
        raise ScenarioError(f"the data seed is {seed}; allowed: 0 or a positive integer")
    family, dataset = parse_data_name(name)
    several = [root] if isinstance(root, (str, Path)) else root
    roots = _default_data_roots() if several is None else tuple(Path(folder).expanduser() for folder in several)
    file, given = None if path is None else Path(path).expanduser(), dict(parameters or {})
    request = PublishedRequest(roots, when_unavailable, int(seed), file, given, download, stand_in)
    try:
        loaded: Graph | GraphCollection = plugins.load("data", family).load(dataset, request)
    except DataError as error:
        if request.path is None or str(request.path) in str(error):
            raise
        raise DataError(f"{request.path}: {error}") from error
    except FedgraphError:
        raise
    except Exception as error:  # an error that the reader did not foresee: the file is not this data set
        where = request.path or ", ".join(map(str, request.roots)) or "its files"
        raise DataError(f"{family}/{dataset}: cannot be read from {where} ({type(error).__name__}: {error})") from error
    for graph in loaded.graphs[:1] if isinstance(loaded, GraphCollection) else (loaded,):
        npz.require_width(graph.num_features, str(request.path or f"{family}/{dataset}"))
    return loaded


def validate_data_parameters(model: type[_Model], parameters: Mapping[str, object], key: str) -> _Model:
    """Parameters as a record of their model.

    Args:
        key: the data set, for the error.

    Raises:
        ScenarioError: one line that names the first wrong parameter, what was found and what is allowed.
    """
    try:
        return model.model_validate(dict(parameters))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            allowed = list(model.model_fields)
            hint = plugins.suggest_plugin_name(where, allowed)
            listed = ", ".join(allowed) or "none"
            raise ScenarioError(f"data set {key!r}: unknown parameter {where!r}{hint}; allowed: {listed}") from error
        found = f"parameter {where!r} is {first['input']!r}; " if where else ""
        raise ScenarioError(f"data set {key!r}: {found}{first['msg'].removeprefix('Value error, ')}") from error
