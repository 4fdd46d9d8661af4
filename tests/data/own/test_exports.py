"""What programs of offices, banks and surveys export: the right graph, one question, or a refusal that says what to do."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedgraph.data.own.door import read
from fedgraph.data.own.reading import Reading
from fedgraph.data.own.tables import ReadingQuestion
from fedgraph.errors import DataError
from fedgraph.types import Graph

N = 40
RNG = np.random.default_rng(5)
PAIRS = sorted({(int(a), int(b)) for a, b in np.sort(RNG.integers(0, N, (90, 2))) if a != b})
GROUPS = ["red", "green"]


def ties_of(reading: Reading) -> set[frozenset[str]]:
    graph = reading.graph
    assert isinstance(graph, Graph)
    arcs = graph.adjacency.tocoo()
    return {frozenset((graph.ids[a], graph.ids[b])) for a, b in zip(*arcs.coords, strict=True)}


def named(form: str) -> set[frozenset[str]]:
    return {frozenset((form.format(a), form.format(b))) for a, b in PAIRS}


def test_a_cell_that_is_merged_over_rows_is_said_of_each(tmp_path: Path) -> None:
    from openpyxl import Workbook

    book = Workbook()
    people, ties = book.active, book.create_sheet("lifts")
    for row in (["Members"], ["no.", "person", None, "club"], [None, "age", "town", "section"]):
        people.append(row)
    people.merge_cells("A2:A3")
    people.merge_cells("B2:C2")
    for k in range(N):
        people.append([f"m{k}", 20 + k, "Graz", GROUPS[k // 20] if k % 20 == 0 else None])
    for first in (4, 24):
        people.merge_cells(f"D{first}:D{first + 19}")
    ties.append(["member a", "member b"])
    for a, b in PAIRS:
        ties.append([f"m{a}", f"m{b}"])
    book.save(tmp_path / "club.xlsx")
    reading = read(tmp_path / "club.xlsx", label="club section")
    assert isinstance(reading.graph, Graph)
    assert np.bincount(reading.graph.labels).tolist() == [20, 20]
    assert ties_of(reading) == named("m{}")
    assert "merged cell is said of each of its rows" in reading.says
    assert "named by 'no.'" in reading.says


def test_a_bank_writes_words_above_its_table(tmp_path: Path) -> None:
    head = "Umsätze;Zeitraum: 01.01.2026 - 31.03.2026\r\n\r\nTag;IBAN Auftraggeber;IBAN Empfänger;Zweck;Betrag\r\n"
    lines = [f'02.01.26;DE0 {a};DE0 {b};"Miete; Jan";-1.{100 + a},50' for a, b in PAIRS]
    (tmp_path / "sales.csv").write_bytes((head + "\r\n".join(lines)).encode("cp1252"))
    people = "IBAN;Gruppe;Einkommen\n" + "".join(f"DE0 {k};{GROUPS[k % 2]};2.{100 + k},50\n" for k in range(N))
    (tmp_path / "customers.csv").write_text(people, encoding="utf-8")
    reading = read(tmp_path)
    assert ties_of(reading) == named("DE0 {}")
    assert isinstance(reading.graph, Graph)
    assert reading.graph.features.toarray().ravel().tolist() == [2100.5 + k for k in range(N)]


def test_a_cell_may_go_on_over_any_lines_of_the_sample(tmp_path: Path) -> None:
    rows = [f'P-{k},"A text,\nwith ""quotes"" and lines","{", ".join(f"P-{b}" for a, b in PAIRS if a == k)}"' for k in range(N)]
    rows += [f'P-{k},"A text,\nand lines",' for k in range(N, 240)]
    (tmp_path / "issues.csv").write_text("Key,Description,Linked\n" + "\n".join(rows), encoding="utf-8")
    assert ties_of(read(tmp_path / "issues.csv")) == named("P-{}")


def test_names_that_come_twice_are_no_row_of_data(tmp_path: Path) -> None:
    lines = "".join(f"P-{k},{k},Ann,Bob,P-{(k + 1) % N}\n" for k in range(N))
    (tmp_path / "issues.csv").write_text(f"Summary,Votes,Watchers,Watchers,Blocks\n{lines}", encoding="utf-8")
    with pytest.raises(DataError, match=r"issues\.csv:1: column 'Watchers' is named twice"):
        read(tmp_path / "issues.csv")


@pytest.mark.parametrize("between", [" -- ", " -> ", "\tknows\t", ";likes;"])
def test_a_sign_or_a_word_between_two_ends_is_no_end(between: str, tmp_path: Path) -> None:
    (tmp_path / "ties.txt").write_text("".join(f"p{a}{between}p{b}\n" for a, b in PAIRS), encoding="utf-8")
    assert ties_of(read(tmp_path / "ties.txt")) == named("p{}")


@pytest.mark.parametrize("line", ["person{},{}", "{}-1,person{},5,7.5"])
def test_columns_without_names_that_share_nobody_are_asked_about(line: str, tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("".join(line.format(1 + k % 28, 20 + k) + "\n" for k in range(N)), encoding="utf-8")
    with pytest.raises(ReadingQuestion, match=r"the ends of a tie\? .*say --ends 'column 1' 'column 2'") as asked:
        read(tmp_path / "list.csv")
    assert asked.value.option == "ends"
    reading = read(tmp_path / "list.csv", ends=asked.value.choices[0])
    assert len(ties_of(reading)) == N


@pytest.mark.parametrize("short", ["4,92E+11", "4.92E+11", "5E+11"])
def test_numbers_that_a_spreadsheet_shortened_are_no_ids(short: str, tmp_path: Path) -> None:
    (tmp_path / "calls.csv").write_text("from;to\n" + f"{short};{short}\n" * 5, encoding="utf-8")
    with pytest.raises(DataError, match=r"shortened, so different people have one name; allowed: ids as they are"):
        read(tmp_path / "calls.csv")


def test_an_id_that_is_written_in_another_way_is_named(tmp_path: Path) -> None:
    people = "phone,group\n" + "".join(f"+49 151 {k},{GROUPS[k % 2]}\n" for k in range(N))
    (tmp_path / "people.csv").write_text(people, encoding="utf-8")
    (tmp_path / "calls.csv").write_text("from,to\n+49 151 1,+49 151 2\n+49 151 2,+491513\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"calls\.csv:3: unknown node '\+491513' \(written '\+49 151 3' there\?\)"):
        read(tmp_path)


def test_a_matrix_may_have_strokes_and_its_weights_are_said(tmp_path: Path) -> None:
    names = [f"s{k}" for k in range(N)]
    cells = [
        ["–" if a == b else "-99" if (a, b) == (0, 1) else "0.5" if (a, b) in PAIRS else "" for b in range(N)] for a in range(N)
    ]
    rows = "".join(f"{name},{','.join(row)}\n" for name, row in zip(names, cells, strict=True))
    (tmp_path / "hours.csv").write_text(f",{','.join(names)}\n{rows}", encoding="utf-8")
    reading = read(tmp_path / "hours.csv")
    assert ties_of(reading) == named("s{}") | {frozenset(("s0", "s1"))}
    assert "weights of ties (-99 … 0.5) are not used: each cell but 0 is a tie" in reading.says


def test_named_friends_in_numbered_columns_are_ties_and_codes_among_them_are_wrong(tmp_path: Path) -> None:
    friends = {k: [str(2000 + b) for a, b in PAIRS if a == k] for k in range(N)}
    friends = {k: [*own, *[""] * 9][:9] for k, own in friends.items()}
    head = "CASEID,GRADE1,GRADE2," + ",".join(f"FR_{k}" for k in range(1, 10)) + ",SMOKES\n"
    lines = [f"{2000 + k},{1 + k % 4},{1 + k % 5},{','.join(friends[k])},{k % 2}\n" for k in range(N)]
    (tmp_path / "wave.csv").write_text(head + "".join(lines), encoding="utf-8")
    reading = read(tmp_path / "wave.csv", label="SMOKES")
    assert ties_of(reading) == {frozenset((str(2000 + a), str(2000 + b))) for a, b in PAIRS}
    assert isinstance(reading.graph, Graph)
    assert reading.graph.names.columns == ("GRADE1", "GRADE2")
    (tmp_path / "wave.csv").write_text(head + "".join(lines).replace(",,,0\n", ",-99,9999,0\n"), encoding="utf-8")
    with pytest.raises(DataError, match=r"unknown nodes '-99' 20 times, '9999' 20 times in FR_1"):
        read(tmp_path / "wave.csv", label="SMOKES")


def test_who_somebody_answers_to_is_a_tie_where_ids_are_words(tmp_path: Path) -> None:
    lines = "".join(f"E{k},{GROUPS[k % 2]},{'' if not k else f'E{k // 2}'}\n" for k in range(N))
    (tmp_path / "staff.csv").write_text(f"employee,group,manager\n{lines}", encoding="utf-8")
    assert ties_of(read(tmp_path / "staff.csv")) == {frozenset((f"E{k}", f"E{k // 2}")) for k in range(1, N)}
    marks = "".join(f"{k},{GROUPS[k % 2]},{1 + k % 5}\n" for k in range(N))
    (tmp_path / "staff.csv").write_text(f"employee,group,manager\n{marks}", encoding="utf-8")
    with pytest.raises(DataError, match="no table of ties"):  # a number may be an age, or a mark
        read(tmp_path / "staff.csv")


def test_codes_for_no_answer_are_named(tmp_path: Path) -> None:
    people = "id,income,balance,vote\n" + "".join(
        f"{k},{-98 if k < 3 else k},{k - 20},{-99 if k % 4 == 0 else k % 4}\n" for k in range(N)
    )
    (tmp_path / "people.csv").write_text(people, encoding="utf-8")
    (tmp_path / "ties.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in PAIRS), encoding="utf-8")
    says = read(tmp_path, label="vote").says
    assert "-99 of vote may stand for no answer, and is a value like others as it is: if so, empty these cells" in says
    assert "-98 of income may stand for no answer" in says
    assert "of balance may stand" not in says


@pytest.mark.parametrize(
    ("cells", "codes"),
    [
        ([14, 15, 16, 17, 99], "99"),
        ([0, 3, 5, 7, 98, 99], "98, 99"),
        ([*range(20, 90), 999], "999"),
        ([1, 2, 3, 4, 5, 9], "9"),
        ([0, 1, 9], "9"),
        ([1, 2, 3, 4, 8, 9], "8, 9"),
        ([1, 2, -9, 9], "-9, 9"),
        ([*range(10)], ""),
        ([1, 2, 3, 4, 5, 6, 9], "9"),
        ([0, 2, 3, 7, 9], ""),  # how often
        ([*range(20, 100, 7), 99], ""),
        ([50, 60, 99], ""),
        ([0, 1, 99.5], ""),
        ([10, 20, 100], ""),
    ],
)
def test_numbers_far_above_the_others_may_be_codes(cells: list[float], codes: str, tmp_path: Path) -> None:
    people = "".join(f"p{k},{cells[k % len(cells)]},{'xy'[k % 2]}\n" for k in range(240))
    (tmp_path / "people.csv").write_text(f"id,answer,team\n{people}", encoding="utf-8")
    ties = "".join(f"p{k},p{(k + 1) % 240}\n" for k in range(240))
    (tmp_path / "ties.csv").write_text(f"source,target\n{ties}", encoding="utf-8")
    says = read(tmp_path, label="team").says
    assert ("may stand for no answer" in says) == bool(codes)
    assert f"{codes} of answer may stand" in says or not codes


def test_a_number_far_above_of_one_person_is_that_persons_own(tmp_path: Path) -> None:
    people = "".join(f"p{k},{99 if k == 3 else k % 8},{'xy'[k % 2]}\n" for k in range(40))
    (tmp_path / "people.csv").write_text(f"id,friends,team\n{people}", encoding="utf-8")
    (tmp_path / "ties.csv").write_text("source,target\n" + "".join(f"p{k},p{(k + 1) % 40}\n" for k in range(40)))
    assert "no answer" not in read(tmp_path, label="team").says


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_is_read(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "ties.csv").write_bytes("".join(["source;target\n", *(f"ä{a};ä{b}\n" for a, b in PAIRS)]).encode(encoding))
    assert ties_of(read(tmp_path / "ties.csv")) == named("ä{}")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("g.dot", b"digraph G {\n a -> b;\n}\n", "a Graphviz file; allowed"),
        ("g.gv", b"// made by hand\nstrict graph {\n a -- b\n}\n", "a Graphviz file; allowed"),
        ("follower.js", b'window.YTD.follower.part0 = [ {"follower": {"accountId": "1"}} ]', "JavaScript, which is not run"),
        ("old.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0", "saved as .xlsx"),
        ("wave.sav", b"$FL2@(#) SPSS DATA FILE\0", "an SPSS file"),
        ("wave.dta", b"<stata_dta><header>\0", "not a Stata file"),
        ("people.db", b"SQLite format 3\0", "not an SQLite database"),
        ("dump.sql", b"-- phpMyAdmin\nCREATE TABLE `u` (`id` int);\n", "an SQL dump"),
        ("page.graphml", b"<svg><p>hello</p></svg>", "XML that is neither"),
        ("club.mat", b"MATLAB 5.0 MAT-file\0\1", "a MATLAB file"),
        ("club.nt", b"<http://a/1> <http://a/knows> <http://a/2> .\n", "triples"),
        ("club.gt", "⛾ gt".encode() + b"\1\0\0\0", "a graph-tool file; allowed: the same graph saved as GraphML"),
        ("club.jsonld", b'{"@context": {}, "@graph": []}', "JSON-LD"),
        ("dump.sql", b"--\nCOPY public.people (id) FROM stdin;\n1\n\\.\n", "an SQL dump"),
        ("out.club", b"% bip unweighted\n1 1\n1 2\n", "two kinds of nodes, each numbered from 1; allowed: ties between people"),
        (
            "adjacency.txt",
            b"Ann Bob Cy Dan Eve\nBob Cy\nCy Dan Eve\nDan\nEve\n",
            "who is tied to the first of each line end in .adjlist",
        ),
        ("club.s6", b":Fa@x^\n", "sparse6"),
        ("_chat.txt", b"[03.01.23, 10:00:11] Ann: hello\n[03.01.23, 10:02:59] Bob: hello\n", "a chat, which names no ties"),
        ("chat.csv", b"1/31/24, 11:20 - Ann: hello\n1/31/24, 11:21 - Bob: hello\n", "a chat, which names no ties"),
        ("hours.csv", b",a,b,c\na,,5%,\nb,5%,,9%\nc,,9%,\n", "a matrix of people whose cells are no numbers .*5%"),
        ("club.sif", b"A pp B\nA pp\n", "club.sif:2: no tie; allowed: ONE KIND TWO"),
        ("club.lgl", b"A\n# A\nB\n", "club.lgl:1: no tie; allowed: # ONE"),
        ("club.graph", b"3 9\n2\n1\n\n", "says 3 people and 9 ties, found 3 lines and 1 ties; allowed: METIS"),
        ("calls.csv", b"from;to\n1,0;2,0\n2,0;3,0\n", "ends such as '1,0' have a decimal comma; allowed"),
        ("g.R", b'structure(list(name = c("Ada", "Bert")), class = "data.frame")\n', "R, which is not run"),
        ("g.txt", b"people <- data.frame(id = 1:3)\n", "R, which is not run"),
        (
            "g.cx2",
            b'[{"CXVersion": "2.0"}, {"nodes": [{"id": 1}]}, {"edges": [{"id": 2}]}]',
            "not a CX network that can be read",
        ),
        ("g.tlp", b'(tlp "2.0"\n(nodes 0..3)\n(edge 0 1 2)\n)\n', "a Tulip file"),
        ("ties.csv", "source,target\nИван,Пётр\nПётр,Анна\n".encode("cp1251"), "neither UTF-8 nor Latin"),
        ("ties.csv", "source,target\n张伟,王芳\n王芳,李娜\n".encode("gb18030"), "neither UTF-8 nor Latin"),
        ("ties.csv", "source,target\nMüller,Ott\nOtt,Mäller\n".encode("cp850"), "neither UTF-8 nor Latin"),
        ("club.net", b"*Vertices 5 3\n1 a\n2 b\n3 c\n*Edges\n1 4\n2 5\n", "a network of two modes, 3 and 2 nodes"),
        ("club.net", b"*Vertices 3\n1 a\n*Edges\n1 4\n", "names node 4; allowed: 1 … 3"),
        ("far.csv", b",a,b,c,d\na,0,3,7,2\nb,3,0,4,5\nc,7,4,0,6\nd,2,5,6,0\n", "distances, or likeness"),
        (
            "rows.csv",
            b"source,target\n" + b"Ann,Bob\nBob,Cy\nCy,Ann\n" * 4 + b"Source,HR department 2023\n",
            "in the last line alone",
        ),
        ("rows.csv", b"source,target\n" + b"Ann,Bob\nBob,Cy\nCy,Ann\n" * 4 + b"Rows,12\n", "in the last line alone"),
        ("club.dl", b"dl n=3 format=lowerhalf\ndata:\n1\n0 1\n", "a UCINET file of another form"),
    ],
)
def test_files_of_other_programs_are_named_with_what_to_do(name: str, content: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=says) as refused:
        read(tmp_path / name)
    assert str(refused.value).count("allowed:") == 1 - ("cx2" in name)


SUMS = "was taken for sums of the others, and left out"


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        ({"people": "id,team\na,x\nb,y\nc,x\nTotal,\n", "ties": "source,target\na,b\nb,c\n"}, SUMS),
        ({"ties": "from;to;euro\na;b;1,50\nb;c;2,50\na;b;1\nSumme;;5,00\n"}, SUMS),
        ({"ties": "from,to\na,b\nfrom,to\nb,c\n"}, "its header stands there 1 more time, which is no row"),
        ({"ties": ",a,b,c,Total\na,0,1,0,1\nb,1,0,1,2\nc,0,1,0,1\nTotal,1,2,1,4\n"}, SUMS),
        ({"ties": "x,a,b,c\na,x,x,\nb,,,\nc,,x,x\n"}, "3, named by"),
        ({"ties": "source,target\na,b\nb,c\na,a\nNULL,NULL\n"}, "'NULL' is a person like others: if it stands for nobody"),
        ({"ties": "source,target,weight\na,b,1\nb,c,0.5\na,c,0\n"}, "1 tie with 0 as 'weight' left out"),
        ({"q": "Name,1st,Next\nb,a,c\na,,\nc,b,b\n"}, "ids: each is a tie"),
        ({"ties": "From,To\na,b\nb,\"a; c\"\nc,b\n"}, "1 cells of column 'To' of ties.csv name several people: each is a tie"),
        ({"people": "id,team\na,x\nb,y\nc,x\n", "ties": "a,b,friend\nb,c,friend\n"}, "since 'b' is there again"),
        ({"ties": "a,b,kin\nb,c,friend\n" + "c,b,friend\n" * 9}, "since 'b' is there again"),
        ({"people": "id,team\na,x\nb,y\nc,x\n", "ties": "# by hand\na,b\n# later, 2025\nb,c\n"}, "taken for a comment"),
        ({"ties": "source,target\na,b\nb,c\n", "people": "id,team\na,x\nb,NA\nc,x\n"}, "'NA' of 1 person counts as a class"),
    ],
)  # fmt: skip
def test_what_people_add_to_a_table_is_no_tie_and_said(tables: dict[str, str], says: str, tmp_path: Path) -> None:
    for name, text in tables.items():
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    reading = read(tmp_path, label="team" if "people" in tables else None)
    assert ties_of(reading) == {frozenset("ab"), frozenset("bc")}
    assert isinstance(reading.graph, Graph)
    assert reading.graph.num_nodes == 3 + ("NULL" in says)
    assert says in reading.says


@pytest.mark.parametrize(
    ("tables", "people", "ties"),
    [
        ({"ties": ",a,b,c,z,Suma\na,0,1,0,0,1\nb,1,0,1,0,0\nc,0,1,0,0,1\nz,0,0,0,0,0\nSuma,1,0,1,0,0\n"}, 5, 4),
        ({"people": "name,team,age\na,x,20\nb,y,30\nc,x,40\nSuma,y,\n", "ties": "source,target\na,b\nb,c\n"}, 4, 2),
        ({"people": "name,team,kids\na,x,0\nb,y,0\nc,x,0\nSuma,y,0\n", "ties": "source,target\na,b\nb,c\n"}, 4, 2),
        ({"ties": "source,target,weight\na,b,1\nb,c,2\nc,d,\nSuma,a,\n"}, 5, 4),
        ({"people": "user,team\na,user\nb,admin\nc,user\n", "ties": "source,target\na,b\nb,c\n"}, 3, 2),
        ({"people": "#,name,team\n1,a,x\n2,b,y\n3,c,x\n", "ties": "source,target\na,b\nb,c\n"}, 3, 2),
        ({"ties": ",a,b,c\na,0,0.0,0.0\nb,0.0,0,0.0\nc,0.0,0.0,0\n"}, 3, 0),
    ],
)  # fmt: skip
def test_nobody_is_lost_for_a_name_and_no_tie_is_made_of_nothing(
    tables: dict[str, str], people: int, ties: int, tmp_path: Path
) -> None:
    for name, text in tables.items():
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    graph = read(tmp_path, label="team" if "people" in tables else None).graph
    assert isinstance(graph, Graph)
    assert (graph.num_nodes, graph.num_edges) == (people, ties)
    assert "people" not in tables or len(graph.names.classes) == 2


def test_a_list_of_ties_may_be_called_a_graph(tmp_path: Path) -> None:
    (tmp_path / "club.graph").write_text("1 2\n2 3\n3 4\n4 2\n", encoding="utf-8")
    assert ties_of(read(tmp_path / "club.graph")) == {frozenset(pair) for pair in ("12", "23", "34", "24")}


def test_a_word_for_no_is_no_mark_of_a_tie(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(",a,b,c\na,,no,no\nb,no,,no\nc,no,no,\n", encoding="utf-8")
    with pytest.raises(DataError, match="cells are no numbers"):
        read(tmp_path / "m.csv")


def test_ids_that_are_alike_are_two_people_and_said(tmp_path: Path) -> None:
    (tmp_path / "ties.csv").write_text("source,target\nann,bob\nAnn ,Zo\u0065\u0308\nbob,Zo\u00eb\n", encoding="utf-8")
    reading = read(tmp_path)
    assert ties_of(reading) == {frozenset(("ann", "bob")), frozenset(("Ann", "Zo\u00eb")), frozenset(("bob", "Zo\u00eb"))}
    assert "'Ann' and 'ann' differ in capitals, spaces or zeros in front alone, and are two people" in reading.says


def test_a_header_stays_one_where_somebody_is_called_so(tmp_path: Path) -> None:
    (tmp_path / "words.csv").write_text("source,target\narrow,target\ntarget,aim\n", encoding="utf-8")
    assert ties_of(read(tmp_path)) == {frozenset(("arrow", "target")), frozenset(("target", "aim"))}


def test_an_open_document_beside_tables_is_put_aside(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "club.ods", "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", "<office/>")
    with pytest.raises(DataError, match=r"an OpenDocument file; allowed: each sheet saved as CSV"):
        read(tmp_path)
    (tmp_path / "ties.csv").write_text("source,target\na,b\n", encoding="utf-8")
    assert "aside    club.ods: an OpenDocument file" in read(tmp_path).says


LISTED = [("Ann", "Bob"), ("Bob", "Cy"), ("Cy", "Dan"), ("Dan", "Eve"), ("Eve", "Ann"), ("Ann", "Cy"), ("Bob", "Dan"),
          ("Cy", "Eve"), ("Ann", "Dan"), ("Bob", "Eve")]  # fmt: skip
NUMBERED = [(str("ABCDE".index(a[0])), str("ABCDE".index(b[0]))) for a, b in LISTED]


def written(rows: list[tuple[str, ...]], separator: str = ",") -> str:
    return "".join(separator.join(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("files", "option", "chosen", "wanted"),
    [
        ({"t.csv": written([("wer", "wen"), *LISTED])}, "ends", ["wer", "wen"], LISTED),
        ({"t.csv": written([("Yan", "Zoe"), *LISTED])}, "ends", ["column 1", "column 2"], [("Yan", "Zoe"), *LISTED]),
        ({"t.csv": written([("Kunde", "Freund", "Tage"), *((a, b, "3") for a, b in LISTED)])}, "ends", ["Kunde", "Freund"],
         LISTED),
        ({"t.txt": written([(f"{900 + k}", f"1{a}", f"1{b}") for k, (a, b) in enumerate(NUMBERED)], " ")}, "ends",
         ["column 2", "column 3"], [(f"1{a}", f"1{b}") for a, b in NUMBERED]),
        ({"stays.csv": "patient,bed\n" + "".join(f"{k},{k % 3}\n" for k in range(12)), "people.csv": "id,age\n" + "".join(
            f"{k},{20 + k}\n" for k in range(12))}, "ends", ["patient", "bed"], [(str(k), str(k % 3)) for k in range(12)]),
        ({"edge.csv": written(NUMBERED), "node-feat.csv": "0.5,1.5\n0.1,2.5\n0.5,3.5\n0.7,1.25\n0.2,0.3\n",
          "num-node-list.csv": "5\n"}, "id", "row", NUMBERED),
    ],
)  # fmt: skip
def test_what_two_readings_leave_open_is_asked_and_the_answer_is_taken(
    files: dict[str, str], option: str, chosen: str | list[str], wanted: list[tuple[str, str]], tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(ReadingQuestion) as asked:
        read(tmp_path)
    assert asked.value.option == option
    assert (chosen if isinstance(chosen, str) else tuple(chosen)) in asked.value.choices
    answered = read(tmp_path, **{option: chosen})
    assert ties_of(answered) == {frozenset(pair) for pair in wanted if pair[0] != pair[1]}


def test_names_with_a_comma_are_not_cut_in_two(tmp_path: Path) -> None:
    people = ["Smith, Ann", "Smith, Bob", "Ott, Ann", "Ott, Cy", "Ann", "Smith"]
    pairs = [
        ("Smith, Ann", "Smith, Bob"),
        ("Smith, Bob", "Ott, Cy"),
        ("Ott, Ann", "Smith, Ann"),
        ("Ann", "Smith"),
        ("Ott, Cy", "Ann"),
    ]
    pd.DataFrame(pairs, columns=["source", "target"]).to_csv(tmp_path / "ties.csv", index=False)
    reading = read(tmp_path / "ties.csv")
    assert ties_of(reading) == {frozenset(pair) for pair in pairs}
    assert isinstance(reading.graph, Graph)
    assert set(reading.graph.ids) == set(people)


def test_ids_that_count_within_a_site_are_refused_with_the_column_that_tells_them_apart(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("site,id,age\n" + "".join(f"{s},{k},{30 + k}\n" for s in "NS" for k in range(4)))
    (tmp_path / "ties.csv").write_text("source,target\n0,1\n1,2\n2,3\n")
    with pytest.raises(DataError, match=r"appears a second time; allowed: once .in each 'site' it stands once: keep one"):
        read(tmp_path)


def test_a_column_that_may_name_owners_is_pointed_out(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(
        "id,hospital,team\n" + "".join(f"{k},{'NS'[k % 2]},{'xyz'[k % 3]}\n" for k in range(24))
    )
    (tmp_path / "ties.csv").write_text("source,target\n0,1\n1,2\n2,3\n")
    assert (
        "column 'hospital' is taken for a fact of people: if it names who holds their rows" in read(tmp_path, label="team").says
    )


def test_facts_of_friends_are_no_ties(tmp_path: Path) -> None:
    friends = [{"name": f"Friend {k}", "timestamp": 1_600_000_000 + k} for k in range(N)]
    (tmp_path / "your_friends.json").write_text(json.dumps({"friends_v2": friends}), encoding="utf-8")
    with pytest.raises(DataError, match=r"friends_v2: name, timestamp.*whom one person alone knows is no tie"):
        read(tmp_path)


def test_a_sheet_of_notes_is_put_aside_where_ties_have_a_header_of_words(tmp_path: Path) -> None:
    with pd.ExcelWriter(tmp_path / "club.xlsx") as book:
        pd.DataFrame({"Member": [f"m {k}" for k in range(N)], "Team": GROUPS * 20}).to_excel(
            book, sheet_name="People", index=False
        )
        ties = pd.DataFrame([(f"m {a}", f"m {b}") for a, b in PAIRS], columns=["Who", "Plays with"])
        ties.to_excel(book, sheet_name="Ties", index=False)
        pd.DataFrame([["made by", "Ada"], ["date", "2024"]]).to_excel(book, sheet_name="Notes", index=False, header=False)
    reading = read(tmp_path / "club.xlsx", label="Team")
    assert ties_of(reading) == named("m {}")
    assert "Notes: no column of it holds ids of people" in reading.says


def test_several_owners_archives_and_several_years_are_refused_with_what_to_do(tmp_path: Path) -> None:
    for name in ("bank_a", "bank_b"):
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as archive:
            archive.writestr("ties.csv", "source,target\na,b\nb,c\n")
    with pytest.raises(DataError, match=r"bank_a.zip/ties.csv, bank_b.zip/ties.csv; .* a bank, a folder for each, with"):
        read(tmp_path)
    for name in ("bank_a", "bank_b"):
        (tmp_path / f"{name}.zip").rename(tmp_path / f"{name}.txt")
        (tmp_path / f"{name}.txt").write_text("source,target\na,b\nb,c\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"several files hold ties: bank_a.txt, bank_b.txt; allowed: one file with all ties"):
        read(tmp_path)


def test_rows_are_numbered_as_the_ends_of_ties_are(tmp_path: Path) -> None:
    (tmp_path / "club.node_labels").write_text("".join(f"{k % 3}\n" for k in range(N)), encoding="utf-8")
    for first in (0, 1):
        ties = [(a + first, b + first) for a, b in [*PAIRS, (0, N - 1)]]
        (tmp_path / "club.edges").write_text("".join(f"{a},{b}\n" for a, b in ties), encoding="utf-8")
        reading = read(tmp_path, id="row")
        assert ties_of(reading) == {frozenset(map(str, pair)) for pair in ties}
        assert isinstance(reading.graph, Graph)
        assert [int(reading.graph.names.classes[of]) for of in reading.graph.labels] == [k % 3 for k in range(N)]


@pytest.mark.parametrize(
    ("name", "text", "people"),
    [
        ("m.csv", "0,1,0\n1,0,1\n0,1,0\n", "123"),
        ("m.txt", "0 2 0\n2 0 5\n0 5 0\n", "123"),
        ("m.csv", "a,b,c\n0,1,0\n1,0,1\n0,1,0\n", "abc"),
        ("m.csv", '"","X7","X8","X9"\n"7",0,1,0\n"8",0,0,1\n"9",0,0,0\n', "789"),
        ("m.csv", "0,1,2\n0.0,1.0,0.0\n1.0,0.0,1.0\n0.0,1.0,0.0\n", "012"),
        ("m.csv", '"","p.1","q.1","r.1"\n"a",0,1,0\n"b",1,0,1\n"c",0,1,0\n', "abc"),
    ],
)
def test_a_small_matrix_is_no_list_of_ties(name: str, text: str, people: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    reading = read(tmp_path / name)
    assert ties_of(reading) == {frozenset(people[:2]), frozenset(people[1:])}


def test_a_square_of_facts_is_no_matrix_of_ties(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id,red,blue,tall\na,0,1,0\nb,1,0,1\nc,1,1,0\n", encoding="utf-8")
    (tmp_path / "ties.csv").write_text("source,target\na,b\nb,c\n", encoding="utf-8")
    reading = read(tmp_path, label="")
    assert ties_of(reading) == {frozenset("ab"), frozenset("bc")}
    assert isinstance(reading.graph, Graph)
    assert reading.graph.names.columns == ("red", "blue", "tall")


def test_what_databases_write_for_nothing_is_an_empty_cell(tmp_path: Path) -> None:
    people = "".join(f"{k},{GROUPS[k % 2] if k else chr(92) + 'N'},{k if k % 5 else chr(92) + 'N'}\n" for k in range(N))
    (tmp_path / "people.csv").write_text(f"id,team,age\n{people}", encoding="utf-8")
    (tmp_path / "ties.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in PAIRS), encoding="utf-8")
    graph = read(tmp_path, label="team").graph
    assert isinstance(graph, Graph)
    assert graph.names.classes == ("green", "red")
    assert graph.names.columns == ("age", "age is missing")


def test_places_of_people_in_a_table_are_taken_as_computed_from_ties(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    people = pd.DataFrame({"id": range(N), "X": rng.random(N), "Y": rng.random(N), "team": GROUPS * 20})
    people.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "ties.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in PAIRS), encoding="utf-8")
    reading = read(tmp_path, label="team")
    assert isinstance(reading.graph, Graph)
    assert reading.graph.features_from_edges
    assert "X (a place in a drawing), Y (a place in a drawing), taken as computed from them" in reading.says
    plain = read(tmp_path, label="team", columns={"drop": ["Y"]}).graph
    assert isinstance(plain, Graph)
    assert not plain.features_from_edges


def test_two_pairs_of_columns_that_name_both_ends_are_asked_about(tmp_path: Path) -> None:
    mails = pd.DataFrame({"Subject": "Re:", "From: (Name)": [f"Ann {a % 7}" for a, _ in PAIRS]})
    mails["From: (Address)"], mails["From: (Type)"] = [f"{a}@club.org" for a, _ in PAIRS], "SMTP"
    mails["To: (Name)"], mails["To: (Address)"] = [f"Ann {b % 7}" for _, b in PAIRS], [f"{b}@club.org" for _, b in PAIRS]
    mails["To: (Type)"] = "SMTP"
    mails.to_csv(tmp_path / "inbox.csv", index=False)
    with pytest.raises(
        ReadingQuestion, match=r"From: \(Name\) and To: \(Name\) or From: \(Address\) and To: \(Address\)\?"
    ) as asked:
        read(tmp_path)
    assert ties_of(read(tmp_path, ends=asked.value.choices[1])) == named("{}@club.org")


def test_numbers_of_whoever_one_answers_to_are_ties_where_their_column_is_called_so(tmp_path: Path) -> None:
    people = pd.DataFrame({"emp_no": range(1000, 1000 + N), "group": GROUPS * (N // 2)})
    people["manager_emp_no"] = ["", *(1000 + k // 2 for k in range(1, N))]
    people["desk"] = [1000 + k // 2 for k in range(N)]  # numbers that happen to be ids
    people.to_csv(tmp_path / "staff.csv", index=False)
    reading = read(tmp_path, label="group")
    assert ties_of(reading) == {frozenset((str(1000 + k), str(1000 + k // 2))) for k in range(1, N)}
    assert isinstance(reading.graph, Graph)
    assert reading.graph.names.columns == ("desk",)


def test_two_columns_of_ids_that_lost_their_zeros_are_ties(tmp_path: Path) -> None:
    (tmp_path / "members.csv").write_text("Member ID,team\n001,x\n002,y\n003,x\n", encoding="utf-8")
    (tmp_path / "doubles.csv").write_text("Member 1,Member 2\n1,2\n2,3\n", encoding="utf-8")
    reading = read(tmp_path)
    assert ties_of(reading) == {frozenset(("001", "002")), frozenset(("002", "003"))}
    assert "3 of 3 ids in doubles.csv are written otherwise than in 'Member ID' of members.csv" in reading.says


def test_lists_of_friends_of_every_program_are_ties(tmp_path: Path) -> None:
    friends = [[b for a, b in PAIRS if a == k] for k in range(N)]
    pd.DataFrame({"id": range(N), "friends": friends}).to_parquet(tmp_path / "a.parquet")
    lines = [{"user_id": str(k), "friends": ", ".join(map(str, own)) or "None"} for k, own in enumerate(friends)]
    (tmp_path / "b.json").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (tmp_path / "c.json").write_text(
        json.dumps({k: dict.fromkeys(own, 1.5) for k, own in enumerate(friends)}), encoding="utf-8"
    )
    (tmp_path / "d.txt").write_text("".join(f"({a}, {b})\n" for a, b in PAIRS), encoding="utf-8")
    for name in ("a.parquet", "b.json", "c.json", "d.txt"):
        assert ties_of(read(tmp_path / name)) == named("{}"), name


def test_columns_that_say_who_trains_are_no_features(tmp_path: Path) -> None:
    rows = "".join(f"{k},{GROUPS[k % 2]},{k % 3 == 0},{k % 3 > 0},{20 + k % 7}\n" for k in range(N))
    (tmp_path / "nodes.csv").write_text(f"node_id,label,train_mask,test_mask,age\n{rows}", encoding="utf-8")
    (tmp_path / "edges.csv").write_text("src_id,dst_id\n" + "".join(f"{a},{b}\n" for a, b in PAIRS), encoding="utf-8")
    reading = read(tmp_path)
    assert isinstance(reading.graph, Graph)
    assert reading.graph.names.columns == ("age",)
    assert "train_mask: it says who trains and who is tested (write masks.csv to use that)" in reading.says


@pytest.mark.parametrize(("column", "none", "some"), [("friends", "0", "1"), ("value", "0.0", "1.5"), ("know", "no", "yes")])
def test_a_line_for_each_pair_of_people_is_no_tie_of_each(column: str, none: str, some: str, tmp_path: Path) -> None:
    every = [(a, b) for b in range(N) for a in range(b)]
    lines = "".join(f"{a},{b},{some if (a, b) in PAIRS else none}\n" for a, b in every)
    (tmp_path / "pairs.csv").write_text(f"i,j,{column}\n{lines}", encoding="utf-8")
    (tmp_path / "people.csv").write_text("id,team\n" + "".join(f"{k},{GROUPS[k % 2]}\n" for k in range(N)), encoding="utf-8")
    with pytest.raises(DataError, match=rf"{column!r} is 0 or no in {len(every) - len(PAIRS)} of {len(every)} lines; allowed"):
        read(tmp_path, label="team")
    assert ties_of(read(tmp_path, label="team", columns={"kind": column, "kinds": [some]})) == named("{}")
    (tmp_path / "pairs.csv").write_text(f"i,j,{column}\n{lines}".replace(f",{none}\n", ",2\n"), encoding="utf-8")
    assert len(ties_of(read(tmp_path, label="team"))) == len(every)


@pytest.mark.parametrize("name", ["Summe", "Total", "Sum", "Σ"])
@pytest.mark.parametrize("beside", ["a row", "a column", "both", "a legend", "all"])
def test_sums_and_a_legend_around_a_matrix_are_nobody(tmp_path: Path, name: str, beside: str) -> None:
    people = [f"p{k}" for k in range(12)]
    cells = [["x" if a == b else str(3 + a + b) if (a + b) % 3 == 1 else "" for b in range(12)] for a in range(12)]
    sums = [str(sum(int(own) for own in row if own.isdigit())) for row in cells]
    rows = [["", *people], *([who, *row] for who, row in zip(people, cells, strict=True))]
    if beside in ("a column", "both", "all"):
        rows = [[*row, more] for row, more in zip(rows, [name, *sums], strict=True)]
    if beside in ("a row", "both", "all"):
        rows.append([name, *sums, *[str(sum(map(int, sums)))] * (len(rows[0]) - 13)])
    if beside in ("a legend", "all"):
        rows += [[""] * len(rows[0]), ["x = not applicable", *[""] * (len(rows[0]) - 1)]]
    facts = pd.DataFrame({"code": people, "age": range(30, 42), "ill": ["yes", "no"] * 6})
    with pd.ExcelWriter(tmp_path / "school.xlsx") as book:
        pd.DataFrame(rows).to_excel(book, sheet_name="contacts", index=False, header=False)
        facts.to_excel(book, sheet_name="pupils", index=False)
    told = read(tmp_path / "school.xlsx", label="ill")
    assert isinstance(told.graph, Graph)
    ties = sum((a + b) % 3 == 1 for a in range(12) for b in range(a))
    assert (told.graph.num_nodes, told.graph.num_edges) == (12, ties)
    assert "is a matrix of 12 people: what stands beside them" in str(told)


def test_who_is_called_as_a_sum_and_has_a_row_and_a_column_is_a_person(tmp_path: Path) -> None:
    people = ["Ann", "Bob", "Cy", "Dan", "Eve", "Suma"]
    rows = [["", *people], *([who, *["1" if abs(a - b) == 1 else "0" for b in range(6)]] for a, who in enumerate(people))]
    (tmp_path / "ties.csv").write_text("\n".join(map(",".join, rows)), encoding="utf-8")
    (tmp_path / "people.csv").write_text(
        "id,ill\n" + "".join(f"{one},{k % 2}\n" for k, one in enumerate(people)), encoding="utf-8"
    )
    told = read(tmp_path, label="ill")
    assert isinstance(told.graph, Graph)
    assert (told.graph.num_nodes, told.graph.num_edges) == (6, 5)


@pytest.mark.parametrize(("code", "share", "asked"), [("99", 1.5, True), ("0", 3, True), ("57", 1.5, True), ("57", 3, False)])
@pytest.mark.parametrize("back", [False, True])
def test_one_whom_very_many_name_is_asked_about(tmp_path: Path, code: str, share: float, asked: bool, back: bool) -> None:
    n = 100
    pairs = [(k, (k + step) % n) for k in range(n) for step in (1, 2)]
    hub = [(k, int(code)) for k in range(n) if k != int(code) and k % share < 1]
    pairs += hub + [(two, one) for one, two in hub] * back
    (tmp_path / "ties.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in pairs), encoding="utf-8")
    (tmp_path / "people.csv").write_text("id,ill\n" + "".join(f"{k},{k % 2}\n" for k in range(n)), encoding="utf-8")
    assert (f"{code!r} is named by " in str(read(tmp_path, label="ill"))) is (asked and not back)


def staff(unknown: int = 0) -> pd.DataFrame:
    """Forty people with a superior each; the first has none, and the last ``unknown`` one who is not there."""
    boss = ["", *(str(100 + k // 4) for k in range(1, 40))]
    boss[40 - unknown :] = ["999"] * unknown
    return pd.DataFrame(
        {"number": range(100, 140), "age": [20 + k % 9 for k in range(40)], "head": boss, "left": ["J", "N"] * 20}
    )


@pytest.mark.parametrize("ends", [("number", "head"), ("head", "number")])
def test_ends_may_be_columns_of_the_table_of_people(tmp_path: Path, ends: tuple[str, str]) -> None:
    staff().to_csv(tmp_path / "staff.csv", index=False)
    told = read(tmp_path / "staff.csv", label="left", ends=ends)
    assert isinstance(told.graph, Graph)
    assert (told.graph.num_nodes, told.graph.num_edges, told.graph.names.columns) == (40, 39, ("age",))
    assert "staff.csv has a line for each of the people: 'head' is whom they are tied to" in str(told)


def test_a_list_of_ties_with_a_time_stays_one(tmp_path: Path) -> None:
    pairs = pd.DataFrame({"a": [k % 30 for k in range(60)], "b": [(k * 7 + 1) % 30 for k in range(60)], "hour": range(60)})
    pairs.to_csv(tmp_path / "calls.csv", index=False)
    told = read(tmp_path / "calls.csv", label="", ends=("a", "b"))
    assert "people are those who have a tie" in str(told)


def test_a_name_that_nobody_has_in_many_lines_is_counted(tmp_path: Path) -> None:
    staff(unknown=12).to_csv(tmp_path / "staff.csv", index=False)
    with pytest.raises(DataError) as refused:
        read(tmp_path / "staff.csv", label="left", ends=("number", "head"))
    said = str(refused.value)
    assert "staff.csv:30: unknown node '999' 12 times in column 'head'; allowed: the 40 ids of the nodes. If " in said
    assert said.count("unknown node") == 1


def test_a_code_in_columns_of_friends_is_counted_with_these_columns(tmp_path: Path) -> None:
    friends = {f"friend{k}": [100 + (row + k) % 40 if row % (k + 1) else 999 for row in range(40)] for k in (1, 2)}
    staff().drop(columns="head").assign(**friends).to_csv(tmp_path / "survey.csv", index=False)
    with pytest.raises(DataError, match=r"survey.csv:2: unknown node '999' 34 times in friend1, friend2; allowed: the 40 ids"):
        read(tmp_path / "survey.csv", label="left")
