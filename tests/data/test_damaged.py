"""Files that are damaged, cut off, or not what they claim: one ``DataError`` that names the file, never another graph."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from fedgraph import data
from fedgraph.data import geom_gcn
from fedgraph.errors import DataError

LIBRARY = Path(data.__file__).parent / "library.npz"
FILES = {
    "twitch/TW/raw/musae_TW_edges.csv": "from,to\n0,1\n",
    "twitch/TW/raw/musae_TW_features.json": '{"0": [1], "1": [2, 3]}',
    "twitch/TW/raw/musae_TW_target.csv": "id,mature,new_id\n7,True,0\n8,False,1\n",
    "amlsim/20K_fanin200cycle200/nodes.csv": "nodeid,isFraud,init_balance\n0,0,5\n1,1,6\n",
    "amlsim/20K_fanin200cycle200/transactions.csv": "sourceNodeId,targetNodeId,value,time\n0,1,1,1\n",
    "geom_gcn/actor/raw/out1_node_feature_label.txt": "node_id\tfeature\tlabel\n0\t1,5\t0\n1\t4\t1\n",
    "geom_gcn/actor/raw/out1_graph_edges.txt": "node_id\tnode_id\n0\t1\n",
    "tu/MUTAG/raw/MUTAG_A.txt": "1, 2\n2, 1\n3, 4\n4, 3\n",
    "tu/MUTAG/raw/MUTAG_graph_indicator.txt": "1\n1\n2\n2\n",
    "tu/MUTAG/raw/MUTAG_graph_labels.txt": "1\n-1\n",
    "tu/MUTAG/raw/MUTAG_node_labels.txt": "0\n1\n0\n2\n",
}
NAMES = {"twitch": "twitch/tw", "amlsim": "amlsim/20k", "geom_gcn": "geom_gcn/actor", "tu": "tu/mutag"}


@pytest.mark.parametrize("file", FILES)
def test_no_other_content_passes_for_a_published_data_set(file: str, tmp_path: Path) -> None:
    """Sound files of another graph, and damaged ones, are one line that says which data set is meant."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    name = NAMES[file.partition("/")[0]]
    for content in (FILES[file], "", "{", "0,x\n0,y\n", "0,99999999\n1,-7\n", "\xe9\0"):
        (tmp_path / file).write_bytes(content.encode("latin-1"))
        with pytest.raises(DataError, match=name) as caught:
            data.load(name, root=tmp_path, download=False)
        assert "\n" not in str(caught.value), content


def test_what_is_no_file_or_has_a_damaged_stream(tmp_path: Path) -> None:
    """The archive's list is whole, the bytes of one member are not."""
    content = bytearray(LIBRARY.read_bytes())
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        start = archive.getinfo("adj_indices.npy").header_offset + 60
    content[start : start + 40] = bytes(40)
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"x\.npz"):
        data.load("own/npz", path=tmp_path / "x.npz")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path, tmp_path / "absent", Path(f"{tmp_path}/a\0b")):
        with pytest.raises(DataError):
            data.load("own/npz", path=path)


def test_an_unforeseen_error_of_a_reader_is_one_of_the_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def breaks(*args: object) -> None:
        raise IndexError("nobody thought of this")

    monkeypatch.setattr("fedgraph.data.own.load", breaks)
    with pytest.raises(DataError, match=r"own/npz: cannot be read from .*IndexError: nobody thought of this"):
        data.load("own/npz", path=tmp_path)


@pytest.mark.dataset
def test_a_known_file_in_which_one_edge_is_another(data_root: Path, tmp_path: Path) -> None:
    """All counts are still the published ones; the content is not."""
    given, raw = data_root / "geom_gcn/actor/raw", tmp_path / "geom_gcn/actor/raw"
    raw.mkdir(parents=True)
    for file in given.iterdir():
        (raw / file.name).symlink_to(file)
    edges = (given / "out1_graph_edges.txt").read_text(encoding="ascii").split("\n")
    known, (first, _) = set(edges), edges[1].split("\t")
    edges[1] = next(f"{first}\t{v}" for v in range(7600) if f"{first}\t{v}" not in known and f"{v}\t{first}" not in known)
    (raw / "out1_graph_edges.txt").unlink()
    (raw / "out1_graph_edges.txt").write_text("\n".join(edges), encoding="ascii")
    expected = geom_gcn.DATASETS["actor"].content
    with pytest.raises(DataError, match=f"has content SHA-256 [0-9a-f]{{64}}, expected {expected}"):
        data.load("geom_gcn/actor", root=tmp_path, download=False)


def test_more_columns_than_a_model_can_have(tmp_path: Path) -> None:
    """The file is sound, and a model with a weight for each of two thousand million columns is not."""
    eye, path = sp.csr_array(np.ones((2, 2)) - np.eye(2)), tmp_path / "wide.npz"
    np.savez(
        path, adj_data=eye.data, adj_indices=eye.indices, adj_indptr=eye.indptr, adj_shape=eye.shape,
        attr_data=np.ones(2), attr_indices=np.zeros(2, np.int64), attr_indptr=np.arange(3), attr_shape=np.array([2, 2**31 + 5]),
        labels=np.array([0, 1]),
    )  # fmt: skip
    with pytest.raises(DataError, match=r"wide\.npz: 2,147,483,653 feature columns; allowed: at most 1,000,000"):
        data.load("own/npz", path=path)
