"""The same people in other clothes are the same graph, or a question that names the column: over all forms at once."""

from __future__ import annotations

import gzip
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedgraph.data.own.door import read
from fedgraph.data.own.tables import ReadingQuestion
from fedgraph.types import Graph

CITIES, GROUPS = ("Gent", "Graz", "Łódź", "Köln"), ("red", "green", "blue")


@dataclass(frozen=True)
class People:
    """ids are numbers; edges are pairs of them."""

    table: pd.DataFrame
    ties: pd.DataFrame


def club(seed: int, count: int) -> People:
    rng = np.random.default_rng(seed)
    ids = rng.permutation(np.arange(1000, 1000 + count))
    groups = rng.integers(0, 3, count)
    table = pd.DataFrame(
        {
            "id": ids,
            "age": rng.integers(18, 80, count),
            "income": np.round(rng.lognormal(10, 0.4, count), 2),
            "member": np.where(rng.random(count) < 0.5, "yes", "no"),
            "city": np.array(CITIES[:3], dtype=object)[rng.integers(0, 3, count)],
            "group": np.array(GROUPS, dtype=object)[groups],
        }
    )
    pairs = {tuple(sorted((int(rng.choice(ids)), int(rng.choice(ids))))) for _ in range(2 * count)}
    return People(table, pd.DataFrame(sorted(pair for pair in pairs if pair[0] != pair[1]), columns=["source", "target"]))


def facts(graph: Graph) -> tuple[set[str], set[frozenset[str]], dict[str, str], dict[str, tuple[float, ...]]]:
    """(people, ties, classes, rows) whatever the order of people and columns."""
    arcs = graph.adjacency.tocoo()
    ties = {frozenset((graph.ids[a], graph.ids[b])) for a, b in zip(*arcs.coords, strict=True)}
    classes = {one: graph.names.classes[k] for one, k in zip(graph.ids, graph.labels, strict=True) if k >= 0}
    rows = graph.features.toarray()
    values = {one: tuple(sorted(np.round(row.astype(float), 4).tolist())) for one, row in zip(graph.ids, rows, strict=True)}
    return set(graph.ids), ties, classes, values


def truth(people: People, renamed: dict[int, str]) -> tuple[set[str], set[frozenset[str]], dict[str, str]]:
    ids = {renamed[one] for one in people.table["id"]}
    ties = {frozenset((renamed[a], renamed[b])) for a, b in people.ties.itertuples(index=False)}
    return ids, ties, {renamed[a]: b for a, b in zip(people.table["id"], people.table["group"], strict=True)}


@st.composite
def dresses(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "seed": draw(st.integers(0, 30)),
        "count": draw(st.integers(24, 60)),
        "form": draw(st.sampled_from(("csv", "csv", "txt", "parquet", "jsonl", "node-link", "graphml", "gml", "gexf", "frames",
                                      "network", "matrix", "gephi", "neo4j"))),
        "ids": draw(st.sampled_from(("number", "text", "long", "float", "small"))),
        "id": draw(st.sampled_from(("id", "Id", "user_id", "node_id", "account", "ID ", "kunde"))),
        "ends": draw(st.sampled_from((("source", "target"), ("Source", "Target"), ("from", "to"), ("payer", "payee"),
                                      ("id_1", "id_2"), ("txId1", "txId2"), ("nameOrig", "nameDest"), ("src", "dst"),
                                      ("wer", "wen")))),
        "label": draw(st.sampled_from(("group", "label", "class", "Target"))),
        "said": draw(st.booleans()),  # whether the owner names the label
        "order": draw(st.permutations(range(6))),
        "before": draw(st.booleans()),  # columns of ties before their ends
        "encoding": draw(st.sampled_from(("utf-8", "utf-8-sig", "utf-16", "cp1252"))),
        "separator": draw(st.sampled_from((",", ";", "\t", "|"))),
        "index": draw(st.booleans()),
        "part": draw(st.booleans()),  # an index with gaps, as a part of a larger table has
        "header": draw(st.sampled_from((True, True, True, False))),
        "apart": draw(st.booleans()),  # the label in a file of its own
        "packed": draw(st.booleans()),
    }  # fmt: skip


def renamed_ids(people: People, how: str) -> dict[int, str]:
    if how == "text":
        return {one: f"p{one}" for one in people.table["id"]}
    if how == "long":
        return {one: str(9_007_199_254_740_993_000 + int(one)) for one in people.table["id"]}
    if how == "small":  # ids that other columns hold, too
        return {one: str(one - 1000) for one in people.table["id"]}
    return {one: str(one) for one in people.table["id"]}


def wear(people: People, dress: dict[str, Any], folder: Path) -> tuple[object, dict[str, Any]]:
    """(what is handed over, the arguments that its owner says)."""
    rng = np.random.default_rng(dress["seed"])
    names = renamed_ids(people, dress["ids"])
    written = (lambda one: f"{names[one]}.0") if dress["ids"] == "float" else names.__getitem__
    table = people.table.sample(frac=1, random_state=int(rng.integers(1 << 30))).reset_index(drop=True)
    ties = people.ties.sample(frac=1, random_state=int(rng.integers(1 << 30))).reset_index(drop=True)
    table["id"], ties = table["id"].map(written), ties.map(written)
    if dress["part"]:
        table.index = pd.Index(np.sort(rng.choice(9 * len(table), len(table), replace=False)))
    form, ends, label = dress["form"], list(dress["ends"]), dress["label"]
    asked: dict[str, Any] = {"label": label}
    columns = {"id": dress["id"], "group": label}
    if dress["encoding"] == "cp1252":
        table["city"] = table["city"].replace("Łódź", "Köln")
    table, ties = table.rename(columns=columns), ties.set_axis(ends, axis=1)
    table = table[[table.columns[place] for place in dress["order"]]]
    if dress["before"]:
        ties.insert(0, "step", range(5000, 5000 + len(ties)))
        ties.insert(1, "amount", np.round(rng.random(len(ties)) * 100, 2))
    if form == "frames":
        return (table, ties), asked
    if form in ("network", "graphml", "gexf", "gml", "node-link"):
        graph = nx.Graph()
        for row in table.to_dict("records"):
            graph.add_node(row.pop(dress["id"]), **row)
        graph.add_edges_from(ties[ends].itertuples(index=False, name=None))
        if form == "network":
            return graph, asked
        file = folder / f"club.{'json' if form == 'node-link' else form}"
        if form == "node-link":
            file.write_text(json.dumps(nx.node_link_data(graph, edges="links")), encoding="utf-8")
        else:
            {"graphml": nx.write_graphml, "gexf": nx.write_gexf, "gml": nx.write_gml}[form](graph, file)
        if form == "gml" and label == "label":
            return pytest.skip, asked
        return (folder if dress["packed"] else file), asked
    if form == "matrix":
        ids = table[dress["id"]].tolist()
        place = {one: row for row, one in enumerate(ids)}
        matrix = np.zeros((len(ids), len(ids)), dtype=int)
        for a, b in ties[ends].itertuples(index=False):
            matrix[place[a], place[b]] = matrix[place[b], place[a]] = 1
        pd.DataFrame(matrix, index=ids, columns=ids).to_csv(folder / "adjacency.csv")
        table.to_csv(folder / "people.csv", index=False)
        return folder, asked
    if form == "parquet":
        table.to_parquet(folder / "people.parquet")
        ties.to_parquet(folder / "ties.parquet")
        return folder, asked
    if form == "jsonl":
        table.to_json(folder / "people.jsonl", orient="records", lines=True)
        ties.to_json(folder / "ties.jsonl", orient="records", lines=True)
        return folder, asked
    if form == "gephi":
        nodes = table.rename(columns={dress["id"]: "Id"})
        if label.casefold() != "label":
            nodes["Label"] = [f"Person {k}" for k in range(len(nodes))]
        nodes.to_csv(folder / "nodes.csv", index=False)
        ties[ends].set_axis(["Source", "Target"], axis=1).assign(Type="Undirected", Weight=1).to_csv(
            folder / "edges.csv", index=False
        )
        return folder, asked
    if form == "neo4j":
        typed = {dress["id"]: "personId:ID(Person)", "age": "age:int", "income": "income:double", "city": "city:string"}
        table.rename(columns=typed).assign(**{":LABEL": "Person"}).to_csv(folder / "persons.csv", index=False)
        ties[ends].set_axis([":START_ID(Person)", ":END_ID(Person)"], axis=1).assign(**{":TYPE": "KNOWS"}).to_csv(
            folder / "knows.csv", index=False
        )
        return folder, asked
    more = {"sep": dress["separator"], "encoding": dress["encoding"], "index": dress["index"], "header": dress["header"]}
    if not dress["header"]:
        more["index"] = False
        asked = {}
        table = table[[dress["id"], *(column for column in table.columns if column != dress["id"])]]
        ties = ties[ends]
        asked["label"] = f"column {table.columns.get_loc(label) + 1}"
    if dress["apart"]:
        own = table[[dress["id"], label]]
        table = table.drop(columns=label)
        own.to_csv(folder / "labels.csv", **more)
        asked["label"] = label if dress["header"] else "column 2"
    table.to_csv(folder / "people.csv", **more)
    if form == "txt":
        lines = ["# ties of a club", *(" ".join(map(str, pair)) for pair in ties[ends].itertuples(index=False))]
        (folder / "ties.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    else:
        ties.to_csv(folder / "ties.csv", **more)
    if dress["packed"]:
        file = folder / "people.csv"
        (folder / "people.csv.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    return folder, asked


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(dresses())
def test_every_dress_is_the_same_graph_or_a_question(dress: dict[str, Any]) -> None:
    people = club(dress["seed"], dress["count"])
    plain, told, asked = read((people.table, people.ties), label="group").graph, None, None
    assert isinstance(plain, Graph)
    with tempfile.TemporaryDirectory() as place:
        what, words = wear(people, dress, Path(place))
        if what is pytest.skip:
            return
        if not dress["said"]:
            del words["label"]
        try:
            told = read(what, **words).graph
        except ReadingQuestion as question:
            asked = question
    if isinstance(asked, ReadingQuestion):
        named = [one for choice in asked.choices for one in ([choice] if isinstance(choice, str) else choice)]
        assert any(one in str(asked) for one in named)
        return
    assert isinstance(told, Graph)
    names = renamed_ids(people, dress["ids"])
    ids, ties, classes = truth(people, names)
    found = facts(told)
    assert found[0] == ids
    assert found[1] == ties
    assert found[2] == classes
    if dress["encoding"] != "cp1252":
        rows = {names[int(one)]: values for one, values in facts(plain)[3].items()}
        assert found[3] == rows
