"""Campuses, countries and banks: published counts, the preparation step by step on made files, and every kind of damage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.io import savemat

from fedgraph import data
from fedgraph.data import facebook100
from fedgraph.data.base.files import RawFiles
from fedgraph.errors import DataError, ScenarioError
from fedgraph.partition import natural
from fedgraph.types import Graph


def campus(folder: Path, name: str, info: list[list[int]], edges: list[tuple[int, int]]) -> None:
    n = len(info)
    dense = np.zeros((n, n))
    for one, two in edges:
        dense[one, two] = dense[two, one] = 1
    (folder / "facebook100/raw").mkdir(parents=True, exist_ok=True)
    savemat(folder / f"facebook100/raw/{name}.mat", {"A": sp.csc_matrix(dense), "local_info": np.array(info, dtype=np.int64)})


@pytest.fixture
def two(tmp_path: Path) -> Path:
    # status, gender, major, minor, dormitory, year, high school
    campus(tmp_path, "Reed98", [
        [1, 2, 7, 0, 4, 2005, 50], [1, 1, 7, 0, 0, 2006, 51], [2, 1, 9, 7, 4, 1950, 52], [1, 1, 9, 0, 4, 2005, 50],
        [1, 2, 9, 0, 4, 2147483647, 50], [1, 2, 7, 0, 4, 2009, 50],
    ], [(0, 1), (1, 2), (2, 3), (1, 3), (4, 5)])  # fmt: skip
    campus(tmp_path, "Rice31", [[1, 1, 7, 0, 4, 2004, 50], [6, 2, 3, 0, 2, 2007, 60]], [(0, 1)])
    return tmp_path


def test_a_campus_is_prepared_as_the_module_says(two: Path) -> None:
    graph = data.load("facebook100/reed98", root=two)
    assert isinstance(graph, Graph)
    assert graph.num_nodes == 3, "1950 and the impossible year are unknown; node 5 lost its only friend"
    assert graph.num_edges == 2
    assert graph.num_classes == 6
    assert graph.labels.tolist() == [1, 2, 1], "2005, 2006, 2005 counted from 2004"
    # status=1, gender 1 and 2, major 7 and 9, dormitory 4: no year, no high school, no missing value
    assert graph.num_features == 6
    assert np.asarray(graph.features.sum(axis=1)).ravel().tolist() == [4, 3, 4]
    assert graph.owner is None
    kept = data.load("facebook100/reed98", root=two, parameters={"unlabelled": "kept"})
    assert kept.num_nodes == 6
    assert kept.labels.tolist() == [1, 2, -1, 1, -1, 5]


def test_a_federation_keeps_each_campus_codes_apart(two: Path) -> None:
    graph = data.load("facebook100/federation", root=two)
    assert graph.owner_names == ("Reed98", "Rice31")
    assert graph.owner.tolist() == [0, 0, 0, 1, 1]
    apart = [data.load(f"facebook100/{name}", root=two).num_features for name in ("reed98", "rice31")]
    assert graph.num_features == sum(apart) - 3, "status 1 and both genders are shared; major 7 and dormitory 4 are not"
    partition = natural.split(graph, natural.Params(), np.random.default_rng(0))
    assert [s.graph.num_nodes for s in partition.subgraphs] == [3, 2]
    assert partition.num_cut_edges == 0
    assert not partition.from_edges
    one = data.load("facebook100/federation", root=two, parameters={"campuses": ["rice31"]})
    assert one.owner_names == ("Rice31",)


def test_an_asymmetric_matrix_with_loops_becomes_a_simple_graph(tmp_path: Path) -> None:
    (tmp_path / "facebook100/raw").mkdir(parents=True)
    info = np.array([[1, 1, 1, 0, 1, 2004, 0], [1, 2, 1, 0, 1, 2005, 0]])
    given = {"A": sp.csc_matrix(np.array([[1.0, 1.0], [0.0, 0.0]])), "local_info": info}
    savemat(tmp_path / "facebook100/raw/Yale4.mat", given)
    graph = data.load("facebook100/yale4", root=tmp_path)
    assert graph.adjacency.toarray().tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "text", "no A", "dense", "wrong rows", "NaN"])
def test_a_damaged_campus_gets_one_line_that_names_the_file(damage: str, two: Path) -> None:
    file = two / "facebook100/raw/Reed98.mat"
    whole = file.read_bytes()
    info = np.ones((2, 7))
    if damage in ("empty", "cut", "text"):
        file.write_bytes({"empty": b"", "cut": whole[: len(whole) // 2], "text": b"not a matrix\n" * 20}[damage])
    elif damage == "flipped":
        file.write_bytes(whole[:128] + bytes(255 - b for b in whole[128:190]) + whole[190:])
    elif damage == "no A":
        savemat(file, {"local_info": info})
    elif damage == "dense":
        savemat(file, {"A": np.eye(2), "local_info": info})
    elif damage == "wrong rows":
        savemat(file, {"A": sp.csc_matrix((3, 3)), "local_info": info})
    else:
        savemat(file, {"A": sp.csc_matrix((2, 2)), "local_info": np.full((2, 7), np.nan)})
    with pytest.raises(DataError, match=r"Reed98\.mat") as caught:
        data.load("facebook100/reed98", root=two)
    assert "\n" not in str(caught.value)


def test_without_files_it_says_where_they_go_or_generates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(DataError, match=r"facebook100/raw/MIT8\.mat"):
        data.load("facebook100/mit8", root=tmp_path)
    made = data.load("facebook100/federation", root=tmp_path, when_unavailable="synthetic")
    assert made.provenance.source == "synthetic"
    assert len(made.owner_names) == 3
    with pytest.raises(ScenarioError, match="takes no path"):
        data.load("facebook100/mit8", path=tmp_path)


@pytest.mark.dataset
def test_published_counts(data_root: Path) -> None:
    mit = data.load("facebook100/mit8", root=data_root)
    assert (mit.num_nodes, mit.num_edges, mit.num_features, mit.num_classes) == (4852, 206463, 155, 6)
    raw = facebook100.read(RawFiles(data_root / "facebook100/raw"), "MIT8")
    assert (raw.info.shape[0], raw.adjacency.nnz // 2) == (6440, 251252)
    twitch = data.load("twitch/federation", root=data_root)
    assert (twitch.num_nodes, twitch.num_edges) == (36890, 492575)
    payments = data.load("amlsim/20k", root=data_root)
    assert payments.features_from_edges
    assert (payments.num_nodes, int(payments.labels.sum())) == (20000, 1804)
