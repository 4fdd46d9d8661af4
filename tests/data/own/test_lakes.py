"""Tables in folders of parts: Hive's names of folders, slices of pandas, and logs of which files are valid."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from fedgraph.data.own.door import read
from fedgraph.errors import DataError
from fedgraph.types import Graph

PEOPLE = pd.DataFrame({"user_id": range(100, 124), "age": [20 + k % 7 for k in range(24)], "tier": ["low", "high", "mid"] * 8})
TIES = pd.DataFrame({"src_user": range(100, 123), "dst_user": range(101, 124)})


def put(table: pd.DataFrame, file: Path, **how: bool) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(file, index=False) if file.suffix == ".csv" else table.to_parquet(file, **how)


def delta(folder: Path, *commits: list[dict[str, object]]) -> Path:
    """A folder of users of which ``old.parquet`` holds four people who were erased, its log, and a table of ties."""
    put(PEOPLE, folder / "users" / "new.parquet")
    put(PEOPLE.iloc[:4].assign(user_id=range(900, 904)), folder / "users" / "old.parquet")
    put(TIES, folder / "messages.parquet")
    log = folder / "users" / "_delta_log"
    log.mkdir()
    for number, lines in enumerate(commits):
        (log / f"{number:020d}.json").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return folder


def add(name: str, **more: object) -> dict[str, object]:
    return {"add": {"path": name, "dataChange": True, **more}}


REMOVED: list[list[dict[str, object]]] = [
    [add("old.parquet"), {"commitInfo": {}}],
    [{"remove": {"path": "old.parquet"}}, add("new.parquet")],
]


@pytest.mark.parametrize("place", [".", "users"])
def test_a_file_that_a_log_removed_is_not_read(tmp_path: Path, place: str) -> None:
    folder = delta(tmp_path, *REMOVED)
    if place == "users":  # a table that lists its ties, handed over alone
        boss = PEOPLE.assign(manager_user_id=[100, *range(100, 123)])
        put(boss, folder / "users" / "new.parquet")
    told = read(folder / place, label="tier")
    assert isinstance(told.graph, Graph)
    assert told.graph.num_nodes == 24
    assert "users is a Delta table: 1 file valid by its log (not read: 1 file that it removed)" in str(told)


@pytest.mark.parametrize(
    ("commits", "said"),
    [
        ([[add("new.parquet", deletionVector={"storageType": "u"})]], "rows of a file are deleted"),
        ([[add("s3://lake/new.parquet")]], "add is not understood"),
        ([[{"cdc": {"path": "new.parquet"}}, add("new.parquet")]], "cdc is not understood"),
        ([[{"metaData": {"configuration": {"delta.columnMapping.mode": "name"}}}]], "columnMapping is not understood"),
        ([[add("new.parquet"), {"remove": {"path": "new.parquet"}}]], "at once"),
        ([[add("gone.parquet")]], "gone.parquet, which is not there"),
        ([[add("old.parquet")], [{"remove": {"path": "old.parquet"}}]], "no file is valid"),
    ],
)
def test_a_log_of_which_not_all_is_understood_is_refused(
    tmp_path: Path, commits: list[list[dict[str, object]]], said: str
) -> None:
    with pytest.raises(DataError, match=said) as refused:
        read(delta(tmp_path, *commits), label="tier")
    assert "allowed: its present version exported" in str(refused.value)


@pytest.mark.parametrize("name", ["_last_checkpoint", "00000000000000000010.checkpoint.parquet", "00000000000000000007.json"])
def test_a_log_that_does_not_begin_at_its_first_commit_is_refused(tmp_path: Path, name: str) -> None:
    (delta(tmp_path, *REMOVED) / "users" / "_delta_log" / name).write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match="no commit of a whole log"):
        read(tmp_path, label="tier")


@pytest.mark.parametrize(
    ("marker", "program"), [(".hoodie/hoodie.properties", "Hudi"), ("metadata/v1.metadata.json", "Iceberg")]
)
def test_tables_of_other_programs_that_keep_what_is_valid_are_refused(tmp_path: Path, marker: str, program: str) -> None:
    put(PEOPLE, tmp_path / "users" / "data" / "a.parquet")
    put(TIES, tmp_path / "messages.parquet")
    (tmp_path / "users" / marker).parent.mkdir(exist_ok=True)
    (tmp_path / "users" / marker).write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match=f"a table of {program}.*allowed: its present version exported"):
        read(tmp_path, label="tier")


def test_a_table_with_a_log_in_an_archive_is_refused(tmp_path: Path) -> None:
    folder = delta(tmp_path / "lake", *REMOVED)
    with zipfile.ZipFile(tmp_path / "lake.zip", "w") as archive:
        for file in (one for one in sorted(folder.rglob("*")) if one.is_file()):
            archive.write(file, str(file.relative_to(folder)))
    with pytest.raises(DataError, match="allowed: the archive unpacked"):
        read(tmp_path / "lake.zip", label="tier")


def test_names_of_folders_are_a_column_and_days_are_one_table(tmp_path: Path) -> None:
    for country, own in (("AT", PEOPLE[:10]), ("CH%2FLI", PEOPLE[10:20]), ("__HIVE_DEFAULT_PARTITION__", PEOPLE[20:])):
        put(own, tmp_path / "users" / f"country={country}" / "5d3c-0.parquet", index=False)
    for day, own in (("01", TIES[:12]), ("02", TIES[12:])):
        put(own, tmp_path / "messages" / "year=2024" / f"dt=2024-01-{day}" / "part-0.parquet", index=False)
    (tmp_path / "users" / "_SUCCESS").write_text("", encoding="utf-8")
    told = read(tmp_path, label="tier")
    graph = told.graph
    assert isinstance(graph, Graph)
    assert (graph.num_nodes, graph.num_edges) == (24, 23)
    assert "country is AT" in graph.names.columns
    assert "country is CH/LI" in graph.names.columns
    assert "column 'dt' of messages" in str(told)


@pytest.mark.parametrize(
    "names", [("part-00000", "part-00001"), ("part.0", "part.1"), ("data_1", "data_2"), ("messages-0001", "messages-0002")]
)
@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_parts_are_one_table_with_the_index_of_slices_or_without(
    tmp_path: Path, names: tuple[str, str], index: bool, ending: str
) -> None:
    put(PEOPLE, tmp_path / "users.parquet")
    for name, own in zip(names, (TIES[:12], TIES[12:]), strict=True):
        put(own if index else own.reset_index(drop=True), tmp_path / "messages" / f"{name}.{ending}")
    told = read(tmp_path, label="tier")
    assert isinstance(told.graph, Graph)
    assert (told.graph.num_nodes, told.graph.num_edges) == (24, 23)
    assert "2 files of messages are one table" in str(told)


def test_parts_of_several_tables_are_refused(tmp_path: Path) -> None:
    put(PEOPLE, tmp_path / "users.csv")
    put(TIES[:12], tmp_path / "messages" / "part-0.csv")
    put(TIES[12:].assign(weight=2), tmp_path / "messages" / "part-1.csv")
    with pytest.raises(DataError, match=r"part-1\.csv: its columns are .*weight, and those of .*allowed: parts alike"):
        read(tmp_path, label="tier")


def test_a_folder_that_was_not_looked_into_is_named_where_something_is_missing(tmp_path: Path) -> None:
    put(TIES, tmp_path / "messages.csv")
    put(PEOPLE, tmp_path / "users" / "2024" / "people.csv")
    with pytest.raises(DataError, match=r"'tier'.*not looked into: users/"):
        read(tmp_path, label="tier")


def test_folders_of_owners_stay_a_federation(tmp_path: Path) -> None:
    for owner in ("site=north", "site=south"):
        put(PEOPLE, tmp_path / owner / "people.csv")
        put(TIES, tmp_path / owner / "ties.csv")
    told = read(tmp_path, label="tier")
    assert isinstance(told.graph, Graph)
    assert told.graph.owner_names == ("site=north", "site=south")
