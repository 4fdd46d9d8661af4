"""The two-worlds test: every method, task, trust and unit on small graphs; and broken programs, which it must find."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import fedgraph
from fedgraph import plugins, seeds
from fedgraph.audit import worlds
from fedgraph.audit.worlds import Change
from fedgraph.commands import audit
from fedgraph.commands.base import main
from fedgraph.methods.base import Plan, State, method_kinds
from fedgraph.privacy.desk import Released, witness_desks
from fedgraph.privacy.sensitivity import ClippedSum
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Relation, Unit
from fedgraph.runs import two_worlds
from fedgraph.runs.console import Console
from fedgraph.runs.two_worlds import WorldsFinding
from fedgraph.scenario import read
from fedgraph.tasks.node_classification import training
from fedgraph.types import Graph, GraphCollection, Partition, plain_graph
from tests.trainings import Key, Trainings, cases, planned
from tests.two_worlds import differing_files, run_in_two_worlds

FEW = settings(max_examples=1, derandomize=True, database=None, deadline=None)
UNTRUSTING = [
    name
    for name in plugins.names("methods")
    if (offers := method_kinds.load(name).OFFERS).any_broadcast and not offers.never_private
]
PRIVATE_EMBEDDERS = {  # under its defaults nothing of local_dp is private
    "clipped gradients": {"training": "dp_sgd", "unit": "graph", "projection": 8},
    "clipped updates": {"training": "dp_fedavg", "unit": "graph", "projection": 8},
    "no training": {"training": "none", "unit": "graph"},
    "rows of nodes": {"training": "none", "unit": "node"},
    "own labels": {"training": "none", "unit": "graph", "release": "labels", "pooled_by": "response"},
}


@pytest.fixture(scope="module")
def small(library: Graph) -> Graph:
    """The first hundred nodes of the graph that ships with fedgraph."""
    return library.induced(np.arange(100))


@pytest.fixture(scope="module")
def on_small(small: Graph) -> Trainings:
    return Trainings(small)


def neighbours(plan: Plan, partition: Partition) -> list[Change]:
    """Those of the largest client, the worst first, in the numbers of the whole graph."""
    protection = plan.guarantee.protection
    if protection.relation is Relation.GRAPH_REPLACE:
        return worlds.client_changes(partition, plan.facts.graphs)
    share = max(partition.subgraphs, key=lambda s: s.graph.num_nodes)
    return [two_worlds.change_of_whole(change, share.nodes) for change in worlds.changes(share.graph, protection)]


def every(plan: Plan, partition: Partition) -> st.SearchStrategy[Change]:
    """Any unit of any client, not the notable ones alone."""
    protection = plan.guarantee.protection
    found = neighbours(plan, partition)
    if protection.unit is not Unit.NODE or protection.promised_degree is not None:
        return st.sampled_from(found)
    nodes = st.sampled_from([int(node) for share in partition.subgraphs for node in share.nodes])
    kind = st.sampled_from(sorted({change.kind for change in found} - {"replaced"}) or ["relabelled"])
    return st.builds(lambda node, what: Change(what, node, why="drawn"), nodes, kind)


def alike(finding: WorldsFinding) -> None:
    assert finding.neighbours
    assert not finding.note, finding.words
    assert not finding.differences, "\n".join(map(str, finding.differences[:5]))


# ------------------------------------------------------------------------------------------- every method, trust and unit


@pytest.mark.parametrize(("name", "index", "trusted"), cases(turn=2, clear=False))
def test_two_worlds_of_every_method_differ_in_what_is_priced_alone(
    name: str, index: int, trusted: Trust, on_small: Trainings
) -> None:
    plan, partition, _ = on_small.planned(Key(name, index, trusted))

    @FEW
    @given(drawn=every(plan, partition))
    def check(drawn: Change) -> None:
        alike(two_worlds.compare_rounds(plan, partition, [neighbours(plan, partition)[0], drawn]))

    check()


@pytest.mark.parametrize("what", PRIVATE_EMBEDDERS)
def test_two_worlds_of_embedders_that_are_private(what: str, small: Graph) -> None:
    plan, partition, _ = planned("local_dp", 0, Trust.OWN_CLIENT, small, 2.0, **PRIVATE_EMBEDDERS[what])
    assert math.isfinite(plan.provable().epsilon)
    alike(two_worlds.compare_rounds(plan, partition, neighbours(plan, partition)[:2]))


@pytest.mark.parametrize("hostile", two_worlds.HOSTILE)
@pytest.mark.parametrize("name", UNTRUSTING)
def test_whatever_an_active_server_sends_two_worlds_answer_alike(name: str, hostile: str, on_small: Trainings) -> None:
    plan, partition, _ = on_small.planned(Key(name, 0, Trust.OWN_CLIENT))
    alike(two_worlds.compare_rounds(plan, partition, neighbours(plan, partition)[:1], hostile))


# -------------------------------------------------------------------------------------------------------------- every task

NODES = {"partition": {"partition": "uniform", "clients": 3}, "epsilons": [1.0], "delta": 1e-3}
EVERY_TRUST = ["curator", "sums", "own-client"]
SELECT = {"over": {"steps": [1, 2]}, "among": 2}
CHOSEN = {"method": "features", "label": "chosen", "steps": 2, "trust": ["curator"], "select": SELECT}
TASKS: dict[str, dict[str, Any]] = {
    "nodes, test graph public": {"task": "node_classification", **NODES, "trust": EVERY_TRUST, "methods": [
        {"method": "features", "steps": 2}, CHOSEN]},
    "nodes, nothing public": {"task": "node_classification", **NODES, "protocol": "asking", "public": "nothing",
        "trust": ["curator", "sums", "active-server"], "methods": [
        {"method": "features", "steps": 2}, CHOSEN]},
    "nodes, a bought accuracy": {"task": "node_classification", **NODES, "public": "nothing", "trust": ["curator"],
        "methods": [{"method": "features", "steps": 2, "publish_accuracy": 0.4}]},
    "people who ask, a bought accuracy": {"task": "node_classification", **NODES, "protocol": "asking", "trust": ["curator"],
        "methods": [{"method": "features", "steps": 2, "publish_accuracy": 0.4}]},
    "nodes, some public": {"task": "node_classification", **NODES, "public": {"share": 0.2}, "trust": ["curator"],
        "methods": [{"method": "features", "steps": 2}]},
    "nodes, edges alone private": {"task": "node_classification", **NODES, "protocol": "transductive", "cut_edges": "protected",
        "trust": EVERY_TRUST, "methods": [{"method": "gap_edge", "epochs": 2, "hops": 1}, {"method": "gcon"}]},
    "nodes, edges public": {"task": "node_classification", **NODES, "protocol": "transductive", "trust": ["nobody"],
        "methods": [{"method": "lpgnn", "epochs": 2}]},
    "links": {"task": "link_prediction", **NODES, "trust": EVERY_TRUST, "methods": [
        {"method": "link_hops", "label": "hops"}, {"method": "link_owners", "label": "people"},
        {"method": "link_hops", "label": "steps", "hops": 0, "decoder": "steps", "steps": 2, "sampling_rate": 0.4}]},
    "links of clients dealt by edges": {"task": "link_prediction", **NODES, "partition": {"partition": "louvain", "clients": 3},
        "trust": ["own-client"], "methods": [{"method": "link_owners"}]},
    "owners": {"task": "node_classification", "owners": True, **NODES, "protocol": "asking", "public": "nothing",
        "trust": ["sums"], "participations": ["alone", "federated", "curator"],
        "methods": [{"method": "label_hop", "steps": 2}]},
    "clustering": {"task": "graph_clustering", "epsilons": [8.0], "partition": {"partition": "ego", "clients": 8, "hops": 1},
        "num_init": 1, "clusters": 2, "methods": [
        {"method": "local_dp", "label": "none", "training": "none", "unit": "graph", "compare": ["mean"]}]},
}  # fmt: skip


def ready_of(task: dict[str, Any], folder: Path) -> read.ReadyScenario:
    import yaml

    asked = {"name": "two", "runtime": {"engine": "serial"}, "datasets": [{"name": "embedded/library"}], "tasks": [task]}
    (folder / "two.yaml").write_text(yaml.safe_dump(asked), encoding="utf-8")
    return read.from_file(folder / "two.yaml")


def audited(task: dict[str, Any], data: Graph | GraphCollection, folder: Path, most: int = 2) -> list[WorldsFinding]:
    return list(two_worlds.audit_scenario(ready_of(task, folder), [data], most, Console(quiet=True)))


@pytest.mark.parametrize("what", TASKS)
def test_two_worlds_of_every_task_differ_in_what_is_priced_alone(what: str, library: Graph, tmp_path: Path) -> None:
    found = audited(TASKS[what], library, tmp_path, 6 if "bought" in what else 2)  # who is tested is among six
    tried = [finding for finding in found if finding.verdict != "untried"]
    assert tried
    for finding in tried:
        alike(finding)
        if "bought" in what and not finding.row.endswith("as a model"):  # a model buys none
            assert finding.largest["accuracy"] == pytest.approx(1), "nobody who is tested was among the neighbours"


def test_a_row_whose_promise_the_data_break_promises_nothing_to_try(library: Graph, tmp_path: Path) -> None:
    """Without its hub the same graph keeps the promise, so that world is another statement and no neighbour."""
    second = int(np.sort(library.degrees)[-2])
    assert library.degrees.max() > second
    rows = [{"method": "gap_node", "label": cap, "steps": 2, "cap": "promised", "degree": degree}
            for cap, degree in (("broken", second), ("kept", int(library.degrees.max()) + 1))]  # fmt: skip
    task = {"task": "node_classification", **NODES, "train_fraction": 0.99, "trust": ["curator"], "methods": rows}
    found = {
        f.row.split(",")[0].split(" · ")[1]: f for f in audited(task, library, tmp_path) if not f.row.endswith("as a model")
    }
    assert {row: f.verdict for row, f in found.items()} == {"broken": "untried", "kept": "same"}


def graphs_of_people(count: int = 12) -> GraphCollection:
    rng, made, labels = np.random.default_rng(0), [], np.arange(count) % 2
    for label in labels:
        n = int(rng.integers(6, 9))
        upper = np.triu(rng.random((n, n)) < 0.3 + 0.3 * label, 1)
        features = sp.csr_array((rng.random((n, 3)) + label).astype(np.float32))
        provenance = fedgraph.types.GraphProvenance("synthetic", "test")
        nothing = np.full(n, -1, dtype=np.int64)
        made.append(plain_graph("g", sp.csr_array((upper | upper.T).astype(np.float32)), features, nothing, 2, provenance))
    return GraphCollection("c", tuple(made), labels, 2, made[0].provenance)


def test_two_worlds_of_whole_graphs(tmp_path: Path) -> None:
    method = {"method": "local_dp", "training": "dp_sgd", "unit": "graph", "rounds": 2, "pooling": "mean"}
    task = {"task": "graph_classification", **NODES, "folds": 3, "methods": [method]}
    found = [f for f in audited(task, graphs_of_people(), tmp_path) if not f.note]
    assert found
    for finding in found:
        alike(finding)


def test_two_worlds_of_owners_of_edges(library: Graph, tmp_path: Path) -> None:
    """Entity level: all records of one owner are gone."""
    upper = sp.triu(library.adjacency, 1).tocoo()
    who = (np.arange(upper.nnz) % 7 + 1).astype(np.float32)
    owned = sp.coo_array((who, (upper.row, upper.col)), shape=library.adjacency.shape).tocsr()
    graph = dataclasses.replace(library, edge_owners=(sp.csr_array(owned + owned.T),))
    task = {
        "task": "link_prediction",
        **NODES,
        "trust": ["curator", "sums"],
        "methods": [{"method": "link_owners", "unit": "entity"}],
    }
    found = audited(task, graph, tmp_path, most=3)
    assert all(finding.neighbours > 1 for finding in found)
    for finding in found:
        alike(finding)


# -------------------------------------------------------------------------------------------- whole runs, models, projects


def people(folder: Path, label: str = "a", fewer: int = 0) -> Path:
    """Sixty people in three tables of their own; the last one's label is ``label``, and so many edges are gone."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    kinds = rng.integers(0, 2, 60)
    rows = [f"p{k},{30 + 20 * kind + rng.normal(0, 5):.1f}" for k, kind in enumerate(kinds)]
    (folder / "features.csv").write_text("id,age\n" + "\n".join(rows) + "\n", encoding="utf-8")
    pairs = {tuple(sorted((k, int(rng.integers(60))))) for k in range(60)}
    lines = [f"p{a},p{b}" for a, b in sorted(pairs) if a != b][fewer:]
    (folder / "edges.csv").write_text("source,target\n" + "\n".join(lines) + "\n", encoding="utf-8")
    named = [f"p{k},{'ab'[kind]}" for k, kind in enumerate(kinds)]
    named[-1] = f"p59,{label}"
    (folder / "labels.csv").write_text("id,label\n" + "\n".join(named) + "\n", encoding="utf-8")
    return folder


def asked_of(folder: Path, **more: Any) -> dict[str, Any]:
    task = {"task": "node_classification", **NODES, "protocol": "asking", "public": "nothing", "trust": ["sums", "curator"],
            "methods": [{"method": "features", "steps": 2, **more}]}  # fmt: skip
    data = [{"name": "own/csv", "label": "people", "path": str(folder), "parameters": {"bounds": {"age": [0, 100]}}}]
    return {"name": "two", "runtime": {"engine": "serial"}, "datasets": data, "tasks": [task]}


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two folders of people that differ in one label, with a run each: the second with the releases of the first."""
    one, other = (tmp_path_factory.mktemp(name) for name in ("one", "other"))
    both = [lambda home=home, label=label: fedgraph.run(asked_of(people(home / "people", label)), out=home / "run", quiet=True)
            for home, label in ((one, "a"), (other, "b"))]  # fmt: skip
    assert not run_in_two_worlds(*both)[2]
    return one, other


def test_what_a_run_of_private_edges_hands_out_is_the_same_in_both_worlds(tmp_path: Path) -> None:
    """Two folders that differ in one edge: links are foreseen, and nodes are classified with noisy sums over neighbours."""
    tasks = [
        {"task": "link_prediction", **NODES, "trust": ["own-client"],
         "methods": [{"method": "link_hops"}]},
        {"task": "node_classification", **NODES, "protocol": "transductive", "cut_edges": "protected",
         "trust": ["sums"], "methods": [{"method": "gap_edge", "epochs": 2, "hops": 1}]},
    ]  # fmt: skip

    def ran(home: Path, fewer: int) -> Path:
        asked = asked_of(people(home / "people", fewer=fewer)) | {"tasks": tasks}
        fedgraph.run(asked, out=home / "run", quiet=True)
        return home / "run" / "outside"

    both = run_in_two_worlds(lambda: ran(tmp_path / "one", 0), lambda: ran(tmp_path / "other", 1))
    assert not both[2]
    assert not differing_files(both[0], both[1])


def test_what_a_run_hands_out_is_the_same_in_both_worlds(homes: tuple[Path, Path]) -> None:
    one, other = (home / "run" / "outside" for home in homes)
    assert {path.name for path in one.iterdir()} > {"results.csv", "statement.txt", "ledger.jsonl", "plans.jsonl"}
    assert not differing_files(one, other)
    whole = differing_files(*(home / "run" for home in homes))
    assert whole, "what is for the holder of the data tells the worlds apart"


@pytest.mark.parametrize("method", ["features", "label_hop"])
def test_a_model_does_not_tell_who_has_a_label(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its plan named everybody without one among those who ask, and counted the others."""
    secret = seeds.SecretSeed(bytes(32))
    monkeypatch.setattr(seeds, "root_seed", lambda seed: secret)
    monkeypatch.setattr("secrets.token_hex", lambda count: "00" * count)

    def fitted(home: Path, label: str) -> bytes:
        asked = asked_of(people(home / "people", label))
        asked["tasks"][0] |= {"trust": ["sums"], "delta": "1/n_train", "methods": [{"method": method, "steps": 2}]}
        fedgraph.run(asked, out=home / "run", quiet=True)
        return fedgraph.open_run(home / "run").best(epsilon=1).fit(home / "people").to_bytes()

    both = (lambda: fitted(tmp_path / "one", "a"), lambda: fitted(tmp_path / "other", ""))
    one, other, released = run_in_two_worlds(*both)
    assert not released
    assert one == other


def flagged(folder: Path, last: str) -> Path:
    """``people`` with a second column of zeros and ones, but the last one's."""
    people(folder)
    head, *rows = (folder / "features.csv").read_text().splitlines()
    cells = [f"{row},{k % 2 if k < len(rows) - 1 else last}" for k, row in enumerate(rows)]
    (folder / "features.csv").write_text("\n".join([f"{head},flag", *cells]) + "\n", encoding="utf-8")
    return folder


CELLS = {"age": ("0", "1", "0.5", "1e30", "-7"), "flag": ("0", "1", "3", "-2.5"), "label": ("a", "b", "")}


@pytest.mark.parametrize(("column", "cell"), [(column, cell) for column, cells in CELLS.items() for cell in cells])
@pytest.mark.parametrize("person", [0, 59])
def test_one_persons_cell_moves_nothing_that_is_read_of_others(person: int, column: str, cell: str, tmp_path: Path) -> None:
    """Neither columns, classes and their numbers, nor rows, labels and edges of others, where every column has bounds."""
    read = []
    for home in ("one", "other"):
        folder = flagged(tmp_path / home, "1")
        if home == "other":
            file = folder / ("labels.csv" if column == "label" else "features.csv")
            head, *rows = file.read_text().splitlines()
            cells = rows[person].split(",")
            cells[head.split(",").index(column)] = cell
            rows[person] = ",".join(cells)
            file.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
        read.append(fedgraph.data.load("own/csv", path=folder, parameters={"bounds": {"age": [0, 100], "flag": [0, 5]}}))
    one, other = read
    rest = np.setdiff1d(np.arange(60), [person])
    assert worlds.first_difference((one.columns, one.names, one.adjacency), (other.columns, other.names, other.adjacency)) == ""
    assert np.array_equal(one.labels[rest], other.labels[rest])
    assert (one.features[rest] != other.features[rest]).nnz == 0


def many_graphs(folder: Path, label: str) -> Path:
    """Thirty small graphs, the last of which has this label."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    sizes = rng.integers(4, 8, 30)
    tables = {
        "nodes": ["graph,id,x", *(f"g{g},{k},{rng.normal():.2f}" for g, size in enumerate(sizes) for k in range(size))],
        "edges": ["graph,source,target", *(f"g{g},{k},{k + 1}" for g, size in enumerate(sizes) for k in range(size - 1))],
        "labels": ["graph,label", *(f"g{g},{'ab'[g % 2]}" for g in range(29)), f"g29,{label}"],
    }
    for name, lines in tables.items():
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_a_graph_that_is_a_row_is_there_with_or_without_a_label(tmp_path: Path) -> None:
    """One without a label was left out, so that plans and sheets counted one less."""

    def ran(home: Path, label: str) -> Path:
        asked = asked_of(many_graphs(home / "people", label))
        asked["datasets"][0] |= {"name": "own/graphs", "parameters": {"rows": True}}
        fedgraph.run(asked, out=home / "run", quiet=True)
        return home / "run" / "outside"

    both = run_in_two_worlds(lambda: ran(tmp_path / "one", "b"), lambda: ran(tmp_path / "other", ""))
    assert not both[2]
    assert not differing_files(both[0], both[1])


@pytest.mark.parametrize("what", ["who asks", "which edges are hidden"])
def test_runs_of_one_written_seed_that_hold_other_people_or_edges_share_no_noise(what: str, tmp_path: Path) -> None:
    """Their noise was the same, so that the difference of two releases showed the others' sum without noise."""
    people(tmp_path / "people")
    added = []
    for share in (0.2, 0.25):
        asked = asked_of(tmp_path / "people") | {"seed": 987654321}
        asked["tasks"][0] |= {"trust": ["curator"], "train_fraction": 1 - share}
        if what != "who asks":
            asked["tasks"] = [{"task": "link_prediction", **NODES, "trust": ["curator"], "test_share": share,
                               "methods": [{"method": "link_hops"}]}]  # fmt: skip
        tape = worlds.FirstWorld()
        with witness_desks(tape):
            fedgraph.run(asked, out=tmp_path / f"run {share}", quiet=True)
        added.append(tape.tape[0].noised - tape.tape[0].bounded)
    assert np.abs(added[0] - added[1]).max() > 0.1


def drafted(folder: Path, *options: str) -> str:
    out = folder.parent / "draft.yaml"
    assert main(["new", "--graph", str(folder), "--yes", "--no-probe", "--out", str(out), *options]) == 0
    return out.read_text(encoding="utf-8")


def test_a_draft_counts_neither_ties_nor_labels_nor_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """δ followed from the number of edges, the share that trains from who has a label, folds from the rarest class."""
    few, many = (people(tmp_path / name / "people", label) for name, label in (("few", "a"), ("many", "")))
    ties = ["source,target", *(f"p{a},p{b}" for a in range(60) for b in range(a))]
    (few / "edges.csv").write_text("\n".join(ties[:1001]) + "\n", encoding="utf-8")
    (many / "edges.csv").write_text("\n".join(ties[:1002]) + "\n", encoding="utf-8")
    told = [drafted(folder, "--task", "links", "--unit", "edge") for folder in (few, many)]
    assert told[0] == told[1]
    assert "delta: 3e-05" in told[0], "one tenth over fifty ties of each of sixty people"
    for name, label, last in (("one", "b", 275), ("other", "", 275)):
        folder = tmp_path / name / "people"
        folder.mkdir(parents=True)
        (folder / "features.csv").write_text("id,age\n" + "".join(f"p{k},{k % 7}\n" for k in range(last)), encoding="utf-8")
        (folder / "edges.csv").write_text("source,target\np0,p1\n", encoding="utf-8")
        rest = "".join(f"p{k},{'ab'[k % 2]}\n" for k in range(last - 1))
        (folder / "labels.csv").write_text(f"id,label\n{rest}p{last - 1},{label}\n", encoding="utf-8")
    assert drafted(tmp_path / "one" / "people") == drafted(tmp_path / "other" / "people")
    graphs = [many_graphs(tmp_path / name / "graphs", label) for name, label in (("first", "a"), ("second", ""))]
    for folder in graphs:  # five of the rarest class, or four
        lines = ["graph,label", *(f"g{g},{'ab'[g > 24]}" for g in range(29)), f"g29,{'b' if folder == graphs[0] else ''}"]
        (folder / "labels.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert drafted(graphs[0]) == drafted(graphs[1])
    capsys.readouterr()


def test_an_exported_project_is_the_same_in_both_worlds(homes: tuple[Path, Path]) -> None:
    from fedgraph.export import project

    for home in homes:
        project.write(project.open_row(home / "run", "features, sums"), "flower", home / "app")
    assert not differing_files(*(home / "app" for home in homes))


# --------------------------------------------------------------------------------------------- what is broken must be found


@pytest.fixture
def broken(on_small: Trainings, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Trains ``features`` with some of its functions in another form, and says what the test finds."""
    plan, partition, _ = on_small.planned(Key("features", 0, Trust.OWN_CLIENT))

    def told(**others: Callable[..., Any]) -> str:
        for name, other in others.items():
            monkeypatch.setattr(plugins.load("methods", "features"), name, other)
        share = max(partition.subgraphs, key=lambda s: s.graph.num_nodes)
        node = int(share.nodes[np.flatnonzero(share.graph.labels >= 0)[0]])
        return "\n".join(map(str, two_worlds.compare_rounds(plan, partition, [Change("zeroed", node)]).differences))

    return told


FEATURES = plugins.load("methods", "features")
prepare, client, server = FEATURES.prepare, FEATURES.client, FEATURES.server


def test_the_honest_program_is_not_accused(broken: Callable[..., str]) -> None:
    assert broken() == ""


def test_an_exact_count_in_a_message_is_found(broken: Callable[..., str]) -> None:
    def counting(plan: Plan, work: Any, model: Any, round_: int, streams: Any, desk: Any) -> Any:
        sent = client(plan, work[0], model, round_, streams, desk)
        return sent | {"edges": Released(np.array([work[1]]), next(iter(sent.values())).entry)}

    found = broken(prepare=lambda plan, share: (prepare(plan, share), float((share.graph.labels >= 0).sum())), client=counting)
    assert "messages of round 0" in found
    assert "edges" in found


def test_a_digest_in_the_model_is_found(broken: Callable[..., str]) -> None:
    """As a model's file would carry it: eight bytes of SHA-256 of private labels, computed at the clients."""
    digests: list[bytes] = []

    def remembering(plan: Plan, share: Any) -> Any:
        digests.append(hashlib.sha256(share.graph.labels.tobytes()).digest()[:8])
        return prepare(plan, share)

    def keeping(plan: Plan, state: State, inbox: Any) -> State:
        after = server(plan, state, inbox)
        return dataclasses.replace(after, model={**after.model, "made of": np.frombuffer(b"".join(digests[-3:]), np.uint8)})

    assert "made of" in broken(prepare=remembering, server=keeping)


def test_coins_that_are_a_permutation_of_private_edges_are_found(on_small: Trainings, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, partition, _ = on_small.planned(Key("link_hops", 2, Trust.CURATOR))
    module = plugins.load("methods", "link_hops")
    honest = module.prepare

    def permuted(plan: Plan, share: Any) -> Any:
        edges = np.column_stack(sp.triu(share.graph.adjacency, 1).nonzero())
        kept = edges[np.random.default_rng(0).permutation(len(edges))[: len(edges) // 2]]
        half = sp.coo_array((np.ones(len(kept), np.float32), kept.T), shape=share.graph.adjacency.shape).tocsr()
        graph = dataclasses.replace(share.graph, adjacency=sp.csr_array(half + half.T))
        return honest(plan, dataclasses.replace(share, graph=graph))

    monkeypatch.setattr(module, "prepare", permuted)
    found = two_worlds.compare_rounds(plan, partition, neighbours(plan, partition)[:2])
    assert any("times as far apart as is priced" in d.what for d in found.differences)


def test_a_value_that_moves_farther_than_its_price_is_found_with_path_client_and_round(
    broken: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = ClippedSum.enforce
    monkeypatch.setattr(ClippedSum, "enforce", lambda bound, value: honest(bound, value) * value.dtype.type(1.5))
    found = broken()
    assert "release 'model', client" in found
    assert "round 0: bounded values are 1.5 times as far apart" in found


def test_noise_that_follows_from_the_data_is_found(broken: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its stream is named by a private count, so whoever knows the seed reads the count from the noise."""
    honest, counts = seeds.secret_seeded_generator, [0]

    def counting(plan: Plan, share: Any) -> Any:
        counts.append(int((share.graph.labels >= 0).sum()))
        return prepare(plan, share)

    monkeypatch.setattr(seeds, "secret_seeded_generator", lambda root, *path: honest(root, *path, sum(counts[-3:])))
    assert "its noise is other than in the first world" in broken(prepare=counting)


def test_a_round_that_is_left_out_for_somebody_is_found(broken: Callable[..., str]) -> None:
    def seldom(plan: Plan, work: Any, model: Any, round_: int, streams: Any, desk: Any) -> Any:
        return {} if work[1] and round_ else client(plan, work[0], model, round_, streams, desk)

    def watched(plan: Plan, share: Any) -> Any:
        return prepare(plan, share), bool((share.graph.labels < 0).any())

    assert "sent [] and ['gradient']; round aborted; in the first world none" in broken(prepare=watched, client=seldom)


def test_a_client_that_stops_at_a_value_is_found(broken: Callable[..., str]) -> None:
    def refusing(plan: Plan, share: Any) -> Any:
        if share.graph.labels.min() < 0:
            raise ValueError("somebody has no label")
        return prepare(plan, share)

    assert "error: RuntimeFailure" in broken(prepare=refusing)


def test_a_server_that_looks_at_private_rows_is_found(library: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that holds rows of people: what LPGNN's did."""
    module = plugins.load("methods", "features")
    honest, world = module.plan, training.federation_of

    def remembered(*args: Any) -> Any:
        found = world(*args)
        seen.append(int((found.held.labels >= 0).sum()))
        return found

    seen: list[int] = []
    monkeypatch.setattr(training, "federation_of", remembered)
    monkeypatch.setattr(
        module, "plan", lambda *args: dataclasses.replace(honest(*args), notes=(f"{seen[-1]} people have a label",))
    )
    found = audited({**TASKS["nodes, test graph public"], "methods": [{"method": "features", "steps": 1}]}, library, tmp_path)
    assert all(finding.differences for finding in found)
    assert "people have a label" in str(found[0].differences[0])


def test_a_model_that_names_who_has_no_label_is_found(library: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = plugins.load("tasks", "node_classification")
    honest = task.TASK.models.everybody

    def telling(params: Any, graph: Graph, public: Graph | None) -> Any:
        return dataclasses.replace(honest(params, graph, public), asking=np.flatnonzero(graph.labels < 0))

    broken = dataclasses.replace(task.TASK, models=dataclasses.replace(task.TASK.models, everybody=telling))
    row = {**TASKS["nodes, nothing public"], "trust": ["curator"], "methods": [{"method": "features", "steps": 1}]}
    assert {finding.verdict for finding in audited(row, library, tmp_path)} == {"same"}
    monkeypatch.setattr(task, "TASK", broken)
    (found,) = [finding for finding in audited(row, library, tmp_path) if finding.verdict == "apart"]
    assert "plan of a model" in str(found.differences[0])


# ------------------------------------------------------------------------------------------------------------- neighbours


def test_notable_units_are_among_the_neighbours(library: Graph) -> None:
    from fedgraph.privacy.units import Assumption, Protection, Viewer

    counts = (Assumption.COUNTS_PUBLIC,)
    nodes = worlds.changes(library, Protection(Relation.NODE_ZERO_OUT, Viewer.CURATOR_TRUSTED, counts))
    assert {change.one for change in nodes} >= {0, library.num_nodes - 1, int(library.degrees.argmax())}
    edges = worlds.changes(
        library, Protection(Relation.EDGE_UNDIRECTED, Viewer.CURATOR_TRUSTED, (Assumption.FEATURES_LABELS_PUBLIC,))
    )
    assert {change.kind for change in edges} == {"edge gone", "edge new"}
    for change in edges:
        moved = change.of(library).adjacency - library.adjacency
        assert abs(moved).sum() == 2
        assert abs(moved - moved.T).nnz == 0
    promised = Protection(
        Relation.NODE_REPLACE, Viewer.CURATOR_TRUSTED, (Assumption.PROMISED_DEGREE,), int(library.degrees.max())
    )
    for change in worlds.changes(library, promised):
        assert change.of(library).degrees.max() <= library.degrees.max(), "a neighbour that breaks a promise is no neighbour"


# --------------------------------------------------------------------------------------------------------------- command


def test_the_command_says_what_it_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ready_of(
        {**TASKS["nodes, test graph public"], "trust": ["curator"], "methods": [{"method": "features", "steps": 1}]}, tmp_path
    )
    assert main(["audit", "worlds", str(tmp_path / "two.yaml"), "--quick"]) == 0
    assert "1 same, 0 apart, 0 untried, 0 failed" in capsys.readouterr().out
    honest = ClippedSum.enforce
    monkeypatch.setattr(ClippedSum, "enforce", lambda bound, value: honest(bound, value) * value.dtype.type(2))
    assert main(["audit", "worlds", str(tmp_path / "two.yaml"), "--quick"]) == 1
    assert "apart" in capsys.readouterr().out
    assert main(["audit", "worlds", str(tmp_path / "two.yaml"), "--neighbours", "0"]) == 2
    assert audit.HELP
