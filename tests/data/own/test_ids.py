"""Ids of two tables that do not match (written by another rule, lacking rows, empty at one end), or match by chance alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedgraph.data.own.door import read
from fedgraph.data.own.reading import Reading
from fedgraph.data.own.tables import ReadingQuestion
from fedgraph.errors import DataError
from tests.data.own.clubs import given, graph_of, lines, put, ring, ties_of

N = 120
PAIRS = [(k, (k * 7 + 3) % N) for k in range(N)]
TIES = lines(PAIRS, "source,target")
AGES = lines(((k, 20 + k % 50) for k in range(N)), "id,age")


def club(people: Callable[[int], str], ends: Callable[[int], str]) -> Reading:
    """People of whom one table writes ids so, and that of ties otherwise."""
    table = {"id": map(people, range(N)), "age": [20 + k % 50 for k in range(N)], "group": ["a", "b"] * (N // 2)}
    ties = pd.DataFrame([(ends(a), ends(b)) for a, b in PAIRS], columns=["von", "an"])
    return read((pd.DataFrame(table), ties), label="group", ends=["von", "an"])


def iban(k: int) -> str:
    return f"DE{k % 97:02} 1234 {k:04} 00{k % 7}1"


RULES: dict[str, tuple[Callable[[int], str], Callable[[int], str]]] = {
    "zeros in front": ("{:04}".format, "{}".format),
    "spaces": (iban, lambda k: iban(k).replace(" ", "")),
    "capitals": ("m{}x".format, "M{}X".format),
    "capitals, spaces, signs and zeros in front": ("A-{:03}".format, "a{}".format),
}


@pytest.mark.parametrize("what", RULES)
@pytest.mark.parametrize("turned", [False, True])
def test_ids_that_one_rule_tells_are_matched_and_it_is_said(what: str, turned: bool) -> None:
    people, ends = RULES[what][::-1] if turned else RULES[what]
    reading = club(people, ends)
    assert ties_of(reading) == {frozenset((people(a), people(b))) for a, b in PAIRS if a != b}
    assert "ids in the table of edges are written otherwise than in 'id' of the table of nodes, such as " in reading.says
    assert f"they were matched without {what}" in str(reading)


def test_a_part_that_lost_its_zeros_is_matched_too(tmp_path: Path) -> None:
    """Of 120 numbers with three digits 20 are written alike."""
    reading = club("{:03}".format, "{}".format)
    assert len(ties_of(reading)) == len({frozenset(pair) for pair in PAIRS if len(set(pair)) == 2})
    assert f"{N - 20} of {N} ids in the table of edges are written otherwise" in reading.says
    people = lines(((f"{k:03}", 20 + k % 50) for k in range(N)), "id,age")
    labels = lines(((k, "ab"[k % 2]) for k in range(N)), "id,group")
    ties = lines(((f"{a:03}", f"{b:03}") for a, b in PAIRS), "source,target")
    reading = given(tmp_path, {"people.csv": people, "ties.csv": ties, "labels.csv": labels})
    assert (graph_of(reading).labels >= 0).all()
    assert "100 of 120 ids in labels.csv are written otherwise than in 'id' of people.csv" in reading.says


def test_one_person_may_be_written_in_two_ways_where_spaces_alone_differ() -> None:
    reading = club(iban, lambda k: iban(k) if k % 3 else iban(k).replace(" ", ""))
    assert ties_of(reading) == {frozenset((iban(a), iban(b))) for a, b in PAIRS if a != b}
    people = pd.DataFrame({"id": [f"{k:04}" for k in range(N)], "group": ["a", "b"] * (N // 2)})
    both = pd.DataFrame([(f"{a:04}", str(b)) for a, b in PAIRS], columns=["source", "target"])
    with pytest.raises(DataError, match=r"Are ids written otherwise there"):  # 7 and 0007 may be two
        read((people, both), label="group")


@pytest.mark.parametrize("ends", [None, ["Auftraggeber", "Empfaenger"]])
def test_ids_without_zeros_are_matched_where_each_stands_in_one_line(ends: list[str] | None, tmp_path: Path) -> None:
    people = lines(((f"{1000 + k:010}", "xy"[k % 2]) for k in range(N)), "Debitor;Gruppe", ";")
    sold = lines(((45000 + k, 1000 + a, 1000 + b) for k, (a, b) in enumerate(PAIRS)), "Beleg;Auftraggeber;Empfaenger", ";")
    reading = given(tmp_path, {"kna1.csv": people, "vbpa.csv": sold}, label="Gruppe", ends=ends)
    assert ties_of(reading) == {frozenset((f"{1000 + a:010}", f"{1000 + b:010}")) for a, b in PAIRS if a != b}
    assert "were matched without zeros in front" in reading.says


@pytest.mark.parametrize(
    ("people", "ends", "says"),
    [
        (lambda k: f"{k // 2}" if k % 2 else f"0{k // 2}", lambda k: f"00{k // 2}",
         r"By no rule all are somebody, and each one: write ids alike"),
        (str, lambda k: str(k + 40), r"^the table of edges:.*unknown node '1.*it and 39 more of 120 that ties name.*whose 120 "
         r"ids in column 'id' are such as '0', '1', '2'.*Are rows missing there \(a page of an answer, a filter\)\?"),
        ("M-{}".format, "https://x/{}/y".format, "ids of another kind: is another column the id"),
        (str, lambda k: "" if k % 10 == 3 else str(k), r"the table of edges:1: an empty cell in column 'von' or 'an', as in 24 "
         r"of 120 lines \(so 4, 11, 14, 21, 24, 31, 34, 41, …\); allowed: both ends of a tie, or no such line$"),
        (str, lambda k: "NULL" if k % 10 == 3 else str(k), "edges:1: an empty cell in column 'von' or 'an', as in 24"),
    ],
)  # fmt: skip
def test_ids_that_no_rule_matches_are_one_line(people: Callable[[int], str], ends: Callable[[int], str], says: str) -> None:
    with pytest.raises(DataError, match=says) as caught:
        club(people, ends)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("write", [int, "{:.15g}".format, lambda one: int(float(f"{one:.15g}"))])
@pytest.mark.parametrize("digits", [16, 18, 19])
def test_long_ids_of_which_a_spreadsheet_keeps_fifteen_digits_are_refused(
    digits: int, write: Callable[[int], object], tmp_path: Path
) -> None:
    long = (str(write(3 * 10 ** (digits - 1) + 12345 + 10 * k)).upper() for k in range(30))
    put(tmp_path, {"ties.csv": lines(((one, f"u{k}") for k, one in enumerate(long)), "source,target")})
    if write is int:
        assert graph_of(read(tmp_path, ends=["source", "target"])).num_nodes == 60
    else:
        with pytest.raises(DataError, match=r"in column 'source' is a number that a spreadsheet shortened, so different"):
            read(tmp_path, ends=["source", "target"])


@pytest.mark.parametrize(
    ("forms", "more"),
    [
        (["+34600{:06}", "0034600{:06}", "600{:06}", "+34 600 {:06}"], 89),
        (["+34600{:06}", "+34 600 {:06}"], 29),
        (["+49151{:06}", "0151 {:06}"], 29),
        (["DE12 {:06}", "DE12{:06}"], 29),
        (["{:010}"], 0),
        (["00{:08}", "1{:09}"], 0),
    ],
)
def test_phones_that_are_written_in_several_ways_are_said(forms: list[str], more: int, tmp_path: Path) -> None:
    every = [form.format(k) for k in range(30) for form in forms]
    ties = lines(((one, every[place - 7]) for place, one in enumerate(every)), "caller,callee")
    says = given(tmp_path, {"calls.csv": ties}).says
    assert (f" alone, and are two people, as are {more} more such" in says) == (more > 0) == ("two people" in says)


# Files that number people anew


def pupils(seed: int, key: str, written: str) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    facts = {"age": rng.integers(10, 16, 30), "sex": rng.choice(["m", "f"], 30), "smokes": rng.choice(["yes", "no"], 30)}
    return pd.DataFrame({key: [written.format(k) for k in range(1, 31)], **facts})


@pytest.mark.parametrize(
    ("stem", "key", "written"),
    [("class", "No.", "{}"), ("Klasse", "id", "{}"), ("bank", "pupil", "P{}"), ("class", "pupil", "P{}")],
)  # fmt: skip
def test_people_of_files_that_number_anew_are_not_joined(stem: str, key: str, written: str, tmp_path: Path) -> None:
    for number in range(3):
        pupils(number, key, written).to_csv(tmp_path / f"{stem}_{number}.csv", index=False)
    ties = lines(((written.format(1 + k), written.format(1 + (k + 7) % 30)) for k in range(30)), "from,to")
    put(tmp_path, {"friends.csv": ties})
    says = rf"{stem}_1.csv: has the columns of {stem}_0.csv, and with the same ids other people: .* a folder for"
    with pytest.raises(DataError, match=says):
        read(tmp_path, label="smokes")
    (tmp_path / f"{stem}_2.csv").unlink()
    (tmp_path / f"{stem}_1.csv").unlink()
    graph = graph_of(read(tmp_path, label="smokes"))
    assert graph.num_nodes == 30
    assert graph.names.columns[0] == "age", "a school's class is no label"


def test_the_same_people_two_years_later_are_the_same(tmp_path: Path) -> None:
    first = pupils(0, "pupil", "P{}")
    first.to_csv(tmp_path / "wave1.csv", index=False)
    first.assign(age=first["age"] + 2, smokes=first["smokes"][::-1].to_numpy()).to_csv(tmp_path / "wave2.csv", index=False)
    put(tmp_path, {"friends.csv": "from,to\nP1,P2\nP3,P30\n"})
    assert graph_of(read(tmp_path, label="smokes")).num_nodes == 30


@pytest.mark.parametrize("with_people", [True, False])
def test_a_file_of_ties_for_each_class_says_how_they_stay_apart(with_people: bool, tmp_path: Path) -> None:
    to = pd.Series([1 + (k + 7) % 30 for k in range(30)])
    for number in range(2):
        table = pupils(number, "No.", "{}")
        table = table.assign(friend1=to, friend2=to % 29 + 1) if with_people else table
        table.to_csv(tmp_path / f"class_{number}.csv", index=False)
        if not with_people:
            put(tmp_path, {f"friends_{number}.csv": lines(enumerate(to, 1), "from,to")})
    apart = rf"--id {tmp_path.name}\.No\.; .* keep one table: --id class_0\.No\., or --id class_1\.No\."
    folders = r"several files hold ties: .* where each is of a class, a school or a bank, a folder for"
    with pytest.raises(DataError, match=apart if with_people else folders):
        read(tmp_path, label="smokes")
    if with_people:
        graph = graph_of(read(tmp_path, label="smokes", id=f"{tmp_path.name}.No."))
        assert (graph.num_nodes, (graph.ids or ())[30]) == (60, "class_1.csv/1")


# Files of some people


SOME = range(0, N, 8)
CASES = {
    "a list": lines(((k,) for k in SOME), "account"),
    "with facts": lines(((k, "2024-03-01") for k in SOME), "account,reported"),
    "several for one": lines(((50 + k, (k * 8) % N, k) for k in range(30)), "case,account,loss"),
    "numbered": lines(((50 + k, (k * 8) % N) for k in range(30)), "case_id,account"),
}


@pytest.mark.parametrize(("form", "beside"), [("a list", False), *((form, True) for form in CASES)])
def test_who_stands_in_another_file_may_be_the_label(form: str, beside: bool, tmp_path: Path) -> None:
    people = lines(((k, 20 + k % 50, *(["mf"[k % 2]] * beside)) for k in range(N)), "id,age" + ",gender" * beside)
    put(tmp_path, {"accounts.csv": people, "payments.csv": TIES, "fraud_cases.csv": CASES[form]})
    with pytest.raises(ReadingQuestion, match=r"'fraud_cases' \(who is in fraud_cases.csv; no: 105, yes: 15\)") as asked:
        read(tmp_path)
    assert asked.value.choices == ("fraud_cases", *(["gender"] if beside else []))
    assert asked.value.likely == "fraud_cases"
    reading = read(tmp_path, label="fraud_cases")
    graph = graph_of(reading)
    assert [int(one) for one, k in zip(graph.ids, graph.labels, strict=True) if graph.names.classes[k] == "yes"] == [*SOME]
    assert set(graph.names.columns) == {"age", *(["gender is m", "gender is f"] * beside)}, (
        "what is known of cases tells the label"
    )
    assert (graph.labels == graph_of(read(tmp_path, columns=reading.parameters)).labels).all()
    assert not beside or graph_of(read(tmp_path, label="gender")).num_nodes == N


def test_a_list_without_a_header_is_offered_by_the_name_of_its_file(tmp_path: Path) -> None:
    put(tmp_path, {"people.csv": AGES, "ties.csv": TIES, "seen.txt": lines((k,) for k in SOME)})
    with pytest.raises(ReadingQuestion, match=r"'seen' \(who is in seen.txt; no: 105, yes: 15\)"):
        read(tmp_path)
    assert [graph_of(read(tmp_path, label=label)).num_classes for label in ("seen.txt", "")] == [2, 0]
    put(tmp_path, {"seen.txt": lines((((k * 8) % N, k) for k in range(30)), "account,score")})
    assert graph_of(read(tmp_path)).num_classes == 0, "rows that say more, and are not called as a list"


def test_what_one_table_leaves_out_another_keeps(tmp_path: Path) -> None:
    """``drop`` is by name: what a draft writes must not take the same column from the table that has it."""
    people = lines(((f"p{k}", 20 + k % 50, "ab"[k % 2], f"l{k}") for k in range(N)), "id,age,label,note")
    more = lines(((f"p{k}", "", k, f"m{k}") for k in range(N)), "id,age,height,note")
    reading = given(tmp_path, {"people.csv": people, "more.csv": more, "ties.csv": ring(N)})
    assert reading.parameters["drop"] == ["note"], "once"
    again = read(tmp_path, columns=reading.parameters)
    assert graph_of(again).names.columns == graph_of(reading).names.columns
    assert set(graph_of(again).names.columns) == {"age", "height"}
    assert "note: as said (drop)" in again.says


# Who rates what, and the layouts of other libraries


DRAW = np.random.default_rng(0)
RATED = np.stack([DRAW.integers(1, most, 900) for most in (61, 121, 6)], axis=1).tolist()
USERS = [(k, "MF"[k % 2], k % 50, k % 7, "x") for k in range(1, 61)]
FILMS = [(k, f"Film {k}", "Drama") for k in range(1, 121)]
RATINGS = {"ratings.csv": lines(RATED, "userId,movieId,rating")}


@pytest.mark.parametrize(
    "files",
    [
        RATINGS,
        RATINGS | {"movies.csv": lines((film[:2] for film in FILMS), "movieId,title")},
        {"members.csv": lines(((f"m{k}", 20 + k) for k in range(60)), "member_id,age"),
         "club_members.csv": lines(((f"c{b % 9}", f"m{a - 1}", 2020) for a, b, _ in RATED[:90]), "club_id,member_id,since")},
        {"users.dat": lines(USERS, "", "::"), "movies.dat": lines(FILMS, "", "::"), "ratings.dat": lines(RATED, "", "::")},
        {"users.data": lines(USERS, "", "|"), "movies.data": lines(FILMS, "", "|"), "ratings.data": lines(RATED, "", "\t")},
    ],
)  # fmt: skip
def test_who_rates_what_is_no_tie(files: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no ties between people; allowed: a table of pairs of those who share one"):
        given(tmp_path, files)


def test_a_graph_of_ogb_is_read_where_it_lies(tmp_path: Path) -> None:
    features = np.random.default_rng(0).random((N, 4)).tolist()
    put(tmp_path, {
        "RELEASE_v1.txt": "", "split/time/train.csv": "0\n1\n", "raw/edge.csv": lines(PAIRS),
        "raw/node-feat.csv": lines(features), "raw/node-label.csv": lines((k % 4,) for k in range(N)),
        "raw/num-node-list.csv": f"{N}\n",
        "raw/num-edge-list.csv": f"{len(PAIRS)}\n",
    })  # fmt: skip
    (tmp_path / "mapping").mkdir()
    with pytest.raises(ReadingQuestion, match=r"people numbers of rows, from 0\? If so, say --id row"):
        read(tmp_path)
    reading = read(tmp_path, id="row")
    graph = graph_of(reading)
    assert (graph.num_nodes, graph.num_features, graph.labels.tolist()) == (N, 4, [k % 4 for k in range(N)])
    assert "split/: not read" in reading.says


@pytest.mark.parametrize(
    ("columns", "from_ties"),
    [(["pageranks"], True), (["Eccentricity"], True), (["betweenesscentrality"], True), (["Authority", "Hub"], True),
     (["Hub"], False), (["Degree"], False), (["weighted degree"], True)],
)  # fmt: skip
def test_what_a_program_computed_of_ties_is_known_by_its_name(columns: list[str], from_ties: bool) -> None:
    """One short name alone may be a fact of people: whether an airport is a hub, a degree of three."""
    rng = np.random.default_rng(1)
    people = pd.DataFrame({"id": range(N), "group": rng.choice(["a", "b"], N), **{name: rng.random(N) for name in columns}})
    reading = read((people, pd.DataFrame(PAIRS, columns=["source", "target"])), label="group")
    assert graph_of(reading).features_from_edges is from_ties


@pytest.mark.parametrize(
    ("column", "cell", "someone"),
    [
        ("customer_no", lambda k: 500_000 + k * 7 % 23, True),
        ("household_id", lambda k: 9_000 + k // 2, True),
        ("Household", lambda k: f"H{k // 2}", True),
        ("KundenNr", lambda k: f"K-{k // 3}", True),
        ("household", lambda k: 1 + k % 6, False),  # how many live there
        ("user_no", lambda k: 100 + k % 2, False),
        ("customers", lambda k: k % 17, False),
        ("client_score_no", lambda k: k / 3, False),
    ],
)
def test_who_has_several_rows_is_asked_after_and_is_no_number(
    column: str, cell: Callable[[int], object], someone: bool, tmp_path: Path
) -> None:
    rows = lines(((f"a{k}", cell(k), 20 + k % 9, "xy"[k % 2]) for k in range(60)), f"account,{column},age,fraud")
    graph = graph_of(given(tmp_path, {"accounts.csv": rows, "payments.csv": ring(60, "a{}", "payer,payee")}, label="fraud"))
    told = [doubt for doubt in graph.provenance.doubts if doubt.endswith("and ε protects a row")]
    different = len({cell(k) for k in range(60)})
    asked = f"column {column!r} names {different} for 60 rows: is it the person? Then several rows are one person"
    assert [one.startswith(asked) for one in told] == [True] * someone
    assert graph.names.columns == ("age",) or not someone
