"""The draft's short form."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import yaml

from fedgraph.privacy.trust import Trust
from fedgraph.runs import probe
from fedgraph.scenario import draft
from fedgraph.scenario.wanted import WANTED_TRUST, Wanted, WantedData
from fedgraph.types import Graph


@pytest.mark.parametrize(("people", "ceiling"), [(1_500, True), (200_000, False)])
def test_quick_leaves_the_row_without_privacy_out_where_it_takes_most_of_the_time(people: int, ceiling: bool) -> None:
    """The draft as a whole has it in both."""
    data = WantedData("own/csv", Path("/data/mine"), "mine", "found", people=people)
    text = draft.as_yaml(Wanted(data, "node", (Trust.CURATOR,), (1.0, 8.0), None, None), Path("/data"))
    written = yaml.safe_load(text)
    methods = {row["method"] for row in written["quick"]["tasks.0.methods"]}
    assert methods == {"features", "label_hop"} | ({"nonprivate"} if ceiling else set())
    assert "nonprivate" in {row["method"] for row in written["tasks"][0]["methods"]}
    assert ("left out" in text) is not ceiling


@pytest.mark.parametrize("federation", [False, True])
def test_quick_has_every_level_of_trust(federation: bool) -> None:
    kind = "own/federation" if federation else "own/read"
    data = WantedData(kind, Path("/data/mine"), "mine", "found", clients=5 if federation else 0, people=1_500)
    written = yaml.safe_load(draft.as_yaml(Wanted(data, "node", WANTED_TRUST, (1.0, 8.0), None, None), Path("/data")))
    assert "tasks.0.trust" not in written["quick"]
    assert len(written["tasks"][0]["trust"]) == (2 if federation else 3), "joining is what a federation asks about"


@pytest.mark.parametrize(("people", "trains"), [(90, None), (300, 0.6), (450, 0.75), (600, None)])
@pytest.mark.parametrize("labelled", [0.5, 1.0])
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


def test_what_fits_of_a_federation_asks_whether_joining_is_worth_it() -> None:
    """Owners get advice from three seeds on, so levels of trust go before seeds, and the curator's first."""
    data = WantedData("own/federation", Path("/data/mine"), "mine", "found", clients=5, people=1_500)
    smaller = [size for size in probe._sizes(3, False, owners=True) if size.trust < 3]
    assert [(size.seeds, size.trust) for size in smaller] == [(3, 2), (3, 1), (1, 2), (1, 1)]
    for size, trust in zip(smaller, (["sums", "own-client"], ["sums"]), strict=False):
        wanted = Wanted(data, "node", WANTED_TRUST, (1.0, 8.0), None, None, size=size)
        task = yaml.safe_load(draft.as_yaml(wanted, Path("/data")))["tasks"][0]
        assert task["trust"] == trust
        assert task["participations"] == ["alone", "federated", "personalised", "left-out"]
        assert task["left_out"] == 1


@pytest.mark.parametrize("name", ["2024-01-01", "no", "yes", "20240101", "0x10", "1_000", "true"])
def test_a_draft_whose_name_yaml_would_read_as_another_value_is_read(name: str, tmp_path: Path) -> None:
    from fedgraph.commands import main
    from fedgraph.scenario import read

    out = tmp_path / "draft.yaml"
    asked = ["new", "--graph", "embedded/library", "--name", name, "--yes", "--no-probe", "--out", str(out)]
    assert main(asked) == 0
    assert read.from_file(out).scenario.name == name


@pytest.mark.parametrize(
    ("path", "unit", "level", "comment"),
    [
        (Path("/data/mine"), "node", "person level", "who asks gives its own row and ties"),
        (Path("/data/mine"), "edge", "tie level", "only ties are private"),
        (None, "node", "node level", "who asks gives its own row and edges"),
    ],
)
def test_a_draft_calls_a_node_as_the_page_does(path: Path | None, unit: str, level: str, comment: str) -> None:
    data = WantedData("own/read" if path else "planetoid/cora", path, "mine", "found", people=1_500)
    text = draft.as_yaml(Wanted(data, unit, (Trust.CURATOR,), (1.0, 8.0), None, None), Path("/data"))
    assert text.split("title: ")[1].split("\n")[0].endswith(f"at {level}")
    assert comment in text
