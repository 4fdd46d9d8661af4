"""What services and programs hand out in pages and parts: read, or refused with what to write."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from fedgraph.data import read
from fedgraph.data.own.reading import Reading
from fedgraph.data.own.tables import ReadingQuestion
from fedgraph.errors import DataError
from tests.data.own.clubs import facts, given, graph_of, lines, put

COUNT = 30
DRAW = random.Random(2)
PAIRS = sorted({(min(pair), max(pair)) for pair in (DRAW.sample(range(COUNT), 2) for _ in range(80))})
FRIENDS = {k: [b if a == k else a for a, b in PAIRS if k in (a, b)] for k in range(COUNT)}
FACTS: list[dict[str, Any]] = [{"age": 20 + k, "group": "ab"[k % 2]} for k in range(COUNT)]
TIES = lines(PAIRS, "source,target")
PEOPLE = lines(((k, *FACTS[k].values()) for k in range(COUNT)), "id,age,group")


def resource(k: int) -> dict[str, Any]:
    friends = {"data": [{"type": "people", "id": str(one)} for one in FRIENDS[k]]}
    return {"type": "people", "id": str(k), "attributes": FACTS[k], "relationships": {"friends": friends}}


def node(k: int) -> dict[str, Any]:
    return {"node": {"id": k, **FACTS[k], "friends": {"edges": [{"node": {"id": one}} for one in FRIENDS[k]]}}}


def hal(k: int) -> dict[str, Any]:
    links = [{"href": f"https://example.org/people/{one}"} for one in FRIENDS[k]]
    return {"id": k, **FACTS[k], "_links": {"self": {"href": f"https://example.org/people/{k}"}, "friends": links}}


def stored(k: int) -> dict[str, Any]:
    return {
        "_id": {"$oid": f"{k:02}"},
        "age": {"$numberInt": str(20 + k)},
        "friends": [{"$oid": f"{n:02}"} for n in FRIENDS[k]],
    }


# how a service writes a person, and a page of them, of which there may be more
FORMS: dict[str, tuple[Callable[[int], object], Callable[[list[Any], bool], object]]] = {
    "JSON:API": (resource, lambda rows, more: {
        "data": rows, "links": {"self": "here", "next": "there" if more else None}, "jsonapi": {"version": "1.1"}}),
    "GraphQL": (node, lambda rows, more: {"data": {"people": {"edges": rows, "pageInfo": {"hasNextPage": more}}}}),
    "HAL": (hal, lambda rows, more: {
        "_embedded": {"people": rows}, "_links": {"self": {"href": "x"}, **({"next": {"href": "y"}} if more else {})}}),
    "pages": (lambda k: {"id": k, **FACTS[k], "friends": FRIENDS[k]}, lambda rows, more: {
        "results": rows, "count": COUNT, "next": "there" if more else None}),
}  # fmt: skip


def require_truth(reading: Reading) -> None:
    _, ties, classes, _ = facts(graph_of(reading))
    assert ties == {frozenset((str(a), str(b))) for a, b in PAIRS}
    assert classes == {str(k): FACTS[k]["group"] for k in range(COUNT)}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("pages", [1, 3])
def test_what_services_answer_is_read_in_pages_too(form: str, pages: int, tmp_path: Path) -> None:
    one, whole = FORMS[form]
    size = COUNT // pages
    rows = [[one(k) for k in range(page * size, (page + 1) * size)] for page in range(pages)]
    put(tmp_path, {f"page_{page}.json": json.dumps(whole(own, page + 1 < pages)) for page, own in enumerate(rows)})
    reading = read(tmp_path, label="group")
    require_truth(reading)
    assert "next page" not in reading.says
    put(tmp_path, {"page_0.json": json.dumps(whole(rows[0], True))})
    assert pages > 1 or "what the next page of the answer holds" in read(tmp_path, label="group").says


def test_what_each_page_of_an_answer_brings_along_is_there_once(tmp_path: Path) -> None:
    """Here the chapters of a page's people, which one page alone holds all."""
    said = []
    for pages in (1, 3):
        folder, size = tmp_path / str(pages), COUNT // pages
        chapters = [{"type": "chapters", "id": str(k), "attributes": {"town": f"T{k}"}} for k in range(5)]
        rows = [{**resource(k), "type": "people"} for k in range(COUNT)]
        for k, row in enumerate(rows):
            row["relationships"]["chapter"] = {"data": {"type": "chapters", "id": str(k % 5)}}
        own = [{"data": rows[k : k + size], "included": chapters} for k in range(0, COUNT, size)]
        put(folder, {f"page_{page}.json": json.dumps(one) for page, one in enumerate(own)})
        with pytest.raises(ReadingQuestion) as asked:
            read(folder, label="group")
        said.append((asked.value.option, asked.value.choices))
        require_truth(read(folder, label="group", id="people.id"))
    assert said[0] == said[1]


def test_what_mongodb_exports_is_read_although_many_name_one_friend(tmp_path: Path) -> None:
    few = [{**stored(k), "friends": stored(k)["friends"][: k % 3]} for k in range(COUNT)]
    for rows in (few, [stored(k) for k in range(COUNT)]):
        reading = given(tmp_path, {"people.json": "\n".join(map(json.dumps, rows))}, label="")
        ties = {frozenset((row["_id"]["$oid"], one["$oid"])) for row in rows for one in row["friends"]}
        assert facts(graph_of(reading))[1] == ties
        assert graph_of(reading).names.columns == ("age",)


def test_two_tables_beside_what_a_service_says_are_two(tmp_path: Path) -> None:
    people = [{"id": k, "group": "xy"[k % 2]} for k in range(COUNT)]
    ties = [{"source": a, "target": b} for a, b in PAIRS]
    for beside in ({}, {"meta": {"total": 3}, "next": None, "errors": []}):
        reading = given(tmp_path, {"api.json": json.dumps({**beside, "people": people, "ties": ties})}, label="group")
        assert facts(graph_of(reading))[1] == {frozenset((str(a), str(b))) for a, b in PAIRS if a != b}
        assert all(f"'{key}' of api.json" in reading.says for key in beside)


def test_nodes_beside_an_empty_list_of_links_are_no_page(tmp_path: Path) -> None:
    nodes = [{"id": k, **FACTS[k]} for k in range(COUNT)]
    graph = graph_of(given(tmp_path, {"all.json": json.dumps({"nodes": nodes, "links": []})}))
    assert (graph.num_nodes, graph.num_edges) == (COUNT, 0)


def test_ties_that_are_resources_are_ties_and_links_alone_are_named(tmp_path: Path) -> None:
    people = [{"type": "people", "id": str(k), "attributes": FACTS[k]} for k in range(COUNT)]
    ends = [{f"user_{end}": {"data": {"type": "people", "id": str(one)}} for end, one in zip("ab", pair, strict=True)}
            for pair in PAIRS]  # fmt: skip
    ties = [{"type": "friendships", "id": str(k), "relationships": own} for k, own in enumerate(ends)]
    require_truth(given(tmp_path, {"all.json": json.dumps({"data": ties, "included": people})}, label="group"))
    linked = [{**one, "relationships": {"friends": {"links": {"related": "there"}}}} for one in people]
    with pytest.raises(DataError, match=r"relationship 'friends', of which links alone are there \(ask for include=friends\)"):
        given(tmp_path, {"links.json": json.dumps({"data": linked, "links": {}})})


def test_a_copy_of_a_file_is_no_second_table(tmp_path: Path) -> None:
    copies = dict.fromkeys(("people.csv", "people (1).csv", "people - Copy.csv"), PEOPLE)
    reading = given(tmp_path, {**copies, "ties.csv": TIES})
    require_truth(reading)
    assert graph_of(reading).names.columns == ("age",)
    assert "people (1).csv: a copy of people.csv" in reading.says


APART = "column 'status' of ties.csv tells ties apart (accepted 36, pending 36), and all are"


@pytest.mark.parametrize(
    ("column", "cells", "says"),
    [
        ("status", ["accepted", "pending"], APART),
        ("sign", ["1", "-1"], "(1 36, -1 36)"),
        ("deleted_at", ["", "2024-01-01", "", "2024-01-02"], "(filled in 36 of 72 lines)"),
        ("until", ["", "2024-01-01", ""], "(filled in 24 of 72 lines)"),
        ("end_date", ["2024-01-01"], ""),
        ("rating", ["1", "-1", "1"], "(below 0 in 24 of 72 lines)"),
        ("trust", [str(k - 3) for k in range(24)], "(below 0 in 9 of 72 lines)"),
        *((name, ["1", "2", "3"], "(1 24, 2 24, 3 24)") for name in ("Layer", "network", "net", "wave")),
        *(("liked", cells, "tells ties apart (") for cells in (["True", "False"], ["0", "1"])),
        ("rating", ["1", "5"], ""),
        ("amount", ["-1", "2"], ""),
        ("Type", ["Undirected"], ""),
    ],
)
def test_a_column_that_may_say_that_a_tie_is_none_is_pointed_out(
    column: str, cells: list[str], says: str, tmp_path: Path
) -> None:
    told = [cells[k % len(cells)] for k in range(72)]
    told = [f"{cell[:-2]}{k % 28 + 1:02d}" if "-0" in cell else cell for k, cell in enumerate(told)]
    ties = lines(((*pair, cell) for pair, cell in zip(PAIRS, told, strict=True)), f"source,target,{column}")
    found = given(tmp_path, {"ties.csv": ties})
    assert bool(graph_of(found).provenance.doubts) == bool(says), "the page says it first"
    assert ("tells ties apart" in found.says) == bool(says)
    assert says in found.says


def test_a_word_above_numbers_is_a_header_though_people_are_called_as_its_neighbours(tmp_path: Path) -> None:
    ties = lines(((f"p{a}", f"p{b}", 2020) for a, b in PAIRS if (a, b) != (1, 2)), "p1,p2,since")
    people = lines(((f"p{k}", k) for k in range(COUNT)), "id,age")
    graph = graph_of(given(tmp_path, {"people.csv": people, "ties.csv": ties}, label=""))
    assert graph.num_edges == len([pair for pair in PAIRS if pair != (1, 2)])


def test_a_list_of_lines_of_networkx_is_read(tmp_path: Path) -> None:
    nx.write_multiline_adjlist(nx.Graph(PAIRS), tmp_path / "ties.txt")
    assert graph_of(read(tmp_path / "ties.txt")).num_edges == len(PAIRS)


CHAT = [{"type": "message", "user": f"U{k % 5}", "text": "hello", "ts": f"{k}.1"} for k in range(20)]
FOLLOWED = [{"following": {"accountId": str(k), "userLink": f"https://t.co/{k}"}} for k in range(20)]
ADDED = {"friends_v2": [{"name": f"N{k}", "timestamp": 1_600_000_000 + k} for k in range(20)]}


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"users.json": [{"id": "U1"}], "channels.json": [{"id": "C1", "members": ["U1"]}]}, "an export of Slack"),
        ({"2024-01-01.json": CHAT}, "messages of a chat, which name no ties"),
        ({"your_friends.json": ADDED}, "friends_v2: name, timestamp.*whom one person alone knows is no tie"),
        ({"following.json": FOLLOWED}, "whom one"),
        ({"ties.csv": "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"}, "a pointer of Git LFS"),
        ({"export.xls": "<html><table><tr><td>source</td></tr></table></html>"}, "a page of HTML"),
        ({"papers.txt": "@article{a, author={A and B}}\n"}, "BibTeX"),
        ({"map.json": {"type": "FeatureCollection", "features": [{"id": 1}]}}, "a map"),
        ({"a.mmd": "graph TD\n  a --> b\n  b --> c\n"}, "a drawing"),
        ({"0.edges": "1 2\n2 3\n1 3\n", "107.edges": "4 5\n5 6\n4 6\n"}, "several files hold ties: 0.edges, 107.edges"),
        ({"ties_2023.csv": TIES, "ties_2024.csv": TIES}, "several files hold ties: ties_2023.csv, ties_2024.csv"),
    ],
)
def test_what_holds_no_ties_is_called_by_its_name(files: dict[str, object], says: str, tmp_path: Path) -> None:
    put(tmp_path, {name: held if isinstance(held, str) else json.dumps(held) for name, held in files.items()})
    with pytest.raises(DataError, match=says):
        read(tmp_path)
