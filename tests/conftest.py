"""Shared fixtures: a small graph that needs no files, and the real data where it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fedgraph import data
from fedgraph.types import Graph


@pytest.fixture(scope="session")
def library() -> Graph:
    """The graph that ships with fedgraph: 300 nodes, 4 classes."""
    graph = data.load("embedded/library")
    assert isinstance(graph, Graph)
    return graph


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of real data; skips, with the reason, where there is none."""
    named = os.environ.get("FEDGRAPH_DATA", "")
    if not named or not Path(named).is_dir():
        pytest.skip("set FEDGRAPH_DATA to a folder with data in PyG's raw layout to run this test")
    return Path(named)
