"""The draft's short form."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import yaml

from fedgraph.privacy.trust import Trust
from fedgraph.scenario import draft, read
from fedgraph.scenario.wanted import WANTED_TRUST, Wanted, WantedData
from fedgraph.types import Graph


@pytest.mark.parametrize("federation", [False, True])
def test_quick_has_every_level_of_trust(federation: bool) -> None:
    kind = "own/federation" if federation else "own/read"
    data = WantedData(kind, Path("/data/mine"), "mine", "found", clients=5 if federation else 0, people=1_500)
    written = yaml.safe_load(draft.as_yaml(Wanted(data, "node", WANTED_TRUST, (1.0, 8.0), None, None), Path("/data")))
    assert "tasks.0.trust" not in written["quick"]
    assert len(written["tasks"][0]["trust"]) == (2 if federation else 3), "joining is what a federation asks about"


@pytest.mark.parametrize(
    ("people", "trains", "labelled"), [(90, None, 1.0), (300, 0.55, 0.5), (450, 0.7, 1.0), (650, None, 0.5)]
)
def test_a_hundred_are_tested_where_there_are_that_many(
    library: Graph, labelled: float, people: int, trains: float | None
) -> None:
    """Of fewer nothing can be concluded; four fifths train, where the last fifth is enough, or nothing would be. How many have
    a label decides nothing: that is private."""
    rows = np.arange(people) % library.num_nodes
    graph = replace(
        library.induced(np.arange(library.num_nodes)),
        adjacency=sp.csr_array((people, people), dtype=library.adjacency.dtype),
        features=library.features[rows],
        labels=np.where(np.arange(people) < labelled * people, library.labels[rows], -1),
        masks=(),
    )
    data = WantedData("own/csv", Path("/data/mine"), "mine", "found", graph=graph, people=people)
    text = draft.as_yaml(Wanted(data, "node", (Trust.CURATOR,), (1.0, 8.0), None, None), Path("/data"))
    assert yaml.safe_load(text)["tasks"][0].get("train_fraction") == trains
    assert trains is None or round((1 - trains) * people) >= 110


@pytest.mark.parametrize("name", ["2024-01-01", "no", "1_000"])
def test_a_draft_whose_name_yaml_would_read_as_another_value_is_read(name: str, tmp_path: Path) -> None:
    data = WantedData("embedded/library", None, name, "found", people=300)
    (tmp_path / "draft.yaml").write_text(
        draft.as_yaml(Wanted(data, "node", (Trust.CURATOR,), (1.0, 8.0), None, None), tmp_path)
    )
    assert read.from_file(tmp_path / "draft.yaml").scenario.name == name
