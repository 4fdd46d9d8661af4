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
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedgraph.data.own.door import read
from fedgraph.data.own.tables import ReadingQuestion
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
