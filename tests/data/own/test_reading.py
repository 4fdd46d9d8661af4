"""The one door in: forms in which people have graphs, single faults of their tables, and the words that are shown first."""

from __future__ import annotations

import io
import json
import logging
import pickle
import zipfile
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

import fedgraph
from fedgraph.data.own.door import read
from fedgraph.data.own.tables import ReadingQuestion
from fedgraph.errors import DataError, ScenarioError
from fedgraph.types import Graph, describe_graph_size
from tests.data.own.clubs import facts, given, graph_of, lines, put

N = 60
RNG = np.random.default_rng(3)
IDS = RNG.permutation(np.arange(1000, 1000 + N))
PEOPLE = pd.DataFrame({
    "id": IDS,
    "age": RNG.integers(18, 80, N),
    "member": np.where(RNG.random(N) < 0.5, "yes", "no"),
    "city": np.array(["Gent", "Graz", "Lund"])[RNG.integers(0, 3, N)],
    "group": np.array(["red", "green", "blue"])[np.arange(N) % 3],
})  # fmt: skip
TIES = pd.DataFrame(
    sorted({tuple(sorted(map(int, RNG.choice(IDS, 2, replace=False)))) for _ in range(90)}), columns=["source", "target"]
)


def require_true(graph: Graph) -> None:
    """The people, their classes and ties are those of PEOPLE and TIES."""
    people, ties, classes, _ = facts(graph)
    assert people == set(map(str, IDS))
    assert classes == dict(zip(map(str, PEOPLE["id"]), PEOPLE["group"], strict=True))
    assert ties == {frozenset(map(str, pair)) for pair in TIES.itertuples(index=False)}


WORDS = np.random.default_rng(0).integers(0, 2, (N, 9))


def zipped() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("club/people.csv", PEOPLE.to_csv(index=False, sep=";"))
        archive.writestr("club/ties.csv", TIES.to_csv(index=False))
        archive.writestr("club/README.md", "# a club\n")
    return packed.getvalue()


def dynamic_gexf() -> str:
    """When a tie was there is no column, and of a value that changed the last one counts."""
    nodes = "".join(
        f'<node id="{one["id"]}" start="2020-01-0{1 + k % 9}"><attvalues><attvalue for="0" value="{one["group"]}"/>'
        '<attvalue for="1" value="1" start="2020-01-01" end="2020-06-01"/>'
        f'<attvalue for="1" value="{one["age"]}"/></attvalues></node>'
        for k, one in enumerate(ROWS)
    )
    edges = "".join(f'<edge id="{k}" source="{a}" target="{b}" start="2020-02-01"/>' for k, (a, b) in enumerate(PAIRS))
    kinds = '<attributes class="node" mode="{}"><attribute id="{}" title="{}" type="{}"/></attributes>'.format
    return (
        '<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2"><graph defaultedgetype="undirected" mode="dynamic" '
        f'timeformat="date">{kinds("dynamic", 1, "age", "integer")}{kinds("static", 0, "group", "string")}'
        f"<nodes>{nodes}</nodes><edges>{edges}</edges></graph></gexf>"
    )


ROWS, PAIRS = PEOPLE.to_dict("records"), TIES.to_numpy().tolist()
PEOPLE_CSV, TIES_CSV, GROUPS = PEOPLE.to_csv(index=False), TIES.to_csv(index=False), PEOPLE[["id", "group"]].to_csv(index=False)
FRIENDS = {int(one): [b if a == one else a for a, b in PAIRS if one in (a, b)] for one in IDS}
NAMED = [", ".join(str(b) for a, b in PAIRS if a == one) for one in IDS]
MATRIX = lines(([int(b in FRIENDS[a]) for b in FRIENDS] for a in FRIENDS), separator=" ")
APOC = [{"type": "node", "id": str(row["id"]), "properties": {k: v for k, v in row.items() if k != "id"}} for row in ROWS]
TOLD = [{"type": "relationship", "start": {"id": str(a)}, "end": {"id": str(b)}} for a, b in PAIRS]
# beside those of the dresses (``test_dress``) and of other programs (``test_formats``)
FORMS: dict[str, dict[str, str | bytes]] = {
    "sql": {"users.csv": PEOPLE.rename(columns={"id": "user_id"}).to_csv(index=False), "friendships.csv": lines(
        ((5000 + k, *pair, "2026-01-05") for k, pair in enumerate(PAIRS)), "id,source,target,created_at")},
    "elliptic": {"txs_features.csv": PEOPLE[["id", "age"]].to_csv(index=False, header=False),
                 "txs_classes.csv": GROUPS.replace("id,group", "txId,class"), "txs_edgelist.csv": lines(PAIRS, "txId1,txId2")},
    "musae": {"club_features.json": json.dumps({str(one): [int(one) % 3, 7] for one in IDS}), "club_target.csv": GROUPS,
              "club_edges.csv": lines(PAIRS, "id_1,id_2")},
    "cora": {"club.content": lines(((row["id"], *WORDS[k], row["group"]) for k, row in enumerate(ROWS)), "", "\t"),
             "club.cites": lines(PAIRS, "", "\t")},
    "bare matrix": {"people.csv": PEOPLE_CSV, "matrix.txt": MATRIX},
    "apoc": {"club.json": "\n".join(map(json.dumps, [*APOC, *TOLD]))},
    "lists": {"people.csv": PEOPLE_CSV, "friends.json": json.dumps(FRIENDS)},
    "a column of lists": {"people.csv": PEOPLE.assign(friends=NAMED).to_csv(index=False)},
    "a header of numbers": {"features.csv": lines(((one, k / 7, k % 5, -k) for k, one in enumerate(IDS)), "id,0,1,2"),
                            "labels.csv": GROUPS, "edges.csv": TIES_CSV},
    "zip": {"club.zip": zipped()}, "dynamic gexf": {"club.gexf": dynamic_gexf()},
}  # fmt: skip
COLUMNS = {
    "a column of lists": {"age", "city is Gent", "city is Graz", "city is Lund", "member"},
    "a header of numbers": {"0", "1", "2"},
    "dynamic gexf": {"age"},
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_club(form: str, tmp_path: Path) -> None:
    label = {"elliptic": "class", "cora": "column 11"}.get(form, "group")
    reading = read(put(tmp_path, {**FORMS[form], "photo.png": b"\x89PNG"}), label=label)
    graph = graph_of(reading)
    require_true(graph)
    assert set(graph.names.columns) == COLUMNS.get(form, set(graph.names.columns))
    assert form != "dynamic gexf" or sorted(graph.features.toarray().ravel()) == sorted(PEOPLE["age"])
    assert "photo.png: no data" in str(reading)
    again = graph_of(read(tmp_path, columns=reading.parameters))
    assert (again.features != graph.features).nnz == 0, "what a scenario says reads the same"
    assert again.names == graph.names


def test_pajek_and_an_edge_list_alone_have_no_label(tmp_path: Path) -> None:
    nx.write_pajek(nx.Graph([(str(a), str(b)) for a, b in PAIRS]), tmp_path / "club.net")
    TIES.to_csv(tmp_path / "ties.tsv", sep="\t", index=False)
    for name in ("club.net", "ties.tsv"):
        graph = graph_of(read(tmp_path / name, label=""))
        assert (graph.num_edges, graph.num_classes) == (len(TIES), 0)
    assert "column 'weight' of g.net" in given(tmp_path, {"g.net": "*Vertices 3\n1 a\n2 b\n3 c\n*Edges\n1 2 3.5\n2 3 1\n"}).says


# People who were joined by their place


def test_two_readings_are_one_question_with_the_option_that_answers() -> None:
    twice = PEOPLE.assign(other_id=PEOPLE["id"].to_numpy()[::-1]).rename(columns={"id": "first_id"})
    with pytest.raises(ReadingQuestion, match=r"which column is the id: 'first_id' or 'other_id'.*--id first_id"):
        read((twice, TIES), label="group")
    require_true(graph_of(read((twice, TIES), label="group", id="first_id")))
    ties = TIES.assign(by=TIES["source"]).set_axis(["wer", "wen", "durch"], axis=1)
    with pytest.raises(ReadingQuestion, match="which columns are the ends of ties: wer and wen or wer and durch"):
        read((PEOPLE, ties), label="group")
    require_true(graph_of(read((PEOPLE, ties), label="group", ends=["wer", "wen"])))
    labels = PEOPLE[["id", "group"]].rename(columns={"group": "label"})
    with pytest.raises(ReadingQuestion, match=r"'label' .* or 'class' ") as asked:
        read((labels.assign(**{"class": np.arange(N) % 2}), TIES))
    assert asked.value.choices == ("label", "class")


def test_the_label_is_offered_by_what_columns_hold_and_one_is_likely_only_where_it_is_alone() -> None:
    rng, n = np.random.default_rng(3), 300
    ties = pd.DataFrame({"payer": np.append(rng.integers(0, n, 700), np.arange(n)), "payee": rng.integers(0, n, 1000)})
    place = np.arange(n)
    people = pd.DataFrame({
        "account": place, "country": np.array(["AT", "DE", "FR"])[place % 3],
        "opened": [f"2024-01-0{1 + k % 9}" for k in place],
        "since": 2015 + place % 8, "paid_in": np.bincount(ties["payee"], minlength=n), "age": 20 + place**2 // 1500,
        "branch": place % 30, "kind": np.where(place % 4, "private", "firm"),
    })  # fmt: skip
    fraud = {"is_fraud": place % 9 == 0}
    for more, likely in (({}, ""), (fraud, "is_fraud"), (fraud | {"outcome": place % 7}, "")):
        with pytest.raises(ReadingQuestion, match="30 values, 10–10 people each") as asked:
            read((people.assign(**more), ties))
        assert asked.value.likely == likely
        assert asked.value.choices == (*more, "country", "kind", "branch")


def test_rows_without_ids_are_numbered_only_where_their_owner_says_so() -> None:
    nodes = pd.DataFrame({"kunde": PEOPLE["city"], "group": PEOPLE["group"]})
    ties = TIES.map({one: k for k, one in enumerate(IDS)}.__getitem__)
    assert "its index, or the number of a row, is the id" in read((nodes, ties), label="group").says
    with pytest.raises(DataError, match=r"no column holds the ends.*--id row"):
        read((nodes, ties + 10_000), label="group")


# Labels


def test_the_label_in_another_spelling_is_no_feature() -> None:
    again = PEOPLE.assign(y=PEOPLE["group"].map({"red": 2, "green": 0, "blue": 1}))
    reading = read((again, TIES), label="group")
    assert not [name for name in graph_of(reading).names.columns if name.startswith("y")]
    assert "y: it says the same as the label 'group'" in reading.says
    assert describe_graph_size(graph_of(reading)).endswith("3 classes of group")
    assert reading.parameters["drop"] == ["y"]


@pytest.mark.parametrize(
    ("words", "classes", "says"),
    [
        ([1, -1], ("-1", "1"), ""),
        (["none", "some"], ("none", "some"), ""),
        (["1", "1.0", "2"], ("1", "2"), ""),
        (["yes", "Yes", "no"], None, "differ in capitals or spaces alone are one class: 'Yes' and 'yes'"),
    ],
)
def test_spellings_of_a_class_are_one_and_signs_and_words_are_two(
    words: list[object], classes: tuple[str, ...] | None, says: str
) -> None:
    reading = read((PEOPLE.assign(group=np.array(words)[np.arange(N) % len(words)]), TIES), label="group")
    found = graph_of(reading).names.classes
    assert found == classes or (classes is None and len(found) == 2)
    assert says in reading.says


def test_what_a_program_computed_is_no_label_and_who_somebody_is_no_feature() -> None:
    """Gephi's groups come from ties, and a surname for each person cost a club 26 points."""
    more = {"modularity_class": [n % 2 for n in range(N)], "Surname": [f"x{n}" for n in range(N)]}
    with pytest.raises(ReadingQuestion, match=r"'group' \(") as asked:
        read((PEOPLE.assign(**more), TIES))
    assert "modularity" not in str(asked.value)
    reading = read((PEOPLE.assign(**more), TIES), label="group")
    assert "Surname: its header says who or where somebody is" in reading.says
    assert "modularity_class (groups that a program makes of ties), taken as computed from them" in reading.says
    assert graph_of(reading).features_from_edges
    texts = read((PEOPLE.assign(modularity_class=[f"g{n % 2}" for n in range(N)]), TIES), label="group")
    assert graph_of(texts).features_from_edges


def test_two_kinds_of_nodes_are_no_people() -> None:
    """Of Neo4j's export: companies were people, and their kind the label."""
    with pytest.raises(DataError, match=r"'_labels' names several kinds of nodes: :P \(\d+\), :F \(1\); allowed: people alone"):
        read((PEOPLE.assign(_labels=[":F", *[":P"] * (len(PEOPLE) - 1)]), TIES))
    read((PEOPLE.assign(_labels=[":P:F", *[":P"] * (len(PEOPLE) - 1)]), TIES), label="group")


def test_kinds_are_told_of_what_neo4j_writes_as_json(tmp_path: Path) -> None:
    nodes = [one | {"labels": ["P", "Q"][: 1 + k % 2]} for k, one in enumerate(APOC)]
    ties = [one | {"label": ["KNOWS", "HIT"][k % 2]} for k, one in enumerate(TOLD)]
    assert (
        "column '_type' of club.json tells ties apart (KNOWS"
        in read(put(tmp_path, {"club.json": "\n".join(map(json.dumps, [*nodes, *ties]))}), label="group").says
    )
    nodes[0]["labels"] = ["City"]
    with pytest.raises(DataError, match=r"'_labels' names several kinds of nodes: P:Q \(\d+\), P \(\d+\), City \(1\)"):
        given(tmp_path, {"club.json": "\n".join(map(json.dumps, [*nodes, *ties]))})


@pytest.mark.parametrize(("within", "label"), [(0, "kind"), (0, ""), (1, "kind")])
def test_ties_between_two_kinds_alone_are_told(within: int, label: str) -> None:
    """Heroes and the comics they stand in were people, and which of both one is the label."""
    people = pd.DataFrame({"id": [f"n{k}" for k in range(N)], "kind": ["hero", "comic"] * (N // 2)})
    pairs = [(f"n{k}", f"n{(k + step) % N}") for k in range(N) for step in (1, 5)] + [("n0", "n2")] * within
    says = read((people, pd.DataFrame(pairs, columns=["source", "target"])), label=label).says
    assert ("no tie is between two of one 'kind' (comic, hero): if these are kinds of nodes" in says) == (not within)


@pytest.mark.parametrize(
    ("column", "says"),
    [("id", "names people, and is no label"), ("Label", "60 different values"), ("views", "different values for 60")],
)
def test_what_no_class_can_be_is_refused_with_those_that_can(column: str, says: str) -> None:
    table = PEOPLE.assign(Label=[f"Person {k}" for k in range(N)], views=np.arange(N) * 7 % 53)
    with pytest.raises(ScenarioError, match=rf"{says}(.|\n)*group"):
        read((table, TIES), label=column)


@pytest.mark.parametrize(
    ("classes", "says"),
    [
        (
            {"no": 280, "yes": 21},
            "below 15% of the people with a label: yes 7.0%; rows are compared by how many of them are am",
        ),
        ({"a": 200, "b": 180, "c": 30}, "c 7.3%; of more than two classes rows are compared by accuracy, which hardly counts"),
        ({"a": 100, "b": 90, "c": 5}, "1 class has fewer than 20 people (c 5): nothing can be said of such a class; merge it"),
    ],
)
def test_a_small_class_is_named_with_what_to_do(classes: dict[str, int], says: str) -> None:
    words = [name for name, count in classes.items() for _ in range(count)]
    people = pd.DataFrame({"id": range(len(words)), "age": np.arange(len(words)) % 50, "label": words})
    reading = read((people, pd.DataFrame({"source": [0, 1], "target": [1, 2]})))
    assert says in reading.says
    assert f"2, between 'source' and 'target' of the table of edges; {len(words) - 3} people have none" in reading.says


# Columns


def test_numbers_and_dates_are_read_as_people_write_them() -> None:
    table = PEOPLE.assign(
        seen=1_700_000_000 + np.arange(N),
        amount=[f"{1000 + k:,}.35" for k in range(N)],
        born=[f"{1 + k % 28}.11.{1950 + k % 40}" for k in range(N)],
        height=[f"1,{60 + k % 30}" for k in range(N)],
        unclear=[f"{k % 9},{100 + k}" for k in range(N)],
        customer_id=np.arange(N) * 31 + 5,
    )
    reading = read((table, TIES), label="group")
    graph = graph_of(reading)
    columns = {name: graph.features[:, [place]].toarray().ravel() for place, name in enumerate(graph.names.columns)}
    assert np.unique(columns["seen"]).size == N, "float32 would make them one"
    assert columns["amount"].tolist() == pytest.approx([1000.35 + k for k in range(N)], abs=1e-2)
    assert columns["height"][:3].tolist() == pytest.approx([1.60, 1.61, 1.62])
    assert np.unique(columns["born"]).size > 30
    assert "unclear: 0,100 may be 0100 or 0.100" in reading.says
    assert "customer_id: it names or numbers people" in reading.says
    assert not {"unclear", "customer_id"} & columns.keys()


# What is refused


@pytest.mark.parametrize("name", ["club.pkl", "club.csv"])
def test_a_pickle_is_never_opened(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a pickle, which can run code"):
        given(tmp_path, {name: pickle.dumps(PEOPLE)})


@pytest.mark.parametrize(
    ("what", "says"),
    [(3, "data is a int"), ((1, 2), "a tuple of 2"), ([3], "graph 0 is a int"), (PEOPLE, "one pandas table"),
     ("nowhere.csv", "no such file"), ((1, 2, 3), "allowed"),
     ((np.ones((2, 3)), np.ones((2, 1)), [0, 1]), "allowed: square"),
     ((np.ones((2, 2)), np.ones((3, 1)), [0, 1]), "3 rows of features for 2 labels"),
     ((np.ones((2, 2)), np.full((2, 1), np.nan), [0, 1]), "NaN"),
     ((PEOPLE.assign(id=(PEOPLE["id"] + 2**60).astype(float)), TIES), "as floats, which lose digits")],
)  # fmt: skip
def test_what_is_no_graph_is_one_line(what: object, says: str) -> None:
    with pytest.raises(DataError, match=says) as caught:
        read(what)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [({"methods": 3}, "methods is 3"), ({"trust": 1}, "trust is 1"),
     ({"clients": 1000}, "clients is 1,000; allowed: at most 60"),
     ({"seeds": 0}, "seeds is 0"), ({"columns": "age"}, "columns is 'age'"), ({"epsilons": "all"}, "epsilons is 'all'")],
)  # fmt: skip
def test_compare_names_the_argument(arguments: dict[str, object], says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        fedgraph.compare((PEOPLE, TIES), label="group", **arguments)  # type: ignore[arg-type]


def test_a_workbook_without_its_reader_gets_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = io.BytesIO()
    with zipfile.ZipFile(book, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")

    def missing(*args: object, **settings: object) -> None:
        raise ImportError("no openpyxl")

    monkeypatch.setattr(pd, "read_excel", missing)
    with pytest.raises(DataError, match="Excel needs the package openpyxl"):
        given(tmp_path, {"club.xlsx": book.getvalue()})


# Graphs as they lie


@pytest.mark.dataset
@pytest.mark.parametrize(
    ("folder", "counts"),
    [
        ("email", (1005, 16_064, 42)),
        pytest.param("facebook_pages", (22_470, 170_823, 4), marks=pytest.mark.slow),
        pytest.param("github", (37_700, 289_003, 2), marks=pytest.mark.slow),
        ("polblogs", (1490, 16_705, 2)),
    ],
)
def test_public_graphs_open_as_they_lie(data_root: Path, folder: str, counts: tuple[int, int, int]) -> None:
    home = data_root / "as_found" / folder
    if not home.exists():
        pytest.skip(f"{home} is not there")
    graph = graph_of(read(home))
    assert (graph.num_nodes, graph.num_edges, graph.num_classes) == counts


# Columns that tell the label


def _after(people: pd.DataFrame) -> list[str]:
    reading = read((people, TIES), label="group")
    assert all(said in reading.says for said in graph_of(reading).provenance.doubts)
    return [said.partition(", and may")[0] for said in graph_of(reading).provenance.doubts]


def test_a_column_that_was_filled_after_the_fact_is_told_and_one_of_chance_or_in_part_is_not() -> None:
    red, rng = PEOPLE["group"] == "red", np.random.default_rng(5)
    days = pd.Series([f"2024-06-{day:02}" for day in rng.integers(1, 29, N)])
    blocked = PEOPLE.assign(group=np.where(red, "fraud", "none"), blocked=days.where(red))
    assert _after(blocked) == ["column blocked alone tells the label of 60 of 60 people"]
    some = blocked.assign(blocked=days.where(red & (rng.random(N) < 0.8)))
    assert _after(some) == [f"column blocked has a value for {some['blocked'].notna().sum()} people, all of the class fraud"]
    step = blocked.assign(blocked=np.where(some["blocked"].notna(), 1 + np.arange(N), -1))
    assert _after(step) == _after(some), "−1 is how some tables write nothing"
    told = "column blue is 'True' for 20 people, all of the class blue"  # a third of the people: half of the label
    assert _after(PEOPLE.assign(blue=PEOPLE["group"] == "blue")) == [told]
    rng = np.random.default_rng(6)
    known = PEOPLE.assign(phone=pd.Series(rng.integers(100, 999, N)).where(rng.random(N) < 0.3))
    word = PEOPLE.assign(word=((PEOPLE["group"] == "red") & (rng.random(N) < 0.6)).astype(int))
    assert _after(PEOPLE) == _after(known) == _after(word) == []


def test_a_first_line_of_two_people_is_a_tie_and_is_shown(tmp_path: Path) -> None:
    """``a`` and ``b`` are usual names of columns, too."""
    nodes = "id,age,group\na,1,x\nb,2,y\nc,3,x\nd,4,y\n"
    reading = given(tmp_path, {"nodes.csv": nodes, "edges.txt": "a b\nb c\n#b a\nc d\n"}, label="group")
    assert graph_of(reading).num_edges == 3
    assert "the first line of edges.txt, 'a' and 'b', was taken for a tie" in reading.says
    assert "edges.txt:3: 1 line between others taken for a comment" in reading.says


@pytest.mark.parametrize("spelt", ["M{}", "{}", "{}.0"])
def test_a_column_that_names_other_people_is_no_feature(spelt: str, tmp_path: Path) -> None:
    """Who brought a member in: as texts it became a column for each of these people, as numbers a rank."""
    rng = np.random.default_rng(3)
    ids = rng.permutation(np.arange(1001, 1121))
    by = ["" if one % 4 == 0 else spelt.format(rng.choice(ids)) for one in ids]
    by[5] = "a guest"  # one who is nobody here changes nothing
    rows = [[spelt.format(one), 20 + one % 50, name, "ab"[one % 2]] for one, name in zip(ids, by, strict=True)]
    members = lines(rows, "nr,age,brought by,group")
    games = lines(((spelt.format(one), spelt.format(two)) for one, two in zip(ids, np.roll(ids, 1), strict=True)), "p1,p2")
    found = given(tmp_path, {"members.csv": members, "games.csv": games}, label="group")
    assert (graph_of(found).names.columns, graph_of(found).num_edges) == (("age",), 120)
    assert "brought by: it names other people" in str(found)
    alone = graph_of(given(tmp_path, {"members.csv": members.replace("a guest", "")}, label="group"))
    assert alone.names.columns == ("age",), "a list of ids: each is a tie"
    assert alone.num_edges > 60


def test_ages_and_years_among_small_ids_are_columns(tmp_path: Path) -> None:
    members = lines(((one, 16 + one % 70, 1983 + one % 40, "ab"[one % 2]) for one in range(1, 2101)), "id,age,joined,group")
    games = lines(((one, one + 1) for one in range(1, 2100)), "p1,p2")
    graph = graph_of(given(tmp_path, {"members.csv": members, "games.csv": games}, label="group"))
    assert graph.names.columns == ("age", "joined")


@pytest.mark.parametrize(("code", "silent"), [(9, True), (9, False), (4, True)])
def test_a_row_of_nines_is_no_answer(code: int, silent: bool, tmp_path: Path) -> None:
    cells = np.random.default_rng(0).choice(4, (12, 12), p=[0.6, 0.2, 0.1, 0.1])
    cells[3] = code if silent else cells[3]
    cells[0, 1] = code
    head = ",".join(["", *(f"P{one}" for one in range(12))])
    matrix = {"m.csv": lines(((f"P{one}", *row) for one, row in enumerate(cells)), head)}
    if code == 9 and silent:
        with pytest.raises(DataError, match=r"9 in 1[12] cells of this matrix, .* no answer, or a tie"):
            given(tmp_path, matrix)
    else:
        assert graph_of(given(tmp_path, matrix)).num_nodes == 12


# Graphs in memory: whatever an object holds and no method reads is named


def test_unlabelled_people_of_a_networkx_graph_are_not_trained_on(caplog: pytest.LogCaptureFixture) -> None:
    network = nx.DiGraph()
    for node, label in (("a", {"y": "red"}), ("b", {"y": None}), ("c", {"y": "blue"}), ("d", {})):
        network.add_node(node, x=[1.0, 2.0], age=30, **label)
    network.add_edge("a", "b", weight=2.0, time=7)
    with caplog.at_level(logging.WARNING, "fedgraph"):
        graph = graph_of(read(network))
    assert (graph.labels.tolist(), graph.num_classes) == ([1, -1, 0, -1], 2)
    for what in ("column 'time' of the graph", "column 'weight' of the graph", "the direction of ties"):
        assert what in graph.provenance.detail
        assert what in caplog.text


def test_what_a_pyg_object_holds_beside_is_named() -> None:
    data = Data(x=torch.ones(4, 2), edge_index=torch.tensor([[0, 1], [1, 2]]), y=torch.tensor([0, 1, -1, 1]))
    data.edge_attr, data.time, data.train_mask = torch.ones(2, 1), torch.arange(2), torch.ones(4, dtype=torch.bool)
    detail = graph_of(read(data)).provenance.detail
    for what in ("edge_attr", "time", "masks (a split needs train_mask and test_mask)", "1 of 4 people have no label"):
        assert what in detail
    data.y = torch.zeros(4, 3)
    with pytest.raises(DataError, match="one label per node"):
        read(data)
    data.y = torch.linspace(0, 1, 4).reshape(4, 1)
    assert graph_of(read(data)).num_classes == 4, "few fractions may be classes"


def test_two_pandas_tables_are_a_graph_and_bounds_and_drop_hold_for_arrays_too() -> None:
    label = pd.array([1, None, 0], dtype="Int64")
    nodes = pd.DataFrame({"id": ["a", "b", "c"], "age": [30, None, 50], "member": [True, False, True], "label": label})
    ties = pd.DataFrame({"from": ["a", "b"], "to": ["b", "c"], "since": [1, 2]})
    graph = graph_of(read((nodes, ties), columns={"bounds": {"age": [0, 100]}, "empty": "missing"}))
    assert (graph.labels.tolist(), graph.num_edges) == ([1, -1, 0], 2)
    assert graph.features.toarray() == pytest.approx(np.array([[-0.4, 0, 1], [0, 1, 0], [0, 0, 1]]), abs=1e-6)
    assert "column 'since' of the table of edges" in graph.provenance.detail
    arrays = (np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]), np.array([[20.0, 1.0], [120.0, 0.0], [70.0, 1.0]]), [0, 1, 0])
    graph = graph_of(read(arrays, columns={"bounds": {"column 0": [20, 120]}, "drop": ["column 1"]}))
    assert graph.features.toarray().ravel().tolist() == [-1, 1, 0]
    assert graph.columns is not None
    assert graph.columns.bounded.tolist() == [0]
