"""Tables in folders of parts: Hive's names of folders, slices of pandas, and logs of which files are valid."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from fedgraph.data.own.door import read
from fedgraph.errors import DataError
from tests.data.own.clubs import graph_of, put

PEOPLE = pd.DataFrame({"user_id": range(100, 124), "age": [20 + k % 7 for k in range(24)], "tier": ["low", "high", "mid"] * 8})
TIES = pd.DataFrame({"src_user": range(100, 123), "dst_user": range(101, 124)})


def write(table: pd.DataFrame, file: Path, **how: bool) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(file, index=False) if file.suffix == ".csv" else table.to_parquet(file, **how)


def delta(folder: Path, *commits: list[dict[str, object]]) -> Path:
    """A folder of users of which ``old.parquet`` holds four people who were erased, its log, and a table of ties."""
    write(PEOPLE, folder / "users" / "new.parquet")
    write(PEOPLE.iloc[:4].assign(user_id=range(900, 904)), folder / "users" / "old.parquet")
    write(TIES, folder / "messages.parquet")
    log = {f"users/_delta_log/{number:020d}.json": "\n".join(map(json.dumps, told)) for number, told in enumerate(commits)}
    return put(folder, log)


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
        write(PEOPLE.assign(manager_user_id=[100, *range(100, 123)]), folder / "users" / "new.parquet")
    told = read(folder / place, label="tier")
    assert graph_of(told).num_nodes == 24
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
    with pytest.raises(DataError, match=rf"{said}(.|\n)*allowed: its present version exported"):
        read(delta(tmp_path, *commits), label="tier")


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("_delta_log/_last_checkpoint", "no commit of a whole log"),
        ("_delta_log/00000000000000000010.checkpoint.parquet", "no commit of a whole log"),
        ("_delta_log/00000000000000000007.json", "no commit of a whole log"),
        (".hoodie/hoodie.properties", "a table of Hudi.*allowed: its present version exported"),
        ("metadata/v1.metadata.json", "a table of Iceberg.*allowed: its present version exported"),
    ],
)
def test_logs_that_begin_later_and_those_of_other_programs_are_refused(tmp_path: Path, file: str, says: str) -> None:
    folder = delta(tmp_path, *(REMOVED if "_delta_log" in file else []))
    with pytest.raises(DataError, match=says):
        read(put(folder, {f"users/{file}": "{}"}), label="tier")


def test_a_table_with_a_log_in_an_archive_is_refused(tmp_path: Path) -> None:
    shutil.make_archive(str(tmp_path / "lake"), "zip", delta(tmp_path / "lake", *REMOVED))
    with pytest.raises(DataError, match="allowed: the archive unpacked"):
        read(tmp_path / "lake.zip", label="tier")


def test_names_of_folders_are_a_column_and_days_are_one_table(tmp_path: Path) -> None:
    for country, own in (("AT", PEOPLE[:10]), ("CH%2FLI", PEOPLE[10:20]), ("__HIVE_DEFAULT_PARTITION__", PEOPLE[20:])):
        write(own, tmp_path / "users" / f"country={country}" / "5d3c-0.parquet", index=False)
    for day, own in (("01", TIES[:12]), ("02", TIES[12:])):
        write(own, tmp_path / "messages" / "year=2024" / f"dt=2024-01-{day}" / "part-0.parquet", index=False)
    told = read(put(tmp_path, {"users/_SUCCESS": ""}), label="tier")
    graph = graph_of(told)
    assert (graph.num_nodes, graph.num_edges) == (24, 23)
    assert {"country is AT", "country is CH/LI"} <= set(graph.names.columns)
    assert "column 'dt' of messages" in str(told)


UUID = "1f0c6c2e-7f3c-4a55-9b6e-1c2d3e4f5a6b-c000"


@pytest.mark.parametrize(
    ("names", "index", "ending"),
    [
        (("part-00000", "part-00001"), False, "csv"),
        (("part-00000", "part-00001"), True, "parquet"),
        (("part.0", "part.1"), True, "parquet"),
        (("data_1", "data_2"), False, "parquet"),
        (("messages-0001", "messages-0002"), True, "csv"),
        ((f"part-00000-{UUID}", f"part-00001-{UUID}"), False, "csv"),
    ],
)
def test_parts_are_one_table_with_the_index_of_slices_or_without(
    tmp_path: Path, names: tuple[str, str], index: bool, ending: str
) -> None:
    write(PEOPLE, tmp_path / "users.parquet")
    for name, own in zip(names, (TIES[:12], TIES[12:]), strict=True):
        write(own if index else own.reset_index(drop=True), tmp_path / "messages" / f"{name}.{ending}")
    put(tmp_path, {"messages/_SUCCESS": "", **({f"messages/part-00009-{UUID}.csv": ""} if UUID in names[0] else {})})
    told = read(tmp_path, label="tier")
    assert (graph_of(told).num_nodes, graph_of(told).num_edges) == (24, 23)
    assert "2 files of messages are one table" in str(told)


def test_parts_of_several_tables_are_refused(tmp_path: Path) -> None:
    write(PEOPLE, tmp_path / "users.csv")
    write(TIES[:12], tmp_path / "messages" / "part-0.csv")
    write(TIES[12:].assign(weight=2), tmp_path / "messages" / "part-1.csv")
    with pytest.raises(DataError, match=r"part-1\.csv: its columns are .*weight, and those of .*allowed: parts alike"):
        read(tmp_path, label="tier")


def test_a_folder_that_was_not_looked_into_is_named_where_something_is_missing(tmp_path: Path) -> None:
    write(TIES, tmp_path / "messages.csv")
    write(PEOPLE, tmp_path / "users" / "2024" / "people.csv")
    with pytest.raises(DataError, match=r"'tier'.*not looked into: users/"):
        read(tmp_path, label="tier")


def test_folders_of_owners_stay_a_federation(tmp_path: Path) -> None:
    for owner in ("site=north", "site=south"):
        write(PEOPLE, tmp_path / owner / "people.csv")
        write(TIES, tmp_path / owner / "ties.csv")
    assert graph_of(read(tmp_path, label="tier")).owner_names == ("site=north", "site=south")
