"""Columns that were computed from edges are noticed, whatever transformation they went through."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph import data
from fedgraph.data.own.door import read
from fedgraph.types import Graph
from tests.data.own.clubs import given, graph_of, lines, put

GRAPH = nx.barabasi_albert_graph(300, 3, seed=1)
ADJACENCY = sp.csr_array(nx.to_scipy_sparse_array(GRAPH, dtype=float))
DEGREE = np.array([d for _, d in GRAPH.degree()], float)
RNG = np.random.default_rng(0)
LABELS = np.arange(300) % 2
PEOPLE = [RNG.normal(size=300), RNG.lognormal(size=300), RNG.random(300) < 0.3, DEGREE + 6 * RNG.normal(size=300)]
COLUMNS = [
    ("degree", [PEOPLE[0], DEGREE]),
    ("degree", [PEOPLE[0], np.log1p(DEGREE) * 3 - 7]),
    ("degree", [PEOPLE[0], 1 / DEGREE]),
    ("PageRank", [PEOPLE[0], np.array(list(nx.pagerank(GRAPH).values()))]),
    ("clustering coefficient", [PEOPLE[0], np.array(list(nx.clustering(GRAPH).values()))]),
    ("eigenvector centrality", [PEOPLE[0], np.array(list(nx.eigenvector_centrality_numpy(GRAPH).values()))]),
    ("", PEOPLE),  # ages, incomes, yes/no facts, and a column that merely goes along with the degree
]


@pytest.mark.parametrize(("what", "columns"), COLUMNS)
def test_a_column_from_edges_is_named_and_people_are_not_taken_for_centralities(what: str, columns: list[np.ndarray]) -> None:
    graph = graph_of(read((ADJACENCY, np.column_stack(columns), LABELS), name="g"))
    assert graph.features_from_edges == bool(what)
    assert not what or all(part in graph.provenance.detail for part in ("column 1", what))
    assert "column 0 (" not in graph.provenance.detail


def test_a_person_may_contradict_and_on_a_ring_nobody_differs_in_degree(tmp_path: Path) -> None:
    table = np.column_stack([PEOPLE[0], DEGREE])
    assert not graph_of(read((ADJACENCY, table, LABELS), columns={"from_edges": False})).features_from_edges
    assert graph_of(read((ADJACENCY, table[:, :1], LABELS), columns={"from_edges": True})).features_from_edges
    ring = sp.csr_array(nx.to_scipy_sparse_array(nx.cycle_graph(50), dtype=float))
    assert not graph_of(read((ring, np.ones((50, 1)) * 2, LABELS[:50]))).features_from_edges
    put(tmp_path, {
        "features.csv": lines(((k, 20 + k % 40, int(d)) for k, d in enumerate(DEGREE)), "id,age,links"),
        "labels.csv": lines(enumerate(LABELS), "id,label"), "edges.csv": lines(GRAPH.edges, "source,target"),
    })  # fmt: skip
    for parameters, found in (({}, True), ({"from_edges": False}, False)):
        graph = data.load("own/csv", path=tmp_path, parameters=parameters)
        assert isinstance(graph, Graph)
        assert graph.features_from_edges == found


LINES = np.random.default_rng(4).integers(0, 60, (600, 2))  # some twice, and some in both directions
LINES = np.concatenate([LINES, LINES[:150]])
KIND = np.array(["follow", "like", "block"])[np.random.default_rng(5).integers(0, 3, len(LINES))]
FOLLOWS = LINES[KIND == "follow"]
RULES: dict[str, object] = {"kind": "kind", "kinds": ["follow"]}


@pytest.mark.parametrize(
    ("column", "rules", "what"),
    [
        (np.bincount(LINES[:, 1], minlength=60), {}, "end there"),
        (np.bincount(LINES[:, 0], minlength=60), {}, "begin there"),
        (np.bincount(LINES.ravel(), minlength=60), {}, "in all"),
        (np.bincount(FOLLOWS[:, 1], minlength=60), {}, "lines of the kind follow that end there"),
        (np.bincount(FOLLOWS[:, 1], minlength=60), RULES, "end there"),
        (np.bincount(LINES[:, 1], minlength=60), RULES, "all lines that end there"),
        (np.random.default_rng(6).permutation(np.bincount(LINES[:, 1], minlength=60)), {}, ""),
    ],
)
def test_counts_of_lines_at_either_end_are_computed_from_ties(
    column: np.ndarray, rules: dict[str, object], what: str, tmp_path: Path
) -> None:
    people = lines(((k, column[k], "ab"[k % 2]) for k in range(60)), "id,followers,team")
    ties = lines(((a, b, kind) for (a, b), kind in zip(LINES, KIND, strict=True)), "source,target,kind")
    reading = given(tmp_path, {"people.csv": people, "ties.csv": ties}, label="team", columns=rules)
    assert graph_of(reading).features_from_edges == bool(what)
    assert not what or f"{what}), taken as computed from them" in reading.says


def test_lines_that_hardly_anybody_has_go_along_with_nothing(tmp_path: Path) -> None:
    """One line of a kind is a count of 1 for one person, and so is an income of a million beside others of some thousands."""
    income = [1_000_000 if k == 7 else 1_000 + 37 * k % 400 for k in range(60)]
    people = lines(((k, income[k], "ab"[k % 2]) for k in range(60)), "id,income,team")
    ties = lines(((k, (k + 1) % 60, "loan" if k == 7 else "mail") for k in range(60)), "source,target,kind")
    assert not graph_of(given(tmp_path, {"people.csv": people, "ties.csv": ties}, label="team")).features_from_edges
