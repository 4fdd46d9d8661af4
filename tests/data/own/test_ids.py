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
from fedgraph.types import Graph

N = 120
PAIRS = [(k, (k * 7 + 3) % N) for k in range(N)]


def club(people: Callable[[int], str], ends: Callable[[int], str]) -> Reading:
    """People of whom one table writes ids so, and that of ties otherwise."""
    table = pd.DataFrame(
        {"id": [people(k) for k in range(N)], "age": [20 + k % 50 for k in range(N)], "group": ["a", "b"] * (N // 2)}
    )
    ties = pd.DataFrame([(ends(a), ends(b)) for a, b in PAIRS], columns=["von", "an"])
    return read((table, ties), label="group", ends=["von", "an"])


def iban(k: int) -> str:
    return f"DE{k % 97:02} 1234 {k:04} 00{k % 7}1"


def ties_of(reading: Reading) -> set[frozenset[str]]:
    assert isinstance(reading.graph, Graph)
    arcs = reading.graph.adjacency.tocoo()
    return {frozenset((reading.graph.ids[a], reading.graph.ids[b])) for a, b in zip(*arcs.coords, strict=True)}


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


def test_a_part_that_lost_its_zeros_is_matched_too() -> None:
    """Of 120 numbers with three digits 20 are written alike."""
    reading = club("{:03}".format, "{}".format)
    assert len(ties_of(reading)) == len({frozenset(pair) for pair in PAIRS if len(set(pair)) == 2})
    assert f"{N - 20} of {N} ids in the table of edges are written otherwise" in reading.says


def test_one_person_may_be_written_in_two_ways_where_spaces_alone_differ() -> None:
    reading = club(iban, lambda k: iban(k) if k % 3 else iban(k).replace(" ", ""))
    assert ties_of(reading) == {frozenset((iban(a), iban(b))) for a, b in PAIRS if a != b}
    people = pd.DataFrame({"id": [f"{k:04}" for k in range(N)], "group": ["a", "b"] * (N // 2)})
    both = pd.DataFrame([(f"{a:04}", str(b)) for a, b in PAIRS], columns=["source", "target"])
    with pytest.raises(DataError, match=r"Are ids written otherwise there"):  # 7 and 0007 may be two
        read((people, both), label="group")


def test_what_would_make_two_people_one_is_refused() -> None:
    with pytest.raises(DataError, match=r"By no rule all are somebody, and each one: write ids alike"):
        club(lambda k: f"{k // 2}" if k % 2 else f"0{k // 2}", lambda k: f"00{k // 2}")


def test_where_many_rows_are_missing_one_line_counts_them() -> None:
    with pytest.raises(DataError) as caught:
        club(str, lambda k: str(k + 40))
    said = str(caught.value)
    assert "\n" not in said
    assert said.startswith("the table of edges:")
    assert "unknown node '1" in said
    assert f"it and 39 more of {N} that ties name" in said
    assert f"whose {N} ids in column 'id' are such as '0', '1', '2'" in said
    assert "Are rows missing there (a page of an answer, a filter)?" in said
    with pytest.raises(DataError, match="ids of another kind: is another column the id"):
        club("M-{}".format, "https://x/{}/y".format)


@pytest.mark.parametrize("nothing", ["", "NULL"])
def test_ties_without_one_end_are_one_line(nothing: str) -> None:
    with pytest.raises(DataError) as caught:
        club(str, lambda k: nothing if k % 10 == 3 else str(k))
    assert str(caught.value) == (
        "the table of edges:1: an empty cell in column 'von' or 'an', as in 24 of 120 lines (so 4, 11, 14, 21, 24, 31, 34, 41, "
        "…); allowed: both ends of a tie, or no such line"
    )


def test_a_table_of_labels_that_lost_its_zeros_is_matched(tmp_path: Path) -> None:
    ids = [f"{k:03}" for k in range(N)]
    pd.DataFrame({"id": ids, "age": [20 + k % 50 for k in range(N)]}).to_csv(tmp_path / "people.csv", index=False)
    pd.DataFrame([(ids[a], ids[b]) for a, b in PAIRS], columns=["source", "target"]).to_csv(tmp_path / "ties.csv", index=False)
    pd.DataFrame({"id": range(N), "group": ["a", "b"] * (N // 2)}).to_csv(tmp_path / "labels.csv", index=False)
    reading = read(tmp_path)
    assert isinstance(reading.graph, Graph)
    assert (reading.graph.labels >= 0).all()
    assert "100 of 120 ids in labels.csv are written otherwise than in 'id' of people.csv" in reading.says


# Files that number people anew


def pupils(seed: int, key: str, written: str) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    ids = [written.format(k) for k in range(1, 31)]
    return pd.DataFrame(
        {key: ids, "age": rng.integers(10, 16, 30), "sex": rng.choice(["m", "f"], 30), "smokes": rng.choice(["yes", "no"], 30)}
    )


@pytest.mark.parametrize("stem", ["class", "Klasse", "bank"])
@pytest.mark.parametrize(("key", "written"), [("No.", "{}"), ("id", "{}"), ("pupil", "P{}")])
def test_people_of_files_that_number_anew_are_not_joined(stem: str, key: str, written: str, tmp_path: Path) -> None:
    for number in range(3):
        pupils(number, key, written).to_csv(tmp_path / f"{stem}_{number}.csv", index=False)
    ties = pd.DataFrame([(written.format(1 + k), written.format(1 + (k + 7) % 30)) for k in range(30)], columns=["from", "to"])
    ties.to_csv(tmp_path / "friends.csv", index=False)
    with pytest.raises(
        DataError, match=rf"{stem}_1.csv: has the columns of {stem}_0.csv, and with the same ids other people: .* a folder for"
    ):
        read(tmp_path, label="smokes")
    (tmp_path / f"{stem}_2.csv").unlink()
    (tmp_path / f"{stem}_1.csv").unlink()
    graph = read(tmp_path, label="smokes").graph
    assert isinstance(graph, Graph)
    assert graph.num_nodes == 30
    assert graph.names.columns[0] == "age", "a school's class is no label"


def test_the_same_people_two_years_later_are_the_same(tmp_path: Path) -> None:
    first = pupils(0, "pupil", "P{}")
    first.to_csv(tmp_path / "wave1.csv", index=False)
    first.assign(age=first["age"] + 2, smokes=first["smokes"][::-1].to_numpy()).to_csv(tmp_path / "wave2.csv", index=False)
    pd.DataFrame([("P1", "P2"), ("P3", "P30")], columns=["from", "to"]).to_csv(tmp_path / "friends.csv", index=False)
    graph = read(tmp_path, label="smokes").graph
    assert isinstance(graph, Graph)
    assert graph.num_nodes == 30


@pytest.mark.parametrize("with_people", [True, False])
def test_a_file_of_ties_for_each_class_says_how_they_stay_apart(with_people: bool, tmp_path: Path) -> None:
    for number in range(2):
        table = pupils(number, "No.", "{}")
        ties = pd.DataFrame([(1 + k, 1 + (k + 7) % 30) for k in range(30)], columns=["from", "to"])
        if with_people:
            table.assign(friend1=ties["to"], friend2=ties["to"] % 29 + 1).to_csv(tmp_path / f"class {number}.csv", index=False)
        else:
            table.to_csv(tmp_path / f"class_{number}.csv", index=False)
            ties.to_csv(tmp_path / f"friends_{number}.csv", index=False)
    with pytest.raises(
        DataError, match=r"several files hold ties: .* where each is of a class, a school or a bank, a folder for"
    ):
        read(tmp_path, label="smokes")


# Files of some people


CASES = {
    "a list": pd.DataFrame({"account": range(0, N, 8)}),
    "with facts": pd.DataFrame({"account": range(0, N, 8), "reported": ["2024-03-01"] * 15}),
    "several for one": pd.DataFrame({"case": range(50, 80), "account": [*range(0, N, 8)] * 2, "loss": range(30)}),
    "numbered": pd.DataFrame({"case_id": range(50, 80), "account": [*range(0, N, 8)] * 2}),
}


@pytest.mark.parametrize("form", CASES)
@pytest.mark.parametrize("beside", [False, True])
def test_who_stands_in_another_file_may_be_the_label(form: str, beside: bool, tmp_path: Path) -> None:
    people = pd.DataFrame({"id": range(N), "age": [20 + k % 50 for k in range(N)]})
    people = people.assign(gender=["m", "f"] * (N // 2)) if beside else people
    people.to_csv(tmp_path / "accounts.csv", index=False)
    pd.DataFrame(PAIRS, columns=["source", "target"]).to_csv(tmp_path / "payments.csv", index=False)
    CASES[form].to_csv(tmp_path / "fraud_cases.csv", index=False)
    with pytest.raises(ReadingQuestion, match=r"'fraud_cases' \(who is in fraud_cases.csv; no: 105, yes: 15\)") as asked:
        read(tmp_path)
    assert asked.value.choices == ("fraud_cases", *(["gender"] if beside else []))
    assert asked.value.likely == "fraud_cases"
    reading = read(tmp_path, label="fraud_cases")
    graph = reading.graph
    assert isinstance(graph, Graph)
    assert [one for one, k in zip(graph.ids, graph.labels, strict=True) if graph.names.classes[k] == "yes"] == [
        str(k) for k in range(0, N, 8)
    ]
    assert set(graph.names.columns) <= {"age", "gender is m", "gender is f"}, "what is known of cases tells the label"
    assert (graph.labels == read(tmp_path, columns=reading.parameters).graph.labels).all()  # type: ignore[union-attr]
    if beside:
        assert graph.num_features == 3
        assert read(tmp_path, label="gender").graph.num_nodes == N  # type: ignore[union-attr]


def test_a_list_without_a_header_is_offered_by_the_name_of_its_file(tmp_path: Path) -> None:
    pd.DataFrame({"id": range(N), "age": [20 + k % 50 for k in range(N)]}).to_csv(tmp_path / "people.csv", index=False)
    pd.DataFrame(PAIRS, columns=["source", "target"]).to_csv(tmp_path / "ties.csv", index=False)
    (tmp_path / "seen.txt").write_text("".join(f"{k}\n" for k in range(0, N, 8)), encoding="utf-8")
    with pytest.raises(ReadingQuestion, match=r"'seen' \(who is in seen.txt; no: 105, yes: 15\)"):
        read(tmp_path)
    assert read(tmp_path, label="seen.txt").graph.num_classes == 2
    assert read(tmp_path, label="").graph.num_classes == 0


def test_what_one_table_leaves_out_another_keeps(tmp_path: Path) -> None:
    """``drop`` is by name: what a draft writes must not take the same column from the table that has it."""
    ids = pd.DataFrame({"id": [f"p{k}" for k in range(N)]})
    people = ids.assign(age=[20 + k % 50 for k in range(N)], label=["a", "b"] * (N // 2), note=[f"l{k}" for k in range(N)])
    people.to_csv(tmp_path / "people.csv", index=False)
    ids.assign(age="", height=range(N), note=[f"m{k}" for k in range(N)]).to_csv(tmp_path / "more.csv", index=False)
    pd.DataFrame([(f"p{a}", f"p{b}") for a, b in PAIRS], columns=["source", "target"]).to_csv(
        tmp_path / "ties.csv", index=False
    )
    reading = read(tmp_path)
    assert reading.parameters["drop"] == ["note"], "once"
    again = read(tmp_path, columns=reading.parameters)
    assert again.graph.names.columns == reading.graph.names.columns  # type: ignore[union-attr]
    assert set(again.graph.names.columns) == {"age", "height"}  # type: ignore[union-attr]
    assert "note: as said (drop)" in again.says


# Who rates what, and the layouts of other libraries


@pytest.mark.parametrize("form", ["ratings", "and movies", "dat", "data"])
def test_who_rates_what_is_no_tie(form: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rated = pd.DataFrame(
        {"userId": rng.integers(1, 61, 900), "movieId": rng.integers(1, 121, 900), "rating": rng.integers(1, 6, 900)}
    )
    if form in ("ratings", "and movies"):
        rated.to_csv(tmp_path / "ratings.csv", index=False)
        if form == "and movies":
            pd.DataFrame({"movieId": range(1, 121), "title": [f"T {k}" for k in range(120)]}).to_csv(
                tmp_path / "movies.csv", index=False
            )
    else:
        mark = "::" if form == "dat" else "|"
        rows = {"users": [f"{k}{mark}{'MF'[k % 2]}{mark}{k % 50}{mark}{k % 7}{mark}x" for k in range(1, 61)]}
        rows["movies"] = [f"{k}{mark}Film {k}{mark}Drama" for k in range(1, 121)]
        rows["ratings"] = [("::" if form == "dat" else "\t").join(map(str, row)) for row in rated.to_numpy()]
        for name, lines in rows.items():
            (tmp_path / f"{name}.{form}").write_text("\n".join(lines) + "\n", encoding="latin-1")
    with pytest.raises(DataError, match=r"no ties between people; allowed: a table of pairs of those who share one"):
        read(tmp_path)


def test_a_graph_of_ogb_is_read_where_it_lies(tmp_path: Path) -> None:
    for folder in ("raw", "split/time", "mapping"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "RELEASE_v1.txt").write_text("", encoding="utf-8")
    (tmp_path / "split/time/train.csv").write_text("0\n1\n", encoding="utf-8")
    tables = {"edge": PAIRS, "node-feat": np.random.default_rng(0).random((N, 4)), "node-label": [[k % 4] for k in range(N)],
              "num-node-list": [[N]], "num-edge-list": [[len(PAIRS)]]}  # fmt: skip
    for name, rows in tables.items():
        (tmp_path / f"raw/{name}.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(ReadingQuestion, match=r"people numbers of rows, from 0\? If so, say --id row"):
        read(tmp_path)
    reading = read(tmp_path, id="row")
    graph = reading.graph
    assert isinstance(graph, Graph)
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
    graph = read((people, pd.DataFrame(PAIRS, columns=["source", "target"])), label="group").graph
    assert isinstance(graph, Graph)
    assert graph.features_from_edges is from_ties


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
    rows = "".join(f"a{k},{cell(k)},{20 + k % 9},{'xy'[k % 2]}\n" for k in range(60))
    (tmp_path / "accounts.csv").write_text(f"account,{column},age,fraud\n{rows}", encoding="utf-8")
    ties = "".join(f"a{k},a{(k + 1) % 60}\n" for k in range(60))
    (tmp_path / "payments.csv").write_text(f"payer,payee\n{ties}", encoding="utf-8")
    found = read(tmp_path, label="fraud")
    told = [doubt for doubt in found.graph.provenance.doubts if doubt.endswith("and ε protects a row")]
    different = len({cell(k) for k in range(60)})
    asked = f"column {column!r} names {different} for 60 rows: is it the person? Then several rows are one person"
    assert [one.startswith(asked) for one in told] == [True] * someone
    assert isinstance(found.graph, Graph)
    assert found.graph.names.columns == ("age",) or not someone
