"""The library as a program uses it: run, compare, best, table, figure; a line for every wrong argument; callers left alone."""

from __future__ import annotations

import functools
import json
import locale
import shutil
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import fedgraph
from fedgraph import commands
from fedgraph.cells import store
from fedgraph.commands import base as cli
from fedgraph.comparison import classify
from fedgraph.errors import DataError, FedgraphError, ScenarioError
from fedgraph.types import Graph
from tests.graphs import same

TASK = {"task": "node_classification", "label": "t", "trust": ["curator"], "epsilons": [1.0, 8.0],
        "methods": [{"method": "features", "model": "logistic"}]}  # fmt: skip
TINY = {"name": "tiny", "datasets": [{"name": "embedded/library"}], "runtime": {"engine": "serial"}, "tasks": [TASK]}


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
    assert best.epsilon_provable <= 1
    assert tiny.best(unit="node", trust="nobody", epsilon=1) is None, "the curator is trusted in every row"
    assert tiny.best(unit="edge", trust="curator", epsilon=1) is None
    assert "node level" in tiny.answer
    assert tiny.score(best.row).row is best.row
    assert (tiny.folder / "report.html").is_file()
    assert tiny.figure().to_dict()["hconcat"]
    assert "<html" in tiny.sheet(best.row)


def test_masks_of_a_pyg_object_are_its_split(library: Graph) -> None:
    torch = pytest.importorskip("torch")
    data, order = pyg(library), torch.arange(library.num_nodes)
    data.train_mask, data.val_mask, data.test_mask = order % 3 != 0, order % 6 == 0, order % 6 == 3
    (row,) = fedgraph.compare(data, [{"method": "features", "steps": 2}], epsilons=[8], trust=["curator"]).rows
    assert row.head.facts.train_nodes == int((data.train_mask | data.val_mask).sum())
    data.val_mask = torch.ones(2, dtype=torch.bool)
    with pytest.raises(DataError, match="val_mask of shape"):
        fedgraph.compare(data, ["features"])


def test_runs_with_the_same_rows_are_told_apart(tiny: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
    network, arcs = nx.Graph(), library.adjacency.tocoo()
    for node, row in enumerate(library.features.toarray()):
        network.add_node(node, x=row, y=int(library.labels[node]))
    network.add_edges_from(zip(arcs.coords[0].tolist(), arcs.coords[1].tolist(), strict=True))
    objects = (pyg(library), (library.adjacency, library.features, library.labels), network)
    given, *others = (fedgraph.read(one).graph for one in objects)
    for graph in others:
        assert same(graph, given)
        assert graph.provenance.checksums == given.provenance.checksums


def test_nobody_is_nobody_and_own_client_is_own_client(library: Graph, tmp_path: Path) -> None:
    """One word for each level of trust: asked for, in the table, in results.csv, and of ``best``."""
    lpgnn = [{"method": "lpgnn", "epochs": 3, "feature_hops": 1, "label_hops": 1}]
    of_nodes = fedgraph.compare(library, lpgnn, [1.0], ["nobody"], out=tmp_path / "nobody")
    assert list(of_nodes.table()["trust"]) == ["nobody"]
    assert of_nodes.best(unit="node", trust="nobody", epsilon=1) is not None
    assert "nobody" in (tmp_path / "nobody" / "results.csv").read_text(encoding="utf-8")
    rows, trust = [{"method": "features", "steps": 2}], ["own-client", "active-server"]
    of_clients = fedgraph.compare(library, rows, [1.0], trust, clients=3)
    assert list(of_clients.table()["trust"]) == trust
    found = {word: of_clients.best(unit="node", trust=word, epsilon=1) for word in ("nobody", *trust)}
    assert found["nobody"] is None
    assert found["own-client"] is not None
    assert found["active-server"] is not None
    assert found["active-server"].trust.value == "active-server"


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
        (lambda g: fedgraph.run(TINY, changes=[("seeds", 2)]), r"changes is \[\('seeds', 2\)\]; allowed: a mapping"),
        (lambda g: fedgraph.run(TINY, changes={"title": object()}), "changes: title is a object or holds what YAML cannot"),
        (lambda g: fedgraph.run(TINY, changes={"tasks.7.epsilons": [1]}), "tasks"),
        *(
            (lambda g, f=f, x=x: f(x), ".")
            for f in (fedgraph.open_run, fedgraph.load, fedgraph.run)
            for x in (None, [], "no such")
        ),
    ],
)
def test_wrong_arguments_get_one_line(call: Any, says: str, library: Graph, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FedgraphError, match=says) as caught:
        call(library)
    assert "\n" not in str(caught.value)


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
    ages = np.random.default_rng(0).integers(20, 80, 40)
    nodes = pd.DataFrame({"id": range(40), "age": ages, "city": ["Rome", "Oslo"] * 20, "label": [0, 1] * 20})
    edges, text = pd.DataFrame({"source": range(39), "target": range(1, 40)}), {"text": "one-hot"}

    def metrics(columns: dict[str, Any], **more: Any) -> Any:
        asked = {"epsilons": [8], "trust": ["curator"], "protocol": "inductive"}
        return fedgraph.compare((nodes, edges), ["features"], columns=columns, **asked, **more).rows[0].cells[0].metrics

    apart, joined = metrics(text, bounds={"age": (0, 100)}), metrics({**text, "bounds": {"age": [0, 100]}})
    assert apart == joined != metrics(text), "ranks from noisy counts in the place of bounds"
    with pytest.raises(DataError, match="there is no column 'aeg'"):
        metrics(text, bounds={"aeg": (0, 100)})


def test_a_run_leaves_its_caller_alone_and_names_its_command_where_somebody_can_type_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its locale and signals. The page offers a short run without --quick; what stood behind ``python -c`` is not known."""

    def mine(*_: object) -> None: ...

    before, word = signal.signal(signal.SIGTERM, mine), locale.setlocale(locale.LC_ALL)
    try:
        locale.setlocale(locale.LC_ALL, "C")
        for typed, command in (("-c", ""), ("/bin/fedgraph", "fedgraph run tiny.yaml --quick")):
            monkeypatch.setattr(sys, "argv", [typed, "run", "tiny.yaml", "--quick"])
            out = tmp_path / typed.rpartition("/")[2]
            fedgraph.run(TINY, quiet=True, out=out, changes={"tasks.0.epsilons": [8]})
            assert json.loads((out / "environment.json").read_text(encoding="utf-8"))["made"]["command"] == command
        assert commands.main(["ls", "methods"]) == 0
        assert signal.getsignal(signal.SIGTERM) is mine
        assert locale.setlocale(locale.LC_ALL) == "C"
    finally:
        signal.signal(signal.SIGTERM, before)
        locale.setlocale(locale.LC_ALL, word)


def test_runs_begun_in_one_second_have_a_folder_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(store.time, "strftime", lambda *_: "20260101-000000")

    def begin(_: int) -> Path:
        with store.folder_for(None, "tiny") as folder:
            (folder / "scenario.yaml").write_text("")
            return folder

    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(begin, range(4)))) == 4
    with store.folder_for(None, "refused") as folder:
        assert folder.is_dir()
    assert not folder.exists(), "of a run that was refused nothing stays"
    with store.folder_for(tmp_path / "given", "tiny") as folder:
        assert folder == tmp_path / "given"
