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
from fedgraph.errors import DataError
from fedgraph.types import Graph

COUNT = 30
DRAW = random.Random(2)
PAIRS = sorted({(min(pair), max(pair)) for pair in (DRAW.sample(range(COUNT), 2) for _ in range(80))})
FRIENDS = {k: [b if a == k else a for a, b in PAIRS if k in (a, b)] for k in range(COUNT)}
FACTS: list[dict[str, Any]] = [{"age": 20 + k, "group": "ab"[k % 2]} for k in range(COUNT)]
TIES = "source,target\n" + "".join(f"{a},{b}\n" for a, b in PAIRS)


def resource(k: int) -> dict[str, Any]:
    """A person as JSON:API writes it."""
    friends = {"data": [{"type": "people", "id": str(one)} for one in FRIENDS[k]]}
    return {"type": "people", "id": str(k), "attributes": FACTS[k], "relationships": {"friends": friends}}


def node(k: int) -> dict[str, Any]:
    """A person as GraphQL's connections write it."""
    return {"node": {"id": k, **FACTS[k], "friends": {"edges": [{"node": {"id": one}} for one in FRIENDS[k]]}}}


def hal(k: int) -> dict[str, Any]:
    links = [{"href": f"https://example.org/people/{one}"} for one in FRIENDS[k]]
    return {"id": k, **FACTS[k], "_links": {"self": {"href": f"https://example.org/people/{k}"}, "friends": links}}


def api(rows: list[Any], more: bool) -> object:
    return {"data": rows, "links": {"self": "here", "next": "there" if more else None}, "jsonapi": {"version": "1.1"}}


def graphql(rows: list[Any], more: bool) -> object:
    return {"data": {"people": {"edges": rows, "pageInfo": {"hasNextPage": more}}}}


def embedded(rows: list[Any], more: bool) -> object:
    return {"_embedded": {"people": rows}, "_links": {"self": {"href": "x"}, **({"next": {"href": "y"}} if more else {})}}


def plain(rows: list[Any], more: bool) -> object:
    return {"results": rows, "count": COUNT, "next": "there" if more else None}


FORMS: dict[str, tuple[Callable[[int], object], Callable[[list[Any], bool], object]]] = {
    "JSON:API": (resource, api),
    "GraphQL": (node, graphql),
    "HAL": (hal, embedded),
    "pages": (lambda k: {"id": k, **FACTS[k], "friends": FRIENDS[k]}, plain),
}


def require_truth(graph: object) -> None:
    assert isinstance(graph, Graph)
    arcs = graph.adjacency.tocoo()
    found = {frozenset((graph.ids[a], graph.ids[b])) for a, b in zip(*arcs.coords, strict=True)}
    assert found == {frozenset((str(a), str(b))) for a, b in PAIRS}
    group = {one: graph.names.classes[graph.labels[row]] for row, one in enumerate(graph.ids)}
    assert group == {str(k): FACTS[k]["group"] for k in range(COUNT)}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("pages", [1, 3])
def test_what_services_answer_is_read_in_pages_too(form: str, pages: int, tmp_path: Path) -> None:
    one, whole = FORMS[form]
    size = COUNT // pages
    for page in range(pages):
        rows = [one(k) for k in range(page * size, (page + 1) * size)]
        (tmp_path / f"page_{page}.json").write_text(json.dumps(whole(rows, page + 1 < pages)), encoding="utf-8")
    reading = read(tmp_path, label="group")
    require_truth(reading.graph)
    assert "next page" not in reading.says
    (tmp_path / "page_0.json").write_text(json.dumps(whole([one(k) for k in range(size)], True)), encoding="utf-8")
    assert pages > 1 or "what the next page of the answer holds" in read(tmp_path, label="group").says


def test_nodes_beside_an_empty_list_of_links_are_no_page(tmp_path: Path) -> None:
    nodes = [{"id": k, **FACTS[k]} for k in range(COUNT)]
    (tmp_path / "all.json").write_text(json.dumps({"nodes": nodes, "links": []}), encoding="utf-8")
    graph = read(tmp_path / "all.json").graph
    assert isinstance(graph, Graph)
    assert (graph.num_nodes, graph.num_edges) == (COUNT, 0)


def test_ties_that_are_resources_are_ties_and_links_alone_are_named(tmp_path: Path) -> None:
    people = [{"type": "people", "id": str(k), "attributes": FACTS[k]} for k in range(COUNT)]
    ends = [
        {"user_a": {"data": {"type": "people", "id": str(a)}}, "user_b": {"data": {"type": "people", "id": str(b)}}}
        for a, b in PAIRS
    ]
    ties = [{"type": "friendships", "id": str(k), "relationships": own} for k, own in enumerate(ends)]
    (tmp_path / "all.json").write_text(json.dumps({"data": ties, "included": people}), encoding="utf-8")
    require_truth(read(tmp_path / "all.json", label="group").graph)
    linked = [{**one, "relationships": {"friends": {"links": {"related": "there"}}}} for one in people]
    (tmp_path / "links.json").write_text(json.dumps({"data": linked, "links": {}}), encoding="utf-8")
    with pytest.raises(DataError, match=r"relationship 'friends', of which links alone are there \(ask for include=friends\)"):
        read(tmp_path / "links.json")


def test_tables_in_parts_are_one_table_each(tmp_path: Path) -> None:
    people = [f"{k},{FACTS[k]['age']},{FACTS[k]['group']}\n" for k in range(COUNT)]
    for name, head, rows in (("people", "id,age,group\n", people), ("ties", "", TIES.splitlines(keepends=True)[1:])):
        (tmp_path / name).mkdir()
        (tmp_path / name / "_SUCCESS").write_text("")
        (tmp_path / name / "part-00009-1f0c6c2e-7f3c-4a55-9b6e-1c2d3e4f5a6b-c000.csv").write_text("")
        for part in range(3):
            file = tmp_path / name / f"part-0000{part}-1f0c6c2e-7f3c-4a55-9b6e-1c2d3e4f5a6b-c000.csv"
            file.write_text(head + "".join(rows[part::3]), encoding="utf-8")
    require_truth(read(tmp_path, label="group").graph)


def test_a_copy_of_a_file_is_no_second_table(tmp_path: Path) -> None:
    people = "id,age,group\n" + "".join(f"{k},{FACTS[k]['age']},{FACTS[k]['group']}\n" for k in range(COUNT))
    for name, text in (("people.csv", people), ("people (1).csv", people), ("people - Copy.csv", people), ("ties.csv", TIES)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    reading = read(tmp_path)
    require_truth(reading.graph)
    assert isinstance(reading.graph, Graph)
    assert reading.graph.names.columns == ("age",)
    assert "people (1).csv: a copy of people.csv" in reading.says


@pytest.mark.parametrize(
    ("column", "cells", "says"),
    [
        (
            "status",
            ["accepted", "pending"],
            "column 'status' of ties.csv tells ties apart (accepted 36, pending 36), and all are",
        ),
        ("sign", ["1", "-1"], "(1 36, -1 36)"),
        ("deleted_at", ["", "2024-01-01", "", "2024-01-02"], "(filled in 36 of 72 lines)"),
        ("until", ["", "2024-01-01", ""], "(filled in 24 of 72 lines)"),
        ("end_date", ["2024-01-01"], ""),
        ("rating", ["1", "-1", "1"], "(below 0 in 24 of 72 lines)"),
        ("trust", [str(k - 3) for k in range(24)], "(below 0 in 9 of 72 lines)"),
        ("rating", ["1", "5"], ""),
        ("amount", ["-1", "2"], ""),
        ("amount", ["1", "2"], ""),
        ("Type", ["Undirected"], ""),
    ],
)
def test_a_column_that_may_say_that_a_tie_is_none_is_pointed_out(
    column: str, cells: list[str], says: str, tmp_path: Path
) -> None:
    dates = [f"{cell[:-2]}{k % 28 + 1:02d}" if "-0" in cell else cell for k in range(72) for cell in [cells[k % len(cells)]]]
    lines = "".join(f"{a},{b},{cell}\n" for (a, b), cell in zip(PAIRS, dates, strict=True))
    (tmp_path / "ties.csv").write_text(f"source,target,{column}\n{lines}", encoding="utf-8")
    found = read(tmp_path)
    told = found.says
    assert bool(found.graph.provenance.doubts) == bool(says), "the page says it first"
    assert (says if says else "tells ties apart") in told or not says
    assert ("tells ties apart" in told) == bool(says)


def test_a_word_above_numbers_is_a_header_though_people_are_called_as_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id,age\n" + "".join(f"p{k},{k}\n" for k in range(COUNT)), encoding="utf-8")
    ties = "".join(f"p{a},p{b},2020\n" for a, b in PAIRS if (a, b) != (1, 2))
    (tmp_path / "ties.csv").write_text(f"p1,p2,since\n{ties}", encoding="utf-8")
    graph = read(tmp_path, label="").graph
    assert isinstance(graph, Graph)
    assert graph.num_edges == len([pair for pair in PAIRS if pair != (1, 2)])


def test_tables_of_several_years_are_not_one(tmp_path: Path) -> None:
    for year in (2023, 2024):
        (tmp_path / f"ties_{year}.csv").write_text(TIES, encoding="utf-8")
    with pytest.raises(DataError, match=r"several files hold ties: ties_2023.csv, ties_2024.csv"):
        read(tmp_path)


def test_a_list_of_lines_of_networkx_is_read(tmp_path: Path) -> None:
    nx.write_multiline_adjlist(nx.Graph(PAIRS), tmp_path / "ties.txt")
    graph = read(tmp_path / "ties.txt").graph
    assert isinstance(graph, Graph)
    assert graph.num_edges == len(PAIRS)


def test_node_xl_is_read(tmp_path: Path) -> None:
    from openpyxl import Workbook

    book = Workbook()
    ties, people, groups = book.active, book.create_sheet("Vertices"), book.create_sheet("Groups")
    assert ties is not None
    ties.title = "Edges"
    for row in (["", "Visual Properties", ""], ["Vertex 1", "Vertex 2", "Color"], *([str(a), str(b), ""] for a, b in PAIRS)):
        ties.append(row)
    for row in (["", "", "Other"], ["Vertex", "Color", "group"], *([str(k), "", FACTS[k]["group"]] for k in range(COUNT))):
        people.append(row)
    groups.append(["Group", "Vertex Color"])
    groups.append(["G1", "red"])
    book.save(tmp_path / "book.xlsx")
    require_truth(read(tmp_path / "book.xlsx").graph)


CHAT = [{"type": "message", "user": f"U{k % 5}", "text": "hello", "ts": f"{k}.1"} for k in range(20)]


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"users.json": [{"id": "U1"}], "channels.json": [{"id": "C1", "members": ["U1"]}]}, "an export of Slack"),
        ({"2024-01-01.json": CHAT}, "messages of a chat, which name no ties"),
        (
            {"your_friends.json": {"friends_v2": [{"name": f"N{k}", "timestamp": k} for k in range(20)]}},
            "whom one person alone",
        ),
        (
            {"following.json": [{"following": {"accountId": str(k), "userLink": f"https://t.co/{k}"}} for k in range(20)]},
            "whom one",
        ),
        ({"ties.csv": "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"}, "a pointer of Git LFS"),
        ({"export.xls": "<html><table><tr><td>source</td></tr></table></html>"}, "a page of HTML"),
        ({"papers.txt": "@article{a, author={A and B}}\n"}, "BibTeX"),
        ({"map.json": {"type": "FeatureCollection", "features": [{"id": 1}]}}, "a map"),
        ({"a.mmd": "graph TD\n  a --> b\n  b --> c\n"}, "a drawing"),
        ({"0.edges": "1 2\n2 3\n1 3\n", "107.edges": "4 5\n5 6\n4 6\n"}, "several files hold ties: 0.edges, 107.edges"),
    ],
)
def test_what_holds_no_ties_is_called_by_its_name(files: dict[str, object], says: str, tmp_path: Path) -> None:
    for name, held in files.items():
        (tmp_path / name).write_text(held if isinstance(held, str) else json.dumps(held), encoding="utf-8")
    with pytest.raises(DataError, match=says):
        read(tmp_path)
