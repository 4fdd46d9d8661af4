"""A federation, and a collection of small graphs, in other clothes are the same, or a question that names the column."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedgraph.data.own.door import read
from fedgraph.data.own.reading import Reading
from fedgraph.data.own.tables import ReadingQuestion
from fedgraph.types import Graph, GraphCollection
from tests.data.own.clubs import facts
from tests.data.own.test_dress import club, write_network

OWNERS = ("north", "south", "west")
NETWORKS = ("graphml", "gexf", "node-link")
FEW = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@st.composite
def dresses(draw: st.DrawFn) -> dict[str, Any]:
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


def write(table: pd.DataFrame, file: Path, dress: dict[str, Any]) -> None:
    form = dress["form"]
    if form == "parquet":
        table.to_parquet(file.with_suffix(".parquet"))
    elif form == "excel":
        table.to_excel(file.with_suffix(".xlsx"), index=dress["index"])
    elif form == "jsonl":
        table.to_json(file.with_suffix(".jsonl"), orient="records", lines=True)
    else:
        table.to_csv(file.with_suffix(".csv"), sep=dress["separator"], encoding=dress["encoding"], index=dress["index"])


def wear(table: pd.DataFrame, ties: pd.DataFrame, dress: dict[str, Any], folder: Path) -> None:
    folder.mkdir()
    table = table.assign(group=table["group"].map(dress["labels"]))
    if dress["form"] in NETWORKS:
        write_network(table, ties, folder / "club", dress["form"])
        return
    if dress["float"] and dress["form"] == "csv":
        table = table.assign(id=table["id"].map("{}.0".format), age=table["age"].map("{}.0".format))
        ties = ties.map("{}.0".format)
    table = table.rename(columns={name: dress["columns"](name) for name in table.columns if name not in ("id", "group")})
    table, ties = table.rename(columns={"id": dress["id"]}), ties.set_axis(list(dress["ends"]), axis=1)
    people, tied = dress["names"]
    if dress["apart"]:
        write(table[[dress["id"], "group"]], folder / "labels", dress)
        table = table.drop(columns="group")
    write(table, folder / people, dress)
    write(ties, folder / tied, dress)


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
@given(st.lists(dresses(), min_size=3, max_size=3), st.integers(0, 30))
def test_every_owner_may_dress_otherwise(wearing: list[dict[str, Any]], seed: int) -> None:
    clubs = {name: club(seed + number, 24) for number, name in enumerate(OWNERS)}
    with tempfile.TemporaryDirectory() as place:
        for (name, people), dress in zip(clubs.items(), wearing, strict=True):
            wear(people.table.drop(columns="city"), people.ties, dress, Path(place) / name)
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
@given(dresses(), st.sampled_from(("tables", "pairs", "folders", "files")), st.integers(0, 30))
def test_every_dress_of_a_collection_is_the_same(dress: dict[str, Any], layout: str, seed: int) -> None:
    names = [f"g{number}" for number in range(6)]
    clubs = {name: club(seed + number, 8) for number, name in enumerate(names)}
    labels = {name: ("ring", "line")[number % 2] for number, name in enumerate(names)}
    if layout == "files":
        dress = dress | ({} if dress["form"] in ("graphml", "gexf") else {"form": "graphml"})
    elif dress["form"] in NETWORKS or (dress["form"] in ("excel", "jsonl") and layout == "tables"):
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
                write(table, folder / name / "nodes", dress)
                write(tied, folder / name / "edges", dress)
            elif layout == "pairs":
                write(table, folder / f"{name}.nodes.x", dress)
                write(tied, folder / f"{name}.edges.x", dress)
            people.append(table.assign(graph=name))
            ties.append(tied.assign(graph=name))
        if layout == "tables":
            write(pd.concat(people, ignore_index=True), folder / "nodes", dress)
            write(pd.concat(ties, ignore_index=True), folder / "edges", dress)
        if layout != "files" or dress["apart"] or dress["form"] == "gexf":
            table = pd.DataFrame({"graph": names, "label": list(labels.values())})
            write(table, folder / "labels", dress | ({"form": "csv"} if layout == "files" else {}))
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
