"""What tables of a federation, or of many small graphs, hold before a person decided anything about their columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fedgraph.errors import DataError

_COMMA = re.compile(r"[+-]?\d+,\d+")
_MOST_TEXTS = 50  # different texts of a column that a draft makes columns of; more are names, and left out


@dataclass(frozen=True)
class FirstLook:
    """What a first look found.

    Attributes:
        numbers: Columns of numbers. A person may give bounds for them.
        labels: Columns that could be predicted.
        parameters: What the data set needs to read the tables, such as columns to drop.
    """

    numbers: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    parameters: dict[str, object] = field(default_factory=dict)


def at_data(folder: Path) -> FirstLook:
    """A first look, before a person decided anything.

    Args:
        folder: A folder of graphs.

    Returns:
        What it holds. Empty for anything else.

    Raises:
        DataError: As the reader of the folder raises it; or a column holds numbers with a decimal comma.
    """
    from fedgraph.data import graph_folders

    if graph_folders.is_graph_folder(folder):
        found = graph_folders.read(folder)
        names = tuple(dict.fromkeys(name for graph in found.graphs for name in graph.columns))
        rows = [dict(zip(graph.columns, cells, strict=True)) for graph in found.graphs for cells in graph.cells]
        return _seen(folder, {name: [row.get(name, "") for row in rows] for name in names}, list(found.labels))
    return FirstLook()


def at_federation(folder: Path) -> FirstLook:
    """A first look at the tables of a federation.

    Args:
        folder: One folder per client.

    Returns:
        What they hold, without columns to be predicted.

    Raises:
        DataError: As the reader of a federation raises it.
    """
    from fedgraph.data import federation

    columns: dict[str, list[str]] = {}
    for table in federation.federation_feature_tables(folder) if folder.is_dir() else ():
        for place, name in enumerate(table.names):
            columns.setdefault(name, []).extend(row[place] for row in table.cells)
    return _seen(folder, columns, [])


def _seen(place: Path, columns: Mapping[str, Sequence[str]], labels: list[str]) -> FirstLook:
    """place: of the tables. columns: name → cells. labels: columns that could be predicted."""
    from fedgraph.data import own_column_kinds

    parameters: dict[str, object] = {}
    kinds = own_column_kinds(columns)
    texts = {name: set(cells) for name, cells in columns.items() if kinds[name][0] == "text"}
    for name, words in texts.items():
        if len(words) > _MOST_TEXTS and (comma := sum(map(bool, map(_COMMA.fullmatch, words)))) > 0.5 * len(words):
            example = next(filter(_COMMA.fullmatch, columns[name]))
            allowed = "allowed: a decimal point, as in 2.5; or leave the column out"
            found = f"{comma:,} numbers with a decimal comma, such as {example!r}"
            raise DataError(f"{place}: column {name!r} holds {found}; {allowed}")
    dropped = [name for name, words in texts.items() if len(words) > _MOST_TEXTS]
    parameters |= {"text": "one-hot"} if texts.keys() - set(dropped) else {}
    parameters |= {"drop": dropped} if dropped else {}
    parameters |= {"empty": "missing"} if any(gaps for _, gaps in kinds.values()) else {}
    return FirstLook([name for name, (kind, _) in kinds.items() if kind == "number"], labels, parameters)
