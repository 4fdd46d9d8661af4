"""Columns that were computed from edges are noticed, whatever transformation they went through."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph import data
from fedgraph.data.own import columns
from fedgraph.data.own.door import read
from fedgraph.types import Graph

GRAPH = nx.barabasi_albert_graph(300, 3, seed=1)
ADJACENCY = sp.csr_array(nx.to_scipy_sparse_array(GRAPH, dtype=float))
DEGREE = np.array([d for _, d in GRAPH.degree()], float)
RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("column", "what"),
    [
        (DEGREE, "degree"),
        (np.log1p(DEGREE) * 3 - 7, "degree"),
        (1 / DEGREE, "degree"),
        (np.array(list(nx.pagerank(GRAPH).values())), "PageRank"),
        (np.array(list(nx.clustering(GRAPH).values())), "clustering coefficient"),
        (np.array(list(nx.eigenvector_centrality_numpy(GRAPH).values())), "eigenvector centrality"),
    ],
)
def test_a_column_from_edges_is_named(column: np.ndarray, what: str) -> None:
    table = sp.csr_array(np.column_stack([RNG.normal(size=300), column]))
    assert columns._columns_like_edges(table, ADJACENCY, ("age", "mine")) == {"mine": what}


def test_people_are_not_taken_for_centralities() -> None:
    """Ages, incomes, yes/no facts, and a column that merely goes along with the degree."""
    table = np.column_stack(
        [RNG.normal(size=300), RNG.lognormal(size=300), RNG.random(300) < 0.3, DEGREE + 6 * RNG.normal(size=300)]
    )
    assert columns._columns_like_edges(sp.csr_array(table), ADJACENCY, tuple("abcd")) == {}


def test_on_a_ring_nobody_differs_in_degree() -> None:
    ring = sp.csr_array(nx.to_scipy_sparse_array(nx.cycle_graph(50), dtype=float))
    assert columns._columns_like_edges(sp.csr_array(np.ones((50, 1)) * 2), ring, ("x",)) == {}


def test_the_graph_says_so_and_a_person_may_contradict() -> None:
    table = np.column_stack([RNG.normal(size=300), DEGREE])
    given = (ADJACENCY, table, np.arange(300) % 2)
    graph = read(given, name="g").graph
    assert graph.features_from_edges
    assert "column 1" in graph.provenance.detail
    assert "degree" in graph.provenance.detail
    assert not read(given, columns={"from_edges": False}).graph.features_from_edges
    assert read((ADJACENCY, table[:, :1], given[2]), columns={"from_edges": True}).graph.features_from_edges


def test_a_folder_of_tables_says_so_too(tmp_path: Path) -> None:
    people = "".join(f"{i},{20 + i % 40},{int(d)}\n" for i, d in enumerate(DEGREE))
    (tmp_path / "features.csv").write_text(f"id,age,links\n{people}")
    (tmp_path / "labels.csv").write_text("id,label\n" + "".join(f"{i},{i % 2}\n" for i in range(300)))
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in GRAPH.edges))
    for parameters, found in (({}, True), ({"from_edges": False}, False)):
        graph = data.load("own/csv", path=tmp_path, parameters=parameters)
        assert isinstance(graph, Graph)
        assert graph.features_from_edges == found


KINDS = np.array(["follow", "like", "block"])
LINES = np.random.default_rng(4).integers(0, 60, (600, 2))  # some twice, and some in both directions
LINES = np.concatenate([LINES, LINES[:150]])
KIND = KINDS[np.random.default_rng(5).integers(0, 3, len(LINES))]
FOLLOWS = LINES[KIND == "follow"]


@pytest.mark.parametrize(
    ("column", "rules", "what"),
    [
        (np.bincount(LINES[:, 1], minlength=60), {}, "end there"),
        (np.bincount(LINES[:, 0], minlength=60), {}, "begin there"),
        (np.bincount(LINES.ravel(), minlength=60), {}, "in all"),
        (np.bincount(FOLLOWS[:, 1], minlength=60), {}, "lines of the kind follow that end there"),
        (np.bincount(FOLLOWS[:, 1], minlength=60), {"kind": "kind", "kinds": ["follow"]}, "end there"),
        (np.bincount(LINES[:, 1], minlength=60), {"kind": "kind", "kinds": ["follow"]}, "all lines that end there"),
        (np.random.default_rng(6).permutation(np.bincount(LINES[:, 1], minlength=60)), {}, ""),
    ],
)
def test_counts_of_lines_at_either_end_are_computed_from_ties(
    column: np.ndarray, rules: dict[str, object], what: str, tmp_path: Path
) -> None:
    people = "".join(f"{k},{column[k]},{'ab'[k % 2]}\n" for k in range(60))
    (tmp_path / "people.csv").write_text(f"id,followers,team\n{people}")
    lines = "".join(f"{a},{b},{kind}\n" for (a, b), kind in zip(LINES, KIND, strict=True))
    (tmp_path / "ties.csv").write_text(f"source,target,kind\n{lines}")
    reading = read(tmp_path, label="team", columns=rules)
    assert reading.graph.features_from_edges == bool(what)  # type: ignore[union-attr]
    assert not what or f"{what}), taken as computed from them" in reading.says


def test_lines_that_hardly_anybody_has_go_along_with_nothing(tmp_path: Path) -> None:
    """One line of a kind is a count of 1 for one person, and so is an income of a million beside others of some thousands."""
    income = [1_000_000 if k == 7 else 1_000 + 37 * k % 400 for k in range(60)]
    (tmp_path / "people.csv").write_text("id,income,team\n" + "".join(f"{k},{income[k]},{'ab'[k % 2]}\n" for k in range(60)))
    lines = "".join(f"{k},{(k + 1) % 60},{'loan' if k == 7 else 'mail'}\n" for k in range(60))
    (tmp_path / "ties.csv").write_text(f"source,target,kind\n{lines}")
    assert not read(tmp_path, label="team").graph.features_from_edges  # type: ignore[union-attr]
