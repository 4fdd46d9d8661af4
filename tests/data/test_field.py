"""``field/…``: files in the exact layout of the published archives; the archives themselves were not at hand."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph import data
from fedgraph.errors import DataError
from fedgraph.types import Graph

ENDS = np.array([[0, 1], [1, 0], [1, 2], [2, 2], [3, 4], [5, 0]])
LABELS = np.array([0, 0, 0, 4, 4, 2])
FEATURES = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
EDGES = {(0, 1), (1, 2), (3, 4), (0, 5)}


@pytest.fixture
def ogb(tmp_path: Path) -> Path:
    """As ``arxiv.zip`` and ``products.zip`` unpack; what fedgraph does not read is there, too."""
    raw = tmp_path / "ogbn_arxiv" / "raw"
    raw.mkdir(parents=True)
    tables = {
        "edge": ENDS,
        "node-feat": FEATURES,
        "node-label": LABELS,
        "num-node-list": np.array([6]),
        "num-edge-list": ENDS[:1],
    }
    for name, table in tables.items():
        text = "".join(",".join(map(str, np.atleast_1d(row))) + "\n" for row in table.tolist())
        (raw / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "ogbn_arxiv" / "split" / "time").mkdir(parents=True)
    return tmp_path / "ogbn_arxiv"


@pytest.fixture
def reddit(tmp_path: Path) -> Path:
    """As ``reddit.zip`` unpacks."""
    raw = tmp_path / "Reddit" / "raw"
    raw.mkdir(parents=True)
    more = {"node_types": np.ones(6), "node_ids": np.arange(6)}
    np.savez(raw / "reddit_data.npz", feature=FEATURES.astype(np.float64), label=LABELS, **more)
    sp.save_npz(raw / "reddit_graph.npz", sp.coo_matrix((np.ones(6), ENDS.T), shape=(6, 6)))
    return tmp_path / "Reddit"


def joined(graph: Graph) -> set[tuple[int, int]]:
    return {(int(a), int(b)) for a, b in zip(*graph.adjacency.nonzero(), strict=True) if a < b}


@pytest.mark.parametrize(("name", "gap", "made"), [("arxiv", "gap-amazon", "ogb"), ("products", "", "ogb"),
                                                   ("reddit", "gap-reddit", "reddit")])  # fmt: skip
def test_published_layouts_are_read_and_small_classes_left_out_as_gap_does(
    name: str, gap: str, made: str, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(made)
    graph = data.load(f"field/{name}", path=folder)
    assert isinstance(graph, Graph)
    assert joined(graph) == EDGES
    assert (graph.labels.tolist(), graph.num_classes) == ([0, 0, 0, 2, 2, 1], 3)
    assert np.array_equal(graph.features.toarray(), FEATURES)
    if gap:
        graph = data.load(f"field/{gap}", path=folder, parameters={"least": 2})
        assert isinstance(graph, Graph)
        assert joined(graph) == {(0, 1), (1, 2), (3, 4)}
        assert graph.labels.tolist() == [0, 0, 0, 1, 1]
        with pytest.raises(DataError):
            data.load(f"field/{gap}", path=folder)  # no class of this file has 10,000 nodes


def test_other_counts_and_damaged_files_are_one_line(ogb: Path, reddit: Path) -> None:
    with pytest.raises(DataError, match="6 nodes; field/arxiv is published with 169343"):
        data.load("field/arxiv", root=ogb.parent)
    with pytest.raises(DataError, match="field/reddit: no folder 'raw' in"):
        data.load("field/reddit", root=ogb)
    edges = ogb / "raw" / "edge.csv.gz"
    edges.write_bytes(b"0,1\n")
    with pytest.raises(DataError, match=r"edge\.csv\.gz: .*compressed by gzip"):
        data.load("field/arxiv", path=ogb)
    edges.unlink()
    with pytest.raises(DataError, match=r"edge\.csv\.gz: .*No such file"):
        data.load("field/arxiv", path=ogb)
    np.savez(reddit / "raw" / "reddit_data.npz", feature=FEATURES, label=np.array([{}] * 6, dtype=object))
    with pytest.raises(DataError, match="allow_pickle"):
        data.load("field/reddit", path=reddit)


def test_without_files_a_small_graph_says_that_it_is_generated() -> None:
    graph = data.load("field/arxiv", root=[], when_unavailable="synthetic")
    assert isinstance(graph, Graph)
    assert graph.provenance.source == "synthetic"
    assert "not at hand" in graph.provenance.detail
    assert (graph.num_nodes, graph.num_features, graph.num_classes) == (3386, 128, 40)
