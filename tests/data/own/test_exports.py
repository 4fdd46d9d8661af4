"""What programs of offices, banks and surveys export: the right graph, one question, or a refusal that says what to do."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedgraph.data.own.door import read
from fedgraph.data.own.tables import ReadingQuestion
from fedgraph.errors import DataError
from tests.data.own.clubs import given, graph_of, lines, pairs_of, put, ring, ties_of

N = 40
RNG = np.random.default_rng(5)
PAIRS = sorted({(int(a), int(b)) for a, b in np.sort(RNG.integers(0, N, (90, 2))) if a != b})
GROUPS = ["red", "green"]
TIES = lines(PAIRS, "source,target")
AB_BC = {"ties.csv": "source,target\na,b\nb,c\n"}
TRIANGLE = b"Ann,Bob\nBob,Cy\nCy,Ann\n" * 4


def named(form: str) -> set[frozenset[str]]:
    return {frozenset((form.format(a), form.format(b))) for a, b in PAIRS}


def test_a_workbook_with_a_title_two_rows_of_header_and_merged_cells_is_read(tmp_path: Path) -> None:
    from openpyxl import Workbook

    book = Workbook()
    people, ties = book.active, book.create_sheet("lifts")
    for row in (["Members, spring"], ["no.", "person", None, "club"], [None, "age", "town", "section"]):
        people.append(row)
    for k in range(N):
        people.append([f"m{k}", 20 + k, "Graz", GROUPS[k // 20] if k % 20 == 0 else None])
    for cells in ("A2:A3", "B2:C2", "D4:D23", "D24:D43"):
        people.merge_cells(cells)
    ties.append(["member a", "member b"])
    for a, b in PAIRS:
        ties.append([f"m{a}", f"m{b}"])
    book.save(tmp_path / "club.xlsx")
    reading = read(tmp_path / "club.xlsx", label="club section")
    assert np.bincount(graph_of(reading).labels).tolist() == [20, 20], "a merged cell is said of each of its rows"
    assert ties_of(reading) == named("m{}")
    for says in ("merged cell is said of each of its rows", "named by 'no.'", "its first two rows are its header",
                 "1 line above the table left out, 'Members, spring'"):  # fmt: skip
        assert says in reading.says


def test_a_formula_without_a_value_is_no_empty_cell(tmp_path: Path) -> None:
    from openpyxl import Workbook

    book = Workbook()
    for row in (["id", "age"], ["a", "=20+1"], ["b", 30]):
        book.active.append(row)
    book.save(tmp_path / "people.xlsx")
    with pytest.raises(DataError, match=r"people\.xlsx: 1 cell with a formula and no value, as no spreadsheet has computed it"):
        read(tmp_path / "people.xlsx")


def test_letters_that_may_be_others_are_shown(tmp_path: Path) -> None:
    ties = "source,target\nCzes³aw,Zoë\nZoë,Ann\n".encode("cp1252")
    assert "with words such as 'Czes³aw': if letters are wrong, save it as UTF-8" in given(tmp_path, {"ties.csv": ties}).says


def test_a_bank_writes_words_above_its_table(tmp_path: Path) -> None:
    head = "Umsätze;Zeitraum: 01.01.2026 - 31.03.2026\r\n\r\nTag;IBAN Auftraggeber;IBAN Empfänger;Zweck;Betrag\r\n"
    sales = "\r\n".join(f'02.01.26;DE0 {a};DE0 {b};"Miete; Jan";-1.{100 + a},50' for a, b in PAIRS)
    people = lines(((f"DE0 {k}", GROUPS[k % 2], f"2.{100 + k},50") for k in range(N)), "IBAN;Gruppe;Einkommen", ";")
    reading = given(tmp_path, {"sales.csv": (head + sales).encode("cp1252"), "customers.csv": people})
    assert ties_of(reading) == named("DE0 {}")
    assert graph_of(reading).features.toarray().ravel().tolist() == [2100.5 + k for k in range(N)]


def test_a_cell_may_go_on_over_any_lines_of_the_sample(tmp_path: Path) -> None:
    rows = [f'P-{k},"A text,\nwith ""quotes"" and lines","{", ".join(f"P-{b}" for a, b in PAIRS if a == k)}"' for k in range(N)]
    rows += [f'P-{k},"A text,\nand lines",' for k in range(N, 240)]
    assert ties_of(given(tmp_path, {"issues.csv": "Key,Description,Linked\n" + "\n".join(rows)})) == named("P-{}")


@pytest.mark.parametrize("between", [" -- ", " -> ", "\tknows\t", ";likes;"])
def test_a_sign_or_a_word_between_two_ends_is_no_end(between: str, tmp_path: Path) -> None:
    assert ties_of(given(tmp_path, {"ties.txt": "".join(f"p{a}{between}p{b}\n" for a, b in PAIRS)})) == named("p{}")


def test_named_friends_in_numbered_columns_are_ties_and_codes_among_them_are_wrong(tmp_path: Path) -> None:
    friends = {k: [str(2000 + b) for a, b in PAIRS if a == k] for k in range(N)}
    friends = {k: [*own, *[""] * 9][:9] for k, own in friends.items()}
    head = "CASEID,GRADE1,GRADE2," + ",".join(f"FR_{k}" for k in range(1, 10)) + ",SMOKES"
    wave = lines(((2000 + k, 1 + k % 4, 1 + k % 5, *friends[k], k % 2) for k in range(N)), head)
    reading = given(tmp_path, {"wave.csv": wave}, label="SMOKES")
    assert ties_of(reading) == {frozenset((str(2000 + a), str(2000 + b))) for a, b in PAIRS}
    assert graph_of(reading).names.columns == ("GRADE1", "GRADE2")
    with pytest.raises(DataError, match=r"unknown nodes '-99' 20 times, '9999' 20 times in FR_1"):
        given(tmp_path, {"wave.csv": wave.replace(",,,0\n", ",-99,9999,0\n")}, label="SMOKES")


CODES = [
    ("99", [14, 15, 16, 17, 99]),
    ("98, 99", [0, 3, 5, 7, 98, 99]),
    ("999", [*range(20, 90), 999]),
    ("9", [1, 2, 3, 4, 5, 6, 9]),
    ("9", [0, 1, 9]),
    ("8, 9", [1, 2, 3, 4, 8, 9]),
    ("", [50, 60, 99]),
    ("-9, 9", [1, 2, -9, 9]),
    ("-98", [-98, *range(1, 40)]),
    ("", [*range(-20, 20)]),
    ("", [*range(10)]),
    ("", [0, 2, 3, 7, 9]),  # how often
    ("", [*range(20, 100, 7), 99]),
    ("", [0, 1, 99.5]),
    ("", [10, 20, 100]),
    ("", [99, *(k % 8 for k in range(239))]),  # of one person: that person's own
]


@pytest.mark.parametrize(("codes", "cells"), CODES)
def test_numbers_far_from_the_others_may_be_codes_for_no_answer(codes: str, cells: list[float], tmp_path: Path) -> None:
    people = lines(((f"p{k}", cells[k % len(cells)], -99 if k % 4 == 0 else k % 2) for k in range(240)), "id,answer,vote")
    says = given(tmp_path, {"people.csv": people, "ties.csv": ring(240)}, label="vote").says
    assert "-99 of vote may stand for no answer, and is a value like others as it is: if so, empty these cells" in says
    assert ("of answer may stand for no answer" in says) == bool(codes)
    assert f"{codes} of answer may stand" in says or not codes


REFUSED = [
    ("g.dot", b"digraph G {\n a -> b;\n}\n", "a Graphviz file; allowed"),
    ("g.gv", b"// made by hand\nstrict graph {\n a -- b\n}\n", "a Graphviz file; allowed"),
    ("follower.js", b'window.YTD.follower.part0 = [ {"follower": {"accountId": "1"}} ]', "JavaScript, which is not run"),
    ("old.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0", "saved as .xlsx"),
    (
        "study.ipynb",
        b'{"cells": [{"cell_type": "code", "source": []}], "nbformat": 4}',
        "a notebook, which is not run; allowed",
    ),
    ("wave.sav", b"$FL2@(#) SPSS DATA FILE\0", "an SPSS file"),
    ("wave.dta", b"<stata_dta><header>\0", "not a Stata file"),
    ("people.db", b"SQLite format 3\0", "not an SQLite database"),
    ("dump.sql", b"-- phpMyAdmin\nCREATE TABLE `u` (`id` int);\n", "an SQL dump"),
    ("dump.sql", b"--\nCOPY public.people (id) FROM stdin;\n1\n\\.\n", "an SQL dump"),
    ("page.graphml", b"<svg><p>hello</p></svg>", r"XML that is neither .* \(svg\); allowed: one of these, or who is tied"),
    (
        "camt.xml",
        b'<?xml version="1.0"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"/>',
        "a bank's statement",
    ),
    ("umsatz.sta", b":20:STARTUMS\n:25:10020030/1234567\n:61:2401020102DR12,50N033NONREF\n", "a bank's statement"),
    ("lite.json", b'{"type": "gephi-lite", "version": "1.0.0", "graphDataset": {}}', "exports as GEXF"),
    ("club.mat", b"MATLAB 5.0 MAT-file\0\1", "a MATLAB file"),
    ("club.nt", b"<http://a/1> <http://a/knows> <http://a/2> .\n", "triples"),
    ("club.gt", "⛾ gt".encode() + b"\1\0\0\0", "a graph-tool file; allowed: the same graph saved as GraphML"),
    ("club.jsonld", b'{"@context": {}, "@graph": []}', "JSON-LD"),
    ("out.club", b"% bip unweighted\n1 1\n1 2\n", "two kinds of nodes, each numbered from 1; allowed: ties between people"),
    (
        "adjacency.txt",
        b"Ann Bob Cy Dan Eve\nBob Cy\nCy Dan Eve\nDan\nEve\n",
        "who is tied to the first of each line end in .adj",
    ),
    ("club.s6", b":Fa@x^\n", "sparse6"),
    ("users.ldf", b"version: 1\n\ndn:: Q049\n DPWx\nchangetype: add\n", r"LDIF.*; allowed: .*csvde"),
    ("emp.lst", b"SQL> select a, b from emp;\n\n A     B\n---- ----\n 1    2\n\n", r"SQL\*Plus.*; allowed: .*CSV"),
    ("_chat.txt", b"[03.01.23, 10:00:11] Ann: hello\n[03.01.23, 10:02:59] Bob: hello\n", "a chat, which names no ties"),
    ("chat.csv", b"1/31/24, 11:20 - Ann: hello\n1/31/24, 11:21 - Bob: hello\n", "a chat, which names no ties"),
    ("hours.csv", b",a,b,c\na,,5%,\nb,5%,,9%\nc,,9%,\n", "a matrix of people whose cells are no numbers .*5%"),
    ("m.csv", b",a,b,c\na,,no,no\nb,no,,no\nc,no,no,\n", "cells are no numbers"),
    ("far.csv", b",a,b,c,d\na,0,3,7,2\nb,3,0,4,5\nc,7,4,0,6\nd,2,5,6,0\n", "distances, or likeness"),
    ("club.sif", b"A pp B\nA pp\n", "club.sif:2: no tie; allowed: ONE KIND TWO"),
    ("club.lgl", b"A\n# A\nB\n", "club.lgl:1: no tie; allowed: # ONE"),
    ("club.graph", b"3 9\n2\n1\n\n", "says 3 people and 9 ties, found 3 lines and 1 ties; allowed: METIS"),
    ("calls.csv", b"from;to\n1,0;2,0\n2,0;3,0\n", "ends such as '1,0' have a decimal comma; allowed"),
    ("calls.csv", b"from;to\n" + b"4.92E+11;4.92E+11\n" * 5, "shortened, so different people have one name; allowed: ids as"),
    ("calls.csv", b"from;to\n" + b"4,92E+11;4,92E+11\n" * 5, "shortened, so different people have one name; allowed: ids as"),
    (
        "calls.csv",
        b"from;to\n" + b"5E+11;5E+11\n" * 5,
        "shortened, so different people have one name; allowed: ids as they are",
    ),
    ("g.R", b'structure(list(name = c("Ada", "Bert")), class = "data.frame")\n', "R, which is not run"),
    ("g.txt", b"people <- data.frame(id = 1:3)\n", "R, which is not run"),
    ("g.cx2", b'[{"CXVersion": "2.0"}, {"nodes": [{"id": 1}]}, {"edges": [{"id": 2}]}]', "not a CX network that can be read"),
    ("g.tlp", b'(tlp "2.0"\n(nodes 0..3)\n(edge 0 1 2)\n)\n', "a Tulip file"),
    ("ties.csv", "source,target\nИван,Пётр\nПётр,Анна\n".encode("cp1251"), "neither UTF-8 nor Latin"),
    ("ties.csv", "source,target\n张伟,王芳\n王芳,李娜\n".encode("gb18030"), "neither UTF-8 nor Latin"),
    ("ties.csv", "source,target\nMüller,Ott\nOtt,Mäller\n".encode("cp850"), "neither UTF-8 nor Latin"),
    ("club.net", b"*Vertices 5 3\n1 a\n2 b\n3 c\n*Edges\n1 4\n2 5\n", "a network of two modes, 3 and 2 nodes"),
    ("club.net", b"*Vertices 3\n1 a\n*Edges\n1 4\n", "names node 4; allowed: 1 … 3"),
    ("rows.csv", b"source,target\n" + TRIANGLE + b"Source,HR department 2023\n", "in the last line alone"),
    ("rows.csv", b"source,target\n" + TRIANGLE + b"Rows,12\n", "in the last line alone"),
    ("club.dl", b"dl n=3 format=lowerhalf\ndata:\n1\n0 1\n", "a UCINET file of another form"),
]


@pytest.mark.parametrize(("name", "content", "says"), REFUSED)
def test_files_of_other_programs_are_named_with_what_to_do(name: str, content: bytes, says: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=says) as refused:
        given(tmp_path, {name: content})
    assert str(refused.value).count("allowed:") == 1 - ("cx2" in name)


PHONES = lines(((f"+49 151 {k}", GROUPS[k % 2]) for k in range(N)), "phone,group")
TEAMS = "id,team\na,x\nb,y\nc,x\n"
SITES = lines(((site, k, 30 + k) for site in "NS" for k in range(4)), "site,id,age")
SEVERAL = [
    ({"issues.csv": lines(((f"P-{k}", k, "A", "B", f"P-{k + 1}") for k in range(N)), "Summary,Votes,Watchers,Watchers,Blocks")},
     r"issues\.csv:1: column 'Watchers' is named twice"),
    ({"people.csv": PHONES, "calls.csv": "from,to\n+49 151 1,+49 151 2\n+49 151 2,+491513\n"},
     r"calls\.csv:3: unknown node '\+491513' \(written '\+49 151 3' there\?\)"),
    ({"people.csv": SITES, "ties.csv": "source,target\n0,1\n1,2\n2,3\n"},
     r"appears a second time; allowed: once .in each 'site' it stands once: keep one"),
    ({"a.txt": "source,target\na,b\nb,c\n", "b.txt": "source,target\na,b\nb,c\n"},
     r"several files hold ties: a.txt, b.txt; allowed: one file with all ties"),
    ({"papers.csv": lines(((f"T{k}", f"Ann {k % 7}; Bob {k % 5}") for k in range(N)), "title,authors")},
     r"'authors' lists several in a cell.*allowed: .* pairs of those who stand in one cell"),
    ({"roster.csv": lines(((k, k % 2, *(k * j % 2 for j in range(12))) for k in range(12)),
                          "id,sex," + ",".join(f"fr{k}" for k in range(12)))},
     r"'fr0' … 'fr11' are 12 columns, as many as rows: whom each of 'id' names\?"),
    ({"users.csv": TEAMS, "ties.csv": AB_BC["ties.csv"], "mails.csv": "user,mail\na,Hi\nb,Ho\nz,Ha\n"},
     r"unknown node 'z'.*\nTies were read from ties.csv, people from users.csv, and facts of them from mails.csv: leave out"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "says"), SEVERAL)
def test_faults_of_tables_are_named_with_what_to_write(files: dict[str, str], says: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=says):
        given(tmp_path, files)


def test_archives_of_several_owners_are_refused_with_what_to_do(tmp_path: Path) -> None:
    for name in ("bank_a", "bank_b"):
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as archive:
            archive.writestr("ties.csv", AB_BC["ties.csv"])
    with pytest.raises(DataError, match=r"bank_a.zip/ties.csv, bank_b.zip/ties.csv; .* a bank, a folder for each, with"):
        read(tmp_path)


SUMS = "was taken for sums of the others, and left out"
SAID = [
    ({"people": f"{TEAMS}Total,\n", "ties": AB_BC["ties.csv"]}, SUMS),
    ({"ties": "from;to;euro\na;b;1,50\nb;c;2,50\na;b;1\nSumme;;5,00\n"}, SUMS),
    ({"ties": "from,to\na,b\nfrom,to\nb,c\n"}, "its header stands there 1 more time, which is no row"),
    ({"ties": ",a,b,c,Total\na,0,1,0,1\nb,1,0,1,2\nc,0,1,0,1\nTotal,1,2,1,4\n"}, SUMS),
    ({"ties": "x,a,b,c\na,x,x,\nb,,,\nc,,x,x\n"}, "3, named by"),
    ({"ties": ",a,b,c\na,–,0.5,\nb,0.5,–,-99\nc,,-99,–\n"}, "weights of ties (-99 … 0.5) are not used: each cell"),
    ({"ties": "source,target\na,b\nb,c\na,a\nNULL,NULL\n"}, "'NULL' is a person like others: if it stands for nobody"),
    ({"ties": "source,target,weight\na,b,1\nb,c,0.5\na,c,0\n"}, "1 tie with 0 as 'weight' left out"),
    ({"q": "Name,1st,Next\nb,a,c\na,,\nc,b,b\n"}, "2, from each to those whom 1st, Next of q.csv list; 0 people"),
    ({"ties": "From,To\na,b\nb,\"a; c\"\nc,b\n"}, "1 cells of column 'To' of ties.csv name several people: each is a tie"),
    ({"people": TEAMS, "ties": "a,b,friend\nb,c,friend\n"}, "since 'b' is there again"),
    ({"ties": "a,b,kin\nb,c,friend\n" + "c,b,friend\n" * 9}, "since 'b' is there again"),
    ({"people": TEAMS, "ties": "# by hand\na,b\n# later, 2025\nb,c\n"}, "ties.csv:3: 1 line between others taken for a com"),
    ({"people": "id,team\na,x\nb,NA\nc,x\n", "ties": AB_BC["ties.csv"]}, "'NA' of 1 person counts as a class"),
    ({"people": "id,red,blue,tall\na,0,1,0\nb,1,0,1\nc,1,1,0\n", "ties": AB_BC["ties.csv"]}, "tall  yes/no  yes 1, no 2"),
    ({"people": "id,hospital,team\na,N,x\nb,S,y\nc,N,x\n", "ties": AB_BC["ties.csv"]},
     "column 'hospital' is taken for a fact of people: if it names who holds their rows"),
    ({"people": "id,team,train_mask,test_mask\na,x,True,False\nb,y,True,False\nc,x,False,True\n", "ties": AB_BC["ties.csv"]},
     "train_mask: it says who trains and who is tested (write masks.csv to use that)"),
]  # fmt: skip


@pytest.mark.parametrize(("tables", "says"), SAID)
def test_what_people_add_to_a_table_is_no_tie_and_said(tables: dict[str, str], says: str, tmp_path: Path) -> None:
    label = "" if "people" not in tables else "team" if "team" in tables["people"] else ""
    put(tmp_path, {f"{name}.csv": text for name, text in tables.items()})
    reading = read(tmp_path, label=label)
    assert ties_of(reading) == pairs_of("a-b b-c")
    assert graph_of(reading).num_nodes == 3 + ("NULL" in says)
    assert says in reading.says


STAFF = [f"{1000 + k};N{k};{'ABC'[k % 3]};2020-01-{10 + k % 18};{1000 + k // 3 if k else ''}" for k in range(30)]
STAFF_HEAD = "id;name;level;hired;manager_id"
DATE, WORDS, IDS = (
    "Effective as of;2024-06-30;;;",
    "Id;Name;Which level?;When?;Whose?",
    ";".join(['"{""ImportId"":""Q""}"'] * 5),
)
AROUND = [
    (["All Workers;;;;", DATE, ";;;;", STAFF_HEAD, *STAFF], "2 lines above the table left out, 'All Workers'"),
    ([DATE, "Unit;Top;;;", "By;Ann;;;", STAFF_HEAD, *STAFF], "3 lines above the table left out, 'Effective as of'"),
    ([STAFF_HEAD, WORDS, *STAFF], "1 line below its header left out: what columns hold, 'Id'"),
    *(([STAFF_HEAD, *STAFF, ";;;;", more], f"{more.split(';')[0]!r} of staff") for more in (
        "Total: 30;;;;", "Total;30;;;", "Total: 30;;;4;", "30 Sätze;;;;", "Stand: 01.07.2024;;;;", "Ende: Mai;1.6.;;;")),
    ([STAFF_HEAD, "Unit 0;;;;", *STAFF[:9], "Unit 1;;;;", *STAFF[9:]], "'Unit 0' and 1 more row of staff"),
    ([STAFF_HEAD, WORDS, IDS, *STAFF], "2 lines below its header left out: what columns hold, 'Id'"),
]  # fmt: skip


@pytest.mark.parametrize("form", ["csv", "xlsx"])
@pytest.mark.parametrize(("rows", "says"), AROUND)
def test_what_programs_write_around_a_table_is_nobody_and_said(rows: list[str], says: str, form: str, tmp_path: Path) -> None:
    file = tmp_path / f"staff.{form}"
    if form == "csv":
        file.write_text("\n".join(rows), encoding="utf-8")
    else:
        cells = [[cell.strip('"').replace('""', '"') for cell in row.split(";")] for row in rows]
        pd.DataFrame(cells).to_excel(file, header=False, index=False)
    reading = read(file, label="level")
    assert set(graph_of(reading).ids) == {str(1000 + k) for k in range(30)}
    assert says in reading.says


ODD = [("p.9;;;", "p.9"), ("zoë;;;", "ann"), ("Total;z;;", "ann"), ("p.9;z;4;", "ann"), ("p.9;;4;", "ann")]


@pytest.mark.parametrize(("row", "end"), ODD)
def test_a_row_with_one_fact_is_a_person_if_a_tie_names_it_or_others_are_called_alike(
    row: str, end: str, tmp_path: Path
) -> None:
    people = "id;team;age;km\n" + "".join(f"{one};x;3;4\n" for one in ("ann", "bob", "cyd", "dan", "eve", "fay", "gil", "hal"))
    reading = given(tmp_path, {"people.csv": f"{people}{row}\n", "ties.csv": f"source,target\nann,bob\nbob,{end}\n"}, label="")
    assert graph_of(reading).num_nodes == 9
    assert ("'zoë' of people.csv has no other cell, and is a person" in reading.says) == (row[0] == "z")


def test_first_rows_with_few_facts_or_words_for_numbers_stay(tmp_path: Path) -> None:
    text = "x;y;;;\n+1;+2;;;\nann;bob;friend;work;old\n" + "".join(f"x{k};y{k};friend;work;new\n" for k in range(9))
    assert ties_of(given(tmp_path, {"t.csv": text}, ends=["column 1", "column 2"])) >= pairs_of("x-y +1-+2 ann-bob")
    people = ["id;age;size;team", "p0;unknown;unknown;x", *(f"p{k};{20 + k};{150 + k};{'xy'[k % 2]}" for k in range(1, 12))]
    assert (
        graph_of(given(tmp_path / "a", {"people.csv": "\n".join(people), "ties.csv": ring(12)}, label="team")).num_nodes == 12
    )


KEPT = [
    (5, 4, {"ties": ",a,b,c,z,Suma\na,0,1,0,0,1\nb,1,0,1,0,0\nc,0,1,0,0,1\nz,0,0,0,0,0\nSuma,1,0,1,0,0\n"}),
    (4, 2, {"people": "name,team,age\na,x,20\nb,y,30\nc,x,40\nSuma,y,\n", "ties": AB_BC["ties.csv"]}),
    (4, 2, {"people": "name,team,kids\na,x,0\nb,y,0\nc,x,0\nSuma,y,0\n", "ties": AB_BC["ties.csv"]}),
    (5, 4, {"ties": "source,target,weight\na,b,1\nb,c,2\nc,d,\nSuma,a,\n"}),
    (3, 2, {"people": "user,team\na,user\nb,admin\nc,user\n", "ties": AB_BC["ties.csv"]}),
    (3, 2, {"people": "#,name,team\n1,a,x\n2,b,y\n3,c,x\n", "ties": AB_BC["ties.csv"]}),
    (3, 0, {"ties": ",a,b,c\na,0,0.0,0.0\nb,0.0,0,0.0\nc,0.0,0.0,0\n"}),
]


@pytest.mark.parametrize(("people", "ties", "tables"), KEPT)
def test_nobody_is_lost_for_a_name_and_no_tie_is_made_of_nothing(
    people: int, ties: int, tables: dict[str, str], tmp_path: Path
) -> None:
    put(tmp_path, {f"{name}.csv": text for name, text in tables.items()})
    graph = graph_of(read(tmp_path, label="team" if "people" in tables else None))
    assert (graph.num_nodes, graph.num_edges) == (people, ties)
    assert "people" not in tables or len(graph.names.classes) == 2


LISTS = [
    ("club.graph", "1 2\n2 3\n3 4\n4 2\n", "1-2 2-3 3-4 2-4"),
    ("ties.csv", "source,target\nann,bob\nAnn ,Zo\u0065\u0308\nbob,Zo\u00eb\n", "ann-bob Ann-Zo\u00eb bob-Zo\u00eb"),
    ("words.csv", "source,target\narrow,target\ntarget,aim\n", "arrow-target target-aim"),
    ("utf_16_le.csv", "source;target\nä1;ä2\nä2;ä3\nä3;ä4\n".encode("utf-16-le"), "ä1-ä2 ä2-ä3 ä3-ä4"),
    ("utf_16_be.csv", "source;target\nä1;ä2\nä2;ä3\nä3;ä4\n".encode("utf-16-be"), "ä1-ä2 ä2-ä3 ä3-ä4"),
    ("m.csv", "0,1,0\n1,0,1\n0,1,0\n", "1-2 2-3"),
    ("m.txt", "0 2 0\n2 0 5\n0 5 0\n", "1-2 2-3"),
    ("m.csv", "a,b,c\n0,1,0\n1,0,1\n0,1,0\n", "a-b b-c"),
    ("m.csv", '"","X7","X8","X9"\n"7",0,1,0\n"8",0,0,1\n"9",0,0,0\n', "7-8 8-9"),
    ("m.csv", "0,1,2\n0.0,1.0,0.0\n1.0,0.0,1.0\n0.0,1.0,0.0\n", "0-1 1-2"),
    ("m.csv", '"","p.1","q.1","r.1"\n"a",0,1,0\n"b",1,0,1\n"c",0,1,0\n', "a-b b-c"),
    ("staff.csv", "employee,group,manager\nE0,x,\nE1,y,E0\nE2,x,E0\nE3,y,E1\n", "E0-E1 E0-E2 E1-E3"),
]


@pytest.mark.parametrize(("name", "content", "ties"), LISTS)
def test_a_list_or_a_small_matrix_is_what_it_looks_like(name: str, content: str | bytes, ties: str, tmp_path: Path) -> None:
    reading = given(tmp_path, {name: content}, **({"label": "group"} if "group" in str(content) else {}))
    assert ties_of(reading) == pairs_of(ties)
    assert ("'Ann' and 'ann' differ in capitals, spaces or zeros in front alone, and are two people" in reading.says) == (
        "Ann" in ties
    )


ENDED = [("player,full_name,role,", ",", "player"), ("player,full_name,role", ",", "player"),
         ("player,full_name,role,,", "", "player"), (",full_name,role,", "", "the column without a name")]  # fmt: skip


@pytest.mark.parametrize(
    ("n", "people", "more"), [(4, "ABCD", {}), (5, "ABC", {}), (5, "ABCDE", {"p.csv": "id,t\nA,\nB,x\nC,\nD,\nE,y\n"})]
)
def test_a_line_of_one_label_is_somebody_without_ties(n: int, people: str, more: dict[str, str], tmp_path: Path) -> None:
    told = f"dl n={n} format=nodelist1\nlabels embedded\ndata:\nA B C\nB C\nC\nD\n"
    reading = given(tmp_path, {"l.dl": told, **more})
    assert (set(graph_of(reading).ids), ties_of(reading)) == (set(people), pairs_of("A-B A-C B-C"))
    assert ("l.dl names 4 of 5 people: who has no tie is known where a table of people is beside it" in reading.says) == (n > 4)


@pytest.mark.parametrize(("head", "end", "key"), ENDED)
def test_a_separator_at_the_end_of_lines_shifts_no_column_and_makes_nobody(
    head: str, end: str, key: str, tmp_path: Path
) -> None:
    rows = [f"n{k},Name {k},{k % 5} of {k}{end}" for k in range(20)]
    reading = given(tmp_path, {"people.csv": "\n".join([head, *rows]), "ties.csv": ring(20, "n{}")}, label="")
    assert graph_of(reading).num_nodes == 20
    assert f"named by {key if ' ' in key else repr(key)} of people.csv" in reading.says


def test_names_with_a_comma_are_not_cut_in_two(tmp_path: Path) -> None:
    pairs = [("Smith, Ann", "Smith, Bob"), ("Smith, Bob", "Ott, Cy"), ("Ann", "Smith"), ("Ott, Cy", "Ann")]
    assert ties_of(given(tmp_path, {"ties.csv": lines(pairs, "source;target", ";")})) == set(map(frozenset, pairs))
    quoted = lines(((f'"{a}"', f'"{b}"') for a, b in pairs), "source,target")
    assert ties_of(given(tmp_path, {"ties.csv": quoted})) == set(map(frozenset, pairs))


def test_an_open_document_is_refused_and_beside_tables_put_aside(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "club.ods", "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", "<office/>")
    with pytest.raises(DataError, match=r"an OpenDocument file; allowed: each sheet saved as CSV"):
        read(tmp_path)
    assert "aside    club.ods: an OpenDocument file" in read(put(tmp_path, AB_BC)).says


LISTED = [("Ann", "Bob"), ("Bob", "Cy"), ("Cy", "Dan"), ("Dan", "Eve"), ("Eve", "Ann"), ("Ann", "Cy"), ("Bob", "Dan"),
          ("Cy", "Eve"), ("Ann", "Dan"), ("Bob", "Eve")]  # fmt: skip
NUMBERED = [(str("ABCDE".index(a[0])), str("ABCDE".index(b[0]))) for a, b in LISTED]
WRITTEN = [(str(a), str(b)) for a, b in PAIRS]
TERMS = [(str(1990 + k % 9), str(1994 + k % 9)) for k in range(N)]
SHOWN = [(f"W{k % 5}", f"E{k % 7}") for k in range(35)]
STAYS = [(str(k), str(k % 3)) for k in range(12)]
KNOWN = [(f"person{1 + k % 28}", str(20 + k)) for k in range(N)]
MAILS = [(f"Ann {a % 7}", f"{a}@club.org", "SMTP", f"Ann {b % 7}", f"{b}@club.org", "SMTP") for a, b in PAIRS]
MAIL = "From: (Name),From: (Address),From: (Type),To: (Name),To: (Address),To: (Type)"
ASKED = [
    ({"t.csv": lines(LISTED, "wer,wen")}, ("wer", "wen"), LISTED),
    ({"t.csv": lines([("Yan", "Zoe"), *LISTED])}, ("column 1", "column 2"), [("Yan", "Zoe"), *LISTED]),
    ({"t.csv": lines(((a, b, "3") for a, b in LISTED), "Kunde,Freund,Tage")}, ("Kunde", "Freund"), LISTED),
    ({"t.txt": lines(((f"{900 + k}", f"1{a}", f"1{b}") for k, (a, b) in enumerate(NUMBERED)), separator=" ")},
     ("column 2", "column 3"), [(f"1{a}", f"1{b}") for a, b in NUMBERED]),
    ({"stays.csv": lines(STAYS, "patient,bed"), "people.csv": lines(((k, 20 + k) for k in range(12)), "id,age")},
     ("patient", "bed"), STAYS),
    ({"edge.csv": lines(NUMBERED), "node-feat.csv": "0.5,1.5\n0.1,2.5\n0.5,3.5\n0.7,1.25\n0.2,0.3\n",
      "num-node-list.csv": "5\n"}, "row", NUMBERED),
    ({"list.csv": lines(KNOWN)}, ("column 1", "column 2"), KNOWN),
    ({"list.csv": lines((f"{a[6:]}-1", f"person{b}", 5, 7.5) for a, b in KNOWN)}, ("column 1", "column 2"),
     [(f"{a[6:]}-1", f"person{b}") for a, b in KNOWN]),
    ({"t.csv": lines(PAIRS, "id1,id2")}, ("id1", "id2"), WRITTEN),
    ({"t.csv": lines(((a, b, -5) for a, b in PAIRS), "v1,v2,rating")}, ("v1", "v2"), WRITTEN),
    ({"t.csv": lines(((60 * k, *pair) for k, pair in enumerate(PAIRS)), "time,i,j")}, ("i", "j"), WRITTEN),
    ({"t.csv": lines(((k, a, b, f"c{a % 7}", f"c{b % 7}") for k, (a, b) in enumerate(PAIRS)), "no,person1,person2,c1,c2")},
     ("person1", "person2"), WRITTEN),
    ({"goes.csv": lines(SHOWN, "Source,Target")}, ("Source", "Target"), SHOWN),
    ({"terms.csv": lines(((f"M{k}", a, b) for k, (a, b) in enumerate(TERMS)), "member,start,end")}, ("start", "end"), TERMS),
    ({"inbox.csv": lines(MAILS, MAIL)}, ("From: (Address)", "To: (Address)"), [(mail[1], mail[4]) for mail in MAILS]),
]  # fmt: skip


@pytest.mark.parametrize(("files", "chosen", "wanted"), ASKED)
def test_what_two_readings_leave_open_is_asked_and_the_answer_is_taken(
    files: dict[str, str], chosen: str | tuple[str, str], wanted: list[tuple[str, str]], tmp_path: Path
) -> None:
    put(tmp_path, files)
    with pytest.raises(ReadingQuestion) as asked:
        read(tmp_path)
    assert asked.value.option == ("id" if chosen == "row" else "ends")
    assert ("c1", "c2") not in asked.value.choices  # of which class each of the ends is
    assert chosen in asked.value.choices
    assert ties_of(read(tmp_path, **{asked.value.option: chosen})) == {frozenset(pair) for pair in wanted if len({*pair}) == 2}


@pytest.mark.parametrize("first", [0, 20, 2000])
def test_a_clock_before_two_columns_of_the_same_people_is_no_end_in_silence(first: int, tmp_path: Path) -> None:
    put(tmp_path, {"tij.dat": lines(((first + 2 * (k // 3), *pair) for k, pair in enumerate(PAIRS)), separator=" ")})
    with pytest.raises(ReadingQuestion) as asked:
        read(tmp_path)
    assert asked.value.choices[0] == ("column 2", "column 3")
    assert ties_of(read(tmp_path, ends=asked.value.choices[0])) == named("{}")
    put(tmp_path, {"tij.dat": lines(((a, b, b * 7 % N) for a, b in PAIRS if b > N / 4), separator=" ")})  # of weights
    assert ties_of(read(tmp_path)) == {frozenset((str(a), str(b))) for a, b in PAIRS if b > N / 4}


@pytest.mark.parametrize("people", [True, False])
def test_a_layer_in_front_of_both_ends_is_none_of_them(people: bool, tmp_path: Path) -> None:
    ties = lines(((1 + k % 3, a + 1, b + 1, 1) for k, (a, b) in enumerate(PAIRS)), separator=" ")
    files = {"club.edges": ties} | (
        {"nodes.txt": lines(((k + 1, k % 2) for k in range(N)), "nodeID dept", " ")} if people else {}
    )
    if not people:
        with pytest.raises(ReadingQuestion, match="say --ends 'column 2' 'column 3'"):
            given(tmp_path, files)
        return
    reading = given(tmp_path, files)
    assert ties_of(reading) == {frozenset((str(a + 1), str(b + 1))) for a, b in PAIRS}
    assert "column 'column 1' of club.edges tells ties apart (1 " in reading.says


def test_that_nobody_stands_in_both_ends_is_said_where_the_owner_names_them(tmp_path: Path) -> None:
    assert "nobody stands in both" in read(put(tmp_path / "alone", {"goes.csv": lines(SHOWN, "x,y")}), ends=["x", "y"]).says


def test_a_sheet_of_notes_is_put_aside_where_ties_have_a_header_of_words(tmp_path: Path) -> None:
    ties = pd.DataFrame([(f"m {a}", f"m {b}") for a, b in PAIRS], columns=["Who", "Plays with"])
    with pd.ExcelWriter(tmp_path / "club.xlsx") as book:
        pd.DataFrame({"Member": [f"m {k}" for k in range(N)], "Team": GROUPS * 20}).to_excel(book, sheet_name="P", index=False)
        ties.to_excel(book, sheet_name="Ties", index=False)
        pd.DataFrame([["made by", "Ada"], ["date", "2024"]]).to_excel(book, sheet_name="Notes", index=False, header=False)
    reading = read(tmp_path / "club.xlsx", label="Team")
    assert ties_of(reading) == named("m {}")
    assert "Notes: no column of it holds ids of people" in reading.says


@pytest.mark.parametrize("first", [0, 1])
def test_rows_are_numbered_as_the_ends_of_ties_are(first: int, tmp_path: Path) -> None:
    ties = [(a + first, b + first) for a, b in [*PAIRS, (0, N - 1)]]
    put(tmp_path, {"club.node_labels": lines([k % 3] for k in range(N)), "club.edges": lines(ties)})
    reading = read(tmp_path, id="row")
    assert ties_of(reading) == {frozenset(map(str, pair)) for pair in ties}
    graph = graph_of(reading)
    assert [int(graph.names.classes[of]) for of in graph.labels] == [k % 3 for k in range(N)]


@pytest.mark.parametrize("nothing", [r"\N", "#N/A", "#NV", "#REF!", "#DIV/0!", "#WERT!", "#NAME?", "#¡VALOR!"])
def test_what_databases_and_spreadsheets_write_for_nothing_is_an_empty_cell(nothing: str, tmp_path: Path) -> None:
    people = lines(((k, GROUPS[k % 2] if k else nothing, k if k % 5 else nothing) for k in range(N)), "id,team,age")
    graph = graph_of(given(tmp_path, {"people.csv": people, "ties.csv": TIES}, label="team"))
    assert (graph.names.classes, graph.names.columns) == (("green", "red"), ("age", "age is missing"))


@pytest.mark.parametrize(("further", "columns"), [(1, ("desk",)), (0, ("nothing known",))])
def test_numbers_of_whoever_one_answers_to_are_ties_where_their_column_is_called_so(
    tmp_path: Path, further: int, columns: tuple[str, ...]
) -> None:
    boss = {k: 1000 + k // 2 if k else "" for k in range(N)}  # and desks happen to be ids, too: the same ones, or others
    rows = [(1000 + k, GROUPS[k % 2], boss[k], 1000 + (k + further) % N // 2) for k in range(N)]
    reading = given(tmp_path, {"staff.csv": lines(rows, "emp_no,group,manager_emp_no,desk")}, label="group")
    assert ties_of(reading) == {frozenset((str(1000 + k), str(1000 + k // 2))) for k in range(1, N)}
    assert graph_of(reading).names.columns == columns
    with pytest.raises(DataError, match="no table of ties"):  # a number may be an age, or a mark
        given(tmp_path, {"staff.csv": lines(((k, GROUPS[k % 2], 1 + k % 5) for k in range(N)), "employee,group,manager")})


def test_two_columns_of_ids_that_lost_their_zeros_are_ties(tmp_path: Path) -> None:
    files = {"members.csv": "Member ID,team\n001,x\n002,y\n003,x\n", "doubles.csv": "Member 1,Member 2\n1,2\n2,3\n"}
    reading = given(tmp_path, files)
    assert ties_of(reading) == pairs_of("001-002 002-003")
    assert "3 of 3 ids in doubles.csv are written otherwise than in 'Member ID' of members.csv" in reading.says


def test_lists_of_friends_of_every_program_are_ties(tmp_path: Path) -> None:
    friends = [[b for a, b in PAIRS if a == k] for k in range(N)]
    pd.DataFrame({"id": range(N), "friends": friends}).to_parquet(tmp_path / "a.parquet")
    told = [{"user_id": str(k), "friends": ", ".join(map(str, own)) or "None"} for k, own in enumerate(friends)]
    put(tmp_path, {
        "b.json": "\n".join(map(json.dumps, told)), "d.txt": "".join(f"({a}, {b})\n" for a, b in PAIRS),
        "c.json": json.dumps({k: dict.fromkeys(own, 1.5) for k, own in enumerate(friends)}),
    })  # fmt: skip
    pd.DataFrame({"id": range(N), "friends": [np.array(own) for own in friends]}).to_csv(tmp_path / "e.csv", index=False)
    for name in ("a.parquet", "b.json", "c.json", "d.txt", "e.csv"):
        assert ties_of(read(tmp_path / name)) == named("{}"), name


@pytest.mark.parametrize("called", [("from", "to"), ("id", "references")])
@pytest.mark.parametrize("form", ["p{}", "{}"])
@pytest.mark.parametrize("said", [False, True])
def test_lists_of_one_length_have_no_places_where_they_name_people(
    called: tuple[str, str], form: str, said: bool, tmp_path: Path
) -> None:
    first = 0 if called[0] == "from" else 900  # of numbers that nothing calls people's
    rows = [{called[0]: form.format(first + k), called[1]: [form.format(first + (k + far) % N) for far in (1, 3)],
             "place": [k, -k]} for k in range(N)]  # fmt: skip
    reading = given(tmp_path, {"log.jsonl": "\n".join(map(json.dumps, rows))}, ends=called if said else None)
    ids = [form.format(first + k) for k in range(N)]
    assert ties_of(reading) == {frozenset((ids[k], ids[(k + far) % N])) for k in range(N) for far in (1, 3)}
    assert said or "place 0" in reading.says


@pytest.mark.parametrize("ends", [("from", "to"), ("An", "Von")])
def test_people_of_mails_are_their_addresses(ends: tuple[str, str], tmp_path: Path) -> None:
    sent = lines(
        ((k, f"Ann {a} <Ann.{a}@x.org>", f"ann.{b}@x.org, Cy <ann.0@X.org>") for k, (a, b) in enumerate(PAIRS)),
        ";".join(["nr", *ends]),
        ";",
    )
    people = lines(((f"ANN.{k}@x.org", GROUPS[k % 2]) for k in range(N)), "E-Mail,Institut")
    reading = given(tmp_path, {"log.csv": sent, "people.csv": people}, ends=None if ends[0] == "from" else ends)
    assert ties_of(reading) == named("ann.{}@x.org") | {frozenset((f"ann.{a}@x.org", "ann.0@x.org")) for a, _ in PAIRS if a}
    assert "addresses of mail, in small letters, such as that of 'Ann" in reading.says


def test_lists_of_whom_most_have_rows_are_several_people(tmp_path: Path) -> None:
    rows = [{"id": f"p{k}", "references": [f"p{(k + 1) % N}", f"p{(k + 3) % N}", f"old{k}"]} for k in range(N)]
    reading = given(tmp_path, {"log.jsonl": "\n".join(map(json.dumps, rows))}, ends=["id", "references"])
    assert ties_of(reading) == {frozenset((row["id"], one)) for row in rows for one in row["references"]}


@pytest.mark.parametrize(("column", "none", "some"), [("friends", "0", "1"), ("value", "0.0", "1.5"), ("know", "no", "yes")])
def test_a_line_for_each_pair_of_people_is_no_tie_of_each(column: str, none: str, some: str, tmp_path: Path) -> None:
    every = [(a, b) for b in range(N) for a in range(b)]
    pairs = lines(((a, b, some if (a, b) in PAIRS else none) for a, b in every), f"i,j,{column}")
    put(tmp_path, {"pairs.csv": pairs, "people.csv": lines(((k, GROUPS[k % 2]) for k in range(N)), "id,team")})
    with pytest.raises(DataError, match=rf"{column!r} is 0 or no in {len(every) - len(PAIRS)} of {len(every)} lines; allowed"):
        read(tmp_path, label="team")
    assert ties_of(read(tmp_path, label="team", columns={"kind": column, "kinds": [some]})) == named("{}")
    put(tmp_path, {"pairs.csv": pairs.replace(f",{none}\n", ",2\n")})
    assert len(ties_of(read(tmp_path, label="team"))) == len(every)


@pytest.mark.parametrize(
    ("name", "beside"),
    [("Summe", "a row"), ("Total", "a column"), ("Sum", "both"), ("Σ", "both"), ("", "a legend"), ("Sum", "all"),
     ("All", "a row"), ("All", "a column"), ("Total général", "both"), ("All", "all")],
)  # fmt: skip
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
    with pd.ExcelWriter(tmp_path / "school.xlsx") as book:
        pd.DataFrame(rows).to_excel(book, sheet_name="contacts", index=False, header=False)
        facts = pd.DataFrame({"code": people, "age": range(30, 42), "ill": ["yes", "no"] * 6})
        facts.to_excel(book, sheet_name="pupils", index=False)
    told = read(tmp_path / "school.xlsx", label="ill")
    ties = sum((a + b) % 3 == 1 for a in range(12) for b in range(a))
    assert (graph_of(told).num_nodes, graph_of(told).num_edges) == (12, ties)
    assert "is a matrix of 12 people: what stands beside them" in str(told)


def test_whoever_is_named_as_often_as_all_others_together_is_a_person(tmp_path: Path) -> None:
    pairs = pairs_of("a-b c-d hub-a hub-b hub-c hub-d")
    rows = [[who, *(int({who, one} in pairs) for one in (*"abcd", "hub"))] for who in (*"abcd", "hub")]
    assert ties_of(given(tmp_path, {"m.csv": lines(rows, ",a,b,c,d,hub")})) == pairs


@pytest.mark.parametrize(("code", "share", "asked"), [("99", 1.5, True), ("0", 3, True), ("57", 1.5, True), ("57", 3, False)])
@pytest.mark.parametrize("back", [False, True])
def test_one_whom_very_many_name_is_asked_about(tmp_path: Path, code: str, share: float, asked: bool, back: bool) -> None:
    hub = [(k, int(code)) for k in range(100) if k != int(code) and k % share < 1]
    pairs = [(k, (k + step) % 100) for k in range(100) for step in (1, 2)] + hub + [(two, one) for one, two in hub] * back
    people = lines(((k, k % 2) for k in range(100)), "id,ill")
    told = given(tmp_path, {"ties.csv": lines(pairs, "source,target"), "people.csv": people}, label="ill")
    assert (f"{code!r} is named by " in str(told)) is (asked and not back)


BOSS = ["", *(str(100 + k // 4) for k in range(1, 40))]  # forty people with a superior each; the first has none
STAFF = lines(((100 + k, 20 + k % 9, boss, "JN"[k % 2]) for k, boss in enumerate(BOSS)), "number,age,head,left")


@pytest.mark.parametrize("ends", [("number", "head"), ("head", "number")])
def test_ends_may_be_columns_of_the_table_of_people(tmp_path: Path, ends: tuple[str, str]) -> None:
    told = given(tmp_path, {"staff.csv": STAFF}, label="left", ends=ends)
    graph = graph_of(told)
    assert (graph.num_nodes, graph.num_edges, graph.names.columns) == (40, 39, ("age",))
    assert "staff.csv has a line for each of the people: 'head' is whom they are tied to" in str(told)
    calls = lines(((k % 30, (k * 7 + 1) % 30, k) for k in range(60)), "a,b,hour")  # a list of ties with a time stays one
    assert "people are those who have a tie" in str(given(tmp_path, {"calls.csv": calls}, label="", ends=("a", "b")))


def test_a_name_that_nobody_has_in_many_lines_is_counted(tmp_path: Path) -> None:
    gone = STAFF.replace(",107,", ",999,").replace(",108,", ",999,").replace(",109,", ",999,")
    said = r"staff.csv:30: unknown node '999' 12 times in column 'head'; allowed: the 40 ids of the nodes. If "
    with pytest.raises(DataError, match=said) as refused:
        given(tmp_path, {"staff.csv": gone}, label="left", ends=("number", "head"))
    assert str(refused.value).count("unknown node") == 1


ISSUES = lines(((900 + k, f"u{k % 20}", f"u{k * 7 % 20}" if k % 3 else "") for k in range(N)), "number,author,assignee")


@pytest.mark.parametrize("people", [{}, {"people.csv": lines(((f"u{k}", GROUPS[k % 2]) for k in range(20)), "id,group")}])
def test_the_ends_that_a_question_suggests_may_be_open_where_a_line_is_no_tie(people: dict[str, str], tmp_path: Path) -> None:
    ends = ["author", "assignee"]
    if not people:
        with pytest.raises(ReadingQuestion, match="If so, say --ends author assignee"):
            given(tmp_path, {"issues.csv": ISSUES})
    reading = given(tmp_path, {"issues.csv": ISSUES, **people}, label="group" if people else "", ends=ends)
    assert ties_of(reading) == {frozenset((f"u{k % 20}", f"u{k * 7 % 20}")) for k in range(N) if k % 3 and k * 6 % 20}
    assert "'assignee' is open in 14 of 40 lines of issues.csv: no tie there" in reading.says


@pytest.mark.parametrize(
    ("column", "few", "asked"),
    [("mentor", 5, True), ("buddy", 15, True), ("tutor_id", 15, True), ("grade", 5, False), ("age", 15, False)],
)
def test_few_people_who_are_named_by_their_number_are_asked_about(column: str, few: int, asked: bool, tmp_path: Path) -> None:
    named = [1 + k * 150 // few for k in range(few)]
    staff = lines(((k, GROUPS[k % 2], named[k * 7 % few]) for k in range(1, 151)), f"emp_no,site,{column}")
    with pytest.raises(DataError, match=f"does '{column}' say whom each of 'emp_no' is" if asked else "no table of ties was"):
        given(tmp_path, {"staff.csv": staff}, label="site")
    graph = graph_of(read(tmp_path / "staff.csv", label="site", ends=["emp_no", column]))
    assert (graph.num_nodes, set(np.flatnonzero(graph.degrees > 3) + 1) <= set(named)) == (150, True)


@pytest.mark.parametrize("header", ["id,test1,test2", "name,x,y", "v1,v2,v3"])
def test_two_numbers_of_each_person_are_no_ends(header: str, tmp_path: Path) -> None:
    first = "p{}" if "name" in header else "{}"
    marks = [(first.format(row), int(a), int(b)) for row, (a, b) in enumerate(RNG.integers(60, 80, (N, 2)))]
    with pytest.raises(DataError, match="no table of ties was found"):
        read(put(tmp_path, {"marks.csv": lines(marks, header)}))


@pytest.mark.parametrize(
    ("table", "ends", "people", "says"),
    [
        (lines(((k, (k * 7 + 1) % N, f"{k % 9},50") for k in range(N)), "payer;payee;amount", ";"), "payer payee", N, ""),
        (STAFF, "number head", N, "staff.csv has a line for each of the people: 'head' is whom they are tied to"),
        (ISSUES, "author assignee", 20, "'assignee' is open in 14 of 40 lines of staff.csv: no tie there"),
        (
            lines(((f"Ann{k}", f"Firm{k % 5}", k) for k in range(N)), "First Name,Company,no"), "First Name-Company", N + 5,
            "nobody stands in both 'First Name' and 'Company': if one names no people, these are no ties",
        ),
    ],
    ids=["payments", "staff", "issues", "two kinds"],
)  # fmt: skip
def test_what_follows_from_ends_that_were_said_comes_first(
    table: str, ends: str, people: int, says: str, tmp_path: Path
) -> None:
    pair = ends.split("-" if "-" in ends else " ")
    reading = given(tmp_path, {"staff.csv": table}, ends=pair, label="left" if "head" in pair else "")
    told = reading.says.splitlines()
    assert told[2].startswith("  ties")
    assert not says or told[3].strip() == says
    assert reading.says.count(says or "has a line for each") == bool(says)
    assert graph_of(reading).num_nodes == people
    assert says in graph_of(reading).provenance.detail


def named_staff(boss: Callable[[int], str], twins: int = 0) -> str:
    """Of 48 people, of whom each third shares a surname; the last ones are called as the first ones."""
    rows = [(k, f"F{k % 16}", f"L{k // 16}") for k in range(48)] + [(48 + k, f"F{k}", "L0") for k in range(twins)]
    cells = [(1000 + k, *name, "xy"[k % 2], boss(k // 3) if k else "") for k, *name in rows]
    return lines(cells, "Number;Vorname;Nachname;Team;Vorgesetzter", ";")


FORMS: dict[str, Callable[[int], str]] = {
    "first last": lambda k: f"F{k % 16} L{k // 16}",
    "last, first": lambda k: f"L{k // 16}, F{k % 16}",
    "id": lambda k: f"F{k % 16} ({1000 + k})",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ends", [None, ["Number", "Vorgesetzter"]])
def test_superiors_are_found_by_their_names(form: str, ends: list[str] | None, tmp_path: Path) -> None:
    reading = given(tmp_path, {"staff.csv": named_staff(FORMS[form])}, label="Team", ends=ends)
    assert ties_of(reading) == {frozenset((str(1000 + k), str(1000 + k // 3))) for k in range(1, 48)}
    assert "'Vorgesetzter' of staff.csv names people: " in reading.says
    assert not any("Vorgesetzter" in name for name in graph_of(reading).names.columns)


def test_people_without_ids_are_their_names_where_superiors_are_named_so(tmp_path: Path) -> None:
    table = lines((line.split(";")[1:] for line in named_staff(FORMS["last, first"]).splitlines()), "", ";")
    reading = given(tmp_path, {"staff.csv": table}, label="Team")
    name = FORMS["last, first"]
    assert ties_of(reading) == {frozenset((name(k), name(k // 3))) for k in range(1, 48)}
    assert "named by 'Nachname, Vorname' of staff.csv" in reading.says


def test_a_superior_who_has_a_namesake_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'Vorgesetzter' names 'F0 L0', and several people are called so; allowed: ids of"):
        given(tmp_path, {"staff.csv": named_staff(FORMS["first last"], 2)}, label="Team")


def test_a_name_that_is_put_together_is_their_own(tmp_path: Path) -> None:
    rows = lines(((k, f"F{k % 16}", f"L{k // 16}", f"F{k % 16} L{k // 16}") for k in range(48)), "id,first,last,full")
    with pytest.raises(DataError, match="no table of ties was found"):
        given(tmp_path, {"staff.csv": rows}, label="last")


SQUARE = np.isin(np.arange(N * N), [a * N + b for a, b in PAIRS]).reshape(N, N).astype(int)  # each tie in one direction
SPELT = ["{}", "p{}", "{}01"]


@pytest.mark.parametrize(("spelt", "first", "beside"), [(one, k, b) for one in SPELT for k in (0, 1) for b in (True, False)])
def test_a_matrix_may_have_its_people_in_the_header_alone(spelt: str, first: int, beside: bool, tmp_path: Path) -> None:
    ids = [spelt.format(row + first) for row in range(N)]
    cells = SQUARE.copy()
    cells[3, 3] = beside  # who names herself
    files = {"advice.csv": lines(cells, ",".join(ids))}
    if beside:
        files["people.csv"] = lines(((one, GROUPS[k % 2]) for k, one in enumerate(ids)), "ID,group")
    wanted = {frozenset((ids[a], ids[b])) for a, b in PAIRS}
    if beside or spelt == "{}":
        reading = given(tmp_path, files, **({"label": "group"} if beside else {}))
        assert ties_of(reading) == wanted
        assert "rows of the matrix advice.csv are the people of its header" in reading.says
    else:  # a table of numbers, too, may be square
        with pytest.raises(DataError, match="no table of ties"):
            given(tmp_path, files)


@pytest.mark.parametrize("codes", [{}, {4: 9}, {4: 9, -7: 10}, {4: 9, ...: 9}], ids=["none", "a row", "a column", "a diagonal"])
@pytest.mark.parametrize("facts", [2, 0])
def test_rows_beside_a_matrix_without_names_are_its_people_and_its_codes_are_asked_about(
    facts: int, codes: dict, tmp_path: Path
) -> None:
    cells = SQUARE * (1 + np.arange(N) % 4 * (... in codes))
    for place, code in codes.items():
        if place is ...:
            np.fill_diagonal(cells, code)
        else:
            cells[(place, slice(None)) if place > 0 else (slice(None), -place)] = code
    rows = ((k % 2 + 1, 10 + k % 3)[:facts] for k in range(N))
    files = {"net.dat": lines(cells, separator=" ")} | ({"sex.dat": lines(rows, separator=" ")} if facts else {})
    if codes:
        with pytest.raises(DataError, match=r"9(, 10)? in \d+ cells of this matrix, .* no answer"):
            given(tmp_path, files)
        return
    reading = given(tmp_path, files, label="column 1" if facts else "")
    truth = {frozenset((str(a + 1), str(b + 1))) for a, b in PAIRS}
    assert ties_of(reading) == truth
    words = np.array(["FALSE", "TRUE"], dtype=object)[SQUARE]
    words[0] = np.where(SQUARE[0] > 0, "TRUE", "NA")
    assert ties_of(given(tmp_path, files | {"net.dat": lines(words, separator=" ")}, label="")) == truth
    assert graph_of(reading).names.columns == ("column 2",) * (facts - 1) or not facts
    assert not facts or "rows of sex.dat are the people of net.dat in their order" in reading.says


@pytest.mark.parametrize("square", [False, True])
def test_a_matrix_beside_another_table_of_ties_is_one_of_two(square: bool, tmp_path: Path) -> None:
    others = lines(SQUARE, ",".join(map(str, range(1, N + 1)))) if square else lines(PAIRS[:N], "source,target")
    people = lines(((k + 1, GROUPS[k % 2]) for k in range(N)), "ID,group")
    put(tmp_path, {"work.dat": lines(SQUARE, separator=" "), "advice.csv": others, "atts.csv": people})
    with pytest.raises(DataError, match=r"several files hold ties: advice\.csv, work\.dat; allowed"):
        read(tmp_path)


def test_a_sum_that_names_what_it_adds_up_is_no_tie(tmp_path: Path) -> None:
    rows = lines([("2024-01-01", "", f"m{a}", f"m{b}", "-1.000,50") for a, b in PAIRS], "day;what;von;nach;Betrag", ";")
    people = lines(((f"m{k}", GROUPS[k % 2]) for k in range(N)), "id,team")
    files = {"transfers.csv": rows.replace(",", ";").replace("000;5", "000,5") + "Total operaciones;350;;;-500.123,00\n"}
    reading = given(tmp_path, files | {"people.csv": people})
    assert ties_of(reading) == named("m{}")
    assert "'Total operaciones' of transfers.csv left out: a note or a sum" in reading.says


@pytest.mark.parametrize("gap", ["NULL", "0"])
def test_null_is_nothing_in_a_table_among_whose_numbers_it_is(gap: str, tmp_path: Path) -> None:
    rows = ((k, GROUPS[k % 2], k if k % 9 else gap, "NULL" if k % 3 else "abc"[k % 2]) for k in range(N))
    reading = given(tmp_path, {"people.csv": lines(rows, "id,team,age,bio"), "ties.csv": TIES}, label="team")
    assert ("bio is NULL" in graph_of(reading).names.columns) == (gap == "0")
    assert ("'NULL' in bio is an empty cell, as among numbers there" in reading.says) == (gap == "NULL")


def test_an_empty_column_of_labels_is_none(tmp_path: Path) -> None:
    people = lines(((f"m{k}", "", 20 + k % 9) for k in range(N)), "id,Label,age")
    graph = graph_of(given(tmp_path, {"people.csv": people, "ties.csv": ring(N, "m{}")}))
    assert (graph.num_classes, graph.names.columns) == (0, ("age",))


def test_ends_beside_ids_of_other_things_are_offered_though_people_name_each_other(tmp_path: Path) -> None:
    people = [{"id": 700 + k, "name": f"m{k}", "created_by": 700 + k // 3 if k % 2 else None} for k in range(N)]
    reviewers = [[{"id": 700 + b}, {"id": 700 + (a + b) % N}][: 1 + b % 2] for a, b in PAIRS]
    asked = [{"id": 9000 + k, "author": {"id": 700 + PAIRS[k][0]}, "reviewers": own} for k, own in enumerate(reviewers)]
    put(tmp_path, {"members.json": json.dumps(people), "requests.json": json.dumps(asked)})
    with pytest.raises(ReadingQuestion, match=r"say --ends author\.id reviewers"):
        read(tmp_path, label="")
    assert len(ties_of(read(tmp_path, label="", ends=["author.id", "reviewers"]))) >= len(PAIRS)


def test_names_with_a_comma_in_a_list_stand_in_quotes(tmp_path: Path) -> None:
    names = [f"Ann {k}" if k % 3 else f'Lee {k}, "Jr."' if k % 2 else f"Lee {k}, Jr." for k in range(N)]
    listed = [[b for a, b in PAIRS if a == k] for k in range(N)]
    told = [
        ",".join('"{}"'.format(names[b].replace('"', '""')) if "," in names[b] else names[b] for b in own) for own in listed
    ]
    frame = pd.DataFrame({"Name": names, "Buddies": told, "Team": [GROUPS[k % 2] for k in range(N)]})
    frame.to_csv(tmp_path / "grid.csv", index=False)
    assert ties_of(read(tmp_path / "grid.csv", label="Team")) == {frozenset((names[a], names[b])) for a, b in PAIRS}


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
@pytest.mark.parametrize("aside", [True, False])
def test_empty_columns_part_two_tables_or_are_none(aside: bool, ending: str, tmp_path: Path) -> None:
    gap, people = [None, None], [["id", "age"], *([f"m{k}", 20 + k % 9] for k in range(N))]
    ties = [["source", "target"], *([f"m{a}", f"m{b}"] for a, b in PAIRS)]
    beside = ties if aside else [["team"], *([GROUPS[k % 2]] for k in range(N))]
    rows = [
        [*(people[k] if k <= N else gap), *gap, *(beside[k] if k < len(beside) else gap)]
        for k in range(max(len(people), len(beside)))
    ]
    sheet = pd.DataFrame(rows)
    if ending == "csv":
        sheet.to_csv(tmp_path / "club.csv", index=False, header=False)
    else:
        sheet.to_excel(tmp_path / "club.xlsx", index=False, header=False)
    if not aside:
        put(tmp_path, {"ties.csv": lines(ties)})
    reading = read(tmp_path, label="" if aside else "team")
    assert ties_of(reading) == named("m{}")
    assert len(graph_of(reading).ids) == N
    assert graph_of(reading).names.columns == ("age",)
    assert ("a table of its own, with an empty column before the next" in reading.says) == aside


def test_links_behind_names_are_no_part_of_them(tmp_path: Path) -> None:
    names = [f"Kim N{k}" for k in range(30)]
    whom = [[names[(k + step) % 30] for step in (1, 4, 9)[: k % 4]] for k in range(30)]
    cells = [", ".join(f"{one} (https://www.notion.so/{one[4:]}-4f?pvs=21)" for one in some) for some in whom]
    rows = [(names[k], "ab"[k % 2], f'"{cell}"') for k, cell in enumerate(cells)]
    reading = given(tmp_path, {"Choir 1f2e.csv": lines(rows, "Name,Voice,Carpool with")}, label="Voice")
    assert ties_of(reading) == {frozenset((names[k], one)) for k, some in enumerate(whom) for one in some}
    assert "links behind what stands in 'Carpool with' of Choir 1f2e.csv are left out" in str(reading)
