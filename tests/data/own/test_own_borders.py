"""Where a file is nearly read: what is matched is read, and whatever is refused is refused by the name of what it is."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from fedgraph.data import read
from fedgraph.data.own.tables import ReadingQuestion
from fedgraph.errors import DataError
from fedgraph.types import Graph

DRAW = random.Random(11)
PEOPLE = sorted(DRAW.sample(range(10_000_000, 99_999_999), 60))
PAIRS = sorted({(a, b) for a in range(60) for b in DRAW.sample(range(60), 3) if a != b})
FIELDS = [DRAW.choice(["heart", "skin"]) for _ in PEOPLE]
NAMES = [f"{first} {last}" for first in ("Ida", "Jan", "Mia", "Uwe", "Zoe", "Ben") for last in ("Koch", "Roth", "Wolf", "Beck")]
ANSWERS = [[NAMES[row], ", ".join(NAMES[row - step] for step in (1, 5, 7)), DRAW.choice(["red", "blue"])] for row in range(24)]


def written(path: Path, head: str, lines: list[list[str]]) -> Path:
    rows = [",".join(f'"{cell}"' for cell in line) for line in lines]
    path.write_text("\n".join([*([head] if head else []), *rows]) + "\n", encoding="utf-8")
    return path


def ties_of(path: Path, label: str, ends: list[str] | None = None) -> set[frozenset[str]]:
    graph = read(path, label=label, ends=ends).graph
    assert isinstance(graph, Graph)
    return {frozenset((graph.ids[a], graph.ids[b])) for a, b in zip(*graph.adjacency.tocoo().coords, strict=True)}


def referrals(folder: Path, more: list[list[str]]) -> Path:
    """Ids with zeros in front in one table, and without in the other, which has six columns."""
    written(folder / "doctors.csv", "LANR,field", [[f"0{one}", field] for one, field in zip(PEOPLE, FIELDS, strict=True)])
    lines = [[str(PEOPLE[a]), str(PEOPLE[b]), "Q1", "2023-01-20", str(a), str(7 * b)] for a, b in PAIRS]
    written(folder / "referred.csv", "Zuweiser LANR,Zum LANR,quarter,date,cases,sum", [*lines, *more])
    return folder


def test_ids_that_are_written_otherwise_are_found_beside_other_columns(tmp_path: Path) -> None:
    truth = {frozenset((f"0{PEOPLE[a]}", f"0{PEOPLE[b]}")) for a, b in PAIRS}
    assert ties_of(referrals(tmp_path, []), "field") == truth


def test_two_columns_of_ids_but_for_a_few_are_asked_about(tmp_path: Path) -> None:
    with pytest.raises(ReadingQuestion, match=r"say --ends 'Zuweiser LANR' 'Zum LANR'"):
        read(referrals(tmp_path, [["Source: report", "", "", "", "", ""]]))


def test_columns_of_small_numbers_are_not_taken_for_people_who_have_zeros_in_front(tmp_path: Path) -> None:
    written(tmp_path / "people.csv", "no,field", [[f"{row:03}", field] for row, field in enumerate(FIELDS)])
    written(tmp_path / "visits.csv", "age,rooms,day", [[str(a), str(b), f"2023-01-{1 + a % 9:02}"] for a, b in PAIRS])
    with pytest.raises(DataError, match="no table of ties was found"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        (
            [[name.upper() if row < 9 else name, *more] for row, (name, *more) in enumerate(ANSWERS)],
            r"9 are written otherwise there \('\w+ \w+' for '\w+ \w+'\); allowed",
        ),
        (ANSWERS[5:], r"5 have no row, such as '\w+ \w+'; allowed: .* one for those who did not answer"),
        (
            [*ANSWERS[5:], *([name.title() + " ", *more] for name, *more in ANSWERS[5:7])],
            r"5 have no row.*; 2 rows name somebody again, such as 'Jan Roth'",
        ),
    ],
)
def test_a_form_is_told_which_of_its_names_are_in_the_way(tmp_path: Path, answers: list[list[str]], says: str) -> None:
    form = written(tmp_path / "form.csv", "Your name,Whom do you ask?,team", answers)
    with pytest.raises(DataError, match=rf"form.csv: 'Whom do you ask\?' lists 24 names: \d+ stand in 'Your name'; {says}"):
        read(form)


def test_a_form_of_whom_everybody_asks_has_ties(tmp_path: Path) -> None:
    truth = {frozenset((name, other)) for name, asked, _ in ANSWERS for other in asked.split(", ") if other != name}
    form = written(tmp_path / "form.csv", "Your name,Whom do you ask?,team", ANSWERS)
    assert ties_of(form, "team") == truth == ties_of(form, "team", ["Your name", "Whom do you ask?"])


@pytest.mark.parametrize("mark", [",", "."])
@pytest.mark.parametrize("said", [False, True])
def test_ids_of_people_that_a_spreadsheet_shortened_are_refused_by_name(tmp_path: Path, mark: str, said: bool) -> None:
    short = [f"4{mark}9{one % 10**4:04}E+11" for one in PEOPLE]
    people = [[one, field] for one, field in zip(short, FIELDS, strict=True)]
    written(tmp_path / "subscribers.csv", "msisdn,plan", people)
    written(tmp_path / "calls.csv", "", [[f"4915{PEOPLE[a]}", f"4915{PEOPLE[b]}", "13", "1"] for a, b in PAIRS])
    more = {"ends": ["column 1", "column 2"], "id": "msisdn"} if said else {}
    with pytest.raises(DataError, match=rf"subscribers.csv: '4\{mark}9\d+E\+11' in column 'msisdn' .* spreadsheet shortened"):
        read(tmp_path, **more)


MAIL = "From ann@x Sat Nov 28 05:48:54 2026\nFrom: Ann <ann@x>\nTo: Bob <bob@x>\nSubject: plan\n\nHello\n" * 9
FAMILY = "\ufeff0 HEAD\n1 SOUR Gramps\n2 VERS 5.1.5\n0 @I0000@ INDI\n1 NAME Vera /Meyer/\n1 SEX F\n0 TRLR\n"
PAPERS = "TY  - JOUR\nAU  - Roth, Ann\nAU  - Beck, Bob\nPY  - 2020\nER  - \n"


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("archive.mbox", MAIL, "mails.*allowed: who writes to whom"),
        ("family.ged", FAMILY, "a family tree.*allowed: "),
        ("papers.ris", PAPERS, "references.*allowed: pairs of authors"),
    ],
    ids=["mails", "family", "papers"],
)
def test_mails_families_and_references_are_named_alone_and_beside_tables(
    tmp_path: Path, name: str, text: str, says: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=rf"{name}: {says}"):
        read(tmp_path / name)
    written(tmp_path / "staff.csv", "email,unit,hired", [[f"{name}@x", "a", "2019"] for name in "abc"])
    with pytest.raises(DataError, match=rf"found: staff.csv: email, unit, hired; not read: {name} \({says}"):
        read(tmp_path)


def test_what_holds_no_table_is_listed_and_one_file_is_named_itself(tmp_path: Path) -> None:
    users = [{"id": f"U{row}", "team": field} for row, field in enumerate(FIELDS)]
    (tmp_path / "users.json").write_text(json.dumps(users))
    with pytest.raises(DataError, match=r"^[^:]*users.json: no table of ties was found"):
        read(tmp_path / "users.json")
    (tmp_path / "said.json").write_text(json.dumps([{"type": "message", "user": "U1", "text": "hi", "ts": "1.0"}]))
    with pytest.raises(DataError, match=r"not read: said.json \(messages of a chat, which name no ties"):
        read(tmp_path)


def pulls(first: int, alone: bool) -> list[dict[str, object]]:
    """One page of what an API answers: on the last nothing is planned, and labels are empty."""
    found: list[dict[str, object]] = []
    for a in range(first, first + 20):
        asked = [{"login": f"p{b}", "id": 900 + 7 * b, "type": "User"} for c, b in PAIRS if c == a]
        person = {"login": f"p{a}", "id": 900 + 7 * a, "type": "User"}
        labels = [] if first == 40 else [{"id": 7001, "name": "bug"}]
        planned = None if first == 40 else {"title": "next"}
        asked = [{"login": one["login"]} for one in asked] if alone else asked
        found.append({"number": 5000 + a, "user": person, "asked": asked, "labels": labels, "plan": planned, "teams": []})
    return found


@pytest.mark.parametrize("alone", [False, True])
def test_records_in_a_cell_are_several_people_and_a_page_without_labels_is_one(tmp_path: Path, alone: bool) -> None:
    for first in (0, 20, 40):
        (tmp_path / f"pulls_page_{first // 20}.json").write_text(json.dumps(pulls(first, alone)))
    users = [{"login": f"p{a}", "id": 900 + 7 * a, "place": field} for a, field in enumerate(FIELDS)]
    (tmp_path / "users.json").write_text(json.dumps(users))
    truth = {frozenset((f"p{a}", f"p{b}")) for a, b in PAIRS}
    assert ties_of(tmp_path, "place", ["user.login", "asked.login"]) == truth
    with pytest.raises(ReadingQuestion, match=r"pulls_page_\*.json: .*several people in one cell.* --ends user.") as why:
        read(tmp_path)
    assert ("user.login", "asked.login") in why.value.choices


def test_records_of_anything_else_are_refused_in_words(tmp_path: Path) -> None:
    lines = [{"number": a, "author": f"p{a}", "asked": [{"who": {"name": f"p{b}"}}]} for a, b in PAIRS]
    (tmp_path / "pulls.json").write_text(json.dumps(lines))
    written(tmp_path / "users.csv", "login,place", [[f"p{a}", field] for a, field in enumerate(FIELDS)])
    with pytest.raises(DataError, match=r"lists of records, of which pairs would be ties: 'asked' of pulls.json"):
        read(tmp_path)
    with pytest.raises(DataError, match=r"'asked' .*lists? of records.* a table author,asked") as why:
        read(tmp_path, ends=["author", "asked"])
    assert "{" not in str(why.value)


def slack(folder: Path) -> Path:
    for name, count in (("users", 6), ("channels", 2)):
        listed = [{"id": f"{name}{k}", "team": "ab"[k % 2]} for k in range(count)]
        (folder / f"{name}.json").write_text(json.dumps(listed))
    for channel in ("general", "sales"):
        (folder / channel).mkdir()
        for day in ("2023-11-14", "2023-11-15"):
            said = [{"type": "message", "user": "users1", "text": "hi", "ts": "1.0"}]
            (folder / channel / f"{day}.json").write_text(json.dumps(said))
    return folder


def test_an_exported_chat_is_named_as_one_and_once(tmp_path: Path) -> None:
    import shutil

    folder = slack(tmp_path)
    for path in (folder, Path(shutil.make_archive(str(tmp_path.parent / "slack"), "zip", folder)), folder / "sales"):
        with pytest.raises(DataError, match="name no ties; allowed: who answers whom as a table source,target") as why:
            read(path)
        assert "\n" not in str(why.value)
    written(folder / "mentions.csv", "from,to", [["users0", "users1"]])  # as the words say
    assert ties_of(folder, "team") == {frozenset(("users0", "users1"))}


def test_columns_that_are_the_same_for_all_are_left_out(tmp_path: Path) -> None:
    people = [
        [str(one), field, "3600", "no", "1", str(row)] for row, (one, field) in enumerate(zip(PEOPLE, FIELDS, strict=True))
    ]
    written(tmp_path / "people.csv", "id,field,offset,owner of it,member,age", people)
    written(tmp_path / "ties.csv", "source,target", [[str(PEOPLE[a]), str(PEOPLE[b])] for a, b in PAIRS])
    reading = read(tmp_path, label="field")
    assert isinstance(reading.graph, Graph)
    assert reading.graph.names.columns == ("age",)
    for name, cell in (("offset", "3600"), ("owner of it", "no"), ("member", "1")):
        assert f"{name}: all have the same, '{cell}'" in reading.says


def test_whom_one_person_alone_knows_is_no_end(tmp_path: Path) -> None:
    lines = [[str(row), *DRAW.sample(["mum", "my wife", "Rosa", "Tina", "Anna", "Jan"], 3), f] for row, f in enumerate(FIELDS)]
    path = written(tmp_path / "ego.csv", "respid,alter1,alter2,alter3,health", lines)
    for more in ({}, {"id": "respid"}):
        with pytest.raises(DataError, match=r"'alter1', 'alter2', 'alter3'.*whom one person alone knows is no tie") as why:
            read(path, label="health", **more)
        assert not isinstance(why.value, ReadingQuestion)


@pytest.mark.parametrize("word", ["ausstehend", "pending", "unbekannt", "unknown", "open", "k. A."])
def test_labels_that_may_be_no_answer_are_pointed_out(tmp_path: Path, word: str) -> None:
    people = [[str(one), word if row % 3 == 0 else field] for row, (one, field) in enumerate(zip(PEOPLE, FIELDS, strict=True))]
    written(tmp_path / "people.csv", "id,result", people)
    written(tmp_path / "ties.csv", "source,target", [[str(PEOPLE[a]), str(PEOPLE[b])] for a, b in PAIRS])
    assert f"the label '{word}' of 20 people counts as a class" in read(tmp_path, label="result").says


def test_wrong_lines_are_told_beside_folders_that_are_not_looked_into(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "kept.csv").write_text("id\n")
    written(tmp_path / "people.csv", "id,field", [[str(one), field] for one, field in zip(PEOPLE, FIELDS, strict=True)])
    written(tmp_path / "ties.csv", "source,target", [[str(PEOPLE[0]), str(PEOPLE[1])], [str(PEOPLE[0]), "7"]])
    with pytest.raises(DataError, match=r"ties.csv:3: unknown node '7'; .*not looked into: old/"):
        read(tmp_path)


def numbered(path: Path, head: str, columns: list[list[str]]) -> Path:
    """People 1 … 60, of whom each has a cell of each column, and a label."""
    rows = zip(map(str, range(1, 61)), *columns, FIELDS, strict=True)
    return written(path, f"nr,{head},field", [list(row) for row in rows])


MARKS = [f"{row % 6 + 1},{7 * row % 10 or 5}" for row in range(60)]  # 2,3: both halves are numbers of rows


@pytest.mark.parametrize("marks", [MARKS, [*MARKS[:50], *["5"] * 9, "n.a."], [f"{row % 6 + 1},0" for row in range(60)]])
def test_decimal_commas_are_no_list_of_ids(tmp_path: Path, marks: list[str]) -> None:
    ages = [str(18 + row % 30) for row in range(60)]
    for head, columns in (("mark", [marks]), ("mark,age", [marks, ages]), ("mark,mark 2", [marks, [*reversed(marks)]])):
        with pytest.raises(DataError, match="no table of ties was found") as why:
            read(numbered(tmp_path / "p.csv", head, columns), label="field")
        assert re.search(r"'mark'(, 'mark 2')?: numbers with a decimal comma", str(why.value))
        assert "empty these cells" not in str(why.value)
    written(tmp_path / "q.csv", "mark,field", [[mark, FIELDS[0]] for mark in marks])
    with pytest.raises(DataError) as why:  # as of another table's people
        read(tmp_path)
    assert "lists ids" not in str(why.value)


def test_the_column_that_names_people_is_asked_about_beside_decimal_commas(tmp_path: Path) -> None:
    whom = [str(random.Random(row).randrange(1, 61)) for row in range(60)]
    path = numbered(tmp_path / "p.csv", "km,knows", [MARKS, whom])
    with pytest.raises(ReadingQuestion, match=r"'knows' .* --ends nr knows") as why:
        read(path, label="field")
    assert why.value.choices == (("nr", "knows"),)
    truth = {frozenset((str(row + 1), one)) for row, one in enumerate(whom)}
    assert ties_of(path, "field", ["nr", "knows"]) == {pair for pair in truth if len(pair) == 2}
    path = numbered(tmp_path / "p.csv", "km,rank", [MARKS, [str(60 - row) for row in range(60)]])
    with pytest.raises(DataError, match="no table of ties was found"):  # a rank: everybody has another one
        read(path, label="field")
    with path.open("a", encoding="utf-8") as file:  # a word among ids leaves numbers what they are
        file.write("Summe,100,7,-\n")
    with pytest.raises(DataError, match="no table of ties was found"):
        read(path, label="field")


@pytest.mark.parametrize("form", ["{},{},{}", "{};{}", "{}, {}", "[{},{}]"])
def test_lists_of_numbers_stay_ties(tmp_path: Path, form: str) -> None:
    whom = [[(row + step) % 60 + 1 for step in (1, 5, 9)[: form.count("{")]] for row in range(60)]
    path = numbered(tmp_path / "p.csv", "km,with", [MARKS, [form.format(*own) for own in whom]])
    assert ties_of(path, "field") == {frozenset((str(row + 1), str(one))) for row, own in enumerate(whom) for one in own}
    large = [[str(PEOPLE[row]), f"{PEOPLE[row - 1]},{PEOPLE[row - 2]}", field] for row, field in enumerate(FIELDS)]
    assert len(ties_of(written(tmp_path / "p.csv", "nr,with,field", large), "field")) == 120  # no such number is a decimal


def matrix_of(path: Path, codes: dict[int, str], total: str = "", more: list[list[str]] | None = None, most: int = 1) -> Path:
    """Twelve people in a matrix of 0 … most, in which some cells are codes, beside their totals, and with lines below it."""
    whose, draw = [f"p{k}" for k in range(12)], random.Random(5)
    rows = [[draw.choice([0, 0, 0, *range(1, most + 1)]) * (a != b) for b in range(12)] for a in range(12)]
    for place, code in codes.items():
        rows[place][place * 5 % 12 + 1] = code
    ends = {"": lambda row: [], "sums": lambda row: [sum(map(int, row))], "counts": lambda row: [sum(map(bool, row))]}
    ends["stale"] = lambda row: [sum(map(int, row)) + 9 * (row is rows[4])]
    lines = [[who, *row, *ends[total](row)] for who, row in zip(whose, rows, strict=True)]
    head = ",".join(["", *whose, *["Totaal"] * bool(total)])
    return written(path, head, [*[list(map(str, line)) for line in lines], *(more or [])])


@pytest.mark.parametrize(("codes", "most", "asked"), [
    ({1: 9}, 1, r"9 in 1 cell\b.* above 1: .*no answer, or a tie of strength 9\?"),
    ({1: 9, 2: 9, 3: 9}, 2, r"9 in 3 cells .* above 2"),
    ({1: 99, 2: 8, 3: 99}, 1, r"8, 99 in 3 cells"),
    ({1: -9, 2: 9}, 1, r"-9, 9 in 2 cells"),
    ({1: 9}, 4, ""), ({1: 5, 2: 5, 3: 5}, 1, ""), ({}, 3, ""), ({1: 9, 2: 7, 3: 9, 4: 9}, 3, ""),
])  # fmt: skip
def test_codes_for_no_answer_in_a_matrix_are_no_ties_in_silence(tmp_path: Path, codes: dict, most: int, asked: str) -> None:
    path = matrix_of(tmp_path / "m.csv", codes, most=most)
    if asked:
        with pytest.raises(DataError, match=asked):
            read(path)
    else:
        assert "12 people" in read(path).says or read(path).graph.num_nodes == 12


def test_totals_of_a_matrix_may_be_counts_and_what_keeps_it_from_being_one_is_named(tmp_path: Path) -> None:
    plain = ties_of(matrix_of(tmp_path / "m.csv", {}, most=3), "")
    for total in ("sums", "counts"):
        more = [["Totaal", *["7"] * 13], ["0 = no", *[""] * 13]]
        assert ties_of(matrix_of(tmp_path / "m.csv", {}, total, more, most=3), "") == plain, total
        assert ties_of(matrix_of(tmp_path / "m.csv", {}, total, most=3), "") == plain, total
    with pytest.raises(
        DataError, match=r"'Totaal' beside a matrix of 12 people .* 11 rows, and not that of 'p4' .*allowed: .*this column"
    ):
        read(matrix_of(tmp_path / "m.csv", {}, "stale", [["Totaal", *["7"] * 13]], most=3))
    with pytest.raises(DataError, match=r"m.csv:15: 'asked by' stands below a matrix of 12 people.*allowed: .*this line"):
        read(matrix_of(tmp_path / "m.csv", {}, "", [["", *[""] * 12], ["asked by", "Ms", *[""] * 11]]))


@pytest.mark.parametrize(
    ("cells", "flagged"), [("123", True), ("012", True), ("01", False), (["gold", "silver", "none"], False)]
)
def test_the_membership_of_igraph_is_made_of_ties_where_it_is_numbers(tmp_path: Path, cells: list[str], flagged: bool) -> None:
    draw = random.Random(2)
    people = [[str(one), draw.choice(cells), field] for one, field in zip(PEOPLE, FIELDS, strict=True)]
    written(tmp_path / "people.csv", "id,membership,field", people)
    written(tmp_path / "ties.csv", "source,target", [[str(PEOPLE[a]), str(PEOPLE[b])] for a, b in PAIRS])
    says = read(tmp_path, label="field").says
    assert ("membership (groups that a program makes of ties), taken as computed from them" in says) is flagged
