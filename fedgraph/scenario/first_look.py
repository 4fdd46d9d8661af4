"""What tables hold, before a person decided anything: columns that could be predicted, and what else a scenario must say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fedgraph.errors import DataError

_COMMA = re.compile(r"[+-]?\d+,\d+")
_MOST_TEXTS = 50  # different texts of a column that a draft makes columns of; more are names, and left out
FIRST_LOOK_LABELS = ("label", "labels", "y", "class", "target")  # a column of features called so is what is predicted


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
        folder: A folder of graphs, or a folder with ``features.csv``.

    Returns:
        What it holds. Empty for anything else.

    Raises:
        DataError: As the reader of the folder raises it; or a column holds numbers with a decimal comma.
    """
    from fedgraph.data import DataFileFaults, csv_tables, graph_folders

    if graph_folders.is_graph_folder(folder):
        found = graph_folders.read(folder)
        names = tuple(dict.fromkeys(name for graph in found.graphs for name in graph.columns))
        rows = [dict(zip(graph.columns, cells, strict=True)) for graph in found.graphs for cells in graph.cells]
        return _seen(folder, {name: [row.get(name, "") for row in rows] for name in names}, list(found.labels), [])
    features, labels = folder / "features.csv", folder / "labels.csv"
    if not features.is_file():
        return FirstLook()
    ignored = DataFileFaults()  # the reader of the folder refuses them
    table = csv_tables.read_csv_features(features.read_bytes(), str(features), ignored)
    first: dict[str, object] = {}
    if labels.is_file():
        named = list(csv_tables.csv_label_columns(labels.read_bytes(), str(labels), table.rows))
        own: list[str] = []
    else:
        own = named = [name for name in table.names if name.casefold() in FIRST_LOOK_LABELS]
        first = {"label": named[0]} if named else {}
    seen = _seen(features, {name: [row[place] for row in table.cells] for place, name in enumerate(table.names)}, named, own)
    return replace(seen, parameters=first | seen.parameters)


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
    return _seen(folder, columns, [], [])


def _seen(place: Path, columns: Mapping[str, Sequence[str]], labels: list[str], own: list[str]) -> FirstLook:
    """place: of the tables. columns: name → cells. labels: columns that could be predicted; own: those among the features."""
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
    dropped = [name for name, words in texts.items() if len(words) > _MOST_TEXTS and name not in own]
    parameters |= {"text": "one-hot"} if texts.keys() - set(dropped) - set(own) else {}
    parameters |= {"drop": dropped} if dropped else {}
    parameters |= {"empty": "missing"} if any(gaps for _, gaps in kinds.values()) else {}
    return FirstLook([name for name, (kind, _) in kinds.items() if kind == "number" and name not in own], labels, parameters)
