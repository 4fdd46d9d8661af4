"""Where two readings are left, what the owner answers holds: whose rows people are, and who stands at the ends of ties."""

from __future__ import annotations

import json
import random
import sqlite3
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from fedgraph.commands import main
from fedgraph.data.own.door import read
from fedgraph.data.own.tables import ReadingQuestion
from fedgraph.errors import DataError
from tests.data.own.clubs import given, graph_of, lines, put, ties_of

N = 60
DRAW = random.Random(7)
NAMES = DRAW.sample(range(1, N + 1), N)  # a permutation: each is the number of a row, too
TIES = sorted({(a, b) for a in range(1, N + 1) for b in DRAW.sample(range(1, N + 1), 3) if a != b} | {(1, N)})
COUNT = Counter(end for tie in TIES for end in tie)
BY_NAME = {frozenset(map(str, tie)) for tie in TIES}
BY_ROW = {frozenset(str(NAMES[end - 1]) for end in tie) for tie in TIES}
LINKS = lines(TIES, "V1,V2")


def people(head: str, *more: dict[int, int], first: int | None = 1) -> str:
    """A row for each, called by a number; first: of the rows' numbers before it, as R and pandas write them."""
    rows = [
        [*([] if first is None else [row + first]), name, 20 + row % 50, "ab"[row % 2], *(own[row + 1] for own in more)]
        for row, name in enumerate(NAMES)
    ]
    return lines(rows, head)


def named(reading_ties: set[frozenset[str]], first: int) -> set[frozenset[str]]:
    """Ties between numbers of rows, as their names."""
    return {frozenset(str(NAMES[int(end) - first]) for end in tie) for tie in reading_ties}


def test_ends_that_are_ids_and_could_be_rows_are_asked_about(tmp_path: Path) -> None:
    files = {"vertices.csv": people('"",name,age,group'), "edges.csv": LINKS}
    with pytest.raises(ReadingQuestion, match=r"vertices.csv: .*'name'.*numbers of rows.*--id name.*--id row") as question:
        given(tmp_path, files, label="group")
    assert (question.value.option, question.value.choices) == ("id", ("name", "row"))
    assert ties_of(read(tmp_path, label="group", id="name")) == BY_NAME


def test_numbers_of_rows_are_read_beside_a_column_without_a_name(tmp_path: Path) -> None:
    reading = given(tmp_path, {"vertices.csv": people('"",name,age,group'), "edges.csv": LINKS}, label="group", id="row")
    assert named(ties_of(reading), 1) == BY_ROW != BY_NAME


def test_rows_that_a_column_numbers_from_1_are_so_although_nobody_names_the_last_one(tmp_path: Path) -> None:
    fewer = [tie for tie in TIES if N not in tie]
    files = {"vertices.csv": people('"",name,age,group'), "edges.csv": lines(fewer, "V1,V2")}
    reading = given(tmp_path, files, label="group", id="row")
    assert named(ties_of(reading), 1) == {frozenset(str(NAMES[end - 1]) for end in tie) for tie in fewer}


@pytest.mark.parametrize("by_row", [True, False])
def test_a_degree_tells_whether_ends_are_rows_or_ids(tmp_path: Path, by_row: bool) -> None:
    of = {row: COUNT[row if by_row else NAMES[row - 1]] for row in range(1, N + 1)}
    files = {"vertices.csv": people('"",name,age,group,degree', of), "edges.csv": LINKS}
    reading = given(tmp_path, files, label="group")
    assert (named(ties_of(reading), 1) if by_row else ties_of(reading)) == (BY_ROW if by_row else BY_NAME)
    assert f"'degree' of vertices.csv is the number of ties only if ends are {'numbers of rows' if by_row else 'ids'}" in str(
        reading
    )


def test_a_degree_that_fits_no_reading_decides_nothing(tmp_path: Path) -> None:
    files = {"vertices.csv": people("name,age,group,degree", dict.fromkeys(range(1, N + 1), 3), first=None)}
    with pytest.raises(ReadingQuestion, match="--id row"):
        given(tmp_path, files | {"edges.csv": LINKS}, label="group")


def test_a_column_that_is_called_id_is_the_id_and_the_other_reading_is_said(tmp_path: Path) -> None:
    reading = given(tmp_path, {"people.csv": people("id,age,group", first=None), "edges.csv": LINKS}, label="group")
    assert ties_of(reading) == BY_NAME
    assert "ends are 'id' of people.csv: if they are numbers of rows, say --id row" in str(reading)
    in_order = lines(((row, 20 + row % 50, "ab"[row % 2]) for row in range(1, N + 1)), "id,age,group")
    assert "--id row" not in str(given(tmp_path, {"people.csv": in_order, "edges.csv": LINKS}, label="group"))


def app(path: Path) -> Path:
    """Messages whose columns are not declared; every table numbers its rows."""
    with sqlite3.connect(path) as data:
        data.executescript(
            "CREATE TABLE users(id integer primary key, born integer, banned text);"
            "CREATE TABLE follows(id integer primary key, one integer references users(id), two integer references users(id));"
            "CREATE TABLE groups(id integer primary key, title text, owner_id integer references users(id));"
            "CREATE TABLE members(user_id integer references users(id), group_id integer references groups(id), role text);"
            "CREATE TABLE messages(id integer primary key, sender_id integer, recipient_id integer);"
        )
        data.executemany("INSERT INTO users VALUES (?, ?, ?)", [(k, 1960 + k % 40, "ab"[k % 2]) for k in range(1, N + 1)])
        data.executemany("INSERT INTO follows VALUES (?, ?, ?)", [(k, *tie) for k, tie in enumerate(reversed(TIES), 1)])
        data.executemany("INSERT INTO groups VALUES (?, ?, ?)", [(k, f"group {k}", k % 3 + 1) for k in range(1, 6)])
        data.executemany("INSERT INTO members VALUES (?, ?, ?)", [(1 + k % N, 1 + k % 5, "member") for k in range(2 * N)])
        data.executemany("INSERT INTO messages VALUES (?, ?, ?)", [(k, *tie) for k, tie in enumerate(TIES, 1)])
    return path


def test_people_are_rows_of_the_table_that_the_owner_names(tmp_path: Path) -> None:
    ends = ["sender_id", "recipient_id"]
    with pytest.raises(ReadingQuestion, match=r"--id users\.id"):
        read(app(tmp_path / "app.db"), label="banned", ends=ends)
    reading = read(tmp_path / "app.db", label="banned", ends=ends, id="users.id")
    assert len(graph_of(reading).ids or ()) == N
    assert ties_of(reading) == BY_NAME
    for other in ("follows", "groups", "members"):
        assert f"{other}: " in str(reading) or f"{other} (" in str(reading)


BOSSES = {row: 0 if row < 4 else DRAW.randrange(row) for row in range(N)}
BOSS_TIES = {frozenset((f"c{row:03}x", f"c{boss:03}x")) for row, boss in BOSSES.items() if row}
FIRMS = 100
CRM = {
    "Accounts.csv": lines(
        ((f"f{k}y", f"Firm {k}", f"f{k // 3}y" if k > 3 else "", 10 + k) for k in range(FIRMS)),
        "Account ID,Account Name,Parent Account ID,Employees",
    ),
    "Contacts.csv": lines(
        ((f"c{k:03}x", f"f{k % 40}y", f"c{boss:03}x" if k else "", 1 + k % 5, "ab"[k % 2]) for k, boss in BOSSES.items()),
        "Contact ID,Account ID,Reports To ID,Satisfaction,Renewal",
    ),
}


@pytest.mark.parametrize(
    "said",
    [
        {"id": "Contacts.Contact ID"},
        {"id": "Contact ID"},
        {"ends": ["Contact ID", "Reports To ID"]},
        {"ends": ["Contact ID", "Reports To ID"], "id": "Contact ID"},
        {"ends": ["Contact ID", "Reports To ID"], "id": "Contacts.Contact ID"},
    ],
)
def test_of_two_tables_that_list_their_own_rows_the_owner_chooses(tmp_path: Path, said: dict[str, object]) -> None:
    reading = given(tmp_path, CRM, label="Renewal", **said)
    assert ties_of(reading) == BOSS_TIES
    assert len(graph_of(reading).ids or ()) == N
    assert "Accounts.csv" in str(reading)


def test_two_tables_that_list_their_own_rows_are_asked_about(tmp_path: Path) -> None:
    with pytest.raises(ReadingQuestion, match=r"--id 'accounts.Account ID'.*--id 'contacts.Contact ID'"):
        given(tmp_path, CRM, label="Renewal")


NOTES = '\n\n"Contacts with Reports To"\n"Copyright (c) 2000-2026. All rights reserved."\n"Example Corp"\n'
TABLE = lines(((f"p{k}", 20 + k, "ab"[k % 2]) for k in range(30)), "id,age,group")
RING = lines(((f"p{k}", f"p{(k + 1) % 30}") for k in range(30)), "source,target")


def test_notes_below_a_table_are_left_out_and_said(tmp_path: Path) -> None:
    reading = given(tmp_path, {"people.csv": TABLE + NOTES, "edges.csv": RING}, label="group")
    assert len(graph_of(reading).ids or ()) == 30
    assert "3 lines below the table left out, 'Contacts with Reports To'" in str(reading)


@pytest.mark.parametrize("more", ["p30\n", "p30\np31\n", "\n" + "".join(f"note {k}\n" for k in range(11))])
def test_rows_that_were_cut_off_and_many_lines_are_no_notes(tmp_path: Path, more: str) -> None:
    with pytest.raises(DataError, match=r"people.csv:\d+: 1 column; allowed: 3"):
        given(tmp_path, {"people.csv": TABLE + more, "edges.csv": RING}, label="group")


def test_notes_stand_below_sums_too(tmp_path: Path) -> None:
    total = f"Total,{sum(20 + k for k in range(30))},\n"
    reading = given(put(tmp_path, {"edges.csv": RING}), {"people.csv": TABLE + total + NOTES, "edges.csv": RING}, label="group")
    assert len(graph_of(reading).ids or ()) == 30
    assert "was taken for sums of the others" in str(reading)


TWO = {
    "users.csv": lines(((k, 20 + k % 9, "ab"[k % 2]) for k in range(1, N + 1)), "id,age,group"),
    "friends.csv": lines(TIES, "user_a,user_b"),
    "blocks.csv": lines(TIES[:40], "user_one,user_two"),
}
SHIFTS = {
    "staff.csv": lines(((k, "ab"[k % 2]) for k in range(1, N + 1)), "staff_no,group"),
    "shifts.csv": lines((("2026-02-16", a, 1 + b % 7) for a, b in TIES), "date,staff_no,ward"),
}


@pytest.mark.parametrize(
    ("files", "words", "ends"),
    [
        (TWO, "friends.csv", ["user_a", "user_b"]),
        (TWO, "user_one user_two", ["user_one", "user_two"]),
        (SHIFTS, "yes", ["staff_no", "ward"]),
    ],
)
def test_a_question_is_answered_by_columns_the_name_of_a_table_or_yes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], words: str, ends: list[str]
) -> None:
    def answer(self: Console, question: object, **_: object) -> str:
        return words if "(--ends)" in str(question) else ""

    put(tmp_path / "app", files)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(Console, "input", answer)
    assert main(["new", "--no-probe", "--graph", "app", "--label", "group", "--trust", "curator", "--unit", "node"]) == 0
    (written,) = yaml.safe_load((tmp_path / "app.yaml").read_text(encoding="utf-8"))["datasets"]
    assert written["parameters"]["ends"] == ends


TEAM = [[f"P{one}" for one in DRAW.sample(range(40), 3)] for _ in range(60)]
PLAYERS = lines(((f"P{k}", "ab"[k % 2], 20 + k * 7 % 23) for k in range(40)), "id,club,age")


@pytest.mark.parametrize("form", ["P{}", "{}"])
@pytest.mark.parametrize("head", ["member_1,member_2,member_3", "id1,id2,id3", "player_1,player_2,player_3", "cards.json"])
def test_more_than_two_columns_of_equals_are_no_ends(tmp_path: Path, head: str, form: str) -> None:
    rows = [(f"c{row}", *(form.format(one[1:]) for one in some)) for row, some in enumerate(TEAM)]
    if head == "cards.json":
        rows = [{"id": row, "members": some} for row, *some in rows]
        files = {head: json.dumps({"members": [{"id": form.format(k), "club": "ab"[k % 2]} for k in range(40)], "cards": rows})}
    else:
        files = {"players.csv": PLAYERS.replace("P", form[:-2]), "teams.csv": lines(rows, f"team,{head}")}
    with pytest.raises(DataError, match=r"people in each row; allowed: a table source,target of the pairs"):
        given(tmp_path, files, label="club")


@pytest.mark.parametrize("form", ["P{}", "{}"])
@pytest.mark.parametrize("count", [2, 3])
def test_whom_each_of_a_second_table_names_are_not_tied_to_each_other(tmp_path: Path, count: int, form: str) -> None:
    rows = [(form.format(k), *(form.format((k + step) % 40) for step in (1, 5, 11)[:count])) for k in range(40)]
    head = ",".join(["id", *(f"friend{k}" for k in range(1, count + 1))])
    with pytest.raises(DataError, match="id and friend1 or id and friend2" if count == 2 else "or of 'id' and each of these"):
        given(tmp_path, {"people.csv": PLAYERS.replace("P", form[:-2]), "friends.csv": lines(rows, head)}, label="club")


@pytest.mark.parametrize("form", ["P{}", "{}"])
@pytest.mark.parametrize("head", ["captain,crew_1,crew_2", "parent1,parent2,child", "host,player_1,player_2"])
def test_one_who_stands_beside_two_equals_is_asked_about(tmp_path: Path, head: str, form: str) -> None:
    rows = [(row, *(form.format(one[1:]) for one in some), row * 3 % 7) for row, some in enumerate(TEAM[:41])]
    files = {"players.csv": PLAYERS.replace("P", form[:-2]), "teams.csv": lines(rows, f"row,{head},points")}
    with pytest.raises(ReadingQuestion, match=r"which columns are the ends of ties: .* write all pairs") as question:
        given(tmp_path, files, label="club")
    one, *two = sorted(head.split(","), key=lambda name: name[-1].isdigit())
    assert question.value.choices == ((one, two[0]), (one, two[1]), tuple(two))
    own = [head.split(",").index(name) + 1 for name in (one, two[0])]
    assert ties_of(read(tmp_path, label="club", ends=[one, two[0]])) == {frozenset(str(row[k]) for k in own) for row in rows}


MATES = [(f"P{one}", f"P{(one + step) % 40}") for one in range(40) for step in (1, 3)]


@pytest.mark.parametrize("rows", [MATES, MATES[:60:2]])  # several rows of a person, or one
@pytest.mark.parametrize("head", ["member,lives_with", "person_1,person_2", "a,b", "who,whom,since"])
def test_a_second_table_of_two_columns_of_people_holds_ties_too(tmp_path: Path, head: str, rows: list[tuple[str, str]]) -> None:
    more = [(*pair, 2020)[: head.count(",") + 1] for pair in rows]
    files = {"people.csv": PLAYERS, "homes.csv": lines(more, head), "mails.csv": lines(MATES[::3], "sender,recipient")}
    with pytest.raises(DataError, match=r"several files hold ties: homes\.csv, mails\.csv"):
        given(tmp_path, files, label="club")


@pytest.mark.parametrize(
    ("head", "asked"), [("friend", True), ("Partner", True), ("Wichtelt_fuer", True), ("Startnummer", False)]
)
def test_numbers_of_others_who_are_each_named_once_are_asked_about(tmp_path: Path, head: str, asked: bool) -> None:
    rows = [(101 + k, "ab"[k % 2], 20 + k * 7 % 23, 101 + (k + 3) % 40) for k in range(40)]
    with pytest.raises(DataError, match=f"does '{head}' say whom each of 'no' is" if asked else "no table of ties was"):
        given(tmp_path, {"people.csv": lines(rows, f"no,club,age,{head}")}, label="club")
    assert len(ties_of(read(tmp_path, label="club", ends=["no", head]))) == 40
