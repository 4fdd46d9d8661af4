"""Broken folders of one's own federation: files that hold everything (npz, pt), Parquet, and what a folder may be instead."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fedgraph import data
from fedgraph.data.own.door import read
from fedgraph.errors import DataError
from fedgraph.types import Graph
from tests.data.own.clubs import put

NODES = [f"e{i}" for i in range(4)]
Fault = Callable[[Path], object]


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """``tables`` as CSV, ``object`` as a PyG object, ``arrays`` as npz; four nodes each."""
    people = "id,age\n" + "".join(f"{n},{i}\n" for i, n in enumerate(NODES))
    put(tmp_path, {"tables/features.csv": people, "tables/edges.csv": "source,target\ne0,e1\ne1,e2\n"})
    put(tmp_path, {"tables/labels.csv": "id,label\ne0,0\ne1,1\n"})
    (tmp_path / "object").mkdir()
    (tmp_path / "arrays").mkdir()
    _tensors()(tmp_path)
    _arrays()(tmp_path)
    return tmp_path


def _tensors(**changed: Any) -> Fault:
    """``object/graph.pt`` with members changed, or left out where None."""
    found = {"x": torch.eye(4)[:, :2], "edge_index": torch.tensor([[0, 1], [1, 2]]), "y": torch.tensor([0, 1, 0, -1])} | changed
    return lambda root: torch.save({k: v for k, v in found.items() if v is not None}, root / "object/graph.pt")


def _arrays(**changed: Any) -> Fault:
    """``arrays/graph.npz`` with members changed, or left out where None."""
    found = {
        "adj_data": np.ones(2), "adj_indices": np.array([1, 2]), "adj_indptr": np.array([0, 1, 2, 2, 2]),
        "adj_shape": np.array([4, 4]), "attr_data": np.ones(2), "attr_indices": np.array([0, 1]),
        "attr_indptr": np.array([0, 1, 2, 2, 2]), "attr_shape": np.array([4, 2]), "labels": np.array([0, 1, 0, -1]),
    } | changed  # fmt: skip
    return lambda root: np.savez(root / "arrays/graph.npz", **{k: v for k, v in found.items() if v is not None})


def _bytes(name: str, content: bytes) -> Fault:
    return lambda root: (root / name).write_bytes(content)


def _table(name: str, **columns: Any) -> Fault:
    """``tables`` as Parquet, of which ``name`` has other columns."""

    def write(root: Path) -> None:
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        known = {
            "features": {"id": NODES, "age": [0, 1, 2, 3]}, "edges": {"one": ["e0"], "other": ["e1"]},
            "labels": {"id": ["e0"], "what": ["0"]},
        } | {name: columns}  # fmt: skip
        for stem, given in known.items():
            (root / f"tables/{stem}.csv").unlink()
            parquet.write_table(pa.table(given), root / f"tables/{stem}.parquet")

    return write


def _link(target: str) -> Fault:
    def make(root: Path) -> None:
        shutil.rmtree(root / "tables")
        (root / "tables").symlink_to(target)

    return make


def load(path: Path) -> Graph:
    graph = data.load("own/federation", path=path, parameters={"text": "refuse", "empty": "refuse"})
    assert isinstance(graph, Graph)
    return graph


FAULTS: dict[str, tuple[Fault, str]] = {
    "pt-no-x": (_tensors(x=None), "no tensor x"),
    "pt-x-of-one-dimension": (_tensors(x=torch.ones(4)), r"x has shape \(4,\)"),
    "pt-nan": (_tensors(x=torch.full((4, 2), torch.nan)), "NaN or infinite"),
    "pt-too-large": (_tensors(x=torch.full((4, 2), 1e300, dtype=torch.float64)), "NaN or infinite"),
    "pt-no-nodes": (_tensors(x=torch.ones(0, 2), y=torch.ones(0).long()), "x has shape"),
    "pt-complex": (_tensors(x=torch.ones(4, 2, dtype=torch.complex64)), r"graph\.pt: x is torch\.complex64"),
    "pt-several-labels": (_tensors(y=torch.zeros(4, 3).long()), r"y has shape \(4, 3\)"),
    "pt-negative-labels": (_tensors(y=torch.tensor([0, 1, 0, -5])), "the least label is -5"),
    "pt-sparse-labels": (_tensors(y=torch.tensor([0, 1, 0, 1]).to_sparse()), "allowed: a dense tensor"),
    "pt-edge-too-large": (_tensors(edge_index=torch.tensor([[0], [99]])), "names node 99"),
    "pt-edge-negative": (_tensors(edge_index=torch.tensor([[0], [-1]])), "names node -1"),
    "pt-three-rows-of-edges": (_tensors(edge_index=torch.zeros(3, 2).long()), r"edge_index has shape \(3, 2\)"),
    "pt-float-edges": (_tensors(edge_index=torch.ones(2, 2)), "edge_index has shape"),
    "pt-sparse-edges": (_tensors(edge_index=torch.eye(4).to_sparse()), "allowed: a dense tensor"),
    "pt-mask-of-numbers": (_tensors(train_mask=torch.full((4,), 2.0)), "train_mask of shape"),
    "pt-ten-masks": (_tensors(train_mask=torch.ones(4, 10).bool()), "has 10 masks"),
    "pt-two-parts": (_tensors(train_mask=torch.ones(4).bool(), test_mask=torch.ones(4).bool()), "in two of train"),
    "pt-empty": (_bytes("object/graph.pt", b""), "refused"),
    "pt-pickle": (_bytes("object/graph.pt", b"\x80\x04K\x01."), "refused|holds int"),
    "npz-no-labels": (_arrays(labels=None), "no member 'labels'"),
    "npz-objects": (_arrays(labels=np.array([{}] * 4, dtype=object)), "never a pickle"),
    "npz-float-labels": (_arrays(labels=np.full(4, 0.5)), "labels are of type float64"),
    "npz-negative-labels": (_arrays(labels=np.array([0, 1, 0, -7])), "the least label is -7"),
    "npz-few-labels": (_arrays(labels=np.zeros(3, dtype=int)), "the same number of each"),
    "npz-not-square": (_arrays(adj_shape=np.array([4, 9])), "allowed: square"),
    "npz-index": (_arrays(adj_indices=np.array([1, 99])), "not a sparse matrix"),
    "npz-huge-shape": (_arrays(adj_shape=np.array([2**40, 2**40])), "not a sparse matrix"),
    "npz-no-edges": (_arrays(adj_data=None), "no adjacency"),
    "npz-float-index": (_arrays(adj_indices=np.array([1.0, 2.0])), r"adj_indices has 1 dimension\(s\) of type float64"),
    "npz-negative-shape": (_arrays(adj_shape=np.array([-4, 4])), "rows and columns"),
    "npz-complex": (_arrays(attr_data=np.ones(2, dtype=complex)), "allowed: numbers"),
    "npz-no-shape": (_arrays(attr_shape=None), "no member 'attr_shape'"),
    "npz-weight": (_arrays(adj_data=np.array([1.0, np.inf])), "an edge weight is NaN or infinite"),
    "npz-nan": (_arrays(attr_data=np.array([1, np.nan])), "NaN or infinite"),
    "npz-text": (_bytes("arrays/graph.npz", b"hello"), "not an .npz archive"),
    "npz-names-too-few": (_bytes("arrays/feature_names.txt", b"age\n"), "1 lines, 1 different; allowed: 2"),
    "npz-names-empty": (_bytes("arrays/feature_names.txt", b"age\n\nheight\n"), r"feature_names\.txt:2: an empty line"),
    "npz-names-latin-1": (_bytes("arrays/feature_names.txt", b"gr\xf6\xdfe\nage\n"), "not UTF-8 text"),
    "npz-several-splits": (_arrays(train_mask=np.eye(4)[:, :2], test_mask=np.eye(4)[:, 2:]), "has 2 masks"),
    "npz-mask-without-test": (_arrays(train_mask=np.ones(4)), "no masks"),
    "npz-names-twice": (_bytes("arrays/feature_names.txt", b"age\nage\n"), "allowed: 2 different names"),
    "parquet-cut": (_bytes("tables/more.parquet", b"PAR1 not really"), "not a Parquet table"),
    "parquet-one-end": (_table("edges", one=["e0"]), "no table of ties was found.*edges.parquet: one"),
    "parquet-other-numbers": (_table("features", id=[1, 2, 3, 4], age=[1] * 4), r"features\.parquet:1: unknown node '1'"),
    "csv-without-header": (
        _bytes("tables/features.csv", b"e0,1,2\ne1,1,2\ne2,1,2\ne3,1,2\n"),
        r"features\.csv:1: found e0, 1, 2; allowed: a first line",
    ),
    "csv-long-field": (_bytes("tables/features.csv", b'id,age\n"e0",' + b"1" * 200_000 + b"\n"), "field larger"),
    "no-edges": (lambda root: (root / "tables/edges.csv").unlink(), "no table of ties was found"),
    "no-features": (lambda root: (root / "tables/features.csv").unlink(), "no column holds the ends|unknown node 'e2'"),
    "empty-folder": (lambda root: (root / "zz").mkdir(), "zz: found no table"),
    "link-to-outside": (_link("/etc"), "lies outside"),
    "link-to-itself": (_link("tables"), "leads nowhere"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_broken_folder_gets_one_line_that_names_it(fault: str, three: Path) -> None:
    make, says = FAULTS[fault]
    make(three)
    with pytest.raises(DataError, match=says) as caught:
        load(three)
    assert all(str(three) in line or line.startswith("…") for line in str(caught.value).splitlines()), "each line is one fault"


def test_what_only_looks_odd_is_read(three: Path) -> None:
    plain = load(three)
    assert (plain.num_nodes, plain.owner_names) == (12, ("arrays", "object", "tables"))
    _tensors(x=torch.eye(4)[:, :2].half().requires_grad_(), y=torch.tensor([[0], [1], [0], [-1]], dtype=torch.int16))(three)
    (three / "tables/labels.csv").write_bytes(b"\xef\xbb\xbfid,label\r\ne0 , 0\r\ne1,1\r\n")
    (three / "__MACOSX").mkdir()
    odd = load(three)
    assert odd.labels.tolist() == plain.labels.tolist()
    assert (odd.features != plain.features).nnz == (odd.adjacency != plain.adjacency).nnz == 0
    _table("edges", payer=["e0", "e1"], payee=["e1", "e2"], amount=[1.5, 2.5])(three)
    assert (load(three).adjacency != plain.adjacency).nnz == 0, "its columns may be called anything"
    (three / "tables/edges.parquet").unlink()
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(
        pa.table({"a": pa.array([], pa.string()), "b": pa.array([], pa.string())}), three / "tables/edges.parquet"
    )
    parquet.write_table(pa.table({"id": NODES, "member": [True, False, True, True]}), three / "tables/features.parquet")
    graph = load(three)
    assert graph.num_edges == 4, "those of the two other clients"
    assert graph.features[8:].toarray().sum() == 3


@pytest.mark.parametrize("written", [b"age\r\nheight\r\n", b"\xef\xbb\xbfage\nheight", b"age \n height\n"])
def test_names_of_columns_are_matched_however_the_file_ends_its_lines(written: bytes, three: Path) -> None:
    """``tables`` has a column ``age``, too: it must be the same one."""
    graph = load(put(three, {"arrays/feature_names.txt": written}))
    assert graph.names.columns == ("age", "column 0", "column 1", "height")
    assert graph.features[:4].toarray()[:, [0, 3]].tolist() == [[1, 0], [0, 1], [0, 0], [0, 0]]


def test_masks_in_an_npz_and_labels_of_bytes_are_read(three: Path) -> None:
    train, test = np.array([1, 0, 0, 0]), np.array([0, 1, 0, 0])
    _arrays(labels=np.array([b"0", b"1", b"0", b"-1"]), train_mask=train, test_mask=test)(three)
    _tensors(train_mask=torch.tensor([True, False, False, False]))(three)
    graph = load(put(three, {"tables/masks.csv": "e0,validation\n"}))
    assert graph.labels[:4].tolist() == [0, 1, 0, -1]
    (masks,) = graph.masks
    assert (masks.train.tolist(), masks.test.tolist(), masks.validation.tolist()) == ([0, 4], [1], [8])


def test_ties_between_owners_and_archives_of_several_are_refused_with_what_to_do(tmp_path: Path) -> None:
    banks = tmp_path / "banks"
    for name in "ab":
        people = "id,age\n" + "".join(f"{name}{k},{20 + k}\n" for k in range(4))
        put(banks, {f"bank_{name}/people.csv": people, f"bank_{name}/ties.csv": f"source,target\n{name}0,{name}1\n"})
    assert read(put(banks, {"README.txt": "Two banks.\n"})).graph.owner_names == ("bank_a", "bank_b")
    shutil.make_archive(str(banks), "zip", banks)
    with pytest.raises(DataError, match=r"lies in several folders; allowed: the archive unpacked, a folder per owner"):
        read(tmp_path / "banks.zip")
    put(banks, {"bank_a/ties.csv": "source,target\na0,b1\n"})
    with pytest.raises(DataError, match=r"unknown node 'b1'.*\n.*bank_a: ties to other clients' nodes stand in cross\.csv"):
        read(banks)
    put(banks, {"between.csv": "source,target\na0,b1\nb1,a2\n"})
    with pytest.raises(DataError, match=r"between\.csv beside the folders bank_a, bank_b, which hold files of the same names"):
        read(banks)
