"""The same people in other clothes are the same graph, or a question that names the column: over all forms at once.

So are federations, collections of small graphs, and lists of ties of two to four columns, whatever their header.
"""

from __future__ import annotations

import gzip
import itertools
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedgraph.data.own.door import read
from fedgraph.data.own.reading import Reading
from fedgraph.data.own.tables import ReadingQuestion
from fedgraph.errors import DataError
from fedgraph.types import Graph, GraphCollection
from tests.data.own.clubs import Ties, facts, graph_of

CITIES, GROUPS = ("Gent", "Graz", "Łódź", "Köln"), ("red", "green", "blue")
NETWORKS = {"graphml": nx.write_graphml, "gexf": nx.write_gexf, "gml": nx.write_gml}


@dataclass(frozen=True)
class People:
    """ids are numbers; edges are pairs of them."""

    table: pd.DataFrame
    ties: pd.DataFrame


def club(seed: int, count: int) -> People:
    rng = np.random.default_rng(seed)
    ids = rng.permutation(np.arange(1000, 1000 + count))
    groups = rng.integers(0, 3, count)
    table = pd.DataFrame({
        "id": ids,
        "age": rng.integers(18, 80, count),
        "income": np.round(rng.lognormal(10, 0.4, count), 2),
        "member": np.where(rng.random(count) < 0.5, "yes", "no"),
        "city": np.array(CITIES[:3], dtype=object)[rng.integers(0, 3, count)],
        "group": np.array(GROUPS, dtype=object)[groups],
    })  # fmt: skip
    pairs = {tuple(sorted((int(rng.choice(ids)), int(rng.choice(ids))))) for _ in range(2 * count)}
    return People(table, pd.DataFrame(sorted(pair for pair in pairs if pair[0] != pair[1]), columns=["source", "target"]))


def truth(people: People, renamed: dict[int, str]) -> tuple[set[str], Ties, dict[str, str]]:
    ids = {renamed[one] for one in people.table["id"]}
    ties = {frozenset((renamed[a], renamed[b])) for a, b in people.ties.itertuples(index=False)}
    return ids, ties, {renamed[a]: b for a, b in zip(people.table["id"], people.table["group"], strict=True)}


def write_network(table: pd.DataFrame, ties: pd.DataFrame, file: Path, form: str, id: str = "id", **told: str) -> Path:
    graph = nx.Graph(**told)
    graph.add_nodes_from((row.pop(id), row) for row in table.to_dict("records"))
    graph.add_edges_from(ties.itertuples(index=False, name=None))
    file = file.with_suffix(".json" if form == "node-link" else f".{form}")
    if form == "node-link":
        file.write_text(json.dumps(nx.node_link_data(graph, edges="links")), encoding="utf-8")
    else:
        NETWORKS[form](graph, file)
    return file


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
    ids = [int(one) for one in people.table["id"]]
    form = {"text": lambda one: f"p{one}", "long": lambda one: str(9_007_199_254_740_993_000 + one),
            "small": lambda one: str(one - 1000)}.get(how, str)  # fmt: skip
    return {one: form(one) for one in ids}  # small: ids that other columns hold, too


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
    form, ends, label, key = dress["form"], list(dress["ends"]), dress["label"], dress["id"]
    asked: dict[str, Any] = {"label": label}
    if dress["encoding"] == "cp1252":
        table["city"] = table["city"].replace("Łódź", "Köln")
    table, ties = table.rename(columns={"id": key, "group": label}), ties.set_axis(ends, axis=1)
    table = table[[table.columns[place] for place in dress["order"]]]
    if dress["before"]:
        ties.insert(0, "step", range(5000, 5000 + len(ties)))
        ties.insert(1, "amount", np.round(rng.random(len(ties)) * 100, 2))
    if form == "frames":
        return (table, ties), asked
    if form == "network":
        graph = nx.Graph()
        graph.add_nodes_from((row.pop(key), row) for row in table.to_dict("records"))
        graph.add_edges_from(ties[ends].itertuples(index=False, name=None))
        return graph, asked
    if form in (*NETWORKS, "node-link"):
        file = write_network(table, ties[ends], folder / "club", form, key)
        return (folder if dress["packed"] else file), asked
    if form == "matrix":
        ids = table[key].tolist()
        matrix = pd.DataFrame(0, index=ids, columns=ids)
        for a, b in ties[ends].itertuples(index=False):
            matrix.loc[a, b] = matrix.loc[b, a] = 1
        matrix.to_csv(folder / "adjacency.csv")
        table.to_csv(folder / "people.csv", index=False)
        return folder, asked
    if form in ("parquet", "jsonl"):
        for name, one in (("people", table), ("ties", ties)):
            file = folder / f"{name}.{form}"
            one.to_parquet(file) if form == "parquet" else one.to_json(file, orient="records", lines=True)
        return folder, asked
    if form == "gephi":
        nodes = table.rename(columns={key: "Id"})
        if label.casefold() != "label":
            nodes["Label"] = [f"Person {k}" for k in range(len(nodes))]
        nodes.to_csv(folder / "nodes.csv", index=False)
        edges = ties[ends].set_axis(["Source", "Target"], axis=1).assign(Type="Undirected", Weight=1)
        edges.to_csv(folder / "edges.csv", index=False)
        return folder, asked
    if form == "neo4j":
        typed = {key: "personId:ID(Person)", "age": "age:int", "income": "income:double", "city": "city:string"}
        table.rename(columns=typed).assign(**{":LABEL": "Person"}).to_csv(folder / "persons.csv", index=False)
        known = ties[ends].set_axis([":START_ID(Person)", ":END_ID(Person)"], axis=1).assign(**{":TYPE": "KNOWS"})
        known.to_csv(folder / "knows.csv", index=False)
        return folder, asked
    header = dress["header"]
    more = {"sep": dress["separator"], "encoding": dress["encoding"], "index": dress["index"] and header, "header": header}
    if not header:
        table = table[[key, *(column for column in table.columns if column != key)]]
        ties = ties[ends]
        asked = {"label": f"column {table.columns.get_loc(label) + 1}"}
    if dress["apart"]:
        table[[key, label]].to_csv(folder / "labels.csv", **more)
        table = table.drop(columns=label)
        asked["label"] = label if header else "column 2"
    table.to_csv(folder / "people.csv", **more)
    if form == "txt":
        pairs = "".join(f"{a} {b}\n" for a, b in ties[ends].itertuples(index=False))
        (folder / "ties.txt").write_text(f"# ties of a club\n{pairs}", encoding="utf-8")
    else:
        ties.to_csv(folder / "ties.csv", **more)
    if dress["packed"]:
        file = folder / "people.csv"
        (folder / "people.csv.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    return folder, asked


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(dresses().filter(lambda dress: dress["form"] != "gml" or dress["label"] != "label"))  # networkx cannot write that
def test_every_dress_is_the_same_graph_or_a_question(dress: dict[str, Any]) -> None:
    people = club(dress["seed"], dress["count"])
    with tempfile.TemporaryDirectory() as place:
        what, words = wear(people, dress, Path(place))
        if not dress["said"]:
            del words["label"]
        asked = None
        try:
            told = read(what, **words)
        except ReadingQuestion as question:
            asked = question
    if asked is not None:
        named = [one for choice in asked.choices for one in ([choice] if isinstance(choice, str) else choice)]
        assert any(one in str(asked) for one in named)
        return
    names = renamed_ids(people, dress["ids"])
    *found, rows = facts(graph_of(told))
    assert tuple(found) == truth(people, names)
    if dress["encoding"] != "cp1252":
        plain = facts(graph_of(read((people.table, people.ties), label="group")))[3]
        assert rows == {names[int(one)]: values for one, values in plain.items()}


# Parts


OWNERS = ("north", "south", "west")
FEW = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@st.composite
def plain_dresses(draw: st.DrawFn) -> dict[str, Any]:
    """How one owner, or all of a collection, write their tables."""
    return {
        "form": draw(st.sampled_from(("csv", "csv", "parquet", "excel", "jsonl", "graphml", "gexf", "node-link"))),
        "id": draw(st.sampled_from(("id", "Id", "user_id", "account", "kunde"))),
        "ends": draw(st.sampled_from((("source", "target"), ("Source", "Target"), ("from", "to"), ("payer", "payee")))),
        "columns": draw(st.sampled_from((str, str.upper, str.title))),
        "labels": draw(st.sampled_from((str, str.title, str.upper))),
        "float": draw(st.booleans()),  # numbers as pandas writes them beside missing ones
        "separator": draw(st.sampled_from((",", ";", "\t", "|"))),
        "encoding": draw(st.sampled_from(("utf-8", "utf-8-sig", "utf-16"))),
        "index": draw(st.booleans()),
        "apart": draw(st.booleans()),  # labels in a table of their own
        "names": draw(st.sampled_from((("features", "edges"), ("accounts", "transactions"), ("people", "ties")))),
    }


def write_table(table: pd.DataFrame, file: Path, dress: dict[str, Any]) -> None:
    form = dress["form"]
    if form == "parquet":
        table.to_parquet(file.with_suffix(".parquet"))
    elif form == "excel":
        table.to_excel(file.with_suffix(".xlsx"), index=dress["index"])
    elif form == "jsonl":
        table.to_json(file.with_suffix(".jsonl"), orient="records", lines=True)
    else:
        table.to_csv(file.with_suffix(".csv"), sep=dress["separator"], encoding=dress["encoding"], index=dress["index"])


def wear_plain(table: pd.DataFrame, ties: pd.DataFrame, dress: dict[str, Any], folder: Path) -> None:
    folder.mkdir()
    table = table.assign(group=table["group"].map(dress["labels"]))
    if dress["form"] in ("graphml", "gexf", "node-link"):
        write_network(table, ties, folder / "club", dress["form"])
        return
    if dress["float"] and dress["form"] == "csv":
        table = table.assign(id=table["id"].map("{}.0".format), age=table["age"].map("{}.0".format))
        ties = ties.map("{}.0".format)
    table = table.rename(columns={name: dress["columns"](name) for name in table.columns if name not in ("id", "group")})
    table, ties = table.rename(columns={"id": dress["id"]}), ties.set_axis(list(dress["ends"]), axis=1)
    people, tied = dress["names"]
    if dress["apart"]:
        write_table(table[[dress["id"], "group"]], folder / "labels", dress)
        table = table.drop(columns="group")
    write_table(table, folder / people, dress)
    write_table(ties, folder / tied, dress)


def answer(ask: Callable[[], Reading]) -> Graph | GraphCollection | None:
    """What is read; None where it was a question that names a choice."""
    try:
        return ask().graph
    except ReadingQuestion as question:
        if not any(str(choice) in str(question) for choice in question.choices):
            raise
    return None


def values_of(row: dict[str, Any]) -> tuple[float, ...]:
    expected = sorted((float(row["age"]), float(row["income"]), float(row["member"] == "yes")))
    return tuple(np.round(np.float32(expected).astype(float), 4))


@FEW
@given(st.lists(plain_dresses(), min_size=3, max_size=3), st.integers(0, 30))
def test_every_owner_may_dress_otherwise(wearing: list[dict[str, Any]], seed: int) -> None:
    clubs = {name: club(seed + number, 24) for number, name in enumerate(OWNERS)}
    with tempfile.TemporaryDirectory() as place:
        for (name, people), dress in zip(clubs.items(), wearing, strict=True):
            wear_plain(people.table.drop(columns="city"), people.ties, dress, Path(place) / name)
        graph = answer(lambda: read(place, label="group"))
    if graph is None:
        return
    assert isinstance(graph, Graph)
    assert graph.owner_names == OWNERS
    assert graph.owner is not None
    assert sorted(name.casefold() for name in graph.names.columns) == ["age", "income", "member"]
    found = facts(graph)
    rows = {f"{name}/{row['id']}": row for name, people in clubs.items() for row in people.table.to_dict("records")}
    assert found[0] == set(rows)
    assert found[1] == {frozenset(f"{name}/{one}" for one in pair) for name, people in clubs.items()
                        for pair in people.ties.itertuples(index=False)}  # fmt: skip
    assert {one: said.casefold() for one, said in found[2].items()} == {one: row["group"] for one, row in rows.items()}
    assert found[3] == {one: values_of(row) for one, row in rows.items()}
    assert graph.num_classes == len({row["group"] for row in rows.values()})


@FEW
@given(plain_dresses(), st.sampled_from(("tables", "pairs", "folders", "files")), st.integers(0, 30))
def test_every_dress_of_a_collection_is_the_same(dress: dict[str, Any], layout: str, seed: int) -> None:
    names = [f"g{number}" for number in range(6)]
    clubs = {name: club(seed + number, 8) for number, name in enumerate(names)}
    labels = {name: ("ring", "line")[number % 2] for number, name in enumerate(names)}
    if layout == "files":
        dress = dress | ({} if dress["form"] in ("graphml", "gexf") else {"form": "graphml"})
    elif dress["form"] in ("graphml", "gexf", "node-link") or (dress["form"] in ("excel", "jsonl") and layout == "tables"):
        dress = dress | {"form": "csv"}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        people, ties = [], []
        for name, one in clubs.items():
            table, tied = one.table.drop(columns=["city", "group"]), one.ties
            if layout == "files":
                told = {"label": labels[name]} if not dress["apart"] else {}
                write_network(table, tied, folder / name, dress["form"], **told)
                continue
            table, tied = table.rename(columns={"id": dress["id"]}), tied.set_axis(list(dress["ends"]), axis=1)
            if layout == "folders":
                (folder / name).mkdir()
                write_table(table, folder / name / "nodes", dress)
                write_table(tied, folder / name / "edges", dress)
            elif layout == "pairs":
                write_table(table, folder / f"{name}.nodes.x", dress)
                write_table(tied, folder / f"{name}.edges.x", dress)
            people.append(table.assign(graph=name))
            ties.append(tied.assign(graph=name))
        if layout == "tables":
            write_table(pd.concat(people, ignore_index=True), folder / "nodes", dress)
            write_table(pd.concat(ties, ignore_index=True), folder / "edges", dress)
        if layout != "files" or dress["apart"] or dress["form"] == "gexf":
            table = pd.DataFrame({"graph": names, "label": list(labels.values())})
            write_table(table, folder / "labels", dress | ({"form": "csv"} if layout == "files" else {}))
        found = answer(lambda: read(place))
    if found is None:
        return
    assert isinstance(found, GraphCollection)
    assert [found.classes[k] for k in found.labels] == list(labels.values())
    for graph, (name, one) in zip(found.graphs, clubs.items(), strict=True):
        assert graph.name.endswith(f"#{name}")
        rows = {str(row["id"]): row for row in one.table.to_dict("records")}
        ids, tied_, _, values = facts(graph)
        assert (ids, tied_) == (set(rows), {frozenset(map(str, pair)) for pair in one.ties.itertuples(index=False)})
        assert values == {one: values_of(row) for one, row in rows.items()}


# Lists


WORDS = ["user", "account", "paper", "ann", "bob", "source", "node", "name", "key", "member", "cid", "client", "dora", "x1"]
IDS = {
    "letters": [chr(97 + k) for k in range(26)], "capitals": [chr(65 + k) for k in range(26)], "words": WORDS,
    "numbered": [f"m{k}" for k in range(20)], "numbers": [str(k) for k in range(20)],
    "long": [str(9_007_199_254_740_993 + k) for k in range(20)], "mail": [f"p{k}@x.org" for k in range(20)],
}  # fmt: skip
MORE = {
    "weight": lambda rng: str(rng.integers(1, 6)),
    "amount": lambda rng: f"{rng.random() * 100:.2f}",
    "date": lambda rng: f"2024-01-{rng.integers(1, 28):02d}",
    "kind": lambda rng: str(rng.choice(["friend", "kin", "work"], p=[0.9, 0.05, 0.05])),
    "same": lambda rng: "knows",
}


@st.composite
def lists(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "ids": draw(st.sampled_from(sorted(IDS))),
        "more": draw(st.lists(st.sampled_from(sorted(MORE)), max_size=2, unique=True)),
        "ties": draw(st.sampled_from((4, 12, 30))),
        "shape": draw(st.sampled_from(("any", "star", "path"))),
        "separator": draw(st.sampled_from((",", ";", "\t", " "))),
        "comments": draw(st.sampled_from((0, 0, 1, 3))),
        "beside": draw(st.booleans()),
        "ending": draw(st.sampled_from(("csv", "txt"))),
        "above": draw(st.sampled_from((None, None, None, ("wer", "wen"), ("ego", "alter"), ("Person", "Freund")))),
        "below": draw(st.sampled_from((None, None, None, None, ("Quelle", "HR-2023"), ("Zeilen", "999")))),
        "seed": draw(st.integers(0, 60)),
    }


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(lists())
def test_a_list_without_a_header_is_the_same_graph_or_a_question(dress: dict[str, Any]) -> None:
    rng, ids = np.random.default_rng(dress["seed"]), IDS[dress["ids"]]
    beside = dress["beside"] or dress["ids"] == "words"  # alone, nobody can tell that client,user is a tie
    mixed = list(rng.permutation(ids))
    pairs = {
        "any": {tuple(sorted(map(str, rng.choice(ids, 2, replace=False)))) for _ in range(dress["ties"])},
        "star": {(mixed[0], one) for one in mixed[1 : dress["ties"] + 1]},
        "path": set(itertools.pairwise(mixed[: dress["ties"] + 1])),
    }[dress["shape"]]
    rows = [[*pair, *(MORE[one](rng) for one in dress["more"])] for pair in rng.permutation(sorted(pairs)).tolist()]
    lines = [dress["separator"].join(row) for row in rows]
    for place in range(dress["comments"]):
        lines.insert(place * len(lines) // 3, f"# ties, part {place}")
    above, below = (dress[side] if len(rows) >= 10 else None for side in ("above", "below"))  # of fewer ties nobody can tell
    lines = ([dress["separator"].join([*above, *dress["more"]])] if above else []) + lines
    lines += [dress["separator"].join([*below, *("1" for _ in dress["more"])])] if below else []
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / f"ties.{dress['ending']}"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        if beside:
            people = "".join(f"{one},{20 + k},{('red', 'blue')[k % 2]}\n" for k, one in enumerate(ids))
            (Path(place) / "people.csv").write_text("id,age,team\n" + people, encoding="utf-8")
        graph: object
        try:
            graph = read(place if beside else file, **({"label": "team"} if beside else {})).graph
        except DataError as error:
            graph = error
    if below:
        assert isinstance(graph, DataError)
        return
    if isinstance(graph, DataError):
        assert "--ends" in str(graph) or (above and "unknown node" in str(graph))  # a list of people, and whom each names
        told = above or "kind" in dress["more"]  # a kind that stands in the first line alone
        assert told or isinstance(graph, ReadingQuestion)
        return
    assert isinstance(graph, Graph)
    found = facts(graph)
    assert found[1] == {frozenset(pair) for pair in pairs}
    assert found[0] == (set(ids) if beside else {one for pair in pairs for one in pair})
