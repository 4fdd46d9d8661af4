"""``pyg/dataset``: data sets of PyG by the name of their class, without a network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric import datasets
from torch_geometric.data import Data, InMemoryDataset

from fedgraph import data
from fedgraph.errors import DataError, ScenarioError
from fedgraph.types import Graph, GraphCollection


class Ring(InMemoryDataset):  # type: ignore[misc]
    """A ring of twelve people, or three rings; "downloaded" by writing a file."""

    def __init__(self, root: str, rings: int = 1) -> None:
        self.rings = rings
        super().__init__(root)
        self.load(self.processed_paths[0])

    raw_file_names = ("ring.txt",)
    processed_file_names = ("ring.pt",)

    def download(self) -> None:
        Path(self.raw_paths[0]).write_text("12")

    def process(self) -> None:
        n = int(Path(self.raw_paths[0]).read_text())
        ends = torch.stack([torch.arange(n), (torch.arange(n) + 1) % n])
        nodes, graphs = torch.arange(n) % 3, range(self.rings)
        parts = [Data(x=torch.eye(n), edge_index=ends, y=nodes if self.rings == 1 else torch.tensor([k % 2])) for k in graphs]
        self.save([part.update({"edge_weight": torch.ones(n)}) for part in parts], self.processed_paths[0])


@pytest.fixture(autouse=True)
def ring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(datasets, "Ring", Ring, raising=False)
    monkeypatch.setattr(datasets, "__all__", [*datasets.__all__, "Ring"])


def test_a_class_of_pyg_is_read_into_the_users_cache_and_many_graphs_are_a_collection(tmp_path: Path) -> None:
    graph = data.load("pyg/dataset", parameters={"dataset": "Ring"})
    assert isinstance(graph, Graph)
    assert (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes) == (12, 12, 12, 3)
    assert np.array_equal(graph.labels, np.arange(12) % 3)
    assert (tmp_path / "fedgraph/pyg/Ring/raw/ring.txt").is_file()
    assert "edge_weight" in graph.provenance.detail, "what nobody reads is named"
    arguments = {"rings": 3, "root": str(tmp_path / "mine")}
    found = data.load("pyg/dataset", parameters={"dataset": "Ring", "arguments": arguments})
    assert isinstance(found, GraphCollection)
    assert found.labels.tolist() == [0, 1, 0]
    assert (tmp_path / "mine/raw").is_dir()


@pytest.mark.parametrize(
    ("parameters", "error", "says"),
    [
        ({"dataset": "KarateClbu"}, ScenarioError, "did you mean 'KarateClub'"),
        ({"dataset": "Ring", "arguments": {"rigns": 3}}, ScenarioError, "rigns"),
        ({"dataset": "Planetoid"}, ScenarioError, "name"),
        ({}, ScenarioError, "dataset"),
        ({"dataset": "PPI", "arguments": {"root": "/dev/null/no"}}, DataError, "cannot be read"),
    ],
)
def test_what_pyg_does_not_have_is_one_clear_line(parameters: dict[str, object], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says) as caught:
        data.load("pyg/dataset", parameters=parameters)
    assert "\n" not in str(caught.value)
