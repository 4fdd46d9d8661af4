"""The one door in: what a person hands over becomes a graph, and words that say what was taken for what.

    reading = fedgraph.read("my_folder")
    print(reading)              # people, ties, label, columns, what is left out and why
    reading.graph

Everything that takes somebody's data comes through here: ``fedgraph new``, scenarios (``own/read``), ``fedgraph.compare``, and
the people that a model is asked about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd

from fedgraph.data.base import npz, validate_data_parameters
from fedgraph.data.own import collections, federation, lakes, reading, tables
from fedgraph.data.own.columns import ReadRules
from fedgraph.data.own.reading import Reading
from fedgraph.data.own.tables import Gathered, ReadingQuestion
from fedgraph.errors import DataError, ScenarioError
from fedgraph.types import Graph


def read(
    what: object,
    label: str | None = None,
    id: str | None = None,
    ends: Sequence[str] | None = None,
    *,
    columns: Mapping[str, Any] | None = None,
    name: str | None = None,
    labelled: bool = True,
) -> Reading:
    """Somebody's own data, as they are.

    Args:
        what: a file, a folder or an archive; two pandas tables ``(nodes, edges)``; a NetworkX graph; a PyG ``Data``;
            ``(adjacency, features, labels)``; a ``fedgraph.types.Graph``; or a list of small graphs, each with its label.
        label: the column, or the attribute, that is predicted, or a file of some people: who stands there (``fraud_cases``);
            ``""``: nobody's label is known.
        id: the column that names people; ``row``: the number of a row, from 0, or from 1 where ends are numbered so.
        ends: the two columns of the ends of ties.
        columns: what becomes of columns (``bounds``, ``text``, ``empty``, ``drop``, ``from_edges``), and of ties (``owner``,
            ``kind``, ``kinds``), as under ``parameters`` of ``own/read``.
        name: what the graph is called; default: as the file.
        labelled: whether labels are read; without, nobody's is known, and columns that the data lack may be named.

    Returns:
        The graph, and what was understood.

    Raises:
        ScenarioError: an argument is wrong, or names no column that may be it.
        DataError: two readings are left (the line names both, and the option that answers), or the data are damaged or
            inconsistent; the line says where, what was found, and what is allowed.

    Example:
        >>> import networkx, fedgraph
        >>> reading = fedgraph.read(networkx.karate_club_graph(), label="club")
        >>> reading.graph.num_nodes, reading.graph.names.classes
        (34, ('Mr. Hi', 'Officer'))
    """
    given = {"label": label, "id": id, "ends": None if ends is None or isinstance(ends, str) else list(ends)}
    if isinstance(ends, str):
        raise ScenarioError(f"ends is {ends!r}; allowed: the names of two columns, such as ['payer', 'payee']")
    told = {key: value for key, value in given.items() if value is not None}
    rules = validate_data_parameters(ReadRules, {**(columns or {}), **told}, "own/read")
    try:
        return _read(what, rules, name, labelled)
    except (DataError, ScenarioError):
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RuntimeError) as error:
        raise DataError(f"{_called(what)}: cannot be read ({type(error).__name__}: {error}); allowed: {_ALLOWED}") from error


def read_federation(path: Path, columns: Mapping[str, object]) -> Reading:
    """A folder with one folder per client. columns: as for ``read``. Raises as ``read`` does."""
    rules = validate_data_parameters(ReadRules, columns, "own/federation")
    return federation.read(path, rules, rules.label != "")


_ALLOWED = (
    "a torch_geometric Data, a NetworkX graph, two pandas tables (nodes, edges), a path, a fedgraph Graph, the tuple "
    "(adjacency, features, labels), or a list of small graphs"
)


def _called(what: object) -> str:
    return str(what) if isinstance(what, (str, Path)) else f"data (a {type(what).__name__})"


def _read(what: object, rules: ReadRules, name: str | None, labelled: bool) -> Reading:
    if isinstance(what, (str, Path)):
        return _read_path(Path(what).expanduser(), rules, name, labelled)
    called = name or "people"
    title = f"a graph in memory called {called}"
    if isinstance(what, Graph):
        return Reading(what, reading.say_graph(what, None, [], [], []), reading.told_rules(rules))
    if isinstance(what, tuple) and len(what) == 2 and all(isinstance(part, pd.DataFrame) for part in what):
        found = [tables.frame_table(part, f"the table of {kind}") for part, kind in zip(what, ("nodes", "edges"), strict=True)]
        found[0].role = "nodes"
    elif isinstance(what, (Iterator, list)) or (isinstance(what, tuple) and _are_graphs(what)):
        return collections.read_list(list(what), rules, called)
    elif isinstance(what, nx.Graph):
        found = tables.network_tables(what, "the graph")
    elif isinstance(what, tuple) and len(what) == 3:
        found = tables.parts_of_a_graph(*what, "the graph")
    elif isinstance(what, (tuple, pd.DataFrame)):
        one = "one pandas table" if isinstance(what, pd.DataFrame) else f"a tuple of {len(what)}"
        raise DataError(f"data is {one}; allowed: {_ALLOWED}")
    else:
        from torch_geometric.data import Data, Dataset

        if isinstance(what, Dataset):
            return collections.read_list([what[place] for place in range(len(what))], rules, called)
        if not isinstance(what, Data):
            raise DataError(f"data is a {type(what).__name__}; allowed: {_ALLOWED}")
        found = tables.tensor_tables(what.to_dict(), "the PyG data object", labelled=labelled and rules.label != "")
    for matrix in (table.matrix for table in found if table.matrix is not None):
        npz.require_width(matrix.shape[1], called)
    return _of_tables(Gathered(found), rules, called, title, labelled)


def _are_graphs(given: Sequence[object]) -> bool:
    from torch_geometric.data import Data

    return bool(given) and all(isinstance(one, (nx.Graph, Data)) for one in given)


def _read_path(path: Path, rules: ReadRules, name: str | None, labelled: bool) -> Reading:
    beside: dict[str, str] = {}
    if path.is_dir():
        kept = lakes.kept_by(path)
        if not kept and collections.is_graph_folder(path):
            return collections.read(path, rules)
        inside = sorted(one for one in path.iterdir() if not one.name.startswith((".", "__")))
        folders = [one for one in inside if one.is_dir() and not lakes.is_in_parts(one) and not kept]
        files = [one.name for one in inside if one.is_file() and not tables.is_note(one.name)]
        names = {one.name for one in folders}
        if folders:
            tables.require_no_chat(files, path)
        if "raw" in names and names <= {"raw", "split", "mapping", "processed"}:  # as OGB, and PyG, keep a graph
            beside = {f"{one}/": "not read (who trains and who is tested: masks.csv)" for one in sorted(names - {"raw"})}
            beside |= dict.fromkeys(files, "not read")
            name, path = name or f"own/{path.resolve().name}", path / "raw"
        elif len(folders) == 1 and not files:  # as an archive is unpacked
            return _read_path(folders[0], rules, name or f"own/{path.resolve().name}", labelled)
        elif len(folders) > 1 and not files:
            return federation.read(path, rules, labelled and rules.label != "")
        elif (
            len(folders) > 1
            and "channels.json" not in files
            and set.intersection(*({one.name for one in folder.iterdir()} for folder in folders))
        ):
            first = ", ".join(one.name for one in folders[:4])
            both = f"{', '.join(files[:4])} beside the folders {first}, which hold files of the same names"
            raise DataError(f"{path}: {both}; allowed: a folder for each owner and nothing beside, or one graph's tables alone")
    found = tables.gather_files(path)
    found.aside |= beside
    if not found.tables:
        found.faults.refuse()
        listed = "; ".join(f"{one}: {why}" for one, why in found.aside.items())
        raise DataError(f"{path}: no table was found ({listed or 'the folder is empty'}); allowed: {tables.FORMATS}")
    stem = path.resolve().name.split(".")[0] or "people"
    try:
        return _of_tables(found, rules, name or f"own/{stem}", f"own graph {path.resolve().name}", labelled)
    except ReadingQuestion:
        raise
    except (DataError, ScenarioError) as error:
        if not (closed := [one for one in found.aside if one.endswith("/") and one not in beside]):
            raise
        kind = DataError if isinstance(error, DataError) else ScenarioError
        raise kind(f"{error} (not looked into: {', '.join(closed[:8])})") from error


def _of_tables(found: Gathered, rules: ReadRules, name: str, title: str, labelled: bool) -> Reading:
    roles = reading.roles_of(found, rules)
    return reading.of_roles(roles, found, rules, name, title, labelled and rules.label != "")
