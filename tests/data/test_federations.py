"""Campuses, countries and banks: published counts, the preparation step by step on made files, and every kind of damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


def campus(folder: Path, name: str, info: list[list[int]], arcs: list[tuple[int, int]]) -> None:
    dense = np.zeros((len(info), len(info)))
    for one, two in arcs:
        dense[one, two] = 1
    (folder / "facebook100/raw").mkdir(parents=True, exist_ok=True)
    savemat(folder / f"facebook100/raw/{name}.mat", {"A": sp.csc_matrix(dense), "local_info": np.array(info, dtype=np.int64)})


@pytest.fixture
def two(tmp_path: Path) -> Path:
    # status, gender, major, minor, dormitory, year, high school; Rice lists one end of its tie and a loop
    edges = [(0, 1), (1, 2), (2, 3), (1, 3), (4, 5)]
    campus(tmp_path, "Reed98", [
        [1, 2, 7, 0, 4, 2005, 50], [1, 1, 7, 0, 0, 2006, 51], [2, 1, 9, 7, 4, 1950, 52], [1, 1, 9, 0, 4, 2005, 50],
        [1, 2, 9, 0, 4, 2147483647, 50], [1, 2, 7, 0, 4, 2009, 50],
    ], edges + [edge[::-1] for edge in edges])  # fmt: skip
    campus(tmp_path, "Rice31", [[1, 1, 7, 0, 4, 2004, 50], [6, 2, 3, 0, 2, 2007, 60]], [(0, 1), (0, 0)])
    return tmp_path


def test_a_campus_is_prepared_as_the_module_says(two: Path) -> None:
    graph = data.load("facebook100/reed98", root=two)
    assert isinstance(graph, Graph)
    assert graph.num_nodes == 3, "1950 and the impossible year are unknown; node 5 lost its only friend"
    assert (graph.num_edges, graph.num_classes) == (2, 6)
    assert graph.labels.tolist() == [1, 2, 1], "2005, 2006, 2005 counted from 2004"
    # status=1, gender 1 and 2, major 7 and 9, dormitory 4: no year, no high school, no missing value
    assert graph.num_features == 6
    assert np.asarray(graph.features.sum(axis=1)).ravel().tolist() == [4, 3, 4]
    assert graph.owner is None
    kept = data.load("facebook100/reed98", root=two, parameters={"unlabelled": "kept"})
    assert kept.labels.tolist() == [1, 2, -1, 1, -1, 5]
    assert data.load("facebook100/rice31", root=two).adjacency.toarray().tolist() == [[0, 1], [1, 0]]


def test_a_federation_keeps_each_campus_codes_apart(two: Path) -> None:
    graph = data.load("facebook100/federation", root=two)
    assert graph.owner_names == ("Reed98", "Rice31")
    assert graph.owner.tolist() == [0, 0, 0, 1, 1]
    apart = [data.load(f"facebook100/{name}", root=two).num_features for name in ("reed98", "rice31")]
    assert graph.num_features == sum(apart) - 3, "status 1 and both genders are shared; major 7 and dormitory 4 are not"
    partition = natural.split(graph, natural.Params(), np.random.default_rng(0))
    assert [s.graph.num_nodes for s in partition.subgraphs] == [3, 2]
    assert (partition.num_cut_edges, partition.from_edges) == (0, False)
    one = data.load("facebook100/federation", root=two, parameters={"campuses": ["rice31"]})
    assert one.owner_names == ("Rice31",)


INFO = np.ones((2, 7))
DAMAGE: dict[str, Any] = {
    "empty": lambda whole: b"",
    "cut": lambda whole: whole[: len(whole) // 2],
    "text": lambda whole: b"not a matrix\n" * 20,
    "flipped": lambda whole: whole[:128] + bytes(255 - b for b in whole[128:190]) + whole[190:],
    "no A": {"local_info": INFO},
    "dense": {"A": np.eye(2), "local_info": INFO},
    "wrong rows": {"A": sp.csc_matrix((3, 3)), "local_info": INFO},
    "NaN": {"A": sp.csc_matrix((2, 2)), "local_info": INFO * np.nan},
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_campus_gets_one_line_that_names_the_file(damage: str, two: Path) -> None:
    file, content = two / "facebook100/raw/Reed98.mat", DAMAGE[damage]
    file.write_bytes(content(file.read_bytes())) if callable(content) else savemat(file, content)
    with pytest.raises(DataError, match=r"Reed98\.mat") as caught:
        data.load("facebook100/reed98", root=two)
    assert "\n" not in str(caught.value)


def test_without_files_it_says_where_they_go_or_generates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(DataError, match=r"facebook100/raw/MIT8\.mat"):
        data.load("facebook100/mit8", root=tmp_path)
    made = data.load("facebook100/federation", root=tmp_path, when_unavailable="synthetic")
    assert (made.provenance.source, len(made.owner_names)) == ("synthetic", 3)
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
