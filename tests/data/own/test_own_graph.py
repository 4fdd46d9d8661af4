"""One's own graph: what is read, what is changed and counted, and every way in which a file can be wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph import data
from fedgraph.errors import DataError, ScenarioError

FEATURES = "id,height,weight\nada,1,0\nbob,0,2.5\ncy,0,0\ndan,4,1\n"
EDGES = "source,target\nada,bob\nbob,ada\nada,bob\nbob,cy\ncy,cy\n"
LABELS = "id,label\nada,red\nbob,blue\ndan,red\n"


def folder(tmp_path: Path, **files: str) -> Path:
    for name, text in {"features": FEATURES, "edges": EDGES, "labels": LABELS, **files}.items():
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    return tmp_path


def archive(tmp_path: Path, **members: object) -> Path:
    """Four nodes: 0→1 (weight 2), 1→0, 1→2, 3→3; two features; labels 5, 9, -1, 5. ``None`` leaves a member out."""
    adjacency = sp.csr_array(([2.0, 1.0, 0.5, 1.0], ([0, 1, 1, 3], [1, 0, 2, 3])), shape=(4, 4))
    attributes = sp.csr_array([[1.0, 0.0], [0.0, 2.5], [0.0, 0.0], [4.0, 1.0]])
    content: dict[str, object] = {"labels": np.array([5, 9, -1, 5])}
    for prefix, matrix in (("adj", adjacency), ("attr", attributes)):
        for part in ("data", "indices", "indptr", "shape"):
            content[f"{prefix}_{part}"] = np.asarray(getattr(matrix, part))
    content = {k: v for k, v in {**content, **members}.items() if v is not None}
    np.savez(tmp_path / "mine.npz", **content)
    return tmp_path / "mine.npz"


def test_csv_is_read_and_every_change_is_counted(tmp_path: Path) -> None:
    graph = data.load("own/csv", path=folder(tmp_path))
    assert (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes) == (4, 2, 2, 2)
    assert graph.adjacency.toarray().tolist() == [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert graph.features.toarray().tolist() == [[1, 0], [0, 2.5], [0, 0], [4, 1]]
    assert graph.labels.tolist() == [1, 0, -1, 1]
    assert graph.provenance.source == "own"
    for phrase in ("1 of 4 people have no label", "1 ties listed in one direction", "1 repeated ties", "1 self-loops"):
        assert phrase in graph.provenance.detail
    assert set(graph.provenance.checksums) == {"edges.csv", "features.csv", "labels.csv"}


def test_csv_needs_no_headers_and_other_names_will_do(tmp_path: Path) -> None:
    folder(tmp_path, features="10,1,0\n20,0,1\n", edges="10,20,0.7\n\n", labels="10,2\n20,10\n")
    (tmp_path / "edges.csv").rename(tmp_path / "links.csv")
    graph = data.load("own/csv", path=tmp_path)
    assert (graph.num_nodes, graph.num_edges) == (2, 1)
    assert graph.labels.tolist() == [0, 1]  # by value: 2 before 10


def test_a_node_may_be_called_source(tmp_path: Path) -> None:
    graph = data.load("own/csv", path=folder(tmp_path, features="ada,1\nsource,2\n", edges="ada,source\n", labels="source,x\n"))
    assert (graph.num_edges, graph.labels.tolist()) == (1, [-1, 0])


def test_a_header_alone_is_a_graph_without_edges(tmp_path: Path) -> None:
    assert data.load("own/csv", path=folder(tmp_path, edges="source,target\n")).num_edges == 0


def test_a_graph_of_one_node(tmp_path: Path) -> None:
    graph = data.load("own/csv", path=folder(tmp_path, features="a,1\n", edges="a,a\n", labels="a,x\n"))
    assert (graph.num_nodes, graph.num_edges) == (1, 0)


def test_labels_of_persons_may_have_a_header(tmp_path: Path) -> None:
    graph = data.load("own/csv", path=folder(tmp_path, labels="person,group\nada,red\nbob,blue\ndan,red\n"))
    assert "1 of 4 people have no label" in graph.provenance.detail


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"features": FEATURES.replace("2.5", "nan")},
            "features.csv:3: column 'weight' of node 'bob' is 'nan'; allowed: finite",
        ),
        ({"features": FEATURES.replace("2.5", "inf")}, "features.csv:3: column 'weight' of node 'bob' is 'inf'"),
        ({"features": FEATURES.replace("2.5", "1e300")}, "features.csv:3: column 'weight' of node 'bob' is '1e300'"),
        ({"features": FEATURES.replace("2.5", "tall")}, "features.csv:3: column 'weight' of node 'bob' is 'tall'"),
        ({"features": FEATURES.replace("2.5", "")}, "features.csv:3: column 'weight' of node 'bob' is an empty cell"),
        ({"features": FEATURES.replace("cy,0,0", "cy,0")}, "features.csv:4: 2 columns; allowed: 3"),
        ({"features": FEATURES + "ada,1,1\n"}, "features.csv:6: node 'ada' appears a second time"),
        ({"features": ""}, "features.csv: empty"),
        ({"features": "id,a\n"}, "features.csv: a header but no nodes"),
        ({"edges": EDGES + "ada,eve\n"}, "edges.csv:7: unknown node 'eve'; allowed: the 4 ids"),
        ({"edges": "ada,bob\neve,bob\n"}, "edges.csv:2: unknown node 'eve'; allowed: the 4 ids of the nodes"),
        ({"edges": EDGES + "ada\n"}, "edges.csv:7: 1 column; allowed: 2"),
        (
            {"edges": ""},
            "edges.csv: empty; allowed: a line for each row; a table without rows has its header alone, such as source,target",
        ),
        ({"labels": LABELS + "eve,red\n"}, "labels.csv:5: unknown node 'eve'"),
        ({"labels": LABELS + "ada,red\n"}, "labels.csv:5: node 'ada' appears a second time"),
        ({"labels": "id,label\n"}, "no person has a label"),
    ],
)
def test_csv_errors_name_file_line_found_and_allowed(files: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        data.load("own/csv", path=folder(tmp_path, **files), parameters={"empty": "refuse"})
    assert message in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_faults_of_all_three_tables_come_at_once(tmp_path: Path) -> None:
    files = {"features": FEATURES.replace("2.5", "tall").replace("cy,0,0", "cy,0"), "edges": EDGES + "ada,eve\n"}
    with pytest.raises(DataError) as caught:
        data.load("own/csv", path=folder(tmp_path, **files, labels=LABELS + "ada,red\n"))
    found = str(caught.value)
    for says in (
        "features.csv:4: 2 columns",
        "of node 'bob' is 'tall'",
        "edges.csv:7: unknown",
        "labels.csv:5: node 'ada' appears",
    ):
        assert says in found
    assert "unknown node 'cy'" not in found, "its row is too short, but it is there"


def test_a_masks_file_is_the_split_that_the_graph_came_with(tmp_path: Path) -> None:
    masks = "id,part\nada,train\nbob,train\ndan,test\n"
    (split,) = data.load("own/csv", path=folder(tmp_path, masks=masks)).masks
    assert (split.train.tolist(), split.validation.tolist(), split.test.tolist()) == ([0, 1], [], [3])
    (tmp_path / "masks.csv").rename(tmp_path / "mine.csv")
    assert len(data.load("own/csv", path=tmp_path).masks) == 1, "told by what it holds"


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        ("ada,train\neve,test\n", "masks.csv:2: unknown node 'eve'"),
        ("ada,train\nbob,tset\n", "masks.csv:2: part 'tset'; allowed: train, validation, test"),
        ("ada,train\nada,test\n", "masks.csv:2: node 'ada' is in train and in test"),
        ("ada,train\n", "its split has no test node"),
    ],
)
def test_a_wrong_masks_file_is_one_error(masks: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        data.load("own/csv", path=folder(tmp_path, masks=masks))


def test_npz_is_read_and_every_change_is_counted(tmp_path: Path) -> None:
    graph = data.load("own/npz", path=archive(tmp_path))
    assert graph.adjacency.toarray().tolist() == [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert graph.features.toarray().tolist() == [[1, 0], [0, 2.5], [0, 0], [4, 1]]
    assert graph.labels.tolist() == [0, 1, -1, 0]
    assert graph.num_classes == 2
    for phrase in (
        "1 of 4 people have no label",
        "not used: edge weights (4 edges)",
        "1 ties listed in one direction",
        "1 self-loops",
    ):
        assert phrase in graph.provenance.detail


def test_npz_understands_the_names_of_ppnp_and_text_labels(tmp_path: Path) -> None:
    with np.load(archive(tmp_path)) as content:
        renamed = {k.replace("adj_", "adj_matrix.").replace("attr_", "attr_matrix."): content[k] for k in content}
    renamed["labels"] = np.array(["b", "a", "b", "b"])
    np.savez(tmp_path / "ppnp.npz", **renamed)
    assert data.load("own/npz", path=tmp_path / "ppnp.npz").labels.tolist() == [1, 0, 1, 1]


def test_pickled_members_that_nobody_needs_are_left_alone(tmp_path: Path) -> None:
    graph = data.load("own/npz", path=archive(tmp_path, class_names=np.array([{"a": 1}], dtype=object)))
    assert graph.num_nodes == 4


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("own/npz", {}, "needs a path"),
        ("own/csv", {}, "needs a path"),
        ("own/csv", {"path": "x", "parameters": {"egdes": "a.csv"}}, "did you mean 'ends'"),
        ("own/npz", {"path": "x", "parameters": {"edges": "a.csv"}}, "allowed: from_edges"),
        ("embedded/library", {"path": "x"}, "takes neither parameters nor a path"),
        ("synthetic/molecules", {"path": "x"}, "takes no path"),
    ],
)
def test_impossible_requests_are_scenario_errors(name: str, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        data.load(name, **arguments)
    assert message in str(caught.value)


def test_a_path_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere"):
        data.load("own/npz", path=tmp_path / "nowhere.npz")
    with pytest.raises(DataError, match="no such file or folder"):
        data.load("own/csv", path=tmp_path / "nowhere")
