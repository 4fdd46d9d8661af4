"""One's own graph: what is read, what is changed and counted, and every way in which a file can be wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph import data
from fedgraph.errors import DataError, ScenarioError
from tests.data.own.clubs import put

FEATURES = "id,height,weight\nada,1,0\nbob,0,2.5\ncy,0,0\ndan,4,1\n"
EDGES = "source,target\nada,bob\nbob,ada\nada,bob\nbob,cy\ncy,cy\n"
LABELS = "id,label\nada,red\nbob,blue\ndan,red\n"


def folder(tmp_path: Path, **files: str) -> Path:
    whole = {"features": FEATURES, "edges": EDGES, "labels": LABELS} | files
    return put(tmp_path, {f"{name}.csv": text for name, text in whole.items()})


def archive(tmp_path: Path, **members: object) -> Path:
    """Four nodes: 0→1 (weight 2), 1→0, 1→2, 3→3; two features; labels 5, 9, -1, 5. ``None`` leaves a member out."""
    adjacency = sp.csr_array(([2.0, 1.0, 0.5, 1.0], ([0, 1, 1, 3], [1, 0, 2, 3])), shape=(4, 4))
    attributes = sp.csr_array([[1.0, 0.0], [0.0, 2.5], [0.0, 0.0], [4.0, 1.0]])
    content: dict[str, object] = {"labels": np.array([5, 9, -1, 5])}
    for prefix, matrix in (("adj", adjacency), ("attr", attributes)):
        content |= {f"{prefix}_{part}": np.asarray(getattr(matrix, part)) for part in ("data", "indices", "indptr", "shape")}
    np.savez(tmp_path / "mine.npz", **{k: v for k, v in {**content, **members}.items() if v is not None})
    return tmp_path / "mine.npz"


@pytest.mark.parametrize("form", ["csv", "npz"])
def test_every_change_is_counted(form: str, tmp_path: Path) -> None:
    graph = data.load(f"own/{form}", path=folder(tmp_path) if form == "csv" else archive(tmp_path))
    assert (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes) == (4, 2, 2, 2)
    assert graph.adjacency.toarray().tolist() == [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert graph.features.toarray().tolist() == [[1, 0], [0, 2.5], [0, 0], [4, 1]]
    assert graph.labels.tolist() == ([1, 0, -1, 1] if form == "csv" else [0, 1, -1, 0])
    assert graph.provenance.source == "own"
    weights = ["1 repeated ties"] if form == "csv" else ["not used: edge weights (4 edges)"]
    for phrase in ("1 of 4 people have no label", "1 ties listed in one direction", "1 self-loops", *weights):
        assert phrase in graph.provenance.detail
    assert set(graph.provenance.checksums) == (
        {f"{name}.csv" for name in ("edges", "features", "labels")} if form == "csv" else {"mine.npz"}
    )


@pytest.mark.parametrize(
    ("files", "counts", "labels"),
    [
        ({"features": "10,1,0\n20,0,1\n", "edges": "10,20,0.7\n\n", "labels": "10,2\n20,10\n"}, (2, 1), [0, 1]),  # by value
        ({"features": "ada,1\nsource,2\n", "edges": "ada,source\n", "labels": "source,x\n"}, (2, 1), [-1, 0]),
        ({"edges": "source,target\n"}, (4, 0), [1, 0, -1, 1]),
        ({"features": "a,1\n", "edges": "a,a\n", "labels": "a,x\n"}, (1, 0), [0]),
        ({"labels": "person,group\nada,red\nbob,blue\ndan,red\n"}, (4, 2), [1, 0, -1, 1]),
    ],
    ids=["no headers", "a node called source", "a header alone", "one node", "persons"],
)
def test_what_a_folder_may_hold(files: dict[str, str], counts: tuple[int, int], labels: list[int], tmp_path: Path) -> None:
    (folder(tmp_path, **files) / "edges.csv").rename(tmp_path / "links.csv")
    graph = data.load("own/csv", path=tmp_path)
    assert ((graph.num_nodes, graph.num_edges), graph.labels.tolist()) == (counts, labels)


WRONG = [
    ({"features": FEATURES.replace("2.5", "nan")}, "features.csv:3: column 'weight' of node 'bob' is 'nan'; allowed: finite"),
    ({"features": FEATURES.replace("2.5", "inf")}, "features.csv:3: column 'weight' of node 'bob' is 'inf'"),
    ({"features": FEATURES.replace("2.5", "1e300")}, "features.csv:3: column 'weight' of node 'bob' is '1e300'"),
    ({"features": FEATURES.replace("2.5", "tall")}, "features.csv:3: column 'weight' of node 'bob' is 'tall'"),
    ({"features": FEATURES.replace("2.5", "")}, "features.csv:3: column 'weight' of node 'bob' is an empty cell"),
    ({"features": FEATURES.replace("cy,0,0", "cy,0")}, "features.csv:4: 2 columns; allowed: 3"),
    ({"features": FEATURES + "ada,1,1\n"}, "features.csv:6: node 'ada' appears a second time"),
    ({"features": ""}, "features.csv: empty"),
    ({"features": "id,a\n"}, "features.csv: a header but no nodes"),
    ({"features": 'a,1\n"b,2\nc,3\n'}, "unexpected end"),
    ({"features": "a,1\nb,1_0\n", "edges": "a,b\n", "labels": "a,x\n"}, "finite numbers"),
    ({"edges": EDGES + "ada,eve\n"}, "edges.csv:7: unknown node 'eve'; allowed: the 4 ids"),
    ({"edges": "ada,bob\neve,bob\n"}, "edges.csv:2: unknown node 'eve'; allowed: the 4 ids of the nodes"),
    ({"edges": EDGES + "ada\n"}, "edges.csv:7: 1 column; allowed: 2"),
    (
        {"edges": ""},
        "edges.csv: empty; allowed: a line for each row; a table without rows has its header alone, such as source,t",
    ),
    ({"labels": LABELS + "eve,red\n"}, "labels.csv:5: unknown node 'eve'"),
    ({"labels": LABELS + "ada,red\n"}, "labels.csv:5: node 'ada' appears a second time"),
    ({"labels": "id,label\n"}, "no person has a label"),
    ({"masks": "ada,train\neve,test\n"}, "masks.csv:2: unknown node 'eve'"),
    ({"masks": "ada,train\nbob,tset\n"}, "masks.csv:2: part 'tset'; allowed: train, validation, test"),
    ({"masks": "ada,train\nada,test\n"}, "masks.csv:2: node 'ada' is in train and in test"),
    ({"masks": "ada,train\n"}, "its split has no test node"),
]


@pytest.mark.parametrize(("files", "says"), WRONG)
def test_csv_errors_name_file_line_found_and_allowed(files: dict[str, str], says: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        data.load("own/csv", path=folder(tmp_path, **files), parameters={"empty": "refuse"})
    assert says in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_faults_of_all_three_tables_come_at_once(tmp_path: Path) -> None:
    features = FEATURES.replace("2.5", "tall").replace("cy,0,0", "cy,0")
    with pytest.raises(DataError) as caught:
        data.load("own/csv", path=folder(tmp_path, features=features, edges=EDGES + "ada,eve\n", labels=LABELS + "ada,red\n"))
    for says in ("features.csv:4: 2 columns", "of node 'bob' is 'tall'", "edges.csv:7: unknown", "labels.csv:5: node 'ada'"):
        assert says in str(caught.value)
    assert "unknown node 'cy'" not in str(caught.value), "its row is too short, but it is there"


def test_a_masks_file_is_the_split_that_the_graph_came_with(tmp_path: Path) -> None:
    (split,) = data.load("own/csv", path=folder(tmp_path, masks="id,part\nada,train\nbob,train\ndan,test\n")).masks
    assert (split.train.tolist(), split.validation.tolist(), split.test.tolist()) == ([0, 1], [], [3])
    (tmp_path / "masks.csv").rename(tmp_path / "mine.csv")
    assert len(data.load("own/csv", path=tmp_path).masks) == 1, "told by what it holds"


def test_npz_may_be_ppnp_s_hold_texts_and_a_pickle_that_nobody_needs(tmp_path: Path) -> None:
    with np.load(archive(tmp_path)) as content:
        renamed = {k.replace("adj_", "adj_matrix.").replace("attr_", "attr_matrix."): content[k] for k in content}
    renamed["labels"] = np.array(["b", "a", "b", "b"])
    np.savez(tmp_path / "ppnp.npz", class_names=np.array([{"a": 1}], dtype=object), **renamed)
    assert data.load("own/npz", path=tmp_path / "ppnp.npz").labels.tolist() == [1, 0, 1, 1]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("own/npz", {}, "needs a path"),
        ("own/csv", {}, "needs a path"),
        ("own/csv", {"path": "x", "parameters": {"egdes": "a.csv"}}, "did you mean 'ends'"),
        ("own/npz", {"path": "x", "parameters": {"edges": "a.csv"}}, "allowed: from_edges"),
        ("embedded/library", {"path": "x"}, "takes neither parameters nor a path"),
        ("synthetic/molecules", {"path": "x"}, "takes no path"),
        ("own/npz", {"path": "nowhere.npz"}, "nowhere"),
        ("own/csv", {"path": "nowhere"}, "no such file or folder"),
    ],
)
def test_impossible_requests_are_named(name: str, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(DataError if "nowhere" in str(arguments) else ScenarioError, match=message):
        data.load(name, **arguments)
