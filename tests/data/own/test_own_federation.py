"""Your own federation: every kind of file, columns that differ, edges between clients, and one line for every fault."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from fedgraph import data
from fedgraph.errors import DataError
from fedgraph.types import Graph, describe_graph
from tests.data.own.clubs import put

FEATURES = "id,age,visits\na,30,1\nb,40,0\nc,50,2\n"
EDGES = "source,target\na,b\nb,c\n"
LABELS = "id,label\na,no\nb,yes\nc,no\n"


def write(root: Path, client: str, **files: str) -> Path:
    (root / client).mkdir(parents=True, exist_ok=True)
    return put(root / client, {f"{name}.csv": text for name, text in files.items()})


@pytest.fixture
def two(tmp_path: Path) -> Path:
    write(tmp_path, "north", features=FEATURES, edges=EDGES, labels=LABELS, ids="a,h1\nb,h2\n", cross="b,k1\n")
    south = "id,feature,value\nx,visits,3\nx,debt,7\ny,,\n"
    write(tmp_path, "south", features=south, edges="x,y\n", labels="x,yes\n", ids="id,hash\nx,k1\n", cross="x,h2\n")
    return tmp_path


def load(path: Path, **parameters: object) -> Graph:
    graph = data.load("own/federation", path=path, parameters=parameters)
    assert isinstance(graph, Graph)
    return graph


def test_columns_are_matched_by_name_labels_by_text_and_people_by_client_and_id(two: Path) -> None:
    graph = load(two)
    assert graph.owner_names == ("north", "south")
    assert graph.owner is not None
    assert graph.owner.tolist() == [0, 0, 0, 1, 1]
    assert graph.ids == ("north/a", "north/b", "north/c", "south/x", "south/y")
    # columns in order of their names: age, debt, visits
    assert graph.features.toarray().tolist() == [[30, 0, 1], [40, 0, 0], [50, 0, 2], [0, 7, 3], [0, 0, 0]]
    assert graph.labels.tolist() == [0, 1, 0, 1, -1]
    assert graph.num_edges == 4, "two of north, one of south, one between them that both list"
    assert graph.adjacency[1, 3] == 1
    detail = graph.provenance.detail
    assert "1 ties are between clients (0 listed at one end only)" in detail
    assert "classes are numbered 0: 'no', 1: 'yes'" in detail, "``positive`` takes a number: an outsider reads which it is here"
    assert "north/features.csv" in graph.provenance.checksums
    write(two, "north", labels="id,label\na,other\nb,10\nc,2\n", cross="b,k1\nb,k1\n")
    (two / "south/cross.csv").unlink()
    again = load(two)
    assert "classes are numbered 0: '2', 1: '10', 2: 'other', 3: 'yes'" in again.provenance.detail
    assert again.labels.tolist() == [2, 1, 0, 3, -1]
    assert "1 ties are between clients (1 listed at one end only)" in again.provenance.detail


def test_labels_may_be_left_away(two: Path) -> None:
    labelled = load(two)
    assert (load(two, label="").labels == -1).all(), "for links nobody's label is read"
    for table in two.glob("*/labels.csv"):
        table.unlink()
    graph = load(two, label="")
    assert (graph.labels == -1).all()
    assert (graph.adjacency != labelled.adjacency).nnz == 0
    assert graph.provenance.detail.startswith(f"own federation {two.name} of 2 clients: 5 people, 4 ties, no labels")
    assert "have no label (" not in graph.provenance.detail
    assert describe_graph(graph).startswith("own/federation: 5 people, 4 ties, 3 features, no labels (own")
    assert (load(two).labels == -1).all(), "nobody has a table of labels"


def test_texts_and_empty_cells_are_read_by_one_rule_for_all_clients(two: Path) -> None:
    with pytest.raises(DataError, match="bounds change columns of tables"):  # south has them as entries
        load(two, bounds={"visits": [0, 9]})
    write(two, "north", features="id,age,job,moved\na,30,baker,2020-01-01\nb,,nurse,1970-01-02\nc,90,,1970-01-01\n")
    write(two, "south", features="id,job,age,height\nx,clerk,60,1.8\ny,baker,0,\n")
    graph = load(two, text="one-hot", empty="missing", bounds={"age": [0, 60]})
    expected = {
        "age": [0, 0, 1, 1, -1], "age is missing": [0, 1, 0, 0, 0],
        "height": [0, 0, 0, pytest.approx(1.8), 0], "height is missing": [0, 0, 0, 0, 1],
        "job is baker": [1, 0, 0, 0, 1], "job is clerk": [0, 0, 0, 1, 0], "job is missing": [0, 0, 1, 0, 0],
        "job is nurse": [0, 1, 0, 0, 0], "moved": [18262, 1, 0, 0, 0],
    }  # fmt: skip
    assert graph.features.toarray().T.tolist() == [expected[name] for name in sorted(expected)]
    assert graph.columns is not None
    assert graph.columns.names == ("height", "moved"), "age has bounds"
    assert "a column for each text of job; empty cells of " in graph.provenance.detail


def test_every_kind_of_file_gives_the_same_graph(tmp_path: Path) -> None:
    x = np.array([[30.0, 1.0], [40.0, 0.0], [50.0, 2.0]], dtype=np.float32)
    write(tmp_path, "a", features=FEATURES, edges=EDGES, labels="a,0\nb,1\nc,0\n")
    put(tmp_path, {"b/feature_names.txt": "age\nvisits\n", "c/feature_names.txt": "age\nvisits"})
    arcs = torch.tensor([[0, 1], [1, 2]])
    torch.save({"x": torch.tensor(x), "edge_index": arcs, "y": torch.tensor([0, 1, 0])}, tmp_path / "b/graph.pt")
    sparse = {
        "adj_data": [1.0, 1.0], "adj_indices": [1, 2], "adj_indptr": [0, 1, 2, 2], "adj_shape": [3, 3],
        "attr_data": [30.0, 1.0, 40.0, 50.0, 2.0], "attr_indices": [0, 1, 0, 0, 1], "attr_indptr": [0, 2, 3, 5],
        "attr_shape": [3, 2], "labels": [0, 1, 0],
    }  # fmt: skip
    np.savez(tmp_path / "c/graph.npz", **{k: np.array(v) for k, v in sparse.items()})
    graph = load(tmp_path)
    for client in range(3):
        own = graph.induced(np.arange(3 * client, 3 * client + 3))
        assert np.array_equal(own.features.toarray(), x), client
        assert (own.labels.tolist(), own.num_edges) == ([0, 1, 0], 2)


def test_masks_come_along(two: Path) -> None:
    write(two, "north", masks="id,part\na,train\nb,test\n")
    with pytest.raises(DataError, match="'south' has no masks"):
        load(two)
    write(two, "south", masks="x,validation\n")
    (masks,) = load(two).masks
    assert (masks.train.tolist(), masks.validation.tolist(), masks.test.tolist()) == ([0], [3], [1])


def test_a_manifest_names_order_and_classes(two: Path) -> None:
    manifest = "clients: [{name: South bank, folder: south}, {name: north}]\nclasses: [yes please, 'no', 'yes']\n"
    graph = load(put(two, {"federation.yaml": manifest}))
    assert (graph.owner_names, graph.num_classes) == (("South bank", "north"), 3)


MANIFEST = "federation.yaml"
WRONG = [
    (MANIFEST, "clients: [{nme: north}]", "nme"),
    (MANIFEST, "clients: [{name: north}, {name: north}]", "named twice"),
    (MANIFEST, "clients: [{name: x, folder: ../..}]", "lies outside"),
    (MANIFEST, "clients: [{name: nowhere}]", "not a folder"),
    (MANIFEST, "clients: {", r"federation\.yaml:"),
    (MANIFEST, "a: &a [1]\nb: *a", "unknown key 'a'"),
    (MANIFEST, "clients: [{name: north}]\nclients: [{name: south}]", ":2: key 'clients' appears twice"),
    (MANIFEST, "clients: [{name: north}, {name: other, folder: north}]", "belongs to two clients"),
    (MANIFEST, 'clients: [{name: "a\\tb", folder: north}]', ":1: clients.0.name"),
    (MANIFEST, "clients: !!python/object/apply:os.system [x]", ":1: tag"),
    (MANIFEST, "classes: ['no']", "label 'yes'"),
    (MANIFEST, "- 1", ":1: this: found \\[1\\]; a mapping"),
    ("north/features.csv", "id,age,age\na,1,1\n", "north.*named twice"),
    ("north/features.csv", "1,2\n3,4\n", "north.*unknown node '1'"),
    ("north/features.csv", "id,feature,value\na,x,1\na,x,2\n", "north.*has feature 'x' twice"),
    ("north/ids.csv", "a,h1\nb,h1\n", r"north/ids\.csv:2: hash 'h1'"),
    ("north/ids.csv", "a,h1\na,h2\n", r"north/ids\.csv:2"),
    ("north/ids.csv", "q,h1\n", r"north/ids\.csv:1: unknown node 'q'"),
    ("north/cross.csv", "a,k1\na,zz\n", r"north/cross\.csv:2: hash 'zz' is in no client's ids\.csv"),
    ("north/cross.csv", "id,hash\na,h2\n", r"north/cross\.csv:2: hash 'h2' is a node of this very client"),
    ("north/cross.csv", "a\n", "north.*two columns"),
    ("south/ids.csv", "id,hash\nx,k1\ny,h2\n", r"south/ids\.csv:3: hash 'h2' belongs to nodes of 'north' and of 'south'"),
]


@pytest.mark.parametrize(("file", "text", "says"), WRONG)
def test_every_fault_gets_one_line_that_names_the_file(file: str, text: str, says: str, two: Path) -> None:
    with pytest.raises(DataError, match=says) as caught:
        load(put(two, {file: text}))
    told = str(caught.value).splitlines()
    assert all(file.partition("/")[0] in line or str(two) in line for line in told), "each line is one fault"
    assert len(told) == 1 or file != MANIFEST


@pytest.mark.parametrize("name", ["x" * 81, "two\nlines"])
def test_a_folder_that_is_no_name_gets_one_line(name: str, two: Path) -> None:
    write(two, name, features=FEATURES, edges=EDGES, labels=LABELS)
    with pytest.raises(DataError, match="is a client's name; allowed: at most 80 printable characters") as caught:
        load(two)
    assert "\n" not in str(caught.value)
    folder = name.replace("\n", "\\n")
    assert load(put(two, {MANIFEST: f'clients: [{{name: third, folder: "{folder}"}}]\n'})).owner_names == ("third",)


def test_a_client_without_labels_or_edges_says_so(two: Path) -> None:
    """A head alone is a client that has none; a file that is not there is not taken for one."""
    write(two, "north", labels="id,label\n", edges="source,target\n")
    graph = load(two)
    assert graph.owner is not None
    north = graph.owner == graph.owner_names.index("north")
    assert (graph.labels[north] == -1).all()
    assert graph.induced(np.flatnonzero(north)).num_edges == 0
    (two / "north" / "labels.csv").unlink()
    with pytest.raises(DataError, match=r"client 'north' has no column 'label', others have; .*without labels"):
        load(two)


def test_a_pickle_is_refused_and_nothing_runs(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, tuple[Path]]:
            return (Path.touch, (tmp_path / "ran",))

    torch.save({"x": Evil()}, write(tmp_path, "a") / "graph.pt")
    with pytest.raises(DataError, match=r"graph\.pt: refused"):
        load(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_a_folder_without_a_graph_or_with_two_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no client"):
        load(tmp_path)
    with pytest.raises(DataError, match="not a folder"):
        load(tmp_path / "missing")
    write(tmp_path, "a", features=FEATURES, edges=EDGES, labels=LABELS)
    (tmp_path / "a/graph.npz").write_bytes((Path(data.__file__).parent / "library.npz").read_bytes())
    with pytest.raises(DataError, match=r"found graph\.npz and edges\.csv and features\.csv"):
        load(tmp_path)
