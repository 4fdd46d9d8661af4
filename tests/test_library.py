"""The library as a program uses it: run, compare, best, table, figure; and one line for every wrong argument."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import fedgraph
from fedgraph.comparison import classify
from fedgraph.data.own.door import read
from fedgraph.errors import DataError, FedgraphError, ScenarioError
from fedgraph.types import Graph

TINY = {
    "name": "tiny",
    "datasets": [{"name": "embedded/library"}],
    "runtime": {"engine": "serial"},
    "tasks": [
        {
            "task": "node_classification",
            "label": "t",
            "trust": ["curator"],
            "epsilons": [1.0, 8.0],
            "methods": [{"method": "features", "model": "logistic"}],
        }
    ],
}


def pyg(library: Graph) -> Any:
    torch = pytest.importorskip("torch")
    Data = pytest.importorskip("torch_geometric.data").Data
    arcs = library.adjacency.tocoo()
    return Data(
        x=torch.tensor(library.features.toarray()),
        edge_index=torch.tensor(np.stack([arcs.coords[0], arcs.coords[1]]).astype(np.int64)),
        y=torch.tensor(library.labels),
    )


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return fedgraph.run(TINY, out=tmp_path_factory.mktemp("runs") / "tiny", quiet=True)


def test_a_mapping_runs_and_answers(tiny: Any) -> None:
    table = tiny.table()
    assert list(table["epsilon"]) == [1.0, 8.0]
    assert (table["epsilon_provable"] <= table["epsilon"]).all()
    best = tiny.best(unit="node", trust="curator", epsilon=1)
    assert best is not None
    assert best.epsilon_provable <= 1
    assert tiny.best(unit="node", trust="nobody", epsilon=1) is None, "the curator is trusted in every row"
    assert tiny.best(unit="edge", trust="curator", epsilon=1) is None
    assert "node level" in tiny.answer
    assert tiny.score(best.row).row is best.row
    assert (tiny.folder / "report.html").is_file()
    assert tiny.figure().to_dict()["hconcat"]
    assert "<html" in tiny.sheet(best.row)


def test_masks_of_a_pyg_object_are_its_split(library: Graph, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    data = pyg(library)
    order = torch.arange(library.num_nodes)
    data.train_mask, data.val_mask, data.test_mask = order % 3 != 0, order % 6 == 0, order % 6 == 3
    run = fedgraph.compare(data, ["features"], epsilons=[8], trust=["curator"], out=tmp_path / "run")
    (row,) = run.rows
    assert row.head.facts.train_nodes == int((data.train_mask | data.val_mask).sum())
    data.val_mask = torch.ones(2, dtype=torch.bool)
    with pytest.raises(DataError, match="val_mask of shape"):
        fedgraph.compare(data, ["features"])


def test_runs_with_the_same_rows_are_told_apart(tiny: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import shutil

    from fedgraph.commands import base as cli

    other = tmp_path / "other"
    shutil.copytree(tiny.folder, other)
    both = fedgraph.open_run(tiny.folder, other)
    assert len(set(both.table()["row"])) == len(both.table()) == 2 * len(tiny.table())
    rows = tmp_path / "t.csv"
    assert cli.main(["compare", str(tiny.folder), str(other), "--csv", str(rows)]) == 0
    assert cli.main(["compare", str(tiny.folder), "--csv", str(rows)]) == 2, "nothing is replaced unasked"
    assert cli.main(["show", str(tiny.folder)]) == 0
    printed = capsys.readouterr().out
    assert "(right of 100)" in printed
    score = tiny.scores[0]
    assert any(score.name in line and score.trust.value in line for line in printed.splitlines())


def test_three_kinds_of_objects_are_one_graph(library: Graph) -> None:
    given = read(pyg(library), name="g").graph
    arrays = read((library.adjacency, library.features, library.labels), name="g").graph
    network = nx.Graph()
    for node in range(library.num_nodes):
        network.add_node(node, x=library.features[[node]].toarray().ravel(), y=int(library.labels[node]))
    arcs = library.adjacency.tocoo()
    network.add_edges_from(zip(arcs.coords[0].tolist(), arcs.coords[1].tolist(), strict=True))
    third = read(network, name="g").graph
    for graph in (arrays, third):
        assert (graph.adjacency != given.adjacency).nnz == 0
        assert (graph.features != given.features).nnz == 0
        assert np.array_equal(graph.labels, given.labels)
        assert graph.provenance.checksums == given.provenance.checksums


def test_own_data_compared_in_five_lines(library: Graph, tmp_path: Path) -> None:
    run = fedgraph.compare(
        pyg(library), ["features", {"method": "gap_edge", "epochs": 5}], epsilons=[4], trust=["curator", "sums"],
        clients=3, out=tmp_path / "run",
    )  # fmt: skip
    table = run.table()
    assert set(table["unit"]) == {"node", "edge"}
    assert set(table["trust"]) == {"curator", "sums"}
    assert (table["epsilon_provable"] <= 4).all()


def test_nobody_is_nobody_and_own_client_is_own_client(library: Graph, tmp_path: Path) -> None:
    """One word for each level of trust: asked for, in the table, in results.csv, and of ``best``."""
    of_nodes = fedgraph.compare(
        library,
        [{"method": "lpgnn", "epochs": 3, "feature_hops": 1, "label_hops": 1}],
        [1.0],
        ["nobody"],
        out=tmp_path / "nobody",
    )
    assert list(of_nodes.table()["trust"]) == ["nobody"]
    best = of_nodes.best(unit="node", trust="nobody", epsilon=1)
    assert best is not None
    assert best.method == "lpgnn"
    assert "nobody" in (tmp_path / "nobody" / "results.csv").read_text(encoding="utf-8")
    of_clients = fedgraph.compare(
        library, [{"method": "features", "steps": 2}], [1.0], ["own-client", "active-server"], clients=3, out=tmp_path / "own"
    )
    assert list(of_clients.table()["trust"]) == ["own-client", "active-server"]
    assert of_clients.best(unit="node", trust="nobody", epsilon=1) is None
    assert of_clients.best(unit="node", trust="own-client", epsilon=1) is not None
    stricter = of_clients.best(unit="node", trust="active-server", epsilon=1)
    assert stricter is not None
    assert stricter.trust.value == "active-server"


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda g: fedgraph.compare(object()), "allowed: a torch_geometric Data"),
        (lambda g: fedgraph.compare(g, ["features"], trust=["nobody"]), "cannot serve trust: nobody; allowed for it: curator"),
        (lambda g: fedgraph.compare(g, ["features"], epsilons=[0.0]), "every ε must be > 0"),
        (lambda g: fedgraph.compare((np.ones((2, 2)), np.ones((2, 1)), [-1, -1])), "no person has a label"),
        (lambda g: fedgraph.run({"name": "x"}), "scenario:1"),
        (lambda g: fedgraph.run({"name": object()}), "no plain value"),
        (lambda g: fedgraph.open_run("nowhere"), "nowhere: not the folder of a run"),
    ],
)
def test_wrong_arguments_get_one_line(call: Any, says: str, library: Graph, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FedgraphError, match=says) as caught:
        call(library)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ScenarioError | DataError)


def test_comparing_writes_nothing_that_was_not_asked_for(
    library: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = fedgraph.compare(library, [{"method": "features", "model": "logistic"}], epsilons=[8], protocol="inductive")
    assert not list(tmp_path.iterdir())
    assert run.folder.is_dir()
    with pytest.raises(ScenarioError, match="protocol"):
        fedgraph.compare(library, ["features"], epsilons=[8], protocol="inductif")


def test_a_list_of_small_graphs_is_compared_with_whole_graphs_private(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classify, "by_svm", functools.partial(classify.by_svm, costs=(1.0,), gammas=(1.0,)))  # one of 315
    graphs = []
    for place in range(40):
        made = nx.cycle_graph(6 + place % 5) if place % 2 else nx.path_graph(6 + place % 5)
        made.graph["y"] = "ring" if place % 2 else "line"
        graphs.append(made)
    methods = ["features", {"method": "local_dp", "training": "none", "hidden": 4}]
    run = fedgraph.compare(graphs, methods, [4], ["curator"], clients=3, protocol="asking")
    table = run.table()
    assert set(table["task"]) == {"asking", "graph_classification", "graph_clustering"}
    (own,) = table[table["method"] == "features"].to_dict("records")
    assert own["epsilon_provable"] <= 4
    assert own["delta"] == pytest.approx(1e-4)
    with pytest.raises(DataError, match="graph 0 is a int"):
        fedgraph.compare([1, 2])


def test_bounds_may_be_given_beside_columns() -> None:
    import pandas as pd

    rng = np.random.default_rng(0)
    nodes = pd.DataFrame(
        {"id": range(40), "age": rng.integers(20, 80, 40), "city": ["Rome", "Oslo"] * 20, "label": [0, 1] * 20}
    )
    edges = pd.DataFrame({"source": range(39), "target": range(1, 40)})
    asked: dict[str, Any] = {"methods": ["features"], "epsilons": [8], "trust": ["curator"], "protocol": "inductive"}
    apart = fedgraph.compare((nodes, edges), columns={"text": "one-hot"}, bounds={"age": (0, 100)}, **asked)
    joined = fedgraph.compare((nodes, edges), columns={"text": "one-hot", "bounds": {"age": [0, 100]}}, **asked)
    free = fedgraph.compare((nodes, edges), columns={"text": "one-hot"}, **asked)
    one, same, other = (run.rows[0].cells[0].metrics for run in (apart, joined, free))
    assert one == same
    assert one != other, "ranks from noisy counts in the place of bounds"
    with pytest.raises(DataError, match="there is no column 'aeg'"):
        fedgraph.compare((nodes, edges), columns={"text": "one-hot"}, bounds={"aeg": (0, 100)}, **asked)
