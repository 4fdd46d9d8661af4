"""The graph that is shipped: what it holds, and that its file is what the documented command writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks import shipped_library
from fedgraph import data
from fedgraph.types import Graph


def test_library_is_small_sparse_and_labelled_and_the_documented_command_regenerates_it(tmp_path: Path, library: Graph) -> None:
    assert (library.num_nodes, library.num_edges, library.num_features, library.num_classes) == (300, 720, 240, 4)
    assert sorted(np.bincount(library.labels).tolist()) == [60, 70, 80, 90]
    assert library.features.nnz / library.num_nodes < 20
    assert (library.provenance.source, list(library.provenance.checksums)) == ("embedded", ["library.npz"])
    shipped_library.write(tmp_path / "library.npz")
    again = data.load("own/npz", path=tmp_path / "library.npz")
    assert isinstance(again, Graph)
    assert (again.adjacency != library.adjacency).nnz == (again.features != library.features).nnz == 0
    assert np.array_equal(again.labels, library.labels)
