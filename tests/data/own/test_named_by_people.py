"""Tables of people who name each other: friends in several columns, superiors, and what is said where that goes wrong."""

from __future__ import annotations

import random
from pathlib import Path

import pandas as pd
import pytest

from fedgraph.data import read
from fedgraph.data.own.tables import ReadingQuestion
from fedgraph.errors import DataError, ScenarioError
from fedgraph.types import Graph

DRAW = random.Random(4)
PUPILS = sorted(DRAW.sample(range(1000, 9000), 60))
FRIENDS = {one: DRAW.sample([other for other in PUPILS if other != one], DRAW.randint(1, 4)) for one in PUPILS}
SMOKES = [DRAW.choice(["never", "often"]) for _ in PUPILS]
STAFF = [f"{name}, {first}" for name in ("Koch", "Roth", "Wolf", "Beck", "Jung", "Kern") for first in "ABCDEFGHIJ"]


def written(path: Path, head: str, lines: list[list[object]]) -> Path:
    path.write_text("\n".join([head, *(",".join(f'"{cell}"' for cell in line) for line in lines)]) + "\n", encoding="utf-8")
    return path


def ties_of(path: Path, label: str, id: str | None = None) -> set[tuple[int, int]]:
    graph = read(path, label=label, id=id).graph
    assert isinstance(graph, Graph)
    one, two = graph.adjacency.tocoo().coords
    return {(int(a), int(b)) for a, b in zip(one, two, strict=True) if a < b}


@pytest.mark.parametrize(
    "head", ["friend1,friend2,friend3,friend4", "Freund 1,Freund 2,Freund 3,Freund 4", "best,second,third,last"]
)
@pytest.mark.parametrize("as_id", ["{}", "{}.0", "P{}"])
def test_friends_in_several_columns_are_ties_each(tmp_path: Path, head: str, as_id: str) -> None:
    lines = [
        [as_id.format(one), smokes, *(as_id.format(other) for other in FRIENDS[one]), *[""] * (4 - len(FRIENDS[one]))]
        for one, smokes in zip(PUPILS, SMOKES, strict=True)
    ]
    place = {one: row for row, one in enumerate(PUPILS)}
    truth = {(min(place[a], place[b]), max(place[a], place[b])) for a, own in FRIENDS.items() for b in own}
    assert ties_of(written(tmp_path / "school.csv", f"pid,smokes,{head}", lines), "smokes") == truth


def staff(managed: bool = True, names: list[str] = STAFF) -> list[list[object]]:
    """A line for each of the staff: id, name, grade, and whom they report to, by name or by id; nobody is above the first."""
    above = [0, *(row // 8 for row in range(1, len(names)))]
    called = [names[row] if managed else f"{4000 + 3 * row:06}" for row in above]
    return [[f"{4000 + 3 * row:06}", name, "AB"[row % 2], called[row] if row else ""] for row, name in enumerate(names)]


@pytest.mark.parametrize(
    ("head", "managed"), [("Employee ID,Name,Grade,Manager", True), ("Employee ID,Name,Grade,Manager ID", False)]
)
def test_superiors_are_found_by_name_and_by_number(tmp_path: Path, head: str, managed: bool) -> None:
    truth = {(row // 8, row) for row in range(1, len(STAFF))}
    assert ties_of(written(tmp_path / "hr.csv", head, staff(managed)), "Grade") == truth


@pytest.mark.parametrize("head", ["start,end", "StartDate,EndDate", "from,to"])
@pytest.mark.parametrize(
    "time",
    ["2024-{:02}-17", "17.{:02}.2024", "{:02}/17/2024 9:30 AM", "2024-{:02}-17T08:00:00.000Z", "7 Apr. 20{:02}", "{:02}:59"],
)
def test_columns_of_times_are_no_ends_and_no_ids(tmp_path: Path, head: str, time: str) -> None:
    """Whatever they are called, and beside ties or not; unless their owner says so."""
    times = [[time.format(DRAW.randint(1, 6)), time.format(DRAW.randint(7, 12))] for _ in STAFF]
    lines = [[*day, *own] for day, own in zip(times, staff(), strict=True)]
    path = written(tmp_path / "hr.csv", f"{head},Employee ID,Name,Grade,Manager", lines)
    assert ties_of(path, "Grade") == {(row // 8, row) for row in range(1, len(STAFF))}
    assert f"between {head.split(',')[0]!r}" in read(path, ends=head.split(",")).says
    path = written(tmp_path / "stays.csv", f"patient,ward,{head}", [[row[2], row[4], *row[:2]] for row in lines])
    with pytest.raises(DataError, match="no table of ties was found"):
        read(path)


@pytest.mark.parametrize("ends", [None, ["source", "target"]])
def test_who_is_named_by_the_column_that_the_owner_says(tmp_path: Path, ends: list[str] | None) -> None:
    """And no column of its table is an end as long as he does not say that, too."""
    ways = [["web", "mail"][row % 2] for row in range(len(STAFF))]
    lines = [[way, f"to {way}", *own] for way, own in zip(ways, staff(), strict=True)]
    path = written(tmp_path / "contacts.csv", "source,target,contact,Name,Grade,referred_by", lines)
    if ends is None:
        assert read(path, id="Name", label="Grade").graph.num_nodes == len(STAFF)
    else:
        with pytest.raises(ScenarioError, match="--id Name: no table of people has such a column"):
            read(path, id="Name", ends=ends)


BOTH = ["Employee ID", "Manager ID"]


@pytest.mark.parametrize(("ends", "apart"), [(None, False), (BOTH, False), (BOTH, True)])
def test_what_follows_from_whom_one_names_is_no_column(tmp_path: Path, ends: list[str] | None, apart: bool) -> None:
    """It would tell ties among features; a department that many managers share does not. apart: ties are in another file."""
    lines: list[list[object]] = []
    for row, (key, name, grade, boss) in enumerate(staff(managed=False)):
        above = row // 8
        told = [f"M{above % 7}", f"{STAFF[above][6:]}{STAFF[above][0]}@x", 30 + above % 3, "ab"[above % 2]] if row else [""] * 4
        lines.append([key, name, grade, boss, *told, 40 + row % 9])
    head = "Employee ID,Name,Grade,Manager ID,Manager,boss mail,manager.level,Department,age"
    path = written(tmp_path / "hr.csv", head, lines)
    if apart:
        (tmp_path / "apart").mkdir()
        own = [[line[0], line[3]] for line in lines if line[3]]
        path = written(tmp_path / "apart" / "reports.csv", "Employee ID,Manager ID", own).parent
        written(path / "hr.csv", head.replace(",Manager ID", ""), [[*line[:3], *line[4:]] for line in lines])
    reading = read(path, label="Grade", ends=ends)
    assert isinstance(reading.graph, Graph)
    assert {name.partition(" ")[0] for name in reading.graph.names.columns} == {"Department", "age"}
    for column in ("Manager", "boss mail", "manager.level"):
        assert f"{column}: it goes with 'Manager ID', which says ties" in reading.says
    reading = read(path, label="Grade", ends=ends, columns={"from_edges": True})
    assert isinstance(reading.graph, Graph)
    assert reading.graph.features_from_edges
    assert "manager.level" in reading.graph.names.columns


@pytest.mark.parametrize("form", ["{}.csv", "school.xlsx"])
@pytest.mark.parametrize("ids", ["p{}{}", "{1}"])
def test_a_table_for_each_class_holds_people_of_one_graph(tmp_path: Path, form: str, ids: str) -> None:
    """If ids stand in several tables, their owner says whether they are other people there."""
    tables = {
        name: pd.DataFrame(
            [[ids.format(name, row), SMOKES[row], ids.format(name, (row + step) % 20)] for row in range(20)],
            columns=["Nr", "smokes", "friend1"],
        ).assign(friend2=[ids.format(name, (row * 3 + 7) % 20) for row in range(20)])
        for name, step in (("1a", 1), ("1b", 3))
    }
    path = tmp_path / "school.xlsx" if form == "school.xlsx" else tmp_path / "school"
    if form == "school.xlsx":
        with pd.ExcelWriter(path) as book:
            for name, table in tables.items():
                table.to_excel(book, sheet_name=name, index=False)
    else:
        path.mkdir()
        for name, table in tables.items():
            table.to_csv(path / f"{name}.csv", index=False)
    joined = None
    if ids == "{1}":
        for said in (None, "Nr"):
            with pytest.raises(ReadingQuestion, match=r"--id school\.Nr; .* --id 1a\.Nr, or --id 1b\.Nr") as asked:
                read(path, label="smokes", id=said)
        joined = asked.value.choices[0]
    reading = read(path, label="smokes", id=joined)
    assert isinstance(reading.graph, Graph)
    assert reading.graph.num_nodes == 40
    assert "2 tables of the same columns are one, school" in reading.says
    kept = read(path, label="smokes", id="1b.Nr")
    assert isinstance(kept.graph, Graph)
    assert (kept.graph.num_nodes, "1a" in kept.says) == (20, True)
    assert len(ties_of(path, "smokes", id=joined)) == sum(len(ties_of(path, "smokes", id=f"{name}.Nr")) for name in tables)


def test_two_of_one_name_are_told_what_tells_them_apart(tmp_path: Path) -> None:
    path = written(tmp_path / "hr.csv", "Employee ID,Name,Grade,Manager", staff(names=[*STAFF[:-1], STAFF[30]]))
    for ends in (None, ["Name", "Manager"]):
        with pytest.raises(DataError, match=r"'Beck, A' appears a second time; .*'Employee ID' tells all rows apart"):
            read(path, label="Grade", ends=ends)


@pytest.mark.parametrize(("listed", "says"), [(True, "empty these cells"), (False, "leave out these lines")])
def test_what_to_do_with_who_is_nobody_is_what_the_table_allows(tmp_path: Path, listed: bool, says: str) -> None:
    if listed:
        lines = [[one, smokes, FRIENDS[one][0], 77] for one, smokes in zip(PUPILS, SMOKES, strict=True)]
        written(tmp_path / "school.csv", "pid,smokes,friend1,friend2", lines)
    else:
        written(tmp_path / "people.csv", "id,smokes", [[one, smokes] for one, smokes in zip(PUPILS, SMOKES, strict=True)])
        pairs: list[list[object]] = [[one, other] for one, own in FRIENDS.items() for other in own]
        written(tmp_path / "ties.csv", "source,target", pairs + [[one, 77] for one in PUPILS])
    with pytest.raises(DataError, match=rf"'77' 60 times .*{says}"):
        read(tmp_path / "school.csv" if listed else tmp_path, label="smokes")


def test_the_column_name_of_people_is_no_feature(tmp_path: Path) -> None:
    people: list[list[object]] = [
        [one, f"Name{row % 9}", smokes] for row, (one, smokes) in enumerate(zip(PUPILS, SMOKES, strict=True))
    ]
    written(tmp_path / "people.csv", "id,Name,smokes", people)
    written(tmp_path / "ties.csv", "source,target", [[one, other] for one, own in FRIENDS.items() for other in own])
    assert "left out Name: its header says who" in str(read(tmp_path, label="smokes").says)


def test_what_those_who_live_together_share_is_no_column(tmp_path: Path) -> None:
    """A meter's number says who is tied to whom; a block in which many live does not."""
    people = [[f"p{row}", "ab"[row % 2], 9000 + row // 3 * 17 % 1000, row // 30, 20 + row % 50] for row in range(120)]
    written(tmp_path / "people.csv", "id,votes,meter,block,age", people)
    written(tmp_path / "homes.csv", "one,two", [[f"p{row}", f"p{row - 1}"] for row in range(120) if row % 3])
    reading = read(tmp_path, label="votes")
    assert isinstance(reading.graph, Graph)
    assert reading.graph.names.columns == ("block", "age")
    assert "meter: ties are between those who have one value of it" in reading.says
    assert reading.graph.columns_from_rows
