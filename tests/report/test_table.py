"""One table of results: what it says of a cell and of a row, how rows are named, and that a file gives it back."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fedgraph.cells import store
from fedgraph.cells.cell import Cell
from fedgraph.cells.result import Result
from fedgraph.cells.task_facts import (
    ClientResultCellFacts,
    GraphClusteringCellFacts,
    NodeClassificationCellFacts,
    ParticipationCellFacts,
)
from fedgraph.errors import DataError
from fedgraph.federation import ALONE_WORLD, LeftOutOfWorld, World, WorldKind, world_of_trust
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Assumption, Protection, Relation, Viewer
from fedgraph.report import table
from fedgraph.report.table import find_row_name, name_rows, plain_name, rows_of
from tests.results import plain_result

ENTRY = plain_result(
    "t", "d", "m", "default", world_of_trust(Trust.CURATOR), "provable", 1.0, 0, {"accuracy": 0.5, "majority_share": 0.4},
    NodeClassificationCellFacts(clients=3, tested=60, public="test-graph", protocol="inductive", split="random"),
    Protection(Relation.NODE_REPLACE, Viewer.CURATOR_TRUSTED, ()), 1e-5, None, 0.9, None, "theorem", {"model": 0.9},
    ("a note",), 0.1, ('{"kind":"account"}',),
)  # fmt: skip
SUMS = Protection(
    Relation.NODE_REPLACE, Viewer.SERVER_SECURE_AGGREGATION, (Assumption.IDEAL_SECURE_AGGREGATION, Assumption.ONE_COLLUDER)
)


def several() -> list[Result]:
    """Cells with whatever a table has to hold."""
    left = World(WorldKind.TOGETHER, Trust.SUMS, LeftOutOfWorld(2, "north"))
    client = ClientResultCellFacts("left-out", "north", 5, 2, {"accuracy": 0.25}, 0.0, "the server", 0, "Ag==")
    return [
        ENTRY,
        replace(ENTRY, seed=1, metrics={"accuracy": 0.7, "seed": 3.0}, epsilon_provable=0.95, epsilon_published=2.0),
        replace(ENTRY, variant="GCN", epsilon=math.inf, calibrated_by="none", epsilon_provable=math.inf, paths={"a": math.inf}),
        replace(ENTRY, method="n", protection=None, delta=None, facts=GraphClusteringCellFacts(), metrics={"ari": 0.1}),
        replace(ENTRY, world=left, protection=SUMS, facts=ParticipationCellFacts(results=(client,)), metrics={}),
        Result.of(Cell("t", "d", "broken", "default", ALONE_WORLD, 1.0, "provable", 0), failed="no memory", seconds=2.0),
    ]


def test_a_file_gives_back_every_result(tmp_path: Path) -> None:
    whole = table.tabulate(several(), {"d": "real"})
    table.write(whole, tmp_path, ended=False)
    assert {file.name for file in tmp_path.iterdir()} == {"results.csv", "clients.csv"}
    table.write(whole, tmp_path)
    again = table.read(tmp_path / store.RESULTS_FILE)
    for lines in (whole, again):
        assert list(map(repr, table.results_of(lines))) == list(map(repr, several()))
    text = pd.read_csv(tmp_path / "results.csv")
    assert list(text["row"]) == list(whole["row"])
    assert text["epsilon"].map(math.isinf).sum() == 1
    assert set(text["source"]) == {"real"}
    assert text["status"].iloc[-1] == "failed: no memory"
    clients = pd.read_csv(tmp_path / "clients.csv")[["trust", "participation", "client", "epsilon_provable", "tested", "value"]]
    assert clients.to_numpy().tolist() == [["sums", "left-out", "north", 0.0, 2, 0.25]], "beside the ε of that client"


def test_a_damaged_table_is_one_line_and_never_another_number(tmp_path: Path) -> None:
    """Wherever its bytes are damaged; some say nothing of the numbers."""
    file = tmp_path / store.RESULTS_FILE
    table.write(table.tabulate(several() * 40, {}), tmp_path)
    sound, refused = file.read_bytes(), 0
    kept = table.read(file).to_csv()
    for at in range(4, len(sound) - 8, len(sound) // 60):
        damaged = bytearray(sound)
        damaged[at : at + 8] = bytes(byte ^ 0xFF for byte in damaged[at : at + 8])
        file.write_bytes(damaged)
        try:
            found = table.read(file)
        except DataError as error:
            assert str(error).startswith(f"{file}: ")  # noqa: PT017
            refused += 1
        else:
            assert found.to_csv() == kept
    assert refused > 30
    pd.DataFrame({"a": [1]}).to_parquet(file)
    with pytest.raises(DataError, match="no table of results of this version: the column row is missing"):
        table.read(file)


def test_a_row_of_the_table_is_the_row_of_the_report() -> None:
    """``group`` and ``rows`` are two ways to one number."""
    grouped = table.group(table.tabulate(several(), {})).set_index("row")
    rows = {row.row: row for row in rows_of(several()) if row.metric}
    assert "broken, alone, ε=1" not in grouped.index
    for name, row in rows.items():
        line = grouped.loc[name]
        assert (line["seeds"], line["epsilon_provable"], line["metric"]) == (row.seeds, row.epsilon_provable, row.metric)
        assert np.isclose(line["mean"], row.mean)
        assert np.isclose(line["deviation"], math.nan if row.deviation is None else row.deviation, equal_nan=True)
    assert len(rows) == 3
    assert (rows["m, curator, ε=1"].epsilon_published, rows["m, curator, ε=1"].tested) == (2.0, 60)
    assert grouped.loc["m, curator, ε=1", "tested"] == 60
    lost = table.group(table.tabulate([ENTRY, replace(ENTRY, seed=1, metrics={})], {}))
    assert lost["mean"].isna().item(), "a seed without a value is no mean of the others"


CELL = Cell("t", "d", "label_hop", "default", world_of_trust(Trust.SUMS), 4.0, "provable", 0)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "label_hop, sums, ε=4"),
        ({"variant": "no labels"}, "no labels, sums, ε=4"),
        ({"epsilon": 0.25, "world": ALONE_WORLD}, "label_hop, alone, ε=0.25"),
        ({"epsilon": math.inf, "calibrated_by": "none"}, "label_hop, sums, ε=∞"),
        ({"calibrated_by": "published"}, "label_hop, sums, ε=4 as published"),
    ],
)
def test_a_row_has_the_name_that_a_person_types(changes: dict[str, Any], name: str) -> None:
    assert list(name_rows([replace(CELL, **changes)]).values()) == [name]


@pytest.mark.parametrize(
    "changes",
    [
        {"dataset": "e"}, {"task": "u"}, {"calibrated_by": "published"}, {"variant": "Default one"}, {"epsilon": 4.0000001},
        {"method": "Label-Hop"}, {"method": "label hop", "dataset": "e"}, {"dataset": "e", "task": "u"},
        {"method": "label=hop"}, {"variant": "α = 0.2"}, {"variant": "(label_hop)"}, {"epsilon": 1e-7}, {"epsilon": math.inf},
    ],
)  # fmt: skip
def test_no_two_rows_have_one_name(changes: dict[str, Any]) -> None:
    """Nor one that differs only in what people type in several ways."""
    cells = [CELL, replace(CELL, seed=1), replace(CELL, **changes), replace(CELL, epsilon=1.0)]
    names = name_rows(cells)
    assert len(names) == 3
    assert len(set(map(plain_name, names.values()))) == 3
    rows = rows_of([replace(ENTRY, **{key: vars(one)[key] for key in vars(CELL)}) for one in cells])
    assert len({row.anchor for row in rows}) == 3
    assert all(re.fullmatch(r"row-[a-z0-9_-]+", row.anchor) for row in rows)
    assert all(find_row_name(dict.fromkeys(names.values(), ""), name, "run") == name for name in names.values())


NAMES = dict.fromkeys(
    ["label_hop, sums, ε=4", "label_hop, sums, ε=1", "label_hop, sums, ε=16", "label_hop · no labels, curator, ε=4"], ""
) | {"dpar, sums, ε=4": "pagerank citeseer", "Features, sums, ε=8": "features d", "Net, sums, ε=8": "features d"}


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("label_hop, sums, ε=4", 0), ("Label_Hop sums eps=4", 0), ("label hop, SUMS, e = 4.0", 0),
        ("label_hop,sums,epsilon=1", 1), ("dpar", 4), ("no labels", 3), ("curator", 3), ("sums label_hop ε=16", 2),
        ("dpa ε=4", 4), ("pagerank e=4", 4),
        ("features, sums", 5),  # words of a name come before those of its method
    ],
)  # fmt: skip
def test_a_name_may_be_typed_in_several_ways(typed: str, name: int) -> None:
    assert find_row_name(NAMES, typed, "run") == list(NAMES)[name]


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("label_hop, sums", "3 rows with a name like 'label_hop, sums'; allowed: \"label_hop, sums, ε=4\"; \"label_hop, "),
        ("label_hop, sums, ε=2", "no row with a name like"), ("sums", "6 rows"), ("", "no row"),
    ],
)  # fmt: skip
def test_what_may_be_meant_is_listed(typed: str, told: str) -> None:
    with pytest.raises(DataError) as refused:
        find_row_name(NAMES, typed, "run")
    assert str(refused.value).startswith(f"run: {told}")
    assert "\n" not in str(refused.value)
