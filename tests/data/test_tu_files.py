"""Broken files of a TUDataset collection: one error that names file, line, what was found and what is allowed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fedgraph import data
from fedgraph.data import tu
from fedgraph.errors import DataError

FILES = {
    "A": "1, 2\n2, 1\n3, 4\n4, 3\n",
    "graph_indicator": "1\n1\n2\n2\n",
    "graph_labels": "1\n-1\n",
    "node_labels": "0\n1\n0\n2\n",
    "node_attributes": " 23.0\n 1.5\n2\n3\n",
}


def load(folder: Path, **changes: str | None) -> None:
    raw = folder / "tu" / "PROTEINS" / "raw"
    raw.mkdir(parents=True)
    for part, content in {**FILES, **changes}.items():
        if content is not None:
            (raw / f"PROTEINS_{part}.txt").write_text(content, newline="")
    data.load("tu/proteins", root=folder, download=False)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"A": "1, 2\n2,\n"}, "PROTEINS_A.txt:2: 1 cells in '2'; allowed: 2 numbers"),
        ({"A": "1, 2, 3\n2\n"}, "PROTEINS_A.txt:1: 3 cells in '1,2,3'; allowed: 2"),
        ({"A": "1, 2\n\n2, 1\n"}, "PROTEINS_A.txt:2: 0 cells"),
        ({"A": "1, 2\n2, x\n"}, "PROTEINS_A.txt:2: found '2,x'; allowed: 2 finite numbers"),
        ({"A": "1, 2\n2, 0\n"}, "PROTEINS_A.txt:2: found 0; allowed: whole numbers 1 … 4, the nodes"),
        ({"A": "1, 2\n2, 9\n"}, "PROTEINS_A.txt:2: found 9; allowed: whole numbers 1 … 4"),
        ({"A": "1, 2\n2, 1.5\n"}, "PROTEINS_A.txt:2: found 1.5; allowed: whole numbers"),
        ({"A": "1, 2\n2, 3\n"}, "PROTEINS_A.txt:2: 2, 3 joins graphs 1 and 2; allowed: nodes of one graph"),
        ({"graph_indicator": ""}, "PROTEINS_graph_indicator.txt: empty"),
        ({"graph_indicator": "2\n2\n3\n3\n"}, "PROTEINS_graph_indicator.txt:1: graph 2; allowed: graph 1"),
        ({"graph_indicator": "1\n2\n1\n2\n"}, "PROTEINS_graph_indicator.txt:3: graph 1; allowed: graph 2 or 3, as the line"),
        ({"graph_indicator": "1\n1\n3\n3\n"}, "PROTEINS_graph_indicator.txt:3: graph 3; allowed: graph 1 or 2"),
        ({"graph_indicator": "0\n0\n1\n1\n"}, "PROTEINS_graph_indicator.txt:1: found 0; allowed: whole numbers ≥ 1"),
        ({"graph_labels": "1\n"}, "PROTEINS_graph_labels.txt: 1 lines; allowed: 2, one for each of the graphs"),
        ({"graph_labels": "1\nnan\n"}, "PROTEINS_graph_labels.txt:2: found NaN or infinity; allowed: finite numbers"),
        ({"node_labels": "0\n1\n0\n"}, "PROTEINS_node_labels.txt: 3 lines; allowed: 4, one for each of the nodes"),
        ({"node_labels": "0\n1\n0\n1000000000000\n"}, "PROTEINS_node_labels.txt:4: found 1e+12; allowed: whole numbers 0 … 2"),
        ({"node_labels": "0\n-1\n0\n0\n"}, "PROTEINS_node_labels.txt:2: found -1; allowed: whole numbers 0 … 2"),
        (
            {"node_attributes": "1\n2\ninf\n4\n"},
            "PROTEINS_node_attributes.txt:3: found NaN or infinity; allowed: finite numbers",
        ),
        ({"node_attributes": "1\n2\n3\n"}, "PROTEINS_node_attributes.txt: 3 lines; allowed: 4"),
        ({"graph_labels": None}, "PROTEINS/raw lacks PROTEINS_graph_labels.txt; searched:"),
        ({}, "is not the published collection: found TuCounts(graphs=2, nodes=4, edges=2, features=4, class_sizes=(1, 1))"),
        ({"A": FILES["A"].replace("\n", "\r\n") + "\n\n"}, "is not the published collection: found TuCounts(graphs=2, nodes=4"),
    ],
)
def test_broken_files_are_named_with_their_line(tmp_path: Path, changes: dict[str, str | None], said: str) -> None:
    with pytest.raises(DataError) as error:
        load(tmp_path, **changes)
    assert said in str(error.value)
    assert all("proteins" in line.casefold() for line in str(error.value).splitlines()), "each line is one fault"


def test_sound_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tu._COUNTS, "tu/proteins", tu.TuCounts(2, 4, 2, 4, (1, 1)))
    monkeypatch.setitem(tu.DATASETS, "proteins", replace(tu.DATASETS["proteins"], content=""))
    load(tmp_path)
    found = data.load("tu/proteins", root=tmp_path, download=False)
    assert [g.features.toarray().tolist() for g in found.graphs] == [  # type: ignore[union-attr]
        [[23, 1, 0, 0], [1.5, 0, 1, 0]],
        [[2, 1, 0, 0], [3, 0, 0, 1]],
    ]
    assert found.labels.tolist() == [1, 0]
