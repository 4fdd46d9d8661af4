"""Which columns are the ends of ties: not by a few cells that name nobody, and not where they name other things than people."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedgraph.data.own.tables import ReadingQuestion
from fedgraph.errors import DataError
from tests.data.own.clubs import given, lines, ties_of

N = 40
EVERY = [("Lender", "Borrower"), ("Lender", "Witness"), ("Borrower", "Witness")]
THREE = [(k % N, (7 * k + 3) % N, (11 * k + 5) % N) for k in range(100)]


@pytest.mark.parametrize(
    ("who", "nobody", "each", "place"),
    [
        ("Kim {}", "unbekannt", 100, 1),
        ("Kim {}", "w/o", 20, 1),
        ("Kim {}", "{}x", 3, 0),
        ("Kim {}", "?", 5, 2),
        ("7{:03}", "99", 9, 1),
    ],
)
def test_a_few_who_are_nobody_do_not_decide_which_columns_are_ends(
    who: str, nobody: str, each: int, place: int, tmp_path: Path
) -> None:
    people = lines(((who.format(k), "ab"[k % 2]) for k in range(N)), "Name,city")
    rows = [[who.format(one) for one in row] for row in THREE]
    told = [
        [nobody.format(k) if k % each == 1 and at == place else one for at, one in enumerate(row)] for k, row in enumerate(rows)
    ]
    files = {
        "people.csv": people,
        "loans.csv": lines(([k + 900, *row] for k, row in enumerate(told)), "Loan,Lender,Borrower,Witness"),
    }
    with pytest.raises(ReadingQuestion, match="Lender and Borrower or Lender and Witness or Borrower and Witness") as asked:
        given(tmp_path, files)
    assert list(asked.value.choices) == EVERY
    for one, two in EVERY:
        a, b = (["Lender", "Borrower", "Witness"].index(name) for name in (one, two))
        if place in (a, b):
            with pytest.raises(DataError, match=f"unknown node '{nobody.format(1)}'"):
                given(tmp_path, files, ends=[one, two])
        else:
            assert ties_of(given(tmp_path, files, ends=[one, two])) == {
                frozenset((row[a], row[b])) for row in rows if row[a] != row[b]
            }


def rows_of(name: str, head: str, count: int = N, form: str = "{}") -> dict[str, str]:
    return {f"{name}.csv": lines(((form.format(k + 1), "ab"[k % 2]) for k in range(count)), head)}


@pytest.mark.parametrize(
    ("files", "ties", "asked", "person"),
    [
        (rows_of("pupils", "id,class") | rows_of("teachers", "id,subject"), "teacher_id,pupil_id", True, "pupil_id"),
        (rows_of("users", "id,zone") | rows_of("vehicles", "id,kind"), "vehicle_id,owner_id", True, "owner_id"),
        (rows_of("authors", "author_id,field") | rows_of("papers", "paper_id,venue"), "paper_id,author_id", False, "author_id"),
        (rows_of("notes", "noteId,kind", form="{}000"), "noteId,raterParticipantId", False, "raterParticipantId"),
    ],
)
def test_pairs_are_of_people_and_not_of_what_they_share(
    files: dict[str, str], ties: str, asked: bool, person: str, tmp_path: Path
) -> None:
    own = "{}000" if "notes.csv" in files else "{}"
    rows = [(own.format(a % N + 1), f"A{b}" if "notes.csv" in files else b % N + 1, c) for a, b, c in THREE]
    told = {"id": f"{next(iter(files))[:-4]}.id", "ends": ties.split(",")} if asked else {}
    with pytest.raises(DataError, match=f"SELECT DISTINCT a.{person} AS source, b.{person} AS target"):
        given(tmp_path, files | {"lists.csv": lines(rows, f"{ties},more")}, **told)


def test_a_column_that_names_rows_of_others_is_no_end_that_is_offered(tmp_path: Path) -> None:
    trips = {
        "trips.csv": lines(
            ([k, a + 1, *(one + 1 for one in THREE[k])] for k, a in enumerate(range(N))),
            "id,vehicle_id,owner_id,renter_id,approved_by",
        )
    }
    with pytest.raises(
        ReadingQuestion, match="ties: owner_id and renter_id or owner_id and approved_by or renter_id and approved_by"
    ):
        given(tmp_path, rows_of("users", "id,zone") | rows_of("vehicles", "id,kind") | trips)


@pytest.mark.parametrize("stranger", [[], [("BYE", "P1", "P1")]])
def test_a_header_stays_one_where_a_cell_below_is_unknown(stranger: list[tuple[str, ...]], tmp_path: Path) -> None:
    rows = [(f"P{a}", f"P{b}", f"P{a}") for a, b, _ in THREE] + stranger
    files = {"players.csv": lines(((f"P{k}", "ab"[k % 2]) for k in range(N)), "player,club")}
    files["matches.csv"] = lines(rows, "home,away,winner")
    if stranger:
        with pytest.raises(DataError, match=r"matches.csv:102: unknown node 'BYE'; allowed: [^\n]*$") as wrong:
            given(tmp_path, files)
        assert "home" not in str(wrong.value)
    else:
        assert "not used column 'winner' of matches.csv" in given(tmp_path, files).says


@pytest.mark.parametrize("nobody", ["-1", "0", "99"])
def test_a_number_for_nobody_is_never_said_to_be_somebody(nobody: str, tmp_path: Path) -> None:
    ties = lines([*((a + 1, b + 1) for a, b, _ in THREE), (nobody, 1), (nobody, 2)], "source,target")
    with pytest.raises(DataError, match=f"unknown node '{nobody}'") as wrong:
        given(tmp_path, rows_of("people", "id,zone") | {"ties.csv": ties})
    assert "written" not in str(wrong.value)


@pytest.mark.parametrize("ends", [None, ("Nr", "Wahl 1")])
def test_numbers_that_begin_anew_in_each_class_are_nobody_for_sure(ends: tuple[str, str] | None, tmp_path: Path) -> None:
    rows = [(name, k + 1, (k + 1) % 12 + 1, (k + 3) % 12 + 1) for name in ("5a", "5b") for k in range(12)]
    with pytest.raises(DataError, match="'Nr' counts anew in each 'Klasse'"):
        given(tmp_path, {"k.csv": lines(rows, "Klasse;Nr;Wahl 1;Wahl 2", ";")}, ends=ends)
    read = given(tmp_path, {"k.csv": lines((row[1:] for row in rows[:12]), "Nr;Wahl 1;Wahl 2", ";")})
    assert ties_of(read) == {frozenset(map(str, (k, one))) for _, k, *own in rows for one in own}


def test_a_list_in_a_cell_of_an_end_is_a_tie_each_though_some_have_no_row(tmp_path: Path) -> None:
    papers = [{"id": f"x{k}", "references": [f"x{(k + j) % N}" for j in range(1, 3 + k % 2)] + [f"y{k}"]} for k in range(N)]
    text = "\n".join(map(json.dumps, papers))
    read = given(tmp_path, {"papers.jsonl": text}, ends=["id", "references"], label="")
    assert ties_of(read) == {frozenset((str(one["id"]), other)) for one in papers for other in one["references"]}


def test_addresses_with_more_beside_are_no_people(tmp_path: Path) -> None:
    rows = [(f"p{a}@x.at", f'"p{b}@x.at##Receive, Deliver;p{c}@x.at##Fail"') for a, b, c in THREE]
    with pytest.raises(DataError, match="'status' hold addresses and more"):
        given(tmp_path, {"trace.csv": lines(rows, "sender,status")}, ends=["sender", "status"])


def test_one_group_in_another_does_not_make_groups_people(tmp_path: Path) -> None:
    rows = [(f"g{k % 5}@x", f"p{k}@x") for k in range(60)] + [("g0@x", "g1@x")]
    told = given(tmp_path, {"groups.csv": lines(rows, "group,email")}, ends=["group", "email"], label="").says
    assert "hardly anybody stands in both 'group' and 'email'" in told


def test_two_choices_of_each_are_offered_with_who_chose(tmp_path: Path) -> None:
    rows = [(k + 1, k % 12 + 1, (5 * k + 3) % 11 + 1) for k in range(N)]
    files = {"k.csv": lines(rows, "Nr,Wahl 1,Wahl 2")}
    with pytest.raises(ReadingQuestion, match="are 'Nr' and 'Wahl 1' the ends of ties") as asked:
        given(tmp_path, files)
    assert list(asked.value.choices) == [("Nr", "Wahl 1"), ("Nr", "Wahl 2"), ("Wahl 1", "Wahl 2")]
    read = given(tmp_path, files, ends=["Nr", "Wahl 1"], label="")
    assert ties_of(read) == {frozenset(map(str, row[:2])) for row in rows if row[0] != row[1]}


@pytest.mark.parametrize("each", [2, 5])
def test_who_left_does_not_decide_which_columns_name_rows_of_users(each: int, tmp_path: Path) -> None:
    rows = [(k + 500, a + 1, 900 + k if k % each == 1 else b + 1, c + 1) for k, (a, b, c) in enumerate(THREE)]
    loans = {"loans.csv": lines(rows, "id,lender_user_id,borrower_user_id,witness_user_id")}
    with pytest.raises(
        ReadingQuestion, match="ends of ties: lender_user_id and borrower_user_id or lender_user_id and witness"
    ):
        given(tmp_path, rows_of("users", "id,zone") | loans)
