"""Tables of a database that name each other's rows: who the people are, and which rows are their ties."""

from __future__ import annotations

import json
import random
import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedgraph.data import read
from fedgraph.data.own.tables import ReadingQuestion
from fedgraph.errors import DataError
from tests.data.own.clubs import facts, graph_of, ties_of

COUNT = 60
DRAW = random.Random(1)
USERS = pd.DataFrame({"id": range(1, COUNT + 1), "age": [DRAW.randint(18, 60) for _ in range(COUNT)]})
USERS["party"] = [DRAW.choice(["red", "blue"]) for _ in range(COUNT)]
COMPANIES = pd.DataFrame({"id": range(1, 41), "branch": [DRAW.choice("abc") for _ in range(40)]})
PAIRS = [(min(pair), max(pair)) for pair in (DRAW.sample(range(1, COUNT + 1), 2) for _ in range(150))]
TRUTH = {frozenset(map(str, pair)) for pair in PAIRS}


def rows(one: str, two: str, pairs: list[tuple[int, int]] = PAIRS, first: int = 1) -> pd.DataFrame:
    """A table of ties as databases hold it, with ids of its own."""
    found = pd.DataFrame(pairs, columns=[one, two])
    found.insert(0, "id", range(first, first + len(found)))
    return found.assign(since=[f"2024-0{1 + place % 9}-11" for place in range(len(found))])


def folder(into: Path, **tables: pd.DataFrame) -> Path:
    for name, table in tables.items():
        table.to_csv(into / f"{name}.csv", index=False)
    return into


def of_two(first: str, other: str) -> pd.DataFrame:
    """A table that joins users and something else."""
    return rows(first, other, [(1 + place % COUNT, 1 + place % 40) for place in range(200)])


@pytest.mark.parametrize(
    ("people", "ties", "ends", "first"),
    [
        ("users", "friendships", ("user_a", "user_b"), 1),
        ("users", "friendships", ("user_a", "user_b"), 1000),
        ("person", "friendship", ("person_id", "other_person_id"), 1),
        ("users", "friendships", ("user_id", "friend_id"), 1),
        ("companies", "orders", ("from_company", "to_company"), 1),
        ("users_202401011200", "follows_202401011200", ("user1Id", "user2Id"), 1),
        ("public.bank_accounts", "public.transfers", ("src_account_id", "dst_account_id"), 1),
    ],
)
@pytest.mark.parametrize("count", [150, 40])  # as few as the people themselves
def test_rows_of_a_table_of_ties_are_no_people(
    people: str, ties: str, ends: tuple[str, str], first: int, count: int, tmp_path: Path
) -> None:
    reading = read(folder(tmp_path, **{people: USERS, ties: rows(*ends, PAIRS[:count], first)}))
    assert ties_of(reading) == {frozenset(map(str, pair)) for pair in PAIRS[:count]}
    assert f"between {ends[0]!r} and {ends[1]!r}" in reading.says


def test_other_things_of_a_database_are_no_facts_of_people(tmp_path: Path) -> None:
    users = USERS.assign(company_id=[1 + place % 40 for place in range(COUNT)])
    profiles = pd.DataFrame({"id": range(1, 61), "user_id": range(60, 0, -1), "score": np.arange(60) / 7})
    posts = pd.DataFrame({"id": range(1, 201), "author_id": [1 + place % 9 for place in range(200)]})
    tables = {"users": users, "companies": COMPANIES, "profiles": profiles, "posts": posts}
    reading = read(folder(tmp_path, **tables, friendships=rows("user_a", "user_b"), members=of_two("user_id", "company_id")))
    assert ties_of(reading) == TRUTH
    assert graph_of(reading).names.columns == ("age", "score")
    assert graph_of(reading).features.toarray()[:, 1] == pytest.approx(np.arange(59, -1, -1) / 7)
    for said in (
        "company_id: it names rows of companies.csv",
        "companies.csv: rows of other things than users.csv, numbered by 'id'; members.csv names them in 'company_id'",
        "members.csv: several rows for one of users.csv, named by 'user_id'",
        "posts.csv: rows of other things",
    ):
        assert said in reading.says


def test_what_a_database_declares_goes_before_names(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "all.db3") as opened:
        opened.executescript(
            "CREATE TABLE wer (pk INTEGER PRIMARY KEY, alt INT, gruppe TEXT);"
            "CREATE TABLE kennt (pk INTEGER PRIMARY KEY, x INT REFERENCES wer (pk), y INT REFERENCES wer (pk));"
        )
        opened.executemany("INSERT INTO wer VALUES (?, ?, ?)", USERS.values.tolist())
        opened.executemany("INSERT INTO kennt (x, y) VALUES (?, ?)", PAIRS)
    opened.close()
    assert ties_of(read(tmp_path / "all.db3")) == TRUTH


def test_a_table_that_joins_people_and_things_is_refused_or_asked_about(tmp_path: Path) -> None:
    with pytest.raises(ReadingQuestion, match="are 'user_id' and 'invoice_id' both rows") as asked:
        read(folder(tmp_path, users=USERS, purchases=of_two("user_id", "invoice_id")))
    assert asked.value.choices == (("user_id", "invoice_id"),)
    (tmp_path / "purchases.csv").unlink()
    says = r"'user_id' names rows of users.csv and 'company_id' rows of companies.csv.*SELECT DISTINCT a.user_id"
    with pytest.raises(DataError, match=says):
        read(folder(tmp_path, users=USERS, companies=COMPANIES, jobs=of_two("user_id", "company_id")))


def test_of_two_tables_of_ties_one_is_asked_for_and_the_other_put_aside(tmp_path: Path) -> None:
    other = rows("from_user", "to_user", [(1, 2), (2, 3), (3, 4)])
    with pytest.raises(ReadingQuestion, match=r"friendships.csv \(user_a, user_b\) or messages.csv \(from_user, to_user\)"):
        read(folder(tmp_path, users=USERS, friendships=rows("user_a", "user_b"), messages=other))
    assert ties_of(read(tmp_path, ends=["user_a", "user_b"])) == TRUTH
    reading = read(tmp_path, ends=["from_user", "to_user"])
    assert ties_of(reading) == {frozenset(pair) for pair in ("12", "23", "34")}
    assert "friendships.csv: ties of another kind" in reading.says


@pytest.mark.parametrize(("other", "size"), [("employees", COUNT), ("companies", 40)])
def test_two_tables_that_may_be_the_people_are_asked_about(other: str, size: int, tmp_path: Path) -> None:
    rival = USERS.assign(party=USERS["party"][::-1].tolist())[:size]
    tables = {"customers": USERS, other: rival, "contacts": rows("a_id", "b_id")}
    with pytest.raises(ReadingQuestion, match=f"customers.id, or --id {other}.id") as asked:
        read(folder(tmp_path, **tables))
    reading = read(tmp_path, id=str(asked.value.choices[0]))
    _, ties, classes, _ = facts(graph_of(reading))
    assert (ties, [classes[str(k)] for k in range(1, COUNT + 1)]) == (TRUTH, USERS["party"].tolist())
    assert f"{other}.csv: rows of other things than customers.csv, as --id says" in reading.says


def test_a_table_whose_two_columns_name_users_needs_no_question_about_others(tmp_path: Path) -> None:
    groups = pd.DataFrame(
        {"user_id": [1 + place % COUNT for place in range(200)], "group_id": [1 + place % 40 for place in range(200)]}
    )
    with sqlite3.connect(tmp_path / "app.db") as held:
        held.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, age INTEGER, party TEXT)")
        held.execute(
            "CREATE TABLE friendships (id INTEGER PRIMARY KEY, user_id REFERENCES users(id), friend_id REFERENCES users(id))"
        )
        held.execute("CREATE TABLE user_groups (user_id REFERENCES users(id), group_id INTEGER)")
        held.executemany("INSERT INTO users VALUES (?, ?, ?)", USERS.values.tolist())
        held.executemany("INSERT INTO friendships VALUES (?, ?, ?)", [(k, *pair) for k, pair in enumerate(PAIRS)])
        held.executemany("INSERT INTO user_groups VALUES (?, ?)", groups.values.tolist())
    assert ties_of(read(tmp_path / "app.db", label="party").graph) == TRUTH


def test_ids_of_a_table_that_count_no_rows_are_people_in_both_columns(tmp_path: Path) -> None:
    people = USERS.assign(id=USERS["id"] * 3 + 109348712345678000)
    follows = rows("account_id", "target_account_id")[["account_id", "target_account_id"]] * 3 + 109348712345678000
    found = ties_of(read(folder(tmp_path, accounts=people, follows=follows), label="party"))
    assert found == {frozenset(str(int(one) * 3 + 109348712345678000) for one in pair) for pair in TRUTH}


def test_why_no_ties_are_found(tmp_path: Path) -> None:
    twice, lists = tmp_path / "twice", tmp_path / "lists"
    twice.mkdir()
    lists.mkdir()
    folder(twice, providers=pd.concat([USERS.assign(id=USERS["id"] + 5000)] * 2).iloc[:80].rename(columns={"id": "NPI"}))
    referrals = rows("referring_npi", "referred_to_npi").drop(columns="id")
    referrals[["referring_npi", "referred_to_npi"]] += 5000
    folder(twice, referrals=referrals)
    with pytest.raises(
        DataError, match=r"'NPI' names 60 people on 80 lines \('5001': 2\), whom 'referring_npi' and .* one line for each"
    ):
        read(twice, label="party")
    papers = pd.DataFrame(
        {
            "title": [f"On {k}" for k in range(90)],
            "year": 2024,
            "by": [f"{one + 5000}; {two + 5000};" for one, two in PAIRS[:90]],
        }
    )
    folder(lists, authors=USERS.assign(id=USERS["id"] + 5000), papers=papers)
    with pytest.raises(DataError, match=r"'by' lists ids of authors.csv, .* pairs of those who stand in one list"):
        read(lists, label="party")


def test_numbers_that_begin_with_0_are_codes(tmp_path: Path) -> None:
    codes, months = (
        [f"{1997 + place % 3 * 4000:05}" for place in range(COUNT)],
        [f"{1 + place % 9:02}" for place in range(COUNT)],
    )
    folder(tmp_path, users=USERS.assign(tariff=codes, month=months), friendships=rows("user_a", "user_b"))
    said = str(read(tmp_path, label="party", columns={"text": "one-hot"}).says)
    assert "tariff  text    3 texts: 01997, 05997, 09997" in said
    assert "month   number  1 … 9" in said
    said = str(read(tmp_path, label="party", columns={"bounds": {"tariff": [0, 20000]}}).says)
    assert "cut to 0 … 20000" in said, "whose bounds are given, it is a number whatever others have"


@pytest.mark.parametrize("declared", [False, True])
def test_rows_that_answer_rows_are_no_people(tmp_path: Path, declared: bool) -> None:
    refers = (" REFERENCES comments(id)", " REFERENCES users(id)") if declared else ("", "")
    with sqlite3.connect(tmp_path / "forum.db") as held:
        held.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, age INTEGER, party TEXT)")
        held.execute(
            f"CREATE TABLE comments (id INTEGER, parent_id INTEGER{refers[0]}, user_id INTEGER{refers[1]}, words INTEGER)"
        )
        held.executemany("INSERT INTO users VALUES (?, ?, ?)", USERS.values.tolist())
        written = [(row, row // 2 or None, DRAW.randint(1, COUNT), DRAW.randint(1, COUNT)) for row in range(1, 50)]
        held.executemany("INSERT INTO comments VALUES (?, ?, ?, ?)", written)
    for ends in (None, ["parent_id", "user_id"]):
        with pytest.raises(
            DataError, match=r"'parent_id' names the row that a row answers, .* JOIN comments b ON a\.parent_id = b\.id"
        ):
            read(tmp_path / "forum.db", label="party", ends=ends)


def test_two_columns_of_small_numbers_are_asked_about(tmp_path: Path) -> None:
    folder(tmp_path, users=USERS, notes=pd.DataFrame(PAIRS, columns=["user_id", "words"]).assign(title="x"))
    with pytest.raises(ReadingQuestion, match="are 'user_id' and 'words' both"):
        read(tmp_path, label="party")


def test_who_wrote_an_answer_stands_in_its_row(tmp_path: Path) -> None:
    told = [
        {"id": k, "from": f"m {k % 9}", "from_id": f"user{k % 9}", "reply_to_message_id": k // 2 or None} for k in range(1, 50)
    ]
    told[0] |= {"members": ["m 1", "m 2"], "reply_to_message_id": None}
    (tmp_path / "result.json").write_text(json.dumps({"name": "club", "messages": told}), encoding="utf-8")
    with pytest.raises(DataError, match=r"SELECT a\.from_id AS source, b\.from_id AS target"):
        read(tmp_path / "result.json")
